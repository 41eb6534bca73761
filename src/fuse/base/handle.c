/* handle.c - the lists of open files and directories */
#include "limefs.h"

void limefs_handle_add(struct limefs *fs, struct limefs_handle **list,
                       struct limefs_handle *handle)
{
    limefs_lock(&fs->lock);
    handle->next = *list;
    handle->at = list;
    if (handle->next)
        handle->next->at = &handle->next;
    *list = handle;
    limefs_unlock(&fs->lock);
}

void limefs_handle_remove(struct limefs *fs, struct limefs_handle *handle)
{
    limefs_lock(&fs->lock);
    *handle->at = handle->next;
    if (handle->next)
        handle->next->at = handle->at;
    limefs_unlock(&fs->lock);
}
