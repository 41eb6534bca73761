/*
 * client.c - handle the clients' requests, and keep the containers that are open for them
 *
 * Checks each request, sends it to the workers as a command, and answers it after all workers
 * have replied. Drops a client that violates the protocol.
 */
#define _GNU_SOURCE
#include "server.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SILENT_US = 10 * 1000 * 1000, /* time limit for HELLO */
    PACKETS_A_TURN = 16,          /* packets of one client before other peers have their turn */
    ARRIVALS_A_TURN = 32,
};

/* Frees a closed client when none of its requests is in flight. */
static void release_client(struct job_server *, struct job_client *);

/* Drops a reference of a client or request, and closes the file with the last one. */
static void unref_file(struct job_server *, struct job_file *);

/* ---- commands to all workers ---- */

static bool reserve_slot(struct job_server *server, uint64_t *slot)
{
    for (uint64_t i = 0; i < server->table_size; i++)
        if (!server->table[i]) {
            *slot = i;
            return true;
        }
    uint64_t size = server->table_size * 2 + 64;
    struct job_request **table = realloc(server->table, size * sizeof(*table));
    if (!table)
        return false;
    memset(table + server->table_size, 0, (size - server->table_size) * sizeof(*table));
    *slot = server->table_size;
    server->table = table;
    server->table_size = size;
    return true;
}

static struct job_request *new_request(struct job_server *server, uint16_t opcode,
                                       struct job_client *client,
                                       const struct limejob_packet *packet)
{
    struct job_request *request = calloc(1, sizeof *request);
    if (!request || !reserve_slot(server, &request->slot)) {
        free(request);
        return NULL;
    }
    server->table[request->slot] = request;
    server->outstanding++;
    request->opcode = opcode;
    request->since_us = job_now_us();
    if (client) {
        request->client = client;
        request->client_opcode = packet->opcode;
        request->client_tag = packet->tag;
        client->in_flight++;
    }
    return request;
}

static void free_request(struct job_server *server, struct job_request *request)
{
    struct job_client *client = request->client;
    server->table[request->slot] = NULL;
    server->outstanding--;
    free(request);
    if (client) {
        client->in_flight--;
        release_client(server, client);
    }
}

static void send_command(struct job_server *server, struct job_request *request,
                         struct limejob_packet *packet)
{
    int fd = packet->fd;
    packet->opcode = request->opcode;
    packet->flags = 0;
    packet->tag = request->slot;
    request->waiting = server->ranks;
    for (int i = 0; i < server->ranks; i++) {
        packet->fd = server->places[i].local ? fd : -1;
        int err = job_peer_put(server, &server->workers[i]->peer, packet);
        if (err)
            job_server_fault("rank %d on %s: send a command: %s", i, server->places[i].host,
                             strerror(-err));
    }
    packet->fd = fd;
}

static bool is_move(const struct job_request *request)
{
    return request->opcode == JOB_READ || request->opcode == JOB_WRITE;
}

static bool is_same_inode(const struct job_file *a, const struct job_file *b)
{
    return limefile_identity_same_file(&a->identity, &b->identity);
}

static bool is_being_written(const struct job_server *server, const struct job_file *file,
                             uint64_t offset, uint64_t bytes)
{
    for (uint64_t i = 0; i < server->table_size; i++) {
        const struct job_request *write = server->table[i];
        if (write && write->opcode == JOB_WRITE && is_same_inode(write->file, file) &&
            offset < write->offset + write->bytes && write->offset < offset + bytes)
            return true;
    }
    return false;
}

/* ---- connections ---- */

/* Shuts the gates of the client's writes. A killed client cannot do so, and another process may
 * write to the same place next. */
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

/* Requests in flight need the client's window and files until release_client(). */
static void drop_client(struct job_server *server, struct job_client *client)
{
    if (client->gone)
        return;
    client->gone = true;
    take_back(client);
    server->client_count--;
    if (!client->greeted)
        server->strangers--;
    job_outbox_clear(&client->peer.outbox);
    limejob_channel_close(&client->peer.channel); /* this also removes it from epoll */
    release_client(server, client);
}

static void unmap(struct job_server *server, const struct job_client *client)
{
    static struct limejob_packet packet;
    struct job_request *request = new_request(server, JOB_UNMAP, NULL, NULL);
    if (!request)
        job_server_fault("unmap a window: %s", strerror(ENOMEM));
    limejob_request(&packet, JOB_UNMAP, 0);
    limejob_put_u32(&packet, client->window);
    send_command(server, request, &packet);
}

static void release_client(struct job_server *server, struct job_client *client)
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
            unref_file(server, client->opened[i].file);
    free(client->opened);
    client->opened = NULL;
    job_peer_drop(server, &client->peer);
}

static void throw_out(struct job_server *server, struct job_client *client, const char *why)
{
    job_log("client process %ld: dropped: %s", (long)client->pid, why);
    drop_client(server, client);
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

static void reply_to(struct job_server *server, struct job_client *client,
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
        drop_client(server, client);
}

static void answer_now(struct job_server *server, struct job_client *client,
                       const struct limejob_packet *request, int code, const char *text)
{
    static struct limejob_packet reply;
    char words[JOB_TEXT_MAX];
    snprintf(words, sizeof words, "%s", code && !text ? strerror(code) : text ? text : "");
    limefile_text_defuse(words, "");
    limejob_reply(&reply, request, code, words);
    reply_to(server, client, &reply);
}

/* ---- results of requests ---- */

static void put_result(const struct job_server *server, const struct job_request *request,
                       struct limejob_packet *reply)
{
    if (request->opcode == JOB_WINDOW) {
        limejob_put_u32(reply, (uint32_t)server->ranks);
        limejob_put_u32(reply, (uint32_t)server->hosts);
        limejob_put_u64(reply, server->stripe);
    } else if (request->opcode == JOB_OPEN) {
        limejob_put_u32(reply, request->file->id);
    } else if (is_move(request)) {
        limejob_put_u64(reply, request->bytes);
    }
}

static void answer_request(struct job_server *server, struct job_request *request)
{
    static struct limejob_packet reply;
    struct limejob_packet of = {.opcode = 0};
    of.opcode = request->client_opcode;
    of.tag = request->client_tag;
    limefile_text_defuse(request->text, ""); /* the text names files: make it valid UTF-8 */
    const char *text = request->text[0] ? request->text : strerror(request->code);
    limejob_reply(&reply, &of, request->code, text);
    if (!request->code)
        put_result(server, request, &reply);
    reply_to(server, request->client, &reply);
}

/* ---- files ---- */

static struct job_opened *find_opened(struct job_client *client, uint32_t id)
{
    for (size_t i = 0; i < client->opened_count; i++)
        if (client->opened[i].file->id == id)
            return &client->opened[i];
    return NULL;
}

static bool remember_opened(struct job_client *client, struct job_file *file)
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

/* ---- files: opened once on all ranks, shared by all clients ---- */

/* The caller keeps the descriptor, which is also sent to the ranks on this host. */
static void make_open(struct limejob_packet *packet, const struct job_file *file, int fd)
{
    limejob_request(packet, JOB_OPEN, 0);
    limejob_put_u32(packet, file->id);
    limejob_put_u32(packet, file->writing);
    limejob_put_opening(packet, &file->identity, file->path, file->root);
    packet->fd = fd;
}

/* Takes ownership of `wanted`, and opens it on all workers unless it is open. Returns NULL if
 * out of memory, or at the limit (*code EMFILE): a rank without a free descriptor would end the
 * job. */
static struct job_file *find_or_open(struct job_server *server, struct job_file *wanted, int fd,
                                     int *code)
{
    static struct limejob_packet packet;
    for (struct job_file *file = server->files; file; file = file->next)
        if (job_file_is_same(file, wanted)) {
            free(wanted);
            return file;
        }
    if (server->file_count >= server->files_most)
        *code = EMFILE;
    struct job_request *request =
        *code == EMFILE ? NULL : new_request(server, JOB_OPEN, NULL, NULL);
    if (!request) {
        free(wanted);
        return NULL;
    }
    wanted->id = ++server->last_file;
    wanted->next = server->files;
    server->files = request->file = wanted;
    server->file_count++;
    make_open(&packet, wanted, fd);
    send_command(server, request, &packet);
    return wanted;
}

/* Answers an open; a client that still exists gets the file. */
static void hand_over(struct job_server *server, struct job_request *request)
{
    struct job_file *file = request->file;
    bool use = !request->code && !request->client->gone;
    if (use && !remember_opened(request->client, file)) {
        request->code = ENOMEM;
        use = false;
    }
    answer_request(server, request);
    free_request(server, request);
    if (!use)
        unref_file(server, file);
}

static void open_container(struct job_server *server, struct job_client *client,
                           struct limejob_packet *packet)
{
    static struct limejob_opening wanted;
    char why[256] = "", text[JOB_TEXT_MAX];
    int code = job_opening_check(packet, &wanted, why, sizeof why);
    if (code) {
        snprintf(text, sizeof text, "%s: %.400s: %s", limejob_message_of(packet->opcode)->name,
                 wanted.path, why);
        answer_now(server, client, packet, code, text);
        return;
    }
    struct job_request *request = new_request(server, JOB_OPEN, client, packet);
    struct job_file *file =
        request ? job_file_new(&wanted, packet->opcode == LIMEJOB_OPEN_WRITE) : NULL;
    code = ENOMEM;
    if (file)
        file = find_or_open(server, file, packet->fd, &code);
    if (!file) {
        if (request)
            free_request(server, request);
        answer_now(server, client, packet, code, NULL);
        return;
    }
    file->refs++;
    request->file = file;
    if (file->open) {
        hand_over(server, request);
        return;
    }
    request->next = file->waiters;
    file->waiters = request;
}

static void forget_file(struct job_server *server, struct job_file *file)
{
    struct job_file **at = &server->files;
    while (*at != file)
        at = &(*at)->next;
    *at = file->next;
    server->file_count--;
}

static void finish_opening(struct job_server *server, struct job_request *opening)
{
    struct job_file *file = opening->file;
    struct job_request *waiter = file->waiters, *next;
    file->waiters = NULL;
    file->open = opening->code == 0;
    file->refs++; /* keeps the file until all waiters are answered */
    for (; waiter; waiter = next) {
        next = waiter->next;
        waiter->code = opening->code;
        memcpy(waiter->text, opening->text, sizeof waiter->text);
        hand_over(server, waiter);
    }
    unref_file(server, file);
}

static void unref_file(struct job_server *server, struct job_file *file)
{
    static struct limejob_packet packet;
    if (--file->refs > 0)
        return;
    forget_file(server, file);
    if (!file->open) {
        free(file);
        return;
    }
    struct job_request *request = new_request(server, JOB_CLOSE, NULL, NULL);
    if (!request)
        job_server_fault("%s: close: %s", file->path, strerror(ENOMEM));
    request->file = file;
    limejob_request(&packet, JOB_CLOSE, 0);
    limejob_put_u32(&packet, file->id);
    send_command(server, request, &packet);
}

static void open_file(struct job_server *server, struct job_client *client,
                      struct limejob_packet *packet)
{
    size_t count = client->in_flight;
    for (size_t i = 0; i < client->opened_count; i++)
        count += client->opened[i].count;
    if (count >= JOB_FILES_MAX)
        answer_now(server, client, packet, EMFILE, NULL);
    else
        open_container(server, client, packet);
}

static void close_file(struct job_server *server, struct job_client *client,
                       struct limejob_packet *packet)
{
    struct job_opened *opened = find_opened(client, limejob_get_u32(packet));
    if (!opened) {
        answer_now(server, client, packet, EBADF, "close: no such file is open");
        return;
    }
    struct job_file *file = opened->file;
    if (--opened->count == 0)
        *opened = client->opened[--client->opened_count];
    answer_now(server, client, packet, 0, NULL);
    unref_file(server, file);
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

/* A READ or WRITE request. */
struct move {
    uint32_t file;
    uint64_t offset, bytes, at;
    uint64_t gate, until; /* of a WRITE; UINT64_MAX and 0: none */
    uint32_t uid;
};

static struct move parse_move(struct limejob_packet *packet)
{
    struct move move = {.file = limejob_get_u32(packet)};
    move.offset = limejob_get_u64(packet);
    move.bytes = limejob_get_u64(packet);
    move.at = limejob_get_u64(packet);
    bool writing = packet->opcode == LIMEJOB_WRITE;
    move.gate = writing ? limejob_get_u64(packet) : UINT64_MAX;
    move.until = writing ? limejob_get_u64(packet) : 0;
    move.uid = writing ? limejob_get_u32(packet) : 0;
    return move;
}

/* Checks the range of the window. Returns NULL, or a message and sets *code. */
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
    if (move->uid == UINT32_MAX)
        return "no user has that uid";
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
        return is_inside(move->offset, move->bytes, (uint64_t)file->identity.size)
                   ? NULL
                   : "outside of the file";
    *code = EFBIG;
    if (!is_inside(move->offset, move->bytes, INT64_MAX))
        return "no file can be that long";
    *code = EBUSY;
    return is_being_written(server, file, move->offset, move->bytes)
               ? "that part of the file is being written"
               : NULL;
}

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
    answer_now(server, client, packet, EBADF, text);
    return NULL;
}

static struct job_request *begin_request(struct job_server *server, struct job_client *client,
                                         const struct limejob_packet *packet, uint16_t opcode,
                                         struct job_file *file)
{
    struct job_request *request = new_request(server, opcode, client, packet);
    if (!request) {
        answer_now(server, client, packet, ENOMEM, NULL);
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
        limejob_put_u32(&command, request->uid);
    }
    send_command(server, request, &command);
}

static void move_bytes(struct job_server *server, struct job_client *client,
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
        answer_now(server, client, packet, code, text);
        return;
    }
    uint16_t opcode = packet->opcode == LIMEJOB_READ ? JOB_READ : JOB_WRITE;
    struct job_request *request = begin_request(server, client, packet, opcode, file);
    if (!request)
        return;
    request->offset = move.offset;
    request->bytes = move.bytes;
    request->at = move.at;
    request->gate = move.gate;
    request->until = move.until;
    request->uid = move.uid;
    request->next = client->moves;
    client->moves = request;
    send_move(server, request);
}

static void finish_sync(struct job_request *request)
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
    struct job_request *request =
        file ? begin_request(server, client, packet, JOB_SYNC, file) : NULL;
    if (!request)
        return;
    limejob_request(&command, JOB_SYNC, 0);
    limejob_put_u32(&command, file->id);
    send_command(server, request, &command);
}

/* ---- all workers have replied ---- */

static void finish_window(struct job_server *server, struct job_request *request)
{
    if (request->code)
        request->client->last_words = true;
    answer_request(server, request);
}

static void unlink_move(struct job_client *client, struct job_request *request)
{
    struct job_request **at = &client->moves;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
}

static void check_all_moved(struct job_request *request)
{
    if (request->code || request->moved == request->bytes)
        return;
    request->code = EIO;
    snprintf(request->text, sizeof request->text, "%s: the ranks have %s %llu bytes of %llu",
             request->file->path, request->opcode == JOB_WRITE ? "written" : "read",
             (unsigned long long)request->moved, (unsigned long long)request->bytes);
}

/* Finishes a read, a write or a sync. */
static void finish_io(struct job_server *server, struct job_request *request)
{
    if (request->opcode == JOB_SYNC) {
        finish_sync(request);
    } else {
        check_all_moved(request);
        unlink_move(request->client, request);
    }
    job_counters_end(&server->counters, request->opcode, request->code ? 0 : request->bytes,
                     request->code == 0);
    answer_request(server, request);
    unref_file(server, request->file);
}

static void finish(struct job_server *server, struct job_request *request)
{
    switch (request->opcode) {
    case JOB_WINDOW:
        finish_window(server, request);
        break;
    case JOB_OPEN:
        finish_opening(server, request);
        break;
    case JOB_READ:
    case JOB_WRITE:
    case JOB_SYNC:
        finish_io(server, request);
        break;
    case JOB_CLOSE:
        free(request->file);
        break;
    }
    free_request(server, request);
}

/* If several ranks have failed, the first error with a message is reported. */
static void take_reply(struct job_request *request, struct limejob_packet *packet)
{
    char text[sizeof request->text];
    int code = -limejob_get_code(packet, text, sizeof text);
    if (!code && is_move(request))
        request->moved += limejob_get_u64(packet);
    if (packet->broken && !code)
        code = EPROTO;
    if (code && !(request->code && request->text[0])) {
        request->code = code;
        memcpy(request->text, text, sizeof text);
    }
    request->waiting--;
}

void job_request_reply(struct job_server *server, int rank, struct limejob_packet *packet)
{
    struct job_request *request =
        packet->tag < server->table_size ? server->table[packet->tag] : NULL;
    if (!request || packet->flags != LIMEJOB_REPLY || packet->opcode != request->opcode ||
        request->waiting == 0)
        job_server_fault("rank %d on %s: replied to nothing", rank, server->places[rank].host);
    take_reply(request, packet);
    if (request->waiting == 0)
        finish(server, request);
}

/* ---- HELLO ---- */

static void refuse_hello(struct job_server *server, struct job_client *client,
                         const struct limejob_packet *packet, int code, const char *text)
{
    client->last_words = true;
    answer_now(server, client, packet, code, text);
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
    struct job_request *request = new_request(server, JOB_WINDOW, client, packet);
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
    send_command(server, request, &command);
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
    reply_to(server, client, &reply);
}

/* ---- STATUS, STOP ---- */

static void status(struct job_server *server, struct job_client *client,
                   const struct limejob_packet *packet)
{
    static struct limejob_packet reply;
    char *text = job_status_text(server);
    if (!text) {
        answer_now(server, client, packet, ENOMEM, NULL);
        return;
    }
    limejob_reply(&reply, packet, 0, NULL);
    limejob_put_bytes(&reply, text, strlen(text));
    free(text);
    reply_to(server, client, &reply);
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
        move_bytes(server, client, packet);
        break;
    case LIMEJOB_SYNC:
        sync_file(server, client, packet);
        break;
    case LIMEJOB_STATUS:
        status(server, client, packet);
        break;
    case LIMEJOB_STOP:
        answer_now(server, client, packet, 0, NULL);
        server->wants_end = true;
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
        answer_now(server, client, packet, ENOSYS, "this job does not know that message");
    else if (packet->bytes < message->min_bytes || packet->bytes > message->max_bytes)
        throw_out(server, client, "a message of a wrong length");
    else if (!client->greeted)
        hello(server, client, packet);
    else if (server->ending && packet->opcode != LIMEJOB_STOP &&
             packet->opcode != LIMEJOB_STATUS)
        answer_now(server, client, packet, ESHUTDOWN, "the job is ending");
    else if (client->in_flight >= LIMEJOB_IN_FLIGHT_MAX)
        answer_now(server, client, packet, EAGAIN, "too many requests in flight");
    else
        obey(server, client, packet);
}

static void refuse_version(struct job_server *server, struct job_client *client,
                           struct limejob_packet *packet)
{
    char text[JOB_TEXT_MAX];
    snprintf(text, sizeof text, "limefs-io speaks version %d of the protocol, the client %d",
             LIMEJOB_VERSION, client->peer.channel.version);
    packet->opcode = LIMEJOB_HELLO; /* the reply that any version expects */
    refuse_hello(server, client, packet, EPROTONOSUPPORT, text);
}

/* Handles one packet. Returns false if there is no other packet, or the client is gone. */
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
        drop_client(server, client);
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
    if (events & EPOLLHUP) { /* the client has hung up: even packets it has sent are obsolete */
        drop_client(server, client);
        return;
    }
    if (events & EPOLLOUT && (job_outbox_flush(&peer->outbox, peer->channel.fd) < 0 ||
                              (client->last_words && !peer->outbox.first))) {
        drop_client(server, client);
        return;
    }
    if (client->last_words && events & (EPOLLERR | EPOLLIN)) {
        drop_client(server, client);
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

/* If no descriptor is free, a pending connection would wake epoll in a loop. So this closes a
 * spare descriptor, accepts the connection, and hangs up. */
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
    if (!events) { /* the first call opens the spare descriptor */
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
