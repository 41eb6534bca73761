/* cells.h - what lime info and lime check say of checkpoints of particles */
#ifndef CELLS_H
#define CELLS_H

#include "jsonout.h"
#include "limecheckpoint.h"

/* True of the records that checkpoints consist of. */
bool cells_is_type(const char *type);

/* Whether the container has data of checkpoints. */
bool cells_any(const struct limefile_index *);

/* A paragraph for people; a JSON object. */
void cells_tell(const struct limecheckpoint *);
void cells_json(const struct limecheckpoint *);

/* ---- lime check --data ---- */

/* One file. The first part is the caller's; the rest is zero to begin with. */
struct cells_check {
    const char *path;
    bool quiet; /* says nothing of what is unverified */
    limecheckpoint_progress_fn *progress;
    void (*report)(void *context, const struct limefile_finding *);
    void *context;                /* of both */
    struct jsonout_list *results; /* {"ordinal": 3, "state": "good", ...}, or NULL */

    uint64_t verified, wrong, unverified; /* checkpoints */
};

/* Compares all particles with their indexes. A file that cannot be read any more, or has become
 * shorter, is a finding of its data; other errors, as of memory, are returned. */
int cells_check(struct cells_check *, struct limefile_source *, const struct limefile_index *);

#endif
