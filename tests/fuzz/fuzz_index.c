/* fuzz_index.c - any bytes as a container: invariants of its scan, index and names */
#include "fuzz.h"

struct tally {
    uint64_t deviations, faults;
};

static void report(void *context, const struct limefile_finding *f)
{
    struct tally *tally = context;
    char text[256];
    if (limefile_is_fault(f->code))
        tally->faults++;
    else
        tally->deviations++;
    HOLDS(f->code < 0 && f->ordinal > 0);
    HOLDS(limefile_finding_text(f, text, sizeof text) < (int)sizeof text);
}

static bool same(const struct limefile_record *a, const struct limefile_record *b)
{
    return a->ordinal == b->ordinal && a->message == b->message && a->record == b->record &&
           a->header_offset == b->header_offset && a->data_offset == b->data_offset &&
           a->bytes == b->bytes && a->padding == b->padding && a->mb == b->mb &&
           a->me == b->me && a->type_len == b->type_len && strcmp(a->type, b->type) == 0;
}

/* Scan and index agree; the records follow each other in the file without gaps. */
static struct tally scan_and_compare(struct limefile_source *source,
                                     const struct limefile_index *index, size_t size)
{
    struct tally tally = {0};
    struct limefile_scan *scan;
    struct limefile_record r, indexed;
    uint64_t end = 0, n = 0;
    int got;
    HOLDS(limefile_scan_new(source, report, &tally, &scan) == 0);
    while ((got = limefile_scan_next(scan, &r)) == 1) {
        n++;
        HOLDS(limefile_index_get(index, n, &indexed) == 0 && same(&r, &indexed));
        HOLDS(limefile_index_by_number(index, r.message, r.record, &indexed) == 0);
        HOLDS(indexed.ordinal == n);
        HOLDS(r.header_offset == end && r.data_offset == end + LIMEFILE_HEADER_BYTES);
        HOLDS(r.data_offset <= size && r.bytes <= size - r.data_offset);
        HOLDS(strlen(r.type) == r.type_len && r.padding < 8);
        end = r.data_offset + r.bytes + r.padding;
        HOLDS(end % 8 == 0);
    }
    HOLDS(n == limefile_index_count(index));
    HOLDS(limefile_index_end(index) == (end < size ? end : size));
    const struct limefile_finding *fault = limefile_scan_fault(scan);
    const struct limefile_finding *indexed_fault = limefile_index_fault(index);
    HOLDS((got < 0) == (fault != NULL) && (got < 0) == (indexed_fault != NULL));
    HOLDS(tally.faults == (got < 0) && tally.deviations == limefile_index_deviations(index));
    if (fault) {
        HOLDS(fault->code == got && indexed_fault->code == got);
        HOLDS(fault->offset == indexed_fault->offset && fault->ordinal == n + 1);
        HOLDS(fault->offset >= end && fault->offset < size);
    } else {
        HOLDS(end >= size);
    }
    limefile_scan_free(scan);
    return tally;
}

static void names(const struct limefile_index *index)
{
    struct limefile_record r, found;
    char name[LIMEFILE_NAME_MAX + 1], type[LIMEFILE_TYPE_BYTES + 1];
    uint64_t count;
    for (uint64_t i = 1; limefile_index_get(index, i, &r) == 0; i++) {
        size_t n = limefile_name_format(&r, name);
        HOLDS(n <= LIMEFILE_NAME_MAX && strlen(name) == n && !strchr(name, '/'));
        HOLDS(strtoull(name, NULL, 10) == i); /* so all are different */
        HOLDS(limefile_name_find(index, name, &found) == 0 && found.ordinal == i);
        const char *dash = strchr(name, '-') + 1;
        size_t decoded = limefile_name_decode(dash, strlen(dash), type, sizeof type);
        HOLDS(decoded <= r.type_len && memcmp(type, r.type, decoded) == 0);
        HOLDS(decoded == r.type_len || n > LIMEFILE_NAME_MAX - 3);
        HOLDS(limefile_index_by_type(index, r.type, r.type_len, &found, &count) == 0);
        HOLDS(count >= 1 && found.ordinal <= i && strcmp(found.type, r.type) == 0);
    }
}

/* The writer copies a container without faults and deviations unchanged. */
static void write_again(const struct limefile_index *index, const uint8_t *data, size_t size)
{
    struct limefile_memory out;
    struct limefile_writer *writer;
    struct limefile_record r;
    uint64_t end;
    limefile_memory_init(&out);
    HOLDS(limefile_writer_new(&out.source, 0, &writer) == 0);
    for (uint64_t i = 1; limefile_index_get(index, i, &r) == 0; i++) {
        HOLDS(limefile_writer_begin(writer, r.type, r.type_len, r.bytes, r.mb, r.me) == 0);
        size_t half = (size_t)r.bytes / 2;
        HOLDS(limefile_writer_write(writer, data + r.data_offset, half) == 0);
        HOLDS(limefile_writer_write(writer, data + r.data_offset + half, r.bytes - half) == 0);
        HOLDS(limefile_writer_end(writer) == 0);
    }
    HOLDS(limefile_writer_finish(writer, &end) == 0);
    HOLDS(end == size && out.size == size && (size == 0 || !memcmp(out.data, data, size)));
    limefile_writer_free(writer);
    limefile_memory_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct limefile_memory memory;
    struct limefile_index *index;
    limefile_memory_borrow(&memory, data, size);
    HOLDS(limefile_index_build(&memory.source, &index) == 0);
    struct tally tally = scan_and_compare(&memory.source, index, size);
    names(index);
    if (tally.faults == 0 && tally.deviations == 0)
        write_again(index, data, size);
    limefile_index_free(index);
    return 0;
}
