/* facetext.h - JSON put together in memory; inside of src/lime/faces */
#ifndef LIMEFILE_FACETEXT_H
#define LIMEFILE_FACETEXT_H

#include "layout.h"

/* Zero to begin with. `failed`: out of memory, and the rest is missing. */
struct face_json {
    char *at; /* malloc */
    size_t n, room;
    bool failed;
};

__attribute__((format(printf, 2, 3))) void face_json_add(struct face_json *, const char *format,
                                                         ...);

/* Quoted; what is not printable ASCII, '/' and '%' as %XX. */
void face_json_text(struct face_json *, const char *text);

/* {"field": ..., ...}: what is known of the record */
void face_json_attributes(struct face_json *, const struct limefile_field *,
                          const struct face_layout *);

/* What Zarr wants to know of the array: {"zarr_format": 2, ...}, {"_ARRAY_DIMENSIONS": ...} */
void face_json_array(struct face_json *, const struct face_layout *);
void face_json_dimensions(struct face_json *, const struct face_layout *);

/* The key of a chunk behind its first number: ".0.0.0" */
#define FACE_KEY_MAX (2 * LIMEFILE_ARRAY_DIMS_MAX + 1)
void face_json_key(const struct face_layout *, char out[FACE_KEY_MAX]);

#endif
