/*
 * limecells.h - checkpoints of particles, ordered by cells: what the records hold.
 *
 * A checkpoint is three records that follow each other in one message (fillers may stand
 * between them): LIMECELLS_FORMAT_TYPE, a text for people; LIMECELLS_INDEX_TYPE, all that a
 * reader needs; LIMECELLS_DATA_TYPE, the particles, one after another, of particle_bytes each.
 * The domain is a cuboid, cut into equal cells. The particles of a cell are one range of the
 * data; the ranges may lie in any order, cover all data, and do not overlap. The idea is from
 * A. Stephan, "Entwicklung eines skalierbaren Checkpoint-Restart Schemas mit parallelem
 * File-I/O" (2014), chapter 4; the format is ours: docs/format.md.
 *
 * Pure functions: no MPI, no files, nothing printed. A reason, where one is returned, is a
 * static text; NULL: all is well.
 */
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
    LIMECELLS_NAME_MAX = 63,          /* of a field's name, without the NUL */
    LIMECELLS_PARTICLE_MAX = 1 << 20, /* bytes */
    LIMECELLS_FIXED_BYTES = 136,      /* of the index's header, without its fields */
    LIMECELLS_FIELD_BYTES = 80,       /* of a field in it */
    LIMECELLS_HEADER_MAX =            /* of the index */
    LIMECELLS_FIXED_BYTES + LIMECELLS_FIELDS_MAX * LIMECELLS_FIELD_BYTES,
    LIMECELLS_ENTRY_BYTES = 24, /* of a cell in the index */
    LIMECELLS_TEXT_MAX = 16384, /* limefile_cells_text() never writes more */
};

/* Cells of all dimensions together. */
#define LIMECELLS_CELLS_MAX (INT64_C(1) << 40)

enum limecells_type {
    LIMECELLS_INT32 = 1,
    LIMECELLS_UINT32,
    LIMECELLS_INT64,
    LIMECELLS_UINT64,
    LIMECELLS_FLOAT32,
    LIMECELLS_FLOAT64,
};

/* Bytes of one number; 0: no such type. And "float64"; NULL. */
size_t limefile_cells_type_bytes(enum limecells_type);
const char *limefile_cells_type_word(enum limecells_type);

struct limecells_field {
    char name[LIMECELLS_NAME_MAX + 1]; /* letters, digits, - and _ */
    enum limecells_type type;
    uint32_t count;  /* numbers of that type, one after another */
    uint64_t offset; /* in the particle, bytes */
};

/* What a checkpoint is, but for the cells themselves. One field is `position`, of three
 * floating-point numbers; one may be `id`, of one integer. */
struct limecells {
    uint64_t particles, particle_bytes;
    uint64_t cells[LIMECELLS_DIMS];
    double origin[LIMECELLS_DIMS], length[LIMECELLS_DIMS]; /* of the domain; length > 0 */
    bool periodic[LIMECELLS_DIMS];
    bool big_endian; /* the numbers in the particles are */
    int64_t step;    /* the time step that has been reached */
    double time;
    uint32_t entries_crc; /* of all cells' entries */
    uint32_t fields;
    struct limecells_field field[LIMECELLS_FIELDS_MAX];
};

/* A cell's entry. */
struct limecells_cell {
    uint64_t first; /* its first particle, in the data; 0 if it has none */
    uint64_t count;
    uint32_t crc; /* CRC-32 (zlib's) of its particles' bytes; 0 if it has none */
};

/* Why this cannot be one, whether it was read or is to be written. */
const char *limefile_cells_check(const struct limecells *);

/* Of a good one. */
uint64_t limefile_cells_cells(const struct limecells *);        /* in all */
uint64_t limefile_cells_header_bytes(const struct limecells *); /* of the index's header */
uint64_t limefile_cells_index_bytes(const struct limecells *);
uint64_t limefile_cells_data_bytes(const struct limecells *);
const struct limecells_field *limefile_cells_find(const struct limecells *, const char *name);

/* The index's header; `raw` has limefile_cells_header_bytes(). */
void limefile_cells_encode(const struct limecells *, unsigned char *raw);

/* How long the header is, by its first LIMECELLS_FIXED_BYTES bytes. */
const char *limefile_cells_decode_length(const unsigned char *raw, uint64_t *header_bytes);

/* `raw` is the whole header, of an index of record_bytes. */
const char *limefile_cells_decode(const unsigned char *raw, uint64_t header_bytes,
                                  uint64_t record_bytes, struct limecells *out);

void limefile_cells_entry_encode(const struct limecells_cell *, unsigned char *raw);
/* Of a cell whose particles are in the data. */
const char *limefile_cells_entry_decode(const struct limecells *, const unsigned char *raw,
                                        struct limecells_cell *out);

/* Checks the entries of all cells as they come, in memory that does not grow with them: against
 * entries_crc and the data that they divide. */
struct limecells_checker {
    const struct limecells *is;
    const char *why;       /* what is wrong; NULL: nothing so far */
    uint64_t bad;          /* the number of the cell that this is about, or that of all */
    uint64_t fewest, most; /* particles of a cell */
    uint64_t empty;        /* cells without any */
    uint64_t next, key[2], places;
    uint32_t crc;
};
void limefile_cells_check_begin(struct limecells_checker *, const struct limecells *);
/* The next n entries, in the order of the cells. */
void limefile_cells_check_add(struct limecells_checker *, const unsigned char *raw, size_t n);
const char *limefile_cells_check_end(struct limecells_checker *); /* returns `why` */

/* zlib's CRC-32 of n bytes that follow those of `crc`; 0 at first. And that of two pieces, one
 * after another, of which the second has n bytes. */
uint32_t limefile_cells_crc(uint32_t crc, const void *data, size_t n);
uint32_t limefile_cells_crc_join(uint32_t first, uint32_t second, uint64_t n);

/* What is in the text record, for people: XML. Returns its length, without the NUL. */
size_t limefile_cells_text(const struct limecells *, char text[LIMECELLS_TEXT_MAX]);

/*
 * ---- where a particle belongs: the one rule ----
 *
 * A cell, and a reader's box, has its lower faces and not its upper ones: a particle on a face
 * belongs to the cell above. On the domain's upper face there is none above: where the
 * dimension is periodic that face is the domain's lower one, so the particle belongs to the
 * first cell; where it is not, to the last. Positions are never changed.
 */

/* The cell of a coordinate in dimension d; -1: outside of the domain, or no number. Never less
 * for a greater coordinate, but for the upper face of a periodic dimension. */
int64_t limefile_cells_locate(const struct limecells *, int d, double x);

/* The coordinate that counts: the origin for the upper face of a periodic dimension. */
double limefile_cells_canonical(const struct limecells *, int d, double x);

/* Where cell i of dimension d begins; its end is where cell i + 1 begins, the last one's the
 * domain's. */
double limefile_cells_edge(const struct limecells *, int d, uint64_t i);

/* Cells are numbered with x slowest: (x * cells[1] + y) * cells[2] + z. */
void limefile_cells_at(const struct limecells *, uint64_t number, uint64_t at[LIMECELLS_DIMS]);

#endif
