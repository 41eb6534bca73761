/* repair_headers.c - repair header and padding deviations without changing a type or data
 *
 * The flags ME of a record and MB of the next record state the same message boundary. If only
 * one of the two is set, the repair sets the other. Therefore a record's flags are fixed only
 * after the next record has been read. */
#include "limeedit.h"
#include "header_bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Deviations that the scan reports for one record. */
struct deviations {
    bool flags, reserved, type_tail, padding;
};

struct repair {
    struct limefile_source *source;
    bool dry;
    limefile_report_fn *note;
    limefile_progress_fn *progress;
    void *context;
    struct limefile_record record;       /* the record to fix next; ordinal 0: none */
    struct deviations found, next_found; /* of `record`, and of the record after `record` */
    bool previous_me; /* the record before `record` has ME, or `record` is the first one */
};

static void record_finding(void *context, const struct limefile_finding *finding)
{
    struct repair *m = context;
    switch (finding->code) {
    case LIMEFILE_D_FLAGS:
        m->next_found.flags = true;
        break;
    case LIMEFILE_D_RESERVED:
        m->next_found.reserved = finding->have != MARK_REPLACING;
        break;
    case LIMEFILE_D_TYPE_TAIL:
        m->next_found.type_tail = true;
        break;
    case LIMEFILE_D_PAD_NONZERO:
    case LIMEFILE_D_PAD_CUT:
        m->next_found.padding = true;
        break;
    default: /* fix_flags() finds missing MB and ME itself; no other deviation is repaired */
        break;
    }
}

static int patch(struct repair *m, uint64_t offset, const void *bytes, size_t n,
                 const char *what)
{
    char text[160];
    snprintf(text, sizeof text, "offset %" PRIu64 ": record %" PRIu64 ": %s", offset,
             m->record.ordinal, what);
    if (m->note)
        m->note(m->context, text);
    return m->dry ? 0 : limefile_write_full(m->source, bytes, n, offset);
}

static int fix_flags(struct repair *m, bool next_begins)
{
    const struct limefile_record *r = &m->record;
    bool mb = r->mb || m->previous_me, me = r->me || next_begins;
    unsigned char flags = (unsigned char)((mb ? FLAG_MB : 0) | (me ? FLAG_ME : 0));
    char what[80];
    m->previous_me = me;
    if (mb == r->mb && me == r->me && !m->found.flags)
        return 0;
    snprintf(what, sizeof what, "flags:%s%s%s", mb != r->mb ? " MB set" : "",
             me != r->me ? " ME set" : "", m->found.flags ? " reserved bits cleared" : "");
    return patch(m, r->header_offset + AT_FLAGS, &flags, 1, what);
}

static int fix_record(struct repair *m, bool next_begins)
{
    static const unsigned char zeros[LIMEFILE_TYPE_BYTES];
    const struct limefile_record *r = &m->record;
    if (r->ordinal == 0)
        return 0;
    int err = fix_flags(m, next_begins);
    if (!err && m->found.reserved)
        err = patch(m, r->header_offset + AT_RESERVED, zeros, 1, "reserved byte cleared");
    if (!err && m->found.type_tail)
        err = patch(m, r->header_offset + AT_TYPE + r->type_len, zeros,
                    LIMEFILE_TYPE_BYTES - r->type_len, "bytes after the type's NUL cleared");
    if (!err && m->found.padding)
        err = patch(m, r->data_offset + r->bytes, zeros, r->padding, "padding set to zero");
    return err;
}

static void notify_progress(const struct repair *m, const struct limefile_scan *scan)
{
    uint64_t done, size;
    limefile_scan_progress(scan, &done, &size);
    if (m->progress)
        m->progress(m->context, done, size);
}

static int fix_records(struct repair *m, struct limefile_scan *scan)
{
    struct limefile_record record;
    int err = 0;
    while (!err && limefile_scan_next(scan, &record) > 0) {
        err = fix_record(m, record.mb);
        m->record = record; /* its `type` is valid only until the next limefile_scan_next() */
        m->found = m->next_found;
        memset(&m->next_found, 0, sizeof m->next_found);
        notify_progress(m, scan);
    }
    return err ? err : fix_record(m, true);
}

int limefile_repair_headers(struct limefile_source *source, bool dry, limefile_report_fn *note,
                            limefile_progress_fn *progress, void *context)
{
    struct limefile_scan *scan;
    struct repair repair = {
        .source = source,
        .dry = dry,
        .note = note,
        .progress = progress,
        .context = context,
        .previous_me = true,
    };
    int err = limefile_scan_new(source, record_finding, &repair, &scan);
    if (err)
        return err;
    err = fix_records(&repair, scan);
    limefile_scan_free(scan);
    return err;
}
