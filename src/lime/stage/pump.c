/* pump.c - threads, memory, and flows that begin and end */
#define _GNU_SOURCE
#include "port.h"
#include "pumping.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- threads ---- */

static void work(struct stage_pump *p, void (*some)(struct stage_pump *))
{
    pthread_mutex_lock(&p->lock);
    while (!p->ending)
        some(p);
    pthread_mutex_unlock(&p->lock);
}

static void *read_thread(void *pump)
{
    work(pump, stage_pump_read);
    return NULL;
}

static void *write_thread(void *pump)
{
    work(pump, stage_pump_write);
    return NULL;
}

static void *sum_thread(void *pump)
{
    work(pump, stage_pump_sum);
    return NULL;
}

static int start(struct stage_pump *p, void *(*function)(void *), unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        int err = pthread_create(&p->threads[p->thread_count], NULL, function, p);
        if (err)
            return -err;
        p->thread_count++;
    }
    return 0;
}

static unsigned summers(void)
{
    cpu_set_t set;
    unsigned n = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 2;
    return n < 2 ? 2 : n > SUMMERS_MOST ? SUMMERS_MOST : n;
}

/* ---- memory ---- */

static int get_memory(struct stage_pump *p, struct stage_remote *remote)
{
    if (remote) {
        p->block_bytes = stage_remote_block_bytes(remote);
        for (unsigned i = 0; i < BLOCKS; i++) {
            p->blocks[i].data = stage_remote_window(remote) + i * p->block_bytes;
            p->blocks[i].lender = remote;
        }
        return 0;
    }
    p->block_bytes = BLOCK_BYTES;
    size_t bytes = BLOCKS * p->block_bytes;
    p->memory = limefile_buffer_new(&bytes);
    if (!p->memory)
        return -ENOMEM;
    for (unsigned i = 0; i < BLOCKS; i++)
        p->blocks[i].data = p->memory + i * p->block_bytes;
    return 0;
}

int stage_pump_new(struct stage_remote *remote, struct stage_pump **out)
{
    struct stage_pump *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->to_read, NULL);
    pthread_cond_init(&p->to_write, NULL);
    pthread_cond_init(&p->to_sum, NULL);
    p->free_count = BLOCKS;
    int err = get_memory(p, remote);
    if (!err)
        err = start(p, read_thread, READERS);
    if (!err)
        err = start(p, write_thread, WRITERS);
    if (!err)
        err = start(p, sum_thread, summers());
    if (err)
        stage_pump_free(p);
    else
        *out = p;
    return err;
}

void stage_pump_free(struct stage_pump *p)
{
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    stage_pump_wake(p);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->thread_count; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->to_read);
    pthread_cond_destroy(&p->to_write);
    pthread_cond_destroy(&p->to_sum);
    pthread_mutex_destroy(&p->lock);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (p->blocks[i].data && !p->blocks[i].lender && !p->memory)
            free(p->blocks[i].data);
    free(p->memory);
    free(p);
}

size_t stage_pump_block_bytes(const struct stage_pump *p)
{
    return p->block_bytes;
}

/* ---- flows ---- */

int stage_pump_begin(struct stage_pump *p, struct stage_flow *f)
{
    f->blocks = f->size / p->block_bytes + (f->size % p->block_bytes != 0);
    f->crc_at = calloc(f->blocks + 1, sizeof *f->crc_at);
    if (!f->crc_at)
        return -ENOMEM;
    f->crc_at[0] = f->sums->crc;
    pthread_cond_init(&f->changed, NULL);
    pthread_mutex_lock(&p->lock);
    if (p->stopped)
        f->err = -EINTR;
    f->next = p->flows;
    p->flows = f;
    p->flow_count++;
    pthread_cond_broadcast(&p->to_read);
    pthread_mutex_unlock(&p->lock);
    return 0;
}

uint64_t stage_pump_wait(struct stage_pump *p, struct stage_flow *f, uint64_t until)
{
    pthread_mutex_lock(&p->lock);
    while (!stage_flow_is_over(f) && f->done < until)
        pthread_cond_wait(&f->changed, &p->lock);
    uint64_t done = f->done * p->block_bytes;
    pthread_mutex_unlock(&p->lock);
    return done < f->size ? done : f->size;
}

bool stage_pump_is_over(struct stage_pump *p, struct stage_flow *f)
{
    pthread_mutex_lock(&p->lock);
    bool over = stage_flow_is_over(f);
    pthread_mutex_unlock(&p->lock);
    return over;
}

void stage_pump_cancel(struct stage_pump *p, struct stage_flow *f, int err)
{
    pthread_mutex_lock(&p->lock);
    if (f->done < f->blocks)
        stage_flow_fail(p, f, err, false, 0);
    while (!stage_flow_is_over(f))
        pthread_cond_wait(&f->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void stage_pump_end(struct stage_pump *p, struct stage_flow *f)
{
    pthread_mutex_lock(&p->lock);
    for (struct stage_flow **at = &p->flows; *at; at = &(*at)->next)
        if (*at == f) {
            *at = f->next;
            p->flow_count--;
            break;
        }
    pthread_cond_broadcast(&p->to_read); /* the others' shares are larger now */
    pthread_mutex_unlock(&p->lock);
    pthread_cond_destroy(&f->changed);
    free(f->crc_at);
    f->crc_at = NULL;
}

void stage_pump_stop(struct stage_pump *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopped = true;
    for (struct stage_flow *f = p->flows; f; f = f->next)
        if (f->done < f->blocks)
            stage_flow_fail(p, f, -EINTR, false, 0);
    pthread_mutex_unlock(&p->lock);
}
