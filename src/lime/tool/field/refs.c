/* refs.c - the field of each file, which must be like that of the first */
#define _GNU_SOURCE
#include "refs.h"
#include "container.h"
#include "jsonout.h"
#include "select.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LISTED_MAX = 20,
    SHAPE_MAX = 24 * LIMEFILE_ARRAY_DIMS_MAX + 16,
};

/* ---- which record ---- */

static void explain_choice(const char *path, const struct limefile_fields *fields,
                           uint64_t found)
{
    char list[LISTED_MAX * 22 + 8] = "";
    struct limefile_field field;
    struct limefile_array array;
    size_t used = 0, listed = 0;
    for (size_t i = 0; i < fields->count && listed < LISTED_MAX; i++) {
        limefile_fields_get(fields, i, &field);
        if (limefile_array_of(&field, &array) != 0)
            continue;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%" PRIu64,
                                 listed++ ? ", " : "", field.record.ordinal);
    }
    if (found == 0)
        message(path, "no record is a field whose sites are known");
    else
        message(path, "%" PRIu64 " records are fields; choose one with --record: %s%s", found,
                list, found > listed ? ", ..." : "");
}

static bool only_field(const char *path, const struct limefile_fields *fields,
                       struct limefile_field *out)
{
    struct limefile_field field;
    struct limefile_array array;
    uint64_t found = 0;
    for (size_t i = 0; i < fields->count; i++) {
        limefile_fields_get(fields, i, &field);
        if (limefile_array_of(&field, &array) == 0 && found++ == 0)
            *out = field;
    }
    if (found != 1)
        explain_choice(path, fields, found);
    return found == 1;
}

static bool chosen_field(const struct refs *refs, const struct container *c,
                         const struct limefile_fields *fields, struct limefile_field *out)
{
    struct limefile_record record;
    struct limefile_array array;
    if (!refs->wanted->record)
        return only_field(c->path, fields, out);
    if (!select_record(c, refs->wanted->record, refs->wanted->as_type, &record))
        return false;
    if (limefile_fields_of(fields, record.ordinal, out) && limefile_array_of(out, &array) == 0)
        return true;
    message(c->path, "record %" PRIu64 ": not a field whose sites are known", record.ordinal);
    return false;
}

/* ---- where it is ---- */

static char *url_of(const struct refs_wanted *wanted, const char *path)
{
    char *url = NULL;
    if (!wanted->prefix)
        return realpath(path, NULL);
    return asprintf(&url, "%s%s", wanted->prefix, path) < 0 ? NULL : url;
}

/* What jinja2 would take for something of its own. */
static bool has_braces(const char *url)
{
    for (const char *c = strchr(url, '{'); c; c = strchr(c + 1, '{'))
        if (c[1] && strchr("{%#", c[1]))
            return true;
    return false;
}

static bool put(struct refs *refs, const char *path, uint64_t data_offset)
{
    if (refs->count == refs->capacity) {
        size_t more = refs->capacity + refs->capacity / 2 + 16;
        void *bigger = reallocarray(refs->file, more, sizeof *refs->file);
        if (!bigger) {
            message_code(path, "list", -ENOMEM);
            return false;
        }
        refs->file = bigger;
        refs->capacity = more;
    }
    errno = ENOMEM;
    char *url = url_of(refs->wanted, path);
    if (!url) {
        message_code(path, "resolve", -errno);
        return false;
    }
    refs->file[refs->count++] = (struct refs_file){url, data_offset};
    refs->braces = refs->braces || has_braces(url);
    if (!jsonout_is_utf8(url, strlen(url))) {
        message(path, "its name is not UTF-8, which JSON cannot hold");
        return false;
    }
    return true;
}

/* ---- what it is ---- */

static const char *shape_of(const struct limefile_array *a, char out[SHAPE_MAX])
{
    int n = snprintf(out, SHAPE_MAX, "(");
    for (unsigned i = 0; i < a->dims; i++)
        n += snprintf(out + n, SHAPE_MAX - (size_t)n, "%s%" PRIu64, i ? ", " : "", a->shape[i]);
    snprintf(out + n, SHAPE_MAX - (size_t)n, ") of %s%s",
             a->precision == 64   ? "double"
             : a->precision == 32 ? "single"
                                  : "bytes",
             a->complex ? " complex" : "");
    return out;
}

static bool is_same(const struct limefile_array *a, const struct limefile_array *b)
{
    return a->dims == b->dims && a->lattice == b->lattice && a->precision == b->precision &&
           a->complex == b->complex &&
           memcmp(a->shape, b->shape, a->dims * sizeof *a->shape) == 0;
}

static bool take(struct refs *refs, const char *path, const struct limefile_field *field)
{
    const struct limefile_facename zarr = {.kind = LIMEFILE_FACE_ZARR};
    struct limefile_array array;
    char here[SHAPE_MAX], there[SHAPE_MAX];
    int err = limefile_array_of(field, &array);
    if (!err && refs->count == 0) {
        refs->array = array;
        refs->first = strdup(path);
        err = refs->first ? limefile_face_open(field, &zarr, &refs->face) : -ENOMEM;
    }
    if (err) {
        message_code(path, "read", err);
        return false;
    }
    if (!is_same(&array, &refs->array)) {
        message(path, "its array is %s, that of %s is %s", shape_of(&array, here), refs->first,
                shape_of(&refs->array, there));
        return false;
    }
    return put(refs, path, field->record.data_offset);
}

int refs_add(struct refs *refs, const char *path)
{
    struct container c;
    struct limefile_fields fields;
    struct limefile_field field;
    int status = container_open(&c, path);
    if (status != TOOL_GOOD)
        return status;
    int err = limefile_fields_build(&c.file.source, c.index, &fields);
    bool good = !err;
    if (err) {
        message_code(path, "read", err);
    } else {
        good = chosen_field(refs, &c, &fields, &field) && take(refs, path, &field);
        limefile_fields_release(&fields);
    }
    container_close(&c);
    return good ? TOOL_GOOD : TOOL_BAD;
}

void refs_release(struct refs *refs)
{
    for (size_t i = 0; i < refs->count; i++)
        free(refs->file[i].url);
    free(refs->file);
    free(refs->first);
    limefile_face_close(refs->face);
}
