/* cut.h - records taken from the end of a container */
#ifndef LIMEFILE_CUT_H
#define LIMEFILE_CUT_H

#include "limefile.h"

#include <stdbool.h>

/* What is cut: all from `end` on, behind the record whose header stands at `before`. */
struct limefile_cut {
    uint64_t end;
    bool behind;     /* there is such a record */
    uint64_t before; /* its header */
    bool set_me;     /* it ends its message then */
    bool visible;    /* a good header may stand at `end` */
    /* What has come of it. */
    bool gone;   /* the file ends there, though perhaps not on the disk; else it is as it was */
    bool marked; /* the record before has the mark still */
};

/* Cuts, on the disk. After a crash in the middle the tail is known for what it is, unless there
 * was no room to say so. */
int limefile_cut(struct limefile_source *source, struct limefile_cut *cut);

#endif
