/*
 * worker.h - the worker of a rank: obeys the server's commands, in their order, and is the
 * only one that calls MPI.
 */
#ifndef JOB_WORKER_H
#define JOB_WORKER_H

#include "control.h"
#include "hint.h"
#include "options.h"
#include "range.h"
#include "server.h"
#include "share.h"

enum {
    JOB_PART = 4 << 20, /* of what goes over MPI at once */
    JOB_SENDS = 4,      /* parts that may be on their way */
};

/* A container that is open. */
struct job_container {
    struct job_container *next;
    uint32_t id;
    char *path;
    MPI_File mpi;
    struct lemon_file file; /* to read */
    struct lemon_plan_hints hints;
    int fd;        /* the file, compared with what the client has; MPI has it opened by this */
    int direct_fd; /* to write around the page cache; -1: none */
};

struct job_mapping {
    struct job_mapping *next;
    uint32_t id;
    struct limejob_window window;
};

struct job_worker {
    const struct job_options *options;
    MPI_Comm comm; /* for data; containers have their own */
    MPI_Info info;
    int rank, ranks;
    char host[JOB_HOST_MAX];
    const struct job_place *places; /* of all ranks */
    struct limejob_channel channel; /* to the server */
    int wants_end;                  /* eventfd: a signal has come; rank 0's server reads it */
    struct job_container *containers;
    struct job_mapping *mappings;
    /* Rank 0: what is to come and to go. */
    MPI_Request *messages;
    struct job_part *parts; /* of these */
    int message_count, message_capacity;
    /* Ranks on other hosts: what is on its way to rank 0, or from it. */
    char *buffers; /* JOB_SENDS of them, used in turn */
    MPI_Request requests[JOB_SENDS];
    unsigned next_buffer;
};

/* ---- worker.c ---- */

/* Commands. */
void job_worker_map(struct job_worker *, struct limejob_packet *command);
void job_worker_unmap(struct job_worker *, struct limejob_packet *command);

/* Sends a reply to the server. */
void job_worker_answer(struct job_worker *, const struct limejob_packet *);

/* Nothing can be done but to end at once. */
void job_worker_fault(struct job_worker *, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* Lets others run for a moment. */
void job_worker_pause(int us);

/* ---- container.c ---- */

void job_container_open(struct job_worker *, struct limejob_packet *command);
void job_container_close(struct job_worker *, struct limejob_packet *command);
struct job_container *job_container_find(struct job_worker *, uint32_t id);

/* Collective. */
void job_containers_close(struct job_worker *);

/* ---- store.c: containers that are open for writing ---- */

/* After the container has its descriptor. */
void job_store_open(struct job_container *);
void job_store_close(struct job_container *);

/* A client's leave to write, looked at before each system call. */
struct job_permit {
    const limejob_gate *gate; /* in its window: gone when that is not 0; or NULL */
    uint64_t until;           /* ns of CLOCK_REALTIME; 0: for ever */
    uid_t uid;                /* for whom: what binds that user binds the write (user.h) */
};

/* 0 or an errno; *offset becomes where that happened. */
int job_store_write(struct job_container *, const struct job_permit *, const char *data,
                    int64_t n, int64_t *offset);

/* Collective. 0 or an errno, with words. */
int job_store_sync(struct job_container *, char *text, size_t cap);

/* ---- extent.c ---- */

void job_extent_read(struct job_worker *, struct limejob_packet *command);
void job_extent_write(struct job_worker *, struct limejob_packet *command);
void job_extent_sync(struct job_worker *, struct limejob_packet *command);

/* Rank 0: takes note of what has come and gone, and replies to what is complete; other ranks:
 * what has gone. True if anything has. */
bool job_extent_progress(struct job_worker *);

/* Whether anything is under way. */
bool job_extent_busy(const struct job_worker *);

#endif
