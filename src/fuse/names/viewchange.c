/* viewchange.c - a view whose container this mount changes, and who wants to know of it */
#define _GNU_SOURCE
#include "views.h"
#include "caller.h"
#include "descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- who wants to know ---- */

void limefs_view_watch(struct limefs *fs, const struct limefs_view_watch *watch)
{
    assert(fs->snapshots.watch_count < LIMEFS_WATCHES_MAX);
    fs->snapshots.watches[fs->snapshots.watch_count++] = watch;
}

void limefs_view_has_changed(struct limefs *fs, struct limefs_view *view)
{
    for (unsigned i = 0; i < fs->snapshots.watch_count; i++)
        if (fs->snapshots.watches[i]->changed)
            fs->snapshots.watches[i]->changed(view);
}

void limefs_view_changed(struct limefs *fs, struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    limefs_view_has_changed(fs, view);
    limefs_unlock(&fs->lock);
}

/* ---- looked at again ---- */

static bool is_older(const struct stat *st, const struct stat *than)
{
    const struct timespec *a = &st->st_ctim, *b = &than->st_ctim;
    return st->st_ino == than->st_ino &&
           (a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec));
}

/* With fs->lock held; st: of its file, or NULL if it could not be told. Somebody else may have
 * looked since. */
static void note_look(struct limefs_view *view, const struct stat *st)
{
    if (st && !is_older(st, &view->st)) {
        view->st = *st;
        view->stamp = view->settled = limefile_identity_of(st);
    }
    view->racy = view->sure = false;
}

/* A pinned one. */
void limefs_view_look_again(struct limefs *fs, struct limefs_view *view)
{
    struct stat st;
    bool told = fstat(view->fd, &st) == 0;
    limefs_lock(&fs->lock);
    note_look(view, told ? &st : NULL);
    limefs_unlock(&fs->lock);
}

/* ---- what a writer changes ---- */

void limefs_view_set_written(struct limefs *fs, struct limefs_view *view, bool written)
{
    limefs_view_look_again(fs, view);
    limefs_lock(&fs->lock);
    view->written = written;
    view->moves += 2; /* who has looked before must look again */
    limefs_view_has_changed(fs, view);
    limefs_unlock(&fs->lock);
}

void limefs_view_lose(struct limefs *fs, uint64_t id)
{
    limefs_lock(&fs->lock);
    for (uint32_t i = 0; i < fs->inodes.slot_count; i++)
        if (fs->inodes.slots[i].use == LIMEFS_SLOT_VIEW && fs->inodes.slots[i].view->id == id)
            fs->inodes.slots[i].view->lost = true;
    limefs_unlock(&fs->lock);
}

bool limefs_view_take_loss(struct limefs *fs, struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    bool lost = view->lost;
    view->lost = false;
    limefs_unlock(&fs->lock);
    return lost;
}

void limefs_view_distrust(struct limefs *fs, struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    view->stamp = view->settled = (struct limefile_identity){0};
    limefs_unlock(&fs->lock);
}

void limefs_view_touched(struct limefs *fs, struct limefs_view *view)
{
    limefs_view_look_again(fs, view);
}

void limefs_view_show(struct limefs *fs, struct limefs_view *view, struct limefile_index *index)
{
    limefs_lock(&fs->lock);
    struct limefile_index *old = view->index;
    fs->snapshots.index_memory += limefile_index_memory(index);
    fs->snapshots.index_memory -= limefile_index_memory(old);
    view->index = index;
    limefs_view_has_changed(fs, view);
    limefs_unlock(&fs->lock);
    limefs_view_look_again(fs, view);
    limefile_index_free(old);
}

void limefs_view_set_moving(struct limefs *fs, struct limefs_view *view, bool moving)
{
    limefs_lock(&fs->lock);
    if (moving != view->moves % 2)
        view->moves++;
    limefs_unlock(&fs->lock);
}

/* Descriptors keep their numbers: others are reading by them. */
int limefs_view_move(struct limefs *fs, struct limefs_view *view, int fd)
{
    struct stat st;
    limefs_own_begin();
    int fresh = limefile_reopen(fd, O_RDONLY);
    limefs_own_end();
    /* Not to have it would be worse than to keep the lock for as long as the view is awake. */
    int err = dup3(fresh < 0 ? fd : fresh, view->fd, O_CLOEXEC) < 0 ? -errno : 0;
    bool told = fstat(view->fd, &st) == 0;
    limefs_lock(&fs->lock);
    view->rewritten = true;
    limefs_view_has_changed(fs, view);
    note_look(view, told ? &st : NULL);
    view->node->stamp = view->node->made = view->stamp; /* what the kernel means by it now */
    limefs_unlock(&fs->lock);
    if (fresh >= 0)
        close(fresh);
    return err;
}

/* ---- records of the same ordinal ---- */

static struct limefs_anew *anew_of(const struct limefs_view *view, uint64_t ordinal)
{
    struct limefs_anew *anew = view->anew;
    while (anew && anew->ordinal != ordinal)
        anew = anew->next;
    return anew;
}

uint64_t limefs_view_generation(struct limefs *fs, const struct limefs_view *view,
                                uint64_t ordinal)
{
    limefs_lock(&fs->lock);
    const struct limefs_anew *anew = anew_of(view, ordinal);
    uint64_t generation = anew ? anew->generation : view->id;
    limefs_unlock(&fs->lock);
    return generation;
}

int limefs_view_renew(struct limefs *fs, struct limefs_view *view, uint64_t ordinal)
{
    struct limefs_anew *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return -ENOMEM;
    limefs_lock(&fs->lock);
    struct limefs_anew *anew = anew_of(view, ordinal);
    if (!anew) {
        *fresh = (struct limefs_anew){.next = view->anew, .ordinal = ordinal};
        view->anew = anew = fresh;
        fresh = NULL;
    }
    anew->generation = ++fs->inodes.ids;
    limefs_unlock(&fs->lock);
    free(fresh);
    return 0;
}
