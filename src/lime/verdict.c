/* verdict.c - the words for verdicts, and the worse of two */
#include "limeverdict.h"

const char *limefile_verdict_word(enum limefile_verdict verdict)
{
    static const char *const words[] = {
        [LIMEFILE_GOOD] = "good",
        [LIMEFILE_SKIPPED] = "skipped",
        [LIMEFILE_UNVERIFIED] = "unverified",
        [LIMEFILE_BAD] = "bad",
        [LIMEFILE_UNREADABLE] = "unreadable",
    };
    return words[verdict];
}

enum limefile_verdict limefile_verdict_worse(enum limefile_verdict a, enum limefile_verdict b)
{
    return a > b ? a : b;
}
