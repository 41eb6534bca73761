/*
 * progress.h - a bar on stderr for work that lasts. It shows itself only on a terminal and
 * only after a second; one at a time.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what;
    uint64_t done, total; /* bytes, or files */
    double began, shown;  /* seconds on a monotonic clock; shown 0: never */
    bool wanted, counts_files;
};

void progress_begin(struct progress *, const char *what, uint64_t total);
/* The same for a bar that counts files: "check    17 of 300 files". */
void progress_begin_files(struct progress *, const char *what, uint64_t total);
void progress_add(struct progress *, uint64_t bytes); /* NULL: nothing happens */
void progress_to(struct progress *, uint64_t done);
void progress_end(struct progress *);

/* Wipes the bar, if one is to be seen, for a message; it comes back by itself. */
void progress_hide(void);

#endif
