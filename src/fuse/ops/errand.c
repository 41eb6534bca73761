/* errand.c - a work queue for requests that may take seconds */
#include "errand.h"

#include <errno.h>
#include <stdlib.h>

struct limefs_errands {
    struct limefs *fs;
    pthread_t thread;
    struct limefs_lock lock;
    pthread_cond_t changed;
    bool ending;
    struct limefs_errand *first, **last; /* the thread may be running the first */
};

static void on_interrupt(fuse_req_t req, void *data)
{
    struct limefs_errand *errand = data;
    (void)req;
    atomic_store(&errand->stop, true);
}

static void *run_all(void *data)
{
    struct limefs_errands *errands = data;
    limefs_lock(&errands->lock);
    for (;;) {
        struct limefs_errand *errand = errands->first;
        if (!errand && errands->ending)
            break;
        if (!errand) {
            limefs_wait(&errands->changed, &errands->lock);
            continue;
        }
        limefs_unlock(&errands->lock);
        errand->run(errands->fs, errand);
        limefs_lock(&errands->lock);
        errands->first = errand->next;
        if (!errands->first)
            errands->last = &errands->first;
        free(errand);
    }
    limefs_unlock(&errands->lock);
    return NULL;
}

int limefs_errands_begin(struct limefs *fs)
{
    struct limefs_errands *errands = calloc(1, sizeof *errands);
    if (!errands)
        return -ENOMEM;
    errands->fs = fs;
    errands->last = &errands->first;
    limefs_lock_init(&errands->lock, LIMEFS_LOCK_ERRANDS);
    pthread_cond_init(&errands->changed, NULL);
    int err = limefs_thread_start(&errands->thread, NULL, run_all, errands);
    if (err) {
        free(errands);
        return err;
    }
    fs->errands = errands;
    return 0;
}

int limefs_errand_send(struct limefs *fs, const struct limefs_errand *what)
{
    struct limefs_errands *errands = fs->errands;
    struct limefs_errand *errand = malloc(sizeof *errand);
    if (!errand)
        return -ENOMEM;
    *errand = *what;
    errand->next = NULL;
    atomic_init(&errand->stop, false);
    limefs_lock(&errands->lock);
    fuse_req_interrupt_func(errand->req, on_interrupt, errand);
    *errands->last = errand;
    errands->last = &errand->next;
    pthread_cond_signal(&errands->changed);
    limefs_unlock(&errands->lock);
    return 0;
}

void limefs_errands_end(struct limefs *fs)
{
    struct limefs_errands *errands = fs->errands;
    if (!errands)
        return;
    limefs_lock(&errands->lock);
    errands->ending = true;
    for (struct limefs_errand *errand = errands->first; errand; errand = errand->next)
        atomic_store(&errand->stop, true);
    pthread_cond_signal(&errands->changed);
    limefs_unlock(&errands->lock);
    pthread_join(errands->thread, NULL);
    limefs_lock_destroy(&errands->lock);
    pthread_cond_destroy(&errands->changed);
    free(errands);
    fs->errands = NULL;
}
