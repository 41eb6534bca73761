/* rank.c - accept the workers and receive their packets */
#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    PACKETS_PER_EVENT = 64,
    PENDING_MAX = 64,             /* pending connections in addition to the ranks */
    PAUSE_NS = 100 * 1000 * 1000, /* pause when no descriptor is free */
};

static void handle_worker_packet(struct job_server *server, struct job_rank *worker,
                                 struct limejob_packet *packet)
{
    if (packet->opcode == JOB_END_REQUESTED)
        server->end_requested = true;
    else
        job_request_reply(server, worker->rank, packet);
}

static void handle_worker(struct job_server *server, struct job_peer *peer, uint32_t events)
{
    static struct limejob_packet packet;
    struct job_rank *worker = (struct job_rank *)peer;
    int done = 1;
    if (events & EPOLLOUT && job_outbox_flush(&peer->outbox, peer->channel.fd) < 0)
        done = -EPIPE;
    for (int i = 0; i < PACKETS_PER_EVENT && done == 1; i++) {
        done = limejob_receive(&peer->channel, &packet, 0);
        if (done == 1) {
            if (packet.fd >= 0)
                close(packet.fd);
            handle_worker_packet(server, worker, &packet);
        }
    }
    if (done >= 0)
        return;
    if (!server->end_sent)
        job_server_abort("rank %d on %s has ended; ending the job", worker->rank,
                         server->locations[worker->rank].host);
    server->workers[worker->rank] = NULL; /* the worker has executed JOB_END */
    job_peer_drop(server, peer);
}

/* ---- connections that have not joined ---- */

static int pending_limit(const struct job_server *server)
{
    return PENDING_MAX + server->ranks;
}

static void remove_pending(struct job_server *server, const struct job_rank *rank)
{
    for (int i = 0; i < pending_limit(server); i++)
        if (server->pending[i] == rank)
            server->pending[i] = NULL;
}

static void drop_pending(struct job_server *server, struct job_rank *rank)
{
    remove_pending(server, rank);
    job_peer_drop(server, &rank->peer);
}

/* If the ring is full, drops the oldest connection: a rank would have sent JOB_JOIN at once. */
static void add_pending(struct job_server *server, struct job_rank *rank)
{
    int slot = server->next_pending;
    if (server->pending[slot])
        drop_pending(server, server->pending[slot]);
    server->pending[slot] = rank;
    server->next_pending = (slot + 1) % pending_limit(server);
}

void job_ranks_drop_pending(struct job_server *server)
{
    for (int i = 0; i < pending_limit(server); i++)
        if (server->pending[i])
            drop_pending(server, server->pending[i]);
}

/* ---- joining ---- */

static bool tokens_are_equal(const unsigned char *a, const unsigned char *b)
{
    unsigned char differs = 0;
    for (int i = 0; i < JOB_TOKEN_BYTES; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}

/* Returns whether the packet is a valid JOB_JOIN of a rank that has not joined. */
static bool is_valid_join(const struct job_server *server, struct limejob_packet *packet,
                          uint32_t *rank)
{
    if (packet->opcode != JOB_JOIN || packet->flags || packet->bytes != 4 + JOB_TOKEN_BYTES)
        return false;
    *rank = limejob_get_u32(packet);
    return tokens_are_equal(packet->payload + 4, server->rendezvous->token) &&
           *rank < (uint32_t)server->ranks && !server->workers[*rank];
}

static void add_worker(struct job_server *server, struct job_rank *worker, uint32_t rank)
{
    worker->rank = (int)rank;
    worker->peer.on_event = handle_worker;
    server->workers[rank] = worker;
    server->joined_ranks++;
}

static void handle_join(struct job_server *server, struct job_peer *peer, uint32_t events)
{
    static struct limejob_packet packet, reply;
    struct job_rank *worker = (struct job_rank *)peer;
    uint32_t rank;
    (void)events;
    packet.fd = -1;
    int done = limejob_receive(&peer->channel, &packet, 0);
    if (done == 0)
        return;
    if (done == 1 && packet.fd >= 0)
        close(packet.fd);
    if (done != 1 || !is_valid_join(server, &packet, &rank)) {
        drop_pending(server, worker);
        return;
    }
    limejob_reply_init(&reply, &packet, 0, NULL);
    remove_pending(server, worker);
    add_worker(server, worker, rank);
    if (job_peer_send(server, peer, &reply) != 0)
        job_server_abort("rank %u on %s has ended", rank, server->locations[rank].host);
}

static struct job_rank *create_worker_peer(struct job_server *server, int fd)
{
    struct job_rank *worker = calloc(1, sizeof *worker);
    if (!worker)
        return NULL;
    worker->rank = -1;
    worker->peer.on_event = handle_join;
    if (job_peer_watch(server, &worker->peer, fd) == 0)
        return worker;
    free(worker);
    return NULL;
}

void job_ranks_add_own(struct job_server *server, int fd)
{
    struct job_rank *worker = create_worker_peer(server, fd);
    server->pending = calloc((size_t)pending_limit(server), sizeof *server->pending);
    if (!worker || !server->pending)
        job_server_abort("start: %s", strerror(errno));
    add_worker(server, worker, 0);
}

void job_ranks_accept(struct job_server *server, struct job_peer *peer, uint32_t events)
{
    int fd = accept4(peer->channel.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    const struct timespec pause = {0, PAUSE_NS};
    (void)events;
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            nanosleep(&pause, NULL); /* the pending connection would wake epoll in a loop */
        return;
    }
    if (peer == server->join_listeners[1]) {
        job_tcp_set_options(fd);
    } else if (!limejob_peer_is_same_user(fd)) {
        close(fd);
        return;
    }
    struct job_rank *rank = create_worker_peer(server, fd);
    if (rank)
        add_pending(server, rank);
    else
        close(fd);
}
