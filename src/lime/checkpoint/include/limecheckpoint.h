/* limecheckpoint.h - find the checkpoints of particles (limecells.h) in a container, report
 * their faults, and compare their particles with the index.
 *
 * Memory does not depend on the number of cells or particles. Results are as in limefile.h. */
#ifndef LIMECHECKPOINT_H
#define LIMECHECKPOINT_H

#include "limecells.h"
#include "limefile.h"

enum {
    LIMECHECKPOINT_FINDINGS = 4, /* findings of one checkpoint, at most */
    LIMECHECKPOINT_WHY_MAX = 160,
};

/* Records that belong together: an index, and in the same message the text before it and the
 * data after it, with no record of these types between them. A text or data record without an
 * index counts as a checkpoint of its own, which is not complete. */
struct limecheckpoint {
    struct limefile_record text, index, data; /* ordinal 0: missing */
    struct limecells cells;                   /* if `has_header` */
    bool has_header;                          /* the index's header is valid */
    bool entries_valid;                       /* the index's header and entries are valid */
    uint64_t fewest_in_cell, most_in_cell;    /* numbers of particles */
    uint64_t empty_cells;                     /* number of cells without particles */
    bool is_complete; /* the index is valid; the data have the length that it states */

    /* LIMEFILE_D_CELLS_*, in the order of the file. A finding can point to `why`; in a copy
     * of this struct it still points to `why` of the original. */
    struct limefile_finding finding[LIMECHECKPOINT_FINDINGS];
    unsigned findings;
    char why[LIMECHECKPOINT_WHY_MAX]; /* the reason of the index's finding */
};

/* Iterates over a container's checkpoints. Source and index must outlive the iteration. */
struct limecheckpoint_walk {
    struct limefile_source *source;
    const struct limefile_index *index;
    uint64_t next; /* ordinal of the next record */
};
void limecheckpoint_walk_begin(struct limecheckpoint_walk *, struct limefile_source *,
                               const struct limefile_index *);

/* Returns the checkpoint's last record. */
const struct limefile_record *limecheckpoint_last(const struct limecheckpoint *);

/* Reads the next checkpoint's text and index. Returns 1, 0 at the end, or an error: -errno or
 * LIMEFILE_E_SHRUNK. */
int limecheckpoint_next(struct limecheckpoint_walk *, struct limecheckpoint *out);

/* Iterates over all findings. Results are as above. `why` is valid until the next call. */
struct limecheckpoint_findings {
    struct limecheckpoint_walk walk;
    struct limecheckpoint checkpoint;
    unsigned returned; /* findings of `checkpoint` that were returned */
};
void limecheckpoint_findings_begin(struct limecheckpoint_findings *, struct limefile_source *,
                                   const struct limefile_index *);
int limecheckpoint_findings_next(struct limecheckpoint_findings *,
                                 struct limefile_finding *out);

/* The result of limecheckpoint_verify(). */
struct limecheckpoint_verdict {
    uint64_t bad, cells;                /* number of bad cells and of all cells */
    uint64_t first_bad[LIMECELLS_DIMS]; /* the first bad cell, by number */
    char why[LIMECHECKPOINT_WHY_MAX];   /* "the first is (1, 2, 3): ..."; "" if none is bad */
};

/* Compares each cell's particles with the cell's checksum, and each position with its cell.
 * progress (may be NULL) gets the number of bytes read since its previous call; if it returns
 * false, the result is -EINTR. Returns 0, LIMEFILE_E_STATE (not `is_complete`),
 * LIMEFILE_E_SHRUNK or -errno. */
typedef bool limecheckpoint_progress_fn(void *context, uint64_t bytes_more);
int limecheckpoint_verify(struct limefile_source *, const struct limecheckpoint *,
                          limecheckpoint_progress_fn *progress, void *context,
                          struct limecheckpoint_verdict *out);

#endif
