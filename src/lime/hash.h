/* hash.h - a keyed hash of short strings, for tables whose keys come out of a file */
#ifndef LIMEFILE_HASH_H
#define LIMEFILE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Who knows the key can make strings collide; who writes containers doesn't know it. */
struct limefile_hash_key {
    uint64_t word[2];
};

void limefile_hash_key_draw(struct limefile_hash_key *);

/* SipHash-1-3. */
uint64_t limefile_hash(const struct limefile_hash_key *, const void *data, size_t n);

#endif
