/* file.c - containers that are open on all ranks: once each, however many clients use them */
#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static unsigned compared_without(bool writing)
{
    return writing ? LIMEFILE_STATE : 0;
}

static bool is_same(const struct job_file *a, const struct job_file *b)
{
    return a->writing == b->writing && a->root == b->root && strcmp(a->path, b->path) == 0 &&
           limejob_identity_compare(&a->identity, &b->identity, compared_without(a->writing),
                                    NULL, 0) == 0;
}

/* ---- what a client asks for ---- */

static bool may_access(int fd, bool writing)
{
    int flags = fcntl(fd, F_GETFL), mode = flags & O_ACCMODE;
    return flags >= 0 && !(flags & O_PATH) &&
           (mode == O_RDWR || mode == (writing ? O_WRONLY : O_RDONLY));
}

/* The descriptor is of that very file: 0 or an errno, with words. */
static int check_descriptor(int fd, bool writing, const struct limefile_identity *wanted,
                            char *text, size_t cap)
{
    struct stat st;
    char difference[128];
    if (fd < 0) {
        snprintf(text, cap, "no descriptor came with the request");
        return EBADF;
    }
    if (fstat(fd, &st) != 0) {
        int code = errno;
        snprintf(text, cap, "fstat: %s", strerror(code));
        return code;
    }
    if (!S_ISREG(st.st_mode)) {
        snprintf(text, cap, "the descriptor is not of a regular file");
        return EINVAL;
    }
    if (!may_access(fd, writing)) {
        snprintf(text, cap, "the descriptor is not open for %s",
                 writing ? "writing" : "reading");
        return EBADF;
    }
    struct limefile_identity found = limefile_identity_of(&st);
    if (limejob_identity_compare(&found, wanted, compared_without(writing), difference,
                                 sizeof difference) == 0)
        return 0;
    snprintf(text, cap, "not the same file: %s", difference);
    return ESTALE;
}

static int check(struct limejob_packet *packet, struct limejob_opening *wanted, char *text,
                 size_t cap)
{
    if (limejob_get_opening(packet, wanted) == 0)
        return check_descriptor(packet->fd, packet->opcode == LIMEJOB_OPEN_WRITE,
                                &wanted->identity, text, cap);
    snprintf(text, cap,
             "the path is not absolute or not below its root, or the size is negative");
    return EINVAL;
}

static struct job_file *new_file(const struct limejob_opening *wanted, bool writing)
{
    size_t bytes = strlen(wanted->path) + 1;
    struct job_file *file = calloc(1, sizeof *file + bytes);
    if (!file)
        return NULL;
    file->writing = writing;
    file->identity = wanted->identity;
    file->root = wanted->root;
    memcpy(file->path, wanted->path, bytes);
    return file;
}

/* ---- opening ---- */

/* The descriptor goes to the ranks on this host; it stays the caller's. */
static void command(struct limejob_packet *packet, const struct job_file *file, int fd)
{
    limejob_request(packet, JOB_OPEN, 0);
    limejob_put_u32(packet, file->id);
    limejob_put_u32(packet, file->writing);
    limejob_put_opening(packet, &file->identity, file->path, file->root);
    packet->fd = fd;
}

/* Takes `wanted` over; NULL: no memory, or (*code) too many are open: a rank that has no
 * descriptor left would be the end of the job. The workers set about it if it is new. */
static struct job_file *find_or_open(struct job_server *server, struct job_file *wanted, int fd,
                                     int *code)
{
    static struct limejob_packet packet;
    for (struct job_file *file = server->files; file; file = file->next)
        if (is_same(file, wanted)) {
            free(wanted);
            return file;
        }
    if (server->file_count >= server->files_most)
        *code = EMFILE;
    struct job_request *request =
        *code == EMFILE ? NULL : job_request_new(server, JOB_OPEN, NULL, NULL);
    if (!request) {
        free(wanted);
        return NULL;
    }
    wanted->id = ++server->last_file;
    wanted->next = server->files;
    server->files = request->file = wanted;
    server->file_count++;
    command(&packet, wanted, fd);
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

void job_file_open(struct job_server *server, struct job_client *client,
                   struct limejob_packet *packet)
{
    static struct limejob_opening wanted;
    char why[256] = "", text[JOB_TEXT_MAX];
    int code = check(packet, &wanted, why, sizeof why);
    if (code) {
        snprintf(text, sizeof text, "%s: %.400s: %s", limejob_message_of(packet->opcode)->name,
                 wanted.path, why);
        job_client_answer(server, client, packet, code, text);
        return;
    }
    struct job_request *request = job_request_new(server, JOB_OPEN, client, packet);
    struct job_file *file =
        request ? new_file(&wanted, packet->opcode == LIMEJOB_OPEN_WRITE) : NULL;
    code = ENOMEM;
    if (file)
        file = find_or_open(server, file, packet->fd, &code);
    if (!file) {
        if (request)
            job_request_free(server, request);
        job_client_answer(server, client, packet, code, NULL);
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
    server->file_count--;
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
        job_server_fault("%s: close: %s", file->path, strerror(ENOMEM));
    request->file = file;
    limejob_request(&packet, JOB_CLOSE, 0);
    limejob_put_u32(&packet, file->id);
    job_request_send(server, request, &packet);
}
