/*
 * full.c - write to a full file system: all ranks get one error, no rank hangs, and a failed
 * checkpoint does not move the writer
 *
 * usage: full FILE
 */
#include "files.h"

#include <lemon_cells.h>

static double (*particle)[3]; /* positions, all in one cell */

static int write_cells(LemonWriter *w, MPI_Offset count)
{
    const LemonDomain domain = {.length = {1, 1, 1}, .cells = {1, 1, 1}};
    const LemonField position = {"position", LEMON_FLOAT64, 3, 0};
    const LemonParticle what = {sizeof *particle, 1, &position};
    return lemonWriteCells(w, 1, 1, &domain, &what, particle, count, 0);
}

static int64_t read_cells(const char *path, MPI_Comm comm)
{
    MPI_File fp;
    LemonCells *cells = NULL;
    int64_t particles = -1;
    LemonReader *r = create_reader(path, comm, &fp);
    if (lemonNextCells(r, &cells) == LEMON_SUCCESS)
        particles = cells->particles;
    lemonFreeCells(cells);
    end_reader(r, &fp);
    return particles;
}

/* Fewer particles are written after a failure. With 4 MiB for each rank, each rank writes its
 * own; with fewer, aggregators write. */
static void cells(const char *path, MPI_Comm comm, int mib, bool by_path)
{
    MPI_File fp;
    const MPI_Offset many = (mib << 20) / (int)sizeof *particle + 1;
    particle = calloc((size_t)many, sizeof *particle);
    LemonWriter *w = create_writer(path, comm, MPI_MODE_WRONLY, &fp);
    if (by_path)
        tap_code(lemonWriterSetPath(w, path), LEMON_SUCCESS, "set the path");
    tap_code(write_cells(w, many), LEMON_ERR_WRITE, "particles on a full disk");
    MPI_File_set_size(fp, 0);
    tap_code(write_cells(w, 100), LEMON_SUCCESS, "fewer particles, by the same writer");
    tap_code(end_writer(w, &fp), LEMON_SUCCESS, "destroy");
    int64_t count = read_cells(path, comm);
    tap_ok(count == 100 * tap_ranks, "%lld particles are read", (long long)count);
    remove_file(path);
    free(particle);
}

int main(int argc, char *argv[])
{
    int grid[2] = {0}, periods[2] = {0};
    tap_begin(&argc, &argv);
    MPI_Dims_create(tap_ranks, 2, grid);
    MPI_Comm cart;
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periods, 0, &cart);
    for (int wide = 0; wide < 2; wide++)
        for (int wait = 0; wait < 2; wait++) {
            /* 3 MiB in long runs, or in short ones that need aggregators */
            int lattice[2] = {12 * 16, 1024}, mapping[2] = {wide, !wide};
            char *data = calloc(1, 3 << 20);
            MPI_File fp;
            LemonWriter *w = create_writer(argv[1], cart, MPI_MODE_WRONLY, &fp);
            int code = begin_record(w, 1, 1, "big", 3 << 20);
            if (code == LEMON_SUCCESS && wait)
                code = lemonWriteLatticeParallelMapped(w, data, 16, lattice, mapping);
            else if (code == LEMON_SUCCESS)
                code =
                    lemonWriteLatticeParallelNonBlockingMapped(w, data, 16, lattice, mapping);
            if (code == LEMON_SUCCESS)
                code = lemonFinishWriting(w);
            tap_code(code, LEMON_ERR_WRITE, wait ? "full disk" : "full disk, non-blocking");
            tap_code(lemonWriterCloseRecord(w), LEMON_ERR_CLOSE, "the record is incomplete");
            tap_code(end_writer(w, &fp), LEMON_ERR_LAST_NOT_WRITTEN, "destroy");
            free(data);
            remove_file(argv[1]);
        }
    for (int i = 0; i < 4; i++)
        cells(argv[1], cart, i % 2 ? 4 : 3, i / 2 > 0);
    MPI_Comm_free(&cart);
    return tap_end();
}
