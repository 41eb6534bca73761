/* container.c - containers, opened by all ranks together */
#define _GNU_SOURCE
#include "worker.h"
#include "limefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the client has, and wants. */
struct identity {
    bool writing; /* then size and time mean nothing */
    uint64_t inode, bytes;
    int64_t mtime_s;
    uint32_t mtime_ns;
    char path[LIMEJOB_PATH_MAX];
};

static void parse(struct limejob_packet *packet, uint32_t *id, struct identity *wanted)
{
    *id = limejob_get_u32(packet);
    wanted->writing = limejob_get_u32(packet) != 0;
    wanted->inode = limejob_get_u64(packet);
    wanted->bytes = limejob_get_u64(packet);
    wanted->mtime_s = (int64_t)limejob_get_u64(packet);
    wanted->mtime_ns = limejob_get_u32(packet);
    limejob_get_text(packet, wanted->path, sizeof wanted->path);
}

/* ---- is it that one? ---- */

static int compare(const struct stat *st, const struct identity *wanted, char *text, size_t cap)
{
    if (!S_ISREG(st->st_mode))
        snprintf(text, cap, "it is no file there");
    else if (st->st_ino != wanted->inode)
        snprintf(text, cap, "it is another file there (inode %llu, not %llu)",
                 (unsigned long long)st->st_ino, (unsigned long long)wanted->inode);
    else if (wanted->writing)
        return 0;
    else if ((uint64_t)st->st_size != wanted->bytes)
        snprintf(text, cap, "it has another size there (%lld, not %llu)",
                 (long long)st->st_size, (unsigned long long)wanted->bytes);
    else if (st->st_mtim.tv_sec != wanted->mtime_s ||
             (uint32_t)st->st_mtim.tv_nsec != wanted->mtime_ns)
        snprintf(text, cap, "it was changed at another time there (%lld.%09ld)",
                 (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
    else
        return 0;
    return ESTALE;
}

/* Opens it and compares: 0 or an errno, with words. */
static int look(const struct identity *wanted, int *fd, char *text, size_t cap)
{
    struct stat st;
    *fd = open(wanted->path,
               (wanted->writing ? O_WRONLY : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0 || fstat(*fd, &st) != 0) {
        int err = errno;
        snprintf(text, cap, "open: %s", strerror(err));
        return err;
    }
    return compare(&st, wanted, text, cap);
}

/* Between our look and MPI's opening, another file may have taken the name. */
static int look_again(const struct identity *wanted, char *text, size_t cap)
{
    struct stat st;
    if (stat(wanted->path, &st) != 0) {
        snprintf(text, cap, "stat: %s", strerror(errno));
        return ESTALE;
    }
    return compare(&st, wanted, text, cap);
}

static int agree(const struct job_worker *worker, int code)
{
    MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, worker->comm);
    return code;
}

/* ---- opening ---- */

/* All ranks have it open already: here, only memory or MPI can fail, and not on one alone. */
static int open_by_mpi(struct job_worker *worker, struct job_container *container, int mode,
                       char *text, size_t cap)
{
    int err =
        MPI_File_open(worker->comm, container->path, mode, worker->info, &container->file);
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
    if (failures < worker->ranks) /* MPI_File_close would wait for those that have failed */
        job_worker_fault(worker, "%s: MPI_File_open: %s", container->path,
                         failed ? text : "it failed on other ranks");
    return EIO;
}

/* The same on all ranks. */
static int wrap(struct job_worker *worker, struct job_container *container)
{
    container->lemon = lemon_internal_new(&container->file, worker->comm);
    if (!container->lemon)
        return ENOMEM;
    if (worker->info != MPI_INFO_NULL && lemon_hints_read(container->lemon, worker->info) != 0)
        return EINVAL;
    if (worker->options->stripe)
        lemon_hints_set_stripe(container->lemon, worker->options->stripe);
    return 0;
}

static void close_container(struct job_container *container)
{
    if (container->lemon) {
        if (container->lemon->direct_fd >= 0)
            close(container->lemon->direct_fd);
        lemon_internal_free(container->lemon);
    }
    job_store_close(container);
    if (container->file != MPI_FILE_NULL)
        MPI_File_close(&container->file);
    free(container->path);
    free(container);
}

/* Collective. */
static int open_together(struct job_worker *worker, const struct identity *wanted, int fd,
                         struct job_container *container, char *text, size_t cap)
{
    int code = open_by_mpi(worker, container,
                           wanted->writing ? MPI_MODE_WRONLY : MPI_MODE_RDONLY, text, cap);
    if (code)
        return code;
    code = wrap(worker, container);
    if (code) {
        snprintf(text, cap, code == EINVAL ? "the hints are wrong" : "no memory");
        return code;
    }
    if (!wanted->writing)
        container->lemon->direct_fd = limefile_open_direct(fd);
    code = look_again(wanted, text, cap);
    int agreed = agree(worker, code);
    return code ? code : agreed;
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
    container->file = MPI_FILE_NULL;
    container->fd = container->direct_fd = -1;
    return container;
}

static int open_it(struct job_worker *worker, uint32_t id, const struct identity *wanted,
                   char *text, size_t cap)
{
    int fd, code = look(wanted, &fd, text, cap);
    struct job_container *container = code ? NULL : new_container(id, wanted->path);
    if (!code && !container)
        code = ENOMEM;
    int agreed = agree(worker, code);
    if (!agreed && wanted->writing) {
        job_store_open(container, fd);
        fd = -1;
    }
    if (!agreed) {
        code = open_together(worker, wanted, fd, container, text, cap);
        agreed = agree(worker, code);
    }
    if (fd >= 0)
        close(fd);
    if (!agreed) {
        container->next = worker->containers;
        worker->containers = container;
    } else if (container) {
        close_container(container); /* collective if it has been opened, and then everywhere */
    }
    return code ? code : agreed;
}

void job_container_open(struct job_worker *worker, struct limejob_packet *packet)
{
    static struct identity wanted;
    struct limejob_packet reply;
    char why[256] = "", text[JOB_TEXT_MAX] = "";
    uint32_t id;
    parse(packet, &id, &wanted);
    int code = open_it(worker, id, &wanted, why, sizeof why);
    if (why[0])
        snprintf(text, sizeof text, "%.100s: %.300s: %.200s", worker->host, wanted.path, why);
    limejob_reply(&reply, packet, code, text);
    job_worker_answer(worker, &reply);
}

/* ---- found and closed ---- */

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

/* In the same order on all ranks: that of their opening, reversed. */
void job_containers_close(struct job_worker *worker)
{
    while (worker->containers) {
        struct job_container *container = worker->containers;
        worker->containers = container->next;
        close_container(container);
    }
}
