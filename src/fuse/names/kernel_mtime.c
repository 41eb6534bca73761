/* kernel_mtime.c - track which mtime of a plain file the kernel knows */
#include "kernel_mtime.h"
#include "credentials.h"

#include <sys/stat.h>
#include <time.h>

#define GRACE_SECONDS 0.25 /* enough for two tries of the kernel to look up and open a file */
#define NOW_SECONDS   1    /* an mtime that is at most this old counts as the current time */

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

static void store_times(struct limefs_known_times *known, const struct limefile_identity *stamp)
{
    known->mtime = stamp->mtime;
    known->ctime = stamp->ctime;
}

void limefs_kernel_mtime_init(struct limefs_node *node, const struct limefile_identity *stamp)
{
    store_times(&node->plain.known, stamp);
    node->plain.known.created = limefs_clock_seconds();
}

void limefs_kernel_mtime_change_begin(struct limefs *fs, struct limefs_node *node)
{
    limefs_lock(&fs->lock);
    node->plain.known.pending_changes++;
    limefs_unlock(&fs->lock);
}

void limefs_kernel_mtime_change_end(struct limefs *fs, struct limefs_node *node, int fd,
                                    int err)
{
    limefs_lock(&fs->lock);
    node->plain.known.pending_changes--;
    node->plain.known.changes += !err;
    limefs_unlock(&fs->lock);
    limefs_kernel_mtime_update(fs, node, fd);
}

void limefs_kernel_mtime_note_set(struct limefs *fs, struct limefs_node *node,
                                  const struct timespec *mtime)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    bool is_now = !is_before(&now, mtime) && now.tv_sec - mtime->tv_sec <= NOW_SECONDS;
    limefs_lock(&fs->lock);
    node->plain.known.kernel_mtime = is_now ? *mtime : (struct timespec){0};
    node->plain.known.has_new_data = false;
    limefs_unlock(&fs->lock);
}

void limefs_kernel_mtime_note_write(struct limefs_node *node)
{
    node->plain.known.changes++;
    node->plain.known.has_new_data = true;
}

/* If the daemon's writes have changed the file's mtime, sets it back to the one that the kernel
 * has sent last: after a second write within one clock tick, the kernel sends no new mtime.
 * node->io_lock keeps other threads from setting the mtime in the meantime. */
static void restore_mtime(struct limefs *fs, struct limefs_node *node, int fd)
{
    limefs_lock(&node->io_lock);
    limefs_lock(&fs->lock);
    const struct timespec times[2] = {{0, UTIME_OMIT}, node->plain.known.kernel_mtime};
    bool restore = node->plain.known.has_new_data && (times[1].tv_sec || times[1].tv_nsec);
    limefs_unlock(&fs->lock);
    if (restore) {
        limefs_daemon_creds_enter(); /* write permission is not enough to set times */
        futimens(fd, times);
        limefs_daemon_creds_leave();
    }
    limefs_unlock(&node->io_lock);
}

/* If `changes` grows during the call, leaves the times to the thread that changed the file. */
void limefs_kernel_mtime_update(struct limefs *fs, struct limefs_node *node, int fd)
{
    struct stat st;
    limefs_lock(&fs->lock);
    unsigned changes = node->plain.known.changes;
    bool is_noted = node->plain.known.noted_changes == changes;
    limefs_unlock(&fs->lock);
    if (is_noted)
        return;
    restore_mtime(fs, node, fd);
    if (fstat(fd, &st) != 0)
        return;
    struct limefile_identity stamp = limefile_identify(&st);
    limefs_lock(&fs->lock);
    if (node->plain.known.changes == changes) {
        store_times(&node->plain.known, &stamp);
        node->plain.known.noted_changes = changes;
    }
    limefs_unlock(&fs->lock);
}

bool limefs_kernel_mtime_is_outdated(struct limefs *fs, const struct limefs_node *node, int fd,
                                     const struct timespec *mtime)
{
    const struct limefs_known_times *known = &node->plain.known;
    struct stat st;
    if (fstat(fd, &st) != 0)
        return false;
    limefs_lock(&fs->lock);
    bool is_outdated = !known->pending_changes && known->noted_changes == known->changes &&
                       limefile_time_equal(mtime, &known->mtime) &&
                       !limefile_time_equal(&st.st_mtim, &known->mtime);
    limefs_unlock(&fs->lock);
    return is_outdated;
}

/* Also returns true if *stamp cannot show what other programs did: while this mount changes the
 * file, or if it was read before this mount's latest change. A new node counts as current for
 * GRACE_SECONDS. Otherwise a file that changes often could not be opened: if an open finds a
 * node that is not current, the kernel repeats its lookup only once. A FIFO is always current:
 * its data pass through the kernel alone. */
bool limefs_kernel_mtime_is_current(const struct limefs_node *node,
                                    const struct limefile_identity *stamp)
{
    const struct limefs_known_times *known = &node->plain.known;
    return !S_ISREG(stamp->mode) || known->noted_changes != known->changes ||
           known->pending_changes || limefile_time_equal(&stamp->mtime, &known->mtime) ||
           is_before(&stamp->ctime, &known->ctime) ||
           limefs_clock_seconds() - known->created < GRACE_SECONDS;
}
