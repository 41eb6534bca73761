/* complete_line.c - print what the last word of a command line of `lime` can become */
#include "complete_line.h"
#include "complete.h"
#include "container.h"
#include "text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_MAX = 1000 }; /* candidates of a container */

/* ---- records of the container on the line ---- */

static void offer_record(const struct limefile_completion *c, const struct container *container,
                         const struct limefile_record *record, bool as_type)
{
    struct limefile_record first;
    uint64_t count = 0;
    char type[TYPE_TEXT_MAX], name[LIMEFILE_NAME_MAX + 1], size[LIMEFILE_SIZE_CHARS], text[96];
    format_type(record->type, record->type_len, type);
    limefile_name_format(record, name);
    snprintf(text, sizeof text, "record %" PRIu64 ", %s bytes", record->ordinal,
             limefile_format_size(record->bytes, size));
    limefile_index_by_type(container->index, record->type, record->type_len, &first, &count);
    if (count == 1 || (as_type && first.ordinal == record->ordinal))
        limefile_complete_offer(c, type, text);
    if (!as_type && (count > 1 || isdigit((unsigned char)*c->word)))
        limefile_complete_offer(c, name, text);
}

/* as_type: offers types; otherwise a type only if it is the record's alone, and the name that
 * the record has in a mount if its type is not unique, or if the word begins with a digit. */
static void offer_records(const struct limefile_completion *c, bool as_type)
{
    struct container container;
    struct limefile_record record;
    if (!c->operand || container_open_or_mounted(&container, c->operand) != TOOL_GOOD)
        return;
    for (uint64_t i = 1; i <= RECORDS_MAX; i++) {
        if (limefile_index_get(container.index, i, &record) != 0)
            break;
        offer_record(c, &container, &record, as_type);
    }
    container_close(&container);
}

/* Returns true if the usage in the help text has RECORD after FILE, and for this operand: the
 * second one or, if the usage says "RECORD...", each later one. */
static bool takes_record(const struct command *command, int position)
{
    const char *end = strstr(command->help, "\n\n"), *at = strstr(command->help, "RECORD");
    if (position < 1 || !at || (end && at > end))
        return false;
    const char *line_end = strchr(at, '\n'), *dots = strstr(at, "...");
    return position == 1 || (dots && dots < line_end);
}

/* ---- commands and their options ---- */

static void offer_commands(const struct limefile_completion *c,
                           const struct command *const *commands, size_t count)
{
    for (size_t i = 0; i < count; i++)
        limefile_complete_offer(c, commands[i]->name, commands[i]->summary);
}

static void complete_first(const struct command *const *commands, size_t command_count,
                           int count, char **arguments)
{
    static const char help[] = "  -h, --help     list the commands\n"
                               "  -V, --version  print the version\n";
    static const struct option_rule rules[] = {{"version", 'V', .kind = OPTION_FLAG}, {NULL}};
    struct limefile_completion c;
    limefile_complete(rules, help, count, arguments, stdout, &c);
    if (c.is_done)
        return;
    offer_commands(&c, commands, command_count);
    if (count == 1)
        limefile_complete_offer(&c, "help", "describe a command");
}

void complete_line(const struct command *const *commands, size_t command_count, int count,
                   char **arguments)
{
    struct limefile_completion c;
    const struct command *command = NULL;
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(commands[i]->name, arguments[0]) == 0)
            command = commands[i];
    if (count == 1 || (count == 2 && strcmp(arguments[0], "help") == 0)) {
        complete_first(commands, command_count, count, arguments);
        return;
    }
    if (!command)
        return;
    limefile_complete(command->rules, command->help, count - 1, arguments + 1, stdout, &c);
    const char *option = c.rule && c.rule->name ? c.rule->name : "";
    if (!c.is_done && (strcmp(option, "record") == 0 || strcmp(option, "type") == 0))
        offer_records(&c, strcmp(option, "type") == 0);
    else if (!c.is_done && !c.rule && takes_record(command, c.operand_count))
        offer_records(&c, false);
}
