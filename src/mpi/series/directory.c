/* directory.c - name, lock, list, publish and remove the files of a series */
#define _GNU_SOURCE
#include "series.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    DIGITS = 12,        /* minimal number of digits, so that ls sorts by number */
    RANDOM_DIGITS = 16, /* hexadecimal digits in an unfinished checkpoint's name */
    LOCK_RETRIES = 200,
    LOCK_PAUSE_MS = 50,
};

static const struct lemon_dir_error success = {0, NULL};

static struct lemon_dir_error make_error(const char *action)
{
    return (struct lemon_dir_error){errno, action};
}

/* ---- names ---- */

bool lemon_series_file_name(const char *base, int64_t number, char name[LEMON_SERIES_NAME_MAX])
{
    return snprintf(name, LEMON_SERIES_NAME_MAX, "%s.%0*" PRId64 ".lime", base, DIGITS,
                    number) < LEMON_SERIES_NAME_MAX;
}

bool lemon_series_part_name(const char *base, int64_t number, uint64_t random,
                            char name[LEMON_SERIES_NAME_MAX])
{
    return snprintf(name, LEMON_SERIES_NAME_MAX, ".%s.%0*" PRId64 ".%0*" PRIx64 ".part", base,
                    DIGITS, number, RANDOM_DIGITS, random) < LEMON_SERIES_NAME_MAX;
}

/* Returns the number of the checkpoint named `name`, or -1 if `name` does not name one. */
static int64_t parse_number_in_name(const char *base, const char *name)
{
    size_t n = strlen(base);
    char canonical[LEMON_SERIES_NAME_MAX];
    if (strncmp(name, base, n) != 0 || name[n] != '.' || !isdigit((unsigned char)name[n + 1]))
        return -1;
    errno = 0;
    int64_t number = strtoll(name + n + 1, NULL, 10);
    if (errno || !lemon_series_file_name(base, number, canonical) ||
        strcmp(canonical, name) != 0)
        return -1;
    return number;
}

static bool is_part_name(const char *base, const char *name)
{
    size_t n = strlen(base);
    if (name[0] != '.' || strncmp(name + 1, base, n) != 0 || name[1 + n] != '.')
        return false;
    const char *number = name + 1 + n + 1;
    size_t digits = strspn(number, "0123456789");
    return digits >= DIGITS && number[digits] == '.' &&
           strspn(number + digits + 1, "0123456789abcdef") == RANDOM_DIGITS &&
           strcmp(number + digits + 1 + RANDOM_DIGITS, ".part") == 0;
}

/* ---- the directory ---- */

/* Returns a new stream of the directory's entries, with a position of its own, or NULL. */
static DIR *open_entries(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries && fd >= 0)
        close(fd);
    return entries;
}

static struct lemon_dir_error remove_part_files(const struct lemon_series_dir *dir)
{
    DIR *entries = open_entries(dir->fd);
    if (!entries)
        return make_error("open");
    struct lemon_dir_error result = success;
    for (struct dirent *e; (e = readdir(entries)) != NULL;)
        if (is_part_name(dir->base, e->d_name) && unlinkat(dir->fd, e->d_name, 0) != 0 &&
            errno != ENOENT)
            result = make_error("remove an unfinished checkpoint");
    closedir(entries);
    return result;
}

/* Locks the file. Waits up to 10 s, because a killed process holds the lock until its last
 * thread has ended, possibly after a sync. Returns 0 or an errno (EBUSY after these 10 s). */
static int wait_for_lock(int fd)
{
    const struct timespec pause = {0, LOCK_PAUSE_MS * 1000000L};
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    for (int i = 0; fcntl(fd, F_OFD_SETLK, &all) != 0; i++) {
        if (errno != EAGAIN && errno != EACCES)
            return errno;
        if (i == LOCK_RETRIES)
            return EBUSY;
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* Locks the series. If the file system has no locks, sets *locks to false, without an error. */
static struct lemon_dir_error lock_series(struct lemon_series_dir *dir, bool *locks)
{
    char name[LEMON_SERIES_NAME_MAX];
    if (snprintf(name, sizeof name, ".%s.lock", dir->base) >= (int)sizeof name)
        return (struct lemon_dir_error){ENAMETOOLONG, "lock"};
    dir->lock =
        openat(dir->fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
    if (dir->lock < 0)
        return make_error("lock");
    int err = wait_for_lock(dir->lock);
    *locks = err == 0 || err == EBUSY;
    return (struct lemon_dir_error){err == EBUSY ? EBUSY : 0, "lock"};
}

struct lemon_dir_error lemon_series_dir_open(struct lemon_series_dir *dir, const char *path,
                                             bool *locks)
{
    dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->fd < 0)
        return make_error("open");
    struct lemon_dir_error result = lock_series(dir, locks);
    return result.error ? result : remove_part_files(dir);
}

void lemon_series_dir_close(struct lemon_series_dir *dir)
{
    if (dir->lock >= 0)
        close(dir->lock);
    if (dir->fd >= 0)
        close(dir->fd);
    dir->lock = dir->fd = -1;
}

/* ---- complete checkpoints ---- */

static int compare_descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Appends to an array. The array is full if its length is 0 or a power of 2. */
static bool append_number(int64_t **numbers, int64_t *count, int64_t number)
{
    if ((*count & (*count - 1)) == 0) {
        size_t capacity = *count ? 2 * (size_t)*count : 1;
        int64_t *grown = realloc(*numbers, capacity * sizeof *grown);
        if (!grown)
            return false;
        *numbers = grown;
    }
    (*numbers)[(*count)++] = number;
    return true;
}

struct lemon_dir_error lemon_series_dir_list(const struct lemon_series_dir *dir,
                                             int64_t **numbers, int64_t *count)
{
    *numbers = NULL, *count = 0;
    DIR *entries = open_entries(dir->fd);
    if (!entries)
        return make_error("open");
    struct lemon_dir_error result = success;
    errno = 0;
    for (struct dirent *e; !result.error && (e = readdir(entries)) != NULL; errno = 0) {
        int64_t number = parse_number_in_name(dir->base, e->d_name);
        struct stat st;
        if (number < 0)
            continue;
        /* Do not omit a file after an error: it may be the newest checkpoint. */
        if (fstatat(dir->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            result = errno == ENOENT ? success : make_error("list");
        else if (S_ISREG(st.st_mode) && !append_number(numbers, count, number))
            result = (struct lemon_dir_error){ENOMEM, "list"};
    }
    if (!result.error && errno)
        result = make_error("list");
    closedir(entries);
    if (*count > 0)
        qsort(*numbers, (size_t)*count, sizeof **numbers, compare_descending);
    return result;
}

struct lemon_dir_error lemon_series_dir_publish(const struct lemon_series_dir *dir, int fd,
                                                const char *part, int64_t number)
{
    char name[LEMON_SERIES_NAME_MAX];
    struct stat opened, named;
    lemon_series_file_name(dir->base, number, name);
    if (fstat(fd, &opened) != 0 || fstatat(dir->fd, part, &named, AT_SYMLINK_NOFOLLOW) != 0)
        return make_error("publish");
    if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino)
        return (struct lemon_dir_error){ESTALE, "publish"};
    if (renameat(dir->fd, part, dir->fd, name) != 0)
        return make_error("rename");
    return fsync(dir->fd) == 0 || errno == EINVAL ? success : make_error("sync the directory");
}

static struct lemon_dir_error remove_checkpoint(const struct lemon_series_dir *dir,
                                                int64_t number)
{
    char name[LEMON_SERIES_NAME_MAX];
    lemon_series_file_name(dir->base, number, name);
    return unlinkat(dir->fd, name, 0) == 0 || errno == ENOENT
               ? success
               : make_error("remove an old checkpoint");
}

struct lemon_dir_error lemon_series_dir_prune(const struct lemon_series_dir *dir,
                                              int64_t newest, int64_t keep)
{
    int64_t *numbers, count;
    struct lemon_dir_error result = lemon_series_dir_list(dir, &numbers, &count);
    bool removed = false;
    for (int64_t i = 0; !result.error && i < count; i++)
        if (numbers[i] > newest || keep-- <= 0) {
            result = remove_checkpoint(dir, numbers[i]);
            removed = true;
        }
    free(numbers);
    if (removed && !result.error && fsync(dir->fd) != 0 && errno != EINVAL)
        result = make_error("sync the directory");
    return result;
}
