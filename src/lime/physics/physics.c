/*
 * physics.c - a whole configuration, by all processors
 *
 * Threads take some cells in a row, whichever come next. Each cell has a sum of its own, and
 * these are added in an order that the lattice gives. Largest values, counts and the first bad
 * link do not depend on the order. The figures: docs/performance.md.
 */
#include "limephysics.h"
#include "march.h"
#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    THREADS_MAX = 1024,
    TURNS = 8, /* how often each thread takes cells: the fewer, the less is read twice */
};

/* ---- the work of all threads ---- */

struct work {
    const struct limefile_sites *sites;
    const struct plan *plan;
    double bound;
    uint64_t take;         /* cells at a time */
    _Atomic uint64_t next; /* cell that nobody has taken yet */
    atomic_int err;        /* the first one; all stop */
    limefile_sum_progress_fn *progress;
    void *context;
    _Atomic uint64_t untold; /* bytes that progress has not heard of */
    pthread_mutex_t telling, combining;
    struct physics_sums *cells;
    struct physics_tally tally; /* of the threads that have ended */
};

static void fail(struct work *w, int err)
{
    int none = 0;
    if (err)
        atomic_compare_exchange_strong(&w->err, &none, err);
}

static void tell(struct work *w, uint64_t bytes)
{
    if (!w->progress)
        return;
    atomic_fetch_add(&w->untold, bytes);
    if (pthread_mutex_trylock(&w->telling) != 0)
        return; /* another thread tells it, or the next call, or the last */
    uint64_t more = atomic_exchange(&w->untold, 0);
    if (more && !w->progress(w->context, more))
        fail(w, -EINTR);
    pthread_mutex_unlock(&w->telling);
}

static int do_cell(struct work *w, struct march *m, uint64_t cell)
{
    const struct plan *p = w->plan;
    uint64_t step = cell * p->cell_steps, left = p->steps - step, sites;
    uint64_t end = step + (left < p->cell_steps ? left : p->cell_steps);
    int err = 0;
    for (; !err && step < end && !atomic_load(&w->err); step++) {
        err = march_step(m, step, &w->cells[cell], &sites);
        if (!err)
            tell(w, sites * limefile_sites_bytes(w->sites));
    }
    return err;
}

static int do_cells(struct work *w, struct march *m)
{
    int err = 0;
    while (!err && !atomic_load(&w->err)) {
        uint64_t cell = atomic_fetch_add(&w->next, w->take), end = cell + w->take;
        if (cell >= w->plan->cells)
            break;
        for (; !err && cell < end && cell < w->plan->cells; cell++)
            err = do_cell(w, m, cell);
    }
    return err;
}

static void *run(void *context)
{
    struct work *w = context;
    struct march m;
    int err = march_make(&m, w->sites, w->plan, w->bound);
    fail(w, err ? err : do_cells(w, &m));
    march_release(&m);
    pthread_mutex_lock(&w->combining);
    tally_merge(&w->tally, &m.tally);
    pthread_mutex_unlock(&w->combining);
    return NULL;
}

static void add(struct physics_sums *to, const struct physics_sums *more)
{
    to->space += more->space;
    to->time += more->time;
    to->trace += more->trace;
}

/* Adds all cells to the first one; in halves, so that rounding hardly adds up. */
static void conclude(struct work *w, struct limefile_physics *out)
{
    for (uint64_t count = w->plan->cells; count > 1; count -= count / 2) {
        uint64_t half = count - count / 2;
        for (uint64_t i = 0; i + half < count; i++)
            add(&w->cells[i], &w->cells[i + half]);
    }
    tally_tell(&w->tally, w->bound, &w->cells[0], (double)limefile_sites_count(w->sites), out);
}

int limefile_physics_measure(const struct limefile_sites *sites,
                             const struct limefile_physics_options *o,
                             struct limefile_physics *out)
{
    struct plan plan;
    unsigned threads = o->threads ? o->threads : limefile_processors();
    int err = plan_make(&plan, sites);
    if (err)
        return err;
    struct work w = {
        .sites = sites,
        .plan = &plan,
        .bound = tally_bound(o->bound, sites->precision),
        .progress = o->progress,
        .context = o->context,
        .telling = PTHREAD_MUTEX_INITIALIZER,
        .combining = PTHREAD_MUTEX_INITIALIZER,
        .cells = calloc(plan.cells, sizeof *w.cells),
    };
    if (!w.cells)
        return -ENOMEM;
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    if (threads > plan.cells)
        threads = (unsigned)plan.cells;
    w.take = plan.cells / ((uint64_t)threads * TURNS);
    w.take = w.take ? w.take : 1;
    limefile_run_threads(threads, run, &w);
    tell(&w, 0);
    err = atomic_load(&w.err);
    if (!err)
        conclude(&w, out);
    free(w.cells);
    return err;
}
