/* gaugefile.h - open the gauge configuration in a file of any format, or in a QIO volume set */
#ifndef GAUGEFILE_H
#define GAUGEFILE_H

#include "container.h"
#include "limegauge.h"
#include "volume_set.h"

struct gaugefile {
    const char *path; /* as the user gave it; not owned */
    struct container c;
    struct volume_set set;          /* if set.volumes is NULL, the input is `c` */
    struct limefile_source *source; /* of the file or the set */
    struct limefile_gauge *gauge;
};

/* Opens the configuration in the record that `record` selects. NULL selects the only one.
 * Returns an exit status, after a message if it is not TOOL_GOOD; call gaugefile_close() only
 * after TOOL_GOOD. */
int gaugefile_open(struct gaugefile *, const char *path, const char *record);
void gaugefile_close(struct gaugefile *);

/* Returns the descriptors of all input files, and their number in *count. */
const int *gaugefile_inputs(const struct gaugefile *, size_t *count);

/* Returns true if gaugefile_open() finds a configuration in the file, or must report a problem.
 * Returns false for a file of another kind, for a container without a configuration, and for a
 * volume if the first volume of its set exists. Sets *has_number and *number to the
 * configuration's number in its metadata. */
bool gaugefile_probe(const char *path, bool *has_number, uint64_t *number);

#endif
