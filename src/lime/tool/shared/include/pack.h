/* pack.h - create a container from a list of files with their types and message boundaries */
#ifndef PACK_H
#define PACK_H

#include "limefile.h"
#include "tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack_item {
    const char *path; /* path and type are valid while the list and this struct exist */
    const char *type; /* type_len bytes that are not NUL, then a NUL */
    size_t type_len;
    bool mb, me;
    char name[LIMEFILE_NAME_MAX + 1]; /* contains `path` if 'lime unpack' gives this name */
};

/* Records to pack. Initialise with zeros. A list may have a million entries. */
struct packlist {
    struct pack_entry *entries;
    size_t count, capacity;
    char *texts;
    size_t text_size, text_capacity;
};

void packlist_get(const struct packlist *, size_t i, struct pack_item *out);
void packlist_release(struct packlist *);

/* Makes the flags MB and ME (message begins, ends) consistent by adding flags: if a record ends
 * a message, the next one begins a message, and vice versa; the first record begins a message,
 * and the last one ends a message. Returns the number of changed records. */
uint64_t packlist_fix_flags(struct packlist *);

/* Returns true, after a message about `path`, if no header can hold the type. Warns of a type
 * that some readers may refuse. */
bool packlist_type_is_invalid(const char *path, const char *type, size_t type_len);

/* `lime unpack` writes manifest.tsv next to the files, so that `lime pack` can restore the
 * container: a heading, then a line for each record
 *
 *     ordinal message record mb me bytes type file        separated by TABs
 *
 * Column type has %XX for unsafe bytes. `lime pack` uses the files' lengths, not column
 * bytes. */
#define MANIFEST_NAME "manifest.tsv"
#define MANIFEST_HEAD "#ordinal\tmessage\trecord\tmb\tme\tbytes\ttype\tfile\n"

/* Reads manifest.tsv in `dirfd`. dir_name: for messages. Returns false after a message. */
bool packlist_read_manifest(struct packlist *, int dirfd, const char *dir_name);

/* Reads a list in the format of C-LIME's lime_pack: "path type" on each line, a blank line
 * between messages. tabs: a TAB may separate path and type; then both may contain spaces.
 * Returns false after a message. */
bool packlist_read_list(struct packlist *, const char *path, bool tabs);

/* ---- packing ---- */

struct packing {
    const struct packlist *list;
    int dirfd;             /* base of relative paths, or AT_FDCWD */
    const char *dir_name;  /* name of `dirfd` for messages, or NULL */
    const char *list_name; /* path, relative to dirfd, of the file with the list; or NULL */
    bool follow_links;     /* a path may be a symbolic link */
    bool force;            /* replace an existing target */
    /* Called before each record is written, or NULL. */
    void (*announce)(uint32_t message, uint32_t record, uint64_t bytes,
                     const struct pack_item *);
};

/* Writes the whole container or nothing. Returns TOOL_GOOD, or TOOL_BAD after a message. */
int pack_to_file(const struct packing *, const char *target);

/* ---- records named on the command line of append and pack: -t TYPE PATH, with -m ---- */

/* The records that the command line has named so far. Global: a process runs one command. */
extern struct packargs {
    struct packlist list;
    const char *operands[2]; /* operands without a type; at most command->operands.most */
    int operand_count;
    const char *type; /* of a -t whose PATH has not been parsed yet; or NULL */
    bool new_message; /* -m was given: the next record begins a message */
} packargs;

/* Option rules for a command whose handle_operand is packargs_operand(). */
/* clang-format off */
#define PACKARGS_RULES                                          \
    {"type", 't', OPTION_CALL_TEXT, .handle = packargs_type},     \
    FLAG_RULE("new-message", 'm', &packargs.new_message)
/* clang-format on */
int packargs_type(const void *command, char *type);
int packargs_operand(const void *command, const char *word);

/* Returns TOOL_UNUSABLE after a message if the last -t or -m is not followed by a record. */
int packargs_check(const struct command *);

#endif
