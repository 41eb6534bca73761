/* molecule.c - layouts, and arrays that grow */
#include "molecule.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char *const checkpoint_format_names[CHECKPOINT_FORMATS + 1] = {"ICRV", "ICRVQD", "IRV",
                                                                     NULL};

enum {
    FIRST_ROOM = 1024,
    SHORT_BYTES = offsetof(struct checkpoint_molecule, orientation),
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

const LemonParticle *checkpoint_particle(enum checkpoint_format format)
{
    static const LemonParticle particles[CHECKPOINT_FORMATS] = {
        [CHECKPOINT_ICRV] = {SHORT_BYTES, 4, with_component},
        [CHECKPOINT_ICRVQD] = {sizeof(struct checkpoint_molecule), 6, with_component},
        [CHECKPOINT_IRV] = {SHORT_BYTES, 3, without_component},
    };
    return &particles[format];
}

bool checkpoint_particle_same(const LemonParticle *a, const LemonParticle *b)
{
    if (a->bytes != b->bytes || a->fields != b->fields)
        return false;
    for (int i = 0; i < a->fields; i++) {
        const LemonField *f = &a->field[i], *g = checkpoint_field(b, f->name);
        if (!g || g->type != f->type || g->count != f->count || g->offset != f->offset)
            return false;
    }
    return true;
}

bool checkpoint_particle_find(const LemonParticle *particle, enum checkpoint_format *format)
{
    for (int i = 0; i < CHECKPOINT_FORMATS; i++) {
        *format = (enum checkpoint_format)i;
        if (checkpoint_particle_same(particle, checkpoint_particle(*format)))
            return true;
    }
    return false;
}

const LemonField *checkpoint_field(const LemonParticle *particle, const char *name)
{
    for (int i = 0; i < particle->fields; i++)
        if (strcmp(particle->field[i].name, name) == 0)
            return &particle->field[i];
    return NULL;
}

int checkpoint_field_bytes(const LemonField *field)
{
    switch (field->type) {
    case LEMON_INT32:
    case LEMON_UINT32:
    case LEMON_FLOAT32:
        return 4 * field->count;
    default:
        return 8 * field->count;
    }
}

void *checkpoint_particles_add(struct checkpoint_particles *p)
{
    if (p->count == p->room) {
        int64_t room = p->room ? p->room + p->room / 2 : FIRST_ROOM, bytes;
        if (__builtin_mul_overflow(room, p->bytes, &bytes))
            return NULL;
        unsigned char *data = realloc(p->data, (size_t)bytes);
        if (!data)
            return NULL;
        p->data = data;
        p->room = room;
    }
    return p->data + p->count++ * p->bytes;
}

void checkpoint_particles_free(struct checkpoint_particles *p)
{
    free(p->data);
    p->data = NULL;
    p->count = p->room = 0;
}
