/*
 * geometry.h - write and read lattices of any geometry, and sum them with a serial oracle
 *
 * The oracle reads the file on rank 0 without MPI, site by site, with its own CRC-32.
 */
#ifndef GEOMETRY_H
#define GEOMETRY_H

#include "files.h"

enum {
    DIMS = 8,
    BLOCKS = 3,
    FORM_WAIT = 0, /* the kind of calls */
    FORM_START,
    FORM_PERMUTED,
    FORMS,
    VERIFY_BY_PATH = 1,
    VERIFY_BY_MPI,
};

struct geometry {
    int dims;
    int grid[DIMS], lattice[DIMS], mapping[DIMS];
    int memory[DIMS]; /* for FORM_PERMUTED; otherwise memory is in the order of the disk */
    int site;         /* bytes */
    int blocks;       /* lattices in the record */
    int lead;         /* bytes in the record before the first lattice, at most 19 */
    int form, stripe;
    int verify; /* VERIFY_..., or 0: no verification */
    bool sum;
};

static const char *path;
static MPI_Comm cart;
static MPI_File fp;

static inline long block_bytes(const struct geometry *g)
{
    long n = g->site;
    for (int i = 0; i < g->dims; i++)
        n *= g->lattice[i];
    return n;
}

static inline long local_bytes(const struct geometry *g)
{
    int start[DIMS], sites[DIMS];
    long n = g->site;
    lemonLocalLattice(cart, g->lattice, start, sites);
    for (int i = 0; i < g->dims; i++)
        n *= sites[i];
    return n;
}

static inline void make_cart(const struct geometry *g)
{
    int periods[DIMS] = {0};
    MPI_Cart_create(MPI_COMM_WORLD, g->dims, g->grid, periods, 0, &cart);
}

/* Makes a grid of all ranks, with its factors rotated by `turn`. */
static inline void set_grid(struct geometry *g, int turn)
{
    int grid[DIMS] = {0};
    MPI_Dims_create(tap_ranks, g->dims, grid);
    for (int i = 0; i < g->dims; i++)
        g->grid[i] = grid[(i + turn) % g->dims];
}

/* ---- writing and reading ---- */

static inline LemonWriter *open_writer(int mode, int me, MPI_Offset bytes)
{
    LemonWriter *writer = create_writer(path, cart, mode, &fp);
    begin_record(writer, 1, me, "lattice", bytes);
    return writer;
}

static inline LemonReader *open_reader(void)
{
    LemonReader *reader = create_reader(path, cart, &fp);
    lemonReaderNextRecord(reader);
    return reader;
}

/* Returns NULL for some identity orders, which is equivalent. */
static inline const int *or_null(const struct geometry *g, const int *order)
{
    for (int i = 0; i < g->dims; i++)
        if (order[i] != i)
            return order;
    return g->lead % 2 ? NULL : order;
}

static inline int write_block(const struct geometry *g, LemonWriter *writer, void *data)
{
    if (g->form == FORM_START)
        return lemonWriteLatticeParallelNonBlockingMapped(writer, data, g->site, g->lattice,
                                                          g->mapping);
    if (g->form == FORM_PERMUTED)
        return lemonWriteLatticeParallelPermuted(writer, data, g->site, g->lattice,
                                                 or_null(g, g->mapping), or_null(g, g->memory));
    return lemonWriteLatticeParallelMapped(writer, data, g->site, g->lattice, g->mapping);
}

static inline int read_block(const struct geometry *g, LemonReader *reader, void *data)
{
    if (g->form == FORM_START)
        return lemonReadLatticeParallelNonBlockingMapped(reader, data, g->site, g->lattice,
                                                         g->mapping);
    if (g->form == FORM_PERMUTED)
        return lemonReadLatticeParallelPermuted(reader, data, g->site, g->lattice,
                                                or_null(g, g->mapping), or_null(g, g->memory));
    return lemonReadLatticeParallelMapped(reader, data, g->site, g->lattice, g->mapping);
}

/* With g->sum, writes a record of the sum, too. */
static inline int write_lattices(const struct geometry *g, unsigned char **data,
                                 LemonChecksum *sum)
{
    MPI_Offset lead = g->lead, bytes = g->lead + block_bytes(g) * g->blocks;
    LemonWriter *writer = open_writer(
        g->verify == VERIFY_BY_MPI ? MPI_MODE_RDWR : MPI_MODE_WRONLY, !g->sum, bytes);
    int code = lemonWriterSetStripe(writer, g->stripe);
    if (g->verify)
        code |= lemonWriterSetVerify(writer, 1, g->verify == VERIFY_BY_PATH ? path : NULL);
    code |= lemonWriteRecordData("any number of bytes", &lead, writer);
    code |= lemonWriterSetChecksum(writer, g->sum);
    for (int i = 0; i < g->blocks; i++)
        code |= write_block(g, writer, data[i]);
    code |= writer->pos == bytes ? LEMON_SUCCESS : LEMON_ERR_SEEK;
    if (g->sum && g->site % 2) /* before or after closing */
        code |= lemonWriterChecksum(writer, sum);
    code |= lemonWriterCloseRecord(writer);
    if (g->sum && g->site % 2 == 0)
        code |= lemonWriterChecksum(writer, sum);
    if (g->sum)
        code |= lemonWriteChecksum(writer, 0, 1, sum);
    return code | end_writer(writer, &fp);
}

static inline int read_lattices(const struct geometry *g, unsigned char **data,
                                LemonChecksum *sum, LemonChecksum *stored)
{
    LemonReader *reader = open_reader();
    int code = lemonReaderSetStripe(reader, g->stripe);
    code |= lemonSetReaderPointer(reader, g->lead);
    code |= lemonReaderSetChecksum(reader, g->sum);
    for (int i = 0; i < g->blocks; i++)
        code |= read_block(g, reader, data[i]);
    code |= g->sum ? lemonReaderChecksum(reader, sum) : lemonFinishReading(reader);
    if (lemonGetReaderPointer(reader) != (MPI_Offset)lemonReaderBytes(reader))
        code |= LEMON_ERR_SEEK;
    if (g->sum) {
        code |= lemonReaderNextRecord(reader);
        code |= lemonReadChecksum(reader, stored);
    }
    code |= lemonReaderNextRecord(reader) == LEMON_EOF ? LEMON_SUCCESS : LEMON_ERR_READ;
    end_reader(reader, &fp);
    return code;
}

/* ---- the oracle ---- */

static inline uint32_t crc32(const unsigned char *data, size_t n)
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

static inline uint32_t rotated(uint32_t crc, long by)
{
    return (uint32_t)((uint64_t)crc << by | (uint64_t)crc >> (32 - by));
}

/* Rank 0 sums bytes [at, at + n) of the file; all ranks return the sum. */
static inline LemonChecksum oracle(long at, long n, int site)
{
    LemonChecksum sum = {0, 0};
    size_t bytes;
    unsigned char *all = file_bytes(path, &bytes);
    for (long r = 0; all && site && r < n / site && at + (r + 1) * site <= (long)bytes; r++) {
        uint32_t crc = crc32(all + at + r * site, (size_t)site);
        sum.suma ^= rotated(crc, r % 29);
        sum.sumb ^= rotated(crc, r % 31);
    }
    free(all);
    MPI_Bcast(&sum, 2, MPI_UINT32_T, 0, MPI_COMM_WORLD);
    return sum;
}

static inline bool same(LemonChecksum a, LemonChecksum b)
{
    return a.suma == b.suma && a.sumb == b.sumb;
}

#endif
