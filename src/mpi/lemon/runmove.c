/*
 * runmove.c - read or write arbitrary ranges of a file through aggregators
 *
 * In each turn there is at most one message between two ranks: a range of the stream of the
 * rank that holds the data. If it is a single range of the window too, the message goes
 * directly into the window or out of it; otherwise it goes through the aggregator's staging
 * buffer. In a turn all ranks first post their receives, so no two ranks wait for each other.
 */
#include "runmove.h"

#include <string.h>

enum {
    TAG = 5,
    STAGING = 32 << 20, /* bytes of a rank's buffer for sends; one message may need more */
};

/* ---- pattern of the exchange ---- */

/* Returns the number of this rank's runs in an aggregator's range; stores them as pairs of
 * words in `words` unless it is NULL. */
static int64_t clip(const struct lemon_runmove *m, int64_t mover, int64_t *words)
{
    int64_t from, to, n = 0;
    lemon_share_range(&m->plan.share, (int)mover, &from, &to);
    for (int64_t i = lemon_runs_find(m->run, m->count, from);
         i < m->count && m->run[i].offset < to; i++, n++) {
        int64_t begin = m->run[i].offset, end = begin + m->run[i].bytes;
        if (words) {
            words[2 * n] = begin > from ? begin : from;
            words[2 * n + 1] = (end < to ? end : to) - words[2 * n];
        }
    }
    return n;
}

/* Returns the next aggregator of this rank's runs, or -1. */
static int64_t next_mover(const struct lemon_runmove *m, int64_t after)
{
    int64_t from, to, i;
    if (after < 0)
        i = 0;
    else {
        lemon_share_range(&m->plan.share, (int)after, &from, &to);
        i = lemon_runs_find(m->run, m->count, to);
    }
    if (i >= m->count)
        return -1;
    int64_t owner = lemon_runs_owner(&m->plan, m->run[i].offset);
    return owner > after ? owner : after + 1; /* the run began before `to` */
}

static int64_t *clip_all(struct lemon_runmove *m, bool *good)
{
    int64_t *words, at = 0;
    for (int64_t mover = next_mover(m, -1); mover >= 0; mover = next_mover(m, mover))
        if (mover != m->mover)
            *good = lemon_sparse_add(&m->pattern, (int)lemon_runs_rank(&m->plan, mover),
                                     clip(m, mover, NULL)) == 0 &&
                    *good;
    words = malloc((size_t)m->pattern.to_items * 2 * sizeof *words + 1);
    for (int64_t mover = next_mover(m, -1); words && *good && mover >= 0;
         mover = next_mover(m, mover))
        if (mover != m->mover)
            at += 2 * clip(m, mover, words + at);
    *good = *good && words;
    return words;
}

/* Stores the runs of other ranks, received as pairs of words. */
static void note_theirs(struct lemon_runmove *m, const int64_t *words)
{
    const struct lemon_sparse *p = &m->pattern;
    for (int64_t i = 0; i < p->from_items; i++)
        m->theirs[i] = (struct lemon_run){words[2 * i], words[2 * i + 1], 0};
    for (int64_t i = 0; i < p->from_count; i++)
        lemon_runs_count(m->theirs + p->from[i].first, p->from[i].items);
}

static int64_t window_bytes(const struct lemon_runmove *m)
{
    return m->mover < 0 ? 0 : m->plan.turn + 2 * LIMEFILE_DIRECT_ALIGN;
}

/* Returns the bytes of all windows that a move needs. */
static int64_t windows_bytes(const struct lemon_runmove *m)
{
    return m->use == LEMON_RUNMOVE_KEEP ? 0 : (m->plan.turns > 1 ? 2 : 1) * window_bytes(m);
}

static bool allocate(struct lemon_runmove *m, int64_t **words)
{
    const struct lemon_sparse *p = &m->pattern;
    free(m->staging); /* allocated if this rank's own runs are long */
    m->staging_bytes = m->plan.turn > STAGING ? m->plan.turn : STAGING;
    *words = malloc((size_t)p->from_items * 2 * sizeof **words + 1);
    m->theirs = malloc((size_t)p->from_items * sizeof *m->theirs + 1);
    m->place = malloc((size_t)p->from_count * sizeof *m->place + 1);
    m->requests = malloc((size_t)(p->from_count + p->to_count + 1) * sizeof *m->requests);
    m->staging = malloc((size_t)m->staging_bytes);
    m->arriving = malloc(p->from_count ? (size_t)m->plan.turn : 1);
    m->windows = lemon_window_new(windows_bytes(m) + 1);
    return *words && m->theirs && m->place && m->requests && m->staging && m->arriving &&
           m->windows;
}

/* Determines which ranks exchange data, and allocates memory for it. */
static int open_exchange(struct lemon_internal *in, struct lemon_runmove *m, bool good)
{
    int64_t *out = clip_all(m, &good), *into = NULL;
    good = lemon_sparse_begin(in, &m->pattern, good) && allocate(m, &into);
    int code =
        lemon_agree(in, good ? LEMON_SUCCESS : lemon_say(in, LEMON_ERR_PARAM, "out of memory"));
    if (code == LEMON_SUCCESS) {
        lemon_sparse_forth(in, &m->pattern, 2, out, into);
        note_theirs(m, into);
    }
    free(out);
    free(into);
    return code;
}

/* Determines whether all ranks write their own runs. LEMON_ERR_PARAM if out of memory. */
static int agree_on_way(struct lemon_internal *in, struct lemon_runmove *m, bool good)
{
    bool direct = lemon_runs_are_long(&m->plan, m->run, m->count, &in->hints);
    if (direct)
        m->staging = malloc(LEMON_RUNMOVE_PIECE);
    if (!good || (direct && !m->staging))
        return lemon_agree(in, lemon_say(in, LEMON_ERR_PARAM, "out of memory"));
    int least = lemon_agree(in, direct);
    m->direct = least > 0;
    return least < 0 ? least : LEMON_SUCCESS;
}

int lemon_runmove_open(struct lemon_internal *in, struct lemon_runmove *m, int64_t bytes,
                       int64_t base, struct lemon_run *run, int64_t count,
                       enum lemon_runmove_use use, bool good)
{
    *m = (struct lemon_runmove){.run = run, .count = count, .use = use};
    lemon_runs_plan_make(&m->plan, bytes, in->ranks, base, &in->hints);
    m->mover = lemon_runs_mover(&m->plan, in->rank);
    lemon_runs_count(run, count);
    int code = use == LEMON_RUNMOVE_WRITE ? agree_on_way(in, m, good) : LEMON_SUCCESS;
    if (code == LEMON_SUCCESS && !m->direct)
        code = open_exchange(in, m, good);
    if (code != LEMON_SUCCESS)
        lemon_runmove_close(m);
    return code;
}

void lemon_runmove_close(struct lemon_runmove *m)
{
    lemon_sparse_close(&m->pattern);
    free(m->theirs);
    free(m->place);
    free(m->requests);
    free(m->staging);
    free(m->arriving);
    free(m->windows);
    m->windows = NULL;
    m->arriving = NULL;
    m->theirs = NULL;
    m->place = NULL;
    m->requests = NULL;
    m->staging = NULL;
}

/* ---- a turn ---- */

/* The part of some runs in [from, to): the range of their stream, and, if it is also a single
 * range in [from, to), its offset there, otherwise -1. */
struct part {
    int64_t at, n, place;
};

static struct part part_of(const struct lemon_run *run, int64_t count, int64_t from, int64_t to)
{
    struct part part = {lemon_runs_before(run, count, from), 0, -1};
    part.n = lemon_runs_before(run, count, to) - part.at;
    if (part.n == 0)
        return part;
    const struct lemon_run *first = &run[lemon_runs_find(run, count, from)];
    int64_t begin = first->offset > from ? first->offset : from;
    if (first->offset + first->bytes - begin >= part.n)
        part.place = begin - from;
    return part;
}

/* Copies between a window of [from, to) and the bytes that runs have of it, contiguous. */
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

static void turn_of(const struct lemon_runmove *m, int64_t mover, int64_t turn, int64_t *from,
                    int64_t *to)
{
    *from = *to = 0;
    if (mover >= 0)
        lemon_runs_turn(&m->plan, mover, turn, from, to);
}

/* Returns this rank's part of the turn of an aggregator. */
static struct part own_part(const struct lemon_runmove *m, const struct lemon_peer *peer,
                            int64_t turn)
{
    int64_t from, to;
    turn_of(m, lemon_runs_mover(&m->plan, peer->rank), turn, &from, &to);
    return part_of(m->run, m->count, from, to);
}

static const struct lemon_run *their_runs(const struct lemon_runmove *m, int64_t source,
                                          int64_t *count)
{
    *count = m->pattern.from[source].items;
    return m->theirs + m->pattern.from[source].first;
}

/* ---- into the windows ---- */

static int receive(const struct lemon_internal *in, struct lemon_runmove *m, int64_t from,
                   int64_t to, char *window)
{
    int n = 0;
    int64_t used = 0, count;
    for (int64_t i = 0; i < m->pattern.from_count; i++) {
        const struct lemon_run *run = their_runs(m, i, &count);
        struct part part = part_of(run, count, from, to);
        m->place[i] = -1;
        if (part.n == 0)
            continue;
        if (part.place < 0) {
            m->place[i] = used;
            used += part.n;
        }
        MPI_Irecv(part.place < 0 ? m->arriving + m->place[i] : window + part.place, (int)part.n,
                  MPI_BYTE, m->pattern.from[i].rank, TAG, in->comm, &m->requests[n++]);
    }
    return n;
}

/* Sends as many messages at once as the buffer can hold. */
static void send_all(const struct lemon_internal *in, struct lemon_runmove *m, int64_t turn,
                     const struct lemon_stream *stream, MPI_Request *requests)
{
    int64_t used = 0;
    int n = 0;
    for (int64_t i = 0; i < m->pattern.to_count; i++) {
        struct part part = own_part(m, &m->pattern.to[i], turn);
        if (part.n == 0)
            continue;
        if (used + part.n > m->staging_bytes) {
            MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
            used = n = 0;
        }
        stream->copy(stream->context, part.at, part.n, m->staging + used);
        MPI_Isend(m->staging + used, (int)part.n, MPI_BYTE, m->pattern.to[i].rank, TAG,
                  in->comm, &requests[n++]);
        used += part.n;
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

/* Copies this aggregator's own runs from the stream into the window. */
static void fill_own(const struct lemon_runmove *m, int64_t from, int64_t to, char *window,
                     const struct lemon_stream *stream)
{
    for (int64_t i = lemon_runs_find(m->run, m->count, from);
         i < m->count && m->run[i].offset < to; i++) {
        int64_t begin = m->run[i].offset > from ? m->run[i].offset : from;
        int64_t end = m->run[i].offset + m->run[i].bytes;
        stream->copy(stream->context, m->run[i].before + (begin - m->run[i].offset),
                     (end < to ? end : to) - begin, window + (begin - from));
    }
}

/* Collects a turn of all aggregators in their windows. */
static void collect(struct lemon_internal *in, struct lemon_runmove *m, int64_t turn,
                    char *window, const struct lemon_stream *stream)
{
    int64_t from, to, count;
    turn_of(m, m->mover, turn, &from, &to);
    int n = receive(in, m, from, to, window);
    send_all(in, m, turn, stream, m->requests + n);
    fill_own(m, from, to, window, stream);
    MPI_Waitall(n, m->requests, MPI_STATUSES_IGNORE);
    for (int64_t i = 0; i < m->pattern.from_count; i++) {
        const struct lemon_run *run = their_runs(m, i, &count);
        if (m->place[i] >= 0)
            copy_runs(run, count, from, to, window, m->arriving + m->place[i], true);
    }
}

/* ---- out of the windows ---- */

/* Computes the range of this aggregator's turn that any rank reads; *from == *to if empty. */
static void wanted_range(const struct lemon_runmove *m, int64_t turn, int64_t *from,
                         int64_t *to)
{
    int64_t begin, end, first = INT64_MAX, last = 0;
    turn_of(m, m->mover, turn, &begin, &end);
    for (int64_t s = -1; s < m->pattern.from_count && begin < end; s++) {
        int64_t count = m->count;
        const struct lemon_run *run = s < 0 ? m->run : their_runs(m, s, &count);
        int64_t i = lemon_runs_find(run, count, begin);
        if (i == count || run[i].offset >= end)
            continue;
        if (run[i].offset < first)
            first = run[i].offset;
        i = lemon_runs_find(run, count, end - 1);
        int64_t ends =
            i < count && run[i].offset < end ? end : run[i - 1].offset + run[i - 1].bytes;
        if (ends > last)
            last = ends;
    }
    *from = first > begin ? first : begin;
    *to = last < end ? last : end;
    if (*from >= *to)
        *from = *to = begin;
}

static void send_out(const struct lemon_internal *in, struct lemon_runmove *m, int64_t from,
                     int64_t to, const char *window, MPI_Request *requests)
{
    int64_t used = 0, count;
    int n = 0;
    for (int64_t i = 0; i < m->pattern.from_count; i++) {
        const struct lemon_run *run = their_runs(m, i, &count);
        struct part part = part_of(run, count, from, to);
        const char *bytes = window + part.place;
        if (part.n == 0)
            continue;
        if (part.place < 0) {
            if (used + part.n > m->staging_bytes) {
                MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
                used = n = 0;
            }
            copy_runs(run, count, from, to, (char *)window, m->staging + used, false);
            bytes = m->staging + used;
            used += part.n;
        }
        MPI_Isend(bytes, (int)part.n, MPI_BYTE, m->pattern.from[i].rank, TAG, in->comm,
                  &requests[n++]);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void hand_out(struct lemon_internal *in, struct lemon_runmove *m, int64_t turn,
                     const char *window, char *data)
{
    int64_t from, to;
    int n = 0;
    turn_of(m, m->mover, turn, &from, &to);
    for (int64_t i = 0; i < m->pattern.to_count; i++) {
        struct part part = own_part(m, &m->pattern.to[i], turn);
        if (part.n)
            MPI_Irecv(data + part.at, (int)part.n, MPI_BYTE, m->pattern.to[i].rank, TAG,
                      in->comm, &m->requests[n++]);
    }
    send_out(in, m, from, to, window, m->requests + n);
    struct part own = part_of(m->run, m->count, from, to);
    if (own.n)
        copy_runs(m->run, m->count, from, to, (char *)window, data + own.at, false);
    MPI_Waitall(n, m->requests, MPI_STATUSES_IGNORE);
}

/* ---- I/O of the windows ---- */

/* Returns the start of a turn's window, so that pages of memory match pages of the file. */
static char *window_at(const struct lemon_runmove *m, char *windows, int64_t turn,
                       int64_t *from, int64_t *to)
{
    *from = *to = 0;
    if (m->mover < 0)
        return windows;
    lemon_runs_turn(&m->plan, m->mover, turn, from, to);
    return windows + (m->plan.share.base + *from) % LIMEFILE_DIRECT_ALIGN;
}

/* Writes n bytes of the stream in pieces that stay in the cache. buffer: for one piece. After
 * an error it still reads the stream, because each byte must be requested once. */
static int write_stream(struct lemon_internal *in, const struct lemon_stream *stream,
                        int64_t at, int64_t n, int64_t offset, char *buffer)
{
    int code = LEMON_SUCCESS;
    for (int64_t done = 0, piece; done < n; done += piece) {
        piece = LEMON_RUNMOVE_PIECE - (offset + done) % LEMON_RUNMOVE_PIECE;
        if (piece > n - done)
            piece = n - done;
        stream->copy(stream->context, at + done, piece, buffer);
        if (code == LEMON_SUCCESS)
            code = lemon_move_bytes(in, LEMON_WRITE, buffer, piece, offset + done);
    }
    return code;
}

/* Writes this rank's own runs. */
static int write_own(struct lemon_internal *in, const struct lemon_runmove *m,
                     const struct lemon_stream *stream)
{
    int code = LEMON_SUCCESS;
    for (int64_t i = 0; i < m->count; i++) {
        int met = write_stream(in, stream, m->run[i].before, m->run[i].bytes,
                               m->plan.share.base + m->run[i].offset, m->staging);
        code = code == LEMON_SUCCESS ? met : code;
    }
    return code;
}

static void write_turn(struct lemon_internal *in, struct lemon_runmove *m, int64_t turn,
                       char *window, const struct lemon_stream *stream)
{
    int64_t from, to;
    window = window_at(m, window, turn, &from, &to);
    collect(in, m, turn, window, stream);
    if (lemon_post_wait(in) == LEMON_SUCCESS)
        lemon_post(in, window, to - from, m->plan.share.base + from);
}

/* While one turn is written, by MPI or by write-back, the next one is collected. After an error
 * the ranks still exchange, so that no rank waits forever. */
int lemon_runmove_write(struct lemon_internal *in, struct lemon_runmove *m,
                        const struct lemon_stream *stream)
{
    if (m->direct)
        return write_own(in, m, stream);
    lemon_post_begin(in, LEMON_WRITE);
    in->pending.waits = in->file.start_fd >= 0;
    for (int64_t turn = 0; turn < m->plan.turns; turn++)
        write_turn(in, m, turn, m->windows + turn % 2 * window_bytes(m), stream);
    return lemon_post_wait(in);
}

/* While one turn is distributed, the next one is read. */
int lemon_runmove_read(struct lemon_internal *in, struct lemon_runmove *m, char *data)
{
    lemon_post_begin(in, LEMON_READ);
    for (int64_t turn = 0; turn <= m->plan.turns; turn++) {
        int64_t from, to, begin, end;
        char *window = window_at(m, m->windows + turn % 2 * window_bytes(m), turn, &from, &to);
        int code = lemon_post_wait(in);
        if (code == LEMON_SUCCESS && turn < m->plan.turns) {
            wanted_range(m, turn, &begin, &end);
            lemon_post(in, window + (begin - from), end - begin, m->plan.share.base + begin);
        }
        if (turn > 0)
            hand_out(in, m, turn - 1,
                     window_at(m, m->windows + (turn - 1) % 2 * window_bytes(m), turn - 1,
                               &from, &to),
                     data);
    }
    return in->pending.code;
}

/* ---- turns kept in memory ---- */

int lemon_runmove_keep(struct lemon_internal *in, struct lemon_runmove *m,
                       const struct lemon_stream *stream)
{
    struct lemon_pending *pending = &in->pending;
    int64_t from = 0, to = 0, turns = m->mover < 0 ? 0 : m->plan.turns;
    lemon_post_begin(in, LEMON_WRITE);
    pending->buffer = lemon_window_new(turns * m->plan.turn + 2 * LIMEFILE_DIRECT_ALIGN);
    int code = lemon_agree(in, pending->buffer ? LEMON_SUCCESS
                                               : lemon_say(in, LEMON_ERR_WRITE, "no memory"));
    char *window = window_at(m, pending->buffer, 0, &from, &to);
    for (int64_t turn = 0; code == LEMON_SUCCESS && turn < m->plan.turns; turn++) {
        window_at(m, pending->buffer, turn, &from, &to);
        collect(in, m, turn, window, stream);
        window += to - from;
    }
    return code;
}

int lemon_runmove_start(struct lemon_internal *in, const struct lemon_runmove *m)
{
    int64_t from, to;
    if (m->mover < 0)
        return LEMON_SUCCESS;
    char *window = window_at(m, in->pending.buffer, 0, &from, &to);
    lemon_share_range(&m->plan.share, (int)m->mover, &from, &to);
    return lemon_post(in, window, to - from, m->plan.share.base + from);
}
