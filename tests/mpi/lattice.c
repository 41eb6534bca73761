/*
 * lattice.c - lattices in every geometry against a serial oracle
 *
 * usage: lattice FILE [REPETITIONS]   4 if not given; 0 leaves out what takes long
 *
 * Byte b of the site with rank s on disk is a function of both; each rank fills its part from
 * what lemonLocalLattice() and the mapping say, rank 0 then reads the file without MPI.
 */
#include "lemon.h"
#include "tap.h"

#include <string.h>

enum {
    DIMS = 8,
};

struct geometry {
    int dims;
    int grid[DIMS], lattice[DIMS], mapping[DIMS];
    int site;   /* bytes */
    int blocks; /* lattices in the record */
    int lead;   /* bytes of a record before it, for odd offsets */
    int wait;   /* blocking calls */
};

static const char *path;

static unsigned char value(long site, int byte, int block)
{
    unsigned long x = (unsigned long)site * 2654435761u + (unsigned long)byte * 40503u +
                      (unsigned long)block * 7919u;
    return (unsigned char)(x >> 11 ^ x >> 3);
}

static long sites_of(const struct geometry *g)
{
    long n = 1;
    for (int i = 0; i < g->dims; i++)
        n *= g->lattice[i];
    return n;
}

/* This rank's sites in the order of its memory: their ranks on disk. */
static long *local_sites(const struct geometry *g, MPI_Comm cart, long *count)
{
    int start[DIMS], sites[DIMS], at[DIMS] = {0};
    lemonLocalLattice(cart, g->lattice, start, sites);
    *count = 1;
    for (int i = 0; i < g->dims; i++)
        *count *= sites[i];
    long *out = malloc((size_t)(*count + 1) * sizeof *out);
    for (long n = 0; n < *count; n++) {
        long disk = 0;
        for (int i = 0; i < g->dims; i++) {
            int d = g->mapping[i];
            disk = disk * g->lattice[d] + start[d] + at[d];
        }
        out[n] = disk;
        for (int i = g->dims - 1; i >= 0; i--) { /* memory is in the order of the disk */
            if (++at[g->mapping[i]] < sites[g->mapping[i]])
                break;
            at[g->mapping[i]] = 0;
        }
    }
    return out;
}

static void fill(const struct geometry *g, const long *sites, long count, int block,
                 unsigned char *data)
{
    for (long n = 0; n < count; n++)
        for (int b = 0; b < g->site; b++)
            data[n * g->site + b] = value(sites[n], b, block);
}

static int file_is_right(const struct geometry *g)
{
    long bytes = sites_of(g) * g->site * g->blocks;
    long padded_lead = (g->lead + 7) / 8 * 8, skip = 144 + padded_lead + 144;
    int good = 1;
    FILE *file = fopen(path, "rb");
    unsigned char *all = malloc((size_t)bytes + 8);
    if (!file || fseek(file, skip, SEEK_SET) != 0 ||
        fread(all, 1, (size_t)bytes, file) != (size_t)bytes)
        good = 0;
    for (long i = 0; good && i < bytes; i++) {
        long in_block = i % (sites_of(g) * g->site);
        int block = (int)(i / (sites_of(g) * g->site));
        if (all[i] != value(in_block / g->site, (int)(in_block % g->site), block)) {
            printf("# byte %ld of %ld is wrong\n", i, bytes);
            good = 0;
        }
    }
    if (good && fseek(file, 0, SEEK_END) == 0)
        good = ftell(file) == skip + (bytes + 7) / 8 * 8;
    if (file)
        fclose(file);
    free(all);
    return good;
}

static int write_it(const struct geometry *g, MPI_Comm cart, unsigned char **data)
{
    MPI_File fp;
    long bytes = sites_of(g) * g->site * g->blocks;
    MPI_Offset lead = g->lead;
    char text[64] = "lead";
    if (tap_rank == 0)
        unlink(path);
    MPI_Barrier(cart);
    MPI_File_open(cart, path, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &fp);
    LemonWriter *writer = lemonCreateWriter(&fp, cart);
    lemonWriterSetStripe(writer, g->lead % 2 ? 4096 : 1000);
    LemonRecordHeader *header = lemonCreateHeader(1, 0, "lead", lead);
    int code = lemonWriteRecordHeader(header, writer);
    lemonDestroyHeader(header);
    code |= lemonWriteRecordData(text, &lead, writer);
    code |= lemonWriterCloseRecord(writer);
    header = lemonCreateHeader(0, 1, "lattice", bytes);
    code |= lemonWriteRecordHeader(header, writer);
    lemonDestroyHeader(header);
    for (int block = 0; block < g->blocks; block++)
        code |= g->wait ? lemonWriteLatticeParallelMapped(writer, data[block], g->site,
                                                          g->lattice, g->mapping)
                        : lemonWriteLatticeParallelNonBlockingMapped(
                              writer, data[block], g->site, g->lattice, g->mapping);
    code |= lemonWriterCloseRecord(writer);
    code |= lemonDestroyWriter(writer);
    MPI_File_close(&fp);
    return code;
}

static int read_it(const struct geometry *g, MPI_Comm cart, unsigned char **data, long bytes)
{
    MPI_File fp;
    int code, good = 1;
    unsigned char *got = malloc((size_t)bytes + 1);
    MPI_File_open(cart, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &fp);
    LemonReader *reader = lemonCreateReader(&fp, cart);
    code = lemonReaderNextRecord(reader);
    code |= lemonReaderNextRecord(reader);
    good = good && strcmp(lemonReaderType(reader), "lattice") == 0;
    for (int block = 0; block < g->blocks; block++) {
        memset(got, 0xaa, (size_t)bytes);
        if (g->wait) {
            code |=
                lemonReadLatticeParallelMapped(reader, got, g->site, g->lattice, g->mapping);
        } else {
            code |= lemonReadLatticeParallelNonBlockingMapped(reader, got, g->site, g->lattice,
                                                              g->mapping);
            code |= lemonFinishReading(reader);
        }
        good = good && memcmp(got, data[block], (size_t)bytes) == 0;
    }
    good = good && lemonReaderNextRecord(reader) == LEMON_EOF;
    lemonDestroyReader(reader);
    MPI_File_close(&fp);
    free(got);
    return code == 0 && good;
}

static int try_geometry(const struct geometry *g)
{
    MPI_Comm cart;
    int periods[DIMS] = {0}, good;
    long count;
    unsigned char *data[4];
    MPI_Cart_create(MPI_COMM_WORLD, g->dims, g->grid, periods, 0, &cart);
    long *sites = local_sites(g, cart, &count);
    for (int block = 0; block < g->blocks; block++) {
        data[block] = malloc((size_t)(count * g->site) + 1);
        fill(g, sites, count, block, data[block]);
    }
    good = write_it(g, cart, data) == 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (tap_rank == 0)
        good = file_is_right(g) && good;
    good = read_it(g, cart, data, count * g->site) && good;
    for (int block = 0; block < g->blocks; block++)
        free(data[block]);
    free(sites);
    MPI_Comm_free(&cart);
    int all;
    MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return all;
}

/* The next permutation in lexicographic order; 0 after the last. */
static int next_permutation(int *p, int n)
{
    int i = n - 2, j = n - 1;
    while (i >= 0 && p[i] > p[i + 1])
        i--;
    if (i < 0)
        return 0;
    while (p[j] < p[i])
        j--;
    int t = p[i];
    p[i] = p[j];
    p[j] = t;
    for (i++, j = n - 1; i < j; i++, j--) {
        t = p[i];
        p[i] = p[j];
        p[j] = t;
    }
    return 1;
}

/* Moves on to a later permutation in lexicographic order; 0 after the last. */
static int skip_permutations(int *p, int n, int step)
{
    while (step > 0 && next_permutation(p, n))
        step--;
    return step == 0;
}

/* A grid of all ranks, its factors turned round by `turn`. */
static void set_grid(struct geometry *g, int turn)
{
    int grid[DIMS] = {0};
    MPI_Dims_create(tap_ranks, g->dims, grid);
    for (int i = 0; i < g->dims; i++)
        g->grid[i] = grid[(i + turn) % g->dims];
}

/* Each step-th mapping with so many grids. */
static void all_mappings(int dims, int step, int grids)
{
    static const int extents[DIMS] = {6, 7, 4, 5, 3, 2, 3, 2};
    static const int site_bytes[] = {1, 7, 96, 24};
    int bad = 0, tried = 0;
    struct geometry g = {.dims = dims, .blocks = 1};
    for (int i = 0; i < dims; i++)
        g.mapping[i] = i;
    do {
        for (int n = 0; n < grids; n++) {
            int turn = tried % dims;
            set_grid(&g, turn);
            for (int i = 0; i < dims; i++)
                g.lattice[i] = extents[(i + turn) % dims] + 6 * (g.grid[i] > 4);
            g.site = site_bytes[tried % 4];
            g.lead = tried % 17;
            g.wait = tried % 3 != 0;
            g.blocks = 1 + tried % 2;
            bad += !try_geometry(&g);
            tried++;
        }
    } while (skip_permutations(g.mapping, dims, step));
    tap_ok(bad == 0, "%d geometries of %d dimensions, %d wrong", tried, dims, bad);
}

static void some_of_many_dimensions(int grids)
{
    int bad = 0;
    struct geometry g = {.dims = 8, .site = 5, .blocks = 2, .wait = 1, .lead = 3};
    for (int turn = 0; turn < grids; turn++) {
        set_grid(&g, turn);
        for (int i = 0; i < 8; i++) {
            g.mapping[i] = (i * 3 + turn) % 8;
            g.lattice[i] = 2 + (i + turn) % 2 + 4 * (g.grid[i] > 2);
        }
        bad += !try_geometry(&g);
    }
    tap_ok(bad == 0, "8 dimensions, %d wrong", bad);
}

/* tmLQCD's call: {T, X, Y, Z}, mapping {0, 3, 2, 1}. */
static void as_tmlqcd(int repetitions)
{
    int bad = 0;
    struct geometry g = {.dims = 4, .mapping = {0, 3, 2, 1}, .site = 96, .blocks = 1};
    for (int i = 0; i < repetitions; i++) {
        set_grid(&g, i);
        for (int d = 0; d < 4; d++)
            g.lattice[d] = 12;
        g.wait = i % 2;
        bad += !try_geometry(&g);
    }
    tap_ok(bad == 0, "interleaved %d times, %d wrong", repetitions, bad);
}

static void long_runs(int inner)
{
    int bad = 0;
    for (int wait = 0; wait < 2; wait++) {
        struct geometry g = {.dims = 4,
                             .grid = {tap_ranks, 1, 1, 1},
                             .mapping = {0, 1, 2, 3},
                             .lattice = {tap_ranks * 3 + 1, inner, inner, inner},
                             .site = 576,
                             .blocks = 2,
                             .wait = wait,
                             .lead = 9};
        bad += !try_geometry(&g); /* one run a rank */
        struct geometry h = {.dims = 3,
                             .grid = {1, tap_ranks, 1},
                             .mapping = {0, 1, 2},
                             .lattice = {inner / 3, tap_ranks * 2, 44 * inner},
                             .site = 1000,
                             .blocks = 1,
                             .wait = wait,
                             .lead = 8};
        bad += !try_geometry(&h); /* several */
    }
    tap_ok(bad == 0, "long runs, %d wrong", bad);
}

static void empty_parts(void)
{
    struct geometry g = {.dims = 2,
                         .grid = {1, tap_ranks},
                         .mapping = {1, 0},
                         .lattice = {3, 2},
                         .site = 11,
                         .blocks = 2,
                         .wait = 1,
                         .lead = 1};
    tap_ok(try_geometry(&g), "ranks without a site");
    g.site = 0;
    tap_ok(try_geometry(&g), "sites of no bytes");
    g.site = 11;
    g.wait = 0;
    tap_ok(try_geometry(&g), "ranks without a site, not waiting");
}

int main(int argc, char *argv[])
{
    tap_begin(&argc, &argv);
    path = argv[1];
    int repetitions = argc > 2 ? atoi(argv[2]) : 4;
    int few = repetitions == 0, many = repetitions > 10;
    for (int dims = 1; dims <= 3; dims++)
        all_mappings(dims, 1, few ? 1 : dims);
    if (!few) {
        all_mappings(4, 1, many ? 4 : 1);
        all_mappings(5, many ? 1 : 5, many ? 5 : 1); /* 5: each dimension in each place */
    }
    some_of_many_dimensions(few ? 1 : 8);
    as_tmlqcd(few ? 2 : repetitions);
    long_runs(few ? 6 : 16);
    empty_parts();
    if (tap_rank == 0)
        unlink(path);
    return tap_end();
}
