/* info.h - what lime info has found out of one container, told to people or to scripts */
#ifndef INFO_H
#define INFO_H

#include "container.h"
#include "facts.h"
#include "limecheckpoint.h"
#include "limeildg.h"
#include "limeverdict.h"

struct info {
    struct container c;
    struct limefile_fields fields;
    struct facts facts; /* of the record that is being told */
    struct limecheckpoint_walk walk;
    uint64_t deviations; /* of structure and metadata that were printed; without warnings */
};

/* Returns what ends the container too early, also that it is empty; or NULL. */
const struct limefile_finding *info_fault(const struct info *);

/* The exit status for a container, whose reading has given `status`. */
int info_judge(const struct info *, int status);

/* Both print all of it; an exit status, after a message if it is not GOOD. */
int info_tell(struct info *);
int info_json(struct info *);

/* What stands in the place of a container that cannot be told. */
void info_json_failure(const char *path, const char *why, enum limefile_verdict);

/* Fills `facts`; the caller releases them. An exit status, after a message if it is not GOOD.
 */
int info_read_facts(struct info *, const struct limefile_record *, enum facts_form);

/* An exit status for what reading has given, after a message if it has failed. */
int info_status(struct info *, int code);

/* What a private record XML says; false if it is not there or cannot be understood. */
bool info_private_record(struct info *, uint64_t ordinal, struct limefile_scidac_record *out);

/* The logical file name that the record says; false as above. */
bool info_lfn(struct info *, uint64_t ordinal, char out[LIMEFILE_LFN_MAX]);

#endif
