/*
 * cleanup.h - a child process, the guard, that removes the benchmark's files and mounts
 *
 * mpirun passes a signal to the ranks and kills them a second later. Rank 0 cannot clean up if
 * it spends this second in one system call. So it reports each file and mount that it makes to
 * the guard, through a pipe. The guard removes them when the pipe is closed; the kernel closes
 * it however rank 0 ends.
 */
#ifndef BENCH_CLEANUP_H
#define BENCH_CLEANUP_H

#include <stdbool.h>

/* Forks the guard, on each rank, before MPI_Init(). On failure returns false and sets errno. */
bool bench_cleanup_start(void);

/* Report an absolute path to the guard: a file to remove, or a mount to unmount and remove. */
void bench_cleanup_add_file(const char *path);
void bench_cleanup_add_mount(const char *path);

/* Makes SIGINT, SIGTERM and SIGHUP call bench_cleanup_finish() and exit with 128 + signal. */
void bench_cleanup_catch_signals(void);

/* Closes the pipe and waits until the guard has removed everything. Ranks other than 0 call it
 * right after MPI_Init(), as they need no guard. Further calls do nothing. */
void bench_cleanup_finish(void);

/* Unmounts a directory; lazily: even if in use. On failure returns false with errno set. */
bool bench_cleanup_unmount(const char *directory, bool lazily);

/* Removes a directory. If it is still a mount point, first unmounts it lazily. */
void bench_cleanup_remove(const char *directory);

#endif
