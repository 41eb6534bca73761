/* pack.h - create a container from a list of files with their types and message boundaries */
#ifndef PACK_H
#define PACK_H

#include "limefile.h"
#include "tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack_item {
    const char *path; /* path and type are valid as long as the list and this struct */
    const char *type; /* type_len bytes, none of them NUL, and a NUL */
    size_t type_len;
    bool mb, me;
    char name[LIMEFILE_NAME_MAX + 1]; /* holds `path` if 'lime unpack' would give this name */
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

/* Makes the flags MB and ME (message begins, ends) consistent, by adding flags: if one of two
 * neighbours states a message boundary between them, the other one also does; the first record
 * gets MB, the last one ME. Returns the number of changed records. */
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

/* Reads DIR/manifest.tsv; its names are files in that directory. False after a message. */
bool packlist_read_manifest(struct packlist *, int dirfd, const char *dir_name);

/* Reads a list in the format of C-LIME's lime_pack: "path type" on each line, a blank line
 * between messages. tabs: a TAB may separate path and type, which may then contain spaces.
 * Returns false after a message. */
bool packlist_read_list(struct packlist *, const char *path, bool tabs);

/* ---- packing ---- */

struct packing {
    const struct packlist *list;
    int dirfd;             /* base of relative paths, or AT_FDCWD */
    const char *dir_name;  /* name of `dirfd` for messages, or NULL */
    const char *list_name; /* path of the file that has the list, from `dirfd`, or NULL */
    bool follow_links;     /* a path may be a symbolic link */
    bool force;            /* replace an existing target */
    /* Called before each record is written, or NULL. */
    void (*announce)(uint32_t message, uint32_t record, uint64_t bytes,
                     const struct pack_item *);
};

/* Writes the whole container or nothing. Returns an exit status: GOOD, or after a message. */
int pack_to_file(const struct packing *, const char *target);

/* ---- records named on the command line of append and pack: -t TYPE PATH, with -m ---- */

/* The records that the command line has named so far. Global: a process runs one command. */
extern struct packargs {
    struct packlist list;
    const char *operands[2]; /* operands without a type; at most command->operands.most */
    int operand_count;
    const char *type; /* of the -t before the next PATH; NULL: no -t */
    bool new_message; /* -m was given: the next record begins a message */
} packargs;

/* Option rules for a command whose handle_operand is packargs_operand(). */
/* clang-format off */
#define PACKARGS_RULES                                          \
    {"type", 't', OPTION_CALL_TEXT, .take = packargs_type},     \
    FLAG_RULE("new-message", 'm', &packargs.new_message)
/* clang-format on */
int packargs_type(const void *command, char *type);
int packargs_operand(const void *command, const char *word);

/* Returns TOOL_UNUSABLE, after a message, if no record follows a -t or -m. */
int packargs_check(const struct command *);

#endif
