/* model.c - `lime-bench model`: its options, and what it prints */
#include "model.h"
#include "optionerror.h"
#include "world.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct method {
    const char *name;
    bool (*run)(const struct model *, struct model_outcome *);
};

enum {
    METHODS = 3,
    RANKS_MAX = 1 << 22,
    CELLS_MAX = 1 << 26,
    FINE = 64, /* cells in each dimension, for a k-d decomposition */
};

static const struct method lattice_methods[METHODS] = {
    {"lime", model_lime},
    {"alltoallv", model_alltoallv},
    {"collective", model_collective},
};

static const struct method cells_methods[METHODS] = {
    {"lime", model_cells_lime},
    {"independent", model_cells_independent},
    {"gather", model_cells_gather},
};

static void usage(FILE *to)
{
    fputs(
        "usage: lime-bench model --ranks N [OPTION...]\n"
        "What moving a lattice asks of N ranks, the network and the file system's servers: by\n"
        "Lemon's own plan (lime), by an exchange in rows with POSIX writes (alltoallv), and "
        "by\n"
        "two-phase collective buffering (collective). Nothing is written. Sizes take k, M, G.\n"
        "With --pattern cells, what writing particles in cells asks: by Lemon (lime), by a "
        "call of\n"
        "each rank for each of its cells (independent), and by one rank (gather).\n"
        "\n"
        "  -p, --pattern PATTERN   lattice or cells (lattice)\n"
        "      --ranks N           how many; the grid is chosen unless it is given\n"
        "      --grid TxZxYxX      ranks in each dimension, slowest in the file first\n"
        "      --lattice TxZxYxX   sites (192x96x96x96)\n"
        "      --site-bytes N      (576: a gauge configuration in double precision)\n"
        "      --particles N       cells: in all (33000000)\n"
        "      --particle-bytes N  cells: of each (120)\n"
        "      --cells AxBxC       cells: of the domain (one for each rank; kd: 64x64x64)\n"
        "      --decomposition D   cells: regular, equal boxes, or kd, boxes of whole cells "
        "with\n"
        "                          as many particles (regular)\n"
        "      --distribution D    cells: uniform, or cluster: four drops (uniform)\n"
        "      --servers N         of the file system (32)\n"
        "      --stripe BYTES      that lie on one server (1M)\n"
        "      --movers N          lime: at most so many ranks write\n"
        "      --round BYTES       lime: bytes a mover handles at once\n"
        "      --target BYTES      alltoallv: the least length of an extent (4M)\n"
        "      --aggregators N     collective: so many ranks write (one for each server)\n"
        "      --buffer BYTES      collective: each one's buffer (16M)\n"
        "      --latency SECONDS   of a message (2e-6)\n"
        "      --link BYTES        a second, of a rank (2G)\n"
        "      --server BYTES      a second, of a server (2G)\n"
        "      --request SECONDS   a server's time for a request beside its bytes (2e-4)\n"
        "      --lock SECONDS      for a stripe that two ranks write (1e-3)\n"
        "      --json              print JSON\n"
        "      --help\n",
        to);
}

/* ---- options ---- */

enum option_code {
    RANKS = 256,
    PARTICLES,
    PARTICLE_BYTES,
    CELLS,
    DECOMPOSITION,
    DISTRIBUTION,
    GRID,
    LATTICE,
    SITE_BYTES,
    SERVERS,
    STRIPE,
    MOVERS,
    ROUND,
    TARGET,
    AGGREGATORS,
    BUFFER,
    LATENCY,
    LINK,
    SERVER,
    REQUEST,
    LOCK,
    JSON,
    HELP,
};

static const struct option long_options[] = {
    {"pattern", required_argument, NULL, 'p'},
    {"ranks", required_argument, NULL, RANKS},
    {"particles", required_argument, NULL, PARTICLES},
    {"particle-bytes", required_argument, NULL, PARTICLE_BYTES},
    {"cells", required_argument, NULL, CELLS},
    {"decomposition", required_argument, NULL, DECOMPOSITION},
    {"distribution", required_argument, NULL, DISTRIBUTION},
    {"grid", required_argument, NULL, GRID},
    {"lattice", required_argument, NULL, LATTICE},
    {"site-bytes", required_argument, NULL, SITE_BYTES},
    {"servers", required_argument, NULL, SERVERS},
    {"stripe", required_argument, NULL, STRIPE},
    {"movers", required_argument, NULL, MOVERS},
    {"round", required_argument, NULL, ROUND},
    {"target", required_argument, NULL, TARGET},
    {"aggregators", required_argument, NULL, AGGREGATORS},
    {"buffer", required_argument, NULL, BUFFER},
    {"latency", required_argument, NULL, LATENCY},
    {"link", required_argument, NULL, LINK},
    {"server", required_argument, NULL, SERVER},
    {"request", required_argument, NULL, REQUEST},
    {"lock", required_argument, NULL, LOCK},
    {"json", no_argument, NULL, JSON},
    {"help", no_argument, NULL, HELP},
    {0},
};

struct asked {
    struct model model;
    struct model_cells gas;
    bool cells; /* the pattern */
    int64_t ranks, site_bytes;
    int lattice[LEMON_BOX_DIMS], grid[LEMON_BOX_DIMS];
    int dims, grid_dims; /* 0: not given */
    bool json, help;
};

static bool parse_size(const char *text, int64_t most, int64_t *value)
{
    static const char units[] = "kMG";
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    int64_t factor = unit ? INT64_C(1) << 10 * (unit - units + 1) : 1;
    if (errno || end == text || number < 1 || number > most / factor || end[unit != NULL])
        return false;
    *value = number * factor;
    return true;
}

static bool parse_seconds(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && *value >= 0 && *value < 1e6;
}

static bool parse_speed(const char *text, double *value)
{
    int64_t size;
    bool good = parse_size(text, INT64_C(1) << 60, &size);
    *value = good ? (double)size : 0;
    return good;
}

/* "AxBxC" */
static bool parse_extents(const char *text, int *values, int *count)
{
    for (*count = 0; *count < LEMON_BOX_DIMS; text++) {
        char *end;
        long value = strtol(text, &end, 10);
        if (end == text || value < 1 || value > 1 << 24)
            return false;
        values[(*count)++] = (int)value;
        text = end;
        if (*text == '\0')
            return true;
        if (*text != 'x')
            return false;
    }
    return false;
}

/* The second word sets it. */
static bool parse_word(const char *text, const char *no, const char *yes, bool *value)
{
    *value = strcmp(text, yes) == 0;
    return *value || strcmp(text, no) == 0;
}

static bool take_cells(struct asked *asked, int code, const char *value)
{
    int extents[LEMON_BOX_DIMS], count;
    bool cluster = false, good;
    switch (code) {
    case PARTICLES:
        return parse_size(value, INT64_C(1) << 40, &asked->gas.gas.particles);
    case PARTICLE_BYTES:
        return parse_size(value, 1 << 20, &asked->gas.particle_bytes);
    case DECOMPOSITION:
        return parse_word(value, "regular", "kd", &asked->gas.kd);
    case DISTRIBUTION:
        good = parse_word(value, "uniform", "cluster", &cluster);
        asked->gas.gas.distribution = cluster ? BENCH_CLUSTER : BENCH_UNIFORM;
        return good;
    default:
        good = parse_extents(value, extents, &count) && count == BENCH_SPACE;
        for (int d = 0; d < BENCH_SPACE && good; d++)
            asked->gas.cells[d] = extents[d];
        return good;
    }
}

static bool take_machine(struct model *model, int code, const char *value)
{
    switch (code) {
    case SERVERS:
        return parse_size(value, 1 << 20, &model->servers);
    case STRIPE:
        return parse_size(value, 1 << 30, &model->stripe);
    case LATENCY:
        return parse_seconds(value, &model->latency);
    case LINK:
        return parse_speed(value, &model->link);
    case SERVER:
        return parse_speed(value, &model->server);
    case REQUEST:
        return parse_seconds(value, &model->request);
    default:
        return parse_seconds(value, &model->lock);
    }
}

static bool take_option(struct asked *asked, int code, const char *value)
{
    struct model *model = &asked->model;
    switch (code) {
    case 'p':
        return parse_word(value, "lattice", "cells", &asked->cells);
    case PARTICLES:
    case PARTICLE_BYTES:
    case CELLS:
    case DECOMPOSITION:
    case DISTRIBUTION:
        return take_cells(asked, code, value);
    case RANKS:
        return parse_size(value, RANKS_MAX, &asked->ranks);
    case GRID:
        return parse_extents(value, asked->grid, &asked->grid_dims);
    case LATTICE:
        return parse_extents(value, asked->lattice, &asked->dims);
    case SITE_BYTES:
        return parse_size(value, 1 << 24, &asked->site_bytes);
    case MOVERS:
        return parse_size(value, RANKS_MAX, &model->movers);
    case ROUND:
        return parse_size(value, 1 << 30, &model->round);
    case TARGET:
        return parse_size(value, INT64_C(1) << 40, &model->target);
    case AGGREGATORS:
        return parse_size(value, RANKS_MAX, &model->aggregators);
    case BUFFER:
        return parse_size(value, 1 << 30, &model->buffer);
    case JSON:
        return asked->json = true;
    case HELP:
        return asked->help = true;
    default:
        return take_machine(model, code, value);
    }
}

static int parse(int argc, char **argv, struct asked *asked)
{
    int code, which = 0;
    char reason[256];
    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, ":p:", long_options, &which)) != -1) {
        if (code == '?' || code == ':') {
            limefile_option_error(reason, sizeof reason, argv, ":p:", long_options);
            bench_say("model: %s", reason);
            return -1;
        }
        if (!take_option(asked, code, optarg)) {
            bench_say("model: --%s: invalid value '%s'",
                      code == 'p' ? "pattern" : long_options[which].name, optarg);
            return -1;
        }
    }
    if (optind == argc)
        return 0;
    bench_say("model: unexpected argument '%s'", argv[optind]);
    return -1;
}

/* ---- the grid ---- */

/* The prime factors, largest first, each to the dimension that has most sites for a rank; of
 * equal ones the slowest. */
static void choose_grid(struct asked *asked)
{
    int64_t left = asked->ranks;
    asked->grid_dims = asked->dims;
    for (int i = 0; i < asked->dims; i++)
        asked->grid[i] = 1;
    while (left > 1) {
        int64_t factor = left, most = 0;
        for (int64_t p = 2; p * p <= left; p++) /* the largest prime */
            while (factor % p == 0 && factor > p)
                factor /= p;
        for (int i = 1; i < asked->dims; i++)
            if (asked->lattice[i] / asked->grid[i] > asked->lattice[most] / asked->grid[most])
                most = i;
        asked->grid[most] *= (int)factor;
        left /= factor;
    }
}

static bool set_grid(struct asked *asked)
{
    struct model *model = &asked->model;
    int64_t product = 1;
    if (asked->grid_dims == 0 && asked->ranks > 0)
        choose_grid(asked);
    for (int i = 0; i < asked->grid_dims; i++)
        if (__builtin_mul_overflow(product, asked->grid[i], &product) || product > RANKS_MAX)
            break;
    if (asked->grid_dims == 0)
        fputs("lime-bench: model: how many ranks? Give --ranks or --grid\n", stderr);
    else if (asked->grid_dims != asked->dims)
        fputs("lime-bench: model: --grid and --lattice have different dimensions\n", stderr);
    else if (product > RANKS_MAX)
        fprintf(stderr, "lime-bench: model: --grid: more than %d ranks\n", RANKS_MAX);
    else if (asked->ranks && asked->ranks != product)
        fputs("lime-bench: model: --grid and --ranks disagree\n", stderr);
    else {
        lemon_grid_make(&model->grid, asked->dims, asked->site_bytes, asked->lattice,
                        asked->grid, NULL);
        model->ranks = product;
        model->bytes = lemon_grid_bytes(&model->grid);
        if (model->bytes > 0)
            return true;
        fputs("lime-bench: model: --lattice: more than 2^63 bytes\n", stderr);
    }
    return false;
}

/* ---- the cells ---- */

static bool set_cells(struct asked *asked)
{
    struct model *model = &asked->model;
    struct model_cells *c = &asked->gas;
    int64_t all = 1;
    if (asked->ranks == 0 || asked->grid_dims) {
        fputs("lime-bench: model: how many ranks? Give --ranks, without --grid\n", stderr);
        return false;
    }
    if (c->cells[0] == 0 && !c->kd)
        model_cells_grid(asked->ranks, c->cells);
    for (int d = 0; d < BENCH_SPACE; d++) {
        c->cells[d] = c->cells[d] ? c->cells[d] : FINE;
        if (__builtin_mul_overflow(all, c->cells[d], &all) || all > CELLS_MAX)
            break;
    }
    if (all > CELLS_MAX) {
        fprintf(stderr, "lime-bench: model: --cells: more than %d\n", CELLS_MAX);
        return false;
    }
    c->gas.length = cbrt((double)c->gas.particles);
    model->ranks = asked->ranks;
    model->bytes = c->gas.particles * c->particle_bytes;
    model->gas = c;
    return true;
}

/* ---- the command ---- */

static bool run(const struct asked *asked, struct model_outcome *outcomes)
{
    const struct method *methods = asked->cells ? cells_methods : lattice_methods;
    for (int i = 0; i < METHODS; i++)
        if (!methods[i].run(&asked->model, &outcomes[i]))
            return false;
    return true;
}

int bench_model(int argc, char **argv)
{
    struct model_outcome outcomes[METHODS];
    struct asked asked = {
        .model = {.base = 144,
                  .stripe = 1 << 20,
                  .servers = 32,
                  .target = 4 << 20,
                  .buffer = 16 << 20,
                  .latency = 2e-6,
                  .link = 2e9,
                  .server = 2e9,
                  .request = 2e-4,
                  .lock = 1e-3},
        .gas = {.gas.particles = 33000000, .particle_bytes = BENCH_PARTICLE_BYTES},
        .site_bytes = 576,
        .lattice = {192, 96, 96, 96},
        .dims = 4,
    };
    if (parse(argc, argv, &asked) != 0)
        return 2;
    if (asked.help) {
        usage(stdout);
        return 0;
    }
    if (asked.cells ? !set_cells(&asked) : !set_grid(&asked))
        return 2;
    if (asked.model.aggregators == 0)
        asked.model.aggregators = asked.model.servers;
    bool good = !asked.cells || model_cells_make(&asked.gas, asked.ranks);
    good = good && run(&asked, outcomes);
    if (!good)
        fputs("lime-bench: model: out of memory\n", stderr);
    else if (asked.json)
        model_print_json(&asked.model, outcomes, METHODS);
    else
        model_print(&asked.model, outcomes, METHODS);
    model_cells_free(&asked.gas);
    return good ? 0 : 1;
}
