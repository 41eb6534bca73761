/* internal.c - what reader and writer share, made and freed */
#include "internal.h"

#include <string.h>

/* The coordinates of all ranks, from which each computes what the others hold. */
static int learn_grid(struct lemon_internal *in)
{
    int status, periods[LEMON_MAX_DIMS], mine[LEMON_MAX_DIMS];
    MPI_Topo_test(in->comm, &status);
    if (status != MPI_CART)
        return 0;
    MPI_Cartdim_get(in->comm, &in->dims);
    if (in->dims > LEMON_MAX_DIMS) {
        in->dims = 0;
        return 0;
    }
    MPI_Cart_get(in->comm, in->dims, in->grid, periods, mine);
    in->coordinates = calloc((size_t)in->ranks * (size_t)in->dims + 1, sizeof(int));
    if (!in->coordinates)
        return -1;
    for (int i = 0; i < in->ranks; i++)
        MPI_Cart_coords(in->comm, i, in->dims, in->coordinates + (size_t)i * in->dims);
    return 0;
}

struct lemon_internal *lemon_internal_new(MPI_File *fp, MPI_Comm comm)
{
    struct lemon_internal *in = calloc(1, sizeof *in);
    int bad = fp == NULL || in == NULL;
    MPI_Comm duplicate;
    MPI_Comm_dup(comm, &duplicate);
    if (!bad) {
        in->comm = duplicate;
        in->fp = fp;
        in->hints.stripe = 1 << 20;
        in->before = 1;
        MPI_Comm_rank(duplicate, &in->rank);
        MPI_Comm_size(duplicate, &in->ranks);
        bad = learn_grid(in) != 0;
    }
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_MAX, duplicate);
    if (!bad)
        return in;
    if (in)
        free(in->coordinates);
    free(in);
    MPI_Comm_free(&duplicate);
    return NULL;
}

void lemon_internal_free(struct lemon_internal *in)
{
    MPI_Comm_free(&in->comm);
    free(in->coordinates);
    free(in->geometry.boxes);
    free(in->pending.requests);
    free(in->pending.wanted);
    free(in);
}

int lemon_seek(const struct lemon_internal *in, MPI_Offset pos, MPI_Offset bytes,
               MPI_Offset offset, int whence, MPI_Offset *to)
{
    MPI_Offset from;
    if (whence == MPI_SEEK_SET)
        from = 0;
    else if (whence == MPI_SEEK_CUR)
        from = pos;
    else if (whence == MPI_SEEK_END)
        from = bytes;
    else
        return lemon_say(in, LEMON_ERR_PARAM, "seek: whence %d is not known", whence);
    if (offset < -from || offset > bytes - from)
        return lemon_say(in, LEMON_ERR_SEEK, "seek: %lld is outside of the record",
                         (long long)offset);
    *to = from + offset;
    return LEMON_SUCCESS;
}

int lemon_set_stripe(struct lemon_internal *in, MPI_Offset bytes)
{
    int64_t values[1] = {bytes};
    int code = bytes > 0 && bytes <= 1 << 30
                   ? LEMON_SUCCESS
                   : lemon_say(in, LEMON_ERR_PARAM, "a stripe is 1 byte to 1 GiB");
    code = lemon_agree_on(in, code, values, 1);
    if (code == LEMON_SUCCESS)
        in->hints.stripe = bytes;
    return code;
}
