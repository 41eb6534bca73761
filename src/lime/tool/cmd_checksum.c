/* cmd_checksum.c - lime checksum: SciDAC checksums computed, compared, and added */
#define _GNU_SOURCE
#include "checksumput.h"
#include "jsonout.h"
#include "progress.h"
#include "select.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: lime checksum [--json] [-j N] [--site-bytes N | --lattice LxLxLxT] FILE\n"
    "                     [RECORD]...\n"
    "       lime checksum --add [--replace] [OPTION]... FILE [RECORD]...\n"
    "Compute the SciDAC checksums of records: of all ildg-binary-data and\n"
    "scidac-binary-data, or of those named. A line is\n"
    "\n"
    "  suma sumb STATE ORDINAL TYPE\n"
    "\n"
    "where STATE says how that compares with the checksum in the file: 'ok', 'bad',\n"
    "or 'none', if there is none.\n"
    "\n"
    "      --add           writes a scidac-checksum record where there is none\n"
    "      --replace       with --add: and the right one where there is a wrong one\n"
    "      --site-bytes N  a site has N bytes, whatever the file says\n"
    "      --lattice DIMS  it has so many sites, whatever the file says: 32x32x32x64\n"
    "  -j, --threads N     processors to use; all of them without it\n"
    "      --json          for scripts: all of it, as JSON\n"
    "      --help          this text\n"
    "\n"
    "The new record is appended where its data are in the last message. Elsewhere\n"
    "FILE is written anew beside itself and then replaced, so there must be room for\n"
    "it twice.\n"
    "\n"
    "Examples:\n"
    "  lime checksum conf.0042\n"
    "  lime checksum --add conf.0042\n"
    "  lime checksum --site-bytes 576 conf.0042 links\n"
    "\n"
    "Exit status: 0 all sums are computed, and none is bad; 1 a sum is bad, or could\n"
    "not be computed or added; 2 wrong usage, or FILE cannot be opened or is no\n"
    "container.\n";

struct options {
    bool json, add, replace, help;
    unsigned threads;
    uint64_t site_bytes, sites; /* 0: as the file says */
    const char *path;
    char **words;
    size_t word_count;
};

/* A record that is wanted. */
struct item {
    struct limefile_field field; /* with what the options say */
    struct limefile_checksum sum;
    const char *state;  /* "ok", "bad", "none", or "failed", after a message */
    const char *action; /* NULL, "added", "replaced" */
};

struct items {
    struct item *item;
    size_t count;
    uint64_t bytes;
};

/* ---- which records ---- */

/* Sites as the options say, or as the file does. */
static void apply(const struct options *o, struct limefile_field *f)
{
    uint64_t bytes = f->record.bytes, by = o->site_bytes ? o->site_bytes : o->sites;
    if (!by)
        return;
    f->boxed = false;
    f->sites = f->site_bytes = 0;
    if (bytes == 0 || bytes % by)
        return;
    f->site_bytes = o->site_bytes ? by : bytes / by;
    f->sites = o->site_bytes ? bytes / by : by;
}

static void take(const struct options *o, struct items *items, const struct limefile_field *f)
{
    struct item *item = &items->item[items->count++];
    *item = (struct item){.field = *f, .state = "failed"};
    apply(o, &item->field);
    items->bytes += f->record.bytes;
}

static bool take_words(const struct options *o, const struct container *c,
                       const struct limefile_fields *fields, struct items *items)
{
    struct limefile_record record;
    for (size_t i = 0; i < o->word_count; i++) {
        if (!select_record(c, o->words[i], false, &record))
            return false;
        const struct limefile_field *f = limefile_fields_of(fields, record.ordinal);
        take(o, items, f ? f : &(struct limefile_field){.record = record});
    }
    return true;
}

static int select_items(const struct options *o, const struct container *c,
                        const struct limefile_fields *fields, struct items *items)
{
    size_t most = o->word_count ? o->word_count : fields->count;
    *items = (struct items){.item = calloc(most + 1, sizeof *items->item)};
    if (!items->item) {
        message_code(c->path, "checksum", -ENOMEM);
        return TOOL_BAD;
    }
    if (o->word_count)
        return take_words(o, c, fields, items) ? TOOL_GOOD : TOOL_BAD;
    for (size_t i = 0; i < fields->count; i++)
        take(o, items, &fields->field[i]);
    if (fields->count == 0) {
        message(c->path, "no record is ildg-binary-data or scidac-binary-data; name one, and "
                         "the size of its sites (--site-bytes)");
        return TOOL_BAD;
    }
    return TOOL_GOOD;
}

/* ---- sums ---- */

static bool can_be_summed(const struct options *o, const struct container *c,
                          const struct limefile_field *f)
{
    if (limefile_field_is_summable(f))
        return true;
    if (o->site_bytes || o->sites)
        message(c->path,
                "record %" PRIu64 ": its %" PRIu64 " bytes are no multiple of %" PRIu64,
                f->record.ordinal, f->record.bytes, o->site_bytes ? o->site_bytes : o->sites);
    else if (f->expected && f->expected != f->record.bytes)
        message(c->path,
                "record %" PRIu64 ": it has %" PRIu64 " bytes, but should have %" PRIu64
                "; --site-bytes sums it all the same",
                f->record.ordinal, f->record.bytes, f->expected);
    else if (f->site_bytes && f->record.bytes % f->site_bytes == 0)
        message(c->path,
                "record %" PRIu64 ": which sites of the lattice it has is not known; "
                "--site-bytes sums it as the first ones",
                f->record.ordinal);
    else if (f->site_bytes)
        message(c->path,
                "record %" PRIu64 ": its %" PRIu64 " bytes are no multiple of %" PRIu64,
                f->record.ordinal, f->record.bytes, f->site_bytes);
    else
        message(c->path,
                "record %" PRIu64 ": the size of a site is not known; --site-bytes gives it",
                f->record.ordinal);
    return false;
}

static bool count_bytes(void *context, uint64_t more)
{
    progress_add(context, more);
    return true;
}

static bool same(const struct limefile_checksum *a, const struct limefile_checksum *b)
{
    return a->suma == b->suma && a->sumb == b->sumb;
}

/* 1: one of the ways to read data of a wrong length gives the checksum in the file. */
static int sum_as_stored(const struct options *o, const struct container *c, struct item *item,
                         struct progress *progress)
{
    struct limefile_field as, *f = &item->field;
    if (!f->has_checksum || limefile_field_is_summable(f) || o->site_bytes || o->sites)
        return 0;
    int right =
        limefile_field_verify(c->fd, f, o->threads, count_bytes, progress, &as, &item->sum);
    if (right == 1)
        *f = as;
    return right == LIMEFILE_E_STATE ? 0 : right;
}

static int sum_one(const struct options *o, const struct container *c, struct item *item,
                   struct progress *progress)
{
    struct limefile_field *f = &item->field;
    int err = sum_as_stored(o, c, item, progress);
    if (err == 1) {
        item->state = "ok";
        return TOOL_GOOD;
    }
    if (!err && !can_be_summed(o, c, f))
        return TOOL_BAD;
    if (!err)
        err = limefile_field_sum(c->fd, f, o->threads, count_bytes, progress, &item->sum);
    if (err) {
        message(c->path, "record %" PRIu64 ": read: %s", f->record.ordinal,
                limefile_strerror(err));
        return TOOL_BAD;
    }
    item->state = !f->by_checksum                                     ? "none"
                  : f->has_checksum && same(&item->sum, &f->checksum) ? "ok"
                                                                      : "bad";
    return strcmp(item->state, "bad") == 0 ? TOOL_BAD : TOOL_GOOD;
}

/* ---- the answer ---- */

static void print_item(const struct item *item)
{
    const struct limefile_field *f = &item->field;
    char shown[TYPE_SHOWN_MAX], more[96] = "";
    bool bad = strcmp(item->state, "bad") == 0;
    if (strcmp(item->state, "failed") == 0)
        return;
    if (item->action)
        snprintf(more, sizeof more, "  (%s)", item->action);
    else if (bad && f->has_checksum)
        snprintf(more, sizeof more, "  (record %" PRIu64 " says %08x %08x)", f->by_checksum,
                 f->checksum.suma, f->checksum.sumb);
    else if (bad)
        snprintf(more, sizeof more, "  (record %" PRIu64 " cannot be understood)",
                 f->by_checksum);
    answer(NULL, "%08x %08x %-4s %" PRIu64 " %s%s", item->sum.suma, item->sum.sumb, item->state,
           f->record.ordinal, type_shown(f->record.type, f->record.type_len, shown), more);
}

/* Where there is nothing else to print. */
static int json_failure(const struct options *o, int status)
{
    if (!o->json)
        return status;
    fputs("{\"file\": ", stdout);
    jsonout_text(stdout, o->path, strlen(o->path));
    puts(", \"error\": \"no checksum could be computed\", \"records\": []}");
    return status;
}

static void print_item_json(const struct item *item)
{
    const struct limefile_field *f = &item->field;
    printf("{\"ordinal\": %" PRIu64 ", \"type\": ", f->record.ordinal);
    jsonout_text(stdout, f->record.type, f->record.type_len);
    printf(", \"bytes\": %" PRIu64 ", \"sites\": %" PRIu64 ", \"site_bytes\": %" PRIu64
           ", \"state\": \"%s\"",
           f->record.bytes, f->sites, f->site_bytes, item->state);
    if (strcmp(item->state, "failed") != 0)
        printf(", \"suma\": \"%08x\", \"sumb\": \"%08x\"", item->sum.suma, item->sum.sumb);
    if (f->has_checksum)
        printf(", \"stored\": {\"ordinal\": %" PRIu64
               ", \"suma\": \"%08x\", \"sumb\": \"%08x\"}",
               f->by_checksum, f->checksum.suma, f->checksum.sumb);
    if (item->action)
        printf(", \"action\": \"%s\"", item->action);
    putchar('}');
}

static void print_all(const struct options *o, const struct items *items)
{
    if (o->json) {
        fputs("{\"file\": ", stdout);
        jsonout_text(stdout, o->path, strlen(o->path));
        fputs(", \"records\": [", stdout);
    }
    for (size_t i = 0; i < items->count; i++) {
        if (o->json) {
            fputs(i ? ",\n " : "\n ", stdout);
            print_item_json(&items->item[i]);
        } else {
            print_item(&items->item[i]);
        }
    }
    if (o->json)
        fputs("]}\n", stdout);
}

/* ---- without --add ---- */

static int sum_all(const struct options *o, const struct container *c, struct items *items)
{
    struct progress progress;
    int worst = TOOL_GOOD;
    progress_begin(&progress, "checksum", items->bytes);
    for (size_t i = 0; i < items->count; i++)
        if (sum_one(o, c, &items->item[i], &progress) != TOOL_GOOD)
            worst = TOOL_BAD;
    progress_end(&progress);
    print_all(o, items);
    return worst;
}

static int understand(struct container *c, struct limefile_fields *fields)
{
    int err = limefile_fields_build(&c->file.source, c->index, NULL, NULL, fields);
    if (err)
        message_code(c->path, "checksum", err);
    return err ? TOOL_BAD : TOOL_GOOD;
}

static int print_sums(const struct options *o)
{
    struct container c;
    struct limefile_fields fields;
    struct items items = {.count = 0};
    int status = container_open(&c, o->path);
    if (status != TOOL_GOOD)
        return json_failure(o, status);
    status = container_fault_message(&c);
    if (understand(&c, &fields) == TOOL_GOOD) {
        int done = select_items(o, &c, &fields, &items);
        done = done == TOOL_GOOD ? sum_all(o, &c, &items) : json_failure(o, done);
        status = done > status ? done : status;
        free(items.item);
        limefile_fields_release(&fields);
    } else {
        status = json_failure(o, TOOL_BAD);
    }
    container_close(&c);
    return status;
}

/* ---- with --add ---- */

static int refuse(const struct container *c, const struct item *item)
{
    message(c->path,
            "record %" PRIu64 ": record %" PRIu64
            " says another checksum, so perhaps the data are "
            "wrong; --replace makes it say that of these data",
            item->field.record.ordinal, item->field.by_checksum);
    return TOOL_BAD;
}

/* What readers would compare with another sum of the same data. */
static bool contradicts(const struct options *o, const struct edit *edit,
                        const struct limefile_field *said)
{
    struct limefile_field told = *said;
    apply(o, &told);
    if (!limefile_field_is_summable(said) ||
        (told.site_bytes == said->site_bytes && told.boxed == said->boxed))
        return false;
    message(edit->c.path,
            "record %" PRIu64 ": a site has %" PRIu64
            " bytes, says the file; its readers would "
            "find the checksum of other sites wrong",
            said->record.ordinal, said->site_bytes);
    return true;
}

static int put(const struct options *o, struct edit *edit, const struct limefile_fields *fields,
               struct item *item)
{
    const struct limefile_field *f = &item->field;
    if (strcmp(item->state, "ok") == 0)
        return TOOL_GOOD;
    if (f->by_checksum && !o->replace)
        return refuse(&edit->c, item);
    int status = f->by_checksum ? checksum_replace(edit, f->by_checksum, &item->sum)
                                : checksum_add(edit, fields, f, &item->sum);
    if (status == TOOL_GOOD)
        item->action = f->by_checksum ? "replaced" : "added";
    return status;
}

/* The record may be another one by now: between two of them the container is not locked. */
static bool is_still(const struct edit *edit, const struct limefile_record *record)
{
    struct limefile_record now;
    if (limefile_index_get(edit->c.index, record->ordinal, &now) == 0 &&
        now.data_offset == record->data_offset && now.bytes == record->bytes)
        return true;
    message(edit->c.path, "checksum: another process has changed the container meanwhile");
    return false;
}

static int add_in(const struct options *o, struct edit *edit, struct item *item,
                  struct progress *progress)
{
    struct limefile_fields fields;
    if (!is_still(edit, &item->field.record) || understand(&edit->c, &fields) != TOOL_GOOD)
        return TOOL_BAD;
    const struct limefile_field *f = limefile_fields_of(&fields, item->field.record.ordinal);
    int status = TOOL_BAD;
    if (f && !contradicts(o, edit, f)) {
        const char *type = item->field.record.type;
        item->field = *f;
        apply(o, &item->field);
        sum_one(o, &edit->c, item, progress);
        progress_hide();
        if (strcmp(item->state, "failed") != 0)
            status = put(o, edit, &fields, item);
        item->field.record.type = type;
    } else if (!f) {
        message(edit->c.path,
                "record %" PRIu64 ": neither ildg-binary-data nor scidac-binary-data; a "
                "checksum would not be taken for its own",
                item->field.record.ordinal);
    }
    limefile_fields_release(&fields);
    return status;
}

static int add_one(const struct options *o, struct item *item, struct progress *progress)
{
    struct edit edit;
    int status = edit_open(&edit, o->path);
    if (status != TOOL_GOOD)
        return status;
    status = add_in(o, &edit, item, progress);
    edit_close(&edit);
    return status;
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return (x->field.record.ordinal > y->field.record.ordinal) -
           (x->field.record.ordinal < y->field.record.ordinal);
}

/* The last one first, as those behind an inserted record are counted anew. */
static int add_all(const struct options *o, struct items *items)
{
    struct progress progress;
    int worst = TOOL_GOOD;
    qsort(items->item, items->count, sizeof *items->item, compare_items);
    progress_begin(&progress, "checksum", items->bytes);
    for (size_t i = items->count; i-- > 0;) {
        int status = add_one(o, &items->item[i], &progress);
        worst = status > worst ? status : worst;
    }
    progress_end(&progress);
    print_all(o, items);
    return worst;
}

/* `c` stays open for its index, which holds the types. */
static int add_sums(const struct options *o)
{
    struct container c;
    struct limefile_fields fields;
    struct items items = {.count = 0};
    int status = container_open(&c, o->path);
    if (status != TOOL_GOOD)
        return json_failure(o, status);
    status = understand(&c, &fields);
    if (status == TOOL_GOOD) {
        status = select_items(o, &c, &fields, &items);
        if (status != TOOL_GOOD)
            container_fault_message(&c); /* the data are behind it, perhaps */
        status = status == TOOL_GOOD ? add_all(o, &items) : json_failure(o, status);
        free(items.item);
        limefile_fields_release(&fields);
    } else {
        json_failure(o, status);
    }
    container_close(&c);
    return status;
}

/* ---- the command line ---- */

enum { OPT_JSON = 256, OPT_ADD, OPT_REPLACE, OPT_SITE, OPT_LATTICE, OPT_HELP };

static bool parse_number(const char *text, uint64_t *out)
{
    return number_parse(text, strlen(text), out) && *out > 0;
}

/* "32x32x32x64" */
static bool parse_lattice(const char *text, uint64_t *sites)
{
    *sites = 1;
    for (;;) {
        size_t n = strcspn(text, "x");
        uint64_t extent;
        if (!number_parse(text, n, &extent) || extent == 0 ||
            __builtin_mul_overflow(*sites, extent, sites))
            return false;
        if (!text[n])
            return true;
        text += n + 1;
    }
}

static int take_option(struct options *o, int opt, char **argv)
{
    uint64_t n;
    switch (opt) {
    case OPT_JSON:
        o->json = true;
        return TOOL_GOOD;
    case OPT_ADD:
        o->add = true;
        return TOOL_GOOD;
    case OPT_REPLACE:
        o->replace = true;
        return TOOL_GOOD;
    case OPT_SITE:
        if (!parse_number(optarg, &o->site_bytes))
            return usage_error(&cmd_checksum, "--site-bytes %s: not a number of bytes", optarg);
        return TOOL_GOOD;
    case OPT_LATTICE:
        if (!parse_lattice(optarg, &o->sites))
            return usage_error(&cmd_checksum, "--lattice %s: not like 32x32x32x64", optarg);
        return TOOL_GOOD;
    case 'j':
        if (!parse_number(optarg, &n) || n > UINT16_MAX)
            return usage_error(&cmd_checksum, "-j %s: not a number of processors", optarg);
        o->threads = (unsigned)n;
        return TOOL_GOOD;
    case OPT_HELP:
        o->help = true;
        return TOOL_GOOD;
    default:
        return option_error(&cmd_checksum, argv);
    }
}

static int parse(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        {"json", no_argument, NULL, OPT_JSON},
        {"add", no_argument, NULL, OPT_ADD},
        {"replace", no_argument, NULL, OPT_REPLACE},
        {"site-bytes", required_argument, NULL, OPT_SITE},
        {"lattice", required_argument, NULL, OPT_LATTICE},
        {"threads", required_argument, NULL, 'j'},
        {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0},
    };
    int status = TOOL_GOOD;
    for (int opt; !status && (opt = getopt_long(argc, argv, "j:", longs, NULL)) != -1;)
        status = take_option(o, opt, argv);
    if (status || o->help)
        return status;
    if (optind == argc)
        return usage_error(&cmd_checksum, "no file named");
    if (o->replace && !o->add)
        return usage_error(&cmd_checksum, "--replace goes with --add");
    if (o->site_bytes && o->sites)
        return usage_error(&cmd_checksum, "--site-bytes or --lattice, not both");
    o->path = argv[optind];
    o->words = argv + optind + 1;
    o->word_count = (size_t)(argc - optind - 1);
    return TOOL_GOOD;
}

static int run(int argc, char **argv)
{
    struct options o = {.path = NULL};
    int status = parse(&o, argc, argv);
    if (status || o.help)
        return status ? status : print_help(&cmd_checksum);
    return o.add ? add_sums(&o) : print_sums(&o);
}

const struct command cmd_checksum = {"checksum", "SciDAC checksums: compute, compare, add",
                                     help, run};
