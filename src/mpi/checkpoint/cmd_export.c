/* cmd_export.c - lime-checkpoint export: write a checkpoint in MarDyn's old ASCII format */
#define _GNU_SOURCE
#include "exchange.h"
#include "mardyn.h"
#include "options.h"
#include "output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMPONENTS_MAX = 700, /* in a new header, whose text for all pairs must fit in 1 MiB */
};

struct export_options {
    bool unsorted, force, quiet;
    const char *names[2]; /* the checkpoint and the text */
};

/* Sets *format, and *h if the checkpoint has an imported header. Sets reason to a message if
 * the text format cannot store the checkpoint, else to "". Leaves the check of the components
 * to create_header(). Not collective; the result is the same on all ranks. */
static void check_shape(const struct checkpoint_input *in, enum checkpoint_format *format,
                        struct checkpoint_header *h, char reason[CHECKPOINT_REASON_BYTES])
{
    const LemonDomain *domain = &in->cells->domain;
    int64_t line;
    reason[0] = '\0';
    for (int d = 0; d < 3; d++)
        if (domain->origin[d] != 0)
            snprintf(reason, CHECKPOINT_REASON_BYTES, "the domain does not begin at 0");
    if (!isfinite(domain->time))
        snprintf(reason, CHECKPOINT_REASON_BYTES, "the time is not a finite number");
    if (!checkpoint_find_format(&in->cells->particle, format))
        snprintf(reason, CHECKPOINT_REASON_BYTES,
                 "the particle fields do not match IRV, ICRV or ICRVQD");
    if (reason[0] || !in->header ||
        !checkpoint_header_parse(in->header, strlen(in->header), h, reason, &line))
        return;
    if (h->format != *format || memcmp(h->length, domain->length, sizeof h->length) != 0)
        snprintf(reason, CHECKPOINT_REASON_BYTES,
                 CHECKPOINT_HEADER_TYPE " does not match the checkpoint");
}

/* Finds the least and the greatest component of all particles. Collective. */
static void find_components(const struct checkpoint_particles *p, int64_t *min, int64_t *max)
{
    int64_t ends[2] = {INT64_MIN, INT64_MIN};
    for (int64_t i = 0; i < p->count; i++) {
        struct checkpoint_molecule m;
        memcpy(&m, p->data + i * p->bytes, (size_t)p->bytes);
        ends[0] = -(int64_t)m.component > ends[0] ? -(int64_t)m.component : ends[0];
        ends[1] = m.component > ends[1] ? m.component : ends[1];
    }
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    *min = -ends[0];
    *max = ends[1];
}

/* Returns the header of the text, which the caller frees: the imported header with new values,
 * or a new header if none was imported. Returns NULL, and sets reason, if a
 * particle has a component that the header cannot have. Collective. */
static char *create_header(const struct checkpoint_input *in,
                           const struct checkpoint_particles *p, enum checkpoint_format format,
                           const struct checkpoint_header *h,
                           char reason[CHECKPOINT_REASON_BYTES])
{
    const LemonCells *cells = in->cells;
    int64_t min = 1, max = 1, limit = in->header ? h->components : COMPONENTS_MAX;
    if (format != CHECKPOINT_IRV && cells->particles > 0)
        find_components(p, &min, &max);
    if (min < 1 || max > limit) {
        snprintf(reason, CHECKPOINT_REASON_BYTES,
                 "a particle has component %" PRId64 " of 1 to %" PRId64, min < 1 ? min : max,
                 limit);
        return NULL;
    }
    return in->header
               ? checkpoint_header_update(in->header, h, cells->domain.time, cells->particles)
               : checkpoint_header_create(&cells->domain, 0, max, cells->particles, format);
}

/* Returns a text, the header and this rank's molecules as lines. The caller frees the text. */
static char *format_lines(const char *header, const struct checkpoint_particles *p,
                          enum checkpoint_format format, size_t *bytes)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, bytes);
    if (!to)
        checkpoint_abort("out of memory");
    fputs(header, to);
    for (int64_t i = 0; i < p->count; i++) {
        struct checkpoint_molecule m = {0};
        memcpy(&m, p->data + i * p->bytes, (size_t)p->bytes);
        checkpoint_line_print(&m, format, to);
    }
    bool failed = ferror(to);
    if (fclose(to) != 0 || failed)
        checkpoint_abort("out of memory");
    return text;
}

static bool write_lines(const struct checkpoint_world *world, const struct export_options *o,
                        const char *header, const struct checkpoint_particles *p,
                        enum checkpoint_format format, struct checkpoint_output *out)
{
    char error[CHECKPOINT_ERROR_BYTES] = "";
    double start = MPI_Wtime();
    size_t bytes;
    char *text = format_lines(world->rank == 0 ? header : "", p, format, &bytes);
    int64_t own = (int64_t)bytes, at = 0;
    MPI_Exscan(&own, &at, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    checkpoint_output_write_at(out, world->rank == 0 ? 0 : at, text, own, error);
    free(text);
    if (!checkpoint_report(world, out->path, error) || !checkpoint_output_commit(world, out))
        return false;
    checkpoint_print_transfer(world, "written", o->names[1], p, MPI_Wtime() - start, o->quiet);
    return true;
}

static bool export_to(const struct checkpoint_world *world, const struct export_options *o,
                      struct checkpoint_input *in, struct checkpoint_output *out)
{
    struct checkpoint_particles p;
    enum checkpoint_format format;
    struct checkpoint_header h = {0};
    char reason[CHECKPOINT_REASON_BYTES];
    double start = MPI_Wtime();
    check_shape(in, &format, &h, reason);
    if (!checkpoint_report(world, in->path, reason) ||
        !checkpoint_input_read(world, in, CHECKPOINT_KD, 0, &p))
        return false;
    if (!o->unsorted)
        checkpoint_sort_by_id(world, &p);
    checkpoint_print_transfer(world, "read", in->path, &p, MPI_Wtime() - start, o->quiet);
    char *header = create_header(in, &p, format, &h, reason);
    bool good = checkpoint_report(world, in->path, reason) &&
                write_lines(world, o, header, &p, format, out);
    free(header);
    checkpoint_particles_free(&p);
    return good;
}

static int run_export(const struct checkpoint_world *world, int argc, char **argv)
{
    struct export_options o = {0};
    const struct option_rule options[] = {
        {"unsorted", 0, OPTION_FLAG, .value = &o.unsorted},
        {"force", 'f', OPTION_FLAG, .value = &o.force},
        {"quiet", 'q', OPTION_FLAG, .value = &o.quiet},
        {NULL},
    };
    struct checkpoint_input in;
    struct checkpoint_output out;
    if (!checkpoint_parse_options(world, &checkpoint_export, argc, argv, options, 2, o.names))
        return CHECKPOINT_USAGE;
    if (!checkpoint_input_open(world, o.names[0], &in))
        return CHECKPOINT_FAILED;
    bool good = checkpoint_output_open(world, o.names[1], o.force, in.fd, &out);
    if (good && !(good = export_to(world, &o, &in, &out)))
        checkpoint_output_abort(world, &out);
    checkpoint_input_close(&in);
    return good ? CHECKPOINT_SUCCESS : CHECKPOINT_FAILED;
}

const struct checkpoint_command checkpoint_export = {
    .name = "export",
    .arguments = "[OPTION]... C TXT",
    .summary = "a checkpoint to MarDyn's ASCII format",
    .help = "\n"
            "Writes the molecules of checkpoint C as TXT, in MarDyn's old ASCII format, with\n"
            "the header that was imported, ordered by id. Importing TXT gives the same bits.\n"
            "\n"
            "      --unsorted  as the ranks have them, by cells\n"
            "  -f, --force     replace TXT\n"
            "  -q, --quiet     print errors only\n"
            "  -h, --help      show this text\n",
    .run = run_export,
};
