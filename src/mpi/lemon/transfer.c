/*
 * transfer.c - move data between memory and file by a plan, blocking or not
 *
 * I/O uses MPI's non-blocking calls for contiguous ranges. To write through aggregators, the
 * ranks first exchange the data in memory, and then the aggregators write; to read, the
 * aggregators read first, and then the ranks exchange the data.
 *
 * In OMPIO (of Open MPI), MPI_File_sync() returns an error, without waiting for other ranks, if
 * this process has a pending request of any file. So lemon_inside_sync() first waits for the
 * requests of all readers and writers, which are in pending_list.
 */
#include "internal.h"
#include "lemon_inside.h"
#include "permute.h"

#include <string.h>
#include <unistd.h>

enum {
    CHUNK = 256 << 20,          /* bytes of one request: counts are int */
    WRITE_CHUNK = 8 << 20,      /* longer writes may stall */
    RUNS_MAX = 64,              /* with more runs, a non-blocking call uses aggregators */
    TESTS_PER_SIZE_CHECK = 256, /* tests of a request per check of the file's size (0.25 s) */
    SHORT_CHECKS_MAX = 8, /* after so many checks that find the file too short, a read fails */
    QUIESCE_US = 100000,  /* time for a read in progress to end before its request is freed */
};

static int reserve_request(struct lemon_pending *pending)
{
    if (pending->count < pending->capacity)
        return 0;
    int capacity = pending->capacity * 2 + 16;
    MPI_Request *requests = realloc(pending->requests, (size_t)capacity * sizeof *requests);
    if (requests)
        pending->requests = requests;
    struct lemon_expected *expected =
        realloc(pending->expected, (size_t)capacity * sizeof *expected);
    if (expected)
        pending->expected = expected;
    if (!requests || !expected)
        return -1;
    pending->capacity = capacity;
    return 0;
}

int lemon_move_bytes(struct lemon_internal *in, enum lemon_direction direction, void *data,
                     int64_t n, int64_t offset)
{
    char text[LEMON_RANGE_TEXT_MAX];
    return lemon_range_move(&in->file, direction, data, n, offset, text)
               ? LEMON_SUCCESS
               : lemon_log(in, lemon_io_error(direction), "%s", text);
}

/* Checks that the file has the bytes of a read, because Open MPI's OMPIO never completes a
 * non-blocking read beyond the end of the file. */
static int check_size(struct lemon_internal *in, int64_t n, int64_t offset)
{
    MPI_Offset size = 0;
    if (MPI_File_get_size(*in->file.mpi, &size) == MPI_SUCCESS && offset + n <= size)
        return LEMON_SUCCESS;
    return lemon_log(in, LEMON_ERR_READ, "read to %lld: the file ends at %lld",
                     (long long)(offset + n), (long long)size);
}

/* OMPIO keeps the requests of all files in one list, which every waiting thread traverses
 * without a lock. A program with several threads would crash, so its I/O blocks. */
static bool must_block(const struct lemon_internal *in)
{
    return in->pending.is_blocking || in->is_multithreaded;
}

/* ---- list of readers and writers with requests ---- */

/* Needs no lock: a program with several threads never has requests, see must_block(). */
static struct lemon_internal *pending_list;

static void add_to_list(struct lemon_internal *in)
{
    in->pending.next = pending_list;
    pending_list = in;
}

static void remove_from_list(struct lemon_internal *in)
{
    struct lemon_internal **at = &pending_list;
    while (*at != in)
        at = &(*at)->pending.next;
    *at = in->pending.next;
}

/* Keeps a reader's or writer's error in its `pending`, for the next call that uses it. */
static void wait_for_all_pending(void)
{
    while (pending_list)
        lemon_post_wait(pending_list);
}

int lemon_inside_sync(MPI_File file)
{
    wait_for_all_pending();
    return MPI_File_sync(file);
}

/* ---- one request ---- */

int lemon_post_range(struct lemon_internal *in, char *data, int64_t n, int64_t offset)
{
    struct lemon_pending *pending = &in->pending;
    if (must_block(in))
        return pending->code = lemon_move_bytes(in, pending->direction, data, n, offset);
    if (n > 0 && pending->direction == LEMON_READ && check_size(in, n, offset) != LEMON_SUCCESS)
        return pending->code = LEMON_ERR_READ;
    const int chunk = pending->direction == LEMON_READ ? CHUNK : WRITE_CHUNK;
    for (int64_t done = 0; done < n;) {
        int count = n - done < chunk ? (int)(n - done) : chunk;
        if (reserve_request(pending) != 0)
            return pending->code =
                       lemon_log(in, lemon_io_error(pending->direction), "out of memory");
        MPI_Request *request = &pending->requests[pending->count];
        int err = pending->direction == LEMON_READ
                      ? MPI_File_iread_at(*in->file.mpi, offset + done, data + done, count,
                                          MPI_BYTE, request)
                      : MPI_File_iwrite_at(*in->file.mpi, offset + done, data + done, count,
                                           MPI_BYTE, request);
        if (err != MPI_SUCCESS)
            return pending->code = lemon_log(in, lemon_io_error(pending->direction),
                                             "transfer at %lld: MPI error %d",
                                             (long long)(offset + done), err);
        pending->expected[pending->count++] =
            (struct lemon_expected){count, offset + done + count};
        if (pending->count == 1)
            add_to_list(in);
        done += count;
    }
    return LEMON_SUCCESS;
}

void lemon_post_begin(struct lemon_internal *in, enum lemon_direction direction)
{
    struct lemon_pending *pending = &in->pending;
    pending->direction = direction;
    pending->count = 0;
    pending->buffer = NULL;
    pending->schedule = (struct lemon_schedule){0};
    pending->needs_exchange = pending->needs_broadcast = pending->direct_runs =
        pending->is_blocking = false;
    pending->code = LEMON_SUCCESS;
}

int lemon_start_bytes(struct lemon_internal *in, enum lemon_direction direction, void *data,
                      int64_t n, int64_t offset)
{
    lemon_post_begin(in, direction);
    in->pending.data = data;
    in->pending.needs_broadcast = direction == LEMON_READ;
    in->pending.bytes = n;
    return in->rank == 0 ? lemon_post_range(in, data, n, offset) : LEMON_SUCCESS;
}

/* ---- lattices ---- */

static int post_direct_runs(struct lemon_internal *in, char *data, int64_t base)
{
    const struct lemon_box *box = &in->geometry.box;
    int64_t run = lemon_box_run_bytes(box), bytes = lemon_box_bytes(box);
    int code = LEMON_SUCCESS;
    for (int64_t i = 0; i * run < bytes && code == LEMON_SUCCESS; i++)
        code =
            lemon_post_range(in, data + i * run, run, base + lemon_box_run_offset(box, run, i));
    return code;
}

/* Exchanges all rounds. ok: false if this rank has failed before. Collective, agreed. */
static int exchange_rounds(struct lemon_internal *in, bool ok)
{
    struct lemon_pending *pending = &in->pending;
    const struct lemon_plan *plan = &pending->plan;
    struct lemon_exchange exchange;
    char *window = pending->buffer;
    int code = lemon_exchange_open(in, &exchange, plan, &pending->schedule, pending->direction,
                                   pending->data, ok);
    if (code != LEMON_SUCCESS)
        return code;
    for (int64_t round = 0; round < plan->rounds; round++) {
        struct lemon_round own;
        int64_t bytes = lemon_round_init(&own, plan, &pending->schedule, round, window);
        lemon_exchange_round(in, &exchange, round, &own);
        window += bytes;
    }
    lemon_exchange_sum_split_sites(in, &exchange);
    lemon_exchange_close(&exchange);
    return LEMON_SUCCESS;
}

/* Posts reads into the window, or writes from it, of the pieces of this rank's round. */
static int post_round(struct lemon_internal *in, const struct lemon_round *own, int64_t base)
{
    char *window = own->window;
    int code = LEMON_SUCCESS;
    for (int i = 0; i < own->count && code == LEMON_SUCCESS; i++) {
        int64_t from = own->pieces[i].from, n = own->pieces[i].to - from;
        code = lemon_post_range(in, window, n, base + from);
        window += n;
    }
    return code;
}

static int post_rounds(struct lemon_internal *in)
{
    struct lemon_pending *pending = &in->pending;
    char *window = pending->buffer;
    int code = LEMON_SUCCESS;
    for (int64_t round = 0; round < pending->plan.rounds && code == LEMON_SUCCESS; round++) {
        struct lemon_round own;
        int64_t bytes =
            lemon_round_init(&own, &pending->plan, &pending->schedule, round, window);
        code = post_round(in, &own, pending->plan.base);
        window += bytes;
    }
    return code;
}

static int start_aggregators(struct lemon_internal *in)
{
    struct lemon_pending *pending = &in->pending;
    bool ok = lemon_schedule_init(&pending->schedule, &pending->plan, in->rank) == 0;
    if (ok)
        pending->buffer = lemon_window_new(pending->schedule.bytes +
                                           2 * LIMEFILE_DIRECT_ALIGN * pending->plan.rounds);
    ok = ok && pending->buffer;
    int code = pending->direction == LEMON_WRITE
                   ? exchange_rounds(in, ok)
                   : lemon_agree(in, ok ? LEMON_SUCCESS : LEMON_ERR_READ);
    pending->needs_exchange = pending->direction == LEMON_READ && code == LEMON_SUCCESS;
    if (code != LEMON_SUCCESS)
        return pending->code = code;
    return post_rounds(in);
}

int lemon_start_lattice(struct lemon_internal *in, enum lemon_direction direction, char *data,
                        int64_t base)
{
    struct lemon_pending *pending = &in->pending;
    lemon_post_begin(in, direction);
    pending->data = data;
    lemon_geometry_plan(in, base, &pending->plan);
    pending->direct_runs =
        pending->plan.direct && lemon_grid_max_runs(&in->geometry.grid) <= RUNS_MAX;
    if (!pending->direct_runs)
        return start_aggregators(in);
    int code = post_direct_runs(in, data, base);
    if (direction == LEMON_WRITE) /* compute the checksum while MPI writes */
        lemon_sum_until(in, data, lemon_geometry_local_bytes(in));
    return code;
}

/* ---- completion ---- */

/* Counts tests of incomplete requests. */
struct polls {
    int tests, too_short; /* too_short: consecutive checks that found the file too short */
};

#ifdef OPEN_MPI
/* Returns true if a read will never end, because the file was truncated: see check_size(). */
static bool is_truncated(const struct lemon_internal *in, int64_t end, struct polls *polls)
{
    MPI_Offset size = 0;
    if (in->pending.direction != LEMON_READ ||
        (polls->too_short < SHORT_CHECKS_MAX && ++polls->tests % TESTS_PER_SIZE_CHECK))
        return false;
    bool is_short = MPI_File_get_size(*in->file.mpi, &size) == MPI_SUCCESS && size < end;
    polls->too_short = is_short ? polls->too_short + 1 : 0;
    return polls->too_short >= SHORT_CHECKS_MAX;
}

/* Waits for the request, and returns how many bytes it has moved. MPI_Wait() on a failed
 * request crashes Open MPI 4.1, so this first queries the status until the request is complete.
 * In Open MPI, unlike MPICH, a query also drives the progress of requests. */
static int64_t wait_request(const struct lemon_internal *in, MPI_Request *request,
                            const struct lemon_expected *expected, struct polls *polls)
{
    MPI_Status status;
    int done = 0, moved = 0;
    for (useconds_t pause = 0; !done; pause = pause < 1000 ? pause + 10 : pause) {
        if (MPI_Request_get_status(*request, &done, &status) != MPI_SUCCESS)
            return 0;
        if (!done && is_truncated(in, expected->end, polls)) {
            usleep(QUIESCE_US); /* OMPIO continues a read only when its status is queried */
            MPI_Request_free(request);
            return 0;
        }
        if (!done)
            usleep(pause);
    }
    MPI_Get_count(&status, MPI_BYTE, &moved);
    if (moved != expected->bytes) {
        MPI_Request_free(request);
        return moved;
    }
    return MPI_Wait(request, MPI_STATUS_IGNORE) == MPI_SUCCESS ? moved : 0;
}

/* Returns whether the request is complete. Sets *moved to `expected`, because only
 * wait_request() gets the real number. */
static bool test_request(MPI_Request *request, int64_t expected, int64_t *moved)
{
    int done = 0;
    *moved = expected;
    return MPI_Request_get_status(*request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done;
}
#else
static int64_t wait_request(const struct lemon_internal *in, MPI_Request *request,
                            const struct lemon_expected *expected, struct polls *polls)
{
    MPI_Status status;
    int moved = 0;
    (void)in;
    (void)polls;
    if (*request == MPI_REQUEST_NULL) /* test_request() has completed it */
        return expected->bytes;
    if (MPI_Wait(request, &status) != MPI_SUCCESS)
        return 0;
    MPI_Get_count(&status, MPI_BYTE, &moved);
    return moved;
}

/* Returns whether the request is complete. If so, MPI has freed it, and *moved is correct. */
static bool test_request(MPI_Request *request, int64_t expected, int64_t *moved)
{
    MPI_Status status;
    int done = 0, count = 0;
    *moved = expected;
    if (*request == MPI_REQUEST_NULL)
        return true;
    if (MPI_Test(request, &done, &status) != MPI_SUCCESS) {
        *request = MPI_REQUEST_NULL;
        *moved = 0;
        return true;
    }
    if (done) {
        MPI_Get_count(&status, MPI_BYTE, &count);
        *moved = count;
    }
    return done;
}
#endif

static void check_moved(struct lemon_internal *in, int64_t moved, int64_t expected)
{
    if (moved != expected)
        in->pending.code =
            lemon_log(in, lemon_io_error(in->pending.direction),
                      "%lld of %lld bytes transferred%s", (long long)moved, (long long)expected,
                      in->pending.direction == LEMON_WRITE ? "; is the disk full?" : "");
}

bool lemon_inside_is_transferred(LemonWriter *writer)
{
    struct lemon_pending *pending = &writer->internal->pending;
    bool done = true;
    for (int i = 0; writer->is_busy && i < pending->count && done; i++) {
        int64_t moved;
        done = test_request(&pending->requests[i], pending->expected[i].bytes, &moved);
        if (done)
            check_moved(writer->internal, moved, pending->expected[i].bytes);
    }
    return done;
}

static int64_t pending_end(const struct lemon_pending *pending)
{
    int64_t end = 0;
    for (int i = 0; i < pending->count; i++)
        if (pending->expected[i].end > end)
            end = pending->expected[i].end;
    return end;
}

int lemon_post_wait(struct lemon_internal *in)
{
    struct lemon_pending *pending = &in->pending;
    struct polls polls = {0, 0};
    int64_t done = 0;
    for (int i = 0; i < pending->count; i++) {
        int64_t moved = wait_request(in, &pending->requests[i], &pending->expected[i], &polls);
        check_moved(in, moved, pending->expected[i].bytes);
        done += moved;
        /* Add this run to the checksum while MPI reads the next ones. */
        if (pending->direct_runs && pending->code == LEMON_SUCCESS)
            lemon_sum_until(in, pending->data, done);
    }
    if (pending->count == 0)
        return pending->code;
    /* Check the size too, because ROMIO reports some short reads as complete. */
    if (pending->direction == LEMON_READ && pending->code == LEMON_SUCCESS)
        pending->code = check_size(in, 0, pending_end(pending));
    pending->count = 0;
    remove_from_list(in);
    return pending->code;
}

void lemon_broadcast(const struct lemon_internal *in, char *data, int64_t n)
{
    for (int64_t done = 0; done < n; done += CHUNK)
        MPI_Bcast(data + done, n - done < CHUNK ? (int)(n - done) : CHUNK, MPI_BYTE, 0,
                  in->comm);
}

int lemon_finish_pending(struct lemon_internal *in)
{
    struct lemon_pending *pending = &in->pending;
    int code = lemon_agree(in, lemon_post_wait(in));
    if (code == LEMON_SUCCESS && pending->direct_runs)
        lemon_sum_until(in, pending->data, lemon_geometry_local_bytes(in));
    if (code == LEMON_SUCCESS && pending->needs_exchange)
        code = exchange_rounds(in, true);
    if (code == LEMON_SUCCESS && pending->needs_broadcast)
        lemon_broadcast(in, pending->data, pending->bytes);
    free(pending->buffer);
    pending->buffer = NULL;
    lemon_schedule_release(&pending->schedule);
    return code;
}

/* ---- blocking ---- */

enum {
    READ_SUM_CHUNK = 8 << 20, /* bytes of a read, small enough to be summed in the cache */
};

/* ---- direct: each rank moves its own runs ---- */

/* Reads n bytes of this rank's part, from byte `at` on, and adds them to an active checksum. */
static int read_direct_run(struct lemon_internal *in, char *data, int64_t at, int64_t n,
                           int64_t offset)
{
    int64_t piece = in->sum.active ? READ_SUM_CHUNK : n;
    int code = LEMON_SUCCESS;
    for (int64_t done = 0; done < n && code == LEMON_SUCCESS; done += piece) {
        int64_t bytes = n - done < piece ? n - done : piece;
        code = lemon_move_bytes(in, LEMON_READ, data + at + done, bytes, offset + done);
        if (code == LEMON_SUCCESS)
            lemon_sum_until(in, data, at + done + bytes);
    }
    return code;
}

static int move_direct_runs(struct lemon_internal *in, enum lemon_direction direction,
                            char *data, int64_t base)
{
    const struct lemon_box *box = &in->geometry.box;
    int64_t run = lemon_box_run_bytes(box), bytes = lemon_box_bytes(box);
    struct lemon_sum_thread sum_thread;
    int code = LEMON_SUCCESS;
    if (direction == LEMON_WRITE)
        lemon_sum_thread_start(&sum_thread, in, data);
    for (int64_t i = 0; i * run < bytes && code == LEMON_SUCCESS; i++) {
        int64_t offset = base + lemon_box_run_offset(box, run, i);
        code = direction == LEMON_READ
                   ? read_direct_run(in, data, i * run, run, offset)
                   : lemon_move_bytes(in, LEMON_WRITE, data + i * run, run, offset);
    }
    if (direction == LEMON_WRITE)
        lemon_sum_thread_join(&sum_thread);
    return code;
}

/* ---- through aggregators ---- */

struct aggregator {
    const struct lemon_plan *plan;
    struct lemon_schedule schedule;
    char *windows;  /* memory for two windows, or for one if there is one round */
    int64_t window; /* bytes of a window */
};

static void set_round(const struct aggregator *self, struct lemon_round *own, int64_t round)
{
    lemon_round_init(own, self->plan, &self->schedule, round,
                     self->windows + round % 2 * self->window);
}

/* While MPI, or the kernel's write-back, writes a round, the ranks exchange the next round.
 * After an error they still exchange all rounds, so that no rank waits forever. */
static int write_rounds(struct lemon_internal *in, const struct aggregator *self,
                        struct lemon_exchange *exchange)
{
    lemon_post_begin(in, LEMON_WRITE);
    in->pending.is_blocking = in->file.writeback_fd >= 0;
    for (int64_t round = 0; round < self->plan->rounds; round++) {
        struct lemon_round own;
        set_round(self, &own, round);
        lemon_exchange_round(in, exchange, round, &own);
        if (lemon_post_wait(in) == LEMON_SUCCESS)
            post_round(in, &own, self->plan->base);
    }
    return lemon_post_wait(in);
}

/* While MPI reads a round, the ranks exchange the previous round. */
static int read_rounds(struct lemon_internal *in, const struct aggregator *self,
                       struct lemon_exchange *exchange)
{
    struct lemon_round own[2];
    lemon_post_begin(in, LEMON_READ);
    for (int64_t round = 0; round <= self->plan->rounds; round++) {
        int code = lemon_post_wait(in);
        set_round(self, &own[round % 2], round);
        if (code == LEMON_SUCCESS && round < self->plan->rounds)
            post_round(in, &own[round % 2], self->plan->base);
        if (round > 0)
            lemon_exchange_round(in, exchange, round - 1, &own[(round - 1) % 2]);
    }
    return in->pending.code;
}

static int move_through_aggregators(struct lemon_internal *in, const struct lemon_plan *plan,
                                    enum lemon_direction direction, char *data)
{
    struct aggregator self = {.plan = plan};
    struct lemon_exchange exchange;
    bool ok = lemon_schedule_init(&self.schedule, plan, in->rank) == 0;
    self.window = (self.schedule.window / LIMEFILE_DIRECT_ALIGN + 2) * LIMEFILE_DIRECT_ALIGN;
    if (ok)
        self.windows = lemon_window_new((plan->rounds > 1 ? 2 : 1) * self.window);
    int code = lemon_exchange_open(in, &exchange, plan, &self.schedule, direction, data,
                                   ok && self.windows);
    if (code == LEMON_SUCCESS) {
        code = direction == LEMON_READ ? read_rounds(in, &self, &exchange)
                                       : write_rounds(in, &self, &exchange);
        lemon_exchange_sum_split_sites(in, &exchange);
        lemon_exchange_close(&exchange);
    }
    free(self.windows);
    lemon_schedule_release(&self.schedule);
    return code;
}

static int move_in_disk_order(struct lemon_internal *in, enum lemon_direction direction,
                              char *data, int64_t base)
{
    struct lemon_plan plan;
    lemon_geometry_plan(in, base, &plan);
    return plan.direct ? move_direct_runs(in, direction, data, base)
                       : move_through_aggregators(in, &plan, direction, data);
}

/* ---- lattices with different orders in memory and on disk ---- */

static bool is_disk_order(const struct lemon_geometry *geometry)
{
    return memcmp(geometry->memory, geometry->mapping,
                  (size_t)geometry->grid.dims * sizeof(int)) == 0;
}

static void make_permute(const struct lemon_internal *in, struct lemon_permute *permute)
{
    const struct lemon_geometry *geometry = &in->geometry;
    const struct lemon_box *box = &geometry->box;
    int on_disk[LEMON_MAX_DIMS], order[LEMON_MAX_DIMS];
    for (int i = 0; i < geometry->grid.dims; i++)
        on_disk[geometry->mapping[i]] = i;
    for (int i = 0; i < geometry->grid.dims; i++)
        order[i] = on_disk[geometry->memory[i]];
    lemon_permute_init(permute, geometry->grid.dims, box->sites, order, box->site_bytes);
}

static int move_permuted(struct lemon_internal *in, enum lemon_direction direction, char *data,
                         int64_t base)
{
    struct lemon_permute permute;
    char *copy = NULL;
    int code = LEMON_SUCCESS;
    make_permute(in, &permute);
    bool differs = permute.dims > 0; /* otherwise the rank's part is the same in both orders */
    if (differs && !(copy = malloc((size_t)lemon_geometry_local_bytes(in))))
        code = lemon_log(in, lemon_io_error(direction), "out of memory for %lld bytes",
                         (long long)lemon_geometry_local_bytes(in));
    code = lemon_agree(in, code);
    if (code != LEMON_SUCCESS) {
        free(copy);
        return code;
    }
    if (differs && direction == LEMON_WRITE)
        lemon_permute_to_disk(&permute, data, copy);
    code = move_in_disk_order(in, direction, differs ? copy : data, base);
    if (differs && direction == LEMON_READ && code == LEMON_SUCCESS)
        lemon_permute_to_memory(&permute, copy, data);
    free(copy);
    return code;
}

int lemon_move_lattice(struct lemon_internal *in, enum lemon_direction direction, char *data,
                       int64_t base)
{
    return is_disk_order(&in->geometry) ? move_in_disk_order(in, direction, data, base)
                                        : move_permuted(in, direction, data, base);
}
