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
struct wanted {
    bool writing; /* then size and times are not compared */
    struct limejob_opening opening;
};

static void parse(struct job_worker *worker, struct limejob_packet *packet, uint32_t *id,
                  struct wanted *wanted)
{
    *id = limejob_get_u32(packet);
    wanted->writing = limejob_get_u32(packet) != 0;
    if (limejob_get_opening(packet, &wanted->opening) != 0)
        job_worker_fault(worker, "open: not a path below a root"); /* other ranks wait here */
}

/* ---- verify the file ---- */

/* Compares with or without size and times. Returns 0, or an errno and fills text with a
 * message. */
static int compare(const struct job_worker *worker, int fd, const struct wanted *wanted,
                   bool state, char *text, size_t cap)
{
    unsigned any = (worker->places[worker->rank].local ? 0 : LIMEFILE_DEV) |
                   (wanted->writing || !state ? LIMEFILE_STATE : 0);
    return job_identity_check(fd, &wanted->opening.identity, any, text, cap);
}

/* Opens the file by name: other hosts get no descriptor. The administrator owns the path up to
 * the root. Any user may change what is below the root, so no symbolic link is followed there.
 * O_PATH avoids side effects if the file is a device. Returns a descriptor or -errno. */
static int open_by_name(const struct limejob_opening *opening)
{
    char root[LIMEJOB_PATH_MAX];
    const char *path = opening->path + opening->root;
    snprintf(root, sizeof root, "%.*s", (int)opening->root, opening->path);
    int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    int fd = limefile_open_beneath(folder, path + strspn(path, "/"), O_PATH);
    close(folder);
    return fd;
}

/* Reopens the file of `seen` for I/O, if it is the requested one. Size and times are compared
 * after the open, because a network file system revalidates them when a file is opened for I/O.
 * Returns 0, or an errno and fills text with a message. */
static int open_seen(const struct job_worker *worker, const struct wanted *wanted, int seen,
                     int *fd, char *text, size_t cap)
{
    int code = compare(worker, seen, wanted, false, text, cap);
    if (code)
        return code;
    *fd =
        limefile_reopen(seen, (wanted->writing ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY);
    if (*fd >= 0)
        return compare(worker, *fd, wanted, true, text, cap);
    snprintf(text, cap, "open: %s", strerror(-*fd));
    return -*fd;
}

/* passed: the client's descriptor, on rank 0's host. */
static int look(const struct job_worker *worker, const struct wanted *wanted, int passed,
                int *fd, char *text, size_t cap)
{
    if (worker->places[worker->rank].local)
        return open_seen(worker, wanted, passed, fd, text, cap);
    int seen = open_by_name(&wanted->opening);
    if (seen < 0) {
        snprintf(text, cap, "open: %s", strerror(-seen));
        return -seen;
    }
    int code = open_seen(worker, wanted, seen, fd, text, cap);
    close(seen);
    return code;
}

static int agree(const struct job_worker *worker, int code)
{
    MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, worker->comm);
    return code;
}

/* ---- opening ---- */

/* All ranks have a descriptor, so only memory or MPI can fail here, and then on all ranks. */
static int open_by_mpi(struct job_worker *worker, struct job_container *container, int mode,
                       char *text, size_t cap)
{
    char path[LIMEFILE_FD_PATH_MAX]; /* differs between ranks, which MPI allows */
    limefile_fd_path(container->fd, path);
    int err = MPI_File_open(worker->comm, path, mode, worker->info, &container->mpi);
    int failed = err != MPI_SUCCESS, failures = failed;
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, worker->comm);
    if (failed) {
        char words[MPI_MAX_ERROR_STRING] = "";
        int n;
        MPI_Error_string(err, words, &n);
        snprintf(text, cap, "MPI_File_open: %s", words);
    }
    if (failures == 0)
        return 0;
    if (failures < worker->ranks) /* MPI_File_close would wait for the ranks that failed */
        job_worker_fault(worker, "%s: MPI_File_open: %s", container->path,
                         failed ? text : "it failed on other ranks");
    return EIO;
}

/* Sets the hints, equal on all ranks because all have the same options. Collective. */
static int take_hints(struct job_worker *worker, struct job_container *container)
{
    int64_t said[LEMON_HINTS], told = lemon_hints_stripe(container->mpi, worker->comm);
    int64_t stripe = told ? told : LEMON_STRIPE;
    if (lemon_hints_parse(worker->info, said) >= 0)
        return EINVAL;
    if (worker->options->stripe)
        stripe = worker->options->stripe;
    else if (said[LEMON_HINT_STRIPE])
        stripe = said[LEMON_HINT_STRIPE];
    container->hints = (struct lemon_plan_hints){
        .stripe = stripe,
        .aggregators = said[LEMON_HINT_MOVERS],
        .round_bytes = said[LEMON_HINT_ROUND],
    };
    return 0;
}

static void close_container(struct job_container *container)
{
    if (container->file.direct_fd >= 0)
        close(container->file.direct_fd);
    if (container->mpi != MPI_FILE_NULL)
        MPI_File_close(&container->mpi);
    job_store_close(container);
    if (container->fd >= 0)
        close(container->fd);
    free(container->path);
    free(container);
}

/* Collective. Returns 0, or an errno and fills text with a message. */
static int open_together(struct job_worker *worker, const struct wanted *wanted,
                         struct job_container *container, char *text, size_t cap)
{
    int code = open_by_mpi(worker, container,
                           wanted->writing ? MPI_MODE_WRONLY : MPI_MODE_RDONLY, text, cap);
    if (code)
        return code;
    code = take_hints(worker, container);
    if (code) {
        snprintf(text, cap, "the hints are wrong");
        return code;
    }
    if (wanted->writing)
        job_store_open(container);
    else
        container->file.direct_fd = limefile_open_direct(container->fd);
    return compare(worker, container->fd, wanted, true, text, cap);
}

static struct job_container *new_container(uint32_t id, const char *path)
{
    struct job_container *container = calloc(1, sizeof *container);
    char *copy = strdup(path);
    if (!container || !copy) {
        free(container);
        free(copy);
        return NULL;
    }
    container->id = id;
    container->path = copy;
    container->mpi = MPI_FILE_NULL;
    container->file = (struct lemon_file){&container->mpi, -1, -1};
    container->fd = container->direct_fd = -1;
    return container;
}

static int open_it(struct job_worker *worker, uint32_t id, const struct wanted *wanted,
                   int passed, char *text, size_t cap)
{
    int fd = -1, code = look(worker, wanted, passed, &fd, text, cap);
    struct job_container *container = code ? NULL : new_container(id, wanted->opening.path);
    if (!code && !container)
        code = ENOMEM;
    if (container)
        container->fd = fd;
    else if (fd >= 0)
        close(fd);
    int agreed = agree(worker, code);
    if (!agreed) {
        code = open_together(worker, wanted, container, text, cap);
        agreed = agree(worker, code);
    }
    if (!agreed) {
        container->next = worker->containers;
        worker->containers = container;
    } else if (container) {
        close_container(container); /* collective if MPI has opened it, on all ranks */
    }
    return code ? code : agreed;
}

void job_container_open(struct job_worker *worker, struct limejob_packet *packet)
{
    static struct wanted wanted;
    struct limejob_packet reply;
    char why[256] = "", text[JOB_TEXT_MAX] = "";
    uint32_t id;
    parse(worker, packet, &id, &wanted);
    int code = open_it(worker, id, &wanted, packet->fd, why, sizeof why);
    if (why[0])
        snprintf(text, sizeof text, "%.100s: %.300s: %.200s", worker->host, wanted.opening.path,
                 why);
    limejob_reply(&reply, packet, code, text);
    job_worker_answer(worker, &reply);
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
        close_container(container);
    }
    limejob_reply(&reply, packet, 0, NULL);
    job_worker_answer(worker, &reply);
}

/* All ranks close them in the same order, the reverse order of the opens. */
void job_containers_close(struct job_worker *worker)
{
    while (worker->containers) {
        struct job_container *container = worker->containers;
        worker->containers = container->next;
        close_container(container);
    }
}
