/* series.c - write checkpoints as a series of complete files */
#define _GNU_SOURCE
#include "series.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const struct lemon_dir_error success = {0, NULL};

/* Returns the path of a file in the directory, or NULL if out of memory. Free it by free(). */
static char *format_path(const struct lemon_series *s, const char *name)
{
    size_t bytes = strlen(s->path) + strlen(name) + 2;
    char *path = malloc(bytes);
    if (path)
        snprintf(path, bytes, "%s%s%s", s->path, strcmp(s->path, "/") == 0 ? "" : "/", name);
    return path;
}

/* Returns the lowest code of all ranks. On a rank where `result` is an error, logs it, and uses
 * LEMON_ERR_WRITE instead of `code`. Collective. */
static int agree_on_error(const struct lemon_series *s, int code, struct lemon_dir_error result,
                          const char *name)
{
    if (result.error)
        code = lemon_inside_log(s->comm, LEMON_ERR_WRITE, "%s: %s: %s", name, result.action,
                                strerror(result.error));
    return lemon_inside_agree(s->comm, code);
}

/* ---- open ---- */

/* Splits `prefix` into directory and base. Fails if names with this base would be too long. */
static int set_prefix(struct lemon_series *s, const char *prefix)
{
    char name[LEMON_SERIES_NAME_MAX];
    const char *slash = strrchr(prefix, '/');
    const char *base = slash ? slash + 1 : prefix;
    if (!*base || !lemon_series_part_name(base, INT64_MAX, UINT64_MAX, name))
        return lemon_inside_log(s->comm, LEMON_ERR_PARAM, "%s: prefix too %s", prefix,
                                *base ? "long" : "short");
    s->base = strdup(base);
    s->path = slash == prefix ? strdup("/")
              : slash         ? strndup(prefix, (size_t)(slash - prefix))
                              : strdup(".");
    s->dir.base = s->base;
    return s->base && s->path ? LEMON_SUCCESS
                              : lemon_inside_log(s->comm, LEMON_ERR_PARAM, "out of memory");
}

/* FNV-1a hash, to detect prefixes that differ between ranks. */
static int64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return (int64_t)(hash >> 1);
}

static int set_arguments(struct lemon_series *s, const char *prefix, int keep)
{
    int64_t values[2] = {keep, prefix ? hash_text(prefix) : 0};
    int code = LEMON_SUCCESS;
    if (!prefix)
        code = lemon_inside_log(s->comm, LEMON_ERR_PARAM, "lemonOpenSeries: no prefix");
    else if (keep < 1)
        code =
            lemon_inside_log(s->comm, LEMON_ERR_PARAM, "%s: keep must be at least 1", prefix);
    else
        code = set_prefix(s, prefix);
    s->keep_count = keep;
    return lemon_inside_agree_on(s->comm, code, values, 2);
}

/* Finds the newest checkpoint below `before` (LEMON_SERIES_NEWEST: no limit). Sets *number, to
 * -1 if no checkpoint is found. Rank 0 only. */
static struct lemon_dir_error find_newest_below(const struct lemon_series *s, int64_t before,
                                                int64_t *number)
{
    int64_t *numbers, count;
    struct lemon_dir_error result = lemon_series_dir_list(&s->dir, &numbers, &count);
    *number = -1;
    int64_t i = 0;
    while (i < count && numbers[i] >= before && before != LEMON_SERIES_NEWEST)
        i++;
    if (!result.error && i < count)
        *number = numbers[i];
    free(numbers);
    return result;
}

static int open_series_dir(struct lemon_series *s)
{
    struct lemon_dir_error result = success;
    bool locks = true;
    int code = LEMON_SUCCESS;
    if (s->rank == 0) {
        result = lemon_series_dir_open(&s->dir, s->path, &locks);
        if (!result.error)
            result = find_newest_below(s, LEMON_SERIES_NEWEST, &s->newest);
        if (result.error == EBUSY)
            code = lemon_inside_log(s->comm, LEMON_ERR_PARAM,
                                    "%s: another run has this series open", s->base);
        else if (!result.error && !locks)
            lemon_inside_log(s->comm, 0,
                             "%s: warning: the file system has no locks, so another run "
                             "may use this series",
                             s->base);
        if (code != LEMON_SUCCESS)
            result = success;
    }
    code = agree_on_error(s, code, result, s->path);
    MPI_Bcast(&s->newest, 1, MPI_INT64_T, 0, s->comm);
    return code;
}

static void select_writeback_rank(struct lemon_series *s)
{
    MPI_Comm node;
    int rank;
    MPI_Comm_split_type(s->comm, MPI_COMM_TYPE_SHARED, s->rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_free(&node);
    s->runs_writeback = rank == 0;
}

static void release_series(struct lemon_series *s)
{
    lemon_series_dir_close(&s->dir);
    if (s->info != MPI_INFO_NULL)
        MPI_Info_free(&s->info);
    MPI_Comm_free(&s->comm);
    free(s->path);
    free(s->base);
    free(s);
}

int lemonOpenSeries(char const *prefix, int keep, MPI_Info info, MPI_Comm comm,
                    LemonSeries **series)
{
    struct lemon_series *s = calloc(1, sizeof *s);
    int bad = !s || !series;
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_MAX, comm);
    if (series)
        *series = NULL;
    if (bad) {
        free(s);
        return lemon_inside_log(MPI_COMM_NULL, LEMON_ERR_PARAM,
                                "lemonOpenSeries: out of memory, or series is NULL");
    }
    MPI_Comm_dup(comm, &s->comm);
    MPI_Comm_rank(comm, &s->rank);
    s->dir = (struct lemon_series_dir){-1, -1, NULL};
    s->info = MPI_INFO_NULL;
    s->newest = -1;
    s->before = LEMON_SERIES_NEWEST;
    int code = set_arguments(s, prefix, keep);
    if (code == LEMON_SUCCESS)
        code = open_series_dir(s);
    if (code != LEMON_SUCCESS) {
        release_series(s);
        return code;
    }
    if (info != MPI_INFO_NULL)
        MPI_Info_dup(info, &s->info);
    select_writeback_rank(s);
    *series = s;
    return LEMON_SUCCESS;
}

int lemonCloseSeries(LemonSeries *s)
{
    if (!s)
        return LEMON_SUCCESS;
    int code = LEMON_SUCCESS;
    if (s->writer) {
        lemonSeriesAbort(s);
        code = lemon_inside_log(s->comm, LEMON_ERR_LAST_NOT_WRITTEN,
                                "%s: closed before the last checkpoint was complete", s->base);
    }
    release_series(s);
    return code;
}

int lemonSeriesLatest(LemonSeries *s, int64_t before, int64_t *number, char *path, size_t bytes)
{
    if (!s)
        return lemon_inside_log(MPI_COMM_NULL, LEMON_ERR_PARAM, "lemonSeriesLatest: no series");
    int64_t found = -1, values[1] = {before};
    struct lemon_dir_error result = success;
    int code = number && path ? LEMON_SUCCESS
                              : lemon_inside_log(s->comm, LEMON_ERR_PARAM,
                                                 "lemonSeriesLatest: no number, or no path");
    code = lemon_inside_agree_on(s->comm, code, values, 1);
    if (code != LEMON_SUCCESS)
        return code;
    if (s->rank == 0)
        result = find_newest_below(s, before < s->before ? before : s->before, &found);
    if (result.error)
        code = lemon_inside_log(s->comm, LEMON_ERR_READ, "%s: %s: %s", s->path, result.action,
                                strerror(result.error));
    code = lemon_inside_agree(s->comm, code);
    MPI_Bcast(&found, 1, MPI_INT64_T, 0, s->comm);
    if (code != LEMON_SUCCESS || found < 0)
        return code != LEMON_SUCCESS ? code : LEMON_EOF;
    char name[LEMON_SERIES_NAME_MAX];
    lemon_series_file_name(s->base, found, name);
    char *full_path = format_path(s, name);
    if (!full_path || strlen(full_path) >= bytes)
        code = lemon_inside_log(s->comm, LEMON_ERR_PARAM, "%s: path buffer too small", name);
    else
        memcpy(path, full_path, strlen(full_path) + 1);
    free(full_path);
    *number = found;
    return lemon_inside_agree(s->comm, code);
}

int lemonSeriesRewind(LemonSeries *s, int64_t number)
{
    if (!s)
        return lemon_inside_log(MPI_COMM_NULL, LEMON_ERR_PARAM, "lemonSeriesRewind: no series");
    int64_t values[1] = {number};
    int code = LEMON_SUCCESS;
    if (number < 0 || s->writer)
        code =
            lemon_inside_log(s->comm, LEMON_ERR_PARAM, "%s",
                             s->writer ? "a checkpoint is being written" : "negative number");
    code = lemon_inside_agree_on(s->comm, code, values, 1);
    if (code != LEMON_SUCCESS)
        return code;
    s->newest = number;
    s->before = number < LEMON_SERIES_NEWEST ? number + 1 : LEMON_SERIES_NEWEST;
    return LEMON_SUCCESS;
}

/* ---- begin ---- */

/* Creates a file with a random name, different from those of dead processes. Rank 0 only. */
static struct lemon_dir_error create_part(struct lemon_series *s)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return (struct lemon_dir_error){errno, "create"};
    lemon_series_part_name(s->base, s->number, random, s->part);
    s->fd =
        openat(s->dir.fd, s->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return s->fd < 0 ? (struct lemon_dir_error){errno, "create"} : success;
}

/* On rank 0, removes the unfinished file if it exists, and closes it. */
static void remove_part(struct lemon_series *s)
{
    if (s->fd >= 0) {
        unlinkat(s->dir.fd, s->part, 0);
        close(s->fd);
    }
    s->fd = -1;
}

static int open_mpi_file(struct lemon_series *s, const char *path)
{
    int length, err = MPI_ERR_NO_MEM;
    if (path)
        err = MPI_File_open(s->comm, path, MPI_MODE_RDWR, s->info, &s->file);
    if (err == MPI_SUCCESS)
        return LEMON_SUCCESS;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_string(err, text, &length);
    return lemon_inside_log(s->comm, LEMON_ERR_WRITE, "%s: open: %s", s->part, text);
}

static int open_writer(struct lemon_series *s, const char *path)
{
    int code = lemon_inside_agree(
        s->comm,
        path ? LEMON_SUCCESS : lemon_inside_log(s->comm, LEMON_ERR_WRITE, "out of memory"));
    if (code == LEMON_SUCCESS)
        code = lemon_inside_agree(s->comm, open_mpi_file(s, path));
    if (code != LEMON_SUCCESS)
        return code;
    s->writer = lemonCreateWriter(&s->file, s->comm);
    code = s->writer ? lemonWriterSetInfo(s->writer, s->info)
                     : lemon_inside_log(s->comm, LEMON_ERR_WRITE, "out of memory");
    if (code == LEMON_SUCCESS) {
        lemonWriterSetPath(s->writer, path); /* optional: an error does not matter */
        lemon_inside_defer_sync(s->writer);
        return code;
    }
    lemonDestroyWriter(s->writer);
    s->writer = NULL;
    MPI_File_close(&s->file);
    return code;
}

/* Checks that no checkpoint is being written, and that `number` is greater than the newest
 * checkpoint's and the same on all ranks. Collective, agreed. */
static int check_begin(const struct lemon_series *s, int64_t number, LemonWriter **writer)
{
    int64_t values[1] = {number};
    int code = LEMON_SUCCESS;
    if (!writer)
        code = lemon_inside_log(s->comm, LEMON_ERR_PARAM, "lemonSeriesBegin: writer is NULL");
    else if (s->writer)
        code = lemon_inside_log(s->comm, LEMON_ERR_PARAM,
                                "%s: the previous checkpoint is still open", s->base);
    else if (number <= s->newest)
        code = lemon_inside_log(s->comm, LEMON_ERR_PARAM,
                                "%s: checkpoint %" PRId64 " is not newer than number %" PRId64,
                                s->base, number, s->newest);
    else if (number < 0)
        code = lemon_inside_log(s->comm, LEMON_ERR_PARAM, "%s: negative number", s->base);
    return lemon_inside_agree_on(s->comm, code, values, 1);
}

int lemonSeriesBegin(LemonSeries *s, int64_t number, LemonWriter **writer)
{
    if (!s)
        return lemon_inside_log(MPI_COMM_NULL, LEMON_ERR_PARAM, "lemonSeriesBegin: no series");
    int code = check_begin(s, number, writer);
    if (code != LEMON_SUCCESS)
        return code;
    s->number = number;
    s->fd = -1;
    code = agree_on_error(s, code, s->rank == 0 ? create_part(s) : success, s->base);
    MPI_Bcast(s->part, sizeof s->part, MPI_CHAR, 0, s->comm);
    char *path = format_path(s, s->part);
    if (code == LEMON_SUCCESS)
        code = open_writer(s, path);
    if (code == LEMON_SUCCESS && s->runs_writeback)
        lemon_writeback_start(&s->writeback, path);
    free(path);
    if (code != LEMON_SUCCESS)
        remove_part(s);
    else
        *writer = s->writer;
    return code;
}

enum progress { PROGRESS_WRITING, PROGRESS_TRANSFERRED, PROGRESS_SYNCED };

int lemonSeriesTest(LemonSeries *s, int *done)
{
    if (!s)
        return lemon_inside_log(MPI_COMM_NULL, LEMON_ERR_PARAM, "lemonSeriesTest: no series");
    if (!s->writer)
        return lemon_inside_log(s->comm, LEMON_ERR_CLOSE, "%s: no checkpoint was begun",
                                s->base);
    int progress = done ? PROGRESS_WRITING : LEMON_ERR_PARAM;
    if (done && lemon_inside_is_transferred(s->writer))
        progress =
            lemon_writeback_is_done(&s->writeback) ? PROGRESS_SYNCED : PROGRESS_TRANSFERRED;
    progress = lemon_inside_agree(s->comm, progress);
    if (progress < PROGRESS_WRITING)
        return lemon_inside_log(s->comm, LEMON_ERR_PARAM, "lemonSeriesTest: done is NULL");
    *done = progress == PROGRESS_SYNCED;
    if (progress == PROGRESS_TRANSFERRED)
        lemon_writeback_data_complete(&s->writeback);
    return LEMON_SUCCESS;
}

/* ---- end ---- */

/* Closes the open record, and checks that the file is a complete container. Collective. */
static int close_last_record(struct lemon_series *s)
{
    LemonWriter *w = s->writer;
    int code = lemonFinishWriting(w);
    if (code == LEMON_SUCCESS && !w->is_awaiting_header)
        code = lemonWriterCloseRecord(w);
    if (code == LEMON_ERR_CLOSE)
        return LEMON_ERR_LAST_NOT_WRITTEN;
    if (code == LEMON_SUCCESS && (w->is_first_record || !w->is_last_written))
        code = lemon_inside_log(s->comm, LEMON_ERR_LAST_NOT_WRITTEN,
                                "%s: checkpoint %" PRId64 ": %s", s->base, s->number,
                                w->is_first_record ? "no record was written"
                                                   : "the last record has no ME");
    return code;
}

/* Stops the thread, destroys the writer and closes the file. Returns LEMON_SUCCESS only if
 * `code` is LEMON_SUCCESS and all data are on the disk. Collective. */
static int close_checkpoint(struct lemon_series *s, int code)
{
    int sync_error = lemon_writeback_stop(&s->writeback);
    if (code == LEMON_SUCCESS && sync_error)
        code = lemon_inside_log(s->comm, LEMON_ERR_WRITE, "%s: sync: %s", s->part,
                                strerror(sync_error));
    code = lemon_inside_agree(s->comm, code);
    lemonDestroyWriter(s->writer);
    s->writer = NULL;
    if (code == LEMON_SUCCESS) {
        int err = lemon_inside_sync(s->file);
        if (err != MPI_SUCCESS)
            code = lemon_inside_log(s->comm, LEMON_ERR_WRITE, "%s: sync: MPI error %d", s->part,
                                    err);
    }
    int err = MPI_File_close(&s->file);
    if (err != MPI_SUCCESS && code == LEMON_SUCCESS)
        code =
            lemon_inside_log(s->comm, LEMON_ERR_WRITE, "%s: close: MPI error %d", s->part, err);
    return lemon_inside_agree(s->comm, code);
}

/* Rank 0 only. First removes the checkpoints that lemonSeriesRewind() made invalid, and then
 * renames the new one. If the program is killed in between, it restarts from the checkpoint to
 * which it had gone back, not from an invalid one. If the sync after the rename fails, the new
 * one remains.
 */
static struct lemon_dir_error publish_checkpoint(struct lemon_series *s)
{
    struct lemon_dir_error result = {0, "sync"};
    result.error = fsync(s->fd) == 0 ? 0 : errno;
    if (!result.error && s->before < LEMON_SERIES_NEWEST)
        result = lemon_series_dir_prune(&s->dir, s->before - 1, INT64_MAX);
    if (!result.error)
        result = lemon_series_dir_publish(&s->dir, s->fd, s->part, s->number);
    return result;
}

static void remove_old_checkpoints(const struct lemon_series *s)
{
    struct lemon_dir_error result = lemon_series_dir_prune(&s->dir, s->number, s->keep_count);
    if (result.error)
        lemon_inside_log(s->comm, 0, "%s: %s: %s", s->base, result.action,
                         strerror(result.error));
}

/* Returns LEMON_SUCCESS if a checkpoint is being written, otherwise an error with a message. */
static int check_begun(const LemonSeries *s, const char *call)
{
    if (!s)
        return lemon_inside_log(MPI_COMM_NULL, LEMON_ERR_PARAM, "%s: no series", call);
    return s->writer ? LEMON_SUCCESS
                     : lemon_inside_log(s->comm, LEMON_ERR_CLOSE, "%s: no checkpoint was begun",
                                        s->base);
}

int lemonSeriesEnd(LemonSeries *s)
{
    int code = check_begun(s, "lemonSeriesEnd");
    if (code != LEMON_SUCCESS)
        return code;
    code = close_checkpoint(s, close_last_record(s));
    if (code == LEMON_SUCCESS)
        code = agree_on_error(s, code, s->rank == 0 ? publish_checkpoint(s) : success, s->part);
    if (code == LEMON_SUCCESS) {
        s->newest = s->number;
        s->before = LEMON_SERIES_NEWEST;
        if (s->rank == 0)
            remove_old_checkpoints(s);
        close(s->fd);
        s->fd = -1;
    }
    remove_part(s); /* removes nothing if the file was renamed */
    return code;
}

int lemonSeriesAbort(LemonSeries *s)
{
    int code = check_begun(s, "lemonSeriesAbort");
    if (code != LEMON_SUCCESS)
        return code;
    lemonFinishWriting(s->writer);
    close_checkpoint(s, LEMON_ERR_LAST_NOT_WRITTEN);
    remove_part(s);
    return LEMON_SUCCESS;
}
