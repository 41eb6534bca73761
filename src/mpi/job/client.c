/* client.c - what clients say, checked; a client that breaks the rules is dropped */
#define _GNU_SOURCE
#include "server.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SILENT_US = 10 * 1000 * 1000, /* in which a client has to say hello */
    PACKETS_A_TURN = 16,          /* then others have theirs */
    ARRIVALS_A_TURN = 32,
};

/* ---- coming and going ---- */

/* A client that was killed cannot shut its gates, and others may write there next. */
static void take_back(const struct job_client *client)
{
    limejob_gate shut;
    limejob_gate_shut(&shut);
    for (const struct job_request *move = client->moves; move; move = move->next)
        if (move->opcode == JOB_WRITE && move->gate != UINT64_MAX &&
            pwrite(client->window_fd, &shut, sizeof shut, (off_t)move->gate) < 0)
            job_log("client process %ld: its writes cannot be taken back: %s",
                    (long)client->pid, strerror(errno));
}

/* What is in flight still needs its window and files. */
void job_client_drop(struct job_server *server, struct job_client *client)
{
    if (client->gone)
        return;
    client->gone = true;
    take_back(client);
    server->client_count--;
    if (!client->greeted)
        server->strangers--;
    job_outbox_clear(&client->peer.outbox);
    limejob_channel_close(&client->peer.channel); /* epoll forgets it */
    job_client_release(server, client);
}

static void unmap(struct job_server *server, const struct job_client *client)
{
    static struct limejob_packet packet;
    struct job_request *request = job_request_new(server, JOB_UNMAP, NULL, NULL);
    if (!request)
        job_server_fault("unmap a window: %s", strerror(ENOMEM));
    limejob_request(&packet, JOB_UNMAP, 0);
    limejob_put_u32(&packet, client->window);
    job_request_send(server, request, &packet);
}

void job_client_release(struct job_server *server, struct job_client *client)
{
    if (!client->gone || client->in_flight || client->peer.dead)
        return;
    struct job_client **at = &server->clients;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    if (client->window)
        unmap(server, client);
    if (client->window_fd >= 0)
        close(client->window_fd);
    client->window_fd = -1;
    for (size_t i = 0; i < client->opened_count; i++)
        for (unsigned k = 0; k < client->opened[i].count; k++)
            job_file_unref(server, client->opened[i].file);
    free(client->opened);
    client->opened = NULL;
    job_peer_drop(server, &client->peer);
}

static void throw_out(struct job_server *server, struct job_client *client, const char *why)
{
    job_log("client process %ld: dropped: %s", (long)client->pid, why);
    job_client_drop(server, client);
}

void job_clients_tick(struct job_server *server)
{
    int64_t now = job_now_us();
    struct job_client *next;
    for (struct job_client *client = server->clients; client; client = next) {
        next = client->next;
        if (!client->greeted && !client->gone && now - client->since_us > SILENT_US)
            throw_out(server, client, "it has said nothing");
    }
}

void job_client_reply(struct job_server *server, struct job_client *client,
                      const struct limejob_packet *reply)
{
    if (client->gone)
        return;
    if (client->peer.outbox.bytes > JOB_OUTBOX_MAX) {
        throw_out(server, client, "it does not take its replies");
        return;
    }
    int err = job_peer_put(server, &client->peer, reply);
    if (err || (client->last_words && !client->peer.outbox.first))
        job_client_drop(server, client);
}

void job_client_answer(struct job_server *server, struct job_client *client,
                       const struct limejob_packet *request, int code, const char *text)
{
    static struct limejob_packet reply;
    char words[JOB_TEXT_MAX];
    snprintf(words, sizeof words, "%s", code && !text ? strerror(code) : text ? text : "");
    limefile_text_defuse(words, "");
    limejob_reply(&reply, request, code, words);
    job_client_reply(server, client, &reply);
}

/* ---- HELLO ---- */

static void refuse_hello(struct job_server *server, struct job_client *client,
                         const struct limejob_packet *packet, int code, const char *text)
{
    client->last_words = true;
    job_client_answer(server, client, packet, code, text);
}

static void map_window(struct job_server *server, struct job_client *client,
                       struct limejob_packet *packet, uint64_t bytes)
{
    static struct limejob_packet command;
    int code = -limejob_window_check(packet->fd, bytes);
    const char *why = NULL;
    if (code == EPERM)
        why = "the window is not a memfd of ordinary pages that is sealed with F_SEAL_SHRINK";
    else if (code == EINVAL)
        why = "the window is not as long as it is said to be";
    if (code) {
        refuse_hello(server, client, packet, code, why);
        return;
    }
    client->window_fd = fcntl(packet->fd, F_DUPFD_CLOEXEC, 0);
    if (client->window_fd < 0) {
        refuse_hello(server, client, packet, errno, NULL);
        return;
    }
    struct job_request *request = job_request_new(server, JOB_WINDOW, client, packet);
    if (!request) {
        refuse_hello(server, client, packet, ENOMEM, NULL);
        return;
    }
    client->window = ++server->last_window;
    client->window_bytes = bytes;
    limejob_request(&command, JOB_WINDOW, 0);
    limejob_put_u32(&command, client->window);
    limejob_put_u64(&command, bytes);
    command.fd = packet->fd;
    job_request_send(server, request, &command);
}

static void hello(struct job_server *server, struct job_client *client,
                  struct limejob_packet *packet)
{
    static struct limejob_packet reply;
    uint64_t bytes = limejob_get_u64(packet);
    client->greeted = true;
    server->strangers--;
    if (packet->fd >= 0) {
        map_window(server, client, packet, bytes);
        return;
    }
    if (bytes) {
        refuse_hello(server, client, packet, EINVAL, "no window came with its length");
        return;
    }
    limejob_reply(&reply, packet, 0, NULL);
    limejob_put_u32(&reply, (uint32_t)server->ranks);
    limejob_put_u32(&reply, (uint32_t)server->hosts);
    limejob_put_u64(&reply, server->stripe);
    job_client_reply(server, client, &reply);
}

/* ---- files ---- */

struct job_opened *job_client_find(struct job_client *client, uint32_t id)
{
    for (size_t i = 0; i < client->opened_count; i++)
        if (client->opened[i].file->id == id)
            return &client->opened[i];
    return NULL;
}

bool job_client_remember(struct job_client *client, struct job_file *file)
{
    struct job_opened *opened = job_client_find(client, file->id);
    if (opened) {
        opened->count++;
        return true;
    }
    opened = realloc(client->opened, (client->opened_count + 1) * sizeof *opened);
    if (!opened)
        return false;
    client->opened = opened;
    opened[client->opened_count++] = (struct job_opened){file, 1, file->failures};
    return true;
}

static void open_file(struct job_server *server, struct job_client *client,
                      struct limejob_packet *packet)
{
    size_t count = client->in_flight;
    for (size_t i = 0; i < client->opened_count; i++)
        count += client->opened[i].count;
    if (count >= JOB_FILES_MAX)
        job_client_answer(server, client, packet, EMFILE, NULL);
    else
        job_file_open(server, client, packet);
}

static void close_file(struct job_server *server, struct job_client *client,
                       struct limejob_packet *packet)
{
    struct job_opened *opened = job_client_find(client, limejob_get_u32(packet));
    if (!opened) {
        job_client_answer(server, client, packet, EBADF, "close: no such file is open");
        return;
    }
    struct job_file *file = opened->file;
    if (--opened->count == 0)
        *opened = client->opened[--client->opened_count];
    job_client_answer(server, client, packet, 0, NULL);
    job_file_unref(server, file);
}

/* ---- STATUS, STOP ---- */

static void status(struct job_server *server, struct job_client *client,
                   const struct limejob_packet *packet)
{
    static struct limejob_packet reply;
    char *text = job_status_text(server);
    if (!text) {
        job_client_answer(server, client, packet, ENOMEM, NULL);
        return;
    }
    limejob_reply(&reply, packet, 0, NULL);
    limejob_put_bytes(&reply, text, strlen(text));
    free(text);
    job_client_reply(server, client, &reply);
}

/* ---- packets ---- */

static void obey(struct job_server *server, struct job_client *client,
                 struct limejob_packet *packet)
{
    switch (packet->opcode) {
    case LIMEJOB_OPEN:
    case LIMEJOB_OPEN_WRITE:
        open_file(server, client, packet);
        break;
    case LIMEJOB_CLOSE:
        close_file(server, client, packet);
        break;
    case LIMEJOB_READ:
    case LIMEJOB_WRITE:
        job_client_move(server, client, packet);
        break;
    case LIMEJOB_SYNC:
        job_client_sync(server, client, packet);
        break;
    case LIMEJOB_STATUS:
        status(server, client, packet);
        break;
    case LIMEJOB_STOP:
        job_client_answer(server, client, packet, 0, NULL);
        job_server_end(server);
        break;
    default:
        throw_out(server, client, "a second hello");
    }
}

static void take_packet(struct job_server *server, struct job_client *client,
                        struct limejob_packet *packet)
{
    const struct limejob_message *message = limejob_message_of(packet->opcode);
    if (packet->flags)
        throw_out(server, client, "a reply to nothing");
    else if (!client->greeted && packet->opcode != LIMEJOB_HELLO)
        throw_out(server, client, "it has not said hello");
    else if (!message)
        job_client_answer(server, client, packet, ENOSYS,
                          "this job does not know that message");
    else if (packet->bytes < message->least || packet->bytes > message->most)
        throw_out(server, client, "a message of a wrong length");
    else if (!client->greeted)
        hello(server, client, packet);
    else if (server->ending && packet->opcode != LIMEJOB_STOP &&
             packet->opcode != LIMEJOB_STATUS)
        job_client_answer(server, client, packet, ESHUTDOWN, "the job is ending");
    else if (client->in_flight >= LIMEJOB_IN_FLIGHT_MAX)
        job_client_answer(server, client, packet, EAGAIN, "too many requests in flight");
    else
        obey(server, client, packet);
}

static void refuse_version(struct job_server *server, struct job_client *client,
                           struct limejob_packet *packet)
{
    char text[LIMEJOB_TEXT_MAX];
    snprintf(text, sizeof text, "limefs-io speaks version %d of the protocol, the client %d",
             LIMEJOB_VERSION, client->peer.channel.version);
    packet->opcode = LIMEJOB_HELLO; /* as whoever cannot read us will expect */
    refuse_hello(server, client, packet, EPROTONOSUPPORT, text);
}

/* False: nothing more is there, or nobody. */
static bool receive(struct job_server *server, struct job_client *client)
{
    static struct limejob_packet packet;
    packet.fd = -1;
    int done = limejob_receive(&client->peer.channel, &packet, 0);
    if (done == 0)
        return false;
    if (done == 1)
        take_packet(server, client, &packet);
    else if (done == -EPIPE)
        job_client_drop(server, client);
    else if (done == -EPROTONOSUPPORT)
        refuse_version(server, client, &packet);
    else
        throw_out(server, client,
                  done == -EMSGSIZE ? "a packet that is too long"
                                    : "that is no packet of ours");
    if (packet.fd >= 0)
        close(packet.fd);
    return done == 1 && !client->gone && !client->last_words;
}

static void client_ready(struct job_server *server, struct job_peer *peer, uint32_t events)
{
    struct job_client *client = (struct job_client *)peer;
    if (client->gone)
        return;
    if (events & EPOLLHUP) { /* who has hung up wants nothing more, also of what was sent */
        job_client_drop(server, client);
        return;
    }
    if (events & EPOLLOUT && (job_outbox_flush(&peer->outbox, peer->channel.fd) < 0 ||
                              (client->last_words && !peer->outbox.first))) {
        job_client_drop(server, client);
        return;
    }
    if (client->last_words && events & (EPOLLERR | EPOLLIN)) {
        job_client_drop(server, client);
        return;
    }
    for (int i = 0; i < PACKETS_A_TURN && events & (EPOLLIN | EPOLLERR); i++)
        if (!receive(server, client))
            break;
}

static void welcome(struct job_server *server, int fd)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0 || peer.uid != geteuid()) {
        close(fd);
        return;
    }
    struct job_client *client =
        server->client_count < JOB_CLIENTS_MAX ? calloc(1, sizeof *client) : NULL;
    if (!client) {
        close(fd);
        return;
    }
    client->peer.ready = client_ready;
    client->pid = peer.pid;
    client->window_fd = -1;
    client->since_us = job_now_us();
    if (job_peer_watch(server, &client->peer, fd) != 0) {
        close(fd);
        free(client);
        return;
    }
    client->next = server->clients;
    server->clients = client;
    server->client_count++;
    server->strangers++;
}

/* Where there is no descriptor left, a connection that nobody accepts would wake us for ever:
 * the spare one serves to hang up. */
static void hang_up(int listener)
{
    static int spare = -1;
    if (spare >= 0) {
        close(spare);
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            close(fd);
    }
    spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void job_clients_accept(struct job_server *server, struct job_peer *peer, uint32_t events)
{
    if (!events) { /* before the first one */
        hang_up(-1);
        return;
    }
    for (int i = 0; i < ARRIVALS_A_TURN; i++) {
        int fd = accept4(peer->channel.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE))
            hang_up(peer->channel.fd);
        if (fd < 0)
            break;
        welcome(server, fd);
    }
}
