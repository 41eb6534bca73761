/* named_values.c - lists of named values, and pairs of equal names from two lists */
#define _GNU_SOURCE
#include "named_values.h"
#include "array.h"
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

static int add_item(struct named_values *list, const char *item, size_t n)
{
    limefile_text_trim(&item, &n);
    const char *sign = memchr(item, '=', n);
    size_t name_len = sign ? (size_t)(sign - item) : 0, skip = name_len + (sign != NULL);
    return n ? named_values_add(list, item, name_len, item + skip, n - skip) : 0;
}

static int add_lines(struct named_values *list, const char *text)
{
    int err = 0;
    while (!err && *text) {
        size_t n = strcspn(text, ",\n");
        while (text[n] == ',' && text[n + 1] != ' ')
            n += 1 + strcspn(text + n + 1, ",\n");
        err = add_item(list, text, n);
        text += n + (text[n] != '\0');
    }
    return err;
}

struct xml_values {
    struct named_values *list;
    int err;
};

static void add_leaf_value(void *context, const char *name, size_t depth, const char *text)
{
    struct xml_values *xml = context;
    (void)depth;
    if (!xml->err) /* QIO's records may contain the header of a NERSC or MILC file */
        xml->err = strchr(text, '\n') && strchr(text, '=')
                       ? add_lines(xml->list, text)
                       : named_values_add(xml->list, name, strlen(name), text, strlen(text));
}

int named_values_parse(struct named_values *list, const char *text)
{
    struct xml_values xml = {list, 0};
    if (xmlread_facts(text, strlen(text), add_leaf_value, &xml) == 0 || xml.err)
        return xml.err;
    named_values_release(list);
    return add_lines(list, text);
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
