/* parallel.c - run a command on many files in parallel, printing results in order */
#define _GNU_SOURCE
#include "parallel.h"
#include "threads.h"
#include "tool.h"

#include <errno.h>
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHILDREN_MAX = 64,
    WAITING_MIN = 4,       /* minimum of children if the work mostly waits */
    CHILD_BYTES = 1 << 30, /* memory of the machine per child; most need a few MiB */
    AHEAD = 8,             /* files per child that may be held until they are printed */
    STATUS_LOST = 100,     /* exit status of a child that could not hold its output */
};

/* A file that is started, but not yet printed. */
struct slot {
    pid_t pid;    /* 0: the child has ended */
    int out, err; /* memfds that hold the child's output */
    unsigned threads;
    int how; /* as waitpid() returns it */
};

struct run {
    const struct parallel *all;
    struct slot *slots; /* a ring */
    size_t slot_count;
    unsigned children_max, children, processors, threads; /* threads of all children */
    size_t turn;                                          /* the file to print next */
    size_t next;                                          /* the file to start next */
    bool any_printed;                                     /* earlier files printed on stdout */
    bool prints;                                          /* file `turn` printed on stdout */
    int worst;
    struct progress bar;
};

static struct slot *find_slot(const struct run *run, size_t file)
{
    return &run->slots[file % run->slot_count];
}

static void close_slot(const struct slot *slot)
{
    if (slot->out >= 0)
        close(slot->out);
    if (slot->err >= 0)
        close(slot->err);
}

/* ---- the child ---- */

/* Closes the descriptors of the other files, as the limit may be low. */
static _Noreturn void run_child(const struct run *run, const struct slot *slot)
{
    for (size_t i = run->turn; i < run->next; i++)
        close_slot(find_slot(run, i));
    __fpurge(stdout); /* the buffer belongs to the parent */
    clearerr(stdout);
    setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
    if (dup2(slot->out, STDOUT_FILENO) < 0 || dup2(slot->err, STDERR_FILENO) < 0)
        _exit(STATUS_LOST);
    int status =
        run->all->work(run->all->context, &run->all->list->items[run->next], slot->threads);
    if (fflush(stdout) != 0 || ferror(stdout) || ferror(stderr))
        status = STATUS_LOST;
    _exit(status);
}

/* ---- the parent ---- */

/* Returns the next file's share of the processors that no other file uses. */
static unsigned count_threads(const struct run *run)
{
    size_t left = run->all->list->count - run->next;
    unsigned idle = run->children_max - run->children;
    unsigned sharing = left < idle ? (unsigned)left : idle;
    unsigned spare = run->threads < run->processors ? run->processors - run->threads : 0;
    return spare > sharing ? (spare + sharing - 1) / sharing : 1;
}

/* Starts the next file. Returns false if no process can be started. */
static bool start_file(struct run *run)
{
    struct slot slot = {
        .out = memfd_create("lime", MFD_CLOEXEC),
        .err = memfd_create("lime", MFD_CLOEXEC),
        .threads = count_threads(run),
    };
    pid_t parent = getpid();
    slot.pid = slot.out < 0 || slot.err < 0 ? -1 : fork();
    if (slot.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the child may ignore SIGTERM */
        if (getppid() != parent)
            _exit(STATUS_LOST);
        run_child(run, &slot);
    }
    if (slot.pid < 0) {
        close_slot(&slot);
        return false;
    }
    *find_slot(run, run->next++) = slot;
    run->children++;
    run->threads += slot.threads;
    return true;
}

static void start_files(struct run *run)
{
    bool started = true;
    while (started && run->next < run->all->list->count && run->children < run->children_max &&
           run->next - run->turn < run->slot_count)
        started = start_file(run);
}

/* Waits until a child has ended, which may be one that parallel_run() has not started. */
static void wait_child(struct run *run)
{
    int how;
    pid_t pid = waitpid(-1, &how, 0);
    for (size_t i = run->turn; pid > 0 && i < run->next; i++) {
        struct slot *slot = find_slot(run, i);
        if (slot->pid != pid)
            continue;
        slot->pid = 0;
        slot->how = how;
        run->children--;
        run->threads -= slot->threads;
        progress_add(&run->bar, 1);
    }
}

/* ---- output ---- */

static void begin_output(struct run *run)
{
    if (!run->prints && run->any_printed && run->all->between)
        fputs(run->all->between, stdout);
    run->prints = true;
}

static void print_text(struct run *run, const char *text, size_t n)
{
    begin_output(run);
    fwrite(text, 1, n, stdout);
}

static void print_output(struct run *run, const struct slot *slot, bool is_lost)
{
    char text[BUFSIZ];
    off_t at = 0;
    flush_stdout();
    for (ssize_t n; (n = pread(slot->err, text, sizeof text, at)) > 0; at += n)
        fwrite(text, 1, (size_t)n, stderr);
    at = 0;
    for (ssize_t n; !is_lost && (n = pread(slot->out, text, sizeof text, at)) > 0; at += n)
        print_text(run, text, (size_t)n);
}

static void print_lost(struct run *run, int how)
{
    const struct parallel *all = run->all;
    const struct pathlist_item *item = &all->list->items[run->turn];
    char why[64] = "no memory for its output";
    if (WIFSIGNALED(how))
        snprintf(why, sizeof why, "its process was ended by signal %d", WTERMSIG(how));
    message(item->path, "%s: %s", all->action, why);
    if (!all->lost)
        return;
    begin_output(run);
    all->lost(all->context, item, why);
}

static void end_file(struct run *run, int status)
{
    run->worst = worse_status(run->worst, status);
    run->any_printed = run->any_printed || run->prints;
    run->prints = false;
    run->turn++;
}

/* Prints file `turn`, whose child has ended. */
static void print_file(struct run *run)
{
    struct slot *slot = find_slot(run, run->turn);
    bool is_lost = !WIFEXITED(slot->how) || WEXITSTATUS(slot->how) > TOOL_UNVERIFIED;
    progress_hide();
    print_output(run, slot, is_lost);
    close_slot(slot);
    if (is_lost)
        print_lost(run, slot->how);
    end_file(run, is_lost ? TOOL_UNUSABLE : WEXITSTATUS(slot->how));
}

/* Examines file `turn` in this process. */
static void run_here(struct run *run)
{
    const struct parallel *all = run->all;
    const struct pathlist_item *item = &all->list->items[run->next];
    char *text = NULL;
    size_t n = 0;
    int status = TOOL_BAD;
    FILE *out = stdout, *held = open_memstream(&text, &n);
    flush_stdout(); /* messages go to stderr directly */
    if (held) {
        stdout = held;
        status = all->work(all->context, item, run->processors);
        stdout = out;
    }
    if (!held || fclose(held) != 0)
        message_code(item->path, all->action, -ENOMEM);
    else if (n)
        print_text(run, text, n);
    free(text);
    run->next++;
    end_file(run, status);
}

/* ---- the run ---- */

static unsigned count_children(const struct parallel *all, unsigned processors)
{
    unsigned n = all->waits && processors < WAITING_MIN ? WAITING_MIN : processors;
    n = n < CHILDREN_MAX ? n : CHILDREN_MAX;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t room = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / CHILD_BYTES : n;
    n = room < n ? (unsigned)room + 1 : n;
    return all->list->count < n ? (unsigned)all->list->count : n;
}

static void run_files(struct run *run)
{
    signal(SIGCHLD, SIG_DFL); /* waitpid() reports no child while it is ignored */
    while (run->turn < run->all->list->count) {
        start_files(run);
        if (run->turn < run->next && !find_slot(run, run->turn)->pid)
            print_file(run);
        else if (run->children)
            wait_child(run);
        else
            run_here(run);
    }
}

int parallel_run(const struct parallel *all)
{
    struct run run = {.all = all, .worst = TOOL_GOOD};
    run.processors = all->processors ? all->processors : limefile_processors();
    if (all->list->count == 1)
        return all->work(all->context, all->list->items, run.processors);
    run.children_max = count_children(all, run.processors);
    run.slot_count = (size_t)AHEAD * run.children_max;
    run.slots = calloc(run.slot_count, sizeof *run.slots);
    if (!run.slots) {
        message_code(all->action, "begin", -ENOMEM);
        return TOOL_BAD;
    }
    progress_begin_files(&run.bar, all->action, all->list->count);
    run_files(&run);
    progress_end(&run.bar);
    free(run.slots);
    return run.worst;
}
