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
    CHILD_BYTES = 1 << 30,  /* memory of the machine per child; most need a few MiB */
    FILES_AHEAD = 8,        /* files per child that may be held until they are printed */
    STATUS_NO_OUTPUT = 100, /* exit status of a child that could not hold its output */
};

/* A file that is started, but not yet printed. */
struct slot {
    pid_t pid;    /* 0: the child has ended */
    int out, err; /* memfds that hold the child's output */
    unsigned threads;
    int wait_status; /* as waitpid() returns it */
};

struct batch {
    const struct parallel *task;
    struct slot *slots; /* a ring */
    size_t slot_count;
    unsigned children_max, children, processors, threads; /* threads of all children */
    size_t to_print;                                      /* the file to print next */
    size_t to_start;                                      /* the file to start next */
    bool has_printed;                                     /* earlier files printed on stdout */
    bool current_printed;                                 /* file `turn` printed on stdout */
    int worst;
    struct progress progress;
};

static struct slot *find_slot(const struct batch *batch, size_t file)
{
    return &batch->slots[file % batch->slot_count];
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
static _Noreturn void run_child(const struct batch *batch, const struct slot *slot)
{
    for (size_t i = batch->to_print; i < batch->to_start; i++)
        close_slot(find_slot(batch, i));
    __fpurge(stdout); /* the buffer belongs to the parent */
    clearerr(stdout);
    setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
    if (dup2(slot->out, STDOUT_FILENO) < 0 || dup2(slot->err, STDERR_FILENO) < 0)
        _exit(STATUS_NO_OUTPUT);
    int status = batch->task->work(batch->task->context,
                                   &batch->task->list->items[batch->to_start], slot->threads);
    if (fflush(stdout) != 0 || ferror(stdout) || ferror(stderr))
        status = STATUS_NO_OUTPUT;
    _exit(status);
}

/* ---- the parent ---- */

/* Returns the next file's share of the processors that no other file uses. */
static unsigned count_threads(const struct batch *batch)
{
    size_t left = batch->task->list->count - batch->to_start;
    unsigned idle = batch->children_max - batch->children;
    unsigned sharing = left < idle ? (unsigned)left : idle;
    unsigned spare =
        batch->threads < batch->processors ? batch->processors - batch->threads : 0;
    return spare > sharing ? (spare + sharing - 1) / sharing : 1;
}

/* Starts the next file. Returns false if no process can be started. */
static bool start_file(struct batch *batch)
{
    struct slot slot = {
        .out = memfd_create("lime", MFD_CLOEXEC),
        .err = memfd_create("lime", MFD_CLOEXEC),
        .threads = count_threads(batch),
    };
    pid_t parent = getpid();
    slot.pid = slot.out < 0 || slot.err < 0 ? -1 : fork();
    if (slot.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the child may ignore SIGTERM */
        if (getppid() != parent)
            _exit(STATUS_NO_OUTPUT);
        run_child(batch, &slot);
    }
    if (slot.pid < 0) {
        close_slot(&slot);
        return false;
    }
    *find_slot(batch, batch->to_start++) = slot;
    batch->children++;
    batch->threads += slot.threads;
    return true;
}

static void start_files(struct batch *batch)
{
    bool started = true;
    while (started && batch->to_start < batch->task->list->count &&
           batch->children < batch->children_max &&
           batch->to_start - batch->to_print < batch->slot_count)
        started = start_file(batch);
}

/* Waits until a child has ended, which may be one that parallel_run() has not started. */
static void wait_child(struct batch *batch)
{
    int wait_status;
    pid_t pid = waitpid(-1, &wait_status, 0);
    for (size_t i = batch->to_print; pid > 0 && i < batch->to_start; i++) {
        struct slot *slot = find_slot(batch, i);
        if (slot->pid != pid)
            continue;
        slot->pid = 0;
        slot->wait_status = wait_status;
        batch->children--;
        batch->threads -= slot->threads;
        progress_add(&batch->progress, 1);
    }
}

/* ---- output ---- */

static void begin_output(struct batch *batch)
{
    if (!batch->current_printed && batch->has_printed && batch->task->separator)
        fputs(batch->task->separator, stdout);
    batch->current_printed = true;
}

static void print_child_text(struct batch *batch, const char *text, size_t n)
{
    begin_output(batch);
    fwrite(text, 1, n, stdout);
}

static void print_child_output(struct batch *batch, const struct slot *slot, bool has_crashed)
{
    char text[BUFSIZ];
    off_t at = 0;
    flush_stdout();
    for (ssize_t n; (n = pread(slot->err, text, sizeof text, at)) > 0; at += n)
        fwrite(text, 1, (size_t)n, stderr);
    at = 0;
    for (ssize_t n; !has_crashed && (n = pread(slot->out, text, sizeof text, at)) > 0; at += n)
        print_child_text(batch, text, (size_t)n);
}

static void report_crash(struct batch *batch, int wait_status)
{
    const struct parallel *task = batch->task;
    const struct pathlist_item *item = &task->list->items[batch->to_print];
    char why[64] = "not enough memory for its output";
    if (WIFSIGNALED(wait_status))
        snprintf(why, sizeof why, "killed by signal %d", WTERMSIG(wait_status));
    message(item->path, "%s: %s", task->action, why);
    if (!task->print_crash)
        return;
    begin_output(batch);
    task->print_crash(task->context, item, why);
}

static void finish_file(struct batch *batch, int status)
{
    batch->worst = worse_status(batch->worst, status);
    batch->has_printed = batch->has_printed || batch->current_printed;
    batch->current_printed = false;
    batch->to_print++;
}

/* Prints file `turn`, whose child has ended. */
static void print_finished_file(struct batch *batch)
{
    struct slot *slot = find_slot(batch, batch->to_print);
    bool has_crashed =
        !WIFEXITED(slot->wait_status) || WEXITSTATUS(slot->wait_status) > TOOL_UNVERIFIED;
    progress_hide();
    print_child_output(batch, slot, has_crashed);
    close_slot(slot);
    if (has_crashed)
        report_crash(batch, slot->wait_status);
    finish_file(batch, has_crashed ? TOOL_UNUSABLE : WEXITSTATUS(slot->wait_status));
}

/* Examines file `turn` in this process. */
static void process_in_parent(struct batch *batch)
{
    const struct parallel *task = batch->task;
    const struct pathlist_item *item = &task->list->items[batch->to_start];
    char *text = NULL;
    size_t n = 0;
    int status = TOOL_BAD;
    FILE *out = stdout, *buffer = open_memstream(&text, &n);
    flush_stdout(); /* messages go to stderr directly */
    if (buffer) {
        stdout = buffer;
        status = task->work(task->context, item, batch->processors);
        stdout = out;
    }
    if (!buffer || fclose(buffer) != 0)
        message_code(item->path, task->action, -ENOMEM);
    else if (n)
        print_child_text(batch, text, n);
    free(text);
    batch->to_start++;
    finish_file(batch, status);
}

/* ---- the run ---- */

static unsigned count_children(const struct parallel *task, unsigned processors)
{
    unsigned n =
        task->waits_for_storage && processors < CHILDREN_MIN ? CHILDREN_MIN : processors;
    n = n < CHILDREN_MAX ? n : CHILDREN_MAX;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t room = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / CHILD_BYTES : n;
    n = room < n ? (unsigned)room + 1 : n;
    return task->list->count < n ? (unsigned)task->list->count : n;
}

static void run_batch(struct batch *batch)
{
    signal(SIGCHLD, SIG_DFL); /* waitpid() reports no child while it is ignored */
    while (batch->to_print < batch->task->list->count) {
        start_files(batch);
        if (batch->to_print < batch->to_start && !find_slot(batch, batch->to_print)->pid)
            print_finished_file(batch);
        else if (batch->children)
            wait_child(batch);
        else
            process_in_parent(batch);
    }
}

int parallel_run(const struct parallel *task)
{
    struct batch batch = {.task = task, .worst = TOOL_GOOD};
    batch.processors = task->processors ? task->processors : limefile_processors();
    if (task->list->count == 1)
        return task->work(task->context, task->list->items, batch.processors);
    batch.children_max = count_children(task, batch.processors);
    batch.slot_count = (size_t)FILES_AHEAD * batch.children_max;
    batch.slots = calloc(batch.slot_count, sizeof *batch.slots);
    if (!batch.slots) {
        message_code(task->action, "begin", -ENOMEM);
        return TOOL_BAD;
    }
    progress_begin_files(&batch.progress, task->action, task->list->count);
    run_batch(&batch);
    progress_end(&batch.progress);
    free(batch.slots);
    return batch.worst;
}
