/* face.h - an opened face, and what its files are made of; inside of src/lime/faces */
#ifndef LIMEFILE_FACE_H
#define LIMEFILE_FACE_H

#include "limeface.h"
#include "limegauge.h"

/* ---- array.c: the array that a field is, with what its dimensions are called --------- */

struct face_layout {
    struct limefile_array array;
    const char *name[LIMEFILE_ARRAY_DIMS_MAX]; /* of each dimension; all differ */
    unsigned origin; /* parity of the first site's coordinates in the whole lattice */
};

/* As limefile_array_of(). */
int face_layout_of(const struct limefile_field *, struct face_layout *out);

/* "'>c16'" without the quotes: the type of an element, as numpy writes it. `precision`: bits of
 * a real number; 0: bytes. */
#define FACE_DTYPE_MAX 8
void face_layout_dtype(const struct limefile_array *, unsigned precision, bool little,
                       char out[FACE_DTYPE_MAX]);

/* ---- facename.c ---- */

/* Whether such an array has that face. */
bool face_layout_has(const struct limefile_array *, const struct limefile_facename *);

/*
 * ---- compute.c: data in another order, precision or byte order ----
 *
 * Sites with even x+y+z+t come before odd ones, both as they follow each other in the record.
 */

struct face_evenodd {
    uint64_t sites, evens;
    uint64_t pairs;  /* of sites in a block, inside of which parity alternates */
    unsigned origin; /* parity of the first site */
    unsigned above;  /* dimensions above a block, and their extents from below */
    uint64_t extent[LIMEFILE_DIMS_MAX];
};

struct face_compute {
    unsigned from, to;   /* bytes of a number */
    uint64_t site_bytes; /* in the record, */
    uint64_t out_bytes;  /* and computed */
    uint64_t bytes;      /* of all that is computed */
    limefile_reals_fn *kernel;
    bool even_odd;
    struct face_evenodd order;
};

/* LIMEFILE_E_STATE if that is longer than a file can be. */
int face_compute_init(struct face_compute *, const struct face_layout *,
                      const struct limefile_facename *);

/* All n bytes from `offset` of what is computed, which are there. 0, -errno or
 * LIMEFILE_E_SHRUNK. */
int face_compute_read(const struct face_compute *, unsigned char *out, size_t n,
                      uint64_t offset, limefile_face_lend_fn *lend, void *context);

/* n bytes at `at` of the record's data. 0, LIMEFILE_E_SHRUNK or what the lender returns. */
int face_read_stored(void *buf, size_t n, uint64_t at, limefile_face_lend_fn *, void *context);

/* ---- faceh5.c: the HDF5 file around a dataset, by the HDF5 library ---- */

/* All bytes of the file but those of the dataset, which is one range. */
struct face_h5 {
    unsigned char *bytes; /* malloc: first those before the range, then those after it */
    size_t before, after;
};

/* Whether this build has HDF5, and the library is installed here. */
bool face_h5_is_there(void);

/* LIMEFILE_E_STATE if there is no library, or it cannot make such a file. -errno. */
int face_h5_make(const struct limefile_field *, const struct face_layout *, struct face_h5 *);

/* ---- face.c ---- */

enum { FACE_TEXTS = 5 };

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

/* ---- facetext.c: numpy's header, and Zarr's files --------------------------------------- */

int face_npy_open(struct limefile_face *);
int face_zarr_open(struct limefile_face *, const struct limefile_field *);

/* ---- facegauge.c: a whole file of another format ---- */

bool face_gauge_fits(const struct limefile_array *, const struct limefile_facename *);
int face_gauge_open(struct limefile_face *, const struct limefile_field *);
ssize_t face_gauge_read(const struct limefile_face *, void *buf, size_t n, uint64_t offset,
                        limefile_face_lend_fn *, void *context);

#endif
