/* cells.h - internal interfaces of the modules that read and write particles */
#ifndef LEMON_CELLS_INTERNAL_H
#define LEMON_CELLS_INTERNAL_H

#include "lemon_cells.h"
#include "limecells.h"
#include "collective_io.h"

enum {
    CELLS_WHY_MAX = 256, /* bytes of the text of an error */
};

/* ---- convert the caller's arguments to the format's; local ---- */

/* Converts and checks the arguments, which may be NULL. If an argument is invalid, returns
 * false and sets *why to a static text. */
bool lemon_cells_convert_arguments(const LemonDomain *, const LemonParticle *,
                                   struct limecells *, const char **why);

/* Converts the format's struct to *cells, which then refers to `field` and to that struct. */
void lemon_cells_convert_result(const struct limecells *, LemonCells *,
                                LemonField field[LIMECELLS_FIELDS_MAX]);

bool lemon_cells_is_big_endian(void);

/* Get a particle's position; its name in messages, such as "particle 7 (id 12)"; its id. */
void lemon_cells_get_position(const struct limecells_field *position, const char *particle,
                              double x[LIMECELLS_DIMS]);
void lemon_cells_particle_name(const struct limecells *, const char *particle, int64_t number,
                               char name[CELLS_WHY_MAX / 2]);
uint64_t lemon_cells_particle_id(const struct limecells_field *id, const char *particle);

/* Reverses the byte order of all numbers of `count` particles in place. Other bytes remain
 * unchanged. The struct limecells must be valid; its member big_endian is not changed. */
void lemon_cells_swap_bytes(const struct limecells *, char *particles, int64_t count);

/* ---- sort this rank's particles by cell; local ---- */

/* The rank's particles of one cell. A rank's stream has its own particles in file order. */
struct cells_segment {
    uint64_t cell;
    int64_t count;
    int64_t place; /* index of the segment's first particle in the data record */
    int64_t first; /* index of the segment's first particle in the rank's stream */
    uint32_t crc;
};

/* A part of a segment. It was read from the stream separately, so it has its own checksum. */
struct cells_fragment {
    int64_t at, bytes; /* offset and length in the stream, in bytes */
    int64_t segment;   /* index in the array `stream` of struct cells_sorted */
    uint32_t crc;
};

struct cells_sorted {
    const struct limecells *c;
    const char *particles;
    int64_t count;
    struct cells_segment *segment; /* sorted by cell */
    int64_t segments;
    size_t segment_capacity;
    int64_t *key;                  /* for each particle: its cell, later its segment */
    int64_t *order;                /* particles in the order of the stream */
    bool is_in_order;              /* the stream has the caller's order */
    struct cells_segment **stream; /* segments in the order of the stream */
    struct cells_fragment *fragment;
    int64_t fragments;
    size_t fragment_capacity;
    bool no_memory; /* out of memory while the stream was read */
};

/* Returns false, with a message in `why`, if a particle is invalid or if out of memory. */
bool lemon_cells_sort(struct cells_sorted *, const struct limecells *, const char *particles,
                      int64_t count, char why[CELLS_WHY_MAX]);
void lemon_cells_sorted_free(struct cells_sorted *);

/* Sorts the stream. The caller has set all places before. Sets *run (the caller frees it) to
 * the stream's ranges in the data record, in bytes. Returns false if out of memory. */
bool lemon_cells_build_stream(struct cells_sorted *, struct lemon_run **run, int64_t *runs);

/* The first makes a stream that computes checksums while it is read. The second sets the
 * segments' checksums after the stream was read. It returns false if out of memory. */
void lemon_cells_stream_init(struct cells_sorted *, struct lemon_stream *);
bool lemon_cells_combine_checksums(struct cells_sorted *);

/* ---- each cell has a home, a rank that completes the cell's entry of the index ---- */

struct cells_homes {
    struct lemon_sparse pattern;
    int64_t cells_per_home;
    int64_t first, cells; /* this rank is the home of `cells` cells, from number `first` on */
    struct limecells_cell *cell;
    /* Items (cell, count), and answers to items, sent and received; places of cells. */
    int64_t *items_out, *answers_in, *items_in, *answers_out, *places;
    unsigned char *index; /* entries of this rank's cells; on rank 0 the whole index */
};

/* Sets the place of each segment. Call lemon_cells_homes_release() also after an error.
 * Collective, agreed. */
int lemon_cells_assign_places(struct lemon_internal *, struct cells_homes *,
                              const struct limecells *, struct cells_sorted *);

/* Combines the segments' checksums to the cells' checksums, and writes the index at offset `at`
 * of the file. Collective, not agreed. */
int lemon_cells_write_index(struct lemon_internal *, struct cells_homes *, struct limecells *,
                            const struct cells_sorted *, int64_t at);
void lemon_cells_homes_release(struct cells_homes *);

/* ---- unique ids ---- */

/* LEMON_ERR_PARAM, with a message, if two particles have the same id. Collective, agreed. */
int lemon_cells_check_ids(struct lemon_internal *, const struct limecells *,
                          const char *particles, int64_t count);

#endif
