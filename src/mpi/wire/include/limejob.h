/*
 * limejob.h - what a client (the daemon, `limefs-io --status`) and the job say to each other.
 *
 * They speak over a Unix stream socket, in packets: a fixed header, then a payload. Every
 * request has one reply, with the request's opcode and tag; replies may come in any order.
 * Bulk data never go over the socket: the client passes a memfd, the window, with its first
 * packet, and the job reads containers into it, or writes them out of it. The bytes of the
 * window that a request names belong to the job until the reply, then to the client again.
 *
 * Whatever a peer sends is checked here for its form (magic, version, lengths) and, by who
 * obeys it, for its meaning. All integers are little-endian. docs/protocol.md has it all for
 * who writes another client.
 *
 * Knows no MPI and no FUSE. Results are 0 (or a count) or -errno.
 */
#ifndef LIMEJOB_H
#define LIMEJOB_H

#include "limeidentity.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#define LIMEJOB_MAGIC   UINT32_C(0x4a4d494c) /* "LIMJ" */
#define LIMEJOB_VERSION 2

enum {
    LIMEJOB_HEADER_BYTES = 24,
    LIMEJOB_PAYLOAD_MAX = 64 * 1024,
    LIMEJOB_PATH_MAX = 4096,    /* of a container, with its NUL; the NUL is not sent */
    LIMEJOB_TEXT_MAX = 1024,    /* of an error, with its NUL */
    LIMEJOB_IN_FLIGHT_MAX = 64, /* requests that a client may have unanswered */
    LIMEJOB_ALIGN = 4096,       /* `at` and `offset` are best congruent modulo this */
};

#define LIMEJOB_WINDOW_MAX (UINT64_C(1) << 40)
#define LIMEJOB_READ_MAX   (UINT64_C(1) << 30)
#define LIMEJOB_WRITE_MAX  LIMEJOB_READ_MAX

/* ---- messages (packet.c) ---- */

/*
 * Payloads. A reply begins with i32 code: 0, or an errno (positive) followed by text that says
 * what is wrong (UTF-8, no NUL), in place of the fields listed here.
 */
enum limejob_opcode {
    /* The first packet, with the window's descriptor (none: a client that only asks).
     * request: u64 window_bytes            reply: u32 ranks, u32 hosts, u64 stripe */
    LIMEJOB_HELLO = 1,
    /* With a descriptor of the container, open for reading.
     * request: the container's identity: u64 device, u64 inode, u32 uid, u32 mode, u64 bytes,
     *          i64 mtime s, u32 mtime ns, i64 ctime s, u32 ctime ns;
     *          u32 root (bytes of the path that name a folder which only the administrator
     *          changes), path (absolute)
     * reply: u32 file. ESTALE: the descriptor, or a rank on another host, has another file. */
    LIMEJOB_OPEN,
    /* request: u32 file                    reply: nothing */
    LIMEJOB_CLOSE,
    /* request: u32 file, u64 offset, u64 bytes, u64 at (in the window)
     * reply: u64 bytes: all of them, else there is a code. */
    LIMEJOB_READ,
    /* request: nothing                     reply: JSON */
    LIMEJOB_STATUS,
    /* request: nothing                     reply: nothing; then the job ends */
    LIMEJOB_STOP,
    /* The same for writing alone, with a descriptor that is open for writing. Size and times of
     * what is being written are not compared. */
    LIMEJOB_OPEN_WRITE,
    /* request: u32 file, u64 offset, u64 bytes, u64 at (in the window), u64 gate (in the
     *          window, or UINT64_MAX), u64 until (ns of CLOCK_REALTIME, or 0), u32 uid (whose
     *          bytes they are: a job of root's writes them with that user's rights)
     * reply: u64 bytes: all of them, else there is a code, and any of them may be written.
     * ECANCELED: the 32 bits at `gate` are not 0 any more, by the client, or because it has
     * gone; ETIMEDOUT. */
    LIMEJOB_WRITE,
    /* On every rank; of all writes, of any client, that were asked for before.
     * request: u32 file                    reply: nothing */
    LIMEJOB_SYNC,
    /* Between the job's own processes: src/mpi/job/control.h */
    LIMEJOB_INTERNAL = 0x100,
};

enum {
    LIMEJOB_REPLY = 1, /* flags */
};

struct limejob_message {
    uint16_t opcode;
    const char *name;
    uint32_t least, most; /* bytes of a request's payload */
};

/* NULL if the opcode is not known. */
const struct limejob_message *limejob_message_of(uint16_t opcode);

/* ---- packets (packet.c) ---- */

struct limejob_packet {
    uint16_t opcode;
    uint32_t flags;
    uint64_t tag;
    uint32_t bytes; /* of the payload */
    uint32_t at;    /* up to here limejob_get_*() have read */
    bool broken;    /* a limejob_get_*() or limejob_put_*() has gone too far */
    int fd;         /* that came or goes with it, or -1; its holder closes it */
    unsigned char payload[LIMEJOB_PAYLOAD_MAX];
};

void limejob_request(struct limejob_packet *, uint16_t opcode, uint64_t tag);

/* A reply to `request`, with its code; a text goes with a code that is not 0. */
void limejob_reply(struct limejob_packet *, const struct limejob_packet *request, int code,
                   const char *text);

void limejob_put_u32(struct limejob_packet *, uint32_t);
void limejob_put_u64(struct limejob_packet *, uint64_t);
void limejob_put_bytes(struct limejob_packet *, const void *, size_t n);

/* 0 once the packet is broken. */
uint32_t limejob_get_u32(struct limejob_packet *);
uint64_t limejob_get_u64(struct limejob_packet *);

/* What is left, as a string; -1 if it does not fit into cap with its NUL or holds a NUL. */
int limejob_get_text(struct limejob_packet *, char *buf, size_t cap);

/* The code that a reply begins with, as 0 or -errno; with the text, if there is one. A reply
 * that is too short is -EPROTO. */
int limejob_get_code(struct limejob_packet *, char *text, size_t cap);

/* ---- which container (packet.c) ---- */

enum {
    LIMEJOB_IDENTITY_BYTES = 56, /* in a payload */
};

/* `any`: the LIMEFILE_... that may differ. 0, or -ESTALE and the first other difference in
 * words ("inode 5, not 7"); cap may be 0. */
int limejob_identity_compare(const struct limefile_identity *found,
                             const struct limefile_identity *wanted, unsigned any, char *text,
                             size_t cap);

/* The payload of OPEN and OPEN_WRITE. */
struct limejob_opening {
    struct limefile_identity identity;
    uint32_t root; /* bytes of path; what follows them is below that folder */
    char path[LIMEJOB_PATH_MAX];
};

void limejob_put_opening(struct limejob_packet *, const struct limefile_identity *,
                         const char *path, size_t root);

/* -EINVAL: the path is not absolute, or root does not name a folder on it. */
int limejob_get_opening(struct limejob_packet *, struct limejob_opening *);

/* How many bytes of an absolute path name its folder. */
size_t limejob_folder_bytes(const char *path);

/* ---- headers (packet.c) ---- */

void limejob_header_encode(const struct limejob_packet *, unsigned char *raw);

/* -EPROTO: no packet of ours; -EPROTONOSUPPORT: of another version (*version tells);
 * -EMSGSIZE: longer than any may be. */
int limejob_header_decode(struct limejob_packet *, const unsigned char *raw, uint16_t *version);

/* ---- channels (channel.c) ---- */

/* A stream socket, or any other stream, that packets come and go by. */
struct limejob_channel {
    int fd;
    size_t got;       /* bytes of the next packet that are here */
    int passed;       /* a descriptor that came with them, or -1 */
    uint16_t version; /* of the peer, if it was another one */
    unsigned char buf[LIMEJOB_HEADER_BYTES + LIMEJOB_PAYLOAD_MAX];
};

void limejob_channel_init(struct limejob_channel *, int fd);
void limejob_channel_close(struct limejob_channel *);

/* The next packet: 1; 0 if it is not all here within timeout_ms (-1: wait for ever). -EPIPE:
 * the peer has gone; codes of limejob_header_decode(): the peer must be dropped. */
int limejob_receive(struct limejob_channel *, struct limejob_packet *, int timeout_ms);

/* Sends what the socket takes now, with a descriptor beside its first byte (-1: none). Returns
 * how many bytes, or -errno. */
ssize_t limejob_send_some(int fd, struct iovec *iov, int count, int passed);

/* -ETIMEDOUT: the peer takes nothing; half a packet may be sent, so the channel is useless. */
int limejob_send(struct limejob_channel *, const struct limejob_packet *, int timeout_ms);

/* ---- clients (channel.c) ---- */

/* Connects to a job of this user: -EPERM if it is somebody else's. Says HELLO with the window
 * (fd -1: none) and waits for the answer; *text (LIMEJOB_TEXT_MAX) says what went wrong. */
struct limejob_greeting {
    uint32_t ranks, hosts;
    uint64_t stripe;
};

int limejob_connect(struct limejob_channel *, const char *path, int window_fd,
                    uint64_t window_bytes, int timeout_ms, struct limejob_greeting *,
                    char *text);

/* One request and its reply, for who has nothing else in flight. */
int limejob_ask(struct limejob_channel *, uint16_t opcode, struct limejob_packet *reply,
                int timeout_ms);

/* The peer's user is ours. */
bool limejob_peer_is_ours(int socket);

/* ---- windows (window.c) ---- */

struct limejob_window {
    int fd;
    char *data;
    uint64_t bytes;
};

/* Creates a memfd that no process can make shorter, and maps it. */
int limejob_window_create(struct limejob_window *, uint64_t bytes);

/* Makes it of huge pages where the kernel can (Linux 6.1): a disk reads faster into memory in
 * few pieces. Takes about 2 ms a MiB; the window may be used already. */
void limejob_window_prepare(struct limejob_window *, const atomic_bool *stop);

/* Whether fd may be mapped as a window. -EPERM: it can be made shorter, so that reading it
 * could kill us, or its pages are huge, and a mapping of it would be longer than `bytes`;
 * -EINVAL: it is not that long. */
int limejob_window_check(int fd, uint64_t bytes);

/* Takes over fd, closing it after an error: those of limejob_window_check(), and what mmap()
 * says. */
int limejob_window_map(struct limejob_window *, int fd, uint64_t bytes);
void limejob_window_release(struct limejob_window *);

/* 32 bits in a window, aligned: a client that makes them something else than 0 takes back what
 * it asked to be written, but for what is being written at that moment. */
typedef _Atomic uint32_t limejob_gate;

static inline void limejob_gate_shut(void *place)
{
    *(limejob_gate *)place = 1;
}

static inline bool limejob_gate_is_shut(const limejob_gate *gate)
{
    return *gate != 0;
}

#endif
