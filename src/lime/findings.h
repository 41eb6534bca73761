/* findings.h - findings that are kept until all are known; inside of src/lime */
#ifndef LIMEFILE_FINDINGS_H
#define LIMEFILE_FINDINGS_H

#include "limefile.h"

struct findings {
    struct limefile_finding *at; /* zero to begin with; to be freed */
    size_t count, capacity;
};

int findings_add(struct findings *, int code, uint64_t ordinal, uint64_t offset, uint64_t have,
                 uint64_t want);

/* In the order of the file. `report` may be NULL. */
void findings_report(struct findings *, limefile_finding_fn *report, void *context);

#endif
