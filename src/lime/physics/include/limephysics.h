/* limephysics.h - check that the links of a configuration are SU(3) matrices, compute its
 * plaquette and link trace, and compare these with the values in its metadata.
 *
 * The module prints nothing and has no global state. */
#ifndef LIMEPHYSICS_H
#define LIMEPHYSICS_H

#include "limesites.h"

/* ---- one configuration --------------------------------------------------------------- */

/* The default bounds on a link's deviation from SU(3). SINGLE is MILC's bound; DOUBLE allows
 * data that were computed in single precision and converted to double. */
#define LIMEFILE_PHYSICS_BOUND_SINGLE 1e-4
#define LIMEFILE_PHYSICS_BOUND_DOUBLE 1e-6

/* What is wrong with a link: the first of these defects that it has. */
enum limefile_physics_defect {
    LIMEFILE_PHYSICS_GOOD,
    LIMEFILE_PHYSICS_NAN,
    LIMEFILE_PHYSICS_INFINITE,
    LIMEFILE_PHYSICS_UNITARITY,   /* the modulus of an entry of U U^+ - 1 exceeds the bound */
    LIMEFILE_PHYSICS_DETERMINANT, /* the modulus of det U - 1 exceeds the bound */
};

struct limefile_physics_bad_link {
    enum limefile_physics_defect defect;
    uint64_t site;      /* number in the order of the file, from 0 */
    uint64_t at[4];     /* the site's coordinates x, y, z, t */
    unsigned direction; /* 0 to 3: x, y, z, t */
    unsigned number;    /* NAN, INFINITE: subscript of the link's first nonfinite number */
    double deviation;   /* UNITARITY, DETERMINANT: the modulus that exceeds the bound */
};

struct limefile_physics {
    /* The means of Re tr U_p / 3 over all, the spatial and the temporal plaquettes, and of
     * Re tr U / 3 over all links. All are NaN if a link is not finite or a sum is too large. */
    double plaquette, space, time, trace;

    /* The largest modulus of an entry of U U^+ - 1, and of det U - 1, in all finite links.
     * DBL_MAX if the computation overflows. */
    double unitarity, determinant;

    double bound;       /* a good link's unitarity and determinant are at most this */
    uint64_t nonfinite; /* number of real numbers that are NaN or infinite */
    uint64_t bad_links; /* number of links that have a defect */
    uint64_t bad_sites; /* number of sites with a bad link */
    struct limefile_physics_bad_link first; /* first bad link in the file; GOOD: all are good */
};

/* ---- planes in memory (planes.c); limegauge.h has a pass over a file ---------------- */

enum { LIMEFILE_PHYSICS_PLANES = 4 }; /* slabs of a multiple of this many planes are fastest */

/* The measurements of one thread, which no other thread may use at the same time. */
struct limefile_physics_planes;

/* Planes (all x and y) of consecutive z in a time slice, in ILDG's layout (limesites.h). */
struct limefile_physics_slab {
    uint64_t z, t; /* of the first plane; each plane has the next z; 0 follows the largest z */
    uint64_t planes;
    const unsigned char *here;    /* the planes, one after another */
    const unsigned char *above_z; /* the plane that follows the last one in z */
    const unsigned char *above_t; /* the planes of the same z in the next time slice, one after
                                   * another; NULL: plaquettes are not computed */
};

/* Creates an object that measures planes with links of `precision` (32 or 64) bits, and finds
 * links that differ from SU(3) by more than the default bound of this precision. Returns 0 or
 * -ENOMEM. limefile_physics_planes_bytes() returns the bytes of memory that the object takes,
 * or SIZE_MAX if an object of these extents cannot be created. */
int limefile_physics_planes_new(const uint64_t extent[4], unsigned precision,
                                struct limefile_physics_planes **out);
void limefile_physics_planes_free(struct limefile_physics_planes *); /* does nothing for NULL */
size_t limefile_physics_planes_bytes(const uint64_t extent[4]);

/* Measures a slab. Each plane of the lattice must be added exactly once, to any of the objects
 * that are merged. */
void limefile_physics_planes_add(struct limefile_physics_planes *,
                                 const struct limefile_physics_slab *);

/* Adds the measurements of another thread's object. */
void limefile_physics_planes_merge(struct limefile_physics_planes *,
                                   const struct limefile_physics_planes *other);

/* Computes the results after all planes are added. The results have the same bits for any
 * division of the planes into slabs and threads. Plaquettes are 0 if above_t is always NULL. */
void limefile_physics_planes_result(const struct limefile_physics_planes *,
                                    struct limefile_physics *out);

/* Measures one matrix (link_measure.c). Returns -1 and sets both deviations; or, if a number is
 * not finite, returns the subscript of the first such number and sets neither. */
int limefile_physics_measure_link(const double u[LIMEFILE_LINK_REALS], double *unitarity,
                                  double *determinant);

/* Formats "site 3 0 1 2 (x y z t), direction y: U U^+ differs from 1 by 0.31", or "good";
 * truncates and returns a length as snprintf() does. */
int limefile_physics_bad_text(const struct limefile_physics_bad_link *, char *buf, size_t cap);

/* Returns a word for scripts: "good", "nan", "infinite", "unitarity" or "determinant". */
const char *limefile_physics_defect_name(enum limefile_physics_defect);

/* ---- values in metadata (stated_values.c) ---- */

enum limefile_physics_quantity {
    LIMEFILE_PHYSICS_PLAQUETTE,
    LIMEFILE_PHYSICS_SPACE,
    LIMEFILE_PHYSICS_TIME,
    LIMEFILE_PHYSICS_TRACE,
};

/* A value that a header or a metadata record contains. */
struct limefile_physics_stated {
    enum limefile_physics_quantity quantity;
    uint64_t ordinal;   /* of the record; 0: the source is a header of another format */
    const char *source; /* type of the record, such as "xlf-info", or "header"; not owned */
    char name[32];      /* the value's name: "plaquette", "linktr"; printable ASCII */
    char text[48];      /* the number as written, perhaps truncated; printable ASCII */
    bool is_number;     /* the text is a finite decimal number: `value`, `digit` are set */
    double value;       /* normalized to 1 if all links are 1 */
    double digit;       /* one unit of the last written digit, normalized */
    double tolerance;   /* allowed difference; 0: the one for the data's precision (below) */
};

/* Parses a value; `ordinal`, `source` and `tolerance` become 0. largest: the value that the
 * source would state if all links were 1. It is 3 for openQCD's plaquettes and for MILC's
 * spatial and temporal plaquettes, and otherwise 1. */
void limefile_physics_parse(struct limefile_physics_stated *out, enum limefile_physics_quantity,
                            double largest, const char *name, const char *text, size_t len);

/* The allowed difference between a computed and a stated value is the larger of the tolerance
 * (the stated value's or, if this is 0, that of the data's precision) and one unit of the last
 * written digit, which counts as at most 1e-3. Grid and QDP++ allow 1e-5. */
#define LIMEFILE_PHYSICS_TOLERANCE_SINGLE  1e-5
#define LIMEFILE_PHYSICS_TOLERANCE_DOUBLE  1e-7
#define LIMEFILE_PHYSICS_TOLERANCE_OPENQCD 1e-9 /* for an openQCD header and 64-bit data */
#define LIMEFILE_PHYSICS_DIGIT_MAX         1e-3

/* Returns true if the stated value is a number and agrees with the value computed from data of
 * `precision` (32 or 64) bits. */
bool limefile_physics_agrees(const struct limefile_physics *,
                             const struct limefile_physics_stated *, unsigned precision);

double limefile_physics_value(const struct limefile_physics *, enum limefile_physics_quantity);

/* Returns "plaquette", "space plaquette", "time plaquette" or "link trace". */
const char *limefile_physics_quantity_name(enum limefile_physics_quantity);

enum { LIMEFILE_PHYSICS_STATED_MAX = 12 }; /* maximum number of values that are read */

/* Reads the plaquettes and link traces in the metadata records of a field. For each type of
 * record, the field's record is the last one between the preceding data record and the field
 * or, without such a record, the first one after the field in the field's message. The types
 * are xlf-info, nersc-header, openqcd-header and, only in the field's message,
 * scidac-record-xml and QCDml documents. A record that follows data in another message than the
 * field's belongs to those data. An xlf-info before several configurations belongs only to the
 * first of them.
 *
 * Returns the number of values, -errno or LIMEFILE_E_SHRUNK. Malformed XML is not an error. */
int limefile_physics_stated_read(
    struct limefile_source *, const struct limefile_index *, const struct limefile_field *,
    struct limefile_physics_stated out[LIMEFILE_PHYSICS_STATED_MAX]);

/* Finds the field's record of `type` by the rule above; as for xlf-info, it may be in another
 * message. Returns false if the field has no such record. */
bool limefile_physics_find_text(const struct limefile_index *, const struct limefile_field *,
                                const char *type, struct limefile_record *out);

/* Reads the values in the lines of another format's header, and returns their number. `source`
 * is not copied and must outlive `out`. scale: the header's plaquette if all links are 1. */
int limefile_physics_stated_parse(
    const char *text, size_t n, double scale, const char *source,
    struct limefile_physics_stated out[LIMEFILE_PHYSICS_STATED_MAX]);

/* Calls limefile_physics_stated_read(). Returns 1 and sets *out to the first plaquette that is
 * a number; 0 if no plaquette is a number; or an error. */
int limefile_physics_read_plaquette(struct limefile_source *, const struct limefile_index *,
                                    const struct limefile_field *,
                                    struct limefile_physics_stated *out);

#endif
