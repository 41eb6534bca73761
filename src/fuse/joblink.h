/*
 * joblink.h - a connection to a job, between the thread that keeps it (joblife.c), the requests
 * and replies that go over it (joblink.c) and the readers (jobread.c).
 */
#ifndef LIMEFS_JOBLINK_H
#define LIMEFS_JOBLINK_H

#include "file.h"
#include "forward.h"
#include "job.h"
#include "launch.h"
#include "limejob.h"

#include <stdatomic.h>

enum {
    LIMEFS_JOB_FILES_MAX = 64, /* containers that the job has open for us */
};

enum limefs_job_file_state {
    LIMEFS_JOB_FILE_NONE,
    LIMEFS_JOB_FILE_OPENING,
    LIMEFS_JOB_FILE_OPEN,
    LIMEFS_JOB_FILE_REFUSED,
    LIMEFS_JOB_FILE_CLOSING,
};

/* A container as the job has it. */
struct limefs_job_file {
    enum limefs_job_file_state state;
    uint64_t view;
    uint32_t number;
    unsigned loads; /* under way */
    double since;   /* last used */
    double rests;   /* until then nothing is asked for: the job could not read it */
};

enum limefs_job_state {
    LIMEFS_JOB_ABSENT, /* and looked for, or waited with */
    LIMEFS_JOB_STARTING,
    LIMEFS_JOB_SERVING,
};

struct limefs_job {
    struct limefs *fs;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t changed;
    atomic_bool stopping;
    enum limefs_job_state state;
    struct limejob_greeting greeting;
    struct limejob_channel channel;
    struct limejob_window window;
    bool broken; /* nothing more is sent; the thread will see why */
    struct limefs_job_file files[LIMEFS_JOB_FILES_MAX];
    double asked[LIMEFS_SLOTS_MAX]; /* when a load under way was asked for */
    double heard;                   /* when the job last answered */
    unsigned in_flight;             /* requests without a reply */
    unsigned waiting;               /* readers */
    double tidied;                  /* when files were last closed */
    unsigned holds;
    struct limefs_forward forward;
    uint64_t forwarded_bytes, failed_loads, connections;
    char trouble[LIMEJOB_TEXT_MAX]; /* what was last said of it */

    struct limefs_launch launch; /* of the thread alone */
    char words[512];
    size_t words_len;
};

double limefs_job_seconds(void);

/* ---- joblink.c: all with the lock held ---- */

/* Asks for what the slot is to hold. */
void limefs_job_send_load(struct limefs_job *, int slot, struct limefs_job_file *);

/* The file for this view; asked for if it is not known. NULL: no room for it. */
struct limefs_job_file *limefs_job_file_of(struct limefs_job *, const struct limefs_view *);

/* Does what a reply says. -EPROTO if it makes no sense. */
int limefs_job_on_reply(struct limefs_job *, struct limejob_packet *reply);

/* Something has not been answered for too long: nothing else either, or it alone for very long.
 */
bool limefs_job_is_stalled(const struct limefs_job *, double now);

/* What nobody has read for a while is closed; what was refused may be asked for again. */
void limefs_job_tidy_files(struct limefs_job *, double now);

#endif
