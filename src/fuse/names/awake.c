/* awake.c - views that are awake, put to sleep, let go and freed */
#define _GNU_SOURCE
#include "limegauge.h"
#include "views.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the list of views that are awake (fs->lock held) ---- */

static void list_remove(struct limefs *fs, struct limefs_view *view)
{
    *(view->newer ? &view->newer->older : &fs->snapshots.newest) = view->older;
    *(view->older ? &view->older->newer : &fs->snapshots.oldest) = view->newer;
    view->newer = view->older = NULL;
}

static void list_insert(struct limefs *fs, struct limefs_view *view)
{
    view->older = fs->snapshots.newest;
    view->newer = NULL;
    *(fs->snapshots.newest ? &fs->snapshots.newest->newer : &fs->snapshots.oldest) = view;
    fs->snapshots.newest = view;
}

static uint64_t memory_of(const struct limefs_view *view)
{
    size_t guise = view->guise ? limefile_gauge_guise_memory(view->guise) : 0;
    return limefile_index_memory(view->index) + guise;
}

void limefs_view_awake(struct limefs *fs, struct limefs_view *view)
{
    list_insert(fs, view);
    fs->snapshots.views_open++;
    fs->snapshots.index_memory += memory_of(view);
}

/* ---- awake and asleep ---- */

/* It is the last that will be put to sleep. */
void limefs_view_used(struct limefs *fs, struct limefs_view *view)
{
    list_remove(fs, view);
    list_insert(fs, view);
}

/* Closing may take as long as a store likes: it is left to limefs_view_unlock(). Where too much
 * is left, the view stays awake for now. */
static bool put_to_sleep(struct limefs *fs, struct limefs_view *view)
{
    if (fs->snapshots.leaving_count == LIMEFS_LEAVING_MAX)
        return false;
    list_remove(fs, view);
    fs->snapshots.views_open--;
    fs->snapshots.index_memory -= memory_of(view);
    fs->snapshots.leaving[fs->snapshots.leaving_count++] =
        (struct limefs_opened){.fd = view->fd, .index = view->index, .guise = view->guise};
    view->fd = -1;
    view->index = NULL;
    view->guise = NULL;
    for (unsigned i = 0; i < fs->snapshots.watch_count; i++)
        if (fs->snapshots.watches[i]->asleep)
            fs->snapshots.watches[i]->asleep(view);
    return true;
}

/* Gives fs->lock back, after anything that may put views to sleep. */
void limefs_view_unlock(struct limefs *fs)
{
    struct limefs_opened leaving[LIMEFS_LEAVING_MAX];
    unsigned count = fs->snapshots.leaving_count;
    memcpy(leaving, fs->snapshots.leaving, count * sizeof leaving[0]);
    fs->snapshots.leaving_count = 0;
    limefs_unlock(&fs->lock);
    for (unsigned i = 0; i < count; i++)
        limefs_view_close(&leaving[i]);
}

static void free_view(struct limefs *fs, struct limefs_view *view)
{
    while (view->anew) {
        struct limefs_anew *anew = view->anew;
        view->anew = anew->next;
        free(anew);
    }
    for (unsigned i = 0; i < fs->snapshots.watch_count; i++)
        if (fs->snapshots.watches[i]->freed)
            fs->snapshots.watches[i]->freed(view);
    limefs_lock_destroy(&view->describing);
    free(view->mtimes.times);
    free(view);
}

/* Frees a view that nobody holds, unless it may be wanted again. One that is out of date never
 * is, and must not keep a deleted container's blocks on the disk. */
static bool free_unheld(struct limefs *fs, struct limefs_view *view)
{
    if (view->pins)
        return false;
    if (view->fd >= 0 && view->node->view != view)
        put_to_sleep(fs, view);
    if (view->lookups || view->fd >= 0)
        return false;
    if (view->node->view == view)
        view->node->view = NULL;
    limefs_slot_give(fs, view->slot);
    limefs_node_drop(fs, view->node);
    free_view(fs, view);
    return true;
}

/* The node's newest view is the newest no longer. */
void limefs_view_retire(struct limefs *fs, struct limefs_node *node)
{
    struct limefs_view *view = node->view;
    node->view = NULL;
    if (view)
        free_unheld(fs, view);
}

/* Its name leads nowhere. One that is being written to may be back soon, and could not be
 * locked a second time. */
void limefs_view_retire_gone(struct limefs *fs, struct limefs_node *node)
{
    if (node->view && !node->view->written)
        limefs_view_retire(fs, node);
}

/* One that alone takes too much stays: it would be made again for each request. */
static bool is_too_much(const struct limefs *fs, const struct limefs_view *view)
{
    return fs->snapshots.views_open > fs->options.max_open ||
           (fs->snapshots.index_memory > LIMEFS_INDEX_MEMORY && view != fs->snapshots.newest);
}

void limefs_views_evict(struct limefs *fs)
{
    struct limefs_view *view = fs->snapshots.oldest;
    while (view && is_too_much(fs, view)) {
        struct limefs_view *newer = view->newer;
        if (view->pins == 0 && put_to_sleep(fs, view))
            free_unheld(fs, view);
        view = newer;
    }
}

/* ---- held, and let go ---- */

void limefs_view_gone(struct limefs *fs, struct limefs_node *parent, const char *name)
{
    limefs_lock(&fs->lock);
    struct limefs_node *node = limefs_node_find(fs, parent, name);
    if (node)
        limefs_view_retire_gone(fs, node);
    limefs_view_unlock(fs);
}

void limefs_view_hold(struct limefs *fs, struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    view->pins++;
    limefs_unlock(&fs->lock);
}

void limefs_view_unpin(struct limefs *fs, struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    view->pins--;
    if (!free_unheld(fs, view))
        limefs_views_evict(fs);
    limefs_view_unlock(fs);
}

void limefs_view_lookup(struct limefs *fs, struct limefs_view *view, uint64_t n)
{
    limefs_lock(&fs->lock);
    view->lookups += n;
    limefs_unlock(&fs->lock);
}

uint64_t limefs_view_asked(struct limefs *fs, struct limefs_view *view, uint64_t n)
{
    limefs_lock(&fs->lock);
    uint64_t asked = view->asked += n;
    limefs_unlock(&fs->lock);
    return asked;
}

void limefs_view_forget(struct limefs *fs, struct limefs_view *view, uint64_t n)
{
    limefs_lock(&fs->lock);
    view->lookups -= n < view->lookups ? n : view->lookups;
    free_unheld(fs, view);
    limefs_view_unlock(fs);
}

void limefs_views_release(struct limefs *fs)
{
    for (uint32_t i = 0; i < fs->inodes.slot_count; i++) {
        if (fs->inodes.slots[i].use != LIMEFS_SLOT_VIEW)
            continue;
        struct limefs_view *view = fs->inodes.slots[i].view;
        limefs_lock(&fs->lock);
        if (view->fd >= 0)
            put_to_sleep(fs, view);
        limefs_view_unlock(fs);
        free_view(fs, view);
    }
}
