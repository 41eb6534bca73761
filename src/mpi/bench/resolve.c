/* resolve.c - from the options to a pattern for so many ranks */
#include "options.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <string.h>

enum {
    SIZE = 64 << 20, /* of a rank */
    TRANSFER = 1 << 20,
    LATTICE_TRANSFER = 8 << 20,
    SITE_BYTES = 576, /* 4 complex 3x3 matrices in double precision: a gauge configuration's */
};

__attribute__((format(printf, 2, 3))) static bool wrong(char *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reason, BENCH_REASON_BYTES, format, args);
    va_end(args);
    return false;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- blocks and segments ---- */

static bool resolve_disjoint(const struct bench_options *o, struct bench_pattern *p,
                             char *reason)
{
    if (o->segments > 1)
        return wrong(reason, "--segments: the disjoint pattern has one");
    p->block = o->block ? o->block : o->size ? o->size : SIZE;
    p->transfer = o->transfer ? o->transfer : smaller(TRANSFER, p->block);
    p->segments = 1;
    if (p->transfer > p->block)
        return wrong(reason, "--transfer-size: larger than the block of %" PRId64 " bytes",
                     p->block);
    return true;
}

static bool resolve_segments(const struct bench_options *o, struct bench_pattern *p,
                             char *reason)
{
    int64_t size = o->size ? o->size : SIZE;
    p->transfer = o->transfer;
    if (!p->transfer)
        p->transfer = o->block ? o->block : smaller(TRANSFER, size);
    if (o->block && o->block != p->transfer)
        return wrong(reason, "--block-size: a block of this pattern is one transfer");
    if (p->transfer > BENCH_MOVE_MAX)
        return wrong(reason, "--block-size: a transfer has at most 1G bytes");
    p->segments = o->segments ? o->segments : size / p->transfer;
    p->block = p->transfer;
    if (p->segments == 0)
        return wrong(reason, "--size: less than one transfer");
    return true;
}

/* ---- lattices ---- */

static bool is_given(const int extents[BENCH_DIMS])
{
    return extents[0] != 0;
}

static bool resolve_grid(const struct bench_options *o, struct bench_pattern *p, char *reason)
{
    int64_t ranks = 1;
    memcpy(p->grid, o->grid, sizeof p->grid);
    if (!is_given(p->grid)) {
        MPI_Dims_create(p->ranks, BENCH_DIMS, p->grid);
        return true;
    }
    for (int d = 0; d < BENCH_DIMS; d++)
        if (__builtin_mul_overflow(ranks, (int64_t)p->grid[d], &ranks))
            return wrong(reason, "--grid: too large");
    if (ranks != p->ranks)
        return wrong(reason, "--grid: %" PRId64 " ranks, but there are %d", ranks, p->ranks);
    return true;
}

/* A multiple of the grid near `extent`. */
static int nearest(double extent, int grid)
{
    double parts = round(extent / grid);
    parts = parts < 1 ? 1 : parts;
    return parts * grid > INT_MAX ? INT_MAX / grid * grid : (int)parts * grid;
}

/* L x L x L x 2L sites, of which the slowest dimension makes up for what rounding does to the
 * others. */
static void choose_lattice(struct bench_pattern *p, int64_t rank_bytes)
{
    double sites = (double)rank_bytes * p->ranks / (double)p->site_bytes, rest = sites;
    double extent = pow(sites / 2, 0.25);
    for (int d = BENCH_DIMS - 1; d > 0; d--) {
        p->lattice[d] = nearest(extent, p->grid[d]);
        rest /= p->lattice[d];
    }
    p->lattice[0] = nearest(rest, p->grid[0]);
}

static bool resolve_lattice(const struct bench_options *o, struct bench_pattern *p,
                            char *reason)
{
    if (o->block || o->segments)
        return wrong(reason, "--%s: not for the lattice pattern; give --size or --lattice",
                     o->block ? "block-size" : "segments");
    if (is_given(o->lattice) && o->size)
        return wrong(reason, "give one of --size and --lattice");
    p->site_bytes = o->site_bytes ? o->site_bytes : SITE_BYTES;
    p->transfer = o->transfer ? o->transfer : LATTICE_TRANSFER;
    if (!resolve_grid(o, p, reason))
        return false;
    memcpy(p->lattice, o->lattice, sizeof p->lattice);
    if (!is_given(p->lattice))
        choose_lattice(p, o->size ? o->size : SIZE);
    for (int d = 0; d < BENCH_DIMS; d++)
        if (p->lattice[d] < p->grid[d])
            return wrong(reason, "--lattice: %d sites for %d ranks in dimension %d",
                         p->lattice[d], p->grid[d], d + 1);
    return true;
}

/* ---- all ---- */

static const struct bench_backend *asked(const struct bench_options *o, const char *name)
{
    for (int i = 0; i < o->backend_count; i++)
        if (strcmp(o->backends[i]->name, name) == 0)
            return o->backends[i];
    return NULL;
}

static bool check_others(const struct bench_options *o, char *reason)
{
    bool lattice = o->pattern == BENCH_LATTICE;
    if (!lattice && (is_given(o->lattice) || is_given(o->grid) || o->site_bytes))
        return wrong(reason,
                     "--lattice, --grid and --site-bytes are for the lattice pattern only");
    if (o->job_ranks_given && !asked(o, "limefs-job"))
        return wrong(reason, "--job-ranks is for the back end limefs-job only");
    if (o->extent_given && !asked(o, "alltoallv"))
        return wrong(reason, "--extent-size is for the back end alltoallv only");
    if (!o->writes && (o->compute > 0 || o->phases > 1))
        return wrong(reason, "--compute and --phases are for writing");
    return true;
}

bool bench_options_resolve(struct bench_options *o, int ranks, char reason[BENCH_REASON_BYTES])
{
    struct bench_pattern *p = &o->task.pattern;
    bool good = check_others(o, reason);
    *p = (struct bench_pattern){
        .kind = o->pattern, .ranks = ranks, .seed = (uint64_t)o->seed, .site_bytes = 1};
    o->task.job_ranks = (int)o->job_ranks;
    if (!good || o->command == BENCH_CELLS)
        return good;
    if (o->pattern == BENCH_LATTICE)
        good = resolve_lattice(o, p, reason);
    else if (o->pattern == BENCH_DISJOINT)
        good = resolve_disjoint(o, p, reason);
    else
        good = resolve_segments(o, p, reason);
    if (good && (bench_pattern_bytes(p) < 0 || bench_pattern_bytes(p) > INT64_C(1) << 62))
        return wrong(reason, "the file would be too large");
    return good;
}
