/* findings.h - findings that are kept until all are known; inside of src/lime */
#ifndef LIMEFILE_FINDINGS_H
#define LIMEFILE_FINDINGS_H

#include "limefile.h"

/* Where a finding is, follows from its code; a hostile container has millions of them. */
struct kept_finding {
    uint32_t ordinal;
    int code : 31;
    unsigned at_next : 1; /* where the next record begins, as this one is empty */
    /* D_XML: what it has; D_OPTIONAL: a pointer to the element's static name; D_FIELD_LENGTH:
     * what it wants; else 0 */
    uint64_t value;
};

struct findings {
    struct kept_finding *at; /* zero to begin with; to be freed */
    size_t count, capacity;
};

int findings_add(struct findings *, int code, const struct limefile_record *, uint64_t value);

/* In the order of the file. */
void findings_sort(struct findings *);

void findings_get(const struct findings *, const struct limefile_index *, size_t i,
                  struct limefile_finding *out);

#endif
