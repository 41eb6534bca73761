/* facetext.c - Zarr's metadata and those of the record as JSON */
#define _GNU_SOURCE
#include "facetext.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct face_json *j, size_t n)
{
    if (j->failed || j->n + n < j->room)
        return !j->failed;
    size_t room = 2 * (j->n + n) + 256;
    char *bigger = realloc(j->at, room);
    if (!bigger) {
        j->failed = true;
        return false;
    }
    j->at = bigger;
    j->room = room;
    return true;
}

void face_json_add(struct face_json *j, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n >= 0 && reserve(j, (size_t)n + 1)) {
        vsnprintf(j->at + j->n, (size_t)n + 1, format, again);
        j->n += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

void face_json_text(struct face_json *j, const char *text)
{
    char plain[3 * LIMEFILE_TYPE_BYTES + 1];
    size_t n = limefile_name_encode(text, strlen(text), plain, sizeof plain);
    face_json_add(j, "\"");
    for (size_t i = 0; i < n; i++)
        face_json_add(j, plain[i] == '"' || plain[i] == '\\' ? "\\%c" : "%c", plain[i]);
    face_json_add(j, "\"");
}

static void add_numbers(struct face_json *j, const char *name, const uint64_t *number,
                        unsigned count)
{
    face_json_add(j, ", \"%s\": [", name);
    for (unsigned i = 0; i < count; i++)
        face_json_add(j, "%s%" PRIu64, i ? ", " : "", number[i]);
    face_json_add(j, "]");
}

void face_json_attributes(struct face_json *j, const struct limefile_field *f,
                          const struct face_layout *layout)
{
    face_json_add(j, "{\"record_type\": ");
    face_json_text(j, f->record.type);
    face_json_add(j, ", \"record\": %" PRIu64 ", \"field\": ", f->record.ordinal);
    face_json_text(j, f->name);
    face_json_add(j, ", \"precision\": %u", layout->array.precision);
    if (f->lattice.dims)
        add_numbers(j, "lattice", f->lattice.extent, f->lattice.dims);
    if (f->boxed && f->lattice.dims && !f->halved) {
        add_numbers(j, "lower", f->lower, f->lattice.dims);
        add_numbers(j, "upper", f->upper, f->lattice.dims);
    }
    if (f->has_checksum)
        face_json_add(j, ", \"scidac_checksum\": \"%08" PRIx32 " %08" PRIx32 "\"",
                      f->checksum.suma, f->checksum.sumb);
    face_json_add(j, "}");
}

static void add_shape(struct face_json *j, const struct face_layout *layout, const char *name,
                      bool chunk)
{
    const struct limefile_array *a = &layout->array;
    face_json_add(j, "\"%s\": [", name);
    for (unsigned i = 0; i < a->dims; i++)
        face_json_add(j, "%s%" PRIu64, i ? ", " : "",
                      chunk && i == 0 && a->lattice > 1 ? 1 : a->shape[i]);
    face_json_add(j, "], ");
}

void face_json_array(struct face_json *j, const struct face_layout *layout)
{
    char dtype[FACE_DTYPE_MAX];
    face_layout_dtype(&layout->array, layout->array.precision, false, dtype);
    face_json_add(j, "{\"zarr_format\": 2, ");
    add_shape(j, layout, "shape", false);
    add_shape(j, layout, "chunks", true);
    face_json_add(j,
                  "\"dtype\": \"%s\", \"compressor\": null, \"filters\": null, "
                  "\"fill_value\": null, \"order\": \"C\"}",
                  dtype);
}

void face_json_dimensions(struct face_json *j, const struct face_layout *layout)
{
    face_json_add(j, "{\"_ARRAY_DIMENSIONS\": [");
    for (unsigned i = 0; i < layout->array.dims; i++)
        face_json_add(j, "%s\"%s\"", i ? ", " : "", layout->name[i]);
    face_json_add(j, "]}");
}

void face_json_key(const struct face_layout *layout, char out[FACE_KEY_MAX])
{
    char *at = out;
    for (unsigned i = 1; i < layout->array.dims; i++)
        at = stpcpy(at, ".0");
    *at = '\0';
}
