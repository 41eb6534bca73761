/* findings.c - findings that are kept until all are known */
#define _GNU_SOURCE
#include "findings.h"

#include <errno.h>
#include <stdlib.h>

int findings_add(struct findings *f, int code, uint64_t ordinal, uint64_t offset, uint64_t have,
                 uint64_t want)
{
    if (f->count == f->capacity) {
        size_t more = 2 * f->capacity + 16;
        void *bigger = reallocarray(f->at, more, sizeof *f->at);
        if (!bigger)
            return -ENOMEM;
        f->at = bigger;
        f->capacity = more;
    }
    f->at[f->count++] = (struct limefile_finding){
        .code = code, .offset = offset, .ordinal = ordinal, .have = have, .want = want};
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct limefile_finding *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->code > y->code) - (x->code < y->code);
}

void findings_report(struct findings *f, limefile_finding_fn *report, void *context)
{
    if (!report || f->count == 0)
        return;
    qsort(f->at, f->count, sizeof *f->at, compare);
    for (size_t i = 0; i < f->count; i++)
        report(context, &f->at[i]);
}
