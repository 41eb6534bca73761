/*
 * client.h - this process as a client of a mount's job: inside of client.c, link.c and
 * fetch.c.
 *
 * All of it is in memory that the kernel clears at fork(): a child has no connection, and may
 * make its own. It is guarded by one lock, which is held for moments only, with no signals in
 * between, so that nobody finds it taken who would have to give it back. Nobody waits with it
 * held. A thread that does not get it tries again for a while, then reads through the mount.
 *
 * The window is not mapped, but for moments to make its pages huge: the kernel copies out of it
 * as out of a file, and looks at the program's addresses as it does with any read.
 */
#ifndef LIMEFS_RUN_CLIENT_H
#define LIMEFS_RUN_CLIENT_H

#include "limejob.h"
#include "plan.h"
#include "run.h"

enum {
    LIMEFS_RUN_FILES_MAX = 8, /* containers that the job has open for us */
    LIMEFS_RUN_HUGE_PAGE = 2 << 20,
};

enum limefs_run_file_state {
    LIMEFS_RUN_FILE_NONE,
    LIMEFS_RUN_FILE_OPENING,
    LIMEFS_RUN_FILE_OPEN,
    LIMEFS_RUN_FILE_REFUSED,
    LIMEFS_RUN_FILE_CLOSING,
};

struct limefs_run_file {
    enum limefs_run_file_state state;
    struct limefile_state container; /* as it was asked for */
    uint32_t number;                 /* the job's */
    uint64_t since;
    uint64_t rests; /* until then the container is read: the job could not */
};

enum limefs_run_link {
    LIMEFS_RUN_LINK_NONE,
    LIMEFS_RUN_LINK_GREETING,
    LIMEFS_RUN_LINK_SERVING,
};

struct limefs_run_client {
    atomic_int lock;
    enum limefs_run_link state;
    _Atomic uint64_t connections; /* counts those that have ended, too */
    uint64_t rests;               /* until then no connection is tried */
    uint64_t asked, heard;        /* HELLO; when the job last answered */
    uint64_t timeout;             /* ns to wait for an answer */
    unsigned in_flight;
    char socket[LIMEFILE_RANGE_SOCKET_MAX];
    struct limefs_run_file file[LIMEFS_RUN_FILES_MAX];
    struct limefs_run_plan plan;
    uint64_t prepared[LIMEFS_RUN_SLOTS_MAX]; /* bytes of slots that were made of huge pages */
    struct limejob_channel channel;
    struct limejob_packet packet; /* too large for a handler's stack */
};

/* ---- client.c ---- */

/* NULL: this process can be no client. */
struct limefs_run_client *limefs_run_client(void);

#define LIMEFS_RUN_SECOND UINT64_C(1000000000)
uint64_t limefs_run_now(void); /* ns */

/* Around all that is done with it, quietly. False: somebody else has it. */
bool limefs_run_client_lock(struct limefs_run_client *);
void limefs_run_client_unlock(struct limefs_run_client *);

/* The descriptors of the socket and the window, as long as they are what they were; else -1. */
int limefs_run_client_socket(void);
int limefs_run_client_window(void);

/* Takes both over, out of the program's way, after an error, too: the socket's, or -1. */
int limefs_run_client_hold(int socket, int window);
void limefs_run_client_let_go(void);

/* Makes that page of the window a huge one, where the kernel can: a disk reads faster into
 * memory in few pieces. Without the lock, as it may take some ms; what the page holds, it
 * keeps. */
void limefs_run_client_prepare(uint64_t at);

/* ---- link.c, with the lock held ---- */

/* Takes what the job has said, and gives it up if it has not for too long. */
void limefs_run_link_look(struct limefs_run_client *);

/* Connects to the job that the mount tells of, and says hello. */
void limefs_run_link_begin(struct limefs_run_client *, const struct limefile_range_job *);

/* Ends the connection. */
void limefs_run_link_end(struct limefs_run_client *);

/* The number of the container in that state, or -1. */
int limefs_run_link_find(const struct limefs_run_client *, const struct limefile_state *);

/* Has it opened. */
void limefs_run_link_open(struct limefs_run_client *, int container,
                          const struct limefile_range *);

/* Asks for what a slot is to hold. */
void limefs_run_link_load(struct limefs_run_client *, int slot);

/* The next page that is to be made a huge one, if there is one: where in the window. */
bool limefs_run_link_page(struct limefs_run_client *, uint64_t *at);

/* Nobody reads by the job, nor is about to. */
bool limefs_run_link_is_idle(const struct limefs_run_client *, uint64_t now);

#endif
