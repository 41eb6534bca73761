/*
 * ahead.h - the files of a face's directory, read one after another.
 *
 * Slices are parts of one record, but the kernel reads ahead in one file only: while a reader
 * takes the last pages of a slice, nobody works on the next one. So where slices are opened in
 * turn, threads of the daemon read the beginning of what comes next, in blocks, and put them
 * into the kernel's pages of that file before anybody asks. A request for a block that is on
 * its way waits until it is read, and is answered from it.
 *
 * Where the kernel asks for little at a time (128 KiB, two requests at once, if nobody but an
 * ordinary user has mounted), it does not keep a disk busy. So ahead of a reader of a record
 * who goes on in sequence the same threads read blocks as well, and requests are answered from
 * these.
 *
 * Of slices that are in memory, opened in turn by a reader who takes much at once, the kernel
 * is to keep nothing the first time: to fill its page cache takes longer than to answer him.
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

/* A file of a face was opened, and the kernel does not know yet: it may be told to read it
 * around its page cache (file->around). */
void limefs_ahead_opened(struct limefs *, struct limefs_file *);

/* True: *answer has bytes of a face's file, as many as are asked for and are there: *n. It is
 * released like any other. */
bool limefs_ahead_read(struct limefs *, const struct limefs_file *, size_t *n, uint64_t offset,
                       struct limefs_answer *);
void limefs_ahead_release(struct limefs *, struct limefs_block *);

/* aheadstream.c: true: *answer has those n bytes of the container. */
bool limefs_ahead_stream(struct limefs *, struct limefs_file *, size_t n, uint64_t at,
                         struct limefs_answer *);

/* Before the file is closed: nothing is read for it any more. */
void limefs_ahead_closing(struct limefs *, struct limefs_file *);

#endif
