/* work.c - a work queue for requests that may take seconds */
#include "work.h"

#include <errno.h>
#include <stdlib.h>

struct limefs_work_queue {
    struct limefs *fs;
    pthread_t thread;
    struct limefs_lock lock;
    pthread_cond_t work_added;
    bool stopping;
    struct limefs_work *first, **last; /* the thread handles the first, and then removes it */
};

static void stop_on_interrupt(fuse_req_t req, void *data)
{
    struct limefs_work *work = data;
    (void)req;
    atomic_store(&work->stop, true);
}

static void *run_queue(void *data)
{
    struct limefs_work_queue *queue = data;
    limefs_lock(&queue->lock);
    for (;;) {
        struct limefs_work *work = queue->first;
        if (!work && queue->stopping)
            break;
        if (!work) {
            limefs_cond_wait(&queue->work_added, &queue->lock);
            continue;
        }
        limefs_unlock(&queue->lock);
        work->run(queue->fs, work);
        limefs_lock(&queue->lock);
        queue->first = work->next;
        if (!queue->first)
            queue->last = &queue->first;
        free(work);
    }
    limefs_unlock(&queue->lock);
    return NULL;
}

int limefs_work_start(struct limefs *fs)
{
    struct limefs_work_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return -ENOMEM;
    queue->fs = fs;
    queue->last = &queue->first;
    limefs_lock_init(&queue->lock, LIMEFS_LOCK_WORK_QUEUE);
    pthread_cond_init(&queue->work_added, NULL);
    int err = limefs_thread_start(&queue->thread, NULL, run_queue, queue);
    if (err) {
        free(queue);
        return err;
    }
    fs->work_queue = queue;
    return 0;
}

int limefs_work_submit(struct limefs *fs, const struct limefs_work *request)
{
    struct limefs_work_queue *queue = fs->work_queue;
    struct limefs_work *work = malloc(sizeof *work);
    if (!work)
        return -ENOMEM;
    *work = *request;
    work->next = NULL;
    atomic_init(&work->stop, false);
    limefs_lock(&queue->lock);
    fuse_req_interrupt_func(work->req, stop_on_interrupt, work);
    *queue->last = work;
    queue->last = &work->next;
    pthread_cond_signal(&queue->work_added);
    limefs_unlock(&queue->lock);
    return 0;
}

void limefs_work_stop(struct limefs *fs)
{
    struct limefs_work_queue *queue = fs->work_queue;
    if (!queue)
        return;
    limefs_lock(&queue->lock);
    queue->stopping = true;
    for (struct limefs_work *work = queue->first; work; work = work->next)
        atomic_store(&work->stop, true);
    pthread_cond_signal(&queue->work_added);
    limefs_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    limefs_lock_destroy(&queue->lock);
    pthread_cond_destroy(&queue->work_added);
    free(queue);
    fs->work_queue = NULL;
}
