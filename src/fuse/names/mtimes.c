/*
 * mtimes.c - when records were changed, as the kernel was told
 *
 * A kernel that caches what is written keeps a record's mtime from its first look-up on, and
 * tells it back whenever its own ctime of the record changes: when an attribute is set, or it
 * is removed. By then the container may have been changed by way of another record, and is not
 * to look as if it had not.
 */
#include "view.h"

#include <stdlib.h>

enum {
    ROOM_FIRST = 8,
    ROOM_MOST = 1 << 16, /* a power of two; then the oldest but the first one goes */
};

static int64_t in_ns(const struct timespec *time)
{
    return (int64_t)((uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec);
}

static bool has(const struct limefs_mtimes *mtimes, int64_t ns, size_t most)
{
    size_t count = mtimes->count < ROOM_MOST ? mtimes->count : ROOM_MOST;
    for (size_t i = count; i > 0 && count - i < most; i--)
        if (mtimes->ns[i - 1] == ns)
            return true;
    return false;
}

/* Whether there is room for one more. */
static bool grow(struct limefs_mtimes *mtimes)
{
    size_t count = mtimes->count;
    if (count >= ROOM_MOST || (count & (count - 1)) != 0 || (count > 0 && count < ROOM_FIRST))
        return true;
    size_t room = count ? 2 * count : ROOM_FIRST;
    int64_t *more = realloc(mtimes->ns, room * sizeof *more);
    if (more)
        mtimes->ns = more;
    return more;
}

void limefs_view_tells_mtime(struct limefs *fs, struct limefs_view *view,
                             const struct timespec *time)
{
    struct limefs_mtimes *mtimes = &view->mtimes;
    int64_t ns = in_ns(time);
    if (!fs->options.rw)
        return;
    limefs_lock(&fs->lock);
    if (!has(mtimes, ns, 2) && grow(mtimes)) {
        size_t at =
            mtimes->count < ROOM_MOST ? mtimes->count : 1 + mtimes->count % (ROOM_MOST - 1);
        mtimes->ns[at] = ns;
        mtimes->count++;
    }
    limefs_unlock(&fs->lock);
}

bool limefs_view_told_mtime(struct limefs *fs, const struct limefs_view *view,
                            const struct timespec *time)
{
    limefs_lock(&fs->lock);
    bool told = has(&view->mtimes, in_ns(time), ROOM_MOST);
    limefs_unlock(&fs->lock);
    return told;
}
