/*
 * output.h - a file that all ranks write, and that gets its name only when it is complete and
 * synced
 */
#ifndef CHECKPOINT_OUTPUT_H
#define CHECKPOINT_OUTPUT_H

#include "lemon_cells.h"
#include "limeoutput.h"
#include "print.h"

#include <limits.h>

/* In each dimension; the library limits their product. */
#define CHECKPOINT_CELLS_MAX 1e9

struct checkpoint_output {
    const char *path;                        /* as given; not owned */
    struct limefile_output output;           /* on rank 0 */
    char temporary[PATH_MAX + NAME_MAX + 2]; /* its absolute path */
    MPI_File file;                           /* open for reading and writing, empty at first */
    LemonWriter *writer;                     /* NULL until the first checkpoint */
};

/* All but checkpoint_output_write_at() are collective; if they return false, rank 0 has printed
 * the reason and, but for checkpoint_output_write(), the file is removed. */

/* Creates the temporary file. Fails where limefile_output_open() fails: for an existing file
 * unless force, a locked one, and the file that the program reads. input: its descriptor on
 * rank 0, or -1. */
bool checkpoint_output_open(const struct checkpoint_world *, const char *path, bool force,
                            int input, struct checkpoint_output *);

/* Returns whether checkpoint_output_open() would succeed now; creates nothing. */
bool checkpoint_output_check(const struct checkpoint_world *, const char *path, bool force,
                             int input);

/* Removes the file after a failure that has been reported. */
void checkpoint_output_abort(const struct checkpoint_world *, struct checkpoint_output *);

/* Syncs and closes the file and gives it its name. Returns the same on all ranks. Releases
 * `out` in any case. */
bool checkpoint_output_commit(const struct checkpoint_world *, struct checkpoint_output *);

/* Writes this rank's n bytes at `at` of the file. Returns false and sets `error` on failure.
 * Not collective. */
bool checkpoint_output_write_at(struct checkpoint_output *, int64_t at, const void *data,
                                int64_t n, char error[CHECKPOINT_ERROR_BYTES]);

/* Divides the domain into cells that are about cubes of 1000 particles each, at most 2^21 of
 * them, independent of the number of ranks. */
void checkpoint_choose_cells(LemonDomain *, int64_t particles);

/* Creates the writer at the first call. */
void checkpoint_output_create_writer(struct checkpoint_output *);

/* Writes the checkpoint, in a message that begins with its header, and finishes the file; rank
 * 0 prints what was written unless quiet. header: NULL, or the same text on all ranks. flags:
 * those of lemonWriteCells(). If it returns false, the caller must still drop the output. */
bool checkpoint_output_write(const struct checkpoint_world *, struct checkpoint_output *,
                             const char *header, const LemonDomain *, const LemonParticle *,
                             const struct checkpoint_particles *, int flags, bool quiet);

/* Writes a text record with the writer. message_ends: its ME flag. LEMON_SUCCESS, or an error.
 */
int checkpoint_write_text(LemonWriter *, const char *type, const char *text, int message_ends);

#endif
