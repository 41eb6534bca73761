/*
 * server.h - the server: a thread of rank 0 that clients and workers talk with. It calls no
 * MPI, and never waits but in epoll. Everything here belongs to that thread.
 */
#ifndef JOB_SERVER_H
#define JOB_SERVER_H

#include "control.h"
#include "options.h"
#include "outbox.h"
#include "status.h"

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

/* ---- peers (server.c) ---- */

/* Whatever epoll watches. */
struct job_peer {
    void (*ready)(struct job_server *, struct job_peer *, uint32_t events);
    struct limejob_channel channel;
    struct job_outbox outbox;
    uint32_t events; /* that epoll watches for */
    bool resting;    /* for none, for a while */
    bool dead;       /* freed when all events of this round are through */
    struct job_peer *next_dead;
};

/* ---- files (file.c): containers that are open on all ranks ---- */

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

/* ---- requests (request.c) ---- */

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
    int64_t since_us;
    struct job_rank *newer, *older; /* of those that have not */
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
    struct job_rank *newest, *oldest; /* who has come and not joined: perhaps no rank at all */
    int newcomers;
    int64_t rest_until_us;      /* nobody is let in; 0: they are */
    struct job_client *clients; /* and those gone whose requests are in flight */
    int client_count, strangers;
    struct job_file *files;
    uint64_t file_count, files_most; /* so many can be open at once, of all clients */
    uint32_t last_file, last_window;
    struct job_request **table;
    uint64_t table_size, outstanding;
    struct job_peer *dead;
    bool serving;
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

/* Nothing is heard of it any more, or again. */
void job_peer_rest(struct job_server *, struct job_peer *, bool resting);

void job_server_end(struct job_server *);

/* Nothing can be done but to end at once. */
void job_server_fault(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* A line on standard error, unless there have been many. */
void job_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- rank.c ---- */

void job_ranks_add_own(struct job_server *, int fd);
void job_ranks_accept(struct job_server *, struct job_peer *, uint32_t events);

/* While ranks are waited for: those that have not joined for too long go. */
void job_ranks_tick(struct job_server *);

/* All ranks have joined. */
void job_ranks_end_meeting(struct job_server *);

/* ---- client.c ---- */

void job_clients_accept(struct job_server *, struct job_peer *, uint32_t events);
void job_client_reply(struct job_server *, struct job_client *, const struct limejob_packet *);
void job_client_drop(struct job_server *, struct job_client *);

/* Frees it if it is gone and nothing of it is in flight. */
void job_client_release(struct job_server *, struct job_client *);

/* Those that have said nothing for too long. */
void job_clients_tick(struct job_server *);

/* A sync is done: who has not heard of an earlier failure hears of it now. */
void job_client_synced(struct job_request *);

/* A container that it has asked for is open on all ranks. False: no memory. */
bool job_client_remember(struct job_client *, struct job_file *);

/* Replies with a code; text NULL: that of the code. */
void job_client_answer(struct job_server *, struct job_client *,
                       const struct limejob_packet *request, int code, const char *text);

/* NULL: it has no such file open. */
struct job_opened *job_client_find(struct job_client *, uint32_t id);

/* ---- clientio.c ---- */

/* READ or WRITE; SYNC. */
void job_client_move(struct job_server *, struct job_client *, struct limejob_packet *);
void job_client_sync(struct job_server *, struct job_client *, struct limejob_packet *);

/* The file of a request; NULL, and the client is told: it has none that is meant for that. */
struct job_file *job_client_file(struct job_server *, struct job_client *,
                                 const struct limejob_packet *, uint32_t id);

/* The workers are to set about it. NULL, and the client is told: no memory. */
struct job_request *job_client_begin(struct job_server *, struct job_client *,
                                     const struct limejob_packet *, uint16_t opcode,
                                     struct job_file *);

/* ---- request.c ---- */

/* NULL: no memory. `request` is the client's packet, if there is one. */
struct job_request *job_request_new(struct job_server *, uint16_t opcode, struct job_client *,
                                    const struct limejob_packet *request);
void job_request_free(struct job_server *, struct job_request *);

/* Sends the packet, whose opcode and tag are set here, to all workers. */
void job_request_send(struct job_server *, struct job_request *, struct limejob_packet *);

/* A worker's reply. */
void job_request_reply(struct job_server *, int rank, struct limejob_packet *);

/* Whether bytes of the file are being written, by anybody and under any name. */
bool job_request_is_writing(const struct job_server *, const struct job_file *, uint64_t offset,
                            uint64_t bytes);

/* Answers the client. */
void job_request_answer(struct job_server *, struct job_request *);

/* ---- file.c ---- */

/* Answers the request now or when the workers have opened it. */
void job_file_open(struct job_server *, struct job_client *, struct limejob_packet *request);

/* The workers have replied. */
void job_file_opened(struct job_server *, struct job_request *);
void job_file_unref(struct job_server *, struct job_file *);

#endif
