/* main.c - lime-bench: compare libraries on the same distributed data */
#include "cleanup.h"
#include "complete.h"
#include "json_file.h"
#include "report.h"
#include "suggest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- options without a FILE ---- */

static void list_backends(void)
{
    json_t *libraries = bench_backend_libraries();
    for (int i = 0; bench_backends[i]; i++) {
        const struct bench_backend *b = bench_backends[i];
        const char *absent = b->unavailable ? b->unavailable() : NULL;
        const char *version = json_string_value(json_object_get(libraries, b->name));
        printf("  %-12s %s", b->name, b->about);
        if (absent)
            printf("; NOT AVAILABLE: %s", absent);
        else if (version && !b->unavailable)
            printf(" (%s)", version);
        putchar('\n');
    }
    json_decref(libraries);
}

static void print_list(void)
{
    static const char *const patterns[BENCH_PATTERNS] = {
        "each rank one contiguous block", "transfers of all ranks in turn",
        "the same transfers in random order",
        "a 4-dimensional lattice, divided by a grid of ranks"};
    puts("back ends:");
    list_backends();
    puts("\npatterns:");
    for (int i = 0; i < BENCH_PATTERNS; i++)
        printf("  %-12s %s\n", bench_pattern_names[i], patterns[i]);
}

/* Prints what --help, --version or --list requests. */
static void print_answer(const struct bench_options *o)
{
    if (o->help)
        bench_options_usage(true, stdout);
    else if (o->version)
        puts(BENCH_PROGRAM " (limefs) " LIMEFS_VERSION);
    else
        print_list();
}

/* ---- the benchmark ---- */

/* Makes o->path absolute, with no symbolic links in the directory, and the same on all ranks;
 * stores it in `path`. On failure, rank 0 prints a message and all ranks return false. */
static bool make_absolute(const struct bench_world *world, struct bench_options *o,
                          char path[BENCH_PATH_BYTES])
{
    int good = 1;
    if (world->rank == 0) {
        char *slash = strrchr(o->path, '/');
        const char *name = slash ? slash + 1 : o->path;
        char *directory = NULL;
        if (slash && slash > o->path) {
            *slash = '\0';
            directory = realpath(o->path, NULL);
            *slash = '/';
        } else {
            directory = realpath(slash ? "/" : ".", NULL);
        }
        good = directory && *name &&
               snprintf(path, BENCH_PATH_BYTES, "%s/%s", directory[1] ? directory : "", name) <
                   BENCH_PATH_BYTES;
        free(directory);
        if (!good)
            bench_log("%s: open: %s", o->path, *name ? strerror(errno) : "no file name");
    }
    if (!bench_world_broadcast(good))
        return false;
    MPI_Bcast(path, BENCH_PATH_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    o->path = path;
    return true;
}

/* The destinations of the results, and the system that they describe; for rank 0 only. */
struct output {
    FILE *text;
    struct bench_json json;
    struct bench_system system;
};

/* Returns true, after a message, if the JSON file is one of the data files. */
static bool is_data_file(const struct bench_json *json, const struct bench_run *run)
{
    char path[BENCH_PATH_BYTES];
    int outputs = (int)run->options->outputs;
    for (int i = 0; i < run->entry_count * outputs; i++) {
        bench_output_path(run, &run->entry[i / outputs], i % outputs, path);
        if (bench_json_report_conflict(json, path))
            return true;
    }
    return false;
}

/* Fills *out on rank 0. If that fails, rank 0 prints a message and all ranks return false. */
static bool open_results(const struct bench_run *run, struct output *out)
{
    const struct bench_options *o = run->options;
    bool good = true;
    *out = (struct output){0};
    if (run->world->rank == 0) {
        bench_system_init(&out->system, o->path);
        if (o->json)
            good = bench_json_open(&out->json, o->json, o->force) &&
                   !is_data_file(&out->json, run);
        if (!good)
            bench_json_abort(&out->json);
        if (!o->quiet)
            out->text = o->json && strcmp(o->json, "-") == 0 ? stderr : stdout;
    }
    return bench_world_broadcast(good);
}

static int run_benchmark(const struct bench_world *world, const struct bench_options *o)
{
    struct bench_run run;
    struct output out;
    int status = bench_run_init(&run, o, world);
    if (status == BENCH_SUCCESS && !open_results(&run, &out))
        status = BENCH_FAILED;
    if (status == BENCH_SUCCESS) {
        if (out.text)
            bench_print_head(&run, &out.system, out.text);
        bench_progress_start(world, o->quiet);
        status = bench_run_measure(&run);
        if (out.text)
            bench_print_results(&run, out.text);
        if (out.json.name && !bench_json_write(&out.json, bench_run_json(&run, &out.system)))
            status = BENCH_FAILED;
    }
    bench_run_free(&run);
    return bench_world_broadcast(status);
}

static int run_program(const struct bench_world *world, int argc, char **argv)
{
    static struct bench_options options;
    static char path[BENCH_PATH_BYTES];
    char reason[BENCH_REASON_BYTES];
    bool good = bench_options_parse(argc, argv, &options, reason);
    bool prints_only = good && (options.help || options.version || options.list);
    options.task.hosts = world->hosts;
    if (good && !prints_only)
        good = bench_options_resolve(&options, world->ranks, reason);
    if (good && !prints_only)
        return make_absolute(world, &options, path) ? run_benchmark(world, &options)
                                                    : BENCH_FAILED;
    if (world->rank == 0 && prints_only)
        print_answer(&options);
    else if (world->rank == 0 && *reason)
        bench_log("%s%s", reason, limefile_suggest_or(reason, "; try lime-bench --help"));
    else if (world->rank == 0)
        bench_options_usage(false, stderr);
    return prints_only ? BENCH_SUCCESS : BENCH_USAGE;
}

int main(int argc, char **argv)
{
    struct bench_world world;
    if (limefile_complete_requested(argc, argv)) {
        struct bench_options o;
        char reason[BENCH_REASON_BYTES];
        bench_options_parse(argc, argv, &o, reason); /* prints candidates */
        return fflush(stdout) == 0 ? BENCH_SUCCESS : BENCH_FAILED;
    }
    bool has_guard = bench_cleanup_start();
    MPI_Init(&argc, &argv);
    bench_world_init(&world);
    if (world.rank != 0)
        bench_cleanup_finish();
    bench_cleanup_catch_signals();
    int status = BENCH_FAILED;
    if (bench_world_broadcast(has_guard))
        status = run_program(&world, argc, argv);
    else if (world.rank == 0)
        bench_log("start: cannot start a process");
    fflush(stdout);
    bench_cleanup_finish();
    if (bench_is_abandoned()) {
        MPI_Barrier(MPI_COMM_WORLD);
        _exit(status);
    }
    bench_world_free(&world);
    MPI_Finalize();
    return status;
}
