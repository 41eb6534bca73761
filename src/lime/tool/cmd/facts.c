/* facts.c - find the names and values in the text of a metadata record */
#define _GNU_SOURCE
#include "facts.h"
#include "limephysics.h"
#include "text.h"
#include "xmlread.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FACTS_BYTES_MAX = 64 * 1024 }; /* bytes of a record that are parsed */

static const struct {
    const char *type, *title;
    enum facts_form form;
} record_titles[] = {
    {"xlf-info", "ensemble", FACTS_TEXT},
    {"propagator-type", "propagator type", FACTS_TEXT},
    {"inverter-info", "inverter", FACTS_TEXT},
    {"eigenvector-info", "eigenvector", FACTS_TEXT},
    {"vector-type", "vector type", FACTS_TEXT},
    {"scidac-file-xml", "file", FACTS_XML},
    {"scidac-record-xml", "record", FACTS_XML},
    {"nersc-header", "NERSC header", FACTS_TEXT},
    {"milc-header", "MILC header", FACTS_TEXT},
    {"openqcd-header", "openQCD header", FACTS_TEXT},
};

const char *facts_title(const char *type, enum facts_form *form)
{
    *form = FACTS_NONE;
    for (size_t i = 0; i < sizeof record_titles / sizeof record_titles[0]; i++)
        if (strcmp(record_titles[i].type, type) == 0) {
            *form = record_titles[i].form;
            return record_titles[i].title;
        }
    return NULL;
}

/* Returns a copy in one line, without white space around it. */
static char *copy_trimmed(const char *text, size_t n)
{
    limefile_text_trim(&text, &n);
    char *out = strndup(text, n);
    for (char *c = out; c && *c; c++)
        if ((unsigned char)*c <= ' ')
            *c = ' ';
    return out;
}

static void add_fact(void *context, const char *name, size_t name_len, const char *value,
                     size_t value_len)
{
    struct facts *facts = context;
    if (facts->count == FACTS_MAX) {
        facts->is_truncated = true;
        return;
    }
    struct fact fact = {copy_trimmed(name, name_len), copy_trimmed(value, value_len)};
    if (!fact.name || !fact.value || (!*fact.name && !*fact.value)) {
        free(fact.name);
        free(fact.value);
        return;
    }
    facts->fact[facts->count++] = fact;
}

/* Returns the length of the line's first fact, which ends at a comma before the next
 * "name = value" or at the end of the line. */
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

static void split_line(const char *line, size_t n, facts_item_fn *add, void *context)
{
    while (n) {
        size_t length = fact_length(line, n);
        const char *sign = memchr(line, '=', length);
        size_t name_len = sign ? (size_t)(sign - line) : 0, skip = name_len + (sign != NULL);
        add(context, line, name_len, line + skip, length - skip);
        if (length < n)
            length++; /* skip the comma */
        line += length;
        n -= length;
    }
}

void facts_split_text(const char *text, size_t n, facts_item_fn *add, void *context)
{
    while (n) {
        const char *end = memchr(text, '\n', n);
        size_t length = end ? (size_t)(end - text) : n;
        split_line(text, length, add, context);
        text += length + (end != NULL);
        n -= length + (end != NULL);
    }
}

static void add_text_facts(struct facts *facts, const char *text, size_t n)
{
    facts_split_text(text, n, add_fact, facts);
}

static void add_leaf_fact(void *context, const char *name, size_t depth, const char *text)
{
    struct facts *facts = context;
    if (strcmp(name, "version") == 0 || *text == '\0')
        return;
    if (strchr(text, '\n') && strchr(text, '='))
        add_text_facts(facts, text, strlen(text)); /* headers of MILC and NERSC */
    else if (depth == 1 && strcasecmp(name, "title") != 0)
        add_fact(facts, "", 0, text, strlen(text));
    else
        add_fact(facts, name, strlen(name), text, strlen(text));
}

static int add_xml_facts(struct facts *facts, const char *text, size_t n)
{
    size_t before = facts->count;
    int err = xmlread_facts(text, n, add_leaf_fact, facts);
    if (err == LIMEFILE_E_XML && facts->count == before) {
        add_text_facts(facts, text, n);
        err = 0;
    }
    return err == LIMEFILE_E_XML ? 0 : err;
}

int facts_read(struct facts *facts, struct limefile_source *source,
               const struct limefile_record *record, enum facts_form form)
{
    size_t n = record->bytes < FACTS_BYTES_MAX ? (size_t)record->bytes : FACTS_BYTES_MAX;
    char *text;
    int err = limefile_record_read_text(source, record, n, &text);
    if (!err) {
        n = strlen(text); /* C programs often store the NUL, too */
        if (form == FACTS_XML)
            err = add_xml_facts(facts, text, n);
        else
            add_text_facts(facts, text, n);
        facts->is_truncated = facts->is_truncated || record->bytes > FACTS_BYTES_MAX;
    }
    free(text);
    return err;
}

int facts_read_field(struct facts *facts, struct limefile_source *source,
                     const struct limefile_index *index, const struct limefile_field *field)
{
    static const struct {
        const char *type;
        bool same_message; /* the record must be in the field's message */
    } records[] = {
        {"xlf-info", false},
        {"nersc-header", false},
        {"milc-header", false},
        {"openqcd-header", false},
        {"scidac-record-xml", true},
        {"ildg-qcdml", true},
        {"qcdml", true},
        {"scidac-private-record-xml", true},
    };
    struct limefile_record r;
    int err = 0;
    for (size_t i = 0; !err && i < sizeof records / sizeof records[0]; i++)
        if (limefile_physics_find_text(index, field, records[i].type, &r) &&
            (!records[i].same_message || r.message == field->record.message))
            err = facts_read(facts, source, &r, FACTS_XML);
    return err;
}

/* Names that programs give to the same value. */
static const struct {
    const char *name, *synonym;
} synonyms[] = {
    {"trajectory", "trajectory nr"},   /* tmLQCD */
    {"trajectory", "SEQUENCE_NUMBER"}, /* NERSC */
    {"trajectory", "update"},          /* QCDml */
    {"trajectory", "update_no"},       /* Chroma */
    {"beta", "gauge.beta"},
    {"beta", "gauge.beta11"}, /* MILC */
    {"mass", "quark.mass"},
    {"mass", "quark.mass1"},
    {"u0", "gauge.tadpole.u0"},
    {"csw", "clovCoeff"},
    {"ensemble", "ENSEMBLE_ID"},
    {"date", "CREATION_DATE"},
    {"program", "hmcversion"},
    {"program", "CREATOR"},
    {"linktrace", "linktr"},
    {"linktrace", "LINK_TRACE"},
    {"linktrace", "gauge.nersc_linktr"},
};

static const char *find_fact(const struct facts *facts, const char *name)
{
    for (size_t i = 0; i < facts->count; i++)
        if (strcasecmp(facts->fact[i].name, name) == 0 && *facts->fact[i].value)
            return facts->fact[i].value;
    return NULL;
}

const char *facts_find(const struct facts *facts, const char *name)
{
    const char *value = find_fact(facts, name);
    for (size_t i = 0; !value && i < sizeof synonyms / sizeof synonyms[0]; i++)
        if (strcmp(synonyms[i].name, name) == 0)
            value = find_fact(facts, synonyms[i].synonym);
    return value;
}

void facts_release(struct facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        free(facts->fact[i].name);
        free(facts->fact[i].value);
    }
    facts->count = 0;
    facts->is_truncated = false;
}
