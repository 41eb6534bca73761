/* cmd_diff.c - lime diff: compare the data and the metadata of two files */
#define _GNU_SOURCE
#include "container.h"
#include "diff_tree.h"
#include "field_diff.h"
#include "jsonout.h"
#include "limefile.h"
#include "limeildg.h"
#include "mounted_container.h"
#include "named_values.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char help[] =
    "Usage: lime diff [OPTION]... A B\n"
    "       lime diff [OPTION]... -r DIRECTORY DIRECTORY\n"
    "Compare the data of two LIME, NERSC, MILC or openQCD files, number by number,\n"
    "in any two formats, precisions and byte orders; and their metadata, value by\n"
    "value.\n"
    "\n"
    "  -r, --recursive\n"
    "                 compare all files of two directories that have the same path\n"
    "                 below them; a file that only one directory has is a difference\n"
    "  -q, --quiet    print only whether the files differ, and stop at a difference\n"
    "      --bound X  numbers are equal if they differ by at most X times the\n"
    "                 largest number of their site (default: see below)\n"
    "      --data     compare only data\n"
    "      --metadata compare only metadata, which then count\n"
    "      --json     print an object, with -r one a line, for scripts\n"
    "  -h, --help     print this text\n"
    "\n"
    "Data are the fields, and all other records that are not text. The first gauge\n"
    "field of A is compared with the first one of B, and so on; likewise sources and\n"
    "other fields. Data of the same precision must be the same bit for bit. Without\n"
    "--bound, X is 6e-8 for single precision compared with double, and eight times\n"
    "what the precision holds (5e-7, 1e-15) if a NERSC file has only two rows of\n"
    "each link. A NaN equals only a NaN of the same bits.\n"
    "\n"
    "Metadata are texts: ildg-format, xlf-info, SciDAC's XML, checksums, names, and\n"
    "all others. Values that differ are printed, after '<' for A and '>' for B. They\n"
    "do not change the exit status, except with --metadata or if there are no data.\n"
    "\n"
    "Examples:\n"
    "  lime diff conf.0042 conf.0042.nersc\n"
    "  lime diff -q -r run7 /archive/run7\n"
    "  lime diff -q --bound 1e-12 prop.new prop.old || echo different\n"
    "\n"
    "Exit status: 0 the files are the same, that is, their data are equal within the\n"
    "bound; 1 they differ; 2 one cannot be read, is damaged or is not in one of the\n"
    "formats, or wrong usage.\n";

enum {
    DIFF_TEXT_MAX = LIMEFILE_XML_BYTES_MAX, /* a longer record counts as data */
    STOP = 1,                               /* ends named_values_pair() */
    LABEL_MAX = 640,                        /* a type, with %XX, and a lattice */
};

struct options {
    bool quiet, json, recursive;
    bool data, metadata; /* compare only these; both or none: both */
    double bound;
};

struct diff {
    const struct options *o;
    char *const *path; /* two */
    struct container c[2];
    struct limefile_fields fields[2];
    bool lacks_rows[2];    /* the data have computed third rows */
    FILE *data, *metadata; /* lists (jsonout.h), if o->json */
    struct progress progress;
    bool has_data, is_inexact, data_differ, metadata_differ;
    const char *failed; /* the file that a message was printed about, or NULL */
};

/* Ends the comparison, after a message about a file. */
static int diff_fail(struct diff *d, int side)
{
    d->failed = d->path[side];
    return STOP;
}

static bool compares_data(const struct options *o)
{
    return o->data || !o->metadata;
}

static bool compares_metadata(const struct options *o)
{
    return o->metadata || !o->data;
}

/* Returns true if metadata change the exit status. */
static bool metadata_count(const struct diff *d)
{
    return d->o->metadata || !d->has_data;
}

/* With -q, returns STOP once the files are known to differ. */
static int stop_if_known(const struct diff *d)
{
    bool differ = d->data_differ || (d->o->metadata && d->metadata_differ);
    return d->failed || (d->o->quiet && differ) ? STOP : 0;
}

/* ---- results of data ---- */

/* Formats "su3gauge 4x4x4x4, 147456 bytes", with the type of a field without a name. */
static void format_description(const struct limefile_field *f, char text[LABEL_MAX])
{
    char type[TYPE_TEXT_MAX];
    const struct limefile_record *r = &f->record;
    int n = snprintf(text, LABEL_MAX, "%s",
                     f->name[0] ? f->name : format_type(r->type, r->type_len, type));
    for (unsigned i = 0; i < f->lattice.dims; i++)
        n += sprintf(text + n, "%s%" PRIu64, i ? "x" : " ", f->lattice.extent[i]);
    sprintf(text + n, ", %" PRIu64 " bytes", r->bytes);
}

static void format_real(const struct field_diff *f, int side, double x, char text[40])
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x))
        snprintf(text, 40, "nan(0x%" PRIx64 ")", bits);
    else
        snprintf(text, 40, "%.*g", f->unit[side] == 4 ? 9 : 17, x);
}

static void print_largest(const struct field_diff *f)
{
    char place[FIELD_DIFF_PLACE_MAX], a[40], b[40];
    field_diff_format_place(f, f->largest.number, place);
    format_real(f, 0, f->largest.value[0], a);
    format_real(f, 1, f->largest.value[1], b);
    if (f->has_numbers)
        print_line(NULL, "  largest difference: %.2g, or %.2g of the site's largest number",
                   f->largest.difference, f->largest.relative);
    print_line(NULL, f->has_numbers ? "  at %s: %s and %s" : "  first at %s", place, a, b);
}

/* Formats what is the same, or differs, in two fields. */
static void format_result(const struct diff *d, const struct field_diff *f,
                          char text[2 * LABEL_MAX])
{
    char bits[40] = "", bound[40] = "", other[LABEL_MAX];
    const size_t *unit = f->unit;
    if (unit[0] != unit[1])
        snprintf(bits, sizeof bits, " (%zu and %zu bits)", 8 * unit[0], 8 * unit[1]);
    if (f->bound >= 0)
        snprintf(bound, sizeof bound, " by more than %.2g", f->bound);
    format_description(&f->field[1], other);
    if (f->only)
        snprintf(text, 2 * LABEL_MAX, "only in %s", d->c[f->only - 1].path);
    else if (f->mismatch)
        snprintf(text, 2 * LABEL_MAX, "%s: %s", f->mismatch, other);
    else if (f->beyond)
        snprintf(text, 2 * LABEL_MAX, "%" PRIu64 " of %" PRIu64 " %s differ%s%s", f->beyond,
                 f->count, f->has_numbers ? "numbers" : "bytes", bound, bits);
    else if (f->unequal)
        snprintf(text, 2 * LABEL_MAX, "equal within %.2g%s", f->bound, bits);
    else
        snprintf(text, 2 * LABEL_MAX, "the same %s%s", *bits ? "values" : "bits", bits);
}

static void print_data_result(const struct diff *d, const struct field_diff *f)
{
    char description[LABEL_MAX], result[2 * LABEL_MAX], other[32] = "";
    uint64_t ordinals[2] = {f->field[0].record.ordinal, f->field[1].record.ordinal};
    const int side = f->only == 2;
    format_description(&f->field[side], description);
    format_result(d, f, result);
    if (!f->only && ordinals[0] != ordinals[1])
        snprintf(other, sizeof other, " and %" PRIu64, ordinals[1]);
    print_line(NULL, "record%s %" PRIu64 "%s, %s: %s", *other ? "s" : "", ordinals[side], other,
               description, result);
    if (f->unequal)
        print_largest(f);
}

static json_t *real_json(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *largest_json(const struct field_diff *f)
{
    uint64_t site[LIMEFILE_DIMS_MAX], subscript[LIMEFILE_SITE_DIMS_MAX];
    int part;
    if (!f->unequal)
        return json_null();
    if (!f->has_numbers)
        return json_pack("{s:o}", "byte", jsonout_integer(f->largest.number));
    unsigned dims = field_diff_locate(f, f->largest.number, site, subscript, &part);
    json_t *index = json_object();
    for (unsigned i = 0; i < f->shape.dims; i++)
        json_object_set_new(index, f->shape.name[i], jsonout_integer(subscript[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s?, s:o, s:o}", "number",
                     jsonout_integer(f->largest.number), "difference",
                     real_json(f->largest.difference), "relative",
                     real_json(f->largest.relative), "site", jsonout_integers(site, dims),
                     "index", index, "part",
                     part < 0 ? NULL
                     : part   ? "imaginary"
                              : "real",
                     "a", real_json(f->largest.value[0]), "b", real_json(f->largest.value[1]));
}

static json_t *data_json(const struct field_diff *f)
{
    const struct limefile_field *a = &f->field[0], *b = &f->field[1];
    const struct limefile_field *any = f->only == 2 ? b : a;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}",
                     "record", jsonout_integer_or_null(a->record.ordinal), "other_record",
                     jsonout_integer_or_null(b->record.ordinal), "type",
                     jsonout_string(any->record.type), "name",
                     jsonout_string_or_null(any->name), "lattice",
                     jsonout_integers(any->lattice.extent, any->lattice.dims), "precision",
                     jsonout_integer_or_null(a->precision), "other_precision",
                     jsonout_integer_or_null(b->precision), "result",
                     f->mismatch || f->beyond ? "different"
                     : f->unequal             ? "equal"
                                              : "identical",
                     "mismatch", jsonout_string_or_null(f->mismatch), "bound",
                     f->bound < 0 ? json_null() : json_real(f->bound), "unequal",
                     jsonout_integer(f->unequal), "beyond", jsonout_integer(f->beyond),
                     "largest", largest_json(f));
}

static void report_data(struct diff *d, const struct field_diff *f)
{
    d->data_differ = d->data_differ || f->mismatch || f->beyond;
    d->is_inexact = d->is_inexact || f->unequal || f->unit[0] != f->unit[1];
    if (d->o->json)
        jsonout_list_add(d->data, data_json(f));
    else if (!d->o->quiet)
        print_data_result(d, f);
}

/* ---- comparing data ---- */

/* Returns the bound to which both data must agree without --bound. */
static double default_bound(const struct diff *d, const struct field_diff *f)
{
    bool is_single = f->unit[0] == 4 || f->unit[1] == 4;
    double held = is_single ? 6e-8 : 1.2e-16;
    if (d->lacks_rows[0] != d->lacks_rows[1])
        return 8 * held;
    return f->unit[0] != f->unit[1] ? held : FIELD_DIFF_EXACT;
}

/* Compares two fields or records; NULL: only the other file has one. Returns 0 or STOP. */
static int compare_data(struct diff *d, const struct limefile_field *a,
                        const struct limefile_field *b)
{
    static const struct limefile_field none = {.precision = 0};
    int which = 0;
    struct field_diff f = {
        .source = {d->c[0].source, d->c[1].source},
        .field = {a ? *a : none, b ? *b : none},
        .only = (a == NULL) * 2 + (b == NULL),
        .stops_early = d->o->quiet,
        .progress = progress_count,
        .context = &d->progress,
    };
    field_diff_prepare(&f);
    f.bound = d->o->bound < 0 ? default_bound(d, &f) : d->o->bound;
    d->has_data = true;
    int err = f.mismatch ? 0 : field_diff_run(&f, &which);
    if (err) {
        message_record(d->path[which], f.field[which].record.ordinal, err);
        return diff_fail(d, which);
    }
    report_data(d, &f);
    return stop_if_known(d);
}

/* Fields are compared with fields of the same class, so that one that is only in one file does
 * not shift all others. */
enum field_class { CLASS_GAUGE, CLASS_SOURCE, CLASS_GLOBAL, CLASS_OTHER, CLASSES };

static enum field_class find_class(const struct limefile_field *f)
{
    bool is_ildg = strcmp(f->record.type, "ildg-binary-data") == 0;
    if (f->kind == LIMEFILE_KIND_GAUGE || (f->kind == LIMEFILE_KIND_UNKNOWN && is_ildg))
        return CLASS_GAUGE;
    return f->kind == LIMEFILE_KIND_SOURCE   ? CLASS_SOURCE
           : f->kind == LIMEFILE_KIND_GLOBAL ? CLASS_GLOBAL
                                             : CLASS_OTHER;
}

/* Finds the next field of a class, from *next on. Returns false after the last one. */
static bool next_of_class(const struct limefile_fields *fields, enum field_class kind,
                          size_t *next, struct limefile_field *out)
{
    while (*next < fields->count) {
        limefile_fields_get(fields, (*next)++, out);
        if (find_class(out) == kind)
            return true;
    }
    return false;
}

static int compare_fields(struct diff *d)
{
    struct limefile_field a, b;
    int stop = 0;
    for (enum field_class kind = 0; kind < CLASSES; kind++)
        for (size_t i = 0, j = 0; !stop;) {
            bool has_a = next_of_class(&d->fields[0], kind, &i, &a);
            bool has_b = next_of_class(&d->fields[1], kind, &j, &b);
            if (!has_a && !has_b)
                break;
            stop = compare_data(d, has_a ? &a : NULL, has_b ? &b : NULL);
        }
    return stop;
}

/* ---- text records ---- */

static void print_value_line(char sign, const char *type, const struct named_value *v)
{
    if (v)
        print_line(NULL, "%c %s: %s%s%s", sign, type, v->name, *v->name ? " = " : "", v->text);
}

/* Reports that two texts of a type differ, in the values a and b. One is NULL: only the other
 * text has this value. Both are NULL: the values are the same. */
static void report_values(struct diff *d, const char *type, const struct named_value *a,
                          const struct named_value *b)
{
    const char *name = a ? a->name : b ? b->name : NULL;
    d->metadata_differ = true;
    if (d->o->json) {
        jsonout_list_add(d->metadata,
                         json_pack("{s:o, s:o, s:o, s:o}", "type", jsonout_string(type),
                                   "field", jsonout_string_or_null(name), "value",
                                   a ? jsonout_string(a->text) : json_null(), "other_value",
                                   b ? jsonout_string(b->text) : json_null()));
    } else if (!d->o->quiet) {
        print_value_line('<', type, a);
        print_value_line('>', type, b);
        if (!name)
            print_line(NULL, "%s: the texts differ, but not their values", type);
    }
}

/* Two texts of a type, while their values are compared. */
struct text_pair {
    struct diff *diff;
    const char *type;
    bool differ;
};

static int compare_values(void *context, const struct named_value *a,
                          const struct named_value *b)
{
    struct text_pair *pair = context;
    if (a && b && strcmp(a->text, b->text) == 0)
        return 0;
    pair->differ = true;
    report_values(pair->diff, pair->type, a, b);
    return stop_if_known(pair->diff);
}

/* Compares the values of two texts that are not the same. Returns 0 or STOP. */
static int compare_texts(struct diff *d, const char *type, const char *a, const char *b)
{
    struct named_values x = {.count = 0}, y = {.count = 0};
    struct text_pair pair = {.diff = d, .type = type};
    int err = named_values_parse(&x, a), stop;
    if (!err)
        err = named_values_parse(&y, b);
    if (report_error(d->path[0], "compare", err) != TOOL_GOOD)
        stop = diff_fail(d, 0);
    else
        stop = named_values_pair(&x, &y, compare_values, &pair);
    if (!stop && !pair.differ)
        report_values(d, type, NULL, NULL);
    named_values_release(&x);
    named_values_release(&y);
    return stop ? stop : stop_if_known(d);
}

/* ---- records that are not fields ---- */

struct other_record {
    struct limefile_field field; /* has only `record` */
    char *text; /* without white space and NULs at both ends; NULL: the data are not text, or
                   only NULs */
};

static bool is_text(const char *text, size_t n)
{
    bool good = true;
    for (size_t i = 0; i < n; i++)
        good = good && ((unsigned char)text[i] >= ' ' || memchr("\t\n\f\r", text[i], 4)) &&
               text[i] != 0x7f;
    return good;
}

/* Reads the record whose number, from 0, is value->order. Returns 0 or STOP. */
static int read_other(struct diff *d, int side, const struct named_value *value,
                      struct other_record *out)
{
    struct limefile_record *r = &out->field.record;
    char *text;
    int err = limefile_index_get(d->c[side].index, value->order + 1, r);
    if (err || r->bytes > DIFF_TEXT_MAX || limefile_record_is_data(r))
        return 0;
    size_t n = (size_t)r->bytes;
    err = limefile_record_read_text(d->c[side].source, r, n, &text);
    if (err) {
        message_record(d->path[side], r->ordinal, err);
        return diff_fail(d, side);
    }
    while (n && text[n - 1] == '\0')
        n--;
    if (is_text(text, n) && (n || !r->bytes)) {
        const char *begin = text;
        limefile_text_trim(&begin, &n);
        out->text = strndup(begin, n);
    }
    free(text);
    return 0;
}

/* Compares two records; NULL: only the other file has one. Returns 0 or STOP. */
static int compare_others(void *context, const struct named_value *a,
                          const struct named_value *b)
{
    struct diff *d = context;
    struct other_record pair[2] = {{.text = NULL}, {.text = NULL}};
    const struct limefile_record *r = &pair[a ? 0 : 1].field.record;
    int stop = a ? read_other(d, 0, a, &pair[0]) : 0;
    if (!stop && b)
        stop = read_other(d, 1, b, &pair[1]);
    const char *texts[2] = {a ? pair[0].text : "", b ? pair[1].text : ""};
    if (stop || limefile_record_is_data(r)) {
        /* compare_fields() compares fields */
    } else if (!texts[0] || !texts[1]) {
        if (compares_data(d->o))
            stop = compare_data(d, a ? &pair[0].field : NULL, b ? &pair[1].field : NULL);
    } else if (compares_metadata(d->o) && (!a || !b || strcmp(texts[0], texts[1]) != 0)) {
        stop = compare_texts(d, r->type, texts[0], texts[1]);
    }
    free(pair[0].text);
    free(pair[1].text);
    return stop;
}

/* Compares the n-th record of each type with the n-th one of this type in the other file. */
static int compare_records(struct diff *d)
{
    struct named_values list[2] = {{.count = 0}, {.count = 0}};
    struct limefile_record r;
    int err = 0;
    for (int side = 0; side < 2; side++)
        for (uint64_t i = 1; !err && limefile_index_get(d->c[side].index, i, &r) == 0; i++)
            err = named_values_add(&list[side], r.type, r.type_len, "", 0);
    int stop = report_error(d->path[0], "index", err) != TOOL_GOOD
                   ? diff_fail(d, 0)
                   : named_values_pair(&list[0], &list[1], compare_others, d);
    named_values_release(&list[0]);
    named_values_release(&list[1]);
    return stop;
}

/* ---- two files ---- */

/* Returns true if the container has the header of a NERSC file without third rows. */
static bool find_two_rows(const struct container *c)
{
    static const char type[] = "nersc-header";
    struct limefile_record r;
    uint64_t count;
    char *text = NULL;
    bool two = limefile_index_by_type(c->index, type, sizeof type - 1, &r, &count) == 0 &&
               r.bytes <= DIFF_TEXT_MAX &&
               limefile_record_read_text(c->source, &r, (size_t)r.bytes, &text) == 0 &&
               strstr(text, "4D_SU3_GAUGE") && !strstr(text, "4D_SU3_GAUGE_3x3");
    free(text);
    return two;
}

/* Opens a file, which must be whole. Returns 0 or STOP; call close_side() after 0. */
static int open_side(struct diff *d, int side)
{
    struct container *c = &d->c[side];
    if (container_open_or_mounted(c, d->path[side]) != TOOL_GOOD)
        return diff_fail(d, side);
    d->lacks_rows[side] = find_two_rows(c);
    if (limefile_index_size(c->index) == 0)
        message(c->path, "the file is empty");
    else if (container_report_fault(c) == TOOL_GOOD &&
             report_error(c->path, "read",
                          limefile_fields_build(c->source, c->index, &d->fields[side])) ==
                 TOOL_GOOD)
        return 0;
    container_close(c);
    return diff_fail(d, side);
}

static void close_side(struct diff *d, int side)
{
    limefile_fields_release(&d->fields[side]);
    container_close(&d->c[side]);
}

static void compare_files(struct diff *d)
{
    int stop = 0;
    progress_begin(&d->progress, "diff",
                   limefile_index_size(d->c[0].index) + limefile_index_size(d->c[1].index));
    if (compares_data(d->o))
        stop = compare_fields(d);
    if (!stop)
        stop = compare_records(d);
    progress_end(&d->progress);
    if (!stop && !d->has_data && !compares_metadata(d->o)) {
        message(d->path[0], "neither file has data to compare");
        diff_fail(d, 0);
    }
}

static void print_diff_json(const struct diff *d, int status)
{
    static const char *const words[] = {"same", "different", "error"};
    jsonout_members("{",
                    json_pack("{s:o, s:o, s:s, s:o, s:o}", "file", jsonout_string(d->path[0]),
                              "other", jsonout_string(d->path[1]), "status", words[status],
                              "error", jsonout_string_or_null(d->failed ? message_first() : ""),
                              "failed", jsonout_string_or_null(d->failed)),
                    "");
    jsonout_list_print("fields", d->data);
    jsonout_list_print("metadata", d->metadata);
    puts("}");
}

static void print_summary(const struct diff *d)
{
    const char *data = !d->has_data     ? "no data"
                       : d->data_differ ? "different data"
                       : d->is_inexact  ? "the same data within the bound"
                                        : "the same data, bit for bit";
    const char *metadata = d->metadata_differ ? "different metadata" : "the same metadata";
    if (!compares_metadata(d->o))
        print_line(NULL, "%s", data);
    else if (!compares_data(d->o))
        print_line(NULL, "%s", metadata);
    else
        print_line(NULL, "%s; %s", data, metadata);
}

static struct options options = {.bound = -1};

static const struct option_rule rules[] = {
    FLAG_RULE("recursive", 'r', &options.recursive),
    FLAG_RULE("quiet", 'q', &options.quiet),
    FLAG_RULE("data", 0, &options.data),
    FLAG_RULE("metadata", 0, &options.metadata),
    FLAG_RULE("json", 0, &options.json),
    {"bound", 0, OPTION_REAL, &options.bound, 0, 1, .expected = "a number from 0 to 1"},
    {NULL},
};

/* Compares two files and prints the result. Returns an exit status. */
static int diff_files(char *const *paths)
{
    struct diff d = {.o = &options, .path = paths};
    int opened = 0;
    message_forget();
    if (options.json &&
        (jsonout_list_create(&d.data) != 0 || jsonout_list_create(&d.metadata) != 0)) {
        message_code(paths[0], "compare", -errno);
        diff_fail(&d, 0);
    }
    while (!d.failed && opened < 2 && open_side(&d, opened) == 0)
        opened++;
    if (opened == 2)
        compare_files(&d);
    bool differ = d.data_differ || (metadata_count(&d) && d.metadata_differ);
    int status = d.failed ? TOOL_UNUSABLE : differ ? TOOL_BAD : TOOL_GOOD;
    if (options.json)
        print_diff_json(&d, status);
    else if (options.quiet && status == TOOL_BAD)
        print_line(NULL, "%s and %s differ", paths[0], paths[1]);
    else if (!options.quiet && !d.failed)
        print_summary(&d);
    while (opened > 0)
        close_side(&d, --opened);
    jsonout_list_release(d.data);
    jsonout_list_release(d.metadata);
    return status;
}

static void print_only(char *path, int side)
{
    const char *texts[2] = {side ? NULL : path, side ? path : NULL};
    if (!options.json) {
        print_line(NULL, "only on one side: %s", path);
        return;
    }
    jsonout_print(stdout, json_pack("{s:o, s:o, s:s, s:n, s:n, s:[], s:[]}", "file",
                                    texts[0] ? jsonout_string(texts[0]) : json_null(), "other",
                                    texts[1] ? jsonout_string(texts[1]) : json_null(), "status",
                                    "different", "error", "failed", "fields", "metadata"));
    putchar('\n');
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && !mounted_is_container(path);
}

static int run_diff(int count, char **paths)
{
    const struct diff_tree tree = {.command = &cmd_diff,
                                   .directories = paths,
                                   .quiet = options.quiet,
                                   .json = options.json,
                                   .compare = diff_files,
                                   .print_only = print_only};
    bool are_directories[2] = {is_directory(paths[0]), is_directory(paths[1])};
    (void)count;
    if (!are_directories[0] && !are_directories[1])
        return diff_files(paths);
    if (!options.recursive)
        return usage_error(&cmd_diff, "%s: is a directory; use -r to compare the files in two",
                           paths[!are_directories[0]]);
    if (!are_directories[0] || !are_directories[1])
        return usage_error(&cmd_diff, "%s: not a directory, but the other one is",
                           paths[are_directories[0]]);
    return diff_tree_run(&tree);
}

const struct command cmd_diff = {"diff", "compare two files",        help, run_diff,
                                 rules,  {"A and B expected", 2, 2}, NULL};
