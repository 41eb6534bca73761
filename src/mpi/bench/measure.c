/* measure.c - repeat writing and reading with each back end in turn */
#define _GNU_SOURCE
#include "measure.h"
#include "cleanup.h"
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `n` outputs of an entry that are written or read together; io[i] is for one of them. */
struct batch {
    struct bench_run *run;
    struct bench_entry *entry;
    int n;
    struct bench_io *io;
    bool is_prepared;
};

enum {
    CALIBRATION = 100, /* units of computing in measure_unit_seconds() */
};

static bool is_abandoned;

bool bench_is_abandoned(void)
{
    return is_abandoned;
}

void bench_output_path(const struct bench_run *run, const struct bench_entry *entry, int n,
                       char path[BENCH_PATH_BYTES])
{
    if (run->options->outputs == 1)
        snprintf(path, BENCH_PATH_BYTES, "%s", entry->path);
    else
        snprintf(path, BENCH_PATH_BYTES, "%.*s.%d", BENCH_PATH_BYTES - 16, entry->path, n + 1);
}

/* ---- computing ---- */

static volatile double sink;

/* Does arithmetic for about units * run->unit_seconds seconds, without using memory. */
static void compute(double units)
{
    double x = sink;
    for (long i = 0; i < (long)(units * 1e6); i++)
        x = x * 0.999999 + 1e-6;
    sink = x;
}

/* Returns the seconds that compute(1) takes while all ranks compute; the same on all ranks. */
static double measure_unit_seconds(MPI_Comm comm)
{
    MPI_Barrier(comm);
    double seconds = MPI_Wtime();
    compute(CALIBRATION);
    MPI_Barrier(comm);
    seconds = MPI_Wtime() - seconds;
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, comm);
    return seconds / CALIBRATION;
}

/* ---- choose what to measure, and allocate memory ---- */

/* Returns rank 0's result and reason on all ranks, as only rank 0 would mount. Collective. */
static bool is_unsupported(const struct bench_backend *backend, const struct bench_task *task,
                           char reason[BENCH_REASON_BYTES])
{
    int unsupported =
        bench_backend_unsupported(backend, task, reason, BENCH_REASON_BYTES) != NULL;
    unsupported = bench_world_broadcast(unsupported);
    if (unsupported)
        MPI_Bcast(reason, BENCH_REASON_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    return unsupported;
}

/* Fills run->entry with the usable back ends and run->skipped with the others. Returns false if
 * a path is too long; bench_output_path() needs 16 bytes for a number. Collective. */
static bool choose_backends(struct bench_run *run)
{
    const struct bench_options *o = run->options;
    for (int i = 0; i < o->backend_count; i++) {
        struct bench_entry *entry = &run->entry[run->entry_count];
        char reason[BENCH_REASON_BYTES];
        if (is_unsupported(o->backends[i], &o->task, reason)) {
            run->skipped[run->skipped_count].backend = o->backends[i];
            strcpy(run->skipped[run->skipped_count++].reason, reason);
            continue;
        }
        entry->backend = o->backends[i];
        entry->results[BENCH_READ].verified = true;
        int n = snprintf(entry->path, sizeof entry->path, "%s%s%s", o->path,
                         o->backend_count > 1 ? "." : "",
                         o->backend_count > 1 ? entry->backend->name : "");
        if (n >= (int)sizeof entry->path - 16)
            return false;
        run->entry_count++;
    }
    return true;
}

static void print_skipped(const struct bench_run *run)
{
    for (int i = 0; i < run->skipped_count && run->world->rank == 0; i++)
        bench_log("%s: %s", run->skipped[i].backend->name, run->skipped[i].reason);
}

/* Returns false, after a message, if an output exists: the run would remove it. Rank 0 only. */
static bool outputs_are_free(const struct bench_run *run)
{
    for (int i = 0; i < run->entry_count * run->options->outputs; i++) {
        char path[BENCH_PATH_BYTES];
        bench_output_path(run, &run->entry[i / run->options->outputs],
                          (int)(i % run->options->outputs), path);
        struct stat st;
        if (lstat(path, &st) == 0 || errno != ENOENT) {
            bench_log("%s: write: exists already; remove it, or give another file", path);
            return false;
        }
    }
    return true;
}

static bool allocate_results(struct bench_run *run)
{
    for (int i = 0; i < run->entry_count; i++)
        for (int op = 0; op < BENCH_OPERATIONS; op++) {
            struct bench_result *result = &run->entry[i].results[op];
            result->seconds =
                calloc((size_t)run->options->repetitions, sizeof *result->seconds);
            if (!result->seconds)
                return false;
        }
    return true;
}

static bool allocate_data(struct bench_run *run)
{
    const struct bench_pattern *p = &run->options->task.pattern;
    int writer, reader;
    MPI_Comm_rank(run->writers, &writer);
    MPI_Comm_rank(run->readers, &reader);
    int64_t bytes = bench_pattern_rank_bytes(p, writer);
    int64_t reader_bytes = bench_pattern_rank_bytes(p, reader);
    bytes = bytes > reader_bytes ? bytes : reader_bytes;
    if (posix_memalign((void **)&run->data, 4096, bytes ? (size_t)bytes : 1) != 0)
        run->data = NULL;
    if (run->data)
        memset(run->data, 0, (size_t)bytes); /* allocates the pages before the clock runs */
    return run->data != NULL;
}

/* With --reorder, shifts the readers by the number of ranks of a host, so that each rank reads
 * what another host has written. If there is a single host, shifts them by one rank. */
static void create_comms(struct bench_run *run)
{
    int ranks = run->world->ranks, shift = 0;
    if (run->options->reorder) {
        shift = bench_world_broadcast(run->world->host_ranks);
        shift = shift == ranks ? 1 : shift;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &run->writers);
    MPI_Comm_split(MPI_COMM_WORLD, 0, (run->world->rank + shift) % ranks, &run->readers);
}

int bench_run_init(struct bench_run *run, const struct bench_options *options,
                   const struct bench_world *world)
{
    memset(run, 0, sizeof *run);
    run->options = options;
    run->world = world;
    run->writers = run->readers = MPI_COMM_NULL;
    run->bytes = bench_pattern_bytes(&options->task.pattern) * options->outputs;
    if (!choose_backends(run)) {
        if (world->rank == 0)
            bench_log("%.200s...: the name is too long", options->path);
        return BENCH_USAGE;
    }
    if (run->entry_count == 0 || options->backend_count == 1)
        print_skipped(run);
    if (run->entry_count == 0)
        return BENCH_USAGE;
    if (options->writes && !bench_world_broadcast(world->rank != 0 || outputs_are_free(run)))
        return BENCH_USAGE;
    run->cache = options->cold ? bench_cache_method(world, options->cold_file) : "none";
    create_comms(run);
    bool good = allocate_data(run) && allocate_results(run);
    if (!bench_world_report(world, options->path, "prepare", good ? "" : "out of memory"))
        return BENCH_FAILED;
    if (options->compute > 0)
        run->unit_seconds = measure_unit_seconds(MPI_COMM_WORLD);
    return BENCH_SUCCESS;
}

void bench_run_free(struct bench_run *run)
{
    for (int i = 0; i < run->entry_count; i++)
        for (int op = 0; op < BENCH_OPERATIONS; op++) {
            free(run->entry[i].results[op].seconds);
            json_decref(run->entry[i].results[op].hints);
        }
    if (run->writers != MPI_COMM_NULL)
        MPI_Comm_free(&run->writers);
    if (run->readers != MPI_COMM_NULL)
        MPI_Comm_free(&run->readers);
    free(run->data);
}

/* Creates b->io for outputs first to first + n - 1. If memory runs out, find_error() returns
 * that error. */
static void create_batch(struct batch *b, enum bench_operation operation, int first, int n)
{
    struct bench_run *run = b->run;
    MPI_Comm comm = operation == BENCH_WRITE ? run->writers : run->readers;
    b->n = n;
    b->io = calloc((size_t)n, sizeof *b->io);
    for (int i = 0; b->io && i < n; i++) {
        struct bench_io *io = &b->io[i];
        bench_output_path(run, b->entry, first + i, io->path);
        io->backend = b->entry->backend;
        io->task = &run->options->task;
        io->comm = comm;
        MPI_Comm_rank(comm, &io->rank);
        io->is_writing = operation == BENCH_WRITE;
        io->data = run->data;
        io->fd = -1;
        io->file = MPI_FILE_NULL;
        size_t bytes = io->backend->state_bytes;
        io->state = bytes ? calloc(1, bytes) : NULL;
        if (bytes && !io->state)
            snprintf(io->error, sizeof io->error, "prepare: out of memory");
    }
}

static const char *find_error(const struct batch *b)
{
    for (int i = 0; b->io && i < b->n; i++)
        if (b->io[i].error[0])
            return b->io[i].error;
    return b->io ? "" : "prepare: out of memory";
}

/* Returns true if no rank has an error so far; otherwise rank 0 prints one. Collective. */
static bool report_errors(const struct batch *b)
{
    return bench_world_report(b->run->world, b->entry->path, b->entry->backend->name,
                              find_error(b));
}

/* Before a write, removes old files and syncs the file system, so that no earlier data wait for
 * writeback. Without --keep, lets the guard (cleanup.h) remove the new files. Collective. */
static void remove_old_outputs(const struct batch *b)
{
    for (int i = 0; i < b->n && b->run->world->rank == 0; i++) {
        if (!b->run->options->keep)
            bench_cleanup_add_file(b->io[i].path);
        unlink(b->io[i].path);
    }
    if (b->run->world->rank == 0) {
        const char *path = b->io->path, *slash = strrchr(path, '/');
        char parent[BENCH_PATH_BYTES] = ".";
        if (slash)
            snprintf(parent, sizeof parent, "%.*s", (int)(slash - path) + 1, path);
        int directory = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory >= 0) {
            syncfs(directory);
            close(directory);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static bool prepare_batch(struct batch *b)
{
    b->is_prepared = true;
    for (int i = 0; i < b->n; i++)
        if (b->entry->backend->prepare)
            b->entry->backend->prepare(&b->io[i]);
    return report_errors(b);
}

static void release_batch(struct batch *b)
{
    for (int i = 0; b->io && i < b->n; i++) {
        if (b->io[i].is_abandoned)
            return; /* the library may still use this memory */
        if (b->is_prepared && b->entry->backend->release)
            b->entry->backend->release(&b->io[i]);
        free(b->io[i].state);
        json_decref(b->io[i].hints);
    }
    free(b->io);
    b->io = NULL;
    b->is_prepared = false;
}

/* Returns true if no rank has failed. Collective. */
static bool agree_on_success(const struct bench_io *io)
{
    int good = io->error[0] == '\0';
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, io->comm);
    return good;
}

/* Closes the file, unless the transfer has failed and the back end's library could hang. */
static void close_output(struct bench_io *io, bool failed)
{
    io->is_abandoned = failed && io->backend->may_hang;
    if (io->is_abandoned)
        is_abandoned = true;
    else
        io->backend->close(io);
}

/* Adds the times of all phases to *s. Returns false if the open or the transfer failed on any
 * rank; errors of sync and close are only stored in io->error. */
static bool transfer_output(struct bench_run *run, struct bench_io *io, struct bench_seconds *s)
{
    double times[5];
    times[0] = MPI_Wtime();
    if (io->is_writing && run->options->compute > 0) {
        compute(run->options->compute / run->unit_seconds);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    times[1] = MPI_Wtime();
    io->backend->open(io);
    bool open = agree_on_success(io), good = open;
    times[2] = MPI_Wtime();
    if (open) {
        io->backend->transfer(io);
        good = agree_on_success(io);
    }
    if (good && io->is_writing && io->task->fsync)
        io->backend->sync(io);
    times[3] = MPI_Wtime();
    close_output(io, open && !good);
    times[4] = MPI_Wtime();
    s->compute += times[1] - times[0];
    s->open += times[2] - times[1];
    s->transfer += times[3] - times[2];
    s->close += times[4] - times[3];
    return good;
}

static void transfer_batch(struct batch *b, struct bench_seconds *sum)
{
    struct bench_seconds s = {0};
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < b->n; i++)
        if (!transfer_output(b->run, &b->io[i], &s))
            break;
    MPI_Barrier(MPI_COMM_WORLD);
    s.total = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &s, sizeof s / sizeof(double), MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
    sum->compute += s.compute;
    sum->open += s.open;
    sum->transfer += s.transfer;
    sum->close += s.close;
    sum->total += s.total;
}

static uint64_t compute_seed(const struct bench_run *run, enum bench_operation operation,
                             int repetition)
{
    const struct bench_options *o = run->options;
    bool written = o->writes || operation == BENCH_WRITE;
    /* If files are written, each repetition has its own seed, so that the check detects earlier
     * data. The last repetition has --seed itself, so that another run can read a kept file. */
    return (uint64_t)o->seed + (written ? (uint64_t)(o->repetitions - 1 - repetition) : 0);
}

/* If `wrong` is NULL, sets this rank's data, otherwise compares them with expected values. */
static void fill_or_check(const struct batch *b, uint64_t seed, struct bench_mismatch *wrong)
{
    const struct bench_pattern *p = &b->io->task->pattern;
    int64_t pieces = bench_pattern_pieces(p, b->io->rank);
    for (int64_t i = 0; i < pieces; i++) {
        struct bench_piece piece;
        bench_pattern_piece(p, b->io->rank, i, &piece);
        char *data = b->run->data + piece.mem_offset;
        if (wrong)
            bench_data_check(seed, piece.offset, data, piece.bytes, wrong);
        else
            bench_data_fill(seed, piece.offset, data, piece.bytes);
    }
}

/* Sets the data to write. Before a read, sets zeros, so that unread bytes are found wrong. */
static void init_data(const struct batch *b, uint64_t seed)
{
    if (b->io->is_writing)
        fill_or_check(b, seed, NULL);
    else
        memset(b->run->data, 0,
               (size_t)bench_pattern_rank_bytes(&b->io->task->pattern, b->io->rank));
}

static bool verify_batch(const struct batch *b, uint64_t seed)
{
    char error[BENCH_ERROR_BYTES] = "";
    struct bench_mismatch wrong = {0};
    fill_or_check(b, seed, &wrong);
    if (wrong.bytes)
        snprintf(error, sizeof error,
                 "verify: wrong byte at offset %" PRId64 " of the data: expected 0x%02x, "
                 "found 0x%02x; %" PRId64 " of its bytes are wrong",
                 wrong.offset, wrong.expected, wrong.found, wrong.bytes);
    return bench_world_report(b->run->world, b->io->path, b->entry->backend->name, error);
}

static void store_hints(const struct batch *b, struct bench_result *result)
{
    if (!result->hints)
        result->hints = json_incref(b->io->hints);
}

/* Writes or reads outputs first to first + n - 1. Sets *is_wrong if read data are wrong. For
 * other errors, returns false after a message. The caller always calls release_batch(). */
static bool process_outputs(struct batch *b, enum bench_operation operation, int first, int n,
                            uint64_t seed, struct bench_seconds *s, bool *is_wrong)
{
    const struct bench_options *o = b->run->options;
    create_batch(b, operation, first, n);
    if (!report_errors(b)) /* out of memory on some rank */
        return false;
    if (operation == BENCH_WRITE)
        remove_old_outputs(b);
    init_data(b, seed);
    bool good = prepare_batch(b);
    int drops = bench_cache_is_whole(b->run->cache) ? 1 : n;
    for (int i = 0; good && o->cold && i < drops; i++)
        bench_cache_drop(b->run->world, b->run->cache, b->io[i].path);
    if (good)
        transfer_batch(b, s);
    good = good && report_errors(b);
    store_hints(b, &b->entry->results[operation]);
    if (good && operation == BENCH_READ && !verify_batch(b, seed))
        *is_wrong = true;
    return good;
}

/* Writes or reads all outputs of an entry. Returns false after a message if this fails; sets
 * *is_wrong if any byte is wrong. Collective. */
static bool perform(struct bench_run *run, struct bench_entry *entry,
                    enum bench_operation operation, int repetition, struct bench_seconds *s,
                    bool *is_wrong)
{
    struct batch b = {.run = run, .entry = entry};
    int outputs = (int)run->options->outputs;
    int at_once = operation == BENCH_WRITE ? outputs : 1;
    uint64_t seed = compute_seed(run, operation, repetition);
    bool good = true;
    *s = (struct bench_seconds){0};
    for (int first = 0; first < outputs && good; first += at_once) {
        good = process_outputs(&b, operation, first, at_once, seed, s, is_wrong);
        release_batch(&b);
    }
    return good;
}

static void sum_file_bytes(const struct bench_run *run, struct bench_entry *entry)
{
    entry->file_bytes = 0;
    for (int i = 0; run->world->rank == 0 && i < run->options->outputs; i++) {
        char path[BENCH_PATH_BYTES];
        struct stat st;
        bench_output_path(run, entry, i, path);
        entry->file_bytes += stat(path, &st) == 0 ? st.st_size : 0;
    }
}

/* Performs one repetition of an operation, if requested. Sets entry->failure if it fails. */
static void measure_operation(struct bench_run *run, struct bench_entry *entry,
                              enum bench_operation operation, int repetition)
{
    const struct bench_options *o = run->options;
    struct bench_result *result = &entry->results[operation];
    bool is_wrong = false;
    if (!(operation == BENCH_WRITE ? o->writes : o->reads))
        return;
    bench_progress("repetition %d of %d: %s: %s", repetition + 1, (int)o->repetitions,
                   entry->backend->name, operation == BENCH_WRITE ? "write" : "read");
    if (!perform(run, entry, operation, repetition, &result->seconds[result->n], &is_wrong)) {
        snprintf(entry->failure, sizeof entry->failure, "%s failed in repetition %d",
                 operation == BENCH_WRITE ? "write" : "read", repetition + 1);
        return;
    }
    result->n++;
    sum_file_bytes(run, entry);
    if (is_wrong)
        result->verified = false;
}

/* Removes the outputs, so that the disk need not hold the files of all back ends at once. */
static void remove_outputs(const struct bench_run *run, const struct bench_entry *entry)
{
    const struct bench_options *o = run->options;
    for (int i = 0; run->world->rank == 0 && o->writes && !o->keep && i < o->outputs; i++) {
        char path[BENCH_PATH_BYTES];
        bench_output_path(run, entry, i, path);
        unlink(path);
    }
}

int bench_run_measure(struct bench_run *run)
{
    int status = BENCH_SUCCESS;
    for (int repetition = 0; repetition < run->options->repetitions; repetition++)
        for (int turn = 0; turn < run->entry_count; turn++) {
            struct bench_entry *entry = &run->entry[(repetition + turn) % run->entry_count];
            for (int op = 0; op < BENCH_OPERATIONS && !entry->failure[0]; op++)
                measure_operation(run, entry, (enum bench_operation)op, repetition);
            remove_outputs(run, entry);
            if (entry->failure[0] || !entry->results[BENCH_READ].verified)
                status = BENCH_FAILED;
        }
    bench_progress_clear();
    return status;
}
