/* view.c - views of containers: made, kept, put to sleep, woken */
#define _GNU_SOURCE
#include "view.h"
#include "caller.h"
#include "descriptor.h"
#include "tree.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

/* ---- the list of views that are awake (fs->lock held) ---- */

static void list_remove(struct limefs *fs, struct limefs_view *view)
{
    *(view->newer ? &view->newer->older : &fs->newest) = view->older;
    *(view->older ? &view->older->newer : &fs->oldest) = view->newer;
    view->newer = view->older = NULL;
}

static void list_insert(struct limefs *fs, struct limefs_view *view)
{
    view->older = fs->newest;
    view->newer = NULL;
    *(fs->newest ? &fs->newest->newer : &fs->oldest) = view;
    fs->newest = view;
}

static void now_awake(struct limefs *fs, struct limefs_view *view)
{
    list_insert(fs, view);
    fs->views_open++;
    fs->index_memory += limefile_index_memory(view->index);
}

/* ---- who wants to know ---- */

void limefs_view_watch(struct limefs *fs, const struct limefs_view_watch *watch)
{
    assert(fs->watch_count < LIMEFS_WATCHES_MAX);
    fs->watches[fs->watch_count++] = watch;
}

static void has_changed(struct limefs *fs, struct limefs_view *view)
{
    for (unsigned i = 0; i < fs->watch_count; i++)
        if (fs->watches[i]->changed)
            fs->watches[i]->changed(view);
}

void limefs_view_changed(struct limefs *fs, struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    has_changed(fs, view);
    limefs_unlock(&fs->lock);
}

/* ---- awake and asleep ---- */

/* It is the last that will be put to sleep. */
static void now_used(struct limefs *fs, struct limefs_view *view)
{
    list_remove(fs, view);
    list_insert(fs, view);
}

/* Closing may take as long as a store likes: it is left to unlock_and_close(). Where too much
 * is left, the view stays awake for now. */
static bool put_to_sleep(struct limefs *fs, struct limefs_view *view)
{
    if (fs->leaving_count == LIMEFS_LEAVING_MAX)
        return false;
    list_remove(fs, view);
    fs->views_open--;
    fs->index_memory -= limefile_index_memory(view->index);
    fs->leaving[fs->leaving_count++] = (struct limefs_leaving){view->fd, view->index};
    view->fd = -1;
    view->index = NULL;
    return true;
}

/* Gives fs->lock back, after anything that may put views to sleep. */
static void unlock_and_close(struct limefs *fs)
{
    struct limefs_leaving leaving[LIMEFS_LEAVING_MAX];
    unsigned count = fs->leaving_count;
    memcpy(leaving, fs->leaving, count * sizeof leaving[0]);
    fs->leaving_count = 0;
    limefs_unlock(&fs->lock);
    for (unsigned i = 0; i < count; i++) {
        close(leaving[i].fd);
        limefile_index_free(leaving[i].index);
    }
}

static void free_view(struct limefs *fs, struct limefs_view *view)
{
    while (view->anew) {
        struct limefs_anew *anew = view->anew;
        view->anew = anew->next;
        free(anew);
    }
    for (unsigned i = 0; i < fs->watch_count; i++)
        if (fs->watches[i]->freed)
            fs->watches[i]->freed(view);
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
static void retire(struct limefs *fs, struct limefs_node *node)
{
    struct limefs_view *view = node->view;
    node->view = NULL;
    if (view)
        free_unheld(fs, view);
}

/* Its name leads nowhere. One that is being written to may be back soon, and could not be
 * locked a second time. */
static void retire_gone(struct limefs *fs, struct limefs_node *node)
{
    if (node->view && !node->view->written)
        retire(fs, node);
}

/* One index that alone takes too much stays: it would be made again for each request. */
static void evict(struct limefs *fs)
{
    struct limefs_view *view = fs->oldest;
    while (view && (fs->views_open > fs->options.max_open ||
                    (fs->index_memory > LIMEFS_INDEX_MEMORY && view != fs->newest))) {
        struct limefs_view *newer = view->newer;
        if (view->pins == 0 && put_to_sleep(fs, view))
            free_unheld(fs, view);
        view = newer;
    }
}

/* ---- making a view ---- */

/* Once for each state of the container. */
static void report_fault(struct limefs *fs, struct limefs_node *node,
                         const struct limefs_view *view)
{
    const struct limefile_finding *fault = limefile_index_fault(view->index);
    if (!fault || limefs_stamp_same_data(&node->told, &view->stamp))
        return;
    node->told = view->stamp;
    char path[PATH_MAX], text[256];
    const char *label = limefs_tree_label(fs, node, path, sizeof path);
    limefile_finding_text(fault, text, sizeof text);
    if (limefile_index_is_container(view->index))
        limefs_log(LOG_WARNING, "%s: index: %s; the %llu records before it are shown", label,
                   text, (unsigned long long)limefile_index_count(view->index));
    else
        limefs_log(LOG_WARNING, "%s: index: %s; this is no LIME container", label, text);
}

static struct timespec now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time;
}

/* A change within a tick of the file system's clock leaves the same time behind. `seen`: when
 * it was looked at. */
static bool is_racy(const struct timespec *time, const struct timespec *seen)
{
    int64_t age = (int64_t)seen->tv_sec - time->tv_sec; /* of any sign and size */
    if (age < -1 || age > 1)
        return age < 0;
    return age * 1000000000 + seen->tv_nsec - time->tv_nsec < 20000000;
}

/* A new, pinned view of what is there now. The container's load lock is held. */
static int make_view(struct limefs *fs, struct limefs_node *node, int file,
                     struct limefs_view **out)
{
    struct timespec seen = now();
    struct limefs_view *view = calloc(1, sizeof *view);
    if (!view)
        return -ENOMEM;
    int err = limefs_view_open(file, NULL, &view->fd, &view->st, &view->index);
    if (err) {
        free(view);
        return err;
    }
    view->sure = !is_racy(&view->st.st_ctim, &seen);
    view->racy = is_racy(&view->st.st_mtim, &seen) ||
                 limefs_index_unread(view->index); /* to be tried again */
    view->stamp = limefs_stamp_of(&view->st);
    view->node = node;
    view->pins = 1;
    report_fault(fs, node, view);

    limefs_lock(&fs->lock);
    err = limefs_slot_take(fs, LIMEFS_SLOT_VIEW, view, &view->slot);
    if (!err) {
        view->id = ++fs->ids;
        limefs_node_hold(node);
        retire(fs, node);
        node->view = view;
        now_awake(fs, view);
        evict(fs);
    }
    unlock_and_close(fs);
    if (err) {
        close(view->fd);
        limefile_index_free(view->index);
        free(view);
        return err;
    }
    *out = view;
    return 0;
}

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
        view->stamp = limefs_stamp_of(st);
    }
    view->racy = view->sure = false;
}

/* A pinned one. */
static void look_again(struct limefs *fs, struct limefs_view *view)
{
    struct stat st;
    bool told = fstat(view->fd, &st) == 0;
    limefs_lock(&fs->lock);
    note_look(view, told ? &st : NULL);
    limefs_unlock(&fs->lock);
}

/* Changes with each of our own changes after which an older look means nothing; odd while one
 * is under way. */
static uint64_t moves_of(struct limefs *fs, const struct limefs_node *node)
{
    limefs_lock(&fs->lock);
    uint64_t moves = node->view ? node->view->moves : 0;
    limefs_unlock(&fs->lock);
    return moves;
}

/* With fs->lock held. One that is written to shows it, unless it was replaced. */
static bool shows(struct limefs_view *view, const struct stat *st)
{
    struct limefs_stamp stamp = limefs_stamp_of(st);
    if (view->written)
        return limefs_stamp_same_file(&view->stamp, &stamp);
    struct timespec seen = now();
    bool equal = limefs_stamp_equal(&view->stamp, &stamp);
    view->sure = equal && !is_racy(&st->st_ctim, &seen);
    /* Once the tick is over, a new view will tell. */
    return equal && (!view->racy || is_racy(&st->st_mtim, &seen));
}

static bool is_current(const struct limefs_node *node, struct limefs_view *view,
                       const struct stat *st)
{
    return view == node->view && (view->moves % 2 || shows(view, st));
}

/* The newest view, pinned, if it shows the container as it is; NULL if it does not. */
static struct limefs_view *pin_if_current(struct limefs *fs, struct limefs_node *node,
                                          const struct stat *st)
{
    limefs_lock(&fs->lock);
    struct limefs_view *view = node->view;
    bool written = view && view->written;
    if (view && !written && !is_current(node, view, st))
        view = NULL;
    if (view)
        view->pins++;
    limefs_unlock(&fs->lock);
    if (!written)
        return view;
    look_again(fs, view); /* first: after it was written anew that may have failed */
    limefs_lock(&fs->lock);
    bool current = is_current(node, view, st);
    limefs_unlock(&fs->lock);
    if (current)
        return view;
    limefs_view_unpin(fs, view);
    return NULL;
}

/* Opens and indexes a pinned view again if it was asleep. The load lock is held. */
static int wake(struct limefs *fs, struct limefs_view *view, int file)
{
    struct stat st;
    struct limefile_index *index;
    int fd;
    if (view->fd >= 0) {
        limefs_lock(&fs->lock);
        now_used(fs, view);
        limefs_unlock(&fs->lock);
        return 0;
    }
    int err = limefs_view_open(file, &view->stamp, &fd, &st, &index);
    if (err)
        return err;
    limefs_lock(&fs->lock);
    view->fd = fd;
    view->index = index;
    now_awake(fs, view);
    evict(fs);
    unlock_and_close(fs);
    return 0;
}

/* The newest view, pinned, if it is awake and sure to show the container without a look at its
 * name. */
static struct limefs_view *pin_if_unchanged(struct limefs *fs, struct limefs_node *container)
{
    limefs_lock(&fs->lock);
    struct limefs_view *view = container->view;
    if (view && view->fd < 0)
        view = NULL;
    if (view) {
        view->pins++;
        now_used(fs, view);
    }
    limefs_unlock(&fs->lock);
    if (!view || limefs_view_is_unchanged(fs, view))
        return view;
    limefs_view_unpin(fs, view);
    return NULL;
}

/* What its name leads to now, pinned: by the newest view, or else a new one. */
static int look_by_name(struct limefs *fs, struct limefs_node *container,
                        struct limefs_view **out)
{
    struct stat st;
    limefs_lock(&container->load);
    struct limefs_view *view = NULL;
    uint64_t moves;
    int err, file = -1;
    limefs_own_begin(); /* once for all of it: changing rights is what takes time here */
    do {                /* what was looked at may be the old one by now, by our own doing */
        moves = moves_of(fs, container);
        if (file >= 0)
            close(file);
        file = limefs_tree_find(fs, container);
        err = file < 0 ? file : fstat(file, &st) == 0 ? 0 : -errno;
        if (!err)
            view = pin_if_current(fs, container, &st);
    } while (!err && !view && moves != moves_of(fs, container));
    if (!err) {
        err = view ? wake(fs, view, file) : make_view(fs, container, file, &view);
        *out = view;
    } else if (err == -ENOENT) {
        limefs_lock(&fs->lock);
        retire_gone(fs, container);
        unlock_and_close(fs);
    }
    limefs_unlock(&container->load);
    if (file >= 0)
        close(file);
    limefs_own_end();
    if (err && view)
        limefs_view_unpin(fs, view);
    return err;
}

int limefs_view_current(struct limefs *fs, struct limefs_node *container,
                        struct limefs_view **out)
{
    *out = pin_if_unchanged(fs, container);
    int err = *out ? 0 : look_by_name(fs, container, out);
    if (err)
        return err;
    err = limefs_caller_may((*out)->fd, R_OK);
    if (err)
        limefs_view_unpin(fs, *out);
    return err;
}

void limefs_view_gone(struct limefs *fs, struct limefs_node *parent, const char *name)
{
    limefs_lock(&fs->lock);
    struct limefs_node *node = limefs_node_find(fs, parent, name);
    if (node)
        retire_gone(fs, node);
    unlock_and_close(fs);
}

int limefs_view_pin(struct limefs *fs, struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    bool awake = view->fd >= 0;
    view->pins++;
    limefs_unlock(&fs->lock);
    if (awake)
        return 0;
    int file = limefs_tree_find(fs, view->node);
    limefs_lock(&view->node->load);
    int err = file < 0 ? file : wake(fs, view, file);
    limefs_unlock(&view->node->load);
    if (file >= 0)
        close(file);
    if (err)
        limefs_view_unpin(fs, view);
    return err ? -ESTALE : 0;
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
        evict(fs);
    unlock_and_close(fs);
}

void limefs_view_lookup(struct limefs *fs, struct limefs_view *view, uint64_t n)
{
    limefs_lock(&fs->lock);
    view->lookups += n;
    limefs_unlock(&fs->lock);
}

void limefs_view_forget(struct limefs *fs, struct limefs_view *view, uint64_t n)
{
    limefs_lock(&fs->lock);
    view->lookups -= n < view->lookups ? n : view->lookups;
    free_unheld(fs, view);
    unlock_and_close(fs);
}

void limefs_views_release(struct limefs *fs)
{
    for (uint32_t i = 0; i < fs->slot_count; i++) {
        if (fs->slots[i].use != LIMEFS_SLOT_VIEW)
            continue;
        struct limefs_view *view = fs->slots[i].view;
        limefs_lock(&fs->lock);
        if (view->fd >= 0)
            put_to_sleep(fs, view);
        unlock_and_close(fs);
        free_view(fs, view);
    }
}

/* ---- what is known of a view ---- */

struct limefile_index *limefs_view_index(struct limefs *fs, struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    struct limefile_index *index = limefile_index_hold(view->index);
    limefs_unlock(&fs->lock);
    return index;
}

struct stat limefs_view_stat(struct limefs *fs, const struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    struct stat st = view->st;
    limefs_unlock(&fs->lock);
    return st;
}

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

/* ---- what a writer changes ---- */

void limefs_view_set_written(struct limefs *fs, struct limefs_view *view, bool written)
{
    look_again(fs, view);
    limefs_lock(&fs->lock);
    view->written = written;
    view->moves += 2; /* who has looked before must look again */
    has_changed(fs, view);
    limefs_unlock(&fs->lock);
}

void limefs_view_lose(struct limefs *fs, uint64_t id)
{
    limefs_lock(&fs->lock);
    for (uint32_t i = 0; i < fs->slot_count; i++)
        if (fs->slots[i].use == LIMEFS_SLOT_VIEW && fs->slots[i].view->id == id)
            fs->slots[i].view->lost = true;
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
    view->stamp = (struct limefs_stamp){0};
    limefs_unlock(&fs->lock);
}

void limefs_view_touched(struct limefs *fs, struct limefs_view *view)
{
    look_again(fs, view);
}

void limefs_view_show(struct limefs *fs, struct limefs_view *view, struct limefile_index *index)
{
    limefs_lock(&fs->lock);
    struct limefile_index *old = view->index;
    fs->index_memory += limefile_index_memory(index);
    fs->index_memory -= limefile_index_memory(old);
    view->index = index;
    has_changed(fs, view);
    limefs_unlock(&fs->lock);
    look_again(fs, view);
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
    has_changed(fs, view);
    note_look(view, told ? &st : NULL);
    view->node->stamp = view->node->made = view->stamp; /* what the kernel means by it now */
    limefs_unlock(&fs->lock);
    if (fresh >= 0)
        close(fresh);
    return err;
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
    anew->generation = ++fs->ids;
    limefs_unlock(&fs->lock);
    free(fresh);
    return 0;
}
