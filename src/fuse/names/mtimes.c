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
    ROOM_MOST = 1 << 16, /* a power of two; then the oldest goes */
};

/* Among the newest ones. */
static bool has(const struct limefs_mtimes *mtimes, const struct timespec *time, size_t newest)
{
    for (size_t i = 0; i < newest && i < mtimes->count && i < ROOM_MOST; i++)
        if (limefile_time_equal(&mtimes->times[(mtimes->count - 1 - i) % ROOM_MOST], time))
            return true;
    return false;
}

/* False: there is no memory for one more. There is room for a power of two. */
static bool make_room(struct limefs_mtimes *mtimes)
{
    size_t count = mtimes->count;
    bool full = count == 0 || (count >= ROOM_FIRST && (count & (count - 1)) == 0);
    if (!full || count >= ROOM_MOST)
        return true;
    struct timespec *more =
        realloc(mtimes->times, (count ? 2 * count : ROOM_FIRST) * sizeof *more);
    if (more)
        mtimes->times = more;
    return more;
}

/* All records of a view have the same one, mostly, or one of two: as it was last looked at, and
 * as it is. */
void limefs_view_tells_mtime(struct limefs *fs, struct limefs_view *view,
                             const struct timespec *time)
{
    struct limefs_mtimes *mtimes = &view->mtimes;
    if (!fs->options.rw)
        return;
    limefs_lock(&fs->lock);
    if (!has(mtimes, time, 2) && make_room(mtimes))
        mtimes->times[mtimes->count++ % ROOM_MOST] = *time;
    limefs_unlock(&fs->lock);
}

bool limefs_view_told_mtime(struct limefs *fs, const struct limefs_view *view,
                            const struct timespec *time)
{
    limefs_lock(&fs->lock);
    bool told = has(&view->mtimes, time, ROOM_MOST);
    limefs_unlock(&fs->lock);
    return told;
}
