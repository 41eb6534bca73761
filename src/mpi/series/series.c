/* series.c - a series of checkpoints: opened, asked, closed */
#include "series.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct lemon_folder_fault good = {0, NULL};

char *lemon_series_path(const struct lemon_series *s, const char *name)
{
    size_t bytes = strlen(s->path) + strlen(name) + 2;
    char *path = malloc(bytes);
    if (path)
        snprintf(path, bytes, "%s%s%s", s->path, strcmp(s->path, "/") == 0 ? "" : "/", name);
    return path;
}

int lemon_series_agree(const struct lemon_series *s, int code, struct lemon_folder_fault fault,
                       const char *name)
{
    if (fault.error)
        code = lemon_inside_say(s->comm, LEMON_ERR_WRITE, "%s: %s: %s", name, fault.action,
                                strerror(fault.error));
    return lemon_inside_agree(s->comm, code);
}

/* ---- open ---- */

/* "folder/base" in two; the base has room in all names. */
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

/* FNV-1a: to notice that prefixes differ. */
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

/* The greatest number that is there, below `before`; -1: none. By rank 0. */
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
    code = lemon_series_agree(s, code, met, s->path);
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

/* ---- what is there ---- */

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
    char *whole = lemon_series_path(s, name);
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
