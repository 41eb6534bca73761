/*
 * parallel.c - write and read a lattice of characters, first with blocking and then with
 * non-blocking calls
 *
 * Each rank has 4 x 4 x 4 x 4 sites with one character each: '0' for rank 0, '1' for rank 1 and
 * so on. The file thus shows which sites each rank has, and in which order they are stored.
 */
#include "sample.h"

#include <string.h>

enum {
    DIMS = 4,
    LOCAL_EXTENT = 4,
    LOCAL_SITES = 256,
};

/* The communicator's dimensions as the file orders them, the slowest first. */
static int const mapping[DIMS] = {0, 3, 1, 2};

static MPI_Comm create_communicator(int *lattice)
{
    int ranks, grid[DIMS] = {0}, periods[DIMS] = {1, 1, 1, 1};
    MPI_Comm cartesian;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, DIMS, grid);
    MPI_Cart_create(MPI_COMM_WORLD, DIMS, grid, periods, 1 /* reorder */, &cartesian);
    for (int d = 0; d < DIMS; d++)
        lattice[d] = LOCAL_EXTENT * grid[d];
    return cartesian;
}

static void write_lattice(MPI_Comm cartesian, char const *name, int const *lattice, char *data,
                          int non_blocking)
{
    MPI_File fp;
    int ranks;
    MPI_Comm_size(cartesian, &ranks);
    sample_open_for_writing(cartesian, name, &fp);
    LemonWriter *w = lemonCreateWriter(&fp, cartesian);
    LemonRecordHeader *h = lemonCreateHeader(1 /* MB */, 1 /* ME */, "parallel-test",
                                             (MPI_Offset)ranks * LOCAL_SITES);
    sample_check(lemonWriteRecordHeader(h, w), "lemonWriteRecordHeader");
    lemonDestroyHeader(h);
    if (non_blocking) {
        sample_check(
            lemonWriteLatticeParallelNonBlockingMapped(w, data, sizeof *data, lattice, mapping),
            "lemonWriteLatticeParallelNonBlockingMapped");
        /* Here the program can compute, but must not change the data. */
        sample_check(lemonFinishWriting(w), "lemonFinishWriting");
    } else {
        sample_check(lemonWriteLatticeParallelMapped(w, data, sizeof *data, lattice, mapping),
                     "lemonWriteLatticeParallelMapped");
    }
    sample_check(lemonWriterCloseRecord(w), "lemonWriterCloseRecord");
    sample_check(lemonDestroyWriter(w), "lemonDestroyWriter");
    MPI_File_close(&fp);
}

static void read_lattice(MPI_Comm cartesian, char const *name, int const *lattice, char *data,
                         int non_blocking)
{
    MPI_File fp;
    sample_open_for_reading(cartesian, name, &fp);
    LemonReader *r = lemonCreateReader(&fp, cartesian);
    sample_check(lemonReaderNextRecord(r), "lemonReaderNextRecord");
    if (strcmp(lemonReaderType(r), "parallel-test") != 0)
        fprintf(stderr, "wrong type read: %s\n", lemonReaderType(r));
    if (non_blocking) {
        sample_check(
            lemonReadLatticeParallelNonBlockingMapped(r, data, sizeof *data, lattice, mapping),
            "lemonReadLatticeParallelNonBlockingMapped");
        /* Here the program can compute, but must not use the data yet. */
        sample_check(lemonFinishReading(r), "lemonFinishReading");
    } else {
        sample_check(lemonReadLatticeParallelMapped(r, data, sizeof *data, lattice, mapping),
                     "lemonReadLatticeParallelMapped");
    }
    lemonDestroyReader(r);
    MPI_File_close(&fp);
}

int main(int argc, char **argv)
{
    static char const *const names[] = {"parallel.test", "parallel_non_blocking.test"};
    int rank, good = 1, lattice[DIMS];
    char written[LOCAL_SITES];
    MPI_Init(&argc, &argv);
    MPI_Comm cartesian = create_communicator(lattice);
    MPI_Comm_rank(cartesian, &rank);
    memset(written, '0' + rank, sizeof written);
    for (int i = 0; i < 2; i++) {
        char read[LOCAL_SITES] = "";
        write_lattice(cartesian, names[i], lattice, written, i == 1 /* non-blocking */);
        read_lattice(cartesian, names[i], lattice, read, i == 1);
        good = good && memcmp(read, written, sizeof read) == 0;
    }
    printf("Node %d reports %s.\n", rank, good ? "data okay" : "wrong data read");
    MPI_Comm_free(&cartesian);
    MPI_Finalize();
    return good ? 0 : 1;
}
