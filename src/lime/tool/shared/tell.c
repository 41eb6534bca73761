/* tell.c - headings, and names with their values */
#define _GNU_SOURCE
#include "tell.h"
#include "limeildg.h"
#include "text.h"
#include "tool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS_MAX = 2 * LIMEFILE_LFN_MAX };

/* What is said, harmless. */
__attribute__((format(printf, 2, 0))) static void say(char text[WORDS_MAX], const char *format,
                                                      va_list args)
{
    vsnprintf(text, WORDS_MAX, format, args);
    limefile_text_defuse(text, "");
}

void tell_heading(const char *format, ...)
{
    char text[WORDS_MAX];
    va_list args;
    va_start(args, format);
    say(text, format, args);
    va_end(args);
    const char *off = getenv("NO_COLOR");
    bool bold = isatty(STDOUT_FILENO) && !(off && *off);
    printf("%s%s%s\n", bold ? "\033[1m" : "", text, bold ? "\033[m" : "");
}

void tell_value(const char *name, const char *format, ...)
{
    char text[WORDS_MAX];
    va_list args;
    va_start(args, format);
    say(text, format, args);
    va_end(args);
    printf("  %-*s  %s\n", TELL_WIDTH, name, text);
}

const char *tell_bytes(uint64_t bytes, char out[64])
{
    char human[NUMBER_HUMAN_MAX];
    if (bytes < 1024)
        snprintf(out, 64, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
    else
        snprintf(out, 64, "%s (%" PRIu64 " bytes)", number_human(bytes, human), bytes);
    return out;
}
