/* hash.c - SipHash-1-3: record types out of a hostile file must not all fall into one slot */
#include "hash.h"

#include <sys/random.h>
#include <time.h>

struct state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate_left(uint64_t value, unsigned by)
{
    return value << by | value >> (64 - by);
}

static void stir(struct state *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 = rotate_left(s->v2, 32);
}

static uint64_t get_le(const unsigned char *p, size_t n)
{
    uint64_t word = 0;
    for (size_t i = 0; i < n; i++)
        word |= (uint64_t)p[i] << 8 * i;
    return word;
}

static void absorb(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    stir(s);
    s->v0 ^= word;
}

uint64_t limefile_hash(const struct limefile_hash_key *key, const void *data, size_t n)
{
    const unsigned char *p = data;
    struct state s = {
        key->word[0] ^ UINT64_C(0x736f6d6570736575),
        key->word[1] ^ UINT64_C(0x646f72616e646f6d),
        key->word[0] ^ UINT64_C(0x6c7967656e657261),
        key->word[1] ^ UINT64_C(0x7465646279746573),
    };
    size_t left = n;
    for (; left >= 8; left -= 8, p += 8)
        absorb(&s, get_le(p, 8));
    absorb(&s, (uint64_t)n << 56 | get_le(p, left));
    s.v2 ^= 0xff;
    stir(&s);
    stir(&s);
    stir(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

void limefile_hash_key_draw(struct limefile_hash_key *key)
{
    if (getrandom(key, sizeof *key, GRND_NONBLOCK) == (ssize_t)sizeof *key)
        return;
    /* A machine that has just started: hard to guess is all that is needed. */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    key->word[0] = (uint64_t)now.tv_nsec * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)now.tv_sec;
    key->word[1] = (uint64_t)(uintptr_t)key * UINT64_C(0xbf58476d1ce4e5b9);
}
