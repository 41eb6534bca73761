/* pumpwork.c - who does what next, under one lock; the work is done outside of it */
#define _GNU_SOURCE
#include "port.h"
#include "pumping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- blocks ---- */

bool stage_flow_is_over(const struct stage_flow *f)
{
    return f->err ? f->in_flight == 0 : f->done == f->blocks;
}

void stage_pump_wake(struct stage_pump *p)
{
    pthread_cond_broadcast(&p->to_read);
    pthread_cond_broadcast(&p->to_write);
    pthread_cond_broadcast(&p->to_sum);
}

/* Gives a block back that nobody needs any more. */
void stage_block_settle(struct stage_pump *p, struct stage_block *b)
{
    struct stage_flow *f = b->flow;
    if (b->busy || (!f->err && b->needs))
        return;
    unsigned slot = b->number % STAGE_RING;
    f->ring[slot] = NULL;
    f->finished[slot] = !f->err;
    f->in_flight--;
    if (f->moved && !f->err) {
        atomic_fetch_add(f->moved, b->n);
        f->told += b->n;
    }
    b->flow = NULL;
    p->free_count++;
    while (f->finished[f->done % STAGE_RING]) {
        f->finished[f->done % STAGE_RING] = false;
        f->done++;
    }
    pthread_cond_broadcast(&p->to_read);
    pthread_cond_broadcast(&f->changed);
}

void stage_flow_fail(struct stage_pump *p, struct stage_flow *f, int err, bool writing,
                     uint64_t offset)
{
    if (f->err)
        return;
    f->err = err;
    f->writing = writing;
    f->err_offset = offset;
    for (unsigned i = 0; i < STAGE_RING; i++)
        if (f->ring[i])
            stage_block_settle(p, f->ring[i]);
    pthread_cond_broadcast(&f->changed);
}

static struct stage_block *free_block(struct stage_pump *p)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (!p->blocks[i].flow)
            return &p->blocks[i];
    return NULL;
}

/* ---- reading ---- */

/* How many blocks a flow may have under way. */
static unsigned share_of(const struct stage_pump *p)
{
    unsigned share = BLOCKS / (p->flow_count ? p->flow_count : 1);
    return share < BLOCKS_LEAST ? BLOCKS_LEAST : share > BLOCKS_MOST ? BLOCKS_MOST : share;
}

/* The flow that has the fewest blocks under way, among those that may have another. */
static struct stage_flow *flow_to_read(struct stage_pump *p)
{
    struct stage_flow *best = NULL;
    if (!p->free_count)
        return NULL;
    unsigned share = share_of(p);
    for (struct stage_flow *f = p->flows; f; f = f->next)
        if (!f->err && f->next_read < f->blocks && f->next_read - f->done < share &&
            (!best || f->in_flight < best->in_flight))
            best = f;
    return best;
}

static struct stage_block *begin_read(struct stage_pump *p, struct stage_flow *f)
{
    struct stage_block *b = free_block(p);
    b->flow = f;
    b->number = f->next_read++;
    b->offset = b->number * p->block_bytes;
    b->n =
        f->size - b->offset < p->block_bytes ? (size_t)(f->size - b->offset) : p->block_bytes;
    b->needs = NEED_SUM | (f->out.fd >= 0 && b->offset >= f->kept_bytes ? NEED_WRITE : 0);
    b->busy = 1;
    b->ready = false;
    f->ring[b->number % STAGE_RING] = b;
    f->in_flight++;
    p->free_count--;
    return b;
}

void stage_pump_read(struct stage_pump *p)
{
    struct stage_flow *f = flow_to_read(p);
    if (!f) {
        pthread_cond_wait(&p->to_read, &p->lock);
        return;
    }
    struct stage_block *b = begin_read(p, f);
    struct stage_port *from = b->offset < f->kept_bytes ? &f->kept : &f->in;
    pthread_mutex_unlock(&p->lock);
    int err = stage_port_read(from, &b->data, &b->lender, p->block_bytes, b->n, b->offset);
    pthread_mutex_lock(&p->lock);
    b->busy--;
    b->ready = true;
    if (err)
        stage_flow_fail(p, f, err, false, b->offset);
    if (f->err) {
        if (b->flow) /* failing has settled it, unless it had failed before */
            stage_block_settle(p, b);
        return;
    }
    if (b->needs & NEED_WRITE)
        pthread_cond_signal(&p->to_write);
    pthread_cond_broadcast(&p->to_sum);
}

/* ---- writing ---- */

static struct stage_block *block_to_write(const struct stage_pump *p)
{
    struct stage_block *best = NULL;
    for (struct stage_flow *f = p->flows; f; f = f->next)
        for (uint64_t i = f->done; !f->err && i < f->next_read; i++) {
            struct stage_block *b = f->ring[i % STAGE_RING];
            if (b && b->ready && (b->needs & NEED_WRITE) &&
                (!best || b->number < best->number)) {
                best = b;
                break;
            }
        }
    return best;
}

void stage_pump_write(struct stage_pump *p)
{
    struct stage_block *b = block_to_write(p);
    if (!b) {
        pthread_cond_wait(&p->to_write, &p->lock);
        return;
    }
    b->needs &= ~(unsigned)NEED_WRITE;
    b->busy++;
    pthread_mutex_unlock(&p->lock);
    int err = stage_port_write(&b->flow->out, b->data, b->lender, b->n, b->offset);
    pthread_mutex_lock(&p->lock);
    b->busy--;
    if (err)
        stage_flow_fail(p, b->flow, err, true, b->offset);
    if (b->flow) /* failing has settled it, unless somebody else is at it */
        stage_block_settle(p, b);
}

/* ---- summing ---- */

static struct stage_block *ready_block(const struct stage_flow *f, uint64_t number)
{
    struct stage_block *b =
        !f->err && number < f->next_read ? f->ring[number % STAGE_RING] : NULL;
    return b && b->number == number && b->ready ? b : NULL;
}

void stage_pump_sum(struct stage_pump *p)
{
    struct stage_block *b = NULL;
    struct stage_flow *f = p->flows;
    for (; f; f = f->next)
        if (!f->summing && (b = ready_block(f, f->next_sum)))
            break;
    if (!b) {
        pthread_cond_wait(&p->to_sum, &p->lock);
        return;
    }
    b->busy++;
    f->summing = true;
    pthread_mutex_unlock(&p->lock);
    stage_datasums_add(f->data, f->sums, b->data, b->n);
    stage_sums_add(f->sums, b->data, b->n);
    f->crc_at[b->number + 1] = f->sums->crc;
    if (f->fields)
        stage_fieldsums_add(f->fields, b->data, b->n, b->offset);
    pthread_mutex_lock(&p->lock);
    f->summing = false;
    f->next_sum++;
    b->busy--;
    b->needs &= ~(unsigned)NEED_SUM;
    stage_block_settle(p, b);
    pthread_cond_signal(&p->to_sum);
}
