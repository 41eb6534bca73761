/*
 * face-speed.c - how fast data are computed: face-speed [MIB]
 *
 * A configuration of that size in memory (256 MiB) is read in pieces of 1 MiB, as a mount asks
 * for them, through each computed face; beside it memcpy. GB/s of the record's bytes by
 * the processor's time, the median of seven, each once in turn.
 */
#include "limeface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROUNDS = 7,
    PIECE = 1 << 20,
    FACES = 8,
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static ssize_t read_memory(void *context, void *buf, size_t n, uint64_t offset,
                           const void **data)
{
    *data = buf;
    memcpy(buf, (const unsigned char *)context + offset, n);
    return (ssize_t)n;
}

static double run(const struct limefile_face *face, unsigned char *record, unsigned char *out)
{
    struct limefile_face_entry entry;
    limefile_face_entry(face, 0, &entry);
    double began = now();
    for (uint64_t at = 0; at < entry.bytes; at += PIECE)
        if (limefile_face_read_lent(face, 0, out, PIECE, at, read_memory, record) < 0)
            exit(1);
    return now() - began;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(unsigned precision, uint64_t bytes, unsigned char *record)
{
    static unsigned char out[PIECE];
    uint64_t site = 72 * precision / 8, t = bytes / site / (32 * 32 * 32);
    struct limefile_field f = {.kind = LIMEFILE_KIND_GAUGE, .name = "su3gauge"};
    f.precision = precision;
    f.site_bytes = site;
    f.sites = t * 32 * 32 * 32;
    f.record.type = "ildg-binary-data";
    f.record.bytes = f.sites * site;
    f.lattice = (struct limefile_lattice){4, {32, 32, 32, t}};
    struct limefile_face *face[FACES];
    struct limefile_facename name[FACES] = {
        {.kind = LIMEFILE_FACE_NPY},
        {.kind = LIMEFILE_FACE_NPY, .little = true},
        {.kind = LIMEFILE_FACE_NPY, .precision = 96 - precision},
        {.kind = LIMEFILE_FACE_NPY, .precision = 96 - precision, .little = true},
        {.kind = LIMEFILE_FACE_NPY, .even_odd = true},
        {.kind = LIMEFILE_FACE_NPY, .even_odd = true, .little = true},
        {.kind = LIMEFILE_FACE_NPY, .even_odd = true, .precision = 96 - precision},
        {.kind = LIMEFILE_FACE_NPY,
         .even_odd = true,
         .precision = 96 - precision,
         .little = true},
    };
    double seconds[FACES][ROUNDS];
    for (int i = 0; i < FACES; i++)
        if (limefile_face_open(&f, &name[i], &face[i]) != 0)
            exit(1);
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < FACES; i++)
            seconds[i][r] = run(face[i], record, out);
    for (int i = 0; i < FACES; i++) {
        char suffix[LIMEFILE_FACE_SUFFIX_MAX];
        limefile_facename_print(&name[i], suffix);
        qsort(seconds[i], ROUNDS, sizeof seconds[i][0], by_value);
        printf("f%u%-14s %6.2f GB/s%s\n", precision / 8, suffix,
               (double)f.record.bytes / seconds[i][ROUNDS / 2] / 1e9,
               i == 0 ? " (as stored: memcpy)" : "");
        limefile_face_close(face[i]);
    }
}

int main(int argc, char **argv)
{
    uint64_t bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 256) << 20;
    unsigned char *record = malloc(bytes + 1);
    if (!record)
        return 1;
    for (uint64_t i = 0; i < bytes; i++) /* ordinary numbers, double or single: all near 1 */
        record[i] = i % 8 == 0 || i % 8 == 4 ? 0x3f : (unsigned char)(0x80 | (i * 37 & 0x7f));
    measure(64, bytes, record);
    measure(32, bytes, record);
    free(record);
    return 0;
}
