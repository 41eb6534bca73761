/* plan.c - plan which rank moves which range of the file */
#include "plan.h"

/* Measurements: docs/performance.md; computations for many ranks: docs/study.md. */
enum {
    DIRECT_MIN = 256 * 1024, /* shortest run that its rank moves itself ... */
    DIRECT_STRIPES = 4,      /* ... and its length in stripes, if these are known */
    EXTENT_MIN = 4 << 20,    /* length of extents, and lower limit of pieces, ... */
    SMALL = 64,              /* ... but at most 1/SMALL of the lattice */
    TURN_MIN = 8 << 20,      /* bytes of an aggregator's turn, ... */
    TURN_MAX = 64 << 20,     /* ... up to this limit for a wide row, ... */
    MESSAGE = 512 << 10,     /* ... so that each rank contributes about this much */
    TURN_LIMIT = 512 << 20,  /* the count of an MPI message is an int */
    MOVERS_ENOUGH = 1024,    /* more aggregators do not help, longer turns do */
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t quotient_up(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* ---- construction ---- */

/* A single run may have any length. Short runs at arbitrary offsets would each touch one stripe
 * more than necessary. */
static bool runs_are_long(const struct lemon_grid *grid, int64_t base,
                          const struct lemon_plan_hints *hints)
{
    int64_t run = lemon_grid_shortest_run(grid);
    if (run == 0 || run < DIRECT_MIN || !hints->striped)
        return run == 0 || run >= DIRECT_MIN;
    return run >= DIRECT_STRIPES * hints->stripe ||
           (run % hints->stripe == 0 && base % hints->stripe == 0);
}

/* Returns the bytes of one step in dimension d. */
static int64_t inner_bytes(const struct lemon_grid *grid, int d)
{
    int64_t bytes = grid->site_bytes;
    for (int i = d + 1; i < grid->dims; i++)
        bytes *= grid->extent[i];
    return bytes;
}

/* Cuts at the fastest dimension with parts of at least `least` bytes, or at the slowest. */
static void cut_extents(struct lemon_plan *plan, int64_t least)
{
    const struct lemon_grid *grid = &plan->grid;
    for (plan->cut = grid->dims - 1; plan->cut > 0; plan->cut--)
        if (larger(grid->extent[plan->cut] / grid->parts[plan->cut], 1) *
                inner_bytes(grid, plan->cut) >=
            least)
            break;
    plan->inner = inner_bytes(grid, plan->cut);
    plan->extents = plan->rows = grid->parts[plan->cut];
    for (int i = 0; i < plan->cut; i++) {
        plan->extents *= grid->extent[i];
        plan->rows *= grid->parts[i];
    }
    plan->width = plan->ranks / plan->rows;
}

/* Returns the number of extents of the largest row. */
static int64_t row_extents(const struct lemon_grid *grid, int cut)
{
    int64_t extents = 1;
    for (int i = 0; i < cut; i++)
        extents *= quotient_up(grid->extent[i], grid->parts[i]);
    return extents;
}

/* Returns a slightly larger number of pieces if it divides evenly among the aggregators. */
static int64_t evenly(int64_t pieces, int64_t extents, int64_t movers, int64_t most)
{
    for (int64_t more = pieces; more <= smaller(most, 4 * pieces); more++)
        if (extents * more % movers == 0)
            return more;
    return pieces;
}

/* Requirements for the turns of aggregators. */
struct wish {
    int64_t turn;  /* bytes of a turn, before boundaries are shifted to stripes */
    int64_t limit; /* limit in bytes after boundaries are shifted */
    int64_t movers;
    bool strictly; /* `movers` is a limit */
    int64_t least; /* shortest piece in bytes that is cut for more aggregators */
};

/* Returns how many pieces of the longest extent fit into a turn. */
static int64_t pieces_of_turn(const struct lemon_plan *plan, int64_t longest,
                              const struct wish *wish)
{
    int64_t length = larger(quotient_up(longest, plan->pieces), 1);
    int64_t most = smaller(wish->turn / length, wish->limit / (length + plan->stripe));
    return larger(smaller(most, LEMON_TURN_PIECES), 1);
}

/* Returns the number of aggregators in a row: as many as there are pieces for. If there would
 * be too many, takes fewer, with full turns; a user's limit always holds. */
static int64_t movers_of_row(const struct lemon_plan *plan, int64_t row_pieces,
                             const struct wish *wish)
{
    int64_t movers = smaller(plan->width, row_pieces);
    if (plan->rows * movers <= wish->movers)
        return movers;
    if (wish->strictly)
        return larger(wish->movers / plan->rows, 1);
    int64_t full = quotient_up(row_pieces, plan->turn_pieces);
    return smaller(movers, larger(full, quotient_up(wish->movers, plan->rows)));
}

/* Cuts extents into pieces that fit into turns and occupy the aggregators; assigns the
 * pieces. */
static void deal_pieces(struct lemon_plan *plan, const struct wish *wish)
{
    int64_t cut_part = quotient_up(plan->grid.extent[plan->cut], plan->grid.parts[plan->cut]);
    int64_t longest = cut_part * plan->inner;
    int64_t most = larger(quotient_up(longest, wish->least), 1);
    int64_t extents = row_extents(&plan->grid, plan->cut);
    int64_t useful = smaller(quotient_up(wish->movers, plan->extents), most);
    plan->pieces = larger(larger(quotient_up(longest, wish->turn), useful), 1);
    plan->turn_pieces = pieces_of_turn(plan, longest, wish);
    plan->row_movers = movers_of_row(plan, extents * plan->pieces, wish);
    plan->pieces = evenly(plan->pieces, extents, plan->row_movers, most);
    plan->turn_pieces = pieces_of_turn(plan, longest, wish);
    int64_t slots = plan->rows * plan->row_movers;
    plan->movers = wish->strictly ? smaller(slots, wish->movers) : slots;
    int64_t of_slot = quotient_up(extents * plan->pieces, plan->row_movers);
    plan->turns = quotient_up(of_slot, plan->turn_pieces) * quotient_up(slots, plan->movers);
}

static void wish_for_turns(const struct lemon_plan *plan, const struct lemon_plan_hints *hints,
                           struct wish *wish)
{
    int64_t stripe = hints->stripe;
    int64_t turn = larger(TURN_MIN, smaller(plan->width * MESSAGE, TURN_MAX));
    wish->turn = larger(turn, smaller(stripe, TURN_LIMIT));
    wish->limit = 2 * (int64_t)TURN_LIMIT;
    if (hints->round == 0)
        return;
    wish->limit = larger(smaller(hints->round, TURN_LIMIT) / stripe, 1) * stripe;
    wish->turn = wish->limit > stripe ? wish->limit - stripe : larger(stripe / 2, 1);
}

void lemon_plan_make(struct lemon_plan *plan, const struct lemon_grid *grid, int64_t base,
                     const struct lemon_plan_hints *hints)
{
    *plan = (struct lemon_plan){
        .grid = *grid,
        .direct = runs_are_long(grid, base, hints),
        .ranks = lemon_grid_ranks(grid),
        .bytes = lemon_grid_bytes(grid),
        .base = base,
        .stripe = hints->stripe,
    };
    int64_t least = larger(smaller(EXTENT_MIN, plan->bytes / SMALL), hints->stripe);
    if (hints->round > 0)
        least = smaller(least, hints->round);
    cut_extents(plan, least);
    struct wish wish = {
        .movers = smaller(plan->ranks, hints->movers > 0 ? hints->movers : MOVERS_ENOUGH),
        .strictly = hints->movers > 0,
        .least = hints->movers > 0 ? hints->stripe : least,
    };
    wish_for_turns(plan, hints, &wish);
    deal_pieces(plan, &wish);
}

/* ---- offsets in the file ---- */

/* Rounds to the nearest multiple of the stripe in the file. */
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

/* ---- aggregators ---- */

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

/* A slot is a place for an aggregator in a row. Each aggregator has one slot, or, if there are
 * fewer aggregators than slots, several consecutive ones. */
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

/* Returns rank number `j` in the faster dimensions, relative to the row's first rank. */
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

/* The aggregators of a row are spread over it. */
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

/* Returns the number of the k-th piece of the row. */
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

/* The pieces of a slot are consecutive in its row. */
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

/* ---- owner of a piece ---- */

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
