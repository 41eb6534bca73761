/*
 * backend_lime.c - Lemon: one record of a LIME container, with its lattice calls
 *
 * Disjoint blocks are described as a 1-dimensional lattice, interleaved pieces as a
 * 2-dimensional one, whose faster dimension is divided among the ranks.
 */
#include "backend_common.h"

#include "lemon.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct geometry {
    int dims, lattice[BENCH_DIMS], grid[BENCH_DIMS];
    MPI_Offset site_bytes;
};

struct lime {
    struct geometry geometry;
    MPI_Comm cartesian;
    LemonWriter *writer; /* NULL when reading */
    LemonReader *reader; /* NULL when writing */
};

/* Describes the pattern as a lattice. Returns false if an extent does not fit in an int. */
static bool set_geometry(const struct bench_pattern *p, struct geometry *g)
{
    int64_t sites = p->segments;
    *g = (struct geometry){.dims = BENCH_DIMS, .site_bytes = p->site_bytes};
    if (p->kind == BENCH_LATTICE) {
        memcpy(g->lattice, p->lattice, sizeof g->lattice);
        memcpy(g->grid, p->grid, sizeof g->grid);
        return true;
    }
    g->site_bytes = p->transfer;
    if (p->kind == BENCH_DISJOINT) {
        if (p->block % p->transfer != 0)
            g->site_bytes = p->block;
        sites = p->block / g->site_bytes * p->ranks;
    }
    bool is_2d = p->kind == BENCH_INTERLEAVED;
    g->dims = is_2d ? 2 : 1;
    g->lattice[0] = (int)sites;
    g->lattice[1] = p->ranks;
    g->grid[0] = is_2d ? 1 : p->ranks;
    g->grid[1] = p->ranks;
    return sites <= INT_MAX;
}

static const char *lime_unsupported(const struct bench_task *task)
{
    struct geometry g;
    if (task->alignment % 8 != 0 || task->alignment > 1 << 30)
        return "--alignment: Lemon's is a multiple of 8, at most 1 GiB";
    if (!set_geometry(&task->pattern, &g))
        return "more than 2^31 - 1 pieces";
    return NULL;
}

/* Stores a message of Lemon, "lemon: rank 0: write at 144: ...", without its prefix. */
static void lime_store_message(const char *text, void *io)
{
    int prefix = 0;
    sscanf(text, "lemon: rank %*d: %n", &prefix);
    bench_io_fail(io, "Lemon", "%s", text + prefix);
}

/* Returns 0 if code is LEMON_SUCCESS, else -1. code must be the same on all ranks. If no rank
 * has a message of Lemon, stores the code as the message. Collective if code is an error. */
static int lime_check(struct bench_io *io, const char *action, int code)
{
    int has_message = io->error[0] != '\0';
    if (code == LEMON_SUCCESS)
        return 0;
    MPI_Allreduce(MPI_IN_PLACE, &has_message, 1, MPI_INT, MPI_LOR, io->comm);
    if (!has_message)
        bench_io_fail(io, action, "Lemon error %d", code);
    return -1;
}

static int lime_prepare(struct bench_io *io)
{
    struct lime *lime = io->state;
    int periods[BENCH_DIMS] = {0};
    set_geometry(&io->task->pattern, &lime->geometry);
    MPI_Cart_create(io->comm, lime->geometry.dims, lime->geometry.grid, periods, 0,
                    &lime->cartesian);
    lemonSetMessageHandler(lime_store_message, io);
    return 0;
}

static void lime_release(struct bench_io *io)
{
    lemonSetMessageHandler(NULL, NULL);
    MPI_Comm_free(&((struct lime *)io->state)->cartesian);
}

static int begin_writing(struct bench_io *io, struct lime *lime, MPI_Info info)
{
    const struct bench_task *task = io->task;
    int64_t bytes = bench_pattern_bytes(&task->pattern);
    LemonRecordHeader *header = lemonCreateHeader(1, !task->checksum, BENCH_RECORD_TYPE, bytes);
    lime->writer = lemonCreateWriter(&io->file, lime->cartesian);
    int code = lemonWriterSetInfo(lime->writer, info);
    if (code == LEMON_SUCCESS &&
        task->alignment) /* of the data record only; not of the checksum record */
        code = lemonWriterSetAlignment(lime->writer, task->alignment, bytes);
    if (code == LEMON_SUCCESS && task->checksum)
        code = lemonWriterSetChecksum(lime->writer, 1);
    if (code == LEMON_SUCCESS)
        code = lemonWriterSetPath(lime->writer, io->path);
    if (code == LEMON_SUCCESS)
        code = lemonWriteRecordHeader(header, lime->writer);
    lemonDestroyHeader(header);
    return lime_check(io, "write header", code);
}

static int begin_reading(struct bench_io *io, struct lime *lime, MPI_Info info)
{
    int64_t bytes = bench_pattern_bytes(&io->task->pattern);
    lime->reader = lemonCreateReader(&io->file, lime->cartesian);
    int code = lemonReaderSetInfo(lime->reader, info);
    if (code == LEMON_SUCCESS && io->task->checksum)
        code = lemonReaderSetChecksum(lime->reader, 1);
    while (code == LEMON_SUCCESS) {
        code = lemonReaderNextRecord(lime->reader);
        if (code == LEMON_EOF)
            return bench_io_fail(io, "read header", "no record '%s'", BENCH_RECORD_TYPE);
        if (code == LEMON_SUCCESS &&
            strcmp(lemonReaderType(lime->reader), BENCH_RECORD_TYPE) == 0)
            break;
    }
    if (code == LEMON_SUCCESS && lemonReaderBytes(lime->reader) != bytes)
        return bench_io_fail(io, "read header", "the record has %lld bytes, not %" PRId64,
                             (long long)lemonReaderBytes(lime->reader), bytes);
    return lime_check(io, "read header", code);
}

static int lime_open(struct bench_io *io)
{
    struct lime *lime = io->state;
    if (bench_mpifile_open(io, lime->cartesian) != 0)
        return -1;
    MPI_Info info = bench_info_create(io->task);
    int code = io->is_writing ? begin_writing(io, lime, info) : begin_reading(io, lime, info);
    bench_info_free(&info);
    return code;
}

static int lime_close(struct bench_io *io)
{
    struct lime *lime = io->state;
    int code = LEMON_SUCCESS;
    if (lime->writer)
        code = lemonDestroyWriter(lime->writer);
    lemonDestroyReader(lime->reader);
    lime->writer = NULL;
    lime->reader = NULL;
    int close_code = bench_mpifile_close(io);
    return lime_check(io, "close", code) | close_code;
}

/* Compares the checksum of the data with that in the next record. Collective. */
static int compare_lime_checksums(struct bench_io *io, LemonReader *reader)
{
    LemonChecksum computed, stored;
    int code = lemonReaderChecksum(reader, &computed);
    if (code == LEMON_SUCCESS)
        code = lemonReaderNextRecord(reader);
    if (code == LEMON_SUCCESS)
        code = lemonReadChecksum(reader, &stored);
    if (lime_check(io, "read checksum", code) != 0)
        return -1;
    if (computed.suma != stored.suma || computed.sumb != stored.sumb)
        return bench_io_fail(io, "checksum",
                             "%08" PRIx32 " %08" PRIx32 " of the data, %08" PRIx32 " %08" PRIx32
                             " in the file",
                             computed.suma, computed.sumb, stored.suma, stored.sumb);
    return 0;
}

static int lime_transfer(struct bench_io *io)
{
    struct lime *lime = io->state;
    const struct geometry *g = &lime->geometry;
    if (io->is_writing)
        return lime_check(
            io, "write",
            lemonWriteLatticeParallel(lime->writer, io->data, g->site_bytes, g->lattice));
    int code = lemonReadLatticeParallel(lime->reader, io->data, g->site_bytes, g->lattice);
    if (lime_check(io, "read", code) != 0)
        return -1;
    return io->task->checksum ? compare_lime_checksums(io, lime->reader) : 0;
}

/* The back end's sync: closes and thereby syncs the record; with --checksum writes another. */
static int close_record(struct bench_io *io)
{
    struct lime *lime = io->state;
    LemonChecksum sum;
    int code = lemonWriterCloseRecord(lime->writer);
    if (code == LEMON_SUCCESS && io->task->checksum)
        code = lemonWriterChecksum(lime->writer, &sum);
    if (code == LEMON_SUCCESS && io->task->checksum)
        code = lemonWriteChecksum(lime->writer, 0, 1, &sum);
    return lime_check(io, "close record", code);
}

const struct bench_backend bench_lime = {
    .name = "lime",
    .about = "Lemon: a record of a LIME container, lattice calls",
    .abilities = BENCH_CAN_COLLECTIVE | BENCH_CAN_ALIGN | BENCH_CAN_HINT | BENCH_CAN_CHECKSUM,
    .patterns = BENCH_PATTERN_BIT(BENCH_DISJOINT) | BENCH_PATTERN_BIT(BENCH_INTERLEAVED) |
                BENCH_PATTERN_BIT(BENCH_LATTICE),
    .state_bytes = sizeof(struct lime),
    .unsupported = lime_unsupported,
    .prepare = lime_prepare,
    .open = lime_open,
    .transfer = lime_transfer,
    .sync = close_record,
    .close = lime_close,
    .release = lime_release,
};
