/* remote.h - read and write files through a job (docs/protocol.md)
 *
 * A job is a running limefs-io, an MPI program whose ranks, also on other hosts, read and write
 * files in parallel. The job reads into the window and writes from it; the window is memory
 * that this process shares with the job. The functions are thread-safe, except connect and
 * free. */
#ifndef STAGE_REMOTE_H
#define STAGE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stage_remote;

struct stage_remote_file {
    struct stage_remote *remote;
    uint32_t file; /* the job's number of the open file */
};

/* Connects to the job at a Unix socket. timeout: seconds after which a job that does not answer
 * has failed. Returns 0, or -errno and a message in text (`cap` bytes). */
int stage_remote_connect(const char *socket, unsigned blocks, unsigned timeout,
                         struct stage_remote **out, char *text, size_t cap);
void stage_remote_free(struct stage_remote *);

/* Return the size of a block in bytes, and the window, in which the blocks are consecutive. */
size_t stage_remote_block_bytes(const struct stage_remote *);
char *stage_remote_window(struct stage_remote *);

/* Returns true if the connection has failed. Then all requests fail, but ranks of the job may
 * still read and write the window's memory, so no thread may use this memory for anything else.
 * Unless `why` is NULL, sets *why to the reason, valid until stage_remote_free(), or to NULL if
 * the connection has not failed. */
bool stage_remote_has_failed(struct stage_remote *, const char **why);

/* Makes the job open the file that fd has open. Returns 0, after which the caller must call
 * stage_remote_close(), or -errno. -ESTALE: the file changed during the call. */
int stage_remote_open(struct stage_remote *, int fd, bool writing,
                      struct stage_remote_file *out);
void stage_remote_close(struct stage_remote_file *);

/* Transfer all of n bytes. data: a block in the window. Return 0 or -errno. */
int stage_remote_read(struct stage_remote_file *, char *data, size_t n, uint64_t offset);
int stage_remote_write(struct stage_remote_file *, const char *data, size_t n, uint64_t offset);

/* Syncs the file on all ranks. Returns 0 or -errno. Data written through a job that has ended
 * may be lost. */
int stage_remote_sync(struct stage_remote_file *);

#endif
