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
    uint64_t deviations; /* number of deviations of the structure, without harmless ones */

    struct limefile_source *source;    /* reads the file, or `mounted` */
    struct mounted_container *mounted; /* NULL: a file; otherwise fd is -1 */
};

/* Opens and indexes a file. Returns an exit status: TOOL_GOOD (even if the index ends at a
 * fault), or TOOL_BAD or TOOL_UNUSABLE after a message. Call container_close() only after
 * TOOL_GOOD. `path` must outlive the container. */
int container_open(struct container *, const char *path);

/* Does the same, but `path` may also be a directory as which limefs shows a container. */
int container_open_or_mounted(struct container *, const char *path);

/* Opens a file, or a directory as which limefs shows a container, without an index. The caller
 * may set c->index, which container_close() frees. Returns 0, or < 0 after a message; call
 * container_close() after both. */
int container_open_source(struct container *, const char *path);

void container_close(struct container *);

#define TEXT_NOT_CONTAINER "not a LIME container (no record header at offset 0)"

/* Opens the file that holds a record's data. Returns a descriptor, which the caller closes, or
 * -errno. Sets record->data_offset to the offset of the data in this file. */
int container_open_data(const struct container *, struct limefile_record *record);

/* If the index ends at a fault, prints the fault on stderr, and returns TOOL_UNUSABLE if it is
 * a read error, else TOOL_BAD. Returns TOOL_GOOD if the index is complete. */
int container_report_fault(const struct container *);

/* Prints "FILE: offset N: record R: reason", or "FILE: warning: ...", on stderr. */
void message_finding(const char *path, const struct limefile_finding *, bool is_warning);

/* Returns the type with %XX for bytes that are unsafe in a terminal or a table. */
#define TYPE_TEXT_MAX (3 * LIMEFILE_TYPE_BYTES + 1)
const char *format_type(const char *type, size_t len, char out[TYPE_TEXT_MAX]);

/* Calls limefile_open(). Returns a descriptor, or < 0 after a message. */
int open_or_report(const char *path, int flags);

/* Finds a record by its ordinal ("3"), message.record ("2.1"), type, or file name in a mount
 * ("003-ildg-binary-data"). as_type: `word` is always a type. Returns false after a message,
 * also if several records have the type. */
bool select_record(const struct container *, const char *word, bool as_type,
                   struct limefile_record *out);

#endif
