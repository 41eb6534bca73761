/* test_view.c - containers looked into; and as they were at one moment: made, kept, put to
 * sleep, told of */
#define _GNU_SOURCE
#include "nodes.h"
#include "tree.h"

#include <errno.h>

static char folder[256];
static struct limefs *fs;
static struct limefs_node *one, *two;

static void write_container(const char *name, size_t n)
{
    char path[300];
    struct bytes b = {0};
    bytes_record(&b, "data", n, 'x', 0xc0);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, b.at, b.n) == (ssize_t)b.n);
    close(fd);
    bytes_free(&b);
}

static struct limefs_node *container(const char *name)
{
    struct limefs_found found = {.kind = LIMEFS_CONTAINER};
    assert_int_equal(fstatat(fs->source_fd, name, &found.st, 0), 0);
    return limefs_node_child(fs, fs->inodes.root, name, &found);
}

static int set_up(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/limefs-unit-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    write_container("one", 100);
    write_container("two", 200);
    fs = new_tree(folder);
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
    return rmdir(folder);
}

static struct limefs_view *current(struct limefs_node *node)
{
    struct limefs_view *view;
    assert_int_equal(limefs_view_current(fs, node, &view), 0);
    return view;
}

TEST_WITH(test_same, set_up, tear_down)
{
    struct limefile_record record;
    struct limefs_view *view = current(one), *found;
    assert_ptr_equal(current(one), view);
    assert_int_equal(view->pins, 2);
    struct limefs_inode it = limefs_inode_now(fs, limefs_view_inode(fs, view, 1));
    assert_ptr_equal(it.view, view);
    assert_int_equal(it.ordinal, 1);
    assert_int_equal(limefs_view_find(fs, one, "001-data", &found, &record), 0);
    assert_ptr_equal(found, view);
    assert_int_equal(record.bytes, 100);
    assert_int_not_equal(limefs_view_find(fs, one, "002-data", &found, &record), 0);
    assert_int_equal(view->pins, 3);
    for (int i = 0; i < 3; i++)
        limefs_view_unpin(fs, view);
}

/* A record that takes the place of another has an id of its own: a list with the old one may
 * still be on its way to the kernel. */
TEST_WITH(test_record_made_again, set_up, tear_down)
{
    uint64_t ids[40];
    struct limefs_view *view = current(one);
    for (int i = 0; i < 40; i++) {
        ids[i] = limefs_view_inode(fs, view, 1);
        for (int j = 0; j < i; j++) {
            assert_true(ids[j] != ids[i]);
            assert_null(limefs_inode_now(fs, ids[j]).view);
            assert_true(limefs_inode_now(fs, ids[j]).gone);
            assert_ptr_equal(limefs_inode_find(fs, ids[j]).view, view);
            assert_int_equal(limefs_inode_find(fs, ids[j]).ordinal, 1);
        }
        assert_ptr_equal(limefs_inode_now(fs, ids[i]).view, view);
        assert_int_equal(limefs_view_renew(fs, view, 1), 0);
    }
    assert_ptr_equal(limefs_inode_now(fs, limefs_view_inode(fs, view, 2)).view, view);
    limefs_view_unpin(fs, view);
}

/* Another container under the name is another view, with another slot; who holds the old one
 * has it still. */
TEST_WITH(test_replaced, set_up, tear_down)
{
    struct limefs_view *old = current(one);
    uint64_t id = old->id;
    assert_int_equal(unlinkat(fs->source_fd, "one", 0), 0);
    write_container("one", 300);
    struct limefs_view *new = current(one);
    assert_ptr_not_equal(new, old);
    assert_true(new->id > id &&new->slot != old->slot);
    assert_true(old->fd >= 0);
    limefs_view_unpin(fs, old);
    limefs_view_unpin(fs, new);
}

/* max_open is 1: who is used last stays open, and the other wakes up for who comes again. */
TEST_WITH(test_sleep, set_up, tear_down)
{
    struct limefs_view *first = current(one);
    limefs_view_lookup(fs, first, 1); /* the kernel knows a record of it */
    struct limefs_view *second = current(two);
    limefs_view_lookup(fs, second, 1);
    assert_true(first->fd >= 0); /* pinned */
    limefs_view_unpin(fs, first);
    limefs_view_unpin(fs, second);
    assert_int_equal(fs->snapshots.open_count, 1);
    assert_true((first->fd < 0) != (second->fd < 0));
    struct limefs_view *asleep = first->fd < 0 ? first : second;
    assert_int_equal(limefs_view_pin(fs, asleep), 0);
    assert_true(asleep->fd >= 0);
    limefs_view_unpin(fs, asleep);
    limefs_view_forget(fs, first, 1);
    limefs_view_forget(fs, second, 1);
}

/* ---- what a name stands for ---- */

/* A look at a container; whether it was just changed: certainly, and possibly. */
static bool look(bool *young, bool *perhaps)
{
    struct limefs_found found;
    struct timespec before, after;
    clock_gettime(CLOCK_REALTIME, &before);
    assert_int_equal(limefs_tree_sniff(false, fs->source_fd, "one", &found), 0);
    clock_gettime(CLOCK_REALTIME, &after);
    assert_int_equal(found.kind, LIMEFS_CONTAINER);
    *perhaps = limefile_time_is_racy(&found.st.st_ctim, &before);
    *young = limefile_time_is_racy(&found.st.st_ctim, &after);
    return found.is_certain;
}

/* A change in the same tick of the clock would not show: so nothing is sure until it is over.
 */
TEST_WITH(test_sure, set_up, tear_down)
{
    bool young, perhaps;
    do {
        write_container("one", 100);
        bool sure = look(&young, &perhaps);
        assert_false(sure && young);
    } while (!young); /* the processor was others' meanwhile */
    do {
        bool sure = look(&young, &perhaps);
        assert_true(sure || perhaps);
    } while (perhaps);
}

/* ---- who wants to know ---- */

static unsigned changed, freed, both;
static struct limefs_view *of;

static void on_changed(struct limefs_view *view)
{
    changed++;
    of = view;
}

static void on_freed(struct limefs_view *view)
{
    freed++;
    of = view;
}

static void on_changed_too(struct limefs_view *view)
{
    assert_ptr_equal(of, view); /* in the order in which they came */
    both++;
}

TEST_WITH(test_watch, set_up, tear_down)
{
    static const struct limefs_view_watch first = {.changed = on_changed, .freed = on_freed},
                                          second = {.changed = on_changed_too};
    limefs_view_watch(fs, &first);
    limefs_view_watch(fs, &second);
    struct limefs_view *view = current(one);
    assert_int_equal(changed + freed, 0);
    limefs_view_changed(fs, view);
    assert_int_equal(changed, 1);
    assert_int_equal(both, 1);
    struct limefile_index *index = limefs_view_index(fs, view);
    limefs_view_show(fs, view, index); /* taken over */
    assert_true(changed > 1 && changed == both);
    limefs_view_distrust(fs, view);
    struct limefs_view *next = current(one);
    assert_ptr_not_equal(next, view);
    assert_int_equal(freed, 0);
    limefs_view_unpin(fs, view); /* nobody has it, and nobody will ask for it */
    assert_int_equal(freed, 1);
    assert_ptr_equal(of, view);
    limefs_view_unpin(fs, next);
}

/* ---- whether a view still shows what its name leads to ---- */

/* Every row of the table in view.h. Changed at 100.5 s; the clock is `later` ms after that. */
TEST(test_judge)
{
    static const struct {
        enum limefs_view_state state;
        bool same_file, equal;
        int later;
        bool being_written;
        enum limefs_view_answer answer;
    } rows[] = {
        {LIMEFS_VIEW_WRITTEN, true, false, 0, false, LIMEFS_VIEW_SHOWN},
        {LIMEFS_VIEW_WRITTEN, true, true, 5000, true, LIMEFS_VIEW_SHOWN},
        {LIMEFS_VIEW_WRITTEN, false, false, 0, false, LIMEFS_VIEW_CHANGED},
        {LIMEFS_VIEW_VALID, true, true, 5, false, LIMEFS_VIEW_SHOWN},
        {LIMEFS_VIEW_VALID, true, true, 5000, true, LIMEFS_VIEW_SHOWN},
        {LIMEFS_VIEW_VALID, true, false, 5000, false, LIMEFS_VIEW_CHANGED},
        {LIMEFS_VIEW_YOUNG, true, true, 5, false, LIMEFS_VIEW_SHOWN},
        {LIMEFS_VIEW_YOUNG, true, true, 5000, true, LIMEFS_VIEW_SHOWN},
        {LIMEFS_VIEW_YOUNG, true, true, 5000, false, LIMEFS_VIEW_TO_CHECK},
        {LIMEFS_VIEW_YOUNG, true, false, 5, true, LIMEFS_VIEW_CHANGED},
        {LIMEFS_VIEW_SUSPECT, true, true, 5, false, LIMEFS_VIEW_SHOWN},
        {LIMEFS_VIEW_SUSPECT, true, true, 5000, true, LIMEFS_VIEW_SHOWN},
        {LIMEFS_VIEW_SUSPECT, true, true, 5000, false, LIMEFS_VIEW_CHANGED},
        {LIMEFS_VIEW_SUSPECT, true, false, 5, true, LIMEFS_VIEW_CHANGED},
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
            limefs_view_judge(rows[i].state, &seen, &now, &clock, rows[i].being_written),
            rows[i].answer);
    }
}
