/* study.c - one lattice, written and read by Lemon */
#include "study.h"
#include "cache.h"
#include "data.h"
#include "datafile.h"
#include "guard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char message[BENCH_ERROR_BYTES]; /* of Lemon */

static void keep_message(const char *text, void *context)
{
    (void)context;
    if (!message[0])
        snprintf(message, sizeof message, "%s", text);
}

static bool report(struct bench_study *s, const char *error)
{
    return bench_world_report(s->world, s->options->path, s->name, error);
}

/* ---- the lattice ---- */

static void walk(struct bench_study *s, struct bench_wrong *wrong)
{
    int64_t pieces = bench_pattern_pieces(s->pattern, s->world->rank);
    for (int64_t i = 0; i < pieces; i++) {
        struct bench_piece piece;
        bench_pattern_piece(s->pattern, s->world->rank, i, &piece);
        char *data = s->data + piece.memory;
        uint64_t seed = (uint64_t)s->options->seed;
        if (wrong)
            bench_data_check(seed, piece.at, data, piece.bytes, wrong);
        else
            bench_data_fill(seed, piece.at, data, piece.bytes);
    }
}

void bench_study_spoil(struct bench_study *s)
{
    memset(s->data, 0, (size_t)bench_pattern_rank_bytes(s->pattern, s->world->rank));
}

bool bench_study_verify(struct bench_study *s)
{
    struct bench_wrong wrong = {0};
    char text[BENCH_ERROR_BYTES] = "";
    walk(s, &wrong);
    if (wrong.bytes)
        snprintf(text, sizeof text,
                 "verify: wrong byte at offset %" PRId64 " of the data: expected 0x%02x, "
                 "found 0x%02x; %" PRId64 " of its bytes are wrong",
                 wrong.at, wrong.expected, wrong.found, wrong.bytes);
    return report(s, text);
}

int bench_study_set(struct bench_study *s, const char *name,
                    const struct bench_options *options, const struct bench_world *world)
{
    int periods[BENCH_DIMS] = {0};
    const struct bench_pattern *p = &options->task.pattern;
    *s = (struct bench_study){
        .options = options, .world = world, .name = name, .pattern = p, .cart = MPI_COMM_NULL};
    s->file = MPI_FILE_NULL;
    if (!bench_world_agree(world->rank != 0 || bench_datafile_is_free(options->path)))
        return BENCH_USAGE;
    MPI_Cart_create(MPI_COMM_WORLD, BENCH_DIMS, p->grid, periods, 0, &s->cart);
    s->bytes = bench_pattern_bytes(p);
    s->cache = bench_cache_method(world, s->options->cold_file);
    s->data = malloc((size_t)bench_pattern_rank_bytes(p, world->rank));
    if (!report(s, s->data ? "" : "prepare: out of memory"))
        return BENCH_FAILED;
    walk(s, NULL);
    lemonSetMessageHandler(keep_message, NULL);
    if (world->rank == 0)
        bench_guard_file(options->path);
    return BENCH_GOOD;
}

void bench_study_free(struct bench_study *s)
{
    free(s->data);
    if (s->cart != MPI_COMM_NULL)
        MPI_Comm_free(&s->cart);
}

void bench_study_drop_cache(struct bench_study *s)
{
    bench_cache_drop(s->world, s->cache, s->options->path);
}

/* ---- the file ---- */

bool bench_study_check(struct bench_study *s, const char *action, int code)
{
    char text[BENCH_ERROR_BYTES + 64] = "";
    if (code == LEMON_SUCCESS)
        return true;
    snprintf(text, sizeof text, "%s: Lemon's error %d%s%s", action, code,
             message[0] ? ": " : "", message);
    text[BENCH_ERROR_BYTES - 1] = '\0';
    return report(s, text);
}

bool bench_study_open(struct bench_study *s, bool writing)
{
    char text[BENCH_ERROR_BYTES] = "", reason[MPI_MAX_ERROR_STRING];
    MPI_Info info = bench_task_info(&s->options->task);
    int length, mode = writing ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY;
    int error = MPI_File_open(s->cart, s->options->path, mode, info, &s->file);
    if (error != MPI_SUCCESS) {
        MPI_Error_string(error, reason, &length);
        snprintf(text, sizeof text, "open: %.*s", length, reason);
    }
    bool good = report(s, text);
    int code = LEMON_SUCCESS;
    if (good && writing) {
        s->writer = lemonCreateWriter(&s->file, s->cart);
        code = lemonWriterSetInfo(s->writer, info);
    } else if (good) {
        s->reader = lemonCreateReader(&s->file, s->cart);
        code = lemonReaderSetInfo(s->reader, info);
    }
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    return good && bench_study_check(s, "hints", code);
}

int bench_study_header(struct bench_study *s)
{
    if (s->reader)
        return lemonReaderNextRecord(s->reader);
    LemonRecordHeader *header = lemonCreateHeader(1, 1, BENCH_RECORD_TYPE, s->bytes);
    int code = lemonWriteRecordHeader(header, s->writer);
    lemonDestroyHeader(header);
    return code;
}

bool bench_study_close(struct bench_study *s)
{
    int code = s->writer ? lemonDestroyWriter(s->writer) : LEMON_SUCCESS;
    if (s->reader)
        lemonDestroyReader(s->reader);
    s->writer = NULL;
    s->reader = NULL;
    if (s->file != MPI_FILE_NULL)
        MPI_File_close(&s->file);
    return bench_study_check(s, "close", code);
}

json_t *bench_study_parameters(const struct bench_study *s)
{
    const struct bench_options *o = s->options;
    return json_pack("{s:i, s:o, s:o, s:I, s:o, s:s, s:I, s:I}", "ranks", s->world->ranks,
                     "lattice", bench_json_extents(s->pattern->lattice), "grid",
                     bench_json_extents(s->pattern->grid), "site_bytes",
                     (json_int_t)s->pattern->site_bytes, "hints", bench_json_hints(&o->task),
                     "cache", s->cache, "repetitions", (json_int_t)o->repetitions, "seed",
                     (json_int_t)o->seed);
}
