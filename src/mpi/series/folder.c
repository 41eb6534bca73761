/* folder.c - the directory of a series: file names, locking, listing, publishing, removing */
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
    DIGITS = 12,  /* minimal number of digits, so that ls sorts by number */
    CHANCES = 16, /* hexadecimal digits in an unfinished checkpoint's name */
    LOCK_PAUSES = 200,
    LOCK_PAUSE_MS = 50,
};

static const struct lemon_folder_fault good = {0, NULL};

static struct lemon_folder_fault fault(const char *action)
{
    return (struct lemon_folder_fault){errno, action};
}

/* ---- names ---- */

bool lemon_folder_name(const char *base, int64_t number, char name[LEMON_SERIES_NAME])
{
    return snprintf(name, LEMON_SERIES_NAME, "%s.%0*" PRId64 ".lime", base, DIGITS, number) <
           LEMON_SERIES_NAME;
}

bool lemon_folder_part(const char *base, int64_t number, uint64_t chance,
                       char name[LEMON_SERIES_NAME])
{
    return snprintf(name, LEMON_SERIES_NAME, ".%s.%0*" PRId64 ".%0*" PRIx64 ".part", base,
                    DIGITS, number, CHANCES, chance) < LEMON_SERIES_NAME;
}

/* Returns the number in a checkpoint's name, or -1 if the name is not canonical. */
static int64_t number_of(const char *base, const char *name)
{
    size_t n = strlen(base);
    char again[LEMON_SERIES_NAME];
    if (strncmp(name, base, n) != 0 || name[n] != '.' || !isdigit((unsigned char)name[n + 1]))
        return -1;
    errno = 0;
    int64_t number = strtoll(name + n + 1, NULL, 10);
    if (errno || !lemon_folder_name(base, number, again) || strcmp(again, name) != 0)
        return -1;
    return number;
}

static bool is_part(const char *base, const char *name)
{
    size_t n = strlen(base);
    if (name[0] != '.' || strncmp(name + 1, base, n) != 0 || name[1 + n] != '.')
        return false;
    const char *number = name + 1 + n + 1;
    size_t digits = strspn(number, "0123456789");
    return digits >= DIGITS && number[digits] == '.' &&
           strspn(number + digits + 1, "0123456789abcdef") == CHANCES &&
           strcmp(number + digits + 1 + CHANCES, ".part") == 0;
}

/* ---- the directory ---- */

/* Returns a new stream, which starts at the first entry. */
static DIR *entries_of(int folder)
{
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    if (!entries && again >= 0)
        close(again);
    return entries;
}

static struct lemon_folder_fault remove_parts(const struct lemon_folder *folder)
{
    DIR *entries = entries_of(folder->fd);
    if (!entries)
        return fault("open");
    struct lemon_folder_fault met = good;
    for (struct dirent *e; (e = readdir(entries)) != NULL;)
        if (is_part(folder->base, e->d_name) && unlinkat(folder->fd, e->d_name, 0) != 0 &&
            errno != ENOENT)
            met = fault("remove an unfinished checkpoint");
    closedir(entries);
    return met;
}

/* A killed process holds the lock until its last thread has ended, possibly after a sync. */
static int wait_for_lock(int fd)
{
    const struct timespec pause = {0, LOCK_PAUSE_MS * 1000000L};
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    for (int i = 0; fcntl(fd, F_OFD_SETLK, &all) != 0; i++) {
        if (errno != EAGAIN && errno != EACCES)
            return errno;
        if (i == LOCK_PAUSES)
            return EBUSY;
        nanosleep(&pause, NULL);
    }
    return 0;
}

static struct lemon_folder_fault take_lock(struct lemon_folder *folder, bool *locks)
{
    char name[LEMON_SERIES_NAME];
    if (snprintf(name, sizeof name, ".%s.lock", folder->base) >= (int)sizeof name)
        return (struct lemon_folder_fault){ENAMETOOLONG, "lock"};
    folder->lock =
        openat(folder->fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
    if (folder->lock < 0)
        return fault("lock");
    int err = wait_for_lock(folder->lock);
    *locks = err == 0 || err == EBUSY;
    return (struct lemon_folder_fault){err == EBUSY ? EBUSY : 0, "lock"};
}

struct lemon_folder_fault lemon_folder_open(struct lemon_folder *folder, const char *path,
                                            bool *locks)
{
    folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd < 0)
        return fault("open");
    struct lemon_folder_fault met = take_lock(folder, locks);
    return met.error ? met : remove_parts(folder);
}

void lemon_folder_close(struct lemon_folder *folder)
{
    if (folder->lock >= 0)
        close(folder->lock);
    if (folder->fd >= 0)
        close(folder->fd);
    folder->lock = folder->fd = -1;
}

/* ---- complete checkpoints ---- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Appends to an array whose capacity doubles at each power of 2. */
static bool add(int64_t **numbers, int64_t *count, int64_t number)
{
    if ((*count & (*count - 1)) == 0) {
        size_t room = *count ? 2 * (size_t)*count : 1;
        int64_t *more = realloc(*numbers, room * sizeof *more);
        if (!more)
            return false;
        *numbers = more;
    }
    (*numbers)[(*count)++] = number;
    return true;
}

struct lemon_folder_fault lemon_folder_list(const struct lemon_folder *folder,
                                            int64_t **numbers, int64_t *count)
{
    *numbers = NULL, *count = 0;
    DIR *entries = entries_of(folder->fd);
    if (!entries)
        return fault("open");
    struct lemon_folder_fault met = good;
    errno = 0;
    for (struct dirent *e; !met.error && (e = readdir(entries)) != NULL; errno = 0) {
        int64_t number = number_of(folder->base, e->d_name);
        struct stat st;
        if (number < 0)
            continue;
        if (fstatat(folder->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            met = errno == ENOENT ? good : fault("list"); /* it may be the newest */
        else if (S_ISREG(st.st_mode) && !add(numbers, count, number))
            met = (struct lemon_folder_fault){ENOMEM, "list"};
    }
    if (!met.error && errno)
        met = fault("list");
    closedir(entries);
    if (*count > 0)
        qsort(*numbers, (size_t)*count, sizeof **numbers, compare);
    return met;
}

struct lemon_folder_fault lemon_folder_publish(const struct lemon_folder *folder, int fd,
                                               const char *part, int64_t number)
{
    char name[LEMON_SERIES_NAME];
    struct stat ours, named;
    lemon_folder_name(folder->base, number, name);
    if (fstat(fd, &ours) != 0 || fstatat(folder->fd, part, &named, AT_SYMLINK_NOFOLLOW) != 0)
        return fault("publish");
    if (ours.st_dev != named.st_dev || ours.st_ino != named.st_ino)
        return (struct lemon_folder_fault){ESTALE, "publish"};
    if (renameat(folder->fd, part, folder->fd, name) != 0)
        return fault("rename");
    return fsync(folder->fd) == 0 || errno == EINVAL ? good : fault("sync the folder");
}

static struct lemon_folder_fault remove_number(const struct lemon_folder *folder,
                                               int64_t number)
{
    char name[LEMON_SERIES_NAME];
    lemon_folder_name(folder->base, number, name);
    return unlinkat(folder->fd, name, 0) == 0 || errno == ENOENT
               ? good
               : fault("remove an old checkpoint");
}

struct lemon_folder_fault lemon_folder_remove(const struct lemon_folder *folder, int64_t newest,
                                              int64_t keep)
{
    int64_t *numbers, count;
    struct lemon_folder_fault met = lemon_folder_list(folder, &numbers, &count);
    bool any = false;
    for (int64_t i = 0; !met.error && i < count; i++)
        if (numbers[i] > newest || keep-- <= 0) {
            met = remove_number(folder, numbers[i]);
            any = true;
        }
    free(numbers);
    if (any && !met.error && fsync(folder->fd) != 0 && errno != EINVAL)
        met = fault("sync the folder");
    return met;
}
