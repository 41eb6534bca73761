/* cmd_run.c - lime-checkpoint run: molecular dynamics with checkpoints while it runs */
#include "limefile.h"
#include "generator.h"
#include "md_series.h"
#include "options.h"
#include "output.h"
#include "text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Defaults, and maximum values, of the options. */
enum {
    PARTICLES = 4000,
    STEPS = 1000,
    EVERY = 100,
    KEEP = 2,
    PRINT = 10,
    SEED = 1,
    KEEP_MAX = 1000000,
};

#define DENSITY     0.7
#define TEMPERATURE 1.0
#define CUT_OFF     2.5
#define DT          0.004
#define COUNT_MAX   1e15

struct md_run {
    int64_t particles, steps, every, keep, print, seed;
    double density, temperature, cut_off, dt; /* 0 (seed, temperature: -1): not given */
    const char *prefix, *out;
    bool continues, no_overlap, force;

    const struct checkpoint_world *world;
    struct md_state state;
    struct md_series series;
    double energy_at_0; /* the total energy at step 0 */
    double compute_seconds;
};

/* ---- parameters ---- */

/* Returns rank 0's result on all ranks, because cbrt() can differ between hosts. Collective. */
static double compute_edge(int64_t particles, double density)
{
    double edge = cbrt((double)particles / density);
    MPI_Bcast(&edge, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return edge;
}

/* Sets r->state to a lattice of particles with random velocities. Collective. */
static bool start_run(struct md_run *r)
{
    struct md_parameters p = {.particles = r->particles ? r->particles : PARTICLES,
                              .cut_off = r->cut_off > 0 ? r->cut_off : CUT_OFF,
                              .dt = r->dt > 0 ? r->dt : DT,
                              .temperature = r->temperature < 0 ? TEMPERATURE : r->temperature,
                              .seed = r->seed < 0 ? SEED : r->seed};
    p.length = compute_edge(p.particles, r->density > 0 ? r->density : DENSITY);
    if (!md_state_init(&r->state, r->world, &p))
        return false;
    struct checkpoint_generator generator = {.particles = p.particles,
                                             .seed = (uint64_t)p.seed,
                                             .distribution = CHECKPOINT_LATTICE,
                                             .format = CHECKPOINT_ICRV,
                                             .length = {p.length, p.length, p.length},
                                             .temperature = p.temperature,
                                             .components = 1};
    checkpoint_generate_particles(&generator, r->world->rank, r->world->ranks, &r->state.own);
    bool good = md_state_distribute(&r->state);
    if (!checkpoint_report(r->world, "run", good ? "" : "not all particles are in the box")) {
        md_state_free(&r->state);
        return false;
    }
    return true;
}

/* Returns an option whose given value differs from the loaded run's, or NULL. Collective. */
static const char *find_changed_option(const struct md_run *r)
{
    const struct md_parameters *p = &r->state.parameters;
    if (r->particles && p->particles != r->particles)
        return "--particles";
    if (r->density > 0 && p->length != compute_edge(p->particles, r->density))
        return "--density";
    if (r->cut_off > 0 && p->cut_off != r->cut_off)
        return "--cut-off";
    if (r->dt > 0 && p->dt != r->dt)
        return "--dt";
    if (r->temperature >= 0 && p->temperature != r->temperature)
        return "--temperature";
    return r->seed >= 0 && p->seed != r->seed ? "--seed" : NULL;
}

/* Loads r->state, or calls start_run() if the series is empty. Collective. */
static bool continue_run(struct md_run *r)
{
    char text[CHECKPOINT_ERROR_BYTES] = "";
    bool found;
    if (!md_series_load(r->world, &r->series, &r->state, &r->energy_at_0, &found))
        return false;
    if (!found) {
        if (r->world->rank == 0)
            checkpoint_log("%s: no checkpoint yet; starting at step 0", r->prefix);
        return start_run(r);
    }
    const char *option = find_changed_option(r);
    if (option)
        snprintf(text, sizeof text, "its run has a different %s", option);
    else if (r->state.step > r->steps)
        snprintf(text, sizeof text, "already at step %" PRId64 "; give more --steps",
                 r->state.step);
    if (checkpoint_report(r->world, r->prefix, text))
        return true;
    md_state_free(&r->state);
    return false;
}

/* Returns false after a message if the series is not empty: a new run must not add to it. */
static bool check_series_empty(const struct md_run *r)
{
    char path[PATH_MAX], text[CHECKPOINT_ERROR_BYTES] = "";
    int64_t number;
    int code =
        lemonSeriesLatest(r->series.series, LEMON_SERIES_NEWEST, &number, path, sizeof path);
    if (code == LEMON_SUCCESS)
        snprintf(text, sizeof text,
                 "the series has checkpoints, the newest of step %" PRId64
                 "; --continue continues it; to start again, remove them",
                 number);
    else if (code != LEMON_EOF)
        return checkpoint_check_code(r->world, r->prefix, "find", code);
    return checkpoint_report(r->world, r->prefix, text);
}

/* ---- steps ---- */

static void print_energy(const struct md_run *r, int64_t step, const struct md_energy *e)
{
    double n = (double)r->state.parameters.particles, all = e->potential + e->kinetic;
    if (r->world->rank != 0)
        return;
    printf("step %8" PRId64 "  time %10.4f  potential %.15g  kinetic %.15g  total %.15g  "
           "change %.3g\n",
           step, (double)step * r->state.parameters.dt, e->potential / n, e->kinetic / n,
           all / n, (all - r->energy_at_0) / n);
    fflush(stdout);
}

/* Computes a step, and prints its energies if due. Moves the particles unless `last`. */
static bool run_step(struct md_run *r, bool last)
{
    int64_t at = r->state.step;
    struct md_energy energy;
    double from = MPI_Wtime();
    bool good = md_step(&r->state, !last, &energy);
    r->compute_seconds += MPI_Wtime() - from;
    if (good && at == 0)
        r->energy_at_0 = energy.potential + energy.kinetic;
    if (good && (at % r->print == 0 || last))
        print_energy(r, at, &energy);
    return good;
}

static bool run_steps(struct md_run *r)
{
    int64_t start = r->state.step;
    bool good = true, last = false;
    while (good && !last) {
        int64_t at = r->state.step;
        last = at == r->steps;
        if (r->prefix && at > start && at % r->every == 0)
            good = md_series_write(&r->series, &r->state, r->energy_at_0);
        good = good && run_step(r, last);
        if (r->prefix && good)
            good = md_series_poll(r->world, &r->series);
    }
    return good;
}

static void print_times(const struct md_run *r, double seconds)
{
    const struct md_series *s = &r->series;
    char size[LIMEFILE_SIZE_CHARS];
    double each = s->published ? 1.0 / (double)s->published : 0;
    double bytes = (double)r->state.parameters.particles *
                   (double)checkpoint_layout(CHECKPOINT_ICRV)->bytes;
    if (r->world->rank != 0)
        return;
    printf("computed %.3f s of %.3f s\n", r->compute_seconds, seconds);
    if (r->prefix)
        printf("%" PRId64 " checkpoints: each %s in %.3f s; the run stopped for %.3f s to "
               "hand over the data and %.3f s to wait for the previous one\n",
               s->published, limefile_format_bytes((uint64_t)bytes, size),
               s->write_seconds * each, s->start_seconds * each, s->wait_seconds * each);
}

/* Checks before the steps, which can take hours, that --out can be written after them. That
 * file must not be the checkpoint that md_series_load() has read. */
static bool can_save(const struct md_run *r)
{
    bool has_input = r->world->rank == 0 && r->out && r->series.loaded_path[0];
    int fd = has_input ? limefile_open(r->series.loaded_path, O_RDONLY) : -1;
    bool good = !r->out || checkpoint_output_check(r->world, r->out, r->force, fd);
    if (fd >= 0)
        close(fd);
    return good;
}

static int run_simulation(struct md_run *r)
{
    double from = MPI_Wtime();
    if (!can_save(r) || (r->prefix && !md_series_open(r->world, r->prefix, r->keep,
                                                      !r->no_overlap, &r->series)))
        return CHECKPOINT_FAILED;
    bool good = r->continues || !r->prefix || check_series_empty(r);
    bool started = good && (r->continues ? continue_run(r) : start_run(r));
    good = started && (!r->continues || can_save(r)) && run_steps(r);
    if (r->prefix)
        good = md_series_close(r->world, &r->series, good) && good;
    if (good && r->out)
        good = md_state_save(r->out, r->force, &r->state, r->energy_at_0);
    if (good)
        print_times(r, MPI_Wtime() - from);
    if (started)
        md_state_free(&r->state);
    return good ? CHECKPOINT_SUCCESS : CHECKPOINT_FAILED;
}

static int run_md(const struct checkpoint_world *world, int argc, char **argv)
{
    struct md_run r = {.world = world,
                       .steps = STEPS,
                       .every = EVERY,
                       .keep = KEEP,
                       .print = PRINT,
                       .seed = -1,
                       .temperature = -1};
    const struct option_rule options[] = {
        {"particles", 'n', OPTION_COUNT, &r.particles, 1, .most = 1e12},
        {"density", 0, OPTION_REAL, &r.density, 1e-9, .most = 10},
        {"temperature", 0, OPTION_REAL, &r.temperature, 0, .most = 1e6},
        {"cut-off", 0, OPTION_REAL, &r.cut_off, 0.5, .most = 1e6},
        {"dt", 0, OPTION_REAL, &r.dt, 1e-9, .most = 1},
        {"steps", 's', OPTION_COUNT, &r.steps, 0, .most = COUNT_MAX},
        {"seed", 0, OPTION_COUNT, &r.seed, 0, .most = COUNT_MAX},
        {"print", 0, OPTION_COUNT, &r.print, 1, .most = COUNT_MAX},
        {"series", 0, OPTION_TEXT, .value = &r.prefix},
        {"every", 'k', OPTION_COUNT, &r.every, 1, .most = COUNT_MAX},
        {"keep", 0, OPTION_COUNT, &r.keep, 1, .most = KEEP_MAX},
        {"continue", 'c', OPTION_FLAG, .value = &r.continues},
        {"no-overlap", 0, OPTION_FLAG, .value = &r.no_overlap},
        {"out", 'o', OPTION_TEXT, .value = &r.out},
        {"force", 'f', OPTION_FLAG, .value = &r.force},
        {NULL},
    };
    if (!checkpoint_parse_options(world, &checkpoint_run, argc, argv, options, 0, NULL))
        return CHECKPOINT_USAGE;
    if (r.continues && !r.prefix)
        return checkpoint_usage_error(world, &checkpoint_run, "--continue requires --series");
    return run_simulation(&r);
}

const struct checkpoint_command checkpoint_run = {
    .name = "run",
    .arguments = "[OPTION]...",
    .summary = "simulate molecular dynamics, with checkpoints to continue from",
    .help =
        "\n"
        "Moves Lennard-Jones particles in a periodic cube by leapfrog, and writes a series\n"
        "of checkpoints while it goes on. After a crash, --continue continues from the newest\n"
        "one; the trajectory is the same, bit for bit, whatever the number of ranks. Units\n"
        "are reduced: epsilon, sigma and mass are 1. The total energy per particle stays\n"
        "constant within 0.002 by default; the error grows with the square of --dt.\n"
        "\n"
        "  -n, --particles N     how many (4000)\n"
        "      --density D       particles in a unit of volume (0.7)\n"
        "      --temperature T   of the velocities at the beginning (1.0)\n"
        "      --cut-off R       of the potential, which is shifted to be 0 there (2.5)\n"
        "      --dt T            a time step (0.004)\n"
        "  -s, --steps N         the step to end at, counted from the beginning (1000)\n"
        "      --seed N          of the velocities (1)\n"
        "      --print N         print energies each N steps (10)\n"
        "      --series PREFIX   checkpoints are the files PREFIX.STEP.lime\n"
        "  -k, --every K         one each K steps (100)\n"
        "      --keep N          the last N stay (2)\n"
        "  -c, --continue        go on from the newest that can be read\n"
        "      --no-overlap      do not compute while a checkpoint is written\n"
        "  -o, --out C           write the last state to checkpoint C\n"
        "  -f, --force           replace C\n"
        "  -h, --help            show this text\n",
    .run = run_md,
};
