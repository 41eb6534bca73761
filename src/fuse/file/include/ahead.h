/*
 * ahead.h - threads of the daemon that read ahead for sequential readers.
 *
 * In the mount of an ordinary user, the kernel requests 128 KiB at a time and has two requests
 * under way, which does not keep a disk busy. It also reads ahead within one file only, while
 * the slices of an export follow each other in one record. So these threads read blocks of the
 * container before they are requested, as forward.h plans it.
 *
 * A mount with a job does not use them: the job's window has the same purpose.
 */
#ifndef LIMEFS_AHEAD_H
#define LIMEFS_AHEAD_H

#include "file.h"

/* Starts the threads, before the first request. If it fails, files are read without them. */
void limefs_ahead_begin(struct limefs *);

/* Stops the threads, after the last request. */
void limefs_ahead_end(struct limefs *);

/* Like limefs_job_read() and limefs_job_release(), for an open record or export. */
int limefs_ahead_read(struct limefs *, struct limefs_file *, const struct limefs_range *,
                      struct limefs_pieces *);
void limefs_ahead_release(struct limefs *, struct limefs_pieces *);

/* Waits until no thread reads a block for the file. Called before the file is closed. */
void limefs_ahead_closing(struct limefs *, const struct limefs_file *);

#endif
