/*
 * checksumoptions.h - what `lime checksum` is asked for
 */
#ifndef CHECKSUMOPTIONS_H
#define CHECKSUMOPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct checksum_options {
    bool json, add, replace, cksum, help;
    unsigned threads;
    uint64_t site_bytes, sites; /* 0: as the file says */
    const char *path;
    char **words;
    size_t word_count;
};

/* TOOL_GOOD, or an exit status once it was said what is wrong. */
int checksum_options_parse(struct checksum_options *, int argc, char **argv);

#endif
