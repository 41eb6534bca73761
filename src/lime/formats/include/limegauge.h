/*
 * limegauge.h - SU(3) gauge configurations as other programs store them: NERSC, MILC v5 and
 * openQCD files, and configurations in LIME containers (ILDG, and QIO's four colour matrices).
 *
 * Reading gives the sites as ILDG has them (limesites.h) and what the header says. Writing goes
 * by an image: a file whose size is known at once and whose bytes are computed when they are
 * asked for. docs/formats.md describes the formats, and what is decided where they are
 * ambiguous.
 *
 * Nothing here prints or has global state. What is opened does not change (an image once it is
 * sealed), so any number of threads may read it.
 */
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

/* "ildg", "nersc", "milc", "openqcd"; LIMEFILE_GAUGE_NONE for another word. */
const char *limefile_gauge_format_name(enum limefile_gauge_format);
enum limefile_gauge_format limefile_gauge_format_named(const char *word);

/* ---- reading (gauge.c) --------------------------------------------------------------- */

#define LIMEFILE_GAUGE_WORD_MAX 256 /* of a value in a header, with the NUL */

/* The checksums that the formats know. Each file has one of them at most. */
struct limefile_gauge_sums {
    uint32_t nersc;
    uint32_t sum29, sum31; /* MILC */
    struct limefile_checksum scidac;
};

struct limefile_gauge {
    enum limefile_gauge_format format;
    struct limefile_sites sites; /* precision: the file's own */
    unsigned rows;               /* that the file has of each link: 2 or 3 */
    bool little;                 /* its numbers are little-endian */
    bool listed;                 /* MILC: sites in the order of a list */
    uint64_t data_offset, data_bytes;
    uint64_t ordinal; /* ILDG: of the record */

    /* What the header says. */
    bool has_checksum, has_plaquette, has_trace, has_sequence;
    struct limefile_gauge_sums sums; /* has_checksum: the one of the format */
    double plaquette;                /* but for ILDG; 1 for unit links, in all formats */
    double link_trace;               /* the same */
    uint64_t sequence;               /* the number of the configuration */
    char ensemble_id[LIMEFILE_GAUGE_WORD_MAX], ensemble_label[LIMEFILE_GAUGE_WORD_MAX];
    char date[LIMEFILE_GAUGE_WORD_MAX];
    char lfn[LIMEFILE_LFN_MAX];
    char *text; /* the header as lines of text, NUL-terminated; ILDG: that of xlf-info, or of
                   the header of another format, in the container; NULL: there is none */
    const char *text_type; /* ILDG: the type of the record that has the text; otherwise NULL */

    struct limefile_gauge_kept *kept; /* the library's own */
};

/*
 * Opens whatever it is. `ordinal`: the record of a container that is meant; 0: the only one.
 * The source must outlive it and bear several threads. LIMEFILE_E_GAUGE_*; for a container
 * whose index ends at a fault only if there is no configuration before. Memory does not depend
 * on the lattice, but for a list of sites in a MILC file (4 bytes a site, of a file that has
 * them).
 *
 * If it fails because of a value in a header, `why` (or NULL) names the key, the value and what
 * is supported, as "DATATYPE = 4D_SU2_GAUGE: not SU(3); ..."; it is "" otherwise. Parts of it
 * are from the file: they can contain any bytes but NUL.
 */
#define LIMEFILE_GAUGE_WHY_MAX 512
int limefile_gauge_open(struct limefile_source *, uint64_t ordinal, struct limefile_gauge **out,
                        char why[LIMEFILE_GAUGE_WHY_MAX]);
void limefile_gauge_close(struct limefile_gauge *); /* NULL: nothing happens */

/* Whether an error of these tells that the header or the length contradicts the format. */
bool limefile_gauge_is_damage(int err);

/* A field of a container whose data are in `source` from field->record.data_offset on.
 * LIMEFILE_E_GAUGE_NONE if it is no SU(3) configuration of four dimensions. */
int limefile_gauge_open_field(struct limefile_source *, const struct limefile_field *,
                              struct limefile_gauge **out);

/* Whether the first n bytes (at least 24, or the whole file) are those of a file of `size`
 * bytes in a format other than LIME. No more than a guess for openQCD, which has no magic
 * number; a damaged file of it takes 168 bytes to be known. */
enum limefile_gauge_format limefile_gauge_guess(const void *first, size_t n, uint64_t size);

/* The sum that NERSC's format would have of `count` sites as ILDG stores them: of two rows, or
 * of all three. */
uint32_t limefile_gauge_nersc_sum(const void *sites, uint64_t count, unsigned precision,
                                  unsigned rows);

/* ---- numbers (links.c) --------------------------------------------------------------- */

/* Converts `count` numbers from `in` to `out`, which lie anywhere. */
typedef void limefile_reals_fn(void *out, const void *in, size_t count);

/* From real numbers of so many bits (32, 64) and that byte order to others. */
limefile_reals_fn *limefile_reals_kernel(unsigned from, bool from_little, unsigned to,
                                         bool to_little);

/* ---- what a file would be (image.c) -------------------------------------------------- */

/* Texts may be NULL; they are copied, in printable ASCII and as far as the format has room. */
#define LIMEFILE_GAUGE_TEXT_MAX 96 /* characters of ensemble_id, ensemble_label and creator */

struct limefile_gauge_form {
    enum limefile_gauge_format format;
    unsigned precision; /* 32, 64; 0: that of the sites, or of the format if it has one only */
    unsigned rows;      /* 2 or 3; 0: 3. Only NERSC has 2. */
    const char *ensemble_id, *ensemble_label, *creator, *date; /* NERSC; date: also MILC */
    bool has_sequence;
    uint64_t sequence;
    const char *lfn;  /* ILDG */
    const char *text; /* ILDG: kept in a record "TEXT_TYPE" before the configuration's */
    const char *text_type;
    bool unsummed; /* ILDG: without a checksum, so that it is sealed from the beginning */
};

/* Whether the format can have that lattice, however many bytes that is. */
bool limefile_gauge_holds(enum limefile_gauge_format, const uint64_t extent[4]);

struct limefile_gauge_image;

/* The sites must outlive it; they are not read yet. LIMEFILE_E_GAUGE_FORM: the format has no
 * such precision or rows; LIMEFILE_E_GAUGE_LATTICE: it cannot hold such a lattice. */
int limefile_gauge_image_new(const struct limefile_sites *, const struct limefile_gauge_form *,
                             struct limefile_gauge_image **out);
void limefile_gauge_image_free(struct limefile_gauge_image *);

/* Where the data are; this is known before it is sealed. */
uint64_t limefile_gauge_image_data_offset(const struct limefile_gauge_image *);
uint64_t limefile_gauge_image_data_bytes(const struct limefile_gauge_image *);

struct limefile_gauge_totals;

/* Puts checksums and plaquette into the header. LIMEFILE_E_GAUGE_NAN: they are NaN or
 * infinite; LIMEFILE_E_GAUGE_RANGE: no reader would accept them in this format. */
int limefile_gauge_image_seal(struct limefile_gauge_image *,
                              const struct limefile_gauge_totals *);

/* Of a sealed one: writes what is before and after the data; the bytes of all. */
int limefile_gauge_image_write_rest(const struct limefile_gauge_image *, int fd);
uint64_t limefile_gauge_image_size(const struct limefile_gauge_image *);

/* Up to n bytes at `offset`, as pread: fewer only at its end. Reads only the sites that it
 * needs; for openQCD a whole lot of neighbouring ones at best, so ask for 1 MiB or more at a
 * time if others follow. Fails as sites->read does, -ENOMEM, LIMEFILE_E_STATE: not sealed. */
ssize_t limefile_gauge_image_read(const struct limefile_gauge_image *, void *buf, size_t n,
                                  uint64_t offset);

/* The same with sites from another reader. */
ssize_t limefile_gauge_image_read_by(const struct limefile_gauge_image *,
                                     int (*read)(void *context, uint64_t first, uint64_t count,
                                                 void *out),
                                     void *context, void *buf, size_t n, uint64_t offset);
bool limefile_gauge_image_is_sealed(const struct limefile_gauge_image *);

/* ---- a file in another format as a container (image.c) ------------------------------- */

/* What a LIME container with this configuration would be: the header as a text record, of type
 * "nersc-header" and so on, ildg-format and ildg-binary-data. There is no checksum: nothing is
 * read but the header, and MILC's list of sites if there is one. */
struct limefile_gauge_guise;

/* Whether it is a file that has one, by its header, and by MILC's list of sites if that has at
 * most 2^20: 1, 0, or -errno if it could not be read. */
int limefile_gauge_has_guise(int fd);

/* fd is the caller's, who keeps it open. LIMEFILE_E_GAUGE_UNKNOWN if it is a file of another
 * kind, also if it is a container; _ORDER if only all its data tell the order of their bytes,
 * and _LIST if it has a list of more than 2^26 sites: whoever opens it holds up others. */
int limefile_gauge_guise_open(int fd, struct limefile_gauge_guise **out);
void limefile_gauge_guise_close(struct limefile_gauge_guise *); /* NULL: nothing happens */

/* The file as it is; it lives as long as the guise. */
const struct limefile_gauge *limefile_gauge_guise_file(const struct limefile_gauge_guise *);

/* Read only; bears several threads. Memory it takes, roughly. */
struct limefile_source *limefile_gauge_guise_source(struct limefile_gauge_guise *);
size_t limefile_gauge_guise_memory(const struct limefile_gauge_guise *);

/* ---- one pass over all sites (pass.c) ------------------------------------------------ */

struct limefile_gauge_totals {
    struct limefile_physics physics;   /* plaquettes are 0 if nobody wanted them */
    struct limefile_gauge_sums source; /* of what the source stores, in its format */
    struct limefile_gauge_sums image;  /* of what the image stores */
};

/* Memory for a pass that makes no image: what is read stays in the processors' caches. */
#define LIMEFILE_GAUGE_CHECK_BYTES ((size_t)48 << 20)

struct limefile_gauge_pass {
    const struct limefile_sites *sites;
    const struct limefile_gauge *source;      /* whose sums are taken; or NULL */
    const struct limefile_gauge_image *image; /* whose data are made and summed; or NULL */
    /* Gets the image's data, in pieces and any order, from several threads; or NULL. -errno */
    int (*write)(void *context, const void *data, size_t n, uint64_t offset);
    /* Called by one thread at a time; false: stop soon and fail with -EINTR. Or NULL. */
    bool (*progress)(void *context, uint64_t sites_more);
    void *context;
    bool without_plaquette; /* nobody wants it */
    unsigned threads;       /* 0: as many as there are processors */
    /* Bytes that it may take, roughly; 0: 512 MiB. Where that is too little for a few planes of
     * the lattice it takes more, up to 640 MiB. */
    size_t memory;
};

/* Reads each site once, but for those at the edges of what fits into memory. The figures have
 * the same bits for any number of threads, on any machine. -EINVAL: no such extents or
 * precision; -ENOMEM, also for a lattice of which no few planes fit into memory; -EINTR; what
 * the functions of the pass return. */
int limefile_gauge_run(const struct limefile_gauge_pass *, struct limefile_gauge_totals *out);

/* The plaquettes and link traces that the header states, ILDG: the container's records. Returns
 * how many there are. */
int limefile_gauge_stated(const struct limefile_gauge *,
                          struct limefile_physics_stated out[LIMEFILE_PHYSICS_STATED_MAX]);

/* Compares the data with all that the header states, as exactly as its figures are written
 * (limefile_physics_agrees()). Returns 0, or LIMEFILE_E_GAUGE_CHECKSUM, _PLAQUETTE or _TRACE;
 * text is the first difference then: "plaquette 0.58..., not 0.12... as in the header". */
#define LIMEFILE_GAUGE_DIFFERENCE_MAX 160
int limefile_gauge_compare(const struct limefile_gauge *, const struct limefile_gauge_totals *,
                           char text[LIMEFILE_GAUGE_DIFFERENCE_MAX]);

/* Returns why the header has nothing that the data can be compared with; NULL if it has a
 * checksum, a plaquette or a link trace. */
const char *limefile_gauge_why_unverified(const struct limefile_gauge *);

#endif
