/* options.c - the command line of lime-bench, and the pattern that follows from it */
#include "options.h"
#include "optionerror.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (INT64_C(1) << 60)

enum {
    SIZE = 64 << 20, /* of a rank */
    TRANSFER = 1 << 20,
    LATTICE_TRANSFER = 8 << 20,
    SITE_BYTES = 576, /* 4 complex 3x3 matrices in double precision: a gauge configuration's */
    JOB_RANKS = 2,
};

__attribute__((format(printf, 2, 3))) static bool wrong(char *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reason, BENCH_REASON_BYTES, format, args);
    va_end(args);
    return false;
}

/* ---- values ---- */

/* A whole number; `units`, each in both cases, multiply it by powers of 1024. */
static bool parse_number(const char *text, const char *units, int64_t *value)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (errno)
        return false;
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (!unit || end[1])
        return !*end;
    int shift = 10 * (1 + (int)(unit - units) / 2);
    return !__builtin_mul_overflow(*value, INT64_C(1) << shift, value);
}

/* At most a day. */
static bool parse_seconds(const char *text, double *value)
{
    char *end;
    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value) && *value >= 0 && *value <= 86400;
}

/* "16x8x8x4" */
static bool parse_extents(const char *text, int extents[BENCH_DIMS])
{
    for (int i = 0; i < BENCH_DIMS; i++) {
        char *end;
        if (*text < '0' || *text > '9')
            return false;
        errno = 0;
        long value = strtol(text, &end, 10);
        if (errno || value < 1 || value > INT_MAX || *end != (i == BENCH_DIMS - 1 ? '\0' : 'x'))
            return false;
        extents[i] = (int)value;
        text = end + 1;
    }
    return true;
}

/* ---- options that are more than a value; they return why not, or NULL ---- */

static const char *add_backends(struct bench_options *o, const char *name)
{
    bool found = false;
    for (int i = 0; bench_backends[i]; i++) {
        const struct bench_backend *backend = bench_backends[i];
        bool is_new = true;
        if (strcmp(name, "all") != 0 && strcmp(name, backend->name) != 0)
            continue;
        found = true;
        for (int k = 0; k < o->backend_count; k++)
            is_new = is_new && o->backends[k] != backend;
        if (is_new)
            o->backends[o->backend_count++] = backend;
    }
    return found ? NULL : "no such back end; lime-bench --list shows them";
}

static const char *take_backends(struct bench_options *o, char *value)
{
    const char *why = NULL;
    for (char *rest, *name = strtok_r(value, ",", &rest); name && !why;
         name = strtok_r(NULL, ",", &rest))
        why = add_backends(o, name);
    return why || o->backend_count ? why : "no name";
}

static const char *take_pattern(struct bench_options *o, char *value)
{
    return bench_pattern_find(value, &o->task.pattern.kind)
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
    if (strcmp(value, "1d") != 0 && strcmp(value, "2d") != 0)
        return "the shapes are 1d and 2d";
    o->task.shape = *value == '1' ? BENCH_SHAPE_1D : BENCH_SHAPE_2D;
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

/* ---- all options ---- */

enum kind {
    HEADING,
    A_FLAG,   /* bool: true */
    NO_FLAG,  /* bool: false */
    A_SIZE,   /* int64_t */
    A_NUMBER, /* int64_t */
    EXTENTS,  /* int[BENCH_DIMS] */
    SECONDS,  /* double */
    A_TEXT,   /* const char * */
    ITS_OWN,  /* a function */
};

struct rule {
    enum kind kind;
    char letter;
    const char *name, *argument; /* NULL: takes none */
    const char *help;            /* lines; NULL: told with another option */
    size_t where;                /* offset in struct bench_options */
    int64_t least, most;
    const char *(*take)(struct bench_options *, char *value);
};

#define AT(member) .where = offsetof(struct bench_options, member)

static const struct rule rules[] = {
    {HEADING, .help = "what to measure"},
    {ITS_OWN, 'b', "backend", "B[,B...]", "back ends by name, or all (all); see --list",
     .take = take_backends},
    {ITS_OWN, 'p', "pattern", "PATTERN",
     "which ranks have which bytes: lattice, disjoint,\ninterleaved or random (lattice)",
     .take = take_pattern},
    {ITS_OWN, 0, "operations", "LIST", "write, read or both (write,read)",
     .take = take_operations},
    {A_NUMBER, 0, "repetitions", "N", "how often; the back ends take turns (5)",
     AT(repetitions), 1, BENCH_REPETITIONS_MAX},
    {HEADING, .help = "how much"},
    {A_SIZE, 0, "size", "BYTES", "of each rank (64M)", AT(size), 1, BYTES_MAX},
    {A_SIZE, 0, "block-size", "BYTES", "disjoint: of each rank", AT(block), 1, BYTES_MAX},
    {A_SIZE, 0, "transfer-size", "BYTES", "the most that one call moves (1M; lattice: 8M)",
     AT(transfer), 1, BENCH_MOVE_MAX},
    {A_NUMBER, 0, "segments", "N", "interleaved, random: transfers of each rank", AT(segments),
     1, BYTES_MAX},
    {EXTENTS, 0, "lattice", "AxBxCxD", "sites, fastest dimension last (near --size)",
     AT(lattice)},
    {EXTENTS, 0, "grid", "AxBxCxD", "how the ranks divide them (as MPI_Dims_create)", AT(grid)},
    {A_SIZE, 0, "site-bytes", "BYTES", "(576: a gauge configuration in double precision)",
     AT(site_bytes), 1, BENCH_MOVE_MAX},
    {HEADING, .help = "how"},
    {ITS_OWN, 0, "independent", NULL, "calls of single ranks,", .take = take_independent},
    {ITS_OWN, 0, "collective", NULL, "or of all ranks together (where there are both)",
     .take = take_collective},
    {A_SIZE, 0, "alignment", "BYTES", "where the data begin: hdf5, netcdf4, pnetcdf, lime",
     AT(task.alignment), 1, BENCH_MOVE_MAX},
    {A_SIZE, 0, "chunk", "BYTES", "chunked layout: hdf5, netcdf4", AT(task.chunk), 1,
     BENCH_MOVE_MAX},
    {A_FLAG, 0, "unlimited", NULL, "a dimension that grows: hdf5, netcdf4, pnetcdf",
     AT(task.unlimited)},
    {ITS_OWN, 0, "shape", "1d|2d",
     "of the variable: hdf5, netcdf4, pnetcdf (1d; a\nlattice has its own)",
     .take = take_shape},
    {A_FLAG, 0, "checksum", NULL, "the SciDAC checksum: lime", AT(task.checksum)},
    {ITS_OWN, 0, "hint", "KEY=VALUE", "for MPI-IO; may be repeated", .take = take_hint},
    {A_NUMBER, 0, "job-ranks", "N", "of the mount's job: limefs-job (2)", AT(task.job_ranks), 1,
     4096},
    {NO_FLAG, 0, "no-fsync", NULL, "written data may still be in memory (--fsync)",
     AT(task.fsync)},
    {A_FLAG, 0, "fsync", NULL, NULL, AT(task.fsync)},
    {NO_FLAG, 0, "warm", NULL, "leave the page cache (--cold: drop it each time)", AT(cold)},
    {A_FLAG, 0, "cold", NULL, NULL, AT(cold)},
    {A_FLAG, 0, "cold-file", NULL, "drop only pages of FILE, as root, too", AT(cold_file)},
    {A_FLAG, 0, "reorder", NULL, "each rank reads what another one has written", AT(reorder)},
    {HEADING, .help = "the output of an application"},
    {SECONDS, 0, "compute", "SECONDS", "arithmetic before each output (0)", AT(compute)},
    {A_NUMBER, 0, "outputs", "N", "files that are written one after another (1)", AT(outputs),
     1, BENCH_OUTPUTS_MAX},
    {HEADING, .help = "other"},
    {A_FLAG, 'q', "quiet", NULL, "print errors only", AT(quiet)},
    {A_TEXT, 0, "json", "FILE",
     "write the results as JSON, too; with - to standard\noutput, and text to standard error",
     AT(json)},
    {A_FLAG, 'f', "force", NULL, "replace the file of --json", AT(force)},
    {A_FLAG, 0, "keep", NULL, "leave the files", AT(keep)},
    {A_NUMBER, 0, "seed", "N", "of the data, and of the random pattern (1)", AT(seed), 0,
     INT64_MAX},
    {A_FLAG, 0, "list", NULL, "show back ends and patterns, and why one is missing", AT(list)},
    {A_FLAG, 'h', "help", NULL, "show this text", AT(help)},
    {A_FLAG, 'V', "version", NULL, "show the version", AT(version)},
};

enum {
    RULES = sizeof rules / sizeof *rules,
    FIRST = 256, /* of the codes that getopt_long() gives */
    HELP_COLUMN = 27,
};

/* Why not, or NULL. */
static const char *take(const struct rule *rule, struct bench_options *o, char *value)
{
    static char expected[64];
    void *at = (char *)o + rule->where;
    int64_t number;
    switch (rule->kind) {
    case A_FLAG:
    case NO_FLAG:
        *(bool *)at = rule->kind == A_FLAG;
        return NULL;
    case A_SIZE:
    case A_NUMBER:
        if (parse_number(value, rule->kind == A_SIZE ? "kKmMgGtT" : "", &number) &&
            number >= rule->least && number <= rule->most) {
            *(int64_t *)at = number;
            return NULL;
        }
        if (rule->kind == A_SIZE)
            return rule->most == BENCH_MOVE_MAX
                       ? "expected 1 to 1G bytes"
                       : "expected a number of bytes; k, M, G and T are units";
        snprintf(expected, sizeof expected, "expected %" PRId64 " to %" PRId64, rule->least,
                 rule->most);
        return expected;
    case EXTENTS:
        return parse_extents(value, at) ? NULL : "expected four numbers, such as 32x16x16x16";
    case SECONDS:
        return parse_seconds(value, at) ? NULL : "expected seconds";
    case A_TEXT:
        *(char **)at = value;
        return NULL;
    default:
        return rule->take(o, value);
    }
}

static void set_defaults(struct bench_options *o)
{
    *o = (struct bench_options){
        .writes = true, .reads = true, .cold = true, .repetitions = 5, .outputs = 1, .seed = 1};
    o->task.pattern.kind = BENCH_LATTICE;
    o->task.fsync = true;
}

static bool take_words(int argc, char **argv, struct bench_options *o, char *reason)
{
    static const char shorts[] = ":b:p:fqhV";
    struct option list[RULES + 1];
    int n = 0;
    for (int i = 0; i < RULES; i++)
        if (rules[i].kind != HEADING)
            list[n++] = (struct option){rules[i].name,
                                        rules[i].argument ? required_argument : no_argument,
                                        NULL, rules[i].letter ? rules[i].letter : FIRST + i};
    list[n] = (struct option){0};
    opterr = 0;
    optind = 0;
    for (int found; (found = getopt_long(argc, argv, shorts, list, NULL)) != -1;) {
        int i = 0;
        if (found == ':' || found == '?') {
            limefile_option_error(reason, BENCH_REASON_BYTES, argv, shorts, list);
            return false;
        }
        while (found != (rules[i].letter ? rules[i].letter : FIRST + i))
            i++;
        const char *why = take(&rules[i], o, optarg);
        if (why)
            return wrong(reason, "--%s%s%.60s: %s", rules[i].name, optarg ? " " : "",
                         optarg ? optarg : "", why);
        if (o->help || o->version || o->list)
            return true;
    }
    return true;
}

bool bench_options_parse(int argc, char **argv, struct bench_options *o,
                         char reason[BENCH_REASON_BYTES])
{
    set_defaults(o);
    reason[0] = '\0';
    if (!take_words(argc, argv, o, reason))
        return false;
    if (o->help || o->version || o->list)
        return true;
    if (argc - optind != 1 || !*argv[optind])
        return false;
    o->path = argv[optind];
    if (o->backend_count == 0)
        add_backends(o, "all");
    return true;
}

/* ---- --help ---- */

static void show_rule(const struct rule *rule, FILE *to)
{
    char letter[5] = "    ";
    if (rule->kind == HEADING)
        fprintf(to, "\n%s:\n", rule->help);
    if (rule->kind == HEADING || !rule->help)
        return;
    if (rule->letter)
        snprintf(letter, sizeof letter, "-%c, ", rule->letter);
    int column = fprintf(to, "  %s--%s%s%s", letter, rule->name, rule->argument ? " " : "",
                         rule->argument ? rule->argument : "");
    for (const char *line = rule->help; *line;) {
        int n = (int)strcspn(line, "\n");
        if (column >= HELP_COLUMN || line > rule->help)
            column = fprintf(to, "\n") - 1;
        fprintf(to, "%*s%.*s", HELP_COLUMN - column, "", n, line);
        line += n + (line[n] == '\n');
    }
    fputc('\n', to);
}

void bench_options_usage(bool all, FILE *to)
{
    fputs("usage: mpirun -n N lime-bench [OPTION]... FILE\n"
          "       lime-bench --list\n",
          to);
    if (!all)
        return;
    fputs("\n"
          "Writes and reads the same distributed data with several I/O libraries, verifies\n"
          "every byte that was read, and prints how fast each library was. Defaults are in\n"
          "parentheses; k, M, G and T are powers of 1024.\n",
          to);
    for (int i = 0; i < RULES; i++)
        show_rule(&rules[i], to);
    fputs("\n"
          "FILE is written, read and removed; with several back ends it is FILE.BACKEND.\n"
          "Times are those of the slowest rank, from before the file is opened to after it\n"
          "is closed. Exits with 1 if something failed or a byte was wrong, 2 if called\n"
          "wrongly.\n",
          to);
}

/* ---- patterns: blocks and segments ---- */

static bool resolve_disjoint(const struct bench_options *o, struct bench_pattern *p,
                             char *reason)
{
    if (o->segments > 1)
        return wrong(reason, "--segments: the disjoint pattern has one");
    p->block = o->block ? o->block : o->size ? o->size : SIZE;
    p->transfer = o->transfer ? o->transfer : smaller(TRANSFER, p->block);
    p->segments = 1;
    if (p->transfer > p->block)
        return wrong(reason, "--transfer-size: larger than the block of %" PRId64 " bytes",
                     p->block);
    return true;
}

static bool resolve_segments(const struct bench_options *o, struct bench_pattern *p,
                             char *reason)
{
    int64_t size = o->size ? o->size : SIZE;
    p->transfer = o->transfer;
    if (!p->transfer)
        p->transfer = o->block ? o->block : smaller(TRANSFER, size);
    if (o->block && o->block != p->transfer)
        return wrong(reason, "--block-size: a block of this pattern is one transfer");
    if (p->transfer > BENCH_MOVE_MAX)
        return wrong(reason, "--block-size: a transfer has at most 1G bytes");
    p->segments = o->segments ? o->segments : size / p->transfer;
    p->block = p->transfer;
    if (p->segments == 0)
        return wrong(reason, "--size: less than one transfer");
    return true;
}

/* ---- patterns: lattices ---- */

static bool is_given(const int extents[BENCH_DIMS])
{
    return extents[0] != 0;
}

static bool resolve_grid(const struct bench_options *o, struct bench_pattern *p, char *reason)
{
    int64_t ranks = 1;
    memcpy(p->grid, o->grid, sizeof p->grid);
    if (!is_given(p->grid)) {
        MPI_Dims_create(p->ranks, BENCH_DIMS, p->grid);
        return true;
    }
    for (int d = 0; d < BENCH_DIMS; d++)
        if (__builtin_mul_overflow(ranks, (int64_t)p->grid[d], &ranks))
            return wrong(reason, "--grid: too large");
    if (ranks != p->ranks)
        return wrong(reason, "--grid: %" PRId64 " ranks, but there are %d", ranks, p->ranks);
    return true;
}

/* A multiple of the grid near `extent`. */
static int nearest(double extent, int grid)
{
    double parts = round(extent / grid);
    parts = parts < 1 ? 1 : parts;
    return parts * grid > INT_MAX ? INT_MAX / grid * grid : (int)parts * grid;
}

/* L x L x L x 2L sites, of which the slowest dimension makes up for what rounding does to the
 * others. */
static void choose_lattice(struct bench_pattern *p, int64_t rank_bytes)
{
    double sites = (double)rank_bytes * p->ranks / (double)p->site_bytes, rest = sites;
    double extent = pow(sites / 2, 0.25);
    for (int d = BENCH_DIMS - 1; d > 0; d--) {
        p->lattice[d] = nearest(extent, p->grid[d]);
        rest /= p->lattice[d];
    }
    p->lattice[0] = nearest(rest, p->grid[0]);
}

static bool resolve_lattice(const struct bench_options *o, struct bench_pattern *p,
                            char *reason)
{
    if (o->block || o->segments)
        return wrong(reason, "--%s: not for the lattice pattern; give --size or --lattice",
                     o->block ? "block-size" : "segments");
    if (is_given(o->lattice) && o->size)
        return wrong(reason, "give one of --size and --lattice");
    p->site_bytes = o->site_bytes ? o->site_bytes : SITE_BYTES;
    p->transfer = o->transfer ? o->transfer : LATTICE_TRANSFER;
    if (!resolve_grid(o, p, reason))
        return false;
    memcpy(p->lattice, o->lattice, sizeof p->lattice);
    if (!is_given(p->lattice))
        choose_lattice(p, o->size ? o->size : SIZE);
    for (int d = 0; d < BENCH_DIMS; d++)
        if (p->lattice[d] < p->grid[d])
            return wrong(reason, "--lattice: %d sites for %d ranks in dimension %d",
                         p->lattice[d], p->grid[d], d + 1);
    return true;
}

/* ---- patterns: all ---- */

static bool is_chosen(const struct bench_options *o, const char *name)
{
    for (int i = 0; i < o->backend_count; i++)
        if (strcmp(o->backends[i]->name, name) == 0)
            return true;
    return false;
}

static bool check_others(const struct bench_options *o, char *reason)
{
    bool lattice = o->task.pattern.kind == BENCH_LATTICE;
    if (!lattice && (is_given(o->lattice) || is_given(o->grid) || o->site_bytes))
        return wrong(reason,
                     "--lattice, --grid and --site-bytes are for the lattice pattern only");
    if (o->task.job_ranks && !is_chosen(o, "limefs-job"))
        return wrong(reason, "--job-ranks is for the back end limefs-job only");
    if (!o->writes && o->compute > 0)
        return wrong(reason, "--compute is for writing");
    return true;
}

bool bench_options_resolve(struct bench_options *o, int ranks, char reason[BENCH_REASON_BYTES])
{
    struct bench_pattern *p = &o->task.pattern;
    bool good;
    *p = (struct bench_pattern){
        .kind = p->kind, .ranks = ranks, .seed = (uint64_t)o->seed, .site_bytes = 1};
    if (!check_others(o, reason))
        return false;
    if (!o->task.job_ranks)
        o->task.job_ranks = JOB_RANKS;
    if (p->kind == BENCH_LATTICE)
        good = resolve_lattice(o, p, reason);
    else if (p->kind == BENCH_DISJOINT)
        good = resolve_disjoint(o, p, reason);
    else
        good = resolve_segments(o, p, reason);
    if (good && (bench_pattern_bytes(p) < 0 || bench_pattern_bytes(p) > INT64_C(1) << 62))
        return wrong(reason, "the file would be too large");
    return good;
}
