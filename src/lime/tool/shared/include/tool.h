/* tool.h - exit statuses, messages, options and progress bars of all sub-commands of `lime` */
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
    TOOL_BAD = 1,        /* the file is faulty, or the command has failed */
    TOOL_UNUSABLE = 2,   /* wrong usage, or the file cannot be opened or is not a container */
    TOOL_UNVERIFIED = 3, /* no fault, but some requested data could not be verified */
};

/* Returns the worse of two exit statuses; from worst to best: 2, 1, 3, 0. */
int worse_status(int a, int b);

int verdict_status(enum limefile_verdict verdict);
enum limefile_verdict status_verdict(int status);

struct command;

/* clang-format off */
#define FLAG_RULE(name, letter, flag) {name, letter, OPTION_FLAG, .value = (flag)}
#define TEXT_RULE(name, letter, text) {name, letter, OPTION_TEXT, .value = (text)}
#define BYTES_RULE FLAG_RULE("bytes", 0, &limefile_sizes_are_exact)
#define JOBS_RULE(jobs) {"jobs", 'j', OPTION_UNSIGNED, (jobs), 1, .most = 65535}
/* clang-format on */

/* A sub-command. run() gets its operands and returns an exit status. */
struct command {
    const char *name;
    const char *summary;
    const char *help;
    int (*run)(int count, char **operands);
    const struct option_rule *rules; /* ends with OPTION_END; NULL: --help only */
    struct {
        const char *usage; /* message for a wrong number of operands; NULL: run() checks it */
        int least, most;
    } operands;
    /* Handles an operand while the command line is parsed: options before it are set, options
     * after it are not. Returns an exit status. NULL: run() gets all operands. */
    int (*handle_operand)(const void *command, const char *word);
};

#define ANY_OPERANDS     \
    {                    \
        NULL, 0, INT_MAX \
    }

int command_run(const struct command *, int argc, char **argv);

extern const struct command cmd_ls, cmd_info, cmd_cat, cmd_unpack, cmd_pack, cmd_append,
    cmd_replace, cmd_rm, cmd_set, cmd_check, cmd_checksum, cmd_verify, cmd_repair, cmd_stage,
    cmd_lfn, cmd_new, cmd_refs, cmd_qcdml, cmd_convert, cmd_join, cmd_diff;

/* Programs of C-LIME and Lemon: run() gets the whole argv; main() answers --help. */
extern const struct command compat_lime_contents, compat_lemon_contents,
    compat_lime_extract_record, compat_lime_extract_type, compat_lime_pack, compat_lime_unpack;

/* ---- messages: one line each, with control characters replaced (text.h) ---- */

/* Sets the name that messages begin with, initially "lime". */
void message_set_program(const char *name);

/* Returns the text, without program and file, of the first message after message_forget(), not
 * counting warnings; "" without messages. */
enum { MESSAGE_FIRST_MAX = 512 };
const char *message_first(void);
void message_forget(void);

/* Prints "program: file: text" on stderr. file may be NULL. */
__attribute__((format(printf, 2, 3))) void message(const char *file, const char *format, ...);

/* Prints "file: text" on stdout, with control characters replaced. file may be NULL. */
__attribute__((format(printf, 2, 3))) void print_line(const char *file, const char *format,
                                                      ...);

/* Prints "program: file: action: message of the code". */
void message_code(const char *file, const char *action, int code);

/* Prints "program: file: record 3: read: message of the code". */
void message_record(const char *file, uint64_t ordinal, int code);

/* Return TOOL_GOOD if err is 0. Otherwise report_error() calls message_code(),
 * report_output_error() calls message_output(), and they return TOOL_BAD. */
int report_error(const char *file, const char *action, int err);
int report_output_error(const char *file, const char *action, int err);

/* Prints as message_code() does, but without the action if the code is LIMEFILE_E_OUTPUT_*,
 * whose text needs no action. */
void message_output(const char *file, const char *action, int code);

/* Prints "program: command: text" and a reference to --help. Returns TOOL_UNUSABLE. */
__attribute__((format(printf, 2, 3))) int usage_error(const struct command *command,
                                                      const char *format, ...);

/* ---- options ---- */

/* Calls usage_error() for an invalid value of an option: "-j: invalid value '0' (a number ...)"
 * or, if `noun` is for example "format", "--to: unknown format 'x' (nersc, ...)". */
int value_error(const struct command *command, const char *option, const char *noun,
                const char *value, const char *expected);

int print_help(const struct command *command);

/* Flushes stdout; finish_stdout() reports a failure. */
void flush_stdout(void);

/* Flushes stdout. Returns TOOL_GOOD, or TOOL_BAD after a message. */
int finish_stdout(void);

/* ---- mounts (mounted_container.c) ---- */

bool is_in_limefs(const char *dir);

/* ---- directories ---- */

/* Calls `each` for the names in a directory except "." and "..", until `each` returns another
 * value than 0. Returns that value, 0 after the last name, or -errno. flags: added to those of
 * openat(). */
int directory_each(int dirfd, const char *path, int flags,
                   int (*each)(void *context, const char *name), void *context);

/* ---- numbers ---- */

/* Returns "" for 1, "s" for any other number. */
const char *plural(uint64_t n);

/* Parses digits, perhaps with one of k M G T (powers of 1024). Returns false for other text. */
bool number_parse_size(const char *text, size_t len, uint64_t *out);

/* ---- headings and named values for people ---- */

enum { NAME_WIDTH = 16 }; /* print_value() pads the name to so many characters */

/* Returns true if headings are bold: stdout is a terminal, and NO_COLOR is not set. The first
 * call decides; make it before children are started, whose stdout is not the terminal. */
bool headings_are_bold(void);
__attribute__((format(printf, 1, 2))) void print_heading(const char *format, ...);

__attribute__((format(printf, 2, 3))) void print_value(const char *name, const char *format,
                                                       ...);

/* ---- a progress bar on stderr, only on a terminal, after a second, one at a time ---- */

struct progress {
    const char *label;
    uint64_t done, total; /* bytes, or files */
    double start, drawn;  /* seconds of a monotonic clock; drawn 0: never */
    bool is_shown, counts_files;
};

void progress_begin(struct progress *, const char *label, uint64_t total);
/* Begins a bar that counts files, not bytes: "check    17 of 300 files". */
void progress_begin_files(struct progress *, const char *label, uint64_t total);
void progress_add(void *progress, uint64_t bytes); /* NULL is allowed */
/* progress_add() as a callback that could stop a library function; returns true: continue. */
bool progress_count(void *progress, uint64_t bytes);
void progress_to(struct progress *, uint64_t done); /* a smaller value is ignored */
void progress_end(struct progress *);

/* Clears a visible bar, before a message. The next progress_add() draws it again. */
void progress_hide(void);

/* Returns the time in seconds of a monotonic clock: only differences have a meaning. */
double seconds_now(void);

#endif
