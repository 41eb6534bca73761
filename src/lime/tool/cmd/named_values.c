/* named_values.c - lists of named values, and pairs of equal names from two lists */
#define _GNU_SOURCE
#include "named_values.h"
#include "array.h"
#include "facts.h"
#include "limeerror.h"
#include "text.h"
#include "xmlread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int named_values_add(struct named_values *list, const char *name, size_t name_len,
                     const char *text, size_t text_len)
{
    struct named_value *values;
    if (!limefile_reserve(&list->values, &list->capacity, list->count + 1, sizeof *values))
        return -ENOMEM;
    limefile_text_trim(&name, &name_len);
    limefile_text_trim(&text, &text_len);
    values = list->values;
    struct named_value value = {strndup(name, name_len), strndup(text, text_len), list->count};
    if (!value.name || !value.text) {
        free(value.name);
        free(value.text);
        return -ENOMEM;
    }
    values[list->count++] = value;
    return 0;
}

struct values_run {
    struct named_values *list;
    int err;
};

static void add_item(void *context, const char *name, size_t name_len, const char *text,
                     size_t text_len)
{
    struct values_run *run = context;
    limefile_text_trim(&text, &text_len);
    if (!run->err && (name_len || text_len))
        run->err = named_values_add(run->list, name, name_len, text, text_len);
}

static void add_leaf_value(void *context, const char *name, size_t depth, const char *text)
{
    (void)depth; /* QIO's records may contain the header of a NERSC or MILC file */
    if (strchr(text, '\n') && strchr(text, '='))
        facts_split_text(text, strlen(text), add_item, context);
    else
        add_item(context, name, strlen(name), text, strlen(text));
}

int named_values_parse(struct named_values *list, const char *text)
{
    struct values_run run = {list, 0};
    if (xmlread_facts(text, strlen(text), add_leaf_value, &run) == 0 || run.err)
        return run.err;
    named_values_release(list);
    facts_split_text(text, strlen(text), add_item, &run);
    return run.err;
}

static int compare_values(const void *a, const void *b)
{
    const struct named_value *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->order < y->order ? -1 : 1;
}

int named_values_pair(struct named_values *a, struct named_values *b, named_values_fn *pair,
                      void *context)
{
    int result = 0;
    if (a->count)
        qsort(a->values, a->count, sizeof *a->values, compare_values);
    if (b->count)
        qsort(b->values, b->count, sizeof *b->values, compare_values);
    for (size_t i = 0, j = 0; result == 0 && (i < a->count || j < b->count);) {
        const struct named_value *x = i < a->count ? &a->values[i] : NULL;
        const struct named_value *y = j < b->count ? &b->values[j] : NULL;
        int order = !x ? 1 : !y ? -1 : strcmp(x->name, y->name);
        i += order <= 0;
        j += order >= 0;
        result = pair(context, order <= 0 ? x : NULL, order >= 0 ? y : NULL);
    }
    return result;
}

void named_values_release(struct named_values *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->values[i].name);
        free(list->values[i].text);
    }
    free(list->values);
    *list = (struct named_values){.count = 0};
}
