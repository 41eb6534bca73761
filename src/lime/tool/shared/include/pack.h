/* pack.h - what is to become a container: files, their types, message boundaries */
#ifndef PACK_H
#define PACK_H

#include "limefile.h"
#include "tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack_item {
    const char *path; /* both as long-lived as the list and this struct */
    const char *type; /* type_len bytes without a NUL among them, NUL-terminated */
    size_t type_len;
    bool mb, me;
    char name[LIMEFILE_NAME_MAX + 1]; /* path, where it is what 'lime unpack' calls it */
};

/* Zero to begin with. What is kept of an item is small: there may be a million. */
struct packlist {
    struct pack_entry *entries;
    size_t count, capacity;
    char *texts;
    size_t text_size, text_capacity;
};

void packlist_get(const struct packlist *, size_t i, struct pack_item *out);
void packlist_release(struct packlist *);

/*
 * Makes the flags agree: where one of two neighbours says that a message ends or begins
 * between them, both say it then; the first has MB, the last ME. Flags are only ever added.
 * Returns how many records it changed.
 */
uint64_t packlist_mend(struct packlist *);

/* True if no header can hold the type; says so. Warns of one that readers may refuse. */
bool packlist_type_is_bad(const char *path, const char *type, size_t type_len);

/*
 * manifest.tsv is what `lime unpack` writes beside the files so that `lime pack` can put them
 * together again: a heading, then a line for each record
 *
 *     ordinal message record mb me bytes type file        separated by TABs
 *
 * type with %XX for unsafe bytes; bytes is for people, packing takes the files as they are.
 */
#define MANIFEST_NAME "manifest.tsv"
#define MANIFEST_HEAD "#ordinal\tmessage\trecord\tmb\tme\tbytes\ttype\tfile\n"

/* From DIR/manifest.tsv, whose names mean files in that folder. False after a message. */
bool packlist_read_manifest(struct packlist *, int folder, const char *folder_name);

/*
 * From a list as C-LIME's lime_pack takes it: "path type" a line, a blank line between
 * messages. tabs: where a line holds a TAB that separates, so that both may hold spaces.
 * False after a message.
 */
bool packlist_read_list(struct packlist *, const char *path, bool tabs);

/* ---- packing ---- */

struct packing {
    const struct packlist *list;
    int folder;              /* that relative paths start from, or AT_FDCWD */
    const char *folder_name; /* its name for messages, or NULL */
    const char
        *list_name;    /* of the file that the list was read from, seen from there, or NULL */
    bool follow_links; /* a path may be a symbolic link */
    bool force;        /* an existing target is replaced */
    /* Called before each record is written, or NULL. */
    void (*announce)(uint32_t message, uint32_t record, uint64_t bytes,
                     const struct pack_item *);
};

/* Writes the container, all of it or nothing: an exit status, after a message if not 0. */
int pack_to_file(const struct packing *, const char *target);

/* ---- records named on the command line of append and pack: -t TYPE PATH, with -m ---- */

/* What the options have named so far: one list, as a process runs one command. */
extern struct packwords {
    struct packlist list;
    const char *operands[2]; /* words without a type before them; at most command->most */
    int operand_count;
    const char *type; /* of the next PATH; NULL: none given */
    bool new_message;
} packwords;

/* For the table of a command, whose operand() is packwords_operand. */
/* clang-format off */
#define PACKWORDS_RULES                                          \
    {"type", 't', OPTION_CALL_TEXT, .take = packwords_type},     \
    FLAG_RULE("new-message", 'm', &packwords.new_message)
/* clang-format on */
int packwords_type(const void *command, char *type);
int packwords_operand(const void *command, const char *word);

/* TOOL_UNUSABLE, after a message, if a -t or -m has no record after it. */
int packwords_check(const struct command *);

#endif
