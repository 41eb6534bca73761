/* gaugefile.h - a file with a gauge configuration that a sub-command reads */
#ifndef GAUGEFILE_H
#define GAUGEFILE_H

#include "limegauge.h"
#include "setfile.h"

struct gaugefile {
    const char *path; /* as the user gave it; not owned */
    int fd;
    struct limefile_fd file;
    struct setfile set;             /* or NULL in its `volumes`: then fd is the file's */
    struct limefile_source *source; /* of either */
    struct limefile_gauge *gauge;
};

/* `record`: which one of a container, as for 'lime cat'; NULL: the only one. An exit status,
 * after a message if it is not GOOD; gaugefile_close() only after GOOD. */
int gaugefile_open(struct gaugefile *, const char *path, const char *record);
void gaugefile_close(struct gaugefile *);

/* The `count` descriptors that it reads. */
const int *gaugefile_inputs(const struct gaugefile *, size_t *count);

#endif
