/* cut.h - cut records from the end of a container so that a crash leaves it readable */
#ifndef LIMEFILE_CUT_H
#define LIMEFILE_CUT_H

#include "limefile.h"

#include <stdbool.h>

/* A cut of all bytes from `end` on. The caller sets the first five members. */
struct limefile_cut {
    uint64_t end;
    bool has_previous; /* a record precedes `end`, and the cut marks it */
    uint64_t before;   /* offset of that record's header */
    bool set_me;       /* if has_previous, the cut sets ME in that header */
    bool visible;      /* a header may be at `end`; if has_previous, the cut clears its magic */
    /* Results of limefile_cut(). */
    bool is_cut; /* the file ends at `end`, perhaps not yet on the disk; false: not cut */
    bool marked; /* the preceding record may still have the mark, MARK_REMOVING */
};

/* Cuts and syncs the file. A crash in the middle leaves a tail that recovery recognises, unless
 * the file system had no space for the mark. Returns 0, -errno or a code of limefile.h. */
int limefile_cut(struct limefile_source *source, struct limefile_cut *cut);

#endif
