/*
 * overfull.c - records that hold more than their header says
 *
 *     overfull FILE allowed|refused
 *
 * Old programs give the local length of a lattice in the header, and the reference's own
 * benchmark the number of its sites. Needs the calls of the paper alone.
 */
#include "files.h"

enum { SITE = 3, SITES = 4 }; /* bytes; of each rank, in one dimension */

static MPI_Comm cart;
static MPI_File file;
static unsigned char mine[SITE * SITES], got[SITE * SITES];
static int lattice[4] = {0, 1, 1, 1};

static void write_it(const char *path, int allowed)
{
    LemonWriter *w = create_writer(path, cart, MPI_MODE_WRONLY, &file);
    tap_code(begin_record(w, 1, 1, "local", sizeof mine), LEMON_SUCCESS,
             "a header of the local length");
    int code = lemonWriteLatticeParallel(w, mine, SITE, lattice);
    tap_code(code, allowed || tap_ranks == 1 ? LEMON_SUCCESS : LEMON_ERR_WRITE, "a lattice");
    if (code == LEMON_SUCCESS)
        tap_code(lemonWriterCloseRecord(w), LEMON_SUCCESS, "closed");
    end_writer(w, &file);
}

static void read_it(const char *path, int allowed)
{
    LemonReader *r = create_reader(path, cart, &file);
    tap_code(lemonReaderNextRecord(r), LEMON_SUCCESS, "the record");
    tap_ok(lemonReaderBytes(r) == sizeof mine, "has the local length");
    int may = allowed || tap_ranks == 1;
    tap_code(lemonReadLatticeParallel(r, got, SITE, lattice),
             may ? LEMON_SUCCESS : LEMON_ERR_READ, "the lattice");
    tap_ok(!may || memcmp(got, mine, sizeof mine) == 0, "as it was written");
    end_reader(r, &file);
}

int main(int argc, char **argv)
{
    int periods[4] = {1, 1, 1, 1};
    tap_begin(&argc, &argv);
    int grid[4] = {tap_ranks, 1, 1, 1}, allowed = argc == 3 && strcmp(argv[2], "allowed") == 0;
    MPI_Cart_create(MPI_COMM_WORLD, 4, grid, periods, 0, &cart);
    lattice[0] = SITES * tap_ranks;
    for (int i = 0; i < SITE * SITES; i++)
        mine[i] = (unsigned char)(1 + tap_rank * SITE * SITES + i);
    if (argc == 3 && strcmp(argv[2], "read") == 0) {
        read_it(argv[1], 0);
    } else {
        write_it(argv[1], allowed);
        if (allowed)
            read_it(argv[1], allowed);
    }
    MPI_Comm_free(&cart);
    return tap_end();
}
