/* cmd_restart.c - lime-checkpoint restart: read a checkpoint and write it again */
#include "options.h"
#include "output.h"

struct options {
    int decomposition;
    int64_t cells[3]; /* 0: as in the input */
    bool force, quiet;
    const char *to, *from;
};

static bool rewrite(const struct checkpoint_world *world, const struct options *o,
                    struct checkpoint_input *in, struct checkpoint_output *out)
{
    double start = MPI_Wtime();
    struct checkpoint_particles p;
    LemonDomain domain = in->cells->domain;
    const LemonParticle *particle = &in->cells->particle;
    bool has_id = checkpoint_find_field(particle, "id") != NULL;
    for (int d = 0; d < 3; d++)
        if (o->cells[0] > 0)
            domain.cells[d] = o->cells[d];
    if (!checkpoint_input_read(world, in, (enum checkpoint_decomposition)o->decomposition,
                               LEMON_CELLS_CHECK, &p))
        return false;
    checkpoint_print_transfer(world, "read", o->from, &p, MPI_Wtime() - start, o->quiet);
    bool good = checkpoint_output_write(world, out, in->header, &domain, particle, &p,
                                        has_id ? LEMON_CELLS_CHECK : 0, o->quiet);
    checkpoint_particles_free(&p);
    return good;
}

static int run_restart(const struct checkpoint_world *world, int argc, char **argv)
{
    struct options o = {.decomposition = CHECKPOINT_REGULAR};
    const struct option_rule options[] = {
        {"decomposition", 'd', OPTION_WORD, &o.decomposition,
         .words = checkpoint_decomposition_names},
        {"out", 'o', OPTION_TEXT, .value = &o.to},
        {"cells", 'c', OPTION_EXTENTS, o.cells, 1, CHECKPOINT_CELLS_MAX, .count = 3},
        {"force", 'f', OPTION_FLAG, .value = &o.force},
        {"quiet", 'q', OPTION_FLAG, .value = &o.quiet},
        {NULL},
    };
    struct checkpoint_input in;
    struct checkpoint_output out;
    if (!checkpoint_parse_options(world, &checkpoint_restart, argc, argv, options, 1, &o.from))
        return CHECKPOINT_USAGE;
    if (!o.to)
        return checkpoint_usage_error(world, &checkpoint_restart, "--out is required");
    if (!checkpoint_input_open(world, o.from, &in))
        return CHECKPOINT_FAILED;
    bool good = checkpoint_output_open(world, o.to, o.force, in.fd, &out);
    if (good && !(good = rewrite(world, &o, &in, &out)))
        checkpoint_output_abort(world, &out);
    checkpoint_input_close(&in);
    return good ? CHECKPOINT_SUCCESS : CHECKPOINT_FAILED;
}

const struct checkpoint_command checkpoint_restart = {
    .name = "restart",
    .arguments = "[OPTION]... --out C2 C",
    .summary = "read a checkpoint and write it again, as a test",
    .help = "\n"
            "Reads checkpoint C, each rank its part of the domain, and writes what the ranks\n"
            "have as checkpoint C2. Checks that each particle came to one rank exactly, and\n"
            "that no two have the same id.\n"
            "\n"
            "  -d, --decomposition regular|kd\n"
            "                     equal boxes, or boxes with about equal particle numbers\n"
            "                     (regular)\n"
            "  -o, --out C2       what to write\n"
            "  -c, --cells AxBxC  cells in each dimension (default: as in checkpoint C)\n"
            "  -f, --force        replace C2\n"
            "  -q, --quiet        print errors only\n"
            "  -h, --help         show this text\n",
    .run = run_restart,
};
