/*
 * series.c - test the calls for a series of checkpoints, on any number of ranks
 *
 * usage: series DIRECTORY     an empty directory
 */
#include "lemon_series.h"

#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum {
    TEXT = 1000,
    DOUBLES = 100000, /* in each rank's part of a lattice */
};

static char directory[PATH_MAX], prefix[PATH_MAX];

/* Counts the names in the directory that contain `part`; local. */
static int count_names(const char *part)
{
    int n = 0;
    DIR *entries = opendir(directory);
    for (struct dirent *e; entries && (e = readdir(entries)) != NULL;)
        n += strstr(e->d_name, part) != NULL;
    if (entries)
        closedir(entries);
    return n;
}

/* Counts the names on rank 0, for all ranks. */
static int names_with(const char *part)
{
    int n = tap_rank == 0 ? count_names(part) : 0;
    MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return n;
}

static bool is_there(const char *name)
{
    char path[2 * PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int there = lstat(path, &st) == 0;
    MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return there;
}

/* Rank 0 creates an empty file. */
static void make(const char *name)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (tap_rank == 0)
        close(open(path, O_CREAT | O_WRONLY, 0644));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Removes the checkpoints and unfinished files. */
static void remove_all(void)
{
    DIR *entries = tap_rank == 0 ? opendir(directory) : NULL;
    for (struct dirent *e; entries && (e = readdir(entries)) != NULL;)
        if (strstr(e->d_name, ".lime") || strstr(e->d_name, ".part"))
            unlinkat(dirfd(entries), e->d_name, 0);
    if (entries)
        closedir(entries);
    MPI_Barrier(MPI_COMM_WORLD);
}

static int text(LemonWriter *w, int mb, int me)
{
    char data[TEXT] = "a text";
    MPI_Offset n = TEXT;
    int code = begin_record(w, mb, me, "text", n);
    return code == LEMON_SUCCESS ? lemonWriteRecordData(data, &n, w) : code;
}

/* Begins a checkpoint of one record without ending it. */
static void begin_one(LemonSeries *s, int64_t number)
{
    LemonWriter *w = NULL;
    tap_code(lemonSeriesBegin(s, number, &w), LEMON_SUCCESS, "begin");
    tap_code(text(w, 1, 1), LEMON_SUCCESS, "a record");
}

static void write_one(LemonSeries *s, int64_t number)
{
    begin_one(s, number);
    tap_ok(names_with(".part") == 1, "it has a temporary name until it is complete");
    tap_code(lemonSeriesEnd(s), LEMON_SUCCESS, "end");
    tap_ok(names_with(".part") == 0, "it has its final name");
}

static void newest_is(LemonSeries *s, int64_t before, int64_t want)
{
    char path[PATH_MAX], name[PATH_MAX + 64];
    int64_t number = -7;
    tap_code(lemonSeriesLatest(s, before, &number, path, sizeof path),
             want < 0 ? LEMON_EOF : LEMON_SUCCESS, "latest");
    if (want < 0)
        return;
    snprintf(name, sizeof name, "%s.%012lld.lime", prefix, (long long)want);
    tap_ok(number == want && strcmp(path, name) == 0, "it is %lld: %s", (long long)want, path);
}

/* ---- tests ---- */

static void try_arguments(void)
{
    LemonSeries *s = (void *)1;
    char other[PATH_MAX + 16];
    tap_code(lemonOpenSeries(NULL, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s), LEMON_ERR_PARAM,
             "no prefix");
    tap_ok(s == NULL, "no series");
    tap_code(lemonOpenSeries(prefix, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &s), LEMON_ERR_PARAM,
             "keep no checkpoint");
    snprintf(other, sizeof other, "%s/", directory);
    tap_code(lemonOpenSeries(other, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s), LEMON_ERR_PARAM,
             "no name");
    snprintf(other, sizeof other, "%s/none/x", directory);
    tap_code(lemonOpenSeries(other, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s), LEMON_ERR_WRITE,
             "no directory");
    snprintf(other, sizeof other, "%s%d", prefix, tap_rank);
    if (tap_ranks > 1)
        tap_code(lemonOpenSeries(other, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s), LEMON_ERR_PARAM,
                 "each rank another prefix");
    tap_code(lemonCloseSeries(NULL), LEMON_SUCCESS, "close nothing");
    tap_code(lemonSeriesEnd(NULL), LEMON_ERR_PARAM, "end nothing");
}

static void try_keeping(LemonSeries *s)
{
    newest_is(s, LEMON_SERIES_NEWEST, -1);
    for (int64_t i = 0; i < 5; i++) {
        write_one(s, i * 10);
        tap_ok(names_with(".lime") == (i < 2 ? (int)i + 1 : 2), "two checkpoints exist");
        newest_is(s, LEMON_SERIES_NEWEST, i * 10);
    }
    newest_is(s, 40, 30);
    newest_is(s, 30, -1);
    tap_ok(is_there("ck.000000000030.lime") && is_there("ck.000000000040.lime"),
           "the last two");
    char path[4];
    int64_t number;
    tap_code(lemonSeriesLatest(s, 40, &number, path, sizeof path), LEMON_ERR_PARAM,
             "path buffer too small");
}

static void try_order(LemonSeries *s)
{
    LemonWriter *w, *again;
    LemonSeries *second;
    tap_code(lemonOpenSeries(prefix, 2, MPI_INFO_NULL, MPI_COMM_WORLD, &second),
             LEMON_ERR_PARAM, "a second run");
    tap_code(lemonSeriesBegin(s, 40, &w), LEMON_ERR_PARAM, "an existing number");
    tap_code(lemonSeriesBegin(s, -1, &w), LEMON_ERR_PARAM, "a negative number");
    tap_code(lemonSeriesBegin(s, 50 + tap_rank, &w),
             tap_ranks > 1 ? LEMON_ERR_PARAM : LEMON_SUCCESS, "each rank another number");
    if (tap_ranks == 1)
        lemonSeriesAbort(s);
    tap_code(lemonSeriesEnd(s), LEMON_ERR_CLOSE, "end without begin");
    tap_code(lemonSeriesAbort(s), LEMON_ERR_CLOSE, "abort without begin");
    tap_code(lemonSeriesBegin(s, 50, &w), LEMON_SUCCESS, "begin");
    tap_code(lemonSeriesBegin(s, 60, &again), LEMON_ERR_PARAM, "begin twice");
    tap_code(lemonSeriesRewind(s, 1), LEMON_ERR_PARAM, "rewind between begin and end");
    tap_code(lemonSeriesEnd(s), LEMON_ERR_LAST_NOT_WRITTEN, "no record");
    tap_code(lemonSeriesBegin(s, 50, &w), LEMON_SUCCESS, "begin again");
    tap_code(begin_record(w, 1, 1, "text", TEXT), LEMON_SUCCESS, "a header only");
    tap_code(lemonSeriesEnd(s), LEMON_ERR_LAST_NOT_WRITTEN, "an incomplete record");
    tap_code(lemonSeriesBegin(s, 50, &w), LEMON_SUCCESS, "begin again");
    tap_code(text(w, 1, 0), LEMON_SUCCESS, "an incomplete message");
    tap_code(lemonSeriesEnd(s), LEMON_ERR_LAST_NOT_WRITTEN, "no end of the message");
    begin_one(s, 50);
    tap_code(lemonSeriesAbort(s), LEMON_SUCCESS, "abort");
    tap_ok(names_with(".part") == 0 && names_with(".lime") == 2, "no temporary file is left");
    newest_is(s, LEMON_SERIES_NEWEST, 40);
}

static bool stat_fails;

/* Replaces the library's call, too. */
int fstatat(int dir, const char *name, struct stat *st, int flags)
{
    if (stat_fails && strstr(name, ".lime")) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_newfstatat, dir, name, st, flags);
}

/* A checkpoint that stat() fails for must not be skipped in favor of an older one, or none. */
static void try_bad_directory(LemonSeries *s)
{
    LemonSeries *again = NULL;
    const char *name = "ck-bad.000000000007.lime";
    char path[PATH_MAX], other[2 * PATH_MAX];
    int64_t number = -7;
    stat_fails = true;
    tap_code(lemonSeriesLatest(s, LEMON_SERIES_NEWEST, &number, path, sizeof path),
             LEMON_ERR_READ, "latest in a directory with errors");
    stat_fails = false;
    newest_is(s, LEMON_SERIES_NEWEST, 40);
    snprintf(other, sizeof other, "%s-bad", prefix);
    tap_code(lemonOpenSeries(other, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &again), LEMON_SUCCESS,
             "another series");
    write_one(again, 7);
    tap_code(lemonCloseSeries(again), LEMON_SUCCESS, "close it");
    stat_fails = true;
    tap_code(lemonOpenSeries(other, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &again), LEMON_ERR_WRITE,
             "open it in a directory with errors");
    stat_fails = false;
    tap_ok(is_there(name), "the checkpoint is unchanged");
    snprintf(other, sizeof other, "%s/%s", directory, name);
    if (tap_rank == 0)
        unlink(other);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void try_rewind(LemonSeries *s)
{
    LemonWriter *w;
    tap_code(lemonSeriesRewind(s, -1), LEMON_ERR_PARAM, "rewind to a negative number");
    tap_code(lemonSeriesRewind(s, 30), LEMON_SUCCESS, "rewind");
    tap_code(lemonSeriesBegin(s, 30, &w), LEMON_ERR_PARAM, "the number of the rewind");
    tap_ok(is_there("ck.000000000040.lime"), "a newer checkpoint stays until the next one");
    newest_is(s, LEMON_SERIES_NEWEST, 30); /* but is not the latest */
    write_one(s, 35);
    tap_ok(!is_there("ck.000000000040.lime"), "the next one removes it");
    newest_is(s, LEMON_SERIES_NEWEST, 35);
    newest_is(s, 35, 30);
    tap_code(lemonSeriesRewind(s, 30), LEMON_SUCCESS, "rewind");
    write_one(s, 35);
    tap_ok(names_with(".lime") == 2, "the same number replaces it");
}

static bool rename_fails;
static int renamed, complete_then; /* calls; complete checkpoints just before, on rank 0 */

/* Replaces the library's call, too. */
int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    renamed++;
    complete_then = count_names(".lime");
    if (rename_fails) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

/* After a kill at any moment, a run continues from the rewind's checkpoint or a later write,
 * not from a discarded checkpoint. */
static void try_rewind_order(LemonSeries *s)
{
    tap_code(lemonSeriesRewind(s, 30), LEMON_SUCCESS, "rewind");
    rename_fails = true;
    renamed = 0;
    begin_one(s, 33);
    tap_code(lemonSeriesEnd(s), LEMON_ERR_WRITE, "the rename fails");
    rename_fails = false;
    tap_ok(tap_rank != 0 || (renamed == 1 && complete_then == 1),
           "the discarded one was removed before: %d complete ones then", complete_then);
    tap_ok(is_there("ck.000000000030.lime") && names_with(".lime") == 1,
           "the rewind's checkpoint stays");
    tap_ok(names_with(".part") == 0, "the temporary file is removed");
    newest_is(s, LEMON_SERIES_NEWEST, 30);
    write_one(s, 33);
    tap_ok(tap_rank != 0 || (renamed == 2 && complete_then == 1), "the rename succeeds");
    newest_is(s, LEMON_SERIES_NEWEST, 33);
    write_one(s, 35);
    tap_ok(tap_rank != 0 || complete_then == 2, "older ones are removed after the rename");
}

static bool directory_sync_fails;

/* Replaces the library's call, too. */
int fsync(int fd)
{
    struct stat st;
    if (directory_sync_fails && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

/* The name may be lost in a power failure, so the call returns an error; the checkpoint exists,
 * but later ones need not be newer. */
static void try_unsynced_directory(LemonSeries *s)
{
    begin_one(s, 38);
    directory_sync_fails = true;
    tap_code(lemonSeriesEnd(s), LEMON_ERR_WRITE, "the directory cannot be synced");
    directory_sync_fails = false;
    tap_ok(names_with(".part") == 0, "the checkpoint has its final name");
    newest_is(s, LEMON_SERIES_NEWEST, 38);
    write_one(s, 37);
    newest_is(s, LEMON_SERIES_NEWEST, 37);
}

/* A process that renames another file to a temporary name does not get it published. */
static void try_other_file(LemonSeries *s)
{
    char path[2 * PATH_MAX], moved[2 * PATH_MAX];
    DIR *entries;
    begin_one(s, 60);
    entries = tap_rank == 0 ? opendir(directory) : NULL;
    for (struct dirent *e; entries && (e = readdir(entries)) != NULL;)
        if (strstr(e->d_name, ".part")) {
            snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
            snprintf(moved, sizeof moved, "%s/moved", directory);
            rename(path, moved);
            close(open(path, O_CREAT | O_WRONLY, 0644));
            break;
        }
    if (entries)
        closedir(entries);
    tap_code(lemonSeriesEnd(s), LEMON_ERR_WRITE, "another file has its name");
    tap_ok(!is_there("ck.000000000060.lime"), "it is not published");
    tap_ok(is_there("moved"), "the written file stays where it was moved to");
    if (tap_rank == 0)
        unlink(moved);
    newest_is(s, LEMON_SERIES_NEWEST, 37);
    tap_code(lemonSeriesRewind(s, 33), LEMON_SUCCESS, "rewind");
    write_one(s, 35);
}

/* Writes a lattice in the background. */
static void try_lattice(LemonSeries *s)
{
    int lattice[1] = {tap_ranks * DOUBLES}, done = 0;
    double *data = malloc(DOUBLES * sizeof *data);
    LemonWriter *w;
    char path[PATH_MAX];
    int64_t number;
    for (int i = 0; i < DOUBLES; i++)
        data[i] = tap_rank * 1e6 + i;
    tap_code(lemonSeriesBegin(s, 70, &w), LEMON_SUCCESS, "begin");
    tap_code(begin_record(w, 1, 1, "text", (MPI_Offset)tap_ranks * DOUBLES * 8), LEMON_SUCCESS,
             "header");
    tap_code(lemonWriteLatticeParallelNonBlocking(w, data, 8, lattice), LEMON_SUCCESS,
             "start a lattice");
    int code = LEMON_SUCCESS;
    while (code == LEMON_SUCCESS && !done)
        code = lemonSeriesTest(s, &done);
    tap_code(code, LEMON_SUCCESS, "test until it is on the disk");
    tap_ok(names_with(".part") == 1, "the test does not publish it");
    tap_code(lemonSeriesEnd(s), LEMON_SUCCESS, "end");
    tap_code(lemonSeriesTest(s, &done), LEMON_ERR_CLOSE, "test without begin");
    tap_code(lemonSeriesLatest(s, LEMON_SERIES_NEWEST, &number, path, sizeof path),
             LEMON_SUCCESS, "find");
    int fd = open(path, O_RDONLY);
    double first = -1;
    tap_ok(pread(fd, &first, 8, 144 + (off_t)tap_rank * DOUBLES * 8) == 8 &&
               first == tap_rank * 1e6,
           "each rank's part is there");
    close(fd);
    free(data);
}

static void try_all(void)
{
    LemonSeries *s, *second;
    LemonWriter *w;
    char other[PATH_MAX + 16];
    try_arguments();
    make(".ck.000000000007.0123456789abcdef.part");
    make(".ck.000000000007.0123456789abcdeg.part");
    make(".ckx.000000000007.0123456789abcdef.part");
    make("ck.7.lime");
    make("ck.0000000000008.lime");
    tap_code(lemonOpenSeries(prefix, 2, MPI_INFO_NULL, MPI_COMM_WORLD, &s), LEMON_SUCCESS,
             "open");
    tap_ok(!is_there(".ck.000000000007.0123456789abcdef.part"), "left-overs are removed");
    tap_ok(names_with(".part") == 2, "other files stay");
    remove_all();
    try_keeping(s);
    try_order(s);
    try_bad_directory(s);
    try_rewind(s);
    try_rewind_order(s);
    try_unsynced_directory(s);
    try_other_file(s);
    snprintf(other, sizeof other, "%s2", prefix);
    int grid[1] = {tap_ranks}, periods[1] = {0};
    MPI_Comm line;
    MPI_Cart_create(MPI_COMM_WORLD, 1, grid, periods, 0, &line);
    tap_code(lemonOpenSeries(other, 1, MPI_INFO_NULL, line, &second), LEMON_SUCCESS,
             "another series in the directory, of a grid of ranks");
    MPI_Comm_free(&line);
    newest_is(s, LEMON_SERIES_NEWEST, 35);
    try_lattice(second);
    tap_code(lemonCloseSeries(second), LEMON_SUCCESS, "close it");
    begin_one(s, 90);
    tap_code(lemonCloseSeries(s), LEMON_ERR_LAST_NOT_WRITTEN, "close an incomplete checkpoint");
    tap_ok(names_with(".part") == 0, "no temporary file is left");
    tap_code(lemonOpenSeries(prefix, 2, MPI_INFO_NULL, MPI_COMM_WORLD, &s), LEMON_SUCCESS,
             "open again");
    newest_is(s, LEMON_SERIES_NEWEST, 35);
    tap_code(lemonSeriesBegin(s, 35, &w), LEMON_ERR_PARAM, "an existing number");
    tap_code(lemonCloseSeries(s), LEMON_SUCCESS, "close");
}

int main(int argc, char *argv[])
{
    tap_begin_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    snprintf(directory, sizeof directory, "%.4000s", argv[1]);
    snprintf(prefix, sizeof prefix, "%.4000s/ck", argv[1]);
    try_all();
    return tap_end();
}
