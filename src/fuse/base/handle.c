/* handle.c - the lists of what is open */
#include "limefs.h"

void limefs_handle_add(struct limefs *fs, struct limefs_handle **list,
                       struct limefs_handle *handle)
{
    pthread_mutex_lock(&fs->lock);
    handle->next = *list;
    handle->at = list;
    if (handle->next)
        handle->next->at = &handle->next;
    *list = handle;
    pthread_mutex_unlock(&fs->lock);
}

void limefs_handle_remove(struct limefs *fs, struct limefs_handle *handle)
{
    pthread_mutex_lock(&fs->lock);
    *handle->at = handle->next;
    if (handle->next)
        handle->next->at = handle->at;
    pthread_mutex_unlock(&fs->lock);
}
