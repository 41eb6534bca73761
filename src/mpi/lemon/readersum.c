/* readersum.c - checksums of what is read, and those that records hold */
#include "internal.h"
#include "limefile.h"
#include "scidac.h"

int lemonReaderSetChecksum(LemonReader *reader, int on)
{
    if (!reader)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonReaderSetChecksum: no reader");
    int code = lemonFinishReading(reader);
    return lemon_sum_set(reader->internal, code, on, reader->pos);
}

int lemonReaderChecksum(LemonReader *reader, LemonChecksum *sum)
{
    if (!reader)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonReaderChecksum: no reader");
    int code = lemonFinishReading(reader);
    return code == LEMON_SUCCESS ? lemon_sum_get(reader->internal, sum) : code;
}

int lemonReadChecksum(LemonReader *reader, LemonChecksum *sum)
{
    struct limefile_checksum known;
    if (!reader)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonReadChecksum: no reader");
    struct lemon_internal *in = reader->internal;
    int code = lemon_reader_ready(reader, "lemonReadChecksum", LEMON_ERR_HEADER_NEXT);
    if (code == LEMON_SUCCESS)
        code = lemonReaderSeek(reader, 0, MPI_SEEK_SET);
    MPI_Offset bytes = lemonReaderBytes(reader);
    if (code == LEMON_SUCCESS && (bytes < 1 || bytes > LEMON_SCIDAC_BYTES_MAX))
        return lemon_say(in, LEMON_ERR_READ, "a record of %lld bytes is no checksum",
                         (long long)bytes);
    if (code != LEMON_SUCCESS)
        return code;
    char *text = malloc((size_t)bytes);
    code = lemon_agree(in, text ? LEMON_SUCCESS : LEMON_ERR_READ);
    if (code == LEMON_SUCCESS)
        code = lemonReaderReadData(text, &bytes, reader);
    if (code == LEMON_SUCCESS && lemon_scidac_parse(text, (size_t)bytes, &known) != 0)
        code = lemon_say(in, LEMON_ERR_READ, "the record holds no checksum");
    if (code == LEMON_SUCCESS && sum)
        *sum = (LemonChecksum){known.suma, known.sumb};
    free(text);
    return code;
}
