/* nameorder.c - the order in which files of a directory are listed */
#include "nameorder.h"

#include <stddef.h>
#include <string.h>

static const char digits[] = "0123456789";

/* Compares the numbers at the beginning of both, of any length, and moves behind them. */
static int compare_numbers(const char **a, const char **b)
{
    *a += strspn(*a, "0");
    *b += strspn(*b, "0");
    size_t n = strspn(*a, digits), m = strspn(*b, digits);
    int order = n != m ? (n < m ? -1 : 1) : memcmp(*a, *b, n);
    *a += n;
    *b += m;
    return order;
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int name_compare(const char *a, const char *b)
{
    const char *x = a, *y = b;
    int order = 0;
    while (order == 0 && (*x || *y)) {
        if (is_digit(*x) && is_digit(*y)) {
            order = compare_numbers(&x, &y);
        } else {
            order = (int)(unsigned char)*x - (int)(unsigned char)*y;
            x++, y++;
        }
    }
    return order ? order : strcmp(a, b);
}
