/*
 * facefile.h - an opened face: what its files are made of; inside of src/lime/faces
 */
#ifndef LIMEFILE_FACEFILE_H
#define LIMEFILE_FACEFILE_H

#include "compute.h"
#include "layout.h"
#include "limegauge.h"

enum {
    FACE_TEXTS = 5,
    FACE_DIGITS_MIN = 3, /* of a time slice's name */
};

struct face_text {
    size_t at, bytes; /* in `own` */
};

struct limefile_face {
    struct limefile_facename name;
    struct face_layout layout;
    bool computed;
    struct face_compute compute;
    unsigned char *own;                /* all that is not of the record */
    struct face_text text[FACE_TEXTS]; /* NPY: the header; H5: before and after; Zarr's files */
    uint64_t slices, slice_bytes;      /* ranges of a directory's files */
    unsigned digits;
    struct limefile_sites sites;        /* a whole file: what it is made of, without `read`; */
    struct limefile_gauge_image *image; /* else NULL */
    bool has_checksum;                  /* a whole file: `checksum` is stored with the record */
    struct limefile_checksum checksum;
};

/* A file: bytes of the face's own, data, bytes of its own again. */
struct face_file {
    struct face_text head, tail;
    enum limefile_face_what what;
    uint64_t at; /* of the data in the record, if they are STORED */
    uint64_t bytes;
};

/* ---- facenpy.c ---- */

int face_npy_open(struct limefile_face *);

/* ---- facegauge.c: a whole file of another format ---- */

bool face_gauge_fits(const struct limefile_array *, const struct limefile_facename *);
int face_gauge_open(struct limefile_face *, const struct limefile_field *);
ssize_t face_gauge_read(const struct limefile_face *, void *buf, size_t n, uint64_t offset,
                        limefile_face_lend_fn *, void *context);

/* ---- facezarr.c: files in two levels ---- */

int face_zarr_open(struct limefile_face *, const struct limefile_field *);
uint64_t face_zarr_entries(const struct limefile_face *);
void face_zarr_entry(const struct limefile_face *, uint64_t number,
                     struct limefile_face_entry *);
bool face_zarr_find(const struct limefile_face *, uint64_t parent, const char *name,
                    uint64_t *number);
void face_zarr_file(const struct limefile_face *, uint64_t number, struct face_file *);

/* A number as it must be spelled to be that of a slice, of exactly `len` digits. */
bool face_slice_parse(const char *digits, size_t len, uint64_t *slice);

#endif
