/* cellsread.c - a checkpoint of particles, found and read */
#include "cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LONG_RUN =
        256 << 10,    /* bytes: where runs are as long, on average, each rank reads its own */
    PIECE = 64 << 20, /* bytes: one is read while the one before is looked at */
};

/* What a LemonCells has behind it. */
struct lemon_cells {
    struct limecells c; /* first: cellspick.c looks at it */
    LemonField field[LIMECELLS_FIELDS_MAX];
    MPI_Offset data_at; /* in the file */
    LemonCell cell[];
};

/* ---- the index ---- */

/* An index as rank 0 has it. */
struct found {
    struct limecells c;
    unsigned char *raw;
    uint64_t header_bytes;
};

static int fault(char why[CELLS_WHY_MAX], const char *reason)
{
    snprintf(why, CELLS_WHY_MAX, "the index of cells cannot be used: %s", reason);
    return LEMON_ERR_READ;
}

static int read_piece(LemonReader *reader, unsigned char *raw, uint64_t from, uint64_t to)
{
    return lemon_move_bytes(reader->internal, LEMON_READ, raw + from, (int64_t)(to - from),
                            reader->off + (MPI_Offset)from);
}

/* The header, and what it says of the record's length. */
static int read_header(LemonReader *reader, struct found *f, char why[CELLS_WHY_MAX])
{
    unsigned char raw[LIMECELLS_HEADER_MAX];
    uint64_t bytes = reader->curr_header->data_length;
    if (bytes < LIMECELLS_FIXED_BYTES)
        return fault(why, "it is shorter than its header");
    if (read_piece(reader, raw, 0, LIMECELLS_FIXED_BYTES) != LEMON_SUCCESS)
        return fault(why, "it cannot be read");
    const char *reason = limefile_cells_decode_length(raw, &f->header_bytes);
    if (!reason && f->header_bytes > bytes)
        reason = "it is shorter than its header";
    if (reason)
        return fault(why, reason);
    if (read_piece(reader, raw, LIMECELLS_FIXED_BYTES, f->header_bytes) != LEMON_SUCCESS)
        return fault(why, "it cannot be read");
    reason = limefile_cells_decode(raw, f->header_bytes, bytes, &f->c);
    return reason ? fault(why, reason) : LEMON_SUCCESS;
}

static int read_entries(LemonReader *reader, struct found *f, char why[CELLS_WHY_MAX])
{
    uint64_t bytes = reader->curr_header->data_length;
    int code = read_header(reader, f, why);
    if (code != LEMON_SUCCESS)
        return code;
    f->raw = malloc(bytes);
    if (!f->raw)
        return fault(why, "there is not enough memory");
    if (read_piece(reader, f->raw, f->header_bytes, bytes) != LEMON_SUCCESS)
        return fault(why, "it cannot be read");
    return LEMON_SUCCESS;
}

static int check_cells(const struct found *f, char why[CELLS_WHY_MAX])
{
    uint64_t cells = limefile_cells_cells(&f->c), at[LIMECELLS_DIMS];
    struct limecells_checker k;
    limefile_cells_check_begin(&k, &f->c);
    limefile_cells_check_add(&k, f->raw + f->header_bytes, cells);
    if (!limefile_cells_check_end(&k))
        return LEMON_SUCCESS;
    if (k.bad >= cells)
        return fault(why, k.why);
    limefile_cells_at(&f->c, k.bad, at);
    snprintf(why, CELLS_WHY_MAX,
             "the index of cells cannot be used: cell (%" PRIu64 ", %" PRIu64 ", %" PRIu64
             "): %s",
             at[0], at[1], at[2], k.why);
    return LEMON_ERR_READ;
}

/* Rank 0's index to all; *cells has what there is of it. */
static int share_index(struct lemon_internal *in, struct found *f, LemonCells **cells)
{
    uint64_t n;
    MPI_Bcast(&f->c, sizeof f->c, MPI_BYTE, 0, in->comm);
    n = limefile_cells_cells(&f->c);
    size_t bytes = n * LIMECELLS_ENTRY_BYTES;
    struct lemon_cells *internal = malloc(sizeof *internal + n * sizeof(LemonCell));
    *cells = calloc(1, sizeof **cells);
    unsigned char *raw = in->rank == 0 ? f->raw + f->header_bytes : malloc(bytes);
    bool good = internal && *cells && raw;
    int code = lemon_agree(in, good ? LEMON_SUCCESS
                                    : lemon_say(in, LEMON_ERR_READ, "no memory for the index"));
    if (code == LEMON_SUCCESS) {
        lemon_broadcast(in, (char *)raw, (int64_t)bytes);
        internal->c = f->c;
        for (uint64_t i = 0; i < n; i++) {
            struct limecells_cell cell;
            limefile_cells_entry_decode(&f->c, raw + i * LIMECELLS_ENTRY_BYTES, &cell);
            internal->cell[i] = (LemonCell){(int64_t)cell.first, (int64_t)cell.count, cell.crc};
        }
        lemon_cells_give(&internal->c, *cells, internal->field);
        (*cells)->cell = internal->cell;
        (*cells)->internal = internal;
    } else {
        free(internal);
        free(*cells);
        *cells = NULL;
    }
    if (in->rank != 0)
        free(raw);
    return code;
}

static int read_index(LemonReader *reader, LemonCells **cells)
{
    struct lemon_internal *in = reader->internal;
    struct found f = {.raw = NULL};
    char why[CELLS_WHY_MAX] = "";
    int code = LEMON_SUCCESS;
    if (in->rank == 0) {
        code = read_entries(reader, &f, why);
        if (code == LEMON_SUCCESS)
            code = check_cells(&f, why);
    }
    code = lemon_tell(in, code, why);
    if (code == LEMON_SUCCESS)
        code = share_index(in, &f, cells);
    free(f.raw);
    return code;
}

/* ---- finding it ---- */

static bool is_open(const LemonReader *reader, const char *type)
{
    return !reader->is_awaiting_header && reader->curr_header &&
           strcmp(reader->curr_header->type, type) == 0;
}

static int find_data(LemonReader *reader, LemonCells *cells)
{
    uint64_t bytes = limefile_cells_data_bytes(&cells->internal->c);
    int code;
    do
        code = lemonReaderNextRecord(reader);
    while (code == LEMON_SUCCESS && is_open(reader, LEMON_FILLER_TYPE));
    if (code != LEMON_SUCCESS && code != LEMON_EOF)
        return code;
    if (code == LEMON_EOF || !is_open(reader, LIMECELLS_DATA_TYPE))
        return lemon_say(reader->internal, LEMON_ERR_READ,
                         "behind an index of cells there are no data");
    if (reader->curr_header->data_length != bytes)
        return lemon_say(reader->internal, LEMON_ERR_READ,
                         "the index of cells is of %" PRIu64 " bytes, the data are %" PRIu64,
                         bytes, reader->curr_header->data_length);
    cells->internal->data_at = reader->off;
    return LEMON_SUCCESS;
}

int lemonNextCells(LemonReader *reader, LemonCells **cells)
{
    if (!reader || !cells)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonNextCells: no reader, or no place");
    *cells = NULL;
    int code = lemonFinishReading(reader);
    while (code == LEMON_SUCCESS && !is_open(reader, LIMECELLS_INDEX_TYPE))
        code = lemonReaderNextRecord(reader);
    if (code == LEMON_SUCCESS) {
        code = read_index(reader, cells);
        lemonReaderCloseRecord(reader); /* the next call goes on behind it */
    }
    if (code == LEMON_SUCCESS)
        code = find_data(reader, *cells);
    if (code != LEMON_SUCCESS) {
        lemonFreeCells(*cells);
        *cells = NULL;
    }
    return code;
}

void lemonFreeCells(LemonCells *cells)
{
    if (cells)
        free(cells->internal);
    free(cells);
}

/* ---- the particles ---- */

/* Everything of a read. */
struct cells_read {
    const LemonCells *cells;
    struct lemon_internal *in;
    struct cells_box box;
    struct cells_pick *pick;
    int64_t picks;
    struct lemon_run *run;
    int64_t runs;
    int64_t run_now; /* that is read */
    int64_t count;   /* of all picks */
    char *particles;
    struct cells_keeper keeper;
};

/* Cells that follow each other in the file are one run. */
static void make_runs(struct cells_read *r)
{
    int64_t bytes = (int64_t)r->cells->particle.bytes;
    for (int64_t i = 0; i < r->picks; i++) {
        int64_t at = r->pick[i].first * bytes, n = r->pick[i].count * bytes;
        struct lemon_run *last = r->runs ? &r->run[r->runs - 1] : NULL;
        r->count += r->pick[i].count;
        if (last && last->offset + last->bytes == at)
            last->bytes += n;
        else
            r->run[r->runs++] = (struct lemon_run){at, n, 0};
    }
}

static bool plan_read(struct cells_read *r)
{
    r->picks = lemon_cells_pick(r->cells, &r->box, &r->pick);
    if (r->picks < 0)
        return false;
    r->run = malloc((size_t)r->picks * sizeof *r->run + 1);
    if (!r->run)
        return false;
    make_runs(r);
    r->particles = malloc((size_t)(r->count * (int64_t)r->cells->particle.bytes) + 1);
    return r->particles != NULL;
}

/* Posts the next piece; how many bytes it has, 0 at the end. */
static int64_t post_piece(struct cells_read *r, int64_t posted)
{
    int64_t i = r->run_now;
    while (i < r->runs && r->run[i].before + r->run[i].bytes <= posted)
        i++;
    r->run_now = i;
    if (i == r->runs)
        return 0;
    int64_t inside = posted - r->run[i].before, n = r->run[i].bytes - inside;
    n = n < PIECE ? n : PIECE;
    lemon_post(r->in, r->particles + posted, n,
               r->cells->internal->data_at + r->run[i].offset + inside);
    return n;
}

static int read_own_runs(struct cells_read *r)
{
    int64_t posted = 0, there;
    lemon_post_begin(r->in, LEMON_READ);
    do {
        there = posted;
        if (lemon_post_wait(r->in) != LEMON_SUCCESS)
            break;
        posted += post_piece(r, posted);
        lemon_cells_keeper_reach(&r->keeper, there);
    } while (posted > there);
    return r->in->pending.code;
}

static int read_through_movers(struct cells_read *r)
{
    struct lemon_runmove runs;
    int64_t bytes = (int64_t)limefile_cells_data_bytes(&r->cells->internal->c);
    int code = lemon_runmove_open(r->in, &runs, bytes, r->cells->internal->data_at, r->run,
                                  r->runs, LEMON_RUNMOVE_READ, true);
    if (code != LEMON_SUCCESS)
        return code;
    code = lemon_runmove_read(r->in, &runs, r->particles);
    lemon_runmove_close(&runs);
    return code;
}

/* All ranks do it in the same way. */
static int move_particles(struct cells_read *r)
{
    int64_t sums[2] = {lemon_runs_count(r->run, r->runs), r->runs};
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, r->in->comm);
    bool long_runs = sums[0] / LONG_RUN >= sums[1] || r->in->ranks == 1;
    return lemon_agree(r->in, long_runs ? read_own_runs(r) : read_through_movers(r));
}

/* Whether each particle of the file came to one rank. */
static int check_once(const struct cells_read *r)
{
    const struct lemon_internal *in = r->in;
    uint64_t all = (uint64_t)r->cells->particles, ranks = (uint64_t)in->ranks;
    uint64_t each = all / ranks, from = each * (uint64_t)in->rank;
    uint64_t to = in->rank + 1 == in->ranks ? all : from + each;
    uint64_t sums[2] = {(uint64_t)lemon_cells_keeper_kept(&r->keeper),
                        r->keeper.sum - lemon_cells_sum_of(from, to)};
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UINT64_T, MPI_SUM, in->comm);
    if (sums[0] == all && sums[1] == 0)
        return LEMON_SUCCESS;
    return lemon_say(in, LEMON_ERR_PARAM,
                     "the ranks' boxes give %" PRIu64 " particles, and not each of the %" PRIu64
                     " once",
                     sums[0], all);
}

static int read_particles(struct cells_read *r, int flags)
{
    bool good = plan_read(r);
    int code =
        lemon_agree(r->in, good ? LEMON_SUCCESS
                                : lemon_say(r->in, LEMON_ERR_READ,
                                            "no memory for %" PRId64 " particles", r->count));
    if (code != LEMON_SUCCESS)
        return code;
    lemon_cells_keeper_set(&r->keeper, r->cells, &r->box, r->pick, r->picks, r->particles);
    r->keeper.counts = flags & LEMON_CELLS_CHECK;
    code = move_particles(r);
    if (code != LEMON_SUCCESS)
        return code;
    lemon_cells_keeper_reach(&r->keeper, r->count * (int64_t)r->cells->particle.bytes);
    code = lemon_tell(r->in, r->keeper.code, r->keeper.why);
    return code == LEMON_SUCCESS && flags & LEMON_CELLS_CHECK ? check_once(r) : code;
}

static int check_call(LemonReader *reader, const LemonCells *cells, struct cells_read *r,
                      const double *lower, const double *upper, int flags)
{
    const char *why = "cells are read from where they were found, into a box";
    int code = lemonFinishReading(reader);
    if (cells && lower && upper && is_open(reader, LIMECELLS_DATA_TYPE) &&
        reader->off == cells->internal->data_at)
        why = lemon_cells_box_set(&r->box, &cells->internal->c, lower, upper);
    if (!why && flags & ~LEMON_CELLS_CHECK)
        why = "flags that are not known";
    if (code == LEMON_SUCCESS && why)
        code = lemon_say(r->in, LEMON_ERR_PARAM, "lemonReadCells: %s", why);
    int64_t values[1] = {flags};
    return lemon_agree_on(r->in, code, values, 1);
}

/* What is kept, in no more memory than it needs. */
static void give(struct cells_read *r, int64_t kept, void **particles, MPI_Offset *count)
{
    size_t bytes = (size_t)(kept * (int64_t)r->cells->particle.bytes);
    *count = kept;
    if (kept == 0)
        return;
    void *smaller = kept < r->count ? realloc(r->particles, bytes) : r->particles;
    *particles = smaller ? smaller : r->particles;
    r->particles = NULL;
}

int lemonReadCells(LemonReader *reader, LemonCells const *cells, double const *lower,
                   double const *upper, void **particles, MPI_Offset *count, int flags)
{
    struct cells_read r = {.cells = cells};
    if (!reader || !particles || !count)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonReadCells: no reader, or no place");
    r.in = reader->internal;
    *particles = NULL;
    *count = 0;
    int code = check_call(reader, cells, &r, lower, upper, flags);
    if (code == LEMON_SUCCESS)
        code = read_particles(&r, flags);
    if (code == LEMON_SUCCESS)
        give(&r, lemon_cells_keeper_kept(&r.keeper), particles, count);
    free(r.particles);
    free(r.pick);
    free(r.run);
    return code;
}
