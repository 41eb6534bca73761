/* runfile.c - between the windows of movers and the file */
#include "runmove.h"

static int64_t window_bytes(const struct lemon_runmove *m)
{
    return m->mover < 0 ? 0 : m->plan.turn + 2 * LIMEFILE_DIRECT_ALIGN;
}

/* Where a turn's window begins: pages of memory are pages of the file. */
static char *window_at(const struct lemon_runmove *m, char *windows, int64_t turn,
                       int64_t *from, int64_t *to)
{
    *from = *to = 0;
    if (m->mover < 0)
        return windows;
    lemon_runs_turn(&m->plan, m->mover, turn, from, to);
    return windows + (m->plan.share.base + *from) % LIMEFILE_DIRECT_ALIGN;
}

int64_t lemon_runmove_windows(const struct lemon_runmove *m)
{
    return m->use == LEMON_RUNMOVE_KEEP ? 0 : (m->plan.turns > 1 ? 2 : 1) * window_bytes(m);
}

/* n bytes of the stream, looked at on the way: in pieces that stay in the cache in between.
 * buffer: for a piece, where none is lent. After an error the stream is still asked for: it is
 * once for each byte. */
static int write_stream(struct lemon_internal *in, const struct lemon_stream *stream,
                        int64_t at, int64_t n, int64_t offset, char *buffer)
{
    int code = LEMON_SUCCESS;
    for (int64_t done = 0, piece; done < n; done += piece) {
        piece = LEMON_RUNMOVE_PIECE - (offset + done) % LEMON_RUNMOVE_PIECE;
        if (piece > n - done)
            piece = n - done;
        const char *bytes = buffer;
        if (stream->lend)
            bytes = stream->lend(stream->context, at + done, piece);
        else
            stream->copy(stream->context, at + done, piece, buffer);
        if (code == LEMON_SUCCESS)
            code = lemon_move_bytes(in, LEMON_WRITE, (char *)bytes, piece, offset + done);
    }
    return code;
}

/* Each rank its own runs. */
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
    int64_t from, to, at;
    bool lent = lemon_runmove_lent(m, turn, stream, &at);
    window = window_at(m, window, turn, &from, &to);
    lemon_runmove_collect(in, m, turn, lent ? NULL : window, stream);
    if (lemon_post_wait(in) != LEMON_SUCCESS)
        return;
    if (lent)
        in->pending.code =
            write_stream(in, stream, at, to - from, m->plan.share.base + from, NULL);
    else
        lemon_post(in, window, to - from, m->plan.share.base + from);
}

/* While one turn is written, by MPI or by the disk, the next one is collected. After an error
 * the ranks go on exchanging: nobody is left waiting. */
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

/* While one turn is handed out, the next one is read. */
int lemon_runmove_read(struct lemon_internal *in, struct lemon_runmove *m, char *data)
{
    lemon_post_begin(in, LEMON_READ);
    for (int64_t turn = 0; turn <= m->plan.turns; turn++) {
        int64_t from, to, begin, end;
        char *window = window_at(m, m->windows + turn % 2 * window_bytes(m), turn, &from, &to);
        int code = lemon_post_wait(in);
        if (code == LEMON_SUCCESS && turn < m->plan.turns) {
            lemon_runmove_wanted(in, m, turn, &begin, &end);
            lemon_post(in, window + (begin - from), end - begin, m->plan.share.base + begin);
        }
        if (turn > 0)
            lemon_runmove_hand_out(in, m, turn - 1,
                                   window_at(m, m->windows + (turn - 1) % 2 * window_bytes(m),
                                             turn - 1, &from, &to),
                                   data);
    }
    return in->pending.code;
}

/* ---- kept in memory ---- */

/* Where this rank's stream begins: pages of memory are pages of the file. */
static char *own_at(const struct lemon_runmove *m, char *buffer)
{
    int64_t at = m->count ? m->plan.share.base + m->run[0].offset : 0;
    return buffer + at % LIMEFILE_DIRECT_ALIGN;
}

static int keep_own(struct lemon_internal *in, const struct lemon_runmove *m,
                    const struct lemon_stream *stream)
{
    const struct lemon_run *last = m->count ? &m->run[m->count - 1] : NULL;
    int64_t bytes = last ? last->before + last->bytes : 0;
    in->pending.buffer = lemon_window_new(bytes + LIMEFILE_DIRECT_ALIGN);
    if (!in->pending.buffer)
        return lemon_say(in, LEMON_ERR_WRITE, "no memory");
    stream->copy(stream->context, 0, bytes, own_at(m, in->pending.buffer));
    return LEMON_SUCCESS;
}

static int keep_turns(struct lemon_internal *in, struct lemon_runmove *m,
                      const struct lemon_stream *stream)
{
    struct lemon_pending *pending = &in->pending;
    int64_t from = 0, to = 0, turns = m->mover < 0 ? 0 : m->plan.turns;
    pending->buffer = lemon_window_new(turns * m->plan.turn + 2 * LIMEFILE_DIRECT_ALIGN);
    int code = lemon_agree(in, pending->buffer ? LEMON_SUCCESS
                                               : lemon_say(in, LEMON_ERR_WRITE, "no memory"));
    char *window = window_at(m, pending->buffer, 0, &from, &to);
    for (int64_t turn = 0; code == LEMON_SUCCESS && turn < m->plan.turns; turn++) {
        window_at(m, pending->buffer, turn, &from, &to);
        lemon_runmove_collect(in, m, turn, window, stream);
        window += to - from;
    }
    return code;
}

int lemon_runmove_keep(struct lemon_internal *in, struct lemon_runmove *m,
                       const struct lemon_stream *stream)
{
    lemon_post_begin(in, LEMON_WRITE);
    return in->pending.code = m->direct ? keep_own(in, m, stream) : keep_turns(in, m, stream);
}

static int start_own(struct lemon_internal *in, const struct lemon_runmove *m)
{
    int code = LEMON_SUCCESS;
    char *data = own_at(m, in->pending.buffer);
    for (int64_t i = 0; i < m->count && code == LEMON_SUCCESS; i++)
        code = lemon_post(in, data + m->run[i].before, m->run[i].bytes,
                          m->plan.share.base + m->run[i].offset);
    return code;
}

int lemon_runmove_start(struct lemon_internal *in, const struct lemon_runmove *m)
{
    int64_t from, to;
    if (m->direct)
        return start_own(in, m);
    if (m->mover < 0)
        return LEMON_SUCCESS;
    char *window = window_at(m, in->pending.buffer, 0, &from, &to);
    lemon_share_range(&m->plan.share, (int)m->mover, &from, &to);
    return lemon_post(in, window, to - from, m->plan.share.base + from);
}
