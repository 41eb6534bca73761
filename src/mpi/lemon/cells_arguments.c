/* cells_arguments.c - convert the caller's domain and particles to the format's structs */
#include "cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)LEMON_INT32 == (int)LIMECELLS_INT32 &&
                   (int)LEMON_FLOAT64 == (int)LIMECELLS_FLOAT64,
               "the library's types are the format's");

bool lemon_cells_is_big_endian(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

static bool convert_field(const LemonField *from, struct limecells_field *to)
{
    if (!from->name || strlen(from->name) > LIMECELLS_NAME_MAX || from->count < 1 ||
        from->offset < 0)
        return false;
    strcpy(to->name, from->name);
    to->type = (enum limecells_type)from->type;
    to->count = (uint32_t)from->count;
    to->offset = (uint64_t)from->offset;
    return true;
}

bool lemon_cells_convert_arguments(const LemonDomain *domain, const LemonParticle *particle,
                                   struct limecells *c, const char **why)
{
    *c = (struct limecells){0};
    *why = "no domain, or no particle description";
    if (!domain || !particle || !particle->field || particle->bytes < 0)
        return false;
    *why = "a particle must have 1 to 64 fields";
    if (particle->fields < 1 || particle->fields > LIMECELLS_FIELDS_MAX)
        return false;
    *why = "a field has no valid name, no numbers, or a negative offset";
    for (int i = 0; i < particle->fields; i++)
        if (!convert_field(&particle->field[i], &c->field[i]))
            return false;
    *why = "fewer than 1 cell in a dimension";
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        if (domain->cells[d] < 1)
            return false;
        c->cells[d] = (uint64_t)domain->cells[d];
        c->origin[d] = domain->origin[d];
        c->length[d] = domain->length[d];
        c->periodic[d] = domain->periodic[d] != 0;
    }
    c->fields = (uint32_t)particle->fields;
    c->particle_bytes = (uint64_t)particle->bytes;
    c->step = domain->step;
    c->time = domain->time;
    c->big_endian = lemon_cells_is_big_endian();
    *why = limefile_cells_check(c);
    return *why == NULL;
}

void lemon_cells_convert_result(const struct limecells *c, LemonCells *cells,
                                LemonField field[LIMECELLS_FIELDS_MAX])
{
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        cells->domain.origin[d] = c->origin[d];
        cells->domain.length[d] = c->length[d];
        cells->domain.periodic[d] = c->periodic[d];
        cells->domain.cells[d] = (int64_t)c->cells[d];
    }
    cells->domain.step = c->step;
    cells->domain.time = c->time;
    cells->particles = (int64_t)c->particles;
    cells->particle = (LemonParticle){(MPI_Offset)c->particle_bytes, (int)c->fields, field};
    for (uint32_t i = 0; i < c->fields; i++)
        field[i] = (LemonField){c->field[i].name, (int)c->field[i].type, (int)c->field[i].count,
                                (MPI_Offset)c->field[i].offset};
}

void lemon_cells_get_position(const struct limecells_field *position, const char *particle,
                              double x[LIMECELLS_DIMS])
{
    float single[LIMECELLS_DIMS];
    if (position->type == LIMECELLS_FLOAT64) {
        memcpy(x, particle + position->offset, LIMECELLS_DIMS * sizeof *x);
        return;
    }
    memcpy(single, particle + position->offset, sizeof single);
    for (int d = 0; d < LIMECELLS_DIMS; d++)
        x[d] = (double)single[d];
}

uint64_t lemon_cells_particle_id(const struct limecells_field *id, const char *particle)
{
    uint64_t word = 0;
    uint32_t word32;
    int32_t int32;
    if (limefile_cells_type_bytes(id->type) == sizeof word) {
        memcpy(&word, particle + id->offset, sizeof word);
    } else {
        memcpy(&word32, particle + id->offset, sizeof word32);
        memcpy(&int32, particle + id->offset, sizeof int32);
        word = id->type == LIMECELLS_INT32 ? (uint64_t)(int64_t)int32 : word32;
    }
    return word;
}

void lemon_cells_particle_name(const struct limecells *c, const char *particle, int64_t number,
                               char name[CELLS_WHY_MAX / 2])
{
    const struct limecells_field *id = limefile_cells_field(c, "id");
    if (!id)
        snprintf(name, CELLS_WHY_MAX / 2, "particle %" PRId64, number);
    else if (id->type == LIMECELLS_UINT32 || id->type == LIMECELLS_UINT64)
        snprintf(name, CELLS_WHY_MAX / 2, "particle %" PRId64 " (id %" PRIu64 ")", number,
                 lemon_cells_particle_id(id, particle));
    else
        snprintf(name, CELLS_WHY_MAX / 2, "particle %" PRId64 " (id %" PRId64 ")", number,
                 (int64_t)lemon_cells_particle_id(id, particle));
}

static void swap_number(char *p, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        char byte = p[i];
        p[i] = p[n - 1 - i];
        p[n - 1 - i] = byte;
    }
}

void lemon_cells_swap_bytes(const struct limecells *c, char *particles, int64_t count)
{
    for (int64_t k = 0; k < count; k++, particles += c->particle_bytes)
        for (uint32_t i = 0; i < c->fields; i++) {
            size_t n = limefile_cells_type_bytes(c->field[i].type);
            for (uint32_t j = 0; j < c->field[i].count; j++)
                swap_number(particles + c->field[i].offset + j * n, n);
        }
}
