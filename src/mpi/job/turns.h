/* turns.h - how soon a rank gets a processor, and for how long */
#ifndef JOB_TURNS_H
#define JOB_TURNS_H

#include <stdbool.h>

/* This thread is given a processor in short turns, and so sooner when it is woken, or in those
 * that others get. A rank that writes is to be short: when the disk is done, it waits for the
 * next write, and the mount's threads, which fill the window, would keep the rank waiting for
 * up to 15 ms. One that reads is not: it would only get in the way of who wants the data. */
void job_turns_shorten(bool wanted);

#endif
