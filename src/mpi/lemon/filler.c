/* filler.c - records of zeros, so that the data of the record after them begin aligned */
#include "filler.h"
#include "limefile.h"

#include <string.h>

enum {
    PIECE = 1 << 20, /* of the zeros, written at once */
};

int64_t lemon_filler_bytes(int64_t offset, int64_t alignment)
{
    int64_t beyond = (offset + LIMEFILE_HEADER_BYTES) % alignment;
    int64_t gap = beyond ? alignment - beyond : 0;
    if (gap == 0 || gap >= LIMEFILE_HEADER_BYTES)
        return gap;
    int64_t lack = LIMEFILE_HEADER_BYTES - gap;
    return gap + (lack + alignment - 1) / alignment * alignment;
}

/* Between messages it is one of its own; inside of one it is neither first nor last. */
static int encode(int64_t bytes, bool begins_message, unsigned char *raw)
{
    struct limefile_header header;
    int err = limefile_header_init(&header, LEMON_FILLER_TYPE, strlen(LEMON_FILLER_TYPE),
                                   (uint64_t)(bytes - LIMEFILE_HEADER_BYTES), begins_message,
                                   begins_message);
    return err ? err : limefile_header_encode(&header, raw);
}

int lemon_filler_write(struct lemon_internal *in, int64_t offset, int64_t bytes,
                       bool begins_message)
{
    int64_t piece = bytes < PIECE ? bytes : PIECE;
    unsigned char *buffer = calloc(1, (size_t)piece);
    if (!buffer || encode(bytes, begins_message, buffer) != 0) {
        free(buffer);
        return lemon_say(in, LEMON_ERR_WRITE, "no memory for a filler");
    }
    int code = lemon_move_bytes(in, LEMON_WRITE, buffer, piece, offset);
    memset(buffer, 0, LIMEFILE_HEADER_BYTES);
    /* Not left to be a hole: a file that is written over has bytes there. */
    for (int64_t done = piece; done < bytes && code == LEMON_SUCCESS; done += piece) {
        int64_t n = bytes - done < piece ? bytes - done : piece;
        code = lemon_move_bytes(in, LEMON_WRITE, buffer, n, offset + done);
    }
    free(buffer);
    return code;
}
