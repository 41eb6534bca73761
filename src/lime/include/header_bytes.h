/* header_bytes.h - offsets of a record header's fields, and access to big-endian numbers */
#ifndef LIMEFILE_HEADER_BYTES_H
#define LIMEFILE_HEADER_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    AT_MAGIC = 0,
    AT_VERSION = 4,
    AT_FLAGS = 6,
    AT_RESERVED = 7,
    AT_BYTES = 8,
    AT_TYPE = 16,
};

enum { FLAG_MB = 0x80, FLAG_ME = 0x40 };

/* Values of the reserved byte in a record's header while a program changes the container; zero
 * at other times. The tail is all bytes after the record with this mark. */
enum {
    MARK_RESIZING = 0x5f,  /* the tail is not committed; the record's own data are intact */
    MARK_REMOVING = 0x2d,  /* the tail is being removed */
    MARK_REPLACING = 0x3d, /* the tail is new data, which are being copied into a record */
};

static inline uint16_t get_be16(const unsigned char *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t get_be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t get_be64(const unsigned char *p)
{
    return (uint64_t)get_be32(p) << 32 | get_be32(p + 4);
}

static inline void put_be16(unsigned char *p, uint16_t v)
{
    p[0] = (unsigned char)(v >> 8);
    p[1] = (unsigned char)v;
}

static inline void put_be32(unsigned char *p, uint32_t v)
{
    put_be16(p, (uint16_t)(v >> 16));
    put_be16(p + 2, (uint16_t)v);
}

static inline void put_be64(unsigned char *p, uint64_t v)
{
    put_be32(p, (uint32_t)(v >> 32));
    put_be32(p + 4, (uint32_t)v);
}

static inline bool is_zero(const unsigned char *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

#endif
