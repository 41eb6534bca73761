/* remote.h - a running limefs-io, whose ranks read and write for us (docs/protocol.md) */
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

/* timeout: seconds after which a job that does not answer has failed. -errno, and what is wrong
 * in text (of `cap` bytes). */
int stage_remote_connect(const char *socket, unsigned blocks, unsigned timeout,
                         struct stage_remote **out, char *text, size_t cap);
void stage_remote_free(struct stage_remote *);

/* What is read and written at once, and where: `blocks` of these, one after another. */
size_t stage_remote_block_bytes(const struct stage_remote *);
char *stage_remote_window(struct stage_remote *);

/* It has failed once: nothing is asked of it any more. Its ranks may still use the window, so
 * nobody may change what is in it. `why` (or NULL) is set to a text that lives as long as it.
 */
bool stage_remote_is_gone(struct stage_remote *, const char **why);

/* The file that fd has open, for reading or for writing. -ESTALE: it was changed meanwhile. */
int stage_remote_open(struct stage_remote *, int fd, bool writing,
                      struct stage_remote_file *out);
void stage_remote_close(struct stage_remote_file *);

/* All of n bytes, or -errno. data: a block's memory. Any thread. */
int stage_remote_read(struct stage_remote_file *, char *data, size_t n, uint64_t offset);
int stage_remote_write(struct stage_remote_file *, const char *data, size_t n, uint64_t offset);

/* Where this fails because the job has gone, what was written through it is not safe. */
int stage_remote_sync(struct stage_remote_file *);

#endif
