/*
 * permuted.c - lattices whose memory is in an order of its own, against a serial oracle
 *
 * usage: permuted FILE
 *
 * Byte b of the site with coordinates x is a function of both. Each rank fills its part from
 * what lemonLocalLattice() says and the order of memory; rank 0 reads the file without MPI.
 */
#include "lemon.h"
#include "tap.h"

#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

enum {
    DIMS = 4,
    LEAD = 3, /* bytes in the record before the lattice */
};

#ifdef __SANITIZE_ADDRESS__ /* which needs all of the address space */
#define ADDRESS_SANITIZER true
#else
#define ADDRESS_SANITIZER false
#endif

struct geometry {
    int dims;
    int grid[DIMS], lattice[DIMS], mapping[DIMS], memory[DIMS];
    int site; /* bytes */
};

static const char *path;
static const int identity[DIMS] = {0, 1, 2, 3};

static unsigned char value(const int *x, int dims, int byte)
{
    unsigned hash = (unsigned)byte * 40503u;
    for (int d = 0; d < dims; d++)
        hash = (hash + (unsigned)x[d]) * 2654435761u;
    return (unsigned char)(hash >> 17);
}

/* The sites of a box in row-major order of its dimensions order[0], order[1], ... */
static unsigned char *fill(const struct geometry *g, const int *start, const int *sites,
                           const int *order, size_t *bytes)
{
    int at[DIMS] = {0}, x[DIMS];
    long count = 1;
    for (int d = 0; d < g->dims; d++)
        count *= sites[d];
    *bytes = (size_t)(count * g->site);
    unsigned char *data = malloc(*bytes + 1);
    for (long n = 0; n < count; n++) {
        for (int d = 0; d < g->dims; d++)
            x[d] = start[d] + at[d];
        for (int b = 0; b < g->site; b++)
            data[n * g->site + b] = value(x, g->dims, b);
        for (int i = g->dims - 1; i >= 0; i--) {
            if (++at[order[i]] < sites[order[i]])
                break;
            at[order[i]] = 0;
        }
    }
    return data;
}

static bool file_is_right(const struct geometry *g)
{
    static const int zeros[DIMS];
    size_t bytes;
    unsigned char *want = fill(g, zeros, g->lattice, g->mapping, &bytes);
    unsigned char *got = calloc(1, bytes + 1);
    FILE *file = fopen(path, "rb");
    bool good = file && fseek(file, 144 + LEAD, SEEK_SET) == 0 &&
                fread(got, 1, bytes, file) == bytes && memcmp(got, want, bytes) == 0;
    if (file)
        fclose(file);
    free(want);
    free(got);
    return good;
}

static LemonWriter *writer(MPI_Comm cart, MPI_File *fp, MPI_Offset bytes)
{
    if (tap_rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_open(cart, path, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, fp);
    LemonWriter *w = lemonCreateWriter(fp, cart);
    LemonRecordHeader *header = lemonCreateHeader(1, 1, "lattice", bytes);
    lemonWriteRecordHeader(header, w);
    lemonDestroyHeader(header);
    return w;
}

static LemonReader *reader(MPI_Comm cart, MPI_File *fp)
{
    MPI_File_open(cart, path, MPI_MODE_RDONLY, MPI_INFO_NULL, fp);
    LemonReader *r = lemonCreateReader(fp, cart);
    lemonReaderNextRecord(r);
    return r;
}

/* NULL where that means the same, so that it is tried, too. */
static const int *or_null(const int *order, int dims, int chance)
{
    return chance % 2 && memcmp(order, identity, (size_t)dims * sizeof *order) == 0 ? NULL
                                                                                    : order;
}

static int write_it(const struct geometry *g, MPI_Comm cart, unsigned char *data, int chance)
{
    MPI_File fp;
    MPI_Offset lead = LEAD, bytes = LEAD + g->site;
    for (int d = 0; d < g->dims; d++)
        bytes = LEAD + (bytes - LEAD) * g->lattice[d];
    LemonWriter *w = writer(cart, &fp, bytes);
    int code = lemonWriteRecordData("abc", &lead, w);
    if (code == LEMON_SUCCESS)
        code = lemonWriteLatticeParallelPermuted(w, data, g->site, g->lattice,
                                                 or_null(g->mapping, g->dims, chance),
                                                 or_null(g->memory, g->dims, chance));
    bool moved = w->pos == bytes;
    if (code == LEMON_SUCCESS)
        code = lemonWriterCloseRecord(w);
    lemonDestroyWriter(w);
    MPI_File_close(&fp);
    return code == LEMON_SUCCESS && !moved ? LEMON_ERR_SEEK : code;
}

static int read_it(const struct geometry *g, MPI_Comm cart, unsigned char *data, int chance)
{
    MPI_File fp;
    LemonReader *r = reader(cart, &fp);
    int code = lemonReaderSeek(r, LEAD, MPI_SEEK_SET);
    if (code == LEMON_SUCCESS)
        code = lemonReadLatticeParallelPermuted(r, data, g->site, g->lattice,
                                                or_null(g->mapping, g->dims, chance),
                                                or_null(g->memory, g->dims, chance));
    bool moved = lemonGetReaderPointer(r) == lemonReaderBytes(r);
    lemonDestroyReader(r);
    MPI_File_close(&fp);
    return code == LEMON_SUCCESS && !moved ? LEMON_ERR_SEEK : code;
}

/* The same on all ranks. */
static bool is_good(const struct geometry *g, int chance)
{
    MPI_Comm cart;
    int periods[DIMS] = {0}, start[DIMS], sites[DIMS];
    size_t bytes;
    MPI_Cart_create(MPI_COMM_WORLD, g->dims, g->grid, periods, 0, &cart);
    lemonLocalLattice(cart, g->lattice, start, sites);
    unsigned char *data = fill(g, start, sites, g->memory, &bytes);
    unsigned char *copy = malloc(bytes + 1), *got = malloc(bytes + 1);
    memcpy(copy, data, bytes);
    bool good = write_it(g, cart, data, chance) == LEMON_SUCCESS;
    good = good && memcmp(data, copy, bytes) == 0; /* left alone */
    MPI_Barrier(MPI_COMM_WORLD);
    if (good && tap_rank == 0)
        good = file_is_right(g);
    memset(got, 0xaa, bytes + 1);
    good = read_it(g, cart, got, chance) == LEMON_SUCCESS && good;
    good = good && memcmp(got, data, bytes) == 0 && got[bytes] == 0xaa;
    free(data);
    free(copy);
    free(got);
    MPI_Comm_free(&cart);
    int mine = good, all;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return all;
}

static bool next_permutation(int *p, int n)
{
    int i = n - 2, j = n - 1;
    while (i >= 0 && p[i] > p[i + 1])
        i--;
    if (i < 0)
        return false;
    while (p[j] < p[i])
        j--;
    int swap = p[i];
    p[i] = p[j];
    p[j] = swap;
    for (i++, j = n - 1; i < j; i++, j--) {
        swap = p[i];
        p[i] = p[j];
        p[j] = swap;
    }
    return true;
}

/* A grid of all ranks, its factors turned round by `turn`. */
static void set_grid(struct geometry *g, int turn)
{
    int grid[DIMS] = {0};
    MPI_Dims_create(tap_ranks, g->dims, grid);
    for (int i = 0; i < g->dims; i++)
        g->grid[i] = grid[(i + turn) % g->dims];
}

/* With each of the mappings each step-th order of memory, from another one on each time. */
static void all_orders(int dims, const int (*mappings)[DIMS], int count, int step)
{
    static const int extents[DIMS] = {5, 7, 4, 6}, site_bytes[] = {1, 8, 24, 5};
    int bad = 0, tried = 0, order = 0;
    struct geometry g = {.dims = dims};
    for (int i = 0; i < count; i++) {
        memcpy(g.mapping, mappings[i], sizeof g.mapping);
        memcpy(g.memory, identity, sizeof g.memory);
        for (bool more = true; more; more = next_permutation(g.memory, dims)) {
            if (order++ % step != 0)
                continue;
            set_grid(&g, tried);
            for (int d = 0; d < dims; d++)
                g.lattice[d] = extents[(d + tried) % dims];
            g.site = site_bytes[tried % 4];
            bad += !is_good(&g, tried);
            tried++;
        }
    }
    tap_ok(bad == 0, "%d geometries of %d dimensions, %d wrong", tried, dims, bad);
}

/* tmLQCD's field: {T, X, Y, Z} in memory, t z y x on disk; long runs, too. */
static void as_programs_have_it(void)
{
    struct geometry g = {.dims = 4, .mapping = {0, 3, 2, 1}, .site = 96};
    memcpy(g.memory, identity, sizeof g.memory);
    for (int d = 0; d < 4; d++)
        g.lattice[d] = 12;
    set_grid(&g, 3);
    tap_ok(is_good(&g, 1), "short runs");
    memcpy(g.grid, (int[]){tap_ranks, 1, 1, 1}, sizeof g.grid);
    g.site = 576;
    tap_ok(is_good(&g, 1), "long runs");
    memcpy(g.lattice, (int[]){2, 3, 3, 1}, sizeof g.lattice);
    tap_ok(is_good(&g, 1), "ranks without a site");
    g.site = 0;
    tap_ok(is_good(&g, 1), "sites without a byte");
}

static void arguments(void)
{
    int odd = tap_rank == tap_ranks - 1, periods[3] = {0}, lattice[3] = {4, 4, 4};
    int wanted = tap_ranks == 1 ? LEMON_SUCCESS : LEMON_ERR_PARAM;
    struct geometry g = {.dims = 3};
    MPI_Comm cart;
    MPI_File fp;
    set_grid(&g, 0);
    MPI_Cart_create(MPI_COMM_WORLD, 3, g.grid, periods, 0, &cart);
    char *data = calloc(8, 64);
    static const int wrong[][3] = {{0, 1, 1}, {0, 1, 3}, {-1, 1, 2}, {1, 2, 1 << 30}};
    for (int reads = 0; reads < 2; reads++) {
        LemonWriter *w = reads ? NULL : writer(cart, &fp, 8 * 64);
        LemonReader *r = reads ? reader(cart, &fp) : NULL;
#define CALL(site, mapping, memory)                                                    \
    (reads ? lemonReadLatticeParallelPermuted(r, data, site, lattice, mapping, memory) \
           : lemonWriteLatticeParallelPermuted(w, data, site, lattice, mapping, memory))
        int bad = 0;
        for (int i = 0; i < 4; i++) {
            bad += CALL(8, NULL, odd ? wrong[i] : NULL) != LEMON_ERR_PARAM;
            bad += CALL(8, odd ? wrong[i] : NULL, NULL) != LEMON_ERR_PARAM;
        }
        tap_ok(bad == 0, "no permutation on one rank: %d taken", bad);
        tap_code(CALL(odd ? -1 : 8, NULL, NULL), LEMON_ERR_PARAM, "a negative site size");
        int order[] = {odd ? 2 : 0, 1, odd ? 0 : 2};
        tap_code(CALL(8, NULL, order), wanted, "another order on one rank");
        if (tap_ranks == 1)
            reads ? lemonReaderSeek(r, 0, MPI_SEEK_SET) : lemonWriterSeek(w, 0, MPI_SEEK_SET);
        tap_code(CALL(9, NULL, NULL), reads ? LEMON_ERR_READ : LEMON_ERR_WRITE,
                 "more than the record holds");
        order[0] = 2, order[2] = 0;
        tap_code(CALL(8, NULL, order), 0, "and all is well again");
        if (reads)
            lemonDestroyReader(r);
        else
            tap_code(lemonDestroyWriter(w), 0, "destroy");
        MPI_File_close(&fp);
    }
#undef CALL
    tap_ok(lemonReadLatticeParallelPermuted(NULL, data, 8, lattice, NULL, NULL) ==
                   LEMON_ERR_PARAM &&
               lemonWriteLatticeParallelPermuted(NULL, data, 8, lattice, NULL, NULL) ==
                   LEMON_ERR_PARAM,
           "NULL is answered");
    free(data);
    MPI_Comm_free(&cart);
}

/* ---- out of memory ---- */

static rlim_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* The last rank can have 24 MiB more, its part is 64. */
static void no_memory(void)
{
    enum { PART = 64 << 20 };
    int grid[2] = {tap_ranks, 1}, periods[2] = {0};
    int lattice[2] = {tap_ranks * 1024, 1024}, order[2] = {1, 0};
    bool odd = tap_rank == tap_ranks - 1;
    struct rlimit before, now;
    MPI_Comm cart;
    MPI_File fp;
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periods, 0, &cart);
    char *data = calloc(1, PART);
    LemonWriter *w = writer(cart, &fp, (MPI_Offset)tap_ranks * PART);
    getrlimit(RLIMIT_AS, &before);
    now = before;
    now.rlim_cur = address_space() + (24 << 20);
    if (odd)
        setrlimit(RLIMIT_AS, &now);
    int code = lemonWriteLatticeParallelPermuted(w, data, 64, lattice, NULL, order);
    setrlimit(RLIMIT_AS, &before);
    tap_code(code, LEMON_ERR_WRITE, "no memory on one rank to write from");
    tap_ok(w->pos == 0, "nothing is written");
    tap_code(lemonWriterSeek(w, 0, MPI_SEEK_END), 0, "a record of holes");
    tap_code(lemonDestroyWriter(w), 0, "destroy");
    MPI_File_close(&fp);
    LemonReader *r = reader(cart, &fp);
    if (odd)
        setrlimit(RLIMIT_AS, &now);
    code = lemonReadLatticeParallelPermuted(r, data, 64, lattice, NULL, order);
    setrlimit(RLIMIT_AS, &before);
    tap_code(code, LEMON_ERR_READ, "nor to read into");
    if (odd)
        setrlimit(RLIMIT_AS, &now);
    code = lemonReadLatticeParallelPermuted(r, data, 64, lattice, NULL, NULL);
    setrlimit(RLIMIT_AS, &before);
    tap_code(code, 0, "where the orders are the same none is needed");
    lemonDestroyReader(r);
    MPI_File_close(&fp);
    free(data);
    MPI_Comm_free(&cart);
}

int main(int argc, char *argv[])
{
    static const int of_3[6][DIMS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                      {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const int of_4[][DIMS] = {
        {0, 1, 2, 3}, {0, 3, 2, 1}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 3, 0, 1}};
    static const int of_2[][DIMS] = {{0, 1}, {1, 0}}, of_1[][DIMS] = {{0}};
    tap_begin(&argc, &argv);
    path = argv[1];
    all_orders(1, of_1, 1, 1);
    all_orders(2, of_2, 2, 1);
    all_orders(3, of_3, 6, 1);
    all_orders(4, of_4, 5, argc > 2 ? 1 : 5); /* 24 orders: 5 visits each of them once */
    as_programs_have_it();
    arguments();
    if (!ADDRESS_SANITIZER)
        no_memory();
    if (tap_rank == 0)
        unlink(path);
    return tap_end();
}
