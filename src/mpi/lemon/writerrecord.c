/* writerrecord.c - where records of a container that is written begin and end */
#include "filler.h"
#include "lemon_inside.h"
#include "limefile.h"

#include <string.h>

static int encode(LemonWriter *writer, LemonRecordHeader const *props, unsigned char *raw,
                  int64_t *values)
{
    struct limefile_header header;
    if (!props || !props->type)
        return lemon_say(writer->internal, LEMON_ERR_PARAM, "no header");
    if (limefile_header_init(&header, props->type, strlen(props->type), props->data_length,
                             props->MB_flag != 0, props->ME_flag != 0) != 0 ||
        limefile_header_encode(&header, raw) != 0)
        return lemon_say(writer->internal, LEMON_ERR_PARAM,
                         "a record type is at most 127 bytes, a record at most 2^63 - 1");
    for (int i = 0; i < LIMEFILE_HEADER_BYTES / 8; i++)
        memcpy(&values[i], raw + 8 * i, 8);
    return LEMON_SUCCESS;
}

/* How long the filler before the record's header has to be; the record must fit into a file. */
static int place(const LemonWriter *writer, LemonRecordHeader const *props, int64_t *filler)
{
    const struct lemon_internal *in = writer->internal;
    uint64_t at = (uint64_t)writer->off, bytes = props->data_length, end, next;
    int err = limefile_extent_of(at, bytes, &end, &next);
    *filler = 0;
    if (!err && in->alignment && bytes >= (uint64_t)in->align_from) {
        *filler = lemon_filler_bytes(writer->off, in->alignment);
        err = limefile_extent_of(at + (uint64_t)*filler, bytes, &end, &next);
    }
    return err ? lemon_say(in, LEMON_ERR_PARAM, "the record ends behind 2^63") : LEMON_SUCCESS;
}

/* The flags are what the record before calls for, and the record fits into a file. */
static int judge(const LemonWriter *writer, LemonRecordHeader const *props, int64_t *filler)
{
    if (!writer->is_first_record && (props->MB_flag != 0) != (writer->is_last_written != 0))
        return lemon_say(writer->internal, LEMON_ERR_MBME, "MB is %d after ME was %d",
                         props->MB_flag, writer->is_last_written);
    return place(writer, props, filler);
}

/* By rank 0. */
static int write_header(LemonWriter *writer, LemonRecordHeader const *props, int64_t filler,
                        unsigned char *raw)
{
    struct lemon_internal *in = writer->internal;
    int code = LEMON_SUCCESS;
    if (in->rank == 0 && filler)
        code = lemon_filler_write(in, writer->off, filler, props->MB_flag != 0);
    if (in->rank == 0 && code == LEMON_SUCCESS)
        code =
            lemon_move_bytes(in, LEMON_WRITE, raw, LIMEFILE_HEADER_BYTES, writer->off + filler);
    return code;
}

static void enter(LemonWriter *writer, LemonRecordHeader const *props, int64_t filler)
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
    lemon_sum_forget(in);
}

int lemonWriteRecordHeader(LemonRecordHeader const *props, LemonWriter *writer)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    int64_t values[LIMEFILE_HEADER_BYTES / 8] = {0}, filler;
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriteRecordHeader: no writer");
    struct lemon_internal *in = writer->internal;
    if (!writer->is_awaiting_header)
        return lemon_say(in, LEMON_ERR_HEADER_NEXT, "the record before is still open");
    int code = encode(writer, props, raw, values);
    code = lemon_agree_on(in, code, values, LIMEFILE_HEADER_BYTES / 8);
    if (code == LEMON_SUCCESS)
        code = judge(writer, props, &filler);
    if (code != LEMON_SUCCESS)
        return code;
    code = lemon_agree(in, write_header(writer, props, filler, raw));
    if (code == LEMON_SUCCESS)
        enter(writer, props, filler);
    return code;
}

int lemon_writer_open(LemonWriter *writer, LemonRecordHeader const *props, int *fault)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    int64_t values[LIMEFILE_HEADER_BYTES / 8], filler;
    int code = encode(writer, props, raw, values);
    if (code == LEMON_SUCCESS)
        code = judge(writer, props, &filler);
    if (code != LEMON_SUCCESS)
        return code;
    code = write_header(writer, props, filler, raw);
    if (*fault == LEMON_SUCCESS)
        *fault = code;
    enter(writer, props, filler);
    return LEMON_SUCCESS;
}

/* The padding, by rank 0, which begins at `end`; the file then reaches the end of the record
 * even if its last bytes were only sought, not written. What was written is not asked for:
 * before a sync, a host may not see yet how far others have come (NFS). */
static int finish_record(struct lemon_internal *in, MPI_Offset end, int padding)
{
    static unsigned char zeros[LIMEFILE_ALIGN];
    MPI_Offset size = 0;
    if (padding > 0)
        return lemon_move_bytes(in, LEMON_WRITE, zeros, padding, end);
    if (in->written == in->filled)
        return LEMON_SUCCESS;
    if (MPI_File_get_size(*in->file.mpi, &size) != MPI_SUCCESS)
        return lemon_say(in, LEMON_ERR_WRITE, "the size of the file cannot be had");
    return size < end ? lemon_move_bytes(in, LEMON_WRITE, zeros, 1, end - 1) : LEMON_SUCCESS;
}

static void leave(LemonWriter *writer)
{
    writer->off += writer->data_length + limefile_padding((uint64_t)writer->data_length);
    writer->pos = 0;
    writer->is_awaiting_header = 1;
    writer->is_last_written = writer->is_last;
    writer->is_last = 0;
    writer->data_length = 0;
}

/* Behind the data, also where they are more than the header says. */
static int end_record(LemonWriter *writer)
{
    struct lemon_internal *in = writer->internal;
    int padding = (int)limefile_padding((uint64_t)writer->data_length);
    return in->rank == 0 ? finish_record(in, writer->off + in->filled, padding) : LEMON_SUCCESS;
}

void lemon_writer_end(LemonWriter *writer, int *fault)
{
    int code = end_record(writer);
    if (*fault == LEMON_SUCCESS)
        *fault = code;
    leave(writer);
}

int lemon_writer_close(LemonWriter *writer, int code)
{
    struct lemon_internal *in = writer->internal;
    int err = MPI_SUCCESS, ended = end_record(writer);
    if (code == LEMON_SUCCESS)
        code = ended;
    if (!in->syncs_later || in->sum.verify)
        err = lemon_inside_sync(*writer->fp);
    if (err != MPI_SUCCESS)
        code = lemon_say(in, LEMON_ERR_WRITE, "sync: MPI error %d", err);
    code = lemon_agree(in, code);
    if (code == LEMON_SUCCESS && in->sum.verify)
        code = lemon_verify(in, writer->off);
    if (code == LEMON_SUCCESS)
        leave(writer);
    return code;
}

void lemon_inside_sync_later(LemonWriter *writer)
{
    writer->internal->syncs_later = true;
}

int lemonWriterCloseRecord(LemonWriter *writer)
{
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriterCloseRecord: no writer");
    struct lemon_internal *in = writer->internal;
    int code = lemonFinishWriting(writer);
    if (code != LEMON_SUCCESS)
        return code;
    if (writer->is_awaiting_header)
        return lemon_say(in, LEMON_ERR_CLOSE, "no record is open");
    if (in->filled < writer->data_length)
        return lemon_say(in, LEMON_ERR_CLOSE, "the record holds %lld of %lld bytes",
                         (long long)in->filled, (long long)writer->data_length);
    return lemon_writer_close(writer, LEMON_SUCCESS);
}
