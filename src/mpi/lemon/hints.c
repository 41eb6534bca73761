/* hints.c - what users say about how to move data, taken on all ranks or on none */
#include "hint.h"
#include "internal.h"

int lemon_take_hints(struct lemon_internal *in, MPI_Info info)
{
    int64_t values[LEMON_HINTS];
    int code = LEMON_SUCCESS, bad = lemon_hints_parse(info, values);
    if (bad >= 0)
        code = lemon_say(in, LEMON_ERR_PARAM, "%s is a number from 1 to %lld",
                         lemon_hints[bad].key, (long long)lemon_hints[bad].most);
    code = lemon_agree_on(in, code, values, LEMON_HINTS);
    if (code != LEMON_SUCCESS)
        return code;
    if (values[LEMON_HINT_STRIPE]) {
        in->hints.stripe = values[LEMON_HINT_STRIPE];
        in->hints.striped = true;
    }
    if (values[LEMON_HINT_MOVERS])
        in->hints.movers = values[LEMON_HINT_MOVERS];
    if (values[LEMON_HINT_ROUND])
        in->hints.round = values[LEMON_HINT_ROUND];
    if (values[LEMON_HINT_OVERFULL])
        in->overfull = true;
    return LEMON_SUCCESS;
}

int lemon_take_stripe(struct lemon_internal *in, MPI_Offset bytes)
{
    int64_t values[1] = {bytes};
    int code = bytes > 0 && bytes <= lemon_hints[LEMON_HINT_STRIPE].most
                   ? LEMON_SUCCESS
                   : lemon_say(in, LEMON_ERR_PARAM, "a stripe is 1 byte to 1 GiB");
    code = lemon_agree_on(in, code, values, 1);
    if (code == LEMON_SUCCESS) {
        in->hints.stripe = bytes;
        in->hints.striped = true;
    }
    return code;
}
