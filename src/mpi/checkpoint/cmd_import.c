/* cmd_import.c - lime-checkpoint import: convert MarDyn's old ASCII format to a checkpoint */
#include "options.h"
#include "output.h"
#include "textfile.h"

#include <stdio.h>

struct import_options {
    int64_t cells[3]; /* 0: not given */
    bool force, quiet, check;
    const char *names[2]; /* the text and the checkpoint */
};

static LemonDomain get_domain(const struct import_options *o, const struct checkpoint_header *h)
{
    LemonDomain domain = {.time = h->time, .periodic = {1, 1, 1}};
    for (int d = 0; d < 3; d++) {
        domain.length[d] = h->length[d];
        domain.cells[d] = o->cells[d];
    }
    if (o->cells[0] == 0)
        checkpoint_choose_cells(&domain, h->molecules);
    return domain;
}

static bool import_text(const struct checkpoint_world *world, const struct import_options *o,
                        struct checkpoint_textfile *t, struct checkpoint_output *out)
{
    struct checkpoint_particles p;
    double start = MPI_Wtime();
    LemonDomain domain = get_domain(o, &t->header);
    if (!checkpoint_textfile_read(world, t, &p))
        return false;
    checkpoint_print_transfer(world, "read", t->path, &p, MPI_Wtime() - start, o->quiet);
    bool good = checkpoint_output_write(world, out, t->text, &domain,
                                        checkpoint_layout(t->header.format), &p,
                                        o->check ? LEMON_CELLS_CHECK : 0, o->quiet);
    checkpoint_particles_free(&p);
    return good;
}

static int run_import(const struct checkpoint_world *world, int argc, char **argv)
{
    struct import_options o = {0};
    const struct option_rule options[] = {
        {"cells", 'c', OPTION_EXTENTS, o.cells, 1, CHECKPOINT_CELLS_MAX, .count = 3},
        {"check", 0, OPTION_FLAG, .value = &o.check},
        {"force", 'f', OPTION_FLAG, .value = &o.force},
        {"quiet", 'q', OPTION_FLAG, .value = &o.quiet},
        {NULL},
    };
    struct checkpoint_textfile t;
    struct checkpoint_output out;
    if (!checkpoint_parse_options(world, &checkpoint_import, argc, argv, options, 2, o.names))
        return CHECKPOINT_USAGE;
    if (!checkpoint_textfile_open(world, o.names[0], &t))
        return CHECKPOINT_FAILED;
    bool good = checkpoint_output_open(world, o.names[1], o.force, fileno(t.file), &out);
    if (good && !(good = import_text(world, &o, &t, &out)))
        checkpoint_output_abort(world, &out);
    checkpoint_textfile_close(&t);
    return good ? CHECKPOINT_SUCCESS : CHECKPOINT_FAILED;
}

const struct checkpoint_command checkpoint_import = {
    .name = "import",
    .arguments = "[OPTION]... TXT C",
    .summary = "MarDyn's ASCII format to a checkpoint",
    .help = "\n"
            "Reads TXT, a file of molecules in MarDyn's old ASCII format (IRV, ICRV or\n"
            "ICRVQD), and writes checkpoint C, which keeps the text's header too. Each rank\n"
            "reads a part of the lines.\n"
            "\n"
            "  -c, --cells AxBxC  cells in each dimension (about 1000 molecules a cell)\n"
            "      --check        fail if two molecules have the same id\n"
            "  -f, --force        replace C\n"
            "  -q, --quiet        print errors only\n"
            "  -h, --help         show this text\n",
    .run = run_import,
};
