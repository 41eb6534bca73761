/* molecule.c - particle layouts, growing arrays, and comparison of sets */
#define _GNU_SOURCE
#include "molecule.h"
#include "world.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char *const checkpoint_format_names[CHECKPOINT_FORMATS + 1] = {"ICRV", "ICRVQD", "IRV",
                                                                     NULL};

enum {
    CAPACITY_MIN = 1024,
    SHORT_BYTES = offsetof(struct checkpoint_molecule, orientation), /* of ICRV and IRV */
};

#define AT(member) offsetof(struct checkpoint_molecule, member)

static const LemonField with_component[] = {
    {"id", LEMON_UINT64, 1, AT(id)},
    {"component", LEMON_UINT32, 1, AT(component)},
    {"position", LEMON_FLOAT64, 3, AT(position)},
    {"velocity", LEMON_FLOAT64, 3, AT(velocity)},
    {"orientation", LEMON_FLOAT64, 4, AT(orientation)},
    {"angular-momentum", LEMON_FLOAT64, 3, AT(angular_momentum)},
};

static const LemonField without_component[] = {
    {"id", LEMON_UINT64, 1, AT(id)},
    {"position", LEMON_FLOAT64, 3, AT(position)},
    {"velocity", LEMON_FLOAT64, 3, AT(velocity)},
};

const LemonParticle *checkpoint_layout(enum checkpoint_format format)
{
    static const LemonParticle particles[CHECKPOINT_FORMATS] = {
        [CHECKPOINT_ICRV] = {SHORT_BYTES, 4, with_component},
        [CHECKPOINT_ICRVQD] = {sizeof(struct checkpoint_molecule), 6, with_component},
        [CHECKPOINT_IRV] = {SHORT_BYTES, 3, without_component},
    };
    return &particles[format];
}

bool checkpoint_layouts_equal(const LemonParticle *a, const LemonParticle *b)
{
    if (a->bytes != b->bytes || a->fields != b->fields)
        return false;
    for (int i = 0; i < a->fields; i++) {
        const LemonField *f = &a->field[i], *g = checkpoint_find_field(b, f->name);
        if (!g || g->type != f->type || g->count != f->count || g->offset != f->offset)
            return false;
    }
    return true;
}

bool checkpoint_find_format(const LemonParticle *particle, enum checkpoint_format *format)
{
    for (int i = 0; i < CHECKPOINT_FORMATS; i++) {
        *format = (enum checkpoint_format)i;
        if (checkpoint_layouts_equal(particle, checkpoint_layout(*format)))
            return true;
    }
    return false;
}

const LemonField *checkpoint_find_field(const LemonParticle *particle, const char *name)
{
    for (int i = 0; i < particle->fields; i++)
        if (strcmp(particle->field[i].name, name) == 0)
            return &particle->field[i];
    return NULL;
}

void *checkpoint_particles_add(struct checkpoint_particles *p)
{
    if (p->count == p->capacity) {
        p->capacity += p->capacity / 2 + CAPACITY_MIN;
        p->data = checkpoint_allocate(p->data, p->capacity, p->bytes);
    }
    return p->data + p->count++ * p->bytes;
}

void checkpoint_particles_free(struct checkpoint_particles *p)
{
    free(p->data);
    p->data = NULL;
    p->count = p->capacity = 0;
}

static int compare_bytes(const void *a, const void *b, void *bytes)
{
    return memcmp(a, b, *(const size_t *)bytes);
}

void checkpoint_match_add(struct checkpoint_match *m, int side, uint64_t id)
{
    uint64_t *ids = m->id[side];
    int at = m->ids[side];
    while (at > 0 && ids[at - 1] > id)
        at--;
    if (at == CHECKPOINT_MATCH_IDS)
        return;
    if (m->ids[side] < CHECKPOINT_MATCH_IDS)
        m->ids[side]++;
    memmove(ids + at + 1, ids + at, (size_t)(m->ids[side] - at - 1) * sizeof *ids);
    ids[at] = id;
}

/* Counts a particle that only set `side` has, and adds its id unless the field is NULL. */
static void add_unmatched(struct checkpoint_match *m, int side, const unsigned char *particle,
                          const LemonField *id)
{
    uint64_t value = 0;
    uint32_t small;
    m->only[side]++;
    if (!id)
        return;
    if (id->type == LEMON_INT64 || id->type == LEMON_UINT64) {
        memcpy(&value, particle + id->offset, sizeof value);
    } else {
        memcpy(&small, particle + id->offset, sizeof small);
        value = small;
    }
    checkpoint_match_add(m, side, value);
}

void checkpoint_match(struct checkpoint_particles sets[2], const LemonField *id,
                      struct checkpoint_match *m)
{
    size_t bytes = (size_t)sets[0].bytes;
    int64_t at[2] = {0, 0};
    *m = (struct checkpoint_match){0};
    if (sets[0].count == sets[1].count &&
        (sets[0].count == 0 ||
         memcmp(sets[0].data, sets[1].data, (size_t)sets[0].count * bytes) == 0))
        return;
    for (int i = 0; i < 2; i++)
        if (sets[i].count > 0)
            qsort_r(sets[i].data, (size_t)sets[i].count, bytes, compare_bytes, &bytes);
    while (at[0] < sets[0].count || at[1] < sets[1].count) {
        const unsigned char *a = at[0] < sets[0].count ? sets[0].data + at[0] * sets[0].bytes
                                                       : NULL,
                            *b = at[1] < sets[1].count ? sets[1].data + at[1] * sets[1].bytes
                                                       : NULL;
        int order = !a ? 1 : !b ? -1 : memcmp(a, b, bytes);
        if (order < 0)
            add_unmatched(m, 0, a, id);
        if (order > 0)
            add_unmatched(m, 1, b, id);
        at[0] += order <= 0;
        at[1] += order >= 0;
    }
}
