/*
 * limejob.h - the protocol between a client (the daemon, `limefs-io --status`) and the job
 *
 * Both send packets over a Unix stream socket: a fixed header, then a payload. Each request has
 * one reply with the request's opcode and tag; replies may arrive in any order. The socket
 * carries no bulk data: with its first packet the client passes a memfd, the window, and the
 * job reads containers into the window or writes them from it. The job owns the range of the
 * window that a request names until it replies.
 *
 * The functions here check the form of a received packet (magic, version, lengths); the code
 * that executes a request checks its values. All integers are little-endian. docs/protocol.md
 * specifies the protocol for other clients.
 *
 * No MPI and no FUSE. Functions return 0 (or a count), or -errno.
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
    LIMEJOB_PATH_MAX = 4096,    /* of a container, with its NUL, which is not sent */
    LIMEJOB_TEXT_MAX = 1024,    /* of an error message, with its NUL */
    LIMEJOB_IN_FLIGHT_MAX = 64, /* requests of a client that wait for their reply */
    LIMEJOB_ALIGN = 4096,       /* I/O is fastest if `at` - `offset` is a multiple of it */
};

#define LIMEJOB_WINDOW_MAX (UINT64_C(1) << 40)
#define LIMEJOB_READ_MAX   (UINT64_C(1) << 30)
#define LIMEJOB_WRITE_MAX  LIMEJOB_READ_MAX

/* ---- messages (packet.c) ---- */

/* Payloads. A reply begins with i32 code: 0, or a positive errno, followed by an error message
 * (UTF-8, no NUL) instead of the fields listed here. */
enum limejob_opcode {
    /* The first packet, with the window's descriptor (none: a client that only sends queries).
     * request: u64 window_bytes            reply: u32 ranks, u32 hosts, u64 stripe */
    LIMEJOB_HELLO = 1,
    /* With a descriptor of the container, open for reading.
     * request: the container's identity: u64 device, u64 inode, u32 uid, u32 mode, u64 bytes,
     *          i64 mtime s, u32 mtime ns, i64 ctime s, u32 ctime ns;
     *          u32 root, path (absolute; its first `root` bytes are a directory's path that
     *          only the administrator can change)
     * reply: u32 file. ESTALE: the descriptor, or the path on another host, is another file */
    LIMEJOB_OPEN,
    /* request: u32 file                    reply: nothing */
    LIMEJOB_CLOSE,
    /* request: u32 file, u64 offset, u64 bytes, u64 at (in the window)
     * reply: u64 bytes, always all of them; otherwise a code */
    LIMEJOB_READ,
    /* request: nothing                     reply: JSON */
    LIMEJOB_STATUS,
    /* request: nothing                     reply: nothing; then the job ends */
    LIMEJOB_STOP,
    /* As LIMEJOB_OPEN, but for writing only; size and times of the file are not compared. */
    LIMEJOB_OPEN_WRITE,
    /* request: u32 file, u64 offset, u64 bytes, u64 at (in the window), u64 fence (in the
     *          window, or UINT64_MAX), u64 until (ns of CLOCK_REALTIME, or 0), u32 uid (the
     *          owner of the data: a job of root writes with that user's rights)
     * reply: u64 bytes, always all of them; otherwise a code, and any of them may be written.
     * ECANCELED: the 32 bits at `fence` are not 0; the client sets them to cancel the write,
     * the job if the client has ended. ETIMEDOUT: the time is after `until` */
    LIMEJOB_WRITE,
    /* Syncs the file on every rank, including all earlier writes of all clients. request: u32
     * file                    reply: nothing */
    LIMEJOB_SYNC,
    /* Opcodes from here on are internal to the job: src/mpi/job/control.h */
    LIMEJOB_INTERNAL = 0x100,
};

enum {
    LIMEJOB_REPLY = 1, /* a packet's flag */
};

struct limejob_message {
    uint16_t opcode;
    const char *name;
    uint32_t min_bytes, max_bytes; /* limits of a request's payload */
};

/* Returns NULL if the opcode is unknown. */
const struct limejob_message *limejob_find_message(uint16_t opcode);

/* ---- packets (packet.c) ---- */

struct limejob_packet {
    uint16_t opcode;
    uint32_t flags;
    uint64_t tag;
    uint32_t bytes; /* of the payload */
    uint32_t at;    /* position of limejob_get_*() in the payload */
    bool broken;    /* a limejob_get_*() or limejob_put_*() exceeded the payload */
    int fd;         /* descriptor passed with the packet, or -1; the packet's owner closes it */
    unsigned char payload[LIMEJOB_PAYLOAD_MAX];
};

void limejob_request_init(struct limejob_packet *, uint16_t opcode, uint64_t tag);

/* Makes a reply to `request` with a code; a code that is not 0 may have a text. */
void limejob_reply_init(struct limejob_packet *, const struct limejob_packet *request, int code,
                        const char *text);

void limejob_put_u32(struct limejob_packet *, uint32_t);
void limejob_put_u64(struct limejob_packet *, uint64_t);
void limejob_put_bytes(struct limejob_packet *, const void *, size_t n);

/* Return 0 once the packet is broken. */
uint32_t limejob_get_u32(struct limejob_packet *);
uint64_t limejob_get_u64(struct limejob_packet *);

/* Copies the rest of the payload as text. Returns 0, or -1 if that has a NUL or is too long. */
int limejob_get_text(struct limejob_packet *, char *buf, size_t cap);

/* Reads the code at the start of a reply, and its text if there is one. Returns 0 or -errno,
 * -EPROTO if the reply is too short. */
int limejob_get_code(struct limejob_packet *, char *text, size_t cap);

/* ---- identity of a container (packet.c) ---- */

enum {
    LIMEJOB_IDENTITY_BYTES = 56, /* in a payload */
};

/* ignored: flags (limeidentity.h) of what may differ. Returns 0, or -ESTALE and fills text with
 * the first other difference ("inode 5, not 7"); cap may be 0. */
int limejob_identity_compare(const struct limefile_identity *found,
                             const struct limefile_identity *expected, unsigned ignored,
                             char *text, size_t cap);

/* The payload of OPEN and OPEN_WRITE. */
struct limejob_open_request {
    struct limefile_identity identity;
    uint32_t root; /* length of the leading directory; the rest of the path is below it */
    char path[LIMEJOB_PATH_MAX];
};

void limejob_put_open_request(struct limejob_packet *, const struct limefile_identity *,
                              const char *path, size_t root);

/* Returns 0, or -EINVAL if the path is not absolute or root is not a leading directory. */
int limejob_get_open_request(struct limejob_packet *, struct limejob_open_request *);

/* Returns the length of an absolute path without its last component. */
size_t limejob_directory_bytes(const char *path);

/* ---- headers (packet.c) ---- */

/* raw: LIMEJOB_HEADER_BYTES bytes. */
void limejob_header_encode(const struct limejob_packet *, unsigned char *raw);

/* Returns 0, -EPROTO if raw is not a packet of this protocol, -EPROTONOSUPPORT if it has
 * another version, or -EMSGSIZE if it is too long. Sets *version. */
int limejob_header_decode(struct limejob_packet *, const unsigned char *raw, uint16_t *version);

/* ---- channels (channel.c) ---- */

/* A socket, or another stream, with the packet that is being received. */
struct limejob_channel {
    int fd;
    size_t received;  /* bytes of the next packet in buf */
    int passed_fd;    /* descriptor received with these bytes, or -1 */
    uint16_t version; /* the peer's version, if it differs */
    unsigned char buf[LIMEJOB_HEADER_BYTES + LIMEJOB_PAYLOAD_MAX];
};

/* The channel owns fd. Closing the channel closes fd, and passed_fd if it is not -1. */
void limejob_channel_init(struct limejob_channel *, int fd);
void limejob_channel_close(struct limejob_channel *);

/* Receives the next packet. Returns 1, 0 if it is incomplete after timeout_ms (-1: no limit),
 * -EPIPE if the peer is gone, or an error of limejob_header_decode(): then drop the peer. */
int limejob_receive(struct limejob_channel *, struct limejob_packet *, int timeout_ms);

/* Sends passed_fd (-1: none) and what the socket accepts. Returns the bytes sent, or -errno. */
ssize_t limejob_send_partial(int fd, struct iovec *iov, int count, int passed_fd);

/* Sends a packet. Returns 0 or -errno. After -ETIMEDOUT the channel is unusable. */
int limejob_send(struct limejob_channel *, const struct limejob_packet *, int timeout_ms);

/* ---- clients (channel.c) ---- */

struct limejob_hello_reply {
    uint32_t ranks, hosts;
    uint64_t stripe;
};

/* Connects to the job of this user at the socket `path` and sends HELLO with the window,
 * whose descriptor the caller keeps (-1: none). Returns 0 after the reply; otherwise closes
 * the channel, fills text (LIMEJOB_TEXT_MAX bytes) and returns -errno (-EPERM: another
 * user's). */
int limejob_connect(struct limejob_channel *, const char *path, int window_fd,
                    uint64_t window_bytes, int timeout_ms, struct limejob_hello_reply *,
                    char *text);

/* Sends a request without payload and receives its reply. No other request may be in flight. */
int limejob_query(struct limejob_channel *, uint16_t opcode, struct limejob_packet *reply,
                  int timeout_ms);

/* Returns whether the peer's effective user is this process's. */
bool limejob_peer_is_same_user(int socket);

/* ---- windows (window.c) ---- */

struct limejob_window {
    int fd;
    char *data;
    uint64_t bytes;
};

/* Creates a memfd that no process can shrink, and maps it. */
int limejob_window_create(struct limejob_window *, uint64_t bytes);

/* Makes the window of huge pages if the kernel can (Linux 6.1), so that direct I/O has fewer
 * segments. Stops early if *stop; the window may be in use. */
void limejob_window_use_huge_pages(struct limejob_window *, const atomic_bool *stop);

/* Checks that fd can be mapped as a window. Returns 0, -EPERM if a process could shrink it, so
 * that an access would raise SIGBUS, or if it is on hugetlbfs, where a mapping exceeds `bytes`,
 * -EINVAL if it is shorter, or another -errno. */
int limejob_window_check(int fd, uint64_t bytes);

/* Maps a window and takes ownership of fd, which it closes after an error. Returns an error of
 * limejob_window_check() or mmap(). */
int limejob_window_map(struct limejob_window *, int fd, uint64_t bytes);
void limejob_window_release(struct limejob_window *);

/* 32 aligned bits in a window. If they are not 0, the job ends the writes that name them, after
 * the system call in progress. */
typedef _Atomic uint32_t limejob_fence;

static inline void limejob_fence_set(void *fence)
{
    *(limejob_fence *)fence = 1;
}

static inline bool limejob_fence_is_set(const limejob_fence *fence)
{
    return *fence != 0;
}

#endif
