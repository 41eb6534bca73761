/* connection.c - the thread that starts or finds a job, serves its connection, reconnects */
#define _GNU_SOURCE
#include "job_internal.h"

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
    POLL_MS = 200,      /* how often the thread checks its deadlines */
    LINES_MAX = 64,     /* lines of the job's output that are logged between two replies */
    START_SECONDS = 60, /* limit for mpirun to start the job */
    HELLO_SECONDS = 5,  /* limit for the first reply; an unmount may have to wait for it */
};

/* Seconds between two tries: they double each time, up to a maximum for ranks= or for job=. */
static const double first_pause = 0.25, max_launch_pause = 30, max_connect_pause = 2;
static const double healthy_seconds = 5; /* a longer connection resets the pause */
/* An mpirun that cannot start a job usually fails within these seconds. */
static const double launch_check_seconds = 0.1;

static double min_double(double a, double b)
{
    return a < b ? a : b;
}

static bool launches_job(const struct limefs_job *job)
{
    return job->fs->options.ranks > 0;
}

static void set_failure(struct limefs_job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Logs why no job serves, and stores the text in job->failure. Does nothing if job->failure has
 * this text already. The caller must not hold the lock. */
static void set_failure(struct limefs_job *job, const char *format, ...)
{
    char text[LIMEJOB_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (strcmp(text, job->failure) == 0)
        return;
    bool is_fatal = job->fs->options.job_required && job->connections == 0;
    limefs_log(is_fatal ? LOG_ERR : LOG_WARNING, "job: %s; %s", text,
               is_fatal ? "nothing is mounted (job_required)" : "reads continue locally");
    limefs_lock(&job->lock);
    strcpy(job->failure, text);
    pthread_cond_broadcast(&job->changed);
    limefs_unlock(&job->lock);
}

/* ---- while the job serves ---- */

/* Gets the next line that the job's processes print. Returns false if none came for wait_ms. A
 * line that is longer than the buffer is returned in parts. */
static bool read_line(struct limefs_job *job, int wait_ms, char line[LIMEFS_JOB_LINE_MAX + 1])
{
    for (;;) {
        const char *end = memchr(job->output, '\n', job->output_len);
        if (end || job->output_len == sizeof job->output) {
            size_t n = end ? (size_t)(end - job->output) : job->output_len;
            memcpy(line, job->output, n);
            line[n] = '\0';
            n += end != NULL;
            job->output_len -= n;
            memmove(job->output, job->output + n, job->output_len);
            return true;
        }
        struct pollfd fd = {job->launch.output, POLLIN, 0};
        if (fd.fd < 0 || poll(&fd, 1, wait_ms) <= 0)
            return false;
        ssize_t n =
            read(fd.fd, job->output + job->output_len, sizeof job->output - job->output_len);
        if (n <= 0) {
            close(job->launch.output);
            job->launch.output = -1;
            return false;
        }
        job->output_len += (size_t)n;
    }
}

static void log_output(struct limefs_job *job)
{
    char line[LIMEFS_JOB_LINE_MAX + 1];
    for (int i = 0; i < LINES_MAX && read_line(job, 0, line); i++)
        if (*line)
            limefs_log(LOG_NOTICE, "job: %s", line);
}

static int dispatch_reply(struct limefs_job *job, struct limejob_packet *reply)
{
    unsigned index = (unsigned)(reply->tag & UINT32_MAX);
    switch (reply->tag >> 32) {
    case LIMEFS_TAG_OPEN:
        return limefs_job_on_open(job, index, reply);
    case LIMEFS_TAG_LOAD:
        return limefs_job_on_load(job, index, reply);
    case LIMEFS_TAG_STORE:
        return limefs_job_on_store(job, index, reply);
    case LIMEFS_TAG_SYNC:
        return limefs_job_on_sync(job, index, reply);
    case LIMEFS_TAG_CLOSE:
        return limefs_job_on_close(job, index, reply);
    default:
        return -EPROTO;
    }
}

static int handle_reply(struct limefs_job *job, struct limejob_packet *reply)
{
    if (!(reply->flags & LIMEJOB_REPLY) || job->in_flight == 0)
        return -EPROTO;
    job->in_flight--;
    bool closes = reply->tag >> 32 == LIMEFS_TAG_CLOSE; /* do not retry a close at once */
    int err = dispatch_reply(job, reply);
    if (!err && !closes)
        limefs_job_send_closes(job);
    return err;
}

/* Handles replies until the job is lost. Returns the reason, or NULL if the daemon stops. */
static const char *handle_replies(struct limefs_job *job)
{
    static const char *const no_answer = "it does not answer", *const ended = "it has ended",
                             *const invalid = "it sent an invalid reply";
    struct limejob_packet reply;
    for (;;) {
        int got = limejob_receive(&job->channel, &reply, POLL_MS);
        double now = limefs_clock_seconds();
        if (got > 0 && reply.fd >= 0)
            close(reply.fd); /* no valid reply carries a descriptor */
        limefs_lock(&job->lock);
        int err = got > 0 ? handle_reply(job, &reply) : got;
        /* Mark the connection before unlocking: no reader may use bytes of an invalid reply. */
        if (err)
            limefs_job_mark_broken(job);
        if (got > 0) {
            job->last_reply = now;
            pthread_cond_broadcast(&job->changed);
        }
        bool stalled = limefs_job_is_stalled(job, now), stopping = job->stopping;
        limefs_job_close_unused_files(job, now);
        limefs_unlock(&job->lock);
        log_output(job);
        if (stopping)
            return NULL;
        if (err)
            return err == -EPIPE ? ended : invalid;
        if (stalled)
            return no_answer;
    }
}

/* ---- connect and reconnect ---- */

/* Pauses for `duration` seconds. Returns false, perhaps early, if the daemon stops. */
static bool pause_for(struct limefs_job *job, double duration)
{
    struct timespec until = limefs_clock_timespec(limefs_clock_seconds() + duration);
    limefs_lock(&job->lock);
    while (!job->stopping && limefs_cond_wait_until(&job->changed, &job->lock, &until))
        ;
    bool go_on = !job->stopping;
    limefs_unlock(&job->lock);
    return go_on;
}

/* Waits until the job prints "ready". If the job ends first, logs its first line as reason. */
static bool wait_until_ready(struct limefs_job *job)
{
    char line[LIMEFS_JOB_LINE_MAX + 1], reason[sizeof line] = "";
    double until = limefs_clock_seconds() + START_SECONDS;
    while (limefs_clock_seconds() < until && !job->stopping) {
        bool got = read_line(job, POLL_MS, line);
        if (!got && job->launch.output < 0) {
            set_failure(job, "it does not start: %s", reason[0] ? reason : "mpirun has ended");
            return false;
        }
        if (got && strcmp(line, "ready") == 0)
            return true;
        if (got && !reason[0] && strncmp(line, "---", 3) != 0) /* not mpirun's frame */
            strcpy(reason, line);
    }
    if (!job->stopping)
        set_failure(job, "it is not ready after %d s", START_SECONDS);
    return false;
}

/* With ranks=, starts a job and waits until it is ready. Sets *path to the job's socket. */
static bool start_or_find_job(struct limefs_job *job, const char **path)
{
    *path = job->fs->options.job;
    if (!launches_job(job))
        return true;
    job->output_len = 0;
    int err = limefs_launch_start(&job->launch, &job->fs->options);
    if (err) {
        set_failure(job, "start: %s", strerror(-err));
        return false;
    }
    *path = job->launch.socket;
    return wait_until_ready(job);
}

static bool connect_to_job(struct limefs_job *job, const char *path)
{
    char text[LIMEJOB_TEXT_MAX];
    struct limejob_hello_reply greeting;
    int err = limejob_window_create(&job->window, limefs_job_fence_offset(job) + LIMEJOB_ALIGN);
    if (err) {
        set_failure(job, "window: %s", strerror(-err));
        return false;
    }
    err = limejob_connect(&job->channel, path, job->window.fd, job->window.bytes,
                          (int)(min_double(job->fs->options.job_timeout, HELLO_SECONDS) * 1000),
                          &greeting, text);
    if (err) {
        set_failure(job, "%s: connect: %s", path, text);
        limejob_window_release(&job->window);
        return false;
    }
    limejob_window_use_huge_pages(&job->window, &job->stopping);
    limefs_lock(&job->lock);
    job->greeting = greeting;
    job->broken = false;
    job->state = LIMEFS_JOB_SERVING;
    job->connections++;
    pthread_cond_broadcast(&job->changed);
    limefs_unlock(&job->lock);
    limefs_log(LOG_INFO, "job: %u rank%s on %u host%s serve large reads", greeting.ranks,
               greeting.ranks == 1 ? "" : "s", greeting.hosts, greeting.hosts == 1 ? "" : "s");
    return true;
}

/* The hosts' clocks may differ by a second, and a job with a late collective write ends within
 * three (server.c). */
static const double late_seconds = 4;

/* Returns whether ranks may begin the write although the fence is set: ranks on other hosts,
 * which do not see it, and those that wait for others in a collective call. (A job that this
 * daemon started has been killed.) */
static bool may_ignore_fence(struct limefs_job *job, const struct limefs_write_buffer *buffer)
{
    const struct limefs_job_file *file =
        limefs_job_find_written_file(job, buffer->written->snap);
    return job->greeting.hosts > 1 || (!launches_job(job) && file && file->writes_collectively);
}

/* Prevents late writes of the lost job from replacing newer bytes. Sets the fence, which ranks
 * check before they write. Those that ignore it ignore expired requests; a thread that changes
 * their bytes waits until then (limefs_late_wait()). */
static void revoke_writes(struct limefs_job *job)
{
    limejob_fence_set(job->window.data + limefs_job_fence_offset(job));
    for (unsigned i = 0; i < job->buffer_count; i++) {
        const struct limefs_write_buffer *buffer = &job->buffers[i];
        if (buffer->state == LIMEFS_BUFFER_SENT && may_ignore_fence(job, buffer))
            limefs_late_add(job, buffer->written->snap->id, buffer->from, buffer->to,
                            buffer->last_used + limefs_job_lease_seconds(job) + late_seconds);
    }
}

/* Marks the job as lost, and wakes all threads that wait for it. */
static void mark_absent(struct limefs_job *job)
{
    limefs_lock(&job->lock);
    job->state = LIMEFS_JOB_ABSENT;
    limefs_job_mark_broken(job);
    pthread_cond_broadcast(&job->changed);
    limefs_unlock(&job->lock);
}

/* Waits until no reply uses the window. Revokes the write requests, and only then writes their
 * bytes locally, so that no rank replaces newer bytes. Closes the connection and the window. */
static void disconnect_job(struct limefs_job *job)
{
    limefs_lock(&job->lock);
    while (job->holds)
        limefs_cond_wait(&job->changed, &job->lock);
    revoke_writes(job);
    limefs_write_buffers_write_out(job);
    limefs_prefetch_reset(&job->prefetch);
    memset(job->files, 0, sizeof job->files);
    job->in_flight = 0;
    limefs_unlock(&job->lock);
    limejob_channel_close(&job->channel);
    limejob_window_release(&job->window);
}

/* The connection's thread: connects, handles replies until the job is lost, and tries again. */
static void *maintain_connection(void *data)
{
    struct limefs_job *job = data;
    double pause = first_pause, max = launches_job(job) ? max_launch_pause : max_connect_pause;
    limefs_launch_remove_stale();
    do {
        const char *path;
        limefs_lock(&job->lock);
        job->state = LIMEFS_JOB_STARTING;
        limefs_unlock(&job->lock);
        bool found = start_or_find_job(job, &path);
        if (found && connect_to_job(job, path)) {
            double begin = limefs_clock_seconds();
            const char *reason = handle_replies(job);
            mark_absent(job);
            log_output(job);
            if (launches_job(job) && reason)
                limefs_launch_end(&job->launch);
            disconnect_job(job);
            limefs_lock(&job->lock);
            job->failure[0] = '\0';
            limefs_unlock(&job->lock);
            if (reason)
                set_failure(job, "%s", reason);
            if (limefs_clock_seconds() - begin > healthy_seconds)
                pause = first_pause;
        }
        log_output(job);
        if (launches_job(job))
            limefs_launch_end(&job->launch);
        limefs_lock(&job->lock);
        job->state = LIMEFS_JOB_ABSENT;
        limefs_unlock(&job->lock);
        if (!pause_for(job, pause))
            break;
        pause = pause * 2 < max ? pause * 2 : max;
    } while (!job->stopping);
    return NULL;
}

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
    job->launch.lifeline = job->launch.lock = job->launch.output = -1;
    uint64_t window = options->rw ? options->window / 2 : options->window;
    limefs_prefetch_init(&job->prefetch, window > options->extent ? window : options->extent,
                         options->extent, options->forward_from);
    if (options->rw)
        job->buffer_count =
            job->prefetch.slots < LIMEFS_BUFFERS_MAX ? job->prefetch.slots : LIMEFS_BUFFERS_MAX;
    limefs_lock_init(&job->lock, LIMEFS_LOCK_JOB);
    limefs_cond_init(&job->changed);
    fs->job = job;
    int err = limefs_thread_start(&job->thread, NULL, maintain_connection, job);
    if (err) {
        free(job);
        fs->job = NULL;
    }
    return err;
}

bool limefs_job_wait_start(struct limefs *fs)
{
    struct limefs_job *job = fs->job;
    bool required = fs->options.job_required;
    if (!job || (!required && !launches_job(job)))
        return true;
    double most = required ? 2 * START_SECONDS : launch_check_seconds;
    struct timespec until = limefs_clock_timespec(limefs_clock_seconds() + most);
    limefs_lock(&job->lock);
    while (!job->failure[0] && job->connections == 0 && !job->stopping &&
           limefs_cond_wait_until(&job->changed, &job->lock, &until))
        ;
    bool serves = job->connections > 0;
    limefs_unlock(&job->lock);
    return serves || !required;
}

void limefs_job_begin_stop(struct limefs *fs)
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
}

void limefs_job_stop(struct limefs *fs)
{
    struct limefs_job *job = fs->job;
    if (!job)
        return;
    limefs_job_begin_stop(fs);
    pthread_join(job->thread, NULL);
    pthread_cond_destroy(&job->changed);
    limefs_lock_destroy(&job->lock);
    free(job);
    fs->job = NULL;
}
