/* pack.h - create a container from a list of files with their types and message boundaries */
#ifndef PACK_H
#define PACK_H

#include "limefile.h"
#include "tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack_item {
    const char *path; /* path and type live as long as the list and this struct */
    const char *type; /* type_len bytes, none of them NUL, and a NUL */
    size_t type_len;
    bool mb, me;
    char name[LIMEFILE_NAME_MAX + 1]; /* path, if it is the name that 'lime unpack' gives */
};

/* Initialise with zeros. Entries are small, because there may be a million. */
struct packlist {
    struct pack_entry *entries;
    size_t count, capacity;
    char *texts;
    size_t text_size, text_capacity;
};

void packlist_get(const struct packlist *, size_t i, struct pack_item *out);
void packlist_release(struct packlist *);

/*
 * Makes the flags consistent: if one of two neighbours states a message boundary between them,
 * both do; the first record has MB, the last ME. Flags are only added. Returns the number of
 * changed records.
 */
uint64_t packlist_fix_flags(struct packlist *);

/* Returns true, after a message, if no header can hold the type. Warns of a type that some
 * readers may refuse. */
bool packlist_type_is_invalid(const char *path, const char *type, size_t type_len);

/*
 * `lime unpack` writes manifest.tsv next to the files, so that `lime pack` can restore the
 * container: a heading, then a line for each record
 *
 *     ordinal message record mb me bytes type file        separated by TABs
 *
 * type has %XX for unsafe bytes; packing ignores bytes and uses the files' lengths.
 */
#define MANIFEST_NAME "manifest.tsv"
#define MANIFEST_HEAD "#ordinal\tmessage\trecord\tmb\tme\tbytes\ttype\tfile\n"

/* Reads DIR/manifest.tsv; its names are files in that directory. False after a message. */
bool packlist_read_manifest(struct packlist *, int dirfd, const char *dir_name);

/*
 * Reads a list in the format of C-LIME's lime_pack: "path type" on each line, a blank line
 * between messages. tabs: a TAB in a line separates the two, so that both may contain spaces.
 * Returns false after a message.
 */
bool packlist_read_list(struct packlist *, const char *path, bool tabs);

/* ---- packing ---- */

struct packing {
    const struct packlist *list;
    int dirfd;             /* base of relative paths, or AT_FDCWD */
    const char *dir_name;  /* for messages, or NULL */
    const char *list_name; /* path of the list's own file, relative to `dirfd`, or NULL */
    bool follow_links;     /* a path may be a symbolic link */
    bool force;            /* replace an existing target */
    /* Called before each record is written, or NULL. */
    void (*announce)(uint32_t message, uint32_t record, uint64_t bytes,
                     const struct pack_item *);
};

/* Writes the whole container or nothing. Returns an exit status, after a message if not 0. */
int pack_to_file(const struct packing *, const char *target);

/* ---- records named on the command line of append and pack: -t TYPE PATH, with -m ---- */

/* The records that the options have named so far: one list, as a process runs one command. */
extern struct packargs {
    struct packlist list;
    const char *operands[2]; /* words that follow no type; at most command->most */
    int operand_count;
    const char *type; /* for the next PATH; NULL: not given */
    bool new_message;
} packargs;

/* For the rules of a command whose operand() is packwords_operand. */
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
