/*
 * limejob.h - the protocol between a client (the daemon, `limefs-io --status`) and the job
 *
 * They send packets over a Unix stream socket: a fixed header, then a payload. Each request has
 * one reply with the request's opcode and tag; replies may arrive in any order. The socket
 * carries no bulk data. With its first packet the client passes a memfd, called the window. The
 * job reads containers into the window or writes them from it. From a request until its reply,
 * the job owns the range of the window that the request names.
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
#define LIMEJOB_VERSION 3

enum {
    LIMEJOB_HEADER_BYTES = 24,
    LIMEJOB_PAYLOAD_MAX = 64 * 1024,
    LIMEJOB_PATH_MAX = 4096,    /* bytes of a container's path with a NUL, which is not sent */
    LIMEJOB_TEXT_MAX = 1024,    /* bytes of an error message with a NUL, which is not sent */
    LIMEJOB_IN_FLIGHT_MAX = 64, /* requests of one client that have no reply yet */
    LIMEJOB_ALIGN = 4096, /* READ and WRITE are fastest if at - offset is a multiple of this */
};

#define LIMEJOB_WINDOW_MAX (UINT64_C(1) << 40)
#define LIMEJOB_READ_MAX   (UINT64_C(1) << 30)
#define LIMEJOB_WRITE_MAX  LIMEJOB_READ_MAX

/* ---- messages (packet.c) ---- */

/* Payloads. A reply begins with u32 code. After 0 come the fields listed here; after any other
 * code, a positive errno, comes an error message (UTF-8, no NUL). */
enum limejob_opcode {
    /* The first packet. It passes the window's descriptor, or none if the client only sends
     * queries. request: u64 window_bytes   reply: u32 ranks, u32 hosts, u64 stripe */
    LIMEJOB_HELLO = 1,
    /* Passes a descriptor of the container that is open for reading.
     * request: the container's identity: u64 device, u64 inode, u32 uid, u32 mode, u64 bytes,
     *          i64 mtime s, u32 mtime ns, i64 ctime s, u32 ctime ns;
     *          u32 root, path (absolute; its first `root` bytes are a directory's path that
     *          only the administrator can change)
     * reply: u32 file. ESTALE: the identity differs from that of the descriptor's file, or of
     *        the file that a rank has opened by its path */
    LIMEJOB_OPEN,
    /* request: u32 file                    reply: nothing */
    LIMEJOB_CLOSE,
    /* request: u32 file, u64 offset, u64 bytes, u64 at (offset in the window)
     * reply: u64 bytes, as requested: a partial read is an error */
    LIMEJOB_READ,
    /* request: nothing                     reply: JSON */
    LIMEJOB_STATUS,
    /* request: nothing                     reply: nothing; then the job ends */
    LIMEJOB_STOP,
    /* As LIMEJOB_OPEN, but for writing only; size and times of the file are not compared.
     * reply: u32 file, u32 collective. Not 0: the ranks write by collective calls. A write that
     * they have begun ignores its fence; it has ended, or the job has, when `until` passes */
    LIMEJOB_OPEN_WRITE,
    /* request: u32 file, u64 offset, u64 bytes, u64 at (offset in the window), u64 fence
     *          (offset in the window; UINT64_MAX: no fence), u64 until (ns of CLOCK_REALTIME;
     *          0: no limit), u32 uid (a job of root writes with the rights of this user)
     * reply: u64 bytes, as requested. After an error, any of the bytes may have been written.
     * ECANCELED: the 32 bits at `fence` are not 0. The client sets them to cancel the write;
     * the job sets them if the client has ended. ETIMEDOUT: the time `until` has passed */
    LIMEJOB_WRITE,
    /* Syncs the file on every rank, including all earlier writes of all clients.
     * request: u32 file                    reply: nothing */
    LIMEJOB_SYNC,
    /* Opcodes from here on are internal to the job: src/mpi/job/control.h */
    LIMEJOB_INTERNAL = 0x100,
};

enum { LIMEJOB_REPLY = 1 }; /* a packet's flag */

/* How ranks move data between memory and a container: limefs-io --io. */
enum limejob_io {
    LIMEJOB_IO_POSIX,       /* system calls; direct I/O for what is not in the page cache */
    LIMEJOB_IO_INDEPENDENT, /* MPI_File_read_at() and MPI_File_write_at() */
    LIMEJOB_IO_COLLECTIVE,  /* MPI_File_read_at_all() and MPI_File_write_at_all() */
    LIMEJOB_IO_AUTO,        /* POSIX; on parallel file systems what is fastest in a trial */
};

/* The names of these, then NULL. */
extern const char *const limejob_io_names[];

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

/* Makes a reply to `request`. code: 0, or an errno of either sign. text: the error message, or
 * NULL; it is ignored if code is 0. */
void limejob_reply_init(struct limejob_packet *, const struct limejob_packet *request, int code,
                        const char *text);

void limejob_put_u32(struct limejob_packet *, uint32_t);
void limejob_put_u64(struct limejob_packet *, uint64_t);
void limejob_put_bytes(struct limejob_packet *, const void *, size_t n);

/* Return 0 if the packet is broken. */
uint32_t limejob_get_u32(struct limejob_packet *);
uint64_t limejob_get_u64(struct limejob_packet *);

/* Copies the rest of the payload as text. Returns 0, or -1 if the packet is broken, or the rest
 * contains a NUL or does not fit into buf. */
int limejob_get_text(struct limejob_packet *, char *buf, size_t cap);

/* Reads the code of a reply and, if it is an error, copies the message to text (cap may be 0).
 * Returns 0 or the negative code; -EPROTO if the reply has no valid code. */
int limejob_get_code(struct limejob_packet *, char *text, size_t cap);

/* ---- identity of a container (packet.c) ---- */

enum { LIMEJOB_IDENTITY_BYTES = 56 }; /* in a payload */

/* ignored: flags (limeidentity.h) of the properties that may differ. Returns 0; or -ESTALE, and
 * fills text with the first difference in another property: "inode 5, not 7". cap may be 0. */
int limejob_identity_compare(const struct limefile_identity *found,
                             const struct limefile_identity *expected, unsigned ignored,
                             char *text, size_t cap);

/* The payload of OPEN and OPEN_WRITE. */
struct limejob_open_request {
    struct limefile_identity identity;
    uint32_t root; /* as in LIMEJOB_OPEN */
    char path[LIMEJOB_PATH_MAX];
};

void limejob_put_open_request(struct limejob_packet *, const struct limefile_identity *,
                              const char *path, size_t root);

/* Returns 0. -EINVAL: the request is malformed; for example, its path is not absolute. */
int limejob_get_open_request(struct limejob_packet *, struct limejob_open_request *);

/* Returns the length of an absolute path without its last component. */
size_t limejob_directory_bytes(const char *path);

/* ---- headers (packet.c) ---- */

/* raw: LIMEJOB_HEADER_BYTES bytes. */
void limejob_header_encode(const struct limejob_packet *, unsigned char *raw);

/* Returns 0; -EPROTO if raw is not a header of this protocol, -EPROTONOSUPPORT if it has
 * another version, -EMSGSIZE if the payload is too long. Always sets *version to raw's. */
int limejob_header_decode(struct limejob_packet *, const unsigned char *raw, uint16_t *version);

/* ---- channels (channel.c) ---- */

/* A stream socket and the packet that is being received from it. */
struct limejob_channel {
    int fd;
    size_t received;  /* bytes in buf: the packet's beginning */
    int passed_fd;    /* descriptor received with these bytes, or -1 */
    uint16_t version; /* of the last packet received; LIMEJOB_VERSION before the first one */
    unsigned char buf[LIMEJOB_HEADER_BYTES + LIMEJOB_PAYLOAD_MAX];
};

/* The channel owns fd. Closing the channel closes fd, and passed_fd if it is not -1. */
void limejob_channel_init(struct limejob_channel *, int fd);
void limejob_channel_close(struct limejob_channel *);

/* Receives the next packet. Returns 1; 0 if it is still incomplete after timeout_ms (-1: waits
 * without a limit); -EPIPE if the peer has closed the connection; or another -errno, for
 * example of limejob_header_decode(). After any -errno, the channel is unusable. */
int limejob_receive(struct limejob_channel *, struct limejob_packet *, int timeout_ms);

/* Sends passed_fd (-1: none) and as many of the bytes in iov as the socket accepts without
 * blocking. Returns the number of bytes sent, or -errno. */
ssize_t limejob_send_partial(int fd, struct iovec *iov, int count, int passed_fd);

/* Sends a packet. timeout_ms: -1 for no limit. Returns 0 or -errno; after -errno, the channel
 * is unusable, because a part of the packet may have been sent. */
int limejob_send(struct limejob_channel *, const struct limejob_packet *, int timeout_ms);

/* ---- clients (channel.c) ---- */

struct limejob_hello_reply {
    uint32_t ranks, hosts;
    uint64_t stripe;
};

/* Connects to the job at the socket `path`, sends HELLO with the window (window_fd, which the
 * caller continues to own; -1: none) and receives the reply. Returns 0 or -errno (-EPERM: the
 * job belongs to another user). An error closes the channel, and fills text (LIMEJOB_TEXT_MAX
 * bytes) with a message. */
int limejob_connect(struct limejob_channel *, const char *path, int window_fd,
                    uint64_t window_bytes, int timeout_ms, struct limejob_hello_reply *,
                    char *text);

/* Sends a request without payload and receives its reply. No other request may be in flight.
 * Returns 0 (the reply may have an error code) or -errno. */
int limejob_query(struct limejob_channel *, uint16_t opcode, struct limejob_packet *reply,
                  int timeout_ms);

/* Returns true if the peer has the effective user of this process. */
bool limejob_peer_is_same_user(int socket);

/* ---- windows (window.c) ---- */

struct limejob_window {
    int fd;
    char *data;
    uint64_t bytes;
};

/* Creates a memfd that no process can shrink, and maps it. */
int limejob_window_create(struct limejob_window *, uint64_t bytes);

/* Gives the window huge pages if the kernel can (Linux 6.1), so that direct I/O has fewer
 * segments. Returns early if *stop becomes true. Threads may use the window during the call. */
void limejob_window_use_huge_pages(struct limejob_window *, const atomic_bool *stop);

/* Checks that fd can be mapped as a window. Returns 0; -EPERM if a process could shrink the
 * file (an access would then raise SIGBUS) or it is on hugetlbfs (where a mapping can exceed
 * `bytes`); -EINVAL if `bytes` is invalid or exceeds the file; or another -errno. */
int limejob_window_check(int fd, uint64_t bytes);

/* Maps a window and takes ownership of fd: an error closes fd. Returns 0 or an error of
 * limejob_window_check() or mmap(). */
int limejob_window_map(struct limejob_window *, int fd, uint64_t bytes);
void limejob_window_release(struct limejob_window *);

/* 32 aligned bits in a window. If they are not 0, the job cancels the writes that name them; a
 * system call in progress is completed. */
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
