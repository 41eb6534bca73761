/*
 * tool.h - what every sub-command of `lime` shares: exit statuses, messages, the table of
 * commands.
 */
#ifndef TOOL_H
#define TOOL_H

#include "limeverdict.h"

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

/* A sub-command. run() gets argv[0] = its name and returns an exit status. */
struct command {
    const char *name;
    const char *summary;
    const char *help;
    int (*run)(int argc, char **argv);
};

extern const struct command cmd_ls, cmd_info, cmd_cat, cmd_unpack, cmd_pack, cmd_append,
    cmd_replace, cmd_rm, cmd_set, cmd_check, cmd_checksum, cmd_verify, cmd_repair, cmd_stage,
    cmd_lfn, cmd_new, cmd_refs, cmd_qcdml, cmd_convert, cmd_join;

/* The old names: run() gets the whole argv; main() answers --help. */
extern const struct command compat_lime_contents, compat_lemon_contents,
    compat_lime_extract_record, compat_lime_extract_type, compat_lime_pack, compat_lime_unpack;

/* ---- messages (message.c): one line each, made harmless (text.h) ---- */

/* The name that messages begin with; "lime" unless called by another. */
void message_program(const char *name);

/* "program: file: text" on stderr. file may be NULL. */
__attribute__((format(printf, 2, 3))) void message(const char *file, const char *format, ...);

/* "file: text" on stdout, made harmless as well; file may be NULL. */
__attribute__((format(printf, 2, 3))) void answer(const char *file, const char *format, ...);

/* "program: file: action: what the code means". */
void message_code(const char *file, const char *action, int code);

/* The same for an output: what the code means without an action where that is clear
 * (LIMEFILE_E_OUTPUT_*). */
void message_output(const char *file, const char *action, int code);

/* "program: command: text" and where help is; returns TOOL_UNUSABLE. */
__attribute__((format(printf, 2, 3))) int usage_error(const struct command *command,
                                                      const char *format, ...);

/* ---- options (options.c) ---- */

struct option;

/* getopt_long(), which remembers the tables for option_error(). */
int read_option(int argc, char **argv, const char *shorts, const struct option *longs,
                int *index);

/* usage_error() for an option that read_option() answered with '?'. */
int option_error(const struct command *command, char **argv);

/* usage_error() for a value that an option does not take: "--to: unknown format 'x' (nersc,
 * ...)", or without a noun "-j: invalid value '0' (a number ...)". */
int value_error(const struct command *command, const char *option, const char *noun,
                const char *value, const char *expected);

/* -j N, of which optarg is the N: an exit status. */
int threads_option(const struct command *command, unsigned *threads);

/* The options of a command that has none but --help. True: there is nothing more to do, and
 * *status is the exit status. */
bool no_options(const struct command *command, int argc, char **argv, int *status);

/* Prints a command's help; returns TOOL_GOOD. */
int print_help(const struct command *command);

/* Pushes out what stdout holds by now; a failure is told by finish_stdout(). */
void flush_stdout(void);

/* Pushes out what stdout still holds: TOOL_GOOD, or TOOL_BAD after a message. */
int finish_stdout(void);

/* ---- mounts (mounted.c) ---- */

/* The folder is in a limefs mount. */
bool is_in_limefs(const char *folder);

/* ---- numbers (number.c) ------------------------------------------------------------ */

/* `len` decimal digits; false if there is anything else, or nothing, or it does not fit. */
bool number_parse(const char *text, size_t len, uint64_t *out);

/* Digits and perhaps one of k M G T (powers of 1024). */
bool number_parse_size(const char *text, size_t len, uint64_t *out);

#define NUMBER_HUMAN_MAX 16
/* "65", "1.2K", "19.3G" */
const char *number_human(uint64_t value, char out[NUMBER_HUMAN_MAX]);

#endif
