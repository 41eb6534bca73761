/*
 * server.h - the server: a thread of rank 0 that clients and workers talk with. It calls no
 * MPI, and never waits but in epoll. Everything here belongs to that thread.
 */
#ifndef JOB_SERVER_H
#define JOB_SERVER_H

#include "control.h"
#include "options.h"

#include <sys/types.h>

enum {
    JOB_HOST_MAX = 256, /* bytes of a host's name, with its NUL */
    JOB_TEXT_MAX = 768, /* of an error */
    JOB_CLIENTS_MAX = 256,
    JOB_FILES_MAX = 4096,    /* that a client may have open */
    JOB_OUTBOX_MAX = 1 << 20 /* bytes of replies that a client may leave lying */
};

/* A rank, as MPI knows it. */
struct job_place {
    bool local; /* on rank 0's host */
    char host[JOB_HOST_MAX];
};

struct job_server;

/* ---- peers (peer.c) ---- */

/* Packets on their way to a peer that may take its time. */
struct job_parcel;

struct job_outbox {
    struct job_parcel *first, *last;
    size_t bytes; /* that wait */
};

/* 1: all is sent; 0: the peer takes no more now; -errno: it is gone. */
int job_outbox_flush(struct job_outbox *, int fd);
void job_outbox_clear(struct job_outbox *);

/* Whatever epoll watches. */
struct job_peer {
    void (*ready)(struct job_server *, struct job_peer *, uint32_t events);
    struct limejob_channel channel;
    struct job_outbox outbox;
    uint32_t events; /* that epoll watches for */
    bool dead;       /* freed when all events of this round are through */
    struct job_peer *next_dead;
};

/* ---- files (client.c): containers that are open on all ranks ---- */

struct job_file {
    struct job_file *next;
    uint32_t id;
    unsigned refs; /* opens by clients, and requests in flight */
    bool open;     /* false: the workers are on it */
    bool writing;  /* opened for writing alone */
    struct job_request *waiters;
    struct limefile_identity identity; /* when it was opened */
    uint32_t root;
    /* Syncs that have failed, and what the last one said: the kernel says it once, but all who
     * have written must hear it. */
    unsigned failures;
    int failure_code;
    char failure[JOB_TEXT_MAX];
    char path[];
};

/* Whether the descriptor is of that file (opening.c): 0 or an errno, with words. `any`: the
 * LIMEFILE_... that may differ. */
int job_identity_check(int fd, const struct limefile_identity *wanted, unsigned any, char *text,
                       size_t cap);

/* A request's payload and descriptor (opening.c): 0, or an errno and why. */
int job_opening_check(struct limejob_packet *, struct limejob_opening *wanted, char *text,
                      size_t cap);
struct job_file *job_file_new(const struct limejob_opening *,
                              bool writing); /* NULL: no memory */

/* What one client has opened serves another. */
bool job_file_is_same(const struct job_file *, const struct job_file *);

/* ---- requests (client.c) ---- */

/* A command to all workers, or a client's wait for one. */
struct job_request {
    uint64_t slot; /* in the server's table; the tag of its packets */
    uint16_t opcode;
    struct job_client *client; /* NULL: nobody waits */
    struct job_file *file;
    uint16_t client_opcode;
    uint64_t client_tag;
    uint64_t bytes, at;   /* of the window, that are read into or written */
    uint64_t offset;      /* in the file */
    uint64_t gate, until; /* of a write */
    uint32_t uid;         /* for whom it is written */
    int waiting;          /* ranks that have not replied */
    uint64_t moved;       /* bytes that the ranks have read or written */
    int code;
    char text[JOB_TEXT_MAX];
    int64_t since_us;
    struct job_request *next; /* of the same client, or that wait for the same file */
};

/* ---- clients (client.c) ---- */

struct job_opened {
    struct job_file *file;
    unsigned count;
    unsigned heard; /* of the file's failures */
};

struct job_client {
    struct job_peer peer; /* first */
    struct job_client *next;
    bool greeted, gone;
    bool last_words; /* closed when the outbox is empty */
    pid_t pid;
    uint32_t window; /* its number; 0: none */
    int window_fd;   /* -1: none */
    uint64_t window_bytes;
    unsigned in_flight;
    struct job_request *moves; /* reads and writes in flight */
    struct job_opened *opened;
    size_t opened_count;
    int64_t since_us;
};

struct job_rank {
    struct job_peer peer; /* first */
    int rank;             /* -1: has not joined */
};

struct job_counters {
    uint64_t bytes_read, bytes_written;
    uint64_t requests, errors, in_flight; /* reads, writes and syncs */
    uint64_t writes_in_flight, syncs;
};

struct job_server {
    const struct job_options *options;
    const struct job_place *places;
    int ranks, hosts;
    const struct job_rendezvous *where;
    uint64_t stripe;
    int epoll;
    struct job_peer *listener, *lifeline, *signals, *meeting[2];
    struct job_rank **workers; /* by rank; NULL: has not joined */
    int joined;
    int64_t join_until_us;
    struct job_rank **newcomers; /* who has come and not joined, perhaps no rank; or NULL */
    int next_newcomer;           /* where the next one goes: who is there is dropped */
    struct job_client *clients;  /* and those gone whose requests are in flight */
    int client_count, strangers;
    struct job_file *files;
    uint64_t file_count, files_most; /* so many can be open at once, of all clients */
    uint32_t last_file, last_window;
    struct job_request **table;
    uint64_t table_size, outstanding;
    struct job_peer *dead;
    bool serving;
    bool wants_end;        /* set by whoever has been told that the job is to end */
    bool ending, end_said; /* end_said: to the workers */
    int64_t end_until_us;
    int64_t started_us;
    struct job_counters counters;
};

/* ---- server.c ---- */

/* What main() starts the thread with. own: the server's end of rank 0's own channel. */
struct job_server_setup {
    const struct job_options *options;
    const struct job_place *places;
    int ranks;
    const struct job_rendezvous *where;
    int local, tcp, own;
    int wants_end; /* eventfd: a signal has come */
};

/* The thread. Returns when the workers have been told to end. */
void *job_server_run(void *setup);

/* -errno. */
int job_peer_watch(struct job_server *, struct job_peer *, int fd);
int job_peer_put(struct job_server *, struct job_peer *, const struct limejob_packet *);
void job_peer_drop(struct job_server *, struct job_peer *);

/* Watches for room as long as something waits for it. */
void job_peer_update(struct job_server *, struct job_peer *);

/* Nothing can be done but to end at once. */
void job_server_fault(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* A line on standard error, unless there have been many. */
void job_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- rank.c ---- */

void job_ranks_add_own(struct job_server *, int fd);
void job_ranks_accept(struct job_server *, struct job_peer *, uint32_t events);

/* All ranks have joined. */
void job_ranks_end_meeting(struct job_server *);

/* ---- client.c ---- */

void job_clients_accept(struct job_server *, struct job_peer *, uint32_t events);

/* Those that have said nothing for too long. */
void job_clients_tick(struct job_server *);

/* A worker's reply. */
void job_request_reply(struct job_server *, int rank, struct limejob_packet *);

/* ---- status.c: what the job has done ---- */

/* A read, write or sync is sent to the workers, and is done: `opcode` is theirs. */
void job_counters_begin(struct job_counters *, uint16_t opcode);
void job_counters_end(struct job_counters *, uint16_t opcode, uint64_t bytes, bool good);

/* Microseconds of a clock that never goes back. */
int64_t job_now_us(void);

/* Whether no lower rank is on its host. */
bool job_is_first_on_host(const struct job_server *, int rank);

/* JSON, to be freed; NULL: no memory. */
char *job_status_text(const struct job_server *);

#endif
