/* write.c - one checkpoint of a series: begun, then published or given up */
#define _GNU_SOURCE
#include "series.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct lemon_folder_fault good = {0, NULL};

/* ---- begin ---- */

/* By rank 0: a new file of a name that no process knows, of dead runs either. */
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

/* By rank 0, whatever there is of it. */
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
        lemonWriterSetPath(s->writer, path); /* in vain, perhaps */
        lemon_inside_sync_later(s->writer);
        return code;
    }
    lemonDestroyWriter(s->writer);
    s->writer = NULL;
    MPI_File_close(&s->file);
    return code;
}

/* A number that is due, the same on all ranks. */
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
    code = lemon_series_agree(s, code, s->rank == 0 ? create_part(s) : good, s->base);
    MPI_Bcast(s->part, sizeof s->part, MPI_CHAR, 0, s->comm);
    char *path = lemon_series_path(s, s->part);
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

/* ---- meanwhile ---- */

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

/* Whether what was written is a whole container. The same on all ranks. */
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

/* Ends writer, thread and file; after that, if the code is good, all is on the disk. */
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

/* By rank 0. What has been renamed stays, even if its name may not be on the disk. Those that
 * the run went back behind go first: killed in between, it goes on from where it went back to,
 * and not from a greater number that was given up. */
static struct lemon_folder_fault publish(struct lemon_series *s)
{
    struct lemon_folder_fault met = {0, "sync"};
    met.error = fsync(s->fd) == 0 ? 0 : errno;
    if (!met.error && s->before < LEMON_SERIES_NEWEST)
        met = lemon_folder_drop(&s->folder, s->before);
    if (!met.error)
        met = lemon_folder_publish(&s->folder, s->fd, s->part, s->number);
    return met;
}

static void prune(const struct lemon_series *s)
{
    struct lemon_folder_fault met = lemon_folder_prune(&s->folder, s->number, s->keep);
    if (met.error)
        lemon_inside_say(s->comm, 0, "%s: %s: %s", s->base, met.action, strerror(met.error));
}

int lemonSeriesEnd(LemonSeries *s)
{
    if (!s)
        return lemon_inside_say(MPI_COMM_NULL, LEMON_ERR_PARAM, "lemonSeriesEnd: no series");
    if (!s->writer)
        return lemon_inside_say(s->comm, LEMON_ERR_CLOSE, "%s: no checkpoint was begun",
                                s->base);
    int code = close_file(s, close_record(s));
    if (code == LEMON_SUCCESS)
        code = lemon_series_agree(s, code, s->rank == 0 ? publish(s) : good, s->part);
    if (code == LEMON_SUCCESS) {
        s->newest = s->number;
        s->before = LEMON_SERIES_NEWEST;
        if (s->rank == 0)
            prune(s);
        close(s->fd);
        s->fd = -1;
    }
    remove_part(s); /* if there is one */
    return code;
}

int lemonSeriesAbort(LemonSeries *s)
{
    if (!s)
        return lemon_inside_say(MPI_COMM_NULL, LEMON_ERR_PARAM, "lemonSeriesAbort: no series");
    if (!s->writer)
        return lemon_inside_say(s->comm, LEMON_ERR_CLOSE, "%s: no checkpoint was begun",
                                s->base);
    lemonFinishWriting(s->writer);
    close_file(s, LEMON_ERR_LAST_NOT_WRITTEN);
    remove_part(s);
    return LEMON_SUCCESS;
}
