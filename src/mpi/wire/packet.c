/* packet.c - packets made and taken apart; pure */
#include "limejob.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

void limejob_request(struct limejob_packet *packet, uint16_t opcode, uint64_t tag)
{
    packet->opcode = opcode;
    packet->flags = 0;
    packet->tag = tag;
    packet->bytes = packet->at = 0;
    packet->broken = false;
    packet->fd = -1;
}

void limejob_reply(struct limejob_packet *packet, const struct limejob_packet *request,
                   int code, const char *text)
{
    limejob_request(packet, request->opcode, request->tag);
    packet->flags = LIMEJOB_REPLY;
    limejob_put_u32(packet, (uint32_t)(code < 0 ? -code : code));
    if (code && text)
        limejob_put_bytes(packet, text, strnlen(text, LIMEJOB_TEXT_MAX - 1));
}

void limejob_put_bytes(struct limejob_packet *packet, const void *bytes, size_t n)
{
    if (n > sizeof packet->payload - packet->bytes) {
        packet->broken = true;
        return;
    }
    memcpy(packet->payload + packet->bytes, bytes, n);
    packet->bytes += (uint32_t)n;
}

void limejob_put_u32(struct limejob_packet *packet, uint32_t value)
{
    value = htole32(value);
    limejob_put_bytes(packet, &value, sizeof value);
}

void limejob_put_u64(struct limejob_packet *packet, uint64_t value)
{
    value = htole64(value);
    limejob_put_bytes(packet, &value, sizeof value);
}

static void get_bytes(struct limejob_packet *packet, void *to, size_t n)
{
    memset(to, 0, n);
    if (packet->broken || n > packet->bytes - packet->at) {
        packet->broken = true;
        return;
    }
    memcpy(to, packet->payload + packet->at, n);
    packet->at += (uint32_t)n;
}

uint32_t limejob_get_u32(struct limejob_packet *packet)
{
    uint32_t value;
    get_bytes(packet, &value, sizeof value);
    return le32toh(value);
}

uint64_t limejob_get_u64(struct limejob_packet *packet)
{
    uint64_t value;
    get_bytes(packet, &value, sizeof value);
    return le64toh(value);
}

int limejob_get_text(struct limejob_packet *packet, char *buf, size_t cap)
{
    size_t n = packet->broken ? 0 : packet->bytes - packet->at;
    if (packet->broken || n >= cap || memchr(packet->payload + packet->at, '\0', n)) {
        packet->broken = true;
        if (cap)
            buf[0] = '\0';
        return -1;
    }
    get_bytes(packet, buf, n);
    buf[n] = '\0';
    return 0;
}

int limejob_get_code(struct limejob_packet *packet, char *text, size_t cap)
{
    uint32_t code = limejob_get_u32(packet);
    if (cap)
        text[0] = '\0';
    if (packet->broken || code > 4095) /* the kernel's own limit of an errno */
        return -EPROTO;
    if (code && cap)
        limejob_get_text(packet, text, cap);
    return -(int)code;
}

/* ---- headers ---- */

struct raw {
    uint32_t magic;
    uint16_t version, opcode;
    uint32_t flags, bytes;
    uint64_t tag;
};

_Static_assert(sizeof(struct raw) == LIMEJOB_HEADER_BYTES, "no gaps");

void limejob_header_encode(const struct limejob_packet *packet, unsigned char *raw)
{
    struct raw header = {
        .magic = htole32(LIMEJOB_MAGIC),
        .version = htole16(LIMEJOB_VERSION),
        .opcode = htole16(packet->opcode),
        .flags = htole32(packet->flags),
        .bytes = htole32(packet->bytes),
        .tag = htole64(packet->tag),
    };
    memcpy(raw, &header, sizeof header);
}

int limejob_header_decode(struct limejob_packet *packet, const unsigned char *raw,
                          uint16_t *version)
{
    struct raw header;
    memcpy(&header, raw, sizeof header);
    *version = le16toh(header.version);
    limejob_request(packet, le16toh(header.opcode), le64toh(header.tag));
    packet->flags = le32toh(header.flags);
    packet->bytes = le32toh(header.bytes);
    if (le32toh(header.magic) != LIMEJOB_MAGIC)
        return -EPROTO;
    if (*version != LIMEJOB_VERSION)
        return -EPROTONOSUPPORT;
    if (packet->bytes > LIMEJOB_PAYLOAD_MAX)
        return -EMSGSIZE;
    return packet->flags & ~(uint32_t)LIMEJOB_REPLY ? -EPROTO : 0;
}
