/* packet.c - encode and decode packets, without I/O */
#include "limejob.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const limejob_io_names[] = {"posix", "independent", "collective", "auto", NULL};

void limejob_request_init(struct limejob_packet *packet, uint16_t opcode, uint64_t tag)
{
    packet->opcode = opcode;
    packet->flags = 0;
    packet->tag = tag;
    packet->bytes = packet->at = 0;
    packet->broken = false;
    packet->fd = -1;
}

void limejob_reply_init(struct limejob_packet *packet, const struct limejob_packet *request,
                        int code, const char *text)
{
    limejob_request_init(packet, request->opcode, request->tag);
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
    if (packet->broken || code > 4095) /* the largest errno of the kernel */
        return -EPROTO;
    if (code && cap)
        limejob_get_text(packet, text, cap);
    return -(int)code;
}

/* ---- headers ---- */

struct raw_header {
    uint32_t magic;
    uint16_t version, opcode;
    uint32_t flags, bytes;
    uint64_t tag;
};

_Static_assert(sizeof(struct raw_header) == LIMEJOB_HEADER_BYTES, "no gaps");

void limejob_header_encode(const struct limejob_packet *packet, unsigned char *raw)
{
    struct raw_header header = {
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
    struct raw_header header;
    memcpy(&header, raw, sizeof header);
    *version = le16toh(header.version);
    limejob_request_init(packet, le16toh(header.opcode), le64toh(header.tag));
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

static void describe_mismatch(unsigned differs, const struct limefile_identity *found,
                              const struct limefile_identity *expected, char *text, size_t cap)
{
    if (differs & LIMEFILE_DEV)
        snprintf(text, cap, "device %" PRIu64 ", not %" PRIu64, found->dev, expected->dev);
    else if (differs & LIMEFILE_INO)
        snprintf(text, cap, "inode %" PRIu64 ", not %" PRIu64, found->ino, expected->ino);
    else if (differs & LIMEFILE_UID)
        snprintf(text, cap, "uid %u, not %u", found->uid, expected->uid);
    else if (differs & LIMEFILE_MODE)
        snprintf(text, cap, "mode %#o, not %#o", found->mode, expected->mode);
    else if (differs & LIMEFILE_SIZE)
        snprintf(text, cap, "size %" PRId64 ", not %" PRId64, found->size, expected->size);
    else {
        bool m = differs & LIMEFILE_MTIME;
        const struct timespec *is = m ? &found->mtime : &found->ctime;
        const struct timespec *was = m ? &expected->mtime : &expected->ctime;
        snprintf(text, cap, "%s %jd.%09ld, not %jd.%09ld", m ? "mtime" : "ctime",
                 (intmax_t)is->tv_sec, is->tv_nsec, (intmax_t)was->tv_sec, was->tv_nsec);
    }
}

int limejob_identity_compare(const struct limefile_identity *found,
                             const struct limefile_identity *expected, unsigned ignored,
                             char *text, size_t cap)
{
    unsigned differs = limefile_identity_differences(found, expected) & ~ignored;
    if (differs)
        describe_mismatch(differs, found, expected, text, cap);
    return differs ? -ESTALE : 0;
}

size_t limejob_directory_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash > path ? (size_t)(slash - path) : 1;
}

static void put_identity(struct limejob_packet *packet,
                         const struct limefile_identity *identity)
{
    limejob_put_u64(packet, identity->dev);
    limejob_put_u64(packet, identity->ino);
    limejob_put_u32(packet, identity->uid);
    limejob_put_u32(packet, identity->mode);
    limejob_put_u64(packet, (uint64_t)identity->size);
    limejob_put_u64(packet, (uint64_t)identity->mtime.tv_sec);
    limejob_put_u32(packet, (uint32_t)identity->mtime.tv_nsec);
    limejob_put_u64(packet, (uint64_t)identity->ctime.tv_sec);
    limejob_put_u32(packet, (uint32_t)identity->ctime.tv_nsec);
}

void limejob_put_open_request(struct limejob_packet *packet,
                              const struct limefile_identity *identity, const char *path,
                              size_t root)
{
    put_identity(packet, identity);
    limejob_put_u32(packet, (uint32_t)root);
    limejob_put_bytes(packet, path, strlen(path));
}

static void get_identity(struct limejob_packet *packet, struct limefile_identity *identity)
{
    identity->dev = limejob_get_u64(packet);
    identity->ino = limejob_get_u64(packet);
    identity->uid = limejob_get_u32(packet);
    identity->mode = limejob_get_u32(packet);
    identity->size = (int64_t)limejob_get_u64(packet);
    identity->mtime.tv_sec = (int64_t)limejob_get_u64(packet);
    identity->mtime.tv_nsec = limejob_get_u32(packet);
    identity->ctime.tv_sec = (int64_t)limejob_get_u64(packet);
    identity->ctime.tv_nsec = limejob_get_u32(packet);
}

/* Returns true if the path is absolute and its first `root` bytes are a directory above the
 * file. In "/data/conf", "/data" and "/" are such directories, but "/da" is not. */
static bool is_root_of(const char *path, uint32_t root)
{
    size_t length = strlen(path);
    return path[0] == '/' && root > 0 && root < length &&
           (path[root] == '/' || path[root - 1] == '/') &&
           strspn(path + root, "/") < length - root;
}

int limejob_get_open_request(struct limejob_packet *packet,
                             struct limejob_open_request *opening)
{
    get_identity(packet, &opening->identity);
    opening->root = limejob_get_u32(packet);
    if (limejob_get_text(packet, opening->path, sizeof opening->path) != 0)
        return -EINVAL;
    return is_root_of(opening->path, opening->root) && opening->identity.size >= 0 ? 0
                                                                                   : -EINVAL;
}

enum {
    /* The identity, u32 root, and a path, at least "/x". */
    OPEN_MIN = LIMEJOB_IDENTITY_BYTES + 4 + 2,
    OPEN_MAX = LIMEJOB_IDENTITY_BYTES + 4 + LIMEJOB_PATH_MAX - 1,
    WRITE_BYTES = 4 + 8 + 8 + 8 + 8 + 8 + 4,
};

static const struct limejob_message messages[] = {
    {LIMEJOB_HELLO, "hello", 8, 8},
    {LIMEJOB_OPEN, "open", OPEN_MIN, OPEN_MAX},
    {LIMEJOB_CLOSE, "close", 4, 4},
    {LIMEJOB_READ, "read", 4 + 8 + 8 + 8, 4 + 8 + 8 + 8},
    {LIMEJOB_STATUS, "status", 0, 0},
    {LIMEJOB_STOP, "stop", 0, 0},
    {LIMEJOB_OPEN_WRITE, "open for writing", OPEN_MIN, OPEN_MAX},
    {LIMEJOB_WRITE, "write", WRITE_BYTES, WRITE_BYTES},
    {LIMEJOB_SYNC, "sync", 4, 4},
};

const struct limejob_message *limejob_find_message(uint16_t opcode)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (messages[i].opcode == opcode)
            return &messages[i];
    return NULL;
}
