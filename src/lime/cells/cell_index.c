/* cell_index.c - encode and decode the big-endian index record, and compute its checksums */
#include "header_bytes.h"
#include "limecells.h"
#include "splitmix64.h"

#include <isa-l/crc.h>
#include <string.h>
#include <sys/random.h>

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
    INDEX_CRC = 132, /* checksum of the header with zeros in this place */
};

enum {
    FIELD_TYPE = 64,
    FIELD_COUNT = 68,
    FIELD_OFFSET = 72,
};

enum {
    FLAG_PERIODIC = 1, /* shifted by the number of the dimension */
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

/* ---- checksums ---- */

static const uint32_t polynomial = 0xedb88320; /* reflected: bit 31 is x^0 */

uint32_t limefile_cells_crc(uint32_t crc, const void *data, size_t n)
{
    return crc32_gzip_refl(crc, (unsigned char *)data, n);
}

/* Returns a * b modulo the polynomial. */
static uint32_t multiply_polynomials(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = UINT32_C(1) << 31; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b & 1 ? b >> 1 ^ polynomial : b >> 1;
    }
    return product;
}

/* A CRC is linear, and each byte after a range multiplies the range's CRC by x^8. */
uint32_t limefile_cells_crc_combine(uint32_t first, uint32_t second, uint64_t n)
{
    uint32_t power = UINT32_C(1) << 23; /* x^8, then its square, and so on */
    for (; n; n >>= 1) {
        if (n & 1)
            first = multiply_polynomials(first, power);
        power = multiply_polynomials(power, power);
    }
    return first ^ second;
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
        return "it does not begin with the magic number";
    if (get_be32(raw + INDEX_VERSION) != LIMECELLS_VERSION)
        return "unknown version";
    *header_bytes = get_be32(raw + INDEX_HEADER);
    if (fields > LIMECELLS_FIELDS_MAX ||
        *header_bytes != LIMECELLS_FIXED_BYTES + (uint64_t)fields * LIMECELLS_FIELD_BYTES)
        return "the header's length does not match its fields";
    return NULL;
}

/* Decodes the description of a field from LIMECELLS_FIELD_BYTES bytes. Returns NULL, or the
 * reason why it is invalid (static). limefile_cells_check() checks type, count and offset. */
static const char *decode_field(const unsigned char *raw, struct limecells_field *f)
{
    memcpy(f->name, raw, sizeof f->name);
    if (f->name[LIMECELLS_NAME_MAX])
        return "a field's name is too long";
    f->type = (enum limecells_type)get_be32(raw + FIELD_TYPE);
    f->count = get_be32(raw + FIELD_COUNT);
    f->offset = get_be64(raw + FIELD_OFFSET);
    return NULL;
}

static bool header_crc_matches(const unsigned char *raw, uint64_t bytes)
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
        why = "wrong length of the header";
    if (!why && !header_crc_matches(raw, bytes))
        why = "wrong checksum of the header";
    if (why)
        return why;
    decode_fixed(raw, out);
    if (get_be32(raw + INDEX_FLAGS) & ~(uint32_t)FLAGS_KNOWN)
        return "unknown flags";
    for (uint32_t i = 0; i < out->fields && !why; i++)
        why = decode_field(raw + LIMECELLS_FIXED_BYTES + i * LIMECELLS_FIELD_BYTES,
                           &out->field[i]);
    why = why ? why : limefile_cells_check(out);
    if (!why && record_bytes != limefile_cells_index_bytes(out))
        why = "the record's length does not match its cells";
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

const char *limefile_cells_entry_decode(const struct limecells *c, const unsigned char *raw,
                                        struct limecells_cell *out)
{
    out->first = get_be64(raw);
    out->count = get_be64(raw + 8);
    out->crc = get_be32(raw + 16);
    if (get_be32(raw + 20) != 0)
        return "reserved bytes of its entry are not zero";
    if (out->count == 0 && (out->first != 0 || out->crc != 0))
        return "it has no particles, but an offset or a checksum";
    if (out->count > c->particles || out->first > c->particles - out->count)
        return "it reaches beyond the data";
    return NULL;
}

/* The ranges of all cells cover the data once if, at each offset, as many ranges begin as end,
 * except that one more begins at 0 and one more ends at the end of the data. (Such ranges form
 * one chain from 0 to the end; others would have to form circles, but each range ends after its
 * beginning.) The checker compares sums of hashes of the offsets. The hash has a random key, so
 * that no file can be made to pass this check with other ranges. */
static uint64_t hash_offset(const struct limecells_checker *k, uint64_t offset)
{
    return mix64(mix64(offset + k->key[0]) ^ k->key[1]);
}

void limefile_cells_check_begin(struct limecells_checker *k, const struct limecells *c)
{
    uint64_t here = (uint64_t)(uintptr_t)k;
    *k = (struct limecells_checker){
        .cells = c,
        .key = {here, here >> 7},
        .bad_cell = limefile_cells_count(c),
        .fewest = UINT64_MAX,
    };
    ssize_t random_bytes = getrandom(k->key, sizeof k->key, GRND_NONBLOCK);
    /* If it fails, the key is still the address of `k`. */
    (void)random_bytes;
}

void limefile_cells_check_add(struct limecells_checker *k, const unsigned char *raw, size_t n)
{
    struct limecells_cell cell;
    k->crc = limefile_cells_crc(k->crc, raw, n * LIMECELLS_ENTRY_BYTES);
    for (size_t i = 0; i < n && !k->fault; i++, k->next++, raw += LIMECELLS_ENTRY_BYTES) {
        k->fault = limefile_cells_entry_decode(k->cells, raw, &cell);
        if (k->fault) {
            k->bad_cell = k->next;
            return;
        }
        if (cell.count)
            k->hashes += hash_offset(k, cell.first) - hash_offset(k, cell.first + cell.count);
        k->empty += cell.count == 0;
        k->most = cell.count > k->most ? cell.count : k->most;
        k->fewest = cell.count < k->fewest ? cell.count : k->fewest;
    }
}

const char *limefile_cells_check_end(struct limecells_checker *k)
{
    if (k->crc != k->cells->entries_crc) {
        k->bad_cell = limefile_cells_count(k->cells);
        k->fault = "wrong checksum of the cells' entries";
    }
    if (!k->fault && k->hashes != hash_offset(k, 0) - hash_offset(k, k->cells->particles))
        k->fault = "the cells overlap or leave out particles";
    return k->fault;
}
