/* cells_sort.c - sort a rank's particles by cell */
#define _GNU_SOURCE
#include "array.h"
#include "cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TABLE_MIN = 1 << 20, /* up to so many cells have a table even for few particles */
};

static bool report_position(const struct cells_sorted *s, int64_t k, int d, double x,
                            char why[CELLS_WHY_MAX])
{
    const struct limecells *c = s->c;
    char name[CELLS_WHY_MAX / 2];
    lemon_cells_particle_name(c, s->particles + k * (int64_t)c->particle_bytes, k, name);
    snprintf(why, CELLS_WHY_MAX, "%s: %c = %.17g is %s", name, "xyz"[d], x,
             x == x ? "outside the domain" : "not a number");
    return false;
}

/* Parameters of one dimension for axis_cell(), a faster version of limefile_cells_locate(). */
struct axis {
    double origin, end, scale;
    int64_t cells;
};

static void init_axes(const struct limecells *c, struct axis axis[LIMECELLS_DIMS])
{
    for (int d = 0; d < LIMECELLS_DIMS; d++)
        axis[d] = (struct axis){c->origin[d], c->origin[d] + c->length[d],
                                (double)c->cells[d] / c->length[d], (int64_t)c->cells[d]};
}

static int64_t axis_cell(const struct limecells *c, const struct axis *axis, int d, double x)
{
    const double near =
        0x1p-7; /* nearer to a face than this, limefile_cells_locate() decides */
    if (!(x >= axis->origin && x < axis->end))
        return limefile_cells_locate(c, d, x);
    if (axis->cells == 1)
        return 0;
    double place = (x - axis->origin) * axis->scale;
    int64_t i = (int64_t)place;
    double inside = place - (double)i;
    return inside > near && inside < 1 - near && i < axis->cells
               ? i
               : limefile_cells_locate(c, d, x);
}

/* Sets each particle's key to the particle's cell. If a particle is outside the domain, sets
 * `why` and returns false. */
static bool locate_particles(struct cells_sorted *s, char why[CELLS_WHY_MAX])
{
    const struct limecells_field *position = limefile_cells_field(s->c, "position");
    const char *particle = s->particles;
    struct axis axis[LIMECELLS_DIMS];
    init_axes(s->c, axis);
    for (int64_t k = 0; k < s->count; k++, particle += s->c->particle_bytes) {
        double x[LIMECELLS_DIMS];
        int64_t number = 0;
        lemon_cells_get_position(position, particle, x);
        for (int d = 0; d < LIMECELLS_DIMS; d++) {
            int64_t at = axis_cell(s->c, &axis[d], d, x[d]);
            if (at < 0)
                return report_position(s, k, d, x[d], why);
            number = number * axis[d].cells + at;
        }
        s->key[k] = number;
    }
    return true;
}

static bool add_segment(struct cells_sorted *s, int64_t cell, int64_t count)
{
    if (!limefile_reserve(&s->segment, &s->segment_capacity, (size_t)s->segments + 1,
                          sizeof *s->segment))
        return false;
    s->segment[s->segments++] = (struct cells_segment){.cell = (uint64_t)cell, .count = count};
    return true;
}

/* Makes the segments with a table of `cells` cells, which begins with first_cell. */
static bool count_in_table(struct cells_sorted *s, int64_t first_cell, int64_t cells)
{
    int64_t *table = calloc((size_t)cells, sizeof *table);
    bool ok = table != NULL;
    for (int64_t k = 0; ok && k < s->count; k++)
        table[s->key[k] - first_cell]++;
    for (int64_t i = 0; ok && i < cells; i++)
        if (table[i]) {
            ok = add_segment(s, first_cell + i, table[i]);
            table[i] = s->segments - 1;
        }
    for (int64_t k = 0; ok && k < s->count; k++)
        s->key[k] = table[s->key[k] - first_cell];
    free(table);
    return ok;
}

struct keyed {
    int64_t key, k;
};

static int compare_keys(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* Makes the segments by sorting, for few particles in cells that are far apart. */
static bool count_by_sorting(struct cells_sorted *s)
{
    struct keyed *keyed = malloc((size_t)s->count * sizeof *keyed);
    bool ok = keyed != NULL;
    for (int64_t k = 0; ok && k < s->count; k++)
        keyed[k] = (struct keyed){s->key[k], k};
    if (ok)
        qsort(keyed, (size_t)s->count, sizeof *keyed, compare_keys);
    for (int64_t k = 0; ok && k < s->count; k++) {
        if (k == 0 || keyed[k].key != keyed[k - 1].key)
            ok = add_segment(s, keyed[k].key, 0);
        if (ok) {
            s->segment[s->segments - 1].count++;
            s->key[keyed[k].k] = s->segments - 1;
        }
    }
    free(keyed);
    return ok;
}

/* Makes the segments, and sets the key of each particle to the index of its segment. */
static bool build_segments(struct cells_sorted *s)
{
    if (s->count == 0)
        return true;
    int64_t first_cell = s->key[0], last_cell = s->key[0];
    for (int64_t k = 1; k < s->count; k++) {
        first_cell = s->key[k] < first_cell ? s->key[k] : first_cell;
        last_cell = s->key[k] > last_cell ? s->key[k] : last_cell;
    }
    int64_t cells = last_cell - first_cell + 1;
    return cells <= TABLE_MIN || cells / 4 <= s->count ? count_in_table(s, first_cell, cells)
                                                       : count_by_sorting(s);
}

bool lemon_cells_sort(struct cells_sorted *s, const struct limecells *c, const char *particles,
                      int64_t count, char why[CELLS_WHY_MAX])
{
    *s = (struct cells_sorted){.c = c, .particles = particles, .count = count};
    s->key = malloc((size_t)count * sizeof *s->key + 1);
    snprintf(why, CELLS_WHY_MAX, "out of memory for %" PRId64 " particles", count);
    bool ok = s->key && locate_particles(s, why) && build_segments(s);
    if (!ok)
        lemon_cells_sorted_free(s);
    return ok;
}

void lemon_cells_sorted_free(struct cells_sorted *s)
{
    free(s->segment);
    free(s->key);
    free(s->order);
    free(s->stream);
    free(s->fragment);
    *s = (struct cells_sorted){0};
}

static int compare_places(const void *a, const void *b)
{
    const struct cells_segment *x = *(struct cells_segment *const *)a;
    const struct cells_segment *y = *(struct cells_segment *const *)b;
    return (x->place > y->place) - (x->place < y->place);
}

/* Returns whether the particles already have the order of the stream. */
static bool is_in_stream_order(const struct cells_sorted *s)
{
    int64_t last = -1;
    for (int64_t k = 0; k < s->count; k++) {
        int64_t first = s->segment[s->key[k]].first;
        if (first < last)
            return false;
        last = first;
    }
    return true;
}

/* Computes the order of the particles in the stream. */
static bool compute_order(struct cells_sorted *s)
{
    int64_t *next = malloc((size_t)s->segments * sizeof *next + 1);
    s->order = malloc((size_t)s->count * sizeof *s->order + 1);
    bool ok = next && s->order;
    for (int64_t i = 0; ok && i < s->segments; i++)
        next[i] = s->segment[i].first;
    for (int64_t k = 0; ok && k < s->count; k++)
        s->order[next[s->key[k]]++] = k;
    free(next);
    return ok;
}

bool lemon_cells_build_stream(struct cells_sorted *s, struct lemon_run **run, int64_t *runs)
{
    int64_t bytes = (int64_t)s->c->particle_bytes, first = 0;
    s->stream = malloc((size_t)s->segments * sizeof *s->stream + 1);
    *run = malloc((size_t)s->segments * sizeof **run + 1);
    *runs = 0;
    if (!s->stream || !*run)
        return false;
    for (int64_t i = 0; i < s->segments; i++)
        s->stream[i] = &s->segment[i];
    if (s->segments)
        qsort(s->stream, (size_t)s->segments, sizeof(void *), compare_places);
    for (int64_t i = 0; i < s->segments; i++) {
        struct cells_segment *segment = s->stream[i];
        struct lemon_run *last = *runs ? &(*run)[*runs - 1] : NULL;
        segment->first = first;
        first += segment->count;
        if (last && last->offset + last->bytes == segment->place * bytes)
            last->bytes += segment->count * bytes;
        else
            (*run)[(*runs)++] =
                (struct lemon_run){segment->place * bytes, segment->count * bytes, 0};
    }
    s->is_in_order = is_in_stream_order(s);
    bool ok = s->is_in_order || compute_order(s);
    free(s->key);
    s->key = NULL;
    return ok;
}

/* Returns the segment of a byte of the stream, as an index in `stream`. */
static int64_t segment_at(const struct cells_sorted *s, int64_t at)
{
    int64_t particle = at / (int64_t)s->c->particle_bytes, low = 0, high = s->segments - 1;
    while (low < high) {
        int64_t middle = high - (high - low) / 2;
        if (s->stream[middle]->first <= particle)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void add_fragment(struct cells_sorted *s, int64_t segment, int64_t at, int64_t bytes,
                         uint32_t crc)
{
    if (!limefile_reserve(&s->fragment, &s->fragment_capacity, (size_t)s->fragments + 1,
                          sizeof *s->fragment))
        s->no_memory = true;
    else
        s->fragment[s->fragments++] = (struct cells_fragment){at, bytes, segment, crc};
}

/* Adds bytes [at, at + n) of the stream, which are at `data`, to the checksums. */
static void checksum_stream(struct cells_sorted *s, int64_t at, int64_t n, const char *data)
{
    int64_t bytes = (int64_t)s->c->particle_bytes;
    for (int64_t i = segment_at(s, at), done = 0; done < n; i++) {
        int64_t begin = s->stream[i]->first * bytes, all = s->stream[i]->count * bytes;
        int64_t left = begin + all - (at + done);
        int64_t piece = left < n - done ? left : n - done;
        uint32_t crc = limefile_cells_crc(0, data + done, (size_t)piece);
        if (piece == all)
            s->stream[i]->crc = crc;
        else
            add_fragment(s, i, at + done, piece, crc);
        done += piece;
    }
}

static void copy_stream(const struct cells_sorted *s, int64_t at, int64_t n, char *to)
{
    const int64_t bytes = (int64_t)s->c->particle_bytes;
    int64_t k = at / bytes, inside = at % bytes;
    if (s->is_in_order) {
        memcpy(to, s->particles + at, (size_t)n);
        return;
    }
    for (; n > 0; k++, inside = 0) {
        int64_t piece = bytes - inside < n ? bytes - inside : n;
        memcpy(to, s->particles + s->order[k] * bytes + inside, (size_t)piece);
        to += piece;
        n -= piece;
    }
}

enum {
    SUM_PIECE = 256 << 10, /* bytes that stay in the cache until they are summed */
};

static void copy_and_sum(void *sorted, int64_t at, int64_t n, char *to)
{
    for (int64_t done = 0; done < n; done += SUM_PIECE) {
        int64_t piece = n - done < SUM_PIECE ? n - done : SUM_PIECE;
        copy_stream(sorted, at + done, piece, to + done);
        checksum_stream(sorted, at + done, piece, to + done);
    }
}

void lemon_cells_stream_init(struct cells_sorted *s, struct lemon_stream *stream)
{
    *stream = (struct lemon_stream){copy_and_sum, s};
}

static int compare_fragments(const void *a, const void *b)
{
    const struct cells_fragment *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

bool lemon_cells_combine_checksums(struct cells_sorted *s)
{
    if (s->fragments)
        qsort(s->fragment, (size_t)s->fragments, sizeof *s->fragment, compare_fragments);
    for (int64_t i = 0; i < s->fragments; i++) {
        struct cells_segment *segment = s->stream[s->fragment[i].segment];
        bool first = i == 0 || s->fragment[i - 1].segment != s->fragment[i].segment;
        segment->crc = limefile_cells_crc_combine(first ? 0 : segment->crc, s->fragment[i].crc,
                                                  (uint64_t)s->fragment[i].bytes);
    }
    return !s->no_memory;
}
