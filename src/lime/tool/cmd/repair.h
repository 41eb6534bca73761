/* repair.h - the steps of `lime repair`, in the order in which they are taken */
#ifndef REPAIR_H
#define REPAIR_H

#include "container.h"
#include "limeedit.h"
#include "progress.h"

struct repair {
    const char *path;
    int fd;
    struct limefile_fd file;
    bool dry;   /* say what is to be done, change nothing */
    bool force; /* cut whatever follows a fault */
    uint64_t changes;
    uint64_t lost; /* records that are gone; they are named */
    struct progress progress;
};

/* "FILE: what", on stdout, marked where it is not really done; counts it. */
__attribute__((format(printf, 2, 3))) void repair_note(struct repair *, const char *format,
                                                       ...);

/* For the functions of limeedit.h; the context is the struct repair. */
void repair_progress(void *context, uint64_t done, uint64_t size);

/* Cuts what stands behind the last whole record, after keeping a copy of it unless it is an
 * unfinished record, if that is an unfinished tail (or force says so); completes a replacement.
 * Names the records that are gone. An exit status, after a message if not 0. (tail.c) */
int repair_tail(struct repair *, const struct limefile_survey *);

#endif
