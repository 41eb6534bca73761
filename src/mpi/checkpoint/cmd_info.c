/* cmd_info.c - lime-checkpoint info: describe a checkpoint and how ranks would share it */
#include "options.h"
#include "print.h"
#include "text.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

enum {
    RANKS_MAX = 1 << 24,
    DECOMPOSITIONS = 2,
};

struct facts {
    const struct checkpoint_input *in;
    int64_t cells, empty, min, max; /* cells, empty cells; least and most particles in a cell */
    struct checkpoint_balance balance[DECOMPOSITIONS];
};

static void count_cells(const LemonCells *cells, struct facts *f)
{
    const int64_t *n = cells->domain.cells;
    f->cells = n[0] * n[1] * n[2];
    f->min = cells->cell[0].count;
    for (int64_t i = 0; i < f->cells; i++) {
        int64_t count = cells->cell[i].count;
        f->empty += count == 0;
        f->min = count < f->min ? count : f->min;
        f->max = count > f->max ? count : f->max;
    }
}

/* ---- text ---- */

static void print_domain(const LemonDomain *domain)
{
    printf("  domain      ");
    for (int d = 0; d < 3; d++)
        printf("%s[%g, %g)%s", d ? " x " : "", domain->origin[d],
               domain->origin[d] + domain->length[d], domain->periodic[d] ? " periodic" : "");
    putchar('\n');
}

static void print_fields(const LemonParticle *particle)
{
    for (int i = 0; i < particle->fields; i++) {
        const LemonField *f = &particle->field[i];
        printf("  %-10s  %-16s %s", i ? "" : "fields", f->name, checkpoint_type_name(f->type));
        if (f->count > 1)
            printf(" x %d", f->count);
        printf(", at byte %lld\n", (long long)f->offset);
    }
}

static void print_balance(const struct facts *f)
{
    for (int i = 0; i < DECOMPOSITIONS; i++) {
        const struct checkpoint_balance *b = &f->balance[i];
        printf("  %-10s  %-8s %.0f to %.0f particles a rank", i ? "" : "balance",
               checkpoint_decomposition_names[i], b->min, b->max);
        if (b->mean > 0)
            printf(", the most %.2f times the mean", b->max / b->mean);
        if (b->empty)
            printf(", %d without", b->empty);
        printf("%s\n", i == CHECKPOINT_REGULAR ? " (about)" : "");
    }
}

static void print_facts(const struct facts *f)
{
    const LemonCells *c = f->in->cells;
    const int64_t *n = c->domain.cells;
    char path[CHECKPOINT_NAME_BYTES], size[LIMEFILE_SIZE_CHARS];
    printf("%s\n", checkpoint_printable(f->in->path, path));
    printf("  particles   %lld of %lld bytes, %s\n", (long long)c->particles,
           (long long)c->particle.bytes,
           limefile_format_bytes((uint64_t)c->particles * (uint64_t)c->particle.bytes, size));
    printf("  step        %lld\n  time        %.17g\n", (long long)c->domain.step,
           c->domain.time);
    print_domain(&c->domain);
    printf("  cells       %lld x %lld x %lld = %lld, %lld empty\n", (long long)n[0],
           (long long)n[1], (long long)n[2], (long long)f->cells, (long long)f->empty);
    printf("  in a cell   %lld to %lld particles, mean %.1f\n", (long long)f->min,
           (long long)f->max, (double)c->particles / (double)f->cells);
    print_fields(&c->particle);
    printf("  header      %s\n", f->in->header ? "MarDyn's" : "none");
    printf("  ranks       %d\n", f->balance[0].ranks);
    print_balance(f);
}

/* ---- JSON ---- */

static json_t *json_domain(const LemonDomain *domain)
{
    json_t *origin = json_array(), *length = json_array(), *periodic = json_array(),
           *cells = json_array();
    for (int d = 0; d < 3; d++) {
        json_array_append_new(origin, json_real(domain->origin[d]));
        json_array_append_new(length, json_real(domain->length[d]));
        json_array_append_new(periodic, json_boolean(domain->periodic[d]));
        json_array_append_new(cells, json_integer(domain->cells[d]));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "origin", origin, "length", length, "periodic",
                     periodic, "cells", cells);
}

static json_t *json_fields(const LemonParticle *particle)
{
    json_t *all = json_array();
    for (int i = 0; i < particle->fields; i++) {
        const LemonField *f = &particle->field[i];
        json_array_append_new(all, json_pack("{s:s, s:s, s:i, s:I}", "name", f->name, "type",
                                             checkpoint_type_name(f->type), "count", f->count,
                                             "offset", (json_int_t)f->offset));
    }
    return all;
}

static json_t *json_balance(const struct checkpoint_balance *b, bool exact)
{
    return json_pack("{s:i, s:f, s:f, s:f, s:i, s:b}", "ranks", b->ranks, "fewest", b->min,
                     "mean", b->mean, "most", b->max, "empty", b->empty, "exact", (int)exact);
}

/* JSON cannot express a number that is not finite. */
static json_t *json_time(double time)
{
    return isfinite(time) ? json_real(time) : json_null();
}

/* Returns NULL if out of memory. */
static json_t *json_facts(const struct facts *f)
{
    const LemonCells *c = f->in->cells;
    char path[CHECKPOINT_NAME_BYTES];
    json_t *all = json_pack(
        "{s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:b}", "file",
        checkpoint_printable(f->in->path, path), "particles", (json_int_t)c->particles,
        "particle_bytes", (json_int_t)c->particle.bytes, "step", (json_int_t)c->domain.step,
        "time", json_time(c->domain.time), "domain", json_domain(&c->domain), "fields",
        json_fields(&c->particle), "header", (int)(f->in->header != NULL));
    json_t *cells = json_pack("{s:I, s:I, s:I, s:I}", "all", (json_int_t)f->cells, "empty",
                              (json_int_t)f->empty, "fewest", (json_int_t)f->min, "most",
                              (json_int_t)f->max);
    if (json_object_set_new(all, "cells", cells) == 0 &&
        json_object_set_new(all, "regular",
                            json_balance(&f->balance[CHECKPOINT_REGULAR], false)) == 0 &&
        json_object_set_new(all, "kd", json_balance(&f->balance[CHECKPOINT_KD], true)) == 0)
        return all;
    json_decref(all);
    return NULL;
}

/* Returns false after a message if out of memory. main() checks stdout for write errors. */
static bool print_json(const struct facts *f)
{
    json_t *facts = json_facts(f);
    if (!facts)
        checkpoint_log("%s: out of memory", f->in->path);
    else if (json_dumpf(facts, stdout, JSON_INDENT(2)) == 0)
        putchar('\n');
    json_decref(facts);
    return facts != NULL;
}

static int run_info(const struct checkpoint_world *world, int argc, char **argv)
{
    int64_t ranks = world->ranks;
    bool json = false;
    const char *path;
    const struct option_rule options[] = {
        {"ranks", 'n', OPTION_COUNT, &ranks, 1, .most = RANKS_MAX},
        {"json", 'j', OPTION_FLAG, .value = &json},
        {NULL},
    };
    struct checkpoint_input in;
    if (!checkpoint_parse_options(world, &checkpoint_info, argc, argv, options, 1, &path))
        return CHECKPOINT_USAGE;
    if (!checkpoint_input_open(world, path, &in))
        return CHECKPOINT_FAILED;
    struct facts f = {.in = &in};
    bool good = true;
    count_cells(in.cells, &f);
    for (int i = 0; i < DECOMPOSITIONS && good; i++) {
        int code = checkpoint_balance(world, in.cells, (int)ranks,
                                      (enum checkpoint_decomposition)i, &f.balance[i]);
        good = checkpoint_check_code(world, path, "decompose", code);
    }
    if (good && world->rank == 0 && json)
        good = print_json(&f);
    else if (good && world->rank == 0)
        print_facts(&f);
    checkpoint_input_close(&in);
    return checkpoint_broadcast(good) ? CHECKPOINT_SUCCESS : CHECKPOINT_FAILED;
}

const struct checkpoint_command checkpoint_info = {
    .name = "info",
    .arguments = "[OPTION]... C",
    .summary = "what is in it, and how ranks would share it",
    .help = "\n"
            "Shows domain, cells, fields and step of checkpoint C, and how many particles\n"
            "each of N ranks would have with each decomposition. Only the index is read.\n"
            "\n"
            "  -n, --ranks N   how many ranks (those that run)\n"
            "  -j, --json      as JSON\n"
            "  -h, --help      show this text\n",
    .run = run_info,
};
