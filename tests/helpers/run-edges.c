/*
 * run-edges.c - run-edges RECORD: print the results of calls with unusual arguments, to compare
 * a run with limefs-run to one without it (tests/fuse/test_run.py)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BUFFER = 1 << 20,
    PAGE = 4096,
    MANY = IOV_MAX + 1,
    VECTOR = 8, /* bytes of each part */
};

extern char **environ;

static char *buffer; /* BUFFER bytes, followed by an unmapped page */
static off_t size;

static uint64_t digest(const void *bytes, ssize_t n)
{
    uint64_t sum = 14695981039346656037U;
    for (ssize_t i = 0; i < n; i++)
        sum = (sum ^ ((const unsigned char *)bytes)[i]) * 1099511628211U;
    return sum;
}

static void show(const char *what, long result, int fd)
{
    int error = result < 0 ? errno : 0;
    printf("%s: %ld %s, at %ld, %016lx\n", what, result, error ? strerrorname_np(error) : "",
           (long)lseek(fd, 0, SEEK_CUR), (unsigned long)digest(buffer, BUFFER));
    memset(buffer, 0, BUFFER);
}

#define SHOW(call) (errno = 0, show(#call, (long)(call), fd))

static int open_record(const char *record, int flags)
{
    int fd = open(record, flags, 0600);
    printf("open %x: %s\n", (unsigned)flags, fd < 0 ? strerrorname_np(errno) : "good");
    return fd;
}

/* ---- numbers and addresses ---- */

static void addresses(int fd)
{
    char *end = buffer + BUFFER;
    void *volatile nowhere = (void *)(uintptr_t)8, *volatile kernel = (void *)UINTPTR_MAX;
    volatile size_t all = SIZE_MAX, most = SSIZE_MAX;
    SHOW(read(fd, nowhere, 100));
    SHOW(read(fd, kernel, 100));
    SHOW(read(fd, NULL, 0));
    SHOW(read(fd, end - 100, 200)); /* partly unmapped */
    SHOW(read(fd, end - 70000, 100000));
    SHOW(read(fd, buffer, all));
    SHOW(read(fd, buffer, most));
    SHOW(pread(fd, end - 100, 200, 5000));
    SHOW(pread(fd, buffer, 100, -1));
    SHOW(pread(fd, buffer, 100, INT64_MAX));
    SHOW(pread(fd, buffer, 100, INT64_MIN));
    SHOW(pread(fd, buffer, 1000, size - 10));
    SHOW(pread(fd, buffer, 1000, size));
    SHOW(pread(fd, buffer, 1000, size + 1));
    SHOW(pread(fd, nowhere, 1000, size));
    SHOW(pread(fd, kernel, 1000, size));
    SHOW(pread(fd, buffer, 0, size));
}

static void vectors(int fd)
{
    struct iovec many[MANY], bad[3] = {{buffer, 10}, {NULL, 10}, {buffer + 10, 10}};
    const struct iovec *volatile nowhere = (const void *)(uintptr_t)64;
    const struct iovec *volatile null = NULL;
    volatile int negative = -1;
    struct iovec holes[3] = {{buffer, 10}, {NULL, 0}, {buffer + 10, 10}};
    struct iovec too_much[2] = {{buffer, SSIZE_MAX}, {buffer, SSIZE_MAX}};
    for (int i = 0; i < MANY; i++)
        many[i] = (struct iovec){buffer + (MANY - 1 - i) * VECTOR, VECTOR};
    SHOW(readv(fd, many, IOV_MAX));
    SHOW(readv(fd, many, MANY));
    SHOW(readv(fd, many, negative));
    SHOW(readv(fd, many, 0));
    SHOW(readv(fd, nowhere, 2));
    SHOW(readv(fd, null, 1));
    SHOW(readv(fd, null, 0));
    SHOW(readv(fd, bad, 3));
    SHOW(readv(fd, holes, 3));
    SHOW(readv(fd, too_much, 2));
    SHOW(preadv(fd, many, IOV_MAX, size - 1000));
    SHOW(preadv(fd, many, 20, size - 100));
    SHOW(preadv(fd, many, 20, size));
    SHOW(preadv(fd, many, 20, -1));
    SHOW(preadv(fd, null, 3, 100));
    SHOW(preadv(fd, bad, 3, 100));
    SHOW(preadv(fd, bad, 3, size - 5));
    SHOW(preadv2(fd, many, 5, -1, 0));
    SHOW(preadv2(fd, many, 5, -2, 0));
    SHOW(preadv2(fd, many, 5, 100, 0x40000000));
}

static void positions(int fd)
{
    SHOW(lseek(fd, 0, SEEK_END));
    SHOW(read(fd, buffer, 100));
    SHOW(lseek(fd, 0, SEEK_DATA));
    SHOW(lseek(fd, 0, SEEK_HOLE));
    SHOW(lseek(fd, size, SEEK_DATA));
    SHOW(lseek(fd, size + 5, SEEK_SET));
    SHOW(read(fd, buffer, 100));
    SHOW(lseek(fd, INT64_MAX, SEEK_SET));
    SHOW(read(fd, buffer, 100));
    SHOW(lseek(fd, -1, SEEK_SET));
    SHOW(lseek(fd, -100, SEEK_END));
    SHOW(read(fd, buffer, BUFFER));
    SHOW(read(fd, buffer, BUFFER));
    SHOW(lseek(fd, 0, SEEK_SET));
}

static void flags(int fd)
{
    SHOW(fcntl(fd, F_GETFL));
    SHOW(fcntl(fd, F_SETFL, O_NONBLOCK));
    SHOW(read(fd, buffer, 1000));
    int two = dup(fd);
    SHOW(fcntl(fd, F_SETFL, O_APPEND));
    SHOW(read(two, buffer, 1000));
    SHOW(ftruncate(fd, 5));
    SHOW(write(fd, buffer, 5));
    SHOW(fsync(fd));
    SHOW(fchmod(fd, 0600));
    SHOW(fcntl(two, F_GETFL));
    SHOW(close(two));
    SHOW(close(two));
    SHOW(read(two, buffer, 10));
    SHOW(dup2(1000000, fd));
    SHOW(dup3(fd, fd, 0));
    SHOW(read(fd, buffer, 1000));
}

static void other_flags(const char *record)
{
    const int all[] = {O_RDWR,           O_WRONLY, O_PATH,      O_DIRECT,
                       O_CREAT | O_EXCL, O_TRUNC,  O_DIRECTORY, O_NOFOLLOW,
                       O_NOATIME,        O_APPEND, O_SYNC,      O_NONBLOCK};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int fd = open_record(record, all[i]);
        char *aligned = (char *)(((uintptr_t)buffer + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
        SHOW(read(fd, aligned, PAGE));
        SHOW(pread(fd, aligned, PAGE, PAGE));
        SHOW(close(fd));
    }
}

/* ---- threads that are cancelled, handlers that jump, and children ---- */

static int shared;

static void *read_forever(void *unused)
{
    (void)unused;
    static _Thread_local char buf[100];
    for (off_t at = 0;; at = (at + 100) % 10000)
        if (pread(shared, buf, sizeof buf, at) != sizeof buf)
            return NULL;
}

static void cancelled(const char *record)
{
    pthread_t thread;
    void *how;
    for (int i = 0; i < 200; i++) {
        shared = open(record, O_RDONLY);
        pthread_create(&thread, NULL, read_forever, NULL);
        pthread_cancel(thread);
        pthread_join(thread, &how);
        if (how != PTHREAD_CANCELED || close(shared) != 0)
            printf("not cancelled\n");
    }
}

static sigjmp_buf back;

static void jump(int number)
{
    siglongjmp(back, number);
}

__attribute__((unused)) static void jumps(const char *record)
{
    static volatile int i;
    const struct sigaction action = {.sa_handler = jump};
    const struct itimerval soon = {{0, 0}, {0, 300}};
    sigaction(SIGALRM, &action, NULL);
    for (i = 0; i < 100; i++) {
        static volatile int fd;
        fd = open(record, O_RDONLY);
        if (sigsetjmp(back, 1) == 0) {
            setitimer(ITIMER_REAL, &soon, NULL);
            for (;;)
                if (pread(fd, buffer, 100000, 0) != 100000)
                    printf("jumps: wrong\n");
        }
        close(fd);
    }
    int fd = open(record, O_RDONLY);
    memset(buffer, 0, BUFFER);
    SHOW(read(fd, buffer, 100000));
    SHOW(close(fd));
}

/* A child that shares this memory closes all its descriptors, as Python's subprocess does. */
static void vforked(const char *record)
{
    static volatile int fd;
    fd = open(record, O_RDONLY);
    pid_t pid = vfork(); /* NOLINT: tests what such a child does */
    if (pid == 0) {
        for (int i = 500; i < 1000; i++)
            dup2(0, i);
        close_range(3, ~0U, 0);
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    SHOW(status);
    SHOW(read(fd, buffer, 100000));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 0);
    posix_spawn_file_actions_addclose(&actions, fd);
    fflush(stdout);
    char *args[] = {"cksum", NULL};
    posix_spawnp(&pid, "cksum", &actions, NULL, args, environ);
    waitpid(pid, &status, 0);
    SHOW(status); /* prints the position, too: at the end */
    posix_spawn_file_actions_destroy(&actions);
    SHOW(close(fd));
}

/* Opens nearly as many descriptors as the limit allows. */
static void limits(const char *record)
{
    const struct rlimit small = {256, 256};
    int fds[256] = {0}, count = 0, fd;
    setrlimit(RLIMIT_NOFILE, &small);
    while (count < 200 && (fd = open(record, O_RDONLY)) >= 0)
        fds[count++] = fd;
    fd = fds[0];
    SHOW(count);
    for (int i = 0; i < count; i++) {
        fd = fds[i];
        if (pread(fd, buffer, 1000, 1000 * i) != 1000)
            SHOW(-i);
    }
    show("limits", count, fd);
    while (count-- > 0)
        close(fds[count]);
}

int main(int argc, char **argv)
{
    struct stat st;
    if (argc != 2 || stat(argv[1], &st) != 0)
        return 2;
    size = st.st_size;
    buffer =
        mmap(NULL, BUFFER + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED || munmap(buffer + BUFFER, PAGE) != 0)
        return 2;
    void (*const all[])(int) = {addresses, vectors, positions, flags};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int fd = open_record(argv[1], O_RDONLY);
        all[i](fd);
        close(fd);
    }
    other_flags(argv[1]);
    cancelled(argv[1]);
#ifndef __SANITIZE_THREAD__ /* it supports no jump out of a handler */
    jumps(argv[1]);
#endif
    vforked(argv[1]);
    limits(argv[1]);
    return 0;
}
