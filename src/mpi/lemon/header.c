/* header.c - record headers as programs make them */
#include "lemon.h"

#include <string.h>

LemonRecordHeader *lemonCreateHeader(int MB_flag, int ME_flag, char const *type,
                                     MPI_Offset reclen)
{
    if (!type || reclen < 0)
        return NULL;
    LemonRecordHeader *header = malloc(sizeof *header);
    char *copy = strdup(type);
    if (!header || !copy) {
        free(header);
        free(copy);
        return NULL;
    }
    *header = (LemonRecordHeader){
        .lemon_version = LEMON_VERSION,
        .MB_flag = MB_flag,
        .ME_flag = ME_flag,
        .type = copy,
        .data_length = (uint64_t)reclen,
    };
    return header;
}

void lemonDestroyHeader(LemonRecordHeader *h)
{
    if (h)
        free(h->type);
    free(h);
}
