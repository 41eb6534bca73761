/* facts.c - names and values out of text records: xlf-info, inverter-info, user XML of QIO */
#define _GNU_SOURCE
#include "facts.h"
#include "limeildg.h"
#include "xmlread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *type, *title;
    enum facts_form form;
} known[] = {
    {"xlf-info", "ensemble", FACTS_TEXT},
    {"propagator-type", "propagator type", FACTS_TEXT},
    {"inverter-info", "inverter", FACTS_TEXT},
    {"eigenvector-info", "eigenvector", FACTS_TEXT},
    {"vector-type", "vector type", FACTS_TEXT},
    {"scidac-file-xml", "file", FACTS_XML},
    {"scidac-record-xml", "record", FACTS_XML},
};

const char *facts_title(const char *type, enum facts_form *form)
{
    *form = FACTS_NONE;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].type, type) == 0) {
            *form = known[i].form;
            return known[i].title;
        }
    return NULL;
}

static bool is_space(char c)
{
    return (unsigned char)c <= ' ';
}

/* A copy without white space around it. */
static char *copy(const char *text, size_t n)
{
    while (n && is_space(*text))
        text++, n--;
    while (n && is_space(text[n - 1]))
        n--;
    char *out = strndup(text, n);
    for (char *c = out; c && *c; c++)
        if (is_space(*c))
            *c = ' ';
    return out;
}

static void add(struct facts *facts, const char *name, size_t name_len, const char *value,
                size_t value_len)
{
    if (facts->count == FACTS_MAX) {
        facts->cut = true;
        return;
    }
    struct fact fact = {copy(name, name_len), copy(value, value_len)};
    if (!fact.name || !fact.value || (!*fact.name && !*fact.value)) {
        free(fact.name);
        free(fact.value);
        return;
    }
    facts->fact[facts->count++] = fact;
}

/* ---- text ---- */

/* Where this fact ends: at a comma behind which another "name = value" begins. */
static size_t fact_length(const char *line, size_t n)
{
    const char *comma = memchr(line, ',', n);
    while (comma) {
        size_t at = (size_t)(comma - line) + 1;
        const char *next = memchr(line + at, ',', n - at);
        if (memchr(line + at, '=', next ? (size_t)(next - line) - at : n - at))
            return at - 1;
        comma = next;
    }
    return n;
}

static void add_line(struct facts *facts, const char *line, size_t n)
{
    while (n) {
        size_t length = fact_length(line, n);
        const char *sign = memchr(line, '=', length);
        if (sign)
            add(facts, line, (size_t)(sign - line), sign + 1,
                length - (size_t)(sign + 1 - line));
        else
            add(facts, "", 0, line, length);
        if (length < n)
            length++; /* the comma */
        line += length;
        n -= length;
    }
}

static void add_text(struct facts *facts, const char *text, size_t n)
{
    while (n && !facts->cut) {
        const char *end = memchr(text, '\n', n);
        size_t length = end ? (size_t)(end - text) : n;
        add_line(facts, text, length);
        text += length + (end != NULL);
        n -= length + (end != NULL);
    }
}

/* ---- XML ---- */

static void add_leaf(void *context, const char *name, size_t depth, const char *text)
{
    struct facts *facts = context;
    if (strcmp(name, "version") == 0 || *text == '\0')
        return;
    if (strchr(text, '\n') && strchr(text, '='))
        add_text(facts, text, strlen(text)); /* MILC and NERSC headers */
    else if (depth == 1 && strcasecmp(name, "title") != 0)
        add(facts, "", 0, text, strlen(text));
    else
        add(facts, name, strlen(name), text, strlen(text));
}

static int add_xml(struct facts *facts, const char *text, size_t n)
{
    char root[XMLREAD_TEXT_MAX];
    int err = xmlread_facts(text, n, root, add_leaf, facts);
    if (err == LIMEFILE_E_XML && facts->count == 0) {
        add_text(facts, text, n);
        err = 0;
    }
    return err == LIMEFILE_E_XML ? 0 : err;
}

/* ---- records ---- */

int facts_read(struct facts *facts, struct limefile_source *source,
               const struct limefile_record *record, enum facts_form form)
{
    size_t n = record->bytes < FACTS_BYTES_MAX ? (size_t)record->bytes : FACTS_BYTES_MAX;
    facts->count = 0;
    facts->cut = false;
    char *text = malloc(n + 1);
    if (!text)
        return -ENOMEM;
    ssize_t got = limefile_read_full(source, text, n, record->data_offset);
    int err = got < 0 ? (int)got : (size_t)got < n ? LIMEFILE_E_SHRUNK : 0;
    if (!err) {
        text[n] = '\0';
        n = strlen(text); /* C's programs count the NUL */
        if (form == FACTS_XML)
            err = add_xml(facts, text, n);
        else
            add_text(facts, text, n);
        facts->cut = facts->cut || record->bytes > FACTS_BYTES_MAX;
    }
    free(text);
    return err;
}

void facts_release(struct facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        free(facts->fact[i].name);
        free(facts->fact[i].value);
    }
    facts->count = 0;
}
