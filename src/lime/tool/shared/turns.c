/* turns.c - what workers print, in the order of the list */
#define _GNU_SOURCE
#include "turns.h"
#include "limefile.h"
#include "tempfile.h"
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
void turns_give_up(const struct turns *t, size_t file)
{
    message_code(name_of(t, file), t->all->action, -ENOMEM);
    exit(TOOL_BAD);
}

static void add_status(struct turns *t, int status)
{
    t->worst = worse_status(status, t->worst);
}

/* ---- out ---- */

static void begin_output(struct turns *t)
{
    if (!t->prints && t->printed && t->all->between)
        fputs(t->all->between, stdout);
    t->prints = true;
}

void turns_print(struct turns *t, const char *text, size_t n)
{
    begin_output(t);
    fwrite(text, 1, n, stdout);
}

static void print(struct turns *t, const struct packet *packet, size_t n)
{
    progress_hide();
    if (packet->head.kind == TO_STDERR) {
        flush_stdout();
        fwrite(packet->body, 1, n, stderr);
    } else if (!waiting_of(t, t->turn)->lost) {
        turns_print(t, packet->body, n);
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
    if (t->prints) /* a part of it is out */
        putchar('\n');
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
    add_status(t, status);
    t->printed = t->printed || t->prints;
    t->prints = t->flows = false;
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
        turns_give_up(t, file);
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

static int open_page(void)
{
    const char *folder = getenv("TMPDIR");
    return tempfile_unnamed(folder && *folder ? folder : "/tmp");
}

static void close_page(struct turns *t)
{
    if (t->page >= 0)
        close(t->page);
    t->page = -1;
}

/* False: there is no room for it, and nothing has changed. */
static bool add_to_page(struct turns *t, const char *text, size_t n)
{
    if (t->page < 0)
        t->page = open_page();
    if (t->page < 0 || limefile_fd_write(t->page, text, n, t->paged) != 0)
        return false;
    t->paged += n;
    return true;
}

/* All that is held of the file whose turn it is goes there; false: as far as there is room. */
static bool fill_page(struct turns *t)
{
    struct waiting *waiting = waiting_of(t, t->turn);
    while (waiting->first) {
        struct held *held = waiting->first;
        if (held->packet.head.kind != TO_STDOUT)
            take_now(t, &held->packet, held->n);
        else if (!add_to_page(t, held->packet.body, held->n - sizeof held->packet.head))
            return false;
        free(pop(waiting));
    }
    return true;
}

/* Returns an error of reading. */
static int print_page(struct turns *t)
{
    char block[PACKET_MAX];
    for (uint64_t at = 0, piece; at < t->paged; at += piece) {
        piece = t->paged - at < sizeof block ? t->paged - at : sizeof block;
        ssize_t got = limefile_fd_read(t->page, block, (size_t)piece, at);
        if (got != (ssize_t)piece)
            return got < 0 ? (int)got : -EIO;
        turns_print(t, block, (size_t)piece);
    }
    return 0;
}

static void empty_page(struct turns *t)
{
    int err = waiting_of(t, t->turn)->lost ? 0 : print_page(t);
    if (err) {
        message_code(name_of(t, t->turn), t->all->action, err);
        add_status(t, TOOL_BAD);
    }
    t->paged = 0;
    if (ftruncate(t->page, 0) != 0)
        close_page(t);
}

/* ---- in turn ---- */

static bool comes_out(const struct turns *t, const struct waiting *waiting)
{
    return waiting->first && (!t->all->whole || t->flows || waiting->ended);
}

static void print_held(struct turns *t)
{
    while (t->turn < t->all->count && comes_out(t, waiting_of(t, t->turn))) {
        if (t->paged)
            empty_page(t);
        struct held *held = pop(waiting_of(t, t->turn));
        take_now(t, &held->packet, held->n);
        free(held);
    }
}

static void catch_up(struct turns *t)
{
    print_held(t);
    if (t->turn == t->all->count || !turns_is_full(t, t->turn) || fill_page(t))
        return;
    t->flows = true;
    print_held(t);
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
    *t = (struct turns){.all = all, .ahead = ahead, .page = -1};
    t->ring = calloc(ahead, sizeof *t->ring);
    return t->ring != NULL;
}

void turns_end(struct turns *t)
{
    close_page(t);
    free(t->ring);
}
