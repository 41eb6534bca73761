/* several.c - the same work on several files at once, by processes that print in turn */
#define _GNU_SOURCE
#include "several.h"
#include "threads.h"
#include "tool.h"
#include "turns.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORKERS_MAX = 64,
    WAITING_MIN = 4,        /* workers where the work is waiting */
    AHEAD = 8,              /* files for each worker that are begun before the turn comes */
    WORKER_BYTES = 1 << 30, /* of the machine's memory for each worker; most need a few MiB */
    LOOK_MS = 200,          /* at how far they are, for the bar */
    ROOM_MIN = 4096,        /* records of any file; a million take up to 200 MB */
    ROOM_MAX = 32 * 1024,   /* of larger files together, but for the one whose turn it is */
};

/* ---- a worker ---- */

/* What comes to it. */
struct order {
    size_t file;
    unsigned threads;
};

/* What this process is, if it is one. */
static struct {
    int socket;
    uint64_t room; /* records that its file may have */
} self = {.socket = -1};

/* A stream of this process that goes to the other one. */
struct outlet {
    int socket;
    enum packet_kind kind;
};

static bool send_packet(int socket, struct head head, const void *body, size_t n)
{
    struct iovec parts[] = {{&head, sizeof head}, {(void *)body, n}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

static ssize_t put(void *cookie, const char *text, size_t n)
{
    const struct outlet *outlet = cookie;
    for (size_t at = 0, piece; at < n; at += piece) {
        piece = n - at < PACKET_MAX ? n - at : PACKET_MAX;
        if (!send_packet(outlet->socket, (struct head){.kind = outlet->kind}, text + at, piece))
            return -1;
    }
    return (ssize_t)n;
}

static FILE *open_stream(void *cookie, cookie_write_function_t *write, int mode)
{
    FILE *stream = fopencookie(cookie, "w", (cookie_io_functions_t){.write = write});
    if (stream)
        setvbuf(stream, NULL, mode, PACKET_MAX);
    return stream;
}

void several_need_room(uint64_t records)
{
    struct order go_on;
    if (self.socket < 0 || records <= self.room)
        return;
    self.room *= 2;
    if (!send_packet(self.socket, (struct head){.kind = GROWS}, &self.room, sizeof self.room) ||
        recv(self.socket, &go_on, sizeof go_on, 0) != sizeof go_on)
        _exit(TOOL_BAD); /* the other process is gone */
}

static int work(const struct several *all, struct order order, struct progress *progress,
                void *result)
{
    self.room = ROOM_MIN;
    int status = all->work(all->context, order.file, order.threads, progress, result);
    if (self.room > ROOM_MIN)
        malloc_trim(0); /* another one may have it */
    return status;
}

/* Until there are no more orders. */
static void serve(const struct several *all, int socket, struct progress *progress)
{
    struct outlet out = {socket, TO_STDOUT}, err = {socket, TO_STDERR};
    FILE *streams[] = {open_stream(&out, put, _IOFBF), open_stream(&err, put, _IOLBF)};
    struct order order;
    if (!streams[0] || !streams[1])
        return;
    self.socket = socket;
    stdout = streams[0];
    stderr = streams[1];
    while (recv(socket, &order, sizeof order, 0) == sizeof order) {
        _Alignas(max_align_t) char result[SEVERAL_RESULT_MAX] = "";
        int status = work(all, order, progress, result);
        if (fflush(stdout) != 0 || fflush(stderr) != 0 ||
            !send_packet(socket, (struct head){.kind = ENDED, .status = status}, result,
                         all->result_size))
            return;
    }
}

/* ---- workers, seen from this process ---- */

struct worker {
    pid_t pid; /* 0: there is none */
    int socket;
    bool busy;
    size_t file;
    unsigned threads;          /* that the file may use */
    uint64_t room, wants;      /* records that the file may have, and waits for; 0: none */
    struct progress *progress; /* shared with it */
};

struct run {
    const struct several *all;
    struct worker worker[WORKERS_MAX];
    unsigned workers, processors;
    size_t next; /* the file to be begun */
    struct turns turns;
    struct progress *shared, bar;
    uint64_t ended; /* what the files that are done with are in the bar */
};

static uint64_t size_of(const struct several *all, size_t i)
{
    return all->size ? all->size(all->context, i) : 1;
}

static void begin_bar(struct progress *bar, const struct several *all)
{
    uint64_t total = 0;
    for (size_t i = 0; i < all->count; i++)
        total += size_of(all, i);
    progress_begin(bar, all->action, total);
}

static void begin_worker(struct run *run, struct worker *w)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return;
    flush_stdout();
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* SIGTERM may be ignored; it leaves nothing behind */
        close(pair[0]);
        for (unsigned i = 0; i < run->workers; i++)
            if (run->worker[i].pid)
                close(run->worker[i].socket);
        if (getppid() == parent)
            serve(run->all, pair[1], w->progress);
        _exit(0);
    }
    close(pair[1]);
    if (pid < 0)
        close(pair[0]);
    else
        *w = (struct worker){.pid = pid, .socket = pair[0], .progress = w->progress};
}

static void end_worker(struct worker *w, int *how)
{
    close(w->socket);
    while (waitpid(w->pid, how, 0) < 0 && errno == EINTR)
        ;
    w->pid = 0;
}

/* ---- the run ---- */

static void end_file(struct run *run, struct worker *w, const struct packet *packet, size_t n)
{
    w->busy = false;
    run->ended += size_of(run->all, w->file);
    w->progress->done = 0;
    turns_take(&run->turns, w->file, packet, n);
}

/* It was working on a file, and is no more: the file is bad, and the others go on. */
static void lose(struct run *run, struct worker *w)
{
    struct packet packet = {.head = {.kind = ENDED, .status = TOOL_BAD}};
    end_worker(w, &packet.head.how);
    if (!packet.head.how) /* without an error, and before its time */
        packet.head.how = W_EXITCODE(TOOL_BAD, 0);
    end_file(run, w, &packet, sizeof packet.head + run->all->result_size);
    begin_worker(run, w);
}

static void hear(struct run *run, struct worker *w)
{
    struct packet packet;
    ssize_t n = recv(w->socket, &packet, sizeof packet, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < (ssize_t)sizeof packet.head)
        lose(run, w);
    else if (packet.head.kind == ENDED)
        end_file(run, w, &packet, (size_t)n);
    else if (packet.head.kind == GROWS)
        memcpy(&w->wants, packet.body, sizeof w->wants);
    else
        turns_take(&run->turns, w->file, &packet, (size_t)n);
}

/* Of the next file: its share of the processors that no other file has. */
static unsigned count_threads(const struct run *run)
{
    size_t left = run->all->count - run->next;
    unsigned spare = run->processors, idle = 0;
    for (unsigned i = 0; i < run->workers; i++) {
        const struct worker *w = &run->worker[i];
        if (w->busy)
            spare -= w->threads < spare ? w->threads : spare;
        else
            idle++;
    }
    unsigned at_once = left < idle ? (unsigned)left : idle;
    return spare > at_once ? (spare + at_once - 1) / at_once : 1;
}

static void give(struct run *run, struct worker *w)
{
    struct order order = {run->next, count_threads(run)};
    w->busy = true;
    w->threads = order.threads;
    w->room = w->wants = 0;
    w->file = run->next++;
    send(w->socket, &order, sizeof order, MSG_NOSIGNAL); /* if it is gone, that will be heard */
}

/* The file whose turn it is waits for no other one, which may wait for its turn. */
static bool may_grow(const struct run *run, const struct worker *w)
{
    uint64_t room = w->wants;
    for (unsigned i = 0; i < run->workers; i++) {
        const struct worker *other = &run->worker[i];
        if (other != w && other->busy && other->file != run->turns.turn)
            room += other->room;
    }
    return w->file == run->turns.turn || room <= ROOM_MAX;
}

static void let_grow(struct run *run)
{
    for (unsigned i = 0; i < run->workers; i++) {
        struct worker *w = &run->worker[i];
        struct order go_on = {w->file, w->threads};
        if (!w->busy || !w->wants || !may_grow(run, w))
            continue;
        w->room = w->wants;
        w->wants = 0;
        send(w->socket, &go_on, sizeof go_on, MSG_NOSIGNAL);
    }
}

static void show_progress(struct run *run)
{
    uint64_t done = run->ended;
    for (unsigned i = 0; i < run->workers; i++)
        if (run->worker[i].busy)
            done += ((volatile struct progress *)run->worker[i].progress)->done;
    progress_to(&run->bar, done);
}

/* Waits for whom there is something to be heard of. */
static void hear_all(struct run *run)
{
    struct pollfd heard[WORKERS_MAX];
    struct worker *whose[WORKERS_MAX];
    unsigned n = 0;
    for (unsigned i = 0; i < run->workers; i++) {
        struct worker *w = &run->worker[i];
        if (!w->busy || turns_is_full(&run->turns, w->file))
            continue;
        whose[n] = w;
        heard[n++] = (struct pollfd){.fd = w->socket, .events = POLLIN};
    }
    if (poll(heard, n, run->bar.wanted ? LOOK_MS : -1) > 0)
        for (unsigned i = 0; i < n; i++)
            if (heard[i].revents)
                hear(run, whose[i]);
    if (run->bar.wanted)
        show_progress(run);
}

/* False if there is nobody who could do it. */
static bool give_all(struct run *run)
{
    bool any = run->next == run->all->count;
    for (unsigned i = 0; i < run->workers; i++) {
        struct worker *w = &run->worker[i];
        bool wanted = !w->busy && run->next < run->all->count;
        if (wanted && !w->pid)
            begin_worker(run, w);
        if (wanted && w->pid && run->next < run->turns.turn + run->turns.ahead)
            give(run, w);
        any = any || w->pid;
    }
    return any;
}

/* Until all are done, or no process can be had. */
static void run_workers(struct run *run)
{
    begin_bar(&run->bar, run->all);
    while (run->turns.turn < run->all->count && give_all(run)) {
        let_grow(run);
        hear_all(run);
    }
    for (unsigned i = 0; i < run->workers; i++)
        if (run->worker[i].pid)
            end_worker(&run->worker[i], NULL);
    progress_end(&run->bar);
}

/* ---- in this process ---- */

/* What a file prints on its way to stdout, where `between` may come before it. */
struct passage {
    struct turns *turns;
    FILE *out;
};

static ssize_t pass(void *cookie, const char *text, size_t n)
{
    const struct passage *passage = cookie;
    FILE *in = stdout;
    stdout = passage->out;
    turns_print(passage->turns, text, n);
    flush_stdout(); /* which keeps the reason if it fails */
    stdout = in;
    return (ssize_t)n;
}

static void work_here(struct run *run)
{
    const struct several *all = run->all;
    _Alignas(max_align_t) char result[SEVERAL_RESULT_MAX] = "";
    struct packet packet = {.head = {.kind = ENDED}};
    struct progress progress;
    size_t file = run->next++;
    progress_begin(&progress, all->action, size_of(all, file));
    packet.head.status = all->work(all->context, file, run->processors, &progress, result);
    progress_end(&progress);
    flush_stdout();
    memcpy(packet.body, result, all->result_size);
    turns_take(&run->turns, file, &packet, sizeof packet.head + all->result_size);
}

/* One after the other: a single file, and those for which no process can be had. */
static void run_here(struct run *run)
{
    struct passage passage = {&run->turns, stdout};
    bool passes = run->all->between && run->all->count > 1;
    FILE *in = passes ? open_stream(&passage, pass, _IOFBF) : stdout;
    if (!in)
        turns_give_up(&run->turns, run->next);
    flush_stdout();
    while (run->next < run->all->count) {
        stdout = in;
        work_here(run);
        stdout = passage.out;
    }
    if (passes)
        fclose(in);
}

static unsigned count_workers(const struct several *all, unsigned processors)
{
    unsigned n = all->waits && processors < WAITING_MIN ? WAITING_MIN : processors;
    n = n < WORKERS_MAX ? n : WORKERS_MAX;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t room = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / WORKER_BYTES : n;
    n = room < n ? (unsigned)room + 1 : n;
    return all->count < n ? (unsigned)all->count : n;
}

/* False: there is no memory for it. */
static bool share_progress(struct run *run)
{
    size_t bytes = run->workers * sizeof *run->shared;
    run->shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; run->shared != MAP_FAILED && i < run->workers; i++)
        run->worker[i].progress = &run->shared[i];
    return run->shared != MAP_FAILED;
}

int several_run(const struct several *all)
{
    struct run run = {.all = all};
    if (all->count == 0)
        return TOOL_GOOD;
    run.processors = all->processors ? all->processors : limefile_processors();
    run.workers = count_workers(all, run.processors);
    if (!turns_begin(&run.turns, all, (size_t)AHEAD * run.workers)) {
        message_code(all->action, "begin", -ENOMEM);
        return TOOL_BAD;
    }
    if (all->count > 1 && share_progress(&run)) {
        run_workers(&run);
        munmap(run.shared, run.workers * sizeof *run.shared);
    }
    run_here(&run);
    turns_end(&run.turns);
    return run.turns.worst;
}
