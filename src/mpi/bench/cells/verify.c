/* verify.c - whether what was read is what was written */
#include "cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *wrong_byte(const struct bench_cells *c, const char *particle, uint64_t seed,
                              char text[BENCH_ERROR_BYTES])
{
    char right[BENCH_PARTICLE_BYTES];
    uint64_t id = bench_particle_id(particle);
    int i = 0;
    bench_particle_make(&c->gas, seed, (int64_t)id, right);
    if (memcmp(particle, right, sizeof right) == 0)
        return NULL;
    while (particle[i] == right[i])
        i++;
    snprintf(text, BENCH_ERROR_BYTES,
             "verify: particle %" PRIu64 ": wrong byte at %d: expected 0x%02x, found 0x%02x",
             id, i, (unsigned char)right[i], (unsigned char)particle[i]);
    return text;
}

/* NULL if it is as it must be. */
static const char *wrong(const struct bench_cells *c, int rank, const char *particle,
                         uint64_t seed, unsigned char *seen, char text[BENCH_ERROR_BYTES])
{
    uint64_t id = bench_particle_id(particle);
    double at[BENCH_SPACE];
    if (id == 0 || id > (uint64_t)c->gas.particles) {
        snprintf(text, BENCH_ERROR_BYTES, "verify: particle %" PRIu64 ": there is none", id);
        return text;
    }
    if (seen[id / 8] & 1 << id % 8) {
        snprintf(text, BENCH_ERROR_BYTES, "verify: particle %" PRIu64 ": came twice", id);
        return text;
    }
    seen[id / 8] |= (unsigned char)(1 << id % 8);
    if (wrong_byte(c, particle, seed, text))
        return text;
    bench_particle_where(particle, at);
    if (c->anywhere || bench_cells_holds(&c->reader[rank], at))
        return NULL;
    snprintf(text, BENCH_ERROR_BYTES, "verify: particle %" PRIu64 ": not in this rank's box",
             id);
    return text;
}

/* Each particle that came is right, and in its rank's box: then all are there if there are as
 * many. Without boxes a particle could have come to two ranks, and another one to none, which
 * the sum of the ids tells, but by an unlikely chance. A rank whose particles are wrong tells
 * about these. */
static void compare_all(const struct bench_cells *c, MPI_Comm comm, uint64_t ids,
                        char text[BENCH_ERROR_BYTES])
{
    uint64_t n = (uint64_t)c->gas.particles, sum = n % 2 ? (n + 1) / 2 * n : n / 2 * (n + 1);
    uint64_t all[3] = {(uint64_t)c->count, ids, text[0] != '\0'};
    MPI_Allreduce(MPI_IN_PLACE, all, 3, MPI_UINT64_T, MPI_SUM, comm);
    if (all[2])
        return;
    if (!c->anywhere && c->count != c->read)
        snprintf(text, BENCH_ERROR_BYTES,
                 "verify: %" PRId64 " particles, but %" PRId64 " are in this rank's box",
                 c->count, c->read);
    else if (c->anywhere && (all[0] != n || all[1] != sum))
        snprintf(text, BENCH_ERROR_BYTES,
                 "verify: %" PRIu64 " particles came to all ranks, not each of %" PRIu64
                 " once",
                 all[0], n);
}

void bench_cells_verify(const struct bench_cells *c, MPI_Comm comm, int rank, uint64_t seed,
                        char text[BENCH_ERROR_BYTES])
{
    unsigned char *seen = calloc(1, (size_t)(c->gas.particles / 8 + 1));
    uint64_t ids = 0;
    text[0] = '\0';
    if (!seen)
        snprintf(text, BENCH_ERROR_BYTES, "verify: out of memory");
    for (int64_t i = 0; i < c->count && !text[0]; i++) {
        const char *particle = c->data + i * BENCH_PARTICLE_BYTES;
        wrong(c, rank, particle, seed, seen, text);
        ids += bench_particle_id(particle);
    }
    free(seen);
    compare_all(c, comm, ids, text);
}
