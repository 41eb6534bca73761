/* runfile.c - between the windows of movers and the file */
#include "runmove.h"

enum {
    LENT_PIECE = 512 << 10,
};

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
    return m->kept ? 0 : (m->plan.turns > 1 ? 2 : 1) * window_bytes(m);
}

/* n bytes that stand in memory already, and are looked at on the way: in pieces that stay in
 * the cache in between. */
static int write_lent(struct lemon_internal *in, const struct lemon_stream *stream, int64_t at,
                      int64_t n, int64_t offset)
{
    int code = LEMON_SUCCESS;
    for (int64_t done = 0; done < n; done += LENT_PIECE) {
        int64_t piece = n - done < LENT_PIECE ? n - done : LENT_PIECE;
        const char *bytes = stream->lend(stream->context, at + done, piece);
        if (code == LEMON_SUCCESS)
            code = lemon_move_bytes(in, LEMON_WRITE, (char *)bytes, piece, offset + done);
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
        in->pending.code = write_lent(in, stream, at, to - from, m->plan.share.base + from);
    else
        lemon_post(in, window, to - from, m->plan.share.base + from);
}

/* While one turn is written, the next one is collected. After an error the ranks go on
 * exchanging: nobody is left waiting. */
int lemon_runmove_write(struct lemon_internal *in, struct lemon_runmove *m,
                        const struct lemon_stream *stream)
{
    lemon_post_begin(in, LEMON_WRITE);
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
        lemon_runmove_collect(in, m, turn, window, stream);
        window += to - from;
    }
    return pending->code = code;
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
