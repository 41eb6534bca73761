/* port.h - how a block gets out of a file and into one */
#ifndef STAGE_PORT_H
#define STAGE_PORT_H

#include "pump.h"

/* n bytes at `offset` into *data, which has room for `capacity`. Where *lender has failed,
 * *data becomes memory of our own and *lender NULL. LIMEFILE_E_SHRUNK: the file ends before. */
int stage_port_read(struct stage_port *, char **data, struct stage_remote **lender,
                    size_t capacity, size_t n, uint64_t offset);

/* Starts the bytes on their way to the disk; does not sync. */
int stage_port_write(struct stage_port *, const char *data, struct stage_remote *lender,
                     size_t n, uint64_t offset);

/* Descriptors for direct access beside port->fd, where there is such a thing. */
void stage_port_open_direct(struct stage_port *, int flags);
void stage_port_close(struct stage_port *);

#endif
