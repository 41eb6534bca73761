/* volumes.c - volumes of sets: their names in a folder, and what they are together */
#define _GNU_SOURCE
#include "volumes.h"
#include "descriptor.h"
#include "limevolumes.h"
#include "mix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- names ---- */

static int add(struct limefs_volumes *all, const char *name, size_t stem, uint64_t number)
{
    if (all->count == all->room) {
        size_t more = all->room + all->room / 2 + 64;
        void *bigger = reallocarray(all->at, more, sizeof *all->at);
        if (!bigger)
            return -ENOMEM;
        all->at = bigger;
        all->room = more;
    }
    struct limefs_volume *volume = &all->at[all->count];
    *volume = (struct limefs_volume){number, stem, strdup(name)};
    all->count += volume->name != NULL;
    return volume->name ? 0 : -ENOMEM;
}

static int order(const void *one, const void *other)
{
    const struct limefs_volume *a = one, *b = other;
    size_t least = a->stem < b->stem ? a->stem : b->stem;
    int stems = memcmp(a->name, b->name, least);
    if (stems || a->stem != b->stem)
        return stems ? stems : a->stem < b->stem ? -1 : 1;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Names that were left out would be volumes that are missing. */
static int read_names(DIR *stream, const char *stem, struct limefs_volumes *all)
{
    int err = 0;
    while (!err) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        uint64_t number;
        size_t n;
        if (!entry)
            return -errno;
        if (limefile_volumes_name(entry->d_name, &n, &number) && n > 0 &&
            (!stem || (strlen(stem) == n && memcmp(entry->d_name, stem, n) == 0)))
            err = add(all, entry->d_name, n, number);
    }
    return err;
}

/* Most names that are looked up are no set's: these take no more than a look for this one. */
static bool has_first(int folder, const char *stem)
{
    char name[NAME_MAX + 16];
    struct stat st;
    int n = snprintf(name, sizeof name, "%s.vol0000", stem);
    return n > 0 && n <= NAME_MAX && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int limefs_volumes_find(int folder, const char *stem, struct limefs_volumes *all)
{
    *all = (struct limefs_volumes){0};
    if (stem && !has_first(folder, stem))
        return -ENOENT;
    int fd = limefile_reopen(folder, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return fd;
    DIR *stream = fdopendir(fd);
    if (!stream) {
        close(fd);
        return -ENOMEM;
    }
    int err = read_names(stream, stem, all);
    closedir(stream);
    if (!err && !all->count)
        err = -ENOENT;
    if (err)
        limefs_volumes_release(all);
    else
        qsort(all->at, all->count, sizeof *all->at, order);
    return err;
}

void limefs_volumes_release(struct limefs_volumes *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->at[i].name);
    free(all->at);
    *all = (struct limefs_volumes){0};
}

size_t limefs_volumes_of_set(const struct limefs_volumes *all, size_t first)
{
    const struct limefs_volume *a = &all->at[first];
    size_t n = 1;
    while (first + n < all->count && a[n].stem == a->stem &&
           memcmp(a[n].name, a->name, a->stem) == 0)
        n++;
    return n;
}

/* ---- together ---- */

static uint64_t mixed(uint64_t sum, uint64_t with)
{
    return mix64((sum ^ with) * MIX64_STEP + MIX64_STEP);
}

static uint64_t time_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

void limefs_sum_add(struct limefs_sum *sum, const struct stat *volume)
{
    struct stat *st = &sum->st;
    if (sum->count++ == 0)
        *st = *volume;
    sum->differ |= st->st_uid != volume->st_uid || st->st_gid != volume->st_gid;
    sum->modes_differ |= st->st_mode != volume->st_mode;
    st->st_mode &= volume->st_mode;
    if (is_later(&volume->st_mtim, &st->st_mtim))
        st->st_mtim = volume->st_mtim;
    if (is_later(&volume->st_ctim, &st->st_ctim))
        st->st_ctim = volume->st_ctim;
    sum->names = mixed(mixed(sum->names, volume->st_dev), volume->st_ino);
    sum->data = mixed(mixed(mixed(sum->data, sum->names), (uint64_t)volume->st_size),
                      time_of(&volume->st_mtim));
}

/* Modes have classes of owner and group: where these differ, nobody is given anything, unless
 * nobody but ourselves, who have opened them, is let in. */
struct stat limefs_sum_stat(const struct limefs_sum *sum, bool shared)
{
    struct stat st = sum->st;
    st.st_mode = S_IFDIR | (st.st_mode & 0444);
    if (sum->modes_differ && !(st.st_mode & 0040)) /* the kernel will ask for no list, then: */
        st.st_mode &= ~(mode_t)0004;               /* one may name who may not read */
    if (sum->differ) {
        st.st_mode = S_IFDIR | (shared ? 0 : 0400);
        st.st_uid = geteuid();
        st.st_gid = getegid();
    }
    st.st_ino = (ino_t)(sum->names >> 3 | UINT64_C(1) << 61);
    st.st_size = (off_t)(sum->data >> 1);
    st.st_nlink = 1;
    st.st_rdev = 0;
    return st;
}
