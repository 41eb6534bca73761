/*
 * run-calls.c - run-calls WHAT RECORD SAME: read a record under limefs-run in every way and
 * compare it with a plain file of the same bytes (tests/fuse/test_run.py)
 *
 * Prints the first difference and exits with 1. Each call that returns bytes or a position is
 * also made on the plain file.
 */
#define _GNU_SOURCE
#include "run-same.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BUFFER = 1 << 20,
    STEPS = 20000,
    THREADS = 8,
    PIECE = 4096,
};

static void must_be_at(int fd, off_t at)
{
    MUST(lseek(fd, 0, SEEK_CUR) == at);
}

/* Reads the next n bytes, which must begin at `at`, with read() and compares them. */
static void must_read(int fd, size_t at, size_t n)
{
    char *buf = malloc(n);
    must_be_at(fd, (off_t)at);
    MUST(buf && read(fd, buf, n) == (ssize_t)n);
    MUST(memcmp(buf, bytes + at, n) == 0);
    must_be_at(fd, (off_t)(at + n));
    free(buf);
}

/* ---- each call that reads, at random offsets, also beyond the end ---- */

static ssize_t call_one_way(int fd, unsigned way, char *buf, size_t n, off_t at)
{
    struct iovec iov[20];
    size_t part = n / 20;
    for (size_t i = 0; i < 20; i++)
        iov[i] = (struct iovec){buf + i * part, i == 19 ? n - 19 * part : part};
    switch (way) {
    case 0:
        return read(fd, buf, n);
    case 1:
        return pread(fd, buf, n, at);
    case 2:
        return readv(fd, iov, 20);
    case 3:
        return preadv(fd, iov, 20, at);
    case 4:
        return preadv2(fd, iov, 20, at, 0);
    case 5:
        return preadv2(fd, iov, 20, -1, 0);
    case 6:
        return lseek(fd, at, SEEK_SET);
    case 7:
        return lseek(fd, -at, SEEK_END);
    default:
        return lseek(fd, at - (off_t)size / 2, SEEK_CUR);
    }
}

static void calls(void)
{
    int ours = open_record(), plain = open(same, O_RDONLY);
    char *a = malloc(BUFFER), *b = malloc(BUFFER);
    MUST(plain >= 0 && a && b);
    for (int i = 0; i < STEPS; i++) {
        unsigned way = (unsigned)dice(9);
        size_t n = dice(8) ? dice(5000) : dice(BUFFER);
        off_t at = (off_t)dice(size + 5000);
        ssize_t x = call_one_way(ours, way, a, n, at), y = call_one_way(plain, way, b, n, at);
        MUST(x == y);
        MUST(way > 5 || x <= 0 || memcmp(a, b, (size_t)x) == 0);
        MUST(lseek(ours, 0, SEEK_CUR) == lseek(plain, 0, SEEK_CUR));
    }
    struct stat x, y;
    MUST(fstat(ours, &x) == 0 && fstat(plain, &y) == 0 && x.st_size == y.st_size);
    MUST(stat(record, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev);
    free(a);
    free(b);
}

/* ---- descriptors ---- */

static void dups(void)
{
    int fd = open_record(), two = dup(fd), zero = open("/dev/zero", O_RDONLY);
    must_read(fd, 0, 1000);
    must_read(two, 1000, 70000);
    int three = fcntl(fd, F_DUPFD, 100), four = fcntl(fd, F_DUPFD_CLOEXEC, 200);
    MUST(three >= 100 && four >= 200 && fcntl(four, F_GETFD) == FD_CLOEXEC);
    MUST(close(fd) == 0);
    must_read(three, 71000, 10);
    MUST(dup2(four, 50) == 50 && dup3(four, 51, O_CLOEXEC) == 51 && dup2(four, four) == four);
    MUST(close(two) == 0 && close(three) == 0);
    must_read(50, 71010, 10);
    must_read(51, 71020, 10);
    MUST(dup2(zero, 50) == 50); /* the number now refers to another file */
    char buf[100] = "x";
    MUST(read(50, buf, sizeof buf) == sizeof buf && buf[0] == 0 && buf[99] == 0);
    must_read(four, 71030, 10);
    MUST(close(51) == 0 && close(four) == 0 && close(four) == -1 && errno == EBADF);
    MUST(read(four, buf, 1) == -1 && errno == EBADF);
}

/* The program takes all numbers at which the library can have a descriptor (if the limit is not
 * below some thousand). The library does not close them with the record. */
static void taken(void)
{
    int fd = open_record(), zero = open("/dev/zero", O_RDONLY);
    must_read(fd, 0, 1000);
    MUST(zero >= 0);
    for (int i = 400; i < 700; i++)
        MUST(syscall(SYS_dup3, zero, i, 0) == i);
    MUST(close(fd) == 0);
    for (int i = 400; i < 700; i++)
        MUST(syscall(SYS_fcntl, i, F_GETFD) == 0 && syscall(SYS_close, i) == 0);
    MUST(close(zero) == 0);
}

/* The descriptor is closed and reopened by system calls that the library can't see. */
static void unseen(void)
{
    char buf[100];
    int fd = open_record();
    must_read(fd, 0, 1000);
    MUST(syscall(SYS_close, fd) == 0);
    MUST(syscall(SYS_openat, AT_FDCWD, "/dev/zero", O_RDONLY) == fd);
    memset(buf, 1, sizeof buf);
    MUST(read(fd, buf, sizeof buf) == sizeof buf && buf[0] == 0 && buf[99] == 0);
    memset(buf, 1, sizeof buf);
    MUST(pread(fd, buf, sizeof buf, 5) == sizeof buf && buf[0] == 0 && buf[99] == 0);
    MUST(close(fd) == 0);
    fd = open_record();
    FILE *stream = fdopen(fd, "r");
    MUST(stream && fclose(stream) == 0);
    int ends[2];
    MUST(pipe(ends) == 0 && ends[0] == fd && write(ends[1], "pipe", 4) == 4);
    MUST(read(fd, buf, sizeof buf) == 4 && memcmp(buf, "pipe", 4) == 0);
}

/* Programs close all descriptors that they did not open. */
static void close_all(void)
{
    int fd = open_record();
    for (int i = 3; i < 2000; i++)
        if (i != fd)
            close(i);
    must_read(fd, 0, 100000);
    MUST(close_range((unsigned)fd + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0);
    must_read(fd, 100000, 1000);
    MUST(close_range((unsigned)fd + 1, ~0U, 0) == 0);
    must_read(fd, 101000, 1000);
    MUST(close_range((unsigned)fd, ~0U, 0) == 0);
    char c;
    MUST(read(fd, &c, 1) == -1 && errno == EBADF);
    fd = open_record();
    must_read(fd, 0, 100000);
    closefrom(fd + 1);
    must_read(fd, 100000, 1000);
    closefrom(fd);
    MUST(read(fd, &c, 1) == -1 && errno == EBADF);
    fd = open_record();
    for (int i = 500; i < 600; i++)
        MUST(dup2(0, i) == i); /* replaces any descriptor of the library */
    must_read(fd, 0, 100000);
    for (int i = 500; i < 600; i++)
        MUST(close(i) == 0);
    MUST(syscall(SYS_close_range, (unsigned)fd + 1, ~0U, 0) == 0);
    int other = open(same, O_RDONLY);
    for (int i = 0; i < 1000; i++)
        MUST(dup(other) >= 0);
    must_read(fd, 100000, 1000);
}

/* ---- processes ---- */

static void forks(void)
{
    int fd = open_record();
    must_read(fd, 0, 5000);
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        must_read(fd, 5000, 70000);
        int own = open_record();
        must_read(own, 0, 100000);
        MUST(close(own) == 0 && close(fd) == 0);
        _exit(0);
    }
    must_exit_well(pid);
    must_read(fd, 75000, 10);
    pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); /* a fork that no library sees */
    MUST(pid >= 0);
    if (pid == 0) {
        int zero = open("/dev/zero", O_RDONLY);
        char c = 1;
        must_read(fd, 75010, 10);
        MUST(dup2(zero, fd) == fd && read(fd, &c, 1) == 1 && c == 0);
        _exit(0);
    }
    must_exit_well(pid);
    must_read(fd, 75020, 10);
    static volatile int zero;
    zero = open("/dev/zero", O_RDONLY);
    pid = vfork(); /* NOLINT: tests what such a child does */
    if (pid == 0) {
        dup2(zero, fd);
        dup2(fd, 90);
        dup2(zero, 91);
        close(zero);
        _exit(0);
    }
    must_exit_well(pid);
    must_read(fd, 75030, 10);
    char c = 1;
    MUST(read(zero, &c, 1) == 1 && c == 0);
    MUST(read(90, &c, 1) == -1 && errno == EBADF);
}

/* A process that shares the position never sees it behind the end. */
static void shares(void)
{
    enum { CHECKS = 100000, LAST = 100 };
    char buf[5000];
    int fd = open_record();
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        for (int i = 0; i < CHECKS; i++)
            MUST(lseek(fd, 0, SEEK_CUR) <= (off_t)size);
        _exit(0);
    }
    pid_t ended;
    int status = 1;
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0) {
        off_t at = (off_t)size - LAST;
        MUST(lseek(fd, at, SEEK_SET) == at && read(fd, buf, sizeof buf) == LAST);
        MUST(memcmp(buf, bytes + at, LAST) == 0 && read(fd, buf, sizeof buf) == 0);
    }
    MUST(ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* In the executed program, only the record and its own files are open. */
static void executed(void)
{
    int fd = 3;
    must_read(fd, 12345, 70000);
    struct stat st, own;
    MUST(fstat(fd, &st) == 0);
    for (int i = 5; i < 2000; i++) { /* 4: the plain file */
        if (fstat(i, &own) == 0)
            MUST(own.st_dev == st.st_dev || !S_ISREG(own.st_mode) || getenv("LD_PRELOAD"));
    }
}

static void executes(char **argv)
{
    int fd = open_record(), shut = open(record, O_RDONLY | O_CLOEXEC);
    MUST(shut >= 0 && lseek(fd, 12345, SEEK_SET) == 12345);
    if (fd != 3)
        MUST(dup2(fd, 3) == 3);
    for (int i = 0; i < 2; i++) { /* with the library and without it */
        pid_t pid = fork();
        if (pid == 0) {
            if (i == 1)
                unsetenv("LD_PRELOAD");
            execl("/proc/self/exe", argv[0], "executed", record, same, NULL);
            _exit(3);
        }
        must_exit_well(pid);
        MUST(lseek(3, 12345, SEEK_SET) == 12345);
    }
}

static void passes(void)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    char c = 'c';
    int ends[2], fd = open_record();
    struct iovec iov = {&c, 1};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    must_read(fd, 0, 66666);
    MUST(sendmsg(ends[0], &message, 0) == 1 && recvmsg(ends[1], &message, 0) == 1);
    int received;
    memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
    must_read(received, 66666, 1000);
    must_read(fd, 67666, 1000);
    MUST(close(fd) == 0);
    must_read(received, 68666, 1000);
}

/* ---- threads and signals ---- */

static atomic_bool stopped;
static atomic_uchar *seen; /* how many threads have read each piece */
static int shared;

static void *read_pieces(void *unused)
{
    char buf[PIECE];
    ssize_t got;
    (void)unused;
    while ((got = read(shared, buf, PIECE)) > 0) {
        size_t at;
        memcpy(&at, buf, sizeof at); /* each word of the file is its offset */
        MUST(at % PIECE == 0 && at + (size_t)got <= size);
        MUST(memcmp(buf, bytes + at, (size_t)got) == 0);
        MUST(atomic_fetch_add(&seen[at / PIECE], 1) == 0);
    }
    MUST(got == 0);
    return NULL;
}

/* The same descriptor number is a record and a pipe in turn. */
static void *open_and_close(void *unused)
{
    char buf[PIECE];
    (void)unused;
    while (!atomic_load(&stopped)) {
        int ends[2], fd = open_record();
        MUST(pread(fd, buf, PIECE, PIECE) == PIECE && memcmp(buf, bytes + PIECE, PIECE) == 0);
        MUST(close(fd) == 0 && pipe(ends) == 0 && write(ends[1], "pipe", 4) == 4);
        MUST(read(ends[0], buf, PIECE) == 4 && memcmp(buf, "pipe", 4) == 0);
        MUST(close(ends[0]) == 0 && close(ends[1]) == 0);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t all[2 * THREADS];
    seen = calloc(size / PIECE + 1, 1);
    shared = open_record();
    for (int i = 0; i < 2 * THREADS; i++)
        MUST(pthread_create(&all[i], NULL, i < THREADS ? read_pieces : open_and_close, NULL) ==
             0);
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_join(all[i], NULL) == 0);
    for (int i = 0; i < 100; i++) { /* fork while the threads run */
        pid_t pid = fork();
        if (pid == 0) {
            must_read(open_record(), 0, 100000);
            _exit(0);
        }
        must_exit_well(pid);
    }
    atomic_store(&stopped, true);
    for (int i = THREADS; i < 2 * THREADS; i++)
        MUST(pthread_join(all[i], NULL) == 0);
    for (size_t i = 0; i < size / PIECE; i++)
        MUST(seen[i] == 1);
}

static atomic_int alarms;

static void on_alarm(int number)
{
    char buf[100];
    int saved = errno, fd = open(record, O_RDONLY);
    (void)number;
    MUST(fd >= 0 && pread(fd, buf, sizeof buf, 800) == sizeof buf);
    MUST(memcmp(buf, bytes + 800, sizeof buf) == 0 && close(fd) == 0);
    atomic_fetch_add(&alarms, 1);
    errno = saved;
}

static void signals(void)
{
    static char stack[16384]; /* handlers may have a small stack */
    const stack_t small = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_ONSTACK};
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    int other = open_record(); /* saves each handler the search for a job */
    must_read(other, 0, 1000);
    MUST(sigaltstack(&small, NULL) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
    MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (atomic_load(&alarms) < 500) {
        int fd = open_record(), two = dup(fd);
        must_read(fd, 0, 1000);
        must_read(two, 1000, 1000);
        MUST(close(fd) == 0 && close(two) == 0);
    }
    MUST(setitimer(ITIMER_REAL, &never, NULL) == 0);
    MUST(close(other) == 0);
}

/* ---- streams, which read with calls inside libc ---- */

static void must_begin_right(FILE *file)
{
    char *buf = malloc(BUFFER);
    MUST(buf && file && ftello(file) == 0);
    MUST(fread(buf, 1, BUFFER, file) == BUFFER && memcmp(buf, bytes, BUFFER) == 0);
    free(buf);
}

static void streams(void)
{
    FILE *file = fopen(record, "rb"), *many[300];
    must_begin_right(file);
    rewind(file);
    MUST(lseek(fileno_unlocked(file), 0, SEEK_CUR) == 0);
    must_read(fileno(file), 0, 100000);
    int fd = fileno(file);
    MUST(fclose(file) == 0 && fcntl(fd, F_GETFD) == -1);
    file = fdopen(open_record(), "r");
    must_begin_right(file);
    const char *const again[] = {NULL, same, record};
    for (int i = 0; i < 3; i++) {
        FILE *opened_again = freopen(again[i], "re", file);
        MUST(opened_again == file && fcntl(fileno(file), F_GETFD) == FD_CLOEXEC);
        must_begin_right(file);
    }
    MUST(fclose(file) == 0);
    file = freopen(record, "r", stdin);
    MUST(file == stdin && fileno(stdin) == 0);
    must_begin_right(stdin);
    for (int i = 0; i < 300; i++)
        MUST((many[i] = fopen(record, "r")) && fgetc(many[i]) == bytes[0]);
    for (int i = 0; i < 300; i++)
        MUST(fileno(many[i]) > 2 && fclose(many[i]) == 0);
}

/* ---- calls that the library passes to the kernel ---- */

static void kernel(void)
{
    char path[] = "/tmp/run-calls-XXXXXX";
    int fd = open_record(), out = mkstemp(path), ends[2];
    MUST(out >= 0 && unlink(path) == 0 && pipe(ends) == 0);
    must_read(fd, 0, 10);
    MUST(sendfile(out, fd, NULL, 70000) == 70000);
    must_be_at(fd, 70010);
    must_read(fd, 70010, 10);
    ssize_t copied = copy_file_range(fd, NULL, out, NULL, 5000, 0);
    MUST(copied == 5000 || errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP);
    size_t at = 70020 + (copied > 0 ? 5000 : 0);
    must_be_at(fd, (off_t)at);
    MUST(splice(fd, NULL, ends[1], NULL, 4096, 0) == 4096);
    must_read(fd, at + 4096, 10);
    char *buf = malloc(70000);
    MUST(buf && pread(out, buf, 70000, 0) == 70000 && memcmp(buf, bytes + 10, 70000) == 0);
    MUST(read(ends[0], buf, 4096) == 4096 && memcmp(buf, bytes + at, 4096) == 0);
    free(buf);
    unsigned char *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    MUST(map != MAP_FAILED && memcmp(map, bytes, size) == 0);
    must_read(fd, at + 4106, 100000);
    MUST(lseek(fd, 0, SEEK_SET) == 0);
    fcntl(fd, F_SETFL, O_DIRECT); /* not all kernels allow it */
    MUST(posix_memalign((void **)&buf, 4096, 8192) == 0 && read(fd, buf, 8192) == 8192);
    MUST(memcmp(buf, bytes, 8192) == 0);
    must_be_at(fd, 8192);
    free(buf);
}

static int errno_at_the_start;

static void start(void)
{
    MUST(errno_at_the_start == 0);
}

int main(int argc, char **argv)
{
    errno_at_the_start = errno;
    static const struct step all[] = {
        {"calls", calls},     {"dups", dups},       {"unseen", unseen},
        {"taken", taken},     {"forks", forks},     {"executed", executed},
        {"passes", passes},   {"threads", threads}, {"signals", signals},
        {"streams", streams}, {"kernel", kernel},   {"close_all", close_all},
        {"shares", shares},   {"start", start}};
    if (argc != 4)
        return 2;
    record = argv[2];
    same = argv[3];
    int fd = strcmp(argv[1], "executed") == 0 ? fcntl(open(same, O_RDONLY), F_DUPFD, 60)
                                              : open(same, O_RDONLY);
    map_same(fd);
    if (strcmp(argv[1], "executes") == 0) {
        executes(argv);
        return 0;
    }
    return run_step(argv[1], all, sizeof all / sizeof all[0]);
}
