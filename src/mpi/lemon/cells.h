/*
 * cells.h - particles on their way into cells: what the parts of a write hand to each other
 */
#ifndef LEMON_CELLS_INSIDE_H
#define LEMON_CELLS_INSIDE_H

#include "lemon_cells.h"
#include "limecells.h"
#include "runmove.h"

enum {
    CELLS_WHY_MAX = 256,
};

/* ---- cellsargs.c: what callers say, as the format says it; local ---- */

/* False: *why. */
bool lemon_cells_take(const LemonDomain *, const LemonParticle *, struct limecells *,
                      const char **why);

/* The other way round; names and fields belong to the LemonCells. */
void lemon_cells_give(const struct limecells *, LemonCells *,
                      LemonField field[LIMECELLS_FIELDS_MAX]);

bool lemon_cells_is_big_endian(void);

/* Where a particle is, and how messages call it: "particle 7 of rank 2", "id 12". */
void lemon_cells_position(const struct limecells_field *position, const char *particle,
                          double x[LIMECELLS_DIMS]);
void lemon_cells_name(const struct limecells *, const char *particle, int64_t number,
                      char name[CELLS_WHY_MAX / 2]);
uint64_t lemon_cells_id(const struct limecells_field *id, const char *particle);

/* Numbers of all fields are turned round, byte by byte. */
void lemon_cells_swap(const struct limecells *, char *particles, int64_t count);

/* ---- cellssort.c: the particles of this rank, by cells; local ---- */

/* Those of one cell. */
struct cells_segment {
    uint64_t cell;
    int64_t count;
    int64_t place; /* in the data record, of its first particle: cellshome.c */
    int64_t first; /* in the rank's stream */
    uint32_t crc;
};

/* A piece of a segment that a piece of the stream ends in. */
struct cells_fragment {
    int64_t at, bytes; /* in the stream */
    int64_t segment;   /* of `stream` */
    uint32_t crc;
};

struct cells_sorted {
    const struct limecells *c;
    const char *particles;
    int64_t count;
    struct cells_segment *segment; /* in the order of cells */
    int64_t segments;
    size_t room;
    int64_t *key;                  /* of each particle: its cell, then its segment */
    int64_t *order;                /* the particles in the order of the stream */
    bool as_is;                    /* which is the caller's order */
    struct cells_segment **stream; /* the segments in that order */
    struct cells_fragment *fragment;
    int64_t fragments;
    size_t capacity;
    bool no_memory; /* was met while the stream was read */
};

/* False: `why` names the particle, or there is no memory. */
bool lemon_cells_sort(struct cells_sorted *, const struct limecells *, const char *particles,
                      int64_t count, char why[CELLS_WHY_MAX]);
void lemon_cells_sorted_free(struct cells_sorted *);

/* All places are known: the stream is in the order of the file. Sets *run, malloc'ed, in
 * particles' bytes. False: no memory. */
bool lemon_cells_line_up(struct cells_sorted *, struct lemon_run **run, int64_t *runs);

/* It, noting checksums; then those of the segments. False: no memory. */
void lemon_cells_stream_set(struct cells_sorted *, struct lemon_stream *);
bool lemon_cells_sum_up(struct cells_sorted *);

/* ---- cellshome.c: a cell's entry is put together by its home, one rank ---- */

struct cells_homes {
    struct lemon_sparse pattern;
    int64_t per;          /* cells of a home */
    int64_t first, cells; /* this rank's */
    struct limecells_cell *cell;
    int64_t *word; /* of the cells' items: cell, count */
    /* What this rank asks and is told; and what it is asked as a home, and tells. */
    int64_t *asked, *told, *answer, *place;
    unsigned char *index; /* the entries of this rank's cells; on rank 0 the whole index */
};

/* Gives each segment its place. Collective, agreed; to be closed in any case. */
int lemon_cells_meet(struct lemon_internal *, struct cells_homes *, const struct limecells *,
                     struct cells_sorted *);

/* The checksums of the segments become those of cells; writes the index, which begins at `at`
 * of the file. Collective, not agreed. */
int lemon_cells_write_index(struct lemon_internal *, struct cells_homes *, struct limecells *,
                            const struct cells_sorted *, int64_t at);
void lemon_cells_homes_close(struct cells_homes *);

/* ---- cellsid.c ---- */

/* LEMON_ERR_PARAM, told, if an id is there twice. Collective, agreed. */
int lemon_cells_check_ids(struct lemon_internal *, const struct limecells *,
                          const char *particles, int64_t count);

#endif
