/* writer.c - write a container record by record, by all ranks together */
#include "descriptor.h"
#include "internal.h"
#include "lemon_inside.h"
#include "limefile.h"
#include "scidac_checksum.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- fillers: align the data of the next record ---- */

enum {
    FILLER_CHUNK = 1 << 20, /* bytes of zeros per write */
};

/* A filler at `offset` aligns the data of the next record to `alignment`. Returns the filler's
 * size with its header, or 0 if no filler is necessary. All values are multiples of 8. */
static int64_t filler_bytes(int64_t offset, int64_t alignment)
{
    int64_t excess = (offset + LIMEFILE_HEADER_BYTES) % alignment;
    int64_t gap = excess ? alignment - excess : 0;
    if (gap == 0 || gap >= LIMEFILE_HEADER_BYTES)
        return gap;
    int64_t missing = LIMEFILE_HEADER_BYTES - gap;
    return gap + (missing + alignment - 1) / alignment * alignment;
}

/* A filler before a message has both MB and ME, a filler inside a message has neither. */
static int encode_filler(int64_t bytes, bool begins_message, unsigned char *raw)
{
    struct limefile_header header;
    int err = limefile_header_init(&header, LEMON_FILLER_TYPE, strlen(LEMON_FILLER_TYPE),
                                   (uint64_t)(bytes - LIMEFILE_HEADER_BYTES), begins_message,
                                   begins_message);
    return err ? err : limefile_header_encode(&header, raw);
}

static int write_filler(struct lemon_internal *in, int64_t offset, int64_t bytes,
                        bool begins_message)
{
    int64_t chunk = bytes < FILLER_CHUNK ? bytes : FILLER_CHUNK;
    unsigned char *buffer = calloc(1, (size_t)chunk);
    if (!buffer || encode_filler(bytes, begins_message, buffer) != 0) {
        free(buffer);
        return lemon_log(in, LEMON_ERR_WRITE, "out of memory for a filler record");
    }
    int code = lemon_move_bytes(in, LEMON_WRITE, buffer, chunk, offset);
    memset(buffer, 0, LIMEFILE_HEADER_BYTES);
    /* Write zeros instead of a hole, because an overwritten file has other bytes there. */
    for (int64_t done = chunk; done < bytes && code == LEMON_SUCCESS; done += chunk) {
        int64_t n = bytes - done < chunk ? bytes - done : chunk;
        code = lemon_move_bytes(in, LEMON_WRITE, buffer, n, offset + done);
    }
    free(buffer);
    return code;
}

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
        begin = 0; /* lemon_agree_on() fails if other ranks have another position */
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
    /* If the file lacks the last record's padding, this leaves a hole, which reads as zeros. */
    writer->off = begin + limefile_padding((uint64_t)begin);
    return writer;
}

int lemonFinishWriting(LemonWriter *writer)
{
    if (!writer)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonFinishWriting: no writer");
    if (!writer->is_busy)
        return LEMON_SUCCESS;
    writer->is_busy = 0;
    struct lemon_internal *in = writer->internal;
    int code = lemon_finish_pending(in);
    lemon_sum_end(in, code);
    if (code != LEMON_SUCCESS) { /* restore the state, so that the program can retry */
        writer->pos = in->undo.pos;
        in->filled = in->undo.filled;
        in->written = in->undo.written;
    }
    return code;
}

void lemon_writer_set_busy(LemonWriter *writer)
{
    writer->is_busy = 1;
    writer->internal->undo.pos = writer->pos;
    writer->internal->undo.filled = writer->internal->filled;
    writer->internal->undo.written = writer->internal->written;
}

/* Waits for a pending call. Returns its error, or no_record_code if no record is open. */
static int check_writer_open(LemonWriter *writer, const char *call, int no_record_code)
{
    int code = lemonFinishWriting(writer);
    if (code == LEMON_SUCCESS && writer->is_awaiting_header)
        code = lemon_log(writer->internal, no_record_code, "%s: no record is open", call);
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

static void set_position(LemonWriter *writer, int64_t pos)
{
    writer->pos = pos;
    if (writer->internal->filled < pos)
        writer->internal->filled = pos;
}

void lemon_writer_advance(LemonWriter *writer, int64_t n)
{
    set_position(writer, writer->pos + n);
    if (writer->internal->written < writer->pos)
        writer->internal->written = writer->pos;
}

int lemonWriterSeek(LemonWriter *writer, MPI_Offset offset, int whence)
{
    if (!writer)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonWriterSeek: no writer");
    struct lemon_internal *in = writer->internal;
    int code = check_writer_open(writer, "lemonWriterSeek", LEMON_ERR_PARAM);
    int64_t values[2] = {offset, whence};
    code = lemon_agree_on(in, code, values, 2);
    if (code != LEMON_SUCCESS)
        return code;
    MPI_Offset to;
    code = lemon_compute_seek(in, writer->pos, writer->data_length, offset, whence, &to);
    if (code != LEMON_SUCCESS)
        return code;
    set_position(writer, to);
    return lemon_set_file_pointer(in, writer->off + writer->pos);
}

int lemonWriterSetState(LemonWriter *wdest, LemonWriter const *wsrc)
{
    if (!wdest || !wsrc)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonWriterSetState: no writer");
    int code = lemonFinishWriting(wdest);
    if (wsrc->is_busy)
        code = lemon_log(wdest->internal, LEMON_ERR_PARAM, "the source has a pending call");
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
    lemon_sum_reset(wdest->internal);
    return LEMON_SUCCESS;
}

int lemonWriterSetStripe(LemonWriter *writer, MPI_Offset bytes)
{
    int code = lemonFinishWriting(writer);
    return code == LEMON_SUCCESS ? lemon_set_stripe(writer->internal, bytes) : code;
}

int lemonWriterSetInfo(LemonWriter *writer, MPI_Info info)
{
    int code = lemonFinishWriting(writer);
    return code == LEMON_SUCCESS ? lemon_set_hints(writer->internal, info) : code;
}

static int open_writeback_path(const struct lemon_internal *in, const char *path, int *fd)
{
    *fd = path ? limefile_open_at(AT_FDCWD, path, O_WRONLY | O_NONBLOCK | O_NOCTTY, 0) : -1;
    return !path || *fd >= 0 ? LEMON_SUCCESS
                             : lemon_log(in, LEMON_ERR_PARAM, "%s: cannot open for writing: %s",
                                         path, strerror(-*fd));
}

int lemonWriterSetPath(LemonWriter *writer, char const *path)
{
    if (!writer)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonWriterSetPath: no writer");
    struct lemon_internal *in = writer->internal;
    int fd = -1, code = lemonFinishWriting(writer);
    if (code != LEMON_SUCCESS)
        return code;
    code = lemon_agree(in, open_writeback_path(in, path, &fd));
    int unused_fd = code == LEMON_SUCCESS ? in->file.writeback_fd : fd;
    if (code == LEMON_SUCCESS)
        in->file.writeback_fd = fd;
    if (unused_fd >= 0)
        close(unused_fd);
    return code;
}

int lemonWriterSetAlignment(LemonWriter *writer, MPI_Offset alignment, MPI_Offset from_bytes)
{
    if (!writer)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonWriterSetAlignment: no writer");
    struct lemon_internal *in = writer->internal;
    int64_t values[2] = {alignment, from_bytes};
    int code = lemonFinishWriting(writer);
    if (alignment < 0 || alignment > ALIGNMENT_MAX || alignment % LIMEFILE_ALIGN)
        code = lemon_log(in, LEMON_ERR_PARAM,
                         "alignment: must be a multiple of 8, at most 1 GiB, or 0");
    if (from_bytes < 0)
        code = lemon_log(in, LEMON_ERR_PARAM, "alignment: from_bytes is negative");
    code = lemon_agree_on(in, code, values, 2);
    if (code != LEMON_SUCCESS)
        return code;
    in->alignment = alignment;
    in->align_from = from_bytes;
    return LEMON_SUCCESS;
}

/* Sets *n to *nbytes. Checks that *n is the same on all ranks, and fits into the record. */
static int check_write_data(LemonWriter *writer, const char *call, const void *source,
                            const MPI_Offset *nbytes, MPI_Offset *n)
{
    struct lemon_internal *in = writer->internal;
    int code = check_writer_open(writer, call, LEMON_ERR_HEADER_NEXT);
    if (code == LEMON_SUCCESS && !nbytes)
        code = lemon_log(in, LEMON_ERR_PARAM, "%s: nbytes is NULL", call);
    *n = nbytes ? *nbytes : 0;
    int64_t values[1] = {*n}, left = writer->data_length - writer->pos;
    if (code == LEMON_SUCCESS && (*n < 0 || (*n > 0 && !source)))
        code = lemon_log(in, LEMON_ERR_PARAM, "%s: no data, or a negative length", call);
    code = lemon_agree_on(in, code, values, 1);
    if (code == LEMON_SUCCESS && !lemon_data_fits(in, *n, left))
        code =
            lemon_log(in, LEMON_ERR_WRITE, "%s: %lld bytes exceed the %lld left in the record",
                      call, (long long)*n, (long long)left);
    return code;
}

int lemonWriteRecordData(void *source, MPI_Offset *nbytes, LemonWriter *writer)
{
    if (!writer)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonWriteRecordData: no writer");
    struct lemon_internal *in = writer->internal;
    MPI_Offset n;
    int code = check_write_data(writer, "lemonWriteRecordData", source, nbytes, &n);
    if (code == LEMON_SUCCESS) {
        if (in->rank == 0)
            code = lemon_move_bytes(in, LEMON_WRITE, source, n, writer->off + writer->pos);
        code = lemon_agree(in, code);
    }
    if (code == LEMON_SUCCESS)
        lemon_writer_advance(writer, n);
    else if (nbytes)
        *nbytes = 0;
    return code;
}

int lemonWriteRecordDataNonBlocking(void *source, MPI_Offset const *nbytes, LemonWriter *writer)
{
    if (!writer)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonWriteRecordDataNonBlocking: no writer");
    MPI_Offset n;
    int code = check_write_data(writer, "lemonWriteRecordDataNonBlocking", source, nbytes, &n);
    if (code != LEMON_SUCCESS)
        return code;
    lemon_start_bytes(writer->internal, LEMON_WRITE, source, n, writer->off + writer->pos);
    lemon_writer_set_busy(writer);
    lemon_writer_advance(writer, n);
    return LEMON_SUCCESS;
}

/* memory NULL: the disk order. wait false: only starts to write, and `data` must exist until
 * lemonFinishWriting(), which returns the errors. Collective, agreed. */
static int write_lattice(LemonWriter *writer, void *data, MPI_Offset site_bytes,
                         int const *lattice, int const *mapping, int const *memory, bool wait)
{
    if (!writer)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lattice write: no writer");
    struct lemon_internal *in = writer->internal;
    int code = check_writer_open(writer, "lattice write", LEMON_ERR_WRITE);
    if (code == LEMON_SUCCESS)
        code = lemon_sum_reserve(in);
    code = lemon_check_lattice(in, code, data, site_bytes, lattice, mapping, memory);
    if (code != LEMON_SUCCESS)
        return code;
    int64_t bytes = lemon_geometry_bytes(in);
    if (!lemon_data_fits(in, bytes, writer->data_length - writer->pos))
        return lemon_log(in, LEMON_ERR_WRITE,
                         "lattice: %lld bytes exceed the %lld left in the record",
                         (long long)bytes, (long long)(writer->data_length - writer->pos));
    code = lemon_sum_begin(in, writer->pos);
    if (code != LEMON_SUCCESS)
        return code;
    MPI_Offset at = writer->off + writer->pos;
    if (wait) {
        code = lemon_agree(in, lemon_move_lattice(in, LEMON_WRITE, data, at));
        lemon_sum_end(in, code);
    } else {
        lemon_start_lattice(in, LEMON_WRITE, data, at);
        lemon_writer_set_busy(writer);
    }
    if (code == LEMON_SUCCESS)
        lemon_writer_advance(writer, bytes);
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
                         memory ? memory : lemon_identity_mapping, true);
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

/* ---- begin and end of records ---- */

/* Encodes the header into `raw`, and copies it to `values` for lemon_agree_on(). Local. */
static int encode_record_header(LemonWriter *writer, LemonRecordHeader const *props,
                                unsigned char *raw, int64_t *values)
{
    struct limefile_header header;
    if (!props || !props->type)
        return lemon_log(writer->internal, LEMON_ERR_PARAM, "no header, or no type");
    if (limefile_header_init(&header, props->type, strlen(props->type), props->data_length,
                             props->MB_flag != 0, props->ME_flag != 0) != 0 ||
        limefile_header_encode(&header, raw) != 0)
        return lemon_log(writer->internal, LEMON_ERR_PARAM,
                         "record header: type longer than 127 bytes, or record too long");
    for (int i = 0; i < LIMEFILE_HEADER_BYTES / 8; i++)
        memcpy(&values[i], raw + 8 * i, 8);
    return LEMON_SUCCESS;
}

/* Computes the length of the filler. LEMON_ERR_PARAM if the record would end after 2^63. */
static int compute_filler(const LemonWriter *writer, LemonRecordHeader const *props,
                          int64_t *filler)
{
    const struct lemon_internal *in = writer->internal;
    uint64_t at = (uint64_t)writer->off, bytes = props->data_length, end, next;
    int err = limefile_record_end(at, bytes, &end, &next);
    *filler = 0;
    if (!err && in->alignment && bytes >= (uint64_t)in->align_from) {
        *filler = filler_bytes(writer->off, in->alignment);
        err = limefile_record_end(at + (uint64_t)*filler, bytes, &end, &next);
    }
    return err ? lemon_log(in, LEMON_ERR_PARAM, "record ends after 2^63") : LEMON_SUCCESS;
}

/* Checks the MB flag against the previous record, and computes the filler. */
static int check_header(const LemonWriter *writer, LemonRecordHeader const *props,
                        int64_t *filler)
{
    if (!writer->is_first_record && (props->MB_flag != 0) != (writer->is_last_written != 0))
        return lemon_log(writer->internal, LEMON_ERR_MBME,
                         "MB is %d, but the previous ME is %d", props->MB_flag,
                         writer->is_last_written);
    return compute_filler(writer, props, filler);
}

/* On rank 0, writes filler and header. */
static int write_header(LemonWriter *writer, LemonRecordHeader const *props, int64_t filler,
                        unsigned char *raw)
{
    struct lemon_internal *in = writer->internal;
    int code = LEMON_SUCCESS;
    if (in->rank == 0 && filler)
        code = write_filler(in, writer->off, filler, props->MB_flag != 0);
    if (in->rank == 0 && code == LEMON_SUCCESS)
        code =
            lemon_move_bytes(in, LEMON_WRITE, raw, LIMEFILE_HEADER_BYTES, writer->off + filler);
    return code;
}

static void enter_record(LemonWriter *writer, LemonRecordHeader const *props, int64_t filler)
{
    struct lemon_internal *in = writer->internal;
    writer->off += filler + LIMEFILE_HEADER_BYTES;
    writer->pos = 0;
    writer->is_awaiting_header = 0;
    writer->is_first_record = 0;
    writer->is_last = props->ME_flag != 0;
    writer->data_length = (MPI_Offset)props->data_length;
    in->filled = 0;
    in->written = 0;
    lemon_sum_reset(in);
}

int lemonWriteRecordHeader(LemonRecordHeader const *props, LemonWriter *writer)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    int64_t values[LIMEFILE_HEADER_BYTES / 8] = {0}, filler;
    if (!writer)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonWriteRecordHeader: no writer");
    struct lemon_internal *in = writer->internal;
    if (!writer->is_awaiting_header)
        return lemon_log(in, LEMON_ERR_HEADER_NEXT, "the previous record is still open");
    int code = encode_record_header(writer, props, raw, values);
    code = lemon_agree_on(in, code, values, LIMEFILE_HEADER_BYTES / 8);
    if (code == LEMON_SUCCESS)
        code = check_header(writer, props, &filler);
    if (code != LEMON_SUCCESS)
        return code;
    code = lemon_agree(in, write_header(writer, props, filler, raw));
    if (code == LEMON_SUCCESS)
        enter_record(writer, props, filler);
    return code;
}

int lemon_writer_begin_record(LemonWriter *writer, LemonRecordHeader const *props, int *fault)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    int64_t values[LIMEFILE_HEADER_BYTES / 8], filler;
    int code = encode_record_header(writer, props, raw, values);
    if (code == LEMON_SUCCESS)
        code = check_header(writer, props, &filler);
    if (code != LEMON_SUCCESS)
        return code;
    code = write_header(writer, props, filler, raw);
    if (*fault == LEMON_SUCCESS)
        *fault = code;
    enter_record(writer, props, filler);
    return LEMON_SUCCESS;
}

/* Called on rank 0. Writes the padding at `end`. If the record needs no padding, but a seek has
 * skipped its last bytes, extends the file to `end`, unless the file is long enough. Without
 * such a seek, does not use the file's size, because on NFS the size may not include what other
 * hosts have written since the last sync. */
static int pad_record(struct lemon_internal *in, MPI_Offset end, int padding)
{
    static unsigned char zeros[LIMEFILE_ALIGN];
    MPI_Offset size = 0;
    if (padding > 0)
        return lemon_move_bytes(in, LEMON_WRITE, zeros, padding, end);
    if (in->written == in->filled)
        return LEMON_SUCCESS;
    if (MPI_File_get_size(*in->file.mpi, &size) != MPI_SUCCESS)
        return lemon_log(in, LEMON_ERR_WRITE, "cannot get the size of the file");
    return size < end ? lemon_move_bytes(in, LEMON_WRITE, zeros, 1, end - 1) : LEMON_SUCCESS;
}

static void leave_record(LemonWriter *writer)
{
    writer->off += writer->data_length + limefile_padding((uint64_t)writer->data_length);
    writer->pos = 0;
    writer->is_awaiting_header = 1;
    writer->is_last_written = writer->is_last;
    writer->is_last = 0;
    writer->data_length = 0;
}

/* On rank 0, ends the record after the last byte that was written, which may lie beyond the
 * length in the header (lemon_data_fits()). */
static int end_record(LemonWriter *writer)
{
    struct lemon_internal *in = writer->internal;
    int padding = (int)limefile_padding((uint64_t)writer->data_length);
    return in->rank == 0 ? pad_record(in, writer->off + in->filled, padding) : LEMON_SUCCESS;
}

void lemon_writer_end_record(LemonWriter *writer, int *fault)
{
    int code = end_record(writer);
    if (*fault == LEMON_SUCCESS)
        *fault = code;
    leave_record(writer);
}

int lemon_writer_close_record(LemonWriter *writer, int code)
{
    struct lemon_internal *in = writer->internal;
    int err = MPI_SUCCESS, ended = end_record(writer);
    if (code == LEMON_SUCCESS)
        code = ended;
    if (!in->defers_sync || in->sum.verify)
        err = lemon_inside_sync(*writer->fp);
    if (err != MPI_SUCCESS)
        code = lemon_log(in, LEMON_ERR_WRITE, "sync: MPI error %d", err);
    code = lemon_agree(in, code);
    if (code == LEMON_SUCCESS && in->sum.verify)
        code = lemon_verify_record(in, writer->off);
    if (code == LEMON_SUCCESS)
        leave_record(writer);
    return code;
}

void lemon_inside_defer_sync(LemonWriter *writer)
{
    writer->internal->defers_sync = true;
}

int lemonWriterCloseRecord(LemonWriter *writer)
{
    if (!writer)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonWriterCloseRecord: no writer");
    struct lemon_internal *in = writer->internal;
    int code = lemonFinishWriting(writer);
    if (code != LEMON_SUCCESS)
        return code;
    if (writer->is_awaiting_header)
        return lemon_log(in, LEMON_ERR_CLOSE, "no record is open");
    if (in->filled < writer->data_length)
        return lemon_log(in, LEMON_ERR_CLOSE, "the record is incomplete: %lld of %lld bytes",
                         (long long)in->filled, (long long)writer->data_length);
    return lemon_writer_close_record(writer, LEMON_SUCCESS);
}

int lemonWriterSetChecksum(LemonWriter *writer, int on)
{
    if (!writer)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonWriterSetChecksum: no writer");
    int code = lemonFinishWriting(writer);
    return lemon_sum_enable(writer->internal, code, on, writer->pos);
}

int lemonWriterChecksum(LemonWriter *writer, LemonChecksum *sum)
{
    int code = lemonFinishWriting(writer);
    return code == LEMON_SUCCESS ? lemon_sum_get(writer->internal, sum) : code;
}

int lemonWriterSetVerify(LemonWriter *writer, int on, char const *path)
{
    if (!writer)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonWriterSetVerify: no writer");
    struct lemon_internal *in = writer->internal;
    int code = lemonFinishWriting(writer);
    int64_t values[2] = {on != 0, path != NULL};
    code = lemon_agree_on(in, code, values, 2);
    if (code != LEMON_SUCCESS)
        return code;
    if (on)
        return lemon_verify_open(in, path);
    lemon_verify_close(in);
    return LEMON_SUCCESS;
}

int lemonWriteChecksum(LemonWriter *writer, int MB_flag, int ME_flag, LemonChecksum const *sum)
{
    char text[LEMON_SCIDAC_TEXT_MAX];
    if (!writer)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonWriteChecksum: no writer");
    struct lemon_internal *in = writer->internal;
    int code = lemonFinishWriting(writer);
    if (!sum)
        code = lemon_log(in, LEMON_ERR_PARAM, "lemonWriteChecksum: no checksum");
    struct limefile_checksum checksum = {sum ? sum->suma : 0, sum ? sum->sumb : 0};
    int64_t values[2] = {checksum.suma, checksum.sumb};
    MPI_Offset bytes = lemon_scidac_format(&checksum, text);
    code = lemon_agree_on(in, code, values, 2);
    if (code != LEMON_SUCCESS)
        return code;
    LemonRecordHeader header = {LEMON_VERSION, MB_flag, ME_flag, (char[]){LEMON_CHECKSUM_TYPE},
                                (uint64_t)bytes};
    code = lemonWriteRecordHeader(&header, writer);
    if (code == LEMON_SUCCESS)
        code = lemonWriteRecordData(text, &bytes, writer);
    return code == LEMON_SUCCESS ? lemonWriterCloseRecord(writer) : code;
}
