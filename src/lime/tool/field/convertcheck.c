/* convertcheck.c - whether lime convert has read right data, and has written a readable file */
#define _GNU_SOURCE
#include "convertcheck.h"
#include "limephysics.h"
#include "tool.h"

#include <inttypes.h>

/* ---- the input ---- */

static void tell_deviation(const struct gaugefile *in, const struct limefile_physics *is)
{
    double most = is->unitarity > is->determinant ? is->unitarity : is->determinant;
    const uint64_t *at = is->first.at;
    message(in->path,
            "warning: %" PRIu64 " link%s from SU(3) by up to %.2e (more than %.0e); the first "
            "is at site %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 ", direction %c",
            is->bad_links, is->bad_links == 1 ? " deviates" : "s deviate", most, is->bound,
            at[0], at[1], at[2], at[3], "xyzt"[is->first.direction]);
}

/* Compares the data with what the input states. */
static int judge_stated(const struct gaugefile *in, const char *out_path,
                        const struct limefile_gauge_totals *totals, bool ignores_checksum)
{
    static const char hint[] = "--ignore-checksum converts it anyway";
    const struct limefile_gauge *g = in->gauge;
    char text[LIMEFILE_GAUGE_DIFFERENCE_MAX];
    if (limefile_gauge_compare(g, totals, text) != 0) {
        message(in->path, "the data have the %s", text);
        if (ignores_checksum)
            message(in->path, "warning: the data may be damaged; converted anyway");
        else
            message(out_path, "not written: the data of '%s' may be damaged; %s", in->path,
                    hint);
        return ignores_checksum ? TOOL_GOOD : TOOL_BAD;
    }
    if (!limefile_gauge_why_unverified(g))
        return TOOL_GOOD;
    if (g->format != LIMEFILE_GAUGE_MILC) {
        message(in->path, "warning: no checksum that the data could be compared with");
        return TOOL_GOOD;
    }
    message(in->path, "%sthe header has no usable sum: both are 0",
            ignores_checksum ? "warning: " : "");
    if (!ignores_checksum)
        message(out_path, "not written: the data of '%s' cannot be verified; %s", in->path,
                hint);
    return ignores_checksum ? TOOL_GOOD : TOOL_BAD;
}

int convert_judge_input(const struct gaugefile *in, const char *out_path,
                        const struct limefile_gauge_totals *totals, unsigned rows,
                        bool ignores_checksum)
{
    const struct limefile_physics *is = &totals->physics;
    if (is->nonfinite) {
        message(in->path, "%" PRIu64 " number%s NaN or infinite; not converted", is->nonfinite,
                is->nonfinite == 1 ? " is" : "s are");
        return TOOL_BAD;
    }
    int status = judge_stated(in, out_path, totals, ignores_checksum);
    if (status != TOOL_GOOD || is->bad_links == 0)
        return status;
    tell_deviation(in, is);
    if (rows != 2) /* two rows are enough for a link in SU(3) only */
        return TOOL_GOOD;
    message(out_path, "not written: third rows cannot be left out; use --rows 3");
    return TOOL_BAD;
}

/* ---- the output ---- */

void convert_refuse(const char *out_path, int err, const struct limefile_gauge_totals *written)
{
    if (err == LIMEFILE_E_GAUGE_RANGE)
        message(out_path, "not written: %s", limefile_strerror(err));
    else
        message(out_path, "not written: lime could not read it back: %s",
                limefile_strerror(err));
    if (written->physics.bad_links)
        message(out_path, "links that are not SU(3) matrices do not fit into this format; "
                          "choose another one with --to");
}

static int read_back(const struct limefile_gauge *g, enum limefile_gauge_format format,
                     const struct limefile_gauge_totals *written)
{
    const struct limefile_gauge_pass pass = {
        .sites = &g->sites,
        .source = g,
        .without_plaquette = !g->has_plaquette,
    };
    char text[LIMEFILE_GAUGE_DIFFERENCE_MAX];
    struct limefile_gauge_totals is = {.physics = written->physics, .source = written->image};
    if (g->format != format)
        return LIMEFILE_E_GAUGE_UNKNOWN;
    int err = written->physics.bad_links ? limefile_gauge_run(&pass, &is) : 0;
    if (!err && is.physics.nonfinite)
        err = LIMEFILE_E_GAUGE_NAN;
    return err ? err : limefile_gauge_compare(g, &is, text);
}

int convert_judge_output(int fd, const char *out_path, enum limefile_gauge_format format,
                         const struct limefile_gauge_totals *written)
{
    struct limefile_fd file;
    struct limefile_gauge *g;
    limefile_fd_init(&file, fd);
    int err = limefile_gauge_open(&file.source, 0, &g);
    if (!err) {
        err = read_back(g, format, written);
        limefile_gauge_close(g);
    }
    if (err)
        convert_refuse(out_path, err, written);
    return err ? TOOL_BAD : TOOL_GOOD;
}
