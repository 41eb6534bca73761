/* stats.c - report the statistics of the mount and its job as JSON */
#define _GNU_SOURCE
#include "job_internal.h"
#include "text.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_int_t to_json(const atomic_uint_least64_t *count)
{
    return (json_int_t)atomic_load_explicit(count, memory_order_relaxed);
}

/* Paths and the output of mpirun may have bytes that JSON cannot hold. */
static json_t *text_json(const char *text)
{
    char *copy = strdup(text);
    if (copy)
        limefile_text_sanitize(copy, "");
    json_t *json = copy ? json_string(copy) : NULL;
    free(copy);
    return json;
}

/* Returns why no job serves, or NULL. */
static const char *find_no_job_reason(const struct limefs *fs, const struct limefs_job *job)
{
    const char *not_requested = "neither ranks= nor job= was given";
    if (!fs->job)
        return fs->no_job_reason[0] ? fs->no_job_reason : not_requested;
    return job->failure[0] && job->state != LIMEFS_JOB_SERVING ? job->failure : NULL;
}

static json_t *options_json(const struct limefs_options *options)
{
    char *text;
    if (asprintf(&text, "%s%s%s", options->rw ? "rw" : "ro", options->given ? "," : "",
                 options->given ? options->given : "") < 0)
        return NULL;
    json_t *json = text_json(text);
    free(text);
    return json;
}

/* The JSON names are part of the interface for users (docs/man/limefs.1). */
static json_t *build_stats(const struct limefs *fs, const struct limefs_job *job)
{
    static const char *const states[] = {"absent", "starting", "serving"};
    const struct limefs_prefetch_stats *prefetch = &job->prefetch.stats;
    const char *reason = find_no_job_reason(fs, job);
    bool serves = job->state == LIMEFS_JOB_SERVING;
    json_int_t stored = (json_int_t)job->stored_bytes;
    return json_pack(
        "{so so sI sI sI sI sI sI sI sI sI sI sI sI sI sI s{ss si si sI so*}}", "source",
        text_json(fs->source), "options", options_json(&fs->options), "uptime_s",
        (json_int_t)(limefs_clock_seconds() - fs->mounted_at), "local_bytes",
        to_json(&fs->stats.local_bytes), "forwarded_bytes", (json_int_t)job->forwarded_bytes,
        "local_written_bytes", to_json(&fs->stats.local_written_bytes) - stored,
        "forwarded_written_bytes", stored, "verified_bytes", to_json(&fs->stats.verified_bytes),
        "verified_ok", to_json(&fs->stats.verified_ok), "verified_bad",
        to_json(&fs->stats.verified_bad), "requests", to_json(&fs->stats.requests), "loads",
        (json_int_t)prefetch->loads, "prefetch_hits", (json_int_t)prefetch->hits,
        "prefetch_wasted_bytes", (json_int_t)prefetch->wasted_bytes, "waits",
        (json_int_t)prefetch->waits, "failed_loads", (json_int_t)job->failed_loads, "job",
        "state", fs->job ? states[job->state] : "none", "ranks",
        serves ? (int)job->greeting.ranks : 0, "hosts", serves ? (int)job->greeting.hosts : 0,
        "connections", (json_int_t)job->connections, "reason",
        reason ? text_json(reason) : NULL);
}

int limefs_job_format_stats(struct limefs *fs, char *buf, size_t cap)
{
    static const struct limefs_job none;
    if (fs->job)
        limefs_lock(&fs->job->lock);
    json_t *stats = build_stats(fs, fs->job ? fs->job : &none);
    if (fs->job)
        limefs_unlock(&fs->job->lock);
    size_t n = stats ? json_dumpb(stats, buf, cap, JSON_PRESERVE_ORDER) : 0;
    json_decref(stats);
    return !stats ? -ENOMEM : n > cap ? -ERANGE : (int)n;
}
