/* request.c - commands to all workers, and what comes of them */
#include "server.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

struct job_request *job_request_new(struct job_server *server, uint16_t opcode,
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

void job_request_free(struct job_server *server, struct job_request *request)
{
    struct job_client *client = request->client;
    server->table[request->slot] = NULL;
    server->outstanding--;
    free(request);
    if (client) {
        client->in_flight--;
        job_client_release(server, client);
    }
}

void job_request_send(struct job_server *server, struct job_request *request,
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

bool job_request_is_writing(const struct job_server *server, const struct job_file *file,
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

/* ---- answers to clients ---- */

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

void job_request_answer(struct job_server *server, struct job_request *request)
{
    static struct limejob_packet reply;
    struct limejob_packet of = {.opcode = 0};
    of.opcode = request->client_opcode;
    of.tag = request->client_tag;
    limefile_text_defuse(request->text, ""); /* it names files: UTF-8 goes out, no controls */
    const char *text = request->text[0] ? request->text : strerror(request->code);
    limejob_reply(&reply, &of, request->code, text);
    if (!request->code)
        put_result(server, request, &reply);
    job_client_reply(server, request->client, &reply);
}

/* ---- all workers have replied ---- */

static void finish_window(struct job_server *server, struct job_request *request)
{
    if (request->code)
        request->client->last_words = true;
    job_request_answer(server, request);
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

/* Of a read, a write or a sync. */
static void finish_io(struct job_server *server, struct job_request *request)
{
    if (request->opcode == JOB_SYNC) {
        job_client_synced(request);
    } else {
        check_all_moved(request);
        unlink_move(request->client, request);
    }
    job_counters_end(&server->counters, request->opcode, request->code ? 0 : request->bytes,
                     request->code == 0);
    job_request_answer(server, request);
    job_file_unref(server, request->file);
}

static void finish(struct job_server *server, struct job_request *request)
{
    switch (request->opcode) {
    case JOB_WINDOW:
        finish_window(server, request);
        break;
    case JOB_OPEN:
        job_file_opened(server, request);
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
    job_request_free(server, request);
}

/* Of several ranks that failed, one with words counts. */
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
