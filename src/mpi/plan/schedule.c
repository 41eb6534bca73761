/* schedule.c - list what one rank exchanges in each round of a plan */
#include "schedule.h"
#include "array.h"

#include <stdlib.h>

static int compare_int64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* ---- the rank's data ---- */

static int compare_parts(const void *a, const void *b)
{
    const struct lemon_part *x = a, *y = b;
    int order = compare_int64(x->round, y->round);
    if (order == 0)
        order = compare_int64(x->aggregator, y->aggregator);
    return order ? order : compare_int64(x->at, y->at);
}

/* Merges adjacent parts, which are sorted, and sets max_parts. */
static void merge_parts(struct lemon_schedule *schedule)
{
    struct lemon_part *parts = schedule->parts;
    int64_t merged = 0, first = 0;
    for (int64_t i = 0; i < schedule->part_count; i++) {
        struct lemon_part *last = merged ? &parts[merged - 1] : NULL;
        if (last && last->round == parts[i].round && last->aggregator == parts[i].aggregator &&
            last->at + last->n == parts[i].at) {
            last->n += parts[i].n;
            continue;
        }
        if (last && last->round != parts[i].round)
            first = merged;
        parts[merged++] = parts[i];
        if (merged - first > schedule->max_parts)
            schedule->max_parts = merged - first;
    }
    schedule->part_count = merged;
}

struct finder {
    const struct lemon_plan *plan;
    struct lemon_box box;
    struct lemon_schedule *schedule;
    size_t capacity;
    int64_t next; /* first piece that find_piece_parts() has not yet checked */
};

/* Adds the box's parts of the pieces that overlap [begin, end), an extent. piece: the extent's
 * first piece; boundaries are shifted to stripes, so an earlier piece may contain `begin`. */
static int find_piece_parts(struct finder *finder, int64_t piece, int64_t begin, int64_t end)
{
    const struct lemon_plan *plan = finder->plan;
    struct lemon_schedule *schedule = finder->schedule;
    int64_t pieces = plan->extents * plan->pieces;
    while (piece > finder->next && lemon_plan_piece_offset(plan, piece) > begin)
        piece--;
    if (piece < finder->next)
        piece = finder->next;
    for (int64_t from = lemon_plan_piece_offset(plan, piece), to; piece < pieces && from < end;
         piece++, from = to) {
        struct lemon_part part = {.at = lemon_box_bytes_before(&finder->box, from)};
        to = lemon_plan_piece_offset(plan, piece + 1);
        part.n = lemon_box_bytes_before(&finder->box, to) - part.at;
        finder->next = piece + 1;
        if (part.n == 0)
            continue;
        part.aggregator = lemon_plan_piece_owner(plan, piece, &part.round);
        if (!limefile_reserve(&schedule->parts, &finder->capacity,
                              (size_t)schedule->part_count + 1, sizeof part))
            return -1;
        schedule->parts[schedule->part_count++] = part;
    }
    return 0;
}

/* Lists the rank's parts. The box has a part of one extent for each combination of the box's
 * coordinates in the dimensions slower than the cut. Returns 0, or -1 if out of memory. */
static int find_parts(struct lemon_schedule *schedule, const struct lemon_plan *plan,
                      int64_t rank)
{
    const struct lemon_grid *grid = &plan->grid;
    struct finder finder = {.plan = plan, .schedule = schedule};
    lemon_grid_get_box(grid, rank, &finder.box);
    int64_t part = rank / grid->step[plan->cut] % grid->parts[plan->cut], count = 1;
    if (lemon_box_bytes(&finder.box) == 0)
        return 0;
    for (int i = 0; i < plan->cut; i++)
        count *= finder.box.sites[i];
    for (int64_t in_row = 0; in_row < count; in_row++) {
        int64_t number = 0, left = in_row, stride = grid->parts[plan->cut], bytes;
        for (int i = plan->cut - 1; i >= 0; i--) {
            number += (finder.box.start[i] + left % finder.box.sites[i]) * stride;
            left /= finder.box.sites[i];
            stride *= grid->extent[i];
        }
        int64_t extent = number + part;
        int64_t begin = lemon_plan_extent_offset(plan, extent, &bytes);
        if (find_piece_parts(&finder, extent * plan->pieces, begin, begin + bytes) != 0)
            return -1;
    }
    if (schedule->part_count)
        qsort(schedule->parts, (size_t)schedule->part_count, sizeof *schedule->parts,
              compare_parts);
    merge_parts(schedule);
    return 0;
}

/* ---- sources of an aggregator ---- */

static int compare_source_ranks(const void *a, const void *b)
{
    const struct lemon_source *x = a, *y = b;
    return compare_int64(x->rank, y->rank);
}

/* Sorts the sources from `first` on, which are in one round, and merges those of one rank. */
static void merge_sources(struct lemon_schedule *schedule, int64_t first)
{
    struct lemon_source *sources = schedule->sources;
    int64_t merged = first;
    if (schedule->source_count == first)
        return;
    qsort(sources + first, (size_t)(schedule->source_count - first), sizeof *sources,
          compare_source_ranks);
    for (int64_t i = first; i < schedule->source_count; i++)
        if (merged > first && sources[merged - 1].rank == sources[i].rank)
            sources[merged - 1].n += sources[i].n;
        else
            sources[merged++] = sources[i];
    schedule->source_count = merged;
    if (merged - first > schedule->max_sources)
        schedule->max_sources = merged - first;
}

/* Adds a source for each rank with bytes of a piece. Returns 0, or -1 if out of memory. */
static int add_sources(struct lemon_schedule *schedule, const struct lemon_plan *plan,
                       int64_t round, const struct lemon_piece *piece, size_t *capacity)
{
    struct lemon_grid_walk walk;
    for (lemon_grid_walk_init(&walk, &plan->grid, piece->from, piece->to); !walk.ended;
         lemon_grid_walk_next(&walk)) {
        struct lemon_box box;
        lemon_grid_get_box(&plan->grid, walk.rank, &box);
        int64_t n =
            lemon_box_bytes_before(&box, piece->to) - lemon_box_bytes_before(&box, piece->from);
        if (n == 0)
            continue;
        if (!limefile_reserve(&schedule->sources, capacity, (size_t)schedule->source_count + 1,
                              sizeof *schedule->sources))
            return -1;
        schedule->sources[schedule->source_count++] =
            (struct lemon_source){round, walk.rank, n};
    }
    return 0;
}

static int find_sources(struct lemon_schedule *schedule, const struct lemon_plan *plan)
{
    size_t capacity = 0;
    for (int64_t round = 0; schedule->aggregator >= 0 && round < plan->rounds; round++) {
        struct lemon_piece pieces[LEMON_ROUND_PIECES_MAX];
        int count = lemon_plan_round(plan, schedule->aggregator, round, pieces);
        int64_t first = schedule->source_count, bytes = 0;
        for (int i = 0; i < count; i++) {
            bytes += pieces[i].to - pieces[i].from;
            if (add_sources(schedule, plan, round, &pieces[i], &capacity) != 0)
                return -1;
        }
        merge_sources(schedule, first);
        schedule->bytes += bytes;
        if (bytes > schedule->window)
            schedule->window = bytes;
    }
    return 0;
}

int lemon_schedule_init(struct lemon_schedule *schedule, const struct lemon_plan *plan,
                        int64_t rank)
{
    *schedule = (struct lemon_schedule){.aggregator = lemon_plan_aggregator(plan, rank)};
    if (find_parts(schedule, plan, rank) == 0 && find_sources(schedule, plan) == 0)
        return 0;
    lemon_schedule_release(schedule);
    return -1;
}

void lemon_schedule_release(struct lemon_schedule *schedule)
{
    free(schedule->parts);
    free(schedule->sources);
    schedule->parts = NULL;
    schedule->sources = NULL;
}
