/* compat_extract.c - lime_extract_record and lime_extract_type: one record on stdout */
#include "compat.h"
#include "copy.h"
#include "text.h"
#include "tool.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int compat_status(int status)
{
    return status == TOOL_GOOD ? TOOL_GOOD : TOOL_BAD;
}

int compat_usage(const char *program, const char *arguments)
{
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s", program);
    limefile_text_defuse(name, "");
    fprintf(stderr, "Usage: %s %s\n", name, arguments);
    return TOOL_BAD;
}

static int put(const struct container *c, const struct limefile_record *record)
{
    struct copy copy = copy_to_stdout(c->fd, record);
    int err = copy_run(&copy);
    if (err)
        copy_message(&copy, c->path, "standard output", err);
    return err ? TOOL_BAD : TOOL_GOOD;
}

/* A number as atoi() takes it, but nothing that is none. */
static bool parse_number(const char *text, const char *what, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end || strchr(text, '-') || value == 0 || value > UINT32_MAX) {
        message(NULL, "Invalid %s number = %s", what, text);
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

static int run_record(int argc, char **argv)
{
    struct container c;
    struct limefile_record record;
    uint32_t number, inside;
    if (argc < 4)
        return compat_usage(argv[0], "<lime_file> <msgno> <recno>");
    if (!parse_number(argv[2], "message", &number) || !parse_number(argv[3], "record", &inside))
        return TOOL_BAD;
    int status = container_open(&c, argv[1]);
    if (status != TOOL_GOOD)
        return compat_status(status);
    if (limefile_index_by_number(c.index, number, inside, &record) == 0) {
        status = put(&c, &record);
    } else {
        message(argv[1], "message %s record %s: no such record", argv[2], argv[3]);
        container_fault_message(&c);
        status = TOOL_BAD;
    }
    container_close(&c);
    return status;
}

static int run_type(int argc, char **argv)
{
    struct container c;
    struct limefile_record record;
    uint64_t count;
    char shown[TYPE_SHOWN_MAX];
    if (argc < 3)
        return compat_usage(argv[0], "<lime_file> <lime_type>");
    int status = container_open(&c, argv[1]);
    if (status != TOOL_GOOD)
        return compat_status(status);
    if (limefile_index_by_type(c.index, argv[2], strlen(argv[2]), &record, &count) == 0) {
        status = put(&c, &record);
    } else {
        message(argv[1], "type '%s': no such record",
                type_shown(argv[2], strlen(argv[2]), shown));
        container_fault_message(&c);
        status = TOOL_BAD;
    }
    container_close(&c);
    return status;
}

const struct command compat_lime_extract_record = {
    "lime_extract_record", NULL,
    "Usage: lime_extract_record <lime_file> <msgno> <recno>\n"
    "Write a record's data to standard output. See lime_extract_record(1).\n",
    run_record};
const struct command compat_lime_extract_type = {
    "lime_extract_type", NULL,
    "Usage: lime_extract_type <lime_file> <lime_type>\n"
    "Write the data of the first record of a type to standard output. See\n"
    "lime_extract_type(1).\n",
    run_type};
