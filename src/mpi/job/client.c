/* client.c - what clients say, checked; a client that breaks the rules is dropped */
#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SILENT_US = 10 * 1000 * 1000, /* in which a client has to say hello */
    PACKETS_A_TURN = 16,          /* then others have theirs */
    ARRIVALS_A_TURN = 32,
};

/* ---- coming and going ---- */

/* What is in flight still needs its window and files. */
void job_client_drop(struct job_server *server, struct job_client *client)
{
    if (client->gone)
        return;
    client->gone = true;
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
        job_server_fault(server, "unmap a window: %s", strerror(ENOMEM));
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

static void answer(struct job_server *server, struct job_client *client,
                   const struct limejob_packet *request, int code, const char *text)
{
    static struct limejob_packet reply;
    limejob_reply(&reply, request, code, code && !text ? strerror(code) : text);
    job_client_reply(server, client, &reply);
}

/* ---- HELLO ---- */

/* The workers find out what is wrong with a window; but it must not be dangerous. */
static int check_window(int fd, uint64_t bytes)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK))
        return EPERM;
    if (fstat(fd, &st) != 0)
        return errno;
    return bytes == 0 || bytes > LIMEJOB_WINDOW_MAX || (uint64_t)st.st_size < bytes ? EINVAL
                                                                                    : 0;
}

static void refuse_hello(struct job_server *server, struct job_client *client,
                         const struct limejob_packet *packet, int code, const char *text)
{
    client->last_words = true;
    answer(server, client, packet, code, text);
}

static void map_window(struct job_server *server, struct job_client *client,
                       struct limejob_packet *packet, uint64_t bytes)
{
    static struct limejob_packet command;
    int code = check_window(packet->fd, bytes);
    if (code) {
        refuse_hello(server, client, packet, code,
                     code == EPERM    ? "the window is no memfd with F_SEAL_SHRINK"
                     : code == EINVAL ? "the window is not as long as it is said to be"
                                      : NULL);
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

static struct job_opened *find_opened(struct job_client *client, uint32_t id)
{
    for (size_t i = 0; i < client->opened_count; i++)
        if (client->opened[i].file->id == id)
            return &client->opened[i];
    return NULL;
}

bool job_client_remember(struct job_client *client, struct job_file *file)
{
    struct job_opened *opened = find_opened(client, file->id);
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
        answer(server, client, packet, EMFILE, NULL);
    else
        job_file_open(server, client, packet);
}

static void close_file(struct job_server *server, struct job_client *client,
                       struct limejob_packet *packet)
{
    struct job_opened *opened = find_opened(client, limejob_get_u32(packet));
    if (!opened) {
        answer(server, client, packet, EBADF, "close: no such file is open");
        return;
    }
    struct job_file *file = opened->file;
    if (--opened->count == 0)
        *opened = client->opened[--client->opened_count];
    answer(server, client, packet, 0, NULL);
    job_file_unref(server, file);
}

/* ---- READ, WRITE, SYNC ---- */

static bool overlaps(const struct job_client *client, uint64_t at, uint64_t bytes)
{
    for (const struct job_request *move = client->moves; move; move = move->next)
        if (at < move->at + move->bytes && move->at < at + bytes)
            return true;
    return false;
}

static bool is_inside(uint64_t from, uint64_t bytes, uint64_t all)
{
    return bytes <= all && from <= all - bytes;
}

/* A READ or WRITE, as the client says it. */
struct move {
    uint32_t file;
    uint64_t offset, bytes, at;
    uint64_t gate, until; /* of a WRITE; UINT64_MAX and 0: none */
};

static struct move parse_move(struct limejob_packet *packet)
{
    struct move move;
    move.file = limejob_get_u32(packet);
    move.offset = limejob_get_u64(packet);
    move.bytes = limejob_get_u64(packet);
    move.at = limejob_get_u64(packet);
    bool more = packet->at < packet->bytes;
    move.gate = more ? limejob_get_u64(packet) : UINT64_MAX;
    move.until = more ? limejob_get_u64(packet) : 0;
    return move;
}

/* What is wrong with its place in the window; NULL: nothing. */
static const char *check_window_range(const struct job_client *client, const struct move *move,
                                      int *code)
{
    *code = EINVAL;
    if (!client->window)
        return "there is no window";
    if (move->bytes == 0 || move->bytes > LIMEJOB_READ_MAX)
        return "a length of 0, or of more than 1 GiB";
    if (!is_inside(move->at, move->bytes, client->window_bytes))
        return "outside of the window";
    if (move->gate != UINT64_MAX &&
        (move->gate % sizeof(uint32_t) ||
         !is_inside(move->gate, sizeof(uint32_t), client->window_bytes)))
        return "the gate is not aligned, or outside of the window";
    *code = EBUSY;
    if (overlaps(client, move->at, move->bytes))
        return "that part of the window belongs to a request in flight";
    return NULL;
}

static const char *check_file_range(const struct job_server *server,
                                    const struct job_file *file, const struct move *move,
                                    int *code)
{
    *code = ENXIO;
    if (!file->writing)
        return is_inside(move->offset, move->bytes, file->bytes) ? NULL : "outside of the file";
    *code = EFBIG;
    if (!is_inside(move->offset, move->bytes, INT64_MAX))
        return "no file can be that long";
    *code = EBUSY;
    return job_request_is_writing(server, file, move->offset, move->bytes)
               ? "that part of the file is being written"
               : NULL;
}

/* The file of a request; NULL, and the client is told: it has none that is meant for that. */
static struct job_file *file_for(struct job_server *server, struct job_client *client,
                                 const struct limejob_packet *packet, uint32_t id)
{
    char text[128];
    bool writing = packet->opcode == LIMEJOB_WRITE || packet->opcode == LIMEJOB_SYNC;
    struct job_opened *opened = find_opened(client, id);
    if (opened && opened->file->writing == writing)
        return opened->file;
    snprintf(text, sizeof text, "%s: %s", limejob_message_of(packet->opcode)->name,
             !opened   ? "no such file is open"
             : writing ? "the file is not open for writing"
                       : "the file is open for writing");
    answer(server, client, packet, EBADF, text);
    return NULL;
}

/* The workers set about it. */
static struct job_request *begin(struct job_server *server, struct job_client *client,
                                 const struct limejob_packet *packet, uint16_t opcode,
                                 struct job_file *file)
{
    struct job_request *request = job_request_new(server, opcode, client, packet);
    if (!request) {
        answer(server, client, packet, ENOMEM, NULL);
        return NULL;
    }
    request->file = file;
    file->refs++;
    job_counters_begin(&server->counters, opcode);
    return request;
}

static void send_move(struct job_server *server, struct job_request *request)
{
    static struct limejob_packet command;
    limejob_request(&command, request->opcode, 0);
    limejob_put_u32(&command, request->file->id);
    limejob_put_u32(&command, request->client->window);
    limejob_put_u64(&command, request->offset);
    limejob_put_u64(&command, request->bytes);
    limejob_put_u64(&command, request->at);
    if (request->opcode == JOB_WRITE) {
        limejob_put_u64(&command, request->gate);
        limejob_put_u64(&command, request->until);
    }
    job_request_send(server, request, &command);
}

static void move_file(struct job_server *server, struct job_client *client,
                      struct limejob_packet *packet)
{
    int code;
    char text[128];
    struct move move = parse_move(packet);
    const char *wrong = check_window_range(client, &move, &code);
    struct job_file *file = NULL;
    if (!wrong) {
        file = file_for(server, client, packet, move.file);
        if (!file)
            return;
        wrong = check_file_range(server, file, &move, &code);
    }
    if (wrong) {
        snprintf(text, sizeof text, "%s: %s", limejob_message_of(packet->opcode)->name, wrong);
        answer(server, client, packet, code, text);
        return;
    }
    struct job_request *request = begin(
        server, client, packet, packet->opcode == LIMEJOB_READ ? JOB_READ : JOB_WRITE, file);
    if (!request)
        return;
    request->offset = move.offset;
    request->bytes = move.bytes;
    request->at = move.at;
    request->gate = move.gate;
    request->until = move.until;
    request->next = client->moves;
    client->moves = request;
    send_move(server, request);
}

void job_client_synced(struct job_request *request)
{
    struct job_file *file = request->file;
    struct job_opened *opened = find_opened(request->client, file->id);
    if (request->code) {
        file->failures++;
        file->failure_code = request->code;
        memcpy(file->failure, request->text, sizeof file->failure);
    } else if (opened && opened->heard != file->failures) {
        request->code = file->failure_code;
        memcpy(request->text, file->failure, sizeof request->text);
    }
    if (opened)
        opened->heard = file->failures;
}

static void sync_file(struct job_server *server, struct job_client *client,
                      struct limejob_packet *packet)
{
    static struct limejob_packet command;
    struct job_file *file = file_for(server, client, packet, limejob_get_u32(packet));
    struct job_request *request = file ? begin(server, client, packet, JOB_SYNC, file) : NULL;
    if (!request)
        return;
    limejob_request(&command, JOB_SYNC, 0);
    limejob_put_u32(&command, file->id);
    job_request_send(server, request, &command);
}

/* ---- SUM ---- */

static const char *check_sum(const struct job_file *file, uint64_t offset, uint64_t bytes,
                             uint64_t site_bytes, int *code)
{
    *code = EINVAL;
    if (bytes == 0 || bytes > LIMEJOB_SUM_MAX)
        return "sum: a length of 0, or of more than 1 GiB";
    if (site_bytes == 0 || site_bytes > LIMEJOB_SITE_MAX)
        return "sum: a site of 0 bytes, or of more than 1 MiB";
    if (bytes % site_bytes)
        return "sum: no whole sites";
    *code = ENXIO;
    return is_inside(offset, bytes, file->bytes) ? NULL : "sum: outside of the file";
}

static void sum_file(struct job_server *server, struct job_client *client,
                     struct limejob_packet *packet)
{
    static struct limejob_packet command;
    int code;
    struct job_file *file = file_for(server, client, packet, limejob_get_u32(packet));
    uint64_t offset = limejob_get_u64(packet), bytes = limejob_get_u64(packet);
    uint64_t site_bytes = limejob_get_u64(packet), first = limejob_get_u64(packet);
    if (!file)
        return;
    const char *wrong = check_sum(file, offset, bytes, site_bytes, &code);
    if (wrong) {
        answer(server, client, packet, code, wrong);
        return;
    }
    struct job_request *request = begin(server, client, packet, JOB_SUM, file);
    if (!request)
        return;
    request->bytes = bytes;
    limejob_request(&command, JOB_SUM, 0);
    limejob_put_u32(&command, file->id);
    limejob_put_u64(&command, offset);
    limejob_put_u64(&command, bytes);
    limejob_put_u64(&command, site_bytes);
    limejob_put_u64(&command, first);
    job_request_send(server, request, &command);
}

/* ---- STATUS, STOP ---- */

static void status(struct job_server *server, struct job_client *client,
                   const struct limejob_packet *packet)
{
    static struct limejob_packet reply;
    char *text = job_status_text(server);
    if (!text) {
        answer(server, client, packet, ENOMEM, NULL);
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
        move_file(server, client, packet);
        break;
    case LIMEJOB_SYNC:
        sync_file(server, client, packet);
        break;
    case LIMEJOB_SUM:
        sum_file(server, client, packet);
        break;
    case LIMEJOB_STATUS:
        status(server, client, packet);
        break;
    case LIMEJOB_STOP:
        answer(server, client, packet, 0, NULL);
        job_server_end(server);
        break;
    default:
        throw_out(server, client, "a second hello");
    }
}

/* What is optional is there as a whole or not at all. */
static bool has_good_length(const struct limejob_message *message,
                            const struct limejob_packet *packet)
{
    if (packet->opcode == LIMEJOB_WRITE)
        return packet->bytes == message->least || packet->bytes == message->most;
    return packet->bytes >= message->least && packet->bytes <= message->most;
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
        answer(server, client, packet, ENOSYS, "this job does not know that message");
    else if (!has_good_length(message, packet))
        throw_out(server, client, "a message of a wrong length");
    else if (!client->greeted)
        hello(server, client, packet);
    else if (server->ending && packet->opcode != LIMEJOB_STOP &&
             packet->opcode != LIMEJOB_STATUS)
        answer(server, client, packet, ESHUTDOWN, "the job is ending");
    else if (client->in_flight >= LIMEJOB_IN_FLIGHT_MAX)
        answer(server, client, packet, EAGAIN, "too many requests in flight");
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
