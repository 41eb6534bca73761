/* life.c - the thread that starts or finds a job, serves its connection, and reconnects */
#define _GNU_SOURCE
#include "link.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

enum {
    TICK_MS = 200,      /* how often the thread checks its deadlines */
    LINES_AT_ONCE = 64, /* of the job's output are logged before the next reply */
    START_SECONDS = 60, /* for mpirun to start the job */
    HELLO_SECONDS = 5,  /* for the first answer: an unmount waits for it */
};

/* Pauses between tries, in seconds. To look for a job costs little. */
static const double back_off_first = 0.25, back_off_start = 30, back_off_look = 2;
static const double healthy_seconds = 5;
/* Seconds in which an mpirun= that cannot start a job usually fails. */
static const double first_seconds = 0.1;

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static bool is_own(const struct limefs_job *job)
{
    return job->fs->options.ranks > 0;
}

static void trouble(struct limefs_job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Logs why no job serves, unless it was logged last, and stores it for --status. Locks job. */
static void trouble(struct limefs_job *job, const char *format, ...)
{
    char text[LIMEJOB_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (strcmp(text, job->trouble) == 0)
        return;
    limefs_log(LOG_WARNING, "job: %s; reads continue locally", text);
    limefs_lock(&job->lock);
    strcpy(job->trouble, text);
    pthread_cond_broadcast(&job->changed);
    limefs_unlock(&job->lock);
}

/* ---- while the job serves ---- */

/* Gets the next line that the job's processes have printed. Waits for it at most timeout_ms. A
 * line that is longer than the buffer comes in parts. Returns false without a line. */
static bool get_line(struct limefs_job *job, int timeout_ms, char line[LIMEFS_JOB_LINE_MAX + 1])
{
    for (;;) {
        const char *end = memchr(job->words, '\n', job->words_len);
        if (end || job->words_len == sizeof job->words) {
            size_t n = end ? (size_t)(end - job->words) : job->words_len;
            memcpy(line, job->words, n);
            line[n] = '\0';
            n += end != NULL;
            job->words_len -= n;
            memmove(job->words, job->words + n, job->words_len);
            return true;
        }
        struct pollfd fd = {job->launch.words, POLLIN, 0};
        if (fd.fd < 0 || poll(&fd, 1, timeout_ms) <= 0)
            return false;
        ssize_t n =
            read(fd.fd, job->words + job->words_len, sizeof job->words - job->words_len);
        if (n <= 0) {
            close(job->launch.words);
            job->launch.words = -1;
            return false;
        }
        job->words_len += (size_t)n;
    }
}

static void log_lines(struct limefs_job *job)
{
    char line[LIMEFS_JOB_LINE_MAX + 1];
    for (int i = 0; i < LINES_AT_ONCE && get_line(job, 0, line); i++)
        if (*line)
            limefs_log(LOG_NOTICE, "job: %s", line);
}

static int take_reply(struct limefs_job *job, struct limejob_packet *reply)
{
    unsigned index = (unsigned)(reply->tag & UINT32_MAX);
    switch (reply->tag >> 32) {
    case LIMEFS_TAG_OPEN:
        return limefs_job_opened(job, index, reply);
    case LIMEFS_TAG_LOAD:
        return limefs_job_loaded(job, index, reply);
    case LIMEFS_TAG_STORE:
        return limefs_job_stored(job, index, reply);
    case LIMEFS_TAG_SYNC:
        return limefs_job_synced(job, index, reply);
    case LIMEFS_TAG_CLOSE:
        return limefs_job_closed(job, index, reply);
    default:
        return -EPROTO;
    }
}

static int on_reply(struct limefs_job *job, struct limejob_packet *reply)
{
    if (!(reply->flags & LIMEJOB_REPLY) || job->in_flight == 0)
        return -EPROTO;
    job->in_flight--;
    bool closes = reply->tag >> 32 == LIMEFS_TAG_CLOSE; /* a CLOSE may be refused repeatedly */
    int err = take_reply(job, reply);
    if (!err && !closes)
        limefs_job_send_closes(job);
    return err;
}

/* Handles replies until the job is lost. Returns the reason; NULL: the daemon stops. */
static const char *serve(struct limefs_job *job)
{
    static const char *const stalled = "it does not answer", *const gone = "it has ended",
                             *const wrong = "it sent an invalid reply";
    struct limejob_packet reply;
    for (;;) {
        int got = limejob_receive(&job->channel, &reply, TICK_MS);
        double now = limefs_seconds();
        if (got > 0 && reply.fd >= 0)
            close(reply.fd); /* no reply should carry one */
        limefs_lock(&job->lock);
        int err = got > 0 ? on_reply(job, &reply) : got;
        /* The connection must be marked before a reader uses the bytes of this reply. */
        if (err)
            limefs_job_break(job);
        if (got > 0) {
            job->heard = now;
            pthread_cond_broadcast(&job->changed);
        }
        bool late = limefs_job_is_stalled(job, now), stopping = job->stopping;
        limefs_job_tidy_files(job, now);
        limefs_unlock(&job->lock);
        log_lines(job);
        if (stopping)
            return NULL;
        if (err)
            return err == -EPIPE ? gone : wrong;
        if (late)
            return stalled;
    }
}

/* ---- connect and reconnect ---- */

/* Pauses for `duration` seconds. Returns false if the daemon stops before. */
static bool pause_for(struct limefs_job *job, double duration)
{
    struct timespec until = limefs_clock_time(limefs_seconds() + duration);
    limefs_lock(&job->lock);
    while (!job->stopping && limefs_wait_until(&job->changed, &job->lock, &until))
        ;
    bool go_on = !job->stopping;
    limefs_unlock(&job->lock);
    return go_on;
}

/* Waits until the job prints "ready". The first other line is the reason if it fails. */
static bool becomes_ready(struct limefs_job *job)
{
    char line[LIMEFS_JOB_LINE_MAX + 1], reason[sizeof line] = "";
    double until = limefs_seconds() + START_SECONDS;
    while (limefs_seconds() < until && !job->stopping) {
        bool got = get_line(job, TICK_MS, line);
        if (!got && job->launch.words < 0) {
            trouble(job, "it does not start: %s", reason[0] ? reason : "mpirun has ended");
            return false;
        }
        if (got && strcmp(line, "ready") == 0)
            return true;
        if (got && !reason[0] && strncmp(line, "---", 3) != 0) /* mpirun frames its messages */
            strcpy(reason, line);
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
    job->words_len = 0;
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
    int err = limejob_window_create(&job->window, limefs_job_gate(job) + LIMEJOB_ALIGN);
    if (err) {
        trouble(job, "window: %s", strerror(-err));
        return false;
    }
    err = limejob_connect(&job->channel, path, job->window.fd, job->window.bytes,
                          (int)(smaller(job->fs->options.job_timeout, HELLO_SECONDS) * 1000),
                          &greeting, text);
    if (err) {
        trouble(job, "%s: connect: %s", path, text);
        limejob_window_release(&job->window);
        return false;
    }
    limejob_window_prepare(&job->window, &job->stopping);
    limefs_lock(&job->lock);
    job->greeting = greeting;
    job->broken = false;
    job->state = LIMEFS_JOB_SERVING;
    job->connections++;
    limefs_unlock(&job->lock);
    limefs_log(LOG_INFO, "job: %u rank%s on %u host%s serve large reads", greeting.ranks,
               greeting.ranks == 1 ? "" : "s", greeting.hosts, greeting.hosts == 1 ? "" : "s");
    return true;
}

/* Prevents late writes of the lost job. Ranks on this host check the fence before they write;
 * for those on other hosts, threads wait until the lease ends. */
static void take_back(struct limefs_job *job)
{
    limejob_gate_shut(job->window.data + limefs_job_gate(job));
    for (unsigned i = 0; i < job->parcel_count && job->greeting.hosts > 1; i++) {
        const struct limefs_parcel *parcel = &job->parcels[i];
        if (parcel->state == LIMEFS_PARCEL_SENT) /* clocks may differ by a second */
            limefs_job_dread(job, parcel->written->snap->id, parcel->from, parcel->to,
                             parcel->since + limefs_job_lease(job) + 1);
    }
}

/* Wakes all threads that wait for the job. */
static void give_up(struct limefs_job *job)
{
    limefs_lock(&job->lock);
    job->state = LIMEFS_JOB_ABSENT;
    limefs_job_break(job);
    pthread_cond_broadcast(&job->changed);
    limefs_unlock(&job->lock);
}

/* Waits until readers have released the window. Then writes locally what the job should have
 * written, after take_back(), so that no rank of this host can write it later. */
static void disconnect(struct limefs_job *job)
{
    limefs_lock(&job->lock);
    while (job->holds)
        limefs_wait(&job->changed, &job->lock);
    take_back(job);
    limefs_store_rescue(job);
    limefs_forward_reset(&job->forward);
    memset(job->files, 0, sizeof job->files);
    job->in_flight = 0;
    limefs_unlock(&job->lock);
    limejob_channel_close(&job->channel);
    limejob_window_release(&job->window);
}

static void *run(void *data)
{
    struct limefs_job *job = data;
    double back_off = back_off_first, most = is_own(job) ? back_off_start : back_off_look;
    limefs_launch_sweep();
    do {
        const char *path;
        limefs_lock(&job->lock);
        job->state = LIMEFS_JOB_STARTING;
        limefs_unlock(&job->lock);
        bool found = find(job, &path);
        if (found && connect_to(job, path)) {
            double begin = limefs_seconds();
            const char *why = serve(job);
            give_up(job);
            log_lines(job);
            if (is_own(job) && why)
                limefs_launch_end(&job->launch);
            disconnect(job);
            limefs_lock(&job->lock);
            job->trouble[0] = '\0';
            limefs_unlock(&job->lock);
            if (why)
                trouble(job, "%s", why);
            if (limefs_seconds() - begin > healthy_seconds)
                back_off = back_off_first;
        }
        log_lines(job);
        if (is_own(job))
            limefs_launch_end(&job->launch);
        limefs_lock(&job->lock);
        job->state = LIMEFS_JOB_ABSENT;
        limefs_unlock(&job->lock);
        if (!pause_for(job, back_off))
            break;
        back_off = back_off * 2 < most ? back_off * 2 : most;
    } while (!job->stopping);
    return NULL;
}

/* ---- begin and end ---- */

int limefs_job_start(struct limefs *fs)
{
    const struct limefs_options *options = &fs->options;
    if (!options->ranks && !options->job)
        return 0;
    struct limefs_job *job = calloc(1, sizeof *job);
    if (!job)
        return -ENOMEM;
    job->fs = fs;
    job->broken = true;
    job->launch.lifeline = job->launch.lock = job->launch.words = -1;
    /* A mount for writing uses half of the window for writes. */
    uint64_t window = options->rw ? options->window / 2 : options->window;
    limefs_forward_init(&job->forward, window > options->extent ? window : options->extent,
                        options->extent, options->forward_from);
    if (options->rw)
        job->parcel_count =
            job->forward.slots < LIMEFS_PARCELS_MAX ? job->forward.slots : LIMEFS_PARCELS_MAX;
    limefs_lock_init(&job->lock, LIMEFS_LOCK_JOB);
    limefs_condition_init(&job->changed);
    fs->job = job;
    int err = limefs_thread_start(&job->thread, NULL, run, job);
    if (err) {
        free(job);
        fs->job = NULL;
    }
    return err;
}

void limefs_job_watch_start(struct limefs *fs)
{
    struct limefs_job *job = fs->job;
    if (!job || !is_own(job))
        return;
    struct timespec until = limefs_clock_time(limefs_seconds() + first_seconds);
    limefs_lock(&job->lock);
    while (!job->trouble[0] && job->state != LIMEFS_JOB_SERVING && !job->stopping &&
           limefs_wait_until(&job->changed, &job->lock, &until))
        ;
    limefs_unlock(&job->lock);
}

void limefs_job_stop(struct limefs *fs)
{
    struct limefs_job *job = fs->job;
    if (!job)
        return;
    limefs_lock(&job->lock);
    job->stopping = true;
    if (job->state == LIMEFS_JOB_SERVING)
        shutdown(job->channel.fd, SHUT_RDWR);
    pthread_cond_broadcast(&job->changed);
    limefs_unlock(&job->lock);
    pthread_join(job->thread, NULL);
    pthread_cond_destroy(&job->changed);
    limefs_lock_destroy(&job->lock);
    free(job);
    fs->job = NULL;
}
