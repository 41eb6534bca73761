/* output.c - write a file completely or not at all */
#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    CHUNK_BYTES = 8 << 20, /* longer writes stall at times */
    ERRNO_MAX = 4095,
    PARTICLES_PER_CELL = 1000,
    CELLS_PER_DIM = 128,
};

/* Sets text to the message for err, or to "" if err is 0, and returns it. `action` precedes the
 * message, except for -EISDIR and limefile.h's own codes, whose messages need no action. */
static const char *get_reason(int err, const char *action, char text[CHECKPOINT_ERROR_BYTES])
{
    if (err < -ERRNO_MAX || err == -EISDIR)
        action = "";
    snprintf(text, CHECKPOINT_ERROR_BYTES, "%s%s", err ? action : "",
             err ? limefile_strerror(err) : "");
    return text;
}

/* Runs on rank 0. Returns 0, -errno or an error code of limefile.h. */
static int create_output(const char *path, bool force, int input, struct checkpoint_output *out)
{
    int err = limefile_output_open(&out->output, path, force, &input, input >= 0);
    if (err)
        return err;
    if (strlen(out->output.temporary) >= sizeof out->temporary)
        return -ENAMETOOLONG;
    strcpy(out->temporary, out->output.temporary);
    return 0;
}

static void remove_output(const struct checkpoint_world *world, struct checkpoint_output *out)
{
    if (world->rank == 0)
        limefile_output_abort(&out->output);
}

bool checkpoint_output_check(const struct checkpoint_world *world, const char *path, bool force,
                             int input)
{
    char text[CHECKPOINT_ERROR_BYTES];
    struct limefile_output out;
    int err = 0;
    if (world->rank == 0 &&
        (err = limefile_output_open(&out, path, force, &input, input >= 0)) == 0)
        limefile_output_abort(&out);
    return checkpoint_report(world, path, get_reason(err, "create: ", text));
}

bool checkpoint_output_open(const struct checkpoint_world *world, const char *path, bool force,
                            int input, struct checkpoint_output *out)
{
    char text[CHECKPOINT_ERROR_BYTES];
    *out = (struct checkpoint_output){
        .path = path, .output = {.fd = -1, .old = -1, .dir_fd = -1}, .file = MPI_FILE_NULL};
    int err = world->rank == 0 ? create_output(path, force, input, out) : 0;
    if (!checkpoint_report(world, path, get_reason(err, "create: ", text))) {
        remove_output(world, out);
        return false;
    }
    MPI_Bcast(out->temporary, sizeof out->temporary, MPI_CHAR, 0, MPI_COMM_WORLD);
    err =
        MPI_File_open(MPI_COMM_WORLD, out->temporary, MPI_MODE_RDWR, MPI_INFO_NULL, &out->file);
    if (checkpoint_report(world, path, err ? checkpoint_mpi_strerror(err, text) : ""))
        return true;
    out->file = err ? MPI_FILE_NULL : out->file;
    remove_output(world, out);
    return false;
}

void checkpoint_output_abort(const struct checkpoint_world *world,
                             struct checkpoint_output *out)
{
    if (out->writer)
        lemonDestroyWriter(out->writer);
    out->writer = NULL;
    if (out->file != MPI_FILE_NULL)
        MPI_File_close(&out->file);
    remove_output(world, out);
}

static bool sync_and_close(const struct checkpoint_world *world, struct checkpoint_output *out)
{
    char text[CHECKPOINT_ERROR_BYTES];
    int code = out->writer ? lemonDestroyWriter(out->writer) : LEMON_SUCCESS;
    out->writer = NULL;
    if (!checkpoint_check_code(world, out->path, "write", code))
        return false;
    int err = MPI_File_sync(out->file);
    if (!checkpoint_report(world, out->path, err ? checkpoint_mpi_strerror(err, text) : ""))
        return false;
    err = MPI_File_close(&out->file);
    return checkpoint_report(world, out->path, err ? checkpoint_mpi_strerror(err, text) : "");
}

bool checkpoint_output_commit(const struct checkpoint_world *world,
                              struct checkpoint_output *out)
{
    char text[CHECKPOINT_ERROR_BYTES];
    bool good = sync_and_close(world, out);
    if (good) {
        int err = world->rank == 0 ? limefile_output_commit(&out->output) : 0;
        good = checkpoint_report(world, out->path, get_reason(err, "sync and rename: ", text));
    }
    checkpoint_output_abort(world, out);
    return good;
}

bool checkpoint_output_write_at(struct checkpoint_output *out, int64_t at, const void *data,
                                int64_t n, char error[CHECKPOINT_ERROR_BYTES])
{
    const char *from = data;
    while (n > 0) {
        int chunk = n < CHUNK_BYTES ? (int)n : CHUNK_BYTES, written = 0;
        MPI_Status status;
        int err = MPI_File_write_at(out->file, at, from, chunk, MPI_BYTE, &status);
        if (err) {
            checkpoint_mpi_strerror(err, error);
            return false;
        }
        /* A call that fills the disk writes less, without an error; the next call fails. */
        MPI_Get_count(&status, MPI_BYTE, &written);
        if (written <= 0 || written > chunk) {
            snprintf(error, CHECKPOINT_ERROR_BYTES,
                     "write: %d of %d bytes at byte %" PRId64 "; is the disk full?", written,
                     chunk, at);
            return false;
        }
        at += written;
        from += written;
        n -= written;
    }
    return true;
}

void checkpoint_choose_cells(LemonDomain *domain, int64_t particles)
{
    const double *length = domain->length;
    double cells = fmax(1, (double)particles / PARTICLES_PER_CELL);
    double edge = cbrt(length[0]) * cbrt(length[1]) * cbrt(length[2]) / cbrt(cells);
    for (int d = 0; d < 3; d++) {
        double n = floor(length[d] / edge + 0.5);
        domain->cells[d] = n >= CELLS_PER_DIM ? CELLS_PER_DIM : n >= 1 ? (int64_t)n : 1;
    }
}

int checkpoint_write_text(LemonWriter *writer, const char *type, const char *text,
                          int message_ends)
{
    MPI_Offset n = (MPI_Offset)strlen(text), written = n;
    LemonRecordHeader *header = lemonCreateHeader(1, message_ends, type, n);
    int code = lemonWriteRecordHeader(header, writer);
    lemonDestroyHeader(header);
    if (code == LEMON_SUCCESS)
        code = lemonWriteRecordData((void *)(uintptr_t)text, &written, writer);
    return code == LEMON_SUCCESS ? lemonWriterCloseRecord(writer) : code;
}

void checkpoint_output_create_writer(struct checkpoint_output *out)
{
    if (out->writer)
        return;
    out->writer = lemonCreateWriter(&out->file, MPI_COMM_WORLD);
    if (!out->writer)
        checkpoint_abort("out of memory");
    lemonWriterSetPath(out->writer, out->temporary); /* for speed; may fail */
}

bool checkpoint_output_write(const struct checkpoint_world *world,
                             struct checkpoint_output *out, const char *header,
                             const LemonDomain *domain, const LemonParticle *particle,
                             const struct checkpoint_particles *p, int flags, bool quiet)
{
    double start = MPI_Wtime();
    int code = LEMON_SUCCESS;
    checkpoint_output_create_writer(out);
    if (header)
        code = checkpoint_write_text(out->writer, CHECKPOINT_HEADER_TYPE, header, 0);
    if (code == LEMON_SUCCESS)
        code = lemonWriteCells(out->writer, !header, 1, domain, particle, p->data, p->count,
                               flags);
    if (!checkpoint_check_code(world, out->path, "write", code) ||
        !checkpoint_output_commit(world, out))
        return false;
    checkpoint_print_transfer(world, "written", out->path, p, MPI_Wtime() - start, quiet);
    return true;
}
