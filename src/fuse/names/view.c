/* view.c - make, open, evict and replace snapshots of containers (struct limefs_view) */
#define _GNU_SOURCE
#include "views.h"
#include "caller.h"
#include "descriptor.h"
#include "limegauge.h"
#include "tree.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum {
    MTIMES_FIRST = 8,
    MTIMES_MOST = 1 << 16, /* a power of two; more replace the oldest */
};

/* ---- callbacks ---- */

void limefs_view_watch(struct limefs *fs, const struct limefs_view_watch *watch)
{
    assert(fs->snapshots.watch_count < LIMEFS_WATCHES_MAX);
    fs->snapshots.watches[fs->snapshots.watch_count++] = watch;
}

static void notify_changed(struct limefs *fs, struct limefs_view *view)
{
    view->changes++;
    for (unsigned i = 0; i < fs->snapshots.watch_count; i++)
        if (fs->snapshots.watches[i]->changed)
            fs->snapshots.watches[i]->changed(view);
}

void limefs_view_changed(struct limefs *fs, struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    notify_changed(fs, view);
    limefs_unlock(&fs->lock);
}

uint64_t limefs_view_changes(struct limefs *fs, const struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    uint64_t changes = view->changes;
    limefs_unlock(&fs->lock);
    return changes;
}

/* ---- the LRU list of open snapshots (fs->lock held) ---- */

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

static void list_awake(struct limefs *fs, struct limefs_view *view)
{
    list_insert(fs, view);
    fs->snapshots.views_open++;
    fs->snapshots.index_memory += memory_of(view);
}

static void move_to_front(struct limefs *fs, struct limefs_view *view)
{
    list_remove(fs, view);
    list_insert(fs, view);
}

/* Evicts a snapshot. close() can block on slow storage, so unlock_and_close() does it. Returns
 * false, and leaves the snapshot open, if too many files wait to be closed. */
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
        if (fs->snapshots.watches[i]->evicted)
            fs->snapshots.watches[i]->evicted(view);
    return true;
}

/* Releases fs->lock after anything that may have evicted snapshots, and closes their files. */
static void unlock_and_close(struct limefs *fs)
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

/* Frees a snapshot that is not held, unless it may be used again. One that is out of date is
 * never used again, and if open would keep the blocks of a deleted container on the disk. */
static bool free_unheld(struct limefs *fs, struct limefs_view *view)
{
    if (view->pins)
        return false;
    if (view->fd >= 0 && view->node->container.view != view)
        put_to_sleep(fs, view);
    if (view->lookups || view->fd >= 0)
        return false;
    if (view->node->container.view == view)
        view->node->container.view = NULL;
    limefs_slot_give(fs, view->slot);
    limefs_node_drop(fs, view->node);
    free_view(fs, view);
    return true;
}

/* Drops the node's newest snapshot, which is out of date. */
static void retire(struct limefs *fs, struct limefs_node *node)
{
    struct limefs_view *view = node->container.view;
    node->container.view = NULL;
    if (view)
        free_unheld(fs, view);
}

/* The same if the name no longer exists. A snapshot that is being written to stays: the name
 * may be back soon, and the container could not be locked a second time. */
static void retire_gone(struct limefs *fs, struct limefs_node *node)
{
    if (node->container.view && node->container.view->state != LIMEFS_VIEW_WRITTEN)
        retire(fs, node);
}

/* A snapshot that alone exceeds the memory stays: each request would have to make it again. */
static bool is_too_much(const struct limefs *fs, const struct limefs_view *view)
{
    return fs->snapshots.views_open > fs->options.max_open ||
           (fs->snapshots.index_memory > LIMEFS_INDEX_MEMORY && view != fs->snapshots.newest);
}

static void evict(struct limefs *fs)
{
    struct limefs_view *view = fs->snapshots.oldest;
    while (view && is_too_much(fs, view)) {
        struct limefs_view *newer = view->newer;
        if (view->pins == 0 && put_to_sleep(fs, view))
            free_unheld(fs, view);
        view = newer;
    }
}

/* ---- pins and lookups ---- */

void limefs_view_gone(struct limefs *fs, struct limefs_node *parent, const char *name)
{
    limefs_lock(&fs->lock);
    struct limefs_node *node = limefs_node_find(fs, parent, name);
    if (node)
        retire_gone(fs, node);
    unlock_and_close(fs);
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
    unlock_and_close(fs);
}

void limefs_views_release(struct limefs *fs)
{
    for (uint32_t i = 0; i < fs->inodes.slot_count; i++) {
        if (fs->inodes.slots[i].use != LIMEFS_SLOT_VIEW)
            continue;
        struct limefs_view *view = fs->inodes.slots[i].what;
        limefs_lock(&fs->lock);
        if (view->fd >= 0)
            put_to_sleep(fs, view);
        unlock_and_close(fs);
        free_view(fs, view);
    }
}

/* ---- making a snapshot ---- */

/* Logs a fault of the container, once for each of its states. */
static void report_fault(struct limefs *fs, struct limefs_node *node,
                         const struct limefs_view *view)
{
    const struct limefile_finding *fault = limefile_index_fault(view->index);
    if (!fault || limefile_identity_same_data(&node->container.told, &view->stamp))
        return;
    node->container.told = view->stamp;
    char path[PATH_MAX], text[256];
    const char *label = limefs_tree_label(fs, node, path, sizeof path);
    limefile_finding_text(fault, text, sizeof text);
    if (limefile_index_is_container(view->index))
        limefs_log(LOG_WARNING, "%s: index: %s; the %llu records before it are shown", label,
                   text, (unsigned long long)limefile_index_count(view->index));
    else
        limefs_log(LOG_WARNING, "%s: index: %s; this is no LIME container", label, text);
}

bool limefs_view_has_told(int err)
{
    return (err >= LIMEFILE_E_GAUGE_UNKNOWN && err <= LIMEFILE_E_GAUGE_TRACE) || err == -EIO ||
           err == -ENOMEM;
}

/* Logs why a file cannot be opened, once for each of its states. */
static void report_error(struct limefs *fs, struct limefs_node *node, const struct stat *st,
                         int err)
{
    struct limefile_identity stamp = limefile_identity_of(st);
    char path[PATH_MAX];
    if (!limefs_view_has_told(err) ||
        limefile_identity_same_data(&node->container.told, &stamp))
        return;
    node->container.told = stamp;
    limefs_log(LOG_ERR, "%s: open: %s", limefs_tree_label(fs, node, path, sizeof path),
               limefile_strerror(err));
}

static struct timespec now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time;
}

static void show(struct limefs_view *view, const struct limefs_opened *opened)
{
    view->fd = opened->fd;
    view->index = opened->index;
    view->guise = opened->guise;
}

/* Returns true if another file has taken the place in a tree, which the kernel must look up. An
 * empty file does not count: it may be a container again soon. */
static bool has_become_plain(const struct limefs_node *node, const struct limefs_opened *opened,
                             const struct stat *st)
{
    return node->parent && !opened->guise && st->st_size > 0 &&
           !limefs_index_unread(opened->index) && !limefile_index_is_container(opened->index);
}

static int open_new(struct limefs *fs, struct limefs_node *node, int file,
                    struct limefs_opened *out, struct stat *st)
{
    int err = limefs_view_open(file, NULL, out, st);
    if (err) {
        report_error(fs, node, st, err);
    } else if (has_become_plain(node, out, st)) {
        limefs_view_close(out);
        err = -ESTALE;
    }
    return err;
}

/* Stores the times of the file, and whether they will show each later change. */
static void take_times(struct limefs_view *view, bool moving, const struct timespec *seen)
{
    view->stamp = limefile_identity_of(&view->st);
    bool settled = limefs_is_settled(&view->stamp, seen, moving);
    bool by_mtime = !moving && !limefile_time_is_racy(&view->stamp.mtime, seen);
    view->state = settled    ? LIMEFS_VIEW_VALID
                  : by_mtime ? LIMEFS_VIEW_YOUNG
                             : LIMEFS_VIEW_SUSPECT;
    if (limefs_index_unread(view->index)) /* it must be read again */
        view->state = LIMEFS_VIEW_SUSPECT;
    if (settled)
        view->settled = view->stamp;
}

/* Makes a pinned snapshot of a file found by name at `seen`. Called with node->work held. */
static int make_view(struct limefs *fs, struct limefs_node *node, int file,
                     const struct timespec *seen, struct limefs_view **out)
{
    struct limefs_view *view = calloc(1, sizeof *view);
    if (!view)
        return -ENOMEM;
    struct limefs_opened opened;
    int err = open_new(fs, node, file, &opened, &view->st);
    if (err) {
        free(view);
        return err;
    }
    show(view, &opened);
    take_times(view, opened.moving, seen);
    view->node = node;
    view->pins = 1;
    limefs_lock_init(&view->describing, LIMEFS_LOCK_DESCRIBING);
    report_fault(fs, node, view);

    limefs_lock(&fs->lock);
    err = limefs_slot_take(fs, LIMEFS_SLOT_VIEW, view, &view->slot);
    if (!err) {
        view->id = ++fs->inodes.ids;
        limefs_node_hold(node);
        retire(fs, node);
        node->container.view = view;
        list_awake(fs, view);
        evict(fs);
    }
    unlock_and_close(fs);
    if (err) {
        limefs_view_close(&opened);
        limefs_lock_destroy(&view->describing);
        free(view);
        return err;
    }
    *out = view;
    return 0;
}

/* ---- the newest snapshot of a container ---- */

/* Returns a number that changes when this mount makes earlier checks of the container invalid.
 * It is odd while such a change is in progress. */
static uint64_t moves_of(struct limefs *fs, const struct limefs_node *node)
{
    limefs_lock(&fs->lock);
    uint64_t moves = node->container.view ? node->container.view->moves : 0;
    limefs_unlock(&fs->lock);
    return moves;
}

/* The attributes of what a container's name leads to, and the time before it was resolved. If
 * the name is removed after that, the ctime of the file is not older than `seen`, even if both
 * are long past by now. */
struct found {
    struct stat st;
    struct timespec seen;
};

enum limefs_view_answer limefs_view_judge(enum limefs_view_state state,
                                          const struct limefile_identity *seen,
                                          const struct limefile_identity *now,
                                          const struct timespec *clock, bool being_written)
{
    if (state == LIMEFS_VIEW_WRITTEN)
        return limefile_identity_same_file(seen, now) ? LIMEFS_VIEW_SHOWN : LIMEFS_VIEW_CHANGED;
    switch (limefile_validity(seen, clock, being_written, now)) {
    case LIMEFILE_CHANGED:
        return LIMEFS_VIEW_CHANGED;
    case LIMEFILE_SUSPECT: /* still valid: a later check decides */
        return LIMEFS_VIEW_SHOWN;
    default:
        return state == LIMEFS_VIEW_VALID   ? LIMEFS_VIEW_SHOWN
               : state == LIMEFS_VIEW_YOUNG ? LIMEFS_VIEW_TO_CHECK
                                            : LIMEFS_VIEW_CHANGED;
    }
}

/* Returns whether a pinned snapshot is valid. Called with node->work held. */
static bool is_current(struct limefs *fs, struct limefs_view *view, const struct found *found)
{
    struct limefile_identity now = limefile_identity_of(&found->st);
    limefs_lock(&fs->lock);
    bool newest = view->node->container.view == view, moving = view->moves % 2;
    enum limefs_view_state state = view->state;
    struct limefile_identity seen = view->stamp;
    limefs_unlock(&fs->lock);
    if (!newest || moving)
        return newest;
    bool open = view->fd >= 0, may_be_young = state != LIMEFS_VIEW_VALID;
    bool being_written =
        open && may_be_young && limefile_is_being_written(view->fd, &found->st.st_ctim);
    enum limefs_view_answer answer =
        limefs_view_judge(state, &seen, &now, &found->seen, being_written);
    if (answer != LIMEFS_VIEW_TO_CHECK || !open) /* if not open, opening indexes it again */
        return answer != LIMEFS_VIEW_CHANGED;
    if (!limefs_view_settle(fs, view))
        return false;
    limefs_lock(&fs->lock);
    if (view->state == LIMEFS_VIEW_YOUNG &&
        limefile_identity_equal(&view->settled, &view->stamp))
        view->state = LIMEFS_VIEW_VALID;
    limefs_unlock(&fs->lock);
    return true;
}

/* Returns the newest snapshot, pinned, or NULL if it does not show the container as it is. */
static struct limefs_view *pin_if_current(struct limefs *fs, struct limefs_node *node,
                                          const struct found *found)
{
    limefs_lock(&fs->lock);
    struct limefs_view *view = node->container.view;
    bool written = view && view->state == LIMEFS_VIEW_WRITTEN;
    if (view)
        view->pins++;
    limefs_unlock(&fs->lock);
    if (written) /* an earlier call may have failed after a rewrite */
        limefs_view_touched(fs, view);
    if (!view || is_current(fs, view, found))
        return view;
    limefs_view_unpin(fs, view);
    return NULL;
}

/* Opens and indexes a pinned snapshot that was evicted. Called with node->work held. */
static int wake(struct limefs *fs, struct limefs_view *view, int file)
{
    struct stat st;
    struct limefs_opened opened;
    if (view->fd >= 0) {
        limefs_lock(&fs->lock);
        move_to_front(fs, view);
        limefs_unlock(&fs->lock);
        return 0;
    }
    int err = limefs_view_open(file, &view->stamp, &opened, &st);
    if (err)
        return err;
    limefs_lock(&fs->lock);
    show(view, &opened);
    if (opened.moving)
        view->state = LIMEFS_VIEW_SUSPECT;
    list_awake(fs, view);
    evict(fs);
    unlock_and_close(fs);
    return 0;
}

/* Returns the newest snapshot, pinned, or NULL unless it is open and certainly shows the
 * container, so that its name need not be resolved. */
static struct limefs_view *pin_if_unchanged(struct limefs *fs, struct limefs_node *container)
{
    limefs_lock(&fs->lock);
    struct limefs_view *view = container->container.view;
    if (view && view->fd < 0)
        view = NULL;
    if (view) {
        view->pins++;
        move_to_front(fs, view);
    }
    limefs_unlock(&fs->lock);
    if (!view || limefs_view_is_unchanged(fs, view))
        return view;
    limefs_view_unpin(fs, view);
    return NULL;
}

/* Opens what the container's name leads to. Returns an O_PATH descriptor or -errno. */
static int find_now(struct limefs *fs, struct limefs_node *container, struct found *found)
{
    found->seen = now();
    int file = limefs_tree_find(fs, container);
    if (file < 0)
        return file;
    int err = fstat(file, &found->st) == 0 ? 0 : -errno;
    if (!err)
        return file;
    close(file);
    return err;
}

/* If a snapshot is out of date, the kernel looks the name up once more, and then gives up. So
 * the next snapshot must last: this waits after a recent change until the times would show
 * another one. Returns true if it waited: the name may lead to another file by now. */
static bool let_settle(struct limefs *fs, const struct limefs_node *container,
                       const struct found *found)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    limefs_lock(&fs->lock);
    bool shown_before = container->references > 0;
    limefs_unlock(&fs->lock);
    struct timespec time = found->seen;
    int i = 0;
    for (; i < 12 && shown_before && limefile_time_is_racy(&found->st.st_mtim, &time); i++) {
        nanosleep(&pause, NULL);
        time = now();
    }
    return i > 0;
}

/* Gets a pinned snapshot of what the name leads to now: the newest one, or a new one. */
static int look_by_name(struct limefs *fs, struct limefs_node *container,
                        struct limefs_view **out)
{
    struct found found;
    limefs_lock(&container->work);
    struct limefs_view *view = NULL;
    uint64_t moves;
    bool again;
    int err, file = -1, waits = 2; /* a program may replace the file all the time */
    limefs_own_begin(); /* once for all, as switching rights takes the most time here */
    do {                /* the file may have been replaced by now, by this mount, too */
        moves = moves_of(fs, container);
        if (file >= 0)
            close(file);
        file = find_now(fs, container, &found);
        err = file < 0 ? file : 0;
        if (!err)
            view = pin_if_current(fs, container, &found);
        again = !err && !view &&
                (moves != moves_of(fs, container) ||
                 (waits-- > 0 && let_settle(fs, container, &found)));
    } while (again);
    if (!err) {
        err = view ? wake(fs, view, file) : make_view(fs, container, file, &found.seen, &view);
        *out = view;
    } else if (err == -ENOENT) {
        limefs_lock(&fs->lock);
        retire_gone(fs, container);
        unlock_and_close(fs);
    }
    limefs_unlock(&container->work);
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

int limefs_view_pin(struct limefs *fs, struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    bool awake = view->fd >= 0;
    view->pins++;
    limefs_unlock(&fs->lock);
    if (awake)
        return 0;
    int file = limefs_tree_find(fs, view->node);
    limefs_lock(&view->node->work);
    int err = file < 0 ? file : wake(fs, view, file);
    limefs_unlock(&view->node->work);
    if (file >= 0)
        close(file);
    if (err)
        limefs_view_unpin(fs, view);
    return err ? -ESTALE : 0;
}

int limefs_view_find(struct limefs *fs, struct limefs_node *container, const char *name,
                     struct limefs_view **view, struct limefile_record *record)
{
    int err = limefs_view_current(fs, container, view);
    if (err)
        return err;
    struct limefile_index *index = limefs_view_index(fs, *view);
    err = limefile_name_find(index, name, record);
    limefile_index_free(index);
    if (err)
        limefs_view_unpin(fs, *view);
    return err;
}

/* ---- what a writer changes ---- */

void limefs_view_set_written(struct limefs *fs, struct limefs_view *view, bool written)
{
    limefs_view_touched(fs, view);
    limefs_lock(&fs->lock);
    view->state = written ? LIMEFS_VIEW_WRITTEN : LIMEFS_VIEW_YOUNG;
    view->moves += 2; /* earlier checks are invalid */
    notify_changed(fs, view);
    limefs_unlock(&fs->lock);
}

void limefs_view_lose(struct limefs *fs, uint64_t id)
{
    limefs_lock(&fs->lock);
    for (uint32_t i = 0; i < fs->inodes.slot_count; i++) {
        const struct limefs_slot *slot = &fs->inodes.slots[i];
        struct limefs_view *view = slot->use == LIMEFS_SLOT_VIEW ? slot->what : NULL;
        if (view && view->id == id)
            view->lost = true;
    }
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

void limefs_view_show(struct limefs *fs, struct limefs_view *view, struct limefile_index *index)
{
    limefs_lock(&fs->lock);
    struct limefile_index *old = view->index;
    fs->snapshots.index_memory += limefile_index_memory(index);
    fs->snapshots.index_memory -= limefile_index_memory(old);
    view->index = index;
    notify_changed(fs, view);
    limefs_unlock(&fs->lock);
    limefs_view_touched(fs, view);
    limefile_index_free(old);
}

void limefs_view_set_moving(struct limefs *fs, struct limefs_view *view, bool moving)
{
    limefs_lock(&fs->lock);
    if (moving != view->moves % 2)
        view->moves++;
    limefs_unlock(&fs->lock);
}

/* view->fd keeps its number, because other threads are reading by it. */
int limefs_view_move(struct limefs *fs, struct limefs_view *view, int fd)
{
    struct stat st;
    limefs_own_begin();
    int fresh = limefile_reopen(fd, O_RDONLY);
    limefs_own_end();
    /* If the reopen failed, share the file open as fd, and its lock until the eviction. */
    int err = dup3(fresh < 0 ? fd : fresh, view->fd, O_CLOEXEC) < 0 ? -errno : 0;
    bool told = fstat(view->fd, &st) == 0;
    limefs_lock(&fs->lock);
    view->rewritten = true;
    notify_changed(fs, view);
    limefs_view_note_look(view, told ? &st : NULL);
    view->node->stamp = view->node->container.made =
        view->stamp; /* what the kernel means by the node now */
    limefs_unlock(&fs->lock);
    if (fresh >= 0)
        close(fresh);
    return err;
}

/* ---- mtimes that the kernel has received ---- */

/* Returns whether the mtime is among the `newest` last ones. */
static bool has(const struct limefs_mtimes *mtimes, const struct timespec *time, size_t newest)
{
    for (size_t i = 0; i < newest && i < mtimes->count && i < MTIMES_MOST; i++)
        if (limefile_time_equal(&mtimes->times[(mtimes->count - 1 - i) % MTIMES_MOST], time))
            return true;
    return false;
}

/* Makes room for one more. The capacity is a power of two. False: out of memory. */
static bool make_room(struct limefs_mtimes *mtimes)
{
    size_t count = mtimes->count;
    bool full = count == 0 || (count >= MTIMES_FIRST && (count & (count - 1)) == 0);
    if (!full || count >= MTIMES_MOST)
        return true;
    struct timespec *more =
        realloc(mtimes->times, (count ? 2 * count : MTIMES_FIRST) * sizeof *more);
    if (more)
        mtimes->times = more;
    return more;
}

/* Records of a snapshot mostly have one mtime or two: that of the last check, and the current
 * one. So only the last two are compared. */
void limefs_view_tells_mtime(struct limefs *fs, struct limefs_view *view,
                             const struct timespec *time)
{
    struct limefs_mtimes *mtimes = &view->mtimes;
    if (!fs->options.rw)
        return;
    limefs_lock(&fs->lock);
    if (!has(mtimes, time, 2) && make_room(mtimes))
        mtimes->times[mtimes->count++ % MTIMES_MOST] = *time;
    limefs_unlock(&fs->lock);
}

bool limefs_view_told_mtime(struct limefs *fs, const struct limefs_view *view,
                            const struct timespec *time)
{
    limefs_lock(&fs->lock);
    bool told = has(&view->mtimes, time, MTIMES_MOST);
    limefs_unlock(&fs->lock);
    return told;
}

/* ---- records that replaced others of their ordinal ---- */

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

uint64_t limefs_view_inode(struct limefs *fs, const struct limefs_view *view, uint64_t ordinal)
{
    limefs_lock(&fs->lock);
    const struct limefs_anew *anew = anew_of(view, ordinal);
    unsigned times = anew ? anew->times : 0;
    limefs_unlock(&fs->lock);
    return limefs_inode_of_record(view->slot, times, ordinal);
}

struct limefs_inode limefs_inode_now(struct limefs *fs, uint64_t id)
{
    struct limefs_inode it = limefs_inode_find(fs, id);
    it.gone = it.view && limefs_view_inode(fs, it.view, it.ordinal) != id;
    if (it.gone)
        it.view = NULL;
    return it;
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
    anew->times++;
    limefs_unlock(&fs->lock);
    free(fresh);
    return 0;
}
