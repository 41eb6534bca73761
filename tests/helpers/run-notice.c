/*
 * run-notice.c - run-notice WHAT RECORD SAME: reads a record under limefs-run until the library
 * looks no more at the container, and then has descriptors change in ways that it cannot see
 * (tests/fuse/test_run_notice.py)
 *
 * `serve` reads offsets from its input, and answers each with the eight bytes that are there,
 * and how often the library looked.
 */
#define _GNU_SOURCE
#include "run-same.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#if !__GLIBC_PREREQ(2, 34)
#define _Fork fork
#endif

enum {
    PIECE = 4096,
    ENOUGH = 200,     /* reads after which it has the kernel tell it */
    LARGE = 16 << 20, /* a record whose descriptors' ends the mount tells */
};

/* Words, none of which ends in a zero: see zeros(). */
static void reads(int fd, int count)
{
    char buf[PIECE];
    for (int i = 0; i < count; i++) {
        size_t at = dice((size - PIECE) / 8) * 8;
        MUST(pread(fd, buf, PIECE, (off_t)at) == PIECE && memcmp(buf, bytes + at, PIECE) == 0);
    }
}

static int told(void)
{
    int fd = opened();
    reads(fd, ENOUGH);
    return fd;
}

/* /dev/zero is read by its number. */
static void is_zero(int fd)
{
    char buf[100];
    memset(buf, 1, sizeof buf);
    MUST(pread(fd, buf, sizeof buf, 5) == sizeof buf && buf[0] == 0 && buf[99] == 0);
    memset(buf, 1, sizeof buf);
    MUST(read(fd, buf, sizeof buf) == sizeof buf && buf[0] == 0 && buf[99] == 0);
}

/* ---- system calls are counted ---- */

static atomic_int looks;

static void on_look(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    atomic_fetch_add(&looks, 1);
}

/* From now on these are not made (they give what is in the register, which is no success that
 * anybody relies on), but counted. */
static void filter(const int *calls, size_t count, uint32_t action)
{
    struct sock_filter code[16] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    size_t n = 1;
    for (size_t i = 0; i < count; i++) {
        code[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, code};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void count_calls(const int *calls, size_t count)
{
    struct sigaction action = {.sa_sigaction = on_look, .sa_flags = SA_SIGINFO};
    MUST(sigaction(SIGSYS, &action, NULL) == 0);
    filter(calls, count, SECCOMP_RET_TRAP);
}

static void count_looks(void)
{
    static const int calls[] = {SYS_fstat,
#ifdef SYS_newfstatat
                                SYS_newfstatat
#endif
    };
    count_calls(calls, sizeof calls / sizeof *calls);
}

/* Of a large record: nor at the descriptor. */
static void bare(void)
{
    static const int calls[] = {SYS_fstat, SYS_statx, SYS_fcntl};
    int fd = told();
    count_calls(calls, sizeof calls / sizeof *calls);
    reads(fd, 1000);
    MUST(atomic_load(&looks) == 0);
}

static void counts(void)
{
    enum { AT_ONCE = 8 }; /* records */
    int before[AT_ONCE], fd;
    for (int i = 0; i < AT_ONCE; i++)
        before[i] = told();
    fd = opened();
    for (int i = 0; i < AT_ONCE; i++)
        MUST(close(before[i]) == 0);
    reads(fd, ENOUGH);
    count_looks();
    reads(fd, 1000);
    MUST(atomic_load(&looks) == 0);
    MUST(lseek(fd, 0, SEEK_SET) == 0);
    char buf[PIECE];
    for (size_t at = 0; at + PIECE < size; at += PIECE)
        MUST(read(fd, buf, PIECE) == PIECE && memcmp(buf, bytes + at, PIECE) == 0);
    MUST(atomic_load(&looks) == 0);
}

/* The sanitizers look for leaks at the end by a clone(), which is filtered here. */
const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "detect_leaks=0";
}

static unsigned long bytes_read(void)
{
    char text[200] = {0}; /* "rchar: N" */
    int fd = open("/proc/self/io", O_RDONLY);
    MUST(fd >= 0 && read(fd, text, sizeof text - 1) > 7 && close(fd) == 0);
    return strtoul(text + 7, NULL, 10);
}

/* By its mark an open file is known, of a record that is not large: no two have the same. */
static void marks(void)
{
    int first = told();
    long mark = syscall(SYS_fcntl, first, F_GETSIG);
    MUST((mark != 0) == (size < LARGE));
    for (int i = 0; i < 40; i++) {
        int fd = told();
        long other = syscall(SYS_fcntl, fd, F_GETSIG);
        MUST(other == 0 || other != mark);
        MUST(close(fd) == 0);
    }
}

static long variant; /* the number after WHAT */

/* A process that has had a child is not told any more: the next turn is another one's. */
static void next(const char *what, long then)
{
    char text[64];
    MUST(snprintf(text, sizeof text, "%s%ld", what, then) < (int)sizeof text);
    execl("/proc/self/exe", "run-notice", text, record, same, NULL);
    MUST(false);
}

/* Another file has such a mark: of the program's own, or of one that it was executed by. */
static void marks_of_others(void)
{
    char buf[PIECE];
    int other = open(same, O_RDONLY), mark = 0;
    if (variant == 0) {
        int fd = told();
        mark = fcntl(fd, F_GETSIG); /* from now on there are no marks */
        MUST(mark == 0 && close(fd) == 0);
        next("marks_of_others", 1);
    }
    if (variant == 1) {
        int fd = told();
        MUST((syscall(SYS_fcntl, fd, F_GETSIG) != 0) == (size < LARGE));
        MUST(dup2(fd, 50) == 50 && close(fd) == 0);
        next("marks_of_others", 2);
    }
    if (variant == 2) { /* 50 has one */
        other = 50;
    } else {
        int first = told();
        mark = (int)syscall(SYS_fcntl, first, F_GETSIG);
        MUST(fcntl(other, F_SETSIG, mark ? mark : SIGUSR1) == 0);
    }
    MUST(lseek(other, 8, SEEK_SET) == 8);
    int fd = open(same, O_RDONLY); /* where the record will be */
    MUST(fd >= 0 && close(fd) == 0 && opened() == fd);
    reads(fd, ENOUGH);
    MUST(syscall(SYS_dup3, other, fd, 0) == fd && syscall(SYS_lseek, fd, 0, SEEK_CUR) == 8);
    MUST(read(fd, buf, PIECE) == PIECE && memcmp(buf, bytes + 8, PIECE) == 0);
    if (variant == 2)
        next("marks_of_others", 3);
}

static volatile sig_atomic_t breaks;

static void on_break(int number)
{
    (void)number;
    breaks++;
}

/* Who breaks a lease of the program's has the kernel send SIGIO, and not a mark. */
static void leases(void)
{
    struct sigaction action = {.sa_handler = on_break};
    struct timespec while_ = {0, 10000000};
    int fd = told();
    MUST(sigaction(SIGIO, &action, NULL) == 0);
    MUST(fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0);
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0)
        _exit(open(record, O_RDONLY | O_NONBLOCK) >= 0);
    for (int i = 0; i < 6000 && !breaks; i++)
        nanosleep(&while_, NULL);
    MUST(breaks == 1 && fcntl(fd, F_SETLEASE, F_UNLCK) == 0);
    ends_well(pid);
}

/* Whatever is looked at afterwards, the bytes are read once. */
static void once(void)
{
    enum { TURNS = 20, OTHERS = 1000 };
    char *buf = malloc(size);
    int fd = told();
    unsigned long before = bytes_read();
    for (int i = 0; i < TURNS; i++)
        MUST(buf && pread(fd, buf, size, 0) == (ssize_t)size && memcmp(buf, bytes, size) == 0);
    for (int i = 0; i < TURNS; i++)
        MUST(pread(fd, buf, size / 2 + 7, 0) == (ssize_t)(size / 2 + 7));
    MUST(bytes_read() - before < TURNS * (size + size / 2 + 7) + OTHERS);
    free(buf);
}

/* A descriptor of the library's; and its path. */
static bool is_container(int fd, char file[PATH_MAX])
{
    static const char end[] = ".lime";
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, file, PATH_MAX - 1);
    file[n > 0 ? n : 0] = '\0';
    return n > (ssize_t)sizeof end && strcmp(file + n - sizeof end + 1, end) == 0;
}

/* ---- a handler of a signal between any two instructions of a read ---- */

#if defined(__x86_64__)
#define TRAP 0x100 /* the flag: SIGTRAP after each instruction */
#define SET_TRAP(how)                                       \
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; " how \
                     "; popfq; lea 128(%%rsp), %%rsp" ::    \
                         : "cc", "memory")

/* After 30 records that are not large the library looks itself, at all of them. */
static long stride(void)
{
    return size < LARGE ? 7 : 1;
}

static int stepped_fd;
static long instructions, wanted; /* those made, and after which the handler does something */
static bool again;                /* it reads the record until it is told, too */
static bool by_position;          /* what is stepped through is read(2) */
static off_t stepped_to;          /* the position that it gives the other file */

/* Then nothing more is stepped through. */
static bool is_wanted(void *context)
{
    if (++instructions != wanted)
        return false;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP;
    return true;
}

static ssize_t read_stepped(int fd, char *buf, off_t at)
{
    instructions = 0;
    SET_TRAP("orq $0x100, (%%rsp)");
    ssize_t got = by_position ? read(fd, buf, PIECE) : pread(fd, buf, PIECE, at);
    SET_TRAP("andq $~0x100, (%%rsp)");
    return got;
}

static void at_instruction(int signal, siginfo_t *info, void *context)
{
    int kept = errno;
    (void)signal, (void)info;
    if (!is_wanted(context))
        return;
    MUST(close(stepped_fd) == 0 && (again ? told() : opened()) == stepped_fd);
    MUST(lseek(stepped_fd, stepped_to, SEEK_SET) == stepped_to);
    errno = kept;
}

/* Of the file that was open before, whose position has gone with it, or of the other one. */
static void is_of_one(const char *buf, size_t at)
{
    off_t position = lseek(stepped_fd, 0, SEEK_CUR);
    bool done = position == (off_t)(at + PIECE), other = position == stepped_to + PIECE;
    MUST(done || other || position == stepped_to);
    MUST(memcmp(buf, bytes + (other ? (size_t)stepped_to : at), PIECE) == 0);
}

static void step_through(void)
{
    char buf[PIECE];
    instructions = 0;
    for (wanted = 1; instructions + stride() >= wanted; wanted += stride()) {
        size_t at = (size_t)(wanted % 100 + 2) * PIECE;
        reads(stepped_fd, ENOUGH);
        MUST(lseek(stepped_fd, (off_t)at - PIECE, SEEK_SET) > 0);
        MUST(read(stepped_fd, buf, PIECE) == PIECE);
        MUST(read_stepped(stepped_fd, buf, (off_t)at) == PIECE);
        if (by_position)
            is_of_one(buf, at);
        else
            MUST(memcmp(buf, bytes + at, PIECE) == 0);
    }
    MUST(wanted > 100);
}

static char container[PATH_MAX];
static char others[PIECE];

/* As another process that shares the position, while a third one opens the container. */
static void read_at_instruction(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    if (!is_wanted(context))
        return;
    MUST(syscall(SYS_read, stepped_fd, others, PIECE) == PIECE);
    MUST(close((int)syscall(SYS_openat, AT_FDCWD, container, O_RDONLY)) == 0);
}

/* Each gets its own bytes. */
static void shared_at(void)
{
    struct sigaction action = {.sa_sigaction = read_at_instruction, .sa_flags = SA_SIGINFO};
    char buf[PIECE];
    MUST(sigaction(SIGTRAP, &action, NULL) == 0);
    by_position = true;
    stepped_fd = told();
    for (int fd = 3; !is_container(fd, container); fd++)
        MUST(fd < 2000);
    for (wanted = 1, instructions = 0; instructions + stride() >= wanted; wanted += stride()) {
        MUST(close(stepped_fd) == 0 && (stepped_fd = told()) >= 0);
        MUST(read(stepped_fd, buf, PIECE) == PIECE);
        ssize_t got = read_stepped(stepped_fd, buf, 0);
        if (instructions < wanted)
            break;
        bool first = memcmp(buf, bytes + PIECE, PIECE) == 0;
        MUST(got == PIECE && lseek(stepped_fd, 0, SEEK_CUR) == 3 * PIECE);
        MUST(memcmp(buf, bytes + (first ? 1 : 2) * PIECE, PIECE) == 0);
        MUST(memcmp(others, bytes + (first ? 2 : 1) * PIECE, PIECE) == 0);
    }
    MUST(wanted > 100);
}

static pid_t forked = -1;

static void fork_at(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    if (!is_wanted(context))
        return;
    forked = fork();
    MUST(forked >= 0);
}

/* The read goes on in the child, too: from the same position, or where the other has moved it.
 */
static void forks_at(void)
{
    struct sigaction action = {.sa_sigaction = fork_at, .sa_flags = SA_SIGINFO};
    char buf[PIECE];
    MUST(sigaction(SIGTRAP, &action, NULL) == 0);
    int fd = told();
    MUST(fcntl(fd, F_SETFD, FD_CLOEXEC) == 0);
    wanted = variant + 1;
    MUST(lseek(fd, PIECE, SEEK_SET) == PIECE);
    ssize_t got = read_stepped(fd, buf, PIECE);
    bool second = by_position && forked >= 0 && memcmp(buf, bytes + 2 * PIECE, PIECE) == 0;
    MUST(got == PIECE && (second || memcmp(buf, bytes + PIECE, PIECE) == 0));
    reads(fd, ENOUGH);
    if (forked == 0)
        _exit(0);
    if (forked > 0) {
        ends_well(forked);
        next(by_position ? "forks_on" : "forks_at", variant + stride());
    }
    MUST(variant > 100);
}

static void forks_on(void)
{
    by_position = true;
    forks_at();
}

/* It closes the record and opens it once more: what the read was looking at is gone, or another
 * record's. */
static void stepped(void)
{
    struct sigaction action = {.sa_sigaction = at_instruction, .sa_flags = SA_SIGINFO};
    MUST(sigaction(SIGTRAP, &action, NULL) == 0);
    stepped_fd = opened();
    for (int way = 0; way < 5; way++) {
        again = way & 1;
        by_position = way & 6;
        stepped_to = way & 4 ? 50 * PIECE : 0;
        step_through();
    }
}
#else
static void stepped(void)
{
    reads(told(), 1);
}

#define forks_at  stepped
#define forks_on  stepped
#define shared_at stepped
#endif

/* A program that has put itself into a filter is not ended for what the library would like. */
static void filtered(void)
{
    static const int calls[] = {SYS_io_uring_setup, SYS_fanotify_init, SYS_fanotify_mark,
                                SYS_clone};
    int fd = opened();
    filter(calls, sizeof calls / sizeof *calls, SECCOMP_RET_KILL_PROCESS);
    reads(fd, 1000);
}

/* Nor is one that was started under one. */
static void filtered_twice(void)
{
    filter(NULL, 0, 0);
    MUST(execl("/proc/self/exe", "run-notice", "filtered", record, same, NULL) == 0);
}

/* A truncate() that is not told yet leaves zeros up to the end of a page, or of the read. */
static void zeros(void)
{
    char buf[100];
    int fd = told();
    count_looks();
    reads(fd, 10);
    MUST(pread(fd, buf, 99, 0) == 99 && buf[98] == 0 && atomic_load(&looks) > 0);
}

/* ---- the program's signals, waits, children and limits ---- */

/* While others open the container, and after what was watched is not any more. */
static void waits(void)
{
    struct timespec while_ = {0, 100000000};
    struct epoll_event event;
    struct sembuf down = {0, -1, 0};
    int poll = epoll_create1(0), set = semget(IPC_PRIVATE, 1, 0600);
    MUST(poll >= 0 && set >= 0);
    for (int turn = 0; turn < 5; turn++) {
        int fd = told();
        int ready = epoll_wait(poll, &event, 1, 100);
        int error = semtimedop(set, &down, 1, &while_) == 0 ? 0 : errno;
        close(fd);
        int later = epoll_wait(poll, &event, 1, 100);
        if (ready != 0 || error != EAGAIN || later != 0) {
            semctl(set, 0, IPC_RMID);
            MUST(ready == 0 && error == EAGAIN && later == 0);
        }
    }
    MUST(semctl(set, 0, IPC_RMID) == 0);
}

static void on_urgent(int number)
{
    (void)number;
}

/* Whoever opens the container in the wrong moment sends it. */
static void urgent(void)
{
    struct sigaction action = {.sa_handler = on_urgent};
    MUST(sigaction(SIGURG, &action, NULL) == 0);
    int fd = told();
    count_looks();
    reads(fd, 1);
    MUST(atomic_load(&looks) > 0);
}

static int rings(void)
{
    char line[PATH_MAX];
    int n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    MUST(maps);
    while (fgets(line, sizeof line, maps))
        n += strstr(line, "io_uring") != NULL;
    MUST(fclose(maps) == 0);
    return n;
}

/* What a child keeps would be watched for as long as it lives. */
static void children(void)
{
    int fd = told(), before = rings();
    MUST(before > 0);
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        MUST(rings() == 0);
        _exit(0);
    }
    ends_well(pid);
    MUST(rings() == before && close(fd) == 0);
}

/* Other programs of the user need them, and have no other. */
static int instances(void)
{
    enum { MOST = 300 };
    int fd[MOST], n = 0;
    while (n < MOST && (fd[n] = inotify_init1(0)) >= 0)
        n++;
    for (int i = 0; i < n; i++)
        MUST(close(fd[i]) == 0);
    return n;
}

static void inotifies(void)
{
    int before = instances();
    for (int i = 0; i < 8; i++)
        told();
    MUST(instances() > before - 4);
}

/* ---- the descriptor becomes another file's ---- */

static int another(void)
{
    char other[PATH_MAX], buf[PIECE];
    MUST(snprintf(other, sizeof other, "%.*stwo", (int)(strrchr(record, '/') - record + 1),
                  record) < (int)sizeof other);
    int fd = open(other, O_RDONLY);
    MUST(fd >= 0);
    for (int i = 0; i < ENOUGH; i++)
        MUST(pread(fd, buf, PIECE, i * PIECE) == PIECE);
    return fd;
}

static void unseen(void)
{
    int fd = told();
    MUST(syscall(SYS_close, fd) == 0);
    MUST(syscall(SYS_openat, AT_FDCWD, "/dev/zero", O_RDONLY) == fd);
    is_zero(fd);
    MUST(close(fd) == 0);

    fd = told();
    int zero = open("/dev/zero", O_RDONLY);
    MUST(syscall(SYS_dup3, zero, fd, 0) == fd);
    is_zero(fd);
    MUST(close(fd) == 0);

    fd = told();
    MUST(syscall(SYS_close_range, fd, fd, 0) == 0);
    MUST(syscall(SYS_dup3, zero, fd, 0) == fd);
    is_zero(fd);

    MUST(close(told()) == 0 && (fd = another()) >= 0); /* whose place there another had */
    MUST(syscall(SYS_dup3, zero, fd, 0) == fd);
    is_zero(fd);

    fd = told(); /* it was the record's, whose entry goes */
    reads(fd, 2 * ENOUGH);
    MUST(close(fd) == 0 && close(zero) == 0);
}

/* The library's own descriptors, too. */
static void taken(void)
{
    int fd = told(), zero = open("/dev/zero", O_RDONLY);
    for (int i = 400; i < 700; i++)
        MUST(syscall(SYS_dup3, zero, i, 0) == i);
    reads(fd, ENOUGH);
    for (int i = 400; i < 700; i++)
        MUST(syscall(SYS_close, i) == 0);
    reads(fd, ENOUGH);
}

static int pair[2]; /* of a pipe, at whose end children end */

static void wait_for_end(void)
{
    char c;
    syscall(SYS_close, pair[1]);
    syscall(SYS_read, pair[0], &c, 1);
}

/* No words of the other file end in zeros, for which the library would look. */
static void take(int fd)
{
    int containers = 0;
    char file[PATH_MAX];
    int other = (int)syscall(SYS_openat, AT_FDCWD, same, O_RDONLY | O_CLOEXEC);
    for (int i = 400; i < 700; i++) {
        containers += is_container(i, file);
        MUST(syscall(SYS_dup3, other, i, O_CLOEXEC) == i);
    }
    MUST(containers > 0);
    reads(fd, ENOUGH);
}

static int waits_for_end(void *unused)
{
    (void)unused;
    wait_for_end();
    return 0;
}

static pid_t waiting_child(pid_t (*forks)(void))
{
    pid_t pid = forks();
    MUST(pid >= 0);
    if (pid == 0) {
        wait_for_end();
        _exit(0);
    }
    return pid;
}

static pid_t cloned(void)
{
    static _Alignas(16) char stack[1 << 16];
    pid_t pid = clone(waits_for_end, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
    MUST(pid > 0);
    return pid;
}

static pid_t spawned(bool searches)
{
    extern char **environ;
    char *words[] = {"true", NULL};
    pid_t pid = -1;
    MUST((searches ? posix_spawnp(&pid, "true", NULL, NULL, words, environ)
                   : posix_spawn(&pid, "/bin/true", NULL, NULL, words, environ)) == 0);
    return pid;
}

/* What is done in a child of vfork(), which the parent waits for. */
static pid_t vforked(void (*meanwhile)(int fd), int fd)
{
    pid_t pid = vfork(); /* NOLINT: what such a child does is what this is about */
    if (pid == 0) {
        meanwhile(fd);
        _exit(0);
    }
    return pid;
}

enum { BESIDE = 6 }; /* the first ways; vfork() is the next, and the others leave nobody */

/* While there is a child: one that waits, or a program that has ours still as it is executed.
 */
static void beside_child(long way, void (*meanwhile)(int fd), int fd)
{
    pid_t pid = -1;
    FILE *pipe = NULL;
    wordexp_t found;
    switch (way) {
    case 0:
        pid = cloned();
        break;
    case 1:
        pid = waiting_child(fork);
        break;
    case 2:
        pid = waiting_child(_Fork);
        break;
    case 3:
        pid = spawned(true);
        break;
    case 4:
        pid = spawned(false);
        break;
    case 5:
        MUST((pipe = popen("exit 0", "r")) != NULL);
        break;
    case 6:
        pid = vforked(meanwhile, fd);
        break;
    case 7:
        MUST(wordexp("$(echo x)", &found, 0) == 0 && found.we_wordc == 1);
        break;
    case 8:
        MUST(system("exit 0") == 0);
        break;
    default:
        MUST(false);
    }
    if (way < BESIDE)
        meanwhile(fd);
    MUST(close(pair[1]) == 0);
    if (pid >= 0)
        ends_well(pid);
    if (pipe)
        MUST(pclose(pipe) == 0);
}

static void no_more(int fd)
{
    (void)fd;
}

/* A file that no program inherits, which would look where its container is. */
static int told_alone(void)
{
    int fd = told();
    MUST(fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && pipe2(pair, O_CLOEXEC) == 0);
    return fd;
}

/* Nobody would tell that what a child has is closed here: the library looks itself again. */
static void seen(void)
{
    int fd = told_alone();
    beside_child(variant, no_more, fd);
    count_looks();
    reads(fd, ENOUGH);
    MUST(atomic_load(&looks) > 0);
}

/* While a child has them, too. */
static void taken_beside(void)
{
    enum { TURNS = 70 };
    int fd = told_alone();
    beside_child(variant % (BESIDE + 1), take, fd);
    reads(fd, ENOUGH);
    if (variant + 1 < TURNS)
        next("taken_beside", variant + 1);
}

/* Of which the library knows, in this process and in a child. */
static void copies(void)
{
    int fd = told(), two = dup(fd), zero = open("/dev/zero", O_RDONLY);
    reads(fd, 2 * ENOUGH);
    MUST(syscall(SYS_dup3, zero, fd, 0) == fd);
    is_zero(fd);
    reads(two, 2 * ENOUGH);
    MUST(syscall(SYS_dup3, zero, two, 0) == two);
    is_zero(two);

    fd = told();
    int ends[2];
    MUST(pipe(ends) == 0);
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        char c;
        MUST(close(ends[1]) == 0);
        reads(fd, 2 * ENOUGH);
        MUST(read(ends[0], &c, 1) == 1);
        MUST(syscall(SYS_dup3, zero, fd, 0) == fd);
        is_zero(fd);
        _exit(0);
    }
    reads(fd, 2 * ENOUGH);
    MUST(syscall(SYS_dup3, zero, fd, 0) == fd);
    is_zero(fd);
    MUST(write(ends[1], "x", 1) == 1);
    ends_well(pid);
}

/* The file stays open elsewhere. */
static void kept(void)
{
    extern char **environ;
    char *sleeps[] = {"sleep", "1", NULL}, control[64] = {0};
    int zero = open("/dev/zero", O_RDONLY), ends[2], fd = told();
    MUST(mmap(NULL, PIECE, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
    MUST(syscall(SYS_dup3, zero, fd, 0) == fd);
    is_zero(fd);

    fd = told();
    MUST(syscall(SYS_dup, fd) >= 0);
    MUST(syscall(SYS_dup3, zero, fd, 0) == fd);
    is_zero(fd);

    fd = told();
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    struct iovec x = {"x", 1};
    struct msghdr message = {.msg_iov = &x,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = CMSG_SPACE(sizeof fd)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    MUST(sendmsg(ends[0], &message, 0) == 1);
    MUST(syscall(SYS_dup3, zero, fd, 0) == fd);
    is_zero(fd);

    int back = (int)syscall(SYS_dup, fd = told()); /* in the place of the next one */
    MUST(back >= 0 && close(fd) == 0 && another() == fd);
    MUST(syscall(SYS_dup3, back, fd, 0) == fd);
    reads(fd, 10);

    pid_t pid;
    fd = told();
    MUST(posix_spawnp(&pid, *sleeps, NULL, NULL, sleeps, environ) == 0);
    MUST(syscall(SYS_dup3, zero, fd, 0) == fd);
    is_zero(fd);
    ends_well(pid);
}

/* When nobody is left who could tell. */
static void killed(void)
{
    char c;
    int fd = told(), zero = open("/dev/zero", O_RDONLY);
    MUST(write(1, "x", 1) == 1 && read(0, &c, 1) == 0);
    MUST(syscall(SYS_dup3, zero, fd, 0) == fd);
    is_zero(fd);
}

/* In the moment from which on requests fail. */
static void ended(void)
{
    int other = opened(), zero = open("/dev/zero", O_RDONLY), fd = told();
    MUST(write(1, "x", 1) == 1);
    while (syscall(SYS_close, syscall(SYS_dup, other)) == 0)
        ;
    MUST(errno != EBADF && syscall(SYS_dup3, zero, fd, 0) == fd);
    is_zero(fd);
}

/* A child that shares our memory, but not our descriptors. */
static void vforks(void)
{
    static volatile int fd, zero;
    fd = told();
    zero = open("/dev/zero", O_RDONLY);
    pid_t pid = vfork(); /* NOLINT: what such a child does is what this is about */
    if (pid == 0) {
        close(fd);
        dup2(zero, fd);
        is_zero(fd);
        _exit(0);
    }
    ends_well(pid);
    reads(fd, 2 * ENOUGH);
}

static void *exchange(void *with)
{
    int *fd = with;
    MUST(syscall(SYS_close, *fd) == 0);
    MUST(syscall(SYS_openat, AT_FDCWD, "/dev/zero", O_RDONLY) == *fd);
    return NULL;
}

static void thread_closes(void)
{
    pthread_t thread;
    int fd = told();
    MUST(pthread_create(&thread, NULL, exchange, &fd) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    is_zero(fd);
}

static void *nothing(void *unused)
{
    return unused;
}

/* Another may be about to close it. */
static void threads(void)
{
    pthread_t thread;
    int fd = told();
    MUST(pthread_create(&thread, NULL, nothing, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    count_looks();
    reads(fd, 1);
    MUST(atomic_load(&looks) > 0);
}

/* A handler that reads the same record while the kernel tells that it was opened. */
static int shared;
static atomic_int alarms;

static void on_alarm(int number)
{
    int kept = errno;
    char buf[100];
    (void)number;
    int fd = open(record, O_RDONLY); /* its container, too: which is told */
    MUST(fd >= 0 && pread(fd, buf, sizeof buf, 800) == sizeof buf);
    MUST(memcmp(buf, bytes + 800, sizeof buf) == 0 && close(fd) == 0);
    MUST(pread(shared, buf, sizeof buf, 1600) == sizeof buf);
    MUST(memcmp(buf, bytes + 1600, sizeof buf) == 0);
    atomic_fetch_add(&alarms, 1);
    errno = kept;
}

static void signals(void)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    shared = told();
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int turn = 0; atomic_load(&alarms) < 1000; turn++) {
        reads(shared, ENOUGH);
        if (turn % 8 == 0) { /* a new one is soon told of */
            int fd = told();
            MUST(close(fd) == 0);
        }
    }
    MUST(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

/* More records than it can be told of at once. */
static void many(void)
{
    int fd[20];
    for (int i = 0; i < 20; i++)
        fd[i] = told();
    for (int turn = 0; turn < 100; turn++)
        for (int i = 0; i < 20; i++)
            reads(fd[i], 10);
    for (int i = 0; i < 20; i++)
        MUST(close(fd[i]) == 0);
    MUST(close(told()) == 0);
}

/* ---- for changes of the container ---- */

static void serve(void)
{
    static char in[4096], out[4096]; /* libc looks at files for which it makes them */
    char line[32];
    uint64_t word;
    MUST(setvbuf(stdin, in, _IOLBF, sizeof in) == 0 &&
         setvbuf(stdout, out, _IOLBF, sizeof out) == 0);
    int fd = told();
    count_looks();
    while (fgets(line, sizeof line, stdin)) {
        ssize_t got = pread(fd, &word, sizeof word, strtol(line, NULL, 10));
        if (got == sizeof word)
            printf("%llx", (unsigned long long)word);
        else
            printf("%s", got < 0 ? strerrorname_np(errno) : "end");
        printf(" %d\n", atomic_load(&looks));
        fflush(stdout);
    }
}

/* Until its input ends. Each word says where it is, and whose. A read of all of it takes long
 * enough for a change to come while it lasts. */
static void hammer(uint64_t whose)
{
    unsigned long good = 0, bad = 0;
    uint64_t *words = (uint64_t *)bytes;
    char c;
    MUST(fcntl(0, F_SETFL, O_NONBLOCK) == 0);
    while (read(0, &c, 1) != 0) {
        int fd = open(record, O_RDONLY);
        bool goes_on = fd >= 0;
        for (int i = 0; i < 1000 && goes_on; i++) {
            size_t n = i % 100 < 90 ? PIECE : size, at = dice(size / n) * n;
            goes_on = pread(fd, words, n, (off_t)at) == (ssize_t)n;
            for (size_t k = 0; goes_on && k < n / sizeof *words; k++)
                MUST(words[k] == (whose << 48 | (at + k * sizeof *words)));
            good += goes_on;
        }
        bad += !goes_on;
        if (fd >= 0)
            MUST(close(fd) == 0);
    }
    printf("%lu %lu\n", good, bad);
}

int main(int argc, char **argv)
{
    static const struct step all[] = {{"counts", counts},
                                      {"filtered", filtered},
                                      {"filtered_twice", filtered_twice},
                                      {"zeros", zeros},
                                      {"waits", waits},
                                      {"urgent", urgent},
                                      {"children", children},
                                      {"inotifies", inotifies},
                                      {"kept", kept},
                                      {"unseen", unseen},
                                      {"taken", taken},
                                      {"copies", copies},
                                      {"vforks", vforks},
                                      {"thread_closes", thread_closes},
                                      {"threads", threads},
                                      {"signals", signals},
                                      {"many", many},
                                      {"serve", serve},
                                      {"bare", bare},
                                      {"killed", killed},
                                      {"once", once},
                                      {"stepped", stepped},
                                      {"marks", marks},
                                      {"ended", ended},
                                      {"forks_at", forks_at},
                                      {"taken_beside", taken_beside},
                                      {"seen", seen},
                                      {"forks_on", forks_on},
                                      {"shared_at", shared_at},
                                      {"marks_of_others", marks_of_others},
                                      {"leases", leases}};
    MUST(argc == 4);
    record = argv[2];
    same = argv[3];
    take_same(open(same, O_RDONLY));
    size_t word = strcspn(argv[1], "0123456789");
    variant = strtol(argv[1] + word, NULL, 10);
    argv[1][word] = '\0';
    if (strcmp(argv[1], "hammer") == 0) {
        hammer((uint64_t)variant);
        return 0;
    }
    return run_step(argv[1], all, sizeof all / sizeof all[0]);
}
