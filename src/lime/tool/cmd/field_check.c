/*
 * field_check.c - lime check --data and --physics: compare fields with their checksums,
 * configurations with plaquette and link trace in the metadata, and files in other formats with
 * their headers
 */
#define _GNU_SOURCE
#include "field_check.h"
#include "jsonout.h"
#include "limegauge.h"
#include "limephysics.h"
#include "limeverdict.h"
#include "mounted_container.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* The verdict on a gauge field. */
struct physics_result {
    uint64_t ordinal; /* 0: the whole of a file in another format */
    enum limefile_verdict verdict;
    const char *reason; /* why the data were not examined; NULL: `data` is set */
    unsigned precision;
    struct limefile_physics data;
    struct limefile_physics_stated stated[LIMEFILE_PHYSICS_STATED_MAX];
    int stated_count;
};

/* The result of summing a field. */
struct sum_result {
    struct limefile_checksum data;
    enum limefile_verdict verdict;
    bool known;                     /* `data` is set */
    char reason[MOUNTED_VALUE_MAX]; /* the mount's reason for its verdict, or "" */
};

static uint64_t pack_checksum(const struct limefile_checksum *sum)
{
    return (uint64_t)sum->suma << 32 | sum->sumb;
}

/* Returns 1 if the checksum is right, 0 if it is wrong, or an error. */
static int verify_field_sum(const struct data_check *check, const struct limefile_field *f,
                            struct sum_result *sum)
{
    struct limefile_field fit, local = *f;
    struct container_data data;
    int right = container_open_data(check->c, &local.record, &data);
    if (!right)
        right = limefile_field_verify(data.source, &local, check->threads, check->progress,
                                      check->context, &fit, &sum->data);
    container_close_data(&data);
    return right;
}

/* Returns the code of the deviation. A mount's reason begins with what is wrong. */
static int reason_code(const char *reason)
{
    return strncmp(reason, "plaquette", 9) == 0     ? LIMEFILE_D_PLAQUETTE
           : strncmp(reason, "link trace", 10) == 0 ? LIMEFILE_D_LINK_TRACE
                                                    : LIMEFILE_D_CHECKSUM;
}

static bool is_verdict(const char *word, enum limefile_verdict verdict)
{
    return strcmp(word, limefile_verdict_word(verdict)) == 0;
}

static void report_mount_reason(const struct data_check *check, const struct limefile_field *f,
                                const char *reason)
{
    const struct limefile_finding finding = {
        .code = reason_code(reason),
        .offset = f->record.data_offset,
        .ordinal = f->record.ordinal,
        .why = reason,
    };
    check->report(check->context, &finding);
}

/* Gets the mount's verdict on data that this program cannot verify: those of a file in another
 * format, which has no SciDAC checksum, and bad data that the mount refuses to return. Counts a
 * good or bad verdict, and reports a bad one. Returns false if it is neither. */
static bool get_mount_verdict(struct data_check *check, const struct limefile_field *f,
                              struct sum_result *sum)
{
    char word[MOUNTED_VALUE_MAX], reason[MOUNTED_VALUE_MAX];
    const struct mounted_container *m = check->c->mounted;
    if (!m || mounted_read_attribute(m, f->record.ordinal, "verify", word) < 0)
        return false;
    mounted_read_attribute(m, f->record.ordinal, "reason", reason);
    if (is_verdict(word, LIMEFILE_GOOD)) {
        sum->verdict = LIMEFILE_GOOD;
        check->sums->good++;
        return true;
    }
    snprintf(sum->reason, sizeof sum->reason, "%s", reason);
    if (!is_verdict(word, LIMEFILE_BAD))
        return false;
    sum->verdict = LIMEFILE_BAD;
    check->sums->wrong++;
    /* With --physics, physics_check() reports a wrong plaquette or link trace. */
    if (reason_code(reason) == LIMEFILE_D_CHECKSUM || !check->with_physics)
        report_mount_reason(check, f, reason);
    return true;
}

/* Returns true if a mount refuses to return the data because they are bad. Reports this unless
 * another check reports it. */
static bool report_withheld(const struct data_check *check, const struct limefile_field *f)
{
    char word[MOUNTED_VALUE_MAX], reason[MOUNTED_VALUE_MAX];
    const struct mounted_container *m = check->c->mounted;
    if (!m || mounted_read_attribute(m, f->record.ordinal, "checksum", word) < 0 ||
        !is_verdict(word, LIMEFILE_BAD))
        return false;
    mounted_read_attribute(m, f->record.ordinal, "reason", reason);
    if (reason_code(reason) != LIMEFILE_D_CHECKSUM ||
        (!check->with_data && f->checksum_ordinal))
        report_mount_reason(check, f, reason);
    return true;
}

void sums_check_headers(struct data_check *check)
{
    for (size_t i = 0; check->c->mounted && i < check->fields->count; i++) {
        struct limefile_field f;
        struct sum_result sum = {.verdict = LIMEFILE_UNVERIFIED};
        limefile_fields_get(check->fields, i, &f);
        if (!f.checksum_ordinal)
            get_mount_verdict(check, &f, &sum);
    }
}

/* Compares the data of a field with its checksum; counts and reports the result. */
static void compare_sum(struct data_check *check, const struct limefile_field *f,
                        struct sum_result *sum)
{
    struct limefile_finding finding = {
        .offset = f->record.data_offset,
        .ordinal = f->record.ordinal,
    };
    int right = verify_field_sum(check, f, sum);
    if (right == -EIO && get_mount_verdict(check, f, sum))
        return;
    sum->known = right >= 0;
    sum->verdict = right < 0 ? LIMEFILE_UNREADABLE : right ? LIMEFILE_GOOD : LIMEFILE_BAD;
    if (right == 1) {
        check->sums->good++;
        return;
    }
    finding.code = right < 0 ? right : LIMEFILE_D_CHECKSUM;
    if (right == 0) {
        finding.have = pack_checksum(&sum->data);
        finding.want = pack_checksum(&f->checksum);
    }
    check->report(check->context, &finding);
    check->sums->wrong++;
}

/* Returns the reason for the verdict in `sum`, or NULL. */
static const char *find_sum_reason(const struct limefile_field *f, const struct sum_result *sum)
{
    const char *bad = limefile_field_why_bad(f);
    return *sum->reason                    ? sum->reason
           : sum->verdict == LIMEFILE_GOOD ? NULL
           : bad                           ? bad
                                           : limefile_field_why_unverified(f);
}

/* Compares the data with the checksum if possible; otherwise prints the verdict and its reason.
 * Counts the verdict. Reports no wrong length: the check of the metadata has done that. */
static void check_sum(struct data_check *check, const struct limefile_field *f,
                      struct sum_result *sum)
{
    bool bad = limefile_field_why_bad(f), unverified = limefile_field_why_unverified(f);
    if (!bad && !unverified) {
        compare_sum(check, f, sum);
        return;
    }
    if (!f->checksum_ordinal && get_mount_verdict(check, f, sum))
        return;
    sum->verdict = bad ? LIMEFILE_BAD : LIMEFILE_UNVERIFIED;
    if (bad)
        check->sums->wrong++;
    else
        check->sums->unverified++;
    if (!check->quiet)
        print_line(check->path, "record %" PRIu64 ": %s: %s", f->record.ordinal,
                   limefile_verdict_word(sum->verdict), find_sum_reason(f, sum));
}

static json_t *sum_json(const struct limefile_field *f, const struct sum_result *sum)
{
    return json_pack(
        "{s:o, s:s, s:o*, s:o*, s:o*}", "ordinal", jsonout_integer(f->record.ordinal), "state",
        limefile_verdict_word(sum->verdict), "reason", jsonout_string(find_sum_reason(f, sum)),
        "suma", sum->known ? jsonout_hex(sum->data.suma) : NULL, "sumb",
        sum->known ? jsonout_hex(sum->data.sumb) : NULL);
}

void sums_check(struct data_check *check)
{
    for (size_t i = 0; i < check->fields->count; i++) {
        struct limefile_field f;
        struct sum_result sum = {.verdict = LIMEFILE_UNVERIFIED};
        limefile_fields_get(check->fields, i, &f);
        check_sum(check, &f, &sum);
        if (check->sum_list)
            jsonout_list_add(check->sum_list, sum_json(&f, &sum));
    }
}

/* ---- configurations ---- */

static void report_links(const struct data_check *check, const struct limefile_field *f,
                         const struct limefile_physics *data)
{
    char why[384], first[192];
    uint64_t link = data->first.site * 4 + data->first.direction;
    struct limefile_finding finding = {
        .code = LIMEFILE_D_LINKS,
        .offset = f->record.data_offset + link * (f->site_bytes / 4),
        .ordinal = f->record.ordinal,
        .have = data->bad_links,
        .want = 4 * f->sites,
        .why = why,
    };
    limefile_physics_bad_text(&data->first, first, sizeof first);
    snprintf(why, sizeof why, "the first: %s%s", first,
             data->bad_links == finding.want
                 ? "; none of the links is SU(3): it may be fat links "
                   "or momenta, not a configuration"
                 : "");
    check->report(check->context, &finding);
}

static void report_stated(const struct data_check *check, const struct limefile_field *f,
                          const struct limefile_physics *data,
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
    char measured[32] = "cannot be computed";
    double value = limefile_physics_value(data, s->quantity);
    if (isfinite(value))
        snprintf(measured, sizeof measured, "is %.12g", value);
    snprintf(why, sizeof why, "%s of %s is '%s'%s, but %s of %s %s", s->name, s->source,
             s->text, s->is_number ? "" : ", not a number",
             limefile_physics_quantity_name(s->quantity), whose, measured);
    check->report(check->context, &finding);
}

/* Reports each plaquette and link trace in the metadata that differs from the data's. Returns
 * true if all agree. */
static bool report_figures(const struct data_check *check, const struct limefile_field *f,
                           const struct physics_result *result)
{
    bool good = true;
    for (int i = 0; i < result->stated_count; i++) {
        const struct limefile_physics_stated *s = &result->stated[i];
        if (limefile_physics_agrees(&result->data, s, result->precision))
            continue;
        report_stated(check, f, &result->data, s);
        good = false;
    }
    return good;
}

/* Reports links that are not SU(3), and wrong metadata. Returns true if all is good. */
static bool report_physics(const struct data_check *check, const struct limefile_field *f,
                           const struct physics_result *result)
{
    bool good = result->data.bad_links == 0;
    if (!good)
        report_links(check, f, &result->data);
    return report_figures(check, f, result) && good;
}

/* DBL_MAX means that the deviation is not less. */
static const char *format_deviation(double x, char text[32])
{
    if (x < DBL_MAX)
        snprintf(text, 32, "%.2g", x);
    return x < DBL_MAX ? text : "too large for a double";
}

static void print_physics(const struct data_check *check, const struct physics_result *r)
{
    char agree[192] = "", record[32] = "", texts[2][32];
    size_t used = 0;
    if (r->ordinal)
        snprintf(record, sizeof record, "record %" PRIu64 ": ", r->ordinal);
    for (int i = 0; i < r->stated_count && used < sizeof agree; i++) {
        const struct limefile_physics_stated *s = &r->stated[i];
        if (limefile_physics_agrees(&r->data, s, r->precision))
            used += (size_t)snprintf(agree + used, sizeof agree - used, "%s%s %s",
                                     used ? ", " : "; agrees with ", s->source, s->name);
    }
    if (isfinite(r->data.plaquette) && isfinite(r->data.trace))
        print_line(check->path,
                   "%splaquette %.12f (space %.12f, time %.12f), link trace %.12f%s", record,
                   r->data.plaquette, r->data.space, r->data.time, r->data.trace, agree);
    else
        print_line(check->path,
                   "%sno plaquette or link trace: numbers are NaN, infinite or too large%s",
                   record, agree);
    print_line(check->path, "%slargest deviation from 1: of U U^+ %s, of det U %s (bound %.0e)",
               record, format_deviation(r->data.unitarity, texts[0]),
               format_deviation(r->data.determinant, texts[1]), r->data.bound);
}

/* Context of read_and_prefetch(). */
struct prefetch {
    const struct data_check *check;
    struct limefile_sites sites;
    struct limefile_sites_field field;
    int fd;
    uint64_t slice; /* number of sites in a time slice */
};

/* Reads sites. Lets the kernel prefetch the sites at the same place in the next time slice,
 * because the computation usually reads them next. */
static int read_and_prefetch(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct prefetch *a = context;
    uint64_t left = limefile_sites_count(&a->sites) - first,
             bytes = count * a->field.site_bytes;
    uint64_t soon = a->field.data_offset + (first + a->slice) * a->field.site_bytes;
    if (left > a->slice && !limefile_is_cached(a->fd, soon, (size_t)bytes))
        posix_fadvise(a->fd, (off_t)soon, (off_t)bytes, POSIX_FADV_WILLNEED);
    return a->sites.read(a->sites.context, first, count, out);
}

static bool add_site_progress(void *context, uint64_t sites_more)
{
    const struct prefetch *a = context;
    return a->check->progress(a->check->context, sites_more * a->field.site_bytes);
}

/* Computes result->data. Returns 0 or an error. */
static int compute_physics(const struct data_check *check, const struct limefile_field *f,
                           struct physics_result *result)
{
    struct limefile_field local = *f;
    struct container_data data;
    int err = container_open_data(check->c, &local.record, &data);
    struct prefetch a = {.check = check, .fd = limefile_source_fd(data.source)};
    if (!err)
        err = limefile_sites_from_field(data.source, &local, &a.field, &a.sites);
    if (!err) {
        struct limefile_sites sites = a.sites;
        struct limefile_gauge_totals totals;
        const struct limefile_gauge_pass pass = {
            .sites = &sites,
            .progress = check->progress ? add_site_progress : NULL,
            .context = &a,
            .threads = check->threads,
            .memory = LIMEFILE_GAUGE_CHECK_BYTES,
        };
        sites.read = read_and_prefetch;
        sites.context = &a;
        a.slice = sites.extent[0] * sites.extent[1] * sites.extent[2];
        err = limefile_gauge_pass_run(&pass, &totals);
        if (!err)
            result->data = totals.physics;
    }
    container_close_data(&data);
    return err;
}

/* Computes result->data and reads result->stated. Returns 0, or an error if the container
 * cannot be read. */
static int compare_physics(const struct data_check *check, const struct limefile_field *f,
                           struct physics_result *result)
{
    int err = compute_physics(check, f, result);
    int count = err ? err
                    : limefile_physics_stated_read(check->c->source, check->c->index, f,
                                                   result->stated);
    result->stated_count = count > 0 ? count : 0;
    return count < 0 || err ? count : 0;
}

/* Sets, counts and reports the verdict; err: as for finish_physics(). */
static void set_physics_verdict(struct data_check *check, const struct limefile_field *f,
                                struct physics_result *result, int err)
{
    if (err == LIMEFILE_E_STATE) {
        result->verdict = LIMEFILE_UNVERIFIED;
        check->physics->unverified++;
        if (!check->quiet)
            print_line(check->path, "record %" PRIu64 ": unverified: %s", result->ordinal,
                       result->reason);
    } else if (err == -EIO && report_withheld(check, f)) {
        result->verdict = LIMEFILE_BAD;
        result->reason = "the mount refuses to return bad data";
        check->physics->wrong++;
    } else if (err) {
        result->verdict = LIMEFILE_UNREADABLE;
        result->reason = limefile_strerror(err);
        check->physics->wrong++;
        check->report(check->context, &(struct limefile_finding){
                                          .code = err,
                                          .offset = f->record.data_offset,
                                          .ordinal = f->record.ordinal,
                                      });
    } else {
        if (!check->quiet)
            print_physics(check, result);
        bool good = report_physics(check, f, result);
        result->verdict = good ? LIMEFILE_GOOD : LIMEFILE_BAD;
        check->physics->good += good;
        check->physics->wrong += !good;
    }
}

static json_t *first_bad_json(const struct limefile_physics_bad_link *bad)
{
    const char direction[] = {"xyzt"[bad->direction], '\0'};
    bool deviates =
        bad->defect != LIMEFILE_PHYSICS_NAN && bad->defect != LIMEFILE_PHYSICS_INFINITE;
    if (bad->defect == LIMEFILE_PHYSICS_GOOD)
        return json_null();
    return json_pack("{s:o, s:s, s:s, s:o?}", "site", jsonout_integers(bad->at, 4), "direction",
                     direction, "wrong", limefile_physics_defect_name(bad->defect),
                     deviates ? "deviation" : "real",
                     deviates ? json_real(bad->deviation) : jsonout_integer(bad->number));
}

static json_t *stated_json(const struct physics_result *r)
{
    json_t *list = json_array();
    for (int i = 0; i < r->stated_count; i++) {
        const struct limefile_physics_stated *s = &r->stated[i];
        json_array_append_new(
            list,
            json_pack("{s:o, s:s, s:s, s:s, s:o?, s:o?, s:b}", "ordinal",
                      jsonout_integer(s->ordinal), "where", s->source, "name", s->name, "text",
                      s->text, "value", s->is_number ? json_real(s->value) : NULL, "measured",
                      json_real(limefile_physics_value(&r->data, s->quantity)), "agrees",
                      limefile_physics_agrees(&r->data, s, r->precision)));
    }
    return list;
}

/* Returns the result as a JSON object, in which numbers that are not finite become null. */
static json_t *physics_json(const struct physics_result *r)
{
    const struct limefile_physics *data = &r->data;
    json_t *object =
        json_pack("{s:o, s:s, s:o*}", "ordinal", jsonout_integer(r->ordinal), "state",
                  limefile_verdict_word(r->verdict), "reason", jsonout_string(r->reason));
    if (!r->reason)
        json_object_update_new(
            object,
            json_pack("{s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o, s:o, s:o, s:o, s:o}",
                      "plaquette", json_real(data->plaquette), "space", json_real(data->space),
                      "time", json_real(data->time), "link_trace", json_real(data->trace),
                      "unitarity", json_real(data->unitarity), "determinant",
                      json_real(data->determinant), "bound", json_real(data->bound),
                      "nonfinite", jsonout_integer(data->nonfinite), "bad_links",
                      jsonout_integer(data->bad_links), "bad_sites",
                      jsonout_integer(data->bad_sites), "first_bad",
                      first_bad_json(&data->first), "stated", stated_json(r)));
    return object;
}

/* Reports and counts the result. `err`: why the data could not be read, or LIMEFILE_E_STATE if
 * result->reason states why they were not examined. Returns 0 or -ENOMEM. */
static int finish_physics(struct data_check *check, const struct limefile_field *f,
                          struct physics_result *result, int err)
{
    if (err == -ENOMEM)
        return err;
    set_physics_verdict(check, f, result, err);
    if (check->physics_list)
        jsonout_list_add(check->physics_list, physics_json(result));
    return 0;
}

/* Returns true if the container is a volume of a QIO set. Only the master volume has metadata;
 * the other volumes do not describe their data. */
static bool is_volume(const struct data_check *check)
{
    static const char type[] = "scidac-sitelist";
    struct limefile_record first;
    uint64_t count;
    return limefile_index_by_type(check->c->index, type, sizeof type - 1, &first, &count) == 0;
}

static int check_field_physics(struct data_check *check, const struct limefile_field *f)
{
    struct physics_result result = {.ordinal = f->record.ordinal, .precision = f->precision};
    int err = LIMEFILE_E_STATE;
    switch (limefile_field_configuration(f, &result.reason)) {
    case LIMEFILE_NO_CONFIGURATION:
        return 0;
    case LIMEFILE_CONFIGURATION:
        err = compare_physics(check, f, &result);
        break;
    case LIMEFILE_CONFIGURATION_UNKNOWN:
        if (f->kind == LIMEFILE_KIND_UNKNOWN && is_volume(check))
            result.reason = LIMEFILE_WHY_VOLUME;
        break;
    }
    return finish_physics(check, f, &result, err);
}

int physics_check(struct data_check *check)
{
    int err = 0;
    for (size_t i = 0; !err && i < check->fields->count; i++) {
        struct limefile_field f;
        limefile_fields_get(check->fields, i, &f);
        err = check_field_physics(check, &f);
    }
    return err;
}

/* ---- files in other formats ---- */

struct gauge_progress {
    const struct data_check *check;
    uint64_t site_bytes;
};

static bool add_gauge_progress(void *context, uint64_t sites)
{
    const struct gauge_progress *t = context;
    return t->check->progress(t->check->context, sites * t->site_bytes);
}

static uint64_t join_words(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

static uint64_t gauge_sum(const struct limefile_gauge *g, const struct limefile_gauge_sums *s)
{
    return g->format == LIMEFILE_GAUGE_NERSC ? s->nersc : join_words(s->sum29, s->sum31);
}

/* why: why the data cannot be compared with the header, or NULL. right: no value differs. */
static json_t *gauge_json(const struct limefile_gauge *g,
                          const struct limefile_gauge_sums *data, const char *why, bool right)
{
    bool nersc = g->format == LIMEFILE_GAUGE_NERSC, milc = g->format == LIMEFILE_GAUGE_MILC;
    return json_pack("{s:i, s:s, s:s*, s:o*, s:o*, s:o*}", "ordinal", 0, "state",
                     !right ? "bad"
                     : why  ? "unverified"
                            : "good",
                     "reason", why, "sum", nersc ? jsonout_hex(data->nersc) : NULL, "sum29",
                     milc ? jsonout_hex(data->sum29) : NULL, "sum31",
                     milc ? jsonout_hex(data->sum31) : NULL);
}

/* Reports data that cannot be compared with the header because of `why`. */
static void report_unverified(const struct data_check *check, const struct limefile_gauge *g,
                              const char *why)
{
    const struct limefile_finding finding = {.code = LIMEFILE_D_CHECKSUM_MISSING,
                                             .offset = g->data_offset};
    if (check->with_data && !check->quiet)
        print_line(check->path, "unverified: %s", why);
    if (check->strict)
        check->report(check->context, &finding);
}

/* Compares the data's checksum with the header's; counts and reports the result. agree: the
 * plaquette and link trace in the header match the data. */
static void compare_gauge(struct data_check *check, const struct limefile_gauge *g,
                          const struct limefile_gauge_sums *data, bool agree)
{
    struct limefile_finding finding = {
        .code = LIMEFILE_D_CHECKSUM,
        .offset = g->data_offset,
        .have = gauge_sum(g, data),
        .want = gauge_sum(g, &g->sums),
    };
    const char *why = limefile_gauge_why_unverified(g);
    bool same = !g->has_checksum || finding.have == finding.want;
    check->sums->good += !why && same && agree;
    check->sums->wrong += !same || !agree;
    check->sums->unverified += why && check->with_data;
    if (!same)
        check->report(check->context, &finding);
    if (why)
        report_unverified(check, g, why);
    if (check->sum_list)
        jsonout_list_add(check->sum_list, gauge_json(g, data, why, same && agree));
}

/* Describes the data as a field, with only the members that the reports of findings use. */
static void describe_gauge_data(const struct limefile_gauge *g, struct limefile_field *f)
{
    memset(f, 0, sizeof *f);
    f->record.data_offset = g->data_offset;
    f->sites = limefile_sites_count(&g->sites);
    f->site_bytes = g->data_bytes / f->sites;
}

static bool all_agree(const struct physics_result *result)
{
    for (int i = 0; i < result->stated_count; i++)
        if (!limefile_physics_agrees(&result->data, &result->stated[i], result->precision))
            return false;
    return true;
}

/* Compares all data of a file in another format with its header. Returns 0 or an error. */
static int check_gauge_data(struct data_check *check, const struct limefile_gauge *g)
{
    struct limefile_field field;
    struct limefile_gauge_totals totals;
    struct physics_result result = {.precision = g->sites.precision};
    struct gauge_progress progress = {check, 0};
    const struct limefile_gauge_pass pass = {
        .sites = &g->sites,
        .source = g,
        .progress = add_gauge_progress,
        .context = &progress,
        .threads = check->threads,
        .without_plaquette = !check->with_physics && !g->has_plaquette,
    };
    describe_gauge_data(g, &field);
    progress.site_bytes = field.site_bytes;
    int err = limefile_gauge_pass_run(&pass, &totals);
    if (err)
        return err;
    result.data = totals.physics;
    result.stated_count = limefile_gauge_stated(g, result.stated);
    compare_gauge(check, g, &totals.source, all_agree(&result));
    if (check->with_physics)
        return finish_physics(check, &field, &result, 0);
    report_figures(check, &field, &result);
    return 0;
}

/* Returns true if limefs cannot read this format, or this variant of a known format. */
static bool is_unsupported(int err)
{
    return err == LIMEFILE_E_GAUGE_FORM || err == LIMEFILE_E_GAUGE_ORDER ||
           err == LIMEFILE_E_GAUGE_NONE || err == LIMEFILE_E_GAUGE_UNKNOWN;
}

int gauge_check(struct data_check *check)
{
    struct limefile_gauge *g;
    char why[LIMEFILE_GAUGE_WHY_MAX];
    int err = limefile_gauge_open(check->c->source, 0, &g, why);
    const char *reason = *why ? why : NULL;
    if (!err) {
        if (check->with_data || check->with_physics)
            err = check_gauge_data(check, g);
        limefile_gauge_close(g);
    }
    if (limefile_gauge_error_is_damage(err)) {
        check->report(check->context, &(struct limefile_finding){.code = err, .why = reason});
    } else if (is_unsupported(err)) {
        check->physics->unverified++;
        if (!check->quiet)
            print_line(check->path, "unverified: %s", reason ? reason : limefile_strerror(err));
    }
    return limefile_gauge_error_is_damage(err) || is_unsupported(err) ? 0 : err;
}
