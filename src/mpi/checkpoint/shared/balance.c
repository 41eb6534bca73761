/* balance.c - particles of each rank: the fewest, the most */
#include "balance.h"

#include <float.h>
#include <math.h>

/* The cells of a dimension that a box touches, and by how much. */
struct span {
    int64_t first, end;
    double lower, upper, origin, width;
};

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

/* Which part of cell i is in the box; all but all of it is all. */
static double part(const struct span *s, int64_t i)
{
    double from = s->origin + (double)i * s->width, to = from + s->width;
    double share = (fmin(to, s->upper) - fmax(from, s->lower)) / s->width;
    return share < 1e-9 ? 0 : share > 1 - 1e-9 ? 1 : share;
}

static double particles_in(const LemonCells *cells, const double lower[3],
                           const double upper[3])
{
    const int64_t *n = cells->domain.cells;
    struct span s[3];
    double sum = 0;
    for (int d = 0; d < 3; d++)
        set_span(&cells->domain, d, lower[d], upper[d], &s[d]);
    for (int64_t x = s[0].first; x < s[0].end; x++)
        for (int64_t y = s[1].first; y < s[1].end; y++) {
            double area = part(&s[0], x) * part(&s[1], y);
            for (int64_t z = s[2].first; area > 0 && z < s[2].end; z++)
                sum += area * part(&s[2], z) *
                       (double)cells->cell[(x * n[1] + y) * n[2] + z].count;
        }
    return sum;
}

static void add(struct checkpoint_balance *b, double particles)
{
    b->least = fmin(b->least, particles);
    b->most = fmax(b->most, particles);
    b->mean += particles;
    b->empty += particles < 0.5;
}

static void combine(struct checkpoint_balance *b)
{
    MPI_Allreduce(MPI_IN_PLACE, &b->least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &b->most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &b->mean, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &b->empty, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    b->mean /= b->ranks;
}

int checkpoint_balance(const struct checkpoint_world *world, const LemonCells *cells, int ranks,
                       enum checkpoint_decomposition decomposition,
                       struct checkpoint_balance *b)
{
    int code = LEMON_SUCCESS;
    *b = (struct checkpoint_balance){.ranks = ranks, .least = DBL_MAX};
    for (int64_t i = world->rank; i < ranks && code == LEMON_SUCCESS; i += world->ranks) {
        double lower[3], upper[3];
        code = decomposition == CHECKPOINT_KD
                   ? lemonBalancedBox(cells, ranks, (int)i, lower, upper)
                   : lemonRegularBox(&cells->domain, NULL, ranks, (int)i, lower, upper);
        if (code == LEMON_SUCCESS)
            add(b, particles_in(cells, lower, upper));
    }
    combine(b);
    MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return code;
}

void checkpoint_balance_of(const struct checkpoint_world *world, int64_t count,
                           struct checkpoint_balance *b)
{
    *b = (struct checkpoint_balance){.ranks = world->ranks, .least = DBL_MAX};
    add(b, (double)count);
    combine(b);
}
