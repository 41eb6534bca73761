/* reader.c - read a container record by record, by all ranks together */
#include "internal.h"
#include "limefile.h"
#include "scidac_checksum.h"

#include <string.h>

LemonReader *lemonCreateReader(MPI_File *fp, MPI_Comm cartesian)
{
    struct lemon_internal *in = lemon_internal_new(fp, cartesian);
    LemonReader *reader = in ? calloc(1, sizeof *reader) : NULL;
    if (!in)
        return NULL;
    if (lemon_agree(in, reader ? LEMON_SUCCESS : LEMON_ERR_PARAM) != LEMON_SUCCESS) {
        lemon_internal_free(in);
        free(reader);
        return NULL;
    }
    reader->fp = fp;
    reader->cartesian = in->comm;
    reader->my_rank = in->rank;
    reader->is_awaiting_header = 1;
    reader->internal = in;
    return reader;
}

void lemonDestroyReader(LemonReader *reader)
{
    if (!reader)
        return;
    lemonFinishReading(reader);
    lemonDestroyHeader(reader->curr_header);
    lemon_internal_free(reader->internal);
    free(reader);
}

int lemonFinishReading(LemonReader *reader)
{
    if (!reader)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonFinishReading: no reader");
    if (!reader->is_busy)
        return LEMON_SUCCESS;
    reader->is_busy = 0;
    int code = lemon_finish_pending(reader->internal);
    lemon_sum_end(reader->internal, code);
    return code;
}

/* Waits for a pending call. Returns its error, or no_record_code if no record is open. */
static int check_reader_open(LemonReader *reader, const char *call, int no_record_code)
{
    int code = lemonFinishReading(reader);
    if (code == LEMON_SUCCESS && reader->is_awaiting_header)
        code = lemon_log(reader->internal, no_record_code, "%s: no record is open", call);
    return code;
}

/* ---- next record ---- */

/* Called on rank 0. Reads the header at reader->off. Sets *damaged if no header fits there. */
static int read_raw_header(const LemonReader *reader, unsigned char *raw, int *damaged)
{
    struct lemon_internal *in = reader->internal;
    MPI_Offset size = 0;
    if (MPI_File_get_size(*reader->fp, &size) != MPI_SUCCESS)
        return lemon_log(in, LEMON_ERR_READ, "cannot get the size of the file");
    if (reader->off >= size && reader->off - size <= in->padding)
        return LEMON_EOF; /* the padding of the last record may be missing */
    *damaged = size - reader->off < LIMEFILE_HEADER_BYTES;
    if (size < reader->off)
        return lemon_log(in, LEMON_ERR_READ, "the file ends at %lld, inside a record",
                         (long long)size);
    if (*damaged)
        return lemon_log(in, LEMON_ERR_HEADER_NEXT,
                         "offset %lld: the file ends at %lld, inside a header",
                         (long long)reader->off, (long long)size);
    return lemon_move_bytes(in, LEMON_READ, raw, LIMEFILE_HEADER_BYTES, reader->off);
}

/* Rank 0 reads the header, and broadcasts it. Collective, agreed. */
static int broadcast_header(LemonReader *reader, struct limefile_header *header)
{
    struct lemon_internal *in = reader->internal;
    unsigned char raw[LIMEFILE_HEADER_BYTES] = {0};
    int found[2] = {LEMON_SUCCESS, false};
    if (in->rank == 0)
        found[0] = read_raw_header(reader, raw, &found[1]);
    MPI_Bcast(found, 2, MPI_INT, 0, in->comm);
    in->damaged = found[1];
    if (found[0] != LEMON_SUCCESS)
        return found[0];
    MPI_Bcast(raw, sizeof raw, MPI_BYTE, 0, in->comm);
    int err = limefile_header_decode(raw, header);
    uint64_t end, next;
    if (!err)
        err = limefile_record_end((uint64_t)reader->off, header->bytes, &end, &next);
    in->damaged = err != 0;
    return err ? lemon_log(in, LEMON_ERR_HEADER_NEXT, "offset %lld: damaged record header (%d)",
                           (long long)reader->off, err)
               : LEMON_SUCCESS;
}

static void set_deviation(struct lemon_internal *in, const struct limefile_header *header)
{
    in->deviation = 0;
    if (header->mb && !in->at_message_start)
        in->deviation |= LEMON_DEVIATION_MB_INSIDE;
    if (!header->mb && in->at_message_start)
        in->deviation |= LEMON_DEVIATION_MB_MISSING;
    if ((header->flags & 0x3f) || header->reserved)
        in->deviation |= LEMON_DEVIATION_RESERVED;
    in->at_message_start = header->me;
}

static int read_record_header(LemonReader *reader, struct limefile_header *header,
                              LemonRecordHeader **record)
{
    int code = broadcast_header(reader, header);
    if (code != LEMON_SUCCESS)
        return code;
    *record =
        lemonCreateHeader(header->mb, header->me, header->type, (MPI_Offset)header->bytes);
    code = lemon_agree(reader->internal, *record ? LEMON_SUCCESS : LEMON_ERR_READ);
    if (code != LEMON_SUCCESS)
        lemonDestroyHeader(*record);
    return code;
}

/* Ends a lemonReaderNextRecord() that failed. Returns `code`, or LEMON_EOF if the previous call
 * failed too: programs repeat the call until LEMON_EOF, no matter what it returns before. */
static int fail_next_record(LemonReader *reader, int code)
{
    struct lemon_internal *in = reader->internal;
    bool failed_before = in->header_failed;
    in->header_failed = code != LEMON_EOF;
    in->damaged = in->damaged || (failed_before && in->header_failed);
    lemonDestroyHeader(reader->curr_header);
    reader->curr_header = NULL;
    return failed_before ? LEMON_EOF : code;
}

int lemonReaderNextRecord(LemonReader *reader)
{
    struct limefile_header header;
    LemonRecordHeader *record;
    if (!reader)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonReaderNextRecord: no reader");
    struct lemon_internal *in = reader->internal;
    int code = lemonFinishReading(reader);
    in->record_requested = true;
    if (code == LEMON_SUCCESS && in->damaged)
        return LEMON_EOF;
    if (code == LEMON_SUCCESS && !reader->is_awaiting_header)
        code = lemonReaderCloseRecord(reader);
    if (code != LEMON_SUCCESS)
        return code; /* the error of an earlier non-blocking call */
    code = read_record_header(reader, &header, &record);
    if (code != LEMON_SUCCESS)
        return fail_next_record(reader, code);
    lemonDestroyHeader(reader->curr_header);
    reader->curr_header = record;
    in->header_failed = false;
    set_deviation(in, &header);
    lemon_sum_reset(in);
    reader->off += LIMEFILE_HEADER_BYTES;
    reader->pos = 0;
    reader->is_last = header.me;
    reader->is_awaiting_header = 0;
    return LEMON_SUCCESS;
}

int lemonReaderCloseRecord(LemonReader *reader)
{
    if (!reader)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonReaderCloseRecord: no reader");
    int code = lemonFinishReading(reader);
    if (reader->is_awaiting_header)
        return lemon_log(reader->internal, LEMON_ERR_CLOSE, "no record is open");
    uint64_t bytes = reader->curr_header->data_length;
    reader->internal->padding = (int)limefile_padding(bytes);
    reader->off += (MPI_Offset)bytes + reader->internal->padding;
    reader->pos = 0;
    reader->is_awaiting_header = 1;
    return code;
}

/* ---- the open record ---- */

/* Returns the open or previous record: programs also query a record that they have closed. */
static const LemonRecordHeader *last_record(const LemonReader *reader)
{
    return reader ? reader->curr_header : NULL;
}

int lemonReaderMBFlag(LemonReader *reader)
{
    const LemonRecordHeader *record = last_record(reader);
    return record ? record->MB_flag : LEMON_ERR_PARAM;
}

int lemonReaderMEFlag(LemonReader *reader)
{
    const LemonRecordHeader *record = last_record(reader);
    return record ? record->ME_flag : LEMON_ERR_PARAM;
}

int lemonEOM(LemonReader *reader)
{
    return lemonReaderMEFlag(reader);
}

char const *lemonReaderType(LemonReader *reader)
{
    const LemonRecordHeader *record = last_record(reader);
    if (record)
        return record->type;
    return reader && reader->internal->record_requested ? "" : NULL; /* strcmp() accepts "" */
}

MPI_Offset lemonReaderBytes(LemonReader *reader)
{
    const LemonRecordHeader *record = last_record(reader);
    return record ? (MPI_Offset)record->data_length : LEMON_ERR_PARAM;
}

MPI_Offset lemonReaderPadBytes(LemonReader *reader)
{
    const LemonRecordHeader *record = last_record(reader);
    return record ? (MPI_Offset)limefile_padding(record->data_length) : LEMON_ERR_PARAM;
}

int lemonReaderDeviation(LemonReader *reader)
{
    return reader ? reader->internal->deviation : LEMON_ERR_PARAM;
}

MPI_Offset lemonGetReaderPointer(LemonReader *reader)
{
    return reader ? reader->pos : LEMON_ERR_PARAM;
}

int lemonSetReaderPointer(LemonReader *reader, MPI_Offset offset)
{
    return lemonReaderSeek(reader, offset, MPI_SEEK_SET);
}

int lemonReaderSeek(LemonReader *reader, MPI_Offset offset, int whence)
{
    if (!reader)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonReaderSeek: no reader");
    int code = check_reader_open(reader, "lemonReaderSeek", LEMON_ERR_PARAM);
    int64_t values[2] = {offset, whence};
    code = lemon_agree_on(reader->internal, code, values, 2);
    if (code != LEMON_SUCCESS)
        return code;
    MPI_Offset to;
    code = lemon_compute_seek(reader->internal, reader->pos, lemonReaderBytes(reader), offset,
                              whence, &to);
    if (code != LEMON_SUCCESS)
        return code;
    reader->pos = to;
    return lemon_set_file_pointer(reader->internal, reader->off + reader->pos);
}

int lemonReaderSetState(LemonReader *rdest, LemonReader const *rsrc)
{
    if (!rdest || !rsrc)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonReaderSetState: no reader");
    LemonRecordHeader *from = rsrc->curr_header, *copy = NULL;
    int code = lemonFinishReading(rdest);
    if (rsrc->is_busy)
        code = lemon_log(rdest->internal, LEMON_ERR_PARAM, "the source has a pending call");
    if (from)
        copy = lemonCreateHeader(from->MB_flag, from->ME_flag, from->type,
                                 (MPI_Offset)from->data_length);
    if (from && !copy)
        code = LEMON_ERR_PARAM;
    code = lemon_agree(rdest->internal, code);
    if (code != LEMON_SUCCESS) {
        lemonDestroyHeader(copy);
        return code;
    }
    lemonDestroyHeader(rdest->curr_header);
    rdest->curr_header = copy;
    rdest->off = rsrc->off;
    rdest->pos = rsrc->pos;
    rdest->is_last = rsrc->is_last;
    rdest->is_awaiting_header = rsrc->is_awaiting_header;
    lemon_sum_reset(rdest->internal);
    rdest->internal->at_message_start = rsrc->internal->at_message_start;
    rdest->internal->deviation = rsrc->internal->deviation;
    rdest->internal->padding = rsrc->internal->padding;
    rdest->internal->record_requested = rsrc->internal->record_requested;
    rdest->internal->damaged = rsrc->internal->damaged;
    rdest->internal->header_failed = rsrc->internal->header_failed;
    return LEMON_SUCCESS;
}

int lemonReaderSetStripe(LemonReader *reader, MPI_Offset bytes)
{
    int code = lemonFinishReading(reader);
    return code == LEMON_SUCCESS ? lemon_set_stripe(reader->internal, bytes) : code;
}

int lemonReaderSetInfo(LemonReader *reader, MPI_Info info)
{
    int code = lemonFinishReading(reader);
    return code == LEMON_SUCCESS ? lemon_set_hints(reader->internal, info) : code;
}

/* Checks that the arguments are the same on all ranks. Sets *n to the bytes to be read. */
static int check_read_data(LemonReader *reader, const char *call, const void *dest,
                           const MPI_Offset *nbytes, MPI_Offset *n)
{
    int code = check_reader_open(reader, call, LEMON_ERR_HEADER_NEXT);
    if (code == LEMON_SUCCESS && !nbytes)
        code = lemon_log(reader->internal, LEMON_ERR_PARAM, "%s: nbytes is NULL", call);
    *n = nbytes ? *nbytes : 0;
    int64_t values[1] = {*n};
    if (code == LEMON_SUCCESS && (*n < 0 || (*n > 0 && !dest)))
        code = lemon_log(reader->internal, LEMON_ERR_PARAM, "no memory, or a negative length");
    code = lemon_agree_on(reader->internal, code, values, 1);
    if (code != LEMON_SUCCESS)
        return code;
    MPI_Offset left = lemonReaderBytes(reader) - reader->pos;
    if (*n > 0 && left <= 0)
        return LEMON_EOR;
    if (*n > left)
        *n = left;
    return LEMON_SUCCESS;
}

int lemonReaderReadData(void *dest, MPI_Offset *nbytes, LemonReader *reader)
{
    if (!reader)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonReaderReadData: no reader");
    struct lemon_internal *in = reader->internal;
    MPI_Offset n;
    int code = check_read_data(reader, "lemonReaderReadData", dest, nbytes, &n);
    if (code == LEMON_SUCCESS && n > 0) {
        if (in->rank == 0)
            code = lemon_move_bytes(in, LEMON_READ, dest, n, reader->off + reader->pos);
        code = lemon_agree(in, code);
        if (code == LEMON_SUCCESS)
            lemon_broadcast(in, dest, n);
    }
    if (nbytes)
        *nbytes = code == LEMON_SUCCESS ? n : 0;
    if (code == LEMON_SUCCESS)
        reader->pos += n;
    return code;
}

int lemonReaderReadDataNonBlocking(void *dest, MPI_Offset const *nbytes, LemonReader *reader)
{
    if (!reader)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonReaderReadDataNonBlocking: no reader");
    MPI_Offset n;
    int code = check_read_data(reader, "lemonReaderReadDataNonBlocking", dest, nbytes, &n);
    if (code != LEMON_SUCCESS)
        return code;
    lemon_start_bytes(reader->internal, LEMON_READ, dest, n, reader->off + reader->pos);
    reader->is_busy = 1;
    reader->pos += n;
    return LEMON_SUCCESS;
}

/* memory NULL: the disk order. wait false: only starts to read, and `data` must exist until
 * lemonFinishReading(), which returns the errors. Collective, agreed. */
static int read_lattice(LemonReader *reader, void *data, MPI_Offset site_bytes,
                        int const *lattice, int const *mapping, int const *memory, bool wait)
{
    if (!reader)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lattice read: no reader");
    struct lemon_internal *in = reader->internal;
    int code = check_reader_open(reader, "lattice read", LEMON_ERR_READ);
    if (code == LEMON_SUCCESS)
        code = lemon_sum_reserve(in);
    code = lemon_check_lattice(in, code, data, site_bytes, lattice, mapping, memory);
    if (code != LEMON_SUCCESS)
        return code;
    int64_t bytes = lemon_geometry_bytes(in), left = lemonReaderBytes(reader) - reader->pos;
    if (!lemon_data_fits(in, bytes, left))
        return lemon_log(in, LEMON_ERR_READ,
                         "lattice: %lld bytes exceed the %lld left in the record",
                         (long long)bytes, (long long)left);
    code = lemon_sum_begin(in, reader->pos);
    if (code != LEMON_SUCCESS)
        return code;
    MPI_Offset at = reader->off + reader->pos;
    if (wait) {
        code = lemon_agree(in, lemon_move_lattice(in, LEMON_READ, data, at));
        lemon_sum_end(in, code);
    } else
        lemon_start_lattice(in, LEMON_READ, data, at);
    reader->is_busy = !wait;
    if (code == LEMON_SUCCESS)
        reader->pos += bytes;
    return code;
}

int lemonReadLatticeParallel(LemonReader *reader, void *data, MPI_Offset siteSize,
                             int const *latticeDims)
{
    return read_lattice(reader, data, siteSize, latticeDims, NULL, NULL, true);
}

int lemonReadLatticeParallelMapped(LemonReader *reader, void *data, MPI_Offset siteSize,
                                   int const *latticeDims, int const *mapping)
{
    return read_lattice(reader, data, siteSize, latticeDims, mapping, NULL, true);
}

int lemonReadLatticeParallelPermuted(LemonReader *reader, void *data, MPI_Offset siteSize,
                                     int const *latticeDims, int const *mapping,
                                     int const *memory)
{
    return read_lattice(reader, data, siteSize, latticeDims, mapping,
                        memory ? memory : lemon_identity_mapping, true);
}

int lemonReadLatticeParallelNonBlocking(LemonReader *reader, void *data, MPI_Offset siteSize,
                                        int const *latticeDims)
{
    return read_lattice(reader, data, siteSize, latticeDims, NULL, NULL, false);
}

int lemonReadLatticeParallelNonBlockingMapped(LemonReader *reader, void *data,
                                              MPI_Offset siteSize, int const *latticeDims,
                                              int const *mapping)
{
    return read_lattice(reader, data, siteSize, latticeDims, mapping, NULL, false);
}

int lemonReaderSetChecksum(LemonReader *reader, int on)
{
    if (!reader)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonReaderSetChecksum: no reader");
    int code = lemonFinishReading(reader);
    return lemon_sum_enable(reader->internal, code, on, reader->pos);
}

int lemonReaderChecksum(LemonReader *reader, LemonChecksum *sum)
{
    int code = lemonFinishReading(reader);
    return code == LEMON_SUCCESS ? lemon_sum_get(reader->internal, sum) : code;
}

int lemonReadChecksum(LemonReader *reader, LemonChecksum *sum)
{
    struct limefile_checksum checksum;
    if (!reader)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonReadChecksum: no reader");
    struct lemon_internal *in = reader->internal;
    int code = check_reader_open(reader, "lemonReadChecksum", LEMON_ERR_HEADER_NEXT);
    if (code == LEMON_SUCCESS)
        code = lemonReaderSeek(reader, 0, MPI_SEEK_SET);
    MPI_Offset bytes = lemonReaderBytes(reader);
    if (code == LEMON_SUCCESS && (bytes < 1 || bytes > LEMON_SCIDAC_RECORD_MAX))
        return lemon_log(in, LEMON_ERR_READ, "not a checksum record (%lld bytes)",
                         (long long)bytes);
    if (code != LEMON_SUCCESS)
        return code;
    char *text = malloc((size_t)bytes);
    code = lemon_agree(in, text ? LEMON_SUCCESS : LEMON_ERR_READ);
    if (code == LEMON_SUCCESS)
        code = lemonReaderReadData(text, &bytes, reader);
    if (code == LEMON_SUCCESS && lemon_scidac_parse(text, (size_t)bytes, &checksum) != 0)
        code = lemon_log(in, LEMON_ERR_READ, "no checksum in the record");
    if (code == LEMON_SUCCESS && sum)
        *sum = (LemonChecksum){checksum.suma, checksum.sumb};
    free(text);
    return code;
}
