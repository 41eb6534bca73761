/* remote.h - read and write through the ranks of a running limefs-io (docs/protocol.md) */
#ifndef STAGE_REMOTE_H
#define STAGE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stage_remote;

struct stage_remote_file {
    struct stage_remote *remote;
    uint32_t file;
};

/* Connects to the job. timeout: seconds after which a job that does not answer has failed.
 * Returns -errno and a message in text (`cap` bytes). */
int stage_remote_connect(const char *socket, unsigned blocks, unsigned timeout,
                         struct stage_remote **out, char *text, size_t cap);
void stage_remote_free(struct stage_remote *);

/* The bytes of one block, and the window, which holds `blocks` blocks one after another. */
size_t stage_remote_block_bytes(const struct stage_remote *);
char *stage_remote_window(struct stage_remote *);

/* Returns true if the connection has failed; it sends no further request then. Ranks may still
 * use the window, so no thread may change its bytes. *why (unless NULL) is set to a text that
 * lives as long as the connection, or to NULL. */
bool stage_remote_has_failed(struct stage_remote *, const char **why);

/* Opens in the job the file that fd has open. -ESTALE: the file has changed in the meantime. */
int stage_remote_open(struct stage_remote *, int fd, bool writing,
                      struct stage_remote_file *out);
void stage_remote_close(struct stage_remote_file *);

/* Read or write all n bytes of a block, or return -errno. Any thread may call them. */
int stage_remote_read(struct stage_remote_file *, char *data, size_t n, uint64_t offset);
int stage_remote_write(struct stage_remote_file *, const char *data, size_t n, uint64_t offset);

/* If it fails because the job has gone, data that were written through it may be lost. */
int stage_remote_sync(struct stage_remote_file *);

#endif
