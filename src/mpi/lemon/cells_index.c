/*
 * cells_index.c - compute the place of each cell in the data record, and write the index
 *
 * The cell numbers are divided among the ranks: each cell has a home rank, which counts the
 * cell's particles on all ranks and completes the cell's entry in the index. So no rank needs a
 * table of all cells. A cell's owner is the lowest rank with particles of the cell. The data
 * record is sorted by owner, then by cell, so the particles of a rank are one range if the rank
 * shares no cells with others.
 */
#include "cells.h"

#include <limits.h>

/* Words of an item: how many particles a rank has of a cell. */
enum {
    ITEM_CELL,
    ITEM_COUNT,
    ITEM_WORDS,
};

/* Words of an answer: what a cell's home returns for an item. */
enum {
    ANSWER_BEFORE, /* number of the cell's particles on lower ranks */
    ANSWER_TOTAL,  /* number of all the cell's particles if the item is the owner's, else 0 */
    ANSWER_WORDS,
};

enum {
    TAG_ENTRIES = 6,
};

/* Stores an item for each segment in `word`, and adds the items' homes to the pattern. Returns
 * false if out of memory. */
static bool list_items(struct cells_homes *h, const struct cells_sorted *s, int64_t *word)
{
    bool ok = word != NULL;
    for (int64_t i = 0, first = 0; ok && i < s->segments; i++) {
        int64_t home = (int64_t)s->segment[i].cell / h->cells_per_home;
        word[i * ITEM_WORDS + ITEM_CELL] = (int64_t)s->segment[i].cell;
        word[i * ITEM_WORDS + ITEM_COUNT] = s->segment[i].count;
        if (i + 1 < s->segments && (int64_t)s->segment[i + 1].cell / h->cells_per_home == home)
            continue;
        ok = lemon_sparse_add(&h->pattern, (int)home, i + 1 - first) == 0;
        first = i + 1;
    }
    return ok;
}

/* Runs on the homes. Sets the cells' counts, and an answer for each item. Items are sorted by
 * sender, so that earlier items of a cell are from lower ranks. */
static void count_particles_of_cells(struct cells_homes *h, int64_t *answers)
{
    for (int64_t i = 0; i < h->pattern.from_items; i++) {
        const int64_t *item = h->items_in + i * ITEM_WORDS;
        struct limecells_cell *cell = &h->cell[item[ITEM_CELL] - h->first];
        answers[i * ANSWER_WORDS + ANSWER_BEFORE] = (int64_t)cell->count;
        cell->count += (uint64_t)item[ITEM_COUNT];
    }
    for (int64_t i = 0; i < h->pattern.from_items; i++) {
        int64_t *a = answers + i * ANSWER_WORDS;
        bool owner = a[ANSWER_BEFORE] == 0;
        a[ANSWER_TOTAL] =
            owner ? (int64_t)h->cell[h->items_in[i * ITEM_WORDS] - h->first].count : 0;
    }
}

/* For each segment i: if this rank owns the segment's cell, sets place[i] to the index of the
 * cell's first particle in the data record, otherwise to -1. Collective. */
static void compute_owned_places(struct lemon_internal *in, const struct cells_sorted *s,
                                 const int64_t *answers, int64_t *place)
{
    int64_t owned = 0, before = 0;
    for (int64_t i = 0; i < s->segments; i++)
        owned += answers[i * ANSWER_WORDS + ANSWER_TOTAL];
    MPI_Exscan(&owned, &before, 1, MPI_INT64_T, MPI_SUM, in->comm);
    if (in->rank == 0)
        before = 0;
    for (int64_t i = 0; i < s->segments; i++) {
        int64_t total = answers[i * ANSWER_WORDS + ANSWER_TOTAL];
        place[i] = total ? before : -1;
        before += total;
    }
}

/* Runs on the homes. Before, place[i] is the place of item i's cell if the cell's owner has
 * sent the item, otherwise -1. Afterwards, place[i] is the place of the sender's segment: the
 * index in the data record of the first particle that the sender has of the cell. */
static void answer_places(const struct cells_homes *h, const int64_t *answers, int64_t *place)
{
    for (int64_t i = 0; i < h->pattern.from_items; i++)
        if (place[i] >= 0)
            h->cell[h->items_in[i * ITEM_WORDS] - h->first].first = (uint64_t)place[i];
    for (int64_t i = 0; i < h->pattern.from_items; i++)
        place[i] = (int64_t)h->cell[h->items_in[i * ITEM_WORDS] - h->first].first +
                   answers[i * ANSWER_WORDS + ANSWER_BEFORE];
}

/* Allocates all memory, also for the write of the index. So the ranks agree on it only once. */
static bool allocate_homes(const struct lemon_internal *in, struct cells_homes *h,
                           const struct limecells *c)
{
    size_t to = (size_t)h->pattern.to_items, from = (size_t)h->pattern.from_items;
    size_t index = in->rank == 0 ? limefile_cells_header_bytes(c) +
                                       limefile_cells_count(c) * LIMECELLS_ENTRY_BYTES
                                 : (size_t)h->cells * LIMECELLS_ENTRY_BYTES;
    h->answers_in = malloc(to * ANSWER_WORDS * sizeof *h->answers_in + 1);
    h->answers_out = malloc(from * ANSWER_WORDS * sizeof *h->answers_out + 1);
    h->places = malloc((from > to ? from : to) * sizeof *h->places + 1);
    h->items_in = malloc(from * ITEM_WORDS * sizeof *h->items_in + 1);
    h->cell = calloc((size_t)h->cells + 1, sizeof *h->cell);
    h->index = malloc(index + 1);
    return h->answers_in && h->answers_out && h->places && h->items_in && h->cell && h->index &&
           h->cells_per_home <= INT_MAX;
}

/* Sets the place of each segment of this rank. Collective. */
static void find_places(struct lemon_internal *in, struct cells_homes *h,
                        struct cells_sorted *s)
{
    int64_t *own = h->items_out; /* h->items_out is not needed after it is sent */
    lemon_sparse_forward(in, &h->pattern, ITEM_WORDS, h->items_out, h->items_in);
    count_particles_of_cells(h, h->answers_out);
    lemon_sparse_reverse(in, &h->pattern, ANSWER_WORDS, h->answers_out, h->answers_in);
    compute_owned_places(in, s, h->answers_in, own);
    lemon_sparse_forward(in, &h->pattern, 1, own, h->places);
    answer_places(h, h->answers_out, h->places);
    lemon_sparse_reverse(in, &h->pattern, 1, h->places, own);
    for (int64_t i = 0; i < s->segments; i++)
        s->segment[i].place = own[i];
}

int lemon_cells_assign_places(struct lemon_internal *in, struct cells_homes *h,
                              const struct limecells *c, struct cells_sorted *s)
{
    int64_t cells = (int64_t)limefile_cells_count(c);
    *h = (struct cells_homes){.cells_per_home = lemon_runs_items_per_home(cells, in->ranks)};
    h->first = in->rank * h->cells_per_home < cells ? in->rank * h->cells_per_home : cells;
    h->cells = cells - h->first < h->cells_per_home ? cells - h->first : h->cells_per_home;
    h->items_out = malloc((size_t)s->segments * ITEM_WORDS * sizeof *h->items_out + 1);
    bool ok = lemon_sparse_build(in, &h->pattern, list_items(h, s, h->items_out));
    ok = ok && allocate_homes(in, h, c);
    int code = lemon_agree(in, ok ? LEMON_SUCCESS
                                  : lemon_log(in, LEMON_ERR_WRITE, "cells: out of memory"));
    if (code == LEMON_SUCCESS)
        find_places(in, h, s);
    return code;
}

void lemon_cells_homes_release(struct cells_homes *h)
{
    lemon_sparse_close(&h->pattern);
    free(h->cell);
    free(h->items_in);
    free(h->items_out);
    free(h->answers_in);
    free(h->answers_out);
    free(h->places);
    free(h->index);
    *h = (struct cells_homes){0};
}

/* ---- checksums, and the index ---- */

/* Homes combine the segments' checksums to the cells' checksums, and encode the entries. */
static void combine_checksums(struct lemon_internal *in, struct cells_homes *h,
                              const struct limecells *c, const struct cells_sorted *s,
                              unsigned char *entries)
{
    int64_t *sent = h->items_out, *received = h->places;
    for (int64_t i = 0; i < s->segments; i++)
        sent[i] = s->segment[i].crc;
    lemon_sparse_forward(in, &h->pattern, 1, sent, received);
    for (int64_t i = 0; i < h->pattern.from_items; i++) {
        const int64_t *item = h->items_in + i * ITEM_WORDS;
        struct limecells_cell *cell = &h->cell[item[ITEM_CELL] - h->first];
        cell->crc = limefile_cells_crc_combine(cell->crc, (uint32_t)received[i],
                                               (uint64_t)item[ITEM_COUNT] * c->particle_bytes);
    }
    for (int64_t i = 0; i < h->cells; i++)
        limefile_cells_entry_encode(&h->cell[i], entries + i * LIMECELLS_ENTRY_BYTES);
}

/* Sends the entries of all homes to rank 0, whose own entries are the first ones. */
static void gather_index_entries(const struct lemon_internal *in, const struct cells_homes *h,
                                 const struct limecells *c, unsigned char *entries)
{
    int64_t cells = (int64_t)limefile_cells_count(c);
    MPI_Datatype entry;
    MPI_Type_contiguous(LIMECELLS_ENTRY_BYTES, MPI_BYTE, &entry);
    MPI_Type_commit(&entry);
    if (in->rank != 0 && h->cells > 0)
        MPI_Send(entries, (int)h->cells, entry, 0, TAG_ENTRIES, in->comm);
    for (int64_t at = h->cells_per_home; in->rank == 0 && at < cells; at += h->cells_per_home)
        MPI_Recv(entries + at * LIMECELLS_ENTRY_BYTES,
                 (int)(cells - at < h->cells_per_home ? cells - at : h->cells_per_home), entry,
                 (int)(at / h->cells_per_home), TAG_ENTRIES, in->comm, MPI_STATUS_IGNORE);
    MPI_Type_free(&entry);
}

int lemon_cells_write_index(struct lemon_internal *in, struct cells_homes *h,
                            struct limecells *c, const struct cells_sorted *s, int64_t at)
{
    size_t header = limefile_cells_header_bytes(c);
    size_t bytes = limefile_cells_count(c) * LIMECELLS_ENTRY_BYTES;
    unsigned char *entries = in->rank == 0 ? h->index + header : h->index;
    combine_checksums(in, h, c, s, entries);
    gather_index_entries(in, h, c, entries);
    if (in->rank != 0)
        return LEMON_SUCCESS;
    c->entries_crc = limefile_cells_crc(0, entries, bytes);
    limefile_cells_encode(c, h->index);
    return lemon_move_bytes(in, LEMON_WRITE, h->index, (int64_t)(header + bytes), at);
}
