/* box.c - boxes of sites, read in pieces that are as long as possible */
#include "box.h"

struct stretch {
    uint64_t at, length, local;
};

/* What of a box's width comes before the edge of the lattice, and what is behind it. */
static int stretches(const struct box *box, const uint64_t extent[4], int d,
                     struct stretch out[2])
{
    uint64_t first = extent[d] - box->base[d];
    first = first < box->width[d] ? first : box->width[d];
    out[0] = (struct stretch){box->base[d], first, 0};
    out[1] = (struct stretch){0, box->width[d] - first, first};
    return out[1].length ? 2 : 1;
}

void box_grow(struct box *box, const uint64_t extent[4])
{
    for (int d = 0; d < 3; d++)
        if (box->width[d] < extent[d]) {
            box->base[d] = box->base[d] ? box->base[d] - 1 : extent[d] - 1;
            box->width[d]++;
        }
}

uint64_t box_sites(const struct box *box)
{
    return box->width[0] * box->width[1] * box->width[2];
}

/* Rows that follow each other in the lattice and in the box are one piece. */
static int read_part(const struct limefile_sites *sites, const struct box *box,
                     const struct stretch *x, const struct stretch *y, uint64_t z,
                     uint64_t local_z, uint64_t t, unsigned char *out)
{
    const uint64_t *l = sites->extent;
    uint64_t whole = x->length == l[0] ? y->length : 1;
    size_t site = limefile_sites_bytes(sites);
    int err = 0;
    for (uint64_t i = 0; !err && i < y->length; i += whole) {
        uint64_t rank = x->at + l[0] * (y->at + i + l[1] * (z + l[2] * t));
        uint64_t local = x->local + box->width[0] * (y->local + i + box->width[1] * local_z);
        err = sites->read(sites->context, rank, x->length * whole, out + local * site);
    }
    return err;
}

int box_read(const struct limefile_sites *sites, const struct box *box, uint64_t t, void *out)
{
    struct stretch x[2], y[2];
    int xs = stretches(box, sites->extent, 0, x), ys = stretches(box, sites->extent, 1, y);
    int err = 0;
    for (uint64_t i = 0; !err && i < box->width[2]; i++) {
        uint64_t z = (box->base[2] + i) % sites->extent[2];
        for (int j = 0; !err && j < ys; j++)
            for (int k = 0; !err && k < xs; k++)
                err = read_part(sites, box, &x[k], &y[j], z, i, t, out);
    }
    return err;
}

uint64_t box_of_run(const uint64_t l[4], uint64_t first, uint64_t count, uint64_t planes,
                    struct box *box, uint64_t *t)
{
    uint64_t at[3], plane = l[0] * l[1];
    at[0] = first % l[0];
    at[1] = first / l[0] % l[1];
    at[2] = first / plane % l[2];
    *t = first / plane / l[2];
    *box = (struct box){.base = {at[0], at[1], at[2]}, .width = {1, 1, 1}};
    uint64_t unit[] = {1, l[0], plane};
    int d = at[0] == 0 && count >= l[0] ? 1 : 0;
    d = d && at[1] == 0 && count >= plane ? 2 : d;
    for (int i = 0; i < d; i++)
        box->width[i] = l[i];
    uint64_t most = l[d] - at[d], n = count / unit[d];
    n = n < most ? n : most;
    box->width[d] = d == 2 && n > planes ? planes : n;
    return box_sites(box);
}
