/* output.c - all or nothing */
#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 8 << 20, /* longer writes stall now and then */
};

/* ---- the guard: who is asked to end removes the file ---- */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static const char *volatile guarded;

static void remove_and_die(int number)
{
    if (guarded)
        unlink(guarded);
    signal(number, SIG_DFL);
    raise(number); /* delivered on return */
}

static void guard(const char *path)
{
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction old, new = {.sa_handler = remove_and_die};
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &new, NULL); /* what was ignored (nohup) stays so */
    }
    guarded = path;
}

static void hold(bool on)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaddset(&held, signals[i]);
    sigprocmask(on ? SIG_BLOCK : SIG_UNBLOCK, &held, NULL);
}

/* ---- rank 0's part ---- */

/* A name that is new: its folder without links, as MPI libraries misunderstand some names
 * without a folder. -errno. */
static int find_new(struct checkpoint_output *out)
{
    char copy[PATH_MAX], folder[PATH_MAX];
    const char *slash = strrchr(out->path, '/');
    const char *name = slash ? slash + 1 : out->path;
    if (!*name)
        return -EISDIR;
    if (strlen(out->path) >= sizeof copy)
        return -ENAMETOOLONG;
    strcpy(copy, out->path);
    if (!realpath(dirname(copy), folder))
        return -errno;
    int n = snprintf(out->target, sizeof out->target, "%s/%s", folder[1] ? folder : "", name);
    return (size_t)n < sizeof out->target ? 0 : -ENAMETOOLONG;
}

/* What will be replaced, or not exist yet: a link stays a link. -errno. */
static int find_target(struct checkpoint_output *out)
{
    struct stat st;
    if (stat(out->path, &st) == 0) {
        if (!out->force)
            return -EEXIST;
        if (!S_ISREG(st.st_mode))
            return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
        return realpath(out->path, out->target) ? 0 : -errno;
    }
    if (errno != ENOENT)
        return -errno;
    return lstat(out->path, &st) == 0 ? -EEXIST /* a link that leads nowhere */
                                      : find_new(out);
}

/* What the target has, or what a new file would get. */
static int adopt_mode(int fd, const char *target)
{
    struct stat st;
    mode_t mask = umask(0);
    umask(mask);
    mode_t mode = stat(target, &st) == 0 ? st.st_mode & 0777 : 0666 & ~mask;
    return fchmod(fd, mode) == 0 ? 0 : -errno;
}

static int make(struct checkpoint_output *out)
{
    char copy[PATH_MAX];
    int err = find_target(out);
    if (err)
        return err;
    memcpy(copy, out->target, sizeof copy);
    int n = snprintf(out->temporary, sizeof out->temporary, "%s/.lime-checkpoint-XXXXXX",
                     dirname(copy));
    if (n < 0 || (size_t)n >= sizeof out->temporary)
        return -ENAMETOOLONG;
    hold(true);
    out->fd = mkostemp(out->temporary, O_CLOEXEC);
    err = out->fd < 0 ? -errno : 0;
    if (!err)
        guard(out->temporary);
    hold(false);
    return err ? err : adopt_mode(out->fd, out->target);
}

/* Fails with EEXIST if somebody has made one meanwhile. */
static int give_new_name(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (link(from, to) != 0) /* not all file systems can do the first */
        return -errno;
    unlink(from);
    return 0;
}

static int sync_folder(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = fd < 0 || (fsync(fd) != 0 && errno != EINVAL) ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return err;
}

static int give_name(struct checkpoint_output *out)
{
    int err = fsync(out->fd) == 0 ? 0 : -errno;
    hold(true);
    if (!err && out->force)
        err = rename(out->temporary, out->target) == 0 ? 0 : -errno;
    else if (!err)
        err = give_new_name(out->temporary, out->target);
    if (!err)
        guarded = NULL;
    hold(false);
    return err ? err : sync_folder(out->target);
}

static void forget(struct checkpoint_output *out)
{
    if (out->fd >= 0)
        close(out->fd);
    out->fd = -1;
    if (guarded)
        unlink(guarded);
    guarded = NULL;
}

/* ---- all ranks ---- */

static const char *reason_for(int err, char text[CHECKPOINT_ERROR_BYTES])
{
    text[0] = '\0';
    if (err == -EEXIST)
        snprintf(text, CHECKPOINT_ERROR_BYTES, "it exists; --force replaces it");
    else if (err)
        snprintf(text, CHECKPOINT_ERROR_BYTES, "create: %s", strerror(-err));
    return text;
}

bool checkpoint_output_open(const struct checkpoint_world *world, const char *path, bool force,
                            struct checkpoint_output *out)
{
    char text[CHECKPOINT_ERROR_BYTES];
    *out = (struct checkpoint_output){
        .path = path, .fd = -1, .force = force, .file = MPI_FILE_NULL};
    int err = world->rank == 0 ? make(out) : 0;
    if (!checkpoint_report(world, path, reason_for(err, text))) {
        forget(out);
        return false;
    }
    MPI_Bcast(out->temporary, sizeof out->temporary, MPI_CHAR, 0, MPI_COMM_WORLD);
    err =
        MPI_File_open(MPI_COMM_WORLD, out->temporary, MPI_MODE_RDWR, MPI_INFO_NULL, &out->file);
    if (checkpoint_report(world, path, err ? checkpoint_mpi_text(err, text) : ""))
        return true;
    out->file = err ? MPI_FILE_NULL : out->file;
    forget(out);
    return false;
}

void checkpoint_output_drop(struct checkpoint_output *out)
{
    if (out->writer)
        lemonDestroyWriter(out->writer);
    out->writer = NULL;
    if (out->file != MPI_FILE_NULL)
        MPI_File_close(&out->file);
    forget(out);
}

static bool sync_and_close(const struct checkpoint_world *world, struct checkpoint_output *out)
{
    char text[CHECKPOINT_ERROR_BYTES];
    int code = out->writer ? lemonDestroyWriter(out->writer) : LEMON_SUCCESS;
    out->writer = NULL;
    if (!checkpoint_lemon(world, out->path, "write", code))
        return false;
    int err = MPI_File_sync(out->file);
    if (!checkpoint_report(world, out->path, err ? checkpoint_mpi_text(err, text) : ""))
        return false;
    err = MPI_File_close(&out->file);
    return checkpoint_report(world, out->path, err ? checkpoint_mpi_text(err, text) : "");
}

bool checkpoint_output_finish(const struct checkpoint_world *world,
                              struct checkpoint_output *out)
{
    char text[CHECKPOINT_ERROR_BYTES];
    bool good = sync_and_close(world, out);
    if (good) {
        int err = world->rank == 0 ? give_name(out) : 0;
        good = checkpoint_report(world, out->path, reason_for(err, text));
    }
    checkpoint_output_drop(out);
    return good;
}

bool checkpoint_output_put(struct checkpoint_output *out, int64_t at, const void *data,
                           int64_t n, char error[CHECKPOINT_ERROR_BYTES])
{
    const char *from = data;
    while (n > 0) {
        int piece = n < PIECE_BYTES ? (int)n : PIECE_BYTES, put = 0;
        MPI_Status status;
        int err = MPI_File_write_at(out->file, at, from, piece, MPI_BYTE, &status);
        if (err) {
            checkpoint_mpi_text(err, error);
            return false;
        }
        /* A full disk takes a part, and is an error of the next call only. */
        MPI_Get_count(&status, MPI_BYTE, &put);
        if (put <= 0 || put > piece) {
            snprintf(error, CHECKPOINT_ERROR_BYTES,
                     "write: %d of %d bytes at byte %" PRId64 "; is the disk full?", put, piece,
                     at);
            return false;
        }
        at += put;
        from += put;
        n -= put;
    }
    return true;
}

static int write_header(LemonWriter *writer, const char *text)
{
    MPI_Offset n = (MPI_Offset)strlen(text), written = n;
    LemonRecordHeader *header = lemonCreateHeader(1, 0, CHECKPOINT_HEADER_TYPE, n);
    int code = lemonWriteRecordHeader(header, writer);
    lemonDestroyHeader(header);
    if (code == LEMON_SUCCESS)
        code = lemonWriteRecordData((void *)(uintptr_t)text, &written, writer);
    return code == LEMON_SUCCESS ? lemonWriterCloseRecord(writer) : code;
}

static bool open_writer(const struct checkpoint_world *world, struct checkpoint_output *out)
{
    if (out->writer)
        return true;
    out->writer = lemonCreateWriter(&out->file, MPI_COMM_WORLD);
    if (!checkpoint_report(world, out->path, out->writer ? "" : "no memory"))
        return false;
    lemonWriterSetPath(out->writer, out->temporary); /* in vain, perhaps */
    return true;
}

bool checkpoint_output_write(const struct checkpoint_world *world,
                             struct checkpoint_output *out, const char *header,
                             const LemonDomain *domain, const LemonParticle *particle,
                             const void *particles, int64_t count, int flags)
{
    if (!open_writer(world, out))
        return false;
    int code = header ? write_header(out->writer, header) : LEMON_SUCCESS;
    if (code == LEMON_SUCCESS)
        code =
            lemonWriteCells(out->writer, !header, 1, domain, particle, particles, count, flags);
    return checkpoint_lemon(world, out->path, "write", code);
}
