/*
 * server.h - the server: the thread of rank 0 that serves clients and commands the workers
 *
 * It calls no MPI and blocks only in epoll_wait(). All data here belong to that thread.
 */
#ifndef JOB_SERVER_H
#define JOB_SERVER_H

#include "control.h"
#include "options.h"

#include <sys/types.h>

enum {
    JOB_HOST_MAX = 256, /* bytes of a host name with its NUL */
    JOB_TEXT_MAX = 768, /* bytes of an error message with its NUL */
    JOB_CLIENTS_MAX = 256,
    JOB_FILES_MAX = 4096,    /* one client's open files */
    JOB_OUTBOX_MAX = 1 << 20 /* bytes of replies that a client may leave unread */
};

/* Where a rank runs, as MPI reports it. */
struct job_location {
    bool is_local; /* on rank 0's host */
    char host[JOB_HOST_MAX];
};

struct job_server;

/* ---- peers (peer.c) ---- */

/* A packet that waits until its peer can receive it. */
struct job_outbox_entry;

struct job_outbox {
    struct job_outbox_entry *first, *last;
    size_t bytes; /* total of the waiting packets */
};

/* Sends waiting packets. Returns 1 if all are sent, 0 if the socket is full, or -errno. */
int job_outbox_flush(struct job_outbox *, int fd);
void job_outbox_clear(struct job_outbox *);

/* Anything that epoll watches. */
struct job_peer {
    void (*on_event)(struct job_server *, struct job_peer *, uint32_t events);
    struct limejob_channel channel;
    struct job_outbox outbox;
    uint32_t events; /* the events that epoll watches for */
    bool is_dropped; /* closed; freed when all events of this round are handled */
    struct job_peer *next_dropped;
};

/* ---- files (client.c): containers that are open on all ranks ---- */

struct job_file {
    struct job_file *next;
    uint32_t id;
    unsigned refs;      /* opens by clients, and requests in flight */
    bool is_open;       /* false while the workers are opening it */
    bool for_writing;   /* open for writing only */
    enum limejob_io io; /* while the workers are opening it: what they are asked for */
    struct job_request *waiters;
    struct limefile_identity identity; /* at the time of the open */
    uint32_t root; /* length of the leading directory in `path` (limejob.h) */
    /* The number of failed syncs, and the latest error. The kernel reports an error once. The
     * server repeats it to each client that has the file open, at that client's next sync. */
    unsigned sync_failures;
    int sync_error;
    char sync_error_text[JOB_TEXT_MAX];
    char path[];
};

/* Compares the file of a descriptor with an identity (open_check.c). ignored: the
 * LIMEFILE_... flags of members that may differ. Returns 0, or an errno and fills text. */
int job_identity_check(int fd, const struct limefile_identity *expected, unsigned ignored,
                       char *text, size_t cap);

/* Checks an OPEN request's payload and descriptor (open_check.c). Returns 0, or an errno and
 * fills text with a message. */
int job_open_check(struct limejob_packet *, struct limejob_open_request *requested, char *text,
                   size_t cap);

/* io: of --io. fd: the client's descriptor. Returns NULL if out of memory. */
struct job_file *job_file_create(const struct limejob_open_request *, bool writing,
                                 enum limejob_io io, int fd);

/* Returns whether clients can share one open file: same path, root, identity and mode. */
bool job_file_is_same(const struct job_file *, const struct job_file *);

/* ---- requests (client.c) ---- */

/* A command that is sent to all workers, or a client's open that waits for JOB_OPEN. */
struct job_request {
    uint64_t slot; /* index in server->requests; the tag of its packets */
    uint16_t opcode;
    struct job_client *client; /* NULL if no client waits for it */
    struct job_file *file;
    uint16_t client_opcode;
    uint64_t client_tag;
    uint64_t bytes, window_offset;   /* the data's range in the window */
    uint64_t offset;                 /* in the file */
    uint64_t fence_offset, deadline; /* of a write (struct job_write_permit) */
    uint32_t uid;                    /* the user on whose behalf the job writes */
    int pending_replies;             /* number of ranks that have not replied */
    uint64_t bytes_moved;            /* bytes that the ranks have read or written */
    int code;
    char text[JOB_TEXT_MAX];
    struct job_request *next; /* in client->transfers or in file->waiters */
};

/* ---- clients (client.c) ---- */

struct job_client_file {
    struct job_file *file;
    unsigned opens;
    unsigned reported_failures; /* file->sync_failures when last reported to this client */
};

struct job_client {
    struct job_peer peer; /* must be the first member */
    struct job_client *next;
    bool has_greeted, is_closed;
    bool closes_after_flush; /* the client is closed when its outbox is empty */
    pid_t pid;
    uint32_t window; /* number of the window, memory that client and ranks share; 0: none */
    int window_fd;   /* -1: none */
    uint64_t window_bytes;
    unsigned in_flight;
    struct job_request *transfers; /* reads and writes in flight */
    struct job_client_file *files;
    size_t file_count;
    int64_t connected_us;
};

struct job_rank {
    struct job_peer peer; /* must be the first member */
    int rank;             /* -1: has not joined */
};

struct job_counters {
    uint64_t bytes_read, bytes_written;
    uint64_t requests, errors, in_flight; /* reads, writes and syncs */
    uint64_t writes_in_flight, syncs;
};

struct job_server {
    const struct job_options *options;
    const struct job_location *locations;
    int ranks, hosts;
    const struct job_rendezvous *rendezvous;
    uint64_t stripe;
    int epoll_fd;
    struct job_peer *listener, *lifeline, *end_event, *join_listeners[2]; /* Unix, TCP */
    struct job_rank **workers; /* by rank; NULL: has not joined, or has ended */
    int joined_ranks;
    int64_t join_until_us;
    struct job_rank **pending; /* ring of connections that have not joined; NULL: a free slot */
    int next_pending;          /* the next slot to fill; a connection in it is dropped first */
    struct job_client *clients; /* includes closed clients whose requests are in flight */
    int client_count, unauthenticated; /* unauthenticated: clients without HELLO so far */
    struct job_file *files;
    uint64_t file_count, max_files; /* max_files: limit of file_count */
    uint32_t last_file_id, last_window_id;
    struct job_request **requests;
    uint64_t request_slots, requests_in_flight;
    struct job_peer *dropped;
    bool is_serving;
    bool end_requested;       /* the job has been asked to end */
    bool is_ending, end_sent; /* end_sent: JOB_END is sent to the workers */
    int64_t end_until_us;
    int64_t started_us;
    struct job_counters counters;
};

/* ---- server.c ---- */

/* The argument of job_server_run(). own_channel: the server's end of rank 0's channel. */
struct job_server_setup {
    const struct job_options *options;
    const struct job_location *locations;
    int ranks;
    const struct job_rendezvous *rendezvous;
    int unix_fd, tcp_fd, own_channel;
    int end_event; /* eventfd: a signal asks the job to end */
};

/* The thread's function. Returns after JOB_END is sent to all workers. */
void *job_server_run(void *setup);

/* Watches fd as a peer. Returns 0 or -errno; after an error, the caller closes fd. */
int job_peer_watch(struct job_server *, struct job_peer *, int fd);

/* Sends a packet; what the socket does not accept waits in the outbox. Returns 0 or -errno. */
int job_peer_send(struct job_server *, struct job_peer *, const struct limejob_packet *);

/* Closes a peer's socket, and frees the peer after the current events are handled. */
void job_peer_drop(struct job_server *, struct job_peer *);

/* Watches for EPOLLOUT only while the outbox holds packets. */
void job_peer_update_events(struct job_server *, struct job_peer *);

/* Prints a message and ends the whole job at once. */
void job_server_abort(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Prints a line on stderr; at most 100 lines a minute. */
void job_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- rank.c ---- */

void job_ranks_add_own(struct job_server *, int fd); /* rank 0's worker, without JOB_JOIN */
void job_ranks_accept(struct job_server *, struct job_peer *, uint32_t events);

/* Drops connections that have not joined. Call it when all ranks have joined. */
void job_ranks_drop_pending(struct job_server *);

/* ---- client.c ---- */

/* Accepts clients. The first call has events 0: it only opens a spare descriptor (client.c). */
void job_clients_accept(struct job_server *, struct job_peer *, uint32_t events);

/* Drops clients that have not sent HELLO in time. */
void job_clients_check_timeouts(struct job_server *);

/* Handles a worker's reply. */
void job_request_reply(struct job_server *, int rank, struct limejob_packet *);

/* ---- status.c: counters and the status report ---- */

/* Counts a read, write or sync when it is sent to the workers, and when it is complete.
 * `opcode` is JOB_READ, JOB_WRITE or JOB_SYNC. */
void job_counters_begin(struct job_counters *, uint16_t opcode);
void job_counters_end(struct job_counters *, uint16_t opcode, uint64_t bytes, bool good);

/* Microseconds of CLOCK_MONOTONIC. */
int64_t job_now_us(void);
uint64_t job_realtime_ns(void); /* the clock of deadlines (limejob.h, LIMEJOB_WRITE) */

/* Returns whether no lower rank runs on the same host. */
bool job_is_first_on_host(const struct job_server *, int rank);

/* Returns JSON, or NULL if out of memory or if it is too long to send. The caller frees it. */
char *job_status_json(const struct job_server *);

#endif
