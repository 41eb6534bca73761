/*
 * guard.h - a process that removes what the benchmark has made, however it ends
 *
 * mpirun gives ranks a second after a signal, which a rank may spend in one system call. So
 * what is made on disk is reported to a child of rank 0, which waits for the other end of a
 * pipe to be closed: by the end of the program, in whatever way that comes.
 */
#ifndef BENCH_GUARD_H
#define BENCH_GUARD_H

#include <stdbool.h>

/* Forks it; before MPI_Init(). False: errno. */
bool bench_guard_start(void);

/* To be unmounted and removed at the end; absolute paths. */
void bench_guard_file(const char *path);
void bench_guard_mount(const char *path);

/* From now on SIGINT, SIGTERM and SIGHUP wait for the guard, then exit with 128 + the signal.
 */
void bench_guard_signals(void);

/* Lets it remove everything, and waits for that; on a rank that makes nothing, at once. */
void bench_guard_end(void);

/* Unmounts a directory; lazily: as soon as no process uses it. False: errno, perhaps EBUSY. */
bool bench_guard_unmount(const char *directory, bool lazily);

/* Unmounts and removes a directory, now or as soon as no process uses it. */
void bench_guard_remove(const char *directory);

#endif
