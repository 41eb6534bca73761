/* limecells.h - the records of a checkpoint of particles that are ordered by cells.
 *
 * A checkpoint is three records in this order in one message, perhaps with others between:
 * LIMECELLS_FORMAT_TYPE, a text for users; LIMECELLS_INDEX_TYPE, all that a reader needs;
 * LIMECELLS_DATA_TYPE, the particles, particle_bytes each. The domain is a cuboid, divided into
 * equal cells. The particles of a cell are one range of the data. The ranges may have any
 * order; they cover all data and do not overlap. The idea is from A. Stephan, "Entwicklung
 * eines skalierbaren Checkpoint-Restart Schemas mit parallelem File-I/O" (2014), chapter 4; the
 * format is ours: docs/format.md.
 *
 * No function uses MPI or files, or prints. A function that returns a reason for a failure
 * returns a static text, or NULL on success. */
#ifndef LIMECELLS_H
#define LIMECELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMECELLS_FORMAT_TYPE "lemon-cells-format"
#define LIMECELLS_INDEX_TYPE  "lemon-cells-index"
#define LIMECELLS_DATA_TYPE   "lemon-cells-data"

enum {
    LIMECELLS_DIMS = 3,
    LIMECELLS_VERSION = 1,
    LIMECELLS_FIELDS_MAX = 64,
    LIMECELLS_NAME_MAX = 63,          /* bytes of a field's name, without the NUL */
    LIMECELLS_PARTICLE_MAX = 1 << 20, /* bytes */
    LIMECELLS_FIXED_BYTES = 136,      /* bytes of the index's header, without its fields */
    LIMECELLS_FIELD_BYTES = 80,       /* bytes of a field in the header */
    LIMECELLS_HEADER_MAX =            /* bytes of the index's header at most */
    LIMECELLS_FIXED_BYTES + LIMECELLS_FIELDS_MAX * LIMECELLS_FIELD_BYTES,
    LIMECELLS_ENTRY_BYTES = 24, /* bytes of a cell in the index */
    LIMECELLS_TEXT_MAX = 16384, /* bytes that limefile_cells_format_text() writes at most */
};

/* The greatest number of cells, which is the product over all dimensions. */
#define LIMECELLS_CELLS_MAX (INT64_C(1) << 40)

enum limecells_type {
    LIMECELLS_INT32 = 1,
    LIMECELLS_UINT32,
    LIMECELLS_INT64,
    LIMECELLS_UINT64,
    LIMECELLS_FLOAT32,
    LIMECELLS_FLOAT64,
};

/* Return the bytes of one number, and a name like "float64". For an unknown type: 0, NULL. */
size_t limefile_cells_type_bytes(enum limecells_type);
const char *limefile_cells_type_word(enum limecells_type);

struct limecells_field {
    char name[LIMECELLS_NAME_MAX + 1]; /* letters, digits, - and _ */
    enum limecells_type type;
    uint32_t count;  /* consecutive numbers of that type */
    uint64_t offset; /* bytes from the start of the particle */
};

/* The description of a checkpoint without its cells. A field named position has three
 * floating-point numbers. A field named id, with one integer, is optional. */
struct limecells {
    uint64_t particles, particle_bytes;
    uint64_t cells[LIMECELLS_DIMS];
    double origin[LIMECELLS_DIMS], length[LIMECELLS_DIMS]; /* of the domain; length > 0 */
    bool periodic[LIMECELLS_DIMS];
    bool big_endian; /* the numbers in the particles are big-endian */
    int64_t step;    /* the time step of the checkpoint */
    double time;
    uint32_t entries_crc; /* checksum of all cells' entries */
    uint32_t fields;
    struct limecells_field field[LIMECELLS_FIELDS_MAX];
};

/* A cell's entry. */
struct limecells_cell {
    uint64_t first; /* its first particle in the data; 0 if it has none */
    uint64_t count;
    uint32_t crc; /* zlib's CRC-32 of its particles' bytes; 0 if it has none */
};

/* Returns why the description is invalid, or NULL. */
const char *limefile_cells_check(const struct limecells *);

/* The following functions need a valid description. */
uint64_t limefile_cells_count(const struct limecells *);        /* number of cells */
uint64_t limefile_cells_header_bytes(const struct limecells *); /* of the index's header */
uint64_t limefile_cells_index_bytes(const struct limecells *);
uint64_t limefile_cells_data_bytes(const struct limecells *);
const struct limecells_field *limefile_cells_field(const struct limecells *, const char *name);

/* Encodes the index's header; `raw` has limefile_cells_header_bytes() bytes. */
void limefile_cells_encode(const struct limecells *, unsigned char *raw);

/* Gets the header's length from its first LIMECELLS_FIXED_BYTES bytes. */
const char *limefile_cells_decode_length(const unsigned char *raw, uint64_t *header_bytes);

/* Decodes the whole header `raw` of an index record of record_bytes bytes. */
const char *limefile_cells_decode(const unsigned char *raw, uint64_t header_bytes,
                                  uint64_t record_bytes, struct limecells *out);

void limefile_cells_entry_encode(const struct limecells_cell *, unsigned char *raw);
/* Decodes an entry and checks that its particles are in the data. */
const char *limefile_cells_entry_decode(const struct limecells *, const unsigned char *raw,
                                        struct limecells_cell *out);

/* Checks the entries of all cells, in constant memory: their checksum is entries_crc, and each
 * particle is in exactly one range. */
struct limecells_checker {
    const struct limecells *cells;
    const char *fault; /* NULL: none so far */
    uint64_t bad_cell; /* number of the faulty cell; limefile_cells_count(): no single one */
    uint64_t fewest, most; /* particles in a cell */
    uint64_t empty;        /* number of cells without particles */
    uint64_t next, key[2], hashes;
    uint32_t crc;
};
void limefile_cells_check_begin(struct limecells_checker *, const struct limecells *);
/* Adds the next n entries, in the order of the cells. */
void limefile_cells_check_add(struct limecells_checker *, const unsigned char *raw, size_t n);
const char *limefile_cells_check_end(struct limecells_checker *); /* returns `fault` */

/* limefile_cells_crc() extends crc, zlib's CRC-32 of some bytes (0 at the start), by n bytes.
 * limefile_cells_crc_combine() returns the CRC-32 of two consecutive ranges from the CRC-32 of
 * each; n is the number of bytes in the second one. */
uint32_t limefile_cells_crc(uint32_t crc, const void *data, size_t n);
uint32_t limefile_cells_crc_combine(uint32_t first, uint32_t second, uint64_t n);

/* Writes the text record for users, as XML. Returns its length without the NUL. */
size_t limefile_cells_format_text(const struct limecells *, char text[LIMECELLS_TEXT_MAX]);

/* ---- the cell of a particle ----
 *
 * A cell contains its lower faces but not its upper ones, as does a box that a reader requests:
 * a particle on a face belongs to the cell above. A particle on the domain's upper face belongs
 * to the first cell if the dimension is periodic, because this face is also the lower one, and
 * to the last cell if not. Positions are never changed. */

/* Returns the cell of a coordinate in dimension d; -1: outside of the domain, or NaN. A greater
 * coordinate never has a smaller cell, except for the upper face of a periodic dimension. */
int64_t limefile_cells_locate(const struct limecells *, int d, double x);

/* Returns the coordinate, or the origin for the upper face of a periodic dimension. */
double limefile_cells_canonical(const struct limecells *, int d, double x);

/* Returns the lower edge of cell i in dimension d, which is the upper edge of cell i - 1. If i
 * is the number of cells, it is the domain's upper edge. */
double limefile_cells_edge(const struct limecells *, int d, uint64_t i);

/* Splits a cell's number, which is (x * cells[1] + y) * cells[2] + z, so x is slowest. */
void limefile_cells_xyz(const struct limecells *, uint64_t number, uint64_t at[LIMECELLS_DIMS]);

#endif
