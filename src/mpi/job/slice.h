/* slice.h - how soon a rank gets a processor */
#ifndef JOB_SLICE_H
#define JOB_SLICE_H

/* This thread, and those that it starts, are given one soon after they are woken, in turns that
 * are short: when the disk is done, it waits for the next write, and the mount's own threads,
 * which fill the window, would keep a rank waiting for up to 15 ms. */
void job_slice_shorten(void);

#endif
