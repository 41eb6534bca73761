/* options.c - the command line of lime-bench */
#include "options.h"
#include "optionerror.h"
#include "size.h"

#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (INT64_C(1) << 60)

enum kind {
    A_FLAG,   /* bool: true */
    NO_FLAG,  /* bool: false */
    A_SIZE,   /* int64_t */
    A_NUMBER, /* int64_t */
    EXTENTS,  /* int[BENCH_DIMS] */
    SECONDS,  /* double */
    A_TEXT,   /* const char * */
    ITS_OWN,  /* a function */
};

typedef const char *take_fn(struct bench_options *, char *value);

struct rule {
    const char *name;
    char letter;
    unsigned commands;
    enum kind kind;
    size_t where; /* offset in struct bench_options */
    int64_t least, most;
    const char *expected;
    take_fn *take;
};

/* ---- options that are more than a value; they return why not, or NULL ---- */

static const char *add_backend(struct bench_options *o, const struct bench_backend *backend)
{
    for (int i = 0; i < o->backend_count; i++)
        if (o->backends[i] == backend)
            return NULL;
    if (o->backend_count == BENCH_BACKENDS_MAX)
        return "too many back ends";
    o->backends[o->backend_count++] = backend;
    return NULL;
}

static const char *take_names(struct bench_options *o, const struct bench_backend *const *list,
                              char *value)
{
    for (char *rest, *name = strtok_r(value, ",", &rest); name;
         name = strtok_r(NULL, ",", &rest)) {
        bool all = strcmp(name, "all") == 0;
        for (int i = 0; all && list[i]; i++)
            add_backend(o, list[i]);
        const struct bench_backend *found = bench_backend_find(list, name);
        if (!found && !all)
            return list == bench_backends ? "no such back end; lime-bench --list shows them"
                                          : "no such way; lime-bench --list shows them";
        if (found)
            add_backend(o, found);
    }
    return o->backend_count ? NULL : "no name";
}

static const char *take_backends(struct bench_options *o, char *value)
{
    return take_names(o, bench_backends, value);
}

static const char *take_ways(struct bench_options *o, char *value)
{
    return take_names(o, bench_cells_ways, value);
}

static const char *take_cells(struct bench_options *o, char *value)
{
    int64_t all = 1;
    bool good = bench_extents_parse(value, BENCH_SPACE, o->cells.cells);
    for (int d = 0; d < BENCH_SPACE && good; d++)
        good = !__builtin_mul_overflow(all, o->cells.cells[d], &all) && all <= BENCH_CELLS_MAX;
    return good ? NULL : "expected three numbers, such as 16x16x16, of 2^24 cells at most";
}

static const char *decomposition_of(const char *value, enum bench_decomposition *to)
{
    bool kd = strcmp(value, "kd") == 0;
    *to = kd ? BENCH_KD : BENCH_REGULAR;
    return kd || strcmp(value, "regular") == 0 ? NULL : "the decompositions are regular and kd";
}

static const char *take_decomposition(struct bench_options *o, char *value)
{
    return decomposition_of(value, &o->cells.writing);
}

static const char *take_read_decomposition(struct bench_options *o, char *value)
{
    o->cells.reading_given = true;
    return decomposition_of(value, &o->cells.reading);
}

static const char *take_distribution(struct bench_options *o, char *value)
{
    bool cluster = strcmp(value, "cluster") == 0;
    o->cells.distribution = cluster ? BENCH_CLUSTER : BENCH_UNIFORM;
    return cluster || strcmp(value, "uniform") == 0
               ? NULL
               : "the distributions are uniform and cluster";
}

static const char *take_pattern(struct bench_options *o, char *value)
{
    return bench_pattern_find(value, &o->pattern)
               ? NULL
               : "the patterns are disjoint, interleaved, lattice and random";
}

static const char *take_operations(struct bench_options *o, char *value)
{
    o->writes = o->reads = false;
    for (char *rest, *name = strtok_r(value, ",", &rest); name;
         name = strtok_r(NULL, ",", &rest)) {
        if (strcmp(name, "write") == 0)
            o->writes = true;
        else if (strcmp(name, "read") == 0)
            o->reads = true;
        else
            return "the operations are write and read";
    }
    return o->writes || o->reads ? NULL : "the operations are write and read";
}

static const char *take_mode(struct bench_options *o, enum bench_mode mode)
{
    bool other = o->task.mode != BENCH_ANY_MODE && o->task.mode != mode;
    o->task.mode = mode;
    return other ? "give one of --independent and --collective" : NULL;
}

static const char *take_independent(struct bench_options *o, char *value)
{
    (void)value;
    return take_mode(o, BENCH_INDEPENDENT);
}

static const char *take_collective(struct bench_options *o, char *value)
{
    (void)value;
    return take_mode(o, BENCH_COLLECTIVE);
}

static const char *take_shape(struct bench_options *o, char *value)
{
    if (strcmp(value, "1d") == 0)
        o->task.shape = BENCH_SHAPE_1D;
    else if (strcmp(value, "2d") == 0)
        o->task.shape = BENCH_SHAPE_2D;
    else
        return "the shapes are 1d and 2d";
    return NULL;
}

static const char *take_hint(struct bench_options *o, char *value)
{
    char *equals = strchr(value, '=');
    if (!equals || equals == value || !equals[1] || equals - value > MPI_MAX_INFO_KEY ||
        strlen(equals + 1) > MPI_MAX_INFO_VAL)
        return "a hint is KEY=VALUE";
    if (o->task.hints == BENCH_HINTS_MAX)
        return "too many hints";
    *equals = '\0';
    o->task.hint[o->task.hints++] = (struct bench_hint){value, equals + 1};
    return NULL;
}

static const char *take_job_ranks(struct bench_options *o, char *value)
{
    o->job_ranks_given = true;
    return bench_number_parse(value, 1, 4096, &o->job_ranks) ? NULL : "expected 1 to 4096";
}

static const char *take_extent(struct bench_options *o, char *value)
{
    o->extent_given = true;
    return bench_size_parse(value, 1, BENCH_MOVE_MAX, &o->task.extent)
               ? NULL
               : "expected 1 to 1G bytes";
}

/* ---- all options ---- */

#define AT(member)     offsetof(struct bench_options, member)
#define ALL            (BENCH_MEASURE | BENCH_OVERLAP | BENCH_CHECKSUM | BENCH_CELLS)
#define LATTICES       (BENCH_MEASURE | BENCH_OVERLAP | BENCH_CHECKSUM)
#define FILES          (BENCH_MEASURE | BENCH_CELLS)
#define A_BYTE_COUNT   "expected a number of bytes; k, M, G and T are units"
#define FOUR_EXTENTS   "expected four numbers, such as 32x16x16x16"
#define ONE_TO(number) "expected 1 to " #number

static const struct rule rules[] = {
    {"backend", 'b', BENCH_MEASURE, ITS_OWN, 0, 0, 0, NULL, take_backends},
    {"pattern", 'p', BENCH_MEASURE, ITS_OWN, 0, 0, 0, NULL, take_pattern},
    {"size", 0, LATTICES, A_SIZE, AT(size), 1, BYTES_MAX, A_BYTE_COUNT, NULL},
    {"block-size", 0, BENCH_MEASURE, A_SIZE, AT(block), 1, BYTES_MAX, A_BYTE_COUNT, NULL},
    {"transfer-size", 0, BENCH_MEASURE, A_SIZE, AT(transfer), 1, BENCH_MOVE_MAX,
     "expected 1 to 1G bytes", NULL},
    {"segments", 0, BENCH_MEASURE, A_NUMBER, AT(segments), 1, BYTES_MAX,
     "expected a number from 1", NULL},
    {"lattice", 0, LATTICES, EXTENTS, AT(lattice), 0, 0, FOUR_EXTENTS, NULL},
    {"grid", 0, LATTICES, EXTENTS, AT(grid), 0, 0, FOUR_EXTENTS, NULL},
    {"site-bytes", 0, LATTICES, A_SIZE, AT(site_bytes), 1, BENCH_MOVE_MAX,
     "expected 1 to 1G bytes", NULL},
    {"ways", 0, BENCH_CELLS, ITS_OWN, 0, 0, 0, NULL, take_ways},
    {"particles", 0, BENCH_CELLS, A_SIZE, AT(cells.particles), 1, INT64_C(1) << 40,
     "expected 1 to 1T", NULL},
    {"cells", 0, BENCH_CELLS, ITS_OWN, 0, 0, 0, NULL, take_cells},
    {"distribution", 0, BENCH_CELLS, ITS_OWN, 0, 0, 0, NULL, take_distribution},
    {"decomposition", 0, BENCH_CELLS, ITS_OWN, 0, 0, 0, NULL, take_decomposition},
    {"read-decomposition", 0, BENCH_CELLS, ITS_OWN, 0, 0, 0, NULL, take_read_decomposition},
    {"operations", 0, FILES, ITS_OWN, 0, 0, 0, NULL, take_operations},
    {"cold", 0, FILES, A_FLAG, AT(cold), 0, 0, NULL, NULL},
    {"cold-file", 0, ALL, A_FLAG, AT(cold_file), 0, 0, NULL, NULL},
    {"warm", 0, FILES, NO_FLAG, AT(cold), 0, 0, NULL, NULL},
    {"independent", 0, BENCH_MEASURE, ITS_OWN, 0, 0, 0, "", take_independent},
    {"collective", 0, BENCH_MEASURE, ITS_OWN, 0, 0, 0, "", take_collective},
    {"alignment", 0, FILES, A_SIZE, AT(task.alignment), 1, BENCH_MOVE_MAX,
     "expected 1 to 1G bytes", NULL},
    {"chunk", 0, BENCH_MEASURE, A_SIZE, AT(task.chunk), 1, BENCH_MOVE_MAX,
     "expected 1 to 1G bytes", NULL},
    {"unlimited", 0, BENCH_MEASURE, A_FLAG, AT(task.unlimited), 0, 0, NULL, NULL},
    {"shape", 0, BENCH_MEASURE, ITS_OWN, 0, 0, 0, NULL, take_shape},
    {"fsync", 0, FILES, A_FLAG, AT(task.fsync), 0, 0, NULL, NULL},
    {"no-fsync", 0, FILES, NO_FLAG, AT(task.fsync), 0, 0, NULL, NULL},
    {"reorder", 0, FILES, A_FLAG, AT(reorder), 0, 0, NULL, NULL},
    {"hint", 0, ALL, ITS_OWN, 0, 0, 0, NULL, take_hint},
    {"checksum", 0, BENCH_MEASURE, A_FLAG, AT(task.checksum), 0, 0, NULL, NULL},
    {"job-ranks", 0, BENCH_MEASURE, ITS_OWN, 0, 0, 0, NULL, take_job_ranks},
    {"extent-size", 0, BENCH_MEASURE, ITS_OWN, 0, 0, 0, NULL, take_extent},
    {"repetitions", 0, ALL, A_NUMBER, AT(repetitions), 1, BENCH_REPETITIONS_MAX, ONE_TO(1000),
     NULL},
    {"compute", 0, BENCH_MEASURE, SECONDS, AT(compute), 0, 0, "expected seconds", NULL},
    {"outputs", 0, BENCH_MEASURE, A_NUMBER, AT(outputs), 1, BENCH_OUTPUTS_MAX, ONE_TO(1000),
     NULL},
    {"phases", 0, BENCH_MEASURE, A_NUMBER, AT(phases), 1, 1000000, ONE_TO(1000000), NULL},
    {"seed", 0, ALL, A_NUMBER, AT(seed), 0, INT64_MAX, "expected a number from 0", NULL},
    {"keep", 0, FILES, A_FLAG, AT(keep), 0, 0, NULL, NULL},
    {"json", 0, ALL, A_TEXT, AT(json), 0, 0, NULL, NULL},
    {"force", 'f', ALL, A_FLAG, AT(force), 0, 0, NULL, NULL},
    {"quiet", 'q', ALL, A_FLAG, AT(quiet), 0, 0, NULL, NULL},
    {"list", 0, BENCH_MEASURE, A_FLAG, AT(list), 0, 0, NULL, NULL},
    {"help", 'h', ALL, A_FLAG, AT(help), 0, 0, NULL, NULL},
    {"version", 'V', ALL, A_FLAG, AT(version), 0, 0, NULL, NULL},
};

enum {
    RULES = sizeof rules / sizeof *rules,
    FIRST = 256, /* of the codes that getopt_long() gives */
};

static bool has_value(const struct rule *rule)
{
    return rule->kind != A_FLAG && rule->kind != NO_FLAG &&
           !(rule->kind == ITS_OWN && rule->expected);
}

/* Why not, or NULL. */
static const char *take(const struct rule *rule, struct bench_options *o, char *value)
{
    void *at = (char *)o + rule->where;
    bool good = true;
    switch (rule->kind) {
    case A_FLAG:
    case NO_FLAG:
        *(bool *)at = rule->kind == A_FLAG;
        break;
    case A_SIZE:
        good = bench_size_parse(value, rule->least, rule->most, at);
        break;
    case A_NUMBER:
        good = bench_number_parse(value, rule->least, rule->most, at);
        break;
    case EXTENTS:
        good = bench_extents_parse(value, BENCH_DIMS, at);
        break;
    case SECONDS:
        good = bench_seconds_parse(value, at);
        break;
    case A_TEXT:
        *(char **)at = value;
        break;
    case ITS_OWN:
        return rule->take(o, value);
    }
    return good ? NULL : rule->expected;
}

static void set_defaults(struct bench_options *o, enum bench_command command)
{
    *o = (struct bench_options){
        .command = command,
        .pattern = BENCH_LATTICE,
        .writes = true,
        .reads = true,
        .cold = true,
        .repetitions = 5,
        .outputs = 1,
        .phases = 1,
        .seed = 1,
        .job_ranks = 2,
    };
    o->cells.particles = 330000;
    o->task.fsync = true;
    o->task.extent = 4 << 20;
}

static void make_getopt_list(struct option list[RULES + 1])
{
    for (int i = 0; i < RULES; i++)
        list[i] = (struct option){rules[i].name,
                                  has_value(&rules[i]) ? required_argument : no_argument, NULL,
                                  FIRST + i};
    list[RULES] = (struct option){0};
}

/* The rule of what getopt_long() has found, or NULL. */
static const struct rule *rule_of(int found)
{
    if (found >= FIRST)
        return &rules[found - FIRST];
    for (int i = 0; i < RULES; i++)
        if (rules[i].letter && rules[i].letter == found)
            return &rules[i];
    return NULL;
}

static bool take_words(int argc, char **argv, struct bench_options *o, char *reason)
{
    static const char shorts[] = ":b:p:fqhV";
    struct option list[RULES + 1];
    make_getopt_list(list);
    opterr = 0;
    optind = 0;
    for (int found; (found = getopt_long(argc, argv, shorts, list, NULL)) != -1;) {
        const struct rule *rule = rule_of(found);
        const char *why = NULL;
        if (found == ':' || found == '?') {
            limefile_option_error(reason, BENCH_REASON_BYTES, argv, shorts, list);
            return false;
        }
        if (!(rule->commands & o->command))
            why = "not for this sub-command";
        else
            why = take(rule, o, optarg);
        if (why)
            snprintf(reason, BENCH_REASON_BYTES, "--%s%s%.60s: %s", rule->name,
                     optarg ? " " : "", optarg ? optarg : "", why);
        if (why)
            return false;
        if (o->help || o->version || o->list)
            return true;
    }
    return true;
}

bool bench_options_parse(int argc, char **argv, enum bench_command command,
                         struct bench_options *o, char reason[BENCH_REASON_BYTES])
{
    set_defaults(o, command);
    reason[0] = '\0';
    if (!take_words(argc, argv, o, reason))
        return false;
    if (o->help || o->version || o->list)
        return true;
    if (argc - optind != 1 || !*argv[optind])
        return false;
    o->path = argv[optind];
    if (o->backend_count == 0)
        take_names(o, command == BENCH_CELLS ? bench_cells_ways : bench_backends,
                   (char[]){"all"});
    if (!o->cells.reading_given)
        o->cells.reading = o->cells.writing;
    return true;
}
