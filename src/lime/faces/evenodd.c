/*
 * evenodd.c - the k-th site of even sites before odd ones, at once
 *
 * Where the extents of the first dimensions (x, y, ...) are odd, the parity of a site's number
 * is that of its coordinates, as it still is with one dimension of an even extent above them.
 * So in a block of that many sites, which is an even number, parity alternates; from one block
 * to the next, it turns over with the coordinates above. If all extents are odd, all is one
 * block.
 */
#include "compute.h"

void face_evenodd_init(struct face_evenodd *e, const struct face_layout *layout)
{
    const struct limefile_array *a = &layout->array;
    uint64_t block = 1;
    *e = (struct face_evenodd){.sites = 1, .origin = layout->origin & 1};
    for (unsigned i = a->lattice; i-- > 0;) { /* the fastest is the last */
        e->sites *= a->shape[i];
        if (block % 2)
            block *= a->shape[i];
        else
            e->extent[e->above++] = a->shape[i];
    }
    e->pairs = block / 2 + block % 2;
    e->evens = e->sites / 2 + (e->sites % 2 && e->origin == 0);
}

uint64_t face_evenodd_site(const struct face_evenodd *e, uint64_t k, uint64_t *run)
{
    unsigned parity = e->origin;
    if (k >= e->evens) {
        k -= e->evens;
        parity ^= 1;
    }
    uint64_t block = k / e->pairs;
    *run = e->pairs - k % e->pairs;
    for (unsigned i = 0; i < e->above; i++) {
        parity ^= block % e->extent[i] & 1;
        block /= e->extent[i];
    }
    return 2 * k + parity;
}
