/* limeexport.h - exports: present a field's record as files in the formats of other programs.
 *
 * An export's bytes depend only on the record's description and data. They are computed while
 * the export is read, and need no disk space. An export's name is the record's with a suffix:
 *
 *     X.npy                     numpy: a header, then the data as stored (big-endian)
 *     X.t/000 ...               time slices: ranges of the data, one file each
 *     X.zarr/...                Zarr, format 2: one array, "field", one chunk a time slice
 *     X.h5                      HDF5 with one contiguous dataset, "field"; complex as in h5py
 *     X[.eo][.f4|.f8][.le].npy  .eo: even sites before odd sites; .f4 or .f8: 4 or 8 bytes a
 *                               number; .le: little-endian; any or all, in this order
 *     X.nersc X.milc X.openqcd  a configuration as the whole file of that format
 *
 * The header of a whole file contains sums of all data, so limefile_export_prepare() must
 * compute them before the file can be read.
 *
 * The module prints nothing. Its only global state is that of HDF5, which a lock protects.
 * Any number of threads may read an open export that is ready (limefile_export_is_ready()). */
#ifndef LIMEEXPORT_H
#define LIMEEXPORT_H

#include "limeildg.h"

/* ---- a field as an array (export_array.c) ---- */

#define LIMEFILE_ARRAY_DIMS_MAX (LIMEFILE_DIMS_MAX + LIMEFILE_SITE_DIMS_MAX)

/* A row-major array: the lattice's dimensions, t slowest, then those of a site. Four links have
 * the shape (T, Z, Y, X, 4, 3, 3), a spinor (T, Z, Y, X, 4, 3). A record of a part of the
 * lattice (a hypercube) has the shape of that part. One dimension covers all sites if the
 * record has only every second site, or if the lattice's extents are not known. */
struct limefile_array {
    unsigned dims;    /* number of dimensions in shape */
    unsigned lattice; /* the first `lattice` dimensions are the lattice's; 0: a global value */
    uint64_t shape[LIMEFILE_ARRAY_DIMS_MAX];
    unsigned precision; /* bits of a real number: 32, 64; 0: bytes whose meaning is unknown */
    bool complex;       /* an element is two real numbers */
    uint64_t bytes;     /* bytes of the whole array: the record's length */
};

/* LIMEFILE_E_STATE: the field's sites or site_bytes are unknown, or contradict its length. */
int limefile_array_from_field(const struct limefile_field *, struct limefile_array *out);

/* ---- names (export_spec.c) ------------------------------------------------------------ */

enum limefile_export_kind {
    LIMEFILE_EXPORT_NPY,
    LIMEFILE_EXPORT_H5,
    LIMEFILE_EXPORT_ZARR,   /* a directory */
    LIMEFILE_EXPORT_SLICES, /* a directory */
    LIMEFILE_EXPORT_NERSC,  /* this kind and the following ones are whole files */
    LIMEFILE_EXPORT_MILC,
    LIMEFILE_EXPORT_OPENQCD,
};

struct limefile_export_spec {
    enum limefile_export_kind kind;
    bool even_odd;      /* NPY only: even sites first */
    unsigned precision; /* NPY only: bits of a real number, 32 or 64; 0: as in the record */
    bool little;        /* NPY only: little-endian */
};

/* Returns true if `name` ends with an export's suffix. *stem: the length before the suffix. */
bool limefile_export_parse(const char *name, struct limefile_export_spec *out, size_t *stem);

/* Writes the suffix with its dot and a NUL, at most LIMEFILE_EXPORT_SUFFIX_MAX bytes. */
#define LIMEFILE_EXPORT_SUFFIX_MAX 24
void limefile_export_suffix(const struct limefile_export_spec *,
                            char out[LIMEFILE_EXPORT_SUFFIX_MAX]);

/* Finds the i-th export (from 0) of those that a mount with -o faces lists; false: no more. */
bool limefile_export_get_listed(const struct limefile_array *, unsigned i,
                                struct limefile_export_spec *);

bool limefile_export_is_directory(const struct limefile_export_spec *);
bool limefile_export_is_whole_file(const struct limefile_export_spec *);

/* Returns a static text: why limefile_export_open() returns LIMEFILE_E_STATE for this field. */
const char *limefile_export_why_unsupported(const struct limefile_field *,
                                            const struct limefile_export_spec *);

/* ---- files (export.c) ----------------------------------------------------------------- */

/* The files and directories in an export are its entries, numbered from 0. An export that is a
 * file has one entry, with an empty name. An export that is a directory has entries on one or
 * two levels: "000", or "field" and "field/.zarray". */
struct limefile_export;

/* Opens an export, which does not use the field after this call. Returns 0, -errno, or
 * LIMEFILE_E_STATE; limefile_export_why_unsupported() then has the reason. */
int limefile_export_open(const struct limefile_field *, const struct limefile_export_spec *,
                         struct limefile_export **out);
void limefile_export_close(struct limefile_export *);

#define LIMEFILE_EXPORT_ENTRY_MAX 64

struct limefile_export_entry {
    uint64_t parent; /* number + 1 of its directory; 0: the export itself */
    bool is_dir;
    uint64_t bytes; /* size of a file */
    char name[LIMEFILE_EXPORT_ENTRY_MAX];
};

uint64_t limefile_export_entry_count(const struct limefile_export *);
void limefile_export_entry(const struct limefile_export *, uint64_t number,
                           struct limefile_export_entry *out);
/* Finds the entry with this `parent` and `name` in constant time; false: not found. */
bool limefile_export_find(const struct limefile_export *, uint64_t parent, const char *name,
                          uint64_t *number);

enum limefile_export_source {
    LIMEFILE_EXPORT_OWN,      /* bytes that the export owns */
    LIMEFILE_EXPORT_STORED,   /* a range of the stored record */
    LIMEFILE_EXPORT_COMPUTED, /* data that are computed from a part of the record */
};
struct limefile_export_range {
    enum limefile_export_source source;
    uint64_t bytes;           /* from offset to the end of this range; 0: end of the file */
    const unsigned char *own; /* OWN: the bytes; valid as long as the export */
    uint64_t at;              /* STORED: offset in the record's data */
};
/* Finds the range of the file `number` that begins at `offset`. */
void limefile_export_range(const struct limefile_export *, uint64_t number, uint64_t offset,
                           struct limefile_export_range *out);

/* Reads n bytes at `offset` of the record's data like pread(), fewer only at the end of the
 * file. Either fills `buf` and sets *data to it, or sets *data to other memory with the bytes,
 * which stays valid until the next call with `context`. Returns their number or -errno. */
typedef ssize_t limefile_export_read_fn(void *context, void *buf, size_t n, uint64_t offset,
                                        const void **data);

/* Reads n bytes at `offset` of the file `number` like pread(), fewer only at its end. Reads
 * only the part of the record that these bytes need, rounded to whole numbers or sites if data
 * are computed. Returns the number of bytes, -errno, LIMEFILE_E_SHRUNK (the record has become
 * shorter), or LIMEFILE_E_STATE (limefile_export_is_ready() is false). */
ssize_t limefile_export_read(const struct limefile_export *, uint64_t number, void *buf,
                             size_t n, uint64_t offset, limefile_export_read_fn *read_record,
                             void *context);

/* ---- whole files (export_gauge.c) ------------------------------------------------------ */

/* Returns false if the caller must call limefile_export_prepare() before it reads the export.
 * The sizes of files are already known. */
bool limefile_export_is_ready(const struct limefile_export *);

/* Makes an export ready: reads all sites of the record, with one thread for each processor. No
 * other thread may use the export during the call. Several threads call `read` (see
 * limesites.h) at once, but only one at a time calls `progress` (may be NULL). If `progress`
 * returns false, the call soon fails with -EINTR. memory: an approximate limit in bytes; 0: 512
 * MiB. Returns 0, an error of `read` or limefile_gauge_pass_run(), LIMEFILE_E_GAUGE_NAN (links
 * are NaN or infinite), LIMEFILE_E_GAUGE_RANGE (the format does not support the plaquette or
 * trace), or LIMEFILE_D_CHECKSUM (the data do not have the container's checksum). */
int limefile_export_prepare(struct limefile_export *, size_t memory,
                            int (*read)(void *, uint64_t first, uint64_t count, void *out),
                            bool (*progress)(void *, uint64_t sites_more), void *context);

#endif
