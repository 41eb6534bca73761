/*
 * mount.h - a container, mounted by limefs in a folder beside it
 */
#ifndef BENCH_MOUNT_H
#define BENCH_MOUNT_H

#include "backend.h"

#include <sys/types.h>

struct bench_mount {
    pid_t daemon;                  /* 0: none */
    char folder[BENCH_PATH_BYTES]; /* "": none */
};

/* Why nothing can be mounted here, or NULL. */
const char *bench_mount_absent(void);

/* Mounts io->path, for writing if that is what the io does, and waits until it can be used;
 * with job_ranks > 0, until its job serves. 0, or -1 with an error; then nothing is mounted. */
int bench_mount_start(struct bench_io *, struct bench_mount *, int job_ranks);

/* Unmounts it and waits for the daemon's end. */
void bench_mount_end(struct bench_mount *);

/* Unmounts and removes a folder, now or as soon as nobody uses it. */
void bench_mount_remove(const char *folder);

#endif
