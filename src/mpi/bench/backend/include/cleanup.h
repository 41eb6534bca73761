/*
 * cleanup.h - a child process that removes the benchmark's files and mounts, however it ends
 *
 * mpirun kills ranks a second after a signal, which a rank may spend in one system call. So
 * rank 0 reports what it makes on disk to a child process, which waits until the other end of a
 * pipe is closed: the kernel closes it whenever and however rank 0 ends.
 */
#ifndef BENCH_CLEANUP_H
#define BENCH_CLEANUP_H

#include <stdbool.h>

/* Forks the guard; call it before MPI_Init(). Returns false and sets errno on failure. */
bool bench_cleanup_start(void);

/* Report an absolute path, to be removed, or to be unmounted and removed, at the end. */
void bench_cleanup_add_file(const char *path);
void bench_cleanup_add_mount(const char *path);

/* From now on SIGINT, SIGTERM and SIGHUP wait for the guard, then exit with 128 + signal. */
void bench_cleanup_catch_signals(void);

/* Lets the guard remove everything and waits for it; no effect on a rank without one. */
void bench_cleanup_finish(void);

/* Unmounts a directory; lazily: as soon as no process uses it. False: sets errno, e.g. EBUSY.
 */
bool bench_cleanup_unmount(const char *directory, bool lazily);

/* Unmounts and removes a directory, now or as soon as no process uses it. */
void bench_cleanup_remove(const char *directory);

#endif
