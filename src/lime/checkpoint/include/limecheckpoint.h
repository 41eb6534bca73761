/*
 * limecheckpoint.h - the checkpoints of particles (limecells.h) in a container: which records
 * they are, what is wrong with them, and whether their particles are those of the index.
 *
 * Memory does not grow with a checkpoint's cells or particles. Results are as in limefile.h.
 */
#ifndef LIMECHECKPOINT_H
#define LIMECHECKPOINT_H

#include "limecells.h"
#include "limefile.h"

enum {
    LIMECHECKPOINT_FINDINGS = 4, /* of one checkpoint, at most */
    LIMECHECKPOINT_WHY_MAX = 160,
};

/*
 * Records that belong together: an index, the text before it and the data after it in its
 * message, with none of these types between them. Of a record that has none of the others, that
 * alone.
 */
struct limecheckpoint {
    struct limefile_record text, index, data; /* ordinal 0: there is none */
    struct limecells is;                      /* if `known`: what the index's header says */
    bool known;                               /* the header is good */
    bool counted;                             /* so are the entries: of the cells, */
    uint64_t fewest, most, empty;             /* particles, and how many have none */
    bool whole; /* ... and the data have the right length: they can be verified */

    /* LIMEFILE_D_CELLS_*, in the order of the file. Their reasons are in `why`: a copy of this
     * has those of the original. */
    struct limefile_finding finding[LIMECHECKPOINT_FINDINGS];
    unsigned findings;
    char why[LIMECHECKPOINT_WHY_MAX]; /* of the index */
};

/* Follows a container. Source and index must outlive it. */
struct limecheckpoint_walk {
    struct limefile_source *source;
    const struct limefile_index *index;
    uint64_t next; /* ordinal */
};
void limecheckpoint_walk_begin(struct limecheckpoint_walk *, struct limefile_source *,
                               const struct limefile_index *);

/* The last record of it. */
const struct limefile_record *limecheckpoint_last(const struct limecheckpoint *);

/* The next one: 1; 0: there is none; -errno or LIMEFILE_E_SHRUNK. Reads text and index. */
int limecheckpoint_next(struct limecheckpoint_walk *, struct limecheckpoint *out);

/* Its findings, one after another: 1, 0, or an error. The reason lives until the next call. */
struct limecheckpoint_findings {
    struct limecheckpoint_walk walk;
    struct limecheckpoint at;
    unsigned told; /* of `at` */
};
void limecheckpoint_findings_begin(struct limecheckpoint_findings *, struct limefile_source *,
                                   const struct limefile_index *);
int limecheckpoint_findings_next(struct limecheckpoint_findings *,
                                 struct limefile_finding *out);

/* What became of the particles. */
struct limecheckpoint_verdict {
    uint64_t bad, cells;              /* of these are wrong */
    uint64_t at[LIMECELLS_DIMS];      /* the first wrong one, by its number */
    char why[LIMECHECKPOINT_WHY_MAX]; /* "the first is (1, 2, 3): ..."; "" if all are right */
};

/* Compares each cell with its checksum, and each position with its cell. The checkpoint is
 * whole. progress (may be NULL) is told how many bytes more have been read; false: stop, and
 * fail with -EINTR. -errno, LIMEFILE_E_SHRUNK. */
typedef bool limecheckpoint_progress_fn(void *context, uint64_t bytes_more);
int limecheckpoint_verify(struct limefile_source *, const struct limecheckpoint *,
                          limecheckpoint_progress_fn *progress, void *context,
                          struct limecheckpoint_verdict *out);

#endif
