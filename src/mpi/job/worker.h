/*
 * worker.h - the worker of a rank: executes the server's commands in their order
 *
 * The worker's thread is the only one that calls MPI.
 */
#ifndef JOB_WORKER_H
#define JOB_WORKER_H

#include "control.h"
#include "hints.h"
#include "options.h"
#include "range_io.h"
#include "server.h"
#include "file_domains.h"

enum {
    JOB_MESSAGE_BYTES = 4 << 20, /* bytes of one MPI message of bulk data */
    JOB_BUFFERS = 4,             /* messages in flight at once */
};

/* An open container. */
struct job_container {
    struct job_container *next;
    uint32_t id;
    char *path;
    enum limejob_io io; /* equal on all ranks; AUTO only during the open */
    MPI_Comm comm;      /* the worker's */
    MPI_File mpi_file;
    struct lemon_file file; /* for reading */
    struct lemon_plan_hints hints;
    int fd;        /* of the client's file, verified; MPI opens the file through it */
    int direct_fd; /* O_DIRECT, for writing; -1: none */
};

/* A client's window. window.data is NULL on other hosts than rank 0's. */
struct job_mapping {
    struct job_mapping *next;
    uint32_t id;
    struct limejob_window window;
};

struct job_worker {
    const struct job_options *options;
    MPI_Comm comm; /* for data; each container has a communicator of its own */
    MPI_Info info;
    int rank, ranks;
    char host[JOB_HOST_MAX];
    const struct job_location *locations; /* of all ranks */
    bool has_remote;                      /* ranks run on other hosts, too */
    enum limejob_io chosen_io;            /* of --io auto, on parallel file systems */
    bool has_tried;                       /* chosen_io is the result of a trial */
    struct limejob_channel channel;       /* to the server */
    int end_event; /* eventfd: a signal asks for the end (rank 0: unused) */
    struct job_container *containers;
    struct job_mapping *mappings;
    /* Rank 0: MPI messages in flight, to and from other hosts. */
    MPI_Request *messages;
    struct job_message *pending; /* pending[i] belongs to messages[i] */
    int message_count, message_capacity;
    /* Ranks on other hosts: MPI messages in flight, to and from rank 0. */
    char *buffers; /* JOB_BUFFERS of them, used in turn */
    MPI_Request requests[JOB_BUFFERS];
    unsigned next_buffer;
};

/* ---- worker.c ---- */

/* The commands JOB_WINDOW and JOB_UNMAP. */
void job_worker_map(struct job_worker *, struct limejob_packet *command);
void job_worker_unmap(struct job_worker *, struct limejob_packet *command);

void job_worker_reply(struct job_worker *, const struct limejob_packet *);

/* Prints a message and ends the whole job at once. */
void job_worker_abort(struct job_worker *, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* Sleeps `us` microseconds, less than a second, or yields the processor if us is 0. */
void job_worker_pause(int us);

/* ---- container.c: the commands JOB_OPEN and JOB_CLOSE ---- */

void job_container_open(struct job_worker *, struct limejob_packet *command);
void job_container_close(struct job_worker *, struct limejob_packet *command);
struct job_container *job_container_find(struct job_worker *, uint32_t id);

/* Closes all containers. Collective. */
void job_containers_close(struct job_worker *);

/* ---- container_read.c ---- */

/* Reads n bytes; n is at most INT_MAX if container->io is COLLECTIVE, and the call then
 * collective. Returns false and fills text with a message if fewer were read. */
bool job_container_read(const struct job_container *, char *data, int64_t n, int64_t offset,
                        char text[LEMON_RANGE_TEXT_MAX]);

/* Replaces container->io AUTO by a method. bytes: the container's size. Collective. */
void job_container_choose_io(struct job_worker *, struct job_container *, bool for_writing,
                             int64_t bytes);

/* ---- container_write.c: containers that are open for writing ---- */

/* Reopens container->fd as direct_fd for direct I/O, or sets it to -1 if that is impossible. */
void job_container_open_direct(struct job_container *);
void job_container_close_direct(struct job_container *);

/* A client's permission to write, checked before each system call. */
struct job_write_permit {
    const limejob_fence *fence; /* in the client's window; NULL or a value of 0: may write */
    uint64_t deadline;          /* ns of CLOCK_REALTIME; 0: none */
    uid_t uid;                  /* the user whose limits apply to the write (credentials.h) */
};

/* Writes n bytes. Collective if container->io is. Returns 0 or an errno; *offset advances by
 * the bytes that were written. */
int job_container_write(struct job_container *, const struct job_write_permit *,
                        const char *data, int64_t n, int64_t *offset);

/* Collective. Returns 0, or an errno and fills text with a message. */
int job_container_sync(struct job_container *, char *text, size_t cap);

/* ---- extent.c: the commands JOB_READ, JOB_WRITE and JOB_SYNC ---- */

void job_extent_read(struct job_worker *, struct limejob_packet *command);
void job_extent_write(struct job_worker *, struct limejob_packet *command);
void job_extent_sync(struct job_worker *, struct limejob_packet *command);

/* Tests the MPI messages in flight. Rank 0 also replies to commands that are complete. Returns
 * whether any message has finished. */
bool job_extent_progress(struct job_worker *);

/* Returns whether MPI messages are in flight. */
bool job_extent_busy(const struct job_worker *);

#endif
