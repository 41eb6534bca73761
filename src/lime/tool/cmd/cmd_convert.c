/* cmd_convert.c - lime convert: write a gauge configuration in another program's format */
#define _GNU_SOURCE
#include "convert_plan.h"
#include "files.h"
#include "gaugefile.h"
#include "limegauge.h"
#include "limeoutput.h"
#include "limephysics.h"
#include "target_name.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct options {
    struct limefile_gauge_options form;
    const char *record;
    bool force;
    bool ignores_checksum;
    const char *name, *table; /* for many files */
} options;
static struct files_options files;

enum outcome {
    OUTCOME_NONE, /* not begun, interrupted, or the process has crashed */
    OUTCOME_FAILED,
    OUTCOME_CONVERTED,
    OUTCOME_UNCHANGED
};

enum { SUM_TEXT_MAX = 24 };

struct conversion_result {
    enum outcome outcome;
    char sum[SUM_TEXT_MAX]; /* the checksum in the target's header, or "" */
};

struct conversion {
    struct gaugefile in;
    struct limefile_gauge_image *image;
    struct limefile_output out;
    const char *out_path;
    struct progress progress;
    uint64_t site_bytes;
    unsigned threads; /* 0: one for each processor */
    bool without_plaquette;
    bool is_one_of_many;
    struct conversion_result *result;
};

static void warn_not_su3(const struct gaugefile *in, const struct limefile_physics *data)
{
    double most = data->unitarity > data->determinant ? data->unitarity : data->determinant;
    const uint64_t *at = data->first.at;
    message(in->path,
            "warning: %" PRIu64 " link%s from SU(3) by up to %.2e (more than %.0e); the first "
            "is at site %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 ", direction %c",
            data->bad_links, data->bad_links == 1 ? " deviates" : "s deviate", most,
            data->bound, at[0], at[1], at[2], at[3], "xyzt"[data->first.direction]);
}

/* Compares the data with the header's values. Returns TOOL_GOOD if the data may be written. */
static int compare_with_header(const struct gaugefile *in, const char *out_path,
                               const struct limefile_gauge_totals *totals,
                               bool ignores_checksum)
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
        message(in->path, "warning: no checksum to compare the data with");
        return TOOL_GOOD;
    }
    message(in->path, "%sthe header has no usable checksum: both are 0",
            ignores_checksum ? "warning: " : "");
    if (!ignores_checksum)
        message(out_path, "not written: the data of '%s' cannot be verified; %s", in->path,
                hint);
    return ignores_checksum ? TOOL_GOOD : TOOL_BAD;
}

/* Checks that the data are finite, that they have the checksum, plaquette and link trace in the
 * header, and that `rows` rows of a link determine the link. With `ignores_checksum`, a wrong
 * value is only a warning. Returns an exit status, after messages. */
static int convert_check_input(const struct gaugefile *in, const char *out_path,
                               const struct limefile_gauge_totals *totals, unsigned rows,
                               bool ignores_checksum)
{
    const struct limefile_physics *data = &totals->physics;
    if (data->nonfinite) {
        message(in->path, "%" PRIu64 " number%s NaN or infinite; not converted",
                data->nonfinite, data->nonfinite == 1 ? " is" : "s are");
        return TOOL_BAD;
    }
    int status = compare_with_header(in, out_path, totals, ignores_checksum);
    if (status != TOOL_GOOD || data->bad_links == 0)
        return status;
    warn_not_su3(in, data);
    if (rows != 2) /* two rows determine a link only in SU(3) */
        return TOOL_GOOD;
    message(out_path, "not written: third rows cannot be left out; use --rows 3");
    return TOOL_BAD;
}

static void report_unwritten(const char *out_path, int err,
                             const struct limefile_gauge_totals *written)
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

/* Returns true if data that were read back have the plaquette and the link trace of the source:
 * exactly, if the output has the same numbers. */
static bool has_source_values(const struct conversion *c, const struct limefile_gauge *g,
                              const struct limefile_physics *data,
                              const struct limefile_physics *source)
{
    bool same_numbers = g->rows == 3 && g->sites.precision == c->in.gauge->sites.precision;
    double bound = same_numbers ? 0 : LIMEFILE_PHYSICS_TOLERANCE_SINGLE;
    return fabs(data->plaquette - source->plaquette) <=
               bound * fmax(1, fabs(data->plaquette)) &&
           fabs(data->trace - source->trace) <= bound * fmax(1, fabs(data->trace));
}

/* Returns 0 if the output has this format and the values in `written`; otherwise an error. */
static int compare_output(const struct conversion *c, const struct limefile_gauge *g,
                          enum limefile_gauge_format format,
                          const struct limefile_gauge_totals *written)
{
    const struct limefile_gauge_pass pass = {
        .sites = &g->sites,
        .source = g,
        .without_plaquette = c->is_one_of_many ? c->without_plaquette : !g->has_plaquette,
        .threads = c->threads,
    };
    char text[LIMEFILE_GAUGE_DIFFERENCE_MAX];
    struct limefile_gauge_totals data = {.physics = written->physics, .source = written->image};
    bool must_read = c->is_one_of_many || written->physics.bad_links;
    if (g->format != format)
        return LIMEFILE_E_GAUGE_UNKNOWN;
    int err = must_read ? limefile_gauge_pass_run(&pass, &data) : 0;
    if (!err && data.physics.nonfinite)
        err = LIMEFILE_E_GAUGE_NAN;
    if (!err && c->is_one_of_many && !has_source_values(c, g, &data.physics, &written->physics))
        err = LIMEFILE_E_GAUGE_PLAQUETTE;
    return err ? err : limefile_gauge_compare(g, &data, text);
}

/* Formats the checksum in the header; "" if it has none. */
static void format_sum(const struct limefile_gauge *g, char out[SUM_TEXT_MAX])
{
    const struct limefile_gauge_sums *sums = &g->sums;
    uint32_t first = g->format == LIMEFILE_GAUGE_MILC ? sums->sum29 : sums->scidac.suma;
    uint32_t second = g->format == LIMEFILE_GAUGE_MILC ? sums->sum31 : sums->scidac.sumb;
    *out = '\0';
    if (g->has_checksum && g->format == LIMEFILE_GAUGE_NERSC)
        snprintf(out, SUM_TEXT_MAX, "%08" PRIx32, sums->nersc);
    else if (g->has_checksum)
        snprintf(out, SUM_TEXT_MAX, "%08" PRIx32 " %08" PRIx32, first, second);
}

/* Opens the finished output as lime and limefs do, and compares its header with the values
 * computed while it was written. Also reads the data back if the file is one of many, or if a
 * link is not an SU(3) matrix: large numbers may not fit into the output's precision. Returns
 * an exit status. */
static int convert_check_output(struct conversion *c, enum limefile_gauge_format format,
                                const struct limefile_gauge_totals *written)
{
    struct limefile_fd file;
    struct limefile_gauge *g;
    limefile_fd_init(&file, c->out.fd);
    int err = limefile_gauge_open(&file.source, 0, &g, NULL);
    if (!err) {
        err = compare_output(c, g, format, written);
        format_sum(g, c->result->sum);
        limefile_gauge_close(g);
    }
    if (err)
        report_unwritten(c->out_path, err, written);
    return err ? TOOL_BAD : TOOL_GOOD;
}

static const char help[] =
    "Usage: lime convert [OPTION]... IN OUT\n"
    "       lime convert [OPTION]... FILE... DIR\n"
    "       lime convert [OPTION]... -r SOURCE... DIR\n"
    "       lime convert [OPTION]... --files-from LIST [-0] DIR\n"
    "Write the SU(3) gauge configuration in IN to OUT in another format. IN is a\n"
    "LIME container (ILDG, or QIO's four colour matrices), a volume of a set that\n"
    "QIO has written, or a NERSC, MILC (version 5) or openQCD file; its format is\n"
    "detected. OUT appears, or is replaced, only when all is written, and only if\n"
    "the data of IN match the checksum and plaquette in IN, and lime can read OUT\n"
    "back.\n"
    "\n"
    "Many files are written to DIR, in the same subdirectories as in SOURCE. Each is\n"
    "also read back and compared with its source. A target that is not older than\n"
    "its source and has the requested form is left unchanged, and its data are not\n"
    "read; so the same command continues an interrupted run. A table names the\n"
    "source, target, status (converted, unchanged, failed) and sum of each file.\n"
    "\n"
    "  -f, --force           replace OUT if it exists; never if it is also IN\n"
    "      --to FORMAT       ildg, nersc, milc or openqcd; without it the suffix of\n"
    "                        OUT: .ildg .lime .nersc .milc .openqcd\n"
    "      --precision BITS  32 or 64; without it that of IN, or the only one that\n"
    "                        the format has (milc 32, openqcd 64)\n"
    "      --rows ROWS       2: leave out the third row of each link, 3: keep it\n"
    "                        (the default); 2 for nersc only\n"
    "      --record RECORD   the record to convert, if the container has several\n"
    "      --ignore-checksum convert IN even if the data do not match the checksum\n"
    "                        or plaquette in IN, or if a MILC header has no sum\n"
    "                        (both are 0); the header of IN is not kept\n"
    "      --lfn NAME        ildg: the logical file name; without it that of IN\n"
    "      --ensemble ID     nersc: ENSEMBLE_ID; without it that of IN\n"
    "      --label TEXT      nersc: ENSEMBLE_LABEL; without it that of IN\n"
    "      --sequence N      nersc: SEQUENCE_NUMBER; without it that of IN, or 0\n"
    "\n"
    "Many files:\n"
    "      --name PATTERN    name the targets; the default replaces the format's\n"
    "                        suffix. {name} is the source's name, {ext} its suffix,\n"
    "                        {n} the number at its end or, without one, the\n"
    "                        trajectory number, {stem} the name without both\n"
    "      --table FILE      write the table to FILE, not to standard output\n" FILES_HELP "\n"
    "An option that the output format does not support is wrong usage.\n"
    "\n"
    "Examples:\n"
    "  lime convert conf.0042 conf.0042.nersc\n"
    "  lime convert --to openqcd conf.0042 run1n42\n"
    "  lime convert --to nersc --name '{stem}.{n}.nersc' -r run1 run1.nersc\n"
    "  lime convert --lfn lfn://ldg/us/run/conf.0042 l4896f.0042 conf.0042.lime\n"
    "\n"
    "Exit status: 0 done; 1 IN is damaged, its data do not match its header, or OUT\n"
    "cannot be written or cannot hold the data; 2 wrong usage, or IN cannot be\n"
    "opened or has no configuration. With many files: the worst of all; one that\n"
    "fails does not stop the others.\n";

enum { WRITEBACK_BYTES = 64 << 20 }; /* a smaller file is written by fsync() alone */

/* Writes a chunk of a file. Starts the writeback of a large file's chunk, so that little is
 * left for the fsync at the end. */
static int write_image_data(void *context, const void *data, size_t n, uint64_t offset)
{
    const struct conversion *c = context;
    int err = limefile_fd_write(c->out.fd, data, n, offset);
    if (!err && limefile_gauge_image_size(c->image) >= WRITEBACK_BYTES)
        sync_file_range(c->out.fd, (off_t)offset, (off_t)n, SYNC_FILE_RANGE_WRITE);
    return err;
}

/* Allocates the whole file at once, because threads that write out of order make allocation by
 * blocks very slow. On ENOSPC, aborts the output. Ignores other errors, because not all file
 * systems support fallocate(). */
static int allocate_output(struct conversion *c)
{
    uint64_t size = limefile_gauge_image_size(c->image);
    if (fallocate(c->out.fd, 0, 0, (off_t)size) == 0 || errno != ENOSPC)
        return 0;
    limefile_output_abort(&c->out);
    return -ENOSPC;
}

static bool count_converted_sites(void *context, uint64_t sites)
{
    struct conversion *c = context;
    progress_add(&c->progress, sites * c->site_bytes);
    return true;
}

/* Converts the data, checks input and output, and commits the output. If one of these steps
 * fails, prints a message and aborts the output. Returns an exit status. */
static int write_image(struct conversion *c, const struct options *o)
{
    struct limefile_gauge_totals totals;
    struct limefile_gauge_pass pass = {
        .sites = &c->in.gauge->sites,
        .source = c->in.gauge,
        .image = c->image,
        .write = write_image_data,
        .progress = count_converted_sites,
        .context = c,
        .without_plaquette =
            !c->in.gauge->has_plaquette &&
            (o->form.format == LIMEFILE_GAUGE_MILC || o->form.format == LIMEFILE_GAUGE_ILDG),
        .threads = c->threads,
    };
    c->without_plaquette = pass.without_plaquette;
    c->site_bytes = limefile_sites_bytes(pass.sites);
    progress_begin(&c->progress, "convert", limefile_sites_count(pass.sites) * c->site_bytes);
    int err = limefile_gauge_pass_run(&pass, &totals);
    progress_end(&c->progress);
    int status = err ? TOOL_GOOD
                     : convert_check_input(&c->in, c->out_path, &totals, o->form.rows,
                                           o->ignores_checksum);
    if (!err && status == TOOL_GOOD)
        err = limefile_gauge_image_seal(c->image, &totals);
    if (!err && status == TOOL_GOOD)
        err = limefile_gauge_image_write_headers(c->image, c->out.fd);
    if (!err && status == TOOL_GOOD)
        status = convert_check_output(c, o->form.format, &totals);
    if (!err && status == TOOL_GOOD) {
        err = limefile_output_commit(&c->out);
        if (!err)
            c->result->outcome = OUTCOME_CONVERTED;
        return report_output_error(c->out_path, "write", err);
    }
    if (err == LIMEFILE_E_GAUGE_RANGE)
        report_unwritten(c->out_path, err, &totals);
    else if (err)
        message(c->out_path, "convert '%s': %s", c->in.path, limefile_strerror(err));
    limefile_output_abort(&c->out);
    return TOOL_BAD;
}

/* Warns if the text cannot be kept: a NERSC header has only short lines of ASCII. */
static void warn_changed_text(const char *path, const char *key, const char *text)
{
    bool plain = true;
    for (const char *at = text; *at; at++)
        plain = plain && *at >= ' ' && *at < 0x7f;
    if (strlen(text) > LIMEFILE_GAUGE_TEXT_MAX)
        message(path, "warning: %s truncated to %d characters", key, LIMEFILE_GAUGE_TEXT_MAX);
    if (!plain)
        message(path, "warning: %s has '?' for each byte that is not printable ASCII", key);
}

/* Takes from the input the values that no option gives. Does not set form->text. type: type of
 * the record that will store form->text. */
static void fill_form(struct limefile_gauge_options *form, const struct limefile_gauge *in,
                      char date[32], const char *type)
{
    time_t t = time(NULL);
    struct tm tm;
    strftime(date, 32, "%a %b %d %H:%M:%S %Y", gmtime_r(&t, &tm));
    form->ensemble_id = form->ensemble_id ? form->ensemble_id : in->ensemble_id;
    form->ensemble_label = form->ensemble_label ? form->ensemble_label : in->ensemble_label;
    form->date = in->date[0] ? in->date : date;
    form->lfn = form->lfn ? form->lfn : in->lfn;
    form->creator = "lime convert";
    if (!form->has_sequence)
        form->sequence = in->sequence;
    form->text_type = type;
}

static int open_converted_output(struct conversion *c, bool force)
{
    size_t count;
    const int *inputs = gaugefile_inputs(&c->in, &count);
    return limefile_output_open(&c->out, c->out_path, force, inputs, count);
}

static bool is_modified_before(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec < b->st_mtim.tv_sec ||
           (a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec < b->st_mtim.tv_nsec);
}

/* Returns true if a NERSC header has the text that an option gives. NULL: no option. */
static bool has_stored_text(const char *stored, const char *given)
{
    size_t n = given ? strnlen(given, LIMEFILE_GAUGE_TEXT_MAX) : 0;
    bool is_same = !given || strlen(stored) == n;
    for (size_t i = 0; is_same && i < n; i++)
        is_same = stored[i] == (given[i] >= ' ' && given[i] < 0x7f ? given[i] : '?');
    return is_same;
}

/* Returns true if the target is not older than its source, and has the requested form. */
static bool is_up_to_date(struct conversion *c, const struct options *o)
{
    const struct limefile_gauge *in = c->in.gauge;
    unsigned precision = o->form.precision                          ? o->form.precision
                         : o->form.format == LIMEFILE_GAUGE_MILC    ? 32
                         : o->form.format == LIMEFILE_GAUGE_OPENQCD ? 64
                                                                    : in->sites.precision;
    struct stat source, target;
    struct limefile_fd file;
    struct limefile_gauge *g;
    size_t count;
    const int *inputs = gaugefile_inputs(&c->in, &count);
    int fd = o->force ? -1 : limefile_open(c->out_path, O_RDONLY);
    if (fd < 0)
        return false;
    limefile_fd_init(&file, fd);
    bool is_current = fstat(fd, &target) == 0;
    for (size_t i = 0; is_current && i < count; i++)
        is_current = fstat(inputs[i], &source) == 0 && !is_modified_before(&target, &source);
    if (is_current && limefile_gauge_open(&file.source, 0, &g, NULL) == 0) {
        is_current = g->format == o->form.format && g->sites.precision == precision &&
                     g->rows == (o->form.rows ? o->form.rows : 3) &&
                     (g->has_checksum || g->format != LIMEFILE_GAUGE_ILDG) && /* at the end */
                     memcmp(g->sites.extent, in->sites.extent, sizeof g->sites.extent) == 0 &&
                     has_stored_text(g->ensemble_id, o->form.ensemble_id) &&
                     has_stored_text(g->ensemble_label, o->form.ensemble_label);
        if (is_current)
            format_sum(g, c->result->sum);
        limefile_gauge_close(g);
    } else {
        is_current = false;
    }
    close(fd);
    return is_current;
}

/* many: keep a target that is up to date, and make the directory of another one. */
static int convert_file(const char *in, const char *out, unsigned threads, bool many,
                        struct conversion_result *result)
{
    struct options o = options;
    struct conversion c = {
        .out_path = out, .threads = threads, .is_one_of_many = many, .result = result};
    char date[32], type[32];
    int status = gaugefile_open(&c.in, in, o.record);
    if (status != TOOL_GOOD)
        return status;
    if (many && is_up_to_date(&c, &o)) {
        result->outcome = OUTCOME_UNCHANGED;
        gaugefile_close(&c.in);
        return TOOL_GOOD;
    }
    snprintf(type, sizeof type, "%s-header", limefile_gauge_format_name(c.in.gauge->format));
    fill_form(&o.form, c.in.gauge, date, c.in.gauge->text_type ? c.in.gauge->text_type : type);
    if (!o.ignores_checksum) /* with --ignore-checksum, the text may contradict the data */
        o.form.text = c.in.gauge->text;
    int err = limefile_gauge_image_new(&c.in.gauge->sites, &o.form, &c.image);
    if (err) {
        message(out, "--to %s: %s", limefile_gauge_format_name(o.form.format),
                limefile_strerror(err));
        gaugefile_close(&c.in);
        return err == LIMEFILE_E_GAUGE_FORM ? TOOL_UNUSABLE : TOOL_BAD;
    }
    if (o.form.format == LIMEFILE_GAUGE_NERSC) {
        warn_changed_text(out, "ENSEMBLE_ID", o.form.ensemble_id);
        warn_changed_text(out, "ENSEMBLE_LABEL", o.form.ensemble_label);
    }
    err = many ? convert_plan_make_directories(out) : 0;
    if (!err)
        err = open_converted_output(&c, o.force);
    if (!err)
        err = allocate_output(&c);
    if (err == LIMEFILE_E_OUTPUT_EXISTS && many)
        message(out,
                "exists already, but is older than its source, damaged, or of another form; "
                "use -f to replace it");
    else if (err)
        message_output(out, "create", err);
    status = err ? TOOL_BAD : write_image(&c, &o);
    limefile_gauge_image_free(c.image);
    gaugefile_close(&c.in);
    return status;
}

/* Returns the format that the file name's suffix names, or LIMEFILE_GAUGE_NONE. */
static enum limefile_gauge_format parse_suffix(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    if (!dot)
        return LIMEFILE_GAUGE_NONE;
    return strcmp(dot, ".lime") == 0 ? LIMEFILE_GAUGE_ILDG
                                     : limefile_gauge_format_by_name(dot + 1);
}

static bool parse_one_of_two(const char *text, uint64_t one, uint64_t other, unsigned *out)
{
    uint64_t value;
    if (!limefile_parse_number(text, strlen(text), &value) || (value != one && value != other))
        return false;
    *out = (unsigned)value;
    return true;
}

static int parse_format_option(const void *command, char *text)
{
    options.form.format = limefile_gauge_format_by_name(text);
    return options.form.format != LIMEFILE_GAUGE_NONE
               ? TOOL_GOOD
               : value_error(command, "--to", "format", text, "nersc, milc, openqcd, ildg");
}

static int parse_precision_option(const void *command, char *text)
{
    return parse_one_of_two(text, 32, 64, &options.form.precision)
               ? TOOL_GOOD
               : value_error(command, "--precision", NULL, text, "32, 64");
}

static int parse_rows_option(const void *command, char *text)
{
    return parse_one_of_two(text, 2, 3, &options.form.rows)
               ? TOOL_GOOD
               : value_error(command, "--rows", NULL, text, "2, 3");
}

static int parse_sequence_option(const void *command, char *text)
{
    struct limefile_gauge_options *form = &options.form;
    form->has_sequence = limefile_parse_number(text, strlen(text), &form->sequence) &&
                         form->sequence <= INT64_MAX;
    return form->has_sequence ? TOOL_GOOD
                              : value_error(command, "--sequence", NULL, text, "a number");
}

static int parse_lfn_option(const void *command, char *text)
{
    char lfn[LIMEFILE_LFN_MAX];
    options.form.lfn = text;
    return limefile_lfn_parse(text, strlen(text), lfn) == 0
               ? TOOL_GOOD
               : value_error(command, "--lfn", NULL, text, "a name without control characters");
}

/* Returns the name of an option whose value the format cannot store, or NULL. */
static const char *find_unsupported_option(const struct limefile_gauge_options *form)
{
    bool nersc = form->format == LIMEFILE_GAUGE_NERSC;
    return form->lfn && form->format != LIMEFILE_GAUGE_ILDG ? "lfn"
           : form->ensemble_id && !nersc                    ? "ensemble"
           : form->ensemble_label && !nersc                 ? "label"
           : form->has_sequence && !nersc                   ? "sequence"
                                                            : NULL;
}

static const struct option_rule rules[] = {
    {"to", 0, OPTION_CALL_TEXT, .handle = parse_format_option,
     OPTION_WORDS("nersc", "milc", "openqcd", "ildg")},
    {"precision", 0, OPTION_CALL_TEXT, .handle = parse_precision_option,
     OPTION_WORDS("32", "64")},
    {"rows", 0, OPTION_CALL_TEXT, .handle = parse_rows_option, OPTION_WORDS("2", "3")},
    TEXT_RULE("record", 0, &options.record),
    {"lfn", 0, OPTION_CALL_TEXT, .handle = parse_lfn_option},
    TEXT_RULE("ensemble", 0, &options.form.ensemble_id),
    TEXT_RULE("label", 0, &options.form.ensemble_label),
    {"sequence", 0, OPTION_CALL_TEXT, .handle = parse_sequence_option},
    FLAG_RULE("force", 'f', &options.force),
    FLAG_RULE("ignore-checksum", 0, &options.ignores_checksum),
    TEXT_RULE("name", 0, &options.name),
    TEXT_RULE("table", 0, &options.table),
    FILES_RULES(files),
    {NULL},
};

/* ---- many files ---- */

static struct convert_plan plan;
static int table_status;
static const char *only_target; /* IN OUT: the name OUT; NULL: many files */

static const char *const outcome_words[] = {
    [OUTCOME_NONE] = "failed",
    [OUTCOME_FAILED] = "failed",
    [OUTCOME_CONVERTED] = "converted",
    [OUTCOME_UNCHANGED] = "unchanged",
};
static const char table_header[] = "source\ttarget\tstatus\tsum\n";

static int plan_conversions(const struct pathlist *list)
{
    return convert_plan_make(&plan, list);
}

static int convert_planned_file(struct file_task *task)
{
    struct conversion_result *result = task->result;
    const char *target = only_target ? only_target : plan.targets[task->index].path;
    if (!target && plan.targets[task->index].lacks_number) {
        result->outcome = OUTCOME_FAILED;
        message(task->path, "no number for {n}, neither in the name nor in the metadata");
        return TOOL_BAD;
    }
    if (!target) {
        task->skipped = "no gauge configuration";
        return TOOL_GOOD;
    }
    int status = convert_file(task->path, target, task->threads, !only_target, result);
    if (status != TOOL_GOOD)
        result->outcome = OUTCOME_FAILED;
    if (result->outcome == OUTCOME_UNCHANGED)
        task->up_to_date = "up to date; its data were not read";
    task->members =
        json_pack("{s:o, s:s, s:o}", "target", jsonout_string(target), "result",
                  outcome_words[result->outcome], "sum", jsonout_string_or_null(result->sum));
    return status;
}

/* Prints the lines of all files, or only of those that failed; without lines, no header. */
static void print_conversions(FILE *out, const struct files_results *results, bool only_failed)
{
    const struct conversion_result *result = (const struct conversion_result *)results->result;
    bool has_header = false;
    for (size_t i = 0; i < plan.count; i++, result++) {
        const struct planned_target *target = &plan.targets[i];
        const char *texts[] = {results->list->items[i].path, target->path ? target->path : "",
                               outcome_words[result->outcome], result->sum};
        if ((!target->path && !target->lacks_number) ||
            (only_failed && result->outcome > OUTCOME_FAILED) ||
            (results->is_interrupted && result->outcome == OUTCOME_NONE))
            continue;
        if (!has_header)
            fputs(table_header, out);
        has_header = true;
        for (size_t k = 0; k < 4; k++) {
            char *text = strdup(*texts[k] ? texts[k] : "-");
            limefile_text_sanitize(text, "");
            fprintf(out, "%s%s", k ? "\t" : "", text);
            free(text);
        }
        fputc('\n', out);
    }
}

/* Returns false, after a message, if the table would replace a file of another kind. */
static bool may_write_table(const char *path)
{
    char head[sizeof table_header] = "";
    int fd = path ? limefile_open(path, O_RDONLY) : -ENOENT;
    if (fd < 0)
        return fd == -ENOENT || report_error(path, "open", fd) == TOOL_GOOD;
    ssize_t n = limefile_fd_read(fd, head, sizeof head - 1, 0);
    close(fd);
    if (n == 0 || strcmp(head, table_header) == 0)
        return true;
    message(path, "exists already and is not a table of lime convert; choose another name");
    return false;
}

static int write_table_file(const struct files_results *results)
{
    struct limefile_output output;
    if (!may_write_table(options.table)) /* a target may have this name */
        return TOOL_BAD;
    int err = limefile_output_open(&output, options.table, true, NULL, 0);
    if (err)
        return report_output_error(options.table, "create", err);
    int fd = dup(output.fd);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (out)
        print_conversions(out, results, false);
    err = !out || fclose(out) != 0 ? -errno : limefile_output_commit(&output);
    limefile_output_abort(&output);
    return report_output_error(options.table, "write", err);
}

static void conclude_conversions(const struct files_results *results, json_t *summary,
                                 char *text)
{
    (void)summary;
    (void)text;
    if (options.table)
        table_status = write_table_file(results);
    else if (!files.json)
        print_conversions(stdout, results, files.quiet);
}

static int convert_many(int count, char **paths)
{
    const struct files_command command = {
        .command = &cmd_convert,
        .prints_table = !options.table,
        .is_io_bound = true, /* each output is synced */
        .continues = true,
        .result_bytes = sizeof(struct conversion_result),
        .prepare = plan_conversions,
        .examine = convert_planned_file,
        .conclude = conclude_conversions,
    };
    const char *directory = count ? paths[count - 1] : NULL;
    const char *why = options.name ? target_name_check(options.name) : NULL;
    if (!directory || !*directory || (count == 1 && !files.paths.list))
        return usage_error(&cmd_convert, "sources and a directory expected");
    if (why)
        return value_error(&cmd_convert, "--name", NULL, options.name, why);
    if (options.form.lfn || options.form.has_sequence)
        return usage_error(&cmd_convert, "--lfn and --sequence are for one file");
    if (!may_write_table(options.table))
        return TOOL_UNUSABLE;
    plan = (struct convert_plan){.directory = directory,
                                 .pattern = options.name,
                                 .format = limefile_gauge_format_name(options.form.format)};
    int status = files_command(&command, &files, count - 1, paths);
    convert_plan_release(&plan);
    return worse_status(status, table_status);
}

static int convert_one(char **paths)
{
    const struct files_command command = {
        .command = &cmd_convert,
        .result_bytes = sizeof(struct conversion_result),
        .examine = convert_planned_file,
    };
    only_target = paths[1];
    return files_command(&command, &files, 1, paths);
}

static bool is_many(int count, char **paths)
{
    struct stat st;
    return files.paths.recursive || files.paths.list || count > 2 || options.name ||
           options.table || (count == 2 && stat(paths[1], &st) == 0 && S_ISDIR(st.st_mode));
}

static int run_convert(int count, char **paths)
{
    struct limefile_gauge_options *form = &options.form;
    bool many = is_many(count, paths);
    if (!many && count != 2)
        return usage_error(&cmd_convert, "IN and OUT expected");
    if (form->format == LIMEFILE_GAUGE_NONE)
        form->format = parse_suffix(!many ? paths[1] : options.name ? options.name : "");
    if (form->format == LIMEFILE_GAUGE_NONE && many && count == 2 && parse_suffix(paths[1]))
        return usage_error(&cmd_convert,
                           "--name and --table are for many files, but '%s' names one; leave "
                           "them out, or give --to FORMAT and a directory",
                           paths[1]);
    if (form->format == LIMEFILE_GAUGE_NONE && many)
        return usage_error(&cmd_convert, "--to FORMAT expected (nersc, milc, openqcd, ildg)");
    if (form->format == LIMEFILE_GAUGE_NONE)
        return usage_error(&cmd_convert, "%s: the suffix names no format; use --to", paths[1]);
    const char *option = find_unsupported_option(form);
    if (option)
        return usage_error(&cmd_convert, "--%s: not possible in %s files", option,
                           limefile_gauge_format_name(form->format));
    return many ? convert_many(count, paths) : convert_one(paths);
}

const struct command cmd_convert = {
    "convert", "convert a configuration", help, run_convert, rules, ANY_OPERANDS, NULL};
