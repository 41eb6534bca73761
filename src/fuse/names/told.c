/* told.c - the last change of a plain file that the kernel knows of */
#include "told.h"
#include "caller.h"

#include <sys/stat.h>
#include <time.h>

#define SECONDS_AT_FIRST 0.25 /* for a look-up and an open, twice */
#define SECONDS_TO_TELL  1    /* a time is the kernel's now, for us */

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

static void know(struct limefs_known *known, const struct limefile_identity *stamp)
{
    known->mtime = stamp->mtime;
    known->ctime = stamp->ctime;
}

void limefs_told_first(struct limefs_node *node, const struct limefile_identity *stamp)
{
    know(&node->known, stamp);
    node->known.since = limefs_seconds();
}

void limefs_told_begin(struct limefs *fs, struct limefs_node *node)
{
    limefs_lock(&fs->lock);
    node->known.changing++;
    limefs_unlock(&fs->lock);
}

void limefs_told_end(struct limefs *fs, struct limefs_node *node, int fd, int err)
{
    limefs_lock(&fs->lock);
    node->known.changing--;
    node->known.changes += !err;
    limefs_unlock(&fs->lock);
    limefs_told_note(fs, node, fd);
}

void limefs_told_time(struct limefs *fs, struct limefs_node *node, const struct timespec *mtime)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    bool is_now = !is_before(&now, mtime) && now.tv_sec - mtime->tv_sec <= SECONDS_TO_TELL;
    limefs_lock(&fs->lock);
    node->known.kernels = is_now ? *mtime : (struct timespec){0};
    node->known.written = false;
    limefs_unlock(&fs->lock);
}

void limefs_told_written(struct limefs_node *node)
{
    node->known.changes++;
    node->known.written = true;
}

/* Who writes twice in one tick of the kernel's clock has changed no time there, so the kernel
 * tells none after the second, and the file below is to have what it has: the last that it
 * told, so nobody sets another one meanwhile. */
static void keep_time(struct limefs *fs, struct limefs_node *node, int fd)
{
    limefs_lock(&node->work);
    limefs_lock(&fs->lock);
    const struct timespec times[2] = {{0, UTIME_OMIT}, node->known.kernels};
    bool behind = node->known.written && (times[1].tv_sec != 0 || times[1].tv_nsec != 0);
    limefs_unlock(&fs->lock);
    if (behind) {
        limefs_own_begin(); /* who may write to it may not set its time */
        futimens(fd, times);
        limefs_own_end();
    }
    limefs_unlock(&node->work);
}

/* Where more was changed meanwhile, whoever did that notes it. */
void limefs_told_note(struct limefs *fs, struct limefs_node *node, int fd)
{
    struct stat st;
    limefs_lock(&fs->lock);
    unsigned changes = node->known.changes;
    bool noted = node->known.noted == changes;
    limefs_unlock(&fs->lock);
    if (noted)
        return;
    keep_time(fs, node, fd);
    if (fstat(fd, &st) != 0)
        return;
    struct limefile_identity stamp = limefile_identity_of(&st);
    limefs_lock(&fs->lock);
    if (node->known.changes == changes) {
        know(&node->known, &stamp);
        node->known.noted = changes;
    }
    limefs_unlock(&fs->lock);
}

bool limefs_told_before(struct limefs *fs, const struct limefs_node *node, int fd,
                        const struct timespec *mtime)
{
    const struct limefs_known *known = &node->known;
    struct stat st;
    if (fstat(fd, &st) != 0)
        return false;
    limefs_lock(&fs->lock);
    bool before = !known->changing && known->noted == known->changes &&
                  limefile_time_equal(mtime, &known->mtime) &&
                  !limefile_time_equal(&st.st_mtim, &known->mtime);
    limefs_unlock(&fs->lock);
    return before;
}

/* Not if we were changing it, or it was looked at before we did. Nor at first: the kernel looks
 * a name up and then opens it, twice if need be, and each time others may have changed the
 * file. The ends of a fifo are the kernel's, whatever goes through the one below. */
bool limefs_told_stands(const struct limefs_node *node, const struct limefile_identity *stamp)
{
    const struct limefs_known *known = &node->known;
    return !S_ISREG(stamp->mode) || known->changing || known->noted != known->changes ||
           limefile_time_equal(&stamp->mtime, &known->mtime) ||
           is_before(&stamp->ctime, &known->ctime) ||
           limefs_seconds() - known->since < SECONDS_AT_FIRST;
}
