/* print.c - print sizes, names, and the number of particles per rank */
#include "print.h"
#include "text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

const char *checkpoint_printable(const char *path, char text[CHECKPOINT_NAME_BYTES])
{
    snprintf(text, CHECKPOINT_NAME_BYTES, "%s", path);
    limefile_text_sanitize(text, "");
    return text;
}

const char *checkpoint_type_name(int type)
{
    static const char *const words[] = {
        [LEMON_INT32] = "int32",   [LEMON_UINT32] = "uint32",   [LEMON_INT64] = "int64",
        [LEMON_UINT64] = "uint64", [LEMON_FLOAT32] = "float32", [LEMON_FLOAT64] = "float64"};
    return type >= LEMON_INT32 && type <= LEMON_FLOAT64 ? words[type] : "?";
}

/* For a box, in one dimension: cells [first, end), which include all cells that the box
 * touches; the bounds of the box; the domain's origin and a cell's width. */
struct span {
    int64_t first, end;
    double lower, upper, origin, width;
};

/* Sets *s for [lower, upper) in dimension d, with a spare cell at each end for rounding. */
static void set_span(const LemonDomain *domain, int d, double lower, double upper,
                     struct span *s)
{
    double width = domain->length[d] / (double)domain->cells[d];
    double first = floor((lower - domain->origin[d]) / width) - 1;
    double end = ceil((upper - domain->origin[d]) / width) + 1;
    double cells = (double)domain->cells[d];
    *s = (struct span){.first = (int64_t)(first < 0 ? 0 : first),
                       .end = (int64_t)(end > cells ? cells
                                        : end < 0   ? 0
                                                    : end),
                       .lower = lower,
                       .upper = upper,
                       .origin = domain->origin[d],
                       .width = width};
}

/* Returns the fraction of cell i that the box covers in this dimension. A fraction within 1e-9
 * of 0 or 1 counts as 0 or 1. */
static double overlap_share(const struct span *s, int64_t i)
{
    double from = s->origin + (double)i * s->width, to = from + s->width;
    double part = (fmin(to, s->upper) - fmax(from, s->lower)) / s->width;
    return part < 1e-9 ? 0 : part > 1 - 1e-9 ? 1 : part;
}

/* Estimates the number of particles in a box. */
static double count_particles(const LemonCells *cells, const double lower[3],
                              const double upper[3])
{
    const int64_t *n = cells->domain.cells;
    struct span s[3];
    double sum = 0;
    for (int d = 0; d < 3; d++)
        set_span(&cells->domain, d, lower[d], upper[d], &s[d]);
    for (int64_t x = s[0].first; x < s[0].end; x++)
        for (int64_t y = s[1].first; y < s[1].end; y++) {
            double area = overlap_share(&s[0], x) * overlap_share(&s[1], y);
            for (int64_t z = s[2].first; area > 0 && z < s[2].end; z++)
                sum += area * overlap_share(&s[2], z) *
                       (double)cells->cell[(x * n[1] + y) * n[2] + z].count;
        }
    return sum;
}

/* Adds a rank that has `particles`. Until combine_balance(), b->mean is their sum. */
static void add_rank(struct checkpoint_balance *b, double particles)
{
    b->min = fmin(b->min, particles);
    b->max = fmax(b->max, particles);
    b->mean += particles;
    b->empty += particles < 0.5;
}

static void combine_balance(struct checkpoint_balance *b)
{
    MPI_Allreduce(MPI_IN_PLACE, &b->min, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &b->max, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &b->mean, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &b->empty, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    b->mean /= b->ranks;
}

int checkpoint_balance(const struct checkpoint_world *world, const LemonCells *cells, int ranks,
                       enum checkpoint_decomposition decomposition,
                       struct checkpoint_balance *b)
{
    int code = LEMON_SUCCESS;
    *b = (struct checkpoint_balance){.ranks = ranks, .min = DBL_MAX};
    for (int64_t i = world->rank; i < ranks && code == LEMON_SUCCESS; i += world->ranks) {
        double lower[3], upper[3];
        code = decomposition == CHECKPOINT_KD
                   ? lemonBalancedBox(cells, ranks, (int)i, lower, upper)
                   : lemonRegularBox(&cells->domain, NULL, ranks, (int)i, lower, upper);
        if (code == LEMON_SUCCESS)
            add_rank(b, count_particles(cells, lower, upper));
    }
    combine_balance(b);
    MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return code;
}

void checkpoint_print_transfer(const struct checkpoint_world *world, const char *what,
                               const char *path, const struct checkpoint_particles *p,
                               double seconds, bool quiet)
{
    struct checkpoint_balance b;
    char name[CHECKPOINT_NAME_BYTES], size[LIMEFILE_SIZE_CHARS], speed[LIMEFILE_SIZE_CHARS];
    b = (struct checkpoint_balance){.ranks = world->ranks, .min = DBL_MAX};
    add_rank(&b, (double)p->count);
    combine_balance(&b);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (world->rank != 0 || quiet)
        return;
    double particles = b.mean * b.ranks, bytes = particles * (double)p->bytes;
    printf("%-8s %s: %.0f particles, %s, %.0f to %.0f a rank (mean %.1f), %.3f s, %s/s\n", what,
           checkpoint_printable(path, name), particles,
           limefile_format_bytes((uint64_t)bytes, size), b.min, b.max, b.mean, seconds,
           limefile_format_bytes(seconds > 0 ? (uint64_t)(bytes / seconds) : 0, speed));
}
