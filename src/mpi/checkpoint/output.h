/* output.h - a file that all ranks write, renamed to its path when complete and synced */
#ifndef CHECKPOINT_OUTPUT_H
#define CHECKPOINT_OUTPUT_H

#include "lemon_cells.h"
#include "limeoutput.h"
#include "print.h"

#include <limits.h>

/* Maximum number of cells in a dimension; Lemon limits their product, too. */
#define CHECKPOINT_CELLS_MAX 1e9

struct checkpoint_output {
    const char *path;                        /* as given; not owned */
    struct limefile_output output;           /* on rank 0 */
    char temporary[PATH_MAX + NAME_MAX + 2]; /* absolute path of the temporary file */
    MPI_File file;                           /* open for reading and writing, empty at first */
    LemonWriter *writer;                     /* NULL until the first checkpoint */
};

/* All but checkpoint_output_write_at() are collective. If one returns false, rank 0 has printed
 * the reason and, except after checkpoint_output_write(), the temporary file is removed. */

/* Creates the temporary file. Fails if `path` exists and `force` is false, if another process
 * has locked it as a container, or if it is the input. path must stay valid. input: descriptor
 * of the file that the program reads, on rank 0; or -1. */
bool checkpoint_output_open(const struct checkpoint_world *, const char *path, bool force,
                            int input, struct checkpoint_output *);

/* Returns whether checkpoint_output_open() would succeed now; creates nothing. */
bool checkpoint_output_check(const struct checkpoint_world *, const char *path, bool force,
                             int input);

/* Removes the temporary file, and releases `out`, after a failure that was reported. */
void checkpoint_output_abort(const struct checkpoint_world *, struct checkpoint_output *);

/* Syncs, closes and renames the file. Returns the same on all ranks; always releases `out`. */
bool checkpoint_output_commit(const struct checkpoint_world *, struct checkpoint_output *);

/* Writes n bytes at offset `at`. Returns false and sets `error` on failure. Not collective. */
bool checkpoint_output_write_at(struct checkpoint_output *, int64_t at, const void *data,
                                int64_t n, char error[CHECKPOINT_ERROR_BYTES]);

/* Sets domain->cells: near cubes of about 1000 particles each, at most 128 in a dimension,
 * independent of the number of ranks. */
void checkpoint_choose_cells(LemonDomain *, int64_t particles);

/* Creates out->writer at the first call. Aborts the job if out of memory. */
void checkpoint_output_create_writer(struct checkpoint_output *);

/* Writes a message that consists of header and checkpoint, and commits the file; rank 0 prints
 * what was written, unless quiet. header: NULL, or the same text on all ranks. flags: those of
 * lemonWriteCells(). If it returns false, the caller must call checkpoint_output_abort(). */
bool checkpoint_output_write(const struct checkpoint_world *, struct checkpoint_output *,
                             const char *header, const LemonDomain *, const LemonParticle *,
                             const struct checkpoint_particles *, int flags, bool quiet);

/* Writes a text record that begins a message, with the given ME flag. Returns a Lemon code. */
int checkpoint_write_text(LemonWriter *, const char *type, const char *text, int message_ends);

#endif
