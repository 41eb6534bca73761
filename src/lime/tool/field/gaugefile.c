/* gaugefile.c - opening a configuration, whatever its format */
#include "gaugefile.h"
#include "container.h"
#include "select.h"
#include "tool.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

/* The record's ordinal. */
static int select_ordinal(const char *path, const char *word, uint64_t *ordinal)
{
    struct container c;
    struct limefile_record record;
    int status = container_open(&c, path);
    if (status != TOOL_GOOD)
        return status;
    if (select_record(&c, word, false, &record))
        *ordinal = record.ordinal;
    else
        status = TOOL_BAD;
    container_close(&c);
    return status;
}

static void open_message(const char *path, int err)
{
    if (err == LIMEFILE_E_GAUGE_SEVERAL)
        message(path,
                "several configurations; choose one with --record ('lime info' lists them)");
    else
        message_code(path, "open", err);
}

int gaugefile_open(struct gaugefile *f, const char *path, const char *record)
{
    uint64_t ordinal = 0;
    int status = record ? select_ordinal(path, record, &ordinal) : TOOL_GOOD;
    if (status != TOOL_GOOD)
        return status;
    f->path = path;
    f->fd = open_with_message(path, O_RDONLY);
    if (f->fd < 0)
        return TOOL_UNUSABLE;
    limefile_fd_init(&f->file, f->fd);
    int err = limefile_gauge_open(&f->file.source, ordinal, &f->gauge);
    if (!err)
        return TOOL_GOOD;
    open_message(path, err);
    close(f->fd);
    return TOOL_UNUSABLE;
}

void gaugefile_close(struct gaugefile *f)
{
    limefile_gauge_close(f->gauge);
    close(f->fd);
}

static void checksum_differs(const struct gaugefile *f, const struct limefile_gauge_sums *is,
                             const struct limefile_gauge_sums *said)
{
    switch (f->gauge->format) {
    case LIMEFILE_GAUGE_NERSC:
        message(f->path, "the data have the checksum %08" PRIx32 ", the header says %08" PRIx32,
                is->nersc, said->nersc);
        break;
    case LIMEFILE_GAUGE_MILC:
        message(f->path,
                "the data have the checksums %08" PRIx32 " %08" PRIx32
                ", the header says %08" PRIx32 " %08" PRIx32,
                is->sum29, is->sum31, said->sum29, said->sum31);
        break;
    default:
        message(f->path,
                "the data have the checksum %08" PRIx32 " %08" PRIx32
                ", the file says %08" PRIx32 " %08" PRIx32,
                is->scidac.suma, is->scidac.sumb, said->scidac.suma, said->scidac.sumb);
    }
}

void gaugefile_differs(const struct gaugefile *f, const struct limefile_gauge_totals *totals,
                       int code)
{
    const struct limefile_gauge *g = f->gauge;
    if (code == LIMEFILE_E_GAUGE_CHECKSUM)
        checksum_differs(f, &totals->source, &g->sums);
    else if (code == LIMEFILE_E_GAUGE_PLAQUETTE)
        message(f->path, "the data have the plaquette %.12f, the file says %.12f",
                totals->plaquette, g->plaquette);
    else
        message(f->path, "the data have the link trace %.12f, the header says %.12f",
                totals->link_trace, g->link_trace);
}
