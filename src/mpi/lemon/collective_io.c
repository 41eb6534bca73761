/*
 * collective_io.c - read or write arbitrary ranges of a file through aggregators
 *
 * In each round, a rank exchanges at most one message with each aggregator: a range of the
 * rank's stream. If the message is also one range of the aggregator's window, the aggregator
 * receives it into the window, or sends it from there. Otherwise the aggregator uses a buffer.
 * In a round all ranks first post their receives, so no two ranks wait for each other.
 */
#include "collective_io.h"

#include <string.h>

enum {
    TAG_RUNS = 5,
    STAGING = 32 << 20, /* bytes of a rank's buffer for sends, unless a round is longer */
};

/* ---- pattern of the exchange ---- */

/* Returns the number of this rank's runs in an aggregator's range. Unless `words` is NULL,
 * stores in it the offset and length of each run's part in that range. */
static int64_t clip_runs(const struct lemon_collective *io, int64_t aggregator, int64_t *words)
{
    int64_t from, to, n = 0;
    lemon_file_domains_range(&io->plan.domains, (int)aggregator, &from, &to);
    for (int64_t i = lemon_runs_find(io->run, io->count, from);
         i < io->count && io->run[i].offset < to; i++, n++) {
        int64_t begin = io->run[i].offset, end = begin + io->run[i].bytes;
        if (words) {
            words[2 * n] = begin > from ? begin : from;
            words[2 * n + 1] = (end < to ? end : to) - words[2 * n];
        }
    }
    return n;
}

/* Returns the first aggregator with a number above `after` whose range contains bytes of this
 * rank's runs, or -1 if there is no such aggregator. */
static int64_t next_aggregator(const struct lemon_collective *io, int64_t after)
{
    int64_t from, to, i;
    if (after < 0)
        i = 0;
    else {
        lemon_file_domains_range(&io->plan.domains, (int)after, &from, &to);
        i = lemon_runs_find(io->run, io->count, to);
    }
    if (i >= io->count)
        return -1;
    int64_t owner = lemon_runs_find_aggregator(&io->plan, io->run[i].offset);
    /* A run that begins before `to` continues in the range of aggregator after + 1. */
    return owner > after ? owner : after + 1;
}

/* Adds the other aggregators of this rank's runs to the pattern. Returns the words of
 * clip_runs() for all of these, which the caller frees. Sets *ok to false if out of memory. */
static int64_t *clip_own_runs(struct lemon_collective *io, bool *ok)
{
    int64_t *words, at = 0;
    for (int64_t i = next_aggregator(io, -1); i >= 0; i = next_aggregator(io, i))
        if (i != io->aggregator)
            *ok = lemon_sparse_add(&io->pattern, (int)lemon_runs_aggregator_rank(&io->plan, i),
                                   clip_runs(io, i, NULL)) == 0 &&
                  *ok;
    words = malloc((size_t)io->pattern.to_items * 2 * sizeof *words + 1);
    for (int64_t i = next_aggregator(io, -1); words && *ok && i >= 0;
         i = next_aggregator(io, i))
        if (i != io->aggregator)
            at += 2 * clip_runs(io, i, words + at);
    *ok = *ok && words;
    return words;
}

/* Stores the runs of other ranks, received as pairs of words. */
static void store_peer_runs(struct lemon_collective *io, const int64_t *words)
{
    const struct lemon_sparse *p = &io->pattern;
    for (int64_t i = 0; i < p->from_items; i++)
        io->peer_runs[i] = (struct lemon_run){words[2 * i], words[2 * i + 1], 0};
    for (int64_t i = 0; i < p->from_count; i++)
        lemon_runs_set_before(io->peer_runs + p->from[i].first, p->from[i].items);
}

static int64_t window_bytes(const struct lemon_collective *io)
{
    return io->aggregator < 0 ? 0 : io->plan.round_bytes + 2 * LIMEFILE_DIRECT_ALIGN;
}

static int64_t all_windows_bytes(const struct lemon_collective *io)
{
    return io->mode == LEMON_COLLECTIVE_GATHER
               ? 0
               : (io->plan.rounds > 1 ? 2 : 1) * window_bytes(io);
}

static bool allocate_buffers(struct lemon_collective *io, int64_t **words)
{
    const struct lemon_sparse *p = &io->pattern;
    free(io->staging); /* agree_on_direct() may have allocated it */
    io->staging_bytes = io->plan.round_bytes > STAGING ? io->plan.round_bytes : STAGING;
    *words = malloc((size_t)p->from_items * 2 * sizeof **words + 1);
    io->peer_runs = malloc((size_t)p->from_items * sizeof *io->peer_runs + 1);
    io->receive_offset = malloc((size_t)p->from_count * sizeof *io->receive_offset + 1);
    io->requests = malloc((size_t)(p->from_count + p->to_count + 1) * sizeof *io->requests);
    io->staging = malloc((size_t)io->staging_bytes);
    io->received = malloc(p->from_count ? (size_t)io->plan.round_bytes : 1);
    io->windows = lemon_window_new(all_windows_bytes(io) + 1);
    return *words && io->peer_runs && io->receive_offset && io->requests && io->staging &&
           io->received && io->windows;
}

/* Determines which ranks exchange data, and allocates memory for the exchange. */
static int open_exchange(struct lemon_internal *in, struct lemon_collective *io, bool ok)
{
    int64_t *out = clip_own_runs(io, &ok), *into = NULL;
    ok = lemon_sparse_build(in, &io->pattern, ok) && allocate_buffers(io, &into);
    int code =
        lemon_agree(in, ok ? LEMON_SUCCESS : lemon_log(in, LEMON_ERR_PARAM, "out of memory"));
    if (code == LEMON_SUCCESS) {
        lemon_sparse_forward(in, &io->pattern, 2, out, into);
        store_peer_runs(io, into);
    }
    free(out);
    free(into);
    return code;
}

/* Sets io->direct to true if all ranks can write their own runs. Collective, agreed. */
static int agree_on_direct(struct lemon_internal *in, struct lemon_collective *io, bool ok)
{
    bool direct = lemon_runs_can_write_directly(&io->plan, io->run, io->count, &in->hints);
    if (direct)
        io->staging = malloc(LEMON_COLLECTIVE_CHUNK);
    if (!ok || (direct && !io->staging))
        return lemon_agree(in, lemon_log(in, LEMON_ERR_PARAM, "out of memory"));
    int lowest = lemon_agree(in, direct);
    io->direct = lowest > 0;
    return lowest < 0 ? lowest : LEMON_SUCCESS;
}

int lemon_collective_open(struct lemon_internal *in, struct lemon_collective *io, int64_t bytes,
                          int64_t base, struct lemon_run *run, int64_t count,
                          enum lemon_collective_mode mode, bool ok)
{
    *io = (struct lemon_collective){.run = run, .count = count, .mode = mode};
    lemon_runs_plan_init(&io->plan, bytes, in->ranks, base, &in->hints);
    io->aggregator = lemon_runs_aggregator(&io->plan, in->rank);
    lemon_runs_set_before(run, count);
    int code = mode == LEMON_COLLECTIVE_WRITE ? agree_on_direct(in, io, ok) : LEMON_SUCCESS;
    if (code == LEMON_SUCCESS && !io->direct)
        code = open_exchange(in, io, ok);
    if (code != LEMON_SUCCESS)
        lemon_collective_close(io);
    return code;
}

void lemon_collective_close(struct lemon_collective *io)
{
    lemon_sparse_close(&io->pattern);
    free(io->peer_runs);
    free(io->receive_offset);
    free(io->requests);
    free(io->staging);
    free(io->received);
    free(io->windows);
    *io = (struct lemon_collective){0};
}

/* ---- a round ---- */

/* The part of a stream that is in a window (a range of the file): bytes [at, at + n) of the
 * stream. window_at: the part's offset in the window, or -1 if it is not contiguous there. */
struct runs_part {
    int64_t at, n, window_at;
};

static struct runs_part find_part(const struct lemon_run *run, int64_t count, int64_t from,
                                  int64_t to)
{
    struct runs_part part = {lemon_runs_bytes_before(run, count, from), 0, -1};
    part.n = lemon_runs_bytes_before(run, count, to) - part.at;
    if (part.n == 0)
        return part;
    const struct lemon_run *first = &run[lemon_runs_find(run, count, from)];
    int64_t begin = first->offset > from ? first->offset : from;
    if (first->offset + first->bytes - begin >= part.n)
        part.window_at = begin - from;
    return part;
}

/* window: bytes [from, to) of the file. bytes: only the runs' bytes of that range, without
 * gaps. Copies from `bytes` into the window (into_window), or from the window into `bytes`. */
static void copy_runs(const struct lemon_run *run, int64_t count, int64_t from, int64_t to,
                      char *window, char *bytes, bool into_window)
{
    for (int64_t i = lemon_runs_find(run, count, from); i < count && run[i].offset < to; i++) {
        int64_t begin = run[i].offset > from ? run[i].offset : from;
        int64_t end = run[i].offset + run[i].bytes < to ? run[i].offset + run[i].bytes : to;
        if (into_window)
            memcpy(window + (begin - from), bytes, (size_t)(end - begin));
        else
            memcpy(bytes, window + (begin - from), (size_t)(end - begin));
        bytes += end - begin;
    }
}

/* Computes a round's range, relative to the plan's first byte; empty if aggregator is -1. */
static void round_range(const struct lemon_collective *io, int64_t aggregator, int64_t round,
                        int64_t *from, int64_t *to)
{
    *from = *to = 0;
    if (aggregator >= 0)
        lemon_runs_round(&io->plan, aggregator, round, from, to);
}

/* Returns this rank's part of a round of the aggregator `peer`. */
static struct runs_part own_part(const struct lemon_collective *io,
                                 const struct lemon_peer *peer, int64_t round)
{
    int64_t from, to;
    round_range(io, lemon_runs_aggregator(&io->plan, peer->rank), round, &from, &to);
    return find_part(io->run, io->count, from, to);
}

/* Returns the runs that the rank io->pattern.from[source].rank has in this rank's range. */
static const struct lemon_run *get_peer_runs(const struct lemon_collective *io, int64_t source,
                                             int64_t *count)
{
    *count = io->pattern.from[source].items;
    return io->peer_runs + io->pattern.from[source].first;
}

/* ---- into the windows ---- */

/* Posts receives of this aggregator's round. Returns the number of requests. */
static int post_receives(const struct lemon_internal *in, struct lemon_collective *io,
                         int64_t from, int64_t to, char *window)
{
    int n = 0;
    int64_t used = 0, count;
    for (int64_t i = 0; i < io->pattern.from_count; i++) {
        const struct lemon_run *run = get_peer_runs(io, i, &count);
        struct runs_part part = find_part(run, count, from, to);
        io->receive_offset[i] = -1;
        if (part.n == 0)
            continue;
        char *buffer = part.window_at < 0 ? io->received + used : window + part.window_at;
        if (part.window_at < 0) {
            io->receive_offset[i] = used;
            used += part.n;
        }
        MPI_Irecv(buffer, (int)part.n, MPI_BYTE, io->pattern.from[i].rank, TAG_RUNS, in->comm,
                  &io->requests[n++]);
    }
    return n;
}

/* Sends this rank's bytes of a round, as many messages at once as the buffer can hold. */
static void send_parts(const struct lemon_internal *in, struct lemon_collective *io,
                       int64_t round, const struct lemon_stream *stream, MPI_Request *requests)
{
    int64_t used = 0;
    int n = 0;
    for (int64_t i = 0; i < io->pattern.to_count; i++) {
        struct runs_part part = own_part(io, &io->pattern.to[i], round);
        if (part.n == 0)
            continue;
        if (used + part.n > io->staging_bytes) {
            MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
            used = n = 0;
        }
        stream->copy(stream->context, part.at, part.n, io->staging + used);
        MPI_Isend(io->staging + used, (int)part.n, MPI_BYTE, io->pattern.to[i].rank, TAG_RUNS,
                  in->comm, &requests[n++]);
        used += part.n;
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void copy_own_runs(const struct lemon_collective *io, int64_t from, int64_t to,
                          char *window, const struct lemon_stream *stream)
{
    for (int64_t i = lemon_runs_find(io->run, io->count, from);
         i < io->count && io->run[i].offset < to; i++) {
        int64_t begin = io->run[i].offset > from ? io->run[i].offset : from;
        int64_t end = io->run[i].offset + io->run[i].bytes;
        stream->copy(stream->context, io->run[i].before + (begin - io->run[i].offset),
                     (end < to ? end : to) - begin, window + (begin - from));
    }
}

/* Exchanges a round of a write: all ranks' bytes go into the aggregators' windows. */
static void collect_round(struct lemon_internal *in, struct lemon_collective *io, int64_t round,
                          char *window, const struct lemon_stream *stream)
{
    int64_t from, to, count;
    round_range(io, io->aggregator, round, &from, &to);
    int n = post_receives(in, io, from, to, window);
    send_parts(in, io, round, stream, io->requests + n);
    copy_own_runs(io, from, to, window, stream);
    MPI_Waitall(n, io->requests, MPI_STATUSES_IGNORE);
    for (int64_t i = 0; i < io->pattern.from_count; i++) {
        const struct lemon_run *run = get_peer_runs(io, i, &count);
        if (io->receive_offset[i] >= 0)
            copy_runs(run, count, from, to, window, io->received + io->receive_offset[i], true);
    }
}

/* ---- out of the windows ---- */

/* Sets [*from, *to) to the smallest range with all bytes of this aggregator's round that any
 * rank, this one included, requests. *from == *to if no byte is requested. */
static void find_requested_range(const struct lemon_collective *io, int64_t round,
                                 int64_t *from, int64_t *to)
{
    int64_t begin, end, first = INT64_MAX, last = 0;
    round_range(io, io->aggregator, round, &begin, &end);
    for (int64_t peer = -1; peer < io->pattern.from_count && begin < end; peer++) {
        int64_t count = io->count;
        const struct lemon_run *run = peer < 0 ? io->run : get_peer_runs(io, peer, &count);
        int64_t i = lemon_runs_find(run, count, begin);
        if (i == count || run[i].offset >= end)
            continue;
        if (run[i].offset < first)
            first = run[i].offset;
        i = lemon_runs_find(run, count, end - 1);
        int64_t run_end =
            i < count && run[i].offset < end ? end : run[i - 1].offset + run[i - 1].bytes;
        if (run_end > last)
            last = run_end;
    }
    *from = first > begin ? first : begin;
    *to = last < end ? last : end;
    if (*from >= *to)
        *from = *to = begin;
}

/* Sends the bytes in the window to the other ranks that request them. */
static void send_window(const struct lemon_internal *in, struct lemon_collective *io,
                        int64_t from, int64_t to, const char *window, MPI_Request *requests)
{
    int64_t used = 0, count;
    int n = 0;
    for (int64_t i = 0; i < io->pattern.from_count; i++) {
        const struct lemon_run *run = get_peer_runs(io, i, &count);
        struct runs_part part = find_part(run, count, from, to);
        const char *bytes = window + part.window_at;
        if (part.n == 0)
            continue;
        if (part.window_at < 0) {
            if (used + part.n > io->staging_bytes) {
                MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
                used = n = 0;
            }
            copy_runs(run, count, from, to, (char *)window, io->staging + used, false);
            bytes = io->staging + used;
            used += part.n;
        }
        MPI_Isend(bytes, (int)part.n, MPI_BYTE, io->pattern.from[i].rank, TAG_RUNS, in->comm,
                  &requests[n++]);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

/* Exchanges a round of a read: the aggregators' windows go into all ranks' data. */
static void distribute_round(struct lemon_internal *in, struct lemon_collective *io,
                             int64_t round, const char *window, char *data)
{
    int64_t from, to;
    int n = 0;
    round_range(io, io->aggregator, round, &from, &to);
    for (int64_t i = 0; i < io->pattern.to_count; i++) {
        struct runs_part part = own_part(io, &io->pattern.to[i], round);
        if (part.n)
            MPI_Irecv(data + part.at, (int)part.n, MPI_BYTE, io->pattern.to[i].rank, TAG_RUNS,
                      in->comm, &io->requests[n++]);
    }
    send_window(in, io, from, to, window, io->requests + n);
    struct runs_part own = find_part(io->run, io->count, from, to);
    if (own.n)
        copy_runs(io->run, io->count, from, to, (char *)window, data + own.at, false);
    MPI_Waitall(n, io->requests, MPI_STATUSES_IGNORE);
}

/* Sets [*from, *to) to a round's range. Returns the address in `windows` for the round's data,
 * at which pages of memory match pages of the file. */
static char *round_window(const struct lemon_collective *io, char *windows, int64_t round,
                          int64_t *from, int64_t *to)
{
    *from = *to = 0;
    if (io->aggregator < 0)
        return windows;
    lemon_runs_round(&io->plan, io->aggregator, round, from, to);
    return windows + (io->plan.domains.file_offset + *from) % LIMEFILE_DIRECT_ALIGN;
}

/* Writes n bytes of the stream in pieces that stay in the cache. `buffer` holds one piece. Goes
 * on copying from the stream after an error, because a write must request each byte once. */
static int write_stream(struct lemon_internal *in, const struct lemon_stream *stream,
                        int64_t at, int64_t n, int64_t offset, char *buffer)
{
    int code = LEMON_SUCCESS;
    for (int64_t done = 0, piece; done < n; done += piece) {
        piece = LEMON_COLLECTIVE_CHUNK - (offset + done) % LEMON_COLLECTIVE_CHUNK;
        if (piece > n - done)
            piece = n - done;
        stream->copy(stream->context, at + done, piece, buffer);
        if (code == LEMON_SUCCESS)
            code = lemon_move_bytes(in, LEMON_WRITE, buffer, piece, offset + done);
    }
    return code;
}

static int write_own_runs(struct lemon_internal *in, const struct lemon_collective *io,
                          const struct lemon_stream *stream)
{
    int code = LEMON_SUCCESS;
    for (int64_t i = 0; i < io->count; i++) {
        int result =
            write_stream(in, stream, io->run[i].before, io->run[i].bytes,
                         io->plan.domains.file_offset + io->run[i].offset, io->staging);
        code = code == LEMON_SUCCESS ? result : code;
    }
    return code;
}

static void write_round(struct lemon_internal *in, struct lemon_collective *io, int64_t round,
                        char *window, const struct lemon_stream *stream)
{
    int64_t from, to;
    window = round_window(io, window, round, &from, &to);
    collect_round(in, io, round, window, stream);
    if (lemon_post_wait(in) == LEMON_SUCCESS)
        lemon_post_range(in, window, to - from, io->plan.domains.file_offset + from);
}

/* While MPI, or the kernel's write-back, writes a round, the ranks exchange the next round.
 * After an error they still exchange all rounds, so that no rank waits forever. */
int lemon_collective_write(struct lemon_internal *in, struct lemon_collective *io,
                           const struct lemon_stream *stream)
{
    if (io->direct)
        return write_own_runs(in, io, stream);
    lemon_post_begin(in, LEMON_WRITE);
    in->pending.is_blocking = in->file.writeback_fd >= 0;
    for (int64_t round = 0; round < io->plan.rounds; round++)
        write_round(in, io, round, io->windows + round % 2 * window_bytes(io), stream);
    return lemon_post_wait(in);
}

/* While MPI reads a round, the ranks exchange the previous round. */
int lemon_collective_read(struct lemon_internal *in, struct lemon_collective *io, char *data)
{
    lemon_post_begin(in, LEMON_READ);
    for (int64_t round = 0; round <= io->plan.rounds; round++) {
        int64_t from, to, begin, end;
        char *window =
            round_window(io, io->windows + round % 2 * window_bytes(io), round, &from, &to);
        int code = lemon_post_wait(in);
        if (code == LEMON_SUCCESS && round < io->plan.rounds) {
            find_requested_range(io, round, &begin, &end);
            lemon_post_range(in, window + (begin - from), end - begin,
                             io->plan.domains.file_offset + begin);
        }
        if (round > 0)
            distribute_round(in, io, round - 1,
                             round_window(io, io->windows + (round - 1) % 2 * window_bytes(io),
                                          round - 1, &from, &to),
                             data);
    }
    return in->pending.code;
}

int lemon_collective_gather(struct lemon_internal *in, struct lemon_collective *io,
                            const struct lemon_stream *stream)
{
    struct lemon_pending *pending = &in->pending;
    int64_t from = 0, to = 0, rounds = io->aggregator < 0 ? 0 : io->plan.rounds;
    lemon_post_begin(in, LEMON_WRITE);
    pending->buffer =
        lemon_window_new(rounds * io->plan.round_bytes + 2 * LIMEFILE_DIRECT_ALIGN);
    int code = lemon_agree(
        in, pending->buffer ? LEMON_SUCCESS : lemon_log(in, LEMON_ERR_WRITE, "out of memory"));
    char *window = round_window(io, pending->buffer, 0, &from, &to);
    for (int64_t round = 0; code == LEMON_SUCCESS && round < io->plan.rounds; round++) {
        round_window(io, pending->buffer, round, &from, &to);
        collect_round(in, io, round, window, stream);
        window += to - from;
    }
    return code;
}

int lemon_collective_start_write(struct lemon_internal *in, const struct lemon_collective *io)
{
    int64_t from, to;
    if (io->aggregator < 0)
        return LEMON_SUCCESS;
    char *window = round_window(io, in->pending.buffer, 0, &from, &to);
    lemon_file_domains_range(&io->plan.domains, (int)io->aggregator, &from, &to);
    return lemon_post_range(in, window, to - from, io->plan.domains.file_offset + from);
}
