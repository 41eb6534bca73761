/* link_measure.c - measure the deviation of a link from SU(3), describe a bad link as text */
#include "limephysics.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

struct complex {
    double re, im;
};

/* Returns the entry in row `a` and column `b`. */
static struct complex matrix_entry(const double *u, int a, int b)
{
    return (struct complex){u[6 * a + 2 * b], u[6 * a + 2 * b + 1]};
}

static struct complex multiply_complex(struct complex x, struct complex y)
{
    return (struct complex){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

/* Returns the modulus, or DBL_MAX if its square overflows, for example for large entries. */
static double bounded_modulus(double re, double im)
{
    double square = re * re + im * im;
    double result = isfinite(square) ? __builtin_sqrt(square) : DBL_MAX;
    return result;
}

/* Returns the largest modulus of an entry of u u^+ - 1. */
static double measure_unitarity(const double *u)
{
    double largest = 0;
    for (int a = 0; a < 3; a++)
        for (int b = 0; b <= a; b++) {
            double re = a == b ? -1 : 0, im = 0;
            for (int c = 0; c < 3; c++) {
                struct complex x = matrix_entry(u, a, c), y = matrix_entry(u, b, c);
                re += x.re * y.re + x.im * y.im;
                im += x.im * y.re - x.re * y.im;
            }
            double deviation = bounded_modulus(re, a == b ? 0 : im);
            largest = deviation > largest ? deviation : largest;
        }
    return largest;
}

/* Returns the modulus of det u - 1. */
static double measure_determinant(const double *u)
{
    double re = -1, im = 0;
    for (int a = 0; a < 3; a++) {
        int b = (a + 1) % 3, c = (a + 2) % 3;
        struct complex p = multiply_complex(matrix_entry(u, 1, b), matrix_entry(u, 2, c));
        struct complex q = multiply_complex(matrix_entry(u, 1, c), matrix_entry(u, 2, b));
        struct complex minor = {p.re - q.re, p.im - q.im};
        struct complex term = multiply_complex(matrix_entry(u, 0, a), minor);
        re += term.re;
        im += term.im;
    }
    return bounded_modulus(re, im);
}

int limefile_physics_measure_link(const double u[LIMEFILE_LINK_REALS], double *unitarity,
                                  double *determinant)
{
    for (int i = 0; i < LIMEFILE_LINK_REALS; i++)
        if (!isfinite(u[i]))
            return i;
    *unitarity = measure_unitarity(u);
    *determinant = measure_determinant(u);
    return -1;
}

const char *limefile_physics_defect_name(enum limefile_physics_defect wrong)
{
    static const char *const words[] = {"good", "nan", "infinite", "unitarity", "determinant"};
    return words[wrong];
}

int limefile_physics_bad_text(const struct limefile_physics_bad_link *bad, char *buf,
                              size_t cap)
{
    char text[96], by[32] = "more than a double holds";
    if (bad->deviation < DBL_MAX)
        snprintf(by, sizeof by, "%.2g", bad->deviation);
    unsigned row = bad->number / 6, column = bad->number / 2 % 3;
    switch (bad->defect) {
    case LIMEFILE_PHYSICS_NAN:
    case LIMEFILE_PHYSICS_INFINITE:
        snprintf(text, sizeof text, "row %u, column %u is %s", row + 1, column + 1,
                 bad->defect == LIMEFILE_PHYSICS_NAN ? "not a number" : "infinite");
        break;
    case LIMEFILE_PHYSICS_UNITARITY:
        snprintf(text, sizeof text, "U U^+ differs from 1 by %s", by);
        break;
    case LIMEFILE_PHYSICS_DETERMINANT:
        snprintf(text, sizeof text, "its determinant differs from 1 by %s", by);
        break;
    default:
        return snprintf(buf, cap, "good");
    }
    return snprintf(
        buf, cap,
        "site %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " (x y z t), direction %c: %s",
        bad->at[0], bad->at[1], bad->at[2], bad->at[3], "xyzt"[bad->direction & 3], text);
}
