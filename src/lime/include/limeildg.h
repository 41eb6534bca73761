/*
 * limeildg.h - what the records of a container mean: ILDG, SciDAC (QIO) and ETMC metadata, the
 * fields that they describe, and the SciDAC checksum of a field.
 *
 * Sources: ILDG file format 1.x (record types ildg-*), USQCD/QIO file format (scidac-*),
 * tmLQCD (etmc-*, xlf-info); docs/format.md has the facts. Results are as in limefile.h.
 * Nothing here prints or has global state. XML is read by expat, within limits: what exceeds
 * them is LIMEFILE_E_XML, as is what is not well-formed and what declares entities.
 */
#ifndef LIMEILDG_H
#define LIMEILDG_H

#include "limefile.h"

#define LIMEFILE_XML_BYTES_MAX (1 << 20) /* the longest metadata record that is read */
#define LIMEFILE_DIMS_MAX      8
#define LIMEFILE_WORD_MAX      64   /* of a field's or datum's name, with the NUL */
#define LIMEFILE_LFN_MAX       1024 /* of a logical file name, with the NUL */

/* ---- one record's XML (ildgxml.c) --------------------------------------------------- */

/*
 * All take the record's data as they stand: NULs and white space at both ends are no part of
 * the XML; names of elements are compared without their namespace. LIMEFILE_E_XML: it
 * cannot be parsed; LIMEFILE_E_XML_VALUE: an element that must be there is not, or says
 * nothing that makes sense (a lattice of no sites, a precision of 65 bits). A number that need
 * not be there and cannot be read counts as missing; `ignored` is the name of the first such
 * element, or NULL.
 */

/* A lattice; the extents in sites, x first, t last. Their product fits 63 bits. */
struct limefile_lattice {
    unsigned dims; /* 1..LIMEFILE_DIMS_MAX; 0: not known */
    uint64_t extent[LIMEFILE_DIMS_MAX];
};
uint64_t limefile_lattice_sites(const struct limefile_lattice *);

/* <ildgFormat>, <etmcFormat> (etmc-propagator-format), <etmcSourceFormat> */
struct limefile_ildg {
    char version[16];              /* "" where there is none (etmc) */
    char field[LIMEFILE_WORD_MAX]; /* "su3gauge", "diracFermion" */
    unsigned precision;            /* 32 or 64: bits of a real number */
    unsigned flavours;             /* 1 unless it says otherwise */
    uint64_t components;           /* cvc, stag: complex numbers of a site; else 0 */
    struct limefile_lattice lattice;
    const char *ignored;
};
int limefile_ildg_parse(const void *xml, size_t n, struct limefile_ildg *out);

/* What the name of a gauge field says (field.c); in any case of letters. */
enum limefile_group {
    LIMEFILE_GROUP_NONE,
    LIMEFILE_GROUP_SU,       /* su3gauge, su2gauge .. su9999gauge */
    LIMEFILE_GROUP_SO,       /* so3gauge */
    LIMEFILE_GROUP_SP,       /* sp4gauge: even numbers from 4 on */
    LIMEFILE_GROUP_U,        /* u1gauge */
    LIMEFILE_GROUP_U1_PHASE, /* u1phase */
};
struct limefile_gaugename {
    enum limefile_group group;
    unsigned n;   /* of SU(n), SO(n), Sp(n), U(n) */
    bool variant; /* su3gauge#a1, so4gauge_b: a suffix to SU or SO of one digit */
};
/* False if ILDG has no gauge field of that name. */
bool limefile_gaugename_parse(const char *field, struct limefile_gaugename *out);

/* <cvcFormat>: cvc-contraction-format, cvc_contraction-format. Its type is the field; without
 * a number of components it is a spinor. Text may stand behind it. */
int limefile_cvc_parse(const void *xml, size_t n, struct limefile_ildg *out);

/* <scidacFile>: scidac-private-file-xml */
struct limefile_scidac_file {
    struct limefile_lattice lattice;
    unsigned volfmt; /* 0: one file; others: a part of a lattice */
    const char *ignored;
};
int limefile_scidac_file_parse(const void *xml, size_t n, struct limefile_scidac_file *out);

/* <scidacRecord>: scidac-private-record-xml. A site has typesize * datacount bytes. */
enum limefile_recordtype {
    LIMEFILE_FIELD = 0,     /* all sites */
    LIMEFILE_GLOBAL = 1,    /* one datum for the whole lattice */
    LIMEFILE_HYPERCUBE = 2, /* the sites of a box, both corners included */
};
struct limefile_scidac_record {
    enum limefile_recordtype recordtype;
    char datatype[LIMEFILE_WORD_MAX]; /* "QDP_F3_ColorMatrix"; "" if none */
    char date[LIMEFILE_WORD_MAX];
    unsigned precision;     /* 32, 64; 0: not said, or not of real numbers */
    unsigned colors, spins; /* 0: not said */
    uint64_t typesize, datacount;
    unsigned box_dims; /* HYPERCUBE */
    uint64_t lower[LIMEFILE_DIMS_MAX], upper[LIMEFILE_DIMS_MAX];
    const char *ignored;
};
int limefile_scidac_record_parse(const void *xml, size_t n, struct limefile_scidac_record *out);

/* <FieldMetaData>: grid-format. The lattice of the message's field. */
int limefile_grid_parse(const void *xml, size_t n, struct limefile_lattice *out);

/* <scidacChecksum>. Leading zeros may be missing, "0x" may be there. */
int limefile_checksum_parse(const void *xml, size_t n, struct limefile_checksum *out);

/* The data of a scidac-checksum record, as QIO writes it but without the NUL; returns their
 * length. */
#define LIMEFILE_CHECKSUM_XML_MAX 192
size_t limefile_checksum_xml(const struct limefile_checksum *,
                             char out[LIMEFILE_CHECKSUM_XML_MAX]);

/* The logical file name of an ildg-data-lfn record: without NULs, white space and line ends
 * around it; LIMEFILE_E_XML_VALUE if empty, too long or with control characters in it. */
int limefile_lfn_parse(const void *data, size_t n, char out[LIMEFILE_LFN_MAX]);

/* Reads a record and parses it as such. 1; 0: it is not a logical file name; < 0: an error. */
int limefile_record_lfn(struct limefile_source *, const struct limefile_record *,
                        char lfn[LIMEFILE_LFN_MAX]);

/* True of a record of ildg-binary-data or scidac-binary-data. (fields.c) */
bool limefile_record_is_data(const struct limefile_record *);

/* ---- the fields of a container (fields.c) ------------------------------------------- */

/* What a binary record is said to be. */
enum limefile_fieldkind {
    LIMEFILE_KIND_UNKNOWN,    /* nothing describes it */
    LIMEFILE_KIND_GAUGE,      /* ildg-binary-data with an ildg-format, its field a gauge one; or
                                 four square colour matrices a site by a private record */
    LIMEFILE_KIND_PROPAGATOR, /* scidac-binary-data with an etmc- or quda-propagator-format */
    LIMEFILE_KIND_SOURCE,     /* the same with an etmc-source-format */
    LIMEFILE_KIND_SCIDAC, /* another field with a scidac-private-record-xml alone, with cvc's
                             format, or with an ildg-format of something else */
    LIMEFILE_KIND_GLOBAL, /* the same, of recordtype 1: no lattice */
};

/* One record of type ildg-binary-data or scidac-binary-data, and all that is known of it.
 * Ordinals of records that say it are 0 where there is no such record. */
struct limefile_field {
    struct limefile_record record; /* its type is as long-lived as the index */
    enum limefile_fieldkind kind;
    char name[LIMEFILE_WORD_MAX]; /* "su3gauge", "diracFermion", "QDP_F3_ColorMatrix"; or "" */
    unsigned precision;           /* 32, 64; 0: not known */
    struct limefile_lattice lattice; /* of the whole; dims 0: not known */
    bool halved; /* every second site of it (Grid): the ranks are those of this hypercube */
    bool boxed;  /* a hypercube of it only: */
    uint64_t lower[LIMEFILE_DIMS_MAX], upper[LIMEFILE_DIMS_MAX]; /* of each dimension of it */
    uint64_t sites;         /* in the record; 0: not known */
    uint64_t site_bytes;    /* 0: not known */
    uint64_t expected;      /* data length by lattice and precision; 0: not known */
    uint64_t datacount;     /* equal data of a site, by the private record; 0: not known */
    unsigned colors, spins; /* by the private record; 0: not stated */
    bool disputed;          /* another description gives a site another size */
    uint64_t by_format, by_record; /* ildg/etmc format, private record */
    uint64_t by_file;              /* private file XML, grid-format */
    uint64_t by_checksum, by_lfn;
    bool has_checksum; /* `checksum` is what the record by_checksum says */
    struct limefile_checksum checksum;
};

/* False: the record's length contradicts its description (LIMEFILE_D_FIELD_LENGTH). */
bool limefile_field_fits(const struct limefile_field *);

/* True if sites and site_bytes are known and agree with the record's length, so that a sum can
 * be taken. */
bool limefile_field_is_summable(const struct limefile_field *);

/* ---- what a site of a field holds (siteshape.c) ---- */

#define LIMEFILE_SITE_DIMS_MAX 5

/* The array that one site is, row-major: four links are (4, 3, 3), a spinor is (4, 3). */
struct limefile_siteshape {
    unsigned dims; /* 0: a single number */
    uint64_t extent[LIMEFILE_SITE_DIMS_MAX];
    const char *name[LIMEFILE_SITE_DIMS_MAX]; /* "mu", "a", "b", "spin", "colour"; all differ */
    unsigned precision;                       /* bits of a real number; 0: they are bytes */
    bool complex;                             /* a number is two real ones */
    bool known; /* false: only the number of real numbers, or of bytes, is known */
};
void limefile_siteshape_of(const struct limefile_field *, struct limefile_siteshape *out);

/* True if the site is four square colour matrices. */
bool limefile_siteshape_is_links(const struct limefile_siteshape *);

/* The precision in a datatype as "QDP_F3_ColorMatrix": 32 or 64; 0: it has none. */
unsigned limefile_datatype_precision(const char *datatype);

/* False if the datatype has a prefix, as "QDP_", that is not in the list of docs/format.md. */
bool limefile_datatype_is_known(const char *datatype);

/* ---- whether data can be compared with a checksum ---- */

/*
 * Whether the data can be compared with their checksum (proof.c). Where the length contradicts
 * the description, they may be as many sites of that size as there are, or all sites of another
 * size: the sum tells. Not so if descriptions contradict each other, too, or of a hypercube.
 */

/* The i-th way to read the data, with sites and site_bytes that make up the length; there are
 * two at most. False: there is no such way. */
bool limefile_field_reading(const struct limefile_field *, unsigned i,
                            struct limefile_field *out);

/* Whether that is the checksum in the file. */
bool limefile_field_matches(const struct limefile_field *, const struct limefile_checksum *);

/* Why the data are wrong whatever their sum, in words; NULL if that is not known. */
const char *limefile_field_why_bad(const struct limefile_field *);

/* Why the data cannot be compared with a checksum, in words; NULL if they can, or are wrong
 * whatever their sum. */
const char *limefile_field_why_unverified(const struct limefile_field *);

/*
 * Which records belong together: a format and a private record describe the next binary record
 * of their message; a checksum belongs to the binary record before it in its message, or else
 * to the one behind (each does so if one stands right before each of the message's); an LFN to
 * the ildg-binary-data beside it. A message ends here where both flags say so: where they
 * contradict each other it is what is nearest. So it is where a message has no binary record:
 * an ildg-format then describes that of a later message (format-late), and so does a private
 * record; a checksum is of the last one before, if that has none. tmLQCD puts its etmc formats
 * into another message than the data: they describe the next scidac-binary-data, and all that
 * follow and are as long (one for each flavour). A private file XML holds for all that follows,
 * up to the next; a grid-format in the message of a field with a private record is nearer.
 *
 * Reads the metadata records only, each once. What is known takes 40 bytes for each field and
 * what describes it, once for neighbours that are described alike, and 16 for each deviation: a
 * container may have a million of either. The index must outlive it. -errno or
 * LIMEFILE_E_SHRUNK if reading fails.
 */
struct limefile_fields {
    size_t count;
    char lfn[LIMEFILE_LFN_MAX]; /* the first; "" if none */
    uint64_t by_lfn;            /* ordinal of the record that says it, or 0 */
    bool described; /* some record is ILDG or SciDAC metadata: it is no plain LIME container */
    struct limefile_fields_kept *kept; /* the library's own */
};
int limefile_fields_build(struct limefile_source *, const struct limefile_index *,
                          struct limefile_fields *out);
void limefile_fields_release(struct limefile_fields *);

/* The i-th field, counted from 0 in the order of the file. */
void limefile_fields_get(const struct limefile_fields *, size_t i, struct limefile_field *out);

/* The field whose binary record has that ordinal; false if there is none. */
bool limefile_fields_of(const struct limefile_fields *, uint64_t ordinal,
                        struct limefile_field *out);

/* The i-th deviation (LIMEFILE_D_XML and those after it), counted from 0 in the order of the
 * file; false if there are not so many. */
bool limefile_fields_finding(const struct limefile_fields *, size_t i,
                             struct limefile_finding *out);

/* What only the strict mind of the i-th field: that it has no checksum, or no description. How
 * many findings these are. */
unsigned limefile_fields_demand(const struct limefile_fields *, size_t i,
                                struct limefile_finding out[2]);

/* ---- the sum of a field by all processors (sum.c) ----------------------------------- */

/* Adds the sites [first, first + sites) of the record to the sum; data: their bytes, whole
 * sites. A hypercube's sites count by their rank in the whole lattice, as QIO does it. Sums of
 * disjoint parts combine by XOR. */
void limefile_field_add(const struct limefile_field *, struct limefile_checksum *,
                        const void *data, uint64_t first, uint64_t sites);

/* The sum of the whole record, read from fd by `threads` threads (0: as many as there are
 * processors), around the page cache where it is not in memory. progress may be NULL; it is
 * called by one thread at a time, while others go on; false: stop soon, and fail with -EINTR.
 * LIMEFILE_E_STATE if the field is not summable, LIMEFILE_E_SHRUNK, -errno. */
typedef bool limefile_sum_progress_fn(void *context, uint64_t bytes_more);
int limefile_field_sum(int fd, const struct limefile_field *, unsigned threads,
                       limefile_sum_progress_fn *progress, void *context,
                       struct limefile_checksum *out);

/* The same from a source, which several threads read at once. */
int limefile_field_sum_source(struct limefile_source *, const struct limefile_field *,
                              unsigned threads, limefile_sum_progress_fn *, void *context,
                              struct limefile_checksum *);

/* What cksum(1) would print of the data of a record, in the same way. LIMEFILE_E_SHRUNK,
 * -EINTR, -errno. */
int limefile_record_cksum(struct limefile_source *, const struct limefile_record *,
                          unsigned threads, limefile_sum_progress_fn *progress, void *context,
                          uint32_t *out);

/* Compares the record with its checksum, in each way that it can be read, until one is right:
 * 1, and `as` is that way; 0: none is, and `as` is the first. *out: the sum. LIMEFILE_E_STATE
 * if there is no way; else as limefile_field_sum(). */
int limefile_field_verify(int fd, const struct limefile_field *, unsigned threads,
                          limefile_sum_progress_fn *progress, void *context,
                          struct limefile_field *as, struct limefile_checksum *out);

#endif
