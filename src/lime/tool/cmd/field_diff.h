/* field_diff.h - compare the data of two fields, number by number
 *
 *     field_diff_prepare   decides what is compared: numbers or bytes
 *     field_diff_run       reads and compares the data
 *
 * The fields may differ in precision. The data are read in parts, so the memory does not depend
 * on their length. */
#ifndef FIELD_DIFF_H
#define FIELD_DIFF_H

#include "limeildg.h"

#define FIELD_DIFF_EXACT (-1.0)

/* Two fields. The caller sets the members before the empty line and zeroes the others. */
struct field_diff {
    struct limefile_source *source[2];
    struct limefile_field field[2]; /* a record that is not a field has only `record` */
    /* Two numbers are equal if they differ by at most `bound` times the largest number of their
     * site. FIELD_DIFF_EXACT: if their bits are equal. NaNs are equal if their bits are. */
    double bound;
    int only;         /* 1, 2: only the first, the second field exists; 0: both */
    bool stops_early; /* stop at a part with a difference above the bound */
    limefile_sum_progress_fn *progress;
    void *context; /* passed to progress */

    /* Set by field_diff_prepare(). */
    const char *mismatch; /* why the data cannot be compared, so that they differ; or NULL */
    struct limefile_siteshape shape; /* of a site, if has_numbers */
    bool has_numbers;                /* false: the data are compared as bytes */
    size_t unit[2];                  /* bytes of a number */
    uint64_t count, per_site;        /* numbers in the data and in a site; or bytes, and 1 */

    /* Set by field_diff_run(). */
    uint64_t unequal; /* numbers whose bits are not equal; for two precisions, whose values */
    uint64_t beyond;  /* those of them that differ by more than the bound */
    /* The place with the largest relative difference; of bytes, the first one that differs. */
    struct field_diff_place {
        uint64_t number; /* from 0 */
        double value[2], difference;
        double relative; /* difference divided by the largest number of the site */
    } largest;
};

/* Sets mismatch and the members after it. If only one field has a description, it is used for
 * both. The caller may change `bound` afterwards. */
void field_diff_prepare(struct field_diff *);

/* Compares the data; mismatch must be NULL. Returns 0, -ENOMEM, or an error after a failed
 * read, with the number of the field (0 or 1) in *which. */
int field_diff_run(struct field_diff *, int *which);

/* Formats the place of a number: "site 0 1 2 3, direction z, a 0, b 1, imaginary part". */
#define FIELD_DIFF_PLACE_MAX 512
void field_diff_format_place(const struct field_diff *, uint64_t number,
                             char text[FIELD_DIFF_PLACE_MAX]);

/* Sets the coordinates of a number's site and its subscripts in shape.extent; *part: 0 real, 1
 * imaginary, -1 if the numbers are not complex. Returns the number of coordinates; 0: they are
 * unknown. */
unsigned field_diff_locate(const struct field_diff *, uint64_t number,
                           uint64_t site[LIMEFILE_DIMS_MAX],
                           uint64_t subscript[LIMEFILE_SITE_DIMS_MAX], int *part);

#endif
