/* cmd_checksum.c - lime checksum: SciDAC checksums computed, compared, and added */
#define _GNU_SOURCE
#include "checksumitem.h"
#include "checksumoptions.h"
#include "checksumput.h"
#include "jsonout.h"
#include "progress.h"
#include "select.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: lime checksum [--json] [-j N] [--site-bytes N | --lattice LxLxLxT] FILE\n"
    "                     [RECORD]...\n"
    "       lime checksum --add [--replace] [OPTION]... FILE [RECORD]...\n"
    "       lime checksum --cksum [--json] [-j N] FILE [RECORD]...\n"
    "Compute the SciDAC checksums of records: of all ildg-binary-data and\n"
    "scidac-binary-data, or of those named. A line is\n"
    "\n"
    "  suma sumb STATE ORDINAL TYPE\n"
    "\n"
    "where STATE says how that compares with the checksum in the file: 'good',\n"
    "'bad', or 'unverified' if there is none.\n"
    "\n"
    "      --cksum         instead, what cksum(1) prints of the data, as QCDml's\n"
    "                      crcCheckSum has it: a line is 'CKSUM BYTES ORDINAL TYPE'\n"
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
    "  lime checksum --cksum conf.0042\n"
    "  lime checksum --site-bytes 576 conf.0042 links\n"
    "\n"
    "Exit status: 0 all sums are computed, and good; 3 there is none to compare one\n"
    "with; 1 a sum is bad, or could not be computed or added; 2 wrong usage, or FILE\n"
    "cannot be read or is not a container. --cksum and --add compare nothing: 0.\n";

/* ---- which records ---- */

/* Sites as the options say, or as the file does. */
static void apply(const struct checksum_options *o, struct limefile_field *f)
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

/* The field, or a record that is none, as the options say. False: there is no such record. */
static bool look_at(const struct checksum_options *o, const struct container *c,
                    const struct limefile_fields *fields, uint64_t ordinal,
                    struct limefile_field *out)
{
    if (!limefile_fields_of(fields, ordinal, out)) {
        *out = (struct limefile_field){.kind = LIMEFILE_KIND_UNKNOWN};
        if (limefile_index_get(c->index, ordinal, &out->record) != 0)
            return false;
    }
    apply(o, out);
    return true;
}

static int take(const struct checksum_options *o, const struct container *c,
                const struct limefile_fields *fields, uint64_t ordinal, struct sum_items *items)
{
    struct limefile_field field;
    int err = look_at(o, c, fields, ordinal, &field) ? sum_items_add(items, &field)
                                                     : LIMEFILE_E_NO_RECORD;
    if (err)
        message_code(c->path, "checksum", err);
    return err ? TOOL_BAD : TOOL_GOOD;
}

static int select_items(const struct checksum_options *o, const struct container *c,
                        const struct limefile_fields *fields, struct sum_items *items)
{
    struct limefile_record record;
    struct limefile_field field;
    int status = TOOL_GOOD;
    for (size_t i = 0; !status && i < o->word_count; i++)
        status = select_record(c, o->words[i], false, &record)
                     ? take(o, c, fields, record.ordinal, items)
                     : TOOL_BAD;
    for (size_t i = 0; !status && !o->word_count && i < fields->count; i++) {
        limefile_fields_get(fields, i, &field);
        status = take(o, c, fields, field.record.ordinal, items);
    }
    if (!status && items->count == 0) {
        message(c->path, "no record is ildg-binary-data or scidac-binary-data; name one%s",
                o->cksum ? "" : ", and the size of its sites (--site-bytes)");
        status = TOOL_BAD;
    }
    return status;
}

/* ---- sums ---- */

static bool can_be_summed(const struct checksum_options *o, const struct container *c,
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

/* 1: one of the ways to read data of a wrong length gives the checksum in the file; the field
 * is read that way then. */
static int sum_as_stored(const struct checksum_options *o, const struct container *c,
                         struct limefile_field *f, struct limefile_checksum *sum,
                         struct progress *progress)
{
    struct limefile_field as;
    if (!f->has_checksum || limefile_field_is_summable(f) || o->site_bytes || o->sites)
        return 0;
    int right = limefile_field_verify(c->fd, f, o->threads, count_bytes, progress, &as, sum);
    if (right == 1)
        *f = as;
    return right == LIMEFILE_E_STATE ? 0 : right;
}

/* In one way or the other; an exit status, after a message if it is not GOOD. */
static int take_sum(const struct checksum_options *o, const struct container *c,
                    struct limefile_field *f, struct limefile_checksum *sum,
                    struct progress *progress)
{
    int err = sum_as_stored(o, c, f, sum, progress);
    if (err == 1)
        return TOOL_GOOD;
    if (!err && !can_be_summed(o, c, f))
        return TOOL_BAD;
    if (!err)
        err = limefile_field_sum(c->fd, f, o->threads, count_bytes, progress, sum);
    if (err)
        message(c->path, "record %" PRIu64 ": read: %s", f->record.ordinal,
                limefile_strerror(err));
    return err ? TOOL_UNUSABLE : TOOL_GOOD;
}

/* The state of a record whose sum take_sum() has given, or has failed to give. */
static enum sum_state judge(const struct sum_item *item, const struct limefile_field *f,
                            int status)
{
    if (status != TOOL_GOOD)
        return status == TOOL_UNUSABLE     ? SUM_UNREADABLE
               : limefile_field_why_bad(f) ? SUM_BAD
                                           : SUM_UNVERIFIED;
    if (!f->by_checksum)
        return SUM_UNVERIFIED;
    return f->has_checksum && limefile_field_matches(f, &item->sum) ? SUM_GOOD : SUM_BAD;
}

static int sum_one(const struct checksum_options *o, const struct container *c,
                   struct sum_item *item, struct limefile_field *f, struct progress *progress)
{
    int status = take_sum(o, c, f, &item->sum, progress);
    sum_item_set(item, f);
    item->summed = status == TOOL_GOOD;
    item->state = judge(item, f, status);
    if (status != TOOL_GOOD)
        return status;
    return item->state == SUM_BAD          ? TOOL_BAD
           : item->state == SUM_UNVERIFIED ? TOOL_UNVERIFIED
                                           : TOOL_GOOD;
}

/* The bytes alone, whatever they mean. */
static int cksum_one(const struct checksum_options *o, const struct container *c,
                     struct sum_item *item, struct limefile_field *f, struct progress *progress)
{
    int err = limefile_record_cksum(c->fd, &f->record, o->threads, count_bytes, progress,
                                    &item->cksum);
    if (err)
        message(c->path, "record %" PRIu64 ": read: %s", f->record.ordinal,
                limefile_strerror(err));
    else
        item->state = SUM_CKSUM;
    return err ? TOOL_UNUSABLE : TOOL_GOOD;
}

/* Where there is nothing else to print. */
static int json_failure(const struct checksum_options *o, int status)
{
    if (!o->json)
        return status;
    fputs("{\"file\": ", stdout);
    jsonout_text(stdout, o->path, strlen(o->path));
    puts(", \"error\": \"no checksum could be computed\", \"records\": []}");
    return status;
}

/* ---- without --add ---- */

static int sum_all(const struct checksum_options *o, const struct container *c,
                   const struct limefile_fields *fields, struct sum_items *items)
{
    struct progress progress;
    int worst = TOOL_GOOD;
    progress_begin(&progress, "checksum", items->bytes);
    for (size_t i = 0; i < items->count; i++) {
        struct limefile_field field;
        struct sum_item *item = &items->item[i];
        int status = TOOL_BAD;
        if (look_at(o, c, fields, item->ordinal, &field))
            status = (o->cksum ? cksum_one : sum_one)(o, c, item, &field, &progress);
        worst = worse_status(worst, status);
    }
    progress_end(&progress);
    sum_items_print(items, o->path, o->json);
    return worst;
}

static int understand(struct container *c, struct limefile_fields *fields)
{
    int err = limefile_fields_build(&c->file.source, c->index, fields);
    if (err)
        message_code(c->path, "checksum", err);
    return err ? TOOL_UNUSABLE : TOOL_GOOD;
}

static int print_sums(const struct checksum_options *o)
{
    struct container c;
    struct limefile_fields fields;
    struct sum_items items = {.count = 0};
    int status = container_open(&c, o->path);
    if (status != TOOL_GOOD)
        return json_failure(o, status);
    status = container_fault_message(&c);
    if (understand(&c, &fields) == TOOL_GOOD) {
        int done = select_items(o, &c, &fields, &items);
        done = done == TOOL_GOOD ? sum_all(o, &c, &fields, &items) : json_failure(o, done);
        status = worse_status(done, status);
        limefile_fields_release(&fields);
    } else {
        status = json_failure(o, TOOL_UNUSABLE);
    }
    sum_items_release(&items);
    container_close(&c);
    return status;
}

/* ---- with --add ---- */

static int refuse(const struct container *c, const struct sum_item *item)
{
    message(c->path,
            "record %" PRIu32 ": record %" PRIu32
            " says another checksum, so perhaps the data are "
            "wrong; --replace makes it say that of these data",
            item->ordinal, item->by_checksum);
    return TOOL_BAD;
}

/* What readers would compare with another sum of the same data. */
static bool contradicts(const struct checksum_options *o, const struct edit *edit,
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

static int put(const struct checksum_options *o, struct edit *edit,
               const struct limefile_fields *fields, const struct limefile_field *f,
               struct sum_item *item)
{
    if (item->state == SUM_GOOD)
        return TOOL_GOOD;
    if (f->by_checksum && !o->replace)
        return refuse(&edit->c, item);
    int status = f->by_checksum ? checksum_replace(edit, f->by_checksum, &item->sum)
                                : checksum_add(edit, fields, f, &item->sum);
    if (status == TOOL_GOOD) {
        item->action = f->by_checksum ? SUM_REPLACED : SUM_ADDED;
        item->state = SUM_GOOD;
    }
    return status;
}

/* The record may be another one by now: between two of them the container is not locked. */
static bool is_still(const struct edit *edit, const struct sum_item *item)
{
    struct limefile_record now;
    if (limefile_index_get(edit->c.index, item->ordinal, &now) == 0 &&
        now.data_offset == item->data_offset && now.bytes == item->bytes)
        return true;
    message(edit->c.path, "checksum: another process has changed the container meanwhile");
    return false;
}

static int add_in(const struct checksum_options *o, struct edit *edit, struct sum_item *item,
                  struct progress *progress)
{
    struct limefile_fields fields;
    struct limefile_field f;
    if (!is_still(edit, item) || understand(&edit->c, &fields) != TOOL_GOOD)
        return TOOL_BAD;
    int status = TOOL_BAD;
    if (!limefile_fields_of(&fields, item->ordinal, &f)) {
        message(edit->c.path,
                "record %" PRIu32 ": neither ildg-binary-data nor scidac-binary-data; a "
                "checksum would not be taken for its own",
                item->ordinal);
    } else if (!contradicts(o, edit, &f)) {
        apply(o, &f);
        sum_one(o, &edit->c, item, &f, progress);
        progress_hide();
        if (item->summed)
            status = put(o, edit, &fields, &f, item);
    }
    limefile_fields_release(&fields);
    return status;
}

static int add_one(const struct checksum_options *o, struct sum_item *item,
                   struct progress *progress)
{
    struct edit edit;
    int status = edit_open(&edit, o->path);
    if (status != TOOL_GOOD)
        return status;
    status = add_in(o, &edit, item, progress);
    edit_close(&edit);
    return status;
}

/* The last one first, as those behind an inserted record are counted anew. */
static int add_all(const struct checksum_options *o, struct sum_items *items)
{
    struct progress progress;
    int worst = TOOL_GOOD;
    sum_items_sort(items);
    progress_begin(&progress, "checksum", items->bytes);
    for (size_t i = items->count; i-- > 0;) {
        int status = add_one(o, &items->item[i], &progress);
        worst = worse_status(status, worst);
    }
    progress_end(&progress);
    sum_items_print(items, o->path, o->json);
    return worst;
}

/* What to add; the container is closed again, as each edit opens it. */
static int select_from_file(const struct checksum_options *o, struct sum_items *items)
{
    struct container c;
    struct limefile_fields fields;
    int status = container_open(&c, o->path);
    if (status != TOOL_GOOD)
        return status;
    status = understand(&c, &fields);
    if (status == TOOL_GOOD) {
        status = select_items(o, &c, &fields, items);
        if (status != TOOL_GOOD)
            container_fault_message(&c); /* the data are behind it, perhaps */
        limefile_fields_release(&fields);
    }
    container_close(&c);
    return status;
}

static int add_sums(const struct checksum_options *o)
{
    struct sum_items items = {.count = 0};
    int status = select_from_file(o, &items);
    status = status == TOOL_GOOD ? add_all(o, &items) : json_failure(o, status);
    sum_items_release(&items);
    return status;
}

static int run(int argc, char **argv)
{
    struct checksum_options o = {.path = NULL};
    int status = checksum_options_parse(&o, argc, argv);
    if (status || o.help)
        return status ? status : print_help(&cmd_checksum);
    return o.add ? add_sums(&o) : print_sums(&o);
}

const struct command cmd_checksum = {
    "checksum", "SciDAC checksums, cksum: compute, compare, add", help, run};
