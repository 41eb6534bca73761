/* complete_line.h - print what the last word of a command line of `lime` can become */
#ifndef COMPLETE_LINE_H
#define COMPLETE_LINE_H

#include "tool.h"

/* arguments: those after "lime", of which the last is at the cursor; count > 0. */
void complete_line(const struct command *const *commands, size_t command_count, int count,
                   char **arguments);

#endif
