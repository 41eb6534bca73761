/* tail.c - what stands behind the last whole record: may it go, which records are gone with it,
 * and where to */
#define _GNU_SOURCE
#include "copy.h"
#include "repair.h"
#include "limeguard.h"
#include "tempfile.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- may it go ---- */

static bool is_tail_code(int code)
{
    return code == LIMEFILE_E_HEADER_CUT || code == LIMEFILE_E_DATA_CUT ||
           code == LIMEFILE_E_TRAILING || code == LIMEFILE_E_LENGTH;
}

/* An I/O error says nothing about what stands there. */
static bool is_errno(int code)
{
    return code < 0 && code >= -4095;
}

/* Nobody can want it back. */
static bool is_ours(const struct limefile_survey *survey)
{
    return survey->tail == LIMEFILE_TAIL_UNFINISHED || survey->tail == LIMEFILE_TAIL_OPEN ||
           survey->tail == LIMEFILE_TAIL_REMOVED || survey->tail == LIMEFILE_TAIL_REDO ||
           (survey->tail == LIMEFILE_TAIL_ZEROS && survey->end == 0);
}

static void explain_refusal(const struct repair *repair, const struct limefile_survey *survey,
                            const struct limefile_salvage *found)
{
    char where[TYPE_SHOWN_MAX + 120] = "", shown[TYPE_SHOWN_MAX];
    if (found)
        snprintf(where, sizeof where,
                 ", and at offset %" PRIu64 " an intact record seems to stand (type '%s', "
                 "%" PRIu64 " bytes)",
                 found->offset, type_shown(found->header.type, found->header.type_len, shown),
                 found->header.bytes);
    message(repair->path,
            "repair: no unfinished tail: %" PRIu64 " bytes follow from offset %" PRIu64 "%s; "
            "nothing was changed",
            survey->size - survey->end, survey->end, where);
    message(repair->path, "repair: if these bytes may go, --force cuts them and keeps a copy");
}

/* An exit status: GOOD if the tail may be cut. */
static int judge_tail(struct repair *repair, const struct limefile_survey *survey)
{
    struct limefile_salvage found;
    if (is_errno(survey->fault.code)) {
        message(repair->path, "repair: the file cannot be read there; nothing was changed");
        return TOOL_BAD;
    }
    if (repair->force || survey->open || is_ours(survey))
        return TOOL_GOOD;
    progress_begin(&repair->progress, "search", survey->size - survey->end);
    int hit = limefile_salvage_find(&repair->file.source, survey->end, survey->size,
                                    repair_progress, repair, &found);
    progress_end(&repair->progress);
    if (hit < 0) {
        message_code(repair->path, "read", hit);
        return TOOL_BAD;
    }
    if (hit == 0 && is_tail_code(survey->fault.code))
        return TOOL_GOOD;
    explain_refusal(repair, survey, hit ? &found : NULL);
    return TOOL_BAD;
}

/* ---- the records that are gone ---- */

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

/* Names the records that are gone if the tail is cut, and counts them. 0, or an error code. */
static int name_lost(struct repair *repair, const struct limefile_survey *survey)
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

/* ---- the copy ---- */

/* Copies the tail and brings it to the disk, name and all. */
static int fill_copy(const struct repair *repair, const struct limefile_survey *survey, int fd,
                     const char *path)
{
    struct progress progress;
    struct copy copy = {
        .in = repair->fd,
        .in_offset = survey->end,
        .out = fd,
        .out_offset = 0,
        .left = survey->size - survey->end,
        .progress = &progress,
    };
    progress_begin(&progress, "copy", copy.left);
    int err = copy_run(&copy);
    progress_end(&progress);
    if (!err && fsync(fd) != 0)
        err = -errno;
    return err ? err : sync_folder_of(path);
}

static int keep_copy(struct repair *repair, const struct limefile_survey *survey, char **path)
{
    int fd = limefile_create_kept(AT_FDCWD, repair->path, survey->end, repair->fd, path);
    if (fd < 0)
        return fd;
    limefile_guard_set(AT_FDCWD, *path);
    int err = fill_copy(repair, survey, fd, *path);
    if (close(fd) != 0 && !err)
        err = -errno;
    if (err)
        unlink(*path);
    limefile_guard_lift();
    return err;
}

/* ---- the cut ---- */

static int cut(struct repair *repair, const struct limefile_survey *survey)
{
    int err = limefile_survey_cut(&repair->file.source, survey);
    if (err)
        message_code(repair->path, "cut", err);
    return err;
}

static int cut_with_copy(struct repair *repair, const struct limefile_survey *survey)
{
    char *path = NULL;
    int err = keep_copy(repair, survey, &path);
    if (err) {
        message_code(path ? path : repair->path, "keep a copy", err);
    } else {
        err = cut(repair, survey);
        if (!err)
            repair_note(repair, "offset %" PRIu64 ": %" PRIu64 " bytes cut, kept in %s",
                        survey->end, survey->size - survey->end, path);
    }
    free(path);
    return err;
}

int repair_tail(struct repair *repair, const struct limefile_survey *survey)
{
    char text[LIMEFILE_NAME_MAX + 128];
    int status = judge_tail(repair, survey);
    if (status != TOOL_GOOD)
        return status;
    int err = is_ours(survey) ? 0 : name_lost(repair, survey);
    if (err) {
        message_code(repair->path, "read", err);
        return TOOL_BAD;
    }
    if (!repair->dry)
        err = is_ours(survey) ? cut(repair, survey) : cut_with_copy(repair, survey);
    if (err)
        return TOOL_BAD;
    limefile_survey_text(survey, text, sizeof text);
    if (repair->dry || is_ours(survey))
        repair_note(repair, "%s", text);
    if (!repair->dry && survey->cut_sets_me) /* else limefile_mend() says so */
        repair_note(repair, "offset %" PRIu64 ": record %" PRIu64 ": flags: ME set",
                    survey->last + 6, survey->records);
    return TOOL_GOOD;
}
