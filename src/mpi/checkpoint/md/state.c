/* state.c - particles of a rank: in order, with those that it sees, and where they belong */
#include "md.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- made and freed ---- */

static void set_post(struct md_post *post, int64_t item, const struct md_grid *g)
{
    int64_t none = 0;
    post->item = item;
    post->parcel = md_room(NULL, g->peers, &none, sizeof *post->parcel);
    post->parcels = g->peers;
    for (int i = 0; i < g->peers; i++)
        post->parcel[i] = (struct md_parcel){.rank = g->peer[i].rank};
}

static int64_t *make_starts(int64_t places)
{
    int64_t none = 0;
    int64_t *starts = md_room(NULL, places + 1, &none, sizeof *starts);
    memset(starts, 0, (size_t)(places + 1) * sizeof *starts);
    return starts;
}

bool md_state_set(struct md_state *s, const struct checkpoint_world *world,
                  const struct md_parameters *parameters)
{
    char reason[CHECKPOINT_ERROR_BYTES] = "";
    *s = (struct md_state){.parameters = *parameters};
    bool good = md_grid_set(&s->grid, world, parameters, reason);
    if (!checkpoint_report(world, "run", good ? "" : reason)) {
        md_grid_free(&s->grid);
        return false;
    }
    set_post(&s->moving, sizeof(struct md_particle), &s->grid);
    set_post(&s->halo, sizeof(struct md_position), &s->grid);
    s->first = make_starts(s->grid.places);
    s->seen_first = make_starts(s->grid.places);
    s->cursor = make_starts(s->grid.places);
    return true;
}

void md_state_free(struct md_state *s)
{
    md_grid_free(&s->grid);
    md_post_free(&s->moving);
    md_post_free(&s->halo);
    free(s->own);
    free(s->first);
    free(s->near);
    free(s->seen);
    free(s->seen_first);
    free(s->cursor);
    free(s->sorted);
    *s = (struct md_state){0};
}

/* ---- order ---- */

/* From numbers of items, at the place after each, to where the places begin; and cursors. */
static void add_up(struct md_state *s, int64_t *starts)
{
    for (int64_t i = 0; i < s->grid.places; i++)
        starts[i + 1] += starts[i];
    memcpy(s->cursor, starts, (size_t)s->grid.places * sizeof *starts);
}

/* A cell has a few particles. */
static void sort_by_number(struct md_particle *p, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        struct md_particle moved = p[i];
        int64_t to = i;
        for (; to > 0 && p[to - 1].id > moved.id; to--)
            p[to] = p[to - 1];
        p[to] = moved;
    }
}

void md_state_sort(struct md_state *s)
{
    memset(s->first, 0, (size_t)(s->grid.places + 1) * sizeof *s->first);
    for (int64_t i = 0; i < s->count; i++)
        s->first[md_grid_place(&s->grid, s->own[i].x) + 1]++;
    add_up(s, s->first);
    s->sorted = md_room(s->sorted, s->count, &s->sorted_room, sizeof *s->sorted);
    for (int64_t i = 0; i < s->count; i++)
        s->sorted[s->cursor[md_grid_place(&s->grid, s->own[i].x)]++] = s->own[i];
    for (int64_t i = 0; i < s->grid.places; i++)
        sort_by_number(s->sorted + s->first[i], s->first[i + 1] - s->first[i]);
    struct md_particle *before = s->own;
    int64_t room = s->room;
    s->own = s->sorted, s->room = s->sorted_room;
    s->sorted = before, s->sorted_room = room;
}

/* ---- what is around ---- */

static void send_halo(struct md_state *s)
{
    for (int i = 0; i < s->grid.peers; i++) {
        const struct md_peer *peer = &s->grid.peer[i];
        for (int64_t c = 0; c < peer->cells; c++)
            for (int64_t k = s->first[peer->cell[c]]; k < s->first[peer->cell[c] + 1]; k++) {
                const struct md_particle *p = &s->own[k];
                md_post_add(&s->halo, i,
                            &(struct md_position){p->id, {p->x[0], p->x[1], p->x[2]}});
            }
    }
    void *in = s->near;
    s->near_count = 0;
    md_post_exchange(&s->halo, &in, &s->near_count, &s->near_room);
    s->near = in;
}

/* All particles of a cell come from the rank that owns it, in order. */
void md_state_look(struct md_state *s)
{
    send_halo(s);
    for (int64_t i = 0; i < s->grid.places; i++)
        s->seen_first[i + 1] = s->first[i + 1] - s->first[i];
    for (int64_t i = 0; i < s->near_count; i++)
        s->seen_first[md_grid_place(&s->grid, s->near[i].x) + 1]++;
    s->seen_first[0] = 0;
    add_up(s, s->seen_first);
    s->seen = md_room(s->seen, s->count + s->near_count, &s->seen_room, sizeof *s->seen);
    for (int64_t i = 0; i < s->grid.places; i++)
        for (int64_t k = s->first[i]; k < s->first[i + 1]; k++)
            memcpy(s->seen[s->cursor[i]++], s->own[k].x, sizeof *s->seen);
    for (int64_t i = 0; i < s->near_count; i++)
        memcpy(s->seen[s->cursor[md_grid_place(&s->grid, s->near[i].x)]++], s->near[i].x,
               sizeof *s->seen);
}

/* ---- from anywhere ---- */

static bool is_inside(const struct md_state *s, const double x[3])
{
    for (int d = 0; d < 3; d++)
        if (!(x[d] >= 0 && x[d] < s->parameters.length))
            return false;
    return true;
}

/* Parcels for all ranks, also for this one. */
static void set_post_of_all(struct md_post *post, const struct md_grid *g)
{
    int64_t none = 0;
    *post = (struct md_post){.parcels = g->ranks, .item = sizeof(struct md_particle)};
    post->parcel = md_room(NULL, g->ranks, &none, sizeof *post->parcel);
    for (int i = 0; i < g->ranks; i++)
        post->parcel[i] = (struct md_parcel){.rank = i};
}

bool md_state_distribute(struct md_state *s)
{
    struct md_post post;
    int64_t outside = 0;
    set_post_of_all(&post, &s->grid);
    for (int64_t i = 0; i < s->count; i++) {
        if (is_inside(s, s->own[i].x))
            md_post_add(&post, md_grid_owner(&s->grid, s->own[i].x), &s->own[i]);
        else
            outside++;
    }
    void *in = s->own;
    s->count = 0;
    md_post_exchange(&post, &in, &s->count, &s->room);
    s->own = in;
    md_post_free(&post);
    md_state_sort(s);
    return checkpoint_sum(outside) == 0 && checkpoint_sum(s->count) == s->parameters.particles;
}
