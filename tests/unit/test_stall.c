/* test_stall.c - when limefs gives up a job that does not answer */
#include "job_internal.h"
#include "unit.h"

static const double limit = 5;

struct bench {
    struct limefs fs;
    struct limefs_job job;
};

/* Returns a job whose last reply was at 1000. */
static struct limefs_job *job_of(struct bench *b)
{
    memset(b, 0, sizeof *b);
    b->fs.options.job_timeout = limit;
    b->job.fs = &b->fs;
    b->job.last_reply = 1000;
    b->job.buffer_count = 4;
    b->job.prefetch.slots = 4;
    return &b->job;
}

static void load(struct limefs_job *job, unsigned slot, double since)
{
    job->prefetch.slot[slot].state = LIMEFS_EXTENT_LOADING;
    job->load_sent[slot] = since;
}

static void sync_from(struct limefs_job *job, struct limefs_job_sync *sync, double since)
{
    *sync = (struct limefs_job_sync){.next = job->syncs, .sent_at = since};
    job->syncs = sync;
}

/* Notes a reply. */
static void answer(struct limefs_job *job, struct limefs_job_sync *sync, double now)
{
    sync->done = true;
    job->synced_from = sync->sent_at;
    job->synced_to = job->last_reply = now;
}

static void assert_given_up_at(const struct limefs_job *job, double then)
{
    assert_false(limefs_job_is_stalled(job, then - 0.1));
    assert_true(limefs_job_is_stalled(job, then + 0.1));
}

TEST(test_no_requests)
{
    struct bench b;
    assert_false(limefs_job_is_stalled(job_of(&b), 1e6));
}

TEST(test_each_kind)
{
    struct bench b;
    load(job_of(&b), 1, 1060); /* after an idle minute */
    assert_given_up_at(&b.job, 1060 + limit);
    struct limefs_job *job = job_of(&b);
    job->buffers[2] =
        (struct limefs_write_buffer){.state = LIMEFS_BUFFER_SENT, .last_used = 1060};
    assert_given_up_at(job, 1060 + limit);
    job = job_of(&b);
    job->files[3] = (struct limefs_job_file){LIMEFS_JOB_FILE_PREPARING, .last_used = 1060};
    assert_false(limefs_job_is_stalled(job, 1e6)); /* the job has not received it */
    job->files[3].state = LIMEFS_JOB_FILE_OPENING;
    assert_given_up_at(job, 1060 + limit);
    job->files[3].state = LIMEFS_JOB_FILE_CLOSING;
    assert_given_up_at(job, 1060 + limit);
    job->files[3].state = LIMEFS_JOB_FILE_TO_CLOSE;
    assert_false(limefs_job_is_stalled(job, 1e6));
}

/* The job answers other requests. */
TEST(test_one_unanswered)
{
    struct bench b;
    struct limefs_job *job = job_of(&b);
    load(job, 1, 1060);
    job->last_reply = 1e6;
    assert_given_up_at(job, 1060 + limefs_job_lease_seconds(job));
}

/* The time counts from the SYNC request, not from the last other request. */
TEST(test_sync_after_a_quiet_minute)
{
    struct bench b;
    struct limefs_job_sync sync;
    sync_from(job_of(&b), &sync, 1070);
    assert_given_up_at(&b.job, 1070 + 12 * limit);
    sync.done = true; /* and its waiter has not woken up yet */
    assert_false(limefs_job_is_stalled(&b.job, 1e6));
}

TEST(test_behind_a_sync)
{
    struct bench b;
    struct limefs_job_sync sync;
    struct limefs_job *job = job_of(&b);
    sync_from(job, &sync, 1001);
    load(job, 1, 1002);
    assert_given_up_at(job, 1001 + 12 * limit);
    answer(job, &sync, 1050); /* after a long SYNC the load's time begins */
    assert_given_up_at(job, 1050 + limit);
    job->last_reply = 1e6;
    assert_given_up_at(job, 1050 + limefs_job_lease_seconds(job));
}

/* A SYNC request does not extend the time of a dead job. */
TEST(test_before_a_sync)
{
    struct bench b;
    struct limefs_job_sync sync[2];
    struct limefs_job *job = job_of(&b);
    load(job, 1, 1001);
    sync_from(job, &sync[0], 1002);
    assert_given_up_at(job, 1001 + limit);
    job = job_of(&b); /* nor do several in a row */
    sync_from(job, &sync[0], 1001);
    load(job, 1, 1002);
    sync_from(job, &sync[1], 1050);
    assert_given_up_at(job, 1001 + 12 * limit);
    answer(job, &sync[0], 1060);
    assert_given_up_at(job, 1060 + limit);
    load(job, 1, 1061);
    assert_given_up_at(job, 1060 + 12 * limit); /* the second SYNC waited for the first */
}
