/* control.c - connect the workers to the server */
#define _GNU_SOURCE
#include "control.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    CONNECT_MS = 3000, /* per address: some may be unreachable */
    JOIN_MS = 20000,
    IDLE_S = 5, /* seconds before each keep-alive probe; PROBES failures: the link is dead */
    PROBES = 4,
};

/* ---- between hosts ---- */

void job_tcp_set_options(int fd)
{
    int on = 1, idle_s = IDLE_S, probes = PROBES, unanswered_ms = IDLE_S * (PROBES + 1) * 1000;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

/* ---- rank 0 ---- */

/* Listens at an abstract name, chosen by the kernel: it leaves no file. */
static int listen_local(struct job_rendezvous *rendezvous)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t n = sizeof address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&address, offsetof(struct sockaddr_un, sun_path)) == 0 &&
        listen(fd, BACKLOG) == 0 && getsockname(fd, (struct sockaddr *)&address, &n) == 0) {
        size_t bytes = n - offsetof(struct sockaddr_un, sun_path);
        if (bytes > 1 && bytes <= sizeof rendezvous->name) {
            memcpy(rendezvous->name, address.sun_path + 1, bytes - 1); /* after the NUL */
            return fd;
        }
        errno = EADDRNOTAVAIL;
    }
    int err = -errno;
    close(fd);
    return err;
}

/* Returns a descriptor or -errno; *port is in network byte order. */
static int listen_tcp_family(int family, in_port_t *port)
{
    union job_address address = {.any.sa_family = (sa_family_t)family};
    socklen_t n = sizeof address;
    int off = 0, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if ((family == AF_INET ||
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0) &&
        bind(fd, &address.any, n) == 0 && listen(fd, BACKLOG) == 0 &&
        getsockname(fd, &address.any, &n) == 0) {
        *port = address.four.sin_port;
        return fd;
    }
    int err = -errno;
    close(fd);
    return err;
}

/* Listens on an IPv6 socket, which also serves IPv4; on an IPv4 socket if IPv6 is missing. */
static int listen_tcp(in_port_t *port)
{
    int fd = listen_tcp_family(AF_INET6, port);
    return fd < 0 ? listen_tcp_family(AF_INET, port) : fd;
}

static bool is_reachable(const struct ifaddrs *i)
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK)
        return false;
    if (i->ifa_addr->sa_family != AF_INET6)
        return i->ifa_addr->sa_family == AF_INET;
    /* A link-local address is useless without its interface. */
    return !IN6_IS_ADDR_LINKLOCAL(
        &((const struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr);
}

static int list_addresses(struct job_rendezvous *rendezvous, in_port_t port)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return -errno;
    for (struct ifaddrs *i = all; i && rendezvous->addresses < JOB_ADDRESSES_MAX;
         i = i->ifa_next)
        if (is_reachable(i)) {
            union job_address *to = &rendezvous->address[rendezvous->addresses++];
            memcpy(to, i->ifa_addr,
                   i->ifa_addr->sa_family == AF_INET ? sizeof to->four : sizeof to->six);
            to->four.sin_port = port;
        }
    freeifaddrs(all);
    return rendezvous->addresses ? 0 : -ENETUNREACH;
}

int job_rendezvous_open(struct job_rendezvous *rendezvous, bool has_remote, int *local,
                        int *tcp)
{
    *rendezvous = (struct job_rendezvous){0};
    *local = *tcp = -1;
    if (getrandom(rendezvous->token, sizeof rendezvous->token, 0) != sizeof rendezvous->token)
        return -EIO;
    *local = listen_local(rendezvous);
    if (*local < 0 || !has_remote)
        return *local < 0 ? *local : 0;
    in_port_t port;
    *tcp = listen_tcp(&port);
    int err = *tcp < 0 ? *tcp : list_addresses(rendezvous, port);
    if (!err)
        return 0;
    if (*tcp >= 0)
        close(*tcp);
    close(*local);
    return err;
}

/* ---- other ranks ---- */

static int connect_local(const struct job_rendezvous *rendezvous)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t bytes = strnlen(rendezvous->name, sizeof rendezvous->name);
    memcpy(address.sun_path + 1, rendezvous->name, bytes);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes)) == 0 &&
        limejob_peer_is_same_user(fd))
        return fd;
    int err = errno ? -errno : -EPERM;
    close(fd);
    return err;
}

static int finish_connect(int fd)
{
    struct pollfd poll_fd = {fd, POLLOUT, 0};
    int n, err = 0;
    socklen_t bytes = sizeof err;
    do
        n = poll(&poll_fd, 1, CONNECT_MS);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n ? -errno : -ETIMEDOUT;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &bytes);
    return -err;
}

static int connect_tcp(const union job_address *to)
{
    int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int err = connect(fd, &to->any, sizeof *to) == 0 ? 0 : -errno;
    if (err == -EINPROGRESS)
        err = finish_connect(fd);
    if (err) {
        close(fd);
        return err;
    }
    job_tcp_set_options(fd);
    return fd;
}

static int send_join(const struct job_rendezvous *rendezvous, int rank,
                     struct limejob_channel *channel)
{
    struct limejob_packet packet;
    limejob_request_init(&packet, JOB_JOIN, 0);
    limejob_put_u32(&packet, (uint32_t)rank);
    limejob_put_bytes(&packet, rendezvous->token, sizeof rendezvous->token);
    int err = limejob_send(channel, &packet, JOIN_MS);
    if (err)
        return err;
    err = limejob_receive(channel, &packet, JOIN_MS);
    if (err <= 0)
        return err ? err : -ETIMEDOUT;
    if (packet.opcode != JOB_JOIN || packet.flags != LIMEJOB_REPLY)
        return -EPROTO;
    return limejob_get_code(&packet, NULL, 0);
}

static int join_over(int fd, const struct job_rendezvous *rendezvous, int rank,
                     struct limejob_channel *channel)
{
    if (fd < 0)
        return fd;
    limejob_channel_init(channel, fd);
    int err = send_join(rendezvous, rank, channel);
    if (err)
        limejob_channel_close(channel);
    return err;
}

int job_rendezvous_join(const struct job_rendezvous *rendezvous, int rank, bool local,
                        struct limejob_channel *channel)
{
    int err = -ENETUNREACH;
    if (local)
        return join_over(connect_local(rendezvous), rendezvous, rank, channel);
    for (int i = 0; i < rendezvous->addresses && err; i++)
        err = join_over(connect_tcp(&rendezvous->address[i]), rendezvous, rank, channel);
    return err;
}
