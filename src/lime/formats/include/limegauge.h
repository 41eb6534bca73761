/* limegauge.h - read and write SU(3) gauge configurations in other formats: NERSC, MILC v5 and
 * openQCD files, and configurations in LIME containers (ILDG, and QIO's four colour matrices).
 *
 * A reader gets the sites as ILDG stores them (limesites.h) and the values of the header. A
 * writer uses an image: a file whose bytes are computed when they are read. docs/formats.md
 * describes the formats, and what limefs does where they are ambiguous.
 *
 * The module prints nothing and has no global state. Any number of threads may read an open
 * file, and an image after it is sealed. */
#ifndef LIMEGAUGE_H
#define LIMEGAUGE_H

#include "limephysics.h"
#include "limesites.h"

enum limefile_gauge_format {
    LIMEFILE_GAUGE_NONE,
    LIMEFILE_GAUGE_ILDG, /* in a LIME container */
    LIMEFILE_GAUGE_NERSC,
    LIMEFILE_GAUGE_MILC,
    LIMEFILE_GAUGE_OPENQCD,
};

/* "ildg", "nersc", "milc", "openqcd"; any other word gives LIMEFILE_GAUGE_NONE. */
const char *limefile_gauge_format_name(enum limefile_gauge_format);
enum limefile_gauge_format limefile_gauge_format_by_name(const char *word);

/* ---- reading (gauge.c) --------------------------------------------------------------- */

#define LIMEFILE_GAUGE_WORD_MAX 256 /* bytes of a header's value, including the NUL */

/* The checksums of the formats. A file has at most one of them. */
struct limefile_gauge_sums {
    uint32_t nersc;
    uint32_t sum29, sum31; /* MILC */
    struct limefile_checksum scidac;
};

struct limefile_gauge {
    enum limefile_gauge_format format;
    struct limefile_sites sites; /* precision: as in the file */
    unsigned rows;               /* rows that the file stores of each link: 2 or 3 */
    bool little;                 /* the numbers in the file are little-endian */
    bool has_site_list;          /* MILC: a list gives the order of the sites */
    uint64_t data_offset, data_bytes;
    uint64_t ordinal; /* ILDG: the data record's ordinal in the container */

    /* The values of the header. */
    bool has_checksum, has_plaquette, has_trace, has_sequence;
    struct limefile_gauge_sums sums; /* if has_checksum; other formats' sums are 0 */
    double plaquette;                /* not ILDG; unit links have 1, in all formats */
    double link_trace;               /* not ILDG; unit links have 1 */
    uint64_t sequence;               /* the configuration number */
    char ensemble_id[LIMEFILE_GAUGE_WORD_MAX], ensemble_label[LIMEFILE_GAUGE_WORD_MAX];
    char date[LIMEFILE_GAUGE_WORD_MAX];
    char lfn[LIMEFILE_LFN_MAX];
    char *text; /* the header as lines of text, NUL-terminated, or NULL; ILDG: the text of
                   xlf-info or of another format's header in the container */
    const char *text_type; /* ILDG: the type of the record that contains text; otherwise NULL */

    struct limefile_gauge_private *priv; /* private data of the library */
};

/* Opens a configuration and finds its format. `ordinal` selects a record of a container; 0
 * selects the container's only configuration. The source must outlive the object and must allow
 * reads from several threads. The object's memory does not depend on the lattice, except for
 * MILC's list of sites (4 bytes a site). Returns 0, -errno, LIMEFILE_E_NO_RECORD,
 * LIMEFILE_E_GAUGE_*, or the code of a fault that a container has before any configuration.
 *
 * If a value in the header is the reason for a failure, `why` (may be NULL) gets the key, the
 * value and the supported values: "DATATYPE = 4D_SU2_GAUGE: not SU(3); ...". Otherwise `why`
 * gets "". Parts of `why` come from the file and can contain any bytes but NUL. */
#define LIMEFILE_GAUGE_WHY_MAX 512
int limefile_gauge_open(struct limefile_source *, uint64_t ordinal, struct limefile_gauge **out,
                        char why[LIMEFILE_GAUGE_WHY_MAX]);
void limefile_gauge_close(struct limefile_gauge *); /* does nothing for NULL */

/* Returns true if the error means that the header or the length contradicts the format. */
bool limefile_gauge_error_is_damage(int err);

/* Opens a field of a container, with its data from field->record.data_offset of the source on.
 * LIMEFILE_E_GAUGE_NONE: the field is not an SU(3) configuration of four dimensions. */
int limefile_gauge_open_field(struct limefile_source *, const struct limefile_field *,
                              struct limefile_gauge **out);

/* Finds the format of a file of `size` bytes from its first n bytes (at least 24, or the whole
 * file). Does not find ILDG. openQCD has no magic number, so the result OPENQCD is a guess; a
 * damaged openQCD file is recognized only if n is at least 168. */
enum limefile_gauge_format limefile_gauge_detect(const void *first, size_t n, uint64_t size);

/* Returns the NERSC checksum of `count` sites in ILDG's form, over 2 or 3 rows of a link. */
uint32_t limefile_gauge_nersc_sum(const void *sites, uint64_t count, unsigned precision,
                                  unsigned rows);

/* ---- numbers (link_convert.c) ---- */

/* Converts `count` numbers from `in` to `out`; neither needs to be aligned. */
typedef void limefile_convert_fn(void *out, const void *in, size_t count);

/* Returns the conversion from real numbers of `from` bits (32, 64) and the given byte order to
 * numbers of `to` bits. */
limefile_convert_fn *limefile_find_converter(unsigned from, bool from_little, unsigned to,
                                             bool to_little);

/* ---- images: files that are computed while they are read (gauge_image.c) ---- */

/* Texts may be NULL. limefile_gauge_image_new() copies them, cut to the format's length. The
 * copies, except that of `text`, have '?' for all characters that are not printable ASCII.
 * text_type is not copied: it must be valid until the image is sealed. */
#define LIMEFILE_GAUGE_TEXT_MAX 96 /* length of ensemble_id, ensemble_label and creator */

struct limefile_gauge_options {
    enum limefile_gauge_format format;
    unsigned precision; /* 32, 64; 0: the format's only precision, or else that of the sites */
    unsigned rows;      /* 3, or for NERSC also 2; 0 means 3 */
    const char *ensemble_id, *ensemble_label, *creator, *date; /* NERSC; date: also MILC */
    bool has_sequence;
    uint64_t sequence;
    const char *lfn;  /* ILDG */
    const char *text; /* ILDG: stored before the data, in a record of the type `text_type` */
    const char *text_type;
    bool without_checksum; /* ILDG: no checksum in the file; the new image is sealed at once */
};

/* Returns true if the format supports the extents; the number of bytes is not checked. */
bool limefile_gauge_supports(enum limefile_gauge_format, const uint64_t extent[4]);

struct limefile_gauge_image;

/* Creates an image. The sites must outlive it; this call does not read them. Errors: -ENOMEM;
 * LIMEFILE_E_GAUGE_FORM: the format does not support the precision or the rows;
 * LIMEFILE_E_GAUGE_LATTICE: the format does not support the lattice. */
int limefile_gauge_image_new(const struct limefile_sites *,
                             const struct limefile_gauge_options *,
                             struct limefile_gauge_image **out);
void limefile_gauge_image_free(struct limefile_gauge_image *);

/* The offset of the data in the image's file; known before the image is sealed. */
uint64_t limefile_gauge_image_data_offset(const struct limefile_gauge_image *);

struct limefile_gauge_totals;

/* Writes checksums, plaquette and link trace into the image's headers. LIMEFILE_E_GAUGE_NAN:
 * plaquette or trace is NaN or infinite; _RANGE: readers of the format would reject them. */
int limefile_gauge_image_seal(struct limefile_gauge_image *,
                              const struct limefile_gauge_totals *);

/* Writes the bytes before and after the data into the file fd. The image must be sealed. */
int limefile_gauge_image_write_headers(const struct limefile_gauge_image *, int fd);
/* Returns the file's size. An image in ILDG's format must be sealed. */
uint64_t limefile_gauge_image_size(const struct limefile_gauge_image *);

/* Reads n bytes at `offset` of the image's file like pread(), fewer only at its end. Reads only
 * the sites that it needs. These include neighbouring sites for openQCD, so a sequential reader
 * should read 1 MiB or more at a time. Returns the number of bytes, the error of sites->read,
 * -ENOMEM, or LIMEFILE_E_STATE if the image is not sealed. */
ssize_t limefile_gauge_image_read(const struct limefile_gauge_image *, void *buf, size_t n,
                                  uint64_t offset);

/* Does the same, but reads the sites with `read` and `context` instead of sites->read. */
ssize_t limefile_gauge_image_read_with(const struct limefile_gauge_image *,
                                       int (*read)(void *context, uint64_t first,
                                                   uint64_t count, void *out),
                                       void *context, void *buf, size_t n, uint64_t offset);
bool limefile_gauge_image_is_sealed(const struct limefile_gauge_image *);

/* ---- adapter: a file in another format as a LIME container (gauge_image.c) ---- */

/* An adapter presents a file in another format as a LIME container with the records
 * "nersc-header" (or milc-, openqcd-), ildg-format and ildg-binary-data, without a checksum.
 * The open reads the header, MILC's list of sites, and (NERSC) sites to find the byte order. */
struct limefile_gauge_adapter;

/* Returns 1 if an adapter supports the file, 0 if not, or -errno if the file cannot be read.
 * Checks the header, and MILC's list if this list has at most 2^20 sites. */
int limefile_gauge_adapter_supports(int fd);

/* Opens an adapter; the caller owns fd and keeps it open. LIMEFILE_E_GAUGE_UNKNOWN: the file is
 * in none of the other formats, or is a container. To keep the open fast, this returns
 * LIMEFILE_E_GAUGE_ORDER instead of reading all data to find the byte order, and
 * LIMEFILE_E_GAUGE_LIST instead of reading a MILC list of more than 2^26 sites. */
int limefile_gauge_adapter_open(int fd, struct limefile_gauge_adapter **out);
void limefile_gauge_adapter_close(struct limefile_gauge_adapter *); /* does nothing for NULL */

/* The file in its own format; valid as long as the adapter. */
const struct limefile_gauge *limefile_gauge_adapter_file(const struct limefile_gauge_adapter *);

/* The container, read-only, for any number of threads. */
struct limefile_source *limefile_gauge_adapter_source(struct limefile_gauge_adapter *);
size_t limefile_gauge_adapter_memory(const struct limefile_gauge_adapter *); /* in bytes */

/* ---- one pass over all sites (gauge_pass.c) ---- */

struct limefile_gauge_totals {
    struct limefile_physics physics;   /* plaquettes are 0 if without_plaquette */
    struct limefile_gauge_sums source; /* sums of the data that the source stores */
    struct limefile_gauge_sums image;  /* sums of the image's data */
};

/* With this `memory`, the data of a pass without an image stay in the processors' caches. */
#define LIMEFILE_GAUGE_CHECK_BYTES ((size_t)48 << 20)

struct limefile_gauge_pass {
    const struct limefile_sites *sites;
    const struct limefile_gauge *source;      /* compute the sums of this file; or NULL */
    const struct limefile_gauge_image *image; /* compute this image's data and sums; or NULL */
    /* Several threads call write() with chunks of the image's data, in any order, and with
     * their offset in the image's file. Returns 0 or -errno. May be NULL. */
    int (*write)(void *context, const void *data, size_t n, uint64_t offset);
    /* One thread at a time calls this; false soon ends the pass with -EINTR. May be NULL. */
    bool (*progress)(void *context, uint64_t sites_more);
    void *context;
    bool without_plaquette; /* do not compute plaquettes */
    unsigned threads;       /* 0: one for each processor */
    /* Approximate limit in bytes; 0: 512 MiB. If a few planes of the lattice need more, the
     * pass uses up to 1.5 GiB or 1.25 times `memory`, whichever is more. */
    size_t memory;
};

/* Runs a pass. Reads all sites once, but the last time slice twice and, if three slices do not
 * fit into memory, some planes twice. The results have the same bits for any number of threads
 * on any machine. Returns 0; -EINVAL: invalid extents or precision; -ENOMEM: also if a few
 * planes do not fit into memory; -EINTR; or an error of sites->read or `write`. */
int limefile_gauge_pass_run(const struct limefile_gauge_pass *,
                            struct limefile_gauge_totals *out);

/* Fills in the plaquettes and link traces that the header (ILDG: the container's records)
 * states. Returns their number. */
int limefile_gauge_stated(const struct limefile_gauge *,
                          struct limefile_physics_stated out[LIMEFILE_PHYSICS_STATED_MAX]);

/* Compares the data with all values of the header, to the precision of their digits
 * (limefile_physics_agrees()). Returns 0, or LIMEFILE_E_GAUGE_CHECKSUM, _PLAQUETTE or _TRACE
 * with the first difference as text: "plaquette 0.58..., not 0.12... as in the header". */
#define LIMEFILE_GAUGE_DIFFERENCE_MAX 160
int limefile_gauge_compare(const struct limefile_gauge *, const struct limefile_gauge_totals *,
                           char text[LIMEFILE_GAUGE_DIFFERENCE_MAX]);

/* Returns why the data cannot be compared with the header, or NULL if the header has a
 * checksum, a plaquette or a link trace. */
const char *limefile_gauge_why_unverified(const struct limefile_gauge *);

#endif
