/* link.c - a connection to a mount's job */
#define _GNU_SOURCE
#include "client.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    REST = 10,      /* seconds after a job has failed, or a container was refused */
    YOUNG = 2,      /* seconds that a connection is kept at least */
    GREETING = 5,   /* seconds to wait for the first answer, at most */
    LONGEST = 4,    /* times what is else waited, for one answer while others come */
    SLOWEST = 50,   /* MB/s of a job that is any better than none */
    TIMEOUT = 86400 /* seconds, as the mount's */
};

/* Kinds of requests: the upper half of a tag. */
enum {
    TAG_HELLO = 1,
    TAG_OPEN,
    TAG_CLOSE,
    TAG_LOAD,
};

/* ---- the end of a connection ---- */

/* Ranks that are late write into the old window, where nobody looks. Slots that are being
 * copied from are still held: who does so finds the connection another one. */
void limefs_run_link_end(struct limefs_run_client *c)
{
    atomic_fetch_add(&c->connections, 1);
    limefs_run_client_let_go();
    if (c->channel.passed >= 0)
        limefs_run_real()->close(c->channel.passed);
    c->channel.passed = -1;
    c->state = LIMEFS_RUN_LINK_NONE;
    c->in_flight = 0;
    memset(c->file, 0, sizeof c->file);
    limefs_run_plan_begin(&c->plan, c->plan.extent);
}

/* The job is not tried again for a while. */
static void fail(struct limefs_run_client *c)
{
    limefs_run_link_end(c);
    c->rests = limefs_run_now() + REST * LIMEFS_RUN_SECOND;
}

__attribute__((destructor)) static void hang_up(void)
{
    struct limefs_run_client *c = limefs_run_client();
    struct limefs_run_quiet quiet;
    if (!c || c->state == LIMEFS_RUN_LINK_NONE)
        return;
    limefs_run_quiet_begin(&quiet);
    if (limefs_run_client_lock(c)) {
        if (c->state != LIMEFS_RUN_LINK_NONE)
            limefs_run_link_end(c);
        limefs_run_client_unlock(c);
    }
    limefs_run_quiet_end(&quiet);
}

void limefs_run_link_count(int more)
{
    static atomic_int records;
    if (atomic_fetch_add(&records, more) + more == 0)
        hang_up();
}

/* ---- requests ---- */

static struct limejob_packet *request(struct limefs_run_client *c, uint16_t opcode, int kind,
                                      int index)
{
    limejob_request(&c->packet, opcode, (uint64_t)kind << 32 | (uint32_t)index);
    return &c->packet;
}

/* A job whose socket is full answers nothing either. */
static bool send_it(struct limefs_run_client *c)
{
    c->channel.fd = limefs_run_client_socket();
    if (c->channel.fd < 0 || limejob_send(&c->channel, &c->packet, 0) != 0) {
        fail(c);
        return false;
    }
    c->in_flight++;
    return true;
}

/* Beyond its limit for files, the window's too, the program would be ended by a signal. */
static bool may_be_as_long(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= bytes;
}

void limefs_run_link_begin(struct limefs_run_client *c, const struct limefile_range_job *job)
{
    uint64_t now = limefs_run_now();
    if (c->state != LIMEFS_RUN_LINK_NONE || now < c->rests || !limefs_run_may_have_more())
        return;
    c->rests = now + REST * LIMEFS_RUN_SECOND; /* unless all goes well */
    memset(c->prepared, 0, sizeof c->prepared);
    limefs_run_plan_begin(&c->plan, job->extent);
    uint64_t bytes = limefs_run_plan_window(&c->plan);
    if (!may_be_as_long(bytes))
        return;
    uint64_t timeout = job->timeout < TIMEOUT * 1000 ? job->timeout : TIMEOUT * 1000;
    c->timeout = timeout * (LIMEFS_RUN_SECOND / 1000) + c->plan.extent * (1000 / SLOWEST);
    int fd = limefs_run_client_hold(limejob_dial(job->socket, SOCK_NONBLOCK),
                                    limejob_window_memory(bytes));
    if (fd < 0)
        return;
    strcpy(c->socket, job->socket);
    limejob_channel_init(&c->channel, fd);
    c->state = LIMEFS_RUN_LINK_GREETING;
    c->asked = c->heard = now;
    struct limejob_packet *hello = request(c, LIMEJOB_HELLO, TAG_HELLO, 0);
    limejob_put_u64(hello, bytes);
    hello->fd = limefs_run_client_window();
    if (send_it(c))
        c->rests = 0;
}

int limefs_run_link_find(const struct limefs_run_client *c, const struct limefile_state *state)
{
    for (int i = 0; i < LIMEFS_RUN_FILES_MAX; i++)
        if (c->file[i].state != LIMEFS_RUN_FILE_NONE &&
            c->file[i].state != LIMEFS_RUN_FILE_CLOSING &&
            limefile_state_equal(&c->file[i].container, state))
            return i;
    return -1;
}

static void close_file(struct limefs_run_client *c, int i)
{
    limefs_run_plan_forget(&c->plan, i);
    limejob_put_u32(request(c, LIMEJOB_CLOSE, TAG_CLOSE, i), c->file[i].number);
    c->file[i].state = LIMEFS_RUN_FILE_CLOSING;
    c->file[i].since = limefs_run_now();
    send_it(c);
}

/* A free place. One that nobody reads any more is closed, and free soon. */
static struct limefs_run_file *place(struct limefs_run_client *c, uint64_t now)
{
    for (int i = 0; i < LIMEFS_RUN_FILES_MAX; i++)
        if (c->file[i].state == LIMEFS_RUN_FILE_NONE ||
            (c->file[i].state == LIMEFS_RUN_FILE_REFUSED &&
             limefs_run_plan_is_idle(&c->plan, i, now)))
            return &c->file[i];
    for (int i = 0; i < LIMEFS_RUN_FILES_MAX; i++)
        if (c->file[i].state == LIMEFS_RUN_FILE_OPEN &&
            limefs_run_plan_is_idle(&c->plan, i, now)) {
            close_file(c, i);
            break;
        }
    return NULL;
}

void limefs_run_link_open(struct limefs_run_client *c, int container,
                          const struct limefile_range *range)
{
    struct stat st;
    struct limefile_state state;
    uint64_t now = limefs_run_now();
    if (fstat(container, &st) != 0)
        return;
    limefile_state_of(&st, &state);
    struct limefs_run_file *file =
        limefile_state_equal(&state, &range->state) ? place(c, now) : NULL;
    if (!file)
        return;
    struct limejob_identity identity = limejob_identity_of(&st);
    *file = (struct limefs_run_file){
        .state = LIMEFS_RUN_FILE_OPENING, .container = state, .since = now};
    struct limejob_packet *packet = request(c, LIMEJOB_OPEN, TAG_OPEN, (int)(file - c->file));
    limejob_put_opening(packet, &identity, range->path, (size_t)range->job.root);
    packet->fd = container;
    send_it(c);
}

void limefs_run_link_load(struct limefs_run_client *c, int slot)
{
    const struct limefs_run_slot *s = &c->plan.slot[slot];
    struct limejob_packet *packet = request(c, LIMEJOB_READ, TAG_LOAD, slot);
    limejob_put_u32(packet, c->file[s->file].number);
    limejob_put_u64(packet, s->from);
    limejob_put_u64(packet, s->to - s->from);
    limejob_put_u64(packet, (uint64_t)slot * c->plan.extent);
    send_it(c);
}

/* While a rank writes into them, pages stay small. */
bool limefs_run_link_page(struct limefs_run_client *c, uint64_t *at)
{
    for (unsigned i = 0; i < c->plan.slots; i++) {
        uint64_t done = c->prepared[i];
        if (c->plan.slot[i].state == LIMEFS_RUN_SLOT_LOADING ||
            c->plan.extent - done < LIMEFS_RUN_HUGE_PAGE ||
            (i * c->plan.extent + done) % LIMEFS_RUN_HUGE_PAGE != 0)
            continue;
        *at = i * c->plan.extent + done;
        c->prepared[i] += LIMEFS_RUN_HUGE_PAGE;
        return true;
    }
    return false;
}

/* Of a job that nobody needs: that which is connected for longer than it takes to begin to read
 * by it, and by which nobody reads. */
bool limefs_run_link_is_idle(const struct limefs_run_client *c, uint64_t now)
{
    bool busy =
        c->state != LIMEFS_RUN_LINK_SERVING || now < c->asked + YOUNG * LIMEFS_RUN_SECOND;
    for (int i = 0; i < LIMEFS_RUN_FILES_MAX; i++)
        busy = busy || c->file[i].state == LIMEFS_RUN_FILE_OPENING ||
               c->file[i].state == LIMEFS_RUN_FILE_CLOSING;
    return !busy && limefs_run_plan_is_idle(&c->plan, -1, now);
}

/* ---- replies ---- */

static bool on_opened(struct limefs_run_file *file, int code, struct limejob_packet *reply)
{
    if (file->state != LIMEFS_RUN_FILE_OPENING)
        return false;
    file->number = code ? 0 : limejob_get_u32(reply);
    file->state = code ? LIMEFS_RUN_FILE_REFUSED : LIMEFS_RUN_FILE_OPEN;
    file->rests = code ? limefs_run_now() + REST * LIMEFS_RUN_SECOND : 0;
    return true;
}

static bool on_loaded(struct limefs_run_client *c, struct limefs_run_slot *slot, int code,
                      struct limejob_packet *reply)
{
    if (slot->state != LIMEFS_RUN_SLOT_LOADING ||
        (!code && limejob_get_u64(reply) != slot->to - slot->from))
        return false;
    if (!code) {
        limefs_run_plan_loaded(slot, limefs_run_now());
    } else {
        slot->state = LIMEFS_RUN_SLOT_EMPTY;
        c->file[slot->file].rests = limefs_run_now() + REST * LIMEFS_RUN_SECOND;
    }
    return true;
}

/* False: it makes no sense. */
static bool on_reply(struct limefs_run_client *c, struct limejob_packet *reply)
{
    static const uint16_t opcodes[] = {[TAG_HELLO] = LIMEJOB_HELLO,
                                       [TAG_OPEN] = LIMEJOB_OPEN,
                                       [TAG_CLOSE] = LIMEJOB_CLOSE,
                                       [TAG_LOAD] = LIMEJOB_READ};
    uint64_t kind = reply->tag >> 32, i = reply->tag & UINT32_MAX;
    int code = limejob_get_code(reply, NULL, 0);
    if (reply->flags != LIMEJOB_REPLY || c->in_flight-- == 0 || code == -EPROTO ||
        kind >= sizeof opcodes / sizeof *opcodes || reply->opcode != opcodes[kind])
        return false;
    if (kind == TAG_HELLO) {
        bool good = !code && c->state == LIMEFS_RUN_LINK_GREETING;
        c->state = LIMEFS_RUN_LINK_SERVING;
        return good;
    }
    bool good = i < (kind == TAG_LOAD ? c->plan.slots : LIMEFS_RUN_FILES_MAX);
    if (good && kind == TAG_OPEN)
        good = on_opened(&c->file[i], code, reply);
    else if (good && kind == TAG_LOAD)
        good = on_loaded(c, &c->plan.slot[i], code, reply);
    else if (good && (good = c->file[i].state == LIMEFS_RUN_FILE_CLOSING))
        c->file[i].state = LIMEFS_RUN_FILE_NONE;
    return good && !reply->broken;
}

/* Since when the oldest request is unanswered; `now`: none is. */
static uint64_t oldest(const struct limefs_run_client *c, uint64_t now)
{
    uint64_t since = c->state == LIMEFS_RUN_LINK_GREETING ? c->asked : now;
    for (unsigned i = 0; i < c->plan.slots; i++)
        if (c->plan.slot[i].state == LIMEFS_RUN_SLOT_LOADING && c->plan.slot[i].asked < since)
            since = c->plan.slot[i].asked;
    for (int i = 0; i < LIMEFS_RUN_FILES_MAX; i++)
        if ((c->file[i].state == LIMEFS_RUN_FILE_OPENING ||
             c->file[i].state == LIMEFS_RUN_FILE_CLOSING) &&
            c->file[i].since < since)
            since = c->file[i].since;
    return since;
}

static bool is_stalled(const struct limefs_run_client *c)
{
    uint64_t now = limefs_run_now(), limit = c->timeout, waited = now - oldest(c, now);
    if (c->state == LIMEFS_RUN_LINK_GREETING && limit > GREETING * LIMEFS_RUN_SECOND)
        limit = GREETING * LIMEFS_RUN_SECOND;
    return (waited > limit && now - c->heard > limit) || waited > LONGEST * limit;
}

void limefs_run_link_look(struct limefs_run_client *c)
{
    int got = 0;
    if (c->state == LIMEFS_RUN_LINK_NONE)
        return;
    c->channel.fd = limefs_run_client_socket();
    if (c->channel.fd < 0 || limefs_run_client_window() < 0) {
        limefs_run_link_end(c); /* the program has closed them: it may do so again */
        return;
    }
    while ((got = limejob_receive(&c->channel, &c->packet, 0)) > 0) {
        if (c->packet.fd >= 0)
            limefs_run_real()->close(c->packet.fd); /* nobody has asked for one */
        c->heard = limefs_run_now();
        if (!on_reply(c, &c->packet)) {
            fail(c);
            return;
        }
    }
    if (got < 0 || is_stalled(c))
        fail(c);
}
