/* permute.c - copy sites between disk order and the user's memory order */
#include "permute.h"

#include <string.h>

enum {
    TILE = 32, /* blocks in each direction, enough to use whole cache lines on both sides */
};

/* Adds a dimension and its strides in bytes. Merges it with the previous one if possible. */
static void add_axis(struct lemon_permute *permute, int64_t sites, int64_t disk, int64_t memory)
{
    int last = permute->dims - 1;
    if (sites == 1)
        return;
    if (last >= 0 && permute->disk_stride[last] == sites * disk &&
        permute->memory_stride[last] == sites * memory) {
        permute->extent[last] *= sites;
    } else {
        permute->extent[++last] = sites;
        permute->dims++;
    }
    permute->disk_stride[last] = disk;
    permute->memory_stride[last] = memory;
}

void lemon_permute_init(struct lemon_permute *permute, int dims, const int64_t *sites,
                        const int *order, int64_t site_bytes)
{
    int64_t memory[LEMON_BOX_DIMS], bytes = site_bytes, disk;
    *permute = (struct lemon_permute){.block_bytes = site_bytes};
    for (int i = dims - 1; i >= 0; i--) {
        memory[order[i]] = bytes;
        bytes *= sites[order[i]];
    }
    if (bytes == 0)
        return;
    disk = bytes;
    for (int i = 0; i < dims; i++) {
        disk /= sites[i];
        add_axis(permute, sites[i], disk, memory[i]);
    }
    int last = permute->dims - 1;
    if (last >= 0 && permute->memory_stride[last] == site_bytes) { /* fastest in both orders */
        permute->block_bytes *= permute->extent[last];
        permute->dims--;
    }
}

/* One side of a copy: the strides of all dimensions, and the fastest dimension. */
struct copy_side {
    const int64_t *stride;
    int fastest;
};

static struct copy_side make_side(const struct lemon_permute *permute, const int64_t *stride)
{
    struct copy_side side = {stride, 0};
    for (int i = 1; i < permute->dims; i++)
        if (stride[i] < stride[side.fastest])
            side.fastest = i;
    return side;
}

/* Inlined, so that `block` is a compile-time constant for the common sizes. */
__attribute__((always_inline)) static inline void copy_tile(char *to, const char *from,
                                                            int64_t rows, int64_t columns,
                                                            int64_t to_stride,
                                                            int64_t from_stride, int64_t block)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++)
            memcpy(to + row * to_stride + column * block,
                   from + row * block + column * from_stride, (size_t)block);
}

/* Copies a plane of blocks. Each row is contiguous in `to`, each column in `from`. */
static void copy_plane(char *to, const char *from, int64_t rows, int64_t columns,
                       int64_t to_stride, int64_t from_stride, int64_t block)
{
    for (int64_t row = 0; row < rows; row += TILE)
        for (int64_t column = 0; column < columns; column += TILE) {
            int64_t n = rows - row < TILE ? rows - row : TILE;
            int64_t m = columns - column < TILE ? columns - column : TILE;
            char *t = to + row * to_stride + column * block;
            const char *f = from + row * block + column * from_stride;
            if (block == 4)
                copy_tile(t, f, n, m, to_stride, from_stride, 4);
            else if (block == 8)
                copy_tile(t, f, n, m, to_stride, from_stride, 8);
            else if (block == 16)
                copy_tile(t, f, n, m, to_stride, from_stride, 16);
            else
                copy_tile(t, f, n, m, to_stride, from_stride, block);
        }
}

/* Copies all planes. A plane extends in the fastest dimension of `to` and in that of `from`. */
static void copy_planes(const struct lemon_permute *permute, struct copy_side to_side, char *to,
                        struct copy_side from_side, const char *from)
{
    int column = to_side.fastest, row = from_side.fastest, i;
    int64_t at[LEMON_BOX_DIMS] = {0}, to_at = 0, from_at = 0;
    do {
        copy_plane(to + to_at, from + from_at, permute->extent[row], permute->extent[column],
                   to_side.stride[row], from_side.stride[column], permute->block_bytes);
        for (i = permute->dims - 1; i >= 0; i--) {
            if (i == row || i == column)
                continue;
            to_at += to_side.stride[i];
            from_at += from_side.stride[i];
            if (++at[i] < permute->extent[i])
                break;
            to_at -= to_side.stride[i] * at[i];
            from_at -= from_side.stride[i] * at[i];
            at[i] = 0;
        }
    } while (i >= 0);
}

void lemon_permute_to_memory(const struct lemon_permute *permute, const char *disk,
                             char *memory)
{
    struct copy_side to = make_side(permute, permute->memory_stride);
    struct copy_side from = make_side(permute, permute->disk_stride);
    copy_planes(permute, to, memory, from, disk);
}

void lemon_permute_to_disk(const struct lemon_permute *permute, const char *memory, char *disk)
{
    struct copy_side to = make_side(permute, permute->disk_stride);
    struct copy_side from = make_side(permute, permute->memory_stride);
    copy_planes(permute, to, disk, from, memory);
}
