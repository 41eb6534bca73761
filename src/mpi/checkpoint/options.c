/* options.c - parse the command line */
#include "options.h"
#include "complete.h"
#include "suggest.h"

#include <stdarg.h>
#include <stdio.h>

int checkpoint_usage_error(const struct checkpoint_world *world,
                           const struct checkpoint_command *command, const char *format, ...)
{
    char reason[CHECKPOINT_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (world->rank == 0)
        checkpoint_log("%s: %s%s%s%s", command->name, reason,
                       limefile_suggest_or(reason, "; see " CHECKPOINT_PROGRAM " "),
                       limefile_suggest_or(reason, command->name),
                       limefile_suggest_or(reason, " --help"));
    return CHECKPOINT_USAGE;
}

static bool set_file_names(const struct checkpoint_world *world,
                           const struct checkpoint_command *command, int argc, char **argv,
                           int files, const char **file)
{
    if (argc - optind != files) {
        checkpoint_usage_error(world, command, "%d name%s given, %d expected: %s",
                               argc - optind, argc - optind == 1 ? "" : "s", files,
                               command->arguments);
        return false;
    }
    for (int i = 0; i < files; i++)
        file[i] = argv[optind + i];
    return true;
}

bool checkpoint_parse_options(const struct checkpoint_world *world,
                              const struct checkpoint_command *command, int argc, char **argv,
                              const struct option_rule *rules, int files, const char **file)
{
    char reason[OPTION_ERROR_BYTES] = "";
    struct limefile_completion c;
    if (limefile_complete_requested(argc, argv)) {
        limefile_complete(rules, command->help, argc - 2, argv + 2, stdout, &c);
        return false;
    }
    if (limefile_options_parse(rules, argc, argv, NULL, NULL, reason) == 0)
        return set_file_names(world, command, argc, argv, files, file);
    checkpoint_usage_error(world, command, "%s", reason);
    return false;
}
