/* stage.c - stage a list of files, with one thread per file in progress, and queue results */
#define _GNU_SOURCE
#include "stage.h"
#include "stage_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

enum {
    RESULTS_MAX = 8192, /* no file begins while so many results, of 3 KB each, are unreleased */
};

struct result_node {
    struct stage_result result;
    struct stage *stage;
    struct result_node *next;
};

/* A thread that stages one file after another. */
struct worker {
    struct stage *stage;
    struct stage_ring ring;
    pthread_t thread;
};

struct stage {
    struct stage_options options;
    const struct stage_item *items;
    size_t count;
    struct stage_remote *remote;
    char job_failure[STAGE_REASON_MAX]; /* "" if the job has not failed */

    pthread_mutex_t lock;
    pthread_cond_t result_ready;    /* signals a new result, or a thread that has ended */
    pthread_cond_t result_released; /* signals a released result, or stage_stop() */
    size_t unreleased;              /* number of results, including files in progress */
    size_t next;                    /* subscript of the next item to stage */
    struct result_node *first, **last;
    unsigned running, thread_count, ring_count;
    atomic_uint_fast64_t moved;
    atomic_bool stopped;
    struct worker workers[STAGE_FILES_AT_ONCE_MAX];
};

/* Creates the node of the next item. Waits while too many results are not released. The caller
 * holds s->lock. NULL: no item is left, stage_stop() was called, or out of memory. */
static struct result_node *create_next_node(struct stage *s)
{
    while (s->unreleased >= RESULTS_MAX && !atomic_load(&s->stopped))
        pthread_cond_wait(&s->result_released, &s->lock);
    if (s->next == s->count || atomic_load(&s->stopped))
        return NULL;
    struct result_node *node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    node->stage = s;
    node->result.item = &s->items[s->next++];
    s->unreleased++;
    return node;
}

static void stage_node(struct worker *w, struct result_node *node)
{
    struct stage *s = w->stage;
    struct stage_file file = {.options = &s->options,
                              .item = node->result.item,
                              .result = &node->result,
                              .ring = &w->ring,
                              .remote = s->remote,
                              .moved = &s->moved,
                              .stopped = &s->stopped};
    stage_file_run(&file);
}

static void *run_stage_worker(void *worker)
{
    struct worker *w = worker;
    struct stage *s = w->stage;
    pthread_mutex_lock(&s->lock);
    for (struct result_node *node; (node = create_next_node(s));) {
        pthread_mutex_unlock(&s->lock);
        stage_node(w, node);
        pthread_mutex_lock(&s->lock);
        *s->last = node;
        s->last = &node->next;
        pthread_cond_broadcast(&s->result_ready);
    }
    s->running--;
    pthread_cond_broadcast(&s->result_ready);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void connect_job(struct stage *s, unsigned blocks)
{
    char text[STAGE_REASON_MAX];
    if (!s->options.socket)
        return;
    if (stage_remote_connect(s->options.socket, blocks, s->options.job_timeout, &s->remote,
                             text, sizeof text) != 0)
        memcpy(s->job_failure, text, sizeof text);
}

static int start_workers(struct stage *s, unsigned count)
{
    unsigned blocks = stage_ring_blocks(count);
    int err = 0;
    connect_job(s, count * blocks);
    for (unsigned i = 0; !err && i < count; i++) {
        s->workers[i].stage = s;
        err = stage_ring_init(&s->workers[i].ring, blocks, s->remote, i * blocks);
        s->ring_count++;
    }
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; !err && i < count; i++) {
        err = -pthread_create(&s->workers[i].thread, NULL, run_stage_worker, &s->workers[i]);
        if (!err)
            s->running = ++s->thread_count;
    }
    pthread_mutex_unlock(&s->lock);
    return s->thread_count ? 0 : err; /* fewer threads than requested are not an error */
}

int stage_start(const struct stage_options *options, const struct stage_item *items,
                size_t count, struct stage **out)
{
    struct stage *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->result_ready, &clock);
    pthread_cond_init(&s->result_released, NULL);
    pthread_condattr_destroy(&clock);
    s->options = *options;
    s->items = items;
    s->count = count;
    s->last = &s->first;
    int err = start_workers(s, count < options->files_at_once ? (unsigned)count
                                                              : options->files_at_once);
    if (err)
        stage_free(s);
    else
        *out = s;
    return err;
}

int stage_wait(struct stage *s, int timeout_ms, struct stage_result **out, uint64_t *moved)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&s->lock);
    int waited = 0;
    while (!s->first && s->running && !waited)
        waited = pthread_cond_timedwait(&s->result_ready, &s->lock, &until);
    struct result_node *node = s->first;
    if (node) {
        s->first = node->next;
        if (!s->first)
            s->last = &s->first;
        *out = &node->result;
    }
    int result = node ? 1 : s->running ? 0 : -1;
    pthread_mutex_unlock(&s->lock);
    *moved = atomic_load(&s->moved);
    return result;
}

void stage_result_release(struct stage_result *result)
{
    stage_messages_release(&result->warnings);
    stage_messages_release(&result->unverified);
    struct result_node *node = (struct result_node *)result; /* the node's first member */
    struct stage *s = node->stage;
    pthread_mutex_lock(&s->lock);
    s->unreleased--;
    pthread_cond_signal(&s->result_released);
    pthread_mutex_unlock(&s->lock);
    free(node);
}

void stage_stop(struct stage *s)
{
    atomic_store(&s->stopped, true);
    pthread_mutex_lock(&s->lock);
    pthread_cond_broadcast(&s->result_released);
    pthread_mutex_unlock(&s->lock);
}

const char *stage_job_failure(struct stage *s)
{
    const char *why = NULL;
    if (s->job_failure[0])
        return s->job_failure;
    return s->remote && stage_remote_has_failed(s->remote, &why) ? why : NULL;
}

void stage_free(struct stage *s)
{
    for (unsigned i = 0; i < s->thread_count; i++)
        pthread_join(s->workers[i].thread, NULL);
    for (unsigned i = 0; i < s->ring_count; i++)
        stage_ring_release(&s->workers[i].ring);
    if (s->remote)
        stage_remote_free(s->remote);
    pthread_cond_destroy(&s->result_ready);
    pthread_cond_destroy(&s->result_released);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int stage_compute_space(const struct stage_item *items, size_t count, const char *dir,
                        uint64_t *needed, uint64_t *available)
{
    struct statvfs fs;
    if (statvfs(dir, &fs) != 0)
        return -errno;
    *available = (uint64_t)fs.f_bavail * fs.f_frsize;
    *needed = 0;
    for (size_t i = 0; i < count; i++) {
        struct stat st;
        uint64_t has = stage_target_disk_bytes(items[i].target);
        if (lstat(items[i].target, &st) == 0 && S_ISREG(st.st_mode) &&
            (uint64_t)st.st_size == items[i].size)
            continue; /* it is probably up to date */
        *needed += items[i].size > has ? items[i].size - has : 0;
    }
    return 0;
}
