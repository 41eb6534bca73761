/* turns.c - what workers print, in the order of the list */
#define _GNU_SOURCE
#include "turns.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HELD_MAX = 256 * 1024 }; /* bytes of a file, and a packet more */

struct held {
    struct held *next;
    size_t n;
    struct packet packet; /* so many bytes of it */
};

struct waiting {
    struct held *first, **last;
    size_t bytes;
    bool ended, lost;
};

static struct waiting *waiting_of(const struct turns *t, size_t file)
{
    return &t->ring[file % t->ahead];
}

static const char *name_of(const struct turns *t, size_t file)
{
    return t->all->name(t->all->context, file);
}

/* What cannot be held cannot be told either. */
static void give_up(const struct turns *t, size_t file, int err)
{
    message_code(name_of(t, file), t->all->action, err);
    exit(TOOL_BAD);
}

/* ---- out ---- */

static void begin_output(struct turns *t)
{
    if (!t->prints && t->printed && t->all->between)
        fputs(t->all->between, stdout);
    t->prints = true;
}

static void print(struct turns *t, const struct packet *packet, size_t n)
{
    progress_hide();
    if (packet->head.kind == TO_STDERR) {
        flush_stdout();
        fwrite(packet->body, 1, n, stderr);
    } else if (!waiting_of(t, t->turn)->lost) {
        begin_output(t);
        fwrite(packet->body, 1, n, stdout);
    }
}

static void tell_lost(struct turns *t, int how)
{
    char why[64] = "its process has ended";
    if (WIFSIGNALED(how))
        snprintf(why, sizeof why, "its process was ended by signal %d", WTERMSIG(how));
    progress_hide();
    flush_stdout();
    message(name_of(t, t->turn), "%s: %s", t->all->action, why);
    if (!t->all->lost)
        return;
    begin_output(t);
    t->all->lost(t->all->context, t->turn, why);
}

static void end_turn(struct turns *t, const struct packet *packet)
{
    const struct several *all = t->all;
    _Alignas(max_align_t) char result[SEVERAL_RESULT_MAX];
    int status = packet->head.status;
    memcpy(result, packet->body, all->result_size);
    if (packet->head.how)
        tell_lost(t, packet->head.how);
    if (all->done)
        status = all->done(all->context, t->turn, status, result);
    t->worst = status > t->worst ? status : t->worst;
    t->printed = t->printed || t->prints;
    t->prints = false;
    t->turn++;
}

/* Of the file whose turn it is. */
static void take_now(struct turns *t, const struct packet *packet, size_t n)
{
    if (packet->head.kind == ENDED)
        end_turn(t, packet);
    else
        print(t, packet, n - sizeof packet->head);
}

/* ---- held ---- */

static void hold(struct turns *t, size_t file, const struct packet *packet, size_t n)
{
    struct waiting *waiting = waiting_of(t, file);
    struct held *held = malloc(sizeof *held - sizeof held->packet + n);
    if (!held)
        give_up(t, file, -ENOMEM);
    held->next = NULL;
    held->n = n;
    memcpy(&held->packet, packet, n);
    if (!waiting->first)
        waiting->last = &waiting->first;
    *waiting->last = held;
    waiting->last = &held->next;
    waiting->bytes += n;
    waiting->ended = packet->head.kind == ENDED;
    waiting->lost = t->all->whole && waiting->ended && packet->head.how;
}

static struct held *pop(struct waiting *waiting)
{
    struct held *held = waiting->first;
    waiting->first = held->next;
    waiting->bytes -= held->n;
    return held;
}

/* ---- the page ---- */

/* All that is held of the file whose turn it is goes there. */
static void fill_page(struct turns *t)
{
    struct waiting *waiting = waiting_of(t, t->turn);
    int err = 0;
    if (!t->page && !(t->page = tmpfile()))
        give_up(t, t->turn, -errno);
    while (waiting->first) {
        struct held *held = pop(waiting);
        size_t n = held->n - sizeof held->packet.head;
        if (held->packet.head.kind == TO_STDOUT)
            err = fwrite(held->packet.body, 1, n, t->page) == n ? 0 : -errno;
        else
            take_now(t, &held->packet, held->n);
        free(held);
        if (err)
            give_up(t, t->turn, err);
    }
    if (fflush(t->page) != 0)
        give_up(t, t->turn, -errno);
    t->paged = true;
}

static void empty_page(struct turns *t)
{
    char block[PACKET_MAX];
    rewind(t->page);
    if (!waiting_of(t, t->turn)->lost) {
        begin_output(t);
        for (size_t n; (n = fread(block, 1, sizeof block, t->page)) > 0;)
            fwrite(block, 1, n, stdout);
    }
    if (ferror(t->page))
        give_up(t, t->turn, -EIO);
    rewind(t->page);
    if (ftruncate(fileno(t->page), 0) != 0)
        give_up(t, t->turn, -errno);
    t->paged = false;
}

/* ---- in turn ---- */

static void catch_up(struct turns *t)
{
    while (t->turn < t->all->count) {
        struct waiting *waiting = waiting_of(t, t->turn);
        if (!waiting->first || (t->all->whole && !waiting->ended))
            break;
        if (t->paged)
            empty_page(t);
        struct held *held = pop(waiting);
        take_now(t, &held->packet, held->n);
        free(held);
    }
    if (t->turn < t->all->count && turns_is_full(t, t->turn))
        fill_page(t);
}

void turns_take(struct turns *t, size_t file, const struct packet *packet, size_t n)
{
    if (file == t->turn && !t->all->whole)
        take_now(t, packet, n);
    else
        hold(t, file, packet, n);
    catch_up(t);
}

bool turns_is_full(const struct turns *t, size_t file)
{
    return waiting_of(t, file)->bytes > HELD_MAX;
}

bool turns_begin(struct turns *t, const struct several *all, size_t ahead)
{
    *t = (struct turns){.all = all, .ahead = ahead};
    t->ring = calloc(ahead, sizeof *t->ring);
    return t->ring != NULL;
}

void turns_end(struct turns *t)
{
    if (t->page)
        fclose(t->page);
    free(t->ring);
}
