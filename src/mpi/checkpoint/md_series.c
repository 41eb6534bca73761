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

/* ---- the record of a run: lines "name value", with all digits, and a checksum ---- */

struct run_record {
    int64_t step;
    struct md_parameters parameters;
    double energy_at_0; /* the total energy at step 0 */
};

/* FNV-1a */
static uint32_t checksum(const char *text, size_t n)
{
    uint32_t sum = 0x811c9dc5;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ (unsigned char)text[i]) * 0x01000193;
    return sum;
}

static void format_record(const struct run_record *r, char text[RECORD_BYTES])
{
    const struct md_parameters *p = &r->parameters;
    int n = snprintf(text, RECORD_BYTES,
                     "step %" PRId64 "\nparticles %" PRId64
                     "\nlength %.17g\ncut-off %.17g\ndt %.17g\nenergy-at-0 %.17g\n"
                     "temperature %.17g\nseed %" PRId64 "\n",
                     r->step, p->particles, p->length, p->cut_off, p->dt, r->energy_at_0,
                     p->temperature, p->seed);
    snprintf(text + n, (size_t)(RECORD_BYTES - n), "sum %08" PRIx32 "\n",
             checksum(text, (size_t)n));
}

/* Returns false if the text is not a run's record or was changed: format_record() must give the
 * same text for the parsed values. */
static bool parse_record(const char *text, struct run_record *r)
{
    struct md_parameters *p = &r->parameters;
    char expected[RECORD_BYTES];
    int n = sscanf(text,
                   "step %" SCNd64 " particles %" SCNd64
                   " length %lf cut-off %lf dt %lf energy-at-0 %lf"
                   " temperature %lf seed %" SCNd64,
                   &r->step, &p->particles, &p->length, &p->cut_off, &p->dt, &r->energy_at_0,
                   &p->temperature, &p->seed);
    if (n != 8 || r->step < 0 || p->particles < 1 || !(p->length > 0) || !(p->cut_off > 0) ||
        !(p->dt > 0) || !isfinite(p->length) || !isfinite(r->energy_at_0))
        return false;
    format_record(r, expected);
    return strcmp(expected, text) == 0;
}

/* Writes the run's record and the particles. energy: the total energy at step 0. Without
 * `wait`, returns while the write goes on; later Lemon calls return its errors. Returns a Lemon
 * code. */
static int write_state(LemonWriter *writer, const struct md_state *s, double energy, bool wait)
{
    char text[RECORD_BYTES];
    const struct run_record record = {s->step, s->parameters, energy};
    const LemonParticle *particle = checkpoint_layout(CHECKPOINT_ICRV);
    LemonDomain domain = {.step = s->step, .time = (double)s->step * s->parameters.dt};
    for (int d = 0; d < 3; d++) {
        domain.length[d] = s->parameters.length;
        domain.periodic[d] = 1;
    }
    checkpoint_choose_cells(&domain, s->parameters.particles);
    format_record(&record, text);
    int code = checkpoint_write_text(writer, MD_RECORD_TYPE, text, 1);
    if (code != LEMON_SUCCESS)
        return code;
    return (wait ? lemonWriteCells : lemonWriteCellsNonBlocking)(
        writer, 1, 1, &domain, particle, s->own.data, s->own.count, 0);
}

bool md_state_save(const char *path, bool force, const struct md_state *s, double energy)
{
    struct checkpoint_output out;
    if (!checkpoint_output_open(s->world, path, force, -1, &out))
        return false;
    checkpoint_output_create_writer(&out);
    if (checkpoint_check_code(s->world, path, "write",
                              write_state(out.writer, s, energy, true)))
        return checkpoint_output_commit(s->world, &out);
    checkpoint_output_abort(s->world, &out);
    return false;
}

/* Sets text to the file's first record, or to "" if that record is not a run's. Returns a Lemon
 * code. Collective. */
static int read_run_record(struct checkpoint_input *in, char text[RECORD_BYTES])
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

/* Compares the record with the index. Returns a message on what differs, or "". */
static const char *check_run_record(const LemonCells *cells, const struct run_record *record)
{
    enum checkpoint_format format;
    const LemonDomain *domain = &cells->domain;
    if (!checkpoint_find_format(&cells->particle, &format) || format != CHECKPOINT_ICRV)
        return "not the particles of a run";
    for (int d = 0; d < 3; d++)
        if (domain->origin[d] != 0 || domain->length[d] != record->parameters.length ||
            !domain->periodic[d])
            return "its domain differs from the run record";
    if (domain->step != record->step || cells->particles != record->parameters.particles)
        return "its step or particle count differs from the run record";
    return "";
}

/* Initializes *s from an open checkpoint; after a failure *s needs no md_state_free(). */
static bool load_state(const struct checkpoint_world *world, struct checkpoint_input *in,
                       struct md_state *s, double *energy_at_0)
{
    char text[RECORD_BYTES];
    struct run_record record = {0};
    struct checkpoint_particles particles;
    if (!checkpoint_check_code(world, in->path, "read", read_run_record(in, text)))
        return false;
    const char *reason = parse_record(text, &record) ? check_run_record(in->cells, &record)
                                                     : "its run record is missing or damaged";
    if (!checkpoint_report(world, in->path, reason) ||
        !checkpoint_input_read(world, in, CHECKPOINT_REGULAR, 0, &particles))
        return false;
    if (!md_state_init(s, world, &record.parameters)) {
        checkpoint_particles_free(&particles);
        return false;
    }
    s->step = record.step;
    s->own = particles;
    *energy_at_0 = record.energy_at_0;
    bool good = md_state_distribute(s);
    if (checkpoint_report(world, in->path, good ? "" : "particles are missing"))
        return true;
    md_state_free(s);
    return false;
}

static bool load_file(const struct checkpoint_world *world, const char *path,
                      struct md_state *s, double *energy_at_0)
{
    struct checkpoint_input in;
    if (!checkpoint_input_open(world, path, &in))
        return false;
    bool good = load_state(world, &in, s, energy_at_0);
    checkpoint_input_close(&in);
    return good;
}

bool md_series_open(const struct checkpoint_world *world, const char *prefix, int64_t keep,
                    bool overlap, struct md_series *s)
{
    *s = (struct md_series){.prefix = prefix, .overlaps = overlap};
    int code = lemonOpenSeries(prefix, (int)keep, MPI_INFO_NULL, MPI_COMM_WORLD, &s->series);
    return checkpoint_check_code(world, prefix, "open", code);
}

/* Waits until the checkpoint is on the disk, and publishes it. */
static bool publish(const struct checkpoint_world *world, struct md_series *s)
{
    double from = MPI_Wtime();
    int code = lemonSeriesEnd(s->series);
    s->wait_seconds += MPI_Wtime() - from;
    s->write_seconds += MPI_Wtime() - s->write_start;
    s->is_writing = false;
    s->published += code == LEMON_SUCCESS;
    return checkpoint_check_code(world, s->prefix, "write", code);
}

bool md_series_close(const struct checkpoint_world *world, struct md_series *s, bool good)
{
    if (s->is_writing && good)
        good = publish(world, s);
    else if (s->is_writing)
        lemonSeriesAbort(s->series);
    return checkpoint_check_code(world, s->prefix, "close", lemonCloseSeries(s->series)) &&
           good;
}

bool md_series_write(struct md_series *s, const struct md_state *state, double energy_at_0)
{
    const struct checkpoint_world *world = state->world;
    LemonWriter *writer;
    if (s->is_writing && !publish(world, s))
        return false;
    s->write_start = MPI_Wtime();
    int code = lemonSeriesBegin(s->series, state->step, &writer);
    if (!checkpoint_check_code(world, s->prefix, "write", code))
        return false;
    s->is_writing = true;
    code = write_state(writer, state, energy_at_0, !s->overlaps);
    s->start_seconds += MPI_Wtime() - s->write_start;
    if (!checkpoint_check_code(world, s->prefix, "write", code))
        return false;
    return s->overlaps || publish(world, s);
}

bool md_series_poll(const struct checkpoint_world *world, struct md_series *s)
{
    int done = 0;
    if (!s->is_writing)
        return true;
    int code = lemonSeriesTest(s->series, &done);
    if (code != LEMON_SUCCESS)
        return checkpoint_check_code(world, s->prefix, "write", code);
    return !done || publish(world, s);
}

bool md_series_load(const struct checkpoint_world *world, struct md_series *s,
                    struct md_state *state, double *energy_at_0, bool *found)
{
    char path[PATH_MAX];
    int64_t number = LEMON_SERIES_NEWEST;
    bool damaged = false; /* at least one newer checkpoint could not be read */
    *found = false;
    for (;; damaged = true) {
        int code = lemonSeriesLatest(s->series, number, &number, path, sizeof path);
        if (code == LEMON_EOF && !damaged)
            return true;
        if (code == LEMON_EOF && world->rank == 0)
            checkpoint_log("%s: no checkpoint of the series can be read", s->prefix);
        if (code == LEMON_EOF || !checkpoint_check_code(world, s->prefix, "find", code))
            return false;
        if (load_file(world, path, state, energy_at_0))
            break;
        if (world->rank == 0)
            checkpoint_log("%s: skipped; trying the previous checkpoint", path);
    }
    if (damaged && !checkpoint_check_code(world, s->prefix, "rewind",
                                          lemonSeriesRewind(s->series, number))) {
        md_state_free(state);
        return false;
    }
    memcpy(s->loaded_path, path, sizeof s->loaded_path);
    if (world->rank == 0)
        checkpoint_log("%s: continued from step %lld", path, (long long)state->step);
    *found = true;
    return true;
}
