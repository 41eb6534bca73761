/* test_snapshot.c - snapshots of containers: created, kept, evicted, watched */
#define _GNU_SOURCE
#include "nodes.h"
#include "tree.h"

#include <errno.h>

static char directory[256];
static struct limefs *fs;
static struct limefs_node *one, *two;

static void write_container(const char *name, size_t n)
{
    char path[300];
    struct bytes b = {0};
    bytes_record(&b, "data", n, 'x', 0xc0);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, b.at, b.n) == (ssize_t)b.n);
    close(fd);
    bytes_free(&b);
}

static struct limefs_node *container(const char *name)
{
    struct limefs_tree_entry found = {.kind = LIMEFS_CONTAINER};
    assert_int_equal(fstatat(fs->source_fd, name, &found.st, 0), 0);
    return limefs_node_lookup_child(fs, fs->inodes.root, name, &found);
}

static int set_up(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/limefs-unit-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(directory));
    write_container("one", 100);
    write_container("two", 200);
    fs = new_tree(directory);
    one = container("one");
    two = container("two");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlinkat(fs->source_fd, "one", 0);
    unlinkat(fs->source_fd, "two", 0);
    free_tree(fs);
    return rmdir(directory);
}

static struct limefs_snapshot *current(struct limefs_node *node)
{
    struct limefs_snapshot *view;
    assert_int_equal(limefs_snapshot_get_current(fs, node, &view), 0);
    return view;
}

TEST_WITH(test_same, set_up, tear_down)
{
    struct limefile_record record;
    struct limefs_snapshot *view = current(one), *found;
    assert_ptr_equal(current(one), view);
    assert_int_equal(view->pins, 2);
    struct limefs_inode it =
        limefs_inode_find_current(fs, limefs_snapshot_record_id(fs, view, 1));
    assert_ptr_equal(it.snap, view);
    assert_int_equal(it.ordinal, 1);
    assert_int_equal(limefs_snapshot_find_record(fs, one, "001-data", &found, &record), 0);
    assert_ptr_equal(found, view);
    assert_int_equal(record.bytes, 100);
    assert_int_not_equal(limefs_snapshot_find_record(fs, one, "002-data", &found, &record), 0);
    assert_int_equal(view->pins, 3);
    for (int i = 0; i < 3; i++)
        limefs_snapshot_unpin(fs, view);
}

/* A record that replaces another has a new id: a list with the old id may be in transit. */
TEST_WITH(test_renewed_record, set_up, tear_down)
{
    uint64_t ids[40];
    struct limefs_snapshot *view = current(one);
    for (int i = 0; i < 40; i++) {
        ids[i] = limefs_snapshot_record_id(fs, view, 1);
        for (int j = 0; j < i; j++) {
            assert_true(ids[j] != ids[i]);
            assert_null(limefs_inode_find_current(fs, ids[j]).snap);
            assert_true(limefs_inode_find_current(fs, ids[j]).is_stale);
            assert_ptr_equal(limefs_inode_find(fs, ids[j]).snap, view);
            assert_int_equal(limefs_inode_find(fs, ids[j]).ordinal, 1);
        }
        assert_ptr_equal(limefs_inode_find_current(fs, ids[i]).snap, view);
        assert_int_equal(limefs_snapshot_renew_record(fs, view, 1), 0);
    }
    assert_ptr_equal(limefs_inode_find_current(fs, limefs_snapshot_record_id(fs, view, 2)).snap,
                     view);
    limefs_snapshot_unpin(fs, view);
}

/* Another container under the same name gets another snapshot in another slot; the old one
 * stays open for its users. */
TEST_WITH(test_replaced, set_up, tear_down)
{
    struct limefs_snapshot *old = current(one);
    uint64_t id = old->id;
    assert_int_equal(unlinkat(fs->source_fd, "one", 0), 0);
    write_container("one", 300);
    struct limefs_snapshot *new = current(one);
    assert_ptr_not_equal(new, old);
    assert_true(new->id > id &&new->slot != old->slot);
    assert_true(old->fd >= 0);
    limefs_snapshot_unpin(fs, old);
    limefs_snapshot_unpin(fs, new);
}

/* max_open is 1: the last used snapshot stays open, and a pin reopens the other. */
TEST_WITH(test_evict, set_up, tear_down)
{
    struct limefs_snapshot *first = current(one);
    limefs_snapshot_add_lookups(fs, first, 1); /* the kernel knows a record */
    struct limefs_snapshot *second = current(two);
    limefs_snapshot_add_lookups(fs, second, 1);
    assert_true(first->fd >= 0); /* pinned */
    limefs_snapshot_unpin(fs, first);
    limefs_snapshot_unpin(fs, second);
    assert_int_equal(fs->snapshots.open_count, 1);
    assert_true((first->fd < 0) != (second->fd < 0));
    struct limefs_snapshot *evicted = first->fd < 0 ? first : second;
    assert_int_equal(limefs_snapshot_pin(fs, evicted), 0);
    assert_true(evicted->fd >= 0);
    limefs_snapshot_unpin(fs, evicted);
    limefs_snapshot_forget(fs, first, 1);
    limefs_snapshot_forget(fs, second, 1);
}

/* ---- the kind of a file ---- */

/* Checks a container; reports whether its last change is certainly or possibly suspect. */
static bool check_container(bool *is_suspect, bool *may_be_suspect)
{
    struct limefs_tree_entry found;
    struct timespec before, after;
    clock_gettime(CLOCK_REALTIME, &before);
    assert_int_equal(limefs_tree_detect(false, fs->source_fd, "one", &found), 0);
    clock_gettime(CLOCK_REALTIME, &after);
    assert_int_equal(found.kind, LIMEFS_CONTAINER);
    *may_be_suspect = limefile_time_is_suspect(&found.st.st_ctim, &before);
    *is_suspect = limefile_time_is_suspect(&found.st.st_ctim, &after);
    return found.is_certain;
}

/* A change in the same clock tick is invisible, so no check is certain before its end. */
TEST_WITH(test_certain, set_up, tear_down)
{
    bool is_suspect, may_be_suspect;
    do {
        write_container("one", 100);
        bool sure = check_container(&is_suspect, &may_be_suspect);
        assert_false(sure && is_suspect);
    } while (!is_suspect); /* another process may have delayed the check */
    do {
        bool sure = check_container(&is_suspect, &may_be_suspect);
        assert_true(sure || may_be_suspect);
    } while (may_be_suspect);
}

/* ---- watches ---- */

static unsigned changed, freed, both;
static struct limefs_snapshot *last_snapshot;

static void on_changed(struct limefs_snapshot *view)
{
    changed++;
    last_snapshot = view;
}

static void on_freed(struct limefs_snapshot *view)
{
    freed++;
    last_snapshot = view;
}

static void on_changed_second(struct limefs_snapshot *view)
{
    assert_ptr_equal(last_snapshot, view); /* in the order of registration */
    both++;
}

TEST_WITH(test_watch, set_up, tear_down)
{
    static const struct limefs_snapshot_watch first = {.changed = on_changed,
                                                       .freed = on_freed},
                                              second = {.changed = on_changed_second};
    limefs_snapshot_add_watch(fs, &first);
    limefs_snapshot_add_watch(fs, &second);
    struct limefs_snapshot *view = current(one);
    assert_int_equal(changed + freed, 0);
    limefs_snapshot_note_change(fs, view);
    assert_int_equal(changed, 1);
    assert_int_equal(both, 1);
    struct limefile_index *index = limefs_snapshot_index(fs, view);
    limefs_snapshot_replace_index(fs, view, index); /* the snapshot owns the index */
    assert_true(changed > 1 && changed == both);
    limefs_snapshot_invalidate(fs, view);
    struct limefs_snapshot *next = current(one);
    assert_ptr_not_equal(next, view);
    assert_int_equal(freed, 0);
    limefs_snapshot_unpin(fs, view); /* the last reference; no name leads to it */
    assert_int_equal(freed, 1);
    assert_ptr_equal(last_snapshot, view);
    limefs_snapshot_unpin(fs, next);
}

/* ---- the validity of a snapshot ---- */

/* Every row of the table in snapshot.h. Last change: 100.5 s; `later` is in ms after that. */
TEST(test_validity)
{
    static const struct {
        enum limefs_snapshot_state state;
        bool same_file, equal;
        int later;
        bool being_written;
        enum limefs_snapshot_validity answer;
    } rows[] = {
        {LIMEFS_SNAPSHOT_WRITTEN, true, false, 0, false, LIMEFS_SNAPSHOT_CURRENT},
        {LIMEFS_SNAPSHOT_WRITTEN, true, true, 5000, true, LIMEFS_SNAPSHOT_CURRENT},
        {LIMEFS_SNAPSHOT_WRITTEN, false, false, 0, false, LIMEFS_SNAPSHOT_OUTDATED},
        {LIMEFS_SNAPSHOT_VALID, true, true, 5, false, LIMEFS_SNAPSHOT_CURRENT},
        {LIMEFS_SNAPSHOT_VALID, true, true, 5000, true, LIMEFS_SNAPSHOT_CURRENT},
        {LIMEFS_SNAPSHOT_VALID, true, false, 5000, false, LIMEFS_SNAPSHOT_OUTDATED},
        {LIMEFS_SNAPSHOT_RECENT, true, true, 5, false, LIMEFS_SNAPSHOT_CURRENT},
        {LIMEFS_SNAPSHOT_RECENT, true, true, 5000, true, LIMEFS_SNAPSHOT_CURRENT},
        {LIMEFS_SNAPSHOT_RECENT, true, true, 5000, false, LIMEFS_SNAPSHOT_UNCERTAIN},
        {LIMEFS_SNAPSHOT_RECENT, true, false, 5, true, LIMEFS_SNAPSHOT_OUTDATED},
        {LIMEFS_SNAPSHOT_SUSPECT, true, true, 5, false, LIMEFS_SNAPSHOT_CURRENT},
        {LIMEFS_SNAPSHOT_SUSPECT, true, true, 5000, true, LIMEFS_SNAPSHOT_CURRENT},
        {LIMEFS_SNAPSHOT_SUSPECT, true, true, 5000, false, LIMEFS_SNAPSHOT_OUTDATED},
        {LIMEFS_SNAPSHOT_SUSPECT, true, false, 5, true, LIMEFS_SNAPSHOT_OUTDATED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct timespec at = {100, 500000000};
        struct limefile_identity seen = {.ino = 1, .size = 10, .mtime = at, .ctime = at};
        struct limefile_identity now = seen;
        now.ino += !rows[i].same_file;
        now.size += !rows[i].equal;
        int64_t ms = 500 + rows[i].later;
        struct timespec clock = {100 + ms / 1000, ms % 1000 * 1000000};
        assert_int_equal(
            limefs_snapshot_validity(rows[i].state, &seen, &now, &clock, rows[i].being_written),
            rows[i].answer);
    }
}
