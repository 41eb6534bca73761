/* lattice_plan.c - plan which rank moves which range of the file */
#include "lattice_plan.h"

/* Measurements: docs/performance.md; computations for many ranks: docs/study.md. */
enum {
    DIRECT_MIN = 256 * 1024,   /* bytes of the shortest run that a rank moves itself */
    DIRECT_STRIPES = 4,        /* minimum stripes in an unaligned run, if the stripe is known */
    EXTENT_MIN = 4 << 20,      /* bytes of the shortest extent, and of a piece by default */
    EXTENT_FRACTION = 64,      /* in a small lattice, an extent may be 1/64 of the lattice */
    ROUND_MIN = 8 << 20,       /* bytes of the shortest round of an aggregator */
    ROUND_MAX = 64 << 20,      /* bytes of the longest round that is due to a wide row */
    MESSAGE_BYTES = 512 << 10, /* bytes of a round per rank of the row, within these limits */
    ROUND_LIMIT = 512 << 20,   /* bytes of the longest round: an MPI count is an int */
    AGGREGATORS_MAX = 1024,    /* more aggregators would not help; longer rounds do */
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* Returns whether each rank can move its own runs. A part that is a single run may have any
 * length. If the stripe is known, short runs must be aligned: others touch an extra stripe. */
static bool are_runs_long(const struct lemon_grid *grid, int64_t base,
                          const struct lemon_plan_hints *hints)
{
    int64_t run = lemon_grid_shortest_run(grid);
    if (run == 0 || run < DIRECT_MIN || !hints->striped)
        return run == 0 || run >= DIRECT_MIN;
    return run >= DIRECT_STRIPES * hints->stripe ||
           (run % hints->stripe == 0 && base % hints->stripe == 0);
}

/* Returns the bytes from one coordinate to the next in dimension d. */
static int64_t step_bytes(const struct lemon_grid *grid, int d)
{
    int64_t bytes = grid->site_bytes;
    for (int i = d + 1; i < grid->dims; i++)
        bytes *= grid->extent[i];
    return bytes;
}

/* Sets the cut, and the members that depend on it. The cut is the fastest dimension that gives
 * extents of at least min_bytes, or else the slowest dimension. */
static void cut_extents(struct lemon_plan *plan, int64_t min_bytes)
{
    const struct lemon_grid *grid = &plan->grid;
    for (plan->cut = grid->dims - 1; plan->cut > 0; plan->cut--)
        if (larger(grid->extent[plan->cut] / grid->parts[plan->cut], 1) *
                step_bytes(grid, plan->cut) >=
            min_bytes)
            break;
    plan->inner = step_bytes(grid, plan->cut);
    plan->extents = plan->rows = grid->parts[plan->cut];
    for (int i = 0; i < plan->cut; i++) {
        plan->extents *= grid->extent[i];
        plan->rows *= grid->parts[i];
    }
    plan->width = plan->ranks / plan->rows;
}

/* Returns the number of extents of the largest row. */
static int64_t row_extent_count(const struct lemon_grid *grid, int cut)
{
    int64_t extents = 1;
    for (int i = 0; i < cut; i++)
        extents *= divide_up(grid->extent[i], grid->parts[i]);
    return extents;
}

/* Returns the smallest number of pieces per extent, from `pieces` to 4 * pieces and at most
 * `most`, with which all aggregators of a row get equally many; or else `pieces`. */
static int64_t even_pieces(int64_t pieces, int64_t extents, int64_t aggregators, int64_t most)
{
    for (int64_t more = pieces; more <= smaller(most, 4 * pieces); more++)
        if (extents * more % aggregators == 0)
            return more;
    return pieces;
}

/* Requirements for the rounds of aggregators. */
struct goal {
    int64_t round; /* bytes of a round, before boundaries are shifted to stripes */
    int64_t limit; /* limit of a round in bytes, after boundaries are shifted */
    int64_t aggregators;
    bool is_limited;   /* the user has set the limit `aggregators` */
    int64_t min_piece; /* bytes; no extent is cut into shorter pieces for more aggregators */
};

/* Returns how many pieces of the longest extent fit into a round. */
static int64_t pieces_per_round(const struct lemon_plan *plan, int64_t longest,
                                const struct goal *goal)
{
    int64_t length = larger(divide_up(longest, plan->pieces), 1);
    int64_t most = smaller(goal->round / length, goal->limit / (length + plan->stripe));
    return larger(smaller(most, LEMON_ROUND_PIECES_MAX), 1);
}

/* Returns the number of aggregators in a row: one per rank or per piece, whichever is fewer. If
 * all rows together had more than goal->aggregators, returns the row's share of these. Without
 * a user's limit, returns at least as many as are needed to move the row in one round. */
static int64_t aggregators_per_row(const struct lemon_plan *plan, int64_t row_pieces,
                                   const struct goal *goal)
{
    int64_t aggregators = smaller(plan->width, row_pieces);
    if (plan->rows * aggregators <= goal->aggregators)
        return aggregators;
    if (goal->is_limited)
        return larger(goal->aggregators / plan->rows, 1);
    int64_t full = divide_up(row_pieces, plan->round_pieces);
    return smaller(aggregators, larger(full, divide_up(goal->aggregators, plan->rows)));
}

/* Sets the plan's numbers of pieces, aggregators and rounds: each piece fits into a round, and
 * there are enough pieces for the aggregators. */
static void assign_pieces(struct lemon_plan *plan, const struct goal *goal)
{
    int64_t cut_part = divide_up(plan->grid.extent[plan->cut], plan->grid.parts[plan->cut]);
    int64_t longest = cut_part * plan->inner;
    int64_t most = larger(divide_up(longest, goal->min_piece), 1);
    int64_t extents = row_extent_count(&plan->grid, plan->cut);
    int64_t useful = smaller(divide_up(goal->aggregators, plan->extents), most);
    plan->pieces = larger(larger(divide_up(longest, goal->round), useful), 1);
    plan->round_pieces = pieces_per_round(plan, longest, goal);
    plan->row_aggregators = aggregators_per_row(plan, extents * plan->pieces, goal);
    plan->pieces = even_pieces(plan->pieces, extents, plan->row_aggregators, most);
    plan->round_pieces = pieces_per_round(plan, longest, goal);
    int64_t slots = plan->rows * plan->row_aggregators;
    plan->aggregators = goal->is_limited ? smaller(slots, goal->aggregators) : slots;
    int64_t per_slot = divide_up(extents * plan->pieces, plan->row_aggregators);
    plan->rounds =
        divide_up(per_slot, plan->round_pieces) * divide_up(slots, plan->aggregators);
}

static void set_round_goal(const struct lemon_plan *plan, const struct lemon_plan_hints *hints,
                           struct goal *goal)
{
    int64_t stripe = hints->stripe;
    int64_t round = larger(ROUND_MIN, smaller(plan->width * MESSAGE_BYTES, ROUND_MAX));
    goal->round = larger(round, smaller(stripe, ROUND_LIMIT));
    goal->limit = 2 * (int64_t)ROUND_LIMIT;
    if (hints->round_bytes == 0)
        return;
    goal->limit = larger(smaller(hints->round_bytes, ROUND_LIMIT) / stripe, 1) * stripe;
    goal->round = goal->limit > stripe ? goal->limit - stripe : larger(stripe / 2, 1);
}

void lemon_plan_init(struct lemon_plan *plan, const struct lemon_grid *grid, int64_t base,
                     const struct lemon_plan_hints *hints)
{
    *plan = (struct lemon_plan){
        .grid = *grid,
        .direct = are_runs_long(grid, base, hints),
        .ranks = lemon_grid_ranks(grid),
        .bytes = lemon_grid_bytes(grid),
        .base = base,
        .stripe = hints->stripe,
    };
    int64_t min_bytes =
        larger(smaller(EXTENT_MIN, plan->bytes / EXTENT_FRACTION), hints->stripe);
    if (hints->round_bytes > 0)
        min_bytes = smaller(min_bytes, hints->round_bytes);
    cut_extents(plan, min_bytes);
    bool is_limited = hints->aggregators > 0;
    struct goal goal = {
        .aggregators = smaller(plan->ranks, is_limited ? hints->aggregators : AGGREGATORS_MAX),
        .is_limited = is_limited,
        .min_piece = is_limited ? hints->stripe : min_bytes,
    };
    set_round_goal(plan, hints, &goal);
    assign_pieces(plan, &goal);
}

/* ---- offsets in the file ---- */

/* Rounds an offset to the nearest stripe boundary in the file, but not beyond the lattice. */
static int64_t nearest_stripe(const struct lemon_plan *plan, int64_t at)
{
    int64_t over = (plan->base % plan->stripe + at % plan->stripe) % plan->stripe;
    if (at <= 0 || at >= plan->bytes)
        return at <= 0 ? 0 : plan->bytes;
    if (over <= plan->stripe - over - 1)
        return (at > over ? at - over : 0);
    return plan->stripe - over >= plan->bytes - at ? plan->bytes : at + (plan->stripe - over);
}

int64_t lemon_plan_extent_offset(const struct lemon_plan *plan, int64_t extent, int64_t *bytes)
{
    const struct lemon_grid *grid = &plan->grid;
    int64_t parts = grid->parts[plan->cut], start, sites;
    lemon_box_split(grid->extent[plan->cut], (int)parts, (int)(extent % parts), &start, &sites);
    *bytes = sites * plan->inner;
    return extent / parts * grid->extent[plan->cut] * plan->inner + start * plan->inner;
}

int64_t lemon_plan_piece_offset(const struct lemon_plan *plan, int64_t piece)
{
    int64_t bytes, extent = piece / plan->pieces;
    if (extent >= plan->extents)
        return plan->bytes;
    int64_t begin = lemon_plan_extent_offset(plan, extent, &bytes);
    __int128 before = (__int128)bytes * (piece % plan->pieces) / plan->pieces;
    return nearest_stripe(plan, begin + (int64_t)before);
}

/* ---- aggregators ---- */

void lemon_plan_get_row(const struct lemon_plan *plan, const int64_t *parts,
                        struct lemon_row *row)
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

static void get_row(const struct lemon_plan *plan, int64_t number, struct lemon_row *row)
{
    int64_t parts[LEMON_BOX_DIMS];
    for (int i = plan->cut; i >= 0; i--) {
        parts[i] = number % plan->grid.parts[i];
        number /= plan->grid.parts[i];
    }
    lemon_plan_get_row(plan, parts, row);
}

/* A slot is a place for an aggregator in a row. Each aggregator has one slot. If there are
 * fewer aggregators than slots, an aggregator may have several consecutive slots. */
static int64_t slot_count(const struct lemon_plan *plan)
{
    return plan->rows * plan->row_aggregators;
}

static int64_t first_slot(const struct lemon_plan *plan, int64_t aggregator)
{
    return divide_up(aggregator * slot_count(plan), plan->aggregators);
}

static int64_t slot_rounds(const struct lemon_plan *plan)
{
    return plan->rounds / divide_up(slot_count(plan), plan->aggregators);
}

/* Returns the rank of a row's member `j`, relative to the rank of the row's first member. */
static int64_t row_member(const struct lemon_plan *plan, int64_t j)
{
    const struct lemon_grid *grid = &plan->grid;
    int64_t rank = 0;
    for (int i = grid->dims - 1; i > plan->cut; i--) {
        rank += j % grid->parts[i] * grid->step[i];
        j /= grid->parts[i];
    }
    return rank;
}

/* Returns the rank that has slot `in_row` of a row. Slots are spread over the row's ranks. */
static int64_t slot_rank(const struct lemon_plan *plan, const struct lemon_row *row,
                         int64_t in_row)
{
    return row->rank + row_member(plan, in_row * plan->width / plan->row_aggregators);
}

static int64_t aggregator_rank(const struct lemon_plan *plan, int64_t aggregator)
{
    int64_t slot = first_slot(plan, aggregator);
    struct lemon_row row;
    get_row(plan, slot / plan->row_aggregators, &row);
    return slot_rank(plan, &row, slot % plan->row_aggregators);
}

int64_t lemon_plan_aggregator(const struct lemon_plan *plan, int64_t rank)
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
    int64_t in_row = divide_up(j * plan->row_aggregators, plan->width);
    if (in_row >= plan->row_aggregators || in_row * plan->width / plan->row_aggregators != j)
        return -1;
    int64_t slot = row * plan->row_aggregators + in_row;
    int64_t aggregator = slot * plan->aggregators / slot_count(plan);
    return first_slot(plan, aggregator) == slot ? aggregator : -1;
}

static int64_t row_piece(const struct lemon_plan *plan, const struct lemon_row *row, int64_t k)
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

/* Returns the first piece of slot `in_row`, counted in the row. */
static int64_t slot_piece(const struct lemon_plan *plan, const struct lemon_row *row,
                          int64_t in_row)
{
    return (int64_t)((__int128)row->pieces * in_row / plan->row_aggregators);
}

int lemon_plan_round(const struct lemon_plan *plan, int64_t aggregator, int64_t round,
                     struct lemon_piece pieces[LEMON_ROUND_PIECES_MAX])
{
    int64_t slot = first_slot(plan, aggregator) + round / slot_rounds(plan);
    int count = 0;
    struct lemon_row row;
    if (slot >= first_slot(plan, aggregator + 1))
        return 0;
    get_row(plan, slot / plan->row_aggregators, &row);
    int64_t in_row = slot % plan->row_aggregators;
    int64_t k = slot_piece(plan, &row, in_row) + round % slot_rounds(plan) * plan->round_pieces;
    int64_t end = smaller(k + plan->round_pieces, slot_piece(plan, &row, in_row + 1));
    for (; k < end; k++) {
        int64_t piece = row_piece(plan, &row, k);
        int64_t from = lemon_plan_piece_offset(plan, piece),
                to = lemon_plan_piece_offset(plan, piece + 1);
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

int64_t lemon_plan_piece_owner(const struct lemon_plan *plan, int64_t piece, int64_t *round)
{
    const struct lemon_grid *grid = &plan->grid;
    int64_t at[LEMON_BOX_DIMS] = {0}, parts[LEMON_BOX_DIMS], extent = piece / plan->pieces;
    int64_t k = 0;
    struct lemon_row row;
    parts[plan->cut] = extent % grid->parts[plan->cut];
    extent /= grid->parts[plan->cut];
    for (int i = plan->cut - 1; i >= 0; i--) {
        at[i] = extent % grid->extent[i];
        parts[i] = lemon_grid_find_part(grid, i, at[i]);
        extent /= grid->extent[i];
    }
    lemon_plan_get_row(plan, parts, &row);
    for (int i = 0; i < plan->cut; i++)
        k = k * row.sites[i] + at[i] - row.start[i];
    k = k * plan->pieces + piece % plan->pieces;
    int64_t in_row = (int64_t)(((__int128)(k + 1) * plan->row_aggregators - 1) / row.pieces);
    int64_t slot = row.number * plan->row_aggregators + in_row;
    int64_t aggregator = slot * plan->aggregators / slot_count(plan);
    *round = (slot - first_slot(plan, aggregator)) * slot_rounds(plan) +
             (k - slot_piece(plan, &row, in_row)) / plan->round_pieces;
    return plan->aggregators == slot_count(plan) ? slot_rank(plan, &row, in_row)
                                                 : aggregator_rank(plan, aggregator);
}
