/* schedule.c - list what one rank exchanges in each turn of a plan */
#include "schedule.h"
#include "array.h"

#include <stdlib.h>

static int by_number(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* ---- the rank's data ---- */

static int by_turn_mover_place(const void *a, const void *b)
{
    const struct lemon_part *x = a, *y = b;
    int order = by_number(x->turn, y->turn);
    if (order == 0)
        order = by_number(x->mover, y->mover);
    return order ? order : by_number(x->at, y->at);
}

/* Merges adjacent parts, and counts the most parts in a turn. */
static void join_parts(struct lemon_schedule *schedule)
{
    struct lemon_part *parts = schedule->parts;
    int64_t kept = 0, first = 0;
    for (int64_t i = 0; i < schedule->part_count; i++) {
        struct lemon_part *last = kept ? &parts[kept - 1] : NULL;
        if (last && last->turn == parts[i].turn && last->mover == parts[i].mover &&
            last->at + last->n == parts[i].at) {
            last->n += parts[i].n;
            continue;
        }
        if (last && last->turn != parts[i].turn)
            first = kept;
        parts[kept++] = parts[i];
        if (kept - first > schedule->most_parts)
            schedule->most_parts = kept - first;
    }
    schedule->part_count = kept;
}

struct finder {
    const struct lemon_plan *plan;
    struct lemon_box box;
    struct lemon_schedule *schedule;
    size_t capacity;
    int64_t next; /* first piece that is not checked */
};

/* Adds the box's parts of the pieces that overlap [begin, end). */
static int find_in_pieces(struct finder *finder, int64_t piece, int64_t begin, int64_t end)
{
    const struct lemon_plan *plan = finder->plan;
    struct lemon_schedule *schedule = finder->schedule;
    int64_t pieces = plan->extents * plan->pieces;
    while (piece > finder->next && lemon_plan_piece(plan, piece) > begin)
        piece--;
    if (piece < finder->next)
        piece = finder->next;
    for (int64_t from = lemon_plan_piece(plan, piece), to; piece < pieces && from < end;
         piece++, from = to) {
        struct lemon_part part = {.at = lemon_box_before(&finder->box, from)};
        to = lemon_plan_piece(plan, piece + 1);
        part.n = lemon_box_before(&finder->box, to) - part.at;
        finder->next = piece + 1;
        if (part.n == 0)
            continue;
        part.mover = lemon_plan_owner(plan, piece, &part.turn);
        if (!limefile_reserve(&schedule->parts, &finder->capacity,
                              (size_t)schedule->part_count + 1, sizeof part))
            return -1;
        schedule->parts[schedule->part_count++] = part;
    }
    return 0;
}

/* The box has parts of the extents of its row: one extent for each of its coordinates in the
 * dimensions before the cut. */
static int find_parts(struct lemon_schedule *schedule, const struct lemon_plan *plan,
                      int64_t rank)
{
    const struct lemon_grid *grid = &plan->grid;
    struct finder finder = {.plan = plan, .schedule = schedule};
    lemon_grid_box(grid, rank, &finder.box);
    int64_t part = rank / grid->step[plan->cut] % grid->parts[plan->cut], count = 1;
    if (lemon_box_bytes(&finder.box) == 0)
        return 0;
    for (int i = 0; i < plan->cut; i++)
        count *= finder.box.sites[i];
    for (int64_t of_row = 0; of_row < count; of_row++) {
        int64_t number = 0, left = of_row, stride = grid->parts[plan->cut], bytes;
        for (int i = plan->cut - 1; i >= 0; i--) {
            number += (finder.box.start[i] + left % finder.box.sites[i]) * stride;
            left /= finder.box.sites[i];
            stride *= grid->extent[i];
        }
        int64_t extent = number + part;
        int64_t begin = lemon_plan_extent(plan, extent, &bytes);
        if (find_in_pieces(&finder, extent * plan->pieces, begin, begin + bytes) != 0)
            return -1;
    }
    if (schedule->part_count)
        qsort(schedule->parts, (size_t)schedule->part_count, sizeof *schedule->parts,
              by_turn_mover_place);
    join_parts(schedule);
    return 0;
}

/* ---- sources of an aggregator ---- */

static int by_rank(const void *a, const void *b)
{
    const struct lemon_source *x = a, *y = b;
    return by_number(x->rank, y->rank);
}

/* Sorts the sources from `first` on, which belong to one turn, and merges those of a rank. */
static void join_sources(struct lemon_schedule *schedule, int64_t first)
{
    struct lemon_source *sources = schedule->sources;
    int64_t kept = first;
    if (schedule->source_count == first)
        return;
    qsort(sources + first, (size_t)(schedule->source_count - first), sizeof *sources, by_rank);
    for (int64_t i = first; i < schedule->source_count; i++)
        if (kept > first && sources[kept - 1].rank == sources[i].rank)
            sources[kept - 1].n += sources[i].n;
        else
            sources[kept++] = sources[i];
    schedule->source_count = kept;
    if (kept - first > schedule->most_sources)
        schedule->most_sources = kept - first;
}

static int find_holders(struct lemon_schedule *schedule, const struct lemon_plan *plan,
                        int64_t turn, const struct lemon_piece *piece, size_t *capacity)
{
    struct lemon_grid_walk walk;
    for (lemon_grid_walk_set(&walk, &plan->grid, piece->from, piece->to); !walk.ended;
         lemon_grid_walk_next(&walk)) {
        struct lemon_box box;
        lemon_grid_box(&plan->grid, walk.rank, &box);
        int64_t n = lemon_box_before(&box, piece->to) - lemon_box_before(&box, piece->from);
        if (n == 0)
            continue;
        if (!limefile_reserve(&schedule->sources, capacity, (size_t)schedule->source_count + 1,
                              sizeof *schedule->sources))
            return -1;
        schedule->sources[schedule->source_count++] = (struct lemon_source){turn, walk.rank, n};
    }
    return 0;
}

static int find_sources(struct lemon_schedule *schedule, const struct lemon_plan *plan)
{
    size_t capacity = 0;
    for (int64_t turn = 0; schedule->mover >= 0 && turn < plan->turns; turn++) {
        struct lemon_piece pieces[LEMON_TURN_PIECES];
        int count = lemon_plan_turn(plan, schedule->mover, turn, pieces);
        int64_t first = schedule->source_count, bytes = 0;
        for (int i = 0; i < count; i++) {
            bytes += pieces[i].to - pieces[i].from;
            if (find_holders(schedule, plan, turn, &pieces[i], &capacity) != 0)
                return -1;
        }
        join_sources(schedule, first);
        schedule->bytes += bytes;
        if (bytes > schedule->window)
            schedule->window = bytes;
    }
    return 0;
}

int lemon_schedule_make(struct lemon_schedule *schedule, const struct lemon_plan *plan,
                        int64_t rank)
{
    *schedule = (struct lemon_schedule){.mover = lemon_plan_mover(plan, rank)};
    if (find_parts(schedule, plan, rank) == 0 && find_sources(schedule, plan) == 0)
        return 0;
    lemon_schedule_free(schedule);
    return -1;
}

void lemon_schedule_free(struct lemon_schedule *schedule)
{
    free(schedule->parts);
    free(schedule->sources);
    schedule->parts = NULL;
    schedule->sources = NULL;
}
