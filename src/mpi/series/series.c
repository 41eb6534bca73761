/* series.c - a series of checkpoints: open, query, close; begin, publish or abort one */
#define _GNU_SOURCE
#include "series.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const struct lemon_folder_fault good = {0, NULL};

/* Returns the path of a file in the directory, or NULL if out of memory. Free it by free(). */
static char *path_of(const struct lemon_series *s, const char *name)
{
    size_t bytes = strlen(s->path) + strlen(name) + 2;
    char *path = malloc(bytes);
    if (path)
        snprintf(path, bytes, "%s%s%s", s->path, strcmp(s->path, "/") == 0 ? "" : "/", name);
    return path;
}

/* Returns the lowest code of all ranks. Rank 0 reports its fault. Collective. */
static int agree_on_fault(const struct lemon_series *s, int code,
                          struct lemon_folder_fault fault, const char *name)
{
    if (fault.error)
        code = lemon_inside_say(s->comm, LEMON_ERR_WRITE, "%s: %s: %s", name, fault.action,
                                strerror(fault.error));
    return lemon_inside_agree(s->comm, code);
}

/* ---- open ---- */

/* Splits "directory/base". All names with this base must fit into LEMON_SERIES_NAME. */
static int take_prefix(struct lemon_series *s, const char *prefix)
{
    char name[LEMON_SERIES_NAME];
    const char *slash = strrchr(prefix, '/');
    const char *base = slash ? slash + 1 : prefix;
    if (!*base || !lemon_folder_part(base, INT64_MAX, UINT64_MAX, name))
        return lemon_inside_say(s->comm, LEMON_ERR_PARAM, "%s: a series: its names are too %s",
                                prefix, *base ? "long" : "short");
    s->base = strdup(base);
    s->path = slash == prefix ? strdup("/")
              : slash         ? strndup(prefix, (size_t)(slash - prefix))
                              : strdup(".");
    s->folder.base = s->base;
    return s->base && s->path ? LEMON_SUCCESS
                              : lemon_inside_say(s->comm, LEMON_ERR_PARAM, "out of memory");
}

/* FNV-1a hash, to detect prefixes that differ between ranks. */
static int64_t sum_of(const char *text)
{
    uint64_t sum = 0xcbf29ce484222325;
    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * 0x100000001b3;
    return (int64_t)(sum >> 1);
}

static int take_arguments(struct lemon_series *s, const char *prefix, int keep)
{
    int64_t values[2] = {keep, prefix ? sum_of(prefix) : 0};
    int code = LEMON_SUCCESS;
    if (!prefix)
        code = lemon_inside_say(s->comm, LEMON_ERR_PARAM, "a series: no prefix");
    else if (keep < 1)
        code =
            lemon_inside_say(s->comm, LEMON_ERR_PARAM, "%s: a series keeps 1 or more", prefix);
    else
        code = take_prefix(s, prefix);
    s->keep = keep;
    return lemon_inside_agree_on(s->comm, code, values, 2);
}

/* Finds the greatest existing number below `before`; -1: none. Rank 0 only. */
static struct lemon_folder_fault greatest(const struct lemon_series *s, int64_t before,
                                          int64_t *number)
{
    int64_t *numbers, count;
    struct lemon_folder_fault met = lemon_folder_list(&s->folder, &numbers, &count);
    *number = -1;
    int64_t i = 0;
    while (i < count && numbers[i] >= before && before != LEMON_SERIES_NEWEST)
        i++;
    if (!met.error && i < count)
        *number = numbers[i];
    free(numbers);
    return met;
}

static int open_folder(struct lemon_series *s)
{
    struct lemon_folder_fault met = good;
    bool locks = true;
    int code = LEMON_SUCCESS;
    if (s->rank == 0) {
        met = lemon_folder_open(&s->folder, s->path, &locks);
        if (!met.error)
            met = greatest(s, LEMON_SERIES_NEWEST, &s->newest);
        if (met.error == EBUSY)
            code = lemon_inside_say(s->comm, LEMON_ERR_PARAM,
                                    "%s: another run has this series open", s->base);
        else if (!met.error && !locks)
            lemon_inside_say(s->comm, 0,
                             "%s: the file system has no locks: nothing prevents another "
                             "run from using this series",
                             s->base);
        if (code != LEMON_SUCCESS)
            met = good;
    }
    code = agree_on_fault(s, code, met, s->path);
    MPI_Bcast(&s->newest, 1, MPI_INT64_T, 0, s->comm);
    return code;
}

static void choose_pusher(struct lemon_series *s)
{
    MPI_Comm node;
    int rank;
    MPI_Comm_split_type(s->comm, MPI_COMM_TYPE_SHARED, s->rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_free(&node);
    s->pushes = rank == 0;
}

static void release(struct lemon_series *s)
{
    lemon_folder_close(&s->folder);
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
        return lemon_inside_say(MPI_COMM_NULL, LEMON_ERR_PARAM,
                                "lemonOpenSeries: no memory, or no place for it");
    }
    MPI_Comm_dup(comm, &s->comm);
    MPI_Comm_rank(comm, &s->rank);
    s->folder = (struct lemon_folder){-1, -1, NULL};
    s->info = MPI_INFO_NULL;
    s->newest = -1;
    s->before = LEMON_SERIES_NEWEST;
    int code = take_arguments(s, prefix, keep);
    if (code == LEMON_SUCCESS)
        code = open_folder(s);
    if (code != LEMON_SUCCESS) {
        release(s);
        return code;
    }
    if (info != MPI_INFO_NULL)
        MPI_Info_dup(info, &s->info);
    choose_pusher(s);
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
        code = lemon_inside_say(s->comm, LEMON_ERR_LAST_NOT_WRITTEN,
                                "%s: closed before the last checkpoint was complete", s->base);
    }
    release(s);
    return code;
}

/* ---- query ---- */

int lemonSeriesLatest(LemonSeries *s, int64_t before, int64_t *number, char *path, size_t bytes)
{
    if (!s)
        return lemon_inside_say(MPI_COMM_NULL, LEMON_ERR_PARAM, "lemonSeriesLatest: no series");
    int64_t found = -1, values[1] = {before};
    struct lemon_folder_fault met = good;
    int code = number && path
                   ? LEMON_SUCCESS
                   : lemon_inside_say(s->comm, LEMON_ERR_PARAM, "no place for an answer");
    code = lemon_inside_agree_on(s->comm, code, values, 1);
    if (code != LEMON_SUCCESS)
        return code;
    if (s->rank == 0)
        met = greatest(s, before < s->before ? before : s->before, &found);
    if (met.error)
        code = lemon_inside_say(s->comm, LEMON_ERR_READ, "%s: %s: %s", s->path, met.action,
                                strerror(met.error));
    code = lemon_inside_agree(s->comm, code);
    MPI_Bcast(&found, 1, MPI_INT64_T, 0, s->comm);
    if (code != LEMON_SUCCESS || found < 0)
        return code != LEMON_SUCCESS ? code : LEMON_EOF;
    char name[LEMON_SERIES_NAME];
    lemon_folder_name(s->base, found, name);
    char *whole = path_of(s, name);
    if (!whole || strlen(whole) >= bytes)
        code = lemon_inside_say(s->comm, LEMON_ERR_PARAM, "%s: no room for its path", name);
    else
        memcpy(path, whole, strlen(whole) + 1);
    free(whole);
    *number = found;
    return lemon_inside_agree(s->comm, code);
}

int lemonSeriesRewind(LemonSeries *s, int64_t number)
{
    if (!s)
        return lemon_inside_say(MPI_COMM_NULL, LEMON_ERR_PARAM, "lemonSeriesRewind: no series");
    int64_t values[1] = {number};
    int code = LEMON_SUCCESS;
    if (number < 0 || s->writer)
        code = lemon_inside_say(s->comm, LEMON_ERR_PARAM, "%s",
                                s->writer ? "a checkpoint is being written"
                                          : "a number is 0 or more");
    code = lemon_inside_agree_on(s->comm, code, values, 1);
    if (code != LEMON_SUCCESS)
        return code;
    s->newest = number;
    s->before = number < LEMON_SERIES_NEWEST ? number + 1 : LEMON_SERIES_NEWEST;
    return LEMON_SUCCESS;
}

/* ---- begin ---- */

/* Creates a new file whose name is unique, even among those of dead processes. Rank 0 only. */
static struct lemon_folder_fault create_part(struct lemon_series *s)
{
    uint64_t chance;
    if (getrandom(&chance, sizeof chance, 0) != (ssize_t)sizeof chance)
        return (struct lemon_folder_fault){errno, "create"};
    lemon_folder_part(s->base, s->number, chance, s->part);
    s->fd = openat(s->folder.fd, s->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   0666);
    return s->fd < 0 ? (struct lemon_folder_fault){errno, "create"} : good;
}

/* Removes the unfinished file, if it exists. Rank 0 only. */
static void remove_part(struct lemon_series *s)
{
    if (s->fd >= 0) {
        unlinkat(s->folder.fd, s->part, 0);
        close(s->fd);
    }
    s->fd = -1;
}

static int open_file(struct lemon_series *s, const char *path)
{
    int length, err = MPI_ERR_NO_MEM;
    if (path)
        err = MPI_File_open(s->comm, path, MPI_MODE_RDWR, s->info, &s->file);
    if (err == MPI_SUCCESS)
        return LEMON_SUCCESS;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_string(err, text, &length);
    return lemon_inside_say(s->comm, LEMON_ERR_WRITE, "%s: open: %s", s->part, text);
}

static int open_writer(struct lemon_series *s, const char *path)
{
    int code = lemon_inside_agree(
        s->comm,
        path ? LEMON_SUCCESS : lemon_inside_say(s->comm, LEMON_ERR_WRITE, "out of memory"));
    if (code == LEMON_SUCCESS)
        code = lemon_inside_agree(s->comm, open_file(s, path));
    if (code != LEMON_SUCCESS)
        return code;
    s->writer = lemonCreateWriter(&s->file, s->comm);
    code = s->writer ? lemonWriterSetInfo(s->writer, s->info)
                     : lemon_inside_say(s->comm, LEMON_ERR_WRITE, "out of memory");
    if (code == LEMON_SUCCESS) {
        lemonWriterSetPath(s->writer, path); /* optional: an error does not matter */
        lemon_inside_sync_later(s->writer);
        return code;
    }
    lemonDestroyWriter(s->writer);
    s->writer = NULL;
    MPI_File_close(&s->file);
    return code;
}

/* Checks that the number is valid, and the same on all ranks. */
static int check_number(const struct lemon_series *s, int64_t number, LemonWriter **writer)
{
    int64_t values[1] = {number};
    int code = LEMON_SUCCESS;
    if (!writer)
        code = lemon_inside_say(s->comm, LEMON_ERR_PARAM,
                                "lemonSeriesBegin: no place for the writer");
    else if (s->writer)
        code = lemon_inside_say(s->comm, LEMON_ERR_PARAM,
                                "%s: the checkpoint before is still open", s->base);
    else if (number <= s->newest)
        code = lemon_inside_say(s->comm, LEMON_ERR_PARAM,
                                "%s: checkpoint %" PRId64 " is not newer than number %" PRId64
                                ", which is there",
                                s->base, number, s->newest);
    else if (number < 0)
        code = lemon_inside_say(s->comm, LEMON_ERR_PARAM, "%s: a number is 0 or more", s->base);
    return lemon_inside_agree_on(s->comm, code, values, 1);
}

int lemonSeriesBegin(LemonSeries *s, int64_t number, LemonWriter **writer)
{
    if (!s)
        return lemon_inside_say(MPI_COMM_NULL, LEMON_ERR_PARAM, "lemonSeriesBegin: no series");
    int code = check_number(s, number, writer);
    if (code != LEMON_SUCCESS)
        return code;
    s->number = number;
    s->fd = -1;
    code = agree_on_fault(s, code, s->rank == 0 ? create_part(s) : good, s->base);
    MPI_Bcast(s->part, sizeof s->part, MPI_CHAR, 0, s->comm);
    char *path = path_of(s, s->part);
    if (code == LEMON_SUCCESS)
        code = open_writer(s, path);
    if (code == LEMON_SUCCESS && s->pushes)
        lemon_push_start(&s->push, path);
    free(path);
    if (code != LEMON_SUCCESS)
        remove_part(s);
    else
        *writer = s->writer;
    return code;
}

/* ---- progress ---- */

enum progress { MOVING, MOVED, CLEAN };

int lemonSeriesTest(LemonSeries *s, int *done)
{
    if (!s)
        return lemon_inside_say(MPI_COMM_NULL, LEMON_ERR_PARAM, "lemonSeriesTest: no series");
    if (!s->writer)
        return lemon_inside_say(s->comm, LEMON_ERR_CLOSE, "%s: no checkpoint was begun",
                                s->base);
    int progress = done ? MOVING : LEMON_ERR_PARAM;
    if (done && lemon_inside_have_moved(s->writer))
        progress = lemon_push_clean(&s->push) ? CLEAN : MOVED;
    progress = lemon_inside_agree(s->comm, progress);
    if (progress < MOVING)
        return lemon_inside_say(s->comm, LEMON_ERR_PARAM,
                                "lemonSeriesTest: no place for an answer");
    *done = progress == CLEAN;
    if (progress == MOVED)
        lemon_push_moved(&s->push);
    return LEMON_SUCCESS;
}

/* ---- end ---- */

/* Closes the open record, and checks that the file is a complete container. Collective. */
static int close_record(struct lemon_series *s)
{
    LemonWriter *w = s->writer;
    int code = lemonFinishWriting(w);
    if (code == LEMON_SUCCESS && !w->is_awaiting_header)
        code = lemonWriterCloseRecord(w);
    if (code == LEMON_ERR_CLOSE)
        return LEMON_ERR_LAST_NOT_WRITTEN;
    if (code == LEMON_SUCCESS && (w->is_first_record || !w->is_last_written))
        code = lemon_inside_say(s->comm, LEMON_ERR_LAST_NOT_WRITTEN,
                                "%s: checkpoint %" PRId64 ": %s", s->base, s->number,
                                w->is_first_record ? "no record was written"
                                                   : "its last record has no ME");
    return code;
}

/* Ends writer, thread and file. If it returns LEMON_SUCCESS, all data are on the disk. */
static int close_file(struct lemon_series *s, int code)
{
    int pushed = lemon_push_stop(&s->push);
    if (code == LEMON_SUCCESS && pushed)
        code = lemon_inside_say(s->comm, LEMON_ERR_WRITE, "%s: sync: %s", s->part,
                                strerror(pushed));
    code = lemon_inside_agree(s->comm, code);
    lemonDestroyWriter(s->writer);
    s->writer = NULL;
    if (code == LEMON_SUCCESS) {
        int err = lemon_inside_sync(s->file);
        if (err != MPI_SUCCESS)
            code = lemon_inside_say(s->comm, LEMON_ERR_WRITE, "%s: sync: MPI error %d", s->part,
                                    err);
    }
    int err = MPI_File_close(&s->file);
    if (err != MPI_SUCCESS && code == LEMON_SUCCESS)
        code =
            lemon_inside_say(s->comm, LEMON_ERR_WRITE, "%s: close: MPI error %d", s->part, err);
    return lemon_inside_agree(s->comm, code);
}

/* Rank 0 only. A renamed file stays, even if the name may not be on the disk. Checkpoints that
 * a rewind has invalidated are removed first: a program that is killed in between then restarts
 * from the rewind's number, not from a greater, invalid one. */
static struct lemon_folder_fault publish(struct lemon_series *s)
{
    struct lemon_folder_fault met = {0, "sync"};
    met.error = fsync(s->fd) == 0 ? 0 : errno;
    if (!met.error && s->before < LEMON_SERIES_NEWEST)
        met = lemon_folder_remove(&s->folder, s->before - 1, INT64_MAX);
    if (!met.error)
        met = lemon_folder_publish(&s->folder, s->fd, s->part, s->number);
    return met;
}

static void prune(const struct lemon_series *s)
{
    struct lemon_folder_fault met = lemon_folder_remove(&s->folder, s->number, s->keep);
    if (met.error)
        lemon_inside_say(s->comm, 0, "%s: %s: %s", s->base, met.action, strerror(met.error));
}

/* Returns LEMON_SUCCESS if a checkpoint is being written. */
static int check_begun(const LemonSeries *s, const char *call)
{
    if (!s)
        return lemon_inside_say(MPI_COMM_NULL, LEMON_ERR_PARAM, "%s: no series", call);
    return s->writer ? LEMON_SUCCESS
                     : lemon_inside_say(s->comm, LEMON_ERR_CLOSE, "%s: no checkpoint was begun",
                                        s->base);
}

int lemonSeriesEnd(LemonSeries *s)
{
    int code = check_begun(s, "lemonSeriesEnd");
    if (code != LEMON_SUCCESS)
        return code;
    code = close_file(s, close_record(s));
    if (code == LEMON_SUCCESS)
        code = agree_on_fault(s, code, s->rank == 0 ? publish(s) : good, s->part);
    if (code == LEMON_SUCCESS) {
        s->newest = s->number;
        s->before = LEMON_SERIES_NEWEST;
        if (s->rank == 0)
            prune(s);
        close(s->fd);
        s->fd = -1;
    }
    remove_part(s); /* no effect after a rename */
    return code;
}

int lemonSeriesAbort(LemonSeries *s)
{
    int code = check_begun(s, "lemonSeriesAbort");
    if (code != LEMON_SUCCESS)
        return code;
    lemonFinishWriting(s->writer);
    close_file(s, LEMON_ERR_LAST_NOT_WRITTEN);
    remove_part(s);
    return LEMON_SUCCESS;
}
