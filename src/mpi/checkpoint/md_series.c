/* md_series.c - write the state of a run during the run, and read it back */
#include "input.h"
#include "md_series.h"
#include "output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    RECORD_BYTES = 1024,
};

/* ---- the record of a run: lines of a word and an exact value, and a checksum ---- */

struct record {
    int64_t step;
    struct md_parameters parameters;
    double start; /* the total energy at step 0 */
};

/* FNV-1a */
static uint32_t sum_of(const char *text, size_t n)
{
    uint32_t sum = 0x811c9dc5;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ (unsigned char)text[i]) * 0x01000193;
    return sum;
}

static void print_record(const struct record *r, char text[RECORD_BYTES])
{
    const struct md_parameters *p = &r->parameters;
    int n = snprintf(text, RECORD_BYTES,
                     "step %" PRId64 "\nparticles %" PRId64
                     "\nlength %.17g\ncut-off %.17g\ndt %.17g\nenergy-at-0 %.17g\n"
                     "temperature %.17g\nseed %" PRId64 "\n",
                     r->step, p->particles, p->length, p->cut_off, p->dt, r->start,
                     p->temperature, p->seed);
    snprintf(text + n, (size_t)(RECORD_BYTES - n), "sum %08" PRIx32 "\n",
             sum_of(text, (size_t)n));
}

/* Returns false if the text is not a record or has been changed: printing the parsed values
 * must give the same text. */
static bool parse_record(const char *text, struct record *r)
{
    struct md_parameters *p = &r->parameters;
    char again[RECORD_BYTES];
    int got = sscanf(text,
                     "step %" SCNd64 " particles %" SCNd64
                     " length %lf cut-off %lf dt %lf energy-at-0 %lf"
                     " temperature %lf seed %" SCNd64,
                     &r->step, &p->particles, &p->length, &p->cut_off, &p->dt, &r->start,
                     &p->temperature, &p->seed);
    if (got != 8 || r->step < 0 || p->particles < 1 || !(p->length > 0) || !(p->cut_off > 0) ||
        !(p->dt > 0) || !isfinite(p->length) || !isfinite(r->start))
        return false;
    print_record(r, again);
    return strcmp(again, text) == 0;
}

/* ---- one checkpoint ---- */

static int write_state(LemonWriter *writer, const struct md_state *s, double start, bool wait)
{
    char text[RECORD_BYTES];
    const struct record record = {s->step, s->parameters, start};
    const LemonParticle *particle = checkpoint_particle(CHECKPOINT_ICRV);
    LemonDomain domain = {.step = s->step, .time = (double)s->step * s->parameters.dt};
    for (int d = 0; d < 3; d++) {
        domain.length[d] = s->parameters.length;
        domain.periodic[d] = 1;
    }
    checkpoint_cells_choose(&domain, s->parameters.particles);
    print_record(&record, text);
    int code = checkpoint_write_text(writer, MD_RECORD_TYPE, text, 1);
    if (code != LEMON_SUCCESS)
        return code;
    return (wait ? lemonWriteCells : lemonWriteCellsNonBlocking)(
        writer, 1, 1, &domain, particle, s->own.data, s->own.count, 0);
}

bool md_file_save(const char *path, bool force, const struct md_state *s, double start)
{
    struct checkpoint_output out;
    if (!checkpoint_output_open(s->world, path, force, -1, &out))
        return false;
    checkpoint_output_writer(&out);
    if (checkpoint_lemon(s->world, path, "write", write_state(out.writer, s, start, true)))
        return checkpoint_output_finish(s->world, &out);
    checkpoint_output_drop(s->world, &out);
    return false;
}

/* Reads the record of a run, the first record of the file. Collective. */
static int read_record(struct checkpoint_input *in, char text[RECORD_BYTES])
{
    MPI_Offset n = RECORD_BYTES - 1;
    memset(text, 0, RECORD_BYTES);
    LemonReader *reader = lemonCreateReader(&in->file, MPI_COMM_WORLD);
    if (!reader)
        return LEMON_ERR_READ;
    int code = lemonReaderNextRecord(reader);
    const char *type = lemonReaderType(reader);
    if (code == LEMON_SUCCESS && type && strcmp(type, MD_RECORD_TYPE) == 0)
        code = lemonReaderReadData(text, &n, reader);
    lemonDestroyReader(reader);
    return code;
}

/* Compares the record with the index. Returns what differs, or "". */
static const char *compare(const LemonCells *cells, const struct record *record)
{
    enum checkpoint_format format;
    const LemonDomain *domain = &cells->domain;
    if (!checkpoint_particle_find(&cells->particle, &format) || format != CHECKPOINT_ICRV)
        return "its particles are not those of a run";
    for (int d = 0; d < 3; d++)
        if (domain->origin[d] != 0 || domain->length[d] != record->parameters.length ||
            !domain->periodic[d])
            return "its domain is not that of the run";
    if (domain->step != record->step || cells->particles != record->parameters.particles)
        return "its step or its particles are not those of the run";
    return "";
}

static bool load_state(const struct checkpoint_world *world, struct checkpoint_input *in,
                       struct md_state *s, double *start)
{
    char text[RECORD_BYTES];
    struct record record = {0};
    struct checkpoint_particles particles;
    if (!checkpoint_lemon(world, in->path, "read", read_record(in, text)))
        return false;
    const char *reason = parse_record(text, &record)
                             ? compare(in->cells, &record)
                             : "its record of a run is missing or damaged";
    if (!checkpoint_report(world, in->path, reason) ||
        !checkpoint_input_read(world, in, CHECKPOINT_REGULAR, 0, &particles))
        return false;
    if (!md_state_set(s, world, &record.parameters)) {
        checkpoint_particles_free(&particles);
        return false;
    }
    s->step = record.step;
    s->own = particles;
    *start = record.start;
    bool good = md_state_distribute(s);
    if (checkpoint_report(world, in->path, good ? "" : "it does not have all particles"))
        return true;
    md_state_free(s);
    return false;
}

static bool load_file(const struct checkpoint_world *world, const char *path,
                      struct md_state *s, double *start)
{
    struct checkpoint_input in;
    if (!checkpoint_input_open(world, path, &in))
        return false;
    bool good = load_state(world, &in, s, start);
    checkpoint_input_close(&in);
    return good;
}

/* ---- the series ---- */

bool md_series_open(const struct checkpoint_world *world, const char *prefix, int64_t keep,
                    bool overlap, struct md_series *s)
{
    *s = (struct md_series){.prefix = prefix, .overlap = overlap};
    int code = lemonOpenSeries(prefix, (int)keep, MPI_INFO_NULL, MPI_COMM_WORLD, &s->series);
    return checkpoint_lemon(world, prefix, "open", code);
}

static bool publish(const struct checkpoint_world *world, struct md_series *s)
{
    double from = MPI_Wtime();
    int code = lemonSeriesEnd(s->series);
    s->waiting += MPI_Wtime() - from;
    s->under_way += MPI_Wtime() - s->begun;
    s->writing = false;
    s->count += code == LEMON_SUCCESS;
    return checkpoint_lemon(world, s->prefix, "write", code);
}

bool md_series_close(const struct checkpoint_world *world, struct md_series *s, bool good)
{
    if (s->writing && good)
        good = publish(world, s);
    else if (s->writing)
        lemonSeriesAbort(s->series);
    return checkpoint_lemon(world, s->prefix, "close", lemonCloseSeries(s->series)) && good;
}

bool md_series_write(struct md_series *s, const struct md_state *state, double start)
{
    const struct checkpoint_world *world = state->world;
    LemonWriter *writer;
    if (s->writing && !publish(world, s))
        return false;
    s->begun = MPI_Wtime();
    int code = lemonSeriesBegin(s->series, state->step, &writer);
    if (!checkpoint_lemon(world, s->prefix, "write", code))
        return false;
    s->writing = true;
    code = write_state(writer, state, start, !s->overlap);
    s->handing += MPI_Wtime() - s->begun;
    if (!checkpoint_lemon(world, s->prefix, "write", code))
        return false;
    return s->overlap || publish(world, s);
}

bool md_series_look(const struct checkpoint_world *world, struct md_series *s)
{
    int done = 0;
    if (!s->writing)
        return true;
    int code = lemonSeriesTest(s->series, &done);
    if (code != LEMON_SUCCESS)
        return checkpoint_lemon(world, s->prefix, "write", code);
    return !done || publish(world, s);
}

bool md_series_load(const struct checkpoint_world *world, struct md_series *s,
                    struct md_state *state, double *start, bool *found)
{
    char path[PATH_MAX];
    int64_t number = LEMON_SERIES_NEWEST;
    bool damaged = false; /* newer checkpoints cannot be read */
    *found = false;
    for (;; damaged = true) {
        int code = lemonSeriesLatest(s->series, number, &number, path, sizeof path);
        if (code == LEMON_EOF && !damaged)
            return true;
        if (code == LEMON_EOF && world->rank == 0)
            checkpoint_say("%s: no checkpoint of the series can be read", s->prefix);
        if (code == LEMON_EOF || !checkpoint_lemon(world, s->prefix, "find", code))
            return false;
        if (load_file(world, path, state, start))
            break;
        if (world->rank == 0)
            checkpoint_say("%s: left out; trying the checkpoint before it", path);
    }
    if (damaged &&
        !checkpoint_lemon(world, s->prefix, "rewind", lemonSeriesRewind(s->series, number))) {
        md_state_free(state);
        return false;
    }
    memcpy(s->read, path, sizeof s->read);
    if (world->rank == 0)
        checkpoint_say("%s: continued from step %lld", path, (long long)state->step);
    *found = true;
    return true;
}
