/*
 * md.c - a step of leapfrog:
 *
 *     v(i + 1/2) = v(i - 1/2) + a(x(i)) dt,    x(i + 1) = x(i) + v(i + 1/2) dt
 *
 * Each rank adds up only the forces on its own particles, so that the order of additions does
 * not depend on the ranks. Therefore the force of a pair is computed twice, once for each of
 * the two particles. For the energy at step i, v(i) is the mean of v(i - 1/2) and v(i + 1/2).
 */
#include "md.h"
#include "exchange.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CELLS_MIN = 3,     /* per dimension: with fewer, find_neighbours() lists a cell twice */
    SPARSE_CELLS = 64, /* per dimension: a grid with more has no more cells than particles */
    CELLS_MAX = 100000,
    NEIGHBOURS = 27, /* neighbours of a cell, including itself */
};

/* ---- exact sums in fixed point, independent of the order ---- */

enum {
    FRACTION = 40, /* bits after the point */
    SUMS = 2,      /* potential and kinetic energy */
    PARTS = 3,     /* a value's 32, 32 and 64 bits: sums over 2^31 ranks cannot overflow */
};

#define SUM_LIMIT 0x1p49

__extension__ typedef __int128 wide;

struct sum {
    wide value;      /* in units of 2^-FRACTION */
    int64_t invalid; /* 1 if an added value was NaN or too large */
};

static void add_to_sum(struct sum *sum, double value)
{
    if (value > -SUM_LIMIT && value < SUM_LIMIT)
        sum->value += (wide)(value * 0x1p40);
    else
        sum->invalid = 1;
}

/* Sets values[i] to the total of all ranks' sums[i], NaN if one is invalid. Collective. */
static void reduce_sums(const struct sum sums[SUMS], double values[SUMS])
{
    int64_t parts[SUMS * (PARTS + 1)], *p = parts;
    for (int i = 0; i < SUMS; i++) {
        *p++ = (int64_t)(sums[i].value & 0xffffffff);
        *p++ = (int64_t)((sums[i].value >> 32) & 0xffffffff);
        *p++ = (int64_t)(sums[i].value >> 64);
        *p++ = sums[i].invalid;
    }
    MPI_Allreduce(MPI_IN_PLACE, parts, SUMS * (PARTS + 1), MPI_INT64_T, MPI_SUM,
                  MPI_COMM_WORLD);
    for (int i = 0; i < SUMS; i++) {
        p = parts + i * (PARTS + 1);
        wide all = ((wide)p[2] * ((wide)1 << 64)) + ((wide)p[1] << 32) + p[0];
        values[i] = p[3] ? (double)NAN : ldexp((double)all, -FRACTION);
    }
}

/* ---- cells ---- */

static int64_t first_cell(const struct md_state *s, int rank)
{
    return s->cells * rank / s->world->ranks;
}

static int find_owner(const struct md_state *s, int64_t cell)
{
    return (int)(((cell + 1) * s->world->ranks - 1) / s->cells);
}

/* Returns the cell of a position, which must be in [0, length) in each dimension. */
static int64_t find_cell(const struct md_state *s, const double x[3])
{
    double scale = (double)s->n / s->parameters.length;
    int64_t cell = 0;
    for (int d = 0; d < 3; d++) {
        int64_t at = (int64_t)(x[d] * scale);
        cell = cell * s->n + (at < s->n ? at : s->n - 1);
    }
    return cell;
}

/* A neighbour of a cell. Adding `shift` to its positions gives the nearest periodic images. */
struct neighbour {
    int64_t cell;
    double shift[3];
};

/* Gets the cell and its 26 neighbours, in an order that is the same on all ranks. */
static void find_neighbours(const struct md_state *s, int64_t cell,
                            struct neighbour neighbours[NEIGHBOURS])
{
    const int64_t n = s->n, at[3] = {cell / n / n, cell / n % n, cell % n};
    for (int i = 0; i < NEIGHBOURS; i++) {
        const int64_t offset[3] = {i / 9 - 1, i / 3 % 3 - 1, i % 3 - 1};
        neighbours[i].cell = 0;
        for (int d = 0; d < 3; d++) {
            int64_t c = at[d] + offset[d];
            neighbours[i].shift[d] = c < 0    ? -s->parameters.length
                                     : c >= n ? s->parameters.length
                                              : 0;
            neighbours[i].cell = neighbours[i].cell * n + (c + n) % n;
        }
    }
}

/* Orders the items by cell; items of one cell keep their order. position: offset of an item's
 * position. Sets first[c] to the index of cell c's first item, first[s->cells] to p->count. */
static void order_by_cell(const struct md_state *s, struct checkpoint_particles *p,
                          size_t position, int64_t *first)
{
    int64_t bytes = p->bytes, *cell = checkpoint_allocate(NULL, p->count, sizeof *cell);
    unsigned char *ordered = checkpoint_allocate(NULL, p->count, bytes);
    memset(first, 0, (size_t)(s->cells + 1) * sizeof *first);
    for (int64_t i = 0; i < p->count; i++) {
        double x[3];
        memcpy(x, p->data + i * bytes + position, sizeof x);
        cell[i] = find_cell(s, x);
        first[cell[i] + 1]++;
    }
    for (int64_t c = 0; c < s->cells; c++)
        first[c + 1] += first[c];
    for (int64_t i = 0; i < p->count; i++)
        memcpy(ordered + first[cell[i]]++ * bytes, p->data + i * bytes, (size_t)bytes);
    memmove(first + 1, first, (size_t)s->cells * sizeof *first); /* entries are ends now */
    first[0] = 0;
    free(cell);
    free(p->data);
    p->data = ordered;
    p->capacity = p->count;
}

static struct md_particle *own_particles(const struct md_state *s)
{
    return (struct md_particle *)(void *)s->own.data;
}

static int compare_ids(const void *a, const void *b)
{
    const struct md_particle *p = a, *q = b;
    return p->id < q->id ? -1 : p->id > q->id;
}

/* ---- the state ---- */

/* Returns the number of cells per dimension: as many as the cut-off allows, but above
 * SPARSE_CELLS not more cells in total than particles. */
static int64_t choose_cells(const struct md_parameters *p)
{
    double cells = floor(p->length / p->cut_off * (1 - 1e-12));
    int64_t n = cells < CELLS_MAX ? (int64_t)cells : CELLS_MAX;
    while (n > SPARSE_CELLS && n * n * n > p->particles)
        n--;
    return n;
}

bool md_state_init(struct md_state *s, const struct checkpoint_world *world,
                   const struct md_parameters *p)
{
    char reason[CHECKPOINT_ERROR_BYTES] = "";
    int64_t n = choose_cells(p);
    *s = (struct md_state){.world = world, .parameters = *p, .n = n, .cells = n * n * n};
    if (n < CELLS_MIN)
        snprintf(reason, sizeof reason,
                 "the box is too small: edge %g is less than 3 times the cut-off %g", p->length,
                 p->cut_off);
    if (!checkpoint_report(world, "run", reason))
        return false;
    s->own.bytes = sizeof(struct md_particle);
    s->first = checkpoint_allocate(NULL, s->cells + 1, sizeof *s->first);
    return true;
}

void md_state_free(struct md_state *s)
{
    checkpoint_particles_free(&s->own);
    free(s->first);
    *s = (struct md_state){0};
}

/* Sends each particle to the rank that owns its cell. Orders the received particles by cell,
 * and within a cell by id. Collective. */
static void migrate(struct md_state *s)
{
    int *to = checkpoint_allocate(NULL, s->own.count, sizeof *to);
    for (int64_t i = 0; i < s->own.count; i++)
        to[i] = find_owner(s, find_cell(s, own_particles(s)[i].x));
    checkpoint_exchange(s->world, &s->own, to);
    free(to);
    order_by_cell(s, &s->own, offsetof(struct md_particle, x), s->first);
    for (int64_t c = first_cell(s, s->world->rank); c < first_cell(s, s->world->rank + 1); c++)
        qsort(own_particles(s) + s->first[c], (size_t)(s->first[c + 1] - s->first[c]),
              sizeof(struct md_particle), compare_ids);
}

bool md_state_distribute(struct md_state *s)
{
    int64_t outside = 0;
    for (int64_t i = 0; i < s->own.count; i++)
        for (int d = 0; d < 3; d++) {
            double x = own_particles(s)[i].x[d];
            outside += !(x >= 0 && x < s->parameters.length);
        }
    if (checkpoint_sum(outside) != 0)
        return false;
    migrate(s);
    return checkpoint_sum(s->own.count) == s->parameters.particles;
}

/* ---- a step ---- */

/* The state of one call of md_step(). */
struct pass {
    struct md_state *state;
    double cut_off2, shift; /* cut-off squared, and shift of the potential */
    bool move;
    struct checkpoint_particles positions;   /* positions in own and adjacent cells, by cell */
    double (*x)[3];                          /* data of `positions` */
    int64_t *first;                          /* first position of each cell */
    struct neighbour neighbours[NEIGHBOURS]; /* of the current cell */
    struct sum sums[SUMS];                   /* potential and kinetic energy */
    uint64_t lost_id;                        /* id of a particle that has moved too far */
    bool is_lost;
};

static void add_item(struct checkpoint_particles *p, const void *item)
{
    memcpy(checkpoint_particles_add(p), item, (size_t)p->bytes);
}

/* Lists the positions in `cell`, one of this rank's cells, for each other rank that owns an
 * adjacent cell: adds the position to `needed` and, at the same index, the rank to `by`. */
static void add_ghosts(struct pass *p, int64_t cell, struct checkpoint_particles *needed,
                       struct checkpoint_particles *by)
{
    const struct md_state *s = p->state;
    int ranks[NEIGHBOURS] = {0}, count = 0;
    find_neighbours(s, cell, p->neighbours);
    for (int i = 0; i < NEIGHBOURS; i++) {
        int owner = find_owner(s, p->neighbours[i].cell), known = owner == s->world->rank;
        for (int k = 0; k < count && !known; k++)
            known = ranks[k] == owner;
        if (!known)
            ranks[count++] = owner;
    }
    for (int64_t k = s->first[cell]; k < s->first[cell + 1]; k++)
        for (int i = 0; i < count; i++) {
            add_item(needed, own_particles(s)[k].x);
            add_item(by, &ranks[i]);
        }
}

/* Fills p->positions with the positions in this rank's cells and those adjacent to them. All
 * positions in a cell come from its owner; so their order is the same on all ranks. The caller
 * frees p->positions and p->first. Collective. */
static void collect_positions(struct pass *p)
{
    const struct md_state *s = p->state;
    struct checkpoint_particles by = {.bytes = sizeof(int)};
    int64_t end = first_cell(s, s->world->rank + 1);
    p->positions = (struct checkpoint_particles){.bytes = sizeof *p->x};
    for (int64_t cell = first_cell(s, s->world->rank); cell < end; cell++)
        add_ghosts(p, cell, &p->positions, &by);
    checkpoint_exchange(s->world, &p->positions, (const int *)(const void *)by.data);
    checkpoint_particles_free(&by);
    for (int64_t k = 0; k < s->own.count; k++)
        add_item(&p->positions, own_particles(s)[k].x);
    p->first = checkpoint_allocate(NULL, s->cells + 1, sizeof *p->first);
    order_by_cell(s, &p->positions, 0, p->first);
    p->x = (double(*)[3])(void *)p->positions.data;
}

static double potential_at(double r2)
{
    double s6 = 1 / (r2 * r2 * r2);
    return 4 * s6 * (s6 - 1);
}

/* Computes the force of the particles in p->neighbours on particle x[self]. Returns half of the
 * potential energy of all pairs that x[self] forms with them. */
static double compute_force(const struct pass *p, int64_t self, double force[3])
{
    double(*const x)[3] = p->x;
    double potential = 0, f[3] = {0, 0, 0};
    const double own[3] = {x[self][0], x[self][1], x[self][2]};
    for (int i = 0; i < NEIGHBOURS; i++) {
        const struct neighbour *a = &p->neighbours[i];
        for (int64_t j = p->first[a->cell]; j < p->first[a->cell + 1]; j++) {
            double d0 = own[0] - x[j][0] - a->shift[0];
            double d1 = own[1] - x[j][1] - a->shift[1];
            double d2 = own[2] - x[j][2] - a->shift[2];
            double r2 = d0 * d0 + d1 * d1 + d2 * d2;
            if (r2 >= p->cut_off2 || j == self)
                continue;
            double s2 = 1 / r2, s6 = s2 * s2 * s2;
            double by_r = 24 * s2 * s6 * (2 * s6 - 1);
            potential += 4 * s6 * (s6 - 1) - p->shift;
            f[0] += by_r * d0;
            f[1] += by_r * d1;
            f[2] += by_r * d2;
        }
    }
    memcpy(force, f, sizeof f);
    return potential / 2;
}

/* Sets the particle's velocity to v and moves the particle by a time step, with periodic
 * boundaries. Returns false if it moves by a cell or more, or to NaN. */
static bool move_particle(const struct md_state *s, struct md_particle *q, const double v[3])
{
    double length = s->parameters.length, edge = length / (double)s->n;
    bool good = true;
    for (int d = 0; d < 3; d++) {
        double step = v[d] * s->parameters.dt, x = q->x[d] + step;
        x = x < 0 ? x + length : x >= length ? x - length : x;
        x = x >= length ? 0 : x; /* adding length to a tiny negative number gives length */
        good = good && fabs(step) < edge && x >= 0 && x < length;
        q->v[d] = v[d];
        q->x[d] = x;
    }
    return good;
}

/* Adds the energies of the particles in `cell`, one of this rank's cells, to p->sums. Moves the
 * particles if p->move. For speed, a cell's energies are added as doubles; this is as
 * reproducible as exact additions, because the order is always the same. */
static void step_cell(struct pass *p, int64_t cell)
{
    struct md_state *s = p->state;
    double potential = 0, kinetic = 0;
    find_neighbours(s, cell, p->neighbours);
    for (int64_t k = s->first[cell]; k < s->first[cell + 1]; k++) {
        struct md_particle *q = &own_particles(s)[k];
        double force[3], v[3];
        potential += compute_force(p, p->first[cell] + k - s->first[cell], force);
        for (int d = 0; d < 3; d++) {
            v[d] = q->v[d] + force[d] * s->parameters.dt;
            double mean = (q->v[d] + v[d]) / 2;
            kinetic += mean * mean / 2;
        }
        if (p->move && !move_particle(s, q, v)) {
            p->lost_id = q->id;
            p->is_lost = true;
        }
    }
    add_to_sum(&p->sums[0], potential);
    add_to_sum(&p->sums[1], kinetic);
}

bool md_step(struct md_state *s, bool move, struct md_energy *energy)
{
    char reason[CHECKPOINT_ERROR_BYTES] = "";
    double rc2 = s->parameters.cut_off * s->parameters.cut_off, values[SUMS];
    struct pass p = {.state = s, .cut_off2 = rc2, .shift = potential_at(rc2), .move = move};
    int64_t end = first_cell(s, s->world->rank + 1);
    collect_positions(&p);
    for (int64_t cell = first_cell(s, s->world->rank); cell < end; cell++)
        step_cell(&p, cell);
    checkpoint_particles_free(&p.positions);
    free(p.first);
    reduce_sums(p.sums, values);
    *energy = (struct md_energy){values[0], values[1]};
    if (p.is_lost)
        snprintf(reason, sizeof reason,
                 "step %" PRId64 ": particle %" PRIu64
                 " moves further than a cell; choose a smaller --dt",
                 s->step, p.lost_id);
    else if (isnan(values[0]) || isnan(values[1]))
        snprintf(reason, sizeof reason,
                 "step %" PRId64 ": the energy is not a number; choose a smaller --dt",
                 s->step);
    if (!checkpoint_report(s->world, "run", reason))
        return false;
    if (move) {
        migrate(s);
        s->step++;
    }
    return true;
}
