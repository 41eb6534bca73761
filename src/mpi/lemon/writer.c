/* writer.c - records written one after another by all ranks together */
#include "internal.h"
#include "descriptor.h"
#include "limefile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    ALIGNMENT_MAX = 1 << 30,
};

LemonWriter *lemonCreateWriter(MPI_File *fp, MPI_Comm cartesian)
{
    struct lemon_internal *in = lemon_internal_new(fp, cartesian);
    LemonWriter *writer = in ? calloc(1, sizeof *writer) : NULL;
    MPI_Offset begin = 0;
    if (!in)
        return NULL;
    if (MPI_File_get_position(*fp, &begin) != MPI_SUCCESS)
        begin = 0; /* not where the others are, if they know: that is refused */
    int64_t values[1] = {begin};
    if (lemon_agree_on(in, writer ? LEMON_SUCCESS : LEMON_ERR_PARAM, values, 1) !=
        LEMON_SUCCESS) {
        lemon_internal_free(in);
        free(writer);
        return NULL;
    }
    writer->fp = fp;
    writer->cartesian = in->comm;
    writer->my_rank = in->rank;
    writer->is_awaiting_header = 1;
    writer->is_first_record = 1;
    writer->internal = in;
    /* The container to append to may lack its last padding: that becomes a hole of zeros. */
    writer->off = begin + limefile_padding((uint64_t)begin);
    return writer;
}

int lemonFinishWriting(LemonWriter *writer)
{
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonFinishWriting: no writer");
    if (!writer->is_busy)
        return LEMON_SUCCESS;
    writer->is_busy = 0;
    struct lemon_internal *in = writer->internal;
    int code = lemon_finish(in);
    lemon_sum_end(in, code);
    if (code != LEMON_SUCCESS) { /* nothing counts as written, so that it can be tried again */
        writer->pos = in->undo.pos;
        in->filled = in->undo.filled;
        in->written = in->undo.written;
    }
    return code;
}

void lemon_writer_begin_busy(LemonWriter *writer)
{
    writer->is_busy = 1;
    writer->internal->undo.pos = writer->pos;
    writer->internal->undo.filled = writer->internal->filled;
    writer->internal->undo.written = writer->internal->written;
}

/* What each call begins with: waits, and makes sure that a record is open. */
static int ready(LemonWriter *writer, const char *call, int otherwise)
{
    int code = lemonFinishWriting(writer);
    if (code == LEMON_SUCCESS && writer->is_awaiting_header)
        code = lemon_say(writer->internal, otherwise, "%s: no record is open", call);
    return code;
}

int lemonDestroyWriter(LemonWriter *writer)
{
    if (!writer)
        return LEMON_SUCCESS;
    int code = lemonFinishWriting(writer);
    if (code == LEMON_SUCCESS && !writer->is_awaiting_header) {
        code = lemonWriterCloseRecord(writer);
        if (code == LEMON_ERR_CLOSE)
            code = LEMON_ERR_LAST_NOT_WRITTEN;
    }
    lemon_internal_free(writer->internal);
    free(writer);
    return code;
}

/* ---- position ---- */

static void move_to(LemonWriter *writer, int64_t pos)
{
    writer->pos = pos;
    if (writer->internal->filled < pos)
        writer->internal->filled = pos;
}

void lemon_writer_move_on(LemonWriter *writer, int64_t n)
{
    move_to(writer, writer->pos + n);
    if (writer->internal->written < writer->pos)
        writer->internal->written = writer->pos;
}

int lemonWriterSeek(LemonWriter *writer, MPI_Offset offset, int whence)
{
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriterSeek: no writer");
    struct lemon_internal *in = writer->internal;
    int code = ready(writer, "lemonWriterSeek", LEMON_ERR_PARAM);
    int64_t values[2] = {offset, whence};
    code = lemon_agree_on(in, code, values, 2);
    if (code != LEMON_SUCCESS)
        return code;
    MPI_Offset to;
    code = lemon_seek(in, writer->pos, writer->data_length, offset, whence, &to);
    if (code != LEMON_SUCCESS)
        return code;
    move_to(writer, to);
    return lemon_point(in, writer->off + writer->pos);
}

int lemonWriterSetState(LemonWriter *wdest, LemonWriter const *wsrc)
{
    if (!wdest || !wsrc)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriterSetState: no writer");
    int code = lemonFinishWriting(wdest);
    if (wsrc->is_busy)
        code = lemon_say(wdest->internal, LEMON_ERR_PARAM, "a call is pending in the source");
    code = lemon_agree(wdest->internal, code);
    if (code != LEMON_SUCCESS)
        return code;
    wdest->off = wsrc->off;
    wdest->pos = wsrc->pos;
    wdest->is_awaiting_header = wsrc->is_awaiting_header;
    wdest->is_first_record = wsrc->is_first_record;
    wdest->is_last = wsrc->is_last;
    wdest->is_last_written = wsrc->is_last_written;
    wdest->data_length = wsrc->data_length;
    wdest->internal->filled = wsrc->internal->filled;
    wdest->internal->written = wsrc->internal->written;
    lemon_sum_forget(wdest->internal);
    return LEMON_SUCCESS;
}

int lemonWriterSetStripe(LemonWriter *writer, MPI_Offset bytes)
{
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriterSetStripe: no writer");
    int code = lemonFinishWriting(writer);
    return code == LEMON_SUCCESS ? lemon_take_stripe(writer->internal, bytes) : code;
}

int lemonWriterSetInfo(LemonWriter *writer, MPI_Info info)
{
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriterSetInfo: no writer");
    int code = lemonFinishWriting(writer);
    return code == LEMON_SUCCESS ? lemon_take_hints(writer->internal, info) : code;
}

static int open_path(const struct lemon_internal *in, const char *path, int *fd)
{
    *fd = path ? limefile_open_at(AT_FDCWD, path, O_WRONLY | O_NONBLOCK | O_NOCTTY, 0) : -1;
    return !path || *fd >= 0 ? LEMON_SUCCESS
                             : lemon_say(in, LEMON_ERR_PARAM, "%s cannot be opened: %s", path,
                                         strerror(-*fd));
}

int lemonWriterSetPath(LemonWriter *writer, char const *path)
{
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriterSetPath: no writer");
    struct lemon_internal *in = writer->internal;
    int fd = -1, code = lemonFinishWriting(writer);
    if (code != LEMON_SUCCESS)
        return code;
    code = lemon_agree(in, open_path(in, path, &fd));
    int other = code == LEMON_SUCCESS ? in->file.start_fd : fd;
    if (code == LEMON_SUCCESS)
        in->file.start_fd = fd;
    if (other >= 0)
        close(other);
    return code;
}

int lemonWriterSetAlignment(LemonWriter *writer, MPI_Offset alignment, MPI_Offset from_bytes)
{
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriterSetAlignment: no writer");
    struct lemon_internal *in = writer->internal;
    int64_t values[2] = {alignment, from_bytes};
    int code = lemonFinishWriting(writer);
    if (alignment < 0 || alignment > ALIGNMENT_MAX || alignment % LIMEFILE_ALIGN)
        code = lemon_say(in, LEMON_ERR_PARAM,
                         "an alignment is a multiple of 8, at most 1 GiB; 0 is none");
    if (from_bytes < 0)
        code = lemon_say(in, LEMON_ERR_PARAM, "a record has 0 bytes or more");
    code = lemon_agree_on(in, code, values, 2);
    if (code != LEMON_SUCCESS)
        return code;
    in->alignment = alignment;
    in->align_from = from_bytes;
    return LEMON_SUCCESS;
}

/* ---- data ---- */

/* The arguments, agreed on by all ranks, and room for n bytes. */
static int check_data(LemonWriter *writer, int code, const void *source, MPI_Offset n)
{
    int64_t values[1] = {n};
    if (code == LEMON_SUCCESS && (n < 0 || (n > 0 && !source)))
        code = lemon_say(writer->internal, LEMON_ERR_PARAM, "no data, or a negative length");
    code = lemon_agree_on(writer->internal, code, values, 1);
    if (code == LEMON_SUCCESS &&
        !lemon_fits(writer->internal, n, writer->data_length - writer->pos))
        code = lemon_say(writer->internal, LEMON_ERR_WRITE,
                         "%lld bytes for the %lld that the record has left", (long long)n,
                         (long long)(writer->data_length - writer->pos));
    return code;
}

int lemonWriteRecordData(void *source, MPI_Offset *nbytes, LemonWriter *writer)
{
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriteRecordData: no writer");
    struct lemon_internal *in = writer->internal;
    int code = ready(writer, "lemonWriteRecordData", LEMON_ERR_HEADER_NEXT);
    if (code == LEMON_SUCCESS && !nbytes)
        code = lemon_say(in, LEMON_ERR_PARAM, "lemonWriteRecordData: no length");
    MPI_Offset n = nbytes ? *nbytes : 0;
    code = check_data(writer, code, source, n);
    if (code == LEMON_SUCCESS) {
        if (in->rank == 0)
            code = lemon_move_bytes(in, LEMON_WRITE, source, n, writer->off + writer->pos);
        code = lemon_agree(in, code);
    }
    if (code == LEMON_SUCCESS)
        lemon_writer_move_on(writer, n);
    else if (nbytes)
        *nbytes = 0;
    return code;
}

int lemonWriteRecordDataNonBlocking(void *source, MPI_Offset const *nbytes, LemonWriter *writer)
{
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriteRecordDataNonBlocking: no writer");
    struct lemon_internal *in = writer->internal;
    int code = ready(writer, "lemonWriteRecordDataNonBlocking", LEMON_ERR_HEADER_NEXT);
    if (code == LEMON_SUCCESS && !nbytes)
        code = lemon_say(in, LEMON_ERR_PARAM, "no length");
    MPI_Offset n = nbytes ? *nbytes : 0;
    code = check_data(writer, code, source, n);
    if (code != LEMON_SUCCESS)
        return code;
    lemon_start_bytes(in, LEMON_WRITE, source, n, writer->off + writer->pos);
    lemon_writer_begin_busy(writer);
    lemon_writer_move_on(writer, n);
    return LEMON_SUCCESS;
}

/* ---- lattices ---- */

static int write_lattice(LemonWriter *writer, void *data, MPI_Offset site_bytes,
                         int const *lattice, int const *mapping, int const *memory, bool wait)
{
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lattice write: no writer");
    struct lemon_internal *in = writer->internal;
    int code = ready(writer, "lattice write", LEMON_ERR_WRITE);
    if (code == LEMON_SUCCESS)
        code = lemon_sum_reserve(in);
    code = lemon_lattice_check(in, code, data, site_bytes, lattice, mapping, memory);
    if (code != LEMON_SUCCESS)
        return code;
    int64_t bytes = lemon_geometry_bytes(in);
    if (!lemon_fits(in, bytes, writer->data_length - writer->pos))
        return lemon_say(in, LEMON_ERR_WRITE,
                         "a lattice of %lld bytes for the %lld that the record has left",
                         (long long)bytes, (long long)(writer->data_length - writer->pos));
    code = lemon_sum_begin(in, writer->pos);
    if (code != LEMON_SUCCESS)
        return code;
    MPI_Offset at = writer->off + writer->pos;
    if (wait) {
        code = lemon_agree(in, lemon_move_ordered(in, LEMON_WRITE, data, at));
        lemon_sum_end(in, code);
    } else {
        lemon_start_lattice(in, LEMON_WRITE, data, at);
        lemon_writer_begin_busy(writer);
    }
    if (code == LEMON_SUCCESS)
        lemon_writer_move_on(writer, bytes);
    return code;
}

int lemonWriteLatticeParallel(LemonWriter *writer, void *data, MPI_Offset siteSize,
                              int const *latticeDims)
{
    return write_lattice(writer, data, siteSize, latticeDims, NULL, NULL, true);
}

int lemonWriteLatticeParallelMapped(LemonWriter *writer, void *data, MPI_Offset siteSize,
                                    int const *latticeDims, int const *mapping)
{
    return write_lattice(writer, data, siteSize, latticeDims, mapping, NULL, true);
}

int lemonWriteLatticeParallelPermuted(LemonWriter *writer, void *data, MPI_Offset siteSize,
                                      int const *latticeDims, int const *mapping,
                                      int const *memory)
{
    return write_lattice(writer, data, siteSize, latticeDims, mapping,
                         memory ? memory : lemon_identity, true);
}

int lemonWriteLatticeParallelNonBlocking(LemonWriter *writer, void *data, MPI_Offset siteSize,
                                         int const *latticeDims)
{
    return write_lattice(writer, data, siteSize, latticeDims, NULL, NULL, false);
}

int lemonWriteLatticeParallelNonBlockingMapped(LemonWriter *writer, void *data,
                                               MPI_Offset siteSize, int const *latticeDims,
                                               int const *mapping)
{
    return write_lattice(writer, data, siteSize, latticeDims, mapping, NULL, false);
}
