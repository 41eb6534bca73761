/* refsout.c - references as JSON: {"version": 1, "refs": {key: text or [url, offset, length]}}
 */
#define _GNU_SOURCE
#include "jsonout.h"
#include "refs.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text of the first one's Zarr face; NULL: out of memory. */
static json_t *text_of(const struct refs *refs, const char *folder, const char *name)
{
    struct limefile_face_entry entry;
    struct limefile_face_piece piece;
    uint64_t number, parent = 0;
    if (folder && limefile_face_find(refs->face, 0, folder, &number))
        parent = number + 1;
    if (!limefile_face_find(refs->face, parent, name, &number))
        return NULL;
    limefile_face_entry(refs->face, number, &entry);
    limefile_face_piece(refs->face, number, 0, &piece); /* one piece, in memory */
    return json_loadb((const char *)piece.own, (size_t)entry.bytes, 0, NULL);
}

static bool put_text(const char *key, json_t *value, const char *after)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    if (text) {
        printf("\"%s\": ", key);
        jsonout_text(stdout, text, strlen(text));
        fputs(after, stdout);
    }
    free(text);
    json_decref(value);
    return text != NULL;
}

/* ---- the array, with a dimension more ---- */

static bool put_metadata(const struct refs *refs)
{
    json_t *array = text_of(refs, "field", ".zarray");
    json_t *names = text_of(refs, "field", ".zattrs");
    json_t *about = text_of(refs, NULL, ".zattrs");
    bool good =
        array && names && about &&
        json_array_insert_new(json_object_get(array, "shape"), 0,
                              json_integer((json_int_t)refs->count)) == 0 &&
        json_array_insert_new(json_object_get(array, "chunks"), 0, json_integer(1)) == 0 &&
        json_array_insert_new(json_object_get(names, "_ARRAY_DIMENSIONS"), 0,
                              json_string("config")) == 0;
    if (!good) {
        json_decref(array);
        json_decref(names);
        json_decref(about);
        return false;
    }
    json_object_del(about, "record"); /* of the first alone */
    json_object_del(about, "scidac_checksum");
    good = put_text(".zgroup", text_of(refs, NULL, ".zgroup"), ",\n");
    good = put_text(".zattrs", about, ",\n") && good;
    good = put_text("field/.zarray", array, ",\n") && good;
    return put_text("field/.zattrs", names, "") && good;
}

/* ---- chunks ---- */

/* Where there are templates, a brace is one. */
static char *escaped(const char *url, bool braces)
{
    size_t n = strlen(url), filled = 0;
    char *out = malloc(5 * n + 1);
    for (size_t i = 0; out && i <= n; i++) {
        if (braces && (url[i] == '{' || url[i] == '}'))
            filled += (size_t)sprintf(out + filled, url[i] == '{' ? "{{b}}" : "{{e}}");
        else
            out[filled++] = url[i];
    }
    return out;
}

static bool put_chunks(const struct refs *refs, size_t i)
{
    const struct refs_file *file = &refs->file[i];
    struct limefile_face_entry entry;
    struct limefile_face_piece piece;
    char *url = escaped(file->url, refs->braces);
    uint64_t entries = limefile_face_entries(refs->face);
    for (uint64_t k = 0; url && k < entries && !ferror(stdout); k++) {
        limefile_face_piece(refs->face, k, 0, &piece);
        if (piece.what != LIMEFILE_FACE_STORED)
            continue;
        limefile_face_entry(refs->face, k, &entry);
        printf(",\n\"field/%zu.%s\": [", i, entry.name);
        jsonout_text(stdout, url, strlen(url));
        printf(", %" PRIu64 ", %" PRIu64 "]", file->data_offset + piece.at, piece.bytes);
    }
    free(url);
    return url != NULL;
}

int refs_print(const struct refs *refs)
{
    fputs("{\"version\": 1,\n", stdout);
    if (refs->braces)
        fputs("\"templates\": {\"b\": \"{\", \"e\": \"}\"},\n", stdout);
    fputs("\"refs\": {\n", stdout);
    bool good = put_metadata(refs);
    for (size_t i = 0; i < refs->count && good; i++)
        good = put_chunks(refs, i);
    fputs("\n}}\n", stdout);
    if (!good)
        message(NULL, "refs: out of memory");
    return good ? TOOL_GOOD : TOOL_BAD;
}
