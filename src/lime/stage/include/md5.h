/*
 * md5.h - MD5 of several streams at once
 *
 * Each step of MD5 needs the step before, so one stream keeps a processor waiting most of the
 * time. Up to STAGE_MD5_LANES streams take that time together, a lane of a vector each.
 */
#ifndef STAGE_MD5_H
#define STAGE_MD5_H

#include <stddef.h>
#include <stdint.h>

enum {
    STAGE_MD5_LANES = 8,
    STAGE_MD5_BYTES = 16,
    STAGE_MD5_BLOCK = 64,
};

struct stage_md5 {
    uint32_t state[4];
    uint64_t bytes;                      /* that have come */
    unsigned char tail[STAGE_MD5_BLOCK]; /* bytes % 64 of them wait here */
};

/* What comes next in one stream. */
struct stage_md5_part {
    struct stage_md5 *md5; /* no two parts of a call have the same */
    const unsigned char *data;
    size_t n;
};

void stage_md5_init(struct stage_md5 *);

/* count <= STAGE_MD5_LANES; uses up the parts. Fastest where all are of one length. */
void stage_md5_add(struct stage_md5_part *, unsigned count);

/* Leaves it unchanged: more may come. */
void stage_md5_result(const struct stage_md5 *, unsigned char out[STAGE_MD5_BYTES]);

#endif
