/*
 * ahead.h - read ahead of a reader who goes on in sequence, by threads of the daemon.
 *
 * If an ordinary user has mounted, the kernel asks for 128 KiB at a time and has two requests
 * under way, which does not keep a disk busy. And it reads ahead within one file, while the
 * slices of an export follow each other in one record. So threads of the daemon read blocks of
 * the container before they are asked for, as forward.h plans it, and requests are answered
 * from these.
 *
 * Not in a mount with a job, whose window has the same purpose.
 */
#ifndef LIMEFS_AHEAD_H
#define LIMEFS_AHEAD_H

#include "file.h"

/* Called before any request is served. After an error files are read without it. */
void limefs_ahead_begin(struct limefs *);

/* Called when no request is served any more. */
void limefs_ahead_end(struct limefs *);

/* The same as limefs_job_read() and limefs_job_release(), for an open record or export. */
int limefs_ahead_read(struct limefs *, struct limefs_file *, const struct limefs_range *,
                      struct limefs_pieces *);
void limefs_ahead_release(struct limefs *, struct limefs_pieces *);

/* Called before the file is closed: afterwards nothing is read for it. */
void limefs_ahead_closing(struct limefs *, const struct limefs_file *);

#endif
