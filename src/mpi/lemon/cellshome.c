/*
 * cellshome.c - what all ranks together know of a cell
 *
 * The cells' numbers are divided between the ranks: each cell has a home, which counts what the
 * ranks have of it and puts its entry together. So no rank has a table of all cells. The data
 * record is ordered by the first rank that has anything of a cell, its owner, and then by
 * cells: what a rank has is one range of it, if no other rank has anything of the same cells.
 */
#include "cells.h"

#include <string.h>

/* Of an item: the particles of a cell that a rank has. */
enum {
    ITEM_CELL,
    ITEM_COUNT,
    ITEM_WORDS,
};

enum {
    ANSWER_BEFORE, /* particles of the cell that lower ranks have */
    ANSWER_TOTAL,  /* of the cell, for its owner; 0 for the others */
    ANSWER_WORDS,
};

static bool list_items(struct cells_homes *h, const struct cells_sorted *s, int64_t *word)
{
    bool good = word != NULL;
    for (int64_t i = 0, first = 0; good && i < s->segments; i++) {
        int64_t home = (int64_t)s->segment[i].cell / h->per;
        word[i * ITEM_WORDS + ITEM_CELL] = (int64_t)s->segment[i].cell;
        word[i * ITEM_WORDS + ITEM_COUNT] = s->segment[i].count;
        if (i + 1 < s->segments && (int64_t)s->segment[i + 1].cell / h->per == home)
            continue;
        good = lemon_sparse_add(&h->pattern, (int)home, i + 1 - first) == 0;
        first = i + 1;
    }
    return good;
}

static int agree_on_memory(struct lemon_internal *in, bool good)
{
    return lemon_agree(in, good ? LEMON_SUCCESS : lemon_say(in, LEMON_ERR_WRITE, "no memory"));
}

/* Sources come in the order of ranks. */
static void count_cells(struct cells_homes *h, int64_t *answer)
{
    for (int64_t i = 0; i < h->pattern.from_items; i++) {
        const int64_t *item = h->word + i * ITEM_WORDS;
        struct limecells_cell *cell = &h->cell[item[ITEM_CELL] - h->first];
        answer[i * ANSWER_WORDS + ANSWER_BEFORE] = (int64_t)cell->count;
        cell->count += (uint64_t)item[ITEM_COUNT];
    }
    for (int64_t i = 0; i < h->pattern.from_items; i++) {
        int64_t *a = answer + i * ANSWER_WORDS;
        bool owner = a[ANSWER_BEFORE] == 0;
        a[ANSWER_TOTAL] =
            owner ? (int64_t)h->cell[h->word[i * ITEM_WORDS] - h->first].count : 0;
    }
}

/* Where the cells that this rank owns begin, or -1. */
static void place_owned(struct lemon_internal *in, const struct cells_sorted *s,
                        const int64_t *answer, int64_t *place)
{
    int64_t owned = 0, before = 0;
    for (int64_t i = 0; i < s->segments; i++)
        owned += answer[i * ANSWER_WORDS + ANSWER_TOTAL];
    MPI_Exscan(&owned, &before, 1, MPI_INT64_T, MPI_SUM, in->comm);
    if (in->rank == 0)
        before = 0;
    for (int64_t i = 0; i < s->segments; i++) {
        int64_t total = answer[i * ANSWER_WORDS + ANSWER_TOTAL];
        place[i] = total ? before : -1;
        before += total;
    }
}

static void tell_places(const struct cells_homes *h, const int64_t *answer, int64_t *place)
{
    for (int64_t i = 0; i < h->pattern.from_items; i++)
        if (place[i] >= 0)
            h->cell[h->word[i * ITEM_WORDS] - h->first].first = (uint64_t)place[i];
    for (int64_t i = 0; i < h->pattern.from_items; i++)
        place[i] = (int64_t)h->cell[h->word[i * ITEM_WORDS] - h->first].first +
                   answer[i * ANSWER_WORDS + ANSWER_BEFORE];
}

/* What this rank asks and is told; and what it is asked as a home, and tells. */
struct talk {
    int64_t *asked, *told;
    int64_t *answer, *place;
};

static bool talk_open(struct talk *t, const struct cells_homes *h)
{
    size_t to = (size_t)h->pattern.to_items, from = (size_t)h->pattern.from_items;
    t->told = malloc(to * ANSWER_WORDS * sizeof *t->told + 1);
    t->answer = malloc(from * ANSWER_WORDS * sizeof *t->answer + 1);
    t->place = malloc((from > to ? from : to) * sizeof *t->place + 1);
    return t->told && t->answer && t->place;
}

static bool homes_open(struct cells_homes *h)
{
    h->word = malloc((size_t)h->pattern.from_items * ITEM_WORDS * sizeof *h->word + 1);
    h->cell = calloc((size_t)h->cells + 1, sizeof *h->cell);
    return h->word && h->cell;
}

static void find_places(struct lemon_internal *in, struct cells_homes *h,
                        struct cells_sorted *s, const struct talk *t)
{
    int64_t *mine = t->asked; /* is not needed any more once it has been sent */
    lemon_sparse_forth(in, &h->pattern, ITEM_WORDS, t->asked, h->word);
    count_cells(h, t->answer);
    lemon_sparse_back(in, &h->pattern, ANSWER_WORDS, t->answer, t->told);
    place_owned(in, s, t->told, mine);
    lemon_sparse_forth(in, &h->pattern, 1, mine, t->place);
    tell_places(h, t->answer, t->place);
    lemon_sparse_back(in, &h->pattern, 1, t->place, mine);
    for (int64_t i = 0; i < s->segments; i++)
        s->segment[i].place = mine[i];
}

int lemon_cells_meet(struct lemon_internal *in, struct cells_homes *h,
                     const struct limecells *c, struct cells_sorted *s)
{
    int64_t cells = (int64_t)limefile_cells_cells(c);
    struct talk t = {0};
    *h = (struct cells_homes){.per = lemon_runs_of_home(cells, in->ranks)};
    h->first = in->rank * h->per < cells ? in->rank * h->per : cells;
    h->cells = cells - h->first < h->per ? cells - h->first : h->per;
    t.asked = malloc((size_t)s->segments * ITEM_WORDS * sizeof *t.asked + 1);
    int code = lemon_sparse_open(in, &h->pattern, list_items(h, s, t.asked));
    if (code == LEMON_SUCCESS) {
        bool good = homes_open(h);
        code = agree_on_memory(in, talk_open(&t, h) && good);
        if (code == LEMON_SUCCESS)
            find_places(in, h, s, &t);
        else
            lemon_cells_homes_close(h);
    }
    free(t.asked);
    free(t.told);
    free(t.answer);
    free(t.place);
    return code;
}

void lemon_cells_homes_close(struct cells_homes *h)
{
    lemon_sparse_close(&h->pattern);
    free(h->cell);
    free(h->word);
    h->cell = NULL;
    h->word = NULL;
}

/* ---- checksums, and the index ---- */

static int sum_cells(struct lemon_internal *in, struct cells_homes *h,
                     const struct limecells *c, const struct cells_sorted *s)
{
    int64_t *mine = malloc((size_t)h->pattern.to_items * sizeof *mine + 1);
    int64_t *theirs = malloc((size_t)h->pattern.from_items * sizeof *theirs + 1);
    int code = agree_on_memory(in, mine && theirs);
    if (code == LEMON_SUCCESS) {
        for (int64_t i = 0; i < s->segments; i++)
            mine[i] = s->segment[i].crc;
        lemon_sparse_forth(in, &h->pattern, 1, mine, theirs);
        for (int64_t i = 0; i < h->pattern.from_items; i++) {
            const int64_t *item = h->word + i * ITEM_WORDS;
            struct limecells_cell *cell = &h->cell[item[ITEM_CELL] - h->first];
            cell->crc = limefile_cells_crc_join(cell->crc, (uint32_t)theirs[i],
                                                (uint64_t)item[ITEM_COUNT] * c->particle_bytes);
        }
    }
    free(mine);
    free(theirs);
    return code;
}

static void copy_entries(void *entries, int64_t at, int64_t n, char *to)
{
    memcpy(to, (const char *)entries + at, (size_t)n);
}

/* That of all homes' entries, on rank 0, which has room for a word of each rank. */
static int join_crcs(struct lemon_internal *in, const char *entries, int64_t bytes,
                     uint32_t *crc)
{
    uint64_t mine[2] = {limefile_cells_crc(0, entries, (size_t)bytes), (uint64_t)bytes};
    uint64_t *all = in->rank == 0 ? malloc((size_t)in->ranks * sizeof mine) : NULL;
    int code = agree_on_memory(in, in->rank != 0 || all);
    if (code == LEMON_SUCCESS)
        MPI_Gather(mine, 2, MPI_UINT64_T, all, 2, MPI_UINT64_T, 0, in->comm);
    for (int i = 0; all && code == LEMON_SUCCESS && i < in->ranks; i++)
        *crc = limefile_cells_crc_join(*crc, (uint32_t)all[2 * i], all[2 * i + 1]);
    free(all);
    return code;
}

static int write_header(struct lemon_internal *in, const struct limecells *c, int64_t at)
{
    unsigned char raw[LIMECELLS_FIXED_BYTES + LIMECELLS_FIELDS_MAX * LIMECELLS_FIELD_BYTES];
    if (in->rank != 0)
        return LEMON_SUCCESS;
    limefile_cells_encode(c, raw);
    return lemon_move_bytes(in, LEMON_WRITE, raw, (int64_t)limefile_cells_header_bytes(c), at);
}

static int write_entries(struct lemon_internal *in, const struct cells_homes *h,
                         struct limecells *c, char *entries, int64_t at)
{
    int64_t bytes = h->cells * LIMECELLS_ENTRY_BYTES;
    struct lemon_run run = {h->first * LIMECELLS_ENTRY_BYTES, bytes, 0};
    struct lemon_stream stream = {copy_entries, NULL, entries};
    struct lemon_runmove runs;
    for (int64_t i = 0; i < h->cells; i++)
        limefile_cells_entry_encode(&h->cell[i],
                                    (unsigned char *)entries + i * LIMECELLS_ENTRY_BYTES);
    int code = join_crcs(in, entries, bytes, &c->entries_crc);
    if (code == LEMON_SUCCESS)
        code = lemon_runmove_open(
            in, &runs, (int64_t)limefile_cells_cells(c) * LIMECELLS_ENTRY_BYTES,
            at + (int64_t)limefile_cells_header_bytes(c), &run, bytes > 0, true);
    if (code != LEMON_SUCCESS)
        return code;
    code = lemon_runmove_write(in, &runs, &stream);
    lemon_runmove_close(&runs);
    return code == LEMON_SUCCESS ? write_header(in, c, at) : code;
}

int lemon_cells_write_index(struct lemon_internal *in, struct cells_homes *h,
                            struct limecells *c, const struct cells_sorted *s, int64_t at)
{
    int code = sum_cells(in, h, c, s);
    if (code != LEMON_SUCCESS)
        return code;
    char *entries = malloc((size_t)h->cells * LIMECELLS_ENTRY_BYTES + 1);
    code = agree_on_memory(in, entries != NULL);
    if (code == LEMON_SUCCESS)
        code = lemon_agree(in, write_entries(in, h, c, entries, at));
    free(entries);
    return code;
}
