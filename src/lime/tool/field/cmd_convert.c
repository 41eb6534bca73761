/* cmd_convert.c - lime convert: a gauge configuration into another program's format */
#define _GNU_SOURCE
#include "convertcheck.h"
#include "limeoutput.h"
#include "limephysics.h"
#include "progress.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime convert [OPTION]... IN OUT\n"
    "Write the SU(3) gauge configuration in IN to OUT in another format. IN is a\n"
    "LIME container (ILDG, or QIO's four colour matrices), a volume of a set that\n"
    "QIO has written, or a NERSC, MILC (version 5) or openQCD file; its format is\n"
    "detected. OUT appears, or is replaced, only when all is written, and only if\n"
    "the data of IN have the checksum and plaquette that IN gives for them, and lime\n"
    "can read OUT back.\n"
    "\n"
    "  -f, --force           replace OUT if it exists; never if it is also IN\n"
    "      --to FORMAT       ildg, nersc, milc or openqcd; without it the suffix of\n"
    "                        OUT: .ildg .lime .nersc .milc .openqcd\n"
    "      --precision BITS  32 or 64; without it that of IN, or the only one that\n"
    "                        the format has (milc 32, openqcd 64)\n"
    "      --rows ROWS       2: leave out the third row of each link, 3: keep it\n"
    "                        (the default); 2 for nersc only\n"
    "      --record RECORD   which record of a container with several\n"
    "      --ignore-checksum convert IN although the data do not have the checksum\n"
    "                        or plaquette that IN gives, or although a MILC header\n"
    "                        has no sum (both are 0); the header of IN is not kept\n"
    "      --lfn NAME        ildg: the logical file name; without it that of IN\n"
    "      --ensemble ID     nersc: ENSEMBLE_ID; without it that of IN\n"
    "      --label TEXT      nersc: ENSEMBLE_LABEL; without it that of IN\n"
    "      --sequence N      nersc: SEQUENCE_NUMBER; without it that of IN, or 0\n"
    "      --help            this text\n"
    "\n"
    "An option that the format has no place for is wrong usage.\n"
    "\n"
    "Examples:\n"
    "  lime convert conf.0042 conf.0042.nersc\n"
    "  lime convert --to openqcd conf.0042 run1n42\n"
    "  lime convert --lfn lfn://ldg/us/run/conf.0042 l4896f.0042 conf.0042.lime\n"
    "\n"
    "Exit status: 0 done; 1 the data of IN are not what IN says, or OUT could not be\n"
    "written or cannot hold the data; 2 wrong usage, or IN cannot be opened or has\n"
    "no configuration.\n";

struct options {
    struct limefile_gauge_form form;
    const char *record;
    bool force;
    bool ignores_checksum;
};

struct conversion {
    struct gaugefile in;
    struct limefile_gauge_image *image;
    struct limefile_output out;
    const char *out_path;
    struct progress progress;
    uint64_t site_bytes;
};

/* ---- data ---- */

/* The disk begins to write at once, so that little is left to do at the end. */
static int write_data(void *context, const void *data, size_t n, uint64_t offset)
{
    const struct conversion *c = context;
    int err = limefile_fd_write(c->out.fd, data, n, offset);
    if (!err)
        sync_file_range(c->out.fd, (off_t)offset, (off_t)n, SYNC_FILE_RANGE_WRITE);
    return err;
}

/* All at once: block by block, in the order in which threads come to write, costs more than
 * anything else. Where the file system cannot, it is done without. */
static int allocate(struct conversion *c)
{
    uint64_t size = limefile_gauge_image_size(c->image);
    if (fallocate(c->out.fd, 0, 0, (off_t)size) == 0 || errno != ENOSPC)
        return 0;
    limefile_output_abort(&c->out);
    return -ENOSPC;
}

static bool show_progress(void *context, uint64_t sites)
{
    struct conversion *c = context;
    progress_add(&c->progress, sites * c->site_bytes);
    return true;
}

static int write_rest(struct conversion *c, const struct limefile_gauge_totals *totals)
{
    size_t n, tail;
    int err = limefile_gauge_image_seal(c->image, totals);
    if (err)
        return err;
    const unsigned char *header = limefile_gauge_image_header(c->image, &n);
    err = limefile_fd_write(c->out.fd, header, n, 0);
    const unsigned char *trailer = limefile_gauge_image_trailer(c->image, &tail);
    if (!err && tail)
        err = limefile_fd_write(c->out.fd, trailer, tail,
                                n + limefile_gauge_image_data_bytes(c->image));
    return err;
}

static int write_all(struct conversion *c, const struct options *o)
{
    struct limefile_gauge_totals totals;
    struct limefile_gauge_pass pass = {
        .sites = &c->in.gauge->sites,
        .source = c->in.gauge,
        .image = c->image,
        .write = write_data,
        .progress = show_progress,
        .context = c,
        .without_plaquette =
            !c->in.gauge->has_plaquette &&
            (o->form.format == LIMEFILE_GAUGE_MILC || o->form.format == LIMEFILE_GAUGE_ILDG),
    };
    c->site_bytes = limefile_sites_bytes(pass.sites);
    progress_begin(&c->progress, "convert", limefile_sites_count(pass.sites) * c->site_bytes);
    int err = limefile_gauge_run(&pass, &totals);
    progress_end(&c->progress);
    int status = err ? TOOL_GOOD
                     : convert_judge_input(&c->in, c->out_path, &totals, o->form.rows,
                                           o->ignores_checksum);
    if (!err && status == TOOL_GOOD)
        err = write_rest(c, &totals);
    if (!err && status == TOOL_GOOD)
        status = convert_judge_output(c->out.fd, c->out_path, o->form.format, &totals);
    if (!err && status == TOOL_GOOD) {
        err = limefile_output_commit(&c->out);
        if (err)
            message_output(c->out_path, "write", err);
        return err ? TOOL_BAD : TOOL_GOOD;
    }
    if (err == LIMEFILE_E_GAUGE_RANGE)
        convert_refuse(c->out_path, err, &totals);
    else if (err)
        message(c->out_path, "convert '%s': %s", c->in.path, limefile_strerror(err));
    limefile_output_abort(&c->out);
    return TOOL_BAD;
}

/* ---- what the header is to say ---- */

/* NERSC's lines are short, and of ASCII. */
static void tell_changed(const char *path, const char *key, const char *text)
{
    bool plain = true;
    for (const char *at = text; *at; at++)
        plain = plain && *at >= ' ' && *at < 0x7f;
    if (strlen(text) > LIMEFILE_GAUGE_TEXT_MAX)
        message(path, "warning: %s is cut to %d characters", key, LIMEFILE_GAUGE_TEXT_MAX);
    if (!plain)
        message(path, "warning: %s has '?' for what is not printable ASCII", key);
}

static void fill_in(struct limefile_gauge_form *form, const struct limefile_gauge *in,
                    char now[32], const char *type)
{
    time_t t = time(NULL);
    struct tm tm;
    strftime(now, 32, "%a %b %d %H:%M:%S %Y", gmtime_r(&t, &tm));
    form->ensemble_id = form->ensemble_id ? form->ensemble_id : in->ensemble_id;
    form->ensemble_label = form->ensemble_label ? form->ensemble_label : in->ensemble_label;
    form->date = in->date[0] ? in->date : now;
    form->lfn = form->lfn ? form->lfn : in->lfn;
    form->creator = "lime convert";
    if (!form->has_sequence)
        form->sequence = in->sequence;
    form->text_type = type;
}

static int open_output(struct conversion *c, bool force)
{
    size_t count;
    const int *inputs = gaugefile_inputs(&c->in, &count);
    return limefile_output_open(&c->out, c->out_path, force, inputs, count);
}

static int convert(const struct options *asked, const char *in, const char *out)
{
    struct options o = *asked;
    struct conversion c = {.out_path = out};
    char now[32], type[32];
    int status = gaugefile_open(&c.in, in, o.record);
    if (status != TOOL_GOOD)
        return status;
    snprintf(type, sizeof type, "%s-header", limefile_gauge_format_name(c.in.gauge->format));
    fill_in(&o.form, c.in.gauge, now, c.in.gauge->text_type ? c.in.gauge->text_type : type);
    if (!o.ignores_checksum) /* the header may state what the data do not have */
        o.form.text = c.in.gauge->text;
    int err = limefile_gauge_image_new(&c.in.gauge->sites, &o.form, &c.image);
    if (err) {
        message(out, "--to %s: %s", limefile_gauge_format_name(o.form.format),
                limefile_strerror(err));
        gaugefile_close(&c.in);
        return err == LIMEFILE_E_GAUGE_FORM ? TOOL_UNUSABLE : TOOL_BAD;
    }
    if (o.form.format == LIMEFILE_GAUGE_NERSC) {
        tell_changed(out, "ENSEMBLE_ID", o.form.ensemble_id);
        tell_changed(out, "ENSEMBLE_LABEL", o.form.ensemble_label);
    }
    err = open_output(&c, o.force);
    if (!err)
        err = allocate(&c);
    if (err)
        message_output(out, "create", err);
    status = err ? TOOL_BAD : write_all(&c, &o);
    limefile_gauge_image_free(c.image);
    gaugefile_close(&c.in);
    return status;
}

/* ---- options ---- */

static enum limefile_gauge_format format_of_suffix(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    if (!dot)
        return LIMEFILE_GAUGE_NONE;
    return strcmp(dot, ".lime") == 0 ? LIMEFILE_GAUGE_ILDG
                                     : limefile_gauge_format_named(dot + 1);
}

static bool take_number(const char *text, uint64_t one, uint64_t other, unsigned *out)
{
    uint64_t value;
    if (!number_parse(text, strlen(text), &value) || (value != one && value != other))
        return false;
    *out = (unsigned)value;
    return true;
}

static int take_option(struct options *o, int opt, char **argv)
{
    static const struct {
        int opt;
        const char *option, *noun, *expected;
    } values[] = {
        {'t', "--to", "format", "nersc, milc, openqcd, ildg"},
        {'p', "--precision", NULL, "32, 64"},
        {'r', "--rows", NULL, "2, 3"},
        {'s', "--sequence", NULL, "a number"},
        {'n', "--lfn", NULL, "a name without control characters"},
    };
    struct limefile_gauge_form *form = &o->form;
    char lfn[LIMEFILE_LFN_MAX];
    bool good = true;
    size_t i = 0;
    if (opt == 't')
        good = (form->format = limefile_gauge_format_named(optarg)) != LIMEFILE_GAUGE_NONE;
    else if (opt == 'p')
        good = take_number(optarg, 32, 64, &form->precision);
    else if (opt == 'r')
        good = take_number(optarg, 2, 3, &form->rows);
    else if (opt == 's')
        good = form->has_sequence = number_parse(optarg, strlen(optarg), &form->sequence) &&
                                    form->sequence <= INT64_MAX;
    else if (opt == 'n')
        good = limefile_lfn_parse(form->lfn = optarg, strlen(optarg), lfn) == 0;
    else if (opt == 'R')
        o->record = optarg;
    else if (opt == 'f')
        o->force = true;
    else if (opt == 'i')
        o->ignores_checksum = true;
    else if (opt == 'e')
        form->ensemble_id = optarg;
    else if (opt == 'l')
        form->ensemble_label = optarg;
    else
        return option_error(&cmd_convert, argv);
    if (good)
        return TOOL_GOOD;
    while (values[i].opt != opt)
        i++;
    return value_error(&cmd_convert, values[i].option, values[i].noun, optarg,
                       values[i].expected);
}

/* An option that the format has no place for; NULL: there is none. */
static const char *misplaced(const struct limefile_gauge_form *form)
{
    bool nersc = form->format == LIMEFILE_GAUGE_NERSC;
    return form->lfn && form->format != LIMEFILE_GAUGE_ILDG ? "lfn"
           : form->ensemble_id && !nersc                    ? "ensemble"
           : form->ensemble_label && !nersc                 ? "label"
           : form->has_sequence && !nersc                   ? "sequence"
                                                            : NULL;
}

static int run(int argc, char **argv)
{
    static const struct option longs[] = {
        {"to", required_argument, NULL, 't'},    {"precision", required_argument, NULL, 'p'},
        {"rows", required_argument, NULL, 'r'},  {"record", required_argument, NULL, 'R'},
        {"lfn", required_argument, NULL, 'n'},   {"ensemble", required_argument, NULL, 'e'},
        {"label", required_argument, NULL, 'l'}, {"sequence", required_argument, NULL, 's'},
        {"force", no_argument, NULL, 'f'},       {"ignore-checksum", no_argument, NULL, 'i'},
        {"help", no_argument, NULL, 'H'},        {NULL, 0, NULL, 0},
    };
    struct options o = {0};
    int status = TOOL_GOOD;
    for (int opt; !status && (opt = read_option(argc, argv, "f", longs, NULL)) != -1;) {
        if (opt == 'H')
            return print_help(&cmd_convert);
        status = take_option(&o, opt, argv);
    }
    if (status)
        return status;
    if (argc - optind != 2)
        return usage_error(&cmd_convert, "IN and OUT expected");
    const char *out = argv[optind + 1];
    if (o.form.format == LIMEFILE_GAUGE_NONE)
        o.form.format = format_of_suffix(out);
    if (o.form.format == LIMEFILE_GAUGE_NONE)
        return usage_error(&cmd_convert, "%s: no suffix that names a format; use --to", out);
    const char *option = misplaced(&o.form);
    if (option)
        return usage_error(&cmd_convert, "--%s: %s files have no place for it", option,
                           limefile_gauge_format_name(o.form.format));
    return convert(&o, argv[optind], out);
}

const struct command cmd_convert = {"convert", "a configuration in another program's format",
                                    help, run};
