/* container.h - open and index a container for a sub-command, and report its faults */
#ifndef CONTAINER_H
#define CONTAINER_H

#include "limefile.h"
#include "limeildg.h"

struct container {
    const char *path; /* as the user gave it; not owned */
    int fd;
    struct limefile_fd file;
    struct limefile_index *index;
    uint64_t deviations; /* of the structure, without warnings; only of an index built here */
    int beginning;       /* result of limefile_detect_container(); 1: a container, or unknown */

    struct limefile_source *source;
    struct mounted_container *mounted; /* or NULL; then fd is -1 */
};

/* Opens and indexes. Returns an exit status: TOOL_GOOD (even if the index ends at a fault), or
 * TOOL_BAD or TOOL_UNUSABLE after a message. Call container_close() only after TOOL_GOOD. */
int container_open(struct container *, const char *path);

/* The same; also opens a directory as which limefs shows a container. */
int container_open_or_mounted(struct container *, const char *path);

/* Opens without building the index, which the caller does. Returns 0, or < 0 after a message.
 * container_close() is allowed after both. */
int container_open_source(struct container *, const char *path);

void container_close(struct container *);

/* The message for a file that is not a container. */
#define TEXT_NOT_CONTAINER "not a LIME container (no record header at offset 0)"

/* Opens the data of a record: a descriptor that the caller closes, or -errno. Sets data_offset
 * to their offset in that file. */
int container_open_data(const struct container *, struct limefile_record *record);

/* Returns a short text, for scripts, on why the container could not be opened. */
const char *container_failure_text(const struct container *);

/* Prints on stderr why and where the index ends early. Returns TOOL_GOOD if it does not,
 * TOOL_UNUSABLE if the file could not be read there, else TOOL_BAD. */
int container_report_fault(const struct container *);

/* Prints "FILE: offset N: record R: reason", or "FILE: warning: ...", on stderr. */
void message_finding(const char *path, const struct limefile_finding *, bool is_warning);

/* Returns the type with %XX for bytes that are unsafe in a terminal or a table. */
#define TYPE_TEXT_MAX (3 * LIMEFILE_TYPE_BYTES + 1)
const char *format_type(const char *type, size_t len, char out[TYPE_TEXT_MAX]);

/* Opens without blocking; returns a descriptor, or < 0 after a message. */
int open_or_report(const char *path, int flags);

/* ---- records ---- */

/*
 * `word` is an ordinal ("3"), message.record ("2.1"), a type, or the record's file name in a
 * mount ("003-ildg-binary-data"); `as_type`: always a type. Returns false after a message that
 * names the alternatives.
 */
bool select_record(const struct container *, const char *word, bool as_type,
                   struct limefile_record *out);

#endif
