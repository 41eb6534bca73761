/* handle_list.c - the lists of open files and directories */
#include "limefs.h"

void limefs_handle_add(struct limefs *fs, struct limefs_handle **list,
                       struct limefs_handle *handle)
{
    limefs_lock(&fs->lock);
    handle->next = *list;
    handle->link = list;
    if (handle->next)
        handle->next->link = &handle->next;
    *list = handle;
    limefs_unlock(&fs->lock);
}

void limefs_handle_remove(struct limefs *fs, struct limefs_handle *handle)
{
    limefs_lock(&fs->lock);
    *handle->link = handle->next;
    if (handle->next)
        handle->next->link = handle->link;
    limefs_unlock(&fs->lock);
}
