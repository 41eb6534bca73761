/* findings.h - collect the findings of a pass and sort them. For src/lime only. */
#ifndef LIMEFILE_FINDINGS_H
#define LIMEFILE_FINDINGS_H

#include "limefile.h"

/* A finding. The offset follows from code and record. A malicious file can have millions. */
struct stored_finding {
    uint32_t ordinal;
    int code : 31;
    unsigned at_next : 1; /* the record has no data: the offset is that of the next record */
    /* D_XML: `have` of the finding; D_OPTIONAL: the element's static name; D_FIELD_LENGTH:
     * `want`; otherwise 0 */
    uint64_t value;
};

struct findings {
    struct stored_finding *list; /* NULL at first; the owner frees it */
    size_t count, capacity;
};

int findings_add(struct findings *, int code, const struct limefile_record *, uint64_t value);

/* Sorts the findings in file order. */
void findings_sort(struct findings *);

void findings_get(const struct findings *, const struct limefile_index *, size_t i,
                  struct limefile_finding *out);

#endif
