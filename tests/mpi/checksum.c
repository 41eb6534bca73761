/*
 * checksum.c - the SciDAC checksum in the pass of a lattice call, and reading back
 *
 * usage: checksum FILE [REPETITIONS]   1 if not given; 0 leaves out what takes long
 *        checksum FILE sum RECORD SITE EXTENT...
 *        checksum FILE ildg
 *
 * The oracle is serial: rank 0 reads the file without MPI, site by site, with a CRC-32 of its
 * own. The second form reads the lattice in record RECORD of a container that is there, and
 * compares its sum with the record after it. The third leaves a gauge
 * configuration, as tmLQCD would write it.
 */
#include "lemon.h"
#include "tap.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum {
    DIMS = 5,
    BLOCKS = 3,
};

static const char *path;

/* ---- what goes wrong between writing and reading back ---- */

static struct {
    int flip; /* at the next sync a bit of the file, at its end or so many bytes before, ... */
    int cut;  /* ... or the file is short of so many bytes */
    int fail; /* the next read of this rank by MPI-IO is an error */
    int lose; /* the next write of this rank moves so many bytes less and says it moved all */
} fault;

static void damage(void)
{
    struct stat stat;
    unsigned char byte;
    int fd = open(path, O_RDWR);
    if (fd < 0 || fstat(fd, &stat) != 0)
        exit(1);
    if (fault.cut && ftruncate(fd, stat.st_size - fault.cut) != 0)
        exit(1);
    if (fault.flip) {
        if (pread(fd, &byte, 1, stat.st_size - fault.flip) != 1)
            exit(1);
        byte ^= 0x10;
        if (pwrite(fd, &byte, 1, stat.st_size - fault.flip) != 1)
            exit(1);
    }
    fsync(fd);
    close(fd);
}

int MPI_File_sync(MPI_File fh)
{
    int err = PMPI_File_sync(fh);
    MPI_Barrier(MPI_COMM_WORLD);
    if (tap_rank == 0 && (fault.flip || fault.cut))
        damage();
    fault.flip = fault.cut = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    return err;
}

int MPI_File_write_at(MPI_File fh, MPI_Offset offset, const void *buf, int count,
                      MPI_Datatype type, MPI_Status *status)
{
    int less = fault.lose < count ? fault.lose : 0;
    int err = PMPI_File_write_at(fh, offset, buf, count - less, type, status);
    if (less) {
        fault.lose = 0;
        MPI_Status_set_elements(status, MPI_BYTE, count);
    }
    return err;
}

/* A request that has been completed, and says that it moved all. */
static int query_moved(void *moved, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_BYTE, *(int *)moved);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int free_moved(void *moved)
{
    (void)moved;
    return MPI_SUCCESS;
}

static int cancel_moved(void *moved, int complete)
{
    (void)moved, (void)complete;
    return MPI_SUCCESS;
}

int MPI_File_iwrite_at(MPI_File fh, MPI_Offset offset, const void *buf, int count,
                       MPI_Datatype type, MPI_Request *request)
{
    static int moved;
    MPI_Status status;
    if (fault.lose == 0 || fault.lose >= count)
        return PMPI_File_iwrite_at(fh, offset, buf, count, type, request);
    int err = PMPI_File_write_at(fh, offset, buf, count - fault.lose, type, &status);
    moved = count;
    fault.lose = 0;
    MPI_Grequest_start(query_moved, free_moved, cancel_moved, &moved, request);
    MPI_Grequest_complete(*request);
    return err;
}

int MPI_File_read_at(MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype type,
                     MPI_Status *status)
{
    if (!fault.fail)
        return PMPI_File_read_at(fh, offset, buf, count, type, status);
    fault.fail = 0;
    return MPI_ERR_IO;
}

/* ---- the oracle ---- */

static uint32_t crc32(const unsigned char *data, size_t n)
{
    static uint32_t table[256];
    uint32_t crc = 0xffffffff;
    for (uint32_t i = 0; table[255] == 0 && i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
        table[i] = c;
    }
    for (size_t i = 0; i < n; i++)
        crc = table[(crc ^ data[i]) & 255] ^ crc >> 8;
    return ~crc;
}

static uint32_t rotated(uint32_t crc, long by)
{
    return (uint32_t)((uint64_t)crc << by | (uint64_t)crc >> (32 - by));
}

/* Of bytes [at, at + n) of the file: rank 0 tells the others. */
static LemonChecksum oracle(long at, long n, int site)
{
    LemonChecksum sum = {0, 0};
    FILE *file = tap_rank == 0 ? fopen(path, "rb") : NULL;
    unsigned char *data = malloc((size_t)site + 1);
    if (file && fseek(file, at, SEEK_SET) == 0)
        for (long r = 0; site && r < n / site; r++) {
            if (fread(data, 1, (size_t)site, file) != (size_t)site)
                break;
            sum.suma ^= rotated(crc32(data, (size_t)site), r % 29);
            sum.sumb ^= rotated(crc32(data, (size_t)site), r % 31);
        }
    if (file)
        fclose(file);
    free(data);
    MPI_Bcast(&sum, 2, MPI_UINT32_T, 0, MPI_COMM_WORLD);
    return sum;
}

static int same(LemonChecksum a, LemonChecksum b)
{
    return a.suma == b.suma && a.sumb == b.sumb;
}

/* ---- a record of lattices ---- */

struct geometry {
    int dims;
    int grid[DIMS], lattice[DIMS], mapping[DIMS], memory[DIMS];
    int site;   /* bytes */
    int blocks; /* lattices in the record */
    int form;   /* FORM_... */
    int stripe;
    int lead; /* bytes of the record before the first lattice */
    int verify;
};

enum {
    FORM_WAIT,
    FORM_START,
    FORM_PERMUTED,
    FORMS,
};

static MPI_Comm cart;
static MPI_File fp;

static long block_bytes(const struct geometry *g)
{
    long n = g->site;
    for (int i = 0; i < g->dims; i++)
        n *= g->lattice[i];
    return n;
}

static long local_bytes(const struct geometry *g)
{
    int start[DIMS], sites[DIMS];
    long n = g->site;
    lemonLocalLattice(cart, g->lattice, start, sites);
    for (int i = 0; i < g->dims; i++)
        n *= sites[i];
    return n;
}

static void make_cart(const struct geometry *g)
{
    int periods[DIMS] = {0};
    MPI_Cart_create(MPI_COMM_WORLD, g->dims, g->grid, periods, 0, &cart);
}

static void fill(unsigned char *data, long n, unsigned seed)
{
    uint64_t x = seed * 2654435761u + (unsigned)tap_rank * 40503u + 1;
    for (long i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        data[i] = (unsigned char)(x >> 56);
    }
}

static LemonWriter *open_writer(int mode, MPI_Offset bytes)
{
    if (tap_rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_open(cart, path, mode | MPI_MODE_CREATE, MPI_INFO_NULL, &fp);
    LemonWriter *writer = lemonCreateWriter(&fp, cart);
    LemonRecordHeader *header = lemonCreateHeader(1, 0, "lattice", bytes);
    lemonWriteRecordHeader(header, writer);
    lemonDestroyHeader(header);
    return writer;
}

static LemonReader *open_reader(void)
{
    MPI_File_open(cart, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &fp);
    LemonReader *reader = lemonCreateReader(&fp, cart);
    lemonReaderNextRecord(reader);
    return reader;
}

static int write_block(const struct geometry *g, LemonWriter *writer, void *data)
{
    if (g->form == FORM_START)
        return lemonWriteLatticeParallelNonBlockingMapped(writer, data, g->site, g->lattice,
                                                          g->mapping);
    if (g->form == FORM_PERMUTED)
        return lemonWriteLatticeParallelPermuted(writer, data, g->site, g->lattice, g->mapping,
                                                 g->memory);
    return lemonWriteLatticeParallelMapped(writer, data, g->site, g->lattice, g->mapping);
}

static int read_block(const struct geometry *g, LemonReader *reader, void *data)
{
    if (g->form == FORM_START)
        return lemonReadLatticeParallelNonBlockingMapped(reader, data, g->site, g->lattice,
                                                         g->mapping);
    if (g->form == FORM_PERMUTED)
        return lemonReadLatticeParallelPermuted(reader, data, g->site, g->lattice, g->mapping,
                                                g->memory);
    return lemonReadLatticeParallelMapped(reader, data, g->site, g->lattice, g->mapping);
}

/* The sum that the writer has, and the record of it. */
static int write_it(const struct geometry *g, LemonChecksum *sum)
{
    long n = local_bytes(g), bytes = g->lead + block_bytes(g) * g->blocks;
    MPI_Offset lead = g->lead;
    unsigned char *data[BLOCKS];
    LemonWriter *writer = open_writer(MPI_MODE_RDWR, bytes);
    int code = lemonWriterSetStripe(writer, g->stripe);
    if (g->verify)
        code |= lemonWriterSetVerify(writer, 1, g->verify == 1 ? path : NULL);
    code |= lemonWriteRecordData("any number of bytes", &lead, writer);
    code |= lemonWriterSetChecksum(writer, 1);
    for (int i = 0; i < g->blocks; i++) {
        data[i] = malloc((size_t)n + 1);
        fill(data[i], n, (unsigned)(i + g->site));
        code |= write_block(g, writer, data[i]);
    }
    if (g->site % 2) /* before or after closing */
        code |= lemonWriterChecksum(writer, sum);
    code |= lemonWriterCloseRecord(writer);
    if (g->site % 2 == 0)
        code |= lemonWriterChecksum(writer, sum);
    code |= lemonWriteChecksum(writer, 0, 1, sum);
    code |= lemonDestroyWriter(writer);
    MPI_File_close(&fp);
    for (int i = 0; i < g->blocks; i++)
        free(data[i]);
    return code;
}

static int read_it(const struct geometry *g, LemonChecksum *sum, LemonChecksum *stored)
{
    long n = local_bytes(g);
    unsigned char *data[BLOCKS];
    LemonReader *reader = open_reader();
    int code = lemonReaderSetStripe(reader, g->stripe);
    code |= lemonSetReaderPointer(reader, g->lead);
    code |= lemonReaderSetChecksum(reader, 1);
    for (int i = 0; i < g->blocks; i++) {
        data[i] = malloc((size_t)n + 1);
        code |= read_block(g, reader, data[i]);
    }
    code |= lemonReaderChecksum(reader, sum);
    code |= lemonReaderNextRecord(reader);
    code |= lemonReadChecksum(reader, stored);
    lemonDestroyReader(reader);
    MPI_File_close(&fp);
    for (int i = 0; i < g->blocks; i++)
        free(data[i]);
    return code;
}

/* The dimensions as they are on disk, split over the ranks in another way. */
static struct geometry otherwise(const struct geometry *g, int turn)
{
    struct geometry other = *g;
    for (int i = 0; i < g->dims; i++) {
        other.mapping[i] = i;
        other.lattice[i] = g->lattice[g->mapping[i]];
        other.grid[i] = g->grid[(i + turn) % g->dims];
    }
    other.form = (g->form + turn) % FORMS;
    other.stripe = g->stripe == 1000 ? 1 << 20 : 1000;
    return other;
}

static int try_geometry(const struct geometry *g, int turn)
{
    LemonChecksum wrote, read = {0, 0}, again = {0, 0}, stored = {0, 0}, want;
    make_cart(g);
    int good = write_it(g, &wrote) == 0;
    MPI_Barrier(MPI_COMM_WORLD);
    want = oracle(144 + g->lead, block_bytes(g) * g->blocks, g->site);
    good = good && same(wrote, want);
    good = read_it(g, &read, &stored) == 0 && same(read, want) && same(stored, want) && good;
    MPI_Comm_free(&cart);
    struct geometry other = otherwise(g, turn);
    make_cart(&other);
    good = read_it(&other, &again, &stored) == 0 && same(again, want) && good;
    MPI_Comm_free(&cart);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!good && tap_rank == 0)
        printf("# %08x %08x wrote, %08x %08x should be, %08x %08x read, %08x otherwise; form "
               "%d, site %d, stripe %d\n",
               wrote.suma, wrote.sumb, want.suma, want.sumb, read.suma, read.sumb, again.suma,
               g->form, g->site, g->stripe);
    return good;
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

static void set_grid(struct geometry *g, int turn)
{
    int grid[DIMS] = {0};
    MPI_Dims_create(tap_ranks, g->dims, grid);
    for (int i = 0; i < g->dims; i++)
        g->grid[i] = grid[(i + turn) % g->dims];
}

/* Each step-th mapping; forms, sites, stripes, blocks and grids go round. */
static void all_mappings(int dims, int step, int grids)
{
    static const int extents[DIMS] = {6, 7, 4, 5, 3};
    static const int sites[] = {1, 7, 96, 24, 577, 13};
    int bad = 0, tried = 0;
    struct geometry g = {.dims = dims};
    for (int i = 0; i < dims; i++)
        g.mapping[i] = i;
    do {
        for (int n = 0; n < grids; n++, tried++) {
            set_grid(&g, tried % dims);
            for (int i = 0; i < dims; i++) {
                g.lattice[i] = extents[(i + tried) % dims] + 3 * (g.grid[i] > 4);
                g.memory[i] = g.mapping[(i + tried % dims) % dims];
            }
            g.site = sites[tried % 6];
            g.form = tried % 7 % FORMS;
            g.blocks = 1 + tried % BLOCKS;
            g.stripe = tried % 2 ? 4096 : 1000;
            g.lead = tried % 5 == 0 ? 11 : 0;
            g.verify = tried % 4 % 3;
            bad += !try_geometry(&g, tried % dims);
        }
    } while (skip_permutations(g.mapping, dims, step));
    tap_ok(bad == 0, "%d geometries of %d dimensions, %d wrong", tried, dims, bad);
}

/* Long enough for the direct way, several chunks and requests; and sites larger than windows.
 */
static void long_runs(void)
{
    int bad = 0;
    for (int form = 0; form < FORMS; form++) {
        struct geometry one = {.dims = 3,
                               .grid = {tap_ranks, 1, 1},
                               .lattice = {tap_ranks + 1, 90, 97},
                               .mapping = {0, 1, 2},
                               .memory = {0, 2, 1},
                               .site = 577,
                               .blocks = 2,
                               .form = form,
                               .stripe = 4096,
                               .verify = 1 + form % 2};
        bad += !try_geometry(&one, 1);
        struct geometry several = {.dims = 2,
                                   .grid = {1, tap_ranks},
                                   .lattice = {3, 2 * tap_ranks + 1},
                                   .mapping = {0, 1},
                                   .memory = {1, 0},
                                   .site = 300007,
                                   .blocks = 1,
                                   .form = form,
                                   .stripe = 1000,
                                   .verify = 1};
        bad += !try_geometry(&several, 1);
        struct geometry huge = {.dims = 2,
                                .grid = {1, tap_ranks},
                                .lattice = {2, tap_ranks},
                                .mapping = {1, 0},
                                .memory = {1, 0},
                                .site = 5000011 / tap_ranks,
                                .blocks = 1,
                                .form = form,
                                .stripe = 1 << 20,
                                .verify = 1};
        bad += !try_geometry(&huge, 1);
    }
    tap_ok(bad == 0, "long runs and large sites, %d wrong", bad);
}

static void empty_parts(void)
{
    int bad = 0;
    for (int form = 0; form < FORMS; form++) {
        struct geometry g = {.dims = 2,
                             .grid = {1, tap_ranks},
                             .lattice = {3, 2},
                             .mapping = {1, 0},
                             .memory = {0, 1},
                             .site = 11,
                             .blocks = 2,
                             .form = form,
                             .stripe = 7,
                             .verify = 1};
        bad += !try_geometry(&g, 1);
        g.site = 0;
        bad += !try_geometry(&g, 1);
    }
    tap_ok(bad == 0, "ranks without a site, sites of no bytes, %d wrong", bad);
}

/* ---- bits ---- */

static const struct geometry plain = {.dims = 4,
                                      .lattice = {4, 4, 6, 4},
                                      .mapping = {0, 3, 2, 1},
                                      .memory = {0, 1, 2, 3},
                                      .site = 96,
                                      .blocks = 1,
                                      .stripe = 4096};

static void flip_bits(int times)
{
    struct geometry g = plain;
    LemonChecksum want, got, stored;
    int missed = 0;
    set_grid(&g, 0);
    make_cart(&g);
    write_it(&g, &want);
    unsigned random = 12345;
    for (int i = 0; i < times; i++) {
        random = random * 1103515245u + 12345u;
        long bit = (long)(random >> 4) % (block_bytes(&g) * 8);
        for (int twice = 0; twice < 2; twice++) {
            unsigned char byte;
            MPI_Barrier(MPI_COMM_WORLD);
            int fd = tap_rank == 0 ? open(path, O_RDWR) : -1;
            if (fd >= 0 && pread(fd, &byte, 1, 144 + bit / 8) == 1) {
                byte ^= (unsigned char)(1 << bit % 8);
                missed += pwrite(fd, &byte, 1, 144 + bit / 8) != 1;
            }
            close(fd);
            MPI_Barrier(MPI_COMM_WORLD);
            g.form = i % FORMS;
            missed += read_it(&g, &got, &stored) != 0 || same(got, stored) != twice;
        }
    }
    MPI_Comm_free(&cart);
    tap_ok(missed == 0, "%d bits flipped, %d missed", times, missed);
}

/* ---- reading back ---- */

static void damaged(const char *what, int form, int by_path, int flip, int cut, int lose)
{
    char words[128];
    struct geometry g = plain;
    g.form = form;
    set_grid(&g, 1);
    make_cart(&g);
    long n = local_bytes(&g), bytes = block_bytes(&g);
    unsigned char *data = malloc((size_t)n + 1);
    fill(data, n, 5);
    LemonWriter *writer = open_writer(MPI_MODE_RDWR, bytes);
    int code = lemonWriterSetStripe(writer, 4096);
    code |= lemonWriterSetVerify(writer, 1, by_path ? path : NULL);
    fault.lose = tap_rank == tap_ranks / 2 ? lose : 0;
    code |= write_block(&g, writer, data);
    code |= lemonFinishWriting(writer);
    fault.lose = 0;
    tap_ok(code == LEMON_SUCCESS, "%s, form %d, %s: nobody sees it", what, form,
           by_path ? "by path" : "by MPI-IO");
    fault.flip = flip;
    fault.cut = cut;
    snprintf(words, sizeof words, "%s is seen when the record is closed", what);
    tap_code(lemonWriterCloseRecord(writer), LEMON_ERR_CHECKSUM, words);
    tap_code(lemonWriterCloseRecord(writer), LEMON_ERR_CHECKSUM, "and again");
    code = lemonWriterSeek(writer, 0, MPI_SEEK_SET);
    code |= write_block(&g, writer, data);
    tap_code(code | lemonWriterCloseRecord(writer), LEMON_SUCCESS, "written again it is good");
    tap_code(lemonDestroyWriter(writer), LEMON_SUCCESS, "and the writer is, too");
    MPI_File_close(&fp);
    MPI_Comm_free(&cart);
    free(data);
}

/* all: each damage with each form and each way; otherwise, each two of these together. */
static void read_back(int all)
{
    int n = (int)block_bytes(&plain);
    const struct {
        const char *what;
        int flip, cut;
    } damages[] = {{"a flipped bit", 1, 0},
                   {"a flipped bit of the first byte", n, 0},
                   {"a flipped bit in the midst", n / 2 + 1, 0},
                   {"a file cut short", 0, 1000},
                   {"a file that is not there", 0, n}};
    for (int form = 0; form < FORMS; form++)
        for (int i = 0; i < 5; i++)
            for (int by_path = 0; by_path < 2; by_path++)
                if (all || by_path == (form + i) % 2)
                    damaged(damages[i].what, form, by_path, damages[i].flip, damages[i].cut, 0);
    /* A write that says what is not true: by a rank that has much to move. */
    damaged("a short write", FORM_WAIT, 1, 0, 0, 100);
    damaged("a lost half", FORM_PERMUTED, 0, 0, 0, 2048);
}

static void unreadable(void)
{
    struct geometry g = plain;
    set_grid(&g, 0);
    make_cart(&g);
    long n = local_bytes(&g);
    unsigned char *data = malloc((size_t)n + 1);
    fill(data, n, 7);
    LemonWriter *writer = open_writer(MPI_MODE_RDWR, block_bytes(&g));
    int code = lemonWriterSetVerify(writer, 1, NULL);
    tap_code(code | write_block(&g, writer, data), LEMON_SUCCESS, "written");
    fault.fail = tap_rank == tap_ranks / 2;
    tap_code(lemonWriterCloseRecord(writer), LEMON_ERR_READ, "a rank that cannot read");
    tap_code(lemonWriterCloseRecord(writer), LEMON_SUCCESS, "and then can");
    tap_code(lemonDestroyWriter(writer), LEMON_SUCCESS, "destroyed");
    MPI_File_close(&fp);
    MPI_Comm_free(&cart);
    free(data);
}

static void read_back_arguments(void)
{
    struct geometry g = plain;
    set_grid(&g, 0);
    make_cart(&g);
    long n = local_bytes(&g), bytes = block_bytes(&g);
    unsigned char *data = malloc((size_t)n + 1);
    fill(data, n, 9);
    LemonWriter *writer = open_writer(MPI_MODE_WRONLY, bytes);
    tap_code(lemonWriterSetVerify(NULL, 1, path), LEMON_ERR_PARAM, "verify without a writer");
    tap_code(lemonWriterSetVerify(writer, 1, NULL), LEMON_ERR_PARAM, "open for writing only");
    tap_code(lemonWriterSetVerify(writer, 1, tap_rank ? path : "/nowhere/at/all"),
             LEMON_ERR_PARAM, "a rank that cannot open it");
    tap_code(lemonWriterSetVerify(writer, 1, path), LEMON_SUCCESS, "by path");
    if (tap_ranks > 1)
        tap_code(lemonWriterSetVerify(writer, tap_rank == 0, path), LEMON_ERR_PARAM,
                 "ranks that differ");
    tap_code(lemonWriterSetVerify(writer, 0, NULL), LEMON_SUCCESS, "and off again");
    fault.flip = 1;
    int code = write_block(&g, writer, data);
    tap_code(code | lemonWriterCloseRecord(writer), LEMON_SUCCESS, "then nothing is seen");
    tap_code(lemonDestroyWriter(writer), LEMON_SUCCESS, "destroyed");
    MPI_File_close(&fp);

    /* Both may be on; the sum begins anew, what is to be read back does not. */
    writer = open_writer(MPI_MODE_WRONLY, 2 * bytes);
    LemonChecksum sum = {0, 0};
    code = lemonWriterSetVerify(writer, 1, path);
    code |= write_block(&g, writer, data);
    tap_code(code, LEMON_SUCCESS, "a lattice to be read back");
    tap_code(lemonWriterChecksum(writer, &sum), LEMON_ERR_PARAM, "but no checksum");
    code = lemonWriterSetChecksum(writer, 1);
    code |= write_block(&g, writer, data);
    code |= lemonWriterChecksum(writer, &sum);
    MPI_Barrier(MPI_COMM_WORLD);
    fault.flip = (int)(bytes + 5);
    tap_code(lemonWriterCloseRecord(writer), LEMON_ERR_CHECKSUM, "a bit in the first lattice");
    tap_ok(code == 0 && same(sum, oracle(144 + bytes, bytes, g.site)),
           "the sum is of the second one");
    tap_code(lemonDestroyWriter(writer), LEMON_ERR_CHECKSUM, "destroy tells it, too");
    MPI_File_close(&fp);
    MPI_Comm_free(&cart);
    free(data);
}

/* ---- the API call by call ---- */

static void api(void)
{
    struct geometry g = plain;
    LemonChecksum sum = {1, 2}, again;
    set_grid(&g, 0);
    make_cart(&g);
    long n = local_bytes(&g), bytes = block_bytes(&g);
    MPI_Offset text = 20;
    unsigned char *data = malloc((size_t)n + 1);
    fill(data, n, 3);
    tap_code(lemonWriterSetChecksum(NULL, 1), LEMON_ERR_PARAM, "no writer");
    tap_code(lemonWriterChecksum(NULL, &sum), LEMON_ERR_PARAM, "no writer");
    tap_code(lemonWriteChecksum(NULL, 1, 1, &sum), LEMON_ERR_PARAM, "no writer");
    tap_code(lemonReaderSetChecksum(NULL, 1), LEMON_ERR_PARAM, "no reader");
    tap_code(lemonReaderChecksum(NULL, &sum), LEMON_ERR_PARAM, "no reader");
    tap_code(lemonReadChecksum(NULL, &sum), LEMON_ERR_PARAM, "no reader");

    LemonWriter *writer = open_writer(MPI_MODE_WRONLY, 3 * bytes);
    tap_code(lemonWriterChecksum(writer, &sum), LEMON_ERR_PARAM, "no checksum was wanted");
    if (tap_ranks > 1)
        tap_code(lemonWriterSetChecksum(writer, tap_rank == 0), LEMON_ERR_PARAM,
                 "ranks that differ");
    tap_code(lemonWriterSetChecksum(writer, 1), LEMON_SUCCESS, "wanted");
    tap_code(lemonWriterChecksum(writer, &sum), LEMON_ERR_PARAM, "nothing written yet");
    tap_ok(sum.suma == 1 && sum.sumb == 2, "an error leaves the sum alone");
    tap_code(write_block(&g, writer, data), LEMON_SUCCESS, "the first lattice");
    tap_code(write_block(&g, writer, data), LEMON_SUCCESS, "the second");
    tap_code(lemonWriterSeek(writer, g.site * 3, MPI_SEEK_SET), LEMON_SUCCESS, "back");
    tap_code(write_block(&g, writer, data), LEMON_ERR_PARAM, "half of a lattice again");
    tap_code(lemonWriterSeek(writer, 5, MPI_SEEK_SET), LEMON_SUCCESS, "not to a site");
    tap_code(write_block(&g, writer, data), LEMON_ERR_PARAM, "no site begins here");
    tap_code(lemonWriterSeek(writer, bytes, MPI_SEEK_SET), LEMON_SUCCESS, "back");
    fill(data, n, 4);
    tap_code(write_block(&g, writer, data), LEMON_SUCCESS, "another second one");
    tap_code(lemonWriterSeek(writer, 2 * bytes, MPI_SEEK_SET), LEMON_SUCCESS, "on");
    g.form = FORM_START;
    tap_code(write_block(&g, writer, data), LEMON_SUCCESS, "a third, pending");
    tap_code(lemonWriterChecksum(writer, tap_rank ? NULL : &sum), LEMON_SUCCESS, "waits");
    tap_code(lemonWriterCloseRecord(writer), LEMON_SUCCESS, "closed");
    tap_code(lemonWriterChecksum(writer, &again), LEMON_SUCCESS, "still there");
    tap_ok(tap_rank || same(sum, again), "and the same");
    tap_ok(same(again, oracle(144, 3 * bytes, g.site)), "what is in the file");
    tap_code(lemonWriteChecksum(writer, 1, 0, &again), LEMON_ERR_MBME, "MB in a message");
    if (tap_ranks > 1) {
        LemonChecksum other = {again.suma, again.sumb + (tap_rank == 0)};
        tap_code(lemonWriteChecksum(writer, 0, 0, &other), LEMON_ERR_PARAM, "sums that differ");
    }
    tap_code(lemonWriteChecksum(writer, 0, 0, tap_rank ? &again : NULL), LEMON_ERR_PARAM,
             "no sum");
    tap_code(lemonWriteChecksum(writer, 0, 0, &again), LEMON_SUCCESS, "its record");
    tap_code(lemonWriterChecksum(writer, &sum), LEMON_ERR_PARAM, "which has none");
    LemonRecordHeader *header = lemonCreateHeader(0, 1, "text", text);
    lemonWriteRecordHeader(header, writer);
    tap_code(lemonWriteChecksum(writer, 0, 0, &again), LEMON_ERR_HEADER_NEXT,
             "inside a record");
    lemonWriteRecordData("<suma>1</suma> <sum>", &text, writer);
    lemonDestroyHeader(header);
    tap_code(lemonDestroyWriter(writer), LEMON_SUCCESS, "written");
    MPI_File_close(&fp);

    LemonReader *reader = open_reader();
    tap_code(lemonReaderChecksum(reader, &sum), LEMON_ERR_PARAM, "not wanted");
    tap_code(lemonReaderSetChecksum(reader, 1), LEMON_SUCCESS, "wanted");
    tap_code(lemonSetReaderPointer(reader, 2 * bytes), LEMON_SUCCESS, "the last one first");
    tap_code(read_block(&g, reader, data), LEMON_SUCCESS, "read, pending");
    tap_code(lemonSetReaderPointer(reader, 0), LEMON_SUCCESS, "then the others");
    tap_code(read_block(&g, reader, data), LEMON_SUCCESS, "read, pending");
    tap_code(read_block(&g, reader, data), LEMON_SUCCESS, "read, pending");
    tap_code(lemonReaderChecksum(reader, &sum), LEMON_SUCCESS, "in any order");
    tap_ok(same(sum, again), "it is the same");
    tap_code(lemonSetReaderPointer(reader, bytes), LEMON_SUCCESS, "the second one");
    tap_code(lemonReaderSetChecksum(reader, 1), LEMON_SUCCESS, "of its own");
    tap_code(read_block(&g, reader, data), LEMON_SUCCESS, "read");
    tap_code(lemonReaderChecksum(reader, &sum), LEMON_SUCCESS, "summed");
    tap_ok(same(sum, oracle(144 + bytes, bytes, g.site)), "from rank 0 on");
    tap_code(lemonReadChecksum(reader, &sum), LEMON_ERR_READ, "a lattice is no checksum");
    tap_code(lemonReaderNextRecord(reader), LEMON_SUCCESS, "its record");
    tap_code(lemonReaderChecksum(reader, &sum), LEMON_ERR_PARAM, "has no lattice");
    tap_ok(strcmp(lemonReaderType(reader), "scidac-checksum") == 0, "has its type");
    tap_code(lemonReadChecksum(reader, NULL), LEMON_SUCCESS, "read");
    tap_code(lemonReadChecksum(reader, &sum), LEMON_SUCCESS, "read again");
    tap_ok(same(sum, again), "it is what was written");
    tap_code(lemonReaderNextRecord(reader), LEMON_SUCCESS, "other text");
    tap_code(lemonReadChecksum(reader, &sum), LEMON_ERR_READ, "is no checksum");
    tap_code(lemonReaderCloseRecord(reader), LEMON_SUCCESS, "closed");
    tap_code(lemonReadChecksum(reader, &sum), LEMON_ERR_HEADER_NEXT, "no record is open");
    lemonDestroyReader(reader);
    MPI_File_close(&fp);
    MPI_Comm_free(&cart);
    free(data);
}

/* ---- files that others have written ---- */

static void sum_record(int argc, char **argv)
{
    struct geometry g = {.site = atoi(argv[1]), .blocks = 1, .stripe = 4096};
    LemonChecksum sum = {0, 0}, stored = {1, 1};
    for (g.dims = 0; g.dims < argc - 2; g.dims++) {
        g.lattice[g.dims] = atoi(argv[2 + g.dims]);
        g.mapping[g.dims] = g.memory[g.dims] = g.dims;
    }
    for (int turn = 0; turn < g.dims; turn++)
        for (g.form = 0; g.form < FORMS; g.form++) {
            set_grid(&g, turn);
            make_cart(&g);
            unsigned char *data = malloc((size_t)local_bytes(&g) + 1);
            LemonReader *reader = open_reader();
            int code = LEMON_SUCCESS;
            for (int i = 1; i < atoi(argv[0]); i++)
                code |= lemonReaderNextRecord(reader);
            code |= lemonReaderSetChecksum(reader, 1);
            code |= read_block(&g, reader, data);
            code |= lemonReaderChecksum(reader, &sum);
            code |= lemonReaderNextRecord(reader);
            code |= lemonReadChecksum(reader, &stored);
            lemonDestroyReader(reader);
            MPI_File_close(&fp);
            MPI_Comm_free(&cart);
            free(data);
            tap_ok(code == 0 && same(sum, stored), "%08x %08x, should be %08x %08x", sum.suma,
                   sum.sumb, stored.suma, stored.sumb);
        }
}

/* ---- a file for others ---- */

static int write_text(LemonWriter *writer, int mb, const char *type, const char *text)
{
    MPI_Offset n = (MPI_Offset)strlen(text);
    LemonRecordHeader *header = lemonCreateHeader(mb, 0, type, n);
    int code = lemonWriteRecordHeader(header, writer);
    lemonDestroyHeader(header);
    char *copy = strdup(text);
    code |= lemonWriteRecordData(copy, &n, writer);
    free(copy);
    return code | lemonWriterCloseRecord(writer);
}

static void write_ildg(void)
{
    struct geometry g = plain;
    LemonChecksum sum = {0, 0};
    g.site = 576;
    set_grid(&g, 1);
    make_cart(&g);
    long n = local_bytes(&g);
    unsigned char *data = malloc((size_t)n + 1);
    fill(data, n, 6);
    MPI_File_open(cart, path, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &fp);
    LemonWriter *writer = lemonCreateWriter(&fp, cart);
    int code = lemonWriterSetChecksum(writer, 1);
    code |= lemonWriterSetVerify(writer, 1, path);
    code |= write_text(writer, 1, "ildg-format",
                       "<ildgFormat xmlns=\"http://www.lqcd.org/ildg\"><version>1.0</version>"
                       "<field>su3gauge</field><precision>64</precision>"
                       "<lx>4</lx><ly>6</ly><lz>4</lz><lt>4</lt></ildgFormat>");
    LemonRecordHeader *header = lemonCreateHeader(0, 0, "ildg-binary-data", block_bytes(&g));
    code |= lemonWriteRecordHeader(header, writer);
    lemonDestroyHeader(header);
    code |= write_block(&g, writer, data);
    code |= lemonWriterCloseRecord(writer);
    code |= lemonWriterChecksum(writer, &sum);
    code |= lemonWriteChecksum(writer, 0, 1, &sum);
    tap_code(code | lemonDestroyWriter(writer), LEMON_SUCCESS, "a gauge configuration");
    MPI_File_close(&fp);
    MPI_Comm_free(&cart);
    free(data);
}

int main(int argc, char *argv[])
{
    tap_begin(&argc, &argv);
    path = argv[1];
    if (argc > 5 && strcmp(argv[2], "sum") == 0) {
        sum_record(argc - 3, argv + 3);
        return tap_end();
    }
    if (argc > 2 && strcmp(argv[2], "ildg") == 0) {
        write_ildg();
        return tap_end();
    }
    int repetitions = argc > 2 ? atoi(argv[2]) : 1;
    api();
    read_back_arguments();
    read_back(repetitions > 1);
    unreadable();
    empty_parts();
    all_mappings(3, 1, repetitions ? 3 : 1);
    if (repetitions) {
        all_mappings(4, 1, 1 + repetitions / 10);
        all_mappings(5, repetitions > 1 ? 1 : 5, 1 + repetitions / 100);
        long_runs();
    }
    flip_bits(repetitions ? 5 * (1 + repetitions) : 2);
    if (tap_rank == 0)
        unlink(path);
    return tap_end();
}
