/* sniff.c - names of a folder looked up before anybody asks */
#define _GNU_SOURCE
#include "sniff.h"
#include "tree.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    THREADS_MOST = 8,      /* for one reply, */
    ALL_THREADS_MOST = 32, /* and for all, those that hang included */
    NAMES_EACH = 24,       /* for a thread, so that it is worth its while */
    SECONDS = 1,           /* a reply waits no longer */
};

/* Shared by who waits and the threads; the last one frees it. */
struct work {
    pthread_mutex_t lock;
    pthread_cond_t done;
    unsigned users;
    int folder;
    bool formats;
    size_t next, left; /* to be begun; not finished yet */
    atomic_uint *threads;
    struct limefs_sniff names;
};

static void release(struct work *work)
{
    pthread_mutex_lock(&work->lock);
    unsigned left = --work->users;
    pthread_mutex_unlock(&work->lock);
    if (left > 0)
        return;
    pthread_mutex_destroy(&work->lock);
    pthread_cond_destroy(&work->done);
    close(work->folder);
    free(work);
}

/* What its attributes tell, or what was known before, if they are still the same. */
static bool is_told(struct limefs_sniff_name *name, const struct timespec *seen)
{
    const struct stat *st = &name->found.st;
    struct limefile_identity stamp = limefile_identity_of(st);
    bool known = name->sure && limefile_identity_equal(&stamp, &name->stamp);
    name->found.sure = known || limefs_tree_is_sure_link(st, seen);
    name->found.kind = known                  ? name->was
                       : S_ISDIR(st->st_mode) ? LIMEFS_DIRECTORY
                                              : LIMEFS_OTHER;
    return known || !S_ISREG(st->st_mode) || st->st_size < LIMEFS_TREE_SNIFFED;
}

static bool look(const struct work *work, struct limefs_sniff_name *name)
{
    struct timespec seen;
    clock_gettime(CLOCK_REALTIME, &seen);
    if (fstatat(work->folder, name->name, &name->found.st, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    return is_told(name, &seen) ||
           limefs_tree_sniff(work->formats, work->folder, name->name, &name->found) == 0;
}

static void *look_at_names(void *data)
{
    struct work *work = data;
    struct limefs_sniff_name name;
    pthread_mutex_lock(&work->lock);
    while (work->next < work->names.count) {
        size_t i = work->next++;
        name = work->names.names[i];
        pthread_mutex_unlock(&work->lock);
        name.seen = name.wanted && look(work, &name);
        pthread_mutex_lock(&work->lock);
        work->names.names[i] = name;
        if (--work->left == 0)
            pthread_cond_signal(&work->done);
    }
    pthread_mutex_unlock(&work->lock);
    atomic_uint *threads = work->threads;
    release(work);
    (*threads)--;
    return NULL;
}

/* One more thread; the first of a reply may be one too many. */
static bool start(struct work *work, const pthread_attr_t *detached)
{
    pthread_t thread;
    if ((*work->threads)++ < ALL_THREADS_MOST) {
        pthread_mutex_lock(&work->lock);
        work->users++;
        pthread_mutex_unlock(&work->lock);
        if (limefs_thread_start(&thread, detached, look_at_names, work) == 0)
            return true;
        pthread_mutex_lock(&work->lock);
        work->users--;
        pthread_mutex_unlock(&work->lock);
    }
    (*work->threads)--;
    return false;
}

static bool start_all(struct work *work)
{
    pthread_attr_t detached;
    size_t started = 0, wanted = 1 + work->names.count / NAMES_EACH;
    if (pthread_attr_init(&detached) != 0)
        return false;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    while (started < wanted && started < THREADS_MOST && start(work, &detached))
        started++;
    pthread_attr_destroy(&detached);
    return started > 0;
}

static struct work *new_work(struct limefs *fs, int folder, const struct limefs_sniff *names)
{
    struct work *work = malloc(sizeof *work);
    int fd = work ? fcntl(folder, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd < 0) {
        free(work);
        return NULL;
    }
    pthread_mutex_init(&work->lock, NULL);
    limefs_condition_init(&work->done);
    work->users = 1;
    work->folder = fd;
    work->formats = fs->options.formats;
    work->next = 0;
    work->left = names->count;
    work->threads = &fs->looking_ahead;
    work->names.count = names->count;
    memcpy(work->names.names, names->names, names->count * sizeof names->names[0]);
    return work;
}

/* Those that were not seen in time are left out. */
static bool wait_for(struct work *work, struct limefs_sniff *names)
{
    struct timespec until = limefs_clock_time(limefs_seconds() + SECONDS);
    int err = 0;
    pthread_mutex_lock(&work->lock);
    while (work->left > 0 && err == 0)
        err = pthread_cond_timedwait(&work->done, &work->lock, &until);
    bool all = work->left == 0;
    memcpy(names->names, work->names.names, names->count * sizeof names->names[0]);
    work->next = names->count; /* what was not begun is not wanted any more */
    pthread_mutex_unlock(&work->lock);
    return all;
}

bool limefs_sniff_look(struct limefs *fs, int folder, struct limefs_sniff *names)
{
    struct work *work = names->count ? new_work(fs, folder, names) : NULL;
    if (!work)
        return names->count == 0;
    bool all = start_all(work) && wait_for(work, names);
    release(work);
    return all;
}
