/*
 * limeverdict.h - the five verdicts that every program of this project gives on a file, a
 * record or its data.
 *
 * docs/verdicts.md has the table of what each verdict means and which exit status it gives.
 * All functions are thread-safe.
 */
#ifndef LIMEVERDICT_H
#define LIMEVERDICT_H

enum limefile_verdict {
    LIMEFILE_GOOD,    /* everything that was requested was examined and is right */
    LIMEFILE_SKIPPED, /* not examined: not the requested kind of file */
    /* Nothing is wrong, but a requested part has no checksum or one that cannot be compared. */
    LIMEFILE_UNVERIFIED,
    LIMEFILE_BAD,        /* something that was examined is wrong */
    LIMEFILE_UNREADABLE, /* the file cannot be opened or read */
};

/* Returns the word that programs print for the verdict: "good", "skipped", ... */
const char *limefile_verdict_word(enum limefile_verdict verdict);

#endif
