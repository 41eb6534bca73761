/* gauge.h - what the files of this room share; inside of src/lime/formats */
#ifndef LIMEFILE_GAUGE_H
#define LIMEFILE_GAUGE_H

#include "limegauge.h"
#include "links.h"

enum {
    GAUGE_HEAD_BYTES = 256,   /* of a file that tell what it is, or fewer at its end */
    GAUGE_MILC_MAGIC = 20103, /* 0x4e87 */
    GAUGE_MILC_HEADER = 88,   /* before the list of sites or the sums */
    GAUGE_MILC_DATE = 64,     /* bytes of the time stamp in it */
    GAUGE_MILC_DATE_AT = 20,
    GAUGE_OPENQCD_HEADER = 24,
    GAUGE_OPENQCD_EXTENT_MAX = 65536,
    GAUGE_SITE_BITS = 55,
    GAUGE_LIST_MAX = 1 << 26, /* sites in a MILC list, of a guise: 256 MiB; */
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
    struct limefile_sites_field field;                                  /* the same */
    struct limefile_physics_stated stated[LIMEFILE_PHYSICS_STATED_MAX]; /* by its records */
    int stated_count;
    uint32_t *place; /* MILC with a list: where in the file each site is */
};

/* limefile_gauge_open() of a file in a format other than LIME, to that depth. */
int gauge_open_guise(struct limefile_source *, enum gauge_depth, struct limefile_gauge **out);

/* Each gets a zeroed object that has kept->source and its depth, and fills in the rest. */
int gauge_nersc_open(struct limefile_gauge *, uint64_t size);
int gauge_milc_open(struct limefile_gauge *, const unsigned char *head, uint64_t size);
int gauge_openqcd_open(struct limefile_gauge *, const unsigned char *head, uint64_t size);
int gauge_ildg_open(struct limefile_gauge *, uint64_t ordinal);
int gauge_field_open(struct limefile_gauge *, const struct limefile_field *);

/* Writes the reason into kept->why, if the caller wants it. Returns the code. */
int gauge_refuse(const struct limefile_gauge *, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* LIMEFILE_E_GAUGE_LENGTH: the file has another size than header and data together. */
int gauge_check_size(const struct limefile_gauge *, uint64_t size);

/* True if the first 24 bytes can be openQCD's in a file of that size. */
bool gauge_is_openqcd(const unsigned char *head, uint64_t size);

/* True if a file of openQCD that has another length, or no plaquette, begins with these bytes.
 */
bool gauge_is_damaged_openqcd(const unsigned char *head, size_t n, uint64_t size);

/* The product of the extents; 0: it is zero, or does not fit. */
uint64_t gauge_count_sites(const uint64_t extent[4]);

/* `sites` links times 4 in this form; 0: it does not fit. */
uint64_t gauge_data_bytes(const uint64_t extent[4], const struct links_form *);

/* Reads all n bytes: LIMEFILE_E_SHRUNK at the end. */
int gauge_read(struct limefile_source *, void *buf, size_t n, uint64_t offset);

/* Sites that stand in the file in ILDG's order, in kept->form. */
int gauge_read_plain(void *gauge, uint64_t first, uint64_t count, void *out);

/* The sums of `count` sites as the file stores them, out of their ILDG form. */
void gauge_sum(const struct limefile_gauge *, const void *sites, uint64_t first, uint64_t count,
               struct limefile_gauge_sums *);

/* Adds sums that another thread has taken of other sites. */
void gauge_merge_sums(struct limefile_gauge_sums *, const struct limefile_gauge_sums *other);

#endif
