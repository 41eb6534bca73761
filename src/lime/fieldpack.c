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

static void pack_number(unsigned char **to, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *(*to)++ = (unsigned char)(number | 0x80);
    *(*to)++ = (unsigned char)number;
}

static uint64_t unpack_number(const unsigned char **from)
{
    uint64_t number = 0;
    unsigned shift = 0;
    for (; **from & 0x80; shift += 7)
        number |= (uint64_t)(*(*from)++ & 0x7f) << shift;
    return number | (uint64_t) * (*from)++ << shift;
}

static size_t pack_field(unsigned char *begin, const struct limefile_field *f)
{
    unsigned char *to = begin;
    size_t name = strlen(f->name) + 1;
    pack_number(&to, f->kind);
    pack_number(&to, (f->is_checkerboard ? HALVED : 0) | (f->is_box ? BOXED : 0) |
                         (f->descriptions_differ ? DISPUTED : 0));
    pack_number(&to, f->precision);
    memcpy(to, f->name, name);
    to += name;
    pack_number(&to, f->lattice.dims);
    for (unsigned i = 0; i < f->lattice.dims; i++)
        pack_number(&to, f->lattice.extent[i]);
    for (unsigned i = 0; f->is_box && i < f->lattice.dims; i++) {
        pack_number(&to, f->lower[i]);
        pack_number(&to, f->upper[i]);
    }
    pack_number(&to, f->sites);
    pack_number(&to, f->site_bytes);
    pack_number(&to, f->expected);
    pack_number(&to, f->datacount);
    pack_number(&to, f->colors);
    pack_number(&to, f->spins);
    return (size_t)(to - begin);
}

int fieldpack_put(struct fieldpack *p, const struct limefile_field *f, uint64_t *position)
{
    if (!limefile_reserve(&p->bytes, &p->capacity, p->used + DESCRIPTION_MAX, 1))
        return -ENOMEM;
    size_t n = pack_field(p->bytes + p->used, f);
    if (n != p->used - p->last || memcmp(p->bytes + p->last, p->bytes + p->used, n) != 0) {
        p->last = p->used;
        p->used += n;
    }
    *position = p->last + 1;
    return 0;
}

void fieldpack_get(const struct fieldpack *p, uint64_t position, struct limefile_field *f)
{
    const unsigned char *from = p->bytes + (position - 1);
    f->kind = (enum limefile_fieldkind)unpack_number(&from);
    uint64_t flags = unpack_number(&from);
    f->is_checkerboard = flags & HALVED;
    f->is_box = flags & BOXED;
    f->descriptions_differ = flags & DISPUTED;
    f->precision = (unsigned)unpack_number(&from);
    size_t name = strlen((const char *)from) + 1;
    memcpy(f->name, from, name);
    from += name;
    f->lattice.dims = (unsigned)unpack_number(&from);
    for (unsigned i = 0; i < f->lattice.dims; i++)
        f->lattice.extent[i] = unpack_number(&from);
    for (unsigned i = 0; f->is_box && i < f->lattice.dims; i++) {
        f->lower[i] = unpack_number(&from);
        f->upper[i] = unpack_number(&from);
    }
    f->sites = unpack_number(&from);
    f->site_bytes = unpack_number(&from);
    f->expected = unpack_number(&from);
    f->datacount = unpack_number(&from);
    f->colors = (unsigned)unpack_number(&from);
    f->spins = (unsigned)unpack_number(&from);
}
