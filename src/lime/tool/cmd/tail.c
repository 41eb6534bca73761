/* tail.c - what stands behind the last whole record: may it go, and where to */
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
#include <sys/stat.h>
#include <unistd.h>

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
           survey->tail == LIMEFILE_TAIL_REMOVED ||
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
    int err = repair->dry       ? 0
              : is_ours(survey) ? cut(repair, survey)
                                : cut_with_copy(repair, survey);
    if (err)
        return TOOL_BAD;
    limefile_survey_text(survey, text, sizeof text);
    if (repair->dry || is_ours(survey))
        repair_note(repair, "%s", text);
    return TOOL_GOOD;
}
