/* fields.c - what the metadata of a container say of its records */
#include "fields.h"

#include <errno.h>
#include <stdlib.h>

void limefs_fields_release(struct limefs_fields *fields)
{
    if (!fields || atomic_fetch_sub(&fields->holders, 1) > 1)
        return;
    limefile_fields_release(&fields->fields);
    limefile_index_free(fields->index);
    free(fields);
}

void limefs_fields_forget(struct limefs_view *view)
{
    struct limefs_fields *fields = view->fields;
    view->fields = NULL;
    view->field_changes++;
    limefs_fields_release(fields);
}

static struct limefs_fields *hold(struct limefs *fs, struct limefs_view *view,
                                  uint64_t *changes)
{
    limefs_lock(&fs->lock);
    struct limefs_fields *fields = view->fields;
    if (fields)
        atomic_fetch_add(&fields->holders, 1);
    *changes = view->field_changes;
    limefs_unlock(&fs->lock);
    return fields;
}

static int build(struct limefs *fs, struct limefs_view *view, struct limefs_fields **out)
{
    struct limefile_fd file;
    struct limefs_fields *fields = calloc(1, sizeof *fields);
    if (!fields)
        return -ENOMEM;
    fields->index = limefs_view_index(fs, view);
    int err =
        limefile_fields_build(limefs_view_source(view, &file), fields->index, &fields->fields);
    if (err) {
        limefile_index_free(fields->index);
        free(fields);
        return err;
    }
    atomic_init(&fields->holders, 1);
    *out = fields;
    return 0;
}

/* For those who come later, too, unless something has changed since. */
static void keep(struct limefs *fs, struct limefs_view *view, struct limefs_fields *fields,
                 uint64_t changes)
{
    limefs_lock(&fs->lock);
    if (!view->fields && view->field_changes == changes) {
        atomic_fetch_add(&fields->holders, 1);
        view->fields = fields;
    }
    limefs_unlock(&fs->lock);
}

int limefs_fields_of(struct limefs *fs, struct limefs_view *view, struct limefs_fields **out)
{
    uint64_t changes;
    *out = hold(fs, view, &changes);
    if (*out)
        return 0;
    limefs_lock(&view->describing);
    *out = hold(fs, view, &changes);
    int err = *out ? 0 : build(fs, view, out);
    if (!err)
        keep(fs, view, *out, changes);
    limefs_unlock(&view->describing);
    return err;
}
