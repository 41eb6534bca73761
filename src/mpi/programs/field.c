/* field.c - random numbers on a lattice, which can be told again */
#include "field.h"
#include "mix.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int64_t bytes_of(const int *sites)
{
    int64_t bytes = FIELD_SITE_BYTES;
    for (int d = 0; d < FIELD_DIMS; d++)
        if (__builtin_mul_overflow(bytes, (int64_t)sites[d], &bytes))
            return -1;
    return bytes;
}

int64_t field_bytes(const struct field *field)
{
    return bytes_of(field->lattice);
}

int64_t field_local_bytes(const struct field *field)
{
    return bytes_of(field->sites);
}

/* Of a sequence (splitmix64), in [0, 1): any of them can be had without those before. */
static double number(uint64_t seed, uint64_t index)
{
    return mix64_fraction(mix64(seed + (index + 1) * MIX64_STEP));
}

/* A row is the sites along the fastest dimension: these are neighbours in the whole lattice. */
static int64_t rows_of(const struct field *field)
{
    return (int64_t)field->sites[0] * field->sites[1] * field->sites[2];
}

static int64_t row_numbers(const struct field *field)
{
    return (int64_t)field->sites[3] * FIELD_SITE_NUMBERS;
}

/* The place in the whole lattice of a row's first number. */
static uint64_t place_of(const struct field *field, int64_t row)
{
    int64_t at[FIELD_DIMS] = {row / field->sites[2] / field->sites[1],
                              row / field->sites[2] % field->sites[1], row % field->sites[2],
                              0};
    int64_t site = 0;
    for (int d = 0; d < FIELD_DIMS; d++)
        site = site * field->lattice[d] + field->start[d] + at[d];
    return (uint64_t)site * FIELD_SITE_NUMBERS;
}

void field_fill(const struct field *field, uint64_t seed, double *data)
{
    int64_t rows = rows_of(field), n = row_numbers(field);
    for (int64_t row = 0; row < rows; row++) {
        uint64_t place = place_of(field, row);
        for (int64_t i = 0; i < n; i++)
            *data++ = number(seed, place + (uint64_t)i);
    }
}

/* How many of the number's bytes are wrong; *first is the first of them. */
static int wrong_bytes(double want, const double *got, int *first)
{
    unsigned char a[sizeof want], b[sizeof want];
    int wrong = 0;
    memcpy(a, &want, sizeof want);
    memcpy(b, got, sizeof want);
    for (int i = (int)sizeof want - 1; i >= 0; i--)
        if (a[i] != b[i]) {
            wrong++;
            *first = i;
        }
    return wrong;
}

int64_t field_compare(const struct field *field, uint64_t seed, const double *data,
                      int64_t *first)
{
    int64_t rows = rows_of(field), n = row_numbers(field), wrong = 0, seen = 0;
    for (int64_t row = 0; row < rows; row++) {
        uint64_t place = place_of(field, row);
        for (int64_t i = 0; i < n; i++, seen++) {
            double want = number(seed, place + (uint64_t)i);
            if (memcmp(&want, &data[seen], sizeof want) == 0)
                continue;
            int byte = 0, count = wrong_bytes(want, &data[seen], &byte);
            if (wrong == 0)
                *first = seen * (int64_t)sizeof want + byte;
            wrong += count;
        }
    }
    return wrong;
}

int field_print(const struct field *field, uint64_t seed, char text[FIELD_TEXT_BYTES])
{
    const int *lattice = field->lattice;
    return snprintf(text, FIELD_TEXT_BYTES, "seed = %" PRIu64 "\nlattice = %d %d %d %d\n", seed,
                    lattice[0], lattice[1], lattice[2], lattice[3]);
}

bool field_parse(struct field *field, uint64_t *seed, const char *text)
{
    int *lattice = field->lattice;
    if (sscanf(text, "seed = %" SCNu64 " lattice = %d %d %d %d", seed, &lattice[0], &lattice[1],
               &lattice[2], &lattice[3]) != 1 + FIELD_DIMS)
        return false;
    for (int d = 0; d < FIELD_DIMS; d++)
        if (lattice[d] < 1)
            return false;
    return true;
}
