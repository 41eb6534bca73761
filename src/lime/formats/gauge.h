/* gauge.h - what the files of this directory share; inside of src/lime/formats */
#ifndef LIMEFILE_GAUGE_H
#define LIMEFILE_GAUGE_H

#include "bytes.h"
#include "limegauge.h"

#include <string.h>

/* ---- links as bytes (links.c) -------------------------------------------------------- */

/* How a file stores a link. */
struct links_form {
    unsigned precision; /* 32, 64 */
    unsigned rows;      /* 2, 3 */
    bool little;
};

size_t links_bytes(const struct links_form *); /* of one link */

/* As ILDG has them: three rows, big-endian. */
struct links_form links_ildg(unsigned precision);

/* Converts `count` links from one form to another. Three rows out of two: the third is
 * computed. */
void links_convert(const struct links_form *from, const void *in, const struct links_form *to,
                   void *out, size_t count);

/* Converts one link, big-endian of that precision, to this machine's numbers. */
void links_reals(const void *in, unsigned precision, double out[LIMEFILE_LINK_REALS]);

/* The sum of n words of 32 bits. */
uint32_t links_sum(const void *data, size_t words, bool little);

/* Adds n words, the first of which is the k-th of the data, to both sums of MILC. */
void links_xor(const void *data, size_t words, bool little, uint64_t k, uint32_t *sum29,
               uint32_t *sum31);

/* ---- an opened file ------------------------------------------------------------------ */

enum {
    GAUGE_HEAD_BYTES = 256,   /* of a file that tell what it is, or fewer at its end */
    GAUGE_LIST_MAX = 1 << 26, /* sites in a MILC list, of an adapter: 256 MiB; */
    GAUGE_LOOK_MAX = 1 << 20, /* of one that is read to look a name up: 4 MiB */
};

/* How much of a file is read to open it. */
enum gauge_depth {
    GAUGE_ALL,    /* its data, too, if nothing else tells their order of bytes */
    GAUGE_LISTED, /* its header, and a list of at most GAUGE_LIST_MAX sites */
    GAUGE_HEADER, /* its header, and a list of at most GAUGE_LOOK_MAX sites: whether it is such
                   * a file; if its list is longer, sites cannot be read */
};

struct limefile_gauge_kept {
    struct limefile_source *source;
    enum gauge_depth depth;
    char *why; /* LIMEFILE_GAUGE_WHY_MAX bytes for gauge_refuse(); or NULL */
    struct links_form form;
    struct limefile_index *index;                                       /* of a container */
    struct limefile_physics_stated stated[LIMEFILE_PHYSICS_STATED_MAX]; /* by its records */
    int stated_count;
    uint32_t *place; /* MILC with a list: where in the file each site is */
};

struct limefile_gauge_image {
    struct limefile_sites sites;
    enum limefile_gauge_format format;
    struct links_form form; /* of the links that it stores */
    bool sealed;
    uint64_t data_bytes;
    unsigned char *header, *trailer;
    size_t header_bytes, trailer_bytes;
    struct limefile_gauge_form asked; /* its texts are copies, in `texts` */
    char *texts[6];
};

/* ---- formats ------------------------------------------------------------------------- */

struct gauge_format {
    const char *name;

    /* Whether a file of `size` bytes that begins with these n bytes is of this format. */
    bool (*matches)(const unsigned char *head, size_t n, uint64_t size);

    /* Gets a zeroed object that has kept->source and its depth, and fills in the rest. `head`
     * has GAUGE_HEAD_BYTES, with zeros behind the end of the file. */
    int (*open)(struct limefile_gauge *, const unsigned char *head, uint64_t size);

    /* Fills in header and trailer; totals NULL: their lengths count only. The header's length
     * must not depend on the totals. -ENOMEM */
    int (*make_header)(struct limefile_gauge_image *, const struct limefile_gauge_totals *);

    /* Of files that are made: */
    unsigned precision;  /* the only one; 0: both */
    unsigned rows_least; /* 2: both */
    uint64_t extent_most;
    bool even; /* extents */
};

extern const struct gauge_format gauge_ildg, gauge_nersc, gauge_milc, gauge_openqcd; /* each in
                                                                            a file of its own */

/* gauge.c */
const struct gauge_format *gauge_format_of(enum limefile_gauge_format); /* NULL: of NONE */

/* ildg.c: opens the configuration of a container, and a field. */
int gauge_ildg_open(struct limefile_gauge *, uint64_t ordinal);
int gauge_field_open(struct limefile_gauge *, const struct limefile_field *);

/* limefile_gauge_open() to that depth: less than GAUGE_ALL opens formats other than LIME. */
int gauge_open_to(struct limefile_source *, uint64_t ordinal, enum gauge_depth,
                  struct limefile_gauge **out, char *why);

/* ---- what formats use (gaugefile.c) -------------------------------------------------- */

/* Writes the reason into kept->why, if the caller wants it. Returns the code. */
int gauge_refuse(const struct limefile_gauge *, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* LIMEFILE_E_GAUGE_LENGTH: the file has another size than header and data together. */
int gauge_check_size(const struct limefile_gauge *, uint64_t size);

/* The product of the extents; 0: it is zero, or does not fit. */
uint64_t gauge_count_sites(const uint64_t extent[4]);

/* `sites` links times 4 in this form; 0: it does not fit. */
uint64_t gauge_data_bytes(const uint64_t extent[4], const struct links_form *);

/* Reads sites that stand in the file in ILDG's order, in kept->form. */
int gauge_read_plain(void *gauge, uint64_t first, uint64_t count, void *out);

/* Makes n zeros the image's header (again); NULL: no memory. */
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

/* Adds the sums of `count` sites as the file stores them, out of their ILDG form. */
void gauge_add_source(const struct limefile_gauge *, const void *sites, uint64_t first,
                      uint64_t count, struct limefile_gauge_sums *);

/* Adds the sums of n bytes of an image's data, which begin at `offset` with a whole site. */
void gauge_add_image(const struct limefile_gauge_image *, const void *data, size_t n,
                     uint64_t offset, struct limefile_gauge_sums *);

/* Adds sums that another thread has taken of other sites. */
void gauge_merge_sums(struct limefile_gauge_sums *, const struct limefile_gauge_sums *other);

/* ---- images (image.c) ---------------------------------------------------------------- */

/* `count` sites as the image stores them, out of their ILDG form. Not for openQCD. */
void image_encode(const struct limefile_gauge_image *, const void *sites, uint64_t count,
                  void *out);
size_t image_site_bytes(const struct limefile_gauge_image *);

/* ---- openQCD's order: of each odd point the eight links around it (openqcd.c) -------- */

enum {
    OPENQCD_POINT_BYTES = 8 * LIMEFILE_LINK_REALS * 8,
};

/* A box of sites, periodic. */
struct openqcd_box {
    uint64_t base[3], width[3]; /* x, y, z: widths at most the extent; it may wrap around */
};

/* Sites as ILDG stores them, in memory. */
struct openqcd_sites {
    const unsigned char *at;
    struct openqcd_box box;
};

/* Encodes the points [first, first + count) of the file, in its order, all at one time; `now`
 * and `before` have what they need at that time, and below it. */
void openqcd_encode(const uint64_t extent[4], unsigned precision,
                    const struct openqcd_sites *now, const struct openqcd_sites *before,
                    uint64_t first, uint64_t count, unsigned char *out);

/* The same; the sites that it needs are read. */
int openqcd_make(const struct limefile_sites *, uint64_t first, uint64_t count,
                 unsigned char *out);

#endif
