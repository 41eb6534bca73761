/* fuzz.h - what both targets share */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limefile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert(): it has to hold in every build, and libFuzzer keeps what breaks it. */
#define HOLDS(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

#endif
