/* pump.c - who does what next, under one lock; the work is done outside of it */
#define _GNU_SOURCE
#include "pump.h"
#include "port.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    BLOCK_BYTES = 1 << 20,
    BLOCKS = 32,
    BLOCKS_LEAST = 3, /* of a flow, however many there are: read, summed, written */
    BLOCKS_MOST = 16, /* of a flow, be it the only one: as many again as requests can have */
    READERS = 4,      /* requests that a disk has at once */
    WRITERS = 4,
    SUMMERS_MOST = 8,
};

enum need { NEED_SUM = 1, NEED_MD5 = 2, NEED_WRITE = 4 };

struct stage_block {
    char *data;
    struct stage_remote *lender; /* whose window it is in, or NULL */
    struct stage_flow *flow;     /* NULL: free */
    uint64_t number, offset;     /* in the flow */
    size_t n;
    unsigned needs, busy; /* what is still to do; how many threads are at it */
    bool ready;           /* filled */
};

struct stage_pump {
    pthread_mutex_t lock;
    pthread_cond_t to_read, to_write, to_sum;
    pthread_t threads[READERS + WRITERS + SUMMERS_MOST];
    unsigned thread_count, flow_count, free_count;
    struct stage_flow *flows;
    struct stage_block blocks[BLOCKS];
    size_t block_bytes;
    char *memory;
    bool md5_busy, stopped, ending;
};

/* ---- blocks ---- */

static bool flow_is_over(const struct stage_flow *f)
{
    return f->err ? f->in_flight == 0 : f->done == f->blocks;
}

static void wake_everybody(struct stage_pump *p)
{
    pthread_cond_broadcast(&p->to_read);
    pthread_cond_broadcast(&p->to_write);
    pthread_cond_broadcast(&p->to_sum);
}

/* Gives a block back that nobody needs any more. */
static void settle_block(struct stage_pump *p, struct stage_block *b)
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

static void fail_flow(struct stage_pump *p, struct stage_flow *f, int err, bool writing,
                      uint64_t offset)
{
    if (f->err)
        return;
    f->err = err;
    f->writing = writing;
    f->err_offset = offset;
    for (unsigned i = 0; i < STAGE_RING; i++)
        if (f->ring[i])
            settle_block(p, f->ring[i]);
    pthread_cond_broadcast(&p->to_sum); /* MD5 need not wait for it any more */
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
    b->needs = NEED_SUM | (f->sums->kinds & STAGE_MD5 ? NEED_MD5 : 0) |
               (f->out.fd >= 0 && b->offset >= f->kept_bytes ? NEED_WRITE : 0);
    b->busy = 1;
    b->ready = false;
    f->ring[b->number % STAGE_RING] = b;
    f->in_flight++;
    p->free_count--;
    return b;
}

static void read_some(struct stage_pump *p)
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
        fail_flow(p, f, err, false, b->offset);
    if (f->err) {
        if (b->flow) /* failing has settled it, unless it had failed before */
            settle_block(p, b);
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

static void write_some(struct stage_pump *p)
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
        fail_flow(p, b->flow, err, true, b->offset);
    if (b->flow) /* failing has settled it, unless somebody else is at it */
        settle_block(p, b);
}

/* ---- summing ---- */

static struct stage_block *ready_block(const struct stage_flow *f, uint64_t number)
{
    struct stage_block *b =
        !f->err && number < f->next_read ? f->ring[number % STAGE_RING] : NULL;
    return b && b->number == number && b->ready ? b : NULL;
}

static void end_sum(struct stage_pump *p, struct stage_block *b, unsigned need)
{
    b->busy--;
    b->needs &= ~need;
    settle_block(p, b);
}

/* MD5 waits until every flow that wants it has a block for its lane; but not for one that lags
 * behind while another has half of its share waiting, or has nothing more to come. */
static bool md5_is_due(const struct stage_pump *p)
{
    unsigned wanting = 0, ready = 0;
    bool due = false;
    for (const struct stage_flow *f = p->flows; f; f = f->next) {
        if (!(f->sums->kinds & STAGE_MD5) || f->err || f->next_md5 == f->blocks)
            continue;
        wanting++;
        if (!ready_block(f, f->next_md5))
            continue;
        ready++;
        due = due || f->next_read == f->blocks || f->next_read - f->next_md5 > share_of(p) / 2;
    }
    return ready && (due || ready == wanting || ready >= STAGE_MD5_LANES);
}

static bool sum_md5(struct stage_pump *p)
{
    struct stage_block *taken[STAGE_MD5_LANES];
    struct stage_md5_part parts[STAGE_MD5_LANES];
    unsigned count = 0;
    if (p->md5_busy || !md5_is_due(p))
        return false;
    for (struct stage_flow *f = p->flows; f && count < STAGE_MD5_LANES; f = f->next) {
        struct stage_block *b = f->sums->kinds & STAGE_MD5 ? ready_block(f, f->next_md5) : NULL;
        if (!b)
            continue;
        b->busy++;
        parts[count] = (struct stage_md5_part){&f->sums->md5, (unsigned char *)b->data, b->n};
        taken[count++] = b;
    }
    if (!count)
        return false;
    p->md5_busy = true;
    pthread_mutex_unlock(&p->lock);
    stage_md5_add(parts, count);
    pthread_mutex_lock(&p->lock);
    p->md5_busy = false;
    for (unsigned i = 0; i < count; i++) {
        taken[i]->flow->next_md5++;
        end_sum(p, taken[i], NEED_MD5);
    }
    pthread_cond_broadcast(&p->to_sum);
    return true;
}

static bool sum_block(struct stage_pump *p)
{
    struct stage_block *b = NULL;
    struct stage_flow *f = p->flows;
    for (; f; f = f->next)
        if (!f->summing && (b = ready_block(f, f->next_sum)))
            break;
    if (!b)
        return false;
    b->busy++;
    f->summing = true;
    pthread_mutex_unlock(&p->lock);
    stage_sums_add(f->sums, b->data, b->n);
    f->crc_at[b->number + 1] = f->sums->crc;
    if (f->fields)
        stage_fieldsums_add(f->fields, b->data, b->n, b->offset);
    pthread_mutex_lock(&p->lock);
    f->summing = false;
    f->next_sum++;
    end_sum(p, b, NEED_SUM);
    pthread_cond_signal(&p->to_sum);
    return true;
}

static void sum_some(struct stage_pump *p)
{
    if (!sum_md5(p) && !sum_block(p))
        pthread_cond_wait(&p->to_sum, &p->lock);
}

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
    work(pump, read_some);
    return NULL;
}

static void *write_thread(void *pump)
{
    work(pump, write_some);
    return NULL;
}

static void *sum_thread(void *pump)
{
    work(pump, sum_some);
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
    p->memory = stage_memory_get(BLOCKS * p->block_bytes);
    for (unsigned i = 0; i < BLOCKS; i++)
        p->blocks[i].data = p->memory + i * p->block_bytes;
    return p->memory ? 0 : -ENOMEM;
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
    wake_everybody(p);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->thread_count; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->to_read);
    pthread_cond_destroy(&p->to_write);
    pthread_cond_destroy(&p->to_sum);
    pthread_mutex_destroy(&p->lock);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (p->blocks[i].data && !p->blocks[i].lender && !p->memory)
            stage_memory_release(p->blocks[i].data, p->block_bytes);
    if (p->memory)
        stage_memory_release(p->memory, BLOCKS * p->block_bytes);
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
    while (!flow_is_over(f) && f->done < until)
        pthread_cond_wait(&f->changed, &p->lock);
    uint64_t done = f->done * p->block_bytes;
    pthread_mutex_unlock(&p->lock);
    return done < f->size ? done : f->size;
}

bool stage_pump_is_over(struct stage_pump *p, struct stage_flow *f)
{
    pthread_mutex_lock(&p->lock);
    bool over = flow_is_over(f);
    pthread_mutex_unlock(&p->lock);
    return over;
}

void stage_pump_cancel(struct stage_pump *p, struct stage_flow *f, int err)
{
    pthread_mutex_lock(&p->lock);
    if (f->done < f->blocks)
        fail_flow(p, f, err, false, 0);
    while (!flow_is_over(f))
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
    pthread_cond_broadcast(&p->to_sum);
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
            fail_flow(p, f, -EINTR, false, 0);
    pthread_mutex_unlock(&p->lock);
}
