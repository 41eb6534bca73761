/* transfer.c - bytes between memory and file, by plan, waiting for them */
#include "internal.h"
#include "limefile.h"

#include <errno.h>
#include <unistd.h>

enum {
    /* Of one MPI-IO call. Longer writes stall now and then, shorter reads read less ahead. */
    READ_CHUNK = 256 << 20,
    WRITE_CHUNK = 8 << 20,
    READ_SUM_CHUNK = 8 << 20, /* read, then summed while it is in the cache */
};

/* ---- around the page cache ---- */

/* Reads what direct reads can, from byte *head of the range; how many bytes. */
static int64_t read_direct(const struct lemon_internal *in, char *data, int64_t n,
                           int64_t offset, int64_t *head)
{
    size_t before = 0;
    int64_t blocks =
        in->direct_fd < 0
            ? 0
            : (int64_t)limefile_blocks_inside(data, (size_t)n, (uint64_t)offset, &before);
    int64_t done = 0;
    *head = (int64_t)before;
    if (blocks == 0 || limefile_is_cached(in->direct_fd, (uint64_t)offset, (size_t)n))
        return 0;
    while (done < blocks) {
        ssize_t got = pread(in->direct_fd, data + *head + done, (size_t)(blocks - done),
                            offset + *head + done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || got % LIMEFILE_DIRECT_ALIGN)
            break; /* refused, or the file's end: MPI-IO tells what is wrong */
        done += got;
    }
    return done;
}

/* ---- contiguous ranges ---- */

static int move_by_mpi(struct lemon_internal *in, enum lemon_direction direction, void *data,
                       int64_t n, int64_t offset)
{
    const int chunk = direction == LEMON_READ ? READ_CHUNK : WRITE_CHUNK;
    for (int64_t done = 0; done < n;) {
        int count = n - done < chunk ? (int)(n - done) : chunk, moved = 0;
        MPI_Status status;
        int err = direction == LEMON_READ
                      ? MPI_File_read_at(*in->fp, offset + done, (char *)data + done, count,
                                         MPI_BYTE, &status)
                      : MPI_File_write_at(*in->fp, offset + done, (char *)data + done, count,
                                          MPI_BYTE, &status);
        if (err == MPI_SUCCESS)
            MPI_Get_count(&status, MPI_BYTE, &moved);
        if (err != MPI_SUCCESS || moved != count)
            return lemon_say(in, lemon_failure(direction),
                             "%s at %lld: %d of %d bytes (MPI error %d)",
                             direction == LEMON_READ ? "read" : "write",
                             (long long)(offset + done), moved, count, err);
        done += count;
    }
    return LEMON_SUCCESS;
}

int lemon_move_bytes(struct lemon_internal *in, enum lemon_direction direction, void *data,
                     int64_t n, int64_t offset)
{
    int64_t head = 0, direct = 0;
    if (direction == LEMON_READ)
        direct = read_direct(in, data, n, offset, &head);
    if (direct == 0)
        return move_by_mpi(in, direction, data, n, offset);
    int64_t end = head + direct;
    int code = move_by_mpi(in, direction, data, head, offset);
    if (code == LEMON_SUCCESS)
        code = move_by_mpi(in, direction, (char *)data + end, n - end, offset + end);
    return code;
}

/* ---- each rank its own runs ---- */

/* n bytes from byte `at` of the part on, with the checksum, if one is wanted. */
static int read_run(struct lemon_internal *in, char *data, int64_t at, int64_t n,
                    int64_t offset)
{
    int64_t piece = in->sum.active ? READ_SUM_CHUNK : n;
    int code = LEMON_SUCCESS;
    for (int64_t done = 0; done < n && code == LEMON_SUCCESS; done += piece) {
        int64_t bytes = n - done < piece ? n - done : piece;
        code = lemon_move_bytes(in, LEMON_READ, data + at + done, bytes, offset + done);
        if (code == LEMON_SUCCESS)
            lemon_sum_reach(in, data, at + done + bytes);
    }
    return code;
}

static int move_runs(struct lemon_internal *in, enum lemon_direction direction, char *data,
                     int64_t base)
{
    const struct lemon_box *box = &in->geometry.boxes[in->rank];
    int64_t run = lemon_box_run_bytes(box), bytes = lemon_box_bytes(box);
    struct lemon_sum_beside beside;
    int code = LEMON_SUCCESS;
    if (direction == LEMON_WRITE)
        lemon_sum_start(&beside, in, data);
    for (int64_t i = 0; i * run < bytes && code == LEMON_SUCCESS; i++) {
        int64_t offset = base + lemon_box_run_offset(box, run, i);
        code = direction == LEMON_READ
                   ? read_run(in, data, i * run, run, offset)
                   : lemon_move_bytes(in, LEMON_WRITE, data + i * run, run, offset);
    }
    if (direction == LEMON_WRITE)
        lemon_sum_join(&beside);
    return code;
}

/* ---- through movers ---- */

/* After an error the ranks go on exchanging: nobody is left waiting. */
static int write_windows(struct lemon_internal *in, const struct lemon_plan *plan,
                         struct lemon_exchange *exchange, char *window)
{
    int64_t rounds = lemon_plan_rounds(plan);
    int code = LEMON_SUCCESS;
    for (int64_t round = 0; round < rounds; round++) {
        int64_t from, to;
        lemon_plan_window(plan, in->rank, round, &from, &to);
        lemon_exchange_round(in, exchange, round, window);
        if (to > from && code == LEMON_SUCCESS)
            code = lemon_move_bytes(in, LEMON_WRITE, window, to - from, plan->base + from);
    }
    return code;
}

/* While one window is handed out, the next one is read. */
static int read_windows(struct lemon_internal *in, const struct lemon_plan *plan,
                        struct lemon_exchange *exchange, char *windows)
{
    int64_t rounds = lemon_plan_rounds(plan);
    int code = LEMON_SUCCESS;
    lemon_post_begin(in, LEMON_READ);
    for (int64_t round = 0; round <= rounds; round++) {
        int64_t from, to;
        code = lemon_post_wait(in);
        lemon_plan_window(plan, in->rank, round, &from, &to);
        if (round < rounds && code == LEMON_SUCCESS)
            code =
                lemon_post(in, windows + round % 2 * plan->round, to - from, plan->base + from);
        if (round > 0)
            lemon_exchange_round(in, exchange, round - 1,
                                 windows + (round - 1) % 2 * plan->round);
    }
    return code;
}

static int move_windows(struct lemon_internal *in, const struct lemon_plan *plan,
                        enum lemon_direction direction, char *data)
{
    size_t bytes = (size_t)plan->round * (direction == LEMON_READ ? 2 : 1);
    char *windows = in->rank < plan->movers ? malloc(bytes) : NULL;
    struct lemon_exchange exchange;
    int code = lemon_exchange_open(in, &exchange, plan, direction, data,
                                   in->rank >= plan->movers || windows);
    if (code == LEMON_SUCCESS) {
        code = direction == LEMON_READ ? read_windows(in, plan, &exchange, windows)
                                       : write_windows(in, plan, &exchange, windows);
        lemon_exchange_sum_rest(in, &exchange);
        lemon_exchange_close(&exchange);
    }
    free(windows);
    return code;
}

int lemon_move_lattice(struct lemon_internal *in, enum lemon_direction direction, char *data,
                       int64_t base)
{
    struct lemon_plan plan;
    lemon_geometry_plan(in, base, &plan);
    return plan.direct ? move_runs(in, direction, data, base)
                       : move_windows(in, &plan, direction, data);
}
