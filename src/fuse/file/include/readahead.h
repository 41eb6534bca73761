/*
 * readahead.h - threads of the daemon that read ahead for sequential readers.
 *
 * In the mount of an ordinary user, the kernel requests 128 KiB at a time and has two requests
 * under way, which does not keep a disk busy. It also reads ahead within one file only, even if
 * an export's next file is the next part of a record. Therefore these threads read blocks of
 * the container before the kernel requests them; prefetch.h chooses them.
 *
 * A mount with a job does not use them: the job's window has the same purpose.
 */
#ifndef LIMEFS_READAHEAD_H
#define LIMEFS_READAHEAD_H

#include "file.h"

/* Starts the threads. Call it before the first request. If it fails, nothing is read ahead. */
void limefs_readahead_start(struct limefs *);

/* Stops the threads. Call it after the last request; it may be called twice. */
void limefs_readahead_stop(struct limefs *);

/* Finds a range of the open record, or of an export's record, in the blocks read ahead. Fills
 * the chunks and returns their number; 0: read the range from the container. The caller may use
 * the memory of the chunks until it releases them, which it must do soon: their blocks cannot
 * be reused before. The function may queue blocks for the threads and wait for them. */
int limefs_readahead_read(struct limefs *, struct limefs_file *,
                          const struct limefs_read_range *, struct limefs_chunks *);
void limefs_readahead_release(struct limefs *, struct limefs_chunks *);

/* Waits until no thread reads a block for the file. Called before the file is closed. */
void limefs_readahead_wait(struct limefs *, const struct limefs_file *);

#endif
