/* checkcells.c - lime check --data of checkpoints: each cell against the index */
#define _GNU_SOURCE
#include "cells.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Of a record of particles. */
struct cells_result {
    uint64_t ordinal, cells, bad;
    uint64_t first[LIMECELLS_DIMS]; /* the first bad one */
    enum limefile_verdict verdict;
};

static int keep(struct cells_check *check, const struct cells_result *result)
{
    if (check->results == check->room) {
        size_t room = check->room + check->room / 2 + 16;
        void *bigger = reallocarray(check->result, room, sizeof *check->result);
        if (!bigger)
            return -ENOMEM;
        check->result = bigger;
        check->room = room;
    }
    check->result[check->results++] = *result;
    return 0;
}

/* Why its particles cannot be compared; NULL if they can. */
static const char *reason_of(const struct limecheckpoint *p, enum limefile_verdict *verdict)
{
    *verdict = LIMEFILE_UNVERIFIED;
    if (p->whole)
        return NULL;
    if (!p->index.ordinal)
        return "no index of cells";
    if (!p->counted)
        return "its index is damaged";
    *verdict = LIMEFILE_BAD;
    return "its length is not that of the particles";
}

static int compare(struct cells_check *check, struct limefile_source *source,
                   const struct limecheckpoint *p, struct cells_result *result)
{
    struct limecheckpoint_verdict verdict;
    struct limefile_finding finding = {
        .offset = p->data.data_offset,
        .ordinal = p->data.ordinal,
    };
    int err = limecheckpoint_verify(source, p, check->progress, check->context, &verdict);
    if (err == -ENOMEM)
        return err;
    result->cells = verdict.cells;
    result->bad = verdict.bad;
    for (int d = 0; d < LIMECELLS_DIMS; d++)
        result->first[d] = verdict.at[d];
    result->verdict = err ? LIMEFILE_UNREADABLE : verdict.bad ? LIMEFILE_BAD : LIMEFILE_GOOD;
    if (result->verdict == LIMEFILE_GOOD) {
        check->verified++;
        return 0;
    }
    finding.code = err ? err : LIMEFILE_D_CELLS;
    if (!err) {
        finding.have = verdict.bad;
        finding.want = verdict.cells;
        finding.why = verdict.why;
    }
    check->report(check->context, &finding);
    check->wrong++;
    return 0;
}

static int check_one(struct cells_check *check, struct limefile_source *source,
                     const struct limecheckpoint *p)
{
    struct cells_result result = {.ordinal = p->data.ordinal};
    if (!p->data.ordinal)
        return 0;
    const char *reason = reason_of(p, &result.verdict);
    int err = reason ? 0 : compare(check, source, p, &result);
    if (reason) {
        if (result.verdict == LIMEFILE_BAD)
            check->wrong++;
        else
            check->unverified++;
        if (!check->quiet)
            answer(check->path, "record %" PRIu64 ": %s: %s", result.ordinal,
                   limefile_verdict_word(result.verdict), reason);
    }
    return err ? err : keep(check, &result);
}

int cells_check(struct cells_check *check, struct limefile_source *source,
                const struct limefile_index *index)
{
    struct limecheckpoint_walk walk;
    struct limecheckpoint checkpoint;
    int got, err = 0;
    limecheckpoint_walk_begin(&walk, source, index);
    while (!err && (got = limecheckpoint_next(&walk, &checkpoint)) != 0)
        err = got < 0 ? got : check_one(check, source, &checkpoint);
    return err;
}

void cells_check_json(const struct cells_check *check)
{
    putchar('[');
    for (size_t i = 0; i < check->results; i++) {
        const struct cells_result *r = &check->result[i];
        printf("%s{\"ordinal\": %" PRIu64 ", \"state\": \"%s\"", i ? ", " : "", r->ordinal,
               limefile_verdict_word(r->verdict));
        if (r->cells)
            printf(", \"cells\": %" PRIu64 ", \"bad\": %" PRIu64, r->cells, r->bad);
        if (r->bad)
            printf(", \"first_bad\": [%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", r->first[0],
                   r->first[1], r->first[2]);
        putchar('}');
    }
    putchar(']');
}

void cells_check_release(struct cells_check *check)
{
    free(check->result);
    check->result = NULL;
    check->results = check->room = 0;
}
