/* options.c - parse the command line of lime-bench and derive the pattern */
#include "options.h"
#include "complete.h"
#include "option.h"
#include "suggest.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <string.h>

#define BYTES_MAX 0x1p50

/* Defaults of the options. */
enum {
    SIZE = 64 << 20, /* bytes per rank */
    TRANSFER = 1 << 20,
    LATTICE_TRANSFER = 8 << 20,
    SITE_BYTES = 576, /* a gauge configuration in double precision: 4 complex 3x3 matrices */
    JOB_RANKS = 2,
};

/* Sets reason. Always returns false, so that the caller can return the result. */
__attribute__((format(printf, 2, 3))) static bool reject(char *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reason, BENCH_REASON_BYTES, format, args);
    va_end(args);
    return false;
}

/* ---- option handlers ---- */

/* The context of option handlers, which return 0, or 1 after setting `reason`. */
struct option_context {
    struct bench_options *options;
    char *reason;
};

/* Adds the back end `name`, or all for "all", but none twice. Returns false if unknown. */
static bool add_backends(struct bench_options *o, const char *name)
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
    return found;
}

static void report_unknown_backend(const struct option_context *c, const char *name)
{
    struct limefile_suggestion near = {0};
    for (int i = 0; bench_backends[i]; i++)
        limefile_suggest(&near, name, bench_backends[i]->name);
    const char *text = limefile_suggest_text(&near);
    reject(c->reason, "--backend %.60s: unknown back end%s", name,
           *text ? text : "; see lime-bench --list");
}

static int parse_backends(const void *context, char *text)
{
    const struct option_context *c = context;
    for (char *rest, *name = strtok_r(text, ",", &rest); name;
         name = strtok_r(NULL, ",", &rest))
        if (!add_backends(c->options, name)) {
            report_unknown_backend(c, name);
            return 1;
        }
    if (c->options->backend_count == 0)
        reject(c->reason, "--backend: no back end given");
    return c->options->backend_count == 0;
}

static int parse_operations(const void *context, char *text)
{
    const struct option_context *c = context;
    struct bench_options *o = c->options;
    char *rest, *name = strtok_r(text, ",", &rest);
    bool good = name;
    o->writes = o->reads = false;
    for (; name; name = strtok_r(NULL, ",", &rest)) {
        bool writes = strcmp(name, "write") == 0, reads = strcmp(name, "read") == 0;
        o->writes |= writes;
        o->reads |= reads;
        good = good && (writes || reads);
    }
    if (!good)
        reject(c->reason, "--operations: unknown operation (write, read)");
    return !good;
}

static int add_hint(const void *context, char *text)
{
    const struct option_context *c = context;
    struct bench_task *task = &c->options->task;
    char *equals = strchr(text, '=');
    bool good = equals && equals > text && equals[1] && equals - text <= MPI_MAX_INFO_KEY &&
                strlen(equals + 1) <= MPI_MAX_INFO_VAL;
    if (!good || task->hints == BENCH_HINTS_MAX) {
        reject(c->reason,
               good ? "--hint %.60s: too many" : "--hint %.60s: not a valid KEY=VALUE", text);
        return 1;
    }
    *equals = '\0';
    task->hint[task->hints++] = (struct bench_hint){text, equals + 1};
    return 0;
}

/* ---- the command line ---- */

static void set_defaults(struct bench_options *o)
{
    *o = (struct bench_options){
        .writes = true, .reads = true, .cold = true, .repetitions = 5, .outputs = 1, .seed = 1};
    o->task.pattern.kind = BENCH_LATTICE;
    o->task.fsync = true;
}

static const char help[] =
    "\n"
    "Writes and reads the same distributed data with several I/O libraries, verifies\n"
    "every byte that was read, and prints how fast each library was. Defaults are in\n"
    "parentheses; k, M, G and T are powers of 1024.\n"
    "\n"
    "what to measure:\n"
    "  -b, --backend B[,B...]   back ends by name, or all (all); see --list\n"
    "  -p, --pattern PATTERN    which ranks have which bytes: lattice, disjoint,\n"
    "                           interleaved or random (lattice)\n"
    "      --operations LIST    write, read or both (write,read)\n"
    "      --repetitions N      how often; the back ends take turns (5)\n"
    "\n"
    "how much:\n"
    "      --size BYTES         of each rank (64M)\n"
    "      --block-size BYTES   disjoint: of each rank\n"
    "      --transfer-size BYTES\n"
    "                           the most that one call moves (1M; lattice: 8M)\n"
    "      --segments N         interleaved, random: transfers of each rank\n"
    "      --lattice AxBxCxD    sites, fastest dimension last (near --size)\n"
    "      --grid AxBxCxD       how the ranks divide them (as MPI_Dims_create)\n"
    "      --site-bytes BYTES   (576: a gauge configuration in double precision)\n"
    "\n"
    "how:\n"
    "      --independent        calls of single ranks,\n"
    "      --collective         or of all ranks together (where there are both)\n"
    "      --alignment BYTES    where the data begin: hdf5, netcdf4, pnetcdf, lime\n"
    "      --chunk BYTES        chunked layout: hdf5, netcdf4\n"
    "      --unlimited          a dimension that grows: hdf5, netcdf4, pnetcdf\n"
    "      --shape 1d|2d        of the variable: hdf5, netcdf4, pnetcdf (1d; a\n"
    "                           lattice has its own)\n"
    "      --checksum           the SciDAC checksum: lime\n"
    "      --hint KEY=VALUE     for MPI-IO; may be repeated\n"
    "      --job-ranks N        of the mount's job: limefs-job (2)\n"
    "      --no-fsync           written data may still be in memory (--fsync)\n"
    "      --warm               leave the page cache (--cold: drop it each time)\n"
    "      --cold-file          drop only pages of FILE, as root, too\n"
    "      --reorder            each rank reads what another one has written\n"
    "\n"
    "the output of an application:\n"
    "      --compute SECONDS    arithmetic before each output (0)\n"
    "      --outputs N          files that are written one after another (1)\n"
    "\n"
    "other:\n"
    "  -q, --quiet              print errors only\n"
    "      --json FILE          write the results as JSON, too; with - to standard\n"
    "                           output, and text to standard error\n"
    "  -f, --force              replace the file of --json\n"
    "      --keep               leave the files\n"
    "      --seed N             of the data, and of the random pattern (1)\n"
    "      --list               show back ends and patterns, and why one is missing\n"
    "  -h, --help               show this text\n"
    "  -V, --version            show the version\n"
    "\n"
    "FILE is written, read and removed; with several back ends it is FILE.BACKEND.\n"
    "Times are those of the slowest rank, from before the file is opened to after it\n"
    "is closed. Exits with 1 if something failed or a byte was wrong, 2 if called\n"
    "wrongly.\n";

/* Prints candidates for shells' completion (complete.h). */
static void complete_options(const struct option_rule *rules, int count, char **arguments)
{
    struct limefile_completion c;
    limefile_complete(rules, help, count, arguments, stdout, &c);
    if (!c.rule || strcmp(c.rule->name, "backend") != 0)
        return;
    limefile_complete_list_item(&c);
    for (int i = 0; bench_backends[i]; i++)
        limefile_complete_offer(&c, bench_backends[i]->name, bench_backends[i]->about);
}

static int read_options(int argc, char **argv, struct bench_options *o, char *reason)
{
    static const char *const shapes[] = {"default", "1d", "2d", NULL}; /* enum bench_shape */
    struct bench_task *task = &o->task;
    const struct option_rule rules[] = {
        {"backend", 'b', OPTION_CALL_TEXT, .handle = parse_backends},
        {"pattern", 'p', OPTION_WORD, &task->pattern.kind, .words = bench_pattern_names},
        {"operations", 0, OPTION_CALL_TEXT, .handle = parse_operations,
         OPTION_WORDS("write", "read"), .count = 2},
        {"repetitions", 0, OPTION_NUMBER, &o->repetitions, 1, .most = BENCH_REPETITIONS_MAX},
        {"size", 0, OPTION_SIZE, &o->size, 1, .most = BYTES_MAX},
        {"block-size", 0, OPTION_SIZE, &o->block, 1, .most = BYTES_MAX},
        {"transfer-size", 0, OPTION_SIZE, &o->transfer, 1, .most = BENCH_MOVE_MAX},
        {"segments", 0, OPTION_NUMBER, &o->segments, 1, .most = 1e15},
        {"lattice", 0, OPTION_EXTENTS, o->lattice, 1, INT_MAX, .count = BENCH_DIMS},
        {"grid", 0, OPTION_EXTENTS, o->grid, 1, INT_MAX, .count = BENCH_DIMS},
        {"site-bytes", 0, OPTION_SIZE, &o->site_bytes, 1, .most = BENCH_MOVE_MAX},
        {"independent", 0, OPTION_FLAG, .value = &o->independent},
        {"collective", 0, OPTION_FLAG, .value = &o->collective},
        {"alignment", 0, OPTION_SIZE, &task->alignment, 1, .most = BENCH_MOVE_MAX},
        {"chunk", 0, OPTION_SIZE, &task->chunk, 1, .most = BENCH_MOVE_MAX},
        {"unlimited", 0, OPTION_FLAG, .value = &task->unlimited},
        {"shape", 0, OPTION_WORD, &task->shape, .words = shapes},
        {"checksum", 0, OPTION_FLAG, .value = &task->checksum},
        {"hint", 0, OPTION_CALL_TEXT, .handle = add_hint},
        {"job-ranks", 0, OPTION_NUMBER, &task->job_ranks, 1, .most = 4096},
        {"no-fsync", 0, OPTION_FLAG_OFF, .value = &task->fsync},
        {"fsync", 0, OPTION_FLAG, .value = &task->fsync},
        {"warm", 0, OPTION_FLAG_OFF, .value = &o->cold},
        {"cold", 0, OPTION_FLAG, .value = &o->cold},
        {"cold-file", 0, OPTION_FLAG, .value = &o->cold_file},
        {"reorder", 0, OPTION_FLAG, .value = &o->reorder},
        {"compute", 0, OPTION_REAL, &o->compute, 0, .most = 86400},
        {"outputs", 0, OPTION_NUMBER, &o->outputs, 1, .most = BENCH_OUTPUTS_MAX},
        {"quiet", 'q', OPTION_FLAG, .value = &o->quiet},
        {"json", 0, OPTION_TEXT, .value = &o->json},
        {"force", 'f', OPTION_FLAG, .value = &o->force},
        {"keep", 0, OPTION_FLAG, .value = &o->keep},
        {"seed", 0, OPTION_NUMBER, &o->seed, 0, .most = 0x1p62},
        {"list", 0, OPTION_STOP, .value = &o->list},
        {NULL, 'h', OPTION_STOP, .value = &o->help},
        {"version", 'V', OPTION_STOP, .value = &o->version},
        {NULL},
    };
    const struct option_context c = {o, reason};
    char message[OPTION_ERROR_BYTES];
    if (limefile_complete_requested(argc, argv)) {
        complete_options(rules, argc - 2, argv + 2);
        return 1;
    }
    int status = limefile_options_parse(rules, argc, argv, NULL, &c, message);
    o->help |= status == OPTION_HELP;
    if (status == OPTION_INVALID)
        reject(reason, "%s", message);
    return o->help ? 0 : status;
}

bool bench_options_parse(int argc, char **argv, struct bench_options *o,
                         char reason[BENCH_REASON_BYTES])
{
    set_defaults(o);
    reason[0] = '\0';
    if (read_options(argc, argv, o, reason) != 0)
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

void bench_options_usage(bool all, FILE *to)
{
    fputs("usage: mpirun -n N lime-bench [OPTION]... FILE\n"
          "       lime-bench --list\n",
          to);
    if (all)
        fputs(help, to);
}

/* ---- patterns: blocks and segments ---- */

static bool resolve_disjoint(const struct bench_options *o, struct bench_pattern *p,
                             char *reason)
{
    if (o->segments > 1)
        return reject(reason, "--segments: the disjoint pattern has one");
    p->block = o->block ? o->block : o->size ? o->size : SIZE;
    p->transfer = o->transfer ? o->transfer : smaller(TRANSFER, p->block);
    p->segments = 1;
    if (p->transfer > p->block)
        return reject(reason, "--transfer-size: larger than the block of %" PRId64 " bytes",
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
        return reject(reason, "--block-size: a block of this pattern is one transfer");
    if (p->transfer > BENCH_MOVE_MAX)
        return reject(reason, "--block-size: a transfer has at most 1G bytes");
    p->segments = o->segments ? o->segments : size / p->transfer;
    p->block = p->transfer;
    if (p->segments == 0)
        return reject(reason, "--size: less than one transfer");
    return true;
}

/* ---- patterns: lattices ---- */

static bool is_given(const int64_t extents[BENCH_DIMS])
{
    return extents[0] != 0;
}

static bool resolve_grid(const struct bench_options *o, struct bench_pattern *p, char *reason)
{
    int64_t ranks = 1;
    if (!is_given(o->grid)) {
        MPI_Dims_create(p->ranks, BENCH_DIMS, p->grid);
        return true;
    }
    for (int d = 0; d < BENCH_DIMS; d++) {
        p->grid[d] = (int)o->grid[d];
        if (__builtin_mul_overflow(ranks, o->grid[d], &ranks))
            return reject(reason, "--grid: too large");
    }
    if (ranks != p->ranks)
        return reject(reason, "--grid: %" PRId64 " ranks, but there are %d", ranks, p->ranks);
    return true;
}

/* Returns the multiple of `grid` that is nearest to `extent`, but at least `grid`. */
static int round_to_grid(double extent, int grid)
{
    double parts = round(extent / grid);
    parts = parts < 1 ? 1 : parts;
    return parts * grid > INT_MAX ? INT_MAX / grid * grid : (int)parts * grid;
}

/* Chooses about 2L x L x L x L sites. The first extent makes up for the others' rounding. */
static void choose_lattice(struct bench_pattern *p, int64_t rank_bytes)
{
    double sites = (double)rank_bytes * p->ranks / (double)p->site_bytes, rest = sites;
    double extent = pow(sites / 2, 0.25);
    for (int d = BENCH_DIMS - 1; d > 0; d--) {
        p->lattice[d] = round_to_grid(extent, p->grid[d]);
        rest /= p->lattice[d];
    }
    p->lattice[0] = round_to_grid(rest, p->grid[0]);
}

static bool resolve_lattice(const struct bench_options *o, struct bench_pattern *p,
                            char *reason)
{
    if (o->block || o->segments)
        return reject(reason, "--%s: not for the lattice pattern; give --size or --lattice",
                      o->block ? "block-size" : "segments");
    if (is_given(o->lattice) && o->size)
        return reject(reason, "give one of --size and --lattice");
    p->site_bytes = o->site_bytes ? o->site_bytes : SITE_BYTES;
    p->transfer = o->transfer ? o->transfer : LATTICE_TRANSFER;
    if (!resolve_grid(o, p, reason))
        return false;
    for (int d = 0; d < BENCH_DIMS; d++)
        p->lattice[d] = (int)o->lattice[d];
    if (!is_given(o->lattice))
        choose_lattice(p, o->size ? o->size : SIZE);
    for (int d = 0; d < BENCH_DIMS; d++)
        if (p->lattice[d] < p->grid[d])
            return reject(reason, "--lattice: %d sites for %d ranks in dimension %d",
                          p->lattice[d], p->grid[d], d + 1);
    return true;
}

static bool is_selected(const struct bench_options *o, const char *name)
{
    for (int i = 0; i < o->backend_count; i++)
        if (strcmp(o->backends[i]->name, name) == 0)
            return true;
    return false;
}

static bool check_combinations(const struct bench_options *o, char *reason)
{
    bool lattice = o->task.pattern.kind == BENCH_LATTICE;
    if (!lattice && (is_given(o->lattice) || is_given(o->grid) || o->site_bytes))
        return reject(reason,
                      "--lattice, --grid and --site-bytes are for the lattice pattern only");
    if (o->task.job_ranks && !is_selected(o, "limefs-job"))
        return reject(reason, "--job-ranks is for the back end limefs-job only");
    if (!o->writes && o->compute > 0)
        return reject(reason, "--compute is for writing");
    if (o->independent && o->collective)
        return reject(reason, "give one of --independent and --collective");
    return true;
}

bool bench_options_resolve(struct bench_options *o, int ranks, char reason[BENCH_REASON_BYTES])
{
    struct bench_pattern *p = &o->task.pattern;
    bool good;
    *p = (struct bench_pattern){
        .kind = p->kind, .ranks = ranks, .seed = (uint64_t)o->seed, .site_bytes = 1};
    if (!check_combinations(o, reason))
        return false;
    if (!o->task.job_ranks)
        o->task.job_ranks = JOB_RANKS;
    if (o->independent || o->collective)
        o->task.mode = o->independent ? BENCH_INDEPENDENT : BENCH_COLLECTIVE;
    if (p->kind == BENCH_LATTICE)
        good = resolve_lattice(o, p, reason);
    else if (p->kind == BENCH_DISJOINT)
        good = resolve_disjoint(o, p, reason);
    else
        good = resolve_segments(o, p, reason);
    if (good && (bench_pattern_bytes(p) < 0 || bench_pattern_bytes(p) > INT64_C(1) << 62))
        return reject(reason, "the file would be too large");
    return good;
}
