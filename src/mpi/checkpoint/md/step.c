/*
 * step.c - a step of leapfrog:
 *
 *     v(i + 1/2) = v(i - 1/2) + a(x(i)) dt,    x(i + 1) = x(i) + v(i + 1/2) dt
 *
 * Each rank adds up the forces on its own particles only, so each pair is computed twice: what
 * is added in which order then depends on no rank. The energy at step i takes v(i) as the mean
 * of the two.
 */
#include "md.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
    AROUND = 27, /* cells, with the one in the middle */
};

/* Particles of a cell around, and what makes their differences those of the nearest images. */
struct around {
    int64_t from, to;
    double shift[3];
};

struct pass {
    struct md_state *state;
    double cut_off2, shift; /* of the potential */
    bool move;
    struct around around[AROUND];
    struct md_sum sums[2]; /* potential and kinetic energy */
    uint64_t lost;         /* a particle that has moved too far */
    bool is_lost;
};

static double potential_at(double r2)
{
    double s6 = 1 / (r2 * r2 * r2);
    return 4 * s6 * (s6 - 1);
}

/* The cells around own cell `at`, in one order on all ranks. */
static void look_around(struct pass *p, const int64_t at[3])
{
    const struct md_state *s = p->state;
    const struct md_grid *g = &s->grid;
    for (int i = 0; i < AROUND; i++) {
        struct around *a = &p->around[i];
        const int64_t offset[3] = {i / 9 - 1, i / 3 % 3 - 1, i % 3 - 1};
        int64_t place = 0;
        for (int d = 0; d < 3; d++) {
            int64_t c = at[d] + offset[d];
            a->shift[d] = c < 0 ? -g->length : c >= g->n ? g->length : 0;
            c += c < 0 ? g->n : c >= g->n ? -g->n : 0;
            place = place * g->seen[d] + g->place[d][c];
        }
        a->from = s->seen_first[place];
        a->to = s->seen_first[place + 1];
    }
}

/* The force on particle `self` of those that are seen, and its potential energy: half of each
 * pair's. */
static double force_on(const struct pass *p, int64_t self, double force[3])
{
    double(*const x)[3] = p->state->seen;
    double potential = 0, f[3] = {0, 0, 0};
    const double mine[3] = {x[self][0], x[self][1], x[self][2]};
    for (int i = 0; i < AROUND; i++) {
        const struct around *a = &p->around[i];
        for (int64_t j = a->from; j < a->to; j++) {
            double d0 = mine[0] - x[j][0] - a->shift[0];
            double d1 = mine[1] - x[j][1] - a->shift[1];
            double d2 = mine[2] - x[j][2] - a->shift[2];
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
    for (int d = 0; d < 3; d++)
        force[d] = f[d];
    return potential / 2;
}

/* Back into the cube; false: it has moved by a cell or more, or is no number. Which cell it is
 * in is rounded, too: with a margin for that it is in the same one or a neighbour. */
static bool move_on(const struct md_state *s, struct md_particle *q, const double v[3])
{
    double length = s->parameters.length, edge = length / (double)s->grid.n;
    double most = edge * (1 - 1e-9); /* grid.c has at most 1e5 cells */
    bool good = true;
    for (int d = 0; d < 3; d++) {
        double step = v[d] * s->parameters.dt, x = q->x[d] + step;
        x = x < 0 ? x + length : x >= length ? x - length : x;
        x = x >= length ? 0 : x; /* a very small negative number has become the edge */
        good = good && fabs(step) < most && x >= 0 && x < length;
        q->v[d] = v[d];
        q->x[d] = x;
    }
    return good;
}

/* An own cell: sums are those of the cell, so that there are fewer of them. */
static void pass_cell(struct pass *p, int64_t place)
{
    struct md_state *s = p->state;
    double potential = 0, kinetic = 0;
    for (int64_t k = s->first[place]; k < s->first[place + 1]; k++) {
        struct md_particle *q = &s->own[k];
        double force[3], v[3];
        potential += force_on(p, s->seen_first[place] + k - s->first[place], force);
        for (int d = 0; d < 3; d++) {
            v[d] = q->v[d] + force[d] * s->parameters.dt;
            double mean = (q->v[d] + v[d]) / 2;
            kinetic += mean * mean / 2;
        }
        if (p->move && !move_on(s, q, v)) {
            p->lost = q->id;
            p->is_lost = true;
        }
    }
    md_sum_add(&p->sums[0], potential);
    md_sum_add(&p->sums[1], kinetic);
}

static void pass_cells(struct pass *p)
{
    const struct md_grid *g = &p->state->grid;
    int64_t at[3];
    for (at[0] = g->lower[0]; at[0] < g->upper[0]; at[0]++)
        for (at[1] = g->lower[1]; at[1] < g->upper[1]; at[1]++)
            for (at[2] = g->lower[2]; at[2] < g->upper[2]; at[2]++) {
                look_around(p, at);
                pass_cell(p,
                          (g->place[0][at[0]] * g->seen[1] + g->place[1][at[1]]) * g->seen[2] +
                              g->place[2][at[2]]);
            }
}

/* Hands over those that are in other ranks' cells now. */
static void migrate(struct md_state *s)
{
    const struct md_grid *g = &s->grid;
    int64_t left = 0;
    for (int64_t k = 0; k < s->count; k++) {
        int owner = md_grid_owner(g, s->own[k].x), to = 0;
        if (owner == g->rank) {
            s->own[left++] = s->own[k];
            continue;
        }
        while (s->moving.parcel[to].rank != owner)
            to++;
        md_post_add(&s->moving, to, &s->own[k]);
    }
    void *in = s->own;
    s->count = left;
    md_post_exchange(&s->moving, &in, &s->count, &s->room);
    s->own = in;
    md_state_sort(s);
}

bool md_step(struct md_state *s, const struct checkpoint_world *world, bool move,
             struct md_energy *energy)
{
    char reason[CHECKPOINT_ERROR_BYTES] = "";
    double rc2 = s->parameters.cut_off * s->parameters.cut_off, values[2];
    struct pass p = {.state = s, .cut_off2 = rc2, .shift = potential_at(rc2), .move = move};
    md_state_look(s);
    pass_cells(&p);
    md_sum_all(p.sums, 2, values);
    *energy = (struct md_energy){values[0], values[1]};
    if (p.is_lost)
        snprintf(reason, sizeof reason,
                 "step %" PRId64 ": particle %" PRIu64
                 " moves further than a cell: choose a smaller --dt",
                 s->step, p.lost);
    else if (isnan(values[0]) || isnan(values[1]))
        snprintf(reason, sizeof reason,
                 "step %" PRId64 ": the energy is not a number: choose a smaller --dt",
                 s->step);
    if (!checkpoint_report(world, "run", reason))
        return false;
    if (move) {
        migrate(s);
        s->step++;
    }
    return true;
}
