/* remote.c - send requests of many threads over one connection to a job
 *
 * One thread receives the replies; a thread that has sent a request sleeps until its reply has
 * arrived. The first error ends the connection permanently. The fence, a number in the window,
 * then cancels writes that no rank has begun, and this process no longer changes the window: a
 * rank that is still writing writes the same bytes that this process writes locally. */
#define _GNU_SOURCE
#include "remote.h"
#include "descriptor.h"
#include "limejob.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    BLOCK_MIN = 4 << 20,
    BLOCK_MAX = 16 << 20,
    SYNC_TIMEOUTS = 20, /* the timeout of a sync, in multiples of timeout_ms */
    SLOTS = 32,         /* maximum number of requests in flight */
    POLL_MS = 200,      /* time between two checks of `stopping` by the receiver */
};

/* A request and its reply. */
struct slot {
    bool used, answered;
    uint64_t tag;
    uint16_t opcode;
    int code;
    uint64_t value;
};

struct stage_remote {
    struct limejob_channel channel;
    struct limejob_window window;
    size_t block_bytes;
    uint64_t mapped; /* bytes mapped; window.bytes counts only the blocks */
    uint64_t fence;  /* offset of the fence (described above) in the window */
    int timeout_ms;
    pthread_t receiver, window_preparer;
    bool has_receiver, has_preparer;
    atomic_bool stopping;
    pthread_mutex_t sending;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    struct slot slots[SLOTS];
    uint64_t tag;
    bool has_failed;
    char why[LIMEJOB_TEXT_MAX];
};

/* Ends the connection. Only the first reason is recorded. */
static void fail_connection(struct stage_remote *r, const char *why)
{
    pthread_mutex_lock(&r->lock);
    limejob_fence_set(r->window.data + r->fence);
    if (!r->has_failed)
        snprintf(r->why, sizeof r->why, "%s", why);
    r->has_failed = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

bool stage_remote_has_failed(struct stage_remote *r, const char **why)
{
    pthread_mutex_lock(&r->lock);
    bool has_failed = r->has_failed;
    pthread_mutex_unlock(&r->lock);
    if (why)
        *why = has_failed ? r->why : NULL;
    return has_failed;
}

/* ---- replies ---- */

/* Stores a reply in its request's slot. The caller holds r->lock. Returns false if the reply is
 * malformed or belongs to no request. */
static bool store_reply(struct stage_remote *r, struct limejob_packet *reply)
{
    char text[LIMEJOB_TEXT_MAX];
    if (reply->fd >= 0)
        close(reply->fd);
    if (reply->flags != LIMEJOB_REPLY)
        return false;
    for (int i = 0; i < SLOTS; i++) {
        struct slot *s = &r->slots[i];
        if (!s->used || s->answered || s->tag != reply->tag || s->opcode != reply->opcode)
            continue;
        s->code = limejob_get_code(reply, text, sizeof text);
        if (!s->code && (s->opcode == LIMEJOB_READ || s->opcode == LIMEJOB_WRITE))
            s->value = limejob_get_u64(reply);
        else if (!s->code && (s->opcode == LIMEJOB_OPEN || s->opcode == LIMEJOB_OPEN_WRITE))
            s->value = limejob_get_u32(reply);
        s->answered = true;
        return !reply->broken;
    }
    return false;
}

static void *receive_replies(void *remote)
{
    struct stage_remote *r = remote;
    struct limejob_packet *reply = malloc(sizeof *reply);
    while (reply && !atomic_load(&r->stopping)) {
        int got = limejob_receive(&r->channel, reply, POLL_MS);
        if (got == 0)
            continue;
        if (got < 0) {
            fail_connection(r, got == -EPIPE ? "it has ended" : strerror(-got));
            break;
        }
        pthread_mutex_lock(&r->lock);
        bool good = store_reply(r, reply);
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
        if (!good) {
            fail_connection(r, "it violates the protocol");
            break;
        }
    }
    if (!reply)
        fail_connection(r, strerror(ENOMEM));
    free(reply);
    return NULL;
}

static void *prepare_window(void *remote)
{
    struct stage_remote *r = remote;
    limejob_window_use_huge_pages(&r->window, &r->stopping);
    return NULL;
}

/* ---- requests ---- */

/* Waits for an unused slot. NULL: the connection has failed. */
static struct slot *acquire_slot(struct stage_remote *r, uint16_t opcode)
{
    struct slot *slot = NULL;
    pthread_mutex_lock(&r->lock);
    while (!r->has_failed && !slot) {
        for (int i = 0; i < SLOTS && !slot; i++)
            if (!r->slots[i].used)
                slot = &r->slots[i];
        if (!slot)
            pthread_cond_wait(&r->changed, &r->lock);
    }
    if (slot)
        *slot = (struct slot){.used = true, .tag = ++r->tag, .opcode = opcode};
    pthread_mutex_unlock(&r->lock);
    return slot;
}

/* Waits for the reply or a failure of the connection. False: neither has come within `ms`. */
static bool wait_for_reply(struct stage_remote *r, struct slot *slot, int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000 + 1;
    pthread_mutex_lock(&r->lock);
    int err = 0;
    while (!slot->answered && !r->has_failed && !err)
        err = pthread_cond_timedwait(&r->changed, &r->lock, &until);
    bool answered = slot->answered;
    pthread_mutex_unlock(&r->lock);
    return answered || stage_remote_has_failed(r, NULL);
}

/* Sends the request, waits for its reply and releases the slot. Returns the reply's code, or
 * -EPIPE if the connection has failed. Sets *value, unless `value` is NULL, to the reply's
 * number. */
static int send_and_wait(struct stage_remote *r, struct slot *slot,
                         const struct limejob_packet *request, uint64_t *value)
{
    int ms = slot->opcode == LIMEJOB_SYNC ? SYNC_TIMEOUTS * r->timeout_ms : r->timeout_ms;
    pthread_mutex_lock(&r->sending);
    int err = limejob_send(&r->channel, request, r->timeout_ms);
    pthread_mutex_unlock(&r->sending);
    if (err)
        fail_connection(r, strerror(-err));
    else if (!wait_for_reply(r, slot, ms))
        fail_connection(r, "it does not answer");
    pthread_mutex_lock(&r->lock);
    err = slot->answered ? slot->code : -EPIPE;
    if (value)
        *value = slot->value;
    slot->used = false;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return err;
}

/* Creates a request, which the caller frees, and acquires a slot for its reply. NULL: the
 * connection has failed, or out of memory. */
static struct limejob_packet *create_request(struct stage_remote *r, uint16_t opcode,
                                             struct slot **slot)
{
    struct limejob_packet *request = malloc(sizeof *request);
    *slot = request ? acquire_slot(r, opcode) : NULL;
    if (!*slot) {
        free(request);
        return NULL;
    }
    limejob_request_init(request, opcode, (*slot)->tag);
    return request;
}

static int get_identity(int fd, struct limefile_identity *identity)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    *identity = limefile_identify(&st);
    return 0;
}

/* Gets the file's current path, by which ranks on other hosts open it. Returns 0 or -errno. */
static int get_path(int fd, char path[LIMEJOB_PATH_MAX])
{
    char link[LIMEFILE_FD_PATH_MAX];
    limefile_fd_path(fd, link);
    ssize_t n = readlink(link, path, LIMEJOB_PATH_MAX);
    if (n <= 0 || n == LIMEJOB_PATH_MAX)
        return n < 0 ? -errno : -ENAMETOOLONG;
    path[n] = '\0';
    return 0;
}

/* Checks that the file still has the identity that was sent: ranks on other hosts compare the
 * file that they open with this identity. writing: size and times may have changed. After a
 * difference, closes the file in the job and returns -ESTALE. */
static int check_opened(struct stage_remote_file *f, int fd,
                        const struct limefile_identity *expected, bool writing)
{
    struct limefile_identity now;
    int err = get_identity(fd, &now);
    if (!err)
        err = limejob_identity_compare(&now, expected, writing ? LIMEFILE_STATE : 0, NULL, 0);
    if (err)
        stage_remote_close(f);
    return err;
}

static int request_open(struct stage_remote *r, int fd, bool writing,
                        struct stage_remote_file *out)
{
    char path[LIMEJOB_PATH_MAX];
    struct limefile_identity identity;
    struct slot *slot;
    uint64_t file;
    int err = get_identity(fd, &identity);
    if (!err)
        err = get_path(fd, path);
    if (err)
        return err;
    struct limejob_packet *request =
        create_request(r, writing ? LIMEJOB_OPEN_WRITE : LIMEJOB_OPEN, &slot);
    if (!request)
        return -EPIPE;
    limejob_put_open_request(request, &identity, path, limejob_directory_bytes(path));
    request->fd = fd;
    err = send_and_wait(r, slot, request, &file);
    free(request);
    *out = (struct stage_remote_file){r, (uint32_t)file};
    return err ? err : check_opened(out, fd, &identity, writing);
}

/* A lock on a file to write belongs to fd. The job gets a descriptor without the lock. */
int stage_remote_open(struct stage_remote *r, int fd, bool writing,
                      struct stage_remote_file *out)
{
    if (!writing)
        return request_open(r, fd, false, out);
    int unlocked = limefile_reopen(fd, O_WRONLY);
    if (unlocked < 0)
        return unlocked;
    int err = request_open(r, unlocked, true, out);
    close(unlocked);
    return err;
}

static int request_file_operation(struct stage_remote_file *f, uint16_t opcode)
{
    struct slot *slot;
    struct limejob_packet *request = create_request(f->remote, opcode, &slot);
    if (!request)
        return -EPIPE;
    limejob_put_u32(request, f->file);
    int err = send_and_wait(f->remote, slot, request, NULL);
    free(request);
    return err;
}

void stage_remote_close(struct stage_remote_file *f)
{
    request_file_operation(f, LIMEJOB_CLOSE);
}

int stage_remote_sync(struct stage_remote_file *f)
{
    return request_file_operation(f, LIMEJOB_SYNC);
}

/* Returns the time, in ns of CLOCK_REALTIME, after which no rank may begin the write. Ranks on
 * other hosts need it, as they do not see the fence; all ranks if this process is killed. */
static uint64_t write_deadline(const struct stage_remote *r)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec + 2 * (uint64_t)r->timeout_ms / 1000) * UINT64_C(1000000000) +
           (uint64_t)now.tv_nsec;
}

static int transfer_block(struct stage_remote_file *f, uint16_t opcode, const char *data,
                          size_t n, uint64_t offset)
{
    struct slot *slot;
    uint64_t moved;
    struct limejob_packet *request = create_request(f->remote, opcode, &slot);
    if (!request)
        return -EPIPE;
    limejob_put_u32(request, f->file);
    limejob_put_u64(request, offset);
    limejob_put_u64(request, n);
    limejob_put_u64(request, (uint64_t)(data - f->remote->window.data));
    if (opcode == LIMEJOB_WRITE) {
        limejob_put_u64(request, f->remote->fence);
        limejob_put_u64(request, write_deadline(f->remote));
        limejob_put_u32(request, geteuid());
    }
    int err = send_and_wait(f->remote, slot, request, &moved);
    free(request);
    return err ? err : moved == n ? 0 : -EPROTO;
}

int stage_remote_read(struct stage_remote_file *f, char *data, size_t n, uint64_t offset)
{
    return transfer_block(f, LIMEJOB_READ, data, n, offset);
}

int stage_remote_write(struct stage_remote_file *f, const char *data, size_t n, uint64_t offset)
{
    return transfer_block(f, LIMEJOB_WRITE, data, n, offset);
}

/* ---- the connection ---- */

/* Returns a block size that holds a stripe for each rank, up to BLOCK_MAX. */
static size_t choose_block_bytes(const struct limejob_hello_reply *g)
{
    uint64_t bytes = BLOCK_MIN;
    while (bytes < BLOCK_MAX && bytes < g->ranks * g->stripe)
        bytes *= 2;
    return (size_t)bytes;
}

static void init_remote(struct stage_remote *r, unsigned timeout)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&r->changed, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->sending, NULL);
    r->timeout_ms = (int)timeout * 1000;
    r->window.fd = r->channel.fd = r->channel.passed_fd = -1;
}

int stage_remote_connect(const char *socket, unsigned blocks, unsigned timeout,
                         struct stage_remote **out, char *text, size_t cap)
{
    struct stage_remote *r = calloc(1, sizeof *r);
    struct limejob_hello_reply greeting;
    char reason[LIMEJOB_TEXT_MAX] = "out of memory";
    int err = r ? 0 : -ENOMEM;
    if (r) {
        init_remote(r, timeout);
        /* The job's reply determines the block size, so the window has room for the largest
         * blocks. Unused pages take no memory. */
        r->fence = (uint64_t)blocks * BLOCK_MAX;
        uint64_t bytes = r->fence + LIMEJOB_ALIGN;
        err = limejob_window_create(&r->window, bytes);
        if (err)
            r->window.fd = -1;
        else
            err = limejob_connect(&r->channel, socket, r->window.fd, bytes, r->timeout_ms,
                                  &greeting, reason);
        if (err)
            r->channel.fd = -1;
    }
    if (!err) {
        r->block_bytes = choose_block_bytes(&greeting);
        err = -pthread_create(&r->receiver, NULL, receive_replies, r);
        r->has_receiver = !err;
    }
    if (err) {
        snprintf(text, cap, "%s", reason);
        if (r)
            stage_remote_free(r);
        return err;
    }
    /* Only the blocks, not the rest of the window, use huge pages. */
    r->mapped = r->window.bytes;
    r->window.bytes = r->block_bytes * blocks;
    r->has_preparer = pthread_create(&r->window_preparer, NULL, prepare_window, r) == 0;
    *out = r;
    return 0;
}

void stage_remote_free(struct stage_remote *r)
{
    atomic_store(&r->stopping, true);
    if (r->has_preparer)
        pthread_join(r->window_preparer, NULL);
    if (r->has_receiver)
        pthread_join(r->receiver, NULL);
    limejob_channel_close(&r->channel);
    if (r->mapped)
        r->window.bytes = r->mapped;
    limejob_window_release(&r->window);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->sending);
    free(r);
}

size_t stage_remote_block_bytes(const struct stage_remote *r)
{
    return r->block_bytes;
}

char *stage_remote_window(struct stage_remote *r)
{
    return r->window.data;
}
