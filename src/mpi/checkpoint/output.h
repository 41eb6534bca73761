/* output.h - write a file on all ranks; it gets its name when it is complete and synced */
#ifndef CHECKPOINT_OUTPUT_H
#define CHECKPOINT_OUTPUT_H

#include "lemon_cells.h"
#include "limeoutput.h"
#include "print.h"

#include <limits.h>

/* Maximum number of cells in a dimension; Lemon also limits the total number. */
#define CHECKPOINT_CELLS_MAX 1e9

struct checkpoint_output {
    const char *path;                        /* as given; not owned */
    struct limefile_output output;           /* on rank 0 */
    char temporary[PATH_MAX + NAME_MAX + 2]; /* absolute path of the temporary file */
    MPI_File file;                           /* open for reading and writing, empty at first */
    LemonWriter *writer;                     /* NULL until the first checkpoint */
};

/* All functions but checkpoint_output_write_at() and checkpoint_choose_cells() are collective.
 * If a collective function returns false, rank 0 has printed the reason. */

/* Creates the temporary file; after a failure, none is left. Fails if `path` exists and `force`
 * is false, if another process has locked `path` as a container, or if `path` is the input.
 * input: on rank 0, descriptor of the file that is read, or -1. path must stay valid. */
bool checkpoint_output_open(const struct checkpoint_world *, const char *path, bool force,
                            int input, struct checkpoint_output *);

/* Returns whether checkpoint_output_open() would succeed now. Leaves no file. */
bool checkpoint_output_check(const struct checkpoint_world *, const char *path, bool force,
                             int input);

/* Removes the temporary file, and releases `out`. Has no effect after a failed commit. */
void checkpoint_output_abort(const struct checkpoint_world *, struct checkpoint_output *);

/* Syncs, closes and renames the temporary file, or removes it on failure. Releases `out`. */
bool checkpoint_output_commit(const struct checkpoint_world *, struct checkpoint_output *);

/* Writes n bytes at offset `at`. Returns false and sets `error` on failure. Not collective. */
bool checkpoint_output_write_at(struct checkpoint_output *, int64_t at, const void *data,
                                int64_t n, char error[CHECKPOINT_ERROR_BYTES]);

/* Sets domain->cells so that cells are nearly cubes and have about 1000 particles on average,
 * with at most 128 cells in a dimension. The result does not depend on the number of ranks. */
void checkpoint_choose_cells(LemonDomain *, int64_t particles);

/* Creates out->writer if it is NULL. Aborts the job if out of memory. */
void checkpoint_output_create_writer(struct checkpoint_output *);

/* Writes a message of header and checkpoint, and commits the file. Rank 0 prints how much was
 * written, unless quiet. header: NULL for none, or the same text on all ranks. flags: those of
 * lemonWriteCells(). If this returns false, the caller must call checkpoint_output_abort(). */
bool checkpoint_output_write(const struct checkpoint_world *, struct checkpoint_output *,
                             const char *header, const LemonDomain *, const LemonParticle *,
                             const struct checkpoint_particles *, int flags, bool quiet);

/* Writes a text record with the MB flag. message_ends: its ME flag. Returns a Lemon code. */
int checkpoint_write_text(LemonWriter *, const char *type, const char *text, int message_ends);

#endif
