/* export.h - internal declarations for src/lime/exports: an open export and its parts */
#ifndef LIMEFILE_EXPORT_H
#define LIMEFILE_EXPORT_H

#include "limeexport.h"
#include "limegauge.h"

/* ---- export_array.c: a field as an array, and the names of its dimensions ---- */

struct export_layout {
    struct limefile_array array;
    const char *name[LIMEFILE_ARRAY_DIMS_MAX]; /* name of each dimension; all differ */
    unsigned origin; /* parity of the sum of the first site's coordinates, in the lattice */
};

/* Fills *out. Returns 0, or LIMEFILE_E_STATE as limefile_array_from_field() does. */
int export_layout_init(const struct limefile_field *, struct export_layout *out);

/* Writes numpy's name of an element's type, for example >c16. precision: bits of a real number;
 * 0: elements are bytes. little: little-endian. */
#define EXPORT_DTYPE_MAX 8
void export_layout_dtype(const struct limefile_array *, unsigned precision, bool little,
                         char out[EXPORT_DTYPE_MAX]);

/* ---- export_spec.c ---- */

/* Returns true if the array has the number type, lattice and shape that the export requires. */
bool export_supports_array(const struct limefile_array *, const struct limefile_export_spec *);

/* ---- export_compute.c: data in another order, precision or byte order ----
 *
 * Even-odd order: sites with even x+y+z+t come first. Each half has the record's order. */

struct export_evenodd {
    uint64_t sites, even_sites;         /* of the whole array */
    uint64_t pairs;                     /* pairs of sites in a block (see evenodd_init()) */
    unsigned origin;                    /* parity of the first site */
    unsigned slower_dims;               /* number of dimensions in which a block has extent 1 */
    uint64_t extent[LIMEFILE_DIMS_MAX]; /* of these dimensions, the fastest first */
};

struct export_compute {
    unsigned from, to;            /* bytes of a number: in the record, and computed */
    uint64_t site_bytes;          /* bytes of a site in the record */
    uint64_t out_bytes;           /* bytes of a computed site */
    uint64_t bytes;               /* bytes of all computed data */
    limefile_convert_fn *convert; /* converts numbers, or copies bytes */
    bool even_odd;
    struct export_evenodd order;
};

/* Returns 0, or LIMEFILE_E_STATE if the data would be too long for a file. */
int compute_init(struct export_compute *, const struct export_layout *,
                 const struct limefile_export_spec *);

/* Computes n bytes at `offset` of the data; offset + n must be at most compute->bytes. Returns
 * 0, LIMEFILE_E_SHRUNK (the record has become too short), or an error of read_record(). */
int compute_read(const struct export_compute *, unsigned char *out, size_t n, uint64_t offset,
                 limefile_export_read_fn *read_record, void *context);

/* Reads n bytes at `at` of the record's data. Returns the same as compute_read(). */
int export_read_raw(void *buf, size_t n, uint64_t at, limefile_export_read_fn *, void *context);

/* ---- export_hdf5.c: the HDF5 file around a dataset, created by the HDF5 library ---- */

/* The bytes of an HDF5 file before and after the dataset, which is one range of the file. */
struct h5_file {
    unsigned char *bytes; /* from malloc(): the bytes before the dataset, then those after it */
    size_t before, after; /* number of bytes before the dataset, and after it */
};

/* Returns true if this build supports HDF5. */
bool h5_is_supported(void);

/* Returns 0, -errno or LIMEFILE_E_STATE: the library is missing or cannot create the file. */
int h5_build(const struct limefile_field *, const struct export_layout *, struct h5_file *);

/* ---- export.c ---- */

enum { EXPORT_TEXTS = 5 };

struct export_text {
    size_t at, bytes; /* at: offset in `own_bytes` */
};

struct limefile_export {
    struct limefile_export_spec spec;
    struct export_layout layout;
    bool computed; /* `compute` computes the data; false: the data are the record's */
    struct export_compute compute;
    unsigned char *own_bytes;              /* owned: all bytes that are not in the record */
    struct export_text text[EXPORT_TEXTS]; /* NPY: header; H5: before, after; Zarr: files */
    uint64_t slices, slice_bytes;       /* number of time slices of the data; bytes of each */
    unsigned digits;                    /* digits of a slice's name */
    struct limefile_sites sites;        /* whole files only; `read` and `context` are not set */
    struct limefile_gauge_image *image; /* whole files only; otherwise NULL */
    bool has_checksum;                  /* whole files only: `checksum` is set */
    struct limefile_checksum checksum;  /* the record's, from the container */
};

/* ---- export_npy_zarr.c: numpy's header, and Zarr's files ---- */

/* Set own_bytes, text[] and (npy) `compute`. Return 0, -ENOMEM or LIMEFILE_E_STATE. */
int export_npy_open(struct limefile_export *);
int export_zarr_open(struct limefile_export *, const struct limefile_field *);

/* ---- export_gauge.c: a whole file of another format ---- */

/* Returns true if the array has the shape of an SU(3) configuration, and the spec's format
 * supports its lattice. The spec must be a whole file. export_gauge_open() fails with
 * LIMEFILE_E_STATE if a field of this shape is not a configuration. */
bool export_gauge_fits(const struct limefile_array *, const struct limefile_export_spec *);
int export_gauge_open(struct limefile_export *, const struct limefile_field *);
ssize_t export_gauge_read(const struct limefile_export *, void *buf, size_t n, uint64_t offset,
                          limefile_export_read_fn *, void *context);

#endif
