/* fetch.c - reads of a mount's record by the mount's job, and which reads are */
#define _GNU_SOURCE
#include "client.h"
#include "limefile.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

static const uint64_t near = 16 * MIB;  /* reads of one reader are no further apart */
static const size_t small = 64 * 1024;  /* a smaller read counts only where it goes on */
static const uint64_t glance = 4 * MIB; /* so much of a load tells whether it is in memory */
static const uint64_t far = 32 * MIB;   /* the kernel reads less ahead */
static const long wait_ns = 5000000; /* another thread may take the answer that is waited for */
static const int tries = 100;        /* to get the lock, after so long a wait each */

static bool always; /* measuring: also what is in memory */

void limefs_run_fetch_begin(void)
{
    const char *given = getenv("LIMEFS_RUN_JOB");
    always = given && strcmp(given, "always") == 0;
}

/* ---- who goes on: without the lock, as it is only a hint ---- */

/* The nearest reader that this read may be of, or the one that was longest ago. */
static struct limefs_run_flow *find_flow(struct limefs_run_record *record, uint64_t at,
                                         size_t n, bool *found)
{
    struct limefs_run_flow *nearest = NULL, *oldest = record->flow;
    uint64_t least = n < small ? 0 : near;
    for (int i = 0; i < LIMEFS_RUN_FLOWS; i++) {
        struct limefs_run_flow *flow = &record->flow[i];
        uint64_t next = atomic_load(&flow->next), apart = next < at ? at - next : next - at;
        if (apart <= least && atomic_load(&flow->turn) > 0) {
            nearest = flow;
            least = apart;
        }
        if (atomic_load(&flow->turn) < atomic_load(&oldest->turn))
            oldest = flow;
    }
    *found = nearest != NULL;
    return nearest ? nearest : oldest;
}

/* For how many bytes the reader has gone on. */
static uint64_t follow(struct limefs_run_record *record, uint64_t at, size_t n)
{
    bool found;
    struct limefs_run_flow *flow = find_flow(record, at, n, &found);
    uint64_t end = at + n, next = found ? atomic_load(&flow->next) : at;
    uint64_t run = found ? atomic_load(&flow->run) : 0;
    if (end > next) {
        run += end - next < n ? end - next : n;
        atomic_store(&flow->next, end);
    } else if (!found) {
        atomic_store(&flow->next, at);
    }
    atomic_store(&flow->run, run);
    atomic_store(&flow->turn, atomic_fetch_add(&record->turns, 1) + 1);
    return run;
}

/* ---- the job is found, and the container opened ---- */

struct reading {
    struct limefs_run_client *client;
    struct limefs_run_record *record;
    int fd; /* the mount's */
    const struct iovec *iov;
    int count;
    uint64_t at; /* in the container */
    size_t n, done;
    uint64_t run;
    int failed; /* to get the lock */
};

enum step {
    COPY,
    WAIT,
    GO_ON,
    ASK,
    BY_CONTAINER,
    BY_MOUNT,
};

/* A job of another mount is left where nobody reads by it. */
static enum step begin(struct limefs_run_client *client, int container,
                       const struct limefile_range *range)
{
    limefs_run_link_look(client);
    bool other =
        client->state != LIMEFS_RUN_LINK_NONE && strcmp(client->socket, range->job.socket) != 0;
    if (other && !limefs_run_link_is_idle(client, limefs_run_now()))
        return BY_MOUNT;
    if (other)
        limefs_run_link_end(client);
    if (client->state == LIMEFS_RUN_LINK_NONE)
        limefs_run_link_begin(client, &range->job);
    else if (client->state == LIMEFS_RUN_LINK_SERVING &&
             limefs_run_link_find(client, &range->state) < 0)
        limefs_run_link_open(client, container, range);
    bool there = client->state == LIMEFS_RUN_LINK_GREETING ||
                 (client->state == LIMEFS_RUN_LINK_SERVING &&
                  limefs_run_link_find(client, &range->state) >= 0);
    return there ? WAIT : BY_MOUNT;
}

static enum step begin_quietly(const struct reading *r, const struct limefile_range *range)
{
    struct limefs_run_quiet quiet;
    enum step step = WAIT;
    limefs_run_quiet_begin(&quiet);
    if (limefs_run_client_lock(r->client)) {
        step = begin(r->client, atomic_load(&r->record->container), range);
        limefs_run_client_unlock(r->client);
    }
    limefs_run_quiet_end(&quiet);
    return step;
}

/* The mount tells which job it has by now. The daemon is asked without the lock, and not at
 * each read. */
static enum step ask(const struct reading *r)
{
    char text[LIMEFILE_RANGE_TEXT_MAX];
    struct limefile_range range;
    enum step step = BY_MOUNT;
    if (limefs_run_ask(r->fd, text, &range) &&
        limefile_state_equal(&range.state, &r->record->state))
        step = range.job.socket ? begin_quietly(r, &range) : BY_CONTAINER;
    if (step != WAIT)
        atomic_store(step == BY_MOUNT ? &r->record->leaves : &r->record->rests,
                     limefs_run_now() + LIMEFS_RUN_SECOND);
    return step;
}

/* ---- what comes next, with the lock held ---- */

/* Where the kernel does not tell, before Linux 6.5 or of somebody else's file, the job reads
 * it. */
static bool is_cached(int container, uint64_t from, uint64_t to)
{
    size_t n = (size_t)(to - from < glance ? to - from : glance);
    return limefile_cached_bytes(container, from, n) > (int64_t)(n / 2);
}

/* What the kernel has read ahead, while the beginning was read by the container, does not
 * count: it would go on so. Therefore another look at what is further ahead. */
static bool is_in_memory(int container, uint64_t from, uint64_t to, uint64_t end)
{
    uint64_t last = end > glance ? end - glance : 0,
             then = from + far < last ? from + far : last;
    return !always && is_cached(container, from, to) &&
           (then <= to || is_cached(container, then, end));
}

/* Asks for what is to be fetched now. What is in memory from the read on is noted: until there
 * nobody has to look again. */
static void fetch(struct limefs_run_client *client, struct limefs_run_record *record,
                  struct limefs_run_course *course, const struct limefs_run_want *want)
{
    uint64_t to, warm = want->at;
    int container = atomic_load(&record->container);
    while (client->state == LIMEFS_RUN_LINK_SERVING &&
           limefs_run_plan_next(&client->plan, course, want, &to) &&
           limefs_run_plan_has_room(&client->plan, course, want->now)) {
        if (is_in_memory(container, course->ahead, to, want->end)) {
            warm = course->ahead <= warm ? to : warm;
            limefs_run_plan_pass(&client->plan, course, to);
            continue;
        }
        int slot = limefs_run_plan_take(&client->plan, course, to, want->now);
        if (slot < 0)
            break;
        limefs_run_link_load(client, slot);
    }
    if (warm > want->at && limefs_run_plan_find(&client->plan, want->file, want->at) < 0) {
        atomic_store(&record->warm_from, want->at);
        atomic_store(&record->warm_to, warm);
    }
}

static bool is_warm(const struct limefs_run_record *record, uint64_t at, size_t n)
{
    return at >= atomic_load(&record->warm_from) && at + n <= atomic_load(&record->warm_to);
}

static enum step step_in(const struct reading *r, int file, int *slot)
{
    struct limefs_run_client *client = r->client;
    struct limefs_run_want want = {.file = file,
                                   .at = r->at + r->done,
                                   .end = r->record->offset + r->record->bytes,
                                   .run = r->run,
                                   .now = limefs_run_now()};
    struct limefs_run_course *course = limefs_run_plan_course(&client->plan, &want);
    if (!course)
        return BY_CONTAINER;
    fetch(client, r->record, course, &want);
    *slot = limefs_run_plan_find(&client->plan, file, want.at);
    if (*slot < 0)
        return is_warm(r->record, want.at, 0) ? BY_CONTAINER : BY_MOUNT;
    return client->plan.slot[*slot].state == LIMEFS_RUN_SLOT_READY ? COPY : WAIT;
}

static enum step next_step(const struct reading *r, int *slot)
{
    struct limefs_run_client *client = r->client;
    limefs_run_link_look(client);
    if (client->state == LIMEFS_RUN_LINK_NONE)
        return limefs_run_now() < client->rests ? BY_MOUNT : ASK;
    if (client->state == LIMEFS_RUN_LINK_GREETING)
        return WAIT;
    int i = limefs_run_link_find(client, &r->record->state);
    if (i < 0)
        return ASK;
    struct limefs_run_file *file = &client->file[i];
    if (file->state == LIMEFS_RUN_FILE_OPENING)
        return WAIT;
    if (limefs_run_now() < file->rests)
        return BY_CONTAINER;
    if (file->state == LIMEFS_RUN_FILE_OPEN)
        return step_in(r, i, slot);
    file->state = LIMEFS_RUN_FILE_NONE; /* it was refused: perhaps it is not now */
    return ASK;
}

/* ---- out of the window ---- */

/* What a slot has of the read; held until it is copied. */
struct piece {
    int slot;
    uint64_t connection;
    uint64_t at; /* in the window */
    size_t n;
};

/* Of the next n bytes, those that can be read at once into the vector. */
static size_t at_once(const struct reading *r, size_t n)
{
    size_t skip = r->done, sum = 0;
    for (int i = 0, parts = 0; i < r->count && parts < LIMEFS_RUN_PARTS && sum < n; i++) {
        size_t left = skip < r->iov[i].iov_len ? r->iov[i].iov_len - skip : 0;
        skip -= r->iov[i].iov_len - left;
        sum += left;
        parts += left > 0;
    }
    return sum < n ? sum : n;
}

static struct piece take(const struct reading *r, int number)
{
    struct limefs_run_plan *plan = &r->client->plan;
    struct limefs_run_slot *slot = &plan->slot[number];
    uint64_t at = r->at + r->done;
    size_t left = r->n - r->done;
    struct piece piece = {
        .slot = number,
        .connection = atomic_load(&r->client->connections),
        .at = (uint64_t)number * plan->extent + (at - slot->from),
        .n = at_once(r, slot->to - at < left ? (size_t)(slot->to - at) : left)};
    atomic_fetch_add(&slot->holds, 1);
    limefs_run_plan_went(plan, slot->file, at, at + piece.n);
    return piece;
}

/* Afterwards the descriptor must still be the window, and that of the same connection. On the
 * stack for that long only: handlers have little. */
__attribute__((noinline)) static bool copy(struct reading *r, const struct piece *piece)
{
    struct iovec parts[LIMEFS_RUN_PARTS];
    int window = limefs_run_client_window();
    int count = limefs_run_cut(r->iov, r->count, r->done, piece->n, parts);
    bool good = window >= 0 && count > 0 &&
                limefs_run_read_parts(window, parts, count, piece->at) == (ssize_t)piece->n;
    atomic_fetch_sub(&r->client->plan.slot[piece->slot].holds, 1);
    return good && limefs_run_client_window() == window &&
           atomic_load(&r->client->connections) == piece->connection;
}

/* With the lock; what is to be done without it follows: a copy, or (GO_ON) while an answer is
 * waited for, a page that is made a huge one. */
static enum step locked_step(struct reading *r, struct piece *piece, uint64_t *page)
{
    int slot;
    if (!limefs_run_client_lock(r->client))
        return r->failed++ < tries ? WAIT : BY_MOUNT;
    enum step step = next_step(r, &slot);
    if (step == COPY)
        *piece = take(r, slot);
    else if (step == WAIT && limefs_run_link_page(r->client, page))
        step = GO_ON;
    limefs_run_client_unlock(r->client);
    return step;
}

static enum step go_on(struct reading *r)
{
    struct limefs_run_quiet quiet;
    struct piece piece;
    uint64_t page;
    r->client = limefs_run_client(); /* another one after a fork() by a handler */
    if (!r->client)
        return BY_MOUNT;
    limefs_run_quiet_begin(&quiet);
    enum step step = locked_step(r, &piece, &page);
    if (step == COPY && !copy(r, &piece))
        step = BY_MOUNT; /* which also knows what is wrong with an address */
    else if (step == GO_ON)
        limefs_run_client_prepare(page);
    limefs_run_quiet_end(&quiet);
    if (step == COPY)
        r->done += piece.n;
    return step;
}

/* A bare system call, as in bytes.c. */
static void wait_a_while(void)
{
    struct timespec limit = {0, wait_ns};
    struct pollfd fd = {limefs_run_client_socket(), POLLIN, 0};
    syscall(SYS_ppoll, &fd, 1L, &limit, NULL, 0L);
}

enum limefs_run_source limefs_run_fetch(int fd, struct limefs_run_record *record,
                                        const struct iovec *iov, int count, size_t n,
                                        uint64_t at)
{
    uint64_t place = record->offset + at;
    if (!record->job_from)
        return LIMEFS_RUN_CONTAINER;
    struct reading r = {.record = record,
                        .fd = fd,
                        .iov = iov,
                        .count = count,
                        .at = place,
                        .n = n,
                        .run = follow(record, place, n)};
    if (r.run < record->job_from || (!always && is_warm(record, place, n)) ||
        limefs_run_now() < atomic_load(&record->rests))
        return LIMEFS_RUN_CONTAINER;
    if (limefs_run_now() < atomic_load(&record->leaves))
        return LIMEFS_RUN_MOUNT;
    while (r.done < n) {
        enum step step = go_on(&r);
        if (step == ASK)
            step = ask(&r);
        if (step == WAIT)
            wait_a_while();
        else if (step != COPY && step != GO_ON)
            return step == BY_CONTAINER ? LIMEFS_RUN_CONTAINER : LIMEFS_RUN_MOUNT;
    }
    return LIMEFS_RUN_JOB;
}
