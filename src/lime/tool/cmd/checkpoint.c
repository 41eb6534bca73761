/* checkpoint.c - compare and print checkpoints of particles, for lime check and lime info */
#define _GNU_SOURCE
#include "checkpoint.h"
#include "field_check.h"
#include "jsonout.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The result for one record of particles. */
struct checkpoint_result {
    uint64_t ordinal, cells, bad;
    uint64_t first[LIMECELLS_DIMS]; /* the coordinates of the first bad cell */
    enum limefile_verdict verdict;
};

static json_t *checkpoint_result_json(const struct checkpoint_result *r)
{
    return json_pack("{s:o, s:s, s:o*, s:o*, s:o*}", "ordinal", jsonout_integer(r->ordinal),
                     "state", limefile_verdict_word(r->verdict), "cells",
                     r->cells ? jsonout_integer(r->cells) : NULL, "bad",
                     r->cells ? jsonout_integer(r->bad) : NULL, "first_bad",
                     r->bad ? jsonout_integers(r->first, LIMECELLS_DIMS) : NULL);
}

/* Returns NULL if the particles can be compared with their index. Otherwise returns the reason,
 * with the verdict on the particles in *verdict. */
static const char *why_uncompared(const struct limecheckpoint *p,
                                  enum limefile_verdict *verdict)
{
    *verdict = LIMEFILE_UNVERIFIED;
    if (p->is_complete)
        return NULL;
    if (!p->index.ordinal)
        return "no index of cells";
    if (!p->entries_valid)
        return "its index is damaged";
    *verdict = LIMEFILE_BAD;
    return "its length is not that of the particles";
}

/* Compares particles with their index; counts and reports the result. Returns 0 or -ENOMEM. */
static int compare_checkpoint(struct data_check *check, const struct limecheckpoint *p,
                              struct checkpoint_result *result)
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
        result->first[d] = verdict.first_bad[d];
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

static int check_checkpoint(struct data_check *check, const struct limecheckpoint *p)
{
    struct checkpoint_result result = {.ordinal = p->data.ordinal};
    if (!p->data.ordinal)
        return 0;
    const char *reason = why_uncompared(p, &result.verdict);
    int err = reason ? 0 : compare_checkpoint(check, p, &result);
    if (reason) {
        if (result.verdict == LIMEFILE_BAD)
            check->sums->wrong++;
        else
            check->sums->unverified++;
        if (!check->quiet)
            print_line(check->path, "record %" PRIu64 ": %s: %s", result.ordinal,
                       limefile_verdict_word(result.verdict), reason);
    }
    if (!err && check->checkpoint_list)
        jsonout_list_add(check->checkpoint_list, checkpoint_result_json(&result));
    return err;
}

int check_checkpoint_data(struct data_check *check)
{
    struct limecheckpoint_walk walk;
    struct limecheckpoint checkpoint;
    int got, err = 0;
    limecheckpoint_walk_begin(&walk, check->c->source, check->c->index);
    while (!err && (got = limecheckpoint_next(&walk, &checkpoint)) != 0)
        err = got < 0 ? got : check_checkpoint(check, &checkpoint);
    return err;
}

enum { NUMBER_MAX = 32 };

bool is_checkpoint_type(const char *type)
{
    return strcmp(type, LIMECELLS_FORMAT_TYPE) == 0 ||
           strcmp(type, LIMECELLS_INDEX_TYPE) == 0 || strcmp(type, LIMECELLS_DATA_TYPE) == 0;
}

bool has_checkpoint(const struct limefile_index *index)
{
    struct limefile_record first;
    uint64_t count;
    return limefile_index_by_type(index, LIMECELLS_DATA_TYPE, strlen(LIMECELLS_DATA_TYPE),
                                  &first, &count) == 0;
}

/* Formats the fewest digits from which strtod() reads the same number. */
static const char *format_double(double x, char out[NUMBER_MAX])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, NUMBER_MAX, "%.*g", digits, x);
        if (strtod(out, NULL) == x)
            break;
    }
    return out;
}

static void print_cell_domain(const struct limecells *c)
{
    char low[LIMECELLS_DIMS][NUMBER_MAX], high[LIMECELLS_DIMS][NUMBER_MAX];
    char periodic[16] = "";
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        format_double(c->origin[d], low[d]);
        format_double(c->origin[d] + c->length[d], high[d]);
        if (c->periodic[d])
            snprintf(periodic + strlen(periodic), sizeof periodic - strlen(periodic), "%s%c",
                     *periodic ? ", " : "", "xyz"[d]);
    }
    print_value("domain", "%s..%s x %s..%s x %s..%s", low[0], high[0], low[1], high[1], low[2],
                high[2]);
    print_value("periodic", "%s", *periodic ? periodic : "none");
}

static void print_cell_counts(const struct limecheckpoint *p)
{
    const uint64_t *cells = p->cells.cells;
    char empty[48] = "";
    if (p->entries_valid && p->empty_cells)
        snprintf(empty, sizeof empty, ", %" PRIu64 " empty", p->empty_cells);
    print_value("cells", "%" PRIu64 " x %" PRIu64 " x %" PRIu64, cells[0], cells[1], cells[2]);
    if (p->entries_valid)
        print_value("in a cell", "%" PRIu64 " to %" PRIu64 " particles%s", p->fewest_in_cell,
                    p->most_in_cell, empty);
}

static void print_particle_fields(const struct limecells *c)
{
    for (uint32_t i = 0; i < c->fields; i++) {
        const struct limecells_field *f = &c->field[i];
        char count[24] = "";
        if (f->count != 1)
            snprintf(count, sizeof count, "%" PRIu32 " ", f->count);
        print_value(i ? "" : "fields", "%s: %s%s at byte %" PRIu64, f->name, count,
                    limefile_cells_type_word(f->type), f->offset);
    }
}

/* This and known_checkpoint_json() require that p->has_header is true. */
static void print_known_checkpoint(const struct limecheckpoint *p)
{
    const struct limecells *c = &p->cells;
    char time[NUMBER_MAX];
    print_value("particles", "%" PRIu64 " of %" PRIu64 " byte%s", c->particles,
                c->particle_bytes, plural(c->particle_bytes));
    print_value("step", "%" PRId64 ", time %s", c->step, format_double(c->time, time));
    print_cell_domain(c);
    print_cell_counts(p);
    print_value("byte order", "%s-endian", c->big_endian ? "big" : "little");
    print_particle_fields(c);
}

void print_checkpoint(const struct limecheckpoint *p)
{
    char size[LIMEFILE_SIZE_CHARS];
    print_heading("checkpoint of particles (record %" PRIu64 ")",
                  limecheckpoint_last(p)->ordinal);
    if (p->has_header)
        print_known_checkpoint(p);
    else
        print_value("index", "%s", p->index.ordinal ? "damaged" : "none");
    if (!p->data.ordinal)
        print_value("size", "no data");
    else if (p->has_header && p->data.bytes != limefile_cells_data_bytes(&p->cells))
        print_value("size", "%" PRIu64 " bytes, but should be %" PRIu64, p->data.bytes,
                    limefile_cells_data_bytes(&p->cells));
    else
        print_value("size", "%s", limefile_format_bytes(p->data.bytes, size));
}

/* ---- JSON ---- */

/* Returns an array of numbers. A number that is not finite becomes null. */
static json_t *vector_json(const double numbers[LIMECELLS_DIMS])
{
    return json_pack("[o?, o?, o?]", json_real(numbers[0]), json_real(numbers[1]),
                     json_real(numbers[2]));
}

static json_t *particle_fields_json(const struct limecells *c)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->fields; i++) {
        const struct limecells_field *f = &c->field[i];
        json_array_append_new(
            list, json_pack("{s:o, s:s, s:o, s:o}", "name", jsonout_string(f->name), "type",
                            limefile_cells_type_word(f->type), "count",
                            jsonout_integer(f->count), "offset", jsonout_integer(f->offset)));
    }
    return list;
}

static json_t *known_checkpoint_json(const struct limecheckpoint *p)
{
    const struct limecells *c = &p->cells;
    return json_pack(
        "{s:o, s:o, s:I, s:o?, s:s, s:o, s:o, s:[b, b, b], s:o, s:o?, s:o?, s:o?, s:o}",
        "particles", jsonout_integer(c->particles), "particle_bytes",
        jsonout_integer(c->particle_bytes), "step", (json_int_t)c->step, "time",
        json_real(c->time), "byte_order", c->big_endian ? "big" : "little", "origin",
        vector_json(c->origin), "length", vector_json(c->length), "periodic", c->periodic[0],
        c->periodic[1], c->periodic[2], "cells", jsonout_integers(c->cells, LIMECELLS_DIMS),
        "fewest", p->entries_valid ? jsonout_integer(p->fewest_in_cell) : NULL, "most",
        p->entries_valid ? jsonout_integer(p->most_in_cell) : NULL, "empty",
        p->entries_valid ? jsonout_integer(p->empty_cells) : NULL, "fields",
        particle_fields_json(c));
}

json_t *checkpoint_json(const struct limecheckpoint *p)
{
    json_t *object = json_pack("{s:o, s:o, s:o, s:o, s:o, s:b}", "ordinal",
                               jsonout_integer_or_null(p->data.ordinal), "index_record",
                               jsonout_integer_or_null(p->index.ordinal), "text_record",
                               jsonout_integer_or_null(p->text.ordinal), "message",
                               jsonout_integer(limecheckpoint_last(p)->message), "bytes",
                               jsonout_integer(p->data.bytes), "whole", p->is_complete);
    if (p->has_header)
        json_object_update_new(object, known_checkpoint_json(p));
    return object;
}
