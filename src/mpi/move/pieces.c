/* pieces.c - where the pieces of a plan are, and who moves which of them */
#include "pieces.h"

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t quotient_up(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* ---- places in the file ---- */

/* To the nearest multiple of the stripe in the file. */
static int64_t at_stripe(const struct lemon_plan *plan, int64_t at)
{
    int64_t over = (plan->base % plan->stripe + at % plan->stripe) % plan->stripe;
    if (at <= 0 || at >= plan->bytes)
        return at <= 0 ? 0 : plan->bytes;
    if (over <= plan->stripe - over - 1)
        return (at > over ? at - over : 0);
    return plan->stripe - over >= plan->bytes - at ? plan->bytes : at + (plan->stripe - over);
}

int64_t lemon_plan_extent(const struct lemon_plan *plan, int64_t extent, int64_t *bytes)
{
    const struct lemon_grid *grid = &plan->grid;
    int64_t parts = grid->parts[plan->cut], start, sites;
    lemon_box_split(grid->extent[plan->cut], (int)parts, (int)(extent % parts), &start, &sites);
    *bytes = sites * plan->inner;
    return extent / parts * grid->extent[plan->cut] * plan->inner + start * plan->inner;
}

int64_t lemon_plan_piece(const struct lemon_plan *plan, int64_t piece)
{
    int64_t bytes, extent = piece / plan->pieces;
    if (extent >= plan->extents)
        return plan->bytes;
    int64_t begin = lemon_plan_extent(plan, extent, &bytes);
    __int128 before = (__int128)bytes * (piece % plan->pieces) / plan->pieces;
    return at_stripe(plan, begin + (int64_t)before);
}

/* ---- movers ---- */

void lemon_plan_row(const struct lemon_plan *plan, const int64_t *parts, struct lemon_row *row)
{
    const struct lemon_grid *grid = &plan->grid;
    row->number = row->rank = 0;
    row->pieces = plan->pieces;
    for (int i = 0; i <= plan->cut; i++) {
        row->number = row->number * grid->parts[i] + parts[i];
        row->rank += parts[i] * grid->step[i];
        lemon_box_split(grid->extent[i], (int)grid->parts[i], (int)parts[i], &row->start[i],
                        &row->sites[i]);
        if (i < plan->cut)
            row->pieces *= row->sites[i];
    }
}

static void row_by_number(const struct lemon_plan *plan, int64_t number, struct lemon_row *row)
{
    int64_t parts[LEMON_BOX_DIMS];
    for (int i = plan->cut; i >= 0; i--) {
        parts[i] = number % plan->grid.parts[i];
        number /= plan->grid.parts[i];
    }
    lemon_plan_row(plan, parts, row);
}

/* A slot is a place for a mover in a row. Movers have one each, or, where there are fewer, some
 * one after another. */
static int64_t slots(const struct lemon_plan *plan)
{
    return plan->rows * plan->row_movers;
}

static int64_t first_slot(const struct lemon_plan *plan, int64_t mover)
{
    return quotient_up(mover * slots(plan), plan->movers);
}

static int64_t slot_turns(const struct lemon_plan *plan)
{
    return plan->turns / quotient_up(slots(plan), plan->movers);
}

/* The rank with number `j` in the faster dimensions, counted from the row's first one. */
static int64_t member(const struct lemon_plan *plan, int64_t j)
{
    const struct lemon_grid *grid = &plan->grid;
    int64_t rank = 0;
    for (int i = grid->dims - 1; i > plan->cut; i--) {
        rank += j % grid->parts[i] * grid->step[i];
        j /= grid->parts[i];
    }
    return rank;
}

/* The movers of a row are spread over it. */
static int64_t slot_rank(const struct lemon_plan *plan, const struct lemon_row *row,
                         int64_t of_row)
{
    return row->rank + member(plan, of_row * plan->width / plan->row_movers);
}

static int64_t mover_rank(const struct lemon_plan *plan, int64_t mover)
{
    int64_t slot = first_slot(plan, mover);
    struct lemon_row row;
    row_by_number(plan, slot / plan->row_movers, &row);
    return slot_rank(plan, &row, slot % plan->row_movers);
}

int64_t lemon_plan_mover(const struct lemon_plan *plan, int64_t rank)
{
    const struct lemon_grid *grid = &plan->grid;
    int64_t row = 0, j = 0;
    for (int i = 0; i < grid->dims; i++) {
        int64_t part = rank / grid->step[i] % grid->parts[i];
        if (i <= plan->cut)
            row = row * grid->parts[i] + part;
        else
            j = j * grid->parts[i] + part;
    }
    int64_t of_row = quotient_up(j * plan->row_movers, plan->width);
    if (of_row >= plan->row_movers || of_row * plan->width / plan->row_movers != j)
        return -1;
    int64_t slot = row * plan->row_movers + of_row;
    int64_t mover = slot * plan->movers / slots(plan);
    return first_slot(plan, mover) == slot ? mover : -1;
}

/* The number of a piece of the row that comes `k`th in it. */
static int64_t piece_of_row(const struct lemon_plan *plan, const struct lemon_row *row,
                            int64_t k)
{
    int64_t at[LEMON_BOX_DIMS] = {0}, extent = k / plan->pieces, number = 0;
    for (int i = plan->cut - 1; i >= 0; i--) {
        at[i] = row->start[i] + extent % row->sites[i];
        extent /= row->sites[i];
    }
    for (int i = 0; i < plan->cut; i++)
        number = number * plan->grid.extent[i] + at[i];
    int64_t parts = plan->grid.parts[plan->cut];
    return (number * parts + row->number % parts) * plan->pieces + k % plan->pieces;
}

/* The pieces of a slot are a block of those of its row. */
static int64_t block_begin(const struct lemon_plan *plan, const struct lemon_row *row,
                           int64_t of_row)
{
    return (int64_t)((__int128)row->pieces * of_row / plan->row_movers);
}

int lemon_plan_turn(const struct lemon_plan *plan, int64_t mover, int64_t turn,
                    struct lemon_piece pieces[LEMON_TURN_PIECES])
{
    int64_t slot = first_slot(plan, mover) + turn / slot_turns(plan);
    int count = 0;
    struct lemon_row row;
    if (slot >= first_slot(plan, mover + 1))
        return 0;
    row_by_number(plan, slot / plan->row_movers, &row);
    int64_t of_row = slot % plan->row_movers;
    int64_t k = block_begin(plan, &row, of_row) + turn % slot_turns(plan) * plan->turn_pieces;
    int64_t end = smaller(k + plan->turn_pieces, block_begin(plan, &row, of_row + 1));
    for (; k < end; k++) {
        int64_t piece = piece_of_row(plan, &row, k);
        int64_t from = lemon_plan_piece(plan, piece), to = lemon_plan_piece(plan, piece + 1);
        if (from == to)
            continue;
        if (count > 0 && pieces[count - 1].to == from)
            pieces[count - 1].to = to;
        else
            pieces[count++] = (struct lemon_piece){from, to};
    }
    return count;
}

/* ---- whose a piece is ---- */

int64_t lemon_plan_owner(const struct lemon_plan *plan, int64_t piece, int64_t *turn)
{
    const struct lemon_grid *grid = &plan->grid;
    int64_t at[LEMON_BOX_DIMS] = {0}, parts[LEMON_BOX_DIMS], extent = piece / plan->pieces;
    int64_t k = 0;
    struct lemon_row row;
    parts[plan->cut] = extent % grid->parts[plan->cut];
    extent /= grid->parts[plan->cut];
    for (int i = plan->cut - 1; i >= 0; i--) {
        at[i] = extent % grid->extent[i];
        parts[i] = lemon_grid_part(grid, i, at[i]);
        extent /= grid->extent[i];
    }
    lemon_plan_row(plan, parts, &row);
    for (int i = 0; i < plan->cut; i++)
        k = k * row.sites[i] + at[i] - row.start[i];
    k = k * plan->pieces + piece % plan->pieces;
    int64_t of_row = (int64_t)(((__int128)(k + 1) * plan->row_movers - 1) / row.pieces);
    int64_t slot = row.number * plan->row_movers + of_row;
    int64_t mover = slot * plan->movers / slots(plan);
    *turn = (slot - first_slot(plan, mover)) * slot_turns(plan) +
            (k - block_begin(plan, &row, of_row)) / plan->turn_pieces;
    return plan->movers == slots(plan) ? slot_rank(plan, &row, of_row)
                                       : mover_rank(plan, mover);
}
