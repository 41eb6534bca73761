/*
 * limephysics.h - whether the links of a configuration are SU(3) matrices, its plaquette and
 * its link trace, and whether these are what its metadata say.
 *
 * Nothing here prints or has global state.
 */
#ifndef LIMEPHYSICS_H
#define LIMEPHYSICS_H

#include "limesites.h"

/* ---- one configuration --------------------------------------------------------------- */

/* How far a link may be from SU(3): of data in single precision what MILC allows (1e-4); of
 * double precision what is left where data were computed in single precision and widened. */
#define LIMEFILE_PHYSICS_BOUND_SINGLE 1e-4
#define LIMEFILE_PHYSICS_BOUND_DOUBLE 1e-6

/* What is wrong with a link; the first that applies. */
enum limefile_physics_wrong {
    LIMEFILE_PHYSICS_GOOD,
    LIMEFILE_PHYSICS_NAN,
    LIMEFILE_PHYSICS_INFINITE,
    LIMEFILE_PHYSICS_UNITARITY,   /* an entry of U U^+ - 1 is beyond the bound */
    LIMEFILE_PHYSICS_DETERMINANT, /* det U - 1 is */
};

/* A link that is wrong. */
struct limefile_physics_bad {
    enum limefile_physics_wrong wrong;
    uint64_t site; /* in the order of the file */
    uint64_t at[4];
    unsigned direction; /* 0: x, ... 3: t */
    unsigned real;      /* NAN, INFINITE: which of its 18 real numbers */
    double deviation;   /* UNITARITY, DETERMINANT */
};

struct limefile_physics {
    /* Means of Re tr U_p / 3 over all plaquettes, over those in space and those with time; of
     * Re tr U / 3 over all links. 1 where all links are 1. NaN if some link is not finite;
     * infinite or NaN if sums of its numbers are beyond DBL_MAX. */
    double plaquette, space, time, trace;

    /* The largest modulus of an entry of U U^+ - 1, and of det U - 1, over all links that are
     * finite; DBL_MAX if it is beyond that. */
    double unitarity, determinant;

    double bound;                      /* that they were compared with */
    uint64_t nonfinite;                /* real numbers that are NaN or infinite */
    uint64_t bad_links;                /* that are not finite, or beyond the bound */
    uint64_t bad_sites;                /* with such a link */
    struct limefile_physics_bad first; /* the first such link in the order of the file */
};

/* ---- planes that are in memory (planes.c); limegauge.h has a pass over a file --------- */

enum { LIMEFILE_PHYSICS_PLANES = 4 }; /* as many at once, or a multiple, are best */

/* What one thread has found out. */
struct limefile_physics_planes;

/* Planes of a time slice (all x and y), as ILDG stores them. */
struct limefile_physics_slab {
    uint64_t z, t; /* of the first one; the others follow in z, and after the last comes 0 */
    uint64_t planes;
    const unsigned char *here;    /* one after another */
    const unsigned char *above_z; /* the plane that follows the last one */
    const unsigned char *above_t; /* as `here`, in the next time slice; NULL: no plaquettes */
};

/* The bound is that of the precision. -ENOMEM; it takes limefile_physics_planes_bytes(),
 * SIZE_MAX: there are no such extents. */
int limefile_physics_planes_new(const uint64_t extent[4], unsigned precision,
                                struct limefile_physics_planes **out);
void limefile_physics_planes_free(struct limefile_physics_planes *); /* NULL: nothing */
size_t limefile_physics_planes_bytes(const uint64_t extent[4]);

void limefile_physics_planes_add(struct limefile_physics_planes *,
                                 const struct limefile_physics_slab *);

/* What another thread has found out is added. */
void limefile_physics_planes_merge(struct limefile_physics_planes *,
                                   const struct limefile_physics_planes *other);

/* Of all planes: the same bits in whatever parts and by whatever threads they were added.
 * Plaquettes are 0 where nobody wanted them. */
void limefile_physics_planes_tell(const struct limefile_physics_planes *,
                                  struct limefile_physics *out);

/* ---- one matrix ---------------------------------------------------------------------- */

/* One matrix (link.c): which of its real numbers is not finite, or -1 and both deviations. */
int limefile_physics_link(const double u[LIMEFILE_LINK_REALS], double *unitarity,
                          double *determinant);

/* "site 3 0 1 2, direction y: U U^+ differs from 1 by 0.31". As snprintf. */
int limefile_physics_bad_text(const struct limefile_physics_bad *, char *buf, size_t cap);

/* The word for scripts: "nan", "infinite", "unitarity", "determinant". */
const char *limefile_physics_wrong_word(enum limefile_physics_wrong);

/* ---- what metadata say of it (stated.c) ---------------------------------------------- */

enum limefile_physics_quantity {
    LIMEFILE_PHYSICS_PLAQUETTE,
    LIMEFILE_PHYSICS_SPACE,
    LIMEFILE_PHYSICS_TIME,
    LIMEFILE_PHYSICS_TRACE,
};

/* A number that a header or a metadata record gives. */
struct limefile_physics_stated {
    enum limefile_physics_quantity quantity;
    uint64_t ordinal;  /* of the record; 0: a header of another format */
    const char *where; /* "xlf-info"; static */
    char name[32];     /* as it is called there: "plaquette", "linktr"; printable ASCII */
    char text[48];     /* the number as it is there, cut, printable ASCII */
    bool number;       /* it is a finite decimal number: */
    double value;      /* normalised so that it is 1 where all links are 1 */
    double digit;      /* one unit of the last digit that is written, normalised too */
    double tolerance;  /* 0: that of the precision */
};

/* Fills all but `ordinal`, `where` and `tolerance`. `largest`: what it is there where all links
 * are 1: 1 in NERSC's and ILDG's metadata, 3 in openQCD's and in MILC's for plaquettes in space
 * or time. */
void limefile_physics_state(struct limefile_physics_stated *out, enum limefile_physics_quantity,
                            double largest, const char *name, const char *text, size_t len);

/* How much a measured value may differ from a stated one: that bound, or one unit of the last
 * digit that is written (but no more than 1e-3) if it is more. 1e-5 is what Grid and QDP++
 * allow; values for data in double precision may come from programs that compute in single
 * precision. */
#define LIMEFILE_PHYSICS_TOLERANCE_SINGLE  1e-5
#define LIMEFILE_PHYSICS_TOLERANCE_DOUBLE  1e-7
#define LIMEFILE_PHYSICS_TOLERANCE_OPENQCD 1e-9 /* of openQCD's header, with its own data */
#define LIMEFILE_PHYSICS_DIGIT_MAX         1e-3

/* Whether the data, of 32 or 64 bits, have what is stated of them; no number: false. */
bool limefile_physics_agrees(const struct limefile_physics *,
                             const struct limefile_physics_stated *, unsigned precision);

/* The measured value of that quantity. */
double limefile_physics_value(const struct limefile_physics *, enum limefile_physics_quantity);

/* "plaquette", "space plaquette", "time plaquette", "link trace" */
const char *limefile_physics_quantity_name(enum limefile_physics_quantity);

enum { LIMEFILE_PHYSICS_STATED_MAX = 12 };

/*
 * What the records of a container say of a field: the last xlf-info before it, or one after it
 * in its message, nersc-header and openqcd-header in the same way; and of its message the last
 * scidac-record-xml or QCDml document: USQCD's <plaq> and <linktr>, what NERSC and MILC give in
 * its <info>, and <avePlaquette>. A record belongs to the next binary record only, so where one
 * xlf-info is followed by many configurations the first is compared with it.
 *
 * How many there are; -errno or LIMEFILE_E_SHRUNK. Metadata that cannot be read give none.
 */
int limefile_physics_stated_of(struct limefile_source *, const struct limefile_index *,
                               const struct limefile_field *,
                               struct limefile_physics_stated out[LIMEFILE_PHYSICS_STATED_MAX]);

/* Finds the record of a type, xlf-info for example, that belongs to the field, by the rule
 * above. Returns false if there is none. */
bool limefile_physics_find_text(const struct limefile_index *, const struct limefile_field *,
                                const char *type, struct limefile_record *out);

/* What a header of another format says, line by line; `where` stays the caller's, and must live
 * as long as `out`. `scale`: what a plaquette is there where all links are 1. How many. */
int limefile_physics_stated_text(
    const char *text, size_t n, double scale, const char *where,
    struct limefile_physics_stated out[LIMEFILE_PHYSICS_STATED_MAX]);

/* The first plaquette of them that is a number: 1; 0: there is none. */
int limefile_physics_stated_plaquette(struct limefile_source *, const struct limefile_index *,
                                      const struct limefile_field *,
                                      struct limefile_physics_stated *out);

#endif
