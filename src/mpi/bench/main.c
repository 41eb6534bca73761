/* main.c - lime-bench: which sub-command, and one way in and out for all of them */
#include "guard.h"
#include "model.h"
#include "report.h"
#include "study.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int wrong_usage(const struct bench_options *o, const char *reason)
{
    if (*reason)
        bench_say("%s; try lime-bench --help", reason);
    else
        bench_options_usage(o->command, false, stderr);
    return BENCH_USAGE;
}

/* ---- without a file ---- */

static void list_some(const struct bench_backend *const *names)
{
    json_t *libraries = bench_backend_libraries();
    for (int i = 0; names[i]; i++) {
        const struct bench_backend *b = names[i];
        const char *absent = b->absent ? b->absent() : NULL;
        const char *version = json_string_value(json_object_get(libraries, b->name));
        printf("  %-12s %s", b->name, b->about);
        if (absent)
            printf("; NOT AVAILABLE: %s", absent);
        else if (version && !b->absent)
            printf(" (%s)", version);
        putchar('\n');
    }
    json_decref(libraries);
}

static void list(void)
{
    static const char *const patterns[BENCH_PATTERNS] = {
        "each rank one contiguous block", "transfers of all ranks in turn",
        "the same transfers, dealt to the ranks by chance, in any order",
        "a 4-dimensional lattice, divided by a grid of ranks"};
    puts("back ends:");
    list_some(bench_backends);
    puts("\npatterns:");
    for (int i = 0; i < BENCH_PATTERNS; i++)
        printf("  %-12s %s\n", bench_pattern_name((enum bench_pattern_kind)i), patterns[i]);
    puts("\nways to write and read particles (lime-bench cells):");
    list_some(bench_cells_ways);
}

static int tell(const struct bench_options *o)
{
    if (o->help)
        bench_options_usage(o->command, true, stdout);
    else if (o->version)
        puts(BENCH_PROGRAM " (limefs) " LIMEFS_VERSION);
    else
        list();
    return BENCH_GOOD;
}

/* ---- with a file ---- */

/* Rank 0's: absolute, the folder without links. False: errno, on all ranks. */
static bool make_absolute(const struct bench_world *world, struct bench_options *o,
                          char path[BENCH_PATH_BYTES])
{
    int good = 1;
    if (world->rank == 0) {
        char *slash = strrchr(o->path, '/');
        const char *name = slash ? slash + 1 : o->path;
        char *folder = NULL;
        if (slash && slash > o->path) {
            *slash = '\0';
            folder = realpath(o->path, NULL);
            *slash = '/';
        } else {
            folder = realpath(slash ? "/" : ".", NULL);
        }
        good = folder && *name &&
               snprintf(path, BENCH_PATH_BYTES, "%s/%s", folder[1] ? folder : "", name) <
                   BENCH_PATH_BYTES;
        free(folder);
        if (!good)
            bench_say("%s: open: %s", o->path, *name ? strerror(errno) : "no file name");
    }
    if (!bench_world_agree(good))
        return false;
    MPI_Bcast(path, BENCH_PATH_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    o->path = path;
    return true;
}

/* Where results go; on rank 0 only, empty elsewhere. */
struct output {
    FILE *text;
    struct bench_json json;
    struct bench_system system;
};

/* run: NULL if o->path is the only file of data. */
static bool meets_data(const struct bench_json *json, const struct bench_options *o,
                       const struct bench_run *run)
{
    char path[BENCH_PATH_BYTES];
    if (!run)
        return bench_json_meets(json, o->path);
    for (int i = 0; i < run->entries * o->outputs; i++) {
        bench_output_path(run, &run->entry[i / o->outputs], (int)(i % o->outputs), path);
        if (bench_json_meets(json, path))
            return true;
    }
    return false;
}

static bool open_output(const struct bench_world *world, const struct bench_options *o,
                        const struct bench_run *run, struct output *out)
{
    bool good = true;
    *out = (struct output){0};
    if (world->rank == 0) {
        bench_system_set(&out->system, o->path);
        if (o->json)
            good = bench_json_open(&out->json, o->json, o->force) &&
                   !meets_data(&out->json, o, run);
        if (!good)
            bench_json_drop(&out->json);
        if (!o->quiet)
            out->text = o->json && strcmp(o->json, "-") == 0 ? stderr : stdout;
    }
    return bench_world_agree(good);
}

static int measure(const struct bench_world *world, const struct bench_options *o)
{
    struct bench_run run;
    struct output out;
    int status = bench_run_set(&run, o, world);
    if (status == BENCH_GOOD && !open_output(world, o, &run, &out))
        status = BENCH_FAILED;
    if (status == BENCH_GOOD) {
        if (out.text)
            bench_text_head(&run, &out.system, out.text);
        bench_progress_start(o, world);
        status = bench_run_measure(&run);
        if (out.text)
            bench_text_results(&run, out.text);
        if (out.json.name && !bench_json_write(&out.json, bench_json_run(&run, &out.system)))
            status = BENCH_FAILED;
    }
    bench_run_free(&run);
    return bench_world_agree(status);
}

static void show_study(const struct bench_study *s, FILE *to)
{
    bench_text_lattice(s->pattern, to);
    fprintf(to, "\n%d rank%s, medians of %d\n", s->world->ranks,
            s->world->ranks == 1 ? "" : "s", (int)s->options->repetitions);
    fflush(to);
}

static int study(const struct bench_world *world, const struct bench_options *o)
{
    bool overlap = o->command == BENCH_OVERLAP;
    struct bench_study s;
    struct output out;
    int status = bench_study_set(&s, overlap ? "overlap" : "checksum", o, world);
    if (status == BENCH_GOOD && !open_output(world, o, NULL, &out))
        status = BENCH_FAILED;
    if (status == BENCH_GOOD) {
        json_t *json = out.json.name ? bench_json_head(&out.system) : NULL;
        if (json)
            json_object_set_new(json, "parameters", bench_study_parameters(&s));
        if (out.text)
            show_study(&s, out.text);
        status =
            overlap ? bench_overlap(&s, json, out.text) : bench_checksum(&s, json, out.text);
        if (json && !bench_json_write(&out.json, json))
            status = BENCH_FAILED;
    }
    bench_study_free(&s);
    return bench_world_agree(status);
}

static int with_options(const struct bench_world *world, enum bench_command command, int argc,
                        char **argv)
{
    static struct bench_options options;
    static char path[BENCH_PATH_BYTES];
    char reason[BENCH_REASON_BYTES];
    bool good = bench_options_parse(argc, argv, command, &options, reason);
    bool tells = good && (options.help || options.version || options.list);
    options.task.hosts = world->hosts;
    if (good && !tells)
        good = bench_options_resolve(&options, world->ranks, reason);
    if (!good)
        return world->rank == 0 ? wrong_usage(&options, reason) : BENCH_USAGE;
    if (tells)
        return world->rank == 0 ? tell(&options) : BENCH_GOOD;
    if (!make_absolute(world, &options, path))
        return BENCH_FAILED;
    bool files = command == BENCH_MEASURE || command == BENCH_CELLS;
    return files ? measure(world, &options) : study(world, &options);
}

static int dispatch(const struct bench_world *world, int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "overlap") == 0)
        return with_options(world, BENCH_OVERLAP, argc - 1, argv + 1);
    if (strcmp(word, "checksum") == 0)
        return with_options(world, BENCH_CHECKSUM, argc - 1, argv + 1);
    if (strcmp(word, "cells") == 0)
        return with_options(world, BENCH_CELLS, argc - 1, argv + 1);
    if (strcmp(word, "model") == 0)
        return bench_world_agree(world->rank == 0 ? bench_model(argc - 1, argv + 1) : 0);
    return with_options(world, BENCH_MEASURE, argc, argv);
}

int main(int argc, char **argv)
{
    struct bench_world world;
    bool guarded = bench_guard_start();
    MPI_Init(&argc, &argv);
    bench_world_set(&world);
    if (world.rank != 0)
        bench_guard_dismiss();
    bench_guard_signals();
    int status = BENCH_FAILED;
    if (bench_world_agree(guarded))
        status = dispatch(&world, argc, argv);
    else if (world.rank == 0)
        bench_say("start: cannot start a process");
    fflush(stdout);
    bench_guard_finish();
    if (bench_is_abandoned()) {
        MPI_Barrier(MPI_COMM_WORLD);
        _exit(status);
    }
    bench_world_free(&world);
    MPI_Finalize();
    return status;
}
