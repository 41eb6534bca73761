/*
 * full.c - writing to a file system that has no room: one error for all ranks, and no hang
 *
 * usage: full FILE
 */
#include "lemon.h"
#include "tap.h"

#include <string.h>

int main(int argc, char *argv[])
{
    int grid[2] = {0}, periods[2] = {0};
    tap_begin(&argc, &argv);
    MPI_Dims_create(tap_ranks, 2, grid);
    MPI_Comm cart;
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periods, 0, &cart);
    for (int wide = 0; wide < 2; wide++)
        for (int wait = 0; wait < 2; wait++) {
            /* 3 MiB: in long runs, or in short ones that need movers */
            int lattice[2] = {12 * 16, 1024}, mapping[2] = {wide, !wide};
            char *data = calloc(1, 3 << 20);
            MPI_File fp;
            MPI_File_open(cart, argv[1], MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &fp);
            LemonWriter *w = lemonCreateWriter(&fp, cart);
            LemonRecordHeader *header = lemonCreateHeader(1, 1, "big", 3 << 20);
            int code = lemonWriteRecordHeader(header, w);
            lemonDestroyHeader(header);
            if (code == LEMON_SUCCESS && wait)
                code = lemonWriteLatticeParallelMapped(w, data, 16, lattice, mapping);
            else if (code == LEMON_SUCCESS)
                code =
                    lemonWriteLatticeParallelNonBlockingMapped(w, data, 16, lattice, mapping);
            if (code == LEMON_SUCCESS)
                code = lemonFinishWriting(w);
            tap_code(code, LEMON_ERR_WRITE, wait ? "full disk" : "full disk, not waiting");
            tap_code(lemonWriterCloseRecord(w), LEMON_ERR_CLOSE, "the record is not full");
            tap_code(lemonDestroyWriter(w), LEMON_ERR_LAST_NOT_WRITTEN, "nor at the end");
            MPI_File_close(&fp);
            free(data);
            if (tap_rank == 0)
                unlink(argv[1]);
            MPI_Barrier(cart);
        }
    MPI_Comm_free(&cart);
    return tap_end();
}
