/* writersum.c - checksums of what is written, and records of them */
#include "internal.h"
#include "limefile.h"
#include "scidac.h"

int lemonWriterSetChecksum(LemonWriter *writer, int on)
{
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriterSetChecksum: no writer");
    int code = lemonFinishWriting(writer);
    return lemon_sum_set(writer->internal, code, on, writer->pos);
}

int lemonWriterChecksum(LemonWriter *writer, LemonChecksum *sum)
{
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriterChecksum: no writer");
    int code = lemonFinishWriting(writer);
    return code == LEMON_SUCCESS ? lemon_sum_get(writer->internal, sum) : code;
}

int lemonWriterSetVerify(LemonWriter *writer, int on, char const *path)
{
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriterSetVerify: no writer");
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
    char text[LEMON_SCIDAC_BYTES];
    if (!writer)
        return lemon_say(NULL, LEMON_ERR_PARAM, "lemonWriteChecksum: no writer");
    struct lemon_internal *in = writer->internal;
    int code = lemonFinishWriting(writer);
    if (!sum)
        code = lemon_say(in, LEMON_ERR_PARAM, "lemonWriteChecksum: no checksum");
    struct limefile_checksum known = {sum ? sum->suma : 0, sum ? sum->sumb : 0};
    int64_t values[2] = {known.suma, known.sumb};
    MPI_Offset bytes = lemon_scidac_print(&known, text);
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
