/*
 * big.c - test more than 2 GiB in one call, and offsets beyond 4 GiB
 *
 * usage: big FILE data|direct|aggregators BYTES
 *        big FILE far
 *
 * BYTES are zeros except for a mark in each 64 KiB; in a lattice, the first rank has more of
 * them than the others. The blocking calls of MPI-IO below skip pages that are zero (except the
 * last one, which determines the file's length), so file and memory take a sixteenth of BYTES.
 * Only reads with aggregators use all of the memory.
 */
#include "files.h"

#include <fcntl.h>
#include <sys/mman.h>

enum {
    BLOCK = 65536,
    COLUMNS = 3, /* the first of 2 ranks has 2 */
    DATA = 144,  /* offset of the first record's data */
};

static const char *path;
static MPI_Comm cart;
static MPI_File fp;

/* ---- MPI's profiling interface ---- */

enum {
    PAGE = 4096,
};

static int is_zero(const char *at, int n)
{
    static const char zeros[PAGE];
    return memcmp(at, zeros, (size_t)n) == 0;
}

int MPI_File_write_at(MPI_File fh, MPI_Offset offset, const void *buf, int count,
                      MPI_Datatype type, MPI_Status *status)
{
    int err = MPI_SUCCESS;
    if (count <= PAGE)
        return PMPI_File_write_at(fh, offset, buf, count, type, status);
    for (int at = 0, n; at < count && err == MPI_SUCCESS; at += n) {
        const char *page = (const char *)buf + at;
        n = count - at < PAGE ? count - at : PAGE;
        if (!is_zero(page, n) || at + n == count)
            err = PMPI_File_write_at(fh, offset + at, page, n, type, status);
    }
    MPI_Status_set_elements(status, MPI_BYTE, count);
    return err;
}

int MPI_File_read_at(MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype type,
                     MPI_Status *status)
{
    static char piece[64 * PAGE];
    int err = MPI_SUCCESS, part = (int)sizeof piece;
    for (int at = 0, got; at < count && err == MPI_SUCCESS; at += part) {
        int want = count - at < part ? count - at : part;
        err = PMPI_File_read_at(fh, offset + at, piece, want, type, status);
        MPI_Get_count(status, MPI_BYTE, &got);
        if (err != MPI_SUCCESS || got != want)
            return err;
        for (int i = 0; i < want; i += PAGE) {
            int n = want - i < PAGE ? want - i : PAGE;
            if (!is_zero(piece + i, n))
                memcpy((char *)buf + at + i, piece + i, (size_t)n);
        }
    }
    MPI_Status_set_elements(status, MPI_BYTE, count);
    return err;
}

/* ---- marks ---- */

static uint64_t mark_of(int64_t block)
{
    uint64_t x = (uint64_t)block * 0x9e3779b97f4a7c15u + 1;
    return (x ^ x >> 29) * 0xbf58476d1ce4e5b9u | 1;
}

static int64_t place_of(int64_t block)
{
    return block * BLOCK + (int64_t)(mark_of(block) >> 20) % (BLOCK / 8) * 8;
}

/* Makes the expected block. The last one may be cut, without a mark. */
static void make_block(unsigned char *at, int64_t block, int64_t whole)
{
    uint64_t mark = mark_of(block);
    memset(at, 0, BLOCK);
    if (place_of(block) + 8 <= whole)
        memcpy(at + place_of(block) % BLOCK, &mark, sizeof mark);
}

static int64_t blocks_of(int64_t bytes)
{
    return (bytes + BLOCK - 1) / BLOCK;
}

/* Reserves memory that is allocated when it is written to. */
static unsigned char *reserve(int64_t bytes)
{
    unsigned char *at = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    madvise(at, (size_t)bytes, MADV_NOHUGEPAGE);
    return at;
}

/* ---- a rank's part: all bytes, or some columns of a lattice ---- */

struct part {
    int64_t whole, bytes; /* of all ranks, of this one */
    int64_t site;         /* 0: each rank has all bytes */
    int start, columns;
};

/* Converts an offset in the whole to one in the part; -1 if the part lacks it. */
static int64_t in_part(const struct part *part, int64_t at)
{
    if (part->site == 0)
        return at;
    int64_t site = at / part->site, column = site % COLUMNS - part->start;
    if (column < 0 || column >= part->columns)
        return -1;
    return (site / COLUMNS * part->columns + column) * part->site + at % part->site;
}

static void put_marks(const struct part *part, unsigned char *data)
{
    for (int64_t block = 0; block < blocks_of(part->whole); block++) {
        int64_t place = place_of(block), at = in_part(part, place);
        uint64_t mark = mark_of(block);
        if (at >= 0 && place + 8 <= part->whole)
            memcpy(data + at, &mark, sizeof mark);
    }
}

/* Compares all bytes, in ranges that are contiguous in the part and in a block. */
static int is_right(const struct part *part, const unsigned char *data)
{
    unsigned char *want = malloc(BLOCK);
    int good = 1;
    for (int64_t block = 0; block < blocks_of(part->whole) && good; block++) {
        int64_t end = (block + 1) * BLOCK, n;
        make_block(want, block, part->whole);
        for (int64_t at = block * BLOCK; at < end && at < part->whole && good; at += n) {
            int64_t mine = in_part(part, at);
            n = end < part->whole ? end - at : part->whole - at;
            if (part->site && n > part->site - at % part->site)
                n = part->site - at % part->site;
            good = mine < 0 || memcmp(data + mine, want + at % BLOCK, (size_t)n) == 0;
        }
        if (!good)
            fprintf(stderr, "rank %d: block %lld is wrong\n", tap_rank, (long long)block);
    }
    free(want);
    return good;
}

/* ---- the file, read by rank 0 without MPI ---- */

static int file_is_right(int64_t bytes)
{
    static unsigned char got[BLOCK], want[BLOCK];
    int fd = open(path, O_RDONLY);
    int good = lseek(fd, 0, SEEK_END) == DATA + (bytes + 7) / 8 * 8;
    for (int64_t block = 0; block < blocks_of(bytes) && good; block++) {
        int64_t at = block * BLOCK, n = bytes - at < BLOCK ? bytes - at : BLOCK;
        make_block(want, block, bytes);
        good = pread(fd, got, (size_t)n, DATA + at) == n && memcmp(got, want, (size_t)n) == 0;
        if (!good)
            fprintf(stderr, "file: block %lld is wrong\n", (long long)block);
    }
    close(fd);
    return good;
}

/* ---- writing and reading ---- */

static LemonWriter *begin(MPI_Offset bytes)
{
    LemonWriter *w = create_writer(path, cart, MPI_MODE_WRONLY, &fp);
    tap_code(begin_record(w, 1, 1, "big", bytes), 0, "header");
    return w;
}

static void write_it(const struct part *part, const int *lattice)
{
    unsigned char *data = reserve(part->bytes);
    MPI_Offset n = part->whole;
    put_marks(part, data);
    LemonWriter *w = begin(part->whole);
    if (part->site)
        tap_code(lemonWriteLatticeParallel(w, data, part->site, lattice), 0, "lattice");
    else
        tap_code(lemonWriteRecordData(data, &n, w), 0, "data");
    tap_ok(n == part->whole && w->pos == n, "%lld bytes written", (long long)n);
    tap_code(lemonWriterCloseRecord(w), 0, "close");
    tap_code(end_writer(w, &fp), 0, "destroy");
    munmap(data, (size_t)part->bytes);
}

static void read_it(const struct part *part, const int *lattice)
{
    unsigned char *data = reserve(part->bytes);
    MPI_Offset n = part->whole;
    LemonReader *r = create_reader(path, cart, &fp);
    tap_code(lemonReaderNextRecord(r), 0, "the record");
    if (part->site)
        tap_code(lemonReadLatticeParallel(r, data, part->site, lattice), 0, "lattice");
    else
        tap_code(lemonReaderReadData(data, &n, r), 0, "data");
    tap_ok(n == part->whole && lemonGetReaderPointer(r) == n, "%lld bytes read", (long long)n);
    tap_ok(is_right(part, data), "all of them are right");
    end_reader(r, &fp);
    munmap(data, (size_t)part->bytes);
}

static void write_and_read(const struct part *part, const int *lattice)
{
    write_it(part, lattice);
    tap_ok(tap_rank > 0 || file_is_right(part->whole), "the file is right");
    read_it(part, lattice);
}

static void data(int64_t bytes)
{
    struct part part = {.whole = bytes, .bytes = bytes};
    write_and_read(&part, NULL);
}

/* Tests at least so many bytes, in rows of three sites. */
static void lattice(int64_t bytes, int64_t site)
{
    int rows = (int)(bytes / COLUMNS / site) + 1, extents[2] = {rows, COLUMNS};
    int start[2], sites[2];
    lemonLocalLattice(cart, extents, start, sites);
    struct part part = {.whole = (int64_t)rows * COLUMNS * site,
                        .bytes = (int64_t)rows * sites[1] * site,
                        .site = site,
                        .start = start[1],
                        .columns = sites[1]};
    tap_ok(tap_rank > 0 || part.bytes > INT64_C(1) << 31, "more than 2 GiB on the first rank");
    write_and_read(&part, extents);
}

/* ---- a few bytes at large offsets ---- */

static const MPI_Offset FAR = ((MPI_Offset)5 << 30) + 13, END = ((MPI_Offset)6 << 30) + 5;

static int far_lattice(LemonWriter *w, LemonReader *r, int inner, int wait)
{
    int extents[2] = {4, 6 * inner}, start[2], sites[2], code = LEMON_SUCCESS, good = 1;
    lemonLocalLattice(cart, extents, start, sites);
    size_t bytes = 4 * (size_t)sites[1] * 8;
    unsigned char *got = calloc(1, bytes + 1), *want = malloc(bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        want[i] = (unsigned char)(i * 11 + i / 256 * 3 + (size_t)tap_rank * 50);
    if (w && wait)
        code = lemonWriteLatticeParallel(w, want, 8, extents);
    else if (w)
        code = lemonWriteLatticeParallelNonBlocking(w, want, 8, extents);
    else if (wait)
        code = lemonReadLatticeParallel(r, got, 8, extents);
    else
        code = lemonReadLatticeParallelNonBlocking(r, got, 8, extents);
    code |= w ? lemonFinishWriting(w) : lemonFinishReading(r);
    good = code == LEMON_SUCCESS && (w || memcmp(got, want, bytes) == 0);
    free(got);
    free(want);
    return good;
}

/* Short and long runs, blocking and non-blocking. */
static int far_lattices(LemonWriter *w, LemonReader *r)
{
    int good = 1;
    for (int wait = 0; wait < 2; wait++) {
        good = far_lattice(w, r, 20, wait) && good;
        good = far_lattice(w, r, 50000, wait) && good;
    }
    return good;
}

static void far_away(void)
{
    char text[8] = "";
    MPI_Offset n = 7;
    LemonWriter *w = begin(END);
    tap_code(lemonWriterSeek(w, FAR, MPI_SEEK_SET), 0, "seek beyond 5 GiB");
    tap_ok(far_lattices(w, NULL), "lattices are written there");
    tap_code(lemonWriterSeek(w, -3, MPI_SEEK_END), 0, "seek to 3 bytes before the end");
    tap_code(lemonWriteRecordData("END", &(MPI_Offset){3}, w), 0, "write 3 bytes");
    tap_code(lemonWriterCloseRecord(w), 0, "close");
    tap_code(begin_record(w, 1, 1, "next", n), 0, "a record beyond 6 GiB");
    tap_code(lemonWriteRecordData("faraway", &n, w), 0, "its data");
    tap_code(lemonWriterCloseRecord(w), 0, "close");
    tap_code(end_writer(w, &fp), 0, "destroy");

    LemonReader *r = create_reader(path, cart, &fp);
    tap_code(lemonReaderNextRecord(r), 0, "the record");
    tap_code(lemonReaderSeek(r, FAR, MPI_SEEK_SET), 0, "seek beyond 5 GiB");
    tap_ok(lemonReaderBytes(r) == END && lemonReaderPadBytes(r) == 3, "its length");
    tap_ok(far_lattices(NULL, r), "the lattices are there");
    tap_code(lemonReaderSeek(r, -3, MPI_SEEK_END), 0, "from the end");
    tap_code(lemonReaderReadData(text, &(MPI_Offset){3}, r), 0, "three bytes");
    tap_ok(strcmp(text, "END") == 0, "are right");
    tap_code(lemonReaderNextRecord(r), 0, "the next record");
    tap_code(lemonReaderReadData(text, &n, r), 0, "its data");
    tap_ok(strcmp(text, "faraway") == 0, "are right");
    tap_code(lemonReaderNextRecord(r), LEMON_EOF, "the end");
    end_reader(r, &fp);
}

int main(int argc, char *argv[])
{
    int grid[2] = {1, 0}, periods[2] = {0};
    tap_begin(&argc, &argv);
    path = argv[1];
    int64_t bytes = argc > 3 ? atoll(argv[3]) : 0;
    grid[1] = tap_ranks;
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periods, 0, &cart);
    if (strcmp(argv[2], "data") == 0)
        data(bytes);
    else if (strcmp(argv[2], "direct") == 0)
        lattice(bytes, 1 << 20);
    else if (strcmp(argv[2], "aggregators") == 0)
        lattice(bytes, 24 << 10);
    else
        far_away();
    MPI_Comm_free(&cart);
    remove_file(path);
    return tap_end();
}
