/* fuzz_wire.c - any bytes from a peer: what a channel makes of them is a packet, or an end */
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

/* A request of a right length has all of its fields, as the job reads them. */
static void check_request(const struct limejob_packet *original)
{
    static struct limejob_packet packet;
    static char path[LIMEJOB_PATH_MAX];
    const struct limejob_message *message = limejob_message_of(original->opcode);
    if (!message || original->flags || original->bytes < message->least ||
        original->bytes > message->most)
        return;
    packet = *original;
    int numbers = original->opcode == LIMEJOB_READ || original->opcode == LIMEJOB_WRITE ? 3
                  : original->opcode == LIMEJOB_SUM                                     ? 4
                  : original->opcode == LIMEJOB_OPEN_WRITE                              ? 1
                                                                                        : 0;
    if (numbers >= 3 || original->opcode == LIMEJOB_CLOSE || original->opcode == LIMEJOB_SYNC)
        limejob_get_u32(&packet);
    for (int i = 0; i < numbers; i++)
        limejob_get_u64(&packet);
    HOLDS(!packet.broken);
    if (original->opcode == LIMEJOB_OPEN_WRITE)
        HOLDS(limejob_get_text(&packet, path, sizeof path) == 0 ? path[0] != '\0'
                                                                : packet.broken);
    if (numbers >= 3 && original->opcode != LIMEJOB_WRITE) /* which may say more */
        HOLDS(packet.at == packet.bytes);
}

/* A packet that came is, sent again, the bytes that it came as. */
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
        HOLDS(done == 1); /* the end is there already */
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
