/* view.c - views of containers: made, kept, put to sleep, woken */
#define _GNU_SOURCE
#include "views.h"
#include "caller.h"
#include "tree.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>

/* ---- making a view ---- */

/* Once for each state of the container. */
static void report_fault(struct limefs *fs, struct limefs_node *node,
                         const struct limefs_view *view)
{
    const struct limefile_finding *fault = limefile_index_fault(view->index);
    if (!fault || limefile_identity_same_data(&node->told, &view->stamp))
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

bool limefs_view_has_told(int err)
{
    return (err >= LIMEFILE_E_GAUGE_UNKNOWN && err <= LIMEFILE_E_GAUGE_TRACE) || err == -EIO ||
           err == -ENOMEM;
}

/* Once for each state of the file, as faults are. */
static void report_error(struct limefs *fs, struct limefs_node *node, const struct stat *st,
                         int err)
{
    struct limefile_identity stamp = limefile_identity_of(st);
    char path[PATH_MAX];
    if (!limefs_view_has_told(err) || limefile_identity_same_data(&node->told, &stamp))
        return;
    node->told = stamp;
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

/* In a tree another file has come, which the kernel is to look up. One that is empty may be a
 * container again soon. */
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

/* Whether what is there later can be told from it by its times. */
static void take_times(struct limefs_view *view, bool moving, const struct timespec *seen)
{
    view->sure = !moving && !limefile_time_is_racy(&view->st.st_ctim, seen);
    view->racy = moving || limefile_time_is_racy(&view->st.st_mtim, seen) ||
                 limefs_index_unread(view->index); /* to be tried again */
    view->stamp = limefile_identity_of(&view->st);
    if (view->sure)
        view->settled = view->stamp;
}

/* A new, pinned view of what is there now, `seen` when its name was looked at. The container's
 * lock is held. */
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
        limefs_view_retire(fs, node);
        node->view = view;
        limefs_view_awake(fs, view);
        limefs_views_evict(fs);
    }
    limefs_view_unlock(fs);
    if (err) {
        limefs_view_close(&opened);
        limefs_lock_destroy(&view->describing);
        free(view);
        return err;
    }
    *out = view;
    return 0;
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

/* What a container's name leads to: its attributes, and the time of the look at the name, from
 * before it. The name may be taken away between that and the look at the file; then the file's
 * ctime is not older than the time, however long ago either has been by now. */
struct found {
    struct stat st;
    struct timespec seen;
};

/* With fs->lock held. One that is written to shows it, unless it was replaced. */
static bool shows(struct limefs_view *view, const struct found *found)
{
    const struct stat *st = &found->st;
    struct limefile_identity stamp = limefile_identity_of(st);
    if (view->written)
        return limefile_identity_same_file(&view->stamp, &stamp);
    bool equal = limefile_identity_equal(&view->stamp, &stamp);
    bool moving = equal && view->fd >= 0 && limefile_is_being_written(view->fd, &st->st_ctim);
    view->sure = equal && !moving && !limefile_time_is_racy(&st->st_ctim, &found->seen);
    /* Once the tick and the change are over, a new view will tell. */
    return equal &&
           (!view->racy || moving || limefile_time_is_racy(&st->st_mtim, &found->seen));
}

static bool is_current(const struct limefs_node *node, struct limefs_view *view,
                       const struct found *found)
{
    return view == node->view && (view->moves % 2 || shows(view, found));
}

/* A pinned one that was made when its file's ctime was young: once that is old, another look
 * tells whether the headers were changed after all. */
static bool settles(struct limefs *fs, struct limefs_view *view, const struct found *found)
{
    struct limefile_identity stamp = limefile_identity_of(&found->st);
    limefs_lock(&fs->lock);
    bool known = !view->sure || limefile_identity_equal(&stamp, &view->settled);
    limefs_unlock(&fs->lock);
    return known || limefs_view_settle(fs, view);
}

/* The newest view, pinned, if it shows the container as it is; NULL if it does not. */
static struct limefs_view *pin_if_current(struct limefs *fs, struct limefs_node *node,
                                          const struct found *found)
{
    limefs_lock(&fs->lock);
    struct limefs_view *view = node->view;
    bool written = view && view->written;
    if (view && !written && !is_current(node, view, found))
        view = NULL;
    if (view)
        view->pins++;
    limefs_unlock(&fs->lock);
    if (view && !written && view->fd >= 0 && !settles(fs, view, found)) {
        limefs_view_unpin(fs, view);
        return NULL;
    }
    if (!written)
        return view;
    limefs_view_look_again(fs,
                           view); /* first: after it was written anew that may have failed */
    limefs_lock(&fs->lock);
    bool current = is_current(node, view, found);
    limefs_unlock(&fs->lock);
    if (current)
        return view;
    limefs_view_unpin(fs, view);
    return NULL;
}

/* Opens and indexes a pinned view again if it was asleep. Its container's lock is held. */
static int wake(struct limefs *fs, struct limefs_view *view, int file)
{
    struct stat st;
    struct limefs_opened opened;
    if (view->fd >= 0) {
        limefs_lock(&fs->lock);
        limefs_view_used(fs, view);
        limefs_unlock(&fs->lock);
        return 0;
    }
    int err = limefs_view_open(file, &view->stamp, &opened, &st);
    if (err)
        return err;
    limefs_lock(&fs->lock);
    show(view, &opened);
    view->racy = view->racy || opened.moving;
    limefs_view_awake(fs, view);
    limefs_views_evict(fs);
    limefs_view_unlock(fs);
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
        limefs_view_used(fs, view);
    }
    limefs_unlock(&fs->lock);
    if (!view || limefs_view_is_unchanged(fs, view))
        return view;
    limefs_view_unpin(fs, view);
    return NULL;
}

/* What its name leads to: an O_PATH descriptor, and the attributes. */
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

/* The kernel looks a name up once more if an older view is no longer shown, and then gives up.
 * So the view that comes next must last: what was changed a moment ago is read once it can be
 * told whether it is changed again. True: by now the name may lead to another file. */
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

/* What its name leads to now, pinned: by the newest view, or else a new one. */
static int look_by_name(struct limefs *fs, struct limefs_node *container,
                        struct limefs_view **out)
{
    struct found found;
    limefs_lock(&container->work);
    struct limefs_view *view = NULL;
    uint64_t moves;
    bool again;
    int err, file = -1, waits = 2; /* who replaces it all the time is not waited for */
    limefs_own_begin(); /* once for all of it: changing rights is what takes time here */
    do { /* what was looked at may be the old one by now, by our own doing, too */
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
        limefs_view_retire_gone(fs, container);
        limefs_view_unlock(fs);
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
