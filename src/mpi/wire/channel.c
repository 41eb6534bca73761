/* channel.c - packets through a stream socket */
#define _GNU_SOURCE
#include "limejob.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void limejob_channel_init(struct limejob_channel *channel, int fd)
{
    channel->fd = fd;
    channel->got = 0;
    channel->passed = -1;
    channel->version = LIMEJOB_VERSION;
}

void limejob_channel_close(struct limejob_channel *channel)
{
    if (channel->fd >= 0)
        close(channel->fd);
    if (channel->passed >= 0)
        close(channel->passed);
    channel->fd = channel->passed = -1;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* 1: ready; 0: not before `until`; -errno. */
static int wait_for(int fd, short events, int64_t until)
{
    for (;;) {
        int64_t left = until < 0 ? -1 : until - now_ms();
        struct pollfd poll_fd = {fd, events, 0};
        int n = poll(&poll_fd, 1, until < 0 ? -1 : left > 0 ? (int)left : 0);
        if (n > 0)
            return 1;
        if (n == 0)
            return 0;
        if (errno != EINTR)
            return -errno;
    }
}

/* ---- receiving ---- */

/* The first descriptor is kept, if none is; others are closed. */
static void take_descriptors(struct limejob_channel *channel, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (channel->passed < 0)
                channel->passed = fd;
            else
                close(fd);
        }
    }
}

/* Up to `want` bytes of the packet in all: 1 if they are here, 0 if nothing more is now. */
static int fill(struct limejob_channel *channel, size_t want)
{
    while (channel->got < want) {
        union {
            struct cmsghdr header;
            char room[CMSG_SPACE(4 * sizeof(int))];
        } control;
        struct iovec iov = {channel->buf + channel->got, want - channel->got};
        struct msghdr message = {.msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = control.room,
                                 .msg_controllen = sizeof control.room};
        ssize_t n = recvmsg(channel->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0
                   : errno == ECONNRESET                   ? -EPIPE
                                                           : -errno;
        take_descriptors(channel, &message);
        if (n == 0)
            return -EPIPE;
        channel->got += (size_t)n;
    }
    return 1;
}

static int next_packet(struct limejob_channel *channel, struct limejob_packet *packet)
{
    int done = fill(channel, LIMEJOB_HEADER_BYTES);
    if (done <= 0)
        return done;
    int err = limejob_header_decode(packet, channel->buf, &channel->version);
    if (err)
        return err;
    done = fill(channel, LIMEJOB_HEADER_BYTES + (size_t)packet->bytes);
    if (done <= 0)
        return done;
    memcpy(packet->payload, channel->buf + LIMEJOB_HEADER_BYTES, packet->bytes);
    packet->fd = channel->passed;
    channel->passed = -1;
    channel->got = 0;
    return 1;
}

int limejob_receive(struct limejob_channel *channel, struct limejob_packet *packet,
                    int timeout_ms)
{
    int64_t until = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
    for (;;) {
        int done = next_packet(channel, packet);
        if (done)
            return done;
        done = wait_for(channel->fd, POLLIN, until);
        if (done <= 0)
            return done;
    }
}

/* ---- sending ---- */

/* The descriptor goes with the first byte. */
static ssize_t send_some(int fd, struct iovec *iov, int count, int passed)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)count};
    if (passed >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof passed);
        memcpy(CMSG_DATA(c), &passed, sizeof passed);
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
    int64_t until = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
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
        ssize_t n = send_some(channel->fd, iov, count, done == 0 ? packet->fd : -1);
        if (n >= 0) {
            done += (size_t)n;
            continue;
        }
        if (n != -EAGAIN)
            return n == -ECONNRESET ? -EPIPE : (int)n;
        int ready = wait_for(channel->fd, POLLOUT, until);
        if (ready <= 0)
            return ready ? ready : -ETIMEDOUT;
    }
    return 0;
}
