/* snapshot.c - create, open, evict and replace snapshots of containers (limefs_snapshot) */
#define _GNU_SOURCE
#include "snapshot_file.h"
#include "credentials.h"
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
    MTIMES_INITIAL = 8,
    MTIMES_MAX = 1 << 16, /* a power of two; further mtimes replace the oldest */
};

void limefs_snapshot_add_watch(struct limefs *fs, const struct limefs_snapshot_watch *watch)
{
    assert(fs->snapshots.watch_count < LIMEFS_WATCHES_MAX);
    fs->snapshots.watches[fs->snapshots.watch_count++] = watch;
}

static void notify_changed(struct limefs *fs, struct limefs_snapshot *snap)
{
    snap->change_count++;
    for (unsigned i = 0; i < fs->snapshots.watch_count; i++)
        if (fs->snapshots.watches[i]->changed)
            fs->snapshots.watches[i]->changed(snap);
}

void limefs_snapshot_note_change(struct limefs *fs, struct limefs_snapshot *snap)
{
    limefs_lock(&fs->lock);
    notify_changed(fs, snap);
    limefs_unlock(&fs->lock);
}

uint64_t limefs_snapshot_change_count(struct limefs *fs, const struct limefs_snapshot *snap)
{
    limefs_lock(&fs->lock);
    uint64_t changes = snap->change_count;
    limefs_unlock(&fs->lock);
    return changes;
}

/* ---- the LRU list of open snapshots (fs->lock held) ---- */

static void lru_remove(struct limefs *fs, struct limefs_snapshot *snap)
{
    *(snap->newer ? &snap->newer->older : &fs->snapshots.newest) = snap->older;
    *(snap->older ? &snap->older->newer : &fs->snapshots.oldest) = snap->newer;
    snap->newer = snap->older = NULL;
}

static void lru_insert(struct limefs *fs, struct limefs_snapshot *snap)
{
    snap->older = fs->snapshots.newest;
    snap->newer = NULL;
    *(fs->snapshots.newest ? &fs->snapshots.newest->newer : &fs->snapshots.oldest) = snap;
    fs->snapshots.newest = snap;
}

static uint64_t snapshot_memory(const struct limefs_snapshot *snap)
{
    size_t adapter_bytes = snap->adapter ? limefile_gauge_adapter_memory(snap->adapter) : 0;
    return limefile_index_memory(snap->index) + adapter_bytes;
}

static void lru_add_opened(struct limefs *fs, struct limefs_snapshot *snap)
{
    lru_insert(fs, snap);
    fs->snapshots.open_count++;
    fs->snapshots.index_memory += snapshot_memory(snap);
}

static void lru_move_to_front(struct limefs *fs, struct limefs_snapshot *snap)
{
    lru_remove(fs, snap);
    lru_insert(fs, snap);
}

/* Evicts a snapshot. Leaves the close() to unlock_and_close(), because it can block on slow
 * storage. If too many files wait to be closed, returns false and leaves the snapshot open. */
static bool evict_snapshot(struct limefs *fs, struct limefs_snapshot *snap)
{
    if (fs->snapshots.closing_count == LIMEFS_CLOSING_MAX)
        return false;
    lru_remove(fs, snap);
    fs->snapshots.open_count--;
    fs->snapshots.index_memory -= snapshot_memory(snap);
    fs->snapshots.closing[fs->snapshots.closing_count++] = (struct limefs_container_file){
        .fd = snap->fd, .index = snap->index, .adapter = snap->adapter};
    snap->fd = -1;
    snap->index = NULL;
    snap->adapter = NULL;
    for (unsigned i = 0; i < fs->snapshots.watch_count; i++)
        if (fs->snapshots.watches[i]->evicted)
            fs->snapshots.watches[i]->evicted(snap);
    return true;
}

/* Releases fs->lock, and then closes the files of snapshots that were evicted under this lock.
 * Called instead of limefs_unlock() after anything that may evict. */
static void unlock_and_close(struct limefs *fs)
{
    struct limefs_container_file closing[LIMEFS_CLOSING_MAX];
    unsigned count = fs->snapshots.closing_count;
    memcpy(closing, fs->snapshots.closing, count * sizeof closing[0]);
    fs->snapshots.closing_count = 0;
    limefs_unlock(&fs->lock);
    for (unsigned i = 0; i < count; i++)
        limefs_snapshot_close_file(&closing[i]);
}

static void free_snapshot(struct limefs *fs, struct limefs_snapshot *snap)
{
    while (snap->replaced) {
        struct limefs_replaced_record *replaced = snap->replaced;
        snap->replaced = replaced->next;
        free(replaced);
    }
    for (unsigned i = 0; i < fs->snapshots.watch_count; i++)
        if (fs->snapshots.watches[i]->freed)
            fs->snapshots.watches[i]->freed(snap);
    limefs_lock_destroy(&snap->metadata_lock);
    free(snap->reported_mtimes.times);
    free(snap);
}

/* Frees a snapshot that has neither pins nor lookups, and returns true. Keeps an open snapshot
 * that is its node's newest, because it may be used again. Evicts any other open snapshot
 * first: its file would keep the blocks of a deleted container on the disk. */
static bool free_if_unused(struct limefs *fs, struct limefs_snapshot *snap)
{
    if (snap->pins)
        return false;
    if (snap->fd >= 0 && snap->node->container.snap != snap)
        evict_snapshot(fs, snap);
    if (snap->lookups || snap->fd >= 0)
        return false;
    if (snap->node->container.snap == snap)
        snap->node->container.snap = NULL;
    limefs_slot_free(fs, snap->slot);
    limefs_node_put(fs, snap->node);
    free_snapshot(fs, snap);
    return true;
}

/* Drops the node's newest snapshot, which is out of date. */
static void drop_newest(struct limefs *fs, struct limefs_node *node)
{
    struct limefs_snapshot *snap = node->container.snap;
    node->container.snap = NULL;
    if (snap)
        free_if_unused(fs, snap);
}

/* Like drop_newest(), if the name no longer exists. Keeps a snapshot that is being written to:
 * the name may soon exist again, and a new snapshot could not lock the container once more. */
static void drop_removed(struct limefs *fs, struct limefs_node *node)
{
    if (node->container.snap && node->container.snap->state != LIMEFS_SNAPSHOT_WRITTEN)
        drop_newest(fs, node);
}

/* The newest snapshot may exceed the memory: else, each request would have to reopen it. */
static bool exceeds_limits(const struct limefs *fs, const struct limefs_snapshot *snap)
{
    return fs->snapshots.open_count > fs->options.max_open ||
           (fs->snapshots.index_memory > LIMEFS_INDEX_MEMORY && snap != fs->snapshots.newest);
}

static void evict_excess(struct limefs *fs)
{
    struct limefs_snapshot *snap = fs->snapshots.oldest;
    while (snap && exceeds_limits(fs, snap)) {
        struct limefs_snapshot *newer = snap->newer;
        if (snap->pins == 0 && evict_snapshot(fs, snap))
            free_if_unused(fs, snap);
        snap = newer;
    }
}

/* ---- pins and lookups ---- */

void limefs_snapshot_note_removal(struct limefs *fs, struct limefs_node *parent,
                                  const char *name)
{
    limefs_lock(&fs->lock);
    struct limefs_node *node = limefs_node_find_child(fs, parent, name);
    if (node)
        drop_removed(fs, node);
    unlock_and_close(fs);
}

void limefs_snapshot_add_pin(struct limefs *fs, struct limefs_snapshot *snap)
{
    limefs_lock(&fs->lock);
    snap->pins++;
    limefs_unlock(&fs->lock);
}

void limefs_snapshot_unpin(struct limefs *fs, struct limefs_snapshot *snap)
{
    limefs_lock(&fs->lock);
    snap->pins--;
    if (!free_if_unused(fs, snap))
        evict_excess(fs);
    unlock_and_close(fs);
}

void limefs_snapshot_add_lookups(struct limefs *fs, struct limefs_snapshot *snap, uint64_t n)
{
    limefs_lock(&fs->lock);
    snap->lookups += n;
    limefs_unlock(&fs->lock);
}

uint64_t limefs_snapshot_count_name_lookups(struct limefs *fs, struct limefs_snapshot *snap,
                                            uint64_t n)
{
    limefs_lock(&fs->lock);
    uint64_t lookups = snap->name_lookups += n;
    limefs_unlock(&fs->lock);
    return lookups;
}

void limefs_snapshot_forget(struct limefs *fs, struct limefs_snapshot *snap, uint64_t n)
{
    limefs_lock(&fs->lock);
    snap->lookups -= n < snap->lookups ? n : snap->lookups;
    free_if_unused(fs, snap);
    unlock_and_close(fs);
}

void limefs_snapshots_release(struct limefs *fs)
{
    for (uint32_t i = 0; i < fs->inodes.slot_count; i++) {
        if (fs->inodes.slots[i].use != LIMEFS_SLOT_SNAPSHOT)
            continue;
        struct limefs_snapshot *snap = fs->inodes.slots[i].object;
        limefs_lock(&fs->lock);
        if (snap->fd >= 0)
            evict_snapshot(fs, snap);
        unlock_and_close(fs);
        free_snapshot(fs, snap);
    }
}

/* Logs a fault of the container, unless it was logged since the container's latest change. */
static void log_fault(struct limefs *fs, struct limefs_node *node,
                      const struct limefs_snapshot *snap)
{
    const struct limefile_finding *fault = limefile_index_fault(snap->index);
    if (!fault || limefile_identity_same_data(&node->container.reported_fault, &snap->stamp))
        return;
    node->container.reported_fault = snap->stamp;
    char path[PATH_MAX], text[256];
    const char *label = limefs_tree_display_path(fs, node, path, sizeof path);
    limefile_finding_text(fault, text, sizeof text);
    if (limefile_index_is_container(snap->index))
        limefs_log(LOG_WARNING, "%s: index: %s; the %llu records before it are shown", label,
                   text, (unsigned long long)limefile_index_count(snap->index));
    else
        limefs_log(LOG_WARNING, "%s: index: %s; not a LIME container", label, text);
}

bool limefs_snapshot_error_is_logged(int err)
{
    return (err >= LIMEFILE_E_GAUGE_UNKNOWN && err <= LIMEFILE_E_GAUGE_TRACE) || err == -EIO ||
           err == -ENOMEM;
}

/* Logs why a file cannot be opened, unless this was logged since the file's latest change. */
static void log_open_error(struct limefs *fs, struct limefs_node *node, const struct stat *st,
                           int err)
{
    struct limefile_identity stamp = limefile_identify(st);
    char path[PATH_MAX];
    if (!limefs_snapshot_error_is_logged(err) ||
        limefile_identity_same_data(&node->container.reported_fault, &stamp))
        return;
    node->container.reported_fault = stamp;
    limefs_log(LOG_ERR, "%s: open: %s", limefs_tree_display_path(fs, node, path, sizeof path),
               limefile_strerror(err));
}

static struct timespec realtime_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time;
}

static void attach_file(struct limefs_snapshot *snap,
                        const struct limefs_container_file *opened)
{
    snap->fd = opened->fd;
    snap->index = opened->index;
    snap->adapter = opened->adapter;
}

/* Returns true if the name, in a tree, now leads to a file that is not a container, so that the
 * kernel must look it up. An empty file does not count: it may soon be a container again. */
static bool has_become_plain(const struct limefs_node *node,
                             const struct limefs_container_file *opened, const struct stat *st)
{
    return node->parent && !opened->adapter && st->st_size > 0 &&
           !limefs_index_read_error(opened->index) &&
           !limefile_index_is_container(opened->index);
}

static int open_container_file(struct limefs *fs, struct limefs_node *node, int file,
                               struct limefs_container_file *out, struct stat *st)
{
    int err = limefs_snapshot_open_file(file, NULL, out, st);
    if (err) {
        log_open_error(fs, node, st, err);
    } else if (has_become_plain(node, out, st)) {
        limefs_snapshot_close_file(out);
        err = -ESTALE;
    }
    return err;
}

/* Stores the identity of the file, and whether its times will show each later change. */
static void set_state(struct limefs_snapshot *snap, bool being_written,
                      const struct timespec *seen)
{
    snap->stamp = limefile_identify(&snap->st);
    bool is_valid = limefs_identity_is_reliable(&snap->stamp, seen, being_written);
    bool mtime_is_valid = !being_written && !limefile_time_is_suspect(&snap->stamp.mtime, seen);
    snap->state = is_valid         ? LIMEFS_SNAPSHOT_VALID
                  : mtime_is_valid ? LIMEFS_SNAPSHOT_RECENT
                                   : LIMEFS_SNAPSHOT_SUSPECT;
    if (limefs_index_read_error(snap->index)) /* makes a later check read the file again */
        snap->state = LIMEFS_SNAPSHOT_SUSPECT;
    if (is_valid)
        snap->confirmed = snap->stamp;
}

/* Makes a pinned snapshot of `file`, an O_PATH descriptor that was opened by name after the
 * time `seen`. Called with node->io_lock held. */
static int create_snapshot(struct limefs *fs, struct limefs_node *node, int file,
                           const struct timespec *seen, struct limefs_snapshot **out)
{
    struct limefs_snapshot *snap = calloc(1, sizeof *snap);
    if (!snap)
        return -ENOMEM;
    struct limefs_container_file opened;
    int err = open_container_file(fs, node, file, &opened, &snap->st);
    if (err) {
        free(snap);
        return err;
    }
    attach_file(snap, &opened);
    set_state(snap, opened.being_written, seen);
    snap->node = node;
    snap->pins = 1;
    limefs_lock_init(&snap->metadata_lock, LIMEFS_LOCK_METADATA);
    log_fault(fs, node, snap);

    limefs_lock(&fs->lock);
    err = limefs_slot_allocate(fs, LIMEFS_SLOT_SNAPSHOT, snap, &snap->slot);
    if (!err) {
        snap->id = ++fs->inodes.ids;
        limefs_node_get(node);
        drop_newest(fs, node);
        node->container.snap = snap;
        lru_add_opened(fs, snap);
        evict_excess(fs);
    }
    unlock_and_close(fs);
    if (err) {
        limefs_snapshot_close_file(&opened);
        limefs_lock_destroy(&snap->metadata_lock);
        free(snap);
        return err;
    }
    *out = snap;
    return 0;
}

/* ---- the newest snapshot of a container ---- */

/* Returns a number that changes when this mount makes earlier checks of the container invalid.
 * It is odd while such a change is in progress. */
static uint64_t get_file_seq(struct limefs *fs, const struct limefs_node *node)
{
    limefs_lock(&fs->lock);
    uint64_t seq = node->container.snap ? node->container.snap->file_seq : 0;
    limefs_unlock(&fs->lock);
    return seq;
}

/* The file that a container's name leads to. seen: the time before the name was resolved. If
 * the name is removed after that, the file gets a ctime that is not before `seen`. */
struct named_file {
    struct stat st;
    struct timespec seen;
};

enum limefs_snapshot_validity limefs_snapshot_validity(enum limefs_snapshot_state state,
                                                       const struct limefile_identity *seen,
                                                       const struct limefile_identity *now,
                                                       const struct timespec *clock,
                                                       bool being_written)
{
    if (state == LIMEFS_SNAPSHOT_WRITTEN)
        return limefile_identity_same_file(seen, now) ? LIMEFS_SNAPSHOT_CURRENT
                                                      : LIMEFS_SNAPSHOT_OUTDATED;
    switch (limefile_validity(seen, clock, being_written, now)) {
    case LIMEFILE_CHANGED:
        return LIMEFS_SNAPSHOT_OUTDATED;
    case LIMEFILE_SUSPECT: /* no difference so far; a later check decides */
        return LIMEFS_SNAPSHOT_CURRENT;
    default:
        return state == LIMEFS_SNAPSHOT_VALID    ? LIMEFS_SNAPSHOT_CURRENT
               : state == LIMEFS_SNAPSHOT_RECENT ? LIMEFS_SNAPSHOT_UNCERTAIN
                                                 : LIMEFS_SNAPSHOT_OUTDATED;
    }
}

/* Returns whether a pinned snapshot shows the named file. Called with node->io_lock held. */
static bool is_snapshot_current(struct limefs *fs, struct limefs_snapshot *snap,
                                const struct named_file *found)
{
    struct limefile_identity now = limefile_identify(&found->st);
    limefs_lock(&fs->lock);
    bool newest = snap->node->container.snap == snap, being_replaced = snap->file_seq % 2;
    enum limefs_snapshot_state state = snap->state;
    struct limefile_identity seen = snap->stamp;
    limefs_unlock(&fs->lock);
    if (!newest || being_replaced)
        return newest;
    bool open = snap->fd >= 0, must_check = state != LIMEFS_SNAPSHOT_VALID;
    bool being_written =
        open && must_check && limefile_is_being_written(snap->fd, &found->st.st_ctim);
    enum limefs_snapshot_validity answer =
        limefs_snapshot_validity(state, &seen, &now, &found->seen, being_written);
    if (answer != LIMEFS_SNAPSHOT_UNCERTAIN || !open) /* reopen_evicted() indexes it again */
        return answer != LIMEFS_SNAPSHOT_OUTDATED;
    if (!limefs_snapshot_revalidate(fs, snap))
        return false;
    limefs_lock(&fs->lock);
    if (snap->state == LIMEFS_SNAPSHOT_RECENT &&
        limefile_identity_equal(&snap->confirmed, &snap->stamp))
        snap->state = LIMEFS_SNAPSHOT_VALID;
    limefs_unlock(&fs->lock);
    return true;
}

/* Returns the newest snapshot, pinned, or NULL if it does not show the named file. */
static struct limefs_snapshot *pin_if_current(struct limefs *fs, struct limefs_node *node,
                                              const struct named_file *found)
{
    limefs_lock(&fs->lock);
    struct limefs_snapshot *snap = node->container.snap;
    bool written = snap && snap->state == LIMEFS_SNAPSHOT_WRITTEN;
    if (snap)
        snap->pins++;
    limefs_unlock(&fs->lock);
    if (written) /* snap->st may be old, because an fstat() after a rewrite has failed */
        limefs_snapshot_refresh_stat(fs, snap);
    if (!snap || is_snapshot_current(fs, snap, found))
        return snap;
    limefs_snapshot_unpin(fs, snap);
    return NULL;
}

/* Opens and indexes a pinned snapshot that was evicted. Called with node->io_lock held. */
static int reopen_evicted(struct limefs *fs, struct limefs_snapshot *snap, int file)
{
    struct stat st;
    struct limefs_container_file opened;
    if (snap->fd >= 0) {
        limefs_lock(&fs->lock);
        lru_move_to_front(fs, snap);
        limefs_unlock(&fs->lock);
        return 0;
    }
    int err = limefs_snapshot_open_file(file, &snap->stamp, &opened, &st);
    if (err)
        return err;
    limefs_lock(&fs->lock);
    attach_file(snap, &opened);
    if (opened.being_written)
        snap->state = LIMEFS_SNAPSHOT_SUSPECT;
    lru_add_opened(fs, snap);
    evict_excess(fs);
    unlock_and_close(fs);
    return 0;
}

/* Returns the newest snapshot, pinned, if it is open and certainly shows the container, without
 * resolving the container's name; else NULL. */
static struct limefs_snapshot *pin_if_unchanged(struct limefs *fs,
                                                struct limefs_node *container)
{
    limefs_lock(&fs->lock);
    struct limefs_snapshot *snap = container->container.snap;
    if (snap && snap->fd < 0)
        snap = NULL;
    if (snap) {
        snap->pins++;
        lru_move_to_front(fs, snap);
    }
    limefs_unlock(&fs->lock);
    if (!snap || limefs_snapshot_is_unchanged(fs, snap))
        return snap;
    limefs_snapshot_unpin(fs, snap);
    return NULL;
}

/* Opens the file that the container's name leads to. Returns an O_PATH descriptor or -errno. */
static int open_named_file(struct limefs *fs, struct limefs_node *container,
                           struct named_file *found)
{
    found->seen = realtime_now();
    int file = limefs_tree_open_name(fs, container);
    if (file < 0 || fstat(file, &found->st) == 0)
        return file;
    int err = -errno;
    close(file);
    return err;
}

/* Called before a new snapshot replaces an outdated one. The kernel repeats a lookup only once,
 * so the new one must not be outdated soon: after a recent change, waits until the times would
 * show another one. Returns true if it waited, so that the name may lead to another file. */
static bool wait_past_clock_tick(struct limefs *fs, const struct limefs_node *container,
                                 const struct named_file *found)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    limefs_lock(&fs->lock);
    bool is_known = container->references > 0;
    limefs_unlock(&fs->lock);
    struct timespec time = found->seen;
    int i = 0;
    for (; i < 12 && is_known && limefile_time_is_suspect(&found->st.st_mtim, &time); i++) {
        nanosleep(&pause, NULL);
        time = realtime_now();
    }
    return i > 0;
}

/* Gets a pinned snapshot of the file that the name leads to: the newest one, or a new one. */
static int pin_by_name(struct limefs *fs, struct limefs_node *container,
                       struct limefs_snapshot **out)
{
    struct named_file found;
    limefs_lock(&container->io_lock);
    struct limefs_snapshot *snap = NULL;
    bool again;
    int err, file = -1, waits = 2; /* a program may replace the file again and again */
    limefs_daemon_creds_enter();   /* once for all calls: switching takes the most time here */
    do { /* repeat all if this mount, or another program, may have replaced the file */
        uint64_t seq = get_file_seq(fs, container);
        if (file >= 0)
            close(file);
        file = open_named_file(fs, container, &found);
        err = file < 0 ? file : 0;
        if (!err)
            snap = pin_if_current(fs, container, &found);
        again = !err && !snap &&
                (seq != get_file_seq(fs, container) ||
                 (waits-- > 0 && wait_past_clock_tick(fs, container, &found)));
    } while (again);
    if (!err) {
        err = snap ? reopen_evicted(fs, snap, file)
                   : create_snapshot(fs, container, file, &found.seen, &snap);
        *out = snap;
    } else if (err == -ENOENT) {
        limefs_lock(&fs->lock);
        drop_removed(fs, container);
        unlock_and_close(fs);
    }
    limefs_unlock(&container->io_lock);
    if (file >= 0)
        close(file);
    limefs_daemon_creds_leave();
    if (err && snap)
        limefs_snapshot_unpin(fs, snap);
    return err;
}

int limefs_snapshot_get_current(struct limefs *fs, struct limefs_node *container,
                                struct limefs_snapshot **out)
{
    *out = pin_if_unchanged(fs, container);
    int err = *out ? 0 : pin_by_name(fs, container, out);
    if (err)
        return err;
    err = limefs_creds_check_access((*out)->fd, R_OK);
    if (err)
        limefs_snapshot_unpin(fs, *out);
    return err;
}

int limefs_snapshot_pin(struct limefs *fs, struct limefs_snapshot *snap)
{
    limefs_lock(&fs->lock);
    bool is_open = snap->fd >= 0;
    snap->pins++;
    limefs_unlock(&fs->lock);
    if (is_open)
        return 0;
    int file = limefs_tree_open_name(fs, snap->node);
    limefs_lock(&snap->node->io_lock);
    int err = file < 0 ? file : reopen_evicted(fs, snap, file);
    limefs_unlock(&snap->node->io_lock);
    if (file >= 0)
        close(file);
    if (err)
        limefs_snapshot_unpin(fs, snap);
    return err ? -ESTALE : 0;
}

int limefs_snapshot_find_record(struct limefs *fs, struct limefs_node *container,
                                const char *name, struct limefs_snapshot **snap,
                                struct limefile_record *record)
{
    int err = limefs_snapshot_get_current(fs, container, snap);
    if (err)
        return err;
    struct limefile_index *index = limefs_snapshot_index(fs, *snap);
    err = limefile_name_find(index, name, record);
    limefile_index_free(index);
    if (err)
        limefs_snapshot_unpin(fs, *snap);
    return err;
}

/* ---- what a writer changes ---- */

void limefs_snapshot_set_written(struct limefs *fs, struct limefs_snapshot *snap, bool written)
{
    limefs_snapshot_refresh_stat(fs, snap);
    limefs_lock(&fs->lock);
    snap->state = written ? LIMEFS_SNAPSHOT_WRITTEN : LIMEFS_SNAPSHOT_RECENT;
    snap->file_seq += 2; /* earlier checks are invalid */
    notify_changed(fs, snap);
    limefs_unlock(&fs->lock);
}

void limefs_snapshot_record_sync_error(struct limefs *fs, uint64_t id)
{
    limefs_lock(&fs->lock);
    for (uint32_t i = 0; i < fs->inodes.slot_count; i++) {
        const struct limefs_slot *slot = &fs->inodes.slots[i];
        struct limefs_snapshot *snap = slot->use == LIMEFS_SLOT_SNAPSHOT ? slot->object : NULL;
        if (snap && snap->id == id)
            snap->has_sync_error = true;
    }
    limefs_unlock(&fs->lock);
}

bool limefs_snapshot_consume_sync_error(struct limefs *fs, struct limefs_snapshot *snap)
{
    limefs_lock(&fs->lock);
    bool had_error = snap->has_sync_error;
    snap->has_sync_error = false;
    limefs_unlock(&fs->lock);
    return had_error;
}

void limefs_snapshot_invalidate(struct limefs *fs, struct limefs_snapshot *snap)
{
    limefs_lock(&fs->lock);
    snap->stamp = snap->confirmed = (struct limefile_identity){0};
    limefs_unlock(&fs->lock);
}

void limefs_snapshot_replace_index(struct limefs *fs, struct limefs_snapshot *snap,
                                   struct limefile_index *index)
{
    limefs_lock(&fs->lock);
    struct limefile_index *old = snap->index;
    fs->snapshots.index_memory += limefile_index_memory(index);
    fs->snapshots.index_memory -= limefile_index_memory(old);
    snap->index = index;
    notify_changed(fs, snap);
    limefs_unlock(&fs->lock);
    limefs_snapshot_refresh_stat(fs, snap);
    limefile_index_free(old);
}

void limefs_snapshot_set_replacing(struct limefs *fs, struct limefs_snapshot *snap,
                                   bool replacing)
{
    limefs_lock(&fs->lock);
    if (replacing != snap->file_seq % 2)
        snap->file_seq++;
    limefs_unlock(&fs->lock);
}

/* snap->fd keeps its number, because other threads read from it. */
int limefs_snapshot_replace_file(struct limefs *fs, struct limefs_snapshot *snap, int fd)
{
    struct stat st;
    limefs_daemon_creds_enter();
    int reopened = limefile_reopen(fd, O_RDONLY);
    limefs_daemon_creds_leave();
    /* If the reopen fails, snap->fd shares fd's open file, and so its lock, until eviction. */
    int err = dup3(reopened < 0 ? fd : reopened, snap->fd, O_CLOEXEC) < 0 ? -errno : 0;
    bool has_stat = fstat(snap->fd, &st) == 0;
    limefs_lock(&fs->lock);
    snap->file_replaced = true;
    notify_changed(fs, snap);
    limefs_snapshot_note_check(snap, has_stat ? &st : NULL);
    /* To the kernel, the node now stands for this file. */
    snap->node->stamp = snap->node->container.mkdir_identity = snap->stamp;
    limefs_unlock(&fs->lock);
    if (reopened >= 0)
        close(reopened);
    return err;
}

/* ---- mtimes that the kernel has received ---- */

/* Returns true if the mtime is among the latest n. */
static bool has_mtime(const struct limefs_reported_mtimes *mtimes, const struct timespec *time,
                      size_t n)
{
    for (size_t i = 0; i < n && i < mtimes->count && i < MTIMES_MAX; i++)
        if (limefile_time_equal(&mtimes->times[(mtimes->count - 1 - i) % MTIMES_MAX], time))
            return true;
    return false;
}

/* Makes room for one more mtime. The array's size is a power of two. False: out of memory. */
static bool reserve_mtime(struct limefs_reported_mtimes *mtimes)
{
    size_t count = mtimes->count;
    bool full = count == 0 || (count >= MTIMES_INITIAL && (count & (count - 1)) == 0);
    if (!full || count >= MTIMES_MAX)
        return true;
    struct timespec *more =
        realloc(mtimes->times, (count ? 2 * count : MTIMES_INITIAL) * sizeof *more);
    if (more)
        mtimes->times = more;
    return more;
}

/* Most snapshots have records with one or two mtimes, so only the latest two are compared. */
void limefs_snapshot_note_mtime(struct limefs *fs, struct limefs_snapshot *snap,
                                const struct timespec *time)
{
    struct limefs_reported_mtimes *mtimes = &snap->reported_mtimes;
    if (!fs->options.rw)
        return;
    limefs_lock(&fs->lock);
    if (!has_mtime(mtimes, time, 2) && reserve_mtime(mtimes))
        mtimes->times[mtimes->count++ % MTIMES_MAX] = *time;
    limefs_unlock(&fs->lock);
}

bool limefs_snapshot_has_reported_mtime(struct limefs *fs, const struct limefs_snapshot *snap,
                                        const struct timespec *time)
{
    limefs_lock(&fs->lock);
    bool reported = has_mtime(&snap->reported_mtimes, time, MTIMES_MAX);
    limefs_unlock(&fs->lock);
    return reported;
}

/* ---- records that replaced others of their ordinal ---- */

static struct limefs_replaced_record *find_replaced(const struct limefs_snapshot *snap,
                                                    uint64_t ordinal)
{
    struct limefs_replaced_record *replaced = snap->replaced;
    while (replaced && replaced->ordinal != ordinal)
        replaced = replaced->next;
    return replaced;
}

uint64_t limefs_snapshot_generation(struct limefs *fs, const struct limefs_snapshot *snap,
                                    uint64_t ordinal)
{
    limefs_lock(&fs->lock);
    const struct limefs_replaced_record *replaced = find_replaced(snap, ordinal);
    uint64_t generation = replaced ? replaced->generation : snap->id;
    limefs_unlock(&fs->lock);
    return generation;
}

uint64_t limefs_snapshot_record_id(struct limefs *fs, const struct limefs_snapshot *snap,
                                   uint64_t ordinal)
{
    limefs_lock(&fs->lock);
    const struct limefs_replaced_record *replaced = find_replaced(snap, ordinal);
    unsigned count = replaced ? replaced->count : 0;
    limefs_unlock(&fs->lock);
    return limefs_inode_record_id(snap->slot, count, ordinal);
}

struct limefs_inode limefs_inode_find_current(struct limefs *fs, uint64_t id)
{
    struct limefs_inode inode = limefs_inode_find(fs, id);
    inode.is_stale =
        inode.snap && limefs_snapshot_record_id(fs, inode.snap, inode.ordinal) != id;
    if (inode.is_stale)
        inode.snap = NULL;
    return inode;
}

int limefs_snapshot_renew_record(struct limefs *fs, struct limefs_snapshot *snap,
                                 uint64_t ordinal)
{
    struct limefs_replaced_record *added = calloc(1, sizeof *added);
    if (!added)
        return -ENOMEM;
    limefs_lock(&fs->lock);
    struct limefs_replaced_record *replaced = find_replaced(snap, ordinal);
    if (!replaced) {
        *added = (struct limefs_replaced_record){.next = snap->replaced, .ordinal = ordinal};
        snap->replaced = replaced = added;
        added = NULL;
    }
    replaced->generation = ++fs->inodes.ids;
    replaced->count++;
    limefs_unlock(&fs->lock);
    free(added);
    return 0;
}
