/* fuzz_wire.c - any bytes from a peer: a channel returns a packet or an end */
#define _GNU_SOURCE
#include "fuzz.h"

#include "limejob.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static void check_payload(const struct limejob_packet *original)
{
    static struct limejob_packet packet;
    static char text[LIMEJOB_PAYLOAD_MAX + 1];
    packet = *original;
    int code = limejob_get_code(&packet, text, LIMEJOB_TEXT_MAX);
    HOLDS(code <= 0 && code >= -4095 && strlen(text) < LIMEJOB_TEXT_MAX);
    packet = *original;
    while (!packet.broken) {
        uint32_t before = packet.at;
        limejob_get_u64(&packet);
        HOLDS(packet.at == before + 8 || (packet.broken && packet.at == before));
        HOLDS(packet.at <= packet.bytes);
    }
    packet = *original;
    if (limejob_get_text(&packet, text, sizeof text) == 0)
        HOLDS(strlen(text) == original->bytes);
}

/* An opening is valid or refused; sent again, it has the same bytes. */
static void check_opening(const struct limejob_packet *original)
{
    static struct limejob_packet packet, again;
    static struct limejob_open_request opening;
    packet = *original;
    if (limejob_get_open_request(&packet, &opening) != 0)
        return;
    HOLDS(!packet.broken && packet.at == packet.bytes);
    HOLDS(opening.path[0] == '/' && opening.root > 0 && opening.root < strlen(opening.path));
    HOLDS(opening.identity.size >= 0);
    limejob_request_init(&again, original->opcode, original->tag);
    limejob_put_open_request(&again, &opening.identity, opening.path, opening.root);
    HOLDS(again.bytes == original->bytes);
    HOLDS(memcmp(again.payload, original->payload, again.bytes) == 0);
    HOLDS(limejob_identity_compare(&opening.identity, &opening.identity, 0, NULL, 0) == 0);
}

/* Returns how many 64-bit numbers follow the file's; -1: another kind of message. */
static int numbers_of(uint16_t opcode)
{
    switch (opcode) {
    case LIMEJOB_CLOSE:
    case LIMEJOB_SYNC:
        return 0;
    case LIMEJOB_READ:
        return 3;
    case LIMEJOB_WRITE:
        return 5;
    default:
        return -1;
    }
}

/* The job can read all fields of a request of the right length. */
static void check_request(const struct limejob_packet *original)
{
    static struct limejob_packet packet;
    const struct limejob_message *message = limejob_find_message(original->opcode);
    if (!message || original->flags || original->bytes < message->min_bytes ||
        original->bytes > message->max_bytes)
        return;
    if (original->opcode == LIMEJOB_OPEN || original->opcode == LIMEJOB_OPEN_WRITE)
        check_opening(original);
    int numbers = numbers_of(original->opcode);
    if (numbers < 0)
        return;
    packet = *original;
    limejob_get_u32(&packet);
    for (int i = 0; i < numbers; i++)
        limejob_get_u64(&packet);
    if (original->opcode == LIMEJOB_WRITE)
        limejob_get_u32(&packet);
    HOLDS(!packet.broken && packet.at == packet.bytes);
}

/* A received packet that is sent again has the same bytes. */
static void check_header(const struct limejob_packet *packet, const uint8_t *raw)
{
    unsigned char again[LIMEJOB_HEADER_BYTES];
    HOLDS(packet->bytes <= LIMEJOB_PAYLOAD_MAX && packet->fd == -1);
    limejob_header_encode(packet, again);
    HOLDS(memcmp(again, raw, sizeof again) == 0);
    HOLDS(memcmp(packet->payload, raw + sizeof again, packet->bytes) == 0);
}

static void receive_all(struct limejob_channel *channel, const uint8_t *data, size_t size)
{
    static struct limejob_packet packet;
    for (size_t at = 0;;) {
        int done = limejob_receive(channel, &packet, 0);
        if (done < 0) {
            HOLDS(done == -EPIPE || done == -EPROTO || done == -EPROTONOSUPPORT ||
                  done == -EMSGSIZE);
            HOLDS(done != -EPIPE || size - at < LIMEJOB_HEADER_BYTES + LIMEJOB_PAYLOAD_MAX);
            return;
        }
        HOLDS(done == 1); /* the end was reached */
        HOLDS(at + LIMEJOB_HEADER_BYTES + packet.bytes <= size);
        check_header(&packet, data + at);
        check_payload(&packet);
        check_request(&packet);
        at += LIMEJOB_HEADER_BYTES + packet.bytes;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct limejob_channel channel;
    int pair[2];
    HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    HOLDS(size < 64 * 1024 && write(pair[0], data, size) == (ssize_t)size);
    close(pair[0]);
    limejob_channel_init(&channel, pair[1]);
    receive_all(&channel, data, size);
    limejob_channel_close(&channel);
    return 0;
}
