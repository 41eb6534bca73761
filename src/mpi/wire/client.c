/* client.c - the first words with a job */
#define _GNU_SOURCE
#include "limejob.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CONNECT_SECONDS = 5,
};

bool limejob_peer_is_ours(int socket)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.uid == geteuid();
}

/* A socket that is connected to a job of this user, or -errno; -EPERM: it is another user's. */
static int dial(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    /* Where many wait already, connecting takes as long as sending. */
    struct timeval limit = {CONNECT_SECONDS, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    int err = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : -errno;
    if (!err && !limejob_peer_is_ours(fd))
        err = -EPERM;
    if (!err)
        return fd;
    close(fd);
    return err;
}

static int get_reply(struct limejob_channel *channel, const struct limejob_packet *request,
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

static int say(char *text, int err, const char *what)
{
    snprintf(text, LIMEJOB_TEXT_MAX, "%s", what);
    return err;
}

static int greet(struct limejob_channel *channel, int window_fd, uint64_t window_bytes,
                 int timeout_ms, struct limejob_greeting *greeting, char *text)
{
    static const struct {
        int err;
        const char *what;
    } words[] = {
        {-EPROTO, "what listens there is no limefs-io"},
        {-ETIMEDOUT, "it does not answer"},
        {-EPIPE, "it has hung up"},
    };
    struct limejob_packet hello, reply;
    limejob_request(&hello, LIMEJOB_HELLO, 0);
    limejob_put_u64(&hello, window_bytes);
    hello.fd = window_fd;
    int err = get_reply(channel, &hello, &reply, timeout_ms);
    if (!err) {
        err = limejob_get_code(&reply, text, LIMEJOB_TEXT_MAX);
        if (err)
            return text[0] ? err : say(text, err, strerror(-err));
        greeting->ranks = limejob_get_u32(&reply);
        greeting->hosts = limejob_get_u32(&reply);
        greeting->stripe = limejob_get_u64(&reply);
        if (!reply.broken && greeting->ranks > 0 && greeting->stripe > 0)
            return 0;
        err = -EPROTO;
    }
    if (err == -EPROTONOSUPPORT) {
        snprintf(text, LIMEJOB_TEXT_MAX, "it speaks version %d of the protocol, this is %d",
                 channel->version, LIMEJOB_VERSION);
        return err;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].err == err)
            return say(text, err, words[i].what);
    return say(text, err, strerror(-err));
}

int limejob_connect(struct limejob_channel *channel, const char *path, int window_fd,
                    uint64_t window_bytes, int timeout_ms, struct limejob_greeting *greeting,
                    char *text)
{
    int fd = dial(path);
    if (fd == -EPERM)
        return say(text, fd, "it belongs to another user");
    if (fd < 0)
        return say(text, fd, strerror(-fd));
    limejob_channel_init(channel, fd);
    int err = greet(channel, window_fd, window_bytes, timeout_ms, greeting, text);
    if (err)
        limejob_channel_close(channel);
    return err;
}

int limejob_ask(struct limejob_channel *channel, uint16_t opcode, struct limejob_packet *reply,
                int timeout_ms)
{
    struct limejob_packet request;
    limejob_request(&request, opcode, 1);
    return get_reply(channel, &request, reply, timeout_ms);
}
