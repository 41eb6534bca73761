/*
 * tool.h - what every sub-command of `lime` shares: exit statuses, messages, the table of
 * commands.
 */
#ifndef TOOL_H
#define TOOL_H

#include "array.h"
#include "limeverdict.h"
#include "option.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses, the same for all sub-commands: docs/verdicts.md. */
enum {
    TOOL_GOOD = 0,
    TOOL_BAD = 1,        /* something is wrong with the file, or the work could not be done */
    TOOL_UNUSABLE = 2,   /* wrong usage; a file that cannot be opened or is not a container */
    TOOL_UNVERIFIED = 3, /* nothing is wrong, but data that were to be examined could not be */
};

/* Returns the worse of two exit statuses, in the order 2, 1, 3, 0. */
int worse_status(int a, int b);

/* Returns the exit status of a verdict. */
int verdict_status(enum limefile_verdict verdict);

struct command;

/* clang-format off */
#define FLAG_RULE(name, letter, flag) {name, letter, OPTION_FLAG, .value = (flag)}
#define TEXT_RULE(name, letter, text) {name, letter, OPTION_TEXT, .value = (text)}
#define THREADS_RULE(threads) {"threads", 'j', OPTION_UNSIGNED, (threads), 1, .most = 65535}
/* clang-format on */

/* A sub-command. run() gets its operands and returns an exit status. */
struct command {
    const char *name;
    const char *summary;
    const char *help;
    int (*run)(int count, char **operands);
    const struct option_rule *rules; /* up to OPTION_END; NULL: --help alone */
    struct {
        const char *usage; /* the message if there are not as many; NULL: run() counts them */
        int least, most;
    } operands;
    /* Takes each operand in its place among the options; or NULL: run() gets them. */
    int (*operand)(const void *command, const char *word);
};

#define ANY_OPERANDS     \
    {                    \
        NULL, 0, INT_MAX \
    }

/* Reads the options and runs the command. */
int command_run(const struct command *, int argc, char **argv);

extern const struct command cmd_ls, cmd_info, cmd_cat, cmd_unpack, cmd_pack, cmd_append,
    cmd_replace, cmd_rm, cmd_set, cmd_check, cmd_checksum, cmd_verify, cmd_repair, cmd_stage,
    cmd_lfn, cmd_new, cmd_refs, cmd_qcdml, cmd_convert, cmd_join;

/* The old names: run() gets the whole argv; main() answers --help. */
extern const struct command compat_lime_contents, compat_lemon_contents,
    compat_lime_extract_record, compat_lime_extract_type, compat_lime_pack, compat_lime_unpack;

/* ---- messages: one line each, made harmless (text.h) ---- */

/* The name that messages begin with; "lime" unless called by another. */
void message_program(const char *name);

/* "program: file: text" on stderr. file may be NULL. */
__attribute__((format(printf, 2, 3))) void message(const char *file, const char *format, ...);

/* "file: text" on stdout, made harmless as well; file may be NULL. */
__attribute__((format(printf, 2, 3))) void answer(const char *file, const char *format, ...);

/* "program: file: action: what the code means". */
void message_code(const char *file, const char *action, int code);

/* "program: file: record 3: read: what the code means". */
void message_record(const char *file, uint64_t ordinal, int code);

/* The same as message_code() unless the code is 0. Returns TOOL_GOOD for 0, else TOOL_BAD. */
int failed_status(const char *file, const char *action, int err);
int failed_output(const char *file, const char *action, int err);

/* The same for an output: what the code means without an action where that is clear
 * (LIMEFILE_E_OUTPUT_*). */
void message_output(const char *file, const char *action, int code);

/* "program: command: text" and where help is; returns TOOL_UNUSABLE. */
__attribute__((format(printf, 2, 3))) int usage_error(const struct command *command,
                                                      const char *format, ...);

/* ---- options ---- */

/* usage_error() for a value that an option does not take: "--to: unknown format 'x' (nersc,
 * ...)", or without a noun "-j: invalid value '0' (a number ...)". */
int value_error(const struct command *command, const char *option, const char *noun,
                const char *value, const char *expected);

/* Prints a command's help; returns TOOL_GOOD. */
int print_help(const struct command *command);

/* Pushes out what stdout holds by now; a failure is told by finish_stdout(). */
void flush_stdout(void);

/* Pushes out what stdout still holds: TOOL_GOOD, or TOOL_BAD after a message. */
int finish_stdout(void);

/* ---- mounts (mounted.c) ---- */

/* The folder is in a limefs mount. */
bool is_in_limefs(const char *folder);

/* ---- directories ---- */

/* Calls `each` for the names in a directory, but for "." and "..", until it returns another
 * value than 0, which is returned, or all are read: 0, or -errno. flags: further ones for
 * openat(). */
int directory_each(int folder, const char *path, int flags,
                   int (*each)(void *context, const char *name), void *context);

/* ---- numbers ---- */

/* "" for 1, "s" for any other number. */
const char *plural(uint64_t n);

/* Digits and perhaps one of k M G T (powers of 1024). */
bool number_parse_size(const char *text, size_t len, uint64_t *out);

#define NUMBER_HUMAN_MAX 16
/* "65", "1.2K", "19.3G" */
const char *number_human(uint64_t value, char out[NUMBER_HUMAN_MAX]);

/* ---- headings, and names with their values, for people ---- */

enum { TELL_WIDTH = 16 }; /* of a name */

/* On a terminal headings stand out. A command that prints in child processes asks before. */
bool tell_is_bold(void);
__attribute__((format(printf, 1, 2))) void tell_heading(const char *format, ...);

/* A name and what is to be said of it. */
__attribute__((format(printf, 2, 3))) void tell_value(const char *name, const char *format,
                                                      ...);

/* "65 bytes", "1.2K (1230 bytes)" */
const char *tell_bytes(uint64_t bytes, char out[64]);

/* ---- a progress bar on stderr: only on a terminal, only after a second, one at a time ---- */

struct progress {
    const char *what;
    uint64_t done, total; /* bytes, or files */
    double began, shown;  /* seconds on a monotonic clock; shown 0: never */
    bool wanted, counts_files;
};

void progress_begin(struct progress *, const char *what, uint64_t total);
/* The same for a bar that counts files: "check    17 of 300 files". */
void progress_begin_files(struct progress *, const char *what, uint64_t total);
void progress_add(void *progress, uint64_t bytes); /* NULL: nothing happens */
/* progress_add() for functions of the library that ask whether to go on: true. */
bool progress_count(void *progress, uint64_t bytes);
void progress_to(struct progress *, uint64_t done);
void progress_end(struct progress *);

/* Wipes the bar, if one is to be seen, for a message; it comes back by itself. */
void progress_hide(void);

/* Seconds of a monotonic clock. */
double seconds_now(void);

#endif
