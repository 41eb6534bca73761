/*
 * checkphysics.c - lime check --physics: whether the links of a configuration are SU(3)
 * matrices, and whether its plaquette and link trace are what its metadata say
 */
#define _GNU_SOURCE
#include "checkphysics.h"
#include "limegauge.h"
#include "jsonout.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int keep(struct physics_check *p, const struct physics_result *result)
{
    if (p->results == p->room) {
        size_t room = p->room + p->room / 2 + 4;
        void *bigger = reallocarray(p->result, room, sizeof *p->result);
        if (!bigger)
            return -ENOMEM;
        p->result = bigger;
        p->room = room;
    }
    p->result[p->results++] = *result;
    return 0;
}

/* ---- findings ---- */

static void report_links(const struct field_check *check, const struct limefile_field *f,
                         const struct limefile_physics *is)
{
    char why[384], first[192];
    uint64_t link = is->first.site * 4 + is->first.direction;
    struct limefile_finding finding = {
        .code = LIMEFILE_D_LINKS,
        .offset = f->record.data_offset + link * (f->site_bytes / 4),
        .ordinal = f->record.ordinal,
        .have = is->bad_links,
        .want = 4 * f->sites,
        .why = why,
    };
    limefile_physics_bad_text(&is->first, first, sizeof first);
    snprintf(why, sizeof why, "the first: %s%s", first,
             is->bad_links == finding.want
                 ? "; none of the links is SU(3): it may be fat links "
                   "or momenta, not a configuration"
                 : "");
    check->report(check->context, &finding);
}

static void report_stated(const struct field_check *check, const struct limefile_field *f,
                          const struct limefile_physics *is,
                          const struct limefile_physics_stated *s)
{
    char why[256];
    struct limefile_record record = {.ordinal = 0};
    if (s->ordinal)
        limefile_index_get(check->c->index, s->ordinal, &record);
    struct limefile_finding finding = {
        .code = s->quantity == LIMEFILE_PHYSICS_TRACE ? LIMEFILE_D_LINK_TRACE
                                                      : LIMEFILE_D_PLAQUETTE,
        .offset = record.data_offset,
        .ordinal = s->ordinal,
        .why = why,
    };
    char whose[32] = "the data";
    if (s->ordinal)
        snprintf(whose, sizeof whose, "record %" PRIu64, f->record.ordinal);
    snprintf(why, sizeof why, "%s of %s is '%s'%s, %s of %s %.12g", s->name, s->where, s->text,
             s->number ? "" : ", not a number", limefile_physics_quantity_name(s->quantity),
             whose, limefile_physics_value(is, s->quantity));
    check->report(check->context, &finding);
}

bool physics_report_stated(const struct field_check *check, const struct limefile_field *f,
                           const struct physics_result *result)
{
    bool good = true;
    for (int i = 0; i < result->stated_count; i++) {
        const struct limefile_physics_stated *s = &result->stated[i];
        if (limefile_physics_agrees(&result->is, s, result->precision))
            continue;
        report_stated(check, f, &result->is, s);
        good = false;
    }
    return good;
}

/* Whether all is as it should be. */
static bool report(const struct field_check *check, const struct limefile_field *f,
                   const struct physics_result *result)
{
    bool good = result->is.bad_links == 0;
    if (!good)
        report_links(check, f, &result->is);
    return physics_report_stated(check, f, result) && good;
}

/* ---- one field ---- */

static void print(const struct field_check *check, const struct physics_result *r)
{
    char agree[192] = "", record[32] = "";
    size_t used = 0;
    if (r->ordinal)
        snprintf(record, sizeof record, "record %" PRIu64 ": ", r->ordinal);
    for (int i = 0; i < r->stated_count && used < sizeof agree; i++) {
        const struct limefile_physics_stated *s = &r->stated[i];
        if (limefile_physics_agrees(&r->is, s, r->precision))
            used += (size_t)snprintf(agree + used, sizeof agree - used, "%s%s %s",
                                     used ? ", " : "; agrees with ", s->where, s->name);
    }
    answer(check->path, "%splaquette %.12f (space %.12f, time %.12f), link trace %.12f%s",
           record, r->is.plaquette, r->is.space, r->is.time, r->is.trace, agree);
    answer(check->path, "%slargest deviation from 1: of U U^+ %.2g, of det U %.2g (bound %.0e)",
           record, r->is.unitarity, r->is.determinant, r->is.bound);
}

/* Sites of a file, of which those that will be needed soon are asked for in time. */
struct ahead {
    const struct field_check *check;
    struct limefile_sites sites;
    struct limefile_sites_field field;
    int fd;
    uint64_t slice; /* sites of a time slice */
};

/* What is read next is mostly what follows in time: the kernel fetches that from the disk, or
 * from the mount, while this is computed with. */
static int read_ahead(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct ahead *a = context;
    uint64_t left = limefile_sites_count(&a->sites) - first,
             bytes = count * a->field.site_bytes;
    uint64_t soon = a->field.data_offset + (first + a->slice) * a->field.site_bytes;
    if (left > a->slice && !limefile_is_cached(a->fd, soon, (size_t)bytes))
        posix_fadvise(a->fd, (off_t)soon, (off_t)bytes, POSIX_FADV_WILLNEED);
    return a->sites.read(a->sites.context, first, count, out);
}

static bool report_sites(void *context, uint64_t sites_more)
{
    const struct ahead *a = context;
    return a->check->progress(a->check->context, sites_more * a->field.site_bytes);
}

static int measure(const struct field_check *check, const struct limefile_field *f,
                   struct physics_result *result)
{
    struct limefile_field here;
    struct limefile_fd source;
    struct ahead a = {.check = check, .fd = field_check_open(check, f, &here)};
    if (a.fd < 0)
        return a.fd;
    limefile_fd_init(&source, a.fd);
    int err = limefile_sites_of_field(&source.source, &here, &a.field, &a.sites);
    if (!err) {
        struct limefile_sites sites = a.sites;
        struct limefile_gauge_totals totals;
        const struct limefile_gauge_pass pass = {
            .sites = &sites,
            .progress = check->progress ? report_sites : NULL,
            .context = &a,
            .threads = check->threads,
            .memory = LIMEFILE_GAUGE_CHECK_BYTES,
        };
        sites.read = read_ahead;
        sites.context = &a;
        a.slice = sites.extent[0] * sites.extent[1] * sites.extent[2];
        err = limefile_gauge_run(&pass, &totals);
        if (!err)
            result->is = totals.physics;
    }
    close(a.fd);
    return err;
}

/* 0, or what is wrong with reading the container. */
static int compare(const struct field_check *check, const struct limefile_field *f,
                   struct physics_result *result)
{
    struct limefile_physics_stated stated[LIMEFILE_PHYSICS_STATED_MAX];
    int err = measure(check, f, result);
    int count =
        err ? 0 : limefile_physics_stated_of(check->c->source, check->c->index, f, stated);
    if (err || count <= 0)
        return err ? err : count;
    result->stated = calloc((size_t)count, sizeof *stated);
    if (!result->stated)
        return -ENOMEM;
    memcpy(result->stated, stated, (size_t)count * sizeof *stated);
    result->stated_count = count;
    return 0;
}

static void conclude(struct physics_check *p, const struct field_check *check,
                     const struct limefile_field *f, struct physics_result *result, int err)
{
    if (err == LIMEFILE_E_STATE) {
        result->verdict = LIMEFILE_UNVERIFIED;
        p->unverified++;
        if (!check->quiet)
            answer(check->path, "record %" PRIu64 ": unverified: %s", result->ordinal,
                   result->reason);
    } else if (err == -EIO && sums_check_withheld(check, f)) {
        result->verdict = LIMEFILE_BAD;
        result->reason = "the mount does not give out data that are bad";
        p->wrong++;
    } else if (err) {
        result->verdict = LIMEFILE_UNREADABLE;
        result->reason = limefile_strerror(err);
        p->wrong++;
        check->report(check->context, &(struct limefile_finding){
                                          .code = err,
                                          .offset = f->record.data_offset,
                                          .ordinal = f->record.ordinal,
                                      });
    } else {
        if (!check->quiet)
            print(check, result);
        bool good = report(check, f, result);
        result->verdict = good ? LIMEFILE_GOOD : LIMEFILE_BAD;
        p->good += good;
        p->wrong += !good;
    }
}

int physics_conclude(struct physics_check *p, const struct field_check *check,
                     const struct limefile_field *f, struct physics_result *result, int err)
{
    if (err != -ENOMEM) {
        conclude(p, check, f, result, err);
        err = check->keep ? keep(p, result) : 0;
    }
    if (err || !check->keep)
        free(result->stated);
    return err;
}

/* The metadata are in the master volume, so the others do not describe their data. */
static bool is_volume(const struct field_check *check)
{
    static const char type[] = "scidac-sitelist";
    struct limefile_record first;
    uint64_t count;
    return limefile_index_by_type(check->c->index, type, sizeof type - 1, &first, &count) == 0;
}

static int check_field(struct physics_check *p, const struct field_check *check,
                       const struct limefile_field *f)
{
    struct physics_result result = {.ordinal = f->record.ordinal, .precision = f->precision};
    int err = LIMEFILE_E_STATE;
    switch (limefile_field_configuration(f, &result.reason)) {
    case LIMEFILE_NO_CONFIGURATION:
        return 0;
    case LIMEFILE_CONFIGURATION:
        err = compare(check, f, &result);
        break;
    case LIMEFILE_CONFIGURATION_UNKNOWN:
        if (f->kind == LIMEFILE_KIND_UNKNOWN && is_volume(check))
            result.reason = LIMEFILE_WHY_VOLUME;
        break;
    }
    return physics_conclude(p, check, f, &result, err);
}

int physics_check(struct physics_check *p, const struct field_check *check)
{
    int err = 0;
    for (size_t i = 0; !err && i < check->fields->count; i++) {
        struct limefile_field f;
        limefile_fields_get(check->fields, i, &f);
        err = check_field(p, check, &f);
    }
    return err;
}

/* ---- JSON ---- */

static void number_json(const char *name, double value)
{
    if (isfinite(value))
        printf(", \"%s\": %.17g", name, value);
    else
        printf(", \"%s\": null", name);
}

static void first_json(const struct limefile_physics *is)
{
    const struct limefile_physics_bad *bad = &is->first;
    if (bad->wrong == LIMEFILE_PHYSICS_GOOD) {
        fputs(", \"first_bad\": null", stdout);
        return;
    }
    printf(", \"first_bad\": {\"site\": [%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
           "], \"direction\": \"%c\", \"wrong\": \"%s\"",
           bad->at[0], bad->at[1], bad->at[2], bad->at[3], "xyzt"[bad->direction],
           limefile_physics_wrong_word(bad->wrong));
    if (bad->wrong == LIMEFILE_PHYSICS_NAN || bad->wrong == LIMEFILE_PHYSICS_INFINITE)
        printf(", \"real\": %u", bad->real);
    else
        number_json("deviation", bad->deviation);
    putchar('}');
}

static void stated_json(const struct physics_result *r)
{
    fputs(", \"stated\": [", stdout);
    for (int i = 0; i < r->stated_count; i++) {
        const struct limefile_physics_stated *s = &r->stated[i];
        printf("%s{\"ordinal\": %" PRIu64 ", \"where\": \"%s\", \"name\": \"%s\", \"text\": ",
               i ? ", " : "", s->ordinal, s->where, s->name);
        jsonout_text(stdout, s->text, strlen(s->text));
        number_json("value", s->number ? s->value : NAN);
        number_json("measured", limefile_physics_value(&r->is, s->quantity));
        printf(", \"agrees\": %s}",
               limefile_physics_agrees(&r->is, s, r->precision) ? "true" : "false");
    }
    putchar(']');
}

void physics_check_json(const struct physics_check *p)
{
    putchar('[');
    for (size_t i = 0; i < p->results; i++) {
        const struct physics_result *r = &p->result[i];
        printf("%s{\"ordinal\": %" PRIu64 ", \"state\": \"%s\"", i ? ", " : "", r->ordinal,
               limefile_verdict_word(r->verdict));
        if (r->reason) {
            printf(", \"reason\": \"%s\"}", r->reason);
            continue;
        }
        number_json("plaquette", r->is.plaquette);
        number_json("space", r->is.space);
        number_json("time", r->is.time);
        number_json("link_trace", r->is.trace);
        number_json("unitarity", r->is.unitarity);
        number_json("determinant", r->is.determinant);
        number_json("bound", r->is.bound);
        printf(", \"nonfinite\": %" PRIu64 ", \"bad_links\": %" PRIu64
               ", \"bad_sites\": %" PRIu64,
               r->is.nonfinite, r->is.bad_links, r->is.bad_sites);
        first_json(&r->is);
        stated_json(r);
        putchar('}');
    }
    putchar(']');
}

void physics_check_release(struct physics_check *p)
{
    for (size_t i = 0; i < p->results; i++)
        free(p->result[i].stated);
    free(p->result);
    *p = (struct physics_check){.good = 0};
}
