/* repair.h - the steps of `lime repair`, in the order in which they are taken */
#ifndef REPAIR_H
#define REPAIR_H

#include "container.h"

struct repair {
    const char *path;
    int fd;
    struct limefile_fd file;
    bool dry;   /* say what is to be done, change nothing */
    bool force; /* cut whatever follows a fault */
    uint64_t changes;
};

/* What one pass over the container finds. */
struct survey {
    uint64_t records, size, deviations;
    uint32_t messages;
    uint64_t end; /* of what can be read: where the fault's header stands, or the size */
    struct limefile_finding fault; /* code 0: none */
    bool is_container;
};

/* "FILE: what", on stdout, marked where it is not really done; counts it. */
__attribute__((format(printf, 2, 3))) void repair_note(struct repair *, const char *format,
                                                       ...);

/* Cuts what stands behind the last whole record, after keeping a copy of it, if that is an
 * unfinished tail (or force says so). An exit status, after a message if not 0. (tail.c) */
int repair_tail(struct repair *, const struct survey *);

/* Mends flags, reserved bits, what follows the NUL of types, and padding; names what it cannot
 * mend. *hopeless: how many of these. 0 or an error code. (mend.c) */
int repair_mend(struct repair *, uint64_t *hopeless);

/* A whole record that stands anywhere behind `from`. (salvage.c) */
struct salvage {
    uint64_t offset;
    struct limefile_header header;
};

/* 1: found; 0: there is none; < 0: an error code. */
int salvage_find(struct limefile_source *, uint64_t from, uint64_t size, struct salvage *out);

#endif
