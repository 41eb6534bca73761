/* fieldpack.c - pack descriptions of fields, with numbers of variable length */
#define _GNU_SOURCE
#include "fieldpack.h"
#include "array.h"

#include <errno.h>
#include <string.h>

enum {
    NUMBER_MAX = 10, /* bytes of a packed number */
    NUMBERS_MAX = 3 * LIMEFILE_DIMS_MAX + 11,
    DESCRIPTION_MAX = NUMBERS_MAX * NUMBER_MAX + LIMEFILE_WORD_MAX,

    HALVED = 1,
    BOXED = 2,
    DISPUTED = 4,
};

/* ---- numbers: 7 bits a byte, lowest first; bit 7 is set in all bytes but the last ---- */

static void put(unsigned char **to, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *(*to)++ = (unsigned char)(number | 0x80);
    *(*to)++ = (unsigned char)number;
}

static uint64_t get(const unsigned char **from)
{
    uint64_t number = 0;
    unsigned shift = 0;
    for (; **from & 0x80; shift += 7)
        number |= (uint64_t)(*(*from)++ & 0x7f) << shift;
    return number | (uint64_t) * (*from)++ << shift;
}

/* ---- descriptions ---- */

static size_t pack(unsigned char *begin, const struct limefile_field *f)
{
    unsigned char *to = begin;
    size_t name = strlen(f->name) + 1;
    put(&to, f->kind);
    put(&to, (f->halved ? HALVED : 0) | (f->boxed ? BOXED : 0) | (f->disputed ? DISPUTED : 0));
    put(&to, f->precision);
    memcpy(to, f->name, name);
    to += name;
    put(&to, f->lattice.dims);
    for (unsigned i = 0; i < f->lattice.dims; i++)
        put(&to, f->lattice.extent[i]);
    for (unsigned i = 0; f->boxed && i < f->lattice.dims; i++) {
        put(&to, f->lower[i]);
        put(&to, f->upper[i]);
    }
    put(&to, f->sites);
    put(&to, f->site_bytes);
    put(&to, f->expected);
    put(&to, f->datacount);
    put(&to, f->colors);
    put(&to, f->spins);
    return (size_t)(to - begin);
}

int fieldpack_put(struct fieldpack *p, const struct limefile_field *f, uint64_t *where)
{
    if (!limefile_reserve(&p->at, &p->capacity, p->used + DESCRIPTION_MAX, 1))
        return -ENOMEM;
    size_t n = pack(p->at + p->used, f);
    if (n != p->used - p->last || memcmp(p->at + p->last, p->at + p->used, n) != 0) {
        p->last = p->used;
        p->used += n;
    }
    *where = p->last + 1;
    return 0;
}

void fieldpack_get(const struct fieldpack *p, uint64_t where, struct limefile_field *f)
{
    const unsigned char *from = p->at + (where - 1);
    f->kind = (enum limefile_fieldkind)get(&from);
    uint64_t flags = get(&from);
    f->halved = flags & HALVED;
    f->boxed = flags & BOXED;
    f->disputed = flags & DISPUTED;
    f->precision = (unsigned)get(&from);
    size_t name = strlen((const char *)from) + 1;
    memcpy(f->name, from, name);
    from += name;
    f->lattice.dims = (unsigned)get(&from);
    for (unsigned i = 0; i < f->lattice.dims; i++)
        f->lattice.extent[i] = get(&from);
    for (unsigned i = 0; f->boxed && i < f->lattice.dims; i++) {
        f->lower[i] = get(&from);
        f->upper[i] = get(&from);
    }
    f->sites = get(&from);
    f->site_bytes = get(&from);
    f->expected = get(&from);
    f->datacount = get(&from);
    f->colors = (unsigned)get(&from);
    f->spins = (unsigned)get(&from);
}
