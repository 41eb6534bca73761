/* container.c - open and close containers on all ranks together */
#define _GNU_SOURCE
#include "descriptor.h"
#include "limefile.h"
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The container that a client asks to open. */
struct request {
    bool for_writing; /* size and times are then not compared */
    enum limejob_io io;
    struct limejob_open_request opening;
};

static void parse_open(struct job_worker *worker, struct limejob_packet *packet, uint32_t *id,
                       struct request *request)
{
    *id = limejob_get_u32(packet);
    request->for_writing = limejob_get_u32(packet) != 0;
    request->io = (enum limejob_io)limejob_get_u32(packet);
    if (limejob_get_open_request(packet, &request->opening) != 0)
        job_worker_abort(worker, "open: path not below its root"); /* other ranks would wait */
}

/* ---- verify the file ---- */

/* Checks that fd is the requested file and, if with_state and the client only reads, has the
 * size and times that the client saw. Returns 0, or a positive errno and a message in text. */
static int compare_file(const struct job_worker *worker, int fd, const struct request *request,
                        bool with_state, char *text, size_t cap)
{
    unsigned ignored = (worker->locations[worker->rank].is_local ? 0 : LIMEFILE_DEV) |
                       (request->for_writing || !with_state ? LIMEFILE_STATE : 0);
    return job_identity_check(fd, &request->opening.identity, ignored, text, cap);
}

/* Opens the file by name, because other hosts get no descriptor. The administrator owns the
 * path up to the root; any user may change what is below, so no symbolic link is followed
 * there. O_PATH avoids side effects if the file is a device. Returns a descriptor or -errno. */
static int open_by_name(const struct limejob_open_request *opening)
{
    char root[LIMEJOB_PATH_MAX];
    const char *path = opening->path + opening->root;
    snprintf(root, sizeof root, "%.*s", (int)opening->root, opening->path);
    int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return -errno;
    int fd = limefile_open_beneath(root_fd, path + strspn(path, "/"), O_PATH);
    close(root_fd);
    return fd;
}

/* Reopens the file of `path_fd` for I/O if it is the requested file. Size and times are
 * compared after the open, because a network file system revalidates them when a file is opened
 * for I/O. Returns 0, or an errno and fills text with a message. */
static int reopen_for_io(const struct job_worker *worker, const struct request *request,
                         int path_fd, int *fd, char *text, size_t cap)
{
    int code = compare_file(worker, path_fd, request, false, text, cap);
    if (code)
        return code;
    *fd = limefile_reopen(path_fd,
                          (request->for_writing ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY);
    if (*fd >= 0)
        return compare_file(worker, *fd, request, true, text, cap);
    snprintf(text, cap, "open: %s", strerror(-*fd));
    return -*fd;
}

/* Opens the requested file: on rank 0's host by the client's descriptor, on others by name.
 * Returns 0, or a positive errno and a message in text. The caller closes *fd, if not -1. */
static int open_verified(const struct job_worker *worker, const struct request *request,
                         int client_fd, int *fd, char *text, size_t cap)
{
    if (worker->locations[worker->rank].is_local)
        return reopen_for_io(worker, request, client_fd, fd, text, cap);
    int path_fd = open_by_name(&request->opening);
    if (path_fd < 0) {
        snprintf(text, cap, "open: %s", strerror(-path_fd));
        return -path_fd;
    }
    int code = reopen_for_io(worker, request, path_fd, fd, text, cap);
    close(path_fd);
    return code;
}

/* Returns the largest code of all ranks: 0 only if all succeeded. Collective. */
static int agree_on_code(const struct job_worker *worker, int code)
{
    MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, worker->comm);
    return code;
}

/* ---- opening ---- */

/* Collective. Ends the job if the open fails on some ranks but not on all: unlikely, because
 * all have a verified descriptor. Returns 0, or EIO and fills text with a message. */
static int open_by_mpi(struct job_worker *worker, struct job_container *container, int mode,
                       char *text, size_t cap)
{
    char path[LIMEFILE_FD_PATH_MAX]; /* differs between ranks, which MPI allows */
    limefile_fd_path(container->fd, path);
    int err = MPI_File_open(worker->comm, path, mode, worker->info, &container->mpi_file);
    int failed = err != MPI_SUCCESS, failures = failed;
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, worker->comm);
    if (failed) {
        char message[MPI_MAX_ERROR_STRING] = "";
        int n;
        MPI_Error_string(err, message, &n);
        snprintf(text, cap, "MPI_File_open: %s", message);
    }
    if (failures == 0)
        return 0;
    if (failures < worker->ranks) /* MPI_File_close would wait for the ranks that failed */
        job_worker_abort(worker, "%s: MPI_File_open: %s", container->path,
                         failed ? text : "it failed on other ranks");
    return EIO;
}

/* Collective. Sets the hints, which are equal on all ranks: all have the same options. */
static int set_hints(struct job_worker *worker, struct job_container *container)
{
    int64_t values[LEMON_HINTS];
    int64_t stripe = lemon_hints_file_stripe(container->mpi_file, worker->comm);
    if (lemon_hints_parse(worker->info, values) >= 0)
        return EINVAL;
    if (worker->options->stripe_bytes)
        stripe = worker->options->stripe_bytes;
    else if (values[LEMON_HINT_STRIPE])
        stripe = values[LEMON_HINT_STRIPE];
    else if (!stripe)
        stripe = LEMON_STRIPE_DEFAULT;
    container->hints = (struct lemon_plan_hints){
        .stripe = stripe,
        .aggregators = values[LEMON_HINT_AGGREGATORS],
        .round_bytes = values[LEMON_HINT_ROUND_BYTES],
    };
    return 0;
}

static void release_container(struct job_container *container)
{
    if (container->file.direct_fd >= 0)
        close(container->file.direct_fd);
    if (container->mpi_file != MPI_FILE_NULL)
        MPI_File_close(&container->mpi_file);
    job_container_close_direct(container);
    if (container->fd >= 0)
        close(container->fd);
    free(container->path);
    free(container);
}

/* Collective. Opens the verified file by MPI on all ranks together, and reopens it for direct
 * I/O. Compares the file again: it may have changed since this rank verified it. Returns 0, or
 * a positive errno with a message in text; the caller then releases the container. */
static int open_collectively(struct job_worker *worker, const struct request *request,
                             struct job_container *container, char *text, size_t cap)
{
    int code = open_by_mpi(worker, container,
                           request->for_writing ? MPI_MODE_WRONLY : MPI_MODE_RDONLY, text, cap);
    if (code)
        return code;
    code = set_hints(worker, container);
    if (code) {
        snprintf(text, cap, "invalid hint");
        return code;
    }
    if (request->for_writing)
        job_container_open_direct(container);
    else if (container->io != LIMEJOB_IO_INDEPENDENT)
        container->file.direct_fd = limefile_open_direct(container->fd);
    job_container_choose_io(worker, container, request->for_writing,
                            request->opening.identity.size);
    return compare_file(worker, container->fd, request, true, text, cap);
}

static struct job_container *new_container(const struct job_worker *worker, uint32_t id,
                                           const struct request *request)
{
    struct job_container *container = calloc(1, sizeof *container);
    char *copy = strdup(request->opening.path);
    if (!container || !copy) {
        free(container);
        free(copy);
        return NULL;
    }
    container->id = id;
    container->path = copy;
    container->io = request->io;
    container->comm = worker->comm;
    container->mpi_file = MPI_FILE_NULL;
    container->file = (struct lemon_file){&container->mpi_file, -1, -1};
    container->fd = container->direct_fd = -1;
    return container;
}

/* Opens the container on all ranks and adds it to the list, or does neither. Collective.
 * Returns 0, or a positive errno: this rank's, with a message in text, or another rank's. */
static int open_on_ranks(struct job_worker *worker, uint32_t id, const struct request *request,
                         int client_fd, char *text, size_t cap)
{
    int fd = -1, code = open_verified(worker, request, client_fd, &fd, text, cap);
    struct job_container *container = code ? NULL : new_container(worker, id, request);
    if (!code && !container)
        code = ENOMEM;
    if (container)
        container->fd = fd;
    else if (fd >= 0)
        close(fd);
    int agreed = agree_on_code(worker, code);
    if (!agreed) {
        code = open_collectively(worker, request, container, text, cap);
        agreed = agree_on_code(worker, code);
    }
    if (!agreed) {
        container->next = worker->containers;
        worker->containers = container;
    } else if (container) {
        release_container(container); /* MPI has opened it on all ranks or on none */
    }
    return code ? code : agreed;
}

void job_container_open(struct job_worker *worker, struct limejob_packet *packet)
{
    static struct request request;
    struct limejob_packet reply;
    char reason[256] = "", text[JOB_TEXT_MAX] = "";
    uint32_t id;
    parse_open(worker, packet, &id, &request);
    int code = open_on_ranks(worker, id, &request, packet->fd, reason, sizeof reason);
    if (reason[0])
        snprintf(text, sizeof text, "%.100s: %.300s: %.200s", worker->host,
                 request.opening.path, reason);
    limejob_reply_init(&reply, packet, code, text);
    if (!code)
        limejob_put_u32(&reply, worker->containers->io);
    job_worker_reply(worker, &reply);
}

/* ---- lookup and close ---- */

struct job_container *job_container_find(struct job_worker *worker, uint32_t id)
{
    struct job_container *container = worker->containers;
    while (container && container->id != id)
        container = container->next;
    return container;
}

void job_container_close(struct job_worker *worker, struct limejob_packet *packet)
{
    struct limejob_packet reply;
    uint32_t id = limejob_get_u32(packet);
    struct job_container **at = &worker->containers;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    if (*at) {
        struct job_container *container = *at;
        *at = container->next;
        release_container(container);
    }
    limejob_reply_init(&reply, packet, 0, NULL);
    job_worker_reply(worker, &reply);
}

/* All ranks close the containers in the same order, the reverse order of the opens. */
void job_containers_close(struct job_worker *worker)
{
    while (worker->containers) {
        struct job_container *container = worker->containers;
        worker->containers = container->next;
        release_container(container);
    }
}
