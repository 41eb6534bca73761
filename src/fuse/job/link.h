/*
 * link.h - a connection to a job, between the thread that keeps it (life.c), the containers
 * that are open over it (link.c), the readers (read.c) and the writers (store.c).
 */
#ifndef LIMEFS_LINK_H
#define LIMEFS_LINK_H

#include "forward.h"
#include "job.h"
#include "launch.h"
#include "limejob.h"
#include "spans.h"
#include "store.h"

#include <stdatomic.h>

enum {
    LIMEFS_JOB_FILES_MAX = 64, /* containers that the job has open for us */
    LIMEFS_JOB_LINE_MAX = 512, /* bytes of a line that the job's processes print */
};

enum limefs_job_file_state {
    LIMEFS_JOB_FILE_NONE,
    LIMEFS_JOB_FILE_PREPARING, /* the container is being looked at */
    LIMEFS_JOB_FILE_OPENING,   /* the job was asked to open it */
    LIMEFS_JOB_FILE_OPEN,
    LIMEFS_JOB_FILE_REFUSED,
    LIMEFS_JOB_FILE_TO_CLOSE, /* the job has no room for the request */
    LIMEFS_JOB_FILE_CLOSING,  /* the job was asked to close it */
};

/* A container as the job has it. */
struct limefs_job_file {
    enum limefs_job_file_state state;
    uint64_t view;
    bool writes; /* it is open for writing: another file than the same for reading */
    uint32_t number;
    uint64_t bytes;                    /* how long it was when it was asked for */
    struct limefile_identity identity; /* what was asked for */
    bool refuted; /* what the view had open by the reply was something else */
    /* What this mount has changed since: the job has it open as it was. */
    bool touched;
    uint64_t changed_from, changed_to;
    bool moved;     /* while it was asked for, another file took its name */
    unsigned loads; /* under way */
    bool unsynced;  /* the ranks have written what is not on the disk */
    unsigned syncs; /* under way */
    double since;   /* last used */
    double rests;   /* until then nothing is asked for: the job could not read it */
};

static inline bool limefs_job_file_is_opening(const struct limefs_job_file *file)
{
    return file->state == LIMEFS_JOB_FILE_PREPARING || file->state == LIMEFS_JOB_FILE_OPENING;
}

static inline bool limefs_job_file_is_closing(const struct limefs_job_file *file)
{
    return file->state == LIMEFS_JOB_FILE_TO_CLOSE || file->state == LIMEFS_JOB_FILE_CLOSING;
}

/* A slot of the window's second half: bytes on their way into a container (store.c). */
enum limefs_parcel_state {
    LIMEFS_PARCEL_EMPTY,
    LIMEFS_PARCEL_FILLING,
    LIMEFS_PARCEL_SENT,   /* the job writes them */
    LIMEFS_PARCEL_FAILED, /* it has not */
    LIMEFS_PARCEL_LOCAL,  /* the daemon writes them */
};

enum {
    LIMEFS_PARCELS_MAX = 32,
};

struct limefs_parcel {
    enum limefs_parcel_state state;
    struct limefs_job_view *written; /* whose bytes they are */
    uid_t uid;                       /* for whom the job writes it */
    struct limefs_change change;     /* until it is empty */
    uint64_t from, to;               /* in the container */
    struct limefs_spans there;
    unsigned holds; /* copies under way */
    double since;   /* sent, or the last copy */
};

/* Bytes that a job on other hosts, which was given up, may still write until then. */
enum {
    LIMEFS_DREADS_MAX = 64,
};

struct limefs_job_dread {
    uint64_t view; /* 0: any, and all of it */
    uint64_t from, to;
    double until;
};

/* Somebody waits for the ranks to sync. */
struct limefs_job_sync {
    struct limefs_job_sync *next;
    uint64_t view;
    uint32_t tag;
    bool done;
    int code;
    double since;
};

/* What a reply is about: the upper half of its tag; the lower one is a number. */
enum limefs_tag {
    LIMEFS_TAG_OPEN = 1, /* index of the file */
    LIMEFS_TAG_LOAD,     /* slot */
    LIMEFS_TAG_CLOSE,    /* index of the file */
    LIMEFS_TAG_STORE,    /* parcel */
    LIMEFS_TAG_SYNC,     /* number of the sync */
};

static inline uint64_t limefs_job_tag(enum limefs_tag what, unsigned number)
{
    return (uint64_t)what << 32 | number;
}

enum limefs_job_state {
    LIMEFS_JOB_ABSENT, /* and looked for, or waited with */
    LIMEFS_JOB_STARTING,
    LIMEFS_JOB_SERVING,
};

struct limefs_job {
    struct limefs *fs;
    pthread_t thread;
    struct limefs_lock lock; /* guards all that follows */
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
    struct limefs_parcel parcels[LIMEFS_PARCELS_MAX];
    unsigned parcel_count;
    unsigned settling; /* who waits until a parcel is let go */
    struct limefs_job_sync *syncs;
    uint32_t sync_tag;
    double synced_from, synced_to; /* of the last SYNC that was answered */
    struct limefs_job_dread dreads[LIMEFS_DREADS_MAX];
    unsigned dread_count;
    uint64_t stored_bytes; /* written through it */
    uint64_t forwarded_bytes, failed_loads, connections;
    char trouble[LIMEJOB_TEXT_MAX]; /* why no job serves, or ""; under the lock */

    struct limefs_launch launch;     /* of the thread alone */
    char words[LIMEFS_JOB_LINE_MAX]; /* that were printed and not taken yet */
    size_t words_len;
};

/* ---- link.c: all with the lock held ---- */

/* Nothing more is sent, nor taken from it; what it had not synced by then is lost to whoever
 * syncs it next. */
void limefs_job_break(struct limefs_job *);

void limefs_job_send(struct limefs_job *, const struct limejob_packet *);

/* Where in the window the word is that takes back what was asked to be written: ranks on this
 * host look at it before they write. */
uint64_t limefs_job_gate(const struct limefs_job *);

/* The code of a reply says that the job has too much to do, and it will answer to something
 * else, too: ask once more then. */
bool limefs_job_has_too_much(const struct limefs_job *, int code);

/* The file for this view, to be read or written; asked for if it is not known. NULL: no room
 * for it, or the container, to be read, is just being changed. */
struct limefs_job_file *limefs_job_file_open(struct limefs_job *, const struct limefs_view *,
                                             bool writes);

/* That one, if it is open by now; else nothing was written through it. */
struct limefs_job_file *limefs_job_file_written(struct limefs_job *,
                                                const struct limefs_view *);

/* The one that loads of the view of that id are under way from; or NULL. */
struct limefs_job_file *limefs_job_file_loading(struct limefs_job *, uint64_t view);

/* Whether loads of these bytes come as they are now. If not, it is soon closed, and asked for
 * again. */
bool limefs_job_file_has(struct limefs_job *, struct limefs_job_file *,
                         const struct limefs_view *, uint64_t from, uint64_t to);

/* Asks for those to be closed that there was no room for. */
void limefs_job_send_closes(struct limefs_job *);

/* What nobody has read for a while is closed; what was refused may be asked for again. */
void limefs_job_tidy_files(struct limefs_job *, double now);

/* ---- replies (link.c, read.c, store.c); -EPROTO if one makes no sense ---- */

int limefs_job_opened(struct limefs_job *, unsigned index, struct limejob_packet *reply);
int limefs_job_closed(struct limefs_job *, unsigned index, struct limejob_packet *reply);
int limefs_job_loaded(struct limefs_job *, unsigned slot, struct limejob_packet *reply);
int limefs_job_stored(struct limefs_job *, unsigned parcel, struct limejob_packet *reply);
int limefs_job_synced(struct limefs_job *, unsigned number, struct limejob_packet *reply);

/* ---- stall.c, with the lock held ---- */

/* Seconds after which ranks write no more of what they are asked to. */
double limefs_job_lease(const struct limefs_job *);

/* Something has not been answered for too long: nothing else either, or it alone for very long.
 * A SYNC has more time, and so has what must wait for one. */
bool limefs_job_is_stalled(const struct limefs_job *, double now);

/* ---- change.c, with the lock held ---- */

/* A change of the view's container, in forward.h's sense. */
void limefs_job_change_begin(struct limefs_job *, struct limefs_change *);
void limefs_job_change_end(struct limefs_job *, struct limefs_view *, struct limefs_change *);

/* Whoever changes these bytes waits until then; once more after each wait for something else,
 * in which the job may have been given up. */
void limefs_job_dread(struct limefs_job *, uint64_t view, uint64_t from, uint64_t to,
                      double until);
bool limefs_job_is_dreaded(struct limefs_job *, uint64_t view, uint64_t from, uint64_t to);
void limefs_job_outlast(struct limefs_job *, uint64_t view, uint64_t from, uint64_t to);

/* ---- store.c, with the lock held ---- */

/* The job has gone, and its window goes next: what it has not written is written here. */
void limefs_store_rescue(struct limefs_job *);

#endif
