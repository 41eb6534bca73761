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
    PACKETS_A_TURN = 64,
    STRANGERS_MAX = 64,           /* pending connections in addition to the ranks */
    PAUSE_NS = 100 * 1000 * 1000, /* pause when no descriptor is free */
};

static void hear(struct job_server *server, struct job_rank *worker,
                 struct limejob_packet *packet)
{
    if (packet->opcode == JOB_WANTS_END)
        server->wants_end = true;
    else
        job_request_reply(server, worker->rank, packet);
}

static void worker_ready(struct job_server *server, struct job_peer *peer, uint32_t events)
{
    static struct limejob_packet packet;
    struct job_rank *worker = (struct job_rank *)peer;
    int done = 1;
    if (events & EPOLLOUT && job_outbox_flush(&peer->outbox, peer->channel.fd) < 0)
        done = -EPIPE;
    for (int i = 0; i < PACKETS_A_TURN && done == 1; i++) {
        done = limejob_receive(&peer->channel, &packet, 0);
        if (done == 1) {
            if (packet.fd >= 0)
                close(packet.fd);
            hear(server, worker, &packet);
        }
    }
    if (done >= 0)
        return;
    if (!server->end_said)
        job_server_fault("rank %d on %s has ended: the job ends, too", worker->rank,
                         server->places[worker->rank].host);
    job_peer_drop(server, peer); /* it has executed JOB_END */
}

/* ---- connections that have not joined ---- */

static int newcomers_most(const struct job_server *server)
{
    return STRANGERS_MAX + server->ranks;
}

static void forget_newcomer(struct job_server *server, const struct job_rank *rank)
{
    for (int i = 0; i < newcomers_most(server); i++)
        if (server->newcomers[i] == rank)
            server->newcomers[i] = NULL;
}

static void drop_newcomer(struct job_server *server, struct job_rank *rank)
{
    forget_newcomer(server, rank);
    job_peer_drop(server, &rank->peer);
}

/* A rank sends JOB_JOIN at once, so a full ring drops the oldest connection. */
static void add_newcomer(struct job_server *server, struct job_rank *rank)
{
    int place = server->next_newcomer;
    if (server->newcomers[place])
        drop_newcomer(server, server->newcomers[place]);
    server->newcomers[place] = rank;
    server->next_newcomer = (place + 1) % newcomers_most(server);
}

void job_ranks_end_meeting(struct job_server *server)
{
    for (int i = 0; i < newcomers_most(server); i++)
        if (server->newcomers[i])
            drop_newcomer(server, server->newcomers[i]);
}

/* ---- joining ---- */

static bool same_token(const unsigned char *a, const unsigned char *b)
{
    unsigned char differs = 0;
    for (int i = 0; i < JOB_TOKEN_BYTES; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}

/* Returns whether the packet is a valid JOB_JOIN of a rank that has not joined. */
static bool is_worker(const struct job_server *server, struct limejob_packet *packet,
                      uint32_t *rank)
{
    if (packet->opcode != JOB_JOIN || packet->flags || packet->bytes != 4 + JOB_TOKEN_BYTES)
        return false;
    *rank = limejob_get_u32(packet);
    return same_token(packet->payload + 4, server->where->token) &&
           *rank < (uint32_t)server->ranks && !server->workers[*rank];
}

static void add(struct job_server *server, struct job_rank *worker, uint32_t rank)
{
    worker->rank = (int)rank;
    worker->peer.ready = worker_ready;
    server->workers[rank] = worker;
    server->joined++;
}

static void stranger_ready(struct job_server *server, struct job_peer *peer, uint32_t events)
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
    if (done != 1 || !is_worker(server, &packet, &rank)) {
        drop_newcomer(server, worker);
        return;
    }
    limejob_reply(&reply, &packet, 0, NULL);
    forget_newcomer(server, worker);
    add(server, worker, rank);
    if (job_peer_put(server, peer, &reply) != 0)
        job_server_fault("rank %u on %s has ended", rank, server->places[rank].host);
}

static struct job_rank *new_worker(struct job_server *server, int fd)
{
    struct job_rank *worker = calloc(1, sizeof *worker);
    if (!worker)
        return NULL;
    worker->rank = -1;
    worker->peer.ready = stranger_ready;
    if (job_peer_watch(server, &worker->peer, fd) == 0)
        return worker;
    free(worker);
    return NULL;
}

void job_ranks_add_own(struct job_server *server, int fd)
{
    struct job_rank *worker = new_worker(server, fd);
    server->newcomers = calloc((size_t)newcomers_most(server), sizeof *server->newcomers);
    if (!worker || !server->newcomers)
        job_server_fault("start: %s", strerror(errno));
    add(server, worker, 0);
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
    if (peer == server->meeting[1]) {
        job_control_tune(fd);
    } else if (!limejob_peer_is_ours(fd)) {
        close(fd);
        return;
    }
    struct job_rank *rank = new_worker(server, fd);
    if (rank)
        add_newcomer(server, rank);
    else
        close(fd);
}
