/*
 * checksum.c - lemon_checksum: what the SciDAC checksum adds to writing and reading a lattice
 *
 * usage: lemon_checksum L ROUNDS FILE [interleaved]
 *
 * The lattice of lemon_compare, moved by Lemon without and with the checksum in turn, each
 * round beginning with the other one; the median of ROUNDS counts, each the best of three that
 * take turns. Written means: on the disk, opening and closing of the file included. The last
 * line is what reading back takes, for comparison: no goal.
 */
#include "bench.h"
#include "lemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WAYS = 3,
    ROUNDS_MAX = 99,
    TRIES = 3,
};

enum way {
    WITHOUT,
    WITH,
    VERIFIED,
};

static LemonChecksum wrote, read_back;

static int write_lattice(struct bench *b, enum way way)
{
    MPI_File fp;
    MPI_File_open(b->cart, b->path, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &fp);
    LemonWriter *writer = lemonCreateWriter(&fp, b->cart);
    LemonRecordHeader *header = lemonCreateHeader(1, 1, "ildg-binary-data", b->bytes);
    int code = lemonWriterSetChecksum(writer, way == WITH);
    if (code == LEMON_SUCCESS && way == VERIFIED)
        code = lemonWriterSetVerify(writer, 1, b->path);
    if (code == LEMON_SUCCESS)
        code = lemonWriteRecordHeader(header, writer);
    lemonDestroyHeader(header);
    if (code == LEMON_SUCCESS)
        code = lemonWriteLatticeParallel(writer, b->data, b->site_bytes, b->lattice);
    if (code == LEMON_SUCCESS)
        code = lemonWriterCloseRecord(writer);
    if (code == LEMON_SUCCESS && way == WITH)
        code = lemonWriterChecksum(writer, &wrote);
    lemonDestroyWriter(writer);
    MPI_File_close(&fp);
    return code;
}

static int read_lattice(struct bench *b, enum way way)
{
    MPI_File fp;
    MPI_File_open(b->cart, b->path, MPI_MODE_RDONLY, MPI_INFO_NULL, &fp);
    LemonReader *reader = lemonCreateReader(&fp, b->cart);
    int code = lemonReaderSetChecksum(reader, way == WITH);
    if (code == LEMON_SUCCESS)
        code = lemonReaderNextRecord(reader);
    if (code == LEMON_SUCCESS)
        code = lemonReadLatticeParallel(reader, b->data, b->site_bytes, b->lattice);
    if (code == LEMON_SUCCESS && way == WITH)
        code = lemonReaderChecksum(reader, &read_back);
    lemonDestroyReader(reader);
    MPI_File_close(&fp);
    return code;
}

static double timed(struct bench *b, int (*move)(struct bench *, enum way), enum way way)
{
    MPI_Barrier(b->cart);
    double begin = MPI_Wtime();
    int code = move(b, way);
    MPI_Barrier(b->cart);
    double seconds = MPI_Wtime() - begin;
    if (code != LEMON_SUCCESS) {
        fprintf(stderr, "lemon_checksum: code %d\n", code);
        MPI_Abort(b->cart, 1);
    }
    return seconds;
}

static void anew(const struct bench *b)
{
    if (b->rank == 0)
        unlink(b->path);
}

/* The best of TRIES of each way, which take turns. */
static void round_of(struct bench *b, int round, int ways, double times[][ROUNDS_MAX],
                     int (*move)(struct bench *, enum way), int cold)
{
    for (int i = 0; i < TRIES * ways; i++) {
        int way = (i + round) % ways;
        if (move == write_lattice)
            anew(b);
        if (move == write_lattice || cold)
            bench_settle(b);
        double seconds = timed(b, move, (enum way)way);
        if (i < ways || seconds < times[way][round])
            times[way][round] = seconds;
    }
}

static void show(const struct bench *b, const char *what, double times[][ROUNDS_MAX],
                 int rounds, double goal)
{
    double without = bench_median(times[WITHOUT], rounds);
    double with = bench_median(times[WITH], rounds), ratio = with / without;
    printf(
        "L=%-3d %d ranks %s %-6s without %6.0f MB/s, with the checksum %6.0f MB/s   %+.1f %%",
        b->lattice[1], b->ranks, b->order, what, (double)b->bytes / without / 1e6,
        (double)b->bytes / with / 1e6, 100 * (ratio - 1));
    if (goal > 0)
        printf("   goal +%.0f %% %s", 100 * (goal - 1), ratio <= goal ? "met" : "MISSED");
    printf("\n");
}

int main(int argc, char *argv[])
{
    static double writes[WAYS][ROUNDS_MAX], cold[WAYS][ROUNDS_MAX], warm[WAYS][ROUNDS_MAX];
    struct bench b;
    MPI_Init(&argc, &argv);
    int rounds = bench_set_up_as(&b, "lemon_checksum", argc, argv, ROUNDS_MAX);
    if (rounds == 0) {
        MPI_Finalize();
        return 2;
    }
    for (int round = 0; round < rounds; round++) {
        round_of(&b, round, WAYS, writes, write_lattice, 0);
        round_of(&b, round, 2, cold, read_lattice, 1);
        round_of(&b, round, 2, warm, read_lattice, 0);
    }
    if (wrote.suma != read_back.suma || wrote.sumb != read_back.sumb) {
        fprintf(stderr, "lemon_checksum: what was read is not what was written\n");
        MPI_Abort(b.cart, 1);
    }
    if (b.rank == 0) {
        show(&b, "write", writes, rounds, 1.10);
        show(&b, "cold", cold, rounds, 0);
        show(&b, "warm", warm, rounds, 0);
        printf("L=%-3d %d ranks %s reading back after the write: %.2f of the write's time\n",
               b.lattice[1], b.ranks, b.order,
               bench_median(writes[VERIFIED], rounds) / bench_median(writes[WITHOUT], rounds) -
                   1);
        unlink(b.path);
    }
    free(b.data);
    MPI_Comm_free(&b.cart);
    MPI_Finalize();
    return 0;
}
