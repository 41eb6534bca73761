/* joined.c - sets of volumes as the containers that they are together */
#define _GNU_SOURCE
#include "joined.h"
#include "caller.h"
#include "descriptor.h"
#include "limevolumes.h"
#include "mix.h"
#include "volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <syslog.h>
#include <unistd.h>

/* A limit, as QIO's own order of the sites makes a run of each line of the lattice. */
static const struct limefile_volumes_options set_options = {.memory = 384 << 20};

struct limefs_joined {
    struct limefs_volumes names;
    size_t count; /* open; all are regular files */
    struct limefile_fd *file;
    struct limefile_source **source;
    struct limefile_volumes *set; /* NULL: not joined */
    bool shared;
    bool moving; /* one of them, when they were joined */
    size_t bad;  /* the volume that something was wrong with, or names.count */
};

/* ---- what is there ---- */

/* A file of that name is shown itself. */
static bool is_taken(int folder, const char *name)
{
    struct stat st;
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

static int stat_set(int folder, const struct limefs_volumes *all, bool shared, struct stat *st)
{
    struct limefs_sum sum = {0};
    struct stat volume;
    for (size_t i = 0; i < all->count; i++) {
        if (fstatat(folder, all->at[i].name, &volume, AT_SYMLINK_NOFOLLOW) != 0)
            return -errno;
        limefs_sum_add(&sum, &volume);
    }
    *st = limefs_sum_stat(&sum, shared);
    return 0;
}

int limefs_joined_stat(const struct limefs *fs, int folder, const char *name, struct stat *st)
{
    struct limefs_volumes all;
    if (is_taken(folder, name))
        return -ENOENT;
    int err = limefs_volumes_find(folder, name, &all);
    if (err)
        return err;
    err = stat_set(folder, &all, fs->options.shared, st);
    limefs_volumes_release(&all);
    return err;
}

/* ---- open ---- */

/* A name is used once. */
static int open_volume(int folder, const char *name)
{
    struct stat st;
    int path = limefile_open_beneath(folder, name, O_PATH);
    if (path < 0)
        return path;
    int fd = fstat(path, &st) != 0  ? -errno
             : !S_ISREG(st.st_mode) ? LIMEFILE_E_NOT_FILE
                                    : limefile_reopen(path, O_RDONLY | O_NONBLOCK);
    close(path);
    return fd;
}

static int open_volumes(const struct limefs *fs, struct limefs_joined *j, int folder)
{
    size_t most = fs->volumes_most ? fs->volumes_most : 64;
    if (j->names.count > most)
        return LIMEFILE_E_VOLUME_MANY;
    j->file = calloc(j->names.count, sizeof *j->file);
    j->source = calloc(j->names.count, sizeof *j->source);
    if (!j->file || !j->source)
        return -ENOMEM;
    for (; j->count < j->names.count; j->count++) {
        j->bad = j->count;
        int fd = open_volume(folder, j->names.at[j->count].name);
        if (fd < 0)
            return fd;
        limefile_fd_init(&j->file[j->count], fd);
        j->source[j->count] = &j->file[j->count].source;
    }
    j->bad = j->count;
    return 0;
}

int limefs_joined_fd(const struct limefs_joined *j, size_t volume)
{
    return j->file[volume].fd;
}

int limefs_joined_fstat(const struct limefs_joined *j, struct stat *st)
{
    struct limefs_sum sum = {0};
    struct stat volume;
    for (size_t i = 0; i < j->count; i++) {
        if (fstat(limefs_joined_fd(j, i), &volume) != 0)
            return -errno;
        limefs_sum_add(&sum, &volume);
    }
    *st = limefs_sum_stat(&sum, j->shared);
    return 0;
}

bool limefs_joined_is_moving(const struct limefs_joined *j, const struct timespec *ctime)
{
    for (size_t i = 0; i < j->count; i++)
        if (limefs_stamp_is_moving(limefs_joined_fd(j, i), ctime))
            return true;
    return false;
}

void limefs_joined_close(struct limefs_joined *j)
{
    if (!j)
        return;
    limefile_volumes_close(j->set);
    for (size_t i = 0; i < j->count; i++)
        close(limefs_joined_fd(j, i));
    limefs_volumes_release(&j->names);
    free(j->source);
    free(j->file);
    free(j);
}

struct limefile_source *limefs_joined_source(const struct limefs_joined *j)
{
    return limefile_volumes_source(j->set);
}

size_t limefs_joined_memory(const struct limefs_joined *j)
{
    return limefile_volumes_memory(j->set) +
           j->count * (sizeof *j->file + sizeof *j->source + sizeof *j->names.at);
}

size_t limefs_joined_volumes(const struct limefs_joined *j)
{
    return j->count;
}

/* ---- who may read ---- */

#define ACL_MOST 65536 /* XATTR_SIZE_MAX */

static ssize_t acl_of(const struct limefs_joined *j, size_t volume, const char *name, char *buf)
{
    ssize_t len = fgetxattr(limefs_joined_fd(j, volume), name, buf, ACL_MOST);
    return len >= 0 ? len : errno == EOPNOTSUPP ? -ENODATA : -errno;
}

/* As an attribute: version 2, and nothing for owner, group and others (acl(5)). */
static ssize_t acl_of_nobody(char *buf)
{
    static const unsigned char tags[] = {0x01, 0x04, 0x20};
    memset(buf, 0, 4 + 8 * sizeof tags);
    buf[0] = 2;
    for (size_t i = 0; i < sizeof tags; i++) {
        buf[4 + 8 * i] = (char)tags[i];
        memset(buf + 8 + 8 * i, 0xff, 4);
    }
    return 4 + 8 * sizeof tags;
}

/* That of the first volume, if the others have the same one. */
static ssize_t acl_of_all(const struct limefs_joined *j, const char *name, char *buf,
                          char *other)
{
    ssize_t len = acl_of(j, 0, name, buf);
    for (size_t i = 1; i < j->count; i++) {
        ssize_t n = acl_of(j, i, name, other);
        if (n != len || (n > 0 && memcmp(buf, other, (size_t)n) != 0))
            return acl_of_nobody(buf);
    }
    return len;
}

ssize_t limefs_joined_acl(const struct limefs_joined *j, const char *name, char *buf,
                          size_t cap)
{
    char *all = malloc(2 * ACL_MOST);
    ssize_t len = all ? acl_of_all(j, name, all, all + ACL_MOST) : -ENOMEM;
    if (len > 0 && cap)
        len = (size_t)len > cap ? -ERANGE : (memcpy(buf, all, (size_t)len), len);
    free(all);
    return len;
}

/* ---- what was found, remembered ---- */

/* The looks at all that have the same hash, the latest first. */
static struct limefs_look *row_of(struct limefs *fs, const struct limefs_stamp *stamp)
{
    return fs->looks[mix64(stamp->ino) % LIMEFS_LOOK_ROWS];
}

/* False: nothing is known. */
static bool recall(struct limefs *fs, const struct limefs_stamp *stamp,
                   struct limefs_look *look)
{
    bool known = false;
    limefs_lock(&fs->lock);
    const struct limefs_look *row = row_of(fs, stamp);
    for (int i = 0; i < LIMEFS_LOOKS_IN_ROW && !known; i++) {
        known = limefs_stamp_equal(&row[i].stamp, stamp);
        *look = row[i];
    }
    limefs_unlock(&fs->lock);
    return known;
}

static void remember(struct limefs *fs, const struct limefs_look *look)
{
    size_t old = 0; /* of the same files, or the last of the row */
    limefs_lock(&fs->lock);
    struct limefs_look *row = row_of(fs, &look->stamp);
    while (old < LIMEFS_LOOKS_IN_ROW - 1 &&
           !limefs_stamp_same_file(&row[old].stamp, &look->stamp))
        old++;
    memmove(row + 1, row, old * sizeof *row);
    row[0] = *look;
    limefs_unlock(&fs->lock);
}

/* It has nothing to do with the volumes: the next look may go well. */
static bool passes(int err)
{
    switch (-err) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
    case EINTR:
    case ESTALE:
    case ENOENT:
    case EIO: /* of a disk or of a server, that may be back */
    case EREMOTEIO:
    case ETIMEDOUT:
    case ENOTCONN:
        return true;
    default:
        return false;
    }
}

static void report(const struct limefs_joined *j, const char *label, const char *name, int err)
{
    bool one = j->bad < j->names.count;
    limefs_log(LOG_WARNING, "%s/%s: %zu volumes not shown as one container: %s%s%s", label,
               name, j->names.count, one ? j->names.at[j->bad].name : "", one ? ": " : "",
               limefile_strerror(err));
}

/* Told once for each state of the volumes. */
static int judged(struct limefs *fs, const struct limefs_joined *j, const char *label,
                  const char *name, const struct limefs_look *look)
{
    struct limefs_look before;
    if (passes(look->err))
        return look->err;
    if (look->err && !(recall(fs, &look->stamp, &before) && before.err == look->err))
        report(j, label, name, look->err);
    remember(fs, look);
    return look->err ? -ENOENT : 0;
}

/* ---- looks ---- */

static int join_open(struct limefs_joined *j)
{
    return limefile_volumes_open(j->source, j->count, &set_options, &j->set, &j->bad);
}

/* Takes over the names of one set. */
static int look_at(struct limefs *fs, int folder, const char *label, const char *name,
                   struct limefs_volumes names, struct limefs_look look)
{
    struct limefs_look before;
    bool known = recall(fs, &look.stamp, &before);
    if (known && !before.racy) {
        limefs_volumes_release(&names);
        return before.err ? -ENOENT : 0;
    }
    look.listed = known && before.listed;
    struct limefs_joined *j = calloc(1, sizeof *j);
    if (!j) {
        limefs_volumes_release(&names);
        return -ENOMEM;
    }
    j->names = names;
    j->bad = names.count;
    look.err = open_volumes(fs, j, folder);
    if (!look.err)
        look.err =
            look.listed ? join_open(j) : limefile_volumes_look(j->source, j->count, &j->bad);
    int err = judged(fs, j, label, name, &look);
    limefs_joined_close(j);
    return err;
}

/* The same, unless there is a file of that name. */
static int look_by_names(struct limefs *fs, int folder, const char *label, const char *name,
                         struct limefs_volumes names, struct stat *st)
{
    struct timespec seen;
    clock_gettime(CLOCK_REALTIME, &seen); /* before the first of many */
    int err =
        is_taken(folder, name) ? -ENOENT : stat_set(folder, &names, fs->options.shared, st);
    if (!err) {
        struct limefs_look look = {.stamp = limefs_stamp_of(st),
                                   .racy = limefs_time_is_racy(&st->st_ctim, &seen)};
        return look_at(fs, folder, label, name, names, look);
    }
    limefs_volumes_release(&names);
    return err;
}

int limefs_joined_look(struct limefs *fs, int folder, const char *label, const char *name,
                       struct stat *st)
{
    struct limefs_volumes names;
    limefs_own_begin();
    int err = limefs_volumes_find(folder, name, &names);
    if (!err)
        err = look_by_names(fs, folder, label, name, names, st);
    limefs_own_end();
    return err;
}

static int join(struct limefs *fs, struct limefs_joined *j, int folder, const char *name,
                const struct limefs_stamp *want, struct stat *st, struct limefs_look *look)
{
    struct stat after;
    struct timespec seen;
    j->shared = fs->options.shared;
    int err = is_taken(folder, name) ? -ENOENT : limefs_volumes_find(folder, name, &j->names);
    j->bad = j->names.count;
    if (!err)
        err = stat_set(folder, &j->names, j->shared, st);
    if (!err)
        err = open_volumes(fs, j, folder);
    clock_gettime(CLOCK_REALTIME, &seen);
    if (!err)
        err = limefs_joined_fstat(j, st); /* its names may lead to others by now */
    struct limefs_stamp now = look->stamp = limefs_stamp_of(st);
    if (err)
        return err;
    if (want && !limefs_stamp_equal(&look->stamp, want))
        return -ESTALE;
    j->moving = limefs_joined_is_moving(j, &st->st_ctim);
    look->racy = j->moving || limefs_time_is_racy(&st->st_ctim, &seen);
    err = join_open(j);
    int changed = limefs_joined_fstat(j, &after);
    now = limefs_stamp_of(&after);
    return changed || !limefs_stamp_equal(&now, &look->stamp) ? -ESTALE : err;
}

int limefs_joined_open(struct limefs *fs, int folder, const char *label, const char *name,
                       const struct limefs_stamp *want, struct limefs_joined **out,
                       struct stat *st, bool *moving)
{
    struct limefs_look look = {.listed = true};
    struct limefs_joined *j = calloc(1, sizeof *j);
    if (!j)
        return -ENOMEM;
    memset(st, 0, sizeof *st);
    limefs_own_begin();
    look.err = join(fs, j, folder, name, want, st, &look);
    limefs_own_end();
    if (look.err) {
        int err = judged(fs, j, label, name, &look);
        limefs_joined_close(j);
        return err;
    }
    *out = j;
    *moving = j->moving;
    return 0;
}

/* ---- all of a folder ---- */

static void add_name(struct limefs_joined_name ***end, const char *name, ino_t ino)
{
    struct limefs_joined_name *entry = malloc(sizeof *entry + strlen(name) + 1);
    if (!entry)
        return;
    *entry = (struct limefs_joined_name){.ino = ino};
    strcpy(entry->name, name);
    **end = entry;
    *end = &entry->next;
}

/* Takes `n` names from `first` on out of all of a folder's. */
static int look_at_part(struct limefs *fs, int folder, const char *label, const char *name,
                        struct limefs_volumes *all, size_t first, size_t n, struct stat *st)
{
    struct limefs_volumes names = {.count = n, .at = calloc(n, sizeof *names.at)};
    if (!names.at)
        return -ENOMEM;
    memcpy(names.at, all->at + first, n * sizeof *names.at);
    for (size_t i = 0; i < n; i++)
        all->at[first + i].name = NULL;
    return look_by_names(fs, folder, label, name, names, st);
}

struct limefs_joined_name *limefs_joined_list(struct limefs *fs, int folder, const char *label)
{
    struct limefs_volumes all;
    struct limefs_joined_name *list = NULL, **end = &list;
    struct stat st;
    limefs_own_begin();
    int err = limefs_volumes_find(folder, NULL, &all);
    for (size_t i = 0, n; !err && i < all.count; i += n) {
        n = limefs_volumes_of_set(&all, i);
        char *name = all.at[i].number ? NULL : strndup(all.at[i].name, all.at[i].stem);
        if (name && look_at_part(fs, folder, label, name, &all, i, n, &st) == 0)
            add_name(&end, name, st.st_ino);
        free(name);
    }
    if (!err)
        limefs_volumes_release(&all);
    limefs_own_end();
    return list;
}

void limefs_joined_free(struct limefs_joined_name *list)
{
    for (struct limefs_joined_name *next; list; list = next) {
        next = list->next;
        free(list);
    }
}
