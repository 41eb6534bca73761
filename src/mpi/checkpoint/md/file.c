/* file.c - the state of a run in a checkpoint, and out of it */
#include "input.h"
#include "record.h"
#include "md_series.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CELLS = 8, /* of a checkpoint, in a dimension, at least: readers take those in their part */
};

/* ---- out ---- */

static struct checkpoint_molecule *molecules_of(const struct md_state *s)
{
    int64_t none = 0;
    struct checkpoint_molecule *all = NULL;
    const int64_t bytes = checkpoint_particle(CHECKPOINT_ICRV)->bytes;
    char *to = md_room(all, s->count, &none, bytes);
    all = (void *)to;
    for (int64_t i = 0; i < s->count; i++, to += bytes) {
        struct checkpoint_molecule m = {.id = s->own[i].id, .component = 1};
        memcpy(m.position, s->own[i].x, sizeof m.position);
        memcpy(m.velocity, s->own[i].v, sizeof m.velocity);
        memcpy(to, &m, (size_t)bytes);
    }
    return all;
}

static LemonDomain domain_of(const struct md_state *s)
{
    LemonDomain domain = {.step = s->step, .time = (double)s->step * s->parameters.dt};
    for (int d = 0; d < 3; d++) {
        int ranks = s->grid.grid[d];
        domain.length[d] = s->parameters.length;
        domain.periodic[d] = 1;
        domain.cells[d] = (CELLS + ranks - 1) / ranks * ranks;
    }
    return domain;
}

static int write_record(LemonWriter *writer, const struct md_state *s, double start)
{
    char text[MD_RECORD_BYTES];
    struct md_record record = {s->step, s->parameters, start};
    MPI_Offset n = md_record_print(&record, text), written = n;
    LemonRecordHeader *header = lemonCreateHeader(1, 1, MD_RECORD_TYPE, n);
    int code = lemonWriteRecordHeader(header, writer);
    lemonDestroyHeader(header);
    if (code == LEMON_SUCCESS)
        code = lemonWriteRecordData(text, &written, writer);
    return code == LEMON_SUCCESS ? lemonWriterCloseRecord(writer) : code;
}

int md_file_write(LemonWriter *writer, const struct md_state *s, double start, bool wait)
{
    int code = write_record(writer, s, start);
    if (code != LEMON_SUCCESS)
        return code;
    LemonDomain domain = domain_of(s);
    const LemonParticle *particle = checkpoint_particle(CHECKPOINT_ICRV);
    struct checkpoint_molecule *all = molecules_of(s);
    code = wait ? lemonWriteCells(writer, 1, 1, &domain, particle, all, s->count, 0)
                : lemonWriteCellsNonBlocking(writer, 1, 1, &domain, particle, all, s->count, 0);
    free(all);
    return code;
}

bool md_file_save(const struct checkpoint_world *world, const char *path, bool force,
                  const struct md_state *s, double start)
{
    struct checkpoint_output out;
    if (!checkpoint_output_open(world, path, force, -1, &out))
        return false;
    out.writer = lemonCreateWriter(&out.file, MPI_COMM_WORLD);
    bool good = checkpoint_report(world, path, out.writer ? "" : "no memory");
    if (good)
        good =
            checkpoint_lemon(world, path, "write", md_file_write(out.writer, s, start, true));
    if (good)
        return checkpoint_output_finish(world, &out);
    checkpoint_output_drop(world, &out);
    return false;
}

/* ---- in ---- */

/* The record of a run, which is the file's first. Collective. */
static int read_record(struct checkpoint_input *in, char text[MD_RECORD_BYTES])
{
    MPI_Offset n = MD_RECORD_BYTES - 1;
    memset(text, 0, MD_RECORD_BYTES);
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

/* What the record says is what the index says. */
static const char *compare(const LemonCells *cells, const struct md_record *record)
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

static void take(struct md_state *s, const struct checkpoint_particles *p)
{
    s->count = p->count;
    s->own = md_room(s->own, s->count, &s->room, sizeof *s->own);
    for (int64_t i = 0; i < p->count; i++) {
        struct checkpoint_molecule m;
        memcpy(&m, p->data + i * p->bytes, (size_t)p->bytes);
        s->own[i].id = m.id;
        memcpy(s->own[i].x, m.position, sizeof m.position);
        memcpy(s->own[i].v, m.velocity, sizeof m.velocity);
    }
}

static bool load(const struct checkpoint_world *world, struct checkpoint_input *in,
                 struct md_state *s, double *start)
{
    char text[MD_RECORD_BYTES];
    struct md_record record = {0};
    struct checkpoint_particles particles;
    if (!checkpoint_lemon(world, in->path, "read", read_record(in, text)))
        return false;
    const char *reason = md_record_parse(text, &record)
                             ? compare(in->cells, &record)
                             : "its record of a run is missing or damaged";
    if (!checkpoint_report(world, in->path, reason) ||
        !checkpoint_input_read(world, in, CHECKPOINT_REGULAR, 0, &particles))
        return false;
    bool good = md_state_set(s, world, &record.parameters);
    if (good) {
        s->step = record.step;
        *start = record.start;
        take(s, &particles);
        good = checkpoint_report(
            world, in->path, md_state_distribute(s) ? "" : "it does not have all particles");
        if (!good)
            md_state_free(s);
    }
    checkpoint_particles_free(&particles);
    return good;
}

bool md_file_load(const struct checkpoint_world *world, const char *path, struct md_state *s,
                  double *start)
{
    struct checkpoint_input in;
    if (!checkpoint_input_open(world, path, &in))
        return false;
    bool good = load(world, &in, s, start);
    checkpoint_input_close(&in);
    return good;
}
