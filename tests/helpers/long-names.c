/*
 * long-names.c - a file system with names longer than the kernel's limit
 *
 * usage: long-names [OPTION...] MOUNTPOINT
 *
 * Its directory lists files "short-00" ... in turn with files whose names have 1000 bytes; the
 * kernel lists the long names but never looks them up.
 */
#define FUSE_USE_VERSION 312

#include <errno.h>
#include <fuse.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    FILES = 20,
    LONG = 1000,
};

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *info)
{
    (void)info;
    memset(st, 0, sizeof *st);
    st->st_nlink = 1;
    st->st_mode = strcmp(path, "/") == 0 ? S_IFDIR | 0755 : S_IFREG | 0644;
    return st->st_mode & S_IFDIR || strncmp(path, "/short-", 7) == 0 ? 0 : -ENOENT;
}

static int list(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                struct fuse_file_info *info, enum fuse_readdir_flags flags)
{
    const struct stat file = {.st_mode = S_IFREG};
    const enum fuse_fill_dir_flags none = 0;
    char name[LONG + 1];
    (void)path, (void)offset, (void)info, (void)flags;
    fill(buf, ".", NULL, 0, none);
    fill(buf, "..", NULL, 0, none);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "short-%02d", i);
        fill(buf, name, &file, 0, none);
        memset(name, 'A' + i, LONG);
        name[LONG] = '\0';
        fill(buf, name, &file, 0, none);
    }
    return 0;
}

int main(int argc, char *argv[])
{
    static const struct fuse_operations operations = {.getattr = get_attributes,
                                                      .readdir = list};
    return fuse_main(argc, argv, &operations, NULL);
}
