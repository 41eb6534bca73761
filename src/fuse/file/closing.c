/*
 * closing.c - whoever watches a container sees when a descriptor of its record is closed.
 *
 * A program that reads a large record round the mount (limefs-run) asks for it, so that it need
 * not ask before each read whether the descriptor still is the record's. The kernel tells the
 * daemon of each close(2), dup2(2) and the like before it is over, whoever else has the file
 * open (FLUSH); the daemon then opens the container once, which whoever watches is told of in
 * that moment. If it cannot, it closes a descriptor that it has kept for this: of that they are
 * told, too. So they are when the daemon ends: by an orderly end before requests fail; of one
 * that is killed the kernel closes what has high numbers first, and the connection later.
 */
#define _GNU_SOURCE
#include "caller.h"
#include "descriptor.h"
#include "file.h"
#include "limerange.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* Bytes of a record: to read them takes a hundred times as long as the request. */
#define LARGE ((uint64_t)16 << 20)

enum {
    HIGH = 4096, /* a descriptor, or half of the limit where that is less */
};

bool limefs_file_tells_closing(const struct limefs_file *file)
{
    return file->view && !file->target && file->record.bytes >= LARGE;
}

/* With the daemon's own rights; not within a lock. */
static int open_container(const struct limefs_file *file)
{
    limefs_own_begin();
    int fd = limefile_reopen(file->view->fd, O_RDONLY | O_NONBLOCK);
    limefs_own_end();
    return fd;
}

/* If not, who has closed it has told so by now. */
static bool keeps_one(struct limefs_view *view)
{
    limefs_lock(&view->closing);
    bool kept = view->kept >= 0;
    limefs_unlock(&view->closing);
    return kept;
}

/* Within the lock. */
static void end_kept(struct limefs_view *view)
{
    if (view->kept >= 0)
        close(view->kept);
    view->kept = -1;
}

/* The first keeps this one, for all of them; -1 where one is kept. False: it is not, by now, or
 * no more may ask: of that this is sure, or limefs_files_end_closing() sees what is kept. */
static bool keep(struct limefs *fs, struct limefs_file *file, int fd)
{
    struct limefs_view *view = file->view;
    limefs_lock(&view->closing);
    bool first = view->kept < 0;
    if (first)
        view->kept = fd;
    if (fs->ends)
        end_kept(view);
    bool kept = view->kept >= 0;
    if (kept && !atomic_exchange(&file->tells, true))
        view->keepers++;
    limefs_unlock(&view->closing);
    if (!first && fd >= 0)
        close(fd);
    return kept;
}

/* Above those of the connection, of which each thread has one; closes fd, unless it is -errno.
 */
static int move_high(int fd)
{
    struct rlimit limit;
    int from = HIGH;
    if (fd < 0)
        return fd;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < HIGH)
        from = (int)(limit.rlim_cur / 2);
    int high = fcntl(fd, F_DUPFD_CLOEXEC, from), err = -errno;
    close(fd);
    return high < 0 ? err : high;
}

void limefs_files_begin_closing(void)
{
    int fd = move_high(open("/", O_PATH | O_CLOEXEC));
    if (fd >= 0)
        close(fd);
}

int limefs_file_ask_closing(struct limefs *fs, struct limefs_file *file,
                            const struct limefile_closing *container)
{
    struct stat st;
    if (!limefs_file_tells_closing(file))
        return -ENOTTY;
    if (fstat(file->view->fd, &st) != 0)
        return -errno;
    if (st.st_dev != container->dev || st.st_ino != container->ino)
        return -ESTALE;
    if (atomic_load(&file->tells) && keeps_one(file->view))
        return LIMEFILE_CLOSING_ASKED;
    if (keeps_one(file->view) && keep(fs, file, -1))
        return 0;
    int fd = move_high(open_container(file));
    if (fd < 0)
        return fd;
    return keep(fs, file, fd) ? 0 : -ESHUTDOWN;
}

void limefs_file_ask_no_more(struct limefs_file *file)
{
    struct limefs_view *view = file->view;
    limefs_lock(&view->closing);
    if (--view->keepers == 0)
        end_kept(view);
    limefs_unlock(&view->closing);
}

static void end_for_all(struct limefs_view *view)
{
    limefs_lock(&view->closing);
    end_kept(view);
    limefs_unlock(&view->closing);
}

void limefs_file_tell_closing(struct limefs_file *file)
{
    if (!atomic_load(&file->tells) || !keeps_one(file->view))
        return;
    int fd = open_container(file);
    if (fd >= 0)
        close(fd);
    else
        end_for_all(file->view);
}

/* Pinned; NULL: there is none. */
static struct limefs_view *find_kept(struct limefs *fs)
{
    struct limefs_view *found = NULL;
    limefs_lock(&fs->lock);
    for (struct limefs_handle *handle = fs->files; handle && !found; handle = handle->next) {
        struct limefs_view *view = ((struct limefs_file *)handle)->view;
        if (view && view->kept >= 0)
            found = view;
    }
    if (found)
        found->pins++;
    limefs_unlock(&fs->lock);
    return found;
}

void limefs_files_end_closing(struct limefs *fs)
{
    struct limefs_view *view;
    fs->ends = true;
    while ((view = find_kept(fs))) {
        end_for_all(view);
        limefs_view_unpin(fs, view);
    }
}
