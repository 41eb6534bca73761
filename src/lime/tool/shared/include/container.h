/* container.h - a container that a sub-command works on: open, indexed, faults in words */
#ifndef CONTAINER_H
#define CONTAINER_H

#include "limefile.h"
#include "limeildg.h"

struct container {
    const char *path; /* as the user gave it; not owned */
    int fd;
    struct limefile_fd file;
    struct limefile_index *index;
    uint64_t
        deviations; /* of the structure, without warnings; of an index that was built here */
    int beginning;  /* as limefile_beginning() returns it; 1: a container, or not known */

    struct limefile_source *source;
    struct mounted *mounted; /* or NULL; then fd is -1 */
};

/* Opens and indexes. Returns an exit status: TOOL_GOOD (also where the index ends at a
 * fault), TOOL_BAD or TOOL_UNUSABLE after a message. Call container_close() only after
 * TOOL_GOOD. */
int container_open(struct container *, const char *path);

/* The same; also of a folder as which limefs shows a container. */
int container_open_shown(struct container *, const char *path);

/* What comes before the index, which the caller builds: 0, or < 0 after a message. Closing it
 * does no harm whatever it was. */
int container_open_source(struct container *, const char *path);

void container_close(struct container *);

/* What a message says of a file that is not a container. */
#define CONTAINER_FOREIGN "not a LIME container (no record header at offset 0)"

/* A descriptor for the data of a record that the caller closes, or -errno; the record then says
 * where they are in that file. */
int container_open_data(const struct container *, struct limefile_record *record);

/* For a script: why the container could not be opened. */
const char *container_failure_text(const struct container *);

/* Says on stderr why and where the index ends, if it does. Returns TOOL_GOOD if it does not,
 * TOOL_UNUSABLE if the file could not be read there, else TOOL_BAD. */
int container_fault_message(const struct container *);

/* "FILE: offset N: record R: reason", on stderr; of a warning, "FILE: warning: ...". */
void finding_message(const char *path, const struct limefile_finding *, bool is_warning);

/* The type as people may see it: %XX for what a terminal or a table cannot bear. */
#define TYPE_SHOWN_MAX (3 * LIMEFILE_TYPE_BYTES + 1)
const char *type_shown(const char *type, size_t len, char out[TYPE_SHOWN_MAX]);

/* Opens without blocking; returns a descriptor, or < 0 after a message. */
int open_with_message(const char *path, int flags);

/* ---- records ---- */

/*
 * `word` is an ordinal ("3"), message.record ("2.1"), a type, or the name that the record
 * has in a mount ("003-ildg-binary-data"); `as_type`: a type whatever it looks like.
 * False after a message that says what to name instead.
 */
bool select_record(const struct container *, const char *word, bool as_type,
                   struct limefile_record *out);

#endif
