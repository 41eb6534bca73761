/* files.h - run a command on many files: options, order, JSON, summary line, exit status
 *
 * A command gives FILES_RULES(options) in its table of options, FILES_HELP in its help, and a
 * function that examines one file. files_command() lists the files, calls the function in
 * parallel (parallel.h), and prints the results in the order of the list. With --json each file
 * is one line, {"file": ..., members, "status": ..., "error": ...}: docs/json.md. */
#ifndef FILES_H
#define FILES_H

#include "jsonout.h"
#include "pathlist.h"
#include "tool.h"

struct files_options {
    struct pathlist_options paths;
    unsigned jobs; /* 0: one per processor */
    bool json, quiet, list_skipped;
};

/* clang-format off */
#define FILES_RULES(options)                                              \
    PATHLIST_RULES((options).paths),                                      \
    JOBS_RULE(&(options).jobs),                                           \
    {"threads", 0, OPTION_UNSIGNED, &(options).jobs, 1, .most = 65535},   \
    FLAG_RULE("json", 0, &(options).json),                                \
    FLAG_RULE("quiet", 'q', &(options).quiet),                            \
    FLAG_RULE("list-skipped", 0, &(options).list_skipped)
/* clang-format on */

#define FILES_HELP                                                                     \
    "  -r, --recursive        also all files in a directory and below it; files of\n"  \
    "                         other kinds are skipped and counted\n"                   \
    "      --list-skipped     also name the files that are skipped\n"                  \
    "      --files-from LIST  also the files named in LIST, one per line; '-':\n"      \
    "                         standard input\n"                                        \
    "  -0, --null             in LIST, each name ends with a NUL\n"                    \
    "  -j, --jobs N           use N processors, for N files at once (default: all)\n"  \
    "  -q, --quiet            print only files that are not good\n"                    \
    "      --json             print a JSON object a line for each file, for scripts\n" \
    "  -h, --help             print this text\n"

enum { FILE_ERROR_MAX = 512 };

/* A file, and the results that the command sets. */
struct file_task {
    const char *path;
    size_t index;              /* of the file in the list */
    unsigned threads;          /* number of threads to use */
    struct progress *progress; /* of the file's bytes; NULL if there are several files */
    bool json;
    bool several;     /* there may be more files: text must name the file */
    bool is_optional; /* found in a directory: the file may be of another kind */

    const char *skipped;        /* why the file is skipped, or NULL; not owned */
    const char *up_to_date;     /* the same for a file that needs no work; it is printed, too */
    char error[FILE_ERROR_MAX]; /* "": the text of the first message that is not a warning */
    json_t *members;            /* members of the JSON object, or NULL; files_command() prints
                                 * and releases them */
    void *result;               /* result_bytes for the summary, initially 0 */
    bool has_begun;             /* file_json_begin() was called */
};

/* Returns true for a file that is neither a container nor a damaged container, nor, if
 * `with_formats`, in another format that limefs shows as a container. */
bool file_is_other(const char *path, bool with_formats);

/* Prints the beginning of the file's JSON object, for a command that then prints members with
 * long lists itself: `, "name": [` ... `]`. */
void file_json_begin(struct file_task *, json_t *members);

/* The results of all files, when all are examined. */
struct files_results {
    const struct pathlist *list;
    const char *result;       /* of file i: result + i * result_bytes */
    const uint64_t *verdicts; /* number of files, by enum limefile_verdict */
    bool is_interrupted;      /* some files were not examined */
};

enum { SUMMARY_MAX = 256 };

/* The common numbers of a summary line, and of the JSON summary. verdicts: number of files, by
 * enum limefile_verdict. The first returns text. */
const char *files_format_summary(uint64_t count, const uint64_t *verdicts,
                                 char text[SUMMARY_MAX]);
json_t *files_summary_json(uint64_t count, const uint64_t *verdicts);

struct files_command {
    const struct command *command;
    const char *separator; /* of the text of two files, or NULL */
    bool is_io_bound;      /* the work mostly waits for storage */
    bool is_open_ended;    /* there may be any number of files, also without -r */
    bool skips_others;     /* in directories, skip files that are not containers */
    bool reads_formats;    /* ... but not those in NERSC, MILC or openQCD format */
    bool in_process;     /* one file after another, in this process, which keeps the results */
    bool prints_table;   /* conclude() prints the only text on stdout: the summary line goes to
                            stderr */
    bool continues;      /* the same command continues after an interruption; conclude() is
                            then also called for that */
    size_t result_bytes; /* size of the result of one file */

    /* Runs before the first file. NULL: does nothing. Returns an exit status; if it is not
     * TOOL_GOOD, no file is examined. */
    int (*prepare)(const struct pathlist *);

    /* Examines the file and prints the results, as text or, if task->json, as JSON. Normally
     * runs in a child process. Returns an exit status, from which the status word follows. */
    int (*examine)(struct file_task *);

    /* Runs after the last file and before the summary line. Adds members to the JSON summary
     * or, if that is NULL, fills `text`, which ends the summary line. May print. NULL: adds
     * nothing. */
    void (*conclude)(const struct files_results *, json_t *summary, char text[SUMMARY_MAX]);
};

/* Returns the worst exit status of all files. */
int files_command(const struct files_command *, const struct files_options *, int count,
                  char **operands);

#endif
