/*
 * limeildg.h - interpret the records of a container: ILDG, SciDAC (QIO) and ETMC metadata, the
 * fields that they describe, and the SciDAC checksum of a field.
 *
 * Sources: ILDG file format 1.x (record types ildg-*), USQCD/QIO file format (scidac-*), tmLQCD
 * (etmc-*, xlf-info); docs/format.md has the facts. Results are as in limefile.h. No function
 * prints or has global state. expat parses the XML: a document that exceeds the limits below,
 * is not well-formed or declares entities gives LIMEFILE_E_XML.
 */
#ifndef LIMEILDG_H
#define LIMEILDG_H

#include "limefile.h"

#define LIMEFILE_XML_BYTES_MAX (1 << 20) /* longest metadata record that is read */
#define LIMEFILE_DIMS_MAX      8
#define LIMEFILE_WORD_MAX      64   /* bytes of a field's or datum's name, with the NUL */
#define LIMEFILE_LFN_MAX       1024 /* bytes of a logical file name, with the NUL */

/* ---- the XML of one record (ildgxml.c) ---------------------------------------------- */

/* These functions accept a record's data as stored, and skip NULs and white space at both ends.
 * Names of elements are compared without their namespace. LIMEFILE_E_XML: the XML cannot be
 * parsed. LIMEFILE_E_XML_VALUE: a required element is missing or has an invalid value (a
 * lattice without sites, a precision of 65 bits). An optional number that cannot be read counts
 * as missing; `ignored` is the name of the first element with such a number, or NULL. */

/* A lattice. The extents are in sites, x first, t last; their product fits 63 bits. */
struct limefile_lattice {
    unsigned dims; /* 1..LIMEFILE_DIMS_MAX; 0: unknown */
    uint64_t extent[LIMEFILE_DIMS_MAX];
};
uint64_t limefile_lattice_sites(const struct limefile_lattice *);

/* <ildgFormat>, <etmcFormat> (etmc-propagator-format), <etmcSourceFormat> */
struct limefile_ildg {
    char version[16];              /* "" if missing (etmc) */
    char field[LIMEFILE_WORD_MAX]; /* "su3gauge", "diracFermion" */
    unsigned precision;            /* bits of a real number: 32 or 64 */
    unsigned flavours;             /* 1 if not stated */
    uint64_t components;           /* complex numbers of a site (cvc, stag); otherwise 0 */
    struct limefile_lattice lattice;
    const char *ignored;
};
int limefile_ildg_parse(const void *xml, size_t n, struct limefile_ildg *out);

/* The gauge group that a field's name states, in upper or lower case (field.c). */
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
    unsigned n;   /* N of SU(N), SO(N), Sp(N), U(N) */
    bool variant; /* true for su3gauge#a1, so4gauge_b: SU or SO of one digit with a suffix */
};
/* Returns false if ILDG has no gauge field with this name. */
bool limefile_gaugename_parse(const char *field, struct limefile_gaugename *out);

/* <cvcFormat>: cvc-contraction-format, cvc_contraction-format. The element <type> becomes
 * `field`. Without <components>, a site is a spinor. Text after the document is ignored. */
int limefile_cvc_parse(const void *xml, size_t n, struct limefile_ildg *out);

/* <scidacFile>: scidac-private-file-xml, called private file XML here */
struct limefile_scidac_file {
    struct limefile_lattice lattice;
    unsigned volfmt; /* 0: one file; otherwise the file has a part of the lattice */
    const char *ignored;
};
int limefile_scidac_file_parse(const void *xml, size_t n, struct limefile_scidac_file *out);

/* <scidacRecord>: scidac-private-record-xml, called private record here. A site has typesize *
 * datacount bytes. */
enum limefile_recordtype {
    LIMEFILE_FIELD = 0,     /* all sites */
    LIMEFILE_GLOBAL = 1,    /* one datum for the whole lattice */
    LIMEFILE_HYPERCUBE = 2, /* the sites of a box, both corners included */
};
struct limefile_scidac_record {
    enum limefile_recordtype recordtype;
    char datatype[LIMEFILE_WORD_MAX]; /* "QDP_F3_ColorMatrix"; "" if missing */
    char date[LIMEFILE_WORD_MAX];
    unsigned precision;     /* 32 or 64; 0: not stated, or not real numbers */
    unsigned colors, spins; /* 0: not stated */
    uint64_t typesize, datacount;
    unsigned box_dims; /* of a HYPERCUBE */
    uint64_t lower[LIMEFILE_DIMS_MAX], upper[LIMEFILE_DIMS_MAX];
    const char *ignored;
};
int limefile_scidac_record_parse(const void *xml, size_t n, struct limefile_scidac_record *out);

/* <FieldMetaData>: grid-format. It states the lattice of the field in the same message. */
int limefile_grid_parse(const void *xml, size_t n, struct limefile_lattice *out);

/* <scidacChecksum>. The numbers may begin with "0x", and their leading zeros may be missing. */
int limefile_checksum_parse(const void *xml, size_t n, struct limefile_checksum *out);

/* Formats a scidac-checksum record as QIO does. Returns the length without the NUL. */
#define LIMEFILE_CHECKSUM_XML_MAX 192
size_t limefile_checksum_xml(const struct limefile_checksum *,
                             char out[LIMEFILE_CHECKSUM_XML_MAX]);

/* Reads the logical file name from an ildg-data-lfn record, without NULs, white space and line
 * ends around it. LIMEFILE_E_XML_VALUE: it is empty, too long or has control characters. */
int limefile_lfn_parse(const void *data, size_t n, char out[LIMEFILE_LFN_MAX]);

/* Reads a record and parses it as an LFN. Returns 1, 0 if it is not an LFN, or an error. */
int limefile_record_lfn(struct limefile_source *, const struct limefile_record *,
                        char lfn[LIMEFILE_LFN_MAX]);

/* Returns true if the type is ildg-binary-data or scidac-binary-data. (fields.c) */
bool limefile_record_is_data(const struct limefile_record *);

/* ---- the fields of a container (fields.c) ------------------------------------------- */

/* The kind of a binary record, by the metadata that describe it. */
enum limefile_fieldkind {
    LIMEFILE_KIND_UNKNOWN, /* no description */
    /* ildg-binary-data with an ildg-format whose field is a gauge field; or any record whose
     * private record describes four square colour matrices a site. */
    LIMEFILE_KIND_GAUGE,
    LIMEFILE_KIND_PROPAGATOR, /* scidac-binary-data, etmc- or quda-propagator-format */
    LIMEFILE_KIND_SOURCE,     /* scidac-binary-data, etmc-source-format */
    /* Any other field: described by a scidac-private-record-xml alone, by cvc's format, or by
     * an ildg-format whose field is not a gauge field. */
    LIMEFILE_KIND_SCIDAC,
    LIMEFILE_KIND_GLOBAL, /* like KIND_SCIDAC, but recordtype 1: one datum, no lattice */
};

/* A record of type ildg-binary-data or scidac-binary-data with its description. The by_*
 * members are the ordinals of the records that the values come from; 0: no such record. */
struct limefile_field {
    struct limefile_record record; /* its type is valid as long as the index */
    enum limefile_fieldkind kind;
    char name[LIMEFILE_WORD_MAX]; /* "su3gauge", "diracFermion", "QDP_F3_ColorMatrix"; or "" */
    unsigned precision;           /* 32 or 64; 0: unknown */
    struct limefile_lattice lattice; /* the whole lattice; dims 0: unknown */
    bool is_checkerboard; /* every second site (Grid), stored as a box with half the extent in x
                           */
    bool is_box; /* the record has the sites from `lower` to `upper` in each dimension */
    uint64_t lower[LIMEFILE_DIMS_MAX], upper[LIMEFILE_DIMS_MAX];
    uint64_t sites;           /* sites in the record; 0: unknown */
    uint64_t site_bytes;      /* 0: unknown */
    uint64_t expected;        /* data length by lattice and precision; 0: unknown */
    uint64_t datacount;       /* number of data in a site, by the private record; 0: unknown */
    unsigned colors, spins;   /* by the private record; 0: not stated */
    bool descriptions_differ; /* true if another description differs in the size of a site */
    uint64_t format_ordinal, private_ordinal; /* ildg or etmc format; private record */
    uint64_t by_file;                         /* private file XML or grid-format */
    uint64_t checksum_ordinal, lfn_ordinal;
    bool has_checksum; /* true if the record checksum_ordinal could be read into `checksum` */
    struct limefile_checksum checksum;
};

/* Returns false if the length contradicts the description (LIMEFILE_D_FIELD_LENGTH). */
bool limefile_field_length_fits(const struct limefile_field *);

/* Returns true if sites and site_bytes are known and agree with the record's length, so that
 * limefile_field_sum() can compute a checksum. */
bool limefile_field_is_summable(const struct limefile_field *);

/* ---- the contents of one site (siteshape.c) ---- */

#define LIMEFILE_SITE_DIMS_MAX 5

/* The array that one site holds, row-major: four links are (4, 3, 3), a spinor is (4, 3). */
struct limefile_siteshape {
    unsigned dims; /* 0: a single number */
    uint64_t extent[LIMEFILE_SITE_DIMS_MAX];
    const char *name[LIMEFILE_SITE_DIMS_MAX]; /* "mu", "a", "b", "spin", "colour"; unique */
    unsigned precision;                       /* bits of a real number; 0: elements are bytes */
    bool complex;                             /* true if an element is two real numbers */
    bool known; /* false: only the number of real numbers, or of bytes, is known */
};
void limefile_siteshape_derive(const struct limefile_field *, struct limefile_siteshape *out);

/* Returns true if the site is four square colour matrices. */
bool limefile_siteshape_is_links(const struct limefile_siteshape *);

/* Returns the precision that a datatype like "QDP_F3_ColorMatrix" states: 32 or 64; 0: none. */
unsigned limefile_datatype_precision(const char *datatype);

/* Returns false if docs/format.md does not list the prefix (like "QDP_") of the datatype. */
bool limefile_datatype_is_known(const char *datatype);

/* ---- comparing data with their checksum (field_verify.c) ---- */

/* If a record's length contradicts its description, either the number of sites or the size of a
 * site can be wrong; the checksum shows which one. It cannot show this if descriptions
 * contradict each other or the record is a hypercube. */

/* Fills *out with the i-th possible layout (from 0): sites and site_bytes whose product is the
 * length. There are at most two. Returns false if the i-th does not exist. */
bool limefile_field_layout(const struct limefile_field *, unsigned i,
                           struct limefile_field *out);

/* Returns true if the checksum equals the one in the file. */
bool limefile_field_sum_matches(const struct limefile_field *,
                                const struct limefile_checksum *);

/* Returns why no checksum can match, so that the data are wrong (a static text), or NULL. */
const char *limefile_field_why_bad(const struct limefile_field *);

/* Returns the reason, a static text, why the data cannot be compared with a checksum. Returns
 * NULL if they can, and also if limefile_field_why_bad() returns a reason. */
const char *limefile_field_why_unverified(const struct limefile_field *);

/* The fields of a container. Records belong together by these rules:
 *   - An ildg-format and a private record describe the next binary record of their message.
 *   - A checksum belongs to the binary record before it in its message or, if no binary record
 *     is before it, to the one after it. If both alternate in the message, and a checksum is
 *     first, each checksum belongs to the binary record after it.
 *   - A logical file name (LFN) belongs to the ildg-binary-data before it in its message or, if
 *     this does not exist or has an LFN, to the next ildg-binary-data.
 *   - A message ends between two records if the first has ME and the second has MB. If only one
 *     of these flags is set, the message continues.
 *   - In a message without a binary record, an ildg-format (finding: format-late) or a private
 * record describes the first binary record after this message. A checksum there belongs to the
 * last binary record before this message, unless that record has a checksum already. - tmLQCD
 * writes an etmc format into another message than its data: the format describes the next
 * scidac-binary-data, and all later ones of the same length (one for each flavour). - A private
 * file XML is valid up to the next one. For a field with a private record, a grid-format in the
 * message of this private record is used rather than another one.
 *
 * limefile_fields_build() reads each metadata record once, and no data. A container can have a
 * million fields and deviations, so a field needs 40 bytes, a deviation 16, and adjacent fields
 * share equal descriptions. The index must outlive the result. Errors: -errno or
 * LIMEFILE_E_SHRUNK if a read fails. */
struct limefile_fields {
    size_t count;
    char lfn[LIMEFILE_LFN_MAX];          /* the first LFN; "" if none */
    uint64_t lfn_ordinal;                /* ordinal of its record, or 0 */
    bool described;                      /* the container has ILDG or SciDAC metadata */
    struct limefile_fields_store *store; /* private to the library */
};
int limefile_fields_build(struct limefile_source *, const struct limefile_index *,
                          struct limefile_fields *out);
void limefile_fields_release(struct limefile_fields *);

/* Fills *out with the i-th field, counted from 0 in file order. */
void limefile_fields_get(const struct limefile_fields *, size_t i, struct limefile_field *out);

/* Finds the field whose binary record has that ordinal. Returns false if it does not exist. */
bool limefile_fields_find(const struct limefile_fields *, uint64_t ordinal,
                          struct limefile_field *out);

/* Fills *out with the i-th deviation (LIMEFILE_D_XML and later), counted from 0 in file order.
 * Returns false if it does not exist. */
bool limefile_fields_finding(const struct limefile_fields *, size_t i,
                             struct limefile_finding *out);

/* Fills `out` with the findings on the i-th field that only --strict reports (no checksum, no
 * description). Returns their number. */
unsigned limefile_fields_find_missing(const struct limefile_fields *, size_t i,
                                      struct limefile_finding out[2]);

/* ---- the checksum of a field, with all processors (parallel_sum.c) ---- */

/* Adds the sites [first, first + sites) of the record to the checksum; data: their bytes, whole
 * sites. If the record holds only a box of the lattice, each site is summed with its number in
 * the whole lattice, as in QIO. Checksums of disjoint parts combine by XOR. */
void limefile_field_add_sites(const struct limefile_field *, struct limefile_checksum *,
                              const void *data, uint64_t first, uint64_t sites);

/* Computes the checksum of the whole record, read by `threads` threads (0: one for each
 * processor), so several threads must be able to read the source at once. Bytes of a file that
 * are not in the page cache are read by direct I/O. progress may be NULL; one thread at a time
 * calls it while the others continue. If it returns false, the function soon returns -EINTR.
 * Other errors: LIMEFILE_E_STATE if the field is not summable, LIMEFILE_E_SHRUNK, -errno. */
typedef bool limefile_sum_progress_fn(void *context, uint64_t bytes_more);
int limefile_field_sum(struct limefile_source *, const struct limefile_field *,
                       unsigned threads, limefile_sum_progress_fn *progress, void *context,
                       struct limefile_checksum *out);

/* Computes the cksum of a record's data (limefile_cksum), in the same way. Errors:
 * LIMEFILE_E_SHRUNK, -EINTR, -errno. */
int limefile_record_cksum(struct limefile_source *, const struct limefile_record *,
                          unsigned threads, limefile_sum_progress_fn *progress, void *context,
                          uint32_t *out);

/* Compares the record with its checksum in each layout (limefile_field_layout()) until one
 * matches. Returns 1 with the matching layout in *as, or 0 with the first layout; *out is the
 * checksum of the data in this layout. LIMEFILE_E_STATE: no layout exists. Other errors as
 * above. */
int limefile_field_verify(struct limefile_source *, const struct limefile_field *,
                          unsigned threads, limefile_sum_progress_fn *progress, void *context,
                          struct limefile_field *as, struct limefile_checksum *out);

#endif
