/* cmd_export.c - lime-checkpoint export: a checkpoint to MarDyn's old ASCII format */
#include "header.h"
#include "input.h"
#include "line.h"
#include "options.h"
#include "order.h"
#include "output.h"
#include "progressbar.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE_BYTES = 8 << 20,
    PIECE_PARTICLES = PIECE_BYTES / CHECKPOINT_LINE_BYTES,
    KEPT_BYTES = 256 << 20, /* text that is kept in memory, of each rank */
    COMPONENTS_MAX = 700,   /* of a header that is made: pairs of them fill its 1 MiB */
};

/* malloc()ed; or NULL and `reason`. Local, and the same on all ranks. *components: of a header
 * that is made; becomes those of one that was imported. */
static char *header_for(const struct checkpoint_input *in, int64_t *components,
                        enum checkpoint_format *format, char reason[CHECKPOINT_REASON_BYTES])
{
    const LemonCells *cells = in->cells;
    const LemonDomain *domain = &cells->domain;
    struct checkpoint_header h;
    int64_t line;
    char *text = NULL;
    reason[0] = '\0';
    for (int d = 0; d < 3; d++)
        if (domain->origin[d] != 0)
            snprintf(reason, CHECKPOINT_REASON_BYTES, "the domain does not begin at 0");
    if (!isfinite(domain->time))
        snprintf(reason, CHECKPOINT_REASON_BYTES, "the time is not a finite number");
    if (!checkpoint_particle_find(&cells->particle, format))
        snprintf(reason, CHECKPOINT_REASON_BYTES,
                 "the particles' fields are not those of IRV, ICRV or ICRVQD");
    if (reason[0])
        return NULL;
    if (!in->header) {
        text = checkpoint_header_make(domain, 0, *components, cells->particles, *format);
    } else if (!checkpoint_header_parse(in->header, strlen(in->header), &h, reason, &line)) {
        return NULL;
    } else if (h.format != *format || memcmp(h.length, domain->length, sizeof h.length) != 0) {
        snprintf(reason, CHECKPOINT_REASON_BYTES,
                 CHECKPOINT_HEADER_TYPE " does not fit to the checkpoint");
        return NULL;
    } else {
        *components = h.components;
        text = checkpoint_header_renew(in->header, &h, domain->time, cells->particles);
    }
    if (!text)
        snprintf(reason, CHECKPOINT_REASON_BYTES, "no memory");
    return text;
}

/* The lines of this rank, a range of the file. They are made before it is known where that
 * begins; what is more than KEPT_BYTES is made twice. */
struct lines {
    const struct checkpoint_particles *particles;
    enum checkpoint_format format;
    char *piece; /* PIECE_BYTES: the last one that was made */
    char *kept;  /* the first ones */
    int64_t kept_bytes, kept_particles;
    int64_t bytes; /* of all */
    int64_t done;  /* lines made, for the progress */
};

/* Of at most PIECE_PARTICLES from *next on. */
static int64_t make_piece(struct lines *l, int64_t *next)
{
    const struct checkpoint_particles *p = l->particles;
    size_t n = 0;
    for (int i = 0; i < PIECE_PARTICLES && *next < p->count; i++, ++*next) {
        struct checkpoint_molecule m = {0};
        memcpy(&m, p->data + *next * p->bytes, (size_t)p->bytes);
        n += checkpoint_line_print(&m, l->format, l->piece + n);
        l->done++;
    }
    checkpoint_progress_to(l->done);
    return (int64_t)n;
}

static bool make_lines(struct lines *l)
{
    int64_t room = l->particles->count * CHECKPOINT_LINE_BYTES, next = 0;
    l->piece = malloc(PIECE_BYTES);
    l->kept = malloc((size_t)(room < KEPT_BYTES ? room + 1 : KEPT_BYTES));
    if (!l->piece || !l->kept)
        return false;
    while (next < l->particles->count) {
        int64_t before = next, n = make_piece(l, &next);
        if (l->kept_particles == before && n <= KEPT_BYTES - l->kept_bytes) {
            memcpy(l->kept + l->kept_bytes, l->piece, (size_t)n);
            l->kept_bytes += n;
            l->kept_particles = next;
        }
        l->bytes += n;
    }
    return true;
}

static bool write_lines(struct lines *l, struct checkpoint_output *out, int64_t at,
                        char error[CHECKPOINT_ERROR_BYTES])
{
    bool good = checkpoint_output_put(out, at, l->kept, l->kept_bytes, error);
    at += l->kept_bytes;
    for (int64_t next = l->kept_particles; good && next < l->particles->count;) {
        int64_t n = make_piece(l, &next);
        good = checkpoint_output_put(out, at, l->piece, n, error);
        at += n;
    }
    return good;
}

static bool write_text(const struct checkpoint_world *world, struct checkpoint_output *out,
                       const char *header, struct lines *l)
{
    char error[CHECKPOINT_ERROR_BYTES] = "";
    int64_t n = (int64_t)strlen(header), before = 0;
    bool made = make_lines(l);
    if (!checkpoint_report(world, out->path, made ? "" : "no memory"))
        return false;
    MPI_Exscan(&l->bytes, &before, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (world->rank == 0)
        before = 0;
    if (world->rank != 0 || checkpoint_output_put(out, 0, header, n, error))
        write_lines(l, out, n + before, error);
    return checkpoint_report(world, out->path, error);
}

/* ---- all of it ---- */

struct export
{
    int decomposition;
    bool unsorted, force, quiet;
    const char *names[2];
};

static bool read_sorted(const struct checkpoint_world *world, const struct export *o,
                        struct checkpoint_input *in, struct checkpoint_particles *p)
{
    double start = MPI_Wtime();
    checkpoint_progress_begin(world, "read", 0, o->quiet);
    bool good =
        checkpoint_input_read(world, in, (enum checkpoint_decomposition)o->decomposition, 0, p);
    if (good && !o->unsorted)
        good = checkpoint_report(world, in->path,
                                 checkpoint_order(world, p) ? "" : "sort: no memory");
    checkpoint_progress_end();
    if (good)
        checkpoint_show_move(world, "read", in->path, p, MPI_Wtime() - start, o->quiet);
    return good;
}

/* Of all particles: the least, and the greatest. */
static void find_components(const struct checkpoint_particles *p, int64_t *least, int64_t *most)
{
    int64_t ends[2] = {INT64_MIN, INT64_MIN};
    for (int64_t i = 0; i < p->count; i++) {
        struct checkpoint_molecule m;
        memcpy(&m, p->data + i * p->bytes, (size_t)p->bytes);
        ends[0] = -(int64_t)m.component > ends[0] ? -(int64_t)m.component : ends[0];
        ends[1] = m.component > ends[1] ? m.component : ends[1];
    }
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    *least = -ends[0];
    *most = ends[1];
}

/* A header that is made has the components that there are; one that was imported must. */
static bool fit_components(const struct checkpoint_world *world,
                           const struct checkpoint_input *in,
                           const struct checkpoint_particles *p, int64_t components,
                           char **header)
{
    enum checkpoint_format format;
    char reason[CHECKPOINT_REASON_BYTES] = "";
    int64_t least, most;
    if (!checkpoint_particle_find(&in->cells->particle, &format) || format == CHECKPOINT_IRV ||
        in->cells->particles == 0)
        return true;
    find_components(p, &least, &most);
    int64_t room = in->header ? components : COMPONENTS_MAX;
    if (least < 1 || most > room) {
        snprintf(reason, sizeof reason, "a particle has component %" PRId64 " of 1 to %" PRId64,
                 least < 1 ? least : most, room);
    } else if (most > components) {
        free(*header);
        *header = header_for(in, &most, &format, reason);
    }
    return checkpoint_report(world, in->path, reason);
}

static bool export_to(const struct checkpoint_world *world, const struct export *o,
                      struct checkpoint_input *in, struct checkpoint_output *out)
{
    struct checkpoint_particles p;
    enum checkpoint_format format = CHECKPOINT_ICRV;
    char reason[CHECKPOINT_REASON_BYTES];
    int64_t components = 1;
    char *header = header_for(in, &components, &format, reason);
    bool good = checkpoint_report(world, in->path, reason);
    if (good && (good = read_sorted(world, o, in, &p))) {
        struct lines l = {.particles = &p, .format = format};
        double start = MPI_Wtime();
        good = fit_components(world, in, &p, components, &header);
        checkpoint_progress_begin(world, "write", p.count, o->quiet);
        good =
            good && write_text(world, out, header, &l) && checkpoint_output_finish(world, out);
        checkpoint_progress_end();
        if (good)
            checkpoint_show_move(world, "written", o->names[1], &p, MPI_Wtime() - start,
                                 o->quiet);
        free(l.piece);
        free(l.kept);
        checkpoint_particles_free(&p);
    }
    free(header);
    return good;
}

static int run(const struct checkpoint_world *world, int argc, char **argv)
{
    struct export o = {.decomposition = CHECKPOINT_KD};
    const struct checkpoint_option options[] = {
        {"decomposition", 'd', CHECKPOINT_WORD, &o.decomposition, 0, 0,
         checkpoint_decomposition_names},
        {"unsorted", 0, CHECKPOINT_FLAG, &o.unsorted, 0, 0, NULL},
        {"force", 'f', CHECKPOINT_FLAG, &o.force, 0, 0, NULL},
        {"quiet", 'q', CHECKPOINT_FLAG, &o.quiet, 0, 0, NULL},
    };
    struct checkpoint_input in;
    struct checkpoint_output out;
    if (!checkpoint_options(world, &checkpoint_export, argc, argv, options, 4, 2, o.names))
        return CHECKPOINT_USAGE;
    if (!checkpoint_input_open(world, o.names[0], &in))
        return CHECKPOINT_FAILED;
    bool good = checkpoint_output_open(world, o.names[1], o.force, in.fd, &out);
    if (good && !(good = export_to(world, &o, &in, &out)))
        checkpoint_output_drop(world, &out);
    checkpoint_input_close(&in);
    return good ? CHECKPOINT_GOOD : CHECKPOINT_FAILED;
}

const struct checkpoint_command checkpoint_export = {
    .name = "export",
    .arguments = "[OPTION]... C TXT",
    .summary = "a checkpoint to MarDyn's ASCII format",
    .help = "\n"
            "Writes the molecules of checkpoint C as TXT, in MarDyn's old ASCII format, with\n"
            "the header that was imported, ordered by id. Importing TXT gives the same bits.\n"
            "\n"
            "  -d, --decomposition regular|kd\n"
            "                     which rank reads what (kd)\n"
            "      --unsorted     as the ranks have them, by cells\n"
            "  -f, --force        replace TXT\n"
            "  -q, --quiet        print errors only\n"
            "  -h, --help         show this text\n",
    .run = run,
};
