/* differences.c - what lime check --qcdml has found, for people and for scripts */
#define _GNU_SOURCE
#include "differences.h"
#include "jsonout.h"
#include "tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_MAX = 1000 };

struct qcdml_difference {
    bool warning;
    size_t line;
    uint64_t ordinal;
    const char *what, *why;
    char *document, *container;
};

static void say(const struct qcdml_check *check, const struct qcdml_difference *d)
{
    char place[64] = "", values[64 + 2 * 1100] = "";
    size_t n = 0;
    if (d->line)
        n = (size_t)snprintf(place, sizeof place, "line %zu: ", d->line);
    if (d->ordinal)
        snprintf(place + n, sizeof place - n, "record %" PRIu64 ": ", d->ordinal);
    if (*d->document && *d->container)
        snprintf(values, sizeof values, " %s, not %s", d->document, d->container);
    else if (*d->document)
        snprintf(values, sizeof values, " %s", d->document);
    message(check->document, "%s%s%s%s: %s", place, d->warning ? "warning: " : "", d->what,
            values, d->why);
}

static void keep(struct qcdml_check *check, const struct qcdml_difference *d)
{
    if (check->kept_count == KEPT_MAX)
        return;
    if (!check->kept)
        check->kept = calloc(KEPT_MAX, sizeof *check->kept);
    if (!check->kept)
        return;
    struct qcdml_difference *kept = &check->kept[check->kept_count];
    *kept = *d;
    kept->document = strdup(d->document);
    kept->container = strdup(d->container);
    if (kept->document && kept->container) {
        check->kept_count++;
        return;
    }
    free(kept->document);
    free(kept->container);
}

void difference_add(struct qcdml_check *check, bool warning, size_t line, uint64_t ordinal,
                    const char *what, const char *document, const char *container,
                    const char *why)
{
    const struct qcdml_difference d = {
        .warning = warning,
        .line = line,
        .ordinal = ordinal,
        .what = what,
        .why = why,
        .document = (char *)document,
        .container = (char *)container,
    };
    if (warning)
        check->warnings++;
    else
        check->differences++;
    if (!check->silent)
        say(check, &d);
    keep(check, &d);
}

void differences_summary(const struct qcdml_check *check)
{
    char warnings[48] = "";
    if (check->warnings)
        snprintf(warnings, sizeof warnings, "%s%zu warning%s", check->differences ? ", " : "; ",
                 check->warnings, check->warnings == 1 ? "" : "s");
    if (check->differences)
        answer(check->document, "%zu difference%s from %s%s", check->differences,
               check->differences == 1 ? "" : "s", check->path, warnings);
    else
        answer(check->document, "agrees with %s: %zu record%s%s", check->path, check->records,
               check->records == 1 ? "" : "s", warnings);
}

/* ---- JSON ---- */

void qcdml_check_json(const struct qcdml_check *check)
{
    fputs("{\"file\": ", stdout);
    jsonout_text(stdout, check->document, strlen(check->document));
    printf(", \"records\": %zu, \"differences\": %zu, \"warnings\": %zu, \"found\": [",
           check->records, check->differences, check->warnings);
    for (size_t i = 0; i < check->kept_count; i++) {
        const struct qcdml_difference *d = &check->kept[i];
        printf("%s{\"warning\": %s, \"what\": \"%s\"", i ? ", " : "",
               d->warning ? "true" : "false", d->what);
        jsonout_word("document", d->document);
        jsonout_word("container", d->container);
        jsonout_word("why", d->why);
        jsonout_number("line", d->line);
        jsonout_number("ordinal", d->ordinal);
        putchar('}');
    }
    printf("], \"verdict\": \"%s\"}", !check->compared     ? "unreadable"
                                      : check->differences ? "bad"
                                                           : "good");
}

void qcdml_check_release(struct qcdml_check *check)
{
    for (size_t i = 0; i < check->kept_count; i++) {
        free(check->kept[i].document);
        free(check->kept[i].container);
    }
    free(check->kept);
    check->kept = NULL;
    check->kept_count = 0;
}
