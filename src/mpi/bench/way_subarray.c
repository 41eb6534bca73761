/* way_subarray.c - MPI-IO with a subarray view, as the old library does it */
#include "bench.h"

#include <stdio.h>

static int move(struct bench *b, int writing)
{
    MPI_File fp;
    MPI_Datatype site, view;
    MPI_Status status;
    int moved, wanted = (int)(b->local_bytes / b->site_bytes);
    MPI_Type_contiguous(b->site_bytes, MPI_BYTE, &site);
    MPI_Type_commit(&site);
    MPI_Type_create_subarray(4, b->lattice, b->sites, b->start, MPI_ORDER_C, site, &view);
    MPI_Type_commit(&view);
    MPI_File_open(b->cart, b->path,
                  writing ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY, MPI_INFO_NULL,
                  &fp);
    MPI_File_set_view(fp, 144, site, view, "native", MPI_INFO_NULL);
    if (writing) {
        MPI_File_write_at_all(fp, 0, b->data, wanted, site, &status);
        MPI_File_sync(fp);
    } else {
        MPI_File_read_at_all(fp, 0, b->data, wanted, site, &status);
    }
    MPI_Get_count(&status, site, &moved);
    MPI_File_close(&fp);
    MPI_Type_free(&view);
    MPI_Type_free(&site);
    if (moved == wanted)
        return 0;
    fprintf(stderr, "lemon_compare: subarray: %d of %d sites\n", moved, wanted);
    return -1;
}

static int write_subarray(struct bench *b)
{
    return move(b, 1);
}

static int read_subarray(struct bench *b)
{
    return move(b, 0);
}

const struct bench_way bench_subarray = {"MPI-IO subarray", write_subarray, read_subarray};
