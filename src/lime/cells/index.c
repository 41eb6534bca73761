/* index.c - the index record: its header and the cells' entries, big-endian */
#include "bytes.h"
#include "limecells.h"

#include <stdlib.h>
#include <string.h>

enum {
    INDEX_VERSION = 8,
    INDEX_HEADER = 12,
    INDEX_PARTICLES = 16,
    INDEX_PARTICLE = 24,
    INDEX_CELLS = 32,
    INDEX_ORIGIN = 56,
    INDEX_LENGTH = 80,
    INDEX_FLAGS = 104,
    INDEX_FIELDS = 108,
    INDEX_STEP = 112,
    INDEX_TIME = 120,
    INDEX_ENTRIES_CRC = 128,
    INDEX_CRC = 132, /* of the header, with zeros here */
};

enum {
    FIELD_TYPE = 64,
    FIELD_COUNT = 68,
    FIELD_OFFSET = 72,
};

enum {
    FLAG_PERIODIC = 1, /* shifted by the dimension */
    FLAG_BIG_ENDIAN = 8,
    FLAGS_KNOWN = 15,
};

static const unsigned char magic[8] = {'L', 'E', 'M', 'N', 'C', 'E', 'L', 'L'};

static void put_double(unsigned char *p, double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    put_be64(p, word);
}

static double get_double(const unsigned char *p)
{
    uint64_t word = get_be64(p);
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* ---- header ---- */

static void encode_field(const struct limecells_field *f, unsigned char *raw)
{
    memcpy(raw, f->name, strlen(f->name));
    put_be32(raw + FIELD_TYPE, f->type);
    put_be32(raw + FIELD_COUNT, f->count);
    put_be64(raw + FIELD_OFFSET, f->offset);
}

void limefile_cells_encode(const struct limecells *c, unsigned char *raw)
{
    uint64_t bytes = limefile_cells_header_bytes(c);
    uint32_t flags = c->big_endian ? FLAG_BIG_ENDIAN : 0;
    memset(raw, 0, bytes);
    memcpy(raw, magic, sizeof magic);
    put_be32(raw + INDEX_VERSION, LIMECELLS_VERSION);
    put_be32(raw + INDEX_HEADER, (uint32_t)bytes);
    put_be64(raw + INDEX_PARTICLES, c->particles);
    put_be64(raw + INDEX_PARTICLE, c->particle_bytes);
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        put_be64(raw + INDEX_CELLS + 8 * d, c->cells[d]);
        put_double(raw + INDEX_ORIGIN + 8 * d, c->origin[d]);
        put_double(raw + INDEX_LENGTH + 8 * d, c->length[d]);
        flags |= c->periodic[d] ? (uint32_t)FLAG_PERIODIC << d : 0;
    }
    put_be32(raw + INDEX_FLAGS, flags);
    put_be32(raw + INDEX_FIELDS, c->fields);
    put_be64(raw + INDEX_STEP, (uint64_t)c->step);
    put_double(raw + INDEX_TIME, c->time);
    put_be32(raw + INDEX_ENTRIES_CRC, c->entries_crc);
    for (uint32_t i = 0; i < c->fields; i++)
        encode_field(&c->field[i], raw + LIMECELLS_FIXED_BYTES + i * LIMECELLS_FIELD_BYTES);
    put_be32(raw + INDEX_CRC, limefile_cells_crc(0, raw, bytes));
}

const char *limefile_cells_decode_length(const unsigned char *raw, uint64_t *header_bytes)
{
    uint32_t fields = get_be32(raw + INDEX_FIELDS);
    if (memcmp(raw, magic, sizeof magic) != 0)
        return "it does not begin like an index of cells";
    if (get_be32(raw + INDEX_VERSION) != LIMECELLS_VERSION)
        return "it is of a version that is not known";
    *header_bytes = get_be32(raw + INDEX_HEADER);
    if (fields > LIMECELLS_FIELDS_MAX ||
        *header_bytes != LIMECELLS_FIXED_BYTES + (uint64_t)fields * LIMECELLS_FIELD_BYTES)
        return "its header has not the length of its fields";
    return NULL;
}

static const char *decode_field(const unsigned char *raw, struct limecells_field *f)
{
    memcpy(f->name, raw, sizeof f->name);
    if (f->name[LIMECELLS_NAME_MAX])
        return "a field's name does not end";
    f->type = (enum limecells_type)get_be32(raw + FIELD_TYPE);
    f->count = get_be32(raw + FIELD_COUNT);
    f->offset = get_be64(raw + FIELD_OFFSET);
    return NULL;
}

static bool has_right_crc(const unsigned char *raw, uint64_t bytes)
{
    static const unsigned char zeros[4];
    uint32_t crc = limefile_cells_crc(0, raw, INDEX_CRC);
    crc = limefile_cells_crc(crc, zeros, sizeof zeros);
    crc = limefile_cells_crc(crc, raw + INDEX_CRC + 4, bytes - INDEX_CRC - 4);
    return crc == get_be32(raw + INDEX_CRC);
}

static void decode_fixed(const unsigned char *raw, struct limecells *out)
{
    uint32_t flags = get_be32(raw + INDEX_FLAGS);
    *out = (struct limecells){
        .particles = get_be64(raw + INDEX_PARTICLES),
        .particle_bytes = get_be64(raw + INDEX_PARTICLE),
        .big_endian = flags & FLAG_BIG_ENDIAN,
        .step = (int64_t)get_be64(raw + INDEX_STEP),
        .time = get_double(raw + INDEX_TIME),
        .entries_crc = get_be32(raw + INDEX_ENTRIES_CRC),
        .fields = get_be32(raw + INDEX_FIELDS),
    };
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        out->cells[d] = get_be64(raw + INDEX_CELLS + 8 * d);
        out->origin[d] = get_double(raw + INDEX_ORIGIN + 8 * d);
        out->length[d] = get_double(raw + INDEX_LENGTH + 8 * d);
        out->periodic[d] = flags >> d & FLAG_PERIODIC;
    }
}

const char *limefile_cells_decode(const unsigned char *raw, uint64_t header_bytes,
                                  uint64_t record_bytes, struct limecells *out)
{
    uint64_t bytes;
    if (header_bytes < LIMECELLS_FIXED_BYTES)
        return "it is shorter than its header";
    const char *why = limefile_cells_decode_length(raw, &bytes);
    if (!why && bytes != header_bytes)
        why = "its header has another length than it says";
    if (!why && !has_right_crc(raw, bytes))
        why = "its header does not have the checksum that it says";
    if (why)
        return why;
    decode_fixed(raw, out);
    if (get_be32(raw + INDEX_FLAGS) & ~(uint32_t)FLAGS_KNOWN)
        return "it has flags that are not known";
    for (uint32_t i = 0; i < out->fields && !why; i++)
        why = decode_field(raw + LIMECELLS_FIXED_BYTES + i * LIMECELLS_FIELD_BYTES,
                           &out->field[i]);
    why = why ? why : limefile_cells_check(out);
    if (!why && record_bytes != limefile_cells_index_bytes(out))
        why = "the record is not as long as its cells";
    return why;
}

/* ---- entries ---- */

void limefile_cells_entry_encode(const struct limecells_cell *cell, unsigned char *raw)
{
    put_be64(raw, cell->first);
    put_be64(raw + 8, cell->count);
    put_be32(raw + 16, cell->crc);
    put_be32(raw + 20, 0);
}

const char *limefile_cells_entry_decode(const unsigned char *raw, struct limecells_cell *out)
{
    out->first = get_be64(raw);
    out->count = get_be64(raw + 8);
    out->crc = get_be32(raw + 16);
    if (get_be32(raw + 20) != 0)
        return "its entry has bytes that are not zero";
    if (out->count == 0 && (out->first != 0 || out->crc != 0))
        return "it has no particles, but a place or a checksum";
    return NULL;
}

const char *limefile_cells_decode_entry(const struct limecells *c, const unsigned char *raw,
                                        struct limecells_cell *out)
{
    const char *why = limefile_cells_entry_decode(raw, out);
    if (!why && (out->count > c->particles || out->first > c->particles - out->count))
        why = "it reaches beyond the data";
    return why;
}

/* Cells whose ranges follow each other, as they do in rows of a writer's box. */
struct run {
    uint64_t first, count;
    uint64_t cell; /* the number of its first one */
};

static int compare_runs(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* NULL: no memory. */
static struct run *find_runs(const struct limecells_cell *cell, uint64_t cells, uint64_t *runs)
{
    struct run *run = NULL, *bigger;
    uint64_t capacity = 0;
    *runs = 0;
    for (uint64_t i = 0; i < cells; i++) {
        if (cell[i].count == 0)
            continue;
        if (*runs && run[*runs - 1].first + run[*runs - 1].count == cell[i].first) {
            run[*runs - 1].count += cell[i].count;
            continue;
        }
        if (*runs == capacity) {
            capacity = capacity * 2 + 64;
            bigger = realloc(run, capacity * sizeof *run);
            if (!bigger) {
                free(run);
                return NULL;
            }
            run = bigger;
        }
        run[(*runs)++] = (struct run){cell[i].first, cell[i].count, i};
    }
    return run ? run : malloc(1);
}

/* Each particle belongs to one cell. No cell reaches beyond the data. */
static const char *check_cover(const struct limecells *c, const struct limecells_cell *cell,
                               uint64_t *bad)
{
    uint64_t runs, at = 0;
    struct run *run = find_runs(cell, limefile_cells_cells(c), &runs);
    const char *why = run ? NULL : "there is not enough memory for the index";
    if (run)
        qsort(run, runs, sizeof *run, compare_runs);
    for (uint64_t i = 0; run && i < runs && !why; i++) {
        *bad = run[i].cell;
        if (run[i].first < at)
            why = "it begins with particles of another cell";
        else if (run[i].first > at)
            why = "there are particles before it that belong to no cell";
        at = run[i].first + run[i].count;
    }
    free(run);
    if (!why && at != c->particles) {
        why = "the cells have fewer particles than there are";
        *bad = limefile_cells_cells(c);
    }
    return why;
}

const char *limefile_cells_decode_entries(const struct limecells *c, const unsigned char *raw,
                                          struct limecells_cell *out, uint64_t *bad)
{
    uint64_t cells = limefile_cells_cells(c);
    *bad = cells;
    if (limefile_cells_crc(0, raw, cells * LIMECELLS_ENTRY_BYTES) != c->entries_crc)
        return "the cells' entries do not have the checksum that the header says";
    for (uint64_t i = 0; i < cells; i++) {
        *bad = i;
        const char *why =
            limefile_cells_decode_entry(c, raw + i * LIMECELLS_ENTRY_BYTES, &out[i]);
        if (why)
            return why;
    }
    return check_cover(c, out, bad);
}
