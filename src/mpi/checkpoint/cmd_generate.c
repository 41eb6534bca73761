/* cmd_generate.c - lime-checkpoint generate: particles by a seed */
#include "domain.h"
#include "header.h"
#include "options.h"
#include "place.h"
#include "progressbar.h"
#include "show.h"
#include "table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum whole { /* which rank gives what */
             WHOLE_REGULAR,
             WHOLE_KD,
             WHOLE_NONE,
};

static const char *const whole_names[] = {"regular", "kd", "none", NULL};

struct generate {
    struct checkpoint_making making;
    int64_t seed;
    int format, distribution, whole; /* words */
    double density, length[3];       /* 0: not given */
    int64_t cells[3];                /* likewise */
    bool check, force, quiet;
    const char *to;
};

static LemonDomain domain_of(const struct generate *o)
{
    LemonDomain domain = {.periodic = {1, 1, 1}};
    for (int d = 0; d < 3; d++) {
        domain.length[d] = o->making.length[d];
        domain.cells[d] = o->cells[d];
    }
    if (o->cells[0] == 0)
        checkpoint_cells_choose(&domain, o->making.particles);
    return domain;
}

/* ---- which are ours ---- */

/* Rank r makes those from here on, if it does not matter which. */
static int64_t share(const struct checkpoint_world *world, int64_t particles, int rank)
{
    return (int64_t)((__int128)particles * rank / world->ranks);
}

static int64_t cell_of(const LemonDomain *domain, const double position[3])
{
    int64_t number = 0;
    for (int d = 0; d < 3; d++) {
        double at = position[d] / domain->length[d] * (double)domain->cells[d];
        int64_t i = (int64_t)at;
        number = number * domain->cells[d] + (i < domain->cells[d] ? i : domain->cells[d] - 1);
    }
    return number;
}

/* How many there are in each cell, counted by all ranks; one more or less at a face makes no
 * difference to a k-d tree. */
static void count_cells(const struct checkpoint_world *world, const struct generate *o,
                        const LemonDomain *domain, LemonCell *cell, int64_t *count,
                        int64_t cells)
{
    const int64_t piece = 1 << 20; /* MPI counts by int */
    int64_t end = share(world, o->making.particles, world->rank + 1);
    for (int64_t i = share(world, o->making.particles, world->rank); i < end; i++) {
        double position[3];
        checkpoint_place(&o->making, i, position);
        count[cell_of(domain, position)]++;
    }
    for (int64_t i = 0; i < cells; i += piece)
        MPI_Allreduce(MPI_IN_PLACE, count + i, (int)(cells - i < piece ? cells - i : piece),
                      MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int64_t i = 0; i < cells; i++)
        cell[i].count = count[i];
}

/* False, after a message: there is no memory. */
static bool balance(const struct checkpoint_world *world, const struct generate *o,
                    const LemonDomain *domain, double lower[3], double upper[3], int *code)
{
    int64_t cells = domain->cells[0] * domain->cells[1] * domain->cells[2];
    LemonCell *cell = calloc((size_t)cells, sizeof *cell);
    int64_t *count = calloc((size_t)cells, sizeof *count);
    bool good = checkpoint_report(world, o->to, cell && count ? "" : "no memory for the cells");
    if (good) {
        const LemonCells all = {
            .domain = *domain, .particles = o->making.particles, .cell = cell};
        count_cells(world, o, domain, cell, count, cells);
        *code = lemonBalancedBox(&all, world->ranks, world->rank, lower, upper);
    }
    free(cell);
    free(count);
    return good;
}

/* ---- make them ---- */

static bool is_in(const double position[3], const double lower[3], const double upper[3])
{
    for (int d = 0; d < 3; d++)
        if (position[d] < lower[d] || position[d] >= upper[d])
            return false;
    return true;
}

/* Of all particles those in the box: what another rank makes is not asked for. */
static bool make(const struct generate *o, int64_t first, int64_t end, const double lower[3],
                 const double upper[3], struct checkpoint_particles *p)
{
    const struct checkpoint_making *m = &o->making;
    *p = (struct checkpoint_particles){.bytes = checkpoint_particle(m->format)->bytes};
    for (int64_t i = first; i < end; i++) {
        double position[3];
        checkpoint_place(m, i, position);
        if (is_in(position, lower, upper)) {
            void *place = checkpoint_particles_add(p);
            if (!place)
                return false;
            checkpoint_make(m, i, position, place);
        }
        if (i % 1024 == 0)
            checkpoint_progress_to(i - first);
    }
    return true;
}

static bool make_share(const struct checkpoint_world *world, const struct generate *o,
                       const LemonDomain *domain, struct checkpoint_particles *p)
{
    double lower[3] = {0, 0, 0}, upper[3];
    int64_t first = 0, end = o->making.particles;
    int code = LEMON_SUCCESS;
    memcpy(upper, domain->length, sizeof upper);
    if (o->whole == WHOLE_REGULAR)
        code = lemonRegularBox(domain, NULL, world->ranks, world->rank, lower, upper);
    else if (o->whole == WHOLE_KD && !balance(world, o, domain, lower, upper, &code))
        return false;
    MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!checkpoint_lemon(world, o->to, "decompose", code))
        return false;
    if (o->whole == WHOLE_NONE) {
        first = share(world, end, world->rank);
        end = share(world, end, world->rank + 1);
    }
    checkpoint_progress_begin(world, "make", end - first, o->quiet);
    bool good = make(o, first, end, lower, upper, p);
    checkpoint_progress_end();
    if (checkpoint_report(world, o->to, good ? "" : "no memory"))
        return true;
    checkpoint_particles_free(p);
    return false;
}

static bool generate(const struct checkpoint_world *world, const struct generate *o,
                     struct checkpoint_output *out)
{
    const struct checkpoint_making *m = &o->making;
    struct checkpoint_particles p;
    LemonDomain domain = domain_of(o);
    if (!make_share(world, o, &domain, &p))
        return false;
    char *header =
        checkpoint_header_make(&domain, m->temperature, m->components, m->particles, m->format);
    bool good =
        checkpoint_report(world, o->to, header ? "" : "no memory") &&
        checkpoint_write_shown(world, out, header, &domain, checkpoint_particle(m->format), &p,
                               o->check ? LEMON_CELLS_CHECK : 0, o->quiet);
    free(header);
    checkpoint_particles_free(&p);
    return good;
}

/* ---- the command line ---- */

/* What follows from what was given. */
static void resolve(struct generate *o)
{
    struct checkpoint_making *m = &o->making;
    double density = o->density > 0 ? o->density : 0.5;
    double length = cbrt((m->particles > 0 ? (double)m->particles : 1) / density);
    for (int d = 0; d < 3; d++)
        m->length[d] = o->length[0] > 0 ? o->length[d] : length;
    m->seed = (uint64_t)o->seed;
    m->format = (enum checkpoint_format)o->format;
    m->distribution = (enum checkpoint_distribution)o->distribution;
    checkpoint_place_set(m);
}

static int take_options(const struct checkpoint_world *world, int argc, char **argv,
                        struct generate *o)
{
    struct checkpoint_making *m = &o->making;
    const struct checkpoint_option options[] = {
        {"particles", 'n', CHECKPOINT_NUMBER, &m->particles, 0, 1e15, NULL},
        {"out", 'o', CHECKPOINT_TEXT, &o->to, 0, 0, NULL},
        {"seed", 's', CHECKPOINT_NUMBER, &o->seed, 0, 0x1p62, NULL},
        {"format", 0, CHECKPOINT_WORD, &o->format, 0, 0, checkpoint_format_names},
        {"distribution", 0, CHECKPOINT_WORD, &o->distribution, 0, 0,
         checkpoint_distribution_names},
        {"density", 0, CHECKPOINT_REAL, &o->density, 1e-12, 1e12, NULL},
        {"length", 'l', CHECKPOINT_REALS, o->length, 1e-12, 1e12, NULL},
        {"components", 0, CHECKPOINT_NUMBER, &m->components, 1, 100, NULL},
        {"temperature", 't', CHECKPOINT_REAL, &m->temperature, 0, 1e12, NULL},
        {"cells", 'c', CHECKPOINT_EXTENTS, o->cells, 1, CHECKPOINT_CELLS_MAX, NULL},
        {"decomposition", 'd', CHECKPOINT_WORD, &o->whole, 0, 0, whole_names},
        {"check", 0, CHECKPOINT_FLAG, &o->check, 0, 0, NULL},
        {"force", 'f', CHECKPOINT_FLAG, &o->force, 0, 0, NULL},
        {"quiet", 'q', CHECKPOINT_FLAG, &o->quiet, 0, 0, NULL},
    };
    const struct checkpoint_command *me = &checkpoint_generate;
    if (!checkpoint_options(world, me, argc, argv, options, sizeof options / sizeof options[0],
                            0, NULL))
        return CHECKPOINT_USAGE;
    if (m->particles < 0)
        return checkpoint_misuse(world, me, "no --particles");
    if (!o->to)
        return checkpoint_misuse(world, me, "no --out");
    if (o->density > 0 && o->length[0] > 0)
        return checkpoint_misuse(world, me, "give one of --density and --length");
    if (m->components > 1 && o->format == CHECKPOINT_IRV)
        return checkpoint_misuse(world, me, "IRV has one component");
    if ((double)o->cells[0] * (double)o->cells[1] * (double)o->cells[2] > 0x1p40)
        return checkpoint_misuse(world, me, "more than 2^40 cells");
    resolve(o);
    return CHECKPOINT_GOOD;
}

static int run(const struct checkpoint_world *world, int argc, char **argv)
{
    struct generate o = {.making = {.particles = -1, .temperature = 1, .components = 1},
                         .seed = 1};
    struct checkpoint_output out;
    int status = take_options(world, argc, argv, &o);
    if (status != CHECKPOINT_GOOD)
        return status;
    bool good = checkpoint_output_open(world, o.to, o.force, -1, &out);
    if (good && !(good = generate(world, &o, &out)))
        checkpoint_output_drop(world, &out);
    return good ? CHECKPOINT_GOOD : CHECKPOINT_FAILED;
}

const struct checkpoint_command checkpoint_generate = {
    .name = "generate",
    .arguments = "[OPTION]... --particles N --out C",
    .summary = "particles by a seed",
    .help = "\n"
            "Writes checkpoint C of N particles in a periodic domain. They follow from the\n"
            "seed, whatever the number of ranks. Defaults are in parentheses; k, M and G are\n"
            "powers of 1000. Masses and Lennard-Jones parameters are 1.\n"
            "\n"
            "  -n, --particles N       how many\n"
            "  -o, --out C             what to write\n"
            "  -s, --seed N            other particles (1)\n"
            "      --format FORMAT     ICRV, ICRVQD or IRV: what is in a particle (ICRV)\n"
            "      --distribution uniform|lattice|cluster\n"
            "                          anywhere; on a cubic lattice; most of them in four\n"
            "                          droplets (uniform)\n"
            "      --density D         particles per volume, of a cube (0.5)\n"
            "  -l, --length AxBxC      of the domain\n"
            "      --components N      kinds of particles (1)\n"
            "  -t, --temperature T     of the velocities (1)\n"
            "  -c, --cells AxBxC       divide the domain so (about 1000 particles a cell)\n"
            "  -d, --decomposition regular|kd|none\n"
            "                          which ranks give which particles to the library: those\n"
            "                          in equal boxes, in balanced ones, any (regular)\n"
            "      --check             let the library look for ids that are there twice\n"
            "  -f, --force             replace C\n"
            "  -q, --quiet             print errors only\n"
            "  -h, --help              show this text\n",
    .run = run,
};
