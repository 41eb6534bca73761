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
    HELLO_US = 10 * 1000 * 1000, /* time limit for HELLO */
    PACKETS_PER_EVENT = 16,      /* packets of one client before other peers have their turn */
    ACCEPTS_PER_EVENT = 32,
};

/* Frees the client if it is closed and has no request in flight; otherwise does nothing. */
static void release_client(struct job_server *, struct job_client *);

/* Drops one reference to the file. If it was the last, closes the file on all ranks. */
static void unref_file(struct job_server *, struct job_file *);

/* ---- commands to all workers ---- */

/* Finds a free index of server->requests. Returns false if out of memory. */
static bool reserve_slot(struct job_server *server, uint64_t *slot)
{
    for (uint64_t i = 0; i < server->request_slots; i++)
        if (!server->requests[i]) {
            *slot = i;
            return true;
        }
    uint64_t size = server->request_slots * 2 + 64;
    struct job_request **table = realloc(server->requests, size * sizeof(*table));
    if (!table)
        return false;
    memset(table + server->request_slots, 0, (size - server->request_slots) * sizeof(*table));
    *slot = server->request_slots;
    server->requests = table;
    server->request_slots = size;
    return true;
}

/* Creates a request for the client's packet; for the server itself if both are NULL. Returns
 * NULL if out of memory. */
static struct job_request *new_request(struct job_server *server, uint16_t opcode,
                                       struct job_client *client,
                                       const struct limejob_packet *packet)
{
    struct job_request *request = calloc(1, sizeof *request);
    if (!request || !reserve_slot(server, &request->slot)) {
        free(request);
        return NULL;
    }
    server->requests[request->slot] = request;
    server->requests_in_flight++;
    request->opcode = opcode;
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
    server->requests[request->slot] = NULL;
    server->requests_in_flight--;
    free(request);
    if (client) {
        client->in_flight--;
        release_client(server, client);
    }
}

/* Sends a command to all workers; only those on this host get packet->fd, which stays open. */
static void send_command(struct job_server *server, struct job_request *request,
                         struct limejob_packet *packet)
{
    int fd = packet->fd;
    packet->opcode = request->opcode;
    packet->flags = 0;
    packet->tag = request->slot;
    request->pending_replies = server->ranks;
    for (int i = 0; i < server->ranks; i++) {
        packet->fd = server->locations[i].is_local ? fd : -1;
        int err = job_peer_send(server, &server->workers[i]->peer, packet);
        if (err)
            job_server_abort("rank %d on %s: send a command: %s", i, server->locations[i].host,
                             strerror(-err));
    }
    packet->fd = fd;
}

static bool is_transfer(const struct job_request *request)
{
    return request->opcode == JOB_READ || request->opcode == JOB_WRITE;
}

static bool is_same_inode(const struct job_file *a, const struct job_file *b)
{
    return limefile_identity_same_file(&a->identity, &b->identity);
}

static bool range_is_being_written(const struct job_server *server, const struct job_file *file,
                                   uint64_t offset, uint64_t bytes)
{
    for (uint64_t i = 0; i < server->request_slots; i++) {
        const struct job_request *write = server->requests[i];
        if (write && write->opcode == JOB_WRITE && is_same_inode(write->file, file) &&
            offset < write->offset + write->bytes && write->offset < offset + bytes)
            return true;
    }
    return false;
}

/* ---- connections ---- */

/* Sets the fences of the client's writes in flight: a client that was killed cannot do so.
 * Otherwise a rank could overwrite what another process writes to the same range later. */
static void cancel_writes(const struct job_client *client)
{
    limejob_fence fence;
    limejob_fence_set(&fence);
    for (const struct job_request *write = client->transfers; write; write = write->next)
        if (write->opcode == JOB_WRITE && write->fence_offset != UINT64_MAX &&
            pwrite(client->window_fd, &fence, sizeof fence, (off_t)write->fence_offset) < 0)
            job_log("client process %ld: cannot cancel its writes: %s", (long)client->pid,
                    strerror(errno));
}

/* Closes the connection. The window and files stay open for requests in flight. */
static void drop_client(struct job_server *server, struct job_client *client)
{
    if (client->is_closed)
        return;
    client->is_closed = true;
    cancel_writes(client);
    server->client_count--;
    if (!client->has_greeted)
        server->unauthenticated--;
    job_outbox_clear(&client->peer.outbox);
    limejob_channel_close(&client->peer.channel); /* this also removes it from epoll */
    release_client(server, client);
}

static void unmap_client_window(struct job_server *server, const struct job_client *client)
{
    static struct limejob_packet packet;
    struct job_request *request = new_request(server, JOB_UNMAP, NULL, NULL);
    if (!request)
        job_server_abort("unmap a window: %s", strerror(ENOMEM));
    limejob_request_init(&packet, JOB_UNMAP, 0);
    limejob_put_u32(&packet, client->window);
    send_command(server, request, &packet);
}

static void release_client(struct job_server *server, struct job_client *client)
{
    if (!client->is_closed || client->in_flight || client->peer.is_dropped)
        return;
    struct job_client **at = &server->clients;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    if (client->window)
        unmap_client_window(server, client);
    if (client->window_fd >= 0)
        close(client->window_fd);
    client->window_fd = -1;
    for (size_t i = 0; i < client->file_count; i++)
        for (unsigned k = 0; k < client->files[i].opens; k++)
            unref_file(server, client->files[i].file);
    free(client->files);
    client->files = NULL;
    job_peer_drop(server, &client->peer);
}

static void reject_client(struct job_server *server, struct job_client *client,
                          const char *reason)
{
    job_log("client process %ld: dropped: %s", (long)client->pid, reason);
    drop_client(server, client);
}

void job_clients_check_timeouts(struct job_server *server)
{
    int64_t now = job_now_us();
    struct job_client *next;
    for (struct job_client *client = server->clients; client; client = next) {
        next = client->next;
        if (!client->has_greeted && !client->is_closed && now - client->connected_us > HELLO_US)
            reject_client(server, client, "no HELLO in 10 seconds");
    }
}

/* May drop the client, which is freed after the current events are handled. */
static void send_reply(struct job_server *server, struct job_client *client,
                       const struct limejob_packet *reply)
{
    if (client->is_closed)
        return;
    if (client->peer.outbox.bytes > JOB_OUTBOX_MAX) {
        reject_client(server, client, "does not read its replies");
        return;
    }
    int err = job_peer_send(server, &client->peer, reply);
    if (err || (client->closes_after_flush && !client->peer.outbox.first))
        drop_client(server, client);
}

/* text: the message; NULL: that of strerror(code). */
static void reply_at_once(struct job_server *server, struct job_client *client,
                          const struct limejob_packet *request, int code, const char *text)
{
    static struct limejob_packet reply;
    char message[JOB_TEXT_MAX];
    snprintf(message, sizeof message, "%s", code && !text ? strerror(code) : text ? text : "");
    limefile_text_sanitize(message, "");
    limejob_reply_init(&reply, request, code, message);
    send_reply(server, client, &reply);
}

/* ---- results of requests ---- */

static void append_result(const struct job_server *server, const struct job_request *request,
                          struct limejob_packet *reply)
{
    if (request->opcode == JOB_WINDOW) {
        limejob_put_u32(reply, (uint32_t)server->ranks);
        limejob_put_u32(reply, (uint32_t)server->hosts);
        limejob_put_u64(reply, server->stripe);
    } else if (request->opcode == JOB_OPEN) {
        limejob_put_u32(reply, request->file->id);
        if (request->file->for_writing)
            limejob_put_u32(reply, request->file->io == LIMEJOB_IO_COLLECTIVE);
    } else if (is_transfer(request)) {
        limejob_put_u64(reply, request->bytes);
    }
}

static void reply_to_request(struct job_server *server, struct job_request *request)
{
    static struct limejob_packet reply;
    struct limejob_packet to = {.opcode = request->client_opcode, .tag = request->client_tag};
    limefile_text_sanitize(request->text, ""); /* the text names files: make it valid UTF-8 */
    const char *text = request->text[0] ? request->text : strerror(request->code);
    limejob_reply_init(&reply, &to, request->code, text);
    if (!request->code)
        append_result(server, request, &reply);
    send_reply(server, request->client, &reply);
}

static struct job_client_file *find_client_file(struct job_client *client, uint32_t id)
{
    for (size_t i = 0; i < client->file_count; i++)
        if (client->files[i].file->id == id)
            return &client->files[i];
    return NULL;
}

static bool add_client_file(struct job_client *client, struct job_file *file)
{
    struct job_client_file *opened = find_client_file(client, file->id);
    if (opened) {
        opened->opens++;
        return true;
    }
    opened = realloc(client->files, (client->file_count + 1) * sizeof *opened);
    if (!opened)
        return false;
    client->files = opened;
    opened[client->file_count++] = (struct job_client_file){file, 1, file->sync_failures};
    return true;
}

/* ---- files: opened once on all ranks, shared by all clients ---- */

/* The packet contains fd; the caller closes fd. */
static void format_open_command(struct limejob_packet *packet, const struct job_file *file,
                                int fd)
{
    limejob_request_init(packet, JOB_OPEN, 0);
    limejob_put_u32(packet, file->id);
    limejob_put_u32(packet, file->for_writing);
    limejob_put_u32(packet, file->io);
    limejob_put_open_request(packet, &file->identity, file->path, file->root);
    packet->fd = fd;
}

/* Takes ownership of `requested`. Returns the same file if server->files has it; else begins to
 * open `requested` on all workers. Returns NULL if out of memory; or, with *code EMFILE, if
 * max_files files are open: a rank that runs out of descriptors would end the job. */
static struct job_file *find_or_open_file(struct job_server *server, struct job_file *requested,
                                          int fd, int *code)
{
    static struct limejob_packet packet;
    for (struct job_file *file = server->files; file; file = file->next)
        if (job_file_is_same(file, requested)) {
            free(requested);
            return file;
        }
    if (server->file_count >= server->max_files)
        *code = EMFILE;
    struct job_request *request =
        *code == EMFILE ? NULL : new_request(server, JOB_OPEN, NULL, NULL);
    if (!request) {
        free(requested);
        return NULL;
    }
    requested->id = ++server->last_file_id;
    requested->next = server->files;
    server->files = request->file = requested;
    server->file_count++;
    format_open_command(&packet, requested, fd);
    send_command(server, request, &packet);
    return requested;
}

/* Answers a client's open. If the open succeeded and the client is still connected, adds the
 * file to the client; otherwise drops the request's reference to the file. */
static void finish_client_open(struct job_server *server, struct job_request *request)
{
    struct job_file *file = request->file;
    bool is_usable = !request->code && !request->client->is_closed;
    if (is_usable && !add_client_file(request->client, file)) {
        request->code = ENOMEM;
        is_usable = false;
    }
    reply_to_request(server, request);
    free_request(server, request);
    if (!is_usable)
        unref_file(server, file);
}

static void start_client_open(struct job_server *server, struct job_client *client,
                              struct limejob_packet *packet)
{
    static struct limejob_open_request requested;
    char reason[256] = "", text[JOB_TEXT_MAX];
    int code = job_open_check(packet, &requested, reason, sizeof reason);
    if (code) {
        snprintf(text, sizeof text, "%s: %.400s: %s",
                 limejob_find_message(packet->opcode)->name, requested.path, reason);
        reply_at_once(server, client, packet, code, text);
        return;
    }
    struct job_request *request = new_request(server, JOB_OPEN, client, packet);
    struct job_file *file =
        request ? job_file_create(&requested, packet->opcode == LIMEJOB_OPEN_WRITE,
                                  server->options->io, packet->fd)
                : NULL;
    code = ENOMEM;
    if (file)
        file = find_or_open_file(server, file, packet->fd, &code);
    if (!file) {
        if (request)
            free_request(server, request);
        reply_at_once(server, client, packet, code, NULL);
        return;
    }
    file->refs++;
    request->file = file;
    if (file->is_open) {
        finish_client_open(server, request);
        return;
    }
    request->next = file->waiters;
    file->waiters = request;
}

static void remove_file(struct job_server *server, struct job_file *file)
{
    struct job_file **at = &server->files;
    while (*at != file)
        at = &(*at)->next;
    *at = file->next;
    server->file_count--;
}

static void finish_open_command(struct job_server *server, struct job_request *opening)
{
    struct job_file *file = opening->file;
    struct job_request *waiter = file->waiters, *next;
    file->waiters = NULL;
    file->is_open = opening->code == 0;
    file->refs++; /* keeps the file until all waiters are answered */
    for (; waiter; waiter = next) {
        next = waiter->next;
        waiter->code = opening->code;
        memcpy(waiter->text, opening->text, sizeof waiter->text);
        finish_client_open(server, waiter);
    }
    unref_file(server, file);
}

static void unref_file(struct job_server *server, struct job_file *file)
{
    static struct limejob_packet packet;
    if (--file->refs > 0)
        return;
    remove_file(server, file);
    if (!file->is_open) {
        free(file);
        return;
    }
    struct job_request *request = new_request(server, JOB_CLOSE, NULL, NULL);
    if (!request)
        job_server_abort("%s: close: %s", file->path, strerror(ENOMEM));
    request->file = file;
    limejob_request_init(&packet, JOB_CLOSE, 0);
    limejob_put_u32(&packet, file->id);
    send_command(server, request, &packet);
}

static void handle_open(struct job_server *server, struct job_client *client,
                        struct limejob_packet *packet)
{
    size_t count = client->in_flight;
    for (size_t i = 0; i < client->file_count; i++)
        count += client->files[i].opens;
    if (count >= JOB_FILES_MAX)
        reply_at_once(server, client, packet, EMFILE, NULL);
    else
        start_client_open(server, client, packet);
}

static void handle_close(struct job_server *server, struct job_client *client,
                         struct limejob_packet *packet)
{
    struct job_client_file *opened = find_client_file(client, limejob_get_u32(packet));
    if (!opened) {
        reply_at_once(server, client, packet, EBADF, "close: file is not open");
        return;
    }
    struct job_file *file = opened->file;
    if (--opened->opens == 0)
        *opened = client->files[--client->file_count];
    reply_at_once(server, client, packet, 0, NULL);
    unref_file(server, file);
}

/* ---- READ, WRITE, SYNC ---- */

static bool overlaps_transfer(const struct job_client *client, uint64_t at, uint64_t bytes)
{
    for (const struct job_request *transfer = client->transfers; transfer;
         transfer = transfer->next)
        if (at < transfer->window_offset + transfer->bytes &&
            transfer->window_offset < at + bytes)
            return true;
    return false;
}

static bool range_is_inside(uint64_t from, uint64_t bytes, uint64_t all)
{
    return bytes <= all && from <= all - bytes;
}

/* A READ or WRITE request. */
struct transfer {
    uint32_t file;
    uint64_t offset, bytes, window_offset;
    uint64_t fence_offset, deadline; /* of a WRITE; UINT64_MAX and 0: none */
    uint32_t uid;
};

static struct transfer parse_transfer(struct limejob_packet *packet)
{
    struct transfer transfer = {.file = limejob_get_u32(packet)};
    transfer.offset = limejob_get_u64(packet);
    transfer.bytes = limejob_get_u64(packet);
    transfer.window_offset = limejob_get_u64(packet);
    bool writing = packet->opcode == LIMEJOB_WRITE;
    transfer.fence_offset = writing ? limejob_get_u64(packet) : UINT64_MAX;
    transfer.deadline = writing ? limejob_get_u64(packet) : 0;
    transfer.uid = writing ? limejob_get_u32(packet) : 0;
    return transfer;
}

/* Checks ranges in the window, and the uid. Returns NULL or a message; its errno is *code. */
static const char *check_window_range(const struct job_client *client,
                                      const struct transfer *transfer, int *code)
{
    *code = EINVAL;
    if (!client->window)
        return "no window";
    if (transfer->bytes == 0 || transfer->bytes > LIMEJOB_READ_MAX)
        return "length is 0 or more than 1 GiB";
    if (!range_is_inside(transfer->window_offset, transfer->bytes, client->window_bytes))
        return "outside the window";
    if (transfer->fence_offset != UINT64_MAX &&
        (transfer->fence_offset % sizeof(uint32_t) ||
         !range_is_inside(transfer->fence_offset, sizeof(uint32_t), client->window_bytes)))
        return "the fence is not aligned, or outside the window";
    if (transfer->uid == UINT32_MAX)
        return "invalid uid";
    *code = EBUSY;
    if (overlaps_transfer(client, transfer->window_offset, transfer->bytes))
        return "range of the window is in use by another request";
    return NULL;
}

/* Checks the range of the file; returns in the same way as check_window_range(). */
static const char *check_file_range(const struct job_server *server,
                                    const struct job_file *file,
                                    const struct transfer *transfer, int *code)
{
    *code = ENXIO;
    if (!file->for_writing)
        return range_is_inside(transfer->offset, transfer->bytes, (uint64_t)file->identity.size)
                   ? NULL
                   : "outside of the file";
    *code = EFBIG;
    if (!range_is_inside(transfer->offset, transfer->bytes, INT64_MAX))
        return "beyond the largest possible file size";
    *code = EBUSY;
    return range_is_being_written(server, file, transfer->offset, transfer->bytes)
               ? "range of the file is being written"
               : NULL;
}

static struct job_file *find_transfer_file(struct job_server *server, struct job_client *client,
                                           const struct limejob_packet *packet, uint32_t id)
{
    char text[128];
    bool writing = packet->opcode == LIMEJOB_WRITE || packet->opcode == LIMEJOB_SYNC;
    struct job_client_file *opened = find_client_file(client, id);
    if (opened && opened->file->for_writing == writing)
        return opened->file;
    snprintf(text, sizeof text, "%s: %s", limejob_find_message(packet->opcode)->name,
             !opened   ? "file is not open"
             : writing ? "the file is not open for writing"
                       : "the file is open for writing");
    reply_at_once(server, client, packet, EBADF, text);
    return NULL;
}

static struct job_request *create_file_request(struct job_server *server,
                                               struct job_client *client,
                                               const struct limejob_packet *packet,
                                               uint16_t opcode, struct job_file *file)
{
    struct job_request *request = new_request(server, opcode, client, packet);
    if (!request) {
        reply_at_once(server, client, packet, ENOMEM, NULL);
        return NULL;
    }
    request->file = file;
    file->refs++;
    job_counters_begin(&server->counters, opcode);
    return request;
}

static void send_transfer_command(struct job_server *server, struct job_request *request)
{
    static struct limejob_packet command;
    limejob_request_init(&command, request->opcode, 0);
    limejob_put_u32(&command, request->file->id);
    limejob_put_u32(&command, request->client->window);
    limejob_put_u64(&command, request->offset);
    limejob_put_u64(&command, request->bytes);
    limejob_put_u64(&command, request->window_offset);
    if (request->opcode == JOB_WRITE) {
        limejob_put_u64(&command, request->fence_offset);
        limejob_put_u64(&command, request->deadline);
        limejob_put_u32(&command, request->uid);
    }
    send_command(server, request, &command);
}

static void handle_transfer(struct job_server *server, struct job_client *client,
                            struct limejob_packet *packet)
{
    int code;
    char text[128];
    struct transfer transfer = parse_transfer(packet);
    const char *reason = check_window_range(client, &transfer, &code);
    struct job_file *file = NULL;
    if (!reason) {
        file = find_transfer_file(server, client, packet, transfer.file);
        if (!file)
            return;
        reason = check_file_range(server, file, &transfer, &code);
    }
    if (reason) {
        snprintf(text, sizeof text, "%s: %s", limejob_find_message(packet->opcode)->name,
                 reason);
        reply_at_once(server, client, packet, code, text);
        return;
    }
    uint16_t opcode = packet->opcode == LIMEJOB_READ ? JOB_READ : JOB_WRITE;
    struct job_request *request = create_file_request(server, client, packet, opcode, file);
    if (!request)
        return;
    request->offset = transfer.offset;
    request->bytes = transfer.bytes;
    request->window_offset = transfer.window_offset;
    request->fence_offset = transfer.fence_offset;
    request->deadline = transfer.deadline;
    request->uid = transfer.uid;
    request->next = client->transfers;
    client->transfers = request;
    send_transfer_command(server, request);
}

/* Stores a failure for the file's other clients; or reports one stored for this client. */
static void finish_sync(struct job_request *request)
{
    struct job_file *file = request->file;
    struct job_client_file *opened = find_client_file(request->client, file->id);
    if (request->code) {
        file->sync_failures++;
        file->sync_error = request->code;
        memcpy(file->sync_error_text, request->text, sizeof file->sync_error_text);
    } else if (opened && opened->reported_failures != file->sync_failures) {
        request->code = file->sync_error;
        memcpy(request->text, file->sync_error_text, sizeof request->text);
    }
    if (opened)
        opened->reported_failures = file->sync_failures;
}

static void handle_sync(struct job_server *server, struct job_client *client,
                        struct limejob_packet *packet)
{
    static struct limejob_packet command;
    struct job_file *file = find_transfer_file(server, client, packet, limejob_get_u32(packet));
    struct job_request *request =
        file ? create_file_request(server, client, packet, JOB_SYNC, file) : NULL;
    if (!request)
        return;
    limejob_request_init(&command, JOB_SYNC, 0);
    limejob_put_u32(&command, file->id);
    send_command(server, request, &command);
}

/* ---- all workers have replied ---- */

static void finish_window(struct job_server *server, struct job_request *request)
{
    if (request->code)
        request->client->closes_after_flush = true;
    reply_to_request(server, request);
}

static void remove_transfer(struct job_client *client, struct job_request *request)
{
    struct job_request **at = &client->transfers;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
}

static void check_bytes_moved(struct job_request *request)
{
    if (request->code || request->bytes_moved == request->bytes)
        return;
    request->code = EIO;
    snprintf(request->text, sizeof request->text, "%s: the ranks have %s %llu bytes of %llu",
             request->file->path, request->opcode == JOB_WRITE ? "written" : "read",
             (unsigned long long)request->bytes_moved, (unsigned long long)request->bytes);
}

/* Finishes a read, a write or a sync. */
static void finish_io(struct job_server *server, struct job_request *request)
{
    if (request->opcode == JOB_SYNC) {
        finish_sync(request);
    } else {
        check_bytes_moved(request);
        remove_transfer(request->client, request);
    }
    job_counters_end(&server->counters, request->opcode, request->code ? 0 : request->bytes,
                     request->code == 0);
    reply_to_request(server, request);
    unref_file(server, request->file);
}

static void finish_request(struct job_server *server, struct job_request *request)
{
    switch (request->opcode) {
    case JOB_WINDOW:
        finish_window(server, request);
        break;
    case JOB_OPEN:
        finish_open_command(server, request);
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

/* Stores a rank's result. If several ranks fail, keeps the first error that has a message. */
static void merge_reply(struct job_request *request, struct limejob_packet *packet)
{
    char text[sizeof request->text];
    int code = -limejob_get_code(packet, text, sizeof text);
    if (!code && is_transfer(request))
        request->bytes_moved += limejob_get_u64(packet);
    if (!code && request->opcode == JOB_OPEN)
        request->file->io = (enum limejob_io)limejob_get_u32(packet);
    if (packet->broken && !code)
        code = EPROTO;
    if (code && !(request->code && request->text[0])) {
        request->code = code;
        memcpy(request->text, text, sizeof text);
    }
    request->pending_replies--;
}

void job_request_reply(struct job_server *server, int rank, struct limejob_packet *packet)
{
    struct job_request *request =
        packet->tag < server->request_slots ? server->requests[packet->tag] : NULL;
    if (!request || packet->flags != LIMEJOB_REPLY || packet->opcode != request->opcode ||
        request->pending_replies == 0)
        job_server_abort("rank %d on %s: unexpected reply", rank, server->locations[rank].host);
    merge_reply(request, packet);
    if (request->pending_replies == 0)
        finish_request(server, request);
}

/* ---- HELLO ---- */

static void reject_hello(struct job_server *server, struct job_client *client,
                         const struct limejob_packet *packet, int code, const char *text)
{
    client->closes_after_flush = true;
    reply_at_once(server, client, packet, code, text);
}

static void map_window(struct job_server *server, struct job_client *client,
                       struct limejob_packet *packet, uint64_t bytes)
{
    static struct limejob_packet command;
    int code = -limejob_window_check(packet->fd, bytes);
    const char *reason = NULL;
    if (code == EPERM)
        reason =
            "the window is not a memfd of ordinary pages that is sealed with F_SEAL_SHRINK";
    else if (code == EINVAL)
        reason = "the window does not have the stated length";
    if (code) {
        reject_hello(server, client, packet, code, reason);
        return;
    }
    client->window_fd = fcntl(packet->fd, F_DUPFD_CLOEXEC, 0);
    if (client->window_fd < 0) {
        reject_hello(server, client, packet, errno, NULL);
        return;
    }
    struct job_request *request = new_request(server, JOB_WINDOW, client, packet);
    if (!request) {
        reject_hello(server, client, packet, ENOMEM, NULL);
        return;
    }
    client->window = ++server->last_window_id;
    client->window_bytes = bytes;
    limejob_request_init(&command, JOB_WINDOW, 0);
    limejob_put_u32(&command, client->window);
    limejob_put_u64(&command, bytes);
    command.fd = packet->fd;
    send_command(server, request, &command);
}

static void handle_hello(struct job_server *server, struct job_client *client,
                         struct limejob_packet *packet)
{
    static struct limejob_packet reply;
    uint64_t bytes = limejob_get_u64(packet);
    client->has_greeted = true;
    server->unauthenticated--;
    if (packet->fd >= 0) {
        map_window(server, client, packet, bytes);
        return;
    }
    if (bytes) {
        reject_hello(server, client, packet, EINVAL, "window length without a window");
        return;
    }
    limejob_reply_init(&reply, packet, 0, NULL);
    limejob_put_u32(&reply, (uint32_t)server->ranks);
    limejob_put_u32(&reply, (uint32_t)server->hosts);
    limejob_put_u64(&reply, server->stripe);
    send_reply(server, client, &reply);
}

static void handle_status(struct job_server *server, struct job_client *client,
                          const struct limejob_packet *packet)
{
    static struct limejob_packet reply;
    char *text = job_status_json(server);
    if (!text) {
        reply_at_once(server, client, packet, ENOMEM, NULL);
        return;
    }
    limejob_reply_init(&reply, packet, 0, NULL);
    limejob_put_bytes(&reply, text, strlen(text));
    free(text);
    send_reply(server, client, &reply);
}

/* ---- packets ---- */

static void handle_request(struct job_server *server, struct job_client *client,
                           struct limejob_packet *packet)
{
    switch (packet->opcode) {
    case LIMEJOB_OPEN:
    case LIMEJOB_OPEN_WRITE:
        handle_open(server, client, packet);
        break;
    case LIMEJOB_CLOSE:
        handle_close(server, client, packet);
        break;
    case LIMEJOB_READ:
    case LIMEJOB_WRITE:
        handle_transfer(server, client, packet);
        break;
    case LIMEJOB_SYNC:
        handle_sync(server, client, packet);
        break;
    case LIMEJOB_STATUS:
        handle_status(server, client, packet);
        break;
    case LIMEJOB_STOP:
        reply_at_once(server, client, packet, 0, NULL);
        server->end_requested = true;
        break;
    default:
        reject_client(server, client, "second HELLO");
    }
}

static void check_packet(struct job_server *server, struct job_client *client,
                         struct limejob_packet *packet)
{
    const struct limejob_message *message = limejob_find_message(packet->opcode);
    if (packet->flags)
        reject_client(server, client, "unexpected reply");
    else if (!client->has_greeted && packet->opcode != LIMEJOB_HELLO)
        reject_client(server, client, "first message is not HELLO");
    else if (!message)
        reply_at_once(server, client, packet, ENOSYS, "unknown message");
    else if (packet->bytes < message->min_bytes || packet->bytes > message->max_bytes)
        reject_client(server, client, "message has a wrong length");
    else if (!client->has_greeted)
        handle_hello(server, client, packet);
    else if (server->is_ending && packet->opcode != LIMEJOB_STOP &&
             packet->opcode != LIMEJOB_STATUS)
        reply_at_once(server, client, packet, ESHUTDOWN, "the job is ending");
    else if (client->in_flight >= LIMEJOB_IN_FLIGHT_MAX)
        reply_at_once(server, client, packet, EAGAIN, "too many requests in flight");
    else
        handle_request(server, client, packet);
}

static void reject_version(struct job_server *server, struct job_client *client,
                           struct limejob_packet *packet)
{
    char text[JOB_TEXT_MAX];
    snprintf(text, sizeof text, "limefs-io has protocol version %d, the client %d",
             LIMEJOB_VERSION, client->peer.channel.version);
    packet->opcode = LIMEJOB_HELLO; /* any version understands a reply to it */
    reject_hello(server, client, packet, EPROTONOSUPPORT, text);
}

/* Receives and handles one packet. Returns false if no other packet may be read. */
static bool receive_packet(struct job_server *server, struct job_client *client)
{
    static struct limejob_packet packet;
    packet.fd = -1;
    int result = limejob_receive(&client->peer.channel, &packet, 0);
    if (result == 0)
        return false;
    if (result == 1)
        check_packet(server, client, &packet);
    else if (result == -EPIPE)
        drop_client(server, client);
    else if (result == -EPROTONOSUPPORT)
        reject_version(server, client, &packet);
    else
        reject_client(server, client,
                      result == -EMSGSIZE ? "packet is too long" : "not a valid packet");
    if (packet.fd >= 0)
        close(packet.fd);
    return result == 1 && !client->is_closed && !client->closes_after_flush;
}

static void handle_client_events(struct job_server *server, struct job_peer *peer,
                                 uint32_t events)
{
    struct job_client *client = (struct job_client *)peer;
    if (client->is_closed)
        return;
    if (events & EPOLLHUP) { /* the client has hung up: ignore even packets that it has sent */
        drop_client(server, client);
        return;
    }
    if (events & EPOLLOUT && (job_outbox_flush(&peer->outbox, peer->channel.fd) < 0 ||
                              (client->closes_after_flush && !peer->outbox.first))) {
        drop_client(server, client);
        return;
    }
    if (client->closes_after_flush && events & (EPOLLERR | EPOLLIN)) {
        drop_client(server, client);
        return;
    }
    for (int i = 0; i < PACKETS_PER_EVENT && events & (EPOLLIN | EPOLLERR); i++)
        if (!receive_packet(server, client))
            break;
}

static void add_client(struct job_server *server, int fd)
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
    client->peer.on_event = handle_client_events;
    client->pid = peer.pid;
    client->window_fd = -1;
    client->connected_us = job_now_us();
    if (job_peer_watch(server, &client->peer, fd) != 0) {
        close(fd);
        free(client);
        return;
    }
    client->next = server->clients;
    server->clients = client;
    server->client_count++;
    server->unauthenticated++;
}

/* If no descriptor is free, a pending connection would wake epoll in a loop. To prevent that,
 * closes a spare descriptor, accepts and closes the connection, and opens the spare again. */
static void reject_connection(int listener)
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
    if (!events) { /* the first call: reject_connection() opens the spare descriptor */
        reject_connection(-1);
        return;
    }
    for (int i = 0; i < ACCEPTS_PER_EVENT; i++) {
        int fd = accept4(peer->channel.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE))
            reject_connection(peer->channel.fd);
        if (fd < 0)
            break;
        add_client(server, fd);
    }
}
