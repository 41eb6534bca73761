/* input.c - open a file, find the checkpoint in it and read it */
#include "input.h"
#include "limefile.h"
#include "mardyn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const checkpoint_decomposition_names[] = {"regular", "kd", NULL};

/* Opens in->path; to be called on rank 0. Sets absolute to the path for MPI-IO, because MPI
 * libraries misparse some relative paths. Sets error on failure. */
static void open_on_rank_0(struct checkpoint_input *in, char absolute[PATH_MAX],
                           char error[CHECKPOINT_ERROR_BYTES])
{
    in->fd = limefile_open(in->path, O_RDONLY);
    if (in->fd == -EISDIR || in->fd == LIMEFILE_E_NOT_FILE)
        snprintf(error, CHECKPOINT_ERROR_BYTES, "not a regular file");
    else if (in->fd < 0)
        snprintf(error, CHECKPOINT_ERROR_BYTES, "open: %s", limefile_strerror(in->fd));
    else if (!realpath(in->path, absolute))
        snprintf(error, CHECKPOINT_ERROR_BYTES, "open: %s", strerror(errno));
}

static void close_fd(struct checkpoint_input *in)
{
    if (in->fd >= 0)
        close(in->fd);
    in->fd = -1;
}

static bool open_input(const struct checkpoint_world *world, struct checkpoint_input *in)
{
    char error[CHECKPOINT_ERROR_BYTES] = "", absolute[PATH_MAX] = "";
    if (world->rank == 0)
        open_on_rank_0(in, absolute, error);
    if (!checkpoint_report(world, in->path, error))
        return false;
    MPI_Bcast(absolute, sizeof absolute, MPI_CHAR, 0, MPI_COMM_WORLD);
    int err =
        MPI_File_open(MPI_COMM_WORLD, absolute, MPI_MODE_RDONLY, MPI_INFO_NULL, &in->file);
    if (!checkpoint_report(world, in->path, err ? checkpoint_mpi_strerror(err, error) : ""))
        return false;
    in->reader = lemonCreateReader(&in->file, MPI_COMM_WORLD);
    if (!in->reader)
        checkpoint_abort("out of memory");
    return true;
}

/* Reads the open record into in->header. Sets in->header to NULL if the record is empty, too
 * long or contains a NUL. Returns a Lemon code. */
static int load_header(struct checkpoint_input *in)
{
    MPI_Offset n = lemonReaderBytes(in->reader);
    free(in->header);
    in->header = NULL;
    if (n > CHECKPOINT_HEADER_MAX || n == 0)
        return LEMON_SUCCESS;
    char *text = checkpoint_allocate(NULL, n + 1, 1);
    memset(text, 0, (size_t)n + 1);
    int code = lemonReaderReadData(text, &n, in->reader);
    if (code == LEMON_SUCCESS && strlen(text) == (size_t)n)
        in->header = text;
    else
        free(text);
    return code;
}

/* Opens the first record of the file's first checkpoint. Sets in->header only from a record
 * that precedes the checkpoint in the same message. Returns a Lemon code. */
static int find_checkpoint(struct checkpoint_input *in)
{
    for (;;) {
        int code = lemonReaderNextRecord(in->reader);
        const char *type = lemonReaderType(in->reader);
        if (code != LEMON_SUCCESS)
            return code;
        if (lemonReaderMBFlag(in->reader)) {
            free(in->header);
            in->header = NULL;
        }
        if (type && strcmp(type, LEMON_CELLS_FORMAT_TYPE) == 0)
            return LEMON_SUCCESS;
        if (type && strcmp(type, LEMON_CELLS_INDEX_TYPE) == 0)
            return LEMON_SUCCESS;
        if (type && strcmp(type, CHECKPOINT_HEADER_TYPE) == 0)
            code = load_header(in);
        if (code != LEMON_SUCCESS)
            return code;
    }
}

bool checkpoint_input_open(const struct checkpoint_world *world, const char *path,
                           struct checkpoint_input *in)
{
    *in = (struct checkpoint_input){.path = path, .fd = -1, .file = MPI_FILE_NULL};
    if (!open_input(world, in)) {
        close_fd(in);
        return false;
    }
    int code = find_checkpoint(in);
    if (code == LEMON_SUCCESS)
        code = lemonNextCells(in->reader, &in->cells);
    if (checkpoint_check_code(world, path, NULL, code))
        return true;
    checkpoint_input_close(in);
    return false;
}

void checkpoint_input_close(struct checkpoint_input *in)
{
    if (in->cells)
        lemonFreeCells(in->cells);
    lemonDestroyReader(in->reader);
    MPI_File_close(&in->file);
    close_fd(in);
    free(in->header);
    *in = (struct checkpoint_input){.fd = -1, .file = MPI_FILE_NULL};
}

bool checkpoint_input_read_box(const struct checkpoint_world *world,
                               struct checkpoint_input *in, const double lower[3],
                               const double upper[3], int flags, struct checkpoint_particles *p)
{
    MPI_Offset count = 0;
    void *data = NULL;
    int code = lemonReadCells(in->reader, in->cells, lower, upper, &data, &count, flags);
    if (!checkpoint_check_code(world, in->path, "read", code))
        return false;
    *p = (struct checkpoint_particles){
        .data = data, .count = count, .capacity = count, .bytes = in->cells->particle.bytes};
    return true;
}

bool checkpoint_input_read(const struct checkpoint_world *world, struct checkpoint_input *in,
                           enum checkpoint_decomposition decomposition, int flags,
                           struct checkpoint_particles *p)
{
    double lower[3], upper[3];
    int code = decomposition == CHECKPOINT_KD
                   ? lemonBalancedBox(in->cells, world->ranks, world->rank, lower, upper)
                   : lemonRegularBox(&in->cells->domain, NULL, world->ranks, world->rank, lower,
                                     upper);
    int worst = code;
    MPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!checkpoint_check_code(world, in->path, "decompose", worst))
        return false;
    return checkpoint_input_read_box(world, in, lower, upper, flags, p);
}
