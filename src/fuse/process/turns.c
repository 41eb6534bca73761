/* turns.c - which of libfuse's threads wait for the next request */
#define _GNU_SOURCE
#include "turns.h"
#include "clock.h"
#include "pace.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum {
    QUICK_ROW = 32,  /* quick requests, one after the other, until threads stand by */
    QUEUED_ROW = 3,  /* requests behind which others wait, until one more thread comes in */
    IDLE_TICKS = 10, /* without a request, until nobody looks after that */
};

static const double tick = 0.002; /* seconds, after which a request has taken long */
static const double watch = 5e-5; /* seconds, until who waits for a request sleeps after all */

static struct {
    atomic_uint waiting; /* threads that wait for a request */
    atomic_uint quick;   /* requests since the last one that was none, up to QUICK_ROW */
    atomic_uint queued;  /* requests since the last one behind which none waited */
    atomic_uint served;  /* requests so far */

    atomic_uint aside; /* threads that stand by, but for */
    sem_t call;
    atomic_bool guarded; /* one that looks after those that serve, */
    atomic_bool dozing;  /* unless there are no requests; */
    atomic_bool wanted;  /* it is to come in itself */
    sem_t wake;
} turns;

static struct limefs_pace pace;

int limefs_turns_begin(void)
{
    if (sem_init(&turns.call, 0, 0) != 0 || sem_init(&turns.wake, 0, 0) != 0)
        return -errno;
    return 0;
}

/* ---- standing by ---- */

/* True: this thread is the only one that waits, and goes on. */
static bool take_turn(void)
{
    unsigned none = 0;
    return atomic_compare_exchange_strong(&turns.waiting, &none, 1);
}

static bool is_crowded(void)
{
    return turns.quick < QUICK_ROW;
}

static void call_one(void)
{
    if (turns.aside > 0) {
        sem_post(&turns.call);
    } else if (turns.guarded && !atomic_exchange(&turns.wanted, true)) {
        sem_post(&turns.wake);
    }
}

static void call_all(void)
{
    for (unsigned i = turns.aside; i > 0; i--)
        sem_post(&turns.call);
    if (turns.guarded)
        sem_post(&turns.wake);
}

static void wait_for_call(void)
{
    turns.aside++;
    if (turns.waiting > 0 && !is_crowded() && turns.guarded)
        sem_wait(&turns.call);
    turns.aside--;
}

static void wait_for_tick(void)
{
    struct timespec until = limefs_clock_time(limefs_seconds() + tick);
    sem_clockwait(&turns.wake, CLOCK_MONOTONIC, &until);
}

/* Until the next request, which wakes it (has_come()). */
static void doze(unsigned served)
{
    turns.dozing = true;
    if (turns.served == served && !is_crowded())
        sem_wait(&turns.wake);
    turns.dozing = false;
}

/* Until no thread waits for requests, and those that serve have taken long; or bytes are moved.
 */
static void guard(void)
{
    unsigned served = turns.served, idle = 0;
    while (!is_crowded()) {
        wait_for_tick();
        unsigned now = turns.served;
        bool still = now == served, free = turns.waiting > 0;
        served = now;
        if (!free && (still || turns.wanted))
            break;
        idle = still ? idle + 1 : 0;
        if (idle >= IDLE_TICKS) {
            doze(served);
            idle = 0;
        }
    }
    turns.wanted = turns.guarded = false;
}

static bool has_more(int fd)
{
    struct pollfd more = {.fd = fd, .events = POLLIN};
    return poll(&more, 1, 0) > 0;
}

static void stand_by(int fd)
{
    bool none = false;
    while (!take_turn()) {
        if (is_crowded() || has_more(fd)) {
            turns.waiting++;
            return;
        }
        if (atomic_compare_exchange_strong(&turns.guarded, &none, true))
            guard();
        else
            wait_for_call();
        none = false;
    }
}

/* ---- requests ---- */

/* Those that move no bytes, and mostly no disk either. */
static bool is_quick(unsigned opcode)
{
    switch (opcode) {
    case FUSE_LOOKUP:
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_GETATTR:
    case FUSE_READLINK:
    case FUSE_STATFS:
    case FUSE_GETXATTR:
    case FUSE_LISTXATTR:
    case FUSE_OPENDIR:
    case FUSE_READDIR:
    case FUSE_READDIRPLUS:
    case FUSE_RELEASEDIR:
    case FUSE_ACCESS:
        return true;
    default:
        return false;
    }
}

/* Another one waits behind this, as behind those before: one thread does not get them done. */
static void look_behind(int fd)
{
    if (turns.aside == 0 && !turns.guarded)
        return;
    unsigned row = has_more(fd) ? turns.queued + 1 : 0;
    if (row >= QUEUED_ROW)
        call_one();
    turns.queued = row % QUEUED_ROW;
}

static void has_come(int fd, unsigned opcode)
{
    turns.served++;
    if (opcode == FUSE_INTERRUPT)
        return;
    if (!is_quick(opcode)) {
        if (atomic_exchange(&turns.quick, 0) >= QUICK_ROW)
            call_all();
        return;
    }
    if (is_crowded())
        turns.quick++;
    else if (atomic_exchange(&turns.dozing, false))
        sem_post(&turns.wake);
    if (is_crowded())
        return;
    if (turns.aside > 0 && !turns.guarded) /* one is to wait, or to guard */
        sem_post(&turns.call);
    limefs_pace_request(&pace, limefs_seconds());
    look_behind(fd);
}

/* For a request, instead of sleeping (pace.h). */
static void look_out(int fd)
{
    double until = limefs_seconds() + watch;
    while (!has_more(fd) && !is_crowded() && limefs_seconds() < until)
        ;
}

ssize_t limefs_turns_read(int fd, void *buf, size_t n)
{
    struct fuse_in_header header;
    if (is_crowded())
        turns.waiting++;
    else
        stand_by(fd);
    if (!is_crowded() && turns.waiting == 1 && limefs_pace_watches(&pace))
        look_out(fd);
    ssize_t got = read(fd, buf, n);
    int err = errno;
    turns.waiting--;
    if (got >= (ssize_t)sizeof header) {
        memcpy(&header, buf, sizeof header);
        has_come(fd, header.opcode);
    }
    errno = err;
    return got;
}
