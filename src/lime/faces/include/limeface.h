/*
 * limeface.h - faces: a field's record as the files that other programs want.
 *
 * A face is a file whose bytes are known from the record's description, and from the record's
 * bytes where it has them; it is computed while it is read and takes no disk. Its name is the
 * record's with a suffix:
 *
 *     X.npy                     numpy: a header, then the data as stored (big-endian)
 *     X.t/000 ...               time slices: ranges of the data, one file each
 *     X.zarr/...                Zarr, format 2: one array, "field", one chunk a time slice
 *     X.h5                      HDF5 with one contiguous dataset, "field"; complex as h5py's
 *     X[.eo][.f4|.f8][.le].npy  computed: even sites before odd ones, another precision,
 *                               little-endian; any of the three, in this order
 *     X.nersc X.milc X.openqcd  a configuration as the whole file of that format
 *
 * The header of a whole file has figures of all data, so it is ready only once it was prepared.
 *
 * Nothing here prints or has global state (the HDF5 library has: a lock is around it). An
 * opened face that is ready does not change, so any number of threads may read it.
 */
#ifndef LIMEFACE_H
#define LIMEFACE_H

#include "limeildg.h"

/* ---- the array that a field is (array.c) -------------------------------------------- */

#define LIMEFILE_ARRAY_DIMS_MAX (LIMEFILE_DIMS_MAX + LIMEFILE_SITE_DIMS_MAX)

/* Row-major; the lattice's dimensions first, t slowest, then those of a site: four links are
 * (T, Z, Y, X, 4, 3, 3), a spinor (T, Z, Y, X, 4, 3). Of a hypercube only its box. Data of a
 * halved lattice, or of one that is not known but whose sites are, have one dimension of sites.
 */
struct limefile_array {
    unsigned dims;    /* of shape */
    unsigned lattice; /* how many of them are the lattice's */
    uint64_t shape[LIMEFILE_ARRAY_DIMS_MAX];
    unsigned precision; /* bits of a real number: 32, 64; 0: bytes whose meaning is unknown */
    bool complex;       /* an element is two of them */
    uint64_t bytes;     /* of the whole: the record's length */
};

/* LIMEFILE_E_STATE if the field's sites are not known or do not make up the record. */
int limefile_array_of(const struct limefile_field *, struct limefile_array *out);

/* ---- names (facename.c), pure ------------------------------------------------------- */

enum limefile_facekind {
    LIMEFILE_FACE_NPY,
    LIMEFILE_FACE_H5,
    LIMEFILE_FACE_ZARR,   /* a directory */
    LIMEFILE_FACE_SLICES, /* a directory */
    LIMEFILE_FACE_NERSC,  /* whole files: */
    LIMEFILE_FACE_MILC,
    LIMEFILE_FACE_OPENQCD,
};

struct limefile_facename {
    enum limefile_facekind kind;
    bool even_odd;      /* computed, NPY alone: */
    unsigned precision; /* 0: the record's; 32; 64 */
    bool little;
};

/* Whether `name` is that of a face: *stem is the length of the record's name. */
bool limefile_facename_parse(const char *name, struct limefile_facename *out, size_t *stem);

/* The suffix, with its dot; at most LIMEFILE_FACE_SUFFIX_MAX bytes with the NUL. */
#define LIMEFILE_FACE_SUFFIX_MAX 24
void limefile_facename_print(const struct limefile_facename *,
                             char out[LIMEFILE_FACE_SUFFIX_MAX]);

/* The i-th face that is listed (-o faces) of a field; false: there are no more. */
bool limefile_facename_of(const struct limefile_array *, unsigned i,
                          struct limefile_facename *);

bool limefile_face_is_directory(const struct limefile_facename *);
bool limefile_face_is_whole(const struct limefile_facename *);

/* Why limefile_face_open() gives LIMEFILE_E_STATE, in words. */
const char *limefile_face_why_not(const struct limefile_field *,
                                  const struct limefile_facename *);

/* ---- files (face.c) ----------------------------------------------------------------- */

/*
 * The files of a face are numbered from 0. One that is a file has one, of no name. Those of a
 * directory have names of at most two levels, as "000" and "U/.zarray"; directories in it are
 * listed as such, their number is that of an entry like the files'.
 */
struct limefile_face;

/* LIMEFILE_E_STATE if the field is no array or has no such face (no real numbers to convert,
 * a build without HDF5). -ENOMEM. What the field points to is not needed afterwards. */
int limefile_face_open(const struct limefile_field *, const struct limefile_facename *,
                       struct limefile_face **out);
void limefile_face_close(struct limefile_face *);

#define LIMEFILE_FACE_ENTRY_MAX 64

struct limefile_face_entry {
    uint64_t parent; /* number + 1 of the directory that it is in; 0: the face itself */
    bool directory;
    uint64_t bytes; /* of a file */
    char name[LIMEFILE_FACE_ENTRY_MAX];
};

uint64_t limefile_face_entries(const struct limefile_face *); /* how many numbers there are */
void limefile_face_entry(const struct limefile_face *, uint64_t number,
                         struct limefile_face_entry *out);
/* By its name in `parent` (as in the entry); false if there is none. No search through all. */
bool limefile_face_find(const struct limefile_face *, uint64_t parent, const char *name,
                        uint64_t *number);

/* What stands at `offset` of a file, and for how long: bytes of the face's own, a range of the
 * record as it is stored, or data that are computed from a part of the record. */
enum limefile_face_what {
    LIMEFILE_FACE_OWN,
    LIMEFILE_FACE_STORED,
    LIMEFILE_FACE_COMPUTED,
};
struct limefile_face_piece {
    enum limefile_face_what what;
    uint64_t bytes;           /* from offset to the end of the piece; 0: the file ends here */
    const unsigned char *own; /* OWN: the bytes; as long-lived as the face */
    uint64_t at;              /* STORED: where in the record's data */
};
void limefile_face_piece(const struct limefile_face *, uint64_t number, uint64_t offset,
                         struct limefile_face_piece *out);

/* How the record's data are read: as pread, all n bytes but at the end of the file; offsets
 * from the first byte of the data. *data becomes `buf`, filled, or where the bytes are in
 * memory, until the next call. -errno. Several threads may call it at once. */
typedef ssize_t limefile_face_lend_fn(void *context, void *buf, size_t n, uint64_t offset,
                                      const void **data);

/* Up to n bytes at `offset` of a file, as pread: fewer only at its end. -errno, or
 * LIMEFILE_E_SHRUNK if the record has not so many bytes any more. Reads no more of the record
 * than it needs, in whole sites where it computes. */
ssize_t limefile_face_read_lent(const struct limefile_face *, uint64_t number, void *buf,
                                size_t n, uint64_t offset, limefile_face_lend_fn *lend,
                                void *context);

/* ---- whole files (facegauge.c) ------------------------------------------------------ */

/* False: its files have their sizes, and reading them is LIMEFILE_E_STATE. */
bool limefile_face_is_ready(const struct limefile_face *);

/* Makes it ready: reads all sites of the record once, by all processors. read, as in
 * limesites.h, is called by several threads, progress (may be NULL) by one at a time; false:
 * stop soon, and fail with -EINTR. memory: bytes that it may take, roughly; 0: 512 MiB. What
 * read gives; LIMEFILE_E_GAUGE_NAN: the links are NaN or infinite; LIMEFILE_D_CHECKSUM: the
 * data do not have the checksum in the container; LIMEFILE_E_GAUGE_RANGE: the format does not
 * allow their plaquette. No other thread may use the face in the meantime.
 */
int limefile_face_prepare(struct limefile_face *, size_t memory,
                          int (*read)(void *context, uint64_t first, uint64_t count, void *out),
                          bool (*progress)(void *context, uint64_t sites_more), void *context);

#endif
