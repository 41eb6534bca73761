/* cmd_lfn.c - lime lfn: print and set the logical file names of containers */
#define _GNU_SOURCE
#include "limeildg.h"
#include "edit.h"
#include "container.h"
#include "files.h"

#include <inttypes.h>
#include <string.h>

static const char help[] =
    "Usage: lime lfn [OPTION]... FILE...\n"
    "       lime lfn [OPTION]... -r DIR...\n"
    "       lime lfn [OPTION]... --files-from LIST [-0]\n"
    "       lime lfn --set LFN FILE [RECORD]\n"
    "Print the logical file names in containers, or set one.\n"
    "\n"
    "      --set LFN          set the name, for example lfn://ensemble/0042\n" FILES_HELP "\n"
    "Without --set, lime lfn prints one name per line, after 'FILE: ' if there are\n"
    "several files. With --set, it replaces the data of the ildg-data-lfn record, or\n"
    "adds such a record to the message of the ildg-binary-data. RECORD is needed if\n"
    "there are several of either: it is the ildg-data-lfn to change, or the data to\n"
    "name ('lime ls' lists them).\n"
    "\n"
    "A name that is not longer than the old one is written in place, followed by\n"
    "NULs. A record at the end of FILE can have any length. Otherwise a new file is\n"
    "written and then replaces FILE, so there must be space for both.\n"
    "\n"
    "Examples:\n"
    "  lime lfn conf.*\n"
    "  lime lfn --set lfn://etmc/b55.32/conf.0042 conf.0042\n"
    "\n"
    "Exit status: 0 all have a name, or it is set and on the disk; 1 a file has\n"
    "none, or it could not be set; 2 wrong usage, or a file cannot be opened or is\n"
    "not a container.\n";

static const char lfn_type[] = "ildg-data-lfn";
static const char lfn_variant[] = "ildg-data-LFN"; /* the spelling of some programs */
static const char data_type[] = "ildg-binary-data";

static bool has_type(const struct limefile_record *record, const char *required)
{
    return record->type_len == strlen(required) && strcmp(record->type, required) == 0;
}

static bool is_lfn_record(const struct limefile_record *record)
{
    return has_type(record, lfn_type) || has_type(record, lfn_variant);
}

/* Returns the number of LFN records; *first: the first one, if there is any. */
static uint64_t count_lfns(const struct limefile_index *index, struct limefile_record *first)
{
    struct limefile_record other;
    uint64_t count, more;
    if (limefile_index_by_type(index, lfn_type, sizeof lfn_type - 1, first, &count) != 0)
        count = 0;
    if (limefile_index_by_type(index, lfn_variant, sizeof lfn_variant - 1, &other, &more) != 0)
        return count;
    if (!count || other.ordinal < first->ordinal)
        *first = other;
    return count + more;
}

/* Prints the LFN in a record, or with --json adds it to the file's list. */
static int print_lfn(struct file_task *task, struct container *c,
                     const struct limefile_record *record)
{
    char lfn[LIMEFILE_LFN_MAX];
    int result = limefile_record_lfn(c->source, record, lfn);
    if (result == 1 && task->json)
        json_array_append_new(json_object_get(task->members, "lfns"), jsonout_string(lfn));
    else if (result == 1)
        print_line(task->several ? c->path : NULL, "%s", lfn);
    else if (result == 0)
        message(c->path, "record %" PRIu64 ": %s", record->ordinal,
                "no logical file name: empty, too long, or with control characters");
    else
        message_code(c->path, "read", result);
    return result == 1 ? TOOL_GOOD : result == 0 ? TOOL_BAD : TOOL_UNUSABLE;
}

static int print_lfns(struct file_task *task, struct container *c)
{
    struct limefile_record r;
    uint64_t count = count_lfns(c->index, &r), seen = 0;
    int status = TOOL_GOOD;
    if (!count) {
        message(c->path, "no logical file name (no record %s)", lfn_type);
        return TOOL_BAD;
    }
    for (uint64_t i = r.ordinal; seen < count && limefile_index_get(c->index, i, &r) == 0;
         i++) {
        if (!is_lfn_record(&r))
            continue;
        seen++;
        int one = print_lfn(task, c, &r);
        status = worse_status(one, status);
    }
    return status;
}

static int print_file_lfns(struct file_task *task)
{
    struct container c;
    int status = container_open_or_mounted(&c, task->path);
    if (status != TOOL_GOOD)
        return status;
    task->members = json_pack("{s:[]}", "lfns");
    status = print_lfns(task, &c);
    int fault = container_report_fault(&c);
    container_close(&c);
    return worse_status(status, fault);
}

/* count: the number of records of that type. Returns true if it is 1; else prints a message. */
static bool is_unique(const struct edit *edit, const char *required, uint64_t count)
{
    if (count > 1)
        message(edit->c.path,
                "lfn: %" PRIu64 " records are of type %s; choose one ('lime ls' lists them)",
                count, required);
    else if (!count)
        message(edit->c.path,
                "lfn: no record %s; choose the data to name ('lime ls' lists them)", required);
    return count == 1;
}

/* Returns the ordinal of the LFN record that limefile_fields assigns to the data, or 0. */
static uint64_t find_lfn_ordinal(struct edit *edit, const struct limefile_record *data)
{
    struct limefile_fields fields;
    struct limefile_field f;
    if (limefile_fields_build(edit->c.source, edit->c.index, &fields) != 0)
        return 0;
    uint64_t ordinal = limefile_fields_find(&fields, data->ordinal, &f) ? f.lfn_ordinal : 0;
    limefile_fields_release(&fields);
    return ordinal;
}

/* Searches the message of `data` for the nearest LFN record, either after `data` (step 1) or
 * before (step -1). Stops at a record with lattice data. */
static bool find_adjacent_lfn(const struct edit *edit, const struct limefile_record *data,
                              int step, struct limefile_record *out)
{
    for (uint64_t i = data->ordinal + (uint64_t)step;
         limefile_index_get(edit->c.index, i, out) == 0; i += (uint64_t)step) {
        if (out->message != data->message || limefile_record_is_data(out))
            return false;
        if (is_lfn_record(out))
            return true;
    }
    return false;
}

/* Finds the data's LFN record. limefile_fields assigns only nonempty ones, to ildg-binary-data.
 * If it assigns none, finds the next LFN record after or else before the data. */
static bool find_lfn_of_data(struct edit *edit, const struct limefile_record *data,
                             struct limefile_record *out)
{
    uint64_t ordinal = find_lfn_ordinal(edit, data);
    if (ordinal)
        return limefile_index_get(edit->c.index, ordinal, out) == 0;
    return find_adjacent_lfn(edit, data, 1, out) || find_adjacent_lfn(edit, data, -1, out);
}

/* Finds the record after which to insert a new LFN: the last record of the data's message. If
 * other data follow in the message, finds the data's own record instead, because readers would
 * assign an LFN at the end of the message to the other data. */
static void find_insert_position(const struct edit *edit, const struct limefile_record *data,
                                 struct limefile_record *after)
{
    struct limefile_record r;
    *after = *data;
    for (uint64_t i = data->ordinal + 1; limefile_index_get(edit->c.index, i, &r) == 0; i++) {
        if (r.message != data->message)
            break;
        if (limefile_record_is_data(&r)) {
            *after = *data;
            break;
        }
        *after = r;
    }
}

static int insert_lfn(struct edit *edit, const struct limefile_record *data, const char *lfn)
{
    struct limefile_record after;
    size_t n = strlen(lfn);
    find_insert_position(edit, data, &after);
    return edit_insert(edit, &after,
                       &(struct limefile_new_record){lfn_type, sizeof lfn_type - 1, lfn, n});
}

/* Replaces the LFN in a record. If the old data end with a NUL, so do the new ones. */
static int replace_lfn(struct edit *edit, const struct limefile_record *record, const char *lfn)
{
    size_t n = strlen(lfn);
    char last = 'x';
    if (record->bytes && limefile_read_full(edit->c.source, &last, 1,
                                            record->data_offset + record->bytes - 1) != 1)
        last = 'x';
    return edit_replace_small(edit, record, lfn, last == '\0' ? n + 1 : n, '\0');
}

/* word: selects the LFN record to change, or the data to name. NULL: the only LFN record or,
 * without LFN records, the only ildg-binary-data. */
static int set_lfn(struct edit *edit, const char *word, const char *lfn)
{
    struct limefile_record record, old;
    uint64_t count;
    if (word) {
        if (!select_record(&edit->c, word, false, &record))
            return TOOL_BAD;
        if (is_lfn_record(&record))
            return replace_lfn(edit, &record, lfn);
        if (!limefile_record_is_data(&record)) {
            message(edit->c.path,
                    "lfn: record %" PRIu64
                    " is not lattice data (ildg-binary-data, scidac-binary-data)",
                    record.ordinal);
            return TOOL_BAD;
        }
        return find_lfn_of_data(edit, &record, &old) ? replace_lfn(edit, &old, lfn)
                                                     : insert_lfn(edit, &record, lfn);
    }
    if ((count = count_lfns(edit->c.index, &old)) > 0)
        return is_unique(edit, lfn_type, count) ? replace_lfn(edit, &old, lfn) : TOOL_BAD;
    if (limefile_index_by_type(edit->c.index, data_type, sizeof data_type - 1, &record,
                               &count) != 0)
        count = 0;
    return is_unique(edit, data_type, count) ? insert_lfn(edit, &record, lfn) : TOOL_BAD;
}

static int set_lfn_in_file(const char *path, const char *word, const char *lfn)
{
    struct edit edit;
    int status = edit_open(&edit, path);
    if (status != TOOL_GOOD)
        return status;
    status = set_lfn(&edit, word, lfn);
    edit_close(&edit);
    return status;
}

static int check_lfn(const char *lfn)
{
    char parsed[LIMEFILE_LFN_MAX];
    if (limefile_lfn_parse(lfn, strlen(lfn), parsed) != 0 || strcmp(parsed, lfn) != 0)
        return usage_error(
            &cmd_lfn,
            "--set %s: a name has 1 to %d characters, no control characters, and "
            "no blanks around it",
            lfn, LIMEFILE_LFN_MAX - 1);
    if (strncmp(lfn, "lfn:", 4) != 0)
        message(NULL, "lfn: warning: '%s' does not begin with lfn://, as names in ILDG do",
                lfn);
    return TOOL_GOOD;
}

static const char *new_lfn;
static struct files_options files;

static int run_lfn_set(const char *lfn, int count, char **words)
{
    if ((count != 1 && count != 2) || files.paths.recursive || files.paths.list)
        return usage_error(&cmd_lfn, "--set: one FILE expected, and optionally RECORD");
    if (files.json)
        return usage_error(&cmd_lfn, "--json: not possible with --set, which prints nothing");
    int status = check_lfn(lfn);
    return status ? status : set_lfn_in_file(words[0], count == 2 ? words[1] : NULL, lfn);
}

static const struct option_rule rules[] = {
    TEXT_RULE("set", 0, &new_lfn),
    FILES_RULES(files),
    {NULL},
};

static int run_lfn(int count, char **paths)
{
    const struct files_command command = {
        .command = &cmd_lfn,
        .is_io_bound = true,
        .skips_others = true,
        .examine = print_file_lfns,
    };
    return new_lfn ? run_lfn_set(new_lfn, count, paths)
                   : files_command(&command, &files, count, paths);
}

const struct command cmd_lfn = {
    "lfn", "print or set the logical file name", help, run_lfn, rules, ANY_OPERANDS, NULL};
