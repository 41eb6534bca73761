/* test_inode.c - objects that the kernel knows by number: slots, nodes, names */
#define _GNU_SOURCE
#include "append.h"
#include "nodes.h"
#include "kernel_mtime.h"

#include <stdlib.h>
#include <unistd.h>

static struct limefs *fs;

static int set_up(void **state)
{
    (void)state;
    fs = new_tree("/");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free_tree(fs);
    return 0;
}

static struct limefile_identity file(ino_t ino, off_t size)
{
    return (struct limefile_identity){.dev = 1, .ino = ino, .size = size, .mode = S_IFREG};
}

static struct limefile_identity directory(ino_t ino)
{
    return (struct limefile_identity){.dev = 1, .ino = ino, .mode = S_IFDIR};
}

static struct stat attributes(const struct limefile_identity *stamp)
{
    return (struct stat){.st_dev = stamp->dev,
                         .st_ino = stamp->ino,
                         .st_size = stamp->size,
                         .st_mode = stamp->mode | 0644,
                         .st_mtim = stamp->mtime,
                         .st_ctim = stamp->ctime};
}

static struct limefs_node *child(struct limefs_node *parent, const char *name,
                                 enum limefs_node_kind kind, struct limefile_identity stamp)
{
    struct limefs_tree_entry found = {.kind = kind};
    found.st = attributes(&stamp);
    struct limefs_node *node = limefs_node_lookup_child(fs, parent, name, &found);
    assert_non_null(node);
    return node;
}

TEST_WITH(test_numbers, set_up, tear_down)
{
    assert_int_equal(limefs_inode_node_id(fs->inodes.root), 1);
    assert_ptr_equal(limefs_inode_find_node(fs, 1), fs->inodes.root);
    struct limefs_node *one = child(fs->inodes.root, "one", LIMEFS_PLAIN, file(10, 5));
    uint64_t id = limefs_inode_node_id(one);
    assert_int_not_equal(id, 1);
    assert_ptr_equal(limefs_inode_find_node(fs, id), one);
    assert_null(limefs_inode_find(fs, id).snap);
    assert_null(limefs_inode_find_node(fs, UINT64_C(77777) << 32));
    limefs_node_forget(fs, one, 1);
    assert_null(limefs_inode_find_node(fs, id));
}

/* The number of nodes is unlimited; the slot of a forgotten node is reused. */
TEST_WITH(test_slots, set_up, tear_down)
{
    enum { MANY = 1000 };
    struct limefs_node *nodes[MANY];
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%d", i);
        nodes[i] = child(fs->inodes.root, name, LIMEFS_PLAIN, file((ino_t)(100 + i), 1));
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%d", i);
        assert_ptr_equal(limefs_node_find_child(fs, fs->inodes.root, name), nodes[i]);
        assert_ptr_equal(limefs_inode_find_node(fs, limefs_inode_node_id(nodes[i])), nodes[i]);
    }
    uint32_t slots = fs->inodes.slot_count;
    uint64_t last = nodes[MANY - 1]->id;
    for (int i = 0; i < MANY; i++)
        limefs_node_forget(fs, nodes[i], 1);
    assert_int_equal(fs->inodes.name_count, 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "m%d", i);
        nodes[i] = child(fs->inodes.root, name, LIMEFS_PLAIN, file((ino_t)(5000 + i), 1));
        assert_true(nodes[i]->id > last); /* although its slot was used before */
    }
    assert_int_equal(fs->inodes.slot_count, slots);
}

/* A file with several names has one node, so that the kernel caches its pages once. */
TEST_WITH(test_links, set_up, tear_down)
{
    struct limefs_node *sub = child(fs->inodes.root, "sub", LIMEFS_DIRECTORY, directory(2));
    struct limefs_node *one = child(fs->inodes.root, "one", LIMEFS_PLAIN, file(10, 5));
    assert_ptr_equal(child(sub, "two", LIMEFS_PLAIN, file(10, 5)), one);
    assert_int_equal(one->lookups, 2);
    assert_string_equal(one->name, "two");
    assert_ptr_equal(one->parent, sub);
    assert_true(limefs_node_use_name(fs, one, 1)); /* its other name */
    assert_string_equal(one->name, "one");
    assert_false(limefs_node_use_name(fs, one, 2));
    struct limefile_identity stamp = file(10, 5);
    limefs_node_forget_file(fs, &stamp); /* the inode number was freed and is reused */
    assert_ptr_not_equal(child(sub, "three", LIMEFS_PLAIN, file(10, 5)), one);
}

/* A file of another kind or inode gets another node; a container's node is reused. */
TEST_WITH(test_replaced, set_up, tear_down)
{
    struct limefs_node *one = child(fs->inodes.root, "one", LIMEFS_PLAIN, file(10, 5));
    assert_ptr_equal(child(fs->inodes.root, "one", LIMEFS_PLAIN, file(10, 6)), one);
    struct limefs_node *other = child(fs->inodes.root, "one", LIMEFS_PLAIN, file(11, 5));
    assert_ptr_not_equal(other, one);
    assert_ptr_equal(limefs_inode_find_node(fs, limefs_inode_node_id(one)),
                     one); /* still referenced */
    struct limefs_node *container =
        child(fs->inodes.root, "one", LIMEFS_CONTAINER, file(12, 5));
    assert_ptr_equal(child(fs->inodes.root, "one", LIMEFS_CONTAINER, file(13, 9)), container);
    fs->options.rw = true; /* a kernel that caches writes ignores other sizes */
    struct limefs_node *plain = child(fs->inodes.root, "plain", LIMEFS_PLAIN, file(20, 5));
    assert_ptr_equal(child(fs->inodes.root, "plain", LIMEFS_PLAIN, file(20, 5)), plain);
    assert_ptr_not_equal(child(fs->inodes.root, "plain", LIMEFS_PLAIN, file(20, 7)), plain);
}

static struct limefile_identity changed(time_t mtime, time_t ctime)
{
    struct limefile_identity stamp = file(20, 5);
    stamp.mtime.tv_sec = mtime;
    stamp.ctime.tv_sec = ctime;
    return stamp;
}

static struct limefs_node *plain(time_t mtime, time_t ctime)
{
    return child(fs->inodes.root, "plain", LIMEFS_PLAIN, changed(mtime, ctime));
}

/* A kernel that caches writes also ignores a new time of a file of the same length. */
TEST_WITH(test_changed_by_another_program, set_up, tear_down)
{
    struct limefs_node *node = plain(1, 10);
    assert_ptr_equal(plain(2, 20), node); /* a kernel that does not cache writes */
    fs->options.rw = true;
    assert_ptr_equal(plain(2, 20), node); /* the node is too recent */
    node->plain.known.created -= 1;
    assert_ptr_equal(plain(1, 20), node); /* perhaps a change of the mode */
    assert_ptr_equal(plain(2, 9), node);  /* seen before the node was created */
    struct limefile_identity stamp = changed(2, 20);
    limefs_append_note_open(node, O_WRONLY, &stamp);
    assert_ptr_equal(plain(2, 20), node); /* it is open for writing */
    limefs_append_note_close(node, false);
    assert_ptr_not_equal(plain(2, 20), node);
    struct limefile_identity fifo = {.dev = 1, .ino = 21, .mode = S_IFIFO};
    node = child(fs->inodes.root, "fifo", LIMEFS_PLAIN, fifo);
    node->plain.known.created -= 1;
    fifo.mtime.tv_sec = 7;
    assert_ptr_equal(child(fs->inodes.root, "fifo", LIMEFS_PLAIN, fifo), node);
}

TEST_WITH(test_changed_by_limefs, set_up, tear_down)
{
    struct stat st;
    char path[] = "/tmp/test_inode-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && unlink(path) == 0 && fstat(fd, &st) == 0);
    fs->options.rw = true;
    struct limefs_node *node = plain(1, 10);
    node->plain.known.created -= 1;
    limefs_kernel_mtime_change_begin(fs, node);
    assert_ptr_equal(plain(2, 20), node);
    limefs_kernel_mtime_change_end(fs, node, fd, -EPERM);
    assert_int_equal(node->plain.known.mtime.tv_sec, 1);
    limefs_kernel_mtime_change_begin(fs, node);
    limefs_kernel_mtime_change_end(fs, node, fd, 0);
    assert_ptr_equal(plain(st.st_mtim.tv_sec, 0), node);
    assert_int_equal(node->plain.known.mtime.tv_sec, st.st_mtim.tv_sec);
    limefs_kernel_mtime_note_write(node);
    assert_ptr_equal(plain(st.st_mtim.tv_sec + 1, st.st_ctim.tv_sec + 1), node);
    limefs_kernel_mtime_update(fs, node, fd);
    assert_ptr_not_equal(plain(st.st_mtim.tv_sec + 1, st.st_ctim.tv_sec + 1), node);
    close(fd);
}

static struct limefs_tree_entry regular(enum limefs_node_kind kind, time_t changed, bool sure)
{
    struct limefile_identity stamp = file(30, 500);
    stamp.ctime.tv_sec = changed;
    return (struct limefs_tree_entry){
        .st = attributes(&stamp), .kind = kind, .is_certain = sure};
}

/* The kind is known without a check. */
static bool is_known(struct limefs_tree_entry found, enum limefs_node_kind kind, bool sure)
{
    found.kind = LIMEFS_DIRECTORY;
    found.is_certain = false;
    return limefs_node_find_kind(fs, fs->inodes.root, "x", &found) && found.kind == kind &&
           found.is_certain == sure;
}

TEST_WITH(test_known, set_up, tear_down)
{
    struct limefs_tree_entry old = regular(LIMEFS_PLAIN, 1, true), now = old;
    assert_false(is_known(old, LIMEFS_PLAIN, true));
    limefs_node_lookup_child(fs, fs->inodes.root, "x", &old);
    assert_true(is_known(old, LIMEFS_PLAIN, true));
    now.st.st_ctim.tv_nsec++; /* size and mtime can be restored */
    assert_false(limefs_node_find_kind(fs, fs->inodes.root, "x", &now));
    old.is_certain = false; /* the file may change again within the same clock tick */
    limefs_node_lookup_child(fs, fs->inodes.root, "x", &old);
    assert_false(limefs_node_find_kind(fs, fs->inodes.root, "x", &old));
}

/* The kind of a file that is open for writing is unknown after the last close. */
TEST_WITH(test_known_while_written, set_up, tear_down)
{
    struct limefs_tree_entry before = regular(LIMEFS_PLAIN, 1, true), after = before;
    struct limefs_node *node = limefs_node_lookup_child(fs, fs->inodes.root, "x", &before);
    struct limefile_identity stamp = limefile_identify(&before.st);
    after.st.st_ctim.tv_sec = 2;
    limefs_append_note_open(node, O_WRONLY, &stamp);
    assert_true(limefs_node_find_kind(fs, fs->inodes.root, "x", &after));
    assert_true(after.kind == LIMEFS_PLAIN && !after.is_certain);
    assert_ptr_equal(limefs_node_lookup_child(fs, fs->inodes.root, "x", &after), node);
    limefs_append_note_close(node, false);
    assert_false(limefs_node_find_kind(fs, fs->inodes.root, "x", &after));
}

/* The kernel has requested attributes, but the file was not checked. */
TEST_WITH(test_known_of_a_container, set_up, tear_down)
{
    struct limefs_tree_entry old = regular(LIMEFS_CONTAINER, 1, true), now = old;
    struct limefs_node *node = limefs_node_lookup_child(fs, fs->inodes.root, "x", &old);
    limefs_node_note_attributes(fs, node, &old.st);
    assert_true(is_known(old, LIMEFS_CONTAINER, true));
    now.st.st_ctim.tv_sec = 2;
    limefs_node_note_attributes(fs, node, &now.st);
    assert_false(limefs_node_find_kind(fs, fs->inodes.root, "x", &now));
}

TEST_WITH(test_parents, set_up, tear_down)
{
    struct limefs_node *a = child(fs->inodes.root, "a", LIMEFS_DIRECTORY, directory(2));
    struct limefs_node *b = child(a, "b", LIMEFS_DIRECTORY, directory(3));
    uint64_t id = limefs_inode_node_id(a);
    limefs_node_forget(fs, a, 1); /* its child refers to it */
    assert_ptr_equal(limefs_inode_find_node(fs, id), a);
    limefs_node_forget(fs, b, 1);
    assert_null(limefs_inode_find_node(fs, id));
    assert_null(limefs_node_find_child(fs, fs->inodes.root, "a"));
}

TEST_WITH(test_renamed, set_up, tear_down)
{
    struct limefs_node *to = child(fs->inodes.root, "to", LIMEFS_DIRECTORY, directory(2));
    struct limefs_node *one = child(fs->inodes.root, "one", LIMEFS_PLAIN, file(10, 5));
    struct limefs_node *two = child(to, "two", LIMEFS_PLAIN, file(11, 5));
    assert_int_equal(limefs_node_note_rename(fs, fs->inodes.root, "one", to, "two", true), 0);
    assert_ptr_equal(limefs_node_find_child(fs, to, "two"), one);
    assert_ptr_equal(limefs_node_find_child(fs, fs->inodes.root, "one"), two);
    assert_int_equal(limefs_node_note_rename(fs, to, "two", fs->inodes.root, "one", false), 0);
    assert_null(limefs_node_find_child(fs, to, "two"));
    assert_ptr_equal(limefs_node_find_child(fs, fs->inodes.root, "one"),
                     one); /* it replaced the other */
}

TEST_WITH(test_visible_inodes, set_up, tear_down)
{
    const uint64_t dev = fs->source_dev;
    const struct stat five = {.st_dev = dev, .st_ino = 5},
                      other = {.st_dev = dev + 1, .st_ino = 5};
    assert_int_equal(limefs_visible_ino(fs, dev, UINT64_C(1) << 40), UINT64_C(1) << 40);
    ino_t a = limefs_visible_record_ino(fs, &five, 1),
          b = limefs_visible_record_ino(fs, &five, 2);
    assert_true(b > a && a > UINT64_MAX / 2); /* not an inode number of the source */
    assert_int_not_equal(limefs_visible_record_ino(fs, &other, 1), a);
    ino_t elsewhere = limefs_visible_ino(fs, dev + 1, 5);
    assert_true(elsewhere != 5 && elsewhere <= UINT64_MAX / 4); /* nor an export's */
    assert_int_not_equal(limefs_visible_export_ino(fs, &five, 1, 1, 0),
                         limefs_visible_export_ino(fs, &other, 1, 1, 0));
    fs->options.ino32 = 1;
    assert_true(limefs_visible_ino(fs, dev, UINT64_C(0x100000001)) <= UINT32_MAX);
    assert_int_not_equal(limefs_visible_ino(fs, dev, UINT64_C(0x100000001)), 0); /* XOR is 0 */
    assert_int_equal(limefs_visible_ino(fs, dev, 7), 7);
    a = limefs_visible_record_ino(fs, &five, 1);
    assert_true(a <= UINT32_MAX && limefs_visible_record_ino(fs, &five, 2) == a + 1);
}
