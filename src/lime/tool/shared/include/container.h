/* container.h - open and index a container for a sub-command, and report its faults */
#ifndef CONTAINER_H
#define CONTAINER_H

#include "limefile.h"
#include "limeildg.h"

struct limefile_gauge_adapter;
struct mounted_container;

struct container {
    const char *path; /* as the user gave it; not owned */
    int fd;           /* the file, or the directory in a mount */
    struct limefile_fd file;
    struct limefile_index *index;
    uint64_t deviations; /* number of deviations of the structure, without harmless ones */

    struct limefile_source *source;    /* reads the file, or `mounted`, or `adapter` */
    struct mounted_container *mounted; /* NULL: a file */
    const char *format; /* "nersc", "milc" or "openqcd", which limefs also shows as a container,
                           or NULL: a LIME container */
    struct limefile_gauge_adapter *adapter; /* of a file in such a format, or NULL */
};

/* Opens and indexes a file. Returns an exit status: TOOL_GOOD (even if the index ends at a
 * fault), or TOOL_BAD or TOOL_UNUSABLE after a message. Call container_close() only after
 * TOOL_GOOD. `path` must outlive the container. For commands that edit: others call
 * container_open_or_mounted(). */
int container_open(struct container *, const char *path);

/* Does the same, but `path` may also be a directory as which limefs shows a container, or a
 * file in another format, which this shows as a container in the same way. */
int container_open_or_mounted(struct container *, const char *path);

/* Opens a file, or a directory as which limefs shows a container, without an index. Sets
 * c->format. Opens a file in another format as it is, also if a mount shows it as a container
 * and this process can find the file. The caller may set c->index, which container_close()
 * frees. Returns 0, or < 0 after a message; call container_close() after both. */
int container_open_source(struct container *, const char *path);

void container_close(struct container *);

/* Returns the size of the container, or of the file if it is in another format. */
uint64_t container_size(const struct container *);

/* Returns the format in which a file begins, as in c->format, or NULL. */
const char *container_detect_format(struct limefile_source *);

/* Returns true, after a message for commands that edit, if the file is in such a format. */
bool container_report_format(const char *path, struct limefile_source *);

#define TEXT_NOT_CONTAINER "not a LIME container (no record header at offset 0)"

/* Reads the data of a record. Several threads may read it at once. */
struct container_data {
    struct limefile_source *source;
    struct limefile_fd file; /* of a record in a mount; otherwise file.fd is -1 */
};

/* Opens the data of a record, and sets record->data_offset to their offset in out->source. The
 * caller calls container_close_data(). Returns 0 or -errno. */
int container_open_data(const struct container *, struct limefile_record *record,
                        struct container_data *out);
void container_close_data(struct container_data *);

/* Copies copy->left bytes of a record's data, from copy->in_offset of the data on. Sets
 * copy->in. Returns 0 or an error, as limefile_copy(). */
int container_copy(const struct container *, const struct limefile_record *,
                   struct limefile_copy *copy);

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
