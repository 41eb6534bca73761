/* checkpoint.c - find the records of a checkpoint in a container, and check them */
#define _GNU_SOURCE
#include "limecheckpoint.h"
#include "header_bytes.h"
#include "cell_entries.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest text that is read; this project writes shorter ones. */
enum { TEXT_MAX = 8 * LIMECELLS_TEXT_MAX };

/* ---- findings ---- */

/* Inserts a finding, in order of offset; its offset is that of the record's header plus `at`.
 * The caller must add findings with equal offsets in order of code. */
static void add_finding(struct limecheckpoint *p, int code,
                        const struct limefile_record *record, unsigned at, const char *why)
{
    struct limefile_finding finding = {
        .code = code,
        .offset = record->header_offset + at,
        .ordinal = record->ordinal,
        .why = why,
    };
    if (code == LIMEFILE_D_CELLS_LENGTH) {
        finding.have = record->bytes;
        finding.want = limefile_cells_data_bytes(&p->cells);
    }
    unsigned i = p->findings++;
    for (; i > 0 && p->finding[i - 1].offset > finding.offset; i--)
        p->finding[i] = p->finding[i - 1];
    p->finding[i] = finding;
}

static void add_index_finding(struct limecheckpoint *p, const char *why, uint64_t cell)
{
    uint64_t at[LIMECELLS_DIMS];
    if (p->has_header && cell < limefile_cells_count(&p->cells)) {
        limefile_cells_xyz(&p->cells, cell, at);
        snprintf(p->why, sizeof p->why, "cell (%" PRIu64 ", %" PRIu64 ", %" PRIu64 "): %s",
                 at[0], at[1], at[2], why);
    } else {
        snprintf(p->why, sizeof p->why, "%s", why);
    }
    add_finding(p, LIMEFILE_D_CELLS_INDEX, &p->index, LIMEFILE_HEADER_BYTES, p->why);
}

/* ---- contents of the records ---- */

static int read_index_header(struct limefile_source *source, struct limecheckpoint *p,
                             const char **why)
{
    unsigned char raw[LIMECELLS_HEADER_MAX];
    uint64_t offset = p->index.data_offset, bytes;
    if (p->index.bytes < LIMECELLS_FIXED_BYTES) {
        *why = "it is shorter than its header";
        return 0;
    }
    int err = limefile_read_exact(source, raw, LIMECELLS_FIXED_BYTES, offset);
    if (err)
        return err;
    *why = limefile_cells_decode_length(raw, &bytes);
    if (!*why && bytes > p->index.bytes)
        *why = "it is shorter than its header";
    if (*why)
        return 0;
    err = limefile_read_exact(source, raw, (size_t)bytes, offset);
    if (!err)
        *why = limefile_cells_decode(raw, bytes, p->index.bytes, &p->cells);
    return err;
}

static int check_index(struct limefile_source *source, struct limecheckpoint *p)
{
    const char *why;
    struct limecells_checker k = {.bad_cell = UINT64_MAX};
    int err = read_index_header(source, p, &why);
    p->has_header = !err && !why;
    if (p->has_header) {
        err = cell_entries_check(source, &p->cells,
                                 p->index.data_offset + limefile_cells_header_bytes(&p->cells),
                                 &k);
        why = k.fault;
        p->fewest_in_cell = k.fewest;
        p->most_in_cell = k.most;
        p->empty_cells = k.empty;
    }
    if (err)
        return err;
    p->entries_valid = !why;
    if (why)
        add_index_finding(p, why, k.bad_cell);
    return 0;
}

/* Compares two texts without their white space. */
static bool is_same_text(const char *a, const char *b)
{
    static const char space[] = " \t\r\n";
    for (;; a++, b++) {
        a += strspn(a, space);
        b += strspn(b, space);
        if (*a == '\0' || *a != *b)
            return *a == *b;
    }
}

static int check_text(struct limefile_source *source, struct limecheckpoint *p)
{
    const char *why = "too long";
    int err = 0;
    if (p->text.bytes <= TEXT_MAX) {
        char *text, *expected = malloc(LIMECELLS_TEXT_MAX);
        err = limefile_record_read_text(source, &p->text, (size_t)p->text.bytes, &text);
        if (!err && !expected)
            err = -ENOMEM;
        if (!err) {
            limefile_cells_format_text(&p->cells, expected);
            why = is_same_text(text, expected) ? NULL : "it has different contents";
        }
        free(text);
        free(expected);
    }
    if (!err && why)
        add_finding(p, LIMEFILE_D_CELLS_TEXT, &p->text, LIMEFILE_HEADER_BYTES, why);
    return err;
}

static int check_checkpoint(struct limefile_source *source, struct limecheckpoint *p)
{
    int err = 0;
    if (!p->index.ordinal) {
        if (p->text.ordinal)
            add_finding(p, LIMEFILE_D_CELLS_TEXT, &p->text, 0, "no index follows it");
        if (p->data.ordinal)
            add_finding(p, LIMEFILE_D_CELLS_INDEX_MISSING, &p->data, 0, NULL);
        return 0;
    }
    err = check_index(source, p);
    if (!err && !p->text.ordinal)
        add_finding(p, LIMEFILE_D_CELLS_TEXT, &p->index, 0, "the text is missing");
    else if (!err && p->has_header)
        err = check_text(source, p);
    if (!err && !p->data.ordinal)
        add_finding(p, LIMEFILE_D_CELLS_DATA_MISSING, &p->index, 0, NULL);
    bool fits = p->has_header && p->data.ordinal &&
                p->data.bytes == limefile_cells_data_bytes(&p->cells);
    if (!err && p->has_header && p->data.ordinal && !fits)
        add_finding(p, LIMEFILE_D_CELLS_LENGTH, &p->data, AT_BYTES, NULL);
    p->is_complete = !err && p->entries_valid && fits;
    return err;
}

/* ---- finding the records ---- */

enum role { ROLE_TEXT, ROLE_INDEX, ROLE_DATA, ROLE_NONE };

static enum role get_role(const struct limefile_record *record)
{
    static const char *const types[] = {LIMECELLS_FORMAT_TYPE, LIMECELLS_INDEX_TYPE,
                                        LIMECELLS_DATA_TYPE};
    enum role role = ROLE_TEXT;
    while (role != ROLE_NONE && strcmp(record->type, types[role]) != 0)
        role++;
    return role;
}

const struct limefile_record *limecheckpoint_last(const struct limecheckpoint *p)
{
    return p->data.ordinal ? &p->data : p->index.ordinal ? &p->index : &p->text;
}

/* Adds a record to the checkpoint. Returns false if the record begins another checkpoint. */
static bool try_add_record(struct limecheckpoint *p, const struct limefile_record *record,
                           enum role role)
{
    const struct limefile_record *last = limecheckpoint_last(p);
    struct limefile_record *places[] = {&p->text, &p->index, &p->data};
    if (last->ordinal &&
        (last->message != record->message || last == &p->data ||
         (role == ROLE_DATA ? last != &p->index : role == ROLE_TEXT || last != &p->text)))
        return false;
    *places[role] = *record;
    return true;
}

void limecheckpoint_walk_begin(struct limecheckpoint_walk *walk, struct limefile_source *source,
                               const struct limefile_index *index)
{
    *walk = (struct limecheckpoint_walk){.source = source, .index = index, .next = 1};
}

int limecheckpoint_next(struct limecheckpoint_walk *walk, struct limecheckpoint *out)
{
    struct limefile_record record;
    memset(out, 0, sizeof *out);
    bool found = false;
    for (; limefile_index_get(walk->index, walk->next, &record) == 0; walk->next++) {
        enum role role = get_role(&record);
        if (role == ROLE_NONE)
            continue;
        if (!try_add_record(out, &record, role))
            break;
        found = true;
    }
    int err = found ? check_checkpoint(walk->source, out) : 0;
    return err ? err : found;
}

/* ---- iterating over findings ---- */

void limecheckpoint_findings_begin(struct limecheckpoint_findings *f,
                                   struct limefile_source *source,
                                   const struct limefile_index *index)
{
    limecheckpoint_walk_begin(&f->walk, source, index);
    f->checkpoint.findings = f->returned = 0;
}

int limecheckpoint_findings_next(struct limecheckpoint_findings *f,
                                 struct limefile_finding *out)
{
    while (f->returned == f->checkpoint.findings) {
        int got = limecheckpoint_next(&f->walk, &f->checkpoint);
        f->returned = 0;
        if (got != 1)
            f->checkpoint.findings = 0;
        if (got != 1)
            return got;
    }
    *out = f->checkpoint.finding[f->returned++];
    return 1;
}
