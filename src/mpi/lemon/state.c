/* state.c - record headers, and the state that readers and writers share */
#include "hints.h"
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

LemonRecordHeader *lemonCreateHeader(int MB_flag, int ME_flag, char const *type,
                                     MPI_Offset reclen)
{
    if (!type || reclen < 0)
        return NULL;
    LemonRecordHeader *header = malloc(sizeof *header);
    char *copy = strdup(type);
    if (!header || !copy) {
        free(header);
        free(copy);
        return NULL;
    }
    *header = (LemonRecordHeader){
        .lemon_version = LEMON_VERSION,
        .MB_flag = MB_flag,
        .ME_flag = ME_flag,
        .type = copy,
        .data_length = (uint64_t)reclen,
    };
    return header;
}

void lemonDestroyHeader(LemonRecordHeader *h)
{
    if (h)
        free(h->type);
    free(h);
}

static bool env_allows_overfull(void)
{
    const char *compat = getenv("LEMON_COMPAT");
    return compat && strcmp(compat, "overfull") == 0;
}

/* Returns false if `bad` on any rank; else sets allows_overfull and the stripe. Collective. */
static bool agree_on_creation(struct lemon_internal *in, bool bad, MPI_Comm comm)
{
    int any[2] = {bad, env_allows_overfull()};
    MPI_Allreduce(MPI_IN_PLACE, any, 2, MPI_INT, MPI_MAX, comm);
    if (any[0])
        return false;
    in->allows_overfull = any[1]; /* mpirun may have passed LEMON_COMPAT to rank 0 only */
    int64_t stripe = lemon_hints_file_stripe(*in->file.mpi, comm);
    in->hints.striped = stripe > 0;
    in->hints.stripe = stripe ? stripe : LEMON_STRIPE_DEFAULT;
    return true;
}

struct lemon_internal *lemon_internal_new(MPI_File *fp, MPI_Comm comm)
{
    struct lemon_internal *in = calloc(1, sizeof *in);
    bool bad = fp == NULL || in == NULL;
    int level, coords[LEMON_MAX_DIMS];
    MPI_Comm duplicate;
    MPI_Comm_dup(comm, &duplicate);
    if (!bad) {
        in->comm = duplicate;
        in->file = (struct lemon_file){fp, -1, -1};
        in->read_back.fd = in->read_back.direct_fd = -1;
        in->at_message_start = 1;
        MPI_Comm_rank(duplicate, &in->rank);
        MPI_Comm_size(duplicate, &in->ranks);
        MPI_Query_thread(&level);
        in->is_multithreaded = level == MPI_THREAD_MULTIPLE;
        in->dims = lemon_get_cartesian(duplicate, in->grid, coords);
    }
    if (agree_on_creation(in, bad, duplicate))
        return in;
    free(in);
    MPI_Comm_free(&duplicate);
    return NULL;
}

void lemon_internal_free(struct lemon_internal *in)
{
    MPI_Comm_free(&in->comm);
    lemon_verify_close(in);
    if (in->file.writeback_fd >= 0)
        close(in->file.writeback_fd);
    free(in->sum.lattices);
    free(in->pending.requests);
    free(in->pending.expected);
    free(in);
}

bool lemon_data_fits(struct lemon_internal *in, int64_t bytes, int64_t left)
{
    if (bytes <= left || !in->allows_overfull)
        return bytes <= left;
    if (!in->overfull_reported)
        lemon_log_warning(in,
                          "record: %lld bytes exceed the %lld left by its header, which "
                          "LEMON_COMPAT=overfull allows",
                          (long long)bytes, (long long)left);
    in->overfull_reported = true;
    return true;
}

/* For MPI_SEEK_END, Lemon has always counted a positive offset backwards from the end. A
 * negative offset means the same here, as in lseek(), because no position is after the end. */
int lemon_compute_seek(const struct lemon_internal *in, MPI_Offset pos, MPI_Offset bytes,
                       MPI_Offset offset, int whence, MPI_Offset *to)
{
    MPI_Offset from;
    if (whence == MPI_SEEK_SET)
        from = 0;
    else if (whence == MPI_SEEK_CUR)
        from = pos;
    else if (whence == MPI_SEEK_END)
        from = bytes, offset = offset > 0 ? -offset : offset;
    else
        return lemon_log(in, LEMON_ERR_PARAM, "seek: invalid whence %d", whence);
    if (offset < -from || offset > bytes - from)
        return lemon_log(in, LEMON_ERR_SEEK, "seek: %lld is outside the record",
                         (long long)offset);
    *to = from + offset;
    return LEMON_SUCCESS;
}

int lemon_set_file_pointer(const struct lemon_internal *in, MPI_Offset offset)
{
    int err = MPI_File_seek(*in->file.mpi, offset, MPI_SEEK_SET);
    return err == MPI_SUCCESS ? LEMON_SUCCESS
                              : lemon_log(in, LEMON_ERR_SEEK, "seek: MPI error %d", err);
}

int lemon_set_hints(struct lemon_internal *in, MPI_Info info)
{
    int64_t values[LEMON_HINTS];
    int code = LEMON_SUCCESS, bad = lemon_hints_parse(info, values);
    if (bad >= 0)
        code = lemon_log(in, LEMON_ERR_PARAM, "hint %s: must be a number from 1 to %lld",
                         lemon_hints[bad].key, (long long)lemon_hints[bad].max);
    code = lemon_agree_on(in, code, values, LEMON_HINTS);
    if (code != LEMON_SUCCESS)
        return code;
    if (values[LEMON_HINT_STRIPE]) {
        in->hints.stripe = values[LEMON_HINT_STRIPE];
        in->hints.striped = true;
    }
    if (values[LEMON_HINT_AGGREGATORS])
        in->hints.aggregators = values[LEMON_HINT_AGGREGATORS];
    if (values[LEMON_HINT_ROUND_BYTES])
        in->hints.round_bytes = values[LEMON_HINT_ROUND_BYTES];
    if (values[LEMON_HINT_OVERFULL])
        in->allows_overfull = true;
    return LEMON_SUCCESS;
}

int lemon_set_stripe(struct lemon_internal *in, MPI_Offset bytes)
{
    int64_t values[1] = {bytes};
    int code = bytes > 0 && bytes <= lemon_hints[LEMON_HINT_STRIPE].max
                   ? LEMON_SUCCESS
                   : lemon_log(in, LEMON_ERR_PARAM, "stripe: must be 1 byte to 1 GiB");
    code = lemon_agree_on(in, code, values, 1);
    if (code == LEMON_SUCCESS) {
        in->hints.stripe = bytes;
        in->hints.striped = true;
    }
    return code;
}
