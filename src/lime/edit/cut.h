/* cut.h - cut records from the end of a container so that a crash leaves it readable */
#ifndef LIMEFILE_CUT_H
#define LIMEFILE_CUT_H

#include "limefile.h"

#include <stdbool.h>

/* Cuts all bytes from `end` on, behind the record whose header is at `before`. */
struct limefile_cut {
    uint64_t end;
    bool has_previous; /* a record precedes `end` */
    uint64_t before;   /* offset of its header */
    bool set_me;       /* that record ends its message after the cut */
    bool visible;      /* a good header may stand at `end` */
    /* Results of limefile_cut(). */
    bool is_cut; /* the file ends at `end`, perhaps not yet on the disk; else it is unchanged */
    bool marked; /* the preceding record still has the mark */
};

/* Cuts and syncs. A crash in the middle leaves a tail that recovery recognises, unless the file
 * system had no space for the mark. Returns 0, -errno or a code of limefile.h. */
int limefile_cut(struct limefile_source *source, struct limefile_cut *cut);

#endif
