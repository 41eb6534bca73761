/* stats.c - report the statistics of the mount and its job as JSON */
#include "job_internal.h"
#include "text.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

static json_int_t to_json(const atomic_uint_least64_t *count)
{
    return (json_int_t)atomic_load_explicit(count, memory_order_relaxed);
}

/* Adds why no job serves. This text may be mpirun's, and have bytes that JSON cannot hold. */
static void add_reason(json_t *stats, const struct limefs_job *job)
{
    char reason[200];
    snprintf(reason, sizeof reason, "%.*s", (int)sizeof reason - 1, job->failure);
    limefile_text_sanitize(reason, "");
    if (*reason && job->state != LIMEFS_JOB_SERVING)
        json_object_set_new(json_object_get(stats, "job"), "reason", json_string(reason));
}

/* The JSON names are part of the interface for users (docs/man/limefs.1). */
static json_t *build_stats(const struct limefs *fs, const struct limefs_job *job)
{
    static const char *const states[] = {"absent", "starting", "serving"};
    const struct limefs_prefetch_stats *prefetch = &job->prefetch.stats;
    bool serves = job->state == LIMEFS_JOB_SERVING;
    json_int_t stored = (json_int_t)job->stored_bytes;
    return json_pack(
        "{sI sI sI sI sI sI sI sI sI sI sI sI sI s{ss si si sI}}", "local_bytes",
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
        "connections", (json_int_t)job->connections);
}

int limefs_job_format_stats(struct limefs *fs, char *buf, size_t cap)
{
    static const struct limefs_job none;
    if (fs->job)
        limefs_lock(&fs->job->lock);
    json_t *stats = build_stats(fs, fs->job ? fs->job : &none);
    if (stats)
        add_reason(stats, fs->job ? fs->job : &none);
    if (fs->job)
        limefs_unlock(&fs->job->lock);
    size_t n = stats ? json_dumpb(stats, buf, cap, JSON_PRESERVE_ORDER) : 0;
    json_decref(stats);
    return !stats ? -ENOMEM : n > cap ? -ERANGE : (int)n;
}
