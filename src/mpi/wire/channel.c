/* channel.c - send and receive packets over a stream socket, and connect to a job */
#define _GNU_SOURCE
#include "limejob.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CONNECT_SECONDS = 5 };

void limejob_channel_init(struct limejob_channel *channel, int fd)
{
    channel->fd = fd;
    channel->received = 0;
    channel->passed_fd = -1;
    channel->version = LIMEJOB_VERSION;
}

void limejob_channel_close(struct limejob_channel *channel)
{
    if (channel->fd >= 0)
        close(channel->fd);
    if (channel->passed_fd >= 0)
        close(channel->passed_fd);
    channel->fd = channel->passed_fd = -1;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* deadline: ms of CLOCK_MONOTONIC; < 0: none. Returns 1 if fd is ready, 0 after the deadline,
 * or -errno. */
static int wait_for_socket(int fd, short events, int64_t deadline)
{
    for (;;) {
        int64_t left = deadline < 0 ? -1 : deadline - now_ms();
        struct pollfd poll_fd = {fd, events, 0};
        int n = poll(&poll_fd, 1, deadline < 0 ? -1 : left > 0 ? (int)left : 0);
        if (n > 0)
            return 1;
        if (n == 0)
            return 0;
        if (errno != EINTR)
            return -errno;
    }
}

/* Stores a packet's first descriptor in the channel and closes the others. */
static void store_descriptors(struct limejob_channel *channel, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (channel->passed_fd < 0)
                channel->passed_fd = fd;
            else
                close(fd);
        }
    }
}

/* Receives the packet's first `total` bytes. Returns 1; 0 if more bytes have to arrive first;
 * or -errno. */
static int receive_bytes(struct limejob_channel *channel, size_t total)
{
    while (channel->received < total) {
        union {
            struct cmsghdr header;
            char bytes[CMSG_SPACE(4 * sizeof(int))];
        } control;
        struct iovec iov = {channel->buf + channel->received, total - channel->received};
        struct msghdr message = {.msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = control.bytes,
                                 .msg_controllen = sizeof control.bytes};
        ssize_t n = recvmsg(channel->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0
                   : errno == ECONNRESET                   ? -EPIPE
                                                           : -errno;
        store_descriptors(channel, &message);
        if (n == 0)
            return -EPIPE;
        channel->received += (size_t)n;
    }
    return 1;
}

static int receive_packet(struct limejob_channel *channel, struct limejob_packet *packet)
{
    int done = receive_bytes(channel, LIMEJOB_HEADER_BYTES);
    if (done <= 0)
        return done;
    int err = limejob_header_decode(packet, channel->buf, &channel->version);
    if (err)
        return err;
    done = receive_bytes(channel, LIMEJOB_HEADER_BYTES + (size_t)packet->bytes);
    if (done <= 0)
        return done;
    memcpy(packet->payload, channel->buf + LIMEJOB_HEADER_BYTES, packet->bytes);
    packet->fd = channel->passed_fd;
    channel->passed_fd = -1;
    channel->received = 0;
    return 1;
}

int limejob_receive(struct limejob_channel *channel, struct limejob_packet *packet,
                    int timeout_ms)
{
    int64_t deadline = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
    for (;;) {
        int done = receive_packet(channel, packet);
        if (done)
            return done;
        done = wait_for_socket(channel->fd, POLLIN, deadline);
        if (done <= 0)
            return done;
    }
}

ssize_t limejob_send_partial(int fd, struct iovec *iov, int count, int passed_fd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)count};
    if (passed_fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof passed_fd);
        memcpy(CMSG_DATA(c), &passed_fd, sizeof passed_fd);
    }
    ssize_t n;
    do
        n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

int limejob_send(struct limejob_channel *channel, const struct limejob_packet *packet,
                 int timeout_ms)
{
    unsigned char header[LIMEJOB_HEADER_BYTES];
    size_t done = 0, bytes = sizeof header + packet->bytes;
    int64_t deadline = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
    if (packet->broken)
        return -EMSGSIZE;
    limejob_header_encode(packet, header);
    while (done < bytes) {
        struct iovec iov[2];
        int count = 0;
        if (done < sizeof header)
            iov[count++] = (struct iovec){header + done, sizeof header - done};
        size_t sent = done > sizeof header ? done - sizeof header : 0;
        if (sent < packet->bytes)
            iov[count++] =
                (struct iovec){(unsigned char *)packet->payload + sent, packet->bytes - sent};
        ssize_t n = limejob_send_partial(channel->fd, iov, count, done == 0 ? packet->fd : -1);
        if (n >= 0) {
            done += (size_t)n;
            continue;
        }
        if (n != -EAGAIN)
            return n == -ECONNRESET ? -EPIPE : (int)n;
        int ready = wait_for_socket(channel->fd, POLLOUT, deadline);
        if (ready <= 0)
            return ready ? ready : -ETIMEDOUT;
    }
    return 0;
}

/* ---- clients ---- */

bool limejob_peer_is_same_user(int socket)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.uid == geteuid();
}

/* Returns a socket that is connected to the job, or -errno (-EPERM: another user's job). */
static int connect_to_job(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    /* SO_SNDTIMEO also limits connect(), which blocks while the job's backlog is full. */
    struct timeval limit = {CONNECT_SECONDS, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    int err = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : -errno;
    if (!err && !limejob_peer_is_same_user(fd))
        err = -EPERM;
    if (!err)
        return fd;
    close(fd);
    return err;
}

/* Sends a request and receives its reply; closes a descriptor passed with the reply. Returns 0
 * (the reply may have an error code) or -errno. */
static int call_job(struct limejob_channel *channel, const struct limejob_packet *request,
                    struct limejob_packet *reply, int timeout_ms)
{
    int err = limejob_send(channel, request, timeout_ms);
    if (err)
        return err;
    err = limejob_receive(channel, reply, timeout_ms);
    if (err <= 0)
        return err ? err : -ETIMEDOUT;
    if (reply->fd >= 0)
        close(reply->fd);
    reply->fd = -1;
    return reply->flags == LIMEJOB_REPLY && reply->opcode == request->opcode &&
                   reply->tag == request->tag
               ? 0
               : -EPROTO;
}

static int fill_text(char *text, int err, const char *what)
{
    snprintf(text, LIMEJOB_TEXT_MAX, "%s", what);
    return err;
}

static int send_hello(struct limejob_channel *channel, int window_fd, uint64_t window_bytes,
                      int timeout_ms, struct limejob_hello_reply *greeting, char *text)
{
    static const struct {
        int err;
        const char *what;
    } errors[] = {
        {-EPROTO, "it is not a limefs-io job"},
        {-ETIMEDOUT, "it does not answer"},
        {-EPIPE, "it has closed the connection"},
    };
    struct limejob_packet hello, reply;
    limejob_request_init(&hello, LIMEJOB_HELLO, 0);
    limejob_put_u64(&hello, window_bytes);
    hello.fd = window_fd;
    int err = call_job(channel, &hello, &reply, timeout_ms);
    if (!err) {
        err = limejob_get_code(&reply, text, LIMEJOB_TEXT_MAX);
        if (err)
            return text[0] ? err : fill_text(text, err, strerror(-err));
        greeting->ranks = limejob_get_u32(&reply);
        greeting->hosts = limejob_get_u32(&reply);
        greeting->stripe = limejob_get_u64(&reply);
        if (!reply.broken && greeting->ranks > 0 && greeting->stripe > 0)
            return 0;
        err = -EPROTO;
    }
    if (err == -EPROTONOSUPPORT) {
        snprintf(text, LIMEJOB_TEXT_MAX, "it uses version %d of the protocol, not %d",
                 channel->version, LIMEJOB_VERSION);
        return err;
    }
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].err == err)
            return fill_text(text, err, errors[i].what);
    return fill_text(text, err, strerror(-err));
}

int limejob_connect(struct limejob_channel *channel, const char *path, int window_fd,
                    uint64_t window_bytes, int timeout_ms, struct limejob_hello_reply *greeting,
                    char *text)
{
    int fd = connect_to_job(path);
    if (fd == -EPERM)
        return fill_text(text, fd, "it belongs to another user");
    if (fd < 0)
        return fill_text(text, fd, strerror(-fd));
    limejob_channel_init(channel, fd);
    int err = send_hello(channel, window_fd, window_bytes, timeout_ms, greeting, text);
    if (err)
        limejob_channel_close(channel);
    return err;
}

int limejob_query(struct limejob_channel *channel, uint16_t opcode,
                  struct limejob_packet *reply, int timeout_ms)
{
    struct limejob_packet request;
    limejob_request_init(&request, opcode, 1);
    return call_job(channel, &request, reply, timeout_ms);
}
