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

/* What is wrong with a link: the first of these that applies. */
enum limefile_physics_defect {
    LIMEFILE_PHYSICS_GOOD,
    LIMEFILE_PHYSICS_NAN,
    LIMEFILE_PHYSICS_INFINITE,
    LIMEFILE_PHYSICS_UNITARITY,   /* an entry of U U^+ - 1 exceeds the bound */
    LIMEFILE_PHYSICS_DETERMINANT, /* det U - 1 exceeds the bound */
};

/* A bad link. */
struct limefile_physics_bad_link {
    enum limefile_physics_defect defect;
    uint64_t site;      /* number in the order of the file, from 0 */
    uint64_t at[4];     /* the site's coordinates x, y, z, t */
    unsigned direction; /* 0 to 3: x, y, z, t */
    unsigned number;    /* NAN, INFINITE: subscript of the link's first such number */
    double deviation;   /* UNITARITY, DETERMINANT: the value that exceeds the bound */
};

struct limefile_physics {
    /* Means of Re tr U_p / 3 over all plaquettes, over the spatial and over the temporal ones,
     * and of Re tr U / 3 over all links. NaN if a link is not finite or a sum is too large. */
    double plaquette, space, time, trace;

    /* The largest modulus of an entry of U U^+ - 1, and of det U - 1, over all finite links,
     * at most DBL_MAX. */
    double unitarity, determinant;

    double bound;       /* the allowed `unitarity` and `determinant` of a link */
    uint64_t nonfinite; /* number of real numbers that are NaN or infinite */
    uint64_t bad_links; /* number of links that are not finite or exceed the bound */
    uint64_t bad_sites; /* number of sites with such a link */
    struct limefile_physics_bad_link first; /* first such link in the file; GOOD: none */
};

/* ---- planes in memory (planes.c); limegauge.h has a pass over a file ---------------- */

enum { LIMEFILE_PHYSICS_PLANES = 4 }; /* slabs of a multiple of this many planes are fastest */

/* The measurements of one thread, which no other thread may use at the same time. */
struct limefile_physics_planes;

/* Consecutive planes (all x and y at one z) of a time slice, in ILDG's layout (limesites.h). */
struct limefile_physics_slab {
    uint64_t z, t; /* of the first plane; z of the others increases and wraps around to 0 */
    uint64_t planes;
    const unsigned char *here;    /* the planes, consecutive */
    const unsigned char *above_z; /* the plane that follows the last one in z */
    const unsigned char *above_t; /* these planes in the next time slice; NULL: no plaquettes */
};

/* Creates an object that measures planes with links of `precision` (32 or 64) bits, and finds
 * links that differ from SU(3) by more than this precision's default bound. Returns 0 or
 * -ENOMEM. limefile_physics_planes_bytes() returns the bytes of memory that the object takes,
 * or SIZE_MAX for invalid extents, with which no object can be created. */
int limefile_physics_planes_new(const uint64_t extent[4], unsigned precision,
                                struct limefile_physics_planes **out);
void limefile_physics_planes_free(struct limefile_physics_planes *); /* does nothing for NULL */
size_t limefile_physics_planes_bytes(const uint64_t extent[4]);

/* Measures a slab. Each plane of the lattice must be added once, to one of the objects that are
 * merged. */
void limefile_physics_planes_add(struct limefile_physics_planes *,
                                 const struct limefile_physics_slab *);

/* Adds the measurements of another thread's object. */
void limefile_physics_planes_merge(struct limefile_physics_planes *,
                                   const struct limefile_physics_planes *other);

/* Computes the results once all planes are added. They have the same bits for any division of
 * the planes into slabs and threads. Plaquettes are 0 if above_t was NULL in all slabs. */
void limefile_physics_planes_result(const struct limefile_physics_planes *,
                                    struct limefile_physics *out);

/* Measures one matrix (link_measure.c). Returns the index of the first real number that is not
 * finite, or -1 and both deviations. */
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
    uint64_t ordinal;   /* the record; 0: a header of another format */
    const char *source; /* "xlf-info"; not owned */
    char name[32];      /* its name in the source: "plaquette", "linktr"; printable ASCII */
    char text[48];      /* the number as written, perhaps truncated; printable ASCII */
    bool is_number;     /* the text is a finite decimal number: `value`, `digit` are set */
    double value;       /* normalized to 1 if all links are 1 */
    double digit;       /* one unit of the last written digit, normalized */
    double tolerance;   /* allowed difference; 0: that of the data's precision (below) */
};

/* Parses a value; `ordinal`, `source` and `tolerance` become 0. `largest` is the value if all
 * links are 1: 1 in NERSC's and ILDG's metadata, 3 in openQCD's and for MILC's spatial and
 * temporal plaquettes. */
void limefile_physics_parse(struct limefile_physics_stated *out, enum limefile_physics_quantity,
                            double largest, const char *name, const char *text, size_t len);

/* The allowed difference between a computed and a stated value is the tolerance for the data's
 * precision, or one unit of the last written digit (at most 1e-3) if that is larger. Grid and
 * QDP++ allow 1e-5. */
#define LIMEFILE_PHYSICS_TOLERANCE_SINGLE  1e-5
#define LIMEFILE_PHYSICS_TOLERANCE_DOUBLE  1e-7
#define LIMEFILE_PHYSICS_TOLERANCE_OPENQCD 1e-9 /* for an openQCD header with its own data */
#define LIMEFILE_PHYSICS_DIGIT_MAX         1e-3

/* Returns true if the stated value is a number and agrees with the value computed from data of
 * `precision` (32 or 64) bits. */
bool limefile_physics_agrees(const struct limefile_physics *,
                             const struct limefile_physics_stated *, unsigned precision);

/* Returns the computed value of a quantity. */
double limefile_physics_value(const struct limefile_physics *, enum limefile_physics_quantity);

/* Returns "plaquette", "space plaquette", "time plaquette" or "link trace". */
const char *limefile_physics_quantity_name(enum limefile_physics_quantity);

enum { LIMEFILE_PHYSICS_STATED_MAX = 12 }; /* the most values that are read for a field */

/* Reads the plaquettes and link traces in the metadata records of a field. A field's
 * record of each type is the last one between the previous data record and the field, or else
 * the first one after the field in its message. The types are xlf-info, nersc-header,
 * openqcd-header and, only in the field's message, scidac-record-xml and QCDml documents. An
 * xlf-info before several configurations is compared only with the first of them.
 *
 * Returns the number of values, -errno or LIMEFILE_E_SHRUNK. Malformed XML is not an error. */
int limefile_physics_stated_read(
    struct limefile_source *, const struct limefile_index *, const struct limefile_field *,
    struct limefile_physics_stated out[LIMEFILE_PHYSICS_STATED_MAX]);

/* Finds the field's record of a type by the rule above, as for xlf-info. Returns false without
 * such a record. */
bool limefile_physics_find_text(const struct limefile_index *, const struct limefile_field *,
                                const char *type, struct limefile_record *out);

/* Reads the values in the lines of another format's header. `source` is not copied and must
 * outlive `out`. `scale`: the header's plaquette if all links are 1. Returns their number. */
int limefile_physics_stated_parse(
    const char *text, size_t n, double scale, const char *source,
    struct limefile_physics_stated out[LIMEFILE_PHYSICS_STATED_MAX]);

/* Returns 1 and the first plaquette of limefile_physics_stated_read() that is a number, 0
 * without such a value, or an error. */
int limefile_physics_read_plaquette(struct limefile_source *, const struct limefile_index *,
                                    const struct limefile_field *,
                                    struct limefile_physics_stated *out);

#endif
