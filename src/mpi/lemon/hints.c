/* hints.c - what users, or the file, say about how to move data */
#include "internal.h"

#include <errno.h>
#include <limits.h>

enum {
    VALUE_BYTES = 32, /* more digits are no number in range */
};

/* Of a hint: the least value is 1. */
static const struct hint {
    const char *key;
    int64_t most;
} stripe_hint = {"striping_unit", 1 << 30}, movers_hint = {"cb_nodes", INT_MAX},
  round_hint = {"cb_buffer_size", 1 << 30}, overfull_hint = {"lemon_overfull", 1};

/* A decimal number, blanks around it allowed; 0 if it is none or out of range. */
static int64_t number(const char *text, int64_t most)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || errno || value < 1 || value > most)
        return 0;
    while (*end == ' ' || *end == '\t')
        end++;
    return *end ? 0 : value;
}

/* *value becomes what `info` says of the hint; as it was if it says nothing. False: it says
 * something that is no value for it. */
static bool read_hint(MPI_Info info, const struct hint *hint, int64_t *value)
{
    char text[VALUE_BYTES + 1] = "";
    int there = 0, length = 0;
    if (info == MPI_INFO_NULL)
        return true;
    MPI_Info_get_valuelen(info, hint->key, &length, &there);
    if (!there)
        return true;
    if (length > VALUE_BYTES)
        return false;
    MPI_Info_get(info, hint->key, VALUE_BYTES, text, &there);
    int64_t read = number(text, hint->most);
    if (read == 0)
        return false;
    *value = read;
    return true;
}

int lemon_hints_read(struct lemon_internal *in, MPI_Info info)
{
    const struct hint *all[] = {&stripe_hint, &movers_hint, &round_hint, &overfull_hint};
    enum { COUNT = sizeof all / sizeof all[0] };
    int64_t values[COUNT] = {0};
    int code = LEMON_SUCCESS;
    for (int i = 0; i < COUNT; i++)
        if (!read_hint(info, all[i], &values[i]))
            code = lemon_say(in, LEMON_ERR_PARAM, "%s is a number from 1 to %lld", all[i]->key,
                             (long long)all[i]->most);
    code = lemon_agree_on(in, code, values, COUNT);
    if (code != LEMON_SUCCESS)
        return code;
    if (values[0])
        in->hints.stripe = values[0];
    if (values[1])
        in->hints.movers = values[1];
    if (values[2])
        in->hints.round = values[2];
    if (values[3])
        in->overfull = true;
    return LEMON_SUCCESS;
}

int lemon_hints_set_stripe(struct lemon_internal *in, MPI_Offset bytes)
{
    int64_t values[1] = {bytes};
    int code = bytes > 0 && bytes <= stripe_hint.most
                   ? LEMON_SUCCESS
                   : lemon_say(in, LEMON_ERR_PARAM, "a stripe is 1 byte to 1 GiB");
    code = lemon_agree_on(in, code, values, 1);
    if (code == LEMON_SUCCESS)
        in->hints.stripe = bytes;
    return code;
}

int64_t lemon_hints_stripe_of(MPI_File file)
{
    MPI_Info info = MPI_INFO_NULL;
    int64_t stripe = 0;
    if (file == MPI_FILE_NULL) /* which Open MPI takes for an error of MPI_COMM_WORLD */
        return 0;
    if (MPI_File_get_info(file, &info) != MPI_SUCCESS || info == MPI_INFO_NULL)
        return 0;
    read_hint(info, &stripe_hint, &stripe);
    MPI_Info_free(&info);
    return stripe;
}
