/* cmd_compare.c - lime-checkpoint compare: compare the particles of two checkpoints */
#include "molecule.h"
#include "options.h"
#include "print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { /* exit statuses */
       SAME = 0,
       DIFFERENT = 1,
       TROUBLE = 2,
};

/* Returns NULL if the particles can be compared, else what differs: "fields" or "domains". */
static const char *compare_shapes(const LemonCells *a, const LemonCells *b)
{
    if (!checkpoint_layouts_equal(&a->particle, &b->particle))
        return "fields";
    if (memcmp(a->domain.origin, b->domain.origin, sizeof a->domain.origin) != 0 ||
        memcmp(a->domain.length, b->domain.length, sizeof a->domain.length) != 0)
        return "domains";
    for (int d = 0; d < 3; d++)
        if (!a->domain.periodic[d] != !b->domain.periodic[d])
            return "domains";
    return NULL;
}

/* Reads the same box of both checkpoints. The boxes of all ranks are balanced for the first
 * checkpoint. The caller frees both sets. */
static bool read_both(const struct checkpoint_world *world, struct checkpoint_input in[2],
                      struct checkpoint_particles sets[2])
{
    double lower[3], upper[3];
    int code = lemonBalancedBox(in[0].cells, world->ranks, world->rank, lower, upper);
    MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!checkpoint_check_code(world, in[0].path, "decompose", code))
        return false;
    for (int i = 0; i < 2; i++)
        if (!checkpoint_input_read_box(world, &in[i], lower, upper, 0, &sets[i])) {
            if (i == 1)
                checkpoint_particles_free(&sets[0]);
            return false;
        }
    return true;
}

/* Sets m->only, on all ranks, to the totals. Adds the ids of all ranks to m->id on rank 0. */
static void gather_matches(const struct checkpoint_world *world, struct checkpoint_match *m)
{
    struct checkpoint_match *all = checkpoint_allocate(NULL, world->ranks, sizeof *all);
    MPI_Gather(m, sizeof *m, MPI_BYTE, all, sizeof *m, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, m->only, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int r = 1; r < world->ranks && world->rank == 0; r++)
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < all[r].ids[side]; i++)
                checkpoint_match_add(m, side, all[r].id[side][i]);
    free(all);
}

static void print_matches(const struct checkpoint_input in[2], const struct checkpoint_match *m)
{
    char path[CHECKPOINT_NAME_BYTES];
    for (int side = 0; side < 2; side++) {
        if (m->only[side] == 0)
            continue;
        printf("only in %s: %lld particle%s", checkpoint_printable(in[side].path, path),
               (long long)m->only[side], m->only[side] == 1 ? "" : "s");
        for (int i = 0; i < m->ids[side]; i++)
            printf("%s%llu", i == 0 ? ", id " : ", ", (unsigned long long)m->id[side][i]);
        printf("%s\n", m->only[side] > m->ids[side] && m->ids[side] > 0 ? ", ..." : "");
    }
}

/* Returns an exit status, the same on all ranks. Collective. */
static int compare_inputs(const struct checkpoint_world *world, struct checkpoint_input in[2],
                          bool quiet)
{
    struct checkpoint_particles sets[2];
    struct checkpoint_match m;
    char a[CHECKPOINT_NAME_BYTES], b[CHECKPOINT_NAME_BYTES];
    const char *shape = compare_shapes(in[0].cells, in[1].cells);
    checkpoint_printable(in[0].path, a);
    checkpoint_printable(in[1].path, b);
    if (shape && !quiet && world->rank == 0)
        printf("%s and %s: not the same %s\n", a, b, shape);
    if (shape)
        return DIFFERENT;
    if (!read_both(world, in, sets))
        return TROUBLE;
    checkpoint_match(sets, checkpoint_find_field(&in[0].cells->particle, "id"), &m);
    checkpoint_particles_free(&sets[0]);
    checkpoint_particles_free(&sets[1]);
    gather_matches(world, &m);
    if (m.only[0] == 0 && m.only[1] == 0)
        return SAME;
    if (world->rank == 0 && !quiet)
        print_matches(in, &m);
    return DIFFERENT;
}

static int run_compare(const struct checkpoint_world *world, int argc, char **argv)
{
    bool quiet = false;
    const char *names[2];
    const struct option_rule options[] = {
        {"quiet", 'q', OPTION_FLAG, .value = &quiet},
        {NULL},
    };
    struct checkpoint_input in[2];
    if (!checkpoint_parse_options(world, &checkpoint_compare, argc, argv, options, 2, names) ||
        !checkpoint_input_open(world, names[0], &in[0]))
        return TROUBLE;
    int status = TROUBLE;
    if (checkpoint_input_open(world, names[1], &in[1])) {
        status = compare_inputs(world, in, quiet);
        checkpoint_input_close(&in[1]);
    }
    checkpoint_input_close(&in[0]);
    return status;
}

const struct checkpoint_command checkpoint_compare = {
    .name = "compare",
    .arguments = "[OPTION]... C C2",
    .summary = "whether two have the same particles",
    .help = "\n"
            "Compares the particles of checkpoints C and C2, in whatever order and cells, bit\n"
            "for bit. Says how many are only in one of them, and the ids of the first ones.\n"
            "Step and time are not compared.\n"
            "\n"
            "  -q, --quiet  print errors only\n"
            "  -h, --help   show this text\n"
            "\n"
            "Exits with 0 if they are the same, 1 if not, 2 if something failed.\n",
    .run = run_compare,
};
