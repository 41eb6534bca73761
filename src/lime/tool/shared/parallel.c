/* parallel.c - run a command on many files in parallel, printing results in order */
#define _GNU_SOURCE
#include "parallel.h"
#include "threads.h"
#include "tool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHILDREN_MAX = 64,
    WAITING_MIN = 4,       /* children if the work mostly waits */
    CHILD_BYTES = 1 << 30, /* of the machine's memory for each child; most need a few MiB */
    AHEAD = 8,             /* files for each child that may be held until they are printed */
    STATUS_LOST = 100,     /* exit status of a child that could not hold its output */
};

/* The output of a child is a sequence of pieces, each followed by its n bytes of text. */
struct piece {
    bool is_error; /* for stderr */
    size_t n;
};

/* A file that has been started and not printed. */
struct slot {
    pid_t pid;    /* 0: the child has ended */
    FILE *output; /* in memory, shared with the child */
    unsigned threads;
    int how; /* as waitpid() returns it */
};

struct run {
    const struct parallel *all;
    struct slot *slots; /* of a ring */
    size_t slot_count;
    unsigned children_max, children, processors, threads; /* used by all children */
    size_t turn;                                          /* the file to be printed */
    size_t next;                                          /* the file to be started */
    bool any_printed;                                     /* on stdout, by files before, */
    bool prints;                                          /* and by the file to be printed */
    int worst;
    struct progress bar;
};

static struct slot *find_slot(const struct run *run, size_t file)
{
    return &run->slots[file % run->slot_count];
}

/* ---- the child ---- */

struct outlet {
    FILE *output;
    bool is_error;
};

static ssize_t write_piece(void *cookie, const char *text, size_t n)
{
    const struct outlet *outlet = cookie;
    struct piece piece = {outlet->is_error, n};
    bool written = fwrite(&piece, sizeof piece, 1, outlet->output) == 1 &&
                   fwrite(text, 1, n, outlet->output) == n && fflush(outlet->output) == 0;
    return written ? (ssize_t)n : -1;
}

static FILE *open_outlet(struct outlet *outlet, int mode)
{
    FILE *stream = fopencookie(outlet, "w", (cookie_io_functions_t){.write = write_piece});
    if (!stream)
        _exit(STATUS_LOST);
    setvbuf(stream, NULL, mode, BUFSIZ);
    return stream;
}

/* Closes the descriptors of the other files, as the limit may be low. */
static _Noreturn void run_child(const struct run *run, FILE *output, unsigned threads)
{
    struct outlet out = {output, false}, err = {output, true};
    for (size_t i = run->turn; i < run->next; i++)
        close(fileno(find_slot(run, i)->output));
    stdout = open_outlet(&out, _IOFBF);
    stderr = open_outlet(&err, _IOLBF);
    int status = run->all->work(run->all->context, run->next, threads);
    if (fflush(stdout) != 0 || fflush(stderr) != 0)
        status = STATUS_LOST;
    _exit(status);
}

/* ---- children, seen from the parent ---- */

static FILE *open_memory(void)
{
    int fd = memfd_create("lime", MFD_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");
    if (!file && fd >= 0)
        close(fd);
    return file;
}

/* The next file gets its share of the processors that no other file uses. */
static unsigned count_threads(const struct run *run)
{
    size_t left = run->all->count - run->next;
    unsigned idle = run->children_max - run->children;
    unsigned sharing = left < idle ? (unsigned)left : idle;
    unsigned spare = run->threads < run->processors ? run->processors - run->threads : 0;
    return spare > sharing ? (spare + sharing - 1) / sharing : 1;
}

/* Starts the next file. Returns false if no process can be started. */
static bool start_file(struct run *run)
{
    struct slot slot = {.output = open_memory(), .threads = count_threads(run)};
    if (!slot.output)
        return false;
    pid_t parent = getpid();
    slot.pid = fork();
    if (slot.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* SIGTERM may be ignored */
        if (getppid() != parent)
            _exit(STATUS_LOST);
        run_child(run, slot.output, slot.threads);
    }
    if (slot.pid < 0) {
        fclose(slot.output);
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
    while (started && run->next < run->all->count && run->children < run->children_max &&
           run->next - run->turn < run->slot_count)
        started = start_file(run);
}

/* Waits until a child has ended. This process may have children that are not its own. */
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

static void print_output(struct run *run, FILE *output, bool is_lost)
{
    struct piece piece;
    char text[BUFSIZ];
    rewind(output);
    while (fread(&piece, sizeof piece, 1, output) == 1)
        for (size_t n; piece.n; piece.n -= n) {
            n = fread(text, 1, piece.n < sizeof text ? piece.n : sizeof text, output);
            if (n == 0)
                return; /* the child was killed while it wrote */
            if (piece.is_error) {
                flush_stdout();
                fwrite(text, 1, n, stderr);
            } else if (!is_lost) {
                print_text(run, text, n);
            }
        }
}

static void print_lost(struct run *run, int how)
{
    const struct parallel *all = run->all;
    char why[64] = "no memory for its output";
    if (WIFSIGNALED(how))
        snprintf(why, sizeof why, "its process was ended by signal %d", WTERMSIG(how));
    message(all->name(all->context, run->turn), "%s: %s", all->action, why);
    if (!all->lost)
        return;
    begin_output(run);
    all->lost(all->context, run->turn, why);
}

static void end_file(struct run *run, int status)
{
    run->worst = worse_status(run->worst, status);
    run->any_printed = run->any_printed || run->prints;
    run->prints = false;
    run->turn++;
}

/* Prints the file whose turn it is; its child has ended. */
static void print_file(struct run *run)
{
    struct slot *slot = find_slot(run, run->turn);
    bool is_lost = !WIFEXITED(slot->how) || WEXITSTATUS(slot->how) > TOOL_UNVERIFIED;
    progress_hide();
    print_output(run, slot->output, is_lost);
    fclose(slot->output);
    if (is_lost)
        print_lost(run, slot->how);
    end_file(run, is_lost ? TOOL_UNUSABLE : WEXITSTATUS(slot->how));
}

/* Examines the file whose turn it is in this process. */
static void run_here(struct run *run)
{
    const struct parallel *all = run->all;
    char *text = NULL;
    size_t n = 0;
    int status = TOOL_BAD;
    FILE *out = stdout, *held = open_memstream(&text, &n);
    flush_stdout(); /* messages go to stderr directly */
    if (held) {
        stdout = held;
        status = all->work(all->context, run->next, run->processors);
        stdout = out;
    }
    if (!held || fclose(held) != 0)
        message_code(all->name(all->context, run->next), all->action, -ENOMEM);
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
    return all->count < n ? (unsigned)all->count : n;
}

static void run_files(struct run *run)
{
    signal(SIGCHLD, SIG_DFL); /* if it is ignored, waitpid() reports no child */
    while (run->turn < run->all->count) {
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
    if (all->count == 1)
        return all->work(all->context, 0, run.processors);
    run.children_max = count_children(all, run.processors);
    run.slot_count = (size_t)AHEAD * run.children_max;
    run.slots = calloc(run.slot_count, sizeof *run.slots);
    if (!run.slots) {
        message_code(all->action, "begin", -ENOMEM);
        return TOOL_BAD;
    }
    progress_begin_files(&run.bar, all->action, all->count);
    run_files(&run);
    progress_end(&run.bar);
    free(run.slots);
    return run.worst;
}
