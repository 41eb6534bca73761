/*
 * ahead.h - the files of a face's directory, read one after another.
 *
 * Slices are parts of one record, but the kernel reads ahead in one file only: while a reader
 * takes the last pages of a slice, nobody works on the next one. So where slices are opened in
 * turn, threads of the daemon read the beginning of what comes next, in blocks, and put them
 * into the kernel's pages of that file before anybody asks. A request for a block that is on
 * its way waits until it is read, and is answered from it.
 *
 * In mounts that only read, without a job (which has a window of its own), and where what is
 * served is not looked at.
 */
#ifndef LIMEFS_AHEAD_H
#define LIMEFS_AHEAD_H

#include "file.h"

/* Before any request is served. After an error, or where it does not apply, files are read
 * without it. */
void limefs_ahead_begin(struct limefs *);

/* Once no request is served any more. */
void limefs_ahead_end(struct limefs *);

/* A file of a face was opened, and the kernel does not know yet. */
void limefs_ahead_opened(struct limefs *, const struct limefs_file *);

/* True: *answer has bytes of a face's file, as many as are asked for and are there: *n. It is
 * released like any other. */
bool limefs_ahead_read(struct limefs *, const struct limefs_file *, size_t *n, uint64_t offset,
                       struct limefs_answer *);
void limefs_ahead_release(struct limefs *, struct limefs_block *);

#endif
