/* plan.c - how a lattice is divided so that little is read twice and little memory is taken */
#include "plan.h"
#include "tile.h"

#include <errno.h>
#include <string.h>

enum {
    LAYERS_BYTES = 8 << 20,  /* of both layers of a thread */
    ROW_SITES = 512,         /* the longest row: four of them still fit */
    READ_BYTES = 256 * 1024, /* still in a core's L2 when it is unpacked */
    BITS_OF_SITES = 55,
};

static bool is_lattice(const struct limefile_sites *sites)
{
    uint64_t count = 1;
    for (int d = 0; d < 4; d++)
        if (sites->extent[d] == 0 || __builtin_mul_overflow(count, sites->extent[d], &count))
            return false;
    return count >> BITS_OF_SITES == 0 && (sites->precision == 32 || sites->precision == 64);
}

static uint64_t parts(uint64_t whole, uint64_t part)
{
    return (whole - 1) / part + 1;
}

/* How many rows of y and z, with those that follow the block, make it worth while: most sites
 * for what is read. `rows` is at least 4. */
static void choose(struct plan *p, uint64_t rows)
{
    uint64_t best = 0, best_read = 1;
    for (uint64_t y = 1; y <= p->extent[1] && y <= rows; y++) {
        uint64_t read_y = y + (y < p->extent[1]), room = rows / read_y;
        uint64_t z = p->extent[2] <= room ? p->extent[2] : room ? room - 1 : 0;
        uint64_t read = read_y * (z + (z < p->extent[2]));
        if (z && y * z * best_read >= best * read) {
            best = y * z;
            best_read = read;
            p->edge[1] = y;
            p->edge[2] = z;
        }
    }
}

int plan_make(struct plan *p, const struct limefile_sites *sites)
{
    memset(p, 0, sizeof *p);
    if (!is_lattice(sites))
        return -EINVAL;
    memcpy(p->extent, sites->extent, sizeof p->extent);
    p->edge[0] = p->extent[0] < ROW_SITES ? p->extent[0] : ROW_SITES;
    p->row_tiles = (size_t)parts(p->edge[0], TILE_SITES);
    size_t row_bytes = p->row_tiles * TILE_REALS * sizeof(double);
    choose(p, LAYERS_BYTES / 2 / row_bytes);
    p->layer_rows = 1;
    p->steps = p->extent[3];
    for (int d = 0; d < 3; d++) {
        p->halo[d] = p->edge[d] < p->extent[d];
        p->blocks[d] = parts(p->extent[d], p->edge[d]);
        p->steps *= p->blocks[d];
        p->layer_rows *= d ? (size_t)p->edge[d] + p->halo[d] : 1;
    }
    p->cell_steps = parts(p->steps, PLAN_CELLS_MAX);
    p->cells = parts(p->steps, p->cell_steps);
    size_t row = ((size_t)p->edge[0] + 1) * limefile_sites_bytes(sites);
    p->read_bytes = row < READ_BYTES ? READ_BYTES : row;
    return 0;
}

void plan_part(const struct plan *p, uint64_t step, struct part *out)
{
    uint64_t block = step / p->extent[3];
    out->t = step % p->extent[3];
    for (int d = 0; d < 3; d++) {
        out->first[d] = block % p->blocks[d] * p->edge[d];
        block /= p->blocks[d];
        uint64_t left = p->extent[d] - out->first[d];
        out->count[d] = left < p->edge[d] ? left : p->edge[d];
    }
}
