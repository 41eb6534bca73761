/*
 * cleanup.h - a child process, the guard, that removes the benchmark's files and mounts
 *
 * mpirun passes a signal to the ranks and kills them a second later; a rank may spend this
 * second in one system call. So rank 0 reports each file and mount that it makes to the guard,
 * through a pipe. The guard removes them when the pipe is closed: the kernel closes it however
 * rank 0 ends.
 */
#ifndef BENCH_CLEANUP_H
#define BENCH_CLEANUP_H

#include <stdbool.h>

/* Forks the guard; call it on each rank before MPI_Init(). Returns false and sets errno. */
bool bench_cleanup_start(void);

/* Report an absolute path: a file to remove, or a mount to unmount and remove, at the end. */
void bench_cleanup_add_file(const char *path);
void bench_cleanup_add_mount(const char *path);

/* Makes SIGINT, SIGTERM and SIGHUP call bench_cleanup_finish() and exit with 128 + signal. */
void bench_cleanup_catch_signals(void);

/* Closes the pipe and waits until the guard has removed everything. All ranks but 0 call it
 * after MPI_Init(). Further calls do nothing. */
void bench_cleanup_finish(void);

/* Unmounts a directory; lazily: even if in use. Returns false and sets errno, e.g. EBUSY. */
bool bench_cleanup_unmount(const char *directory, bool lazily);

/* Removes a directory. If it is still a mount point, unmounts it lazily before. */
void bench_cleanup_remove(const char *directory);

#endif
