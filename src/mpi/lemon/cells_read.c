/* cells_read.c - find and read a checkpoint of particles */
#include "cells.h"
#include "splitmix64.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    DIRECT_RUN_MIN = 256 << 10, /* bytes: ranks read their own runs if these are longer */
    READ_PIECE = 64 << 20,      /* bytes of a read, during which the previous one is checked */
};

/* The internal part of a LemonCells. */
struct lemon_cells {
    struct limecells c;
    LemonField field[LIMECELLS_FIELDS_MAX];
    MPI_Offset data_at; /* offset in the file */
    LemonCell cell[];
};

/* ---- the index ---- */

/* The index, as rank 0 reads it. */
struct index {
    struct limecells c;
    unsigned char *raw;
    uint64_t header_bytes;
};

static int index_error(char why[CELLS_WHY_MAX], const char *reason)
{
    snprintf(why, CELLS_WHY_MAX, "cell index: %s", reason);
    return LEMON_ERR_READ;
}

static int read_index_piece(LemonReader *reader, unsigned char *raw, uint64_t from, uint64_t to)
{
    return lemon_move_bytes(reader->internal, LEMON_READ, raw + from, (int64_t)(to - from),
                            reader->off + (MPI_Offset)from);
}

/* Reads the index's header, and checks the record's length against it. */
static int read_index_header(LemonReader *reader, struct index *f, char why[CELLS_WHY_MAX])
{
    unsigned char raw[LIMECELLS_HEADER_MAX];
    uint64_t bytes = reader->curr_header->data_length;
    if (bytes < LIMECELLS_FIXED_BYTES)
        return index_error(why, "shorter than its header");
    if (read_index_piece(reader, raw, 0, LIMECELLS_FIXED_BYTES) != LEMON_SUCCESS)
        return index_error(why, "cannot be read");
    const char *reason = limefile_cells_decode_length(raw, &f->header_bytes);
    if (!reason && f->header_bytes > bytes)
        reason = "shorter than its header";
    if (reason)
        return index_error(why, reason);
    if (read_index_piece(reader, raw, LIMECELLS_FIXED_BYTES, f->header_bytes) != LEMON_SUCCESS)
        return index_error(why, "cannot be read");
    reason = limefile_cells_decode(raw, f->header_bytes, bytes, &f->c);
    return reason ? index_error(why, reason) : LEMON_SUCCESS;
}

static int read_index_entries(LemonReader *reader, struct index *f, char why[CELLS_WHY_MAX])
{
    uint64_t bytes = reader->curr_header->data_length;
    int code = read_index_header(reader, f, why);
    if (code != LEMON_SUCCESS)
        return code;
    f->raw = malloc(bytes);
    if (!f->raw)
        return index_error(why, "out of memory");
    if (read_index_piece(reader, f->raw, f->header_bytes, bytes) != LEMON_SUCCESS)
        return index_error(why, "cannot be read");
    return LEMON_SUCCESS;
}

static int check_index(const struct index *f, char why[CELLS_WHY_MAX])
{
    uint64_t cells = limefile_cells_count(&f->c), at[LIMECELLS_DIMS];
    struct limecells_checker k;
    limefile_cells_check_begin(&k, &f->c);
    limefile_cells_check_add(&k, f->raw + f->header_bytes, cells);
    if (!limefile_cells_check_end(&k))
        return LEMON_SUCCESS;
    if (k.bad_cell >= cells)
        return index_error(why, k.fault);
    limefile_cells_xyz(&f->c, k.bad_cell, at);
    snprintf(why, CELLS_WHY_MAX, "cell index: cell (%" PRIu64 ", %" PRIu64 ", %" PRIu64 "): %s",
             at[0], at[1], at[2], k.fault);
    return LEMON_ERR_READ;
}

/* Broadcasts rank 0's index. Sets *cells; after an error, to NULL. Collective, agreed. */
static int broadcast_index(struct lemon_internal *in, struct index *f, LemonCells **cells)
{
    uint64_t n;
    MPI_Bcast(&f->c, sizeof f->c, MPI_BYTE, 0, in->comm);
    n = limefile_cells_count(&f->c);
    size_t bytes = n * LIMECELLS_ENTRY_BYTES;
    struct lemon_cells *internal = malloc(sizeof *internal + n * sizeof(LemonCell));
    *cells = calloc(1, sizeof **cells);
    unsigned char *raw = in->rank == 0 ? f->raw + f->header_bytes : malloc(bytes);
    bool ok = internal && *cells && raw;
    int code = lemon_agree(in, ok ? LEMON_SUCCESS
                                  : lemon_log(in, LEMON_ERR_READ, "cell index: out of memory"));
    if (code == LEMON_SUCCESS) {
        lemon_broadcast(in, (char *)raw, (int64_t)bytes);
        internal->c = f->c;
        for (uint64_t i = 0; i < n; i++) {
            struct limecells_cell cell;
            limefile_cells_entry_decode(&f->c, raw + i * LIMECELLS_ENTRY_BYTES, &cell);
            internal->cell[i] = (LemonCell){(int64_t)cell.first, (int64_t)cell.count, cell.crc};
        }
        lemon_cells_convert_result(&internal->c, *cells, internal->field);
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
    struct index f = {.raw = NULL};
    char why[CELLS_WHY_MAX] = "";
    int code = LEMON_SUCCESS;
    if (in->rank == 0) {
        code = read_index_entries(reader, &f, why);
        if (code == LEMON_SUCCESS)
            code = check_index(&f, why);
    }
    code = lemon_agree_and_log(in, code, why);
    if (code == LEMON_SUCCESS)
        code = broadcast_index(in, &f, cells);
    free(f.raw);
    return code;
}

static bool is_record_open(const LemonReader *reader, const char *type)
{
    return !reader->is_awaiting_header && reader->curr_header &&
           strcmp(reader->curr_header->type, type) == 0;
}

/* Opens the record after the index and any fillers, and checks that it has the index's data. */
static int find_data(LemonReader *reader, LemonCells *cells)
{
    uint64_t bytes = limefile_cells_data_bytes(&cells->internal->c);
    int code;
    do
        code = lemonReaderNextRecord(reader);
    while (code == LEMON_SUCCESS && is_record_open(reader, LEMON_FILLER_TYPE));
    if (code != LEMON_SUCCESS && code != LEMON_EOF)
        return code;
    if (code == LEMON_EOF || !is_record_open(reader, LIMECELLS_DATA_TYPE))
        return lemon_log(reader->internal, LEMON_ERR_READ,
                         "no particle data after the cell index");
    if (reader->curr_header->data_length != bytes)
        return lemon_log(reader->internal, LEMON_ERR_READ,
                         "cell index: %" PRIu64 " bytes of data expected, not %" PRIu64, bytes,
                         reader->curr_header->data_length);
    cells->internal->data_at = reader->off;
    return LEMON_SUCCESS;
}

int lemonNextCells(LemonReader *reader, LemonCells **cells)
{
    if (!reader || !cells)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonNextCells: no reader, or cells is NULL");
    *cells = NULL;
    int code = lemonFinishReading(reader);
    while (code == LEMON_SUCCESS && !is_record_open(reader, LIMECELLS_INDEX_TYPE))
        code = lemonReaderNextRecord(reader);
    if (code == LEMON_SUCCESS) {
        code = read_index(reader, cells);
        lemonReaderCloseRecord(reader); /* the next lemonReaderNextRecord() skips it */
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

/* ---- cells that a rank reads, and particles that it keeps ---- */

struct cells_box {
    double lower[LIMECELLS_DIMS], upper[LIMECELLS_DIMS];
    uint64_t from[LIMECELLS_DIMS], to[LIMECELLS_DIMS]; /* of its cells; `to` is excluded */
};

/* A cell that touches the box and is not empty. Picks are sorted by position in the file. */
struct cells_pick {
    uint64_t cell;
    int64_t first, count;
};

/* Checks the data of all picks as they arrive, cell by cell: verifies checksums and positions,
 * and moves the particles that are in the box to the beginning of `particles`. */
struct cells_filter {
    const struct limecells *c;
    const struct limecells_field *position;
    const LemonCell *cell;
    const struct cells_box *box;
    const struct cells_pick *pick;
    int64_t picks, current; /* current: index in `pick` of the current cell */
    int64_t cell_done;      /* bytes of the current cell that are checked */
    int64_t done;           /* bytes of the earlier cells */
    char *particles, *to;   /* to: end of the particles that are kept */
    uint64_t at[LIMECELLS_DIMS];
    double low[LIMECELLS_DIMS], high[LIMECELLS_DIMS]; /* edges of the current cell */
    bool is_contained;  /* the current cell is completely in the box */
    bool has_misplaced; /* the current cell's data have a particle that is outside the cell */
    uint32_t crc;
    bool swap; /* reverse the byte order */
    bool computes_sum;
    uint64_t sum; /* sum of hash_index() of all particles that are kept */
    int code;
    char why[CELLS_WHY_MAX];
};

/* Returns the first cell of dimension d that has no points below x. */
static uint64_t first_cell_above(const struct limecells *c, int d, double x)
{
    if (x >= c->origin[d] + c->length[d])
        return c->cells[d];
    uint64_t i = (uint64_t)limefile_cells_locate(c, d, x);
    return x > limefile_cells_edge(c, d, i) ? i + 1 : i;
}

/* Sets the box's edges and range of cells. Returns NULL, or a message if the box is invalid. */
static const char *set_box(struct cells_box *box, const struct limecells *c,
                           const double *lower, const double *upper)
{
    bool empty = false;
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        double end = c->origin[d] + c->length[d];
        if (!(lower[d] >= c->origin[d] && lower[d] <= end && upper[d] >= c->origin[d] &&
              upper[d] <= end))
            return "the box extends beyond the domain, or is not a number";
        box->lower[d] = lower[d];
        box->upper[d] = upper[d];
        empty = empty || !(lower[d] < upper[d]);
    }
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        box->from[d] = box->to[d] = 0;
        if (empty)
            continue;
        box->from[d] = (uint64_t)limefile_cells_locate(c, d, lower[d]);
        box->to[d] = first_cell_above(c, d, upper[d]);
    }
    return NULL;
}

static int compare_first(const void *a, const void *b)
{
    const struct cells_pick *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static uint64_t cell_number(const LemonCells *cells, uint64_t x, uint64_t y, uint64_t z)
{
    const int64_t *n = cells->domain.cells;
    return (x * (uint64_t)n[1] + y) * (uint64_t)n[2] + z;
}

/* Sets *pick, which the caller frees. Returns the number of picks, or -1 if out of memory. */
static int64_t pick_cells(const LemonCells *cells, const struct cells_box *box,
                          struct cells_pick **pick)
{
    uint64_t most = 1;
    int64_t n = 0;
    bool in_order = true;
    for (int d = 0; d < LIMECELLS_DIMS; d++)
        most *= box->to[d] - box->from[d];
    *pick = malloc((size_t)most * sizeof **pick + 1);
    if (!*pick)
        return -1;
    for (uint64_t x = box->from[0]; x < box->to[0]; x++)
        for (uint64_t y = box->from[1]; y < box->to[1]; y++)
            for (uint64_t z = box->from[2]; z < box->to[2]; z++) {
                uint64_t i = cell_number(cells, x, y, z);
                if (cells->cell[i].count == 0)
                    continue;
                in_order = in_order && (n == 0 || cells->cell[i].first > (*pick)[n - 1].first);
                (*pick)[n++] =
                    (struct cells_pick){i, cells->cell[i].first, cells->cell[i].count};
            }
    if (!in_order)
        qsort(*pick, (size_t)n, sizeof **pick, compare_first);
    return n;
}

/* ---- particles that have been read ---- */

/* Hashes a particle's index in the data record. */
static uint64_t hash_index(uint64_t i)
{
    return mix64(i + MIX64_STEP);
}

/* Returns the sum of hash_index() of particles [from, to). */
static uint64_t index_sum(uint64_t from, uint64_t to)
{
    uint64_t sum = 0;
    for (uint64_t i = from; i < to; i++)
        sum += hash_index(i);
    return sum;
}

static void fail_cell(struct cells_filter *k, int code, const char *what)
{
    snprintf(k->why, sizeof k->why, "cell (%" PRIu64 ", %" PRIu64 ", %" PRIu64 "): %s",
             k->at[0], k->at[1], k->at[2], what);
    k->code = code;
}

static void begin_cell(struct cells_filter *k)
{
    k->cell_done = 0;
    k->crc = 0;
    k->has_misplaced = false;
    k->is_contained = true;
    if (k->current == k->picks)
        return;
    limefile_cells_xyz(k->c, k->pick[k->current].cell, k->at);
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        k->low[d] = limefile_cells_edge(k->c, d, k->at[d]);
        k->high[d] = limefile_cells_edge(k->c, d, k->at[d] + 1);
        k->is_contained =
            k->is_contained && k->box->lower[d] <= k->low[d] && k->box->upper[d] >= k->high[d];
    }
}

static void init_filter(struct cells_filter *k, const LemonCells *cells,
                        const struct cells_box *box, const struct cells_pick *pick,
                        int64_t picks, char *particles)
{
    const struct limecells *c = &cells->internal->c;
    *k = (struct cells_filter){
        .c = c,
        .position = limefile_cells_field(c, "position"),
        .cell = cells->cell,
        .box = box,
        .pick = pick,
        .picks = picks,
        .particles = particles,
        .to = particles,
        .swap = c->big_endian != lemon_cells_is_big_endian(),
    };
    begin_cell(k);
}

static int64_t kept_count(const struct cells_filter *k)
{
    return (k->to - k->particles) / (int64_t)k->c->particle_bytes;
}

/* Returns whether a position belongs to the current cell. A position that is not between the
 * cell's edges may be on an upper face of the domain: then limefile_cells_locate() decides. */
static bool is_in_cell(const struct cells_filter *k, const double x[LIMECELLS_DIMS])
{
    for (int d = 0; d < LIMECELLS_DIMS; d++)
        if (!(x[d] >= k->low[d] && x[d] < k->high[d]) &&
            limefile_cells_locate(k->c, d, x[d]) != (int64_t)k->at[d])
            return false;
    return true;
}

/* Returns whether a position belongs to the box. A box that reaches the domain's upper face
 * includes that face, unless the dimension is periodic. */
static bool is_in_box(const struct cells_filter *k, const double x[LIMECELLS_DIMS])
{
    const struct cells_box *box = k->box;
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        double end = k->c->origin[d] + k->c->length[d];
        double pos = limefile_cells_canonical(k->c, d, x[d]);
        bool above = pos >= box->upper[d] && !(pos == end && pos == box->upper[d]);
        if (pos < box->lower[d] || above)
            return false;
    }
    return true;
}

/* Checks `count` particles of the current cell, and keeps those in the box. */
static void filter_particles(struct cells_filter *k, char *particle, int64_t count)
{
    const size_t bytes = k->c->particle_bytes;
    uint64_t ordinal = (uint64_t)k->pick[k->current].first + (uint64_t)k->cell_done / bytes;
    if (k->swap)
        lemon_cells_swap_bytes(k->c, particle, count);
    for (int64_t i = 0; i < count; i++, particle += bytes) {
        double x[LIMECELLS_DIMS];
        lemon_cells_get_position(k->position, particle, x);
        k->has_misplaced = k->has_misplaced || !is_in_cell(k, x);
        if (!k->is_contained && !is_in_box(k, x))
            continue;
        if (k->to != particle)
            memmove(k->to, particle, bytes);
        k->to += bytes;
        if (k->computes_sum)
            k->sum += hash_index(ordinal + (uint64_t)i);
    }
}

static void end_cell(struct cells_filter *k)
{
    if (k->crc != k->cell[k->pick[k->current].cell].crc)
        fail_cell(k, LEMON_ERR_CHECKSUM, "wrong checksum");
    else if (k->has_misplaced)
        fail_cell(k, LEMON_ERR_READ, "it contains a particle outside the cell");
    k->done += k->cell_done;
    k->current++;
    begin_cell(k);
}

/* Checks the data before byte `bytes`, whole particles only. Does nothing after an error. */
static void filter_until(struct cells_filter *k, int64_t bytes)
{
    enum {
        CHECK_PIECE = 128 << 10, /* bytes that stay in the cache until they are checked */
    };
    const int64_t each = (int64_t)k->c->particle_bytes;
    while (k->code == LEMON_SUCCESS && k->current < k->picks) {
        int64_t all = k->pick[k->current].count * each, available = bytes - k->done;
        int64_t n = (available < all ? available - available % each : all) - k->cell_done;
        if (n > CHECK_PIECE)
            n = CHECK_PIECE < each ? each : CHECK_PIECE - CHECK_PIECE % each;
        if (n <= 0)
            return;
        char *from = k->particles + k->done + k->cell_done;
        k->crc = limefile_cells_crc(k->crc, from, (size_t)n);
        filter_particles(k, from, n / each);
        k->cell_done += n;
        if (k->cell_done == all)
            end_cell(k);
    }
}

/* State of one read. */
struct cells_read {
    const LemonCells *cells;
    struct lemon_internal *in;
    struct cells_box box;
    struct cells_pick *pick;
    int64_t picks;
    struct lemon_run *run;
    int64_t runs;
    int64_t current_run; /* the run that is being read */
    int64_t count;       /* particles in all picks */
    char *particles;
    struct cells_filter filter;
};

/* Sets the runs and the count. Merges picks that are contiguous in the file into one run. */
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
    r->picks = pick_cells(r->cells, &r->box, &r->pick);
    if (r->picks < 0)
        return false;
    r->run = malloc((size_t)r->picks * sizeof *r->run + 1);
    if (!r->run)
        return false;
    make_runs(r);
    r->particles = malloc((size_t)(r->count * (int64_t)r->cells->particle.bytes) + 1);
    return r->particles != NULL;
}

/* Posts the read of the next piece. posted: bytes of the earlier pieces. Returns the bytes of
 * the piece, or 0 if all pieces were posted before. */
static int64_t post_piece(struct cells_read *r, int64_t posted)
{
    int64_t i = r->current_run;
    while (i < r->runs && r->run[i].before + r->run[i].bytes <= posted)
        i++;
    r->current_run = i;
    if (i == r->runs)
        return 0;
    int64_t inside = posted - r->run[i].before, n = r->run[i].bytes - inside;
    n = n < READ_PIECE ? n : READ_PIECE;
    lemon_post_range(r->in, r->particles + posted, n,
                     r->cells->internal->data_at + r->run[i].offset + inside);
    return n;
}

static int read_directly(struct cells_read *r)
{
    int64_t posted = 0, available;
    lemon_post_begin(r->in, LEMON_READ);
    do {
        available = posted;
        if (lemon_post_wait(r->in) != LEMON_SUCCESS)
            break;
        posted += post_piece(r, posted);
        filter_until(&r->filter, available);
    } while (posted > available);
    return r->in->pending.code;
}

static int read_through_aggregators(struct cells_read *r)
{
    struct lemon_collective runs;
    int64_t bytes = (int64_t)limefile_cells_data_bytes(&r->cells->internal->c);
    int code = lemon_collective_open(r->in, &runs, bytes, r->cells->internal->data_at, r->run,
                                     r->runs, LEMON_COLLECTIVE_READ, true);
    if (code != LEMON_SUCCESS)
        return code;
    code = lemon_collective_read(r->in, &runs, r->particles);
    lemon_collective_close(&runs);
    return code;
}

/* Reads the data of all picks. All ranks select the same method. Collective, agreed. */
static int move_particles(struct cells_read *r)
{
    int64_t sums[2] = {lemon_runs_set_before(r->run, r->runs), r->runs};
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, r->in->comm);
    bool long_runs = sums[0] / DIRECT_RUN_MIN >= sums[1] || r->in->ranks == 1;
    return lemon_agree(r->in, long_runs ? read_directly(r) : read_through_aggregators(r));
}

/* Checks that each particle of the file went to exactly one rank. */
static int check_each_once(const struct cells_read *r)
{
    const struct lemon_internal *in = r->in;
    uint64_t all = (uint64_t)r->cells->particles, ranks = (uint64_t)in->ranks;
    uint64_t each = all / ranks, from = each * (uint64_t)in->rank;
    uint64_t to = in->rank + 1 == in->ranks ? all : from + each;
    uint64_t sums[2] = {(uint64_t)kept_count(&r->filter), r->filter.sum - index_sum(from, to)};
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UINT64_T, MPI_SUM, in->comm);
    if (sums[0] == all && sums[1] == 0)
        return LEMON_SUCCESS;
    return lemon_log(in, LEMON_ERR_PARAM,
                     "the ranks' boxes contain %" PRIu64 " particles, not each of the %" PRIu64
                     " exactly once",
                     sums[0], all);
}

static int read_particles(struct cells_read *r, int flags)
{
    bool ok = plan_read(r);
    int code = lemon_agree(
        r->in,
        ok ? LEMON_SUCCESS : lemon_log(r->in, LEMON_ERR_READ, "out of memory for particles"));
    if (code != LEMON_SUCCESS)
        return code;
    init_filter(&r->filter, r->cells, &r->box, r->pick, r->picks, r->particles);
    r->filter.computes_sum = flags & LEMON_CELLS_CHECK;
    code = move_particles(r);
    if (code != LEMON_SUCCESS)
        return code;
    filter_until(&r->filter, r->count * (int64_t)r->cells->particle.bytes);
    code = lemon_agree_and_log(r->in, r->filter.code, r->filter.why);
    return code == LEMON_SUCCESS && flags & LEMON_CELLS_CHECK ? check_each_once(r) : code;
}

static int check_call(LemonReader *reader, const LemonCells *cells, struct cells_read *r,
                      const double *lower, const double *upper, int flags)
{
    const char *why = "no box, or the cells are not those of the open record";
    int code = lemonFinishReading(reader);
    if (cells && lower && upper && is_record_open(reader, LIMECELLS_DATA_TYPE) &&
        reader->off == cells->internal->data_at)
        why = set_box(&r->box, &cells->internal->c, lower, upper);
    if (!why && flags & ~LEMON_CELLS_CHECK)
        why = "unknown flags";
    if (code == LEMON_SUCCESS && why)
        code = lemon_log(r->in, LEMON_ERR_PARAM, "lemonReadCells: %s", why);
    int64_t values[1] = {flags};
    return lemon_agree_on(r->in, code, values, 1);
}

/* Gives the caller the kept particles, in memory that is reduced to their size. */
static void set_result(struct cells_read *r, int64_t kept, void **particles, MPI_Offset *count)
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
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonReadCells: no reader, or NULL result");
    r.in = reader->internal;
    *particles = NULL;
    *count = 0;
    int code = check_call(reader, cells, &r, lower, upper, flags);
    if (code == LEMON_SUCCESS)
        code = read_particles(&r, flags);
    if (code == LEMON_SUCCESS)
        set_result(&r, kept_count(&r.filter), particles, count);
    free(r.particles);
    free(r.pick);
    free(r.run);
    return code;
}
