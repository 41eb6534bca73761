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
    CHILDREN_MIN = 4,       /* minimum of children if the work mostly waits */
    CHILD_BYTES = 1 << 30,  /* memory that the machine must have for each child but the first */
    FILES_AHEAD = 8,        /* slots of the ring per child */
    STATUS_NO_OUTPUT = 100, /* exit status of a child that could not store its output */
};

/* A file whose child was started, and whose output is not yet printed. */
struct slot {
    pid_t pid;    /* 0: the child has ended */
    int out, err; /* memfds that hold the child's output */
    unsigned threads;
    int status; /* as waitpid() returns it */
};

struct batch {
    struct parallel *task;
    struct slot *slots; /* a ring: file i has slot i % slot_count */
    size_t slot_count;
    unsigned children_max, children, processors, threads; /* threads of all children */
    size_t next_to_print;                                 /* the file to print next */
    size_t next_to_start;                                 /* the file to start next */
    bool current_printed; /* file `next_to_print` has printed on stdout */
    struct progress progress;
};

/* ---- signals ---- */

static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { END_SIGNALS = sizeof end_signals / sizeof end_signals[0] };
static volatile sig_atomic_t caught; /* a signal's number, or 0 */

static void catch_signal(int number)
{
    caught = number;
}

/* Replaces the handlers `from` by `to`. Each signal is caught once: a second one ends the
 * process. Signals that are ignored stay ignored. */
static void replace_handlers(void (*from)(int), void (*to)(int))
{
    struct sigaction old, new = {.sa_handler = to, .sa_flags = SA_RESETHAND};
    for (int i = 0; i < END_SIGNALS; i++)
        if (sigaction(end_signals[i], NULL, &old) == 0 && old.sa_handler == from)
            sigaction(end_signals[i], &new, NULL);
}

/* ---- children ---- */

static struct slot *find_slot(const struct batch *b, size_t file)
{
    return &b->slots[file % b->slot_count];
}

static void close_slot(const struct slot *slot)
{
    if (slot->out >= 0)
        close(slot->out);
    if (slot->err >= 0)
        close(slot->err);
}

/* Examines file `next_to_start` in the child. First closes the descriptors of other files,
 * because the limit of open files may be low. */
static _Noreturn void run_child(const struct batch *b, const struct slot *slot)
{
    for (size_t i = b->next_to_print; i < b->next_to_start; i++)
        close_slot(find_slot(b, i));
    __fpurge(stdout); /* the parent will print the buffered text */
    clearerr(stdout);
    setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
    if (dup2(slot->out, STDOUT_FILENO) < 0 || dup2(slot->err, STDERR_FILENO) < 0)
        _exit(STATUS_NO_OUTPUT);
    int status = (int)b->task->work(b->task->context, &b->task->list->items[b->next_to_start],
                                    slot->threads);
    if (fflush(stdout) != 0 || ferror(stdout) || ferror(stderr))
        status = STATUS_NO_OUTPUT;
    _exit(status);
}

/* ---- the parent ---- */

/* Returns the number of threads for the next file: its share of the unused processors. */
static unsigned count_threads(const struct batch *b)
{
    size_t left = b->task->list->count - b->next_to_start;
    unsigned idle = b->children_max - b->children;
    unsigned sharing = left < idle ? (unsigned)left : idle;
    unsigned spare = b->threads < b->processors ? b->processors - b->threads : 0;
    return spare > sharing ? (spare + sharing - 1) / sharing : 1;
}

/* Starts the next file. Returns false if no process can be started. */
static bool start_file(struct batch *b)
{
    struct slot slot = {
        .out = memfd_create("lime", MFD_CLOEXEC),
        .err = memfd_create("lime", MFD_CLOEXEC),
        .threads = count_threads(b),
    };
    pid_t parent = getpid();
    slot.pid = slot.out < 0 || slot.err < 0 ? -1 : fork();
    if (slot.pid == 0) {
        replace_handlers(catch_signal, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the child may ignore SIGTERM */
        if (getppid() != parent)
            _exit(STATUS_NO_OUTPUT);
        run_child(b, &slot);
    }
    if (slot.pid < 0) {
        close_slot(&slot);
        return false;
    }
    *find_slot(b, b->next_to_start++) = slot;
    b->children++;
    b->threads += slot.threads;
    return true;
}

/* Starts the next files, each in a child, while a process and a slot of the ring are free. */
static void start_files(struct batch *b)
{
    bool started = true;
    while (started && b->next_to_start < b->task->list->count &&
           b->children < b->children_max && b->next_to_start - b->next_to_print < b->slot_count)
        started = start_file(b);
}

/* Waits until a child has ended. Ignores a child that start_file() has not started. */
static void wait_child(struct batch *b)
{
    int wait_status;
    pid_t pid = waitpid(-1, &wait_status, 0);
    for (size_t i = b->next_to_print; pid > 0 && i < b->next_to_start; i++) {
        struct slot *slot = find_slot(b, i);
        if (slot->pid != pid)
            continue;
        slot->pid = 0;
        slot->status = wait_status;
        b->children--;
        b->threads -= slot->threads;
        progress_add(&b->progress, 1);
    }
}

/* ---- output ---- */

/* Prints the separator before the first output of a file if an earlier file has printed. */
static void begin_output(struct batch *b)
{
    if (!b->current_printed && b->task->has_printed && b->task->separator)
        fputs(b->task->separator, stdout);
    b->current_printed = true;
}

static void print_child_text(struct batch *b, const char *text, size_t n)
{
    begin_output(b);
    fwrite(text, 1, n, stdout);
}

static void print_child_output(struct batch *b, const struct slot *slot, bool has_crashed)
{
    char text[BUFSIZ];
    off_t at = 0;
    flush_stdout();
    for (ssize_t n; (n = pread(slot->err, text, sizeof text, at)) > 0; at += n)
        fwrite(text, 1, (size_t)n, stderr);
    at = 0;
    for (ssize_t n; !has_crashed && (n = pread(slot->out, text, sizeof text, at)) > 0; at += n)
        print_child_text(b, text, (size_t)n);
}

static void report_crash(struct batch *b, int wait_status)
{
    const struct parallel *task = b->task;
    const struct pathlist_item *item = &task->list->items[b->next_to_print];
    char why[64] = "not enough memory for its output";
    if (WIFSIGNALED(wait_status))
        snprintf(why, sizeof why, "killed by signal %d", WTERMSIG(wait_status));
    message(item->path, "%s: %s", task->action, why);
    begin_output(b);
    task->print_crash(task->context, item, why);
}

static void finish_file(struct batch *b, enum limefile_verdict verdict)
{
    b->task->verdicts[verdict]++;
    b->task->has_printed = b->task->has_printed || b->current_printed;
    b->current_printed = false;
    b->next_to_print++;
}

/* Returns true if --quiet drops the output about a file. */
static bool is_dropped(const struct batch *b, enum limefile_verdict verdict)
{
    return b->task->is_quiet && verdict_status(verdict) == TOOL_GOOD;
}

/* Prints the output of file `next_to_print`, whose child has ended. */
static void print_finished_file(struct batch *b)
{
    struct slot *slot = find_slot(b, b->next_to_print);
    bool has_crashed =
        !WIFEXITED(slot->status) || WEXITSTATUS(slot->status) > LIMEFILE_UNREADABLE;
    enum limefile_verdict verdict =
        has_crashed ? LIMEFILE_UNREADABLE : (enum limefile_verdict)WEXITSTATUS(slot->status);
    progress_hide();
    if (!is_dropped(b, verdict))
        print_child_output(b, slot, has_crashed);
    close_slot(slot);
    if (has_crashed)
        report_crash(b, slot->status);
    finish_file(b, verdict);
}

static void process_in_parent(struct batch *b)
{
    const struct parallel *task = b->task;
    const struct pathlist_item *item = &task->list->items[b->next_to_start];
    char *text = NULL;
    size_t n = 0;
    enum limefile_verdict verdict = LIMEFILE_UNREADABLE;
    FILE *out = stdout, *buffer = open_memstream(&text, &n);
    flush_stdout(); /* messages go to stderr directly */
    if (buffer) {
        stdout = buffer;
        verdict = task->work(task->context, item, b->processors);
        stdout = out;
    }
    if (!buffer || fclose(buffer) != 0)
        message_code(item->path, task->action, -ENOMEM);
    else if (n && !is_dropped(b, verdict))
        print_child_text(b, text, n);
    free(text);
    progress_add(&b->progress, 1);
    b->next_to_start++;
    finish_file(b, verdict);
}

static unsigned count_children(const struct parallel *task, unsigned processors)
{
    unsigned n = task->is_io_bound && processors < CHILDREN_MIN ? CHILDREN_MIN : processors;
    n = n < CHILDREN_MAX ? n : CHILDREN_MAX;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t room = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / CHILD_BYTES : n;
    n = room < n ? (unsigned)room + 1 : n;
    return task->list->count < n ? (unsigned)task->list->count : n;
}

/* Ends all children, and prints and counts the files that are finished. */
static void end_batch(struct batch *b)
{
    b->task->interrupted = caught;
    for (size_t i = b->next_to_print; i < b->next_to_start; i++)
        if (find_slot(b, i)->pid)
            kill(find_slot(b, i)->pid, b->task->interrupted);
    while (b->children)
        wait_child(b);
    while (b->next_to_print < b->next_to_start) {
        struct slot *slot = find_slot(b, b->next_to_print);
        if (WIFEXITED(slot->status)) {
            print_finished_file(b);
        } else {
            close_slot(slot);
            b->next_to_print++;
        }
    }
}

static void run_batch(struct batch *b)
{
    signal(SIGCHLD, SIG_DFL); /* while SIGCHLD is ignored, waitpid() reports no child */
    if (b->children_max)
        replace_handlers(SIG_DFL, catch_signal);
    while (b->next_to_print < b->task->list->count) {
        if (caught) {
            end_batch(b);
            break;
        }
        start_files(b);
        if (b->next_to_print < b->next_to_start && !find_slot(b, b->next_to_print)->pid)
            print_finished_file(b);
        else if (b->children)
            wait_child(b);
        else
            process_in_parent(b);
    }
    replace_handlers(catch_signal, SIG_DFL);
}

static int worst_verdict_status(const struct parallel *task)
{
    int worst = TOOL_GOOD;
    for (int v = LIMEFILE_GOOD; v <= LIMEFILE_UNREADABLE; v++)
        if (task->verdicts[v])
            worst = worse_status(worst, verdict_status((enum limefile_verdict)v));
    return worst;
}

int parallel_run(struct parallel *task)
{
    struct batch b = {.task = task};
    b.processors = task->processors ? task->processors : limefile_processors();
    b.children_max = task->in_process ? 0 : count_children(task, b.processors);
    b.slot_count = (size_t)FILES_AHEAD * b.children_max;
    if (task->list->count == 1 && !task->is_quiet) {
        finish_file(&b, task->work(task->context, task->list->items, b.processors));
        return worst_verdict_status(task);
    }
    b.slots = calloc(b.slot_count + 1, sizeof *b.slots);
    if (!b.slots)
        return report_error(task->action, "begin", -ENOMEM);
    progress_begin_files(&b.progress, task->action, task->list->count);
    run_batch(&b);
    progress_end(&b.progress);
    free(b.slots);
    return worst_verdict_status(task);
}
