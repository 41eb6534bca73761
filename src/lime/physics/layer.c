/* layer.c - reading a layer: rows of sites, as many at once as are neighbours in the file */
#define _GNU_SOURCE
#include "layer.h"
#include "tile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    CACHE_LINE = 64,
    SPARE = CACHE_LINE, /* a tile that is not full may be followed by numbers that are read */
};

int layer_make(struct layer *layer, const struct plan *plan)
{
    size_t bytes = plan->layer_rows * plan->row_tiles * TILE_REALS * sizeof(double) + SPARE;
    layer->tiles = aligned_alloc(CACHE_LINE, bytes);
    if (!layer->tiles)
        return -ENOMEM;
    memset(layer->tiles, 0, bytes);
    return 0;
}

void layer_release(struct layer *layer)
{
    free(layer->tiles);
    layer->tiles = NULL;
}

static size_t row_number(const struct plan *plan, uint64_t y, uint64_t z)
{
    return (size_t)(z * (plan->edge[1] + plan->halo[1]) + y);
}

static double *row_at(const struct layer *layer, const struct plan *plan, size_t number)
{
    return layer->tiles + number * plan->row_tiles * TILE_REALS;
}

const double *layer_row(const struct layer *layer, const struct plan *plan,
                        const struct part *part, uint64_t y, uint64_t z)
{
    if (y == part->count[1] && !plan->halo[1])
        y = 0;
    if (z == part->count[2] && !plan->halo[2])
        z = 0;
    return row_at(layer, plan, row_number(plan, y, z));
}

/* `next`: the site that follows the row. */
static void unpack_row(double *tile, const unsigned char *row, const unsigned char *next,
                       uint64_t count, const struct limefile_sites *sites)
{
    size_t tile_bytes = TILE_SITES * limefile_sites_bytes(sites);
    for (; count > TILE_SITES; count -= TILE_SITES, row += tile_bytes, tile += TILE_REALS)
        tile_unpack(tile, row, TILE_SITES, row + tile_bytes, sites->precision);
    tile_unpack(tile, row, (unsigned)count, next, sites->precision);
}

/* A row of which only a part is read. */
static int load_part(double *tile, const struct reader *r, uint64_t row, uint64_t first,
                     uint64_t count)
{
    size_t site = limefile_sites_bytes(r->sites);
    unsigned char *next = r->buffer + (size_t)count * site;
    bool last = first + count == r->plan->extent[0];
    int err = r->sites->read(r->sites->context, row + first, count + !last, r->buffer);
    if (!err && last)
        err = r->sites->read(r->sites->context, row, 1, next);
    if (!err)
        unpack_row(tile, r->buffer, next, count, r->sites);
    return err;
}

/* Whole rows that are neighbours in the file; `row` is the first site of the first one. */
static int load_rows(double *tile, const struct reader *r, uint64_t row, uint64_t rows)
{
    uint64_t extent = r->plan->extent[0];
    size_t bytes = (size_t)extent * limefile_sites_bytes(r->sites);
    uint64_t most = r->plan->read_bytes / bytes;
    int err = 0;
    while (!err && rows) {
        uint64_t n = rows < most ? rows : most;
        err = r->sites->read(r->sites->context, row, n * extent, r->buffer);
        for (uint64_t i = 0; !err && i < n; i++, tile += r->plan->row_tiles * TILE_REALS)
            unpack_row(tile, r->buffer + i * bytes, r->buffer + i * bytes, extent, r->sites);
        rows -= n;
        row += n * extent;
    }
    return err;
}

/* Rows from y on, of a plane whose first site is `plane`. */
static int load_plane(double *tile, const struct reader *r, const struct part *part,
                      uint64_t plane, uint64_t y, uint64_t rows)
{
    uint64_t extent = r->plan->extent[0];
    int err = 0;
    if (!r->plan->halo[0])
        return load_rows(tile, r, plane + y * extent, rows);
    for (uint64_t i = 0; !err && i < rows; i++, tile += r->plan->row_tiles * TILE_REALS)
        err = load_part(tile, r, plane + (y + i) * extent, part->first[0], part->count[0]);
    return err;
}

int layer_load(struct layer *layer, const struct reader *r, const struct part *part,
               uint64_t block, uint64_t t)
{
    const struct plan *p = r->plan;
    uint64_t planes = part->count[2] + p->halo[2], extent = p->extent[1];
    int err = 0;
    layer->full = false;
    for (uint64_t z = 0; !err && z < planes; z++) {
        uint64_t at = (part->first[2] + z) % p->extent[2];
        uint64_t plane = (t * p->extent[2] + at) * extent * p->extent[0];
        uint64_t y = part->first[1], rows = part->count[1];
        bool follows = p->halo[1] && z < part->count[2], wraps = y + rows == extent;
        double *tile = row_at(layer, p, row_number(p, 0, z));
        err = load_plane(tile, r, part, plane, y, rows + (follows && !wraps));
        tile = row_at(layer, p, row_number(p, rows, z));
        if (!err && follows && wraps)
            err = load_plane(tile, r, part, plane, 0, 1);
    }
    layer->block = block;
    layer->t = t;
    layer->full = !err;
    return err;
}
