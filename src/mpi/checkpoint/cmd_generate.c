/* cmd_generate.c - lime-checkpoint generate: make particles from a seed */
#include "generator.h"
#include "mardyn.h"
#include "options.h"
#include "output.h"

#include <math.h>
#include <stdlib.h>

struct generate_options {
    struct checkpoint_generator generator;
    int64_t seed;
    int format, distribution;  /* values of generator's enums, stored by OPTION_WORD */
    double density, length[3]; /* 0: not given */
    int64_t cells[3];          /* 0: not given */
    bool force, quiet;
    const char *to;
};

static LemonDomain create_domain(const struct generate_options *o)
{
    LemonDomain domain = {.periodic = {1, 1, 1}};
    for (int d = 0; d < 3; d++) {
        domain.length[d] = o->generator.length[d];
        domain.cells[d] = o->cells[d];
    }
    if (o->cells[0] == 0)
        checkpoint_choose_cells(&domain, o->generator.particles);
    return domain;
}

static bool generate_particles(const struct checkpoint_world *world, struct generate_options *o,
                               struct checkpoint_output *out)
{
    struct checkpoint_generator *m = &o->generator;
    struct checkpoint_particles p;
    LemonDomain domain = create_domain(o);
    checkpoint_generate_particles(m, world->rank, world->ranks, &p);
    char *header = checkpoint_header_create(&domain, m->temperature, m->components,
                                            m->particles, m->format);
    bool good = checkpoint_output_write(world, out, header, &domain,
                                        checkpoint_layout(m->format), &p, 0, o->quiet);
    free(header);
    checkpoint_particles_free(&p);
    return good;
}

/* ---- the command line ---- */

/* Completes o->generator from the options that were given, and defaults. */
static void set_defaults(struct generate_options *o)
{
    struct checkpoint_generator *m = &o->generator;
    double density = o->density > 0 ? o->density : 0.5;
    double length = cbrt((m->particles > 0 ? (double)m->particles : 1) / density);
    for (int d = 0; d < 3; d++)
        m->length[d] = o->length[0] > 0 ? o->length[d] : length;
    m->seed = (uint64_t)o->seed;
    m->format = (enum checkpoint_format)o->format;
    m->distribution = (enum checkpoint_distribution)o->distribution;
}

static int parse_options(const struct checkpoint_world *world, int argc, char **argv,
                         struct generate_options *o)
{
    struct checkpoint_generator *m = &o->generator;
    const struct option_rule options[] = {
        {"particles", 'n', OPTION_COUNT, &m->particles, 0, .most = 1e15},
        {"out", 'o', OPTION_TEXT, .value = &o->to},
        {"seed", 's', OPTION_COUNT, &o->seed, 0, .most = 0x1p62},
        {"format", 0, OPTION_WORD, &o->format, .words = checkpoint_format_names},
        {"distribution", 0, OPTION_WORD, &o->distribution,
         .words = checkpoint_distribution_names},
        {"density", 0, OPTION_REAL, &o->density, 1e-12, .most = 1e12},
        {"length", 'l', OPTION_REALS, o->length, 1e-12, 1e12, .count = 3},
        {"components", 0, OPTION_COUNT, &m->components, 1, .most = 100},
        {"temperature", 't', OPTION_REAL, &m->temperature, 0, .most = 1e12},
        {"cells", 'c', OPTION_EXTENTS, o->cells, 1, CHECKPOINT_CELLS_MAX, .count = 3},
        {"force", 'f', OPTION_FLAG, .value = &o->force},
        {"quiet", 'q', OPTION_FLAG, .value = &o->quiet},
        {NULL},
    };
    const struct checkpoint_command *command = &checkpoint_generate;
    if (!checkpoint_parse_options(world, command, argc, argv, options, 0, NULL))
        return CHECKPOINT_USAGE;
    if (m->particles < 0)
        return checkpoint_usage_error(world, command, "--particles is required");
    if (!o->to)
        return checkpoint_usage_error(world, command, "--out is required");
    if (o->density > 0 && o->length[0] > 0)
        return checkpoint_usage_error(world, command, "give one of --density and --length");
    if (m->components > 1 && o->format == CHECKPOINT_IRV)
        return checkpoint_usage_error(world, command, "IRV has one component");
    if ((double)o->cells[0] * (double)o->cells[1] * (double)o->cells[2] > 0x1p40)
        return checkpoint_usage_error(world, command, "more than 2^40 cells");
    set_defaults(o);
    return CHECKPOINT_SUCCESS;
}

static int run_generate(const struct checkpoint_world *world, int argc, char **argv)
{
    struct generate_options o = {
        .generator = {.particles = -1, .temperature = 1, .components = 1}, .seed = 1};
    struct checkpoint_output out;
    int status = parse_options(world, argc, argv, &o);
    if (status != CHECKPOINT_SUCCESS)
        return status;
    bool good = checkpoint_output_open(world, o.to, o.force, -1, &out);
    if (good && !(good = generate_particles(world, &o, &out)))
        checkpoint_output_abort(world, &out);
    return good ? CHECKPOINT_SUCCESS : CHECKPOINT_FAILED;
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
            "  -c, --cells AxBxC       cells in each dimension (about 1000 particles a cell)\n"
            "  -f, --force             replace C\n"
            "  -q, --quiet             print errors only\n"
            "  -h, --help              show this text\n",
    .run = run_generate,
};
