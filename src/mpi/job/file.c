/* file.c - containers that are open on all ranks: once each, however many clients use them */
#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_same(const struct job_file *a, const struct job_file *b)
{
    return a->writing == b->writing && a->inode == b->inode && a->bytes == b->bytes &&
           a->mtime_s == b->mtime_s && a->mtime_ns == b->mtime_ns &&
           strcmp(a->path, b->path) == 0;
}

/* What the client's packet says; NULL: it says no such thing, or there is no memory. */
static struct job_file *parse(struct limejob_packet *packet, int *code)
{
    struct job_file *file = calloc(1, sizeof *file + LIMEJOB_PATH_MAX);
    *code = ENOMEM;
    if (!file)
        return NULL;
    file->writing = packet->opcode == LIMEJOB_OPEN_WRITE;
    file->inode = limejob_get_u64(packet);
    if (!file->writing) {
        file->bytes = limejob_get_u64(packet);
        file->mtime_s = limejob_get_u64(packet);
        file->mtime_ns = limejob_get_u32(packet);
    }
    limejob_get_text(packet, file->path, LIMEJOB_PATH_MAX);
    if (!packet->broken && file->path[0] == '/' && file->bytes <= INT64_MAX)
        return file;
    *code = EINVAL;
    free(file);
    return NULL;
}

static void command(struct limejob_packet *packet, const struct job_file *file)
{
    limejob_request(packet, JOB_OPEN, 0);
    limejob_put_u32(packet, file->id);
    limejob_put_u32(packet, file->writing);
    limejob_put_u64(packet, file->inode);
    limejob_put_u64(packet, file->bytes);
    limejob_put_u64(packet, file->mtime_s);
    limejob_put_u32(packet, file->mtime_ns);
    limejob_put_bytes(packet, file->path, strlen(file->path));
}

/* Takes `wanted` over; NULL: no memory. The workers set about it if it is new. */
static struct job_file *find_or_open(struct job_server *server, struct job_file *wanted)
{
    static struct limejob_packet packet;
    for (struct job_file *file = server->files; file; file = file->next)
        if (is_same(file, wanted)) {
            free(wanted);
            return file;
        }
    struct job_request *request = job_request_new(server, JOB_OPEN, NULL, NULL);
    if (!request) {
        free(wanted);
        return NULL;
    }
    wanted->id = ++server->last_file;
    wanted->next = server->files;
    server->files = request->file = wanted;
    command(&packet, wanted);
    job_request_send(server, request, &packet);
    return wanted;
}

/* The client gets the file, if it is still there. */
static void hand_over(struct job_server *server, struct job_request *request)
{
    struct job_file *file = request->file;
    bool use = !request->code && !request->client->gone;
    if (use && !job_client_remember(request->client, file)) {
        request->code = ENOMEM;
        use = false;
    }
    job_request_answer(server, request);
    job_request_free(server, request);
    if (!use)
        job_file_unref(server, file);
}

static void refuse(struct job_server *server, struct job_client *client,
                   const struct limejob_packet *packet, int code, const char *text)
{
    static struct limejob_packet reply;
    limejob_reply(&reply, packet, code, text);
    job_client_reply(server, client, &reply);
}

void job_file_open(struct job_server *server, struct job_client *client,
                   struct limejob_packet *packet)
{
    int code;
    struct job_file *file = parse(packet, &code);
    if (!file) {
        refuse(server, client, packet, code,
               code == EINVAL ? "open: the path is not absolute, or the size negative"
                              : strerror(code));
        return;
    }
    struct job_request *request = job_request_new(server, JOB_OPEN, client, packet);
    file = request ? find_or_open(server, file) : (free(file), NULL);
    if (!file) {
        if (request)
            job_request_free(server, request);
        refuse(server, client, packet, ENOMEM, strerror(ENOMEM));
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

static void forget(struct job_server *server, struct job_file *file)
{
    struct job_file **at = &server->files;
    while (*at != file)
        at = &(*at)->next;
    *at = file->next;
}

void job_file_opened(struct job_server *server, struct job_request *opening)
{
    struct job_file *file = opening->file;
    struct job_request *waiter = file->waiters, *next;
    file->waiters = NULL;
    file->open = opening->code == 0;
    file->refs++; /* until all have been told */
    for (; waiter; waiter = next) {
        next = waiter->next;
        waiter->code = opening->code;
        memcpy(waiter->text, opening->text, sizeof waiter->text);
        hand_over(server, waiter);
    }
    job_file_unref(server, file);
}

void job_file_unref(struct job_server *server, struct job_file *file)
{
    static struct limejob_packet packet;
    if (--file->refs > 0)
        return;
    forget(server, file);
    if (!file->open) {
        free(file);
        return;
    }
    struct job_request *request = job_request_new(server, JOB_CLOSE, NULL, NULL);
    if (!request)
        job_server_fault(server, "%s: close: %s", file->path, strerror(ENOMEM));
    request->file = file;
    limejob_request(&packet, JOB_CLOSE, 0);
    limejob_put_u32(&packet, file->id);
    job_request_send(server, request, &packet);
}
