/* open_check.c - check that a client's descriptor is the container it asks to open */
#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* Size and times are compared only for reading: while clients write, they change. */
static unsigned ignored_flags(bool writing)
{
    return writing ? LIMEFILE_STATE : 0;
}

bool job_file_is_same(const struct job_file *a, const struct job_file *b)
{
    return a->for_writing == b->for_writing && a->root == b->root &&
           strcmp(a->path, b->path) == 0 &&
           limejob_identity_compare(&a->identity, &b->identity, ignored_flags(a->for_writing),
                                    NULL, 0) == 0;
}

static bool may_access(int fd, bool writing)
{
    int flags = fcntl(fd, F_GETFL), mode = flags & O_ACCMODE;
    return flags >= 0 && !(flags & O_PATH) &&
           (mode == O_RDWR || mode == (writing ? O_WRONLY : O_RDONLY));
}

int job_identity_check(int fd, const struct limefile_identity *expected, unsigned ignored,
                       char *text, size_t cap)
{
    struct stat st;
    char difference[128];
    if (fstat(fd, &st) != 0) {
        int err = errno;
        snprintf(text, cap, "fstat: %s", strerror(err));
        return err;
    }
    struct limefile_identity found = limefile_identify(&st);
    if (limejob_identity_compare(&found, expected, ignored, difference, sizeof difference) == 0)
        return 0;
    snprintf(text, cap, "not the same file: %s", difference);
    return ESTALE;
}

/* Checks the client's descriptor. Returns 0, or an errno and fills text with a message. */
static int check_descriptor(int fd, bool writing, const struct limefile_identity *requested,
                            char *text, size_t cap)
{
    struct stat st;
    if (fd < 0) {
        snprintf(text, cap, "no descriptor in the request");
        return EBADF;
    }
    if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
        snprintf(text, cap, "the descriptor is not a regular file");
        return EINVAL;
    }
    if (!may_access(fd, writing)) {
        snprintf(text, cap, "the descriptor is not open for %s",
                 writing ? "writing" : "reading");
        return EBADF;
    }
    return job_identity_check(fd, requested, ignored_flags(writing), text, cap);
}

int job_open_check(struct limejob_packet *packet, struct limejob_open_request *requested,
                   char *text, size_t cap)
{
    if (limejob_get_open_request(packet, requested) == 0)
        return check_descriptor(packet->fd, packet->opcode == LIMEJOB_OPEN_WRITE,
                                &requested->identity, text, cap);
    snprintf(text, cap,
             "the path is not absolute or not below its root, or the size is negative");
    return EINVAL;
}

/* Returns what to ask the workers for. AUTO, which makes them try, only on file systems for
 * which MPI libraries have drivers. Collective writes need fallocate(): MPI may not report a
 * full disk. */
static enum limejob_io choose_io(enum limejob_io io, bool writing, int fd)
{
    static const uint32_t parallel[] = {
        0x0bd00bd0, /* Lustre */
        0x47504653, /* GPFS */
        0x19830326, /* BeeGFS */
        0xaad7aaea, /* PanFS */
        0x20030528, /* OrangeFS */
    };
    struct statfs fs;
    size_t i = 0, count = sizeof parallel / sizeof *parallel;
    if (io == LIMEJOB_IO_AUTO) {
        while (fstatfs(fd, &fs) == 0 && i < count && (uint32_t)fs.f_type != parallel[i])
            i++;
        if (i == count)
            io = LIMEJOB_IO_POSIX;
    }
    if (io != LIMEJOB_IO_POSIX && writing && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1) != 0)
        io = LIMEJOB_IO_POSIX;
    return io;
}

struct job_file *job_file_create(const struct limejob_open_request *requested, bool writing,
                                 enum limejob_io io, int fd)
{
    size_t bytes = strlen(requested->path) + 1;
    struct job_file *file = calloc(1, sizeof *file + bytes);
    if (!file)
        return NULL;
    file->for_writing = writing;
    file->io = choose_io(io, writing, fd);
    file->identity = requested->identity;
    file->root = requested->root;
    memcpy(file->path, requested->path, bytes);
    return file;
}
