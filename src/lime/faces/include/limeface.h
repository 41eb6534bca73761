/* limeface.h - exports: present a field's record as files in the formats of other programs.
 *
 * An export's bytes depend only on the record's description, and on the record's bytes where it
 * contains them. They are computed while the file is read and need no disk space. The name of a
 * export is the record's name with a suffix:
 *
 *     X.npy                     numpy: a header, then the data as stored (big-endian)
 *     X.t/000 ...               time slices: ranges of the data, one file each
 *     X.zarr/...                Zarr, format 2: one array, "field", one chunk a time slice
 *     X.h5                      HDF5 with one contiguous dataset, "field"; complex as in h5py
 *     X[.eo][.f4|.f8][.le].npy  computed: even sites before odd ones, another precision,
 *                               little-endian; any of the three, in this order
 *     X.nersc X.milc X.openqcd  a configuration as the whole file of that format
 *
 * The header of a whole file contains sums of all data, so limefile_face_prepare() must compute
 * them before the file can be read.
 *
 * The module prints nothing and has no global state (a lock protects the HDF5 library's).
 * An open export that is ready does not change, so any number of threads may read it. */
#ifndef LIMEFACE_H
#define LIMEFACE_H

#include "limeildg.h"

/* ---- a field as an array (array.c) ------------------------------------------------- */

#define LIMEFILE_ARRAY_DIMS_MAX (LIMEFILE_DIMS_MAX + LIMEFILE_SITE_DIMS_MAX)

/* A row-major array: the lattice's dimensions, t slowest, then those of a site. Four links have
 * the shape (T, Z, Y, X, 4, 3, 3), a spinor (T, Z, Y, X, 4, 3). A hypercube has the shape of
 * its box. The data of a halved lattice, or of an unknown one with a known number of sites,
 * have one dimension for the sites. */
struct limefile_array {
    unsigned dims;    /* number of dimensions in shape */
    unsigned lattice; /* how many of them are the lattice's */
    uint64_t shape[LIMEFILE_ARRAY_DIMS_MAX];
    unsigned precision; /* bits of a real number: 32, 64; 0: bytes whose meaning is unknown */
    bool complex;       /* an element is two real numbers */
    uint64_t bytes;     /* bytes of the whole array: the record's length */
};

/* LIMEFILE_E_STATE: the sites are not known, or their bytes are not the record's length. */
int limefile_array_of(const struct limefile_field *, struct limefile_array *out);

/* ---- names (facename.c) ------------------------------------------------------------ */

enum limefile_facekind {
    LIMEFILE_FACE_NPY,
    LIMEFILE_FACE_H5,
    LIMEFILE_FACE_ZARR,   /* a directory */
    LIMEFILE_FACE_SLICES, /* a directory */
    LIMEFILE_FACE_NERSC,  /* this one and the following: whole files */
    LIMEFILE_FACE_MILC,
    LIMEFILE_FACE_OPENQCD,
};

struct limefile_facename {
    enum limefile_facekind kind;
    bool even_odd;      /* only for NPY, as the next two */
    unsigned precision; /* 32 or 64; 0: the record's */
    bool little;
};

/* Returns true if `name` is the name of an export; *stem: the length of the record's name. */
bool limefile_facename_parse(const char *name, struct limefile_facename *out, size_t *stem);

/* Writes the suffix with its dot and a NUL, at most LIMEFILE_FACE_SUFFIX_MAX bytes. */
#define LIMEFILE_FACE_SUFFIX_MAX 24
void limefile_facename_print(const struct limefile_facename *,
                             char out[LIMEFILE_FACE_SUFFIX_MAX]);

/* Finds the i-th export of a field that directories list (-o faces); false: no more. */
bool limefile_facename_of(const struct limefile_array *, unsigned i,
                          struct limefile_facename *);

bool limefile_face_is_directory(const struct limefile_facename *);
bool limefile_face_is_whole(const struct limefile_facename *);

/* Returns the reason, as text, why limefile_face_open() returns LIMEFILE_E_STATE. */
const char *limefile_face_why_not(const struct limefile_field *,
                                  const struct limefile_facename *);

/* ---- files (face.c) ----------------------------------------------------------------- */

/* The files of an export have numbers from 0. An export that is a file has one entry with an
 * empty name. In an export that is a directory, the names have at most two levels, as "000" and
 * "U/.zarray", and directories in it are entries with numbers, too. */
struct limefile_face;

/* Opens an export; the field is not used afterwards. -ENOMEM. LIMEFILE_E_STATE: the field is
 * not an array or does not support the export (no real numbers, a build without HDF5). */
int limefile_face_open(const struct limefile_field *, const struct limefile_facename *,
                       struct limefile_face **out);
void limefile_face_close(struct limefile_face *);

#define LIMEFILE_FACE_ENTRY_MAX 64

struct limefile_face_entry {
    uint64_t parent; /* number + 1 of its directory; 0: the export itself */
    bool is_dir;
    uint64_t bytes; /* size of a file */
    char name[LIMEFILE_FACE_ENTRY_MAX];
};

uint64_t limefile_face_entries(const struct limefile_face *);
void limefile_face_entry(const struct limefile_face *, uint64_t number,
                         struct limefile_face_entry *out);
/* Finds an entry by its name in `parent` (as in the entry) in constant time; false: none. */
bool limefile_face_find(const struct limefile_face *, uint64_t parent, const char *name,
                        uint64_t *number);

/* Describes the bytes of a file from `offset` on: bytes that the export owns, a range of the
 * stored record, or data that are computed from a part of the record. */
enum limefile_face_what {
    LIMEFILE_FACE_OWN,
    LIMEFILE_FACE_STORED,
    LIMEFILE_FACE_COMPUTED,
};
struct limefile_face_piece {
    enum limefile_face_what source;
    uint64_t bytes;           /* from offset to the end of the piece; 0: end of the file */
    const unsigned char *own; /* OWN: the bytes; valid as long as the export */
    uint64_t at;              /* STORED: offset in the record's data */
};
void limefile_face_piece(const struct limefile_face *, uint64_t number, uint64_t offset,
                         struct limefile_face_piece *out);

/* Reads the record's data like pread(): n bytes, fewer only at the end of the file. Offsets
 * count from the first byte of the data. *data becomes `buf`, which is filled, or points to the
 * bytes in memory, valid until the next call. Several threads may call it. -errno */
typedef ssize_t limefile_face_lend_fn(void *context, void *buf, size_t n, uint64_t offset,
                                      const void **data);

/* Reads up to n bytes at `offset` of a file like pread(): fewer only at the end. Returns the
 * bytes, -errno, or LIMEFILE_E_SHRUNK if the record has become shorter. Reads only the required
 * part of the record, as whole sites if data are computed. */
ssize_t limefile_face_read_lent(const struct limefile_face *, uint64_t number, void *buf,
                                size_t n, uint64_t offset, limefile_face_lend_fn *lend,
                                void *context);

/* ---- whole files (facegauge.c) ------------------------------------------------------ */

/* Returns false if reading gives LIMEFILE_E_STATE; the files' sizes are known anyway. */
bool limefile_face_is_ready(const struct limefile_face *);

/* Makes an export ready: reads all sites of the record once, with one thread for each
 * processor. Several threads call `read` (as in limesites.h), one at a time `progress` (may be
 * NULL); if it returns false, the call stops soon with -EINTR. memory: an approximate limit in
 * bytes; 0: 512 MiB. Returns 0, an error of `read`, LIMEFILE_E_GAUGE_NAN: the links are NaN or
 * infinite, LIMEFILE_D_CHECKSUM: the data do not have the container's checksum, or
 * LIMEFILE_E_GAUGE_RANGE: the format does not support their plaquette. In the meantime no other
 * thread may use the export. */
int limefile_face_prepare(struct limefile_face *, size_t memory,
                          int (*read)(void *, uint64_t first, uint64_t count, void *out),
                          bool (*progress)(void *, uint64_t sites_more), void *context);

#endif
