/* nodes.h - a tree for tests of src/fuse/names: no mount, no kernel */
#ifndef TEST_NODES_H
#define TEST_NODES_H

#include "unit.h"
#include "snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct limefs *new_tree(const char *directory)
{
    struct stat st;
    struct limefs *fs = calloc(1, sizeof *fs);
    assert_non_null(fs);
    limefs_lock_init(&fs->lock, LIMEFS_LOCK_FS);
    fs->foreground = true;
    fs->options.max_open = 1;
    fs->source_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(fs->source_fd >= 0);
    assert_int_equal(fstat(fs->source_fd, &st), 0);
    assert_int_equal(limefs_inodes_init(fs, LIMEFS_DIRECTORY, &st), 0);
    return fs;
}

static void free_tree(struct limefs *fs)
{
    limefs_snapshots_release(fs);
    limefs_inodes_release(fs);
    close(fs->source_fd);
    limefs_lock_destroy(&fs->lock);
    free(fs);
}

#endif
