/* cells.c - what lime check and lime info say of checkpoints of particles */
#define _GNU_SOURCE
#include "cells.h"
#include "fieldcheck.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a record of particles. */
struct cells_result {
    uint64_t ordinal, cells, bad;
    uint64_t first[LIMECELLS_DIMS]; /* the first bad one */
    enum limefile_verdict verdict;
};

static void print_result(FILE *out, const struct cells_result *r)
{
    jsonout(out, "{ordinal:u state:s", r->ordinal, limefile_verdict_word(r->verdict));
    if (r->cells)
        jsonout(out, "cells:u bad:u", r->cells, r->bad);
    if (r->bad)
        jsonout(out, "first_bad:l", r->first, LIMECELLS_DIMS);
    putc('}', out);
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

static int compare(struct data_check *check, const struct limecheckpoint *p,
                   struct cells_result *result)
{
    struct limecheckpoint_verdict verdict;
    struct limefile_finding finding = {
        .offset = p->data.data_offset,
        .ordinal = p->data.ordinal,
    };
    int err =
        limecheckpoint_verify(check->c->source, p, check->progress, check->context, &verdict);
    if (err == -ENOMEM)
        return err;
    result->cells = verdict.cells;
    result->bad = verdict.bad;
    for (int d = 0; d < LIMECELLS_DIMS; d++)
        result->first[d] = verdict.at[d];
    result->verdict = err ? LIMEFILE_UNREADABLE : verdict.bad ? LIMEFILE_BAD : LIMEFILE_GOOD;
    if (result->verdict == LIMEFILE_GOOD) {
        check->sums->good++;
        return 0;
    }
    finding.code = err ? err : LIMEFILE_D_CELLS;
    if (!err) {
        finding.have = verdict.bad;
        finding.want = verdict.cells;
        finding.why = verdict.why;
    }
    check->report(check->context, &finding);
    check->sums->wrong++;
    return 0;
}

static int check_one(struct data_check *check, const struct limecheckpoint *p)
{
    struct cells_result result = {.ordinal = p->data.ordinal};
    if (!p->data.ordinal)
        return 0;
    const char *reason = reason_of(p, &result.verdict);
    int err = reason ? 0 : compare(check, p, &result);
    if (reason) {
        if (result.verdict == LIMEFILE_BAD)
            check->sums->wrong++;
        else
            check->sums->unverified++;
        if (!check->quiet)
            answer(check->path, "record %" PRIu64 ": %s: %s", result.ordinal,
                   limefile_verdict_word(result.verdict), reason);
    }
    if (!err && check->cell_list.file)
        print_result(jsonout_list_next(&check->cell_list), &result);
    return err;
}

int cells_check(struct data_check *check)
{
    struct limecheckpoint_walk walk;
    struct limecheckpoint checkpoint;
    int got, err = 0;
    limecheckpoint_walk_begin(&walk, check->c->source, check->c->index);
    while (!err && (got = limecheckpoint_next(&walk, &checkpoint)) != 0)
        err = got < 0 ? got : check_one(check, &checkpoint);
    return err;
}

enum { NUMBER_MAX = 32 };

bool cells_is_type(const char *type)
{
    return strcmp(type, LIMECELLS_FORMAT_TYPE) == 0 ||
           strcmp(type, LIMECELLS_INDEX_TYPE) == 0 || strcmp(type, LIMECELLS_DATA_TYPE) == 0;
}

bool cells_any(const struct limefile_index *index)
{
    struct limefile_record first;
    uint64_t count;
    return limefile_index_by_type(index, LIMECELLS_DATA_TYPE, strlen(LIMECELLS_DATA_TYPE),
                                  &first, &count) == 0;
}

/* No more digits than it takes to read the same number. */
static const char *number(double x, char out[NUMBER_MAX])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, NUMBER_MAX, "%.*g", digits, x);
        if (strtod(out, NULL) == x)
            break;
    }
    return out;
}

/* ---- for people ---- */

static void tell_domain(const struct limecells *c)
{
    char low[LIMECELLS_DIMS][NUMBER_MAX], high[LIMECELLS_DIMS][NUMBER_MAX];
    char periodic[16] = "";
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        number(c->origin[d], low[d]);
        number(c->origin[d] + c->length[d], high[d]);
        if (c->periodic[d])
            snprintf(periodic + strlen(periodic), sizeof periodic - strlen(periodic), "%s%c",
                     *periodic ? ", " : "", "xyz"[d]);
    }
    tell_value("domain", "%s..%s x %s..%s x %s..%s", low[0], high[0], low[1], high[1], low[2],
               high[2]);
    tell_value("periodic", "%s", *periodic ? periodic : "none");
}

static void tell_cells(const struct limecheckpoint *p)
{
    const uint64_t *cells = p->is.cells;
    char empty[48] = "";
    if (p->counted && p->empty)
        snprintf(empty, sizeof empty, ", %" PRIu64 " empty", p->empty);
    tell_value("cells", "%" PRIu64 " x %" PRIu64 " x %" PRIu64, cells[0], cells[1], cells[2]);
    if (p->counted)
        tell_value("in a cell", "%" PRIu64 " to %" PRIu64 " particles%s", p->fewest, p->most,
                   empty);
}

static void tell_fields(const struct limecells *c)
{
    for (uint32_t i = 0; i < c->fields; i++) {
        const struct limecells_field *f = &c->field[i];
        char count[24] = "";
        if (f->count != 1)
            snprintf(count, sizeof count, "%" PRIu32 " ", f->count);
        tell_value(i ? "" : "fields", "%s: %s%s at byte %" PRIu64, f->name, count,
                   limefile_cells_type_word(f->type), f->offset);
    }
}

static void tell_known(const struct limecheckpoint *p)
{
    const struct limecells *c = &p->is;
    char time[NUMBER_MAX];
    tell_value("particles", "%" PRIu64 " of %" PRIu64 " byte%s", c->particles,
               c->particle_bytes, plural(c->particle_bytes));
    tell_value("step", "%" PRId64 ", time %s", c->step, number(c->time, time));
    tell_domain(c);
    tell_cells(p);
    tell_value("byte order", "%s-endian", c->big_endian ? "big" : "little");
    tell_fields(c);
}

void cells_tell(const struct limecheckpoint *p)
{
    char size[64], want[64];
    tell_heading("checkpoint of particles (record %" PRIu64 ")",
                 limecheckpoint_last(p)->ordinal);
    if (p->known)
        tell_known(p);
    else
        tell_value("index", "%s", p->index.ordinal ? "damaged" : "none");
    if (!p->data.ordinal)
        tell_value("size", "no data");
    else if (p->known && p->data.bytes != limefile_cells_data_bytes(&p->is))
        tell_value("size", "%s, but should be %s", tell_bytes(p->data.bytes, size),
                   tell_bytes(limefile_cells_data_bytes(&p->is), want));
    else
        tell_value("size", "%s", tell_bytes(p->data.bytes, size));
}

/* ---- for scripts ---- */

static const char *json_number(double x, char out[NUMBER_MAX])
{
    return isfinite(x) ? number(x, out) : "null";
}

static void json_numbers(const char *name, const double numbers[LIMECELLS_DIMS])
{
    char text[LIMECELLS_DIMS][NUMBER_MAX];
    printf(", \"%s\": [%s, %s, %s]", name, json_number(numbers[0], text[0]),
           json_number(numbers[1], text[1]), json_number(numbers[2], text[2]));
}

static void json_domain(const struct limecells *c)
{
    json_numbers("origin", c->origin);
    json_numbers("length", c->length);
    jsonout(stdout, "periodic:[");
    for (int d = 0; d < LIMECELLS_DIMS; d++)
        printf("%s%s", d ? ", " : "", c->periodic[d] ? "true" : "false");
    jsonout(stdout, "] cells:l", c->cells, LIMECELLS_DIMS);
}

static void json_fields(const struct limecells *c)
{
    jsonout(stdout, "fields:[");
    for (uint32_t i = 0; i < c->fields; i++) {
        const struct limecells_field *f = &c->field[i];
        fputs(i ? ", " : "", stdout);
        jsonout(stdout, "{name:s type:s count:w offset:u}", f->name,
                limefile_cells_type_word(f->type), f->count, f->offset);
    }
    putchar(']');
}

static void json_known(const struct limecheckpoint *p)
{
    const struct limecells *c = &p->is;
    char time[NUMBER_MAX];
    jsonout(stdout, "particles:u particle_bytes:u step:i time:r byte_order:s", c->particles,
            c->particle_bytes, c->step, json_number(c->time, time),
            c->big_endian ? "big" : "little");
    json_domain(c);
    if (p->counted)
        jsonout(stdout, "fewest:u most:u empty:u", p->fewest, p->most, p->empty);
    else
        jsonout(stdout, "fewest:r most:r empty:r", "null", "null", "null");
    json_fields(c);
}

void cells_json(const struct limecheckpoint *p)
{
    jsonout(stdout, "{ordinal:n index_record:n text_record:n message:w bytes:u whole:b",
            p->data.ordinal, p->index.ordinal, p->text.ordinal, limecheckpoint_last(p)->message,
            p->data.bytes, p->whole);
    if (p->known)
        json_known(p);
    putchar('}');
}
