/* server.c - the server's loop: start, events, end */
#define _GNU_SOURCE
#include "server.h"
#include "listen.h"
#include "report.h"
#include "watchdog.h"

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
    REFUSE_S = 2, /* ranks have refused a write that was late at this time after its deadline */
};

static void free_dropped_peers(struct job_server *server)
{
    struct job_peer *next;
    for (struct job_peer *peer = server->dropped; peer; peer = next) {
        next = peer->next_dropped;
        free(peer);
    }
    server->dropped = NULL;
}

/* Calls `fn` when fd is readable. fd is a listening socket, an eventfd or a pipe: epoll watches
 * it like a peer, but no packets are sent over it. Aborts the job on an error. */
static struct job_peer *watch_fd(struct job_server *server, int fd,
                                 void (*fn)(struct job_server *, struct job_peer *, uint32_t))
{
    struct job_peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        job_server_abort("start: %s", strerror(ENOMEM));
    peer->on_event = fn;
    int err = job_peer_watch(server, peer, fd);
    if (err)
        job_server_abort("descriptor %d: watch: %s", fd, strerror(-err));
    return peer;
}

/* ---- end ---- */

static void drop_peer(struct job_server *server, struct job_peer **peer)
{
    if (*peer)
        job_peer_drop(server, *peer);
    *peer = NULL;
}

/* Stops accepting clients. Requests in flight continue, for END_US at most. */
static void begin_shutdown(struct job_server *server)
{
    if (server->is_ending)
        return;
    if (!server->is_serving)
        job_watchdog_abort(); /* other ranks may wait in MPI: no orderly end is possible */
    server->is_ending = true;
    server->end_until_us = job_now_us() + END_US;
    job_listen_remove();
    server->is_serving = false;
    drop_peer(server, &server->listener);
}

static void send_end_command(struct job_server *server)
{
    static struct limejob_packet packet;
    limejob_request_init(&packet, JOB_END, 0);
    server->end_sent = true;
    for (int i = 0; i < server->ranks; i++)
        job_peer_send(server, &server->workers[i]->peer, &packet);
}

/* Continues a shutdown that has begun: when no request is in flight, sends JOB_END to the
 * workers. Returns true when that is sent to all: then the server may exit. Clients notice the
 * end when the process exits. Aborts the job after END_US. */
static bool advance_shutdown(struct job_server *server)
{
    if (!server->is_ending)
        return false;
    if (job_now_us() > server->end_until_us)
        job_server_abort("%s: end: ranks do not respond; killing all",
                         server->options->socket_path);
    if (!server->end_sent && server->requests_in_flight == 0)
        send_end_command(server);
    for (int i = 0; i < server->ranks && server->end_sent; i++)
        if (server->workers[i] && server->workers[i]->peer.outbox.first)
            return false;
    return server->end_sent;
}

/* Handles the eventfd: a signal has asked the job to end. */
static void handle_end_event(struct job_server *server, struct job_peer *peer, uint32_t events)
{
    uint64_t count;
    (void)events;
    if (read(peer->channel.fd, &count, sizeof count) > 0)
        server->end_requested = true;
}

/* Ignores bytes from the lifeline; ends the job when it is closed. */
static void handle_lifeline(struct job_server *server, struct job_peer *peer, uint32_t events)
{
    char bytes[256];
    (void)events;
    ssize_t n = read(peer->channel.fd, bytes, sizeof bytes);
    if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
        return;
    drop_peer(server, &server->lifeline);
    server->end_requested = true;
}

/* ---- start ---- */

/* Ends the job when the other end of the pipe or terminal lifeline_fd is closed. A regular file
 * or /dev/null would end the job at once; epoll rejects them. */
static void watch_lifeline(struct job_server *server)
{
    int fd = server->options->lifeline_fd;
    struct epoll_event event = {.events = EPOLLIN};
    if (fd < 0)
        return;
    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0) {
        epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        server->lifeline = watch_fd(server, fd, handle_lifeline);
    } else {
        job_server_abort("descriptor %d: lifeline: %s: give a pipe or a terminal, as the "
                         "standard input of mpirun",
                         fd, errno == EPERM ? "it is a file or /dev/null" : strerror(errno));
    }
}

/* Writes "ready" to the descriptor of --ready, and closes it unless it is 0, 1 or 2. */
static void report_ready(const struct job_server *server)
{
    int fd = server->options->ready_fd;
    if (fd >= 0 && write(fd, "ready\n", 6) != 6)
        job_log("descriptor %d: write \"ready\": %s", fd, strerror(errno));
    if (fd > 2)
        close(fd);
}

/* Starts to accept clients, after all workers have joined. */
static void start_serving(struct job_server *server)
{
    const char *path = server->options->socket_path;
    job_ranks_drop_pending(server);
    drop_peer(server, &server->join_listeners[0]);
    drop_peer(server, &server->join_listeners[1]);
    int fd = job_listen(path);
    if (fd < 0)
        job_server_abort("%s: listen: %s", path, strerror(-fd));
    server->is_serving = true;
    server->listener = watch_fd(server, fd, job_clients_accept);
    job_clients_accept(server, server->listener, 0);
    report_ready(server);
}

/* Returns how many containers may be open at once. Each takes up to 3 descriptors of a rank.
 * The limit counts 6 for each, so half of the descriptors remain for clients, windows, MPI. */
static uint64_t file_limit(void)
{
    enum { PER_FILE = 6, FILES_MIN = 16 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / PER_FILE < FILES_MIN)
        return FILES_MIN;
    return limit.rlim_cur / PER_FILE;
}

static struct job_server *create_server(const struct job_server_setup *setup)
{
    struct job_server *server = calloc(1, sizeof *server);
    struct job_rank **workers = calloc((size_t)setup->ranks, sizeof(*workers));
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!server || !workers || epoll < 0) {
        job_report("start: %s", strerror(errno));
        _exit(1);
    }
    *server = (struct job_server){
        .options = setup->options,
        .locations = setup->locations,
        .ranks = setup->ranks,
        .rendezvous = setup->rendezvous,
        .stripe =
            setup->options->stripe_bytes ? (uint64_t)setup->options->stripe_bytes : 1 << 20,
        .max_files = file_limit(),
        .epoll_fd = epoll,
        .workers = workers,
        .started_us = job_now_us(),
    };
    server->join_until_us = server->started_us + JOIN_US;
    for (int i = 0; i < server->ranks; i++)
        server->hosts += job_is_first_on_host(server, i);
    server->end_event = watch_fd(server, setup->end_event, handle_end_event);
    watch_lifeline(server);
    server->join_listeners[0] = watch_fd(server, setup->unix_fd, job_ranks_accept);
    if (setup->tcp_fd >= 0)
        server->join_listeners[1] = watch_fd(server, setup->tcp_fd, job_ranks_accept);
    job_ranks_add_own(server, setup->own_channel);
    return server;
}

/* ---- the loop ---- */

static int poll_timeout_ms(const struct job_server *server)
{
    return !server->is_serving || server->unauthenticated || server->counters.writes_in_flight
               ? TICK_MS
               : -1;
}

/* Ends the job if a collective write exceeds its deadline: a rank may hold old bytes and wait
 * in MPI for another, where it checks neither fence nor deadline. */
static void end_if_write_is_late(const struct job_server *server)
{
    uint64_t now = job_realtime_ns();
    for (const struct job_client *client = server->clients; client; client = client->next)
        for (const struct job_request *i = client->transfers; i; i = i->next)
            if (i->opcode == JOB_WRITE && i->file->io == LIMEJOB_IO_COLLECTIVE && i->deadline &&
                now > i->deadline && now - i->deadline > REFUSE_S * UINT64_C(1000000000))
                job_server_abort("%s: the write at %llu has not ended in time; ending the job",
                                 i->file->path, (unsigned long long)i->offset);
}

static void check_timeouts(struct job_server *server)
{
    if (server->unauthenticated)
        job_clients_check_timeouts(server);
    if (server->counters.writes_in_flight)
        end_if_write_is_late(server);
    if (!server->is_serving && !server->is_ending && job_now_us() > server->join_until_us)
        job_server_abort("start: not all ranks have reached rank 0 on %s; is there a "
                         "firewall between the hosts?",
                         server->locations[0].host);
}

static void handle_events(struct job_server *server)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(server->epoll_fd, events, EVENTS, poll_timeout_ms(server));
    for (int i = 0; i < n; i++) {
        struct job_peer *peer = events[i].data.ptr;
        if (!peer->is_dropped)
            peer->on_event(server, peer, events[i].events);
        if (!peer->is_dropped)
            job_peer_update_events(server, peer);
    }
    check_timeouts(server);
    if (server->end_requested)
        begin_shutdown(server);
    if (!server->is_serving && !server->is_ending && server->joined_ranks == server->ranks)
        start_serving(server);
    free_dropped_peers(server);
}

void *job_server_run(void *setup)
{
    static struct job_server *server; /* static: the leak checker finds it at the exit, too */
    server = create_server(setup);
    while (!advance_shutdown(server))
        handle_events(server);
    return NULL;
}
