/* clientio.c - check READ, WRITE, SYNC and SUM, and send them to the workers */
#include "server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* A READ or WRITE, as the client sends it. */
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
    return job_request_is_writing(server, file, move->offset, move->bytes)
               ? "that part of the file is being written"
               : NULL;
}

struct job_file *job_client_file(struct job_server *server, struct job_client *client,
                                 const struct limejob_packet *packet, uint32_t id)
{
    char text[128];
    bool writing = packet->opcode == LIMEJOB_WRITE || packet->opcode == LIMEJOB_SYNC;
    struct job_opened *opened = job_client_find(client, id);
    if (opened && opened->file->writing == writing)
        return opened->file;
    snprintf(text, sizeof text, "%s: %s", limejob_message_of(packet->opcode)->name,
             !opened   ? "no such file is open"
             : writing ? "the file is not open for writing"
                       : "the file is open for writing");
    job_client_answer(server, client, packet, EBADF, text);
    return NULL;
}

struct job_request *job_client_begin(struct job_server *server, struct job_client *client,
                                     const struct limejob_packet *packet, uint16_t opcode,
                                     struct job_file *file)
{
    struct job_request *request = job_request_new(server, opcode, client, packet);
    if (!request) {
        job_client_answer(server, client, packet, ENOMEM, NULL);
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
    job_request_send(server, request, &command);
}

void job_client_move(struct job_server *server, struct job_client *client,
                     struct limejob_packet *packet)
{
    int code;
    char text[128];
    struct move move = parse_move(packet);
    const char *wrong = check_window_range(client, &move, &code);
    struct job_file *file = NULL;
    if (!wrong) {
        file = job_client_file(server, client, packet, move.file);
        if (!file)
            return;
        wrong = check_file_range(server, file, &move, &code);
    }
    if (wrong) {
        snprintf(text, sizeof text, "%s: %s", limejob_message_of(packet->opcode)->name, wrong);
        job_client_answer(server, client, packet, code, text);
        return;
    }
    uint16_t opcode = packet->opcode == LIMEJOB_READ ? JOB_READ : JOB_WRITE;
    struct job_request *request = job_client_begin(server, client, packet, opcode, file);
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

void job_client_synced(struct job_request *request)
{
    struct job_file *file = request->file;
    struct job_opened *opened = job_client_find(request->client, file->id);
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

void job_client_sync(struct job_server *server, struct job_client *client,
                     struct limejob_packet *packet)
{
    static struct limejob_packet command;
    struct job_file *file = job_client_file(server, client, packet, limejob_get_u32(packet));
    struct job_request *request =
        file ? job_client_begin(server, client, packet, JOB_SYNC, file) : NULL;
    if (!request)
        return;
    limejob_request(&command, JOB_SYNC, 0);
    limejob_put_u32(&command, file->id);
    job_request_send(server, request, &command);
}
