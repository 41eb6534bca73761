/* gauge.h - internal declarations that the files of src/lime/formats share */
#ifndef LIMEFILE_GAUGE_H
#define LIMEFILE_GAUGE_H

#include "header_bytes.h"
#include "limegauge.h"

#include <string.h>

/* ---- links as bytes (link_convert.c) ---- */

/* The form in which a file stores a link. */
struct links_form {
    unsigned precision; /* 32, 64 */
    unsigned rows;      /* 2, 3 */
    bool little;
};

size_t links_bytes(const struct links_form *); /* bytes of one link */

/* Returns ILDG's form: three rows, big-endian. */
struct links_form links_ildg(unsigned precision);

/* Converts `count` links from one form to another. Computes a third row that `in` lacks. */
void links_convert(const struct links_form *from, const void *in, const struct links_form *to,
                   void *out, size_t count);

/* Converts one link in ILDG's form to doubles of this machine. */
void links_reals(const void *in, unsigned precision, double out[LIMEFILE_LINK_REALS]);

/* Returns the sum (modulo 2^32) of 32-bit words; little: the words are little-endian. */
uint32_t links_sum(const void *data, size_t words, bool little);

/* Adds 32-bit words to both sums of MILC. k: number of the first word in the data, from 0. */
void links_xor(const void *data, size_t words, bool little, uint64_t k, uint32_t *sum29,
               uint32_t *sum31);

/* ---- an open file -------------------------------------------------------------------- */

enum {
    GAUGE_HEAD_BYTES = 256,   /* bytes at the start of a file that determine its format */
    GAUGE_LIST_MAX = 1 << 26, /* sites in the longest list that GAUGE_LISTED reads: 256 MiB */
    GAUGE_SCAN_MAX = 1 << 20, /* sites in the longest list that GAUGE_HEADER reads: 4 MiB */
};

/* How much of a file gauge_open_depth() reads. The list is MILC's list of sites. */
enum gauge_depth {
    GAUGE_ALL,    /* header and list; all data if only these determine their byte order */
    GAUGE_LISTED, /* header and list; fails if the list has more than GAUGE_LIST_MAX sites */
    GAUGE_HEADER, /* the same, but does not read a list of more than GAUGE_SCAN_MAX sites; the
                     caller then must not read the sites of the file */
};

struct limefile_gauge_private {
    struct limefile_source *source;
    enum gauge_depth depth;
    char *why;                    /* LIMEFILE_GAUGE_WHY_MAX bytes for gauge_fail(); or NULL */
    struct links_form form;       /* of the links in the file */
    struct limefile_index *index; /* of a container, or NULL */
    struct limefile_physics_stated stated[LIMEFILE_PHYSICS_STATED_MAX]; /* ILDG */
    int stated_count;
    uint32_t *position; /* MILC with a list: each site's position in the file */
};

struct limefile_gauge_image {
    struct limefile_sites sites;
    enum limefile_gauge_format format;
    struct links_form form; /* of the stored links */
    bool sealed;
    uint64_t data_bytes;
    unsigned char *header, *trailer;
    size_t header_bytes, trailer_bytes;
    struct limefile_gauge_options options; /* its strings, except text_type, are in `texts` */
    char *texts[6];
};

/* ---- formats ------------------------------------------------------------------------- */

struct gauge_format {
    const char *name;

    /* Returns true if a file of `size` bytes with these first n bytes is in this format. */
    bool (*matches)(const unsigned char *head, size_t n, uint64_t size);

    /* Fills in an object that is zero except for `source`, `depth` and `why` in priv. `head`
     * has the file's first GAUGE_HEAD_BYTES bytes, with zeros after the end of the file. */
    int (*open)(struct limefile_gauge *, const unsigned char *head, uint64_t size);

    /* Builds the header and (only ILDG) the trailer. totals NULL: builds only a header of the
     * final length, whose values do not matter. Returns 0 or -ENOMEM. */
    int (*make_header)(struct limefile_gauge_image *, const struct limefile_gauge_totals *);

    /* The lattices and links that can be written: */
    unsigned precision; /* the only precision; 0: both */
    unsigned rows_min;  /* 2: two or three rows of a link; 3: only three */
    uint64_t extent_max;
    bool requires_even; /* extents must be even */
};

/* Each format is defined in its own file. */
extern const struct gauge_format gauge_ildg, gauge_nersc, gauge_milc, gauge_openqcd;

/* gauge.c */
const struct gauge_format *gauge_find_format(enum limefile_gauge_format); /* NULL for NONE */

/* ildg.c: opens a container's configuration, or a field. */
int gauge_ildg_open(struct limefile_gauge *, uint64_t ordinal);
int gauge_field_open(struct limefile_gauge *, const struct limefile_field *);

/* Works like limefile_gauge_open(), but may read less. Only GAUGE_ALL opens containers. */
int gauge_open_depth(struct limefile_source *, uint64_t ordinal, enum gauge_depth,
                     struct limefile_gauge **out, char *why);

/* ---- functions for the formats (gauge_common.c) ------------------------------------------ */

/* Writes the reason into priv->why unless that is NULL. Returns the code. */
int gauge_fail(const struct limefile_gauge *, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns 0, or LIMEFILE_E_GAUGE_LENGTH if `size` is not the length of header and data. */
int gauge_check_size(const struct limefile_gauge *, uint64_t size);

/* Returns the product of the extents, or 0 if the product has more than 55 bits. */
uint64_t gauge_count_sites(const uint64_t extent[4]);

/* Returns the bytes of the lattice's links in this form; 0: too many. */
uint64_t gauge_data_bytes(const uint64_t extent[4], const struct links_form *);

/* The `read` of limefile_sites for a struct limefile_gauge whose file has ILDG's site order. */
int gauge_read_plain(void *gauge, uint64_t first, uint64_t count, void *out);

/* Sets the image's header to n zeros and returns it; NULL: out of memory. */
unsigned char *gauge_make_header(struct limefile_gauge_image *, size_t n);

static inline void put_le32(unsigned char *at, uint64_t value)
{
    put_be32(at, __builtin_bswap32((uint32_t)value));
}

static inline uint32_t get_le32(const unsigned char *at)
{
    return __builtin_bswap32(get_be32(at));
}

/* ---- sums (gauge.c) ------------------------------------------------------------------ */

/* Adds `count` sites, given in ILDG's form, to the checksum of the file's own format. */
void gauge_add_source(const struct limefile_gauge *, const void *sites, uint64_t first,
                      uint64_t count, struct limefile_gauge_sums *);

/* Adds n bytes of an image's data, whole sites at `offset` in the data, to the sums. */
void gauge_add_image(const struct limefile_gauge_image *, const void *data, size_t n,
                     uint64_t offset, struct limefile_gauge_sums *);

/* Adds `other`, the sums that another thread has computed from other sites. */
void gauge_merge_sums(struct limefile_gauge_sums *, const struct limefile_gauge_sums *other);

/* ---- images (gauge_image.c) ---- */

/* Converts `count` sites from ILDG's form to the image's. Not for openQCD. */
void image_encode(const struct limefile_gauge_image *, const void *sites, uint64_t count,
                  void *out);
size_t image_site_bytes(const struct limefile_gauge_image *);

/* ---- openQCD's order: the eight links around each odd point (openqcd.c) -------------- */

enum {
    OPENQCD_POINT_BYTES = 8 * LIMEFILE_LINK_REALS * 8,
};

/* A box of sites in a periodic lattice. */
struct openqcd_box {
    uint64_t base[3], width[3]; /* x, y, z; width <= extent; the box may wrap around */
};

/* Sites in memory, in ILDG's form. */
struct openqcd_sites {
    const unsigned char *at;
    struct openqcd_box box;
};

/* Encodes the file's points [first, first + count), which must all be at one time t. `now` has
 * the sites at t that the points need, `before` those at t - 1. precision: of the sites. */
void openqcd_encode(const uint64_t extent[4], unsigned precision,
                    const struct openqcd_sites *now, const struct openqcd_sites *before,
                    uint64_t first, uint64_t count, unsigned char *out);

/* Reads the sites that points need, and encodes the points, which may be at several times. */
int openqcd_encode_from(const struct limefile_sites *, uint64_t first, uint64_t count,
                        unsigned char *out);

#endif
