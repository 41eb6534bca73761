/* server.c - the server's loop: start, events, end */
#define _GNU_SOURCE
#include "server.h"
#include "listen.h"
#include "say.h"
#include "watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    EVENTS = 64,
    JOIN_US = 60 * 1000 * 1000, /* time limit until all workers have joined */
    END_US = 5 * 1000 * 1000,   /* time limit of requests in flight when the job ends */
    TICK_MS = 1000,             /* between checks for peers that are late */
};

static void bury(struct job_server *server)
{
    struct job_peer *next;
    for (struct job_peer *peer = server->dead; peer; peer = next) {
        next = peer->next_dead;
        free(peer);
    }
    server->dead = NULL;
}

/* Watches a descriptor without packets in the same way as a peer. */
static struct job_peer *watch(struct job_server *server, int fd,
                              void (*ready)(struct job_server *, struct job_peer *, uint32_t))
{
    struct job_peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        job_server_fault("start: %s", strerror(ENOMEM));
    peer->ready = ready;
    int err = job_peer_watch(server, peer, fd);
    if (err)
        job_server_fault("descriptor %d: watch: %s", fd, strerror(-err));
    return peer;
}

/* ---- end ---- */

static void hang_up(struct job_server *server, struct job_peer **peer)
{
    if (*peer)
        job_peer_drop(server, *peer);
    *peer = NULL;
}

static void begin_end(struct job_server *server)
{
    if (server->ending)
        return;
    if (!server->serving)
        job_watch_end(); /* other ranks may wait in MPI: no orderly end is possible */
    server->ending = true;
    server->end_until_us = job_now_us() + END_US;
    job_listen_remove();
    server->serving = false;
    hang_up(server, &server->listener);
}

static void tell_workers(struct job_server *server)
{
    static struct limejob_packet packet;
    limejob_request(&packet, JOB_END, 0);
    server->end_said = true;
    for (int i = 0; i < server->ranks; i++)
        job_peer_put(server, &server->workers[i]->peer, &packet);
}

/* Returns whether the server may exit. Clients notice the end when the process exits. */
static bool is_done(struct job_server *server)
{
    if (!server->ending)
        return false;
    if (job_now_us() > server->end_until_us)
        job_server_fault("%s: end: the ranks do not answer: all are killed",
                         server->options->socket);
    if (!server->end_said && server->outstanding == 0)
        tell_workers(server);
    for (int i = 0; i < server->ranks && server->end_said; i++)
        if (!server->workers[i]->peer.dead && server->workers[i]->peer.outbox.first)
            return false;
    return server->end_said;
}

static void signal_ready(struct job_server *server, struct job_peer *peer, uint32_t events)
{
    uint64_t count;
    (void)events;
    if (read(peer->channel.fd, &count, sizeof count) > 0)
        server->wants_end = true;
}

static void lifeline_ready(struct job_server *server, struct job_peer *peer, uint32_t events)
{
    char bytes[256];
    (void)events;
    ssize_t n = read(peer->channel.fd, bytes, sizeof bytes);
    if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
        return;
    hang_up(server, &server->lifeline);
    server->wants_end = true;
}

/* ---- start ---- */

/* epoll rejects a regular file and /dev/null, which are at their end already. */
static void watch_lifeline(struct job_server *server)
{
    int fd = server->options->lifeline;
    struct epoll_event event = {.events = EPOLLIN};
    if (fd < 0)
        return;
    if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) == 0) {
        epoll_ctl(server->epoll, EPOLL_CTL_DEL, fd, NULL);
        server->lifeline = watch(server, fd, lifeline_ready);
    } else {
        job_server_fault("descriptor %d: lifeline: %s: give a pipe or a terminal, as the "
                         "standard input of mpirun",
                         fd, errno == EPERM ? "it is a file or /dev/null" : strerror(errno));
    }
}

static void say_ready(const struct job_server *server)
{
    int fd = server->options->ready;
    if (fd >= 0 && write(fd, "ready\n", 6) != 6)
        job_log("descriptor %d: say that the job is ready: %s", fd, strerror(errno));
    if (fd > 2)
        close(fd);
}

/* Starts to accept clients, after all workers have joined. */
static void serve(struct job_server *server)
{
    const char *path = server->options->socket;
    job_ranks_end_meeting(server);
    hang_up(server, &server->meeting[0]);
    hang_up(server, &server->meeting[1]);
    int fd = job_listen(path);
    if (fd < 0)
        job_server_fault("%s: listen: %s", path, strerror(-fd));
    server->serving = true;
    server->listener = watch(server, fd, job_clients_accept);
    job_clients_accept(server, server->listener, 0);
    say_ready(server);
}

/* A container takes up to 3 descriptors of a rank; clients, windows and MPI need the rest. */
static uint64_t files_most(void)
{
    enum { OF = 6, LEAST = 16 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / OF < LEAST)
        return LEAST;
    return limit.rlim_cur / OF;
}

static struct job_server *start(const struct job_server_setup *setup)
{
    struct job_server *server = calloc(1, sizeof *server);
    struct job_rank **workers = calloc((size_t)setup->ranks, sizeof(*workers));
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!server || !workers || epoll < 0) {
        job_say("start: %s", strerror(errno));
        _exit(1);
    }
    *server = (struct job_server){
        .options = setup->options,
        .places = setup->places,
        .ranks = setup->ranks,
        .where = setup->where,
        .stripe = setup->options->stripe ? (uint64_t)setup->options->stripe : 1 << 20,
        .files_most = files_most(),
        .epoll = epoll,
        .workers = workers,
        .started_us = job_now_us(),
    };
    server->join_until_us = server->started_us + JOIN_US;
    for (int i = 0; i < server->ranks; i++)
        server->hosts += job_is_first_on_host(server, i);
    server->signals = watch(server, setup->wants_end, signal_ready);
    watch_lifeline(server);
    server->meeting[0] = watch(server, setup->local, job_ranks_accept);
    if (setup->tcp >= 0)
        server->meeting[1] = watch(server, setup->tcp, job_ranks_accept);
    job_ranks_add_own(server, setup->own);
    return server;
}

/* ---- the loop ---- */

static int pause_ms(const struct job_server *server)
{
    return !server->serving || server->strangers ? TICK_MS : -1;
}

static void tick(struct job_server *server)
{
    if (server->strangers)
        job_clients_tick(server);
    if (!server->serving && !server->ending && job_now_us() > server->join_until_us)
        job_server_fault("start: not all ranks have found rank 0, on %s: is there a "
                         "firewall between the hosts?",
                         server->places[0].host);
}

static void turn(struct job_server *server)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(server->epoll, events, EVENTS, pause_ms(server));
    for (int i = 0; i < n; i++) {
        struct job_peer *peer = events[i].data.ptr;
        if (!peer->dead)
            peer->ready(server, peer, events[i].events);
        if (!peer->dead)
            job_peer_update(server, peer);
    }
    tick(server);
    if (server->wants_end)
        begin_end(server);
    if (!server->serving && !server->ending && server->joined == server->ranks)
        serve(server);
    bury(server);
}

void *job_server_run(void *setup)
{
    static struct job_server
        *server; /* static, so that the leak checker still finds it when the process ends */
    server = start(setup);
    while (!is_done(server))
        turn(server);
    return NULL;
}
