/* record_header.c - encode and decode record headers, without I/O */
#include "limefile.h"
#include "header_bytes.h"

#include <string.h>

bool limefile_header_is_magic(const void *raw, size_t n)
{
    unsigned char magic[4];
    put_be32(magic, LIMEFILE_MAGIC);
    return memcmp(raw, magic, n < sizeof magic ? n : sizeof magic) == 0;
}

int limefile_header_decode(const unsigned char *raw, struct limefile_header *out)
{
    if (get_be32(raw + AT_MAGIC) != LIMEFILE_MAGIC)
        return LIMEFILE_E_MAGIC;
    out->version = get_be16(raw + AT_VERSION);
    out->flags = raw[AT_FLAGS];
    out->reserved = raw[AT_RESERVED];
    out->mb = out->flags & FLAG_MB;
    out->me = out->flags & FLAG_ME;
    out->bytes = get_be64(raw + AT_BYTES);
    size_t len = strnlen((const char *)raw + AT_TYPE, LIMEFILE_TYPE_BYTES);
    out->type_len = (uint8_t)len;
    memcpy(out->type, raw + AT_TYPE, len);
    out->type[len] = '\0';
    out->type_tail = !is_zero(raw + AT_TYPE + len, LIMEFILE_TYPE_BYTES - len);
    if (out->version != LIMEFILE_VERSION)
        return LIMEFILE_E_VERSION;
    return out->bytes > LIMEFILE_BYTES_MAX ? LIMEFILE_E_LENGTH : 0;
}

int limefile_header_init(struct limefile_header *out, const char *type, size_t type_len,
                         uint64_t bytes, bool mb, bool me)
{
    if (type_len > LIMEFILE_TYPE_BYTES - 1 || memchr(type, '\0', type_len))
        return LIMEFILE_E_TYPE;
    if (bytes > LIMEFILE_BYTES_MAX)
        return LIMEFILE_E_LENGTH;
    memset(out, 0, sizeof *out);
    out->bytes = bytes;
    out->version = LIMEFILE_VERSION;
    out->mb = mb;
    out->me = me;
    out->flags = (uint8_t)((mb ? FLAG_MB : 0) | (me ? FLAG_ME : 0));
    out->type_len = (uint8_t)type_len;
    memcpy(out->type, type, type_len);
    return 0;
}

int limefile_header_encode(const struct limefile_header *in, unsigned char *raw)
{
    if (in->type_len > LIMEFILE_TYPE_BYTES - 1 || memchr(in->type, '\0', in->type_len))
        return LIMEFILE_E_TYPE;
    if (in->bytes > LIMEFILE_BYTES_MAX)
        return LIMEFILE_E_LENGTH;
    memset(raw, 0, LIMEFILE_HEADER_BYTES);
    put_be32(raw + AT_MAGIC, LIMEFILE_MAGIC);
    put_be16(raw + AT_VERSION, LIMEFILE_VERSION);
    raw[AT_FLAGS] = (unsigned char)((in->mb ? FLAG_MB : 0) | (in->me ? FLAG_ME : 0));
    put_be64(raw + AT_BYTES, in->bytes);
    memcpy(raw + AT_TYPE, in->type, in->type_len);
    return 0;
}

size_t limefile_type_printable(const char *type, size_t len)
{
    size_t n = 0;
    while (n < len && type[n] >= 0x20 && type[n] < 0x7f)
        n++;
    return n;
}

unsigned limefile_padding(uint64_t bytes)
{
    return (unsigned)(-bytes % LIMEFILE_ALIGN);
}

int limefile_record_end(uint64_t header_offset, uint64_t bytes, uint64_t *data_end,
                        uint64_t *next)
{
    uint64_t data, end, after;
    if (__builtin_add_overflow(header_offset, LIMEFILE_HEADER_BYTES, &data) ||
        __builtin_add_overflow(data, bytes, &end) ||
        __builtin_add_overflow(end, limefile_padding(bytes), &after) || after > INT64_MAX)
        return LIMEFILE_E_LENGTH;
    *data_end = end;
    *next = after;
    return 0;
}
