/* job.c - the connection to a job, and the reads that go through it */
#define _GNU_SOURCE
#include "job.h"
#include "file.h"
#include "forward.h"
#include "launch.h"
#include "limejob.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

enum {
    FILES_MAX = 64,      /* containers that the job has open for us */
    TICK_MS = 200,       /* how often the thread looks about */
    START_SECONDS = 60,  /* for mpirun */
    UNUSED_SECONDS = 10, /* then the job closes a container */
};

static const double back_off_first = 0.25, back_off_most = 30, healthy_seconds = 5;

enum file_state {
    FILE_NONE,
    FILE_OPENING,
    FILE_OPEN,
    FILE_REFUSED,
    FILE_CLOSING,
};

/* A container as the job has it. */
struct job_file {
    enum file_state state;
    uint64_t view;
    uint32_t number;
    unsigned loads; /* under way */
    double since;   /* last used */
};

/* Tags: what a reply is about. */
enum tag_kind {
    TAG_OPEN = 1, /* | index of the file */
    TAG_LOAD,     /* | slot */
    TAG_CLOSE,    /* | index of the file */
};

enum job_state {
    JOB_ABSENT, /* and looked for, or waited with */
    JOB_STARTING,
    JOB_SERVING,
};

static const char *const state_names[] = {"absent", "starting", "serving"};

struct limefs_job {
    struct limefs *fs;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t changed;
    bool stopping;
    enum job_state state;
    struct limejob_greeting greeting;
    struct limejob_channel channel;
    struct limejob_window window;
    bool broken; /* nothing more is sent; the thread will see why */
    struct job_file files[FILES_MAX];
    double asked[LIMEFS_SLOTS_MAX]; /* when a load under way was asked for */
    double heard;                   /* when the job last answered */
    unsigned holds;
    struct limefs_forward forward;
    uint64_t forwarded_bytes, failed_loads, connections;
    char trouble[LIMEJOB_TEXT_MAX]; /* what was last said of it */

    struct limefs_launch launch; /* of the thread alone */
    char words[512];
    size_t words_len;
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool is_own(const struct limefs_job *job)
{
    return job->fs->options.ranks > 0;
}

/* ---- requests; all with the lock held ---- */

static uint64_t tag(enum tag_kind kind, unsigned index)
{
    return (uint64_t)kind << 32 | index;
}

static void send_packet(struct limefs_job *job, const struct limejob_packet *packet)
{
    if (!job->broken && limejob_send(&job->channel, packet, 0) != 0) {
        job->broken = true;
        shutdown(job->channel.fd, SHUT_RDWR); /* wakes the thread */
    }
}

static void send_load(struct limefs_job *job, int slot, uint32_t file)
{
    const struct limefs_extent *extent = &job->forward.slot[slot];
    struct limejob_packet packet;
    limejob_request(&packet, LIMEJOB_READ, tag(TAG_LOAD, (unsigned)slot));
    limejob_put_u32(&packet, file);
    limejob_put_u64(&packet, extent->from);
    limejob_put_u64(&packet, extent->to - extent->from);
    limejob_put_u64(&packet, (uint64_t)slot * job->forward.extent);
    job->asked[slot] = seconds();
    send_packet(job, &packet);
}

static void send_close(struct limefs_job *job, struct job_file *file)
{
    struct limejob_packet packet;
    limejob_request(&packet, LIMEJOB_CLOSE, tag(TAG_CLOSE, (unsigned)(file - job->files)));
    limejob_put_u32(&packet, file->number);
    file->state = FILE_CLOSING;
    send_packet(job, &packet);
}

static void send_open(struct limefs_job *job, struct job_file *file,
                      const struct limefs_view *view)
{
    char buf[PATH_MAX], path[LIMEJOB_PATH_MAX];
    struct limejob_packet packet;
    const char *label = limefs_tree_label(job->fs, view->node, buf, sizeof buf);
    int n = view->node->parent ? snprintf(path, sizeof path, "%s/%s", job->fs->source, label)
                               : snprintf(path, sizeof path, "%s", label);
    *file = (struct job_file){.state = FILE_REFUSED, .view = view->id, .since = seconds()};
    if (n < 0 || (size_t)n >= sizeof path)
        return;
    limejob_request(&packet, LIMEJOB_OPEN, tag(TAG_OPEN, (unsigned)(file - job->files)));
    limejob_put_u64(&packet, view->st.st_ino);
    limejob_put_u64(&packet, (uint64_t)view->st.st_size);
    limejob_put_u64(&packet, (uint64_t)view->st.st_mtim.tv_sec);
    limejob_put_u32(&packet, (uint32_t)view->st.st_mtim.tv_nsec);
    limejob_put_bytes(&packet, path, (size_t)n);
    file->state = FILE_OPENING;
    send_packet(job, &packet);
}

/* The file for this view; asked for if it is not known. NULL: no room for it. */
static struct job_file *file_of(struct limefs_job *job, const struct limefs_view *view)
{
    struct job_file *free_one = NULL, *idle = NULL;
    for (struct job_file *file = job->files; file < job->files + FILES_MAX; file++) {
        if (file->state != FILE_NONE && file->view == view->id)
            return file;
        if (file->state == FILE_NONE || file->state == FILE_REFUSED) {
            if (!free_one || file->state == FILE_NONE)
                free_one = file;
        } else if (file->state == FILE_OPEN && file->loads == 0 &&
                   (!idle || file->since < idle->since)) {
            idle = file;
        }
    }
    if (free_one)
        send_open(job, free_one, view);
    else if (idle)
        send_close(job, idle); /* there will be room the next time */
    return free_one;
}

/* ---- replies ---- */

static void trouble(struct limefs_job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Says it once, not again and again while it is looked for. */
static void trouble(struct limefs_job *job, const char *format, ...)
{
    char text[LIMEJOB_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (strcmp(text, job->trouble) == 0)
        return;
    strcpy(job->trouble, text);
    limefs_log(LOG_WARNING, "job: %s; reads go on locally", text);
}

static struct job_file *file_of_view(struct limefs_job *job, uint64_t view)
{
    for (struct job_file *file = job->files; file < job->files + FILES_MAX; file++)
        if (file->view == view && (file->state == FILE_OPEN || file->state == FILE_CLOSING))
            return file;
    return NULL;
}

static int on_opened(struct job_file *file, struct limejob_packet *reply)
{
    char text[LIMEJOB_TEXT_MAX];
    if (file->state != FILE_OPENING)
        return -EPROTO;
    int err = limejob_get_code(reply, text, sizeof text);
    file->number = err ? 0 : limejob_get_u32(reply);
    file->state = err ? FILE_REFUSED : FILE_OPEN;
    if (err)
        limefs_log(LOG_WARNING, "job: open: %s; this container is read locally",
                   text[0] ? text : strerror(-err));
    return reply->broken ? -EPROTO : 0;
}

static int on_loaded(struct limefs_job *job, unsigned slot, struct limejob_packet *reply)
{
    char text[LIMEJOB_TEXT_MAX];
    if (slot >= job->forward.slots || job->forward.slot[slot].state != LIMEFS_EXTENT_LOADING)
        return -EPROTO;
    const struct limefs_extent *extent = &job->forward.slot[slot];
    int err = limejob_get_code(reply, text, sizeof text);
    if (!err && limejob_get_u64(reply) != extent->to - extent->from)
        return -EPROTO;
    struct job_file *file = file_of_view(job, extent->view);
    if (file)
        file->loads--;
    if (err) { /* the local read will say what is wrong, if it meets it too */
        job->failed_loads++;
        limefs_log(LOG_WARNING, "job: read: %s", text[0] ? text : strerror(-err));
    }
    limefs_forward_loaded(&job->forward, (int)slot, !err);
    return 0;
}

static int on_reply(struct limefs_job *job, struct limejob_packet *reply)
{
    unsigned index = (unsigned)(reply->tag & UINT32_MAX);
    if (reply->fd >= 0)
        close(reply->fd);
    if (!(reply->flags & LIMEJOB_REPLY))
        return -EPROTO;
    switch (reply->tag >> 32) {
    case TAG_OPEN:
        return index < FILES_MAX ? on_opened(&job->files[index], reply) : -EPROTO;
    case TAG_LOAD:
        return on_loaded(job, index, reply);
    case TAG_CLOSE:
        if (index >= FILES_MAX || job->files[index].state != FILE_CLOSING)
            return -EPROTO;
        job->files[index] = (struct job_file){0};
        return 0;
    default:
        return -EPROTO;
    }
}

/* ---- the thread: while the job serves ---- */

/* Something has not been answered for too long: nothing else either, or it alone for very long.
 */
static bool is_stalled(const struct limefs_job *job, double now)
{
    double limit = job->fs->options.job_timeout;
    double heard = now - job->heard, oldest = 0;
    for (unsigned i = 0; i < job->forward.slots; i++)
        if (job->forward.slot[i].state == LIMEFS_EXTENT_LOADING && now - job->asked[i] > oldest)
            oldest = now - job->asked[i];
    for (int i = 0; i < FILES_MAX; i++)
        if (job->files[i].state == FILE_OPENING && now - job->files[i].since > oldest)
            oldest = now - job->files[i].since;
    return (oldest > limit && heard > limit) || oldest > 4 * limit;
}

static void close_unused(struct limefs_job *job, double now)
{
    for (struct job_file *file = job->files; file < job->files + FILES_MAX; file++)
        if (file->state == FILE_OPEN && file->loads == 0 && now - file->since > UNUSED_SECONDS)
            send_close(job, file);
}

/* What the job itself has to say: to the log. */
static void drain_words(struct limefs_job *job)
{
    while (job->launch.words >= 0) {
        struct pollfd fd = {job->launch.words, POLLIN, 0};
        if (poll(&fd, 1, 0) <= 0)
            return;
        ssize_t n =
            read(fd.fd, job->words + job->words_len, sizeof job->words - 1 - job->words_len);
        if (n <= 0) {
            close(job->launch.words);
            job->launch.words = -1;
            return;
        }
        job->words_len += (size_t)n;
        job->words[job->words_len] = '\0';
        char *line = job->words, *end;
        while ((end = strchr(line, '\n')) || job->words_len == sizeof job->words - 1) {
            if (end)
                *end = '\0';
            if (*line)
                limefs_log(LOG_NOTICE, "job: %s", line);
            if (!end)
                end = job->words + job->words_len - 1;
            job->words_len -= (size_t)(end + 1 - line);
            line = end + 1;
        }
        memmove(job->words, line, job->words_len);
    }
}

/* Until the job is lost; why. */
static const char *serve(struct limefs_job *job)
{
    static const char *const stalled = "it does not answer", *const gone = "it has gone",
                             *const wrong = "it says what makes no sense";
    struct limejob_packet reply;
    for (;;) {
        int got = limejob_receive(&job->channel, &reply, TICK_MS);
        double now = seconds();
        pthread_mutex_lock(&job->lock);
        int err = got > 0 ? on_reply(job, &reply) : got;
        bool late = is_stalled(job, now), stopping = job->stopping;
        if (got > 0) {
            job->heard = now;
            pthread_cond_broadcast(&job->changed);
        }
        if (!got)
            close_unused(job, now);
        pthread_mutex_unlock(&job->lock);
        drain_words(job);
        if (stopping)
            return NULL;
        if (err)
            return err == -EPIPE ? gone : wrong;
        if (late)
            return stalled;
    }
}

/* ---- the thread: from one job to the next ---- */

/* True unless the daemon ends first. */
static bool pause_for(struct limefs_job *job, double duration)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)duration;
    until.tv_nsec += (long)((duration - (double)(time_t)duration) * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&job->lock);
    while (!job->stopping &&
           pthread_cond_timedwait(&job->changed, &job->lock, &until) != ETIMEDOUT)
        ;
    bool go_on = !job->stopping;
    pthread_mutex_unlock(&job->lock);
    return go_on;
}

/* Reads what the job says until it says that it is ready. Other lines tell why it is not: the
 * last of them is the best that can be told. */
static bool becomes_ready(struct limefs_job *job)
{
    char line[LIMEJOB_TEXT_MAX] = "", said[LIMEJOB_TEXT_MAX] = "";
    size_t n = 0;
    double until = seconds() + START_SECONDS;
    while (seconds() < until && !job->stopping) {
        struct pollfd fd = {job->launch.words, POLLIN, 0};
        if (poll(&fd, 1, TICK_MS) <= 0)
            continue;
        char c;
        if (read(fd.fd, &c, 1) <= 0) {
            trouble(job, "it does not start: %s", said[0] ? said : "mpirun has ended");
            return false;
        }
        if (c != '\n') {
            if (n < sizeof line - 1)
                line[n++] = c;
            continue;
        }
        line[n] = '\0';
        n = 0;
        if (strcmp(line, "ready") == 0)
            return true;
        if (!said[0] && strncmp(line, "---", 3) != 0) /* mpirun frames what it says */
            strcpy(said, line);
    }
    if (!job->stopping)
        trouble(job, "it is not ready after %d s", START_SECONDS);
    return false;
}

static bool find(struct limefs_job *job, const char **path)
{
    *path = job->fs->options.job;
    if (!is_own(job))
        return true;
    int err = limefs_launch(&job->launch, &job->fs->options);
    if (err) {
        trouble(job, "start: %s", strerror(-err));
        return false;
    }
    *path = job->launch.socket;
    return becomes_ready(job);
}

static bool connect_to(struct limefs_job *job, const char *path)
{
    char text[LIMEJOB_TEXT_MAX];
    struct limejob_greeting greeting;
    int err = limejob_window_create(&job->window, job->forward.extent * job->forward.slots);
    if (err) {
        trouble(job, "window: %s", strerror(-err));
        return false;
    }
    err = limejob_connect(&job->channel, path, job->window.fd, job->window.bytes,
                          (int)(job->fs->options.job_timeout * 1000), &greeting, text);
    if (err) {
        trouble(job, "%s: connect: %s", path, text);
        limejob_window_release(&job->window);
        return false;
    }
    limejob_window_prepare(&job->window);
    pthread_mutex_lock(&job->lock);
    job->greeting = greeting;
    job->broken = false;
    job->state = JOB_SERVING;
    job->connections++;
    pthread_mutex_unlock(&job->lock);
    limefs_log(LOG_INFO, "job: %u ranks on %u hosts serve large reads", greeting.ranks,
               greeting.hosts);
    return true;
}

/* Lets the readers go; what they still hold of the window they give back in a moment. */
static void disconnect(struct limefs_job *job)
{
    pthread_mutex_lock(&job->lock);
    job->state = JOB_ABSENT;
    job->broken = true;
    pthread_cond_broadcast(&job->changed);
    while (job->holds)
        pthread_cond_wait(&job->changed, &job->lock);
    limefs_forward_reset(&job->forward);
    memset(job->files, 0, sizeof job->files);
    pthread_mutex_unlock(&job->lock);
    limejob_channel_close(&job->channel);
    limejob_window_release(&job->window);
}

static void *run(void *data)
{
    struct limefs_job *job = data;
    double back_off = back_off_first;
    limefs_launch_sweep();
    do {
        const char *path;
        pthread_mutex_lock(&job->lock);
        job->state = JOB_STARTING;
        pthread_mutex_unlock(&job->lock);
        bool found = find(job, &path);
        if (found && connect_to(job, path)) {
            double begin = seconds();
            const char *why = serve(job);
            disconnect(job);
            job->trouble[0] = '\0';
            if (why)
                trouble(job, "%s", why);
            if (seconds() - begin > healthy_seconds)
                back_off = back_off_first;
        }
        drain_words(job);
        if (is_own(job))
            limefs_launch_end(&job->launch);
        pthread_mutex_lock(&job->lock);
        job->state = JOB_ABSENT;
        pthread_mutex_unlock(&job->lock);
        if (!pause_for(job, back_off))
            break;
        back_off = back_off * 2 < back_off_most ? back_off * 2 : back_off_most;
    } while (!job->stopping);
    return NULL;
}

/* ---- from and to the rest of the daemon ---- */

int limefs_job_start(struct limefs *fs)
{
    const struct limefs_options *options = &fs->options;
    pthread_condattr_t monotonic;
    sigset_t all, before;
    if (!options->ranks && !options->job)
        return 0;
    struct limefs_job *job = calloc(1, sizeof *job);
    if (!job)
        return -ENOMEM;
    job->fs = fs;
    job->broken = true;
    job->launch.lifeline = job->launch.words = -1;
    limefs_forward_init(&job->forward, options->window, options->extent, options->forward_from);
    pthread_mutex_init(&job->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&job->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    fs->job = job;
    sigfillset(&all); /* signals are for the loop */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = -pthread_create(&job->thread, NULL, run, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err) {
        free(job);
        fs->job = NULL;
    }
    return err;
}

void limefs_job_stop(struct limefs *fs)
{
    struct limefs_job *job = fs->job;
    if (!job)
        return;
    pthread_mutex_lock(&job->lock);
    job->stopping = true;
    if (job->state == JOB_SERVING)
        shutdown(job->channel.fd, SHUT_RDWR);
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
    pthread_join(job->thread, NULL);
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->lock);
    free(job);
    fs->job = NULL;
}

void limefs_job_prepare(struct limefs *fs, const struct limefs_file *file)
{
    struct limefs_job *job = fs->job;
    if (!job)
        return;
    pthread_mutex_lock(&job->lock);
    if (job->state == JOB_SERVING)
        file_of(job, file->view);
    pthread_mutex_unlock(&job->lock);
}

static struct limefs_want want_of(const struct limefs_file *file, uint64_t at, size_t n)
{
    const struct limefile_record *record = &file->record;
    return (struct limefs_want){.view = file->view->id,
                                .begin = record->data_offset,
                                .end = record->data_offset + record->bytes,
                                .at = at,
                                .n = n,
                                .now = seconds()};
}

/* Waits until the request's slots are ready. Their number, or 0: they never will be. */
static int wait_for_slots(struct limefs_job *job, const struct limefs_want *want, int *slots)
{
    bool ready, waited = false;
    for (;;) {
        int count = job->state == JOB_SERVING
                        ? limefs_forward_find(&job->forward, want, slots, &ready)
                        : 0;
        if (count == 0)
            return 0;
        if (ready) {
            job->forward.stats.hits += !waited;
            return count;
        }
        if (!waited)
            limefs_forward_waited(&job->forward, want);
        waited = true;
        pthread_cond_wait(&job->changed, &job->lock); /* the thread sees to it that it ends */
    }
}

static void hold(struct limefs_job *job, const struct limefs_want *want, const int *slots,
                 int count, struct limefs_pieces *pieces)
{
    uint64_t at = want->at, end = want->at + want->n;
    pieces->count = count;
    for (int i = 0; i < count; i++) {
        const struct limefs_extent *extent = &job->forward.slot[slots[i]];
        uint64_t to = extent->to < end ? extent->to : end;
        pieces->slot[i] = slots[i];
        pieces->iov[i].iov_base =
            job->window.data + (uint64_t)slots[i] * job->forward.extent + (at - extent->from);
        pieces->iov[i].iov_len = to - at;
        limefs_forward_hold(&job->forward, slots[i], want);
        at = to;
    }
    job->holds++;
    job->forwarded_bytes += want->n;
}

/* Asks for what the request makes worth fetching. */
static void fetch(struct limefs_job *job, const struct limefs_want *want,
                  const struct limefs_view *view)
{
    int loads[LIMEFS_SLOTS_MAX];
    struct job_file *file = file_of(job, view);
    if (file && file->state == FILE_OPENING) {
        limefs_forward_note(&job->forward, want, false, loads);
        if (!limefs_forward_is_stream(&job->forward, want))
            return;
        while (job->state == JOB_SERVING && file->state == FILE_OPENING) /* not for long */
            pthread_cond_wait(&job->changed, &job->lock);
        if (job->state != JOB_SERVING || file->view != view->id)
            return;
    }
    bool may_load = file && file->state == FILE_OPEN;
    int count = limefs_forward_note(&job->forward, want, may_load, loads);
    for (int i = 0; i < count; i++)
        send_load(job, loads[i], file->number);
    if (may_load) {
        file->loads += (unsigned)count;
        file->since = want->now;
    }
}

int limefs_job_read(struct limefs *fs, const struct limefs_file *file, uint64_t at, size_t n,
                    struct limefs_pieces *pieces)
{
    struct limefs_job *job = fs->job;
    int slots[LIMEFS_PIECES_MAX];
    pieces->count = 0;
    if (!job || n == 0 || !limefs_file_is_large(fs, file))
        return 0;
    struct limefs_want want = want_of(file, at, n);
    pthread_mutex_lock(&job->lock);
    if (job->state == JOB_SERVING && !job->broken) {
        fetch(job, &want, file->view);
        int count = wait_for_slots(job, &want, slots);
        if (count)
            hold(job, &want, slots, count, pieces);
    }
    pthread_mutex_unlock(&job->lock);
    return pieces->count;
}

void limefs_job_release(struct limefs *fs, struct limefs_pieces *pieces)
{
    struct limefs_job *job = fs->job;
    if (pieces->count == 0)
        return;
    pthread_mutex_lock(&job->lock);
    for (int i = 0; i < pieces->count; i++)
        limefs_forward_release(&job->forward, pieces->slot[i]);
    if (--job->holds == 0 && job->state != JOB_SERVING)
        pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
    pieces->count = 0;
}

void limefs_job_drop(struct limefs *fs, const struct limefs_view *view)
{
    struct limefs_job *job = fs->job;
    if (!job)
        return;
    pthread_mutex_lock(&job->lock);
    limefs_forward_drop(&job->forward, view->id);
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
}

int limefs_job_stats(struct limefs *fs, char *buf, size_t cap)
{
    static const struct limefs_job none;
    struct limefs_job *job = fs->job;
    const struct limefs_job *of = job ? job : &none;
    if (job)
        pthread_mutex_lock(&job->lock);
    int n = snprintf(
        buf, cap,
        "{\"local_bytes\": %" PRIu64 ", \"forwarded_bytes\": %" PRIu64
        ", \"local_written_bytes\": 0, \"forwarded_written_bytes\": 0, \"requests\": %" PRIu64
        ", \"loads\": %" PRIu64 ", \"prefetch_hits\": %" PRIu64
        ", \"prefetch_wasted_bytes\": %" PRIu64 ", \"waits\": %" PRIu64
        ", \"failed_loads\": %" PRIu64 ", \"job\": {\"state\": \"%s\", \"ranks\": %u"
        ", \"hosts\": %u, \"connections\": %" PRIu64 "}}",
        __atomic_load_n(&fs->local_bytes, __ATOMIC_RELAXED), of->forwarded_bytes,
        __atomic_load_n(&fs->requests, __ATOMIC_RELAXED), of->forward.stats.loads,
        of->forward.stats.hits, of->forward.stats.wasted_bytes, of->forward.stats.waits,
        of->failed_loads, job ? state_names[of->state] : "none",
        of->state == JOB_SERVING ? of->greeting.ranks : 0,
        of->state == JOB_SERVING ? of->greeting.hosts : 0, of->connections);
    if (job)
        pthread_mutex_unlock(&job->lock);
    return n < 0 || (size_t)n >= cap ? -ERANGE : n;
}
