/* scan.c - follow the headers of a container and check each record */
#include "limefile.h"
#include "header_bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One read covers the end of a record and the next header. While records are small, each block
 * is larger than the one before, so that few reads are needed. After a large record, a block is
 * small, so that little data is read. */
enum {
    BLOCK_MIN = 4096,
    BLOCK_MAX = 256 * 1024,
    LARGE_BYTES = 16 * 1024, /* longer data are skipped, not read */
};

struct limefile_scan {
    struct limefile_source *source;
    limefile_finding_fn *report;
    void *context;
    uint64_t size; /* size of the source */

    uint64_t last; /* offset of the previous header */
    uint64_t next; /* offset of the next header */
    uint64_t ordinal;
    uint32_t message, record;
    bool message_ended;            /* the previous record has ME or does not exist */
    bool is_marked;                /* after MARK_RESIZING or _REPLACING: no record follows */
    bool done;                     /* the end was reached and reported */
    struct limefile_finding fault; /* code 0: no fault */
    char type[LIMEFILE_TYPE_BYTES + 1];

    uint64_t block_offset;
    size_t block_len, block_request;
    unsigned char block[BLOCK_MAX];
};

int limefile_scan_new(struct limefile_source *source, limefile_finding_fn *report,
                      void *context, struct limefile_scan **out)
{
    uint64_t size;
    int err = source->ops->size(source, &size);
    if (err)
        return err;
    struct limefile_scan *scan = malloc(sizeof *scan);
    if (!scan)
        return -ENOMEM;
    memset(scan, 0, offsetof(struct limefile_scan, block));
    scan->source = source;
    scan->report = report;
    scan->context = context;
    scan->size = size;
    scan->message_ended = true;
    scan->block_request = BLOCK_MIN;
    *out = scan;
    return 0;
}

void limefile_scan_free(struct limefile_scan *scan)
{
    free(scan);
}

const struct limefile_finding *limefile_scan_fault(const struct limefile_scan *scan)
{
    return scan->fault.code ? &scan->fault : NULL;
}

void limefile_scan_progress(const struct limefile_scan *scan, uint64_t *done, uint64_t *size)
{
    *done = scan->next < scan->size ? scan->next : scan->size;
    *size = scan->size;
}

static void report_at(struct limefile_scan *scan, int code, uint64_t offset, uint64_t have,
                      uint64_t want)
{
    struct limefile_finding finding = {code, offset, scan->ordinal, have, want, NULL};
    if (limefile_is_fault(code))
        scan->fault = finding;
    if (scan->report)
        scan->report(scan->context, &finding);
}

static int set_fault(struct limefile_scan *scan, int code, uint64_t offset, uint64_t have,
                     uint64_t want)
{
    report_at(scan, code, offset, have, want);
    return code;
}

/* Reads a block at `offset`, n bytes or more. `left` is the number of bytes after `offset` when
 * the scan began, n or more. LIMEFILE_E_SHRUNK: now there are fewer than n. */
static int read_block(struct limefile_scan *scan, uint64_t offset, uint64_t left, size_t n)
{
    size_t want = scan->block_request < left ? scan->block_request : (size_t)left;
    scan->block_len = 0;
    ssize_t len = limefile_read_full(scan->source, scan->block, want, offset);
    if (len < 0 && want > n) /* a bad sector after the first n bytes does not matter */
        len = limefile_read_full(scan->source, scan->block, n, offset);
    if (len < 0)
        return (int)len;
    if ((size_t)len < n)
        return LIMEFILE_E_SHRUNK;
    scan->block_offset = offset;
    scan->block_len = (size_t)len;
    if (scan->block_request < BLOCK_MAX)
        scan->block_request *= 2;
    return 0;
}

/* Returns n bytes at `offset`, from the block if possible. *got is less than n at the end.
 * Bytes that were appended since limefile_scan_new() are ignored. */
static int get_bytes(struct limefile_scan *scan, uint64_t offset, size_t n,
                     const unsigned char **bytes, size_t *got)
{
    uint64_t left = offset < scan->size ? scan->size - offset : 0;
    *got = n < left ? n : (size_t)left;
    *bytes = scan->block;
    if (*got == 0)
        return 0;
    if (offset < scan->block_offset || offset + *got > scan->block_offset + scan->block_len) {
        int err = read_block(scan, offset, left, *got);
        if (err)
            return err;
    }
    *bytes = scan->block + (offset - scan->block_offset);
    return 0;
}

/* Reports a tail after the last record that is too short for a header. */
static int check_short_tail(struct limefile_scan *scan, const unsigned char *bytes, size_t n)
{
    int code = limefile_header_is_magic(bytes, n) ? LIMEFILE_E_HEADER_CUT
               : scan->ordinal == 1               ? LIMEFILE_E_MAGIC
                                                  : LIMEFILE_E_TRAILING;
    return set_fault(scan, code, scan->next, n, LIMEFILE_HEADER_BYTES);
}

static int check_end(struct limefile_scan *scan)
{
    if (!scan->done && !scan->message_ended) {
        scan->ordinal--; /* the finding is on the last record */
        report_at(scan, LIMEFILE_D_ME_MISSING, scan->last + 6, 0, 0);
    }
    scan->done = true;
    return 0;
}

static void check_header(struct limefile_scan *scan, const struct limefile_header *header)
{
    uint64_t at = scan->next;
    if (scan->message_ended && !header->mb)
        report_at(scan, LIMEFILE_D_MB_MISSING, at + 6, 0, 0);
    if (!scan->message_ended && header->mb)
        report_at(scan, LIMEFILE_D_MB_INSIDE, at + 6, 0, 0);
    if (header->flags & 0x3f)
        report_at(scan, LIMEFILE_D_FLAGS, at + 6, header->flags, header->flags & 0xc0);
    if (header->reserved)
        report_at(scan, LIMEFILE_D_RESERVED, at + 7, header->reserved, 0);
    if (header->type_len == 0)
        report_at(scan, LIMEFILE_D_TYPE_EMPTY, at + 16, 0, 0);
    if (header->type_len == LIMEFILE_TYPE_BYTES)
        report_at(scan, LIMEFILE_D_TYPE_LONG, at + 16, LIMEFILE_TYPE_BYTES,
                  LIMEFILE_TYPE_BYTES - 1);
    if (limefile_type_printable(header->type, header->type_len) < header->type_len)
        report_at(scan, LIMEFILE_D_TYPE_ASCII, at + 16, 0, 0);
    if (header->type_tail)
        report_at(scan, LIMEFILE_D_TYPE_TAIL, at + 16 + header->type_len, 0, 0);
}

static int check_padding(struct limefile_scan *scan, uint64_t data_end, unsigned padding)
{
    const unsigned char *bytes;
    size_t got;
    if (padding == 0)
        return 0;
    int err = get_bytes(scan, data_end, padding, &bytes, &got);
    if (err)
        return err;
    for (size_t i = 0; i < got; i++)
        if (bytes[i] != 0) {
            report_at(scan, LIMEFILE_D_PAD_NONZERO, data_end + i, bytes[i], 0);
            break;
        }
    if (got < padding)
        report_at(scan, LIMEFILE_D_PAD_CUT, data_end + got, got, padding);
    return 0;
}

/* If the source is a damaged container in a limefs mount, gets the fault from the mount.
 * Returns the fault's code if the fault is at scan->next, or 0. */
static int check_mount_fault(struct limefile_scan *scan)
{
    struct limefile_source *source = scan->source;
    struct limefile_finding fault;
    if (!source->ops->fault || !source->ops->fault(source, scan->next, &fault))
        return 0;
    scan->fault = fault;
    if (scan->report)
        scan->report(scan->context, &fault);
    return fault.code;
}

/* Reads the header at scan->next. Returns 1, or 0 at the end of the file, or a fault. */
static int scan_header(struct limefile_scan *scan, struct limefile_header *header)
{
    const unsigned char *bytes;
    size_t got;
    int fault = check_mount_fault(scan);
    if (fault)
        return fault;
    int err = get_bytes(scan, scan->next, LIMEFILE_HEADER_BYTES, &bytes, &got);
    if (err)
        return set_fault(scan, err, scan->next, 0, 0);
    if (got == 0)
        return 0;
    if (scan->is_marked)
        return set_fault(scan, LIMEFILE_E_TRAILING, scan->next, scan->size - scan->next, 0);
    if (scan->ordinal >= UINT32_MAX)
        return set_fault(scan, LIMEFILE_E_RECORDS, scan->next, scan->ordinal, UINT32_MAX - 1);
    if (got < LIMEFILE_HEADER_BYTES)
        return check_short_tail(scan, bytes, got);
    err = limefile_header_decode(bytes, header);
    if (err == LIMEFILE_E_MAGIC && scan->ordinal > 1)
        return set_fault(scan, LIMEFILE_E_TRAILING, scan->next, scan->size - scan->next, 0);
    if (err == LIMEFILE_E_VERSION)
        return set_fault(scan, err, scan->next + 4, header->version, LIMEFILE_VERSION);
    if (err)
        return set_fault(scan, err, scan->next + (err == LIMEFILE_E_LENGTH ? 8 : 0),
                         err == LIMEFILE_E_LENGTH ? header->bytes : 0, 0);
    return 1;
}

/* Fills *out from the record's header and counts it in its message. */
static void count_record(struct limefile_scan *scan, const struct limefile_header *header,
                         unsigned padding, struct limefile_record *out)
{
    if (header->mb || scan->ordinal == 1) {
        scan->message++;
        scan->record = 0;
    }
    scan->record++;
    memcpy(scan->type, header->type, header->type_len + 1u);
    *out = (struct limefile_record){
        .ordinal = scan->ordinal,
        .message = scan->message,
        .record = scan->record,
        .header_offset = scan->next,
        .data_offset = scan->next + LIMEFILE_HEADER_BYTES,
        .bytes = header->bytes,
        .padding = (uint8_t)padding,
        .mb = header->mb,
        .me = header->me,
        .type_len = header->type_len,
        .type = scan->type,
    };
}

int limefile_scan_next(struct limefile_scan *scan, struct limefile_record *out)
{
    struct limefile_header header;
    if (scan->fault.code)
        return scan->fault.code;
    if (scan->done)
        return 0;
    scan->ordinal++;
    int found = scan_header(scan, &header);
    if (found <= 0)
        return found == 0 ? check_end(scan) : found;

    uint64_t data_end, next;
    int err = limefile_record_end(scan->next, header.bytes, &data_end, &next);
    if (err)
        return set_fault(scan, err, scan->next + 8, header.bytes, 0);
    if (data_end > scan->size)
        return set_fault(scan, LIMEFILE_E_DATA_CUT, scan->next,
                         scan->size - scan->next - LIMEFILE_HEADER_BYTES, header.bytes);
    check_header(scan, &header);
    unsigned padding = limefile_padding(header.bytes);
    if (header.bytes > LARGE_BYTES)
        scan->block_request = BLOCK_MIN;
    err = check_padding(scan, data_end, padding);
    if (err)
        return set_fault(scan, err, data_end, 0, 0);

    count_record(scan, &header, padding, out);
    scan->message_ended = header.me;
    scan->is_marked = header.reserved == MARK_RESIZING || header.reserved == MARK_REPLACING;
    scan->last = scan->next;
    scan->next = next;
    return 1;
}
