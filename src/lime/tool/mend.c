/*
 * mend.c - what can be set right without touching a type or data
 *
 * A message boundary stands between two records if either says so, and then both shall; so
 * a record's flags are settled only when the next one is known.
 */
#include "progress.h"
#include "repair.h"
#include "tool.h"

#include <inttypes.h>
#include <string.h>

enum {
    AT_FLAGS = 6,
    AT_RESERVED = 7,
    AT_TYPE = 16,
    FLAG_MB = 0x80,
    FLAG_ME = 0x40,
};

/* What the scan found in one record. */
struct faults {
    bool flags, reserved, tail, padding;
};

struct mender {
    struct repair *repair;
    struct limefile_record record; /* the one to be settled; ordinal 0: none yet */
    struct faults found, coming;   /* in it; in the one that the scan looks at */
    bool before_ends;              /* the record before it has ME */
    uint64_t hopeless;
};

static void take(void *context, const struct limefile_finding *finding)
{
    struct mender *m = context;
    switch (finding->code) {
    case LIMEFILE_D_FLAGS:
        m->coming.flags = true;
        break;
    case LIMEFILE_D_RESERVED:
        m->coming.reserved = true;
        break;
    case LIMEFILE_D_TYPE_TAIL:
        m->coming.tail = true;
        break;
    case LIMEFILE_D_PAD_NONZERO:
    case LIMEFILE_D_PAD_CUT:
        m->coming.padding = true;
        break;
    case LIMEFILE_D_TYPE_EMPTY:
    case LIMEFILE_D_TYPE_LONG:
    case LIMEFILE_D_TYPE_ASCII:
        finding_message(m->repair->path, finding);
        m->hopeless++;
        break;
    default: /* MB and ME come out of the rule; faults are the tail's affair */
        break;
    }
}

static int put(struct mender *m, uint64_t offset, const void *bytes, size_t n, const char *what)
{
    repair_note(m->repair, "offset %" PRIu64 ": record %" PRIu64 ": %s", offset,
                m->record.ordinal, what);
    return m->repair->dry ? 0 : limefile_write_full(&m->repair->file.source, bytes, n, offset);
}

static int settle_flags(struct mender *m, bool next_begins)
{
    const struct limefile_record *r = &m->record;
    bool mb = r->mb || m->before_ends, me = r->me || next_begins;
    unsigned char flags = (unsigned char)((mb ? FLAG_MB : 0) | (me ? FLAG_ME : 0));
    char what[80];
    m->before_ends = me;
    if (mb == r->mb && me == r->me && !m->found.flags)
        return 0;
    snprintf(what, sizeof what, "flags:%s%s%s", mb != r->mb ? " MB set" : "",
             me != r->me ? " ME set" : "", m->found.flags ? " reserved bits cleared" : "");
    return put(m, r->header_offset + AT_FLAGS, &flags, 1, what);
}

static int settle(struct mender *m, bool next_begins)
{
    static const unsigned char zeros[LIMEFILE_TYPE_BYTES];
    const struct limefile_record *r = &m->record;
    if (r->ordinal == 0)
        return 0;
    int err = settle_flags(m, next_begins);
    if (!err && m->found.reserved)
        err = put(m, r->header_offset + AT_RESERVED, zeros, 1, "reserved byte cleared");
    if (!err && m->found.tail)
        err = put(m, r->header_offset + AT_TYPE + r->type_len, zeros,
                  LIMEFILE_TYPE_BYTES - r->type_len, "bytes after the type's NUL cleared");
    if (!err && m->found.padding)
        err = put(m, r->data_offset + r->bytes, zeros, r->padding, "padding set to zero");
    return err;
}

static int mend_all(struct mender *m, struct limefile_scan *scan)
{
    struct limefile_record record;
    struct progress progress;
    uint64_t done, size;
    int err = 0, got = 0;
    limefile_scan_progress(scan, &done, &size);
    progress_begin(&progress, "mend", size);
    while (!err && (got = limefile_scan_next(scan, &record)) > 0) {
        err = settle(m, record.mb);
        m->record = record; /* but for the type, which is the scan's */
        m->found = m->coming;
        memset(&m->coming, 0, sizeof m->coming);
        limefile_scan_progress(scan, &done, &size);
        progress_to(&progress, done);
    }
    progress_end(&progress);
    return err ? err : settle(m, true);
}

int repair_mend(struct repair *repair, uint64_t *hopeless)
{
    struct limefile_scan *scan;
    struct mender mender = {.repair = repair, .before_ends = true};
    int err = limefile_scan_new(&repair->file.source, take, &mender, &scan);
    if (err)
        return err;
    err = mend_all(&mender, scan);
    limefile_scan_free(scan);
    *hopeless = mender.hopeless;
    return err;
}
