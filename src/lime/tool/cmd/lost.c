/* lost.c - name the records that lime repair cuts */
#include "limefile.h"
#include "repair.h"
#include "tool.h"

#include <inttypes.h>
#include <string.h>

static int read_header(struct repair *repair, uint64_t at, unsigned char *raw,
                       struct limefile_header *header)
{
    ssize_t got = limefile_read_full(&repair->file.source, raw, LIMEFILE_HEADER_BYTES, at);
    if (got < 0)
        return (int)got;
    memset(raw + got, 0, LIMEFILE_HEADER_BYTES - (size_t)got);
    limefile_header_decode(raw, header);
    return 0;
}

static const char *shown(const struct limefile_header *header, char buf[TYPE_SHOWN_MAX])
{
    return type_shown(header->type, header->type_len, buf);
}

/* The type field of a header: printable text, and NULs up to its end. */
static size_t type_of(const unsigned char *type)
{
    size_t len = 0;
    while (len < LIMEFILE_TYPE_BYTES && type[len] >= 0x20 && type[len] <= 0x7e)
        len++;
    for (size_t i = len; i < LIMEFILE_TYPE_BYTES; i++)
        if (type[i])
            return 0;
    return len < LIMEFILE_TYPE_BYTES ? len : 0;
}

/* Bytes without the beginning of a header: a record if its type stands there. */
static void name_damaged(struct repair *repair, const struct limefile_survey *survey,
                         const unsigned char *raw)
{
    enum { AT = LIMEFILE_HEADER_BYTES - LIMEFILE_TYPE_BYTES };
    char buf[TYPE_SHOWN_MAX];
    size_t len = type_of(raw + AT);
    if (len == 0 || survey->tail == LIMEFILE_TAIL_OPEN_RECORD ||
        survey->size - survey->end < LIMEFILE_HEADER_BYTES)
        return;
    repair->lost++;
    message(repair->path,
            "repair: record %" PRIu64 " is gone: type '%s', its header is damaged",
            survey->records + 1, type_shown((const char *)raw + AT, len, buf));
}

static int name_first(struct repair *repair, const struct limefile_survey *survey)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    struct limefile_header header;
    char buf[TYPE_SHOWN_MAX];
    uint64_t n = survey->size - survey->end, ordinal = survey->records + 1;
    int err = read_header(repair, survey->end, raw, &header);
    if (err)
        return err;
    switch (survey->fault.code) {
    case LIMEFILE_E_HEADER_CUT:
        message(repair->path,
                "repair: record %" PRIu64 " is gone: the file had %" PRIu64
                " of the %d bytes of its header",
                ordinal, n, LIMEFILE_HEADER_BYTES);
        break;
    case LIMEFILE_E_DATA_CUT:
        message(repair->path,
                "repair: record %" PRIu64 " is gone: type '%s', the file had %" PRIu64
                " of its %" PRIu64 " bytes",
                ordinal, shown(&header, buf), n - LIMEFILE_HEADER_BYTES, header.bytes);
        break;
    case LIMEFILE_E_LENGTH:
        message(repair->path,
                "repair: record %" PRIu64 " is gone: type '%s', no file can have its length",
                ordinal, shown(&header, buf));
        break;
    case LIMEFILE_E_VERSION:
        message(repair->path, "repair: record %" PRIu64 " is gone: type '%s', version %u",
                ordinal, shown(&header, buf), header.version);
        break;
    default:
        name_damaged(repair, survey, raw);
        return 0;
    }
    repair->lost++;
    return 0;
}

int repair_name_lost(struct repair *repair, const struct limefile_survey *survey)
{
    struct limefile_salvage found;
    char buf[TYPE_SHOWN_MAX];
    uint64_t from = survey->end, data_end, next;
    int err = name_first(repair, survey), hit = 0;
    if (err || !(repair->force || survey->tail == LIMEFILE_TAIL_OPEN_RECORD))
        return err;
    progress_begin(&repair->progress, "search", survey->size - survey->end);
    while ((hit = limefile_salvage_find(&repair->file.source, from, survey->size,
                                        repair_progress, repair, &found)) > 0) {
        repair->lost++;
        message(repair->path,
                "repair: a whole record is cut: type '%s', %" PRIu64 " bytes, offset %" PRIu64,
                shown(&found.header, buf), found.header.bytes, found.offset);
        if (limefile_extent_of(found.offset, found.header.bytes, &data_end, &next) != 0)
            break;
        from = next;
    }
    progress_end(&repair->progress);
    return hit < 0 ? hit : 0;
}
