/* file.c - files opened and closed */
#include "file.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* The view must be the newest: if not, -ESTALE makes the kernel look the name up again. */
static int open_record(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                       struct limefs_file *file)
{
    struct limefs_view *current;
    int err = limefs_view_current(fs, view->node, &current);
    if (err)
        return err == -ENOENT ? -ESTALE : err;
    if (current != view)
        err = -ESTALE;
    if (!err)
        err = limefile_index_get(view->index, ordinal, &file->record);
    if (err) {
        limefs_view_unpin(fs, current);
        return err;
    }
    file->view = view;
    file->checked = view->stamp;
    return 0;
}

static int open_other(struct limefs *fs, struct limefs_node *node, struct limefs_file *file,
                      bool *keep)
{
    struct stat st;
    file->fd = limefs_tree_open(fs, node, NULL, O_RDONLY);
    if (file->fd < 0)
        return file->fd;
    int err = fstat(file->fd, &st) == 0 ? 0 : -errno;
    if (!err && !limefs_node_stands(fs, node, &st))
        err = -ESTALE; /* two files must not share the pages of one node */
    if (err) {
        close(file->fd);
        return err;
    }
    struct limefs_stamp stamp = limefs_stamp_of(&st);
    pthread_mutex_lock(&fs->lock);
    *keep = limefs_stamp_same_data(&stamp, &node->cached);
    node->cached = stamp;
    pthread_mutex_unlock(&fs->lock);
    return 0;
}

int limefs_file_open(struct limefs *fs, uint64_t id, struct limefs_file **out, bool *keep)
{
    uint64_t ordinal;
    struct limefs_file *file = calloc(1, sizeof *file);
    if (!file)
        return -ENOMEM;
    file->fd = -1;
    file->direct = LIMEFS_DIRECT_UNTRIED;
    pthread_mutex_init(&file->lock, NULL);
    *keep = true;
    struct limefs_node *node = limefs_inode_node(fs, id);
    struct limefs_view *view = node ? NULL : limefs_inode_view(fs, id, &ordinal);
    int err = -ESTALE;
    if (node)
        err = node->kind == LIMEFS_OTHER ? open_other(fs, node, file, keep) : -EISDIR;
    else if (view)
        err = open_record(fs, view, ordinal, file);
    if (err) {
        pthread_mutex_destroy(&file->lock);
        free(file);
        return err;
    }
    limefs_handle_add(fs, &fs->files, &file->handle);
    if (limefs_file_is_large(fs, file))
        limefs_job_prepare(fs, file);
    *out = file;
    return 0;
}

void limefs_file_close(struct limefs *fs, struct limefs_file *file)
{
    limefs_handle_remove(fs, &file->handle);
    if (file->view)
        limefs_view_unpin(fs, file->view);
    if (file->fd >= 0)
        close(file->fd);
    if (file->direct >= 0)
        close(file->direct);
    pthread_mutex_destroy(&file->lock);
    free(file);
}

bool limefs_file_is_large(const struct limefs *fs, const struct limefs_file *file)
{
    return file->view && file->record.bytes >= fs->options.forward_from;
}

void limefs_files_release(struct limefs *fs)
{
    while (fs->files)
        limefs_file_close(fs, (struct limefs_file *)fs->files);
}
