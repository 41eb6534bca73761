/* hints.c - read hints from an MPI_Info */
#include "hints.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    VALUE_BYTES = 32, /* longest text of a value; a longer one is not valid */
};

const struct lemon_hint lemon_hints[LEMON_HINTS] = {
    [LEMON_HINT_STRIPE] = {"striping_unit", 1 << 30},
    [LEMON_HINT_AGGREGATORS] = {"cb_nodes", INT_MAX},
    [LEMON_HINT_ROUND_BYTES] = {"cb_buffer_size", 1 << 30},
    [LEMON_HINT_OVERFULL] = {"lemon_overfull", 1},
};

/* Parses a number from 1 to max, with optional blanks around it. Returns 0 if invalid. */
static int64_t parse_hint_value(const char *text, int64_t max)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || errno || value < 1 || value > max)
        return 0;
    while (*end == ' ' || *end == '\t')
        end++;
    return *end ? 0 : value;
}

/* Sets *value if `info` has the hint. Returns false if the hint's value is not valid. */
static bool read_hint(MPI_Info info, const struct lemon_hint *hint, int64_t *value)
{
    char text[VALUE_BYTES + 1] = "";
    int is_set = 0, length = 0;
    if (info == MPI_INFO_NULL)
        return true;
    MPI_Info_get_valuelen(info, hint->key, &length, &is_set);
    if (!is_set)
        return true;
    if (length > VALUE_BYTES)
        return false;
    MPI_Info_get(info, hint->key, VALUE_BYTES, text, &is_set);
    int64_t parsed = parse_hint_value(text, hint->max);
    if (parsed == 0)
        return false;
    *value = parsed;
    return true;
}

int lemon_hints_parse(MPI_Info info, int64_t values[LEMON_HINTS])
{
    int bad = -1;
    for (int i = LEMON_HINTS - 1; i >= 0; i--) {
        values[i] = 0;
        if (!read_hint(info, &lemon_hints[i], &values[i]))
            bad = i;
    }
    return bad;
}

/* Returns the hint "striping_unit" of the open file in bytes, or 0. */
static int64_t file_stripe(MPI_File file)
{
    MPI_Info info = MPI_INFO_NULL;
    int64_t stripe = 0;
    /* With MPI_FILE_NULL, Open MPI would call MPI_COMM_WORLD's handler and end the program. */
    if (file == MPI_FILE_NULL)
        return 0;
    if (MPI_File_get_info(file, &info) != MPI_SUCCESS || info == MPI_INFO_NULL)
        return 0;
    read_hint(info, &lemon_hints[LEMON_HINT_STRIPE], &stripe);
    MPI_Info_free(&info);
    return stripe;
}

int64_t lemon_hints_file_stripe(MPI_File file, MPI_Comm comm)
{
    int64_t stripe = file_stripe(file);
    int64_t limits[2] = {stripe, -stripe}; /* the largest, and the negative of the smallest */
    MPI_Allreduce(MPI_IN_PLACE, limits, 2, MPI_INT64_T, MPI_MAX, comm);
    return limits[0] > 0 && limits[0] == -limits[1] ? limits[0] : 0;
}
