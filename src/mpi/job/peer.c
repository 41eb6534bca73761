/* peer.c - the server's peers: outboxes, epoll, messages on stderr */
#define _GNU_SOURCE
#include "report.h"
#include "server.h"
#include "watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    LOG_LINES = 100, /* limit of lines in LOG_US */
    LOG_US = 60 * 1000 * 1000,
};

/* ---- messages ---- */

void job_log(const char *format, ...)
{
    static int64_t since;
    static int lines;
    int64_t now = job_now_us();
    if (since == 0 || now - since > LOG_US) {
        since = now;
        lines = 0;
    }
    if (lines++ >= LOG_LINES)
        return;
    va_list args;
    va_start(args, format);
    job_vreport(format, args);
    va_end(args);
}

void job_server_abort(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    job_vreport(format, args);
    va_end(args);
    job_watchdog_abort();
}

/* ---- outboxes ---- */

struct job_outbox_entry {
    struct job_outbox_entry *next;
    int fd; /* sent with the first byte; or -1 */
    size_t bytes, sent;
    unsigned char data[];
};

static void free_entry(struct job_outbox_entry *entry)
{
    if (entry->fd >= 0)
        close(entry->fd);
    free(entry);
}

/* Appends a copy of the packet and of its descriptor. Returns 0 or -errno. */
static int append_to_outbox(struct job_outbox *box, const struct limejob_packet *packet)
{
    size_t bytes = LIMEJOB_HEADER_BYTES + (size_t)packet->bytes;
    struct job_outbox_entry *entry = malloc(sizeof *entry + bytes);
    if (!entry || packet->broken) {
        free(entry);
        return packet->broken ? -EMSGSIZE : -ENOMEM;
    }
    *entry = (struct job_outbox_entry){.fd = -1, .bytes = bytes};
    if (packet->fd >= 0 && (entry->fd = fcntl(packet->fd, F_DUPFD_CLOEXEC, 3)) < 0) {
        int err = -errno;
        free(entry);
        return err;
    }
    limejob_header_encode(packet, entry->data);
    memcpy(entry->data + LIMEJOB_HEADER_BYTES, packet->payload, packet->bytes);
    if (box->last)
        box->last->next = entry;
    else
        box->first = entry;
    box->last = entry;
    box->bytes += bytes;
    return 0;
}

static void drop_first_entry(struct job_outbox *box)
{
    struct job_outbox_entry *entry = box->first;
    box->first = entry->next;
    if (!box->first)
        box->last = NULL;
    box->bytes -= entry->bytes;
    free_entry(entry);
}

int job_outbox_flush(struct job_outbox *box, int fd)
{
    while (box->first) {
        struct job_outbox_entry *entry = box->first;
        struct iovec iov = {entry->data + entry->sent, entry->bytes - entry->sent};
        ssize_t n = limejob_send_partial(fd, &iov, 1, entry->sent == 0 ? entry->fd : -1);
        if (n == -EAGAIN || n == -EWOULDBLOCK)
            return 0;
        if (n < 0)
            return (int)n;
        entry->sent += (size_t)n;
        if (entry->sent == entry->bytes)
            drop_first_entry(box);
    }
    return 1;
}

void job_outbox_clear(struct job_outbox *box)
{
    while (box->first)
        drop_first_entry(box);
}

/* ---- peers ---- */

static int set_events(struct job_server *server, struct job_peer *peer, int op, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = peer};
    peer->events = events;
    return epoll_ctl(server->epoll_fd, op, peer->channel.fd, &event) == 0 ? 0 : -errno;
}

int job_peer_watch(struct job_server *server, struct job_peer *peer, int fd)
{
    limejob_channel_init(&peer->channel, fd);
    return set_events(server, peer, EPOLL_CTL_ADD, EPOLLIN);
}

void job_peer_update_events(struct job_server *server, struct job_peer *peer)
{
    uint32_t events = EPOLLIN | (peer->outbox.first ? (uint32_t)EPOLLOUT : 0);
    if (peer->channel.fd >= 0 && events != peer->events)
        set_events(server, peer, EPOLL_CTL_MOD, events);
}

int job_peer_send(struct job_server *server, struct job_peer *peer,
                  const struct limejob_packet *packet)
{
    int err = append_to_outbox(&peer->outbox, packet);
    if (!err) {
        int result = job_outbox_flush(&peer->outbox, peer->channel.fd);
        err = result < 0 ? result : 0;
    }
    if (!err)
        job_peer_update_events(server, peer);
    return err;
}

void job_peer_drop(struct job_server *server, struct job_peer *peer)
{
    if (peer->is_dropped)
        return;
    job_outbox_clear(&peer->outbox);
    limejob_channel_close(&peer->channel);
    peer->is_dropped = true;
    peer->next_dropped = server->dropped;
    server->dropped = peer;
}
