/*
 * closing.c - whoever watches a container sees when a descriptor of its record is closed.
 *
 * A program that reads a large record round the mount (limefs-run) asks for it, so that it need
 * not ask before each read whether the descriptor still is the record's. The kernel tells the
 * daemon of each close(2), dup2(2) and the like before it is over, whoever else has the file
 * open (FLUSH); the daemon then opens the container once, which whoever watches is told of in
 * that moment. If it cannot, it closes a descriptor that it has kept for this: of that they are
 * told, too, as they are when the daemon ends.
 */
#define _GNU_SOURCE
#include "caller.h"
#include "descriptor.h"
#include "file.h"
#include "limerange.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Bytes of a record: to read them takes a hundred times as long as the request. */
#define LARGE ((uint64_t)16 << 20)

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

/* False if there is one. */
static bool keep(struct limefs_file *file, int fd)
{
    limefs_lock(&file->lock);
    bool none = file->kept < 0;
    if (none)
        file->kept = fd;
    limefs_unlock(&file->lock);
    return none;
}

static bool keeps_one(struct limefs_file *file)
{
    limefs_lock(&file->lock);
    bool kept = file->kept >= 0;
    limefs_unlock(&file->lock);
    return kept;
}

/* Within the lock: who finds none then knows that it has been told. */
static void end_kept(struct limefs_file *file)
{
    limefs_lock(&file->lock);
    if (file->kept >= 0)
        close(file->kept);
    file->kept = -1;
    limefs_unlock(&file->lock);
}

int limefs_file_ask_closing(struct limefs_file *file, const struct limefile_closing *container)
{
    struct stat st;
    if (!limefs_file_tells_closing(file))
        return -ENOTTY;
    if (fstat(file->view->fd, &st) != 0)
        return -errno;
    if (st.st_dev != container->dev || st.st_ino != container->ino)
        return -ESTALE;
    if (keeps_one(file))
        return LIMEFILE_CLOSING_ASKED;
    int fd = open_container(file);
    if (fd < 0)
        return fd;
    if (!keep(file, fd))
        close(fd);
    return 0;
}

void limefs_file_tell_closing(struct limefs_file *file)
{
    if (!keeps_one(file))
        return;
    int fd = open_container(file);
    if (fd >= 0)
        close(fd);
    else
        end_kept(file);
}
