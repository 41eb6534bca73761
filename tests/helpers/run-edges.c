/*
 * run-edges.c - run-edges RECORD: prints what calls at the edges return and set, so that two
 * runs can be compared, with limefs-run and without (tests/fuse/test_run.py)
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
    ROOM = 1 << 20,
    PAGE = 4096,
    MANY = IOV_MAX + 1,
    VECTOR = 8, /* bytes of each part */
};

extern char **environ;

static char *room; /* ROOM bytes, and then a page that is none */
static off_t size;

static uint64_t digest(const void *bytes, ssize_t n)
{
    uint64_t sum = 14695981039346656037U;
    for (ssize_t i = 0; i < n; i++)
        sum = (sum ^ ((const unsigned char *)bytes)[i]) * 1099511628211U;
    return sum;
}

static void tell(const char *what, long result, int fd)
{
    int error = result < 0 ? errno : 0;
    printf("%s: %ld %s, at %ld, %016lx\n", what, result, error ? strerrorname_np(error) : "",
           (long)lseek(fd, 0, SEEK_CUR), (unsigned long)digest(room, ROOM));
    memset(room, 0, ROOM);
}

#define TELL(call) (errno = 0, tell(#call, (long)(call), fd))

static int opened(const char *record, int flags)
{
    int fd = open(record, flags, 0600);
    printf("open %x: %s\n", (unsigned)flags, fd < 0 ? strerrorname_np(errno) : "good");
    return fd;
}

/* ---- numbers and addresses ---- */

static void addresses(int fd)
{
    char *end = room + ROOM;
    void *volatile nowhere = (void *)(uintptr_t)8, *volatile kernel = (void *)UINTPTR_MAX;
    volatile size_t all = SIZE_MAX, most = SSIZE_MAX;
    TELL(read(fd, nowhere, 100));
    TELL(read(fd, kernel, 100));
    TELL(read(fd, NULL, 0));
    TELL(read(fd, end - 100, 200)); /* a part of it */
    TELL(read(fd, end - 70000, 100000));
    TELL(read(fd, room, all));
    TELL(read(fd, room, most));
    TELL(pread(fd, end - 100, 200, 5000));
    TELL(pread(fd, room, 100, -1));
    TELL(pread(fd, room, 100, INT64_MAX));
    TELL(pread(fd, room, 100, INT64_MIN));
    TELL(pread(fd, room, 1000, size - 10));
    TELL(pread(fd, room, 1000, size));
    TELL(pread(fd, room, 1000, size + 1));
    TELL(pread(fd, nowhere, 1000, size));
    TELL(pread(fd, kernel, 1000, size));
    TELL(pread(fd, room, 0, size));
}

static void vectors(int fd)
{
    struct iovec many[MANY], bad[3] = {{room, 10}, {NULL, 10}, {room + 10, 10}};
    const struct iovec *volatile nowhere = (const void *)(uintptr_t)64;
    const struct iovec *volatile null = NULL;
    volatile int negative = -1;
    struct iovec holes[3] = {{room, 10}, {NULL, 0}, {room + 10, 10}};
    struct iovec too_much[2] = {{room, SSIZE_MAX}, {room, SSIZE_MAX}};
    for (int i = 0; i < MANY; i++)
        many[i] = (struct iovec){room + (MANY - 1 - i) * VECTOR, VECTOR};
    TELL(readv(fd, many, IOV_MAX));
    TELL(readv(fd, many, MANY));
    TELL(readv(fd, many, negative));
    TELL(readv(fd, many, 0));
    TELL(readv(fd, nowhere, 2));
    TELL(readv(fd, null, 1));
    TELL(readv(fd, null, 0));
    TELL(readv(fd, bad, 3));
    TELL(readv(fd, holes, 3));
    TELL(readv(fd, too_much, 2));
    TELL(preadv(fd, many, IOV_MAX, size - 1000));
    TELL(preadv(fd, many, 20, size - 100));
    TELL(preadv(fd, many, 20, size));
    TELL(preadv(fd, many, 20, -1));
    TELL(preadv(fd, null, 3, 100));
    TELL(preadv(fd, bad, 3, 100));
    TELL(preadv(fd, bad, 3, size - 5));
    TELL(preadv2(fd, many, 5, -1, 0));
    TELL(preadv2(fd, many, 5, -2, 0));
    TELL(preadv2(fd, many, 5, 100, 0x40000000));
}

static void positions(int fd)
{
    TELL(lseek(fd, 0, SEEK_END));
    TELL(read(fd, room, 100));
    TELL(lseek(fd, 0, SEEK_DATA));
    TELL(lseek(fd, 0, SEEK_HOLE));
    TELL(lseek(fd, size, SEEK_DATA));
    TELL(lseek(fd, size + 5, SEEK_SET));
    TELL(read(fd, room, 100));
    TELL(lseek(fd, INT64_MAX, SEEK_SET));
    TELL(read(fd, room, 100));
    TELL(lseek(fd, -1, SEEK_SET));
    TELL(lseek(fd, -100, SEEK_END));
    TELL(read(fd, room, ROOM));
    TELL(read(fd, room, ROOM));
    TELL(lseek(fd, 0, SEEK_SET));
}

static void flags(int fd)
{
    TELL(fcntl(fd, F_GETFL));
    TELL(fcntl(fd, F_SETFL, O_NONBLOCK));
    TELL(read(fd, room, 1000));
    int two = dup(fd);
    TELL(fcntl(fd, F_SETFL, O_APPEND));
    TELL(read(two, room, 1000));
    TELL(ftruncate(fd, 5));
    TELL(write(fd, room, 5));
    TELL(fsync(fd));
    TELL(fchmod(fd, 0600));
    TELL(fcntl(two, F_GETFL));
    TELL(close(two));
    TELL(close(two));
    TELL(read(two, room, 10));
    TELL(dup2(1000000, fd));
    TELL(dup3(fd, fd, 0));
    TELL(read(fd, room, 1000));
}

static void other_flags(const char *record)
{
    const int all[] = {O_RDWR,           O_WRONLY, O_PATH,      O_DIRECT,
                       O_CREAT | O_EXCL, O_TRUNC,  O_DIRECTORY, O_NOFOLLOW,
                       O_NOATIME,        O_APPEND, O_SYNC,      O_NONBLOCK};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int fd = opened(record, all[i]);
        char *aligned = (char *)(((uintptr_t)room + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
        TELL(read(fd, aligned, PAGE));
        TELL(pread(fd, aligned, PAGE, PAGE));
        TELL(close(fd));
    }
}

/* ---- threads that are cancelled, handlers that jump, and children ---- */

static int shared;

static void *read_for_ever(void *unused)
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
        pthread_create(&thread, NULL, read_for_ever, NULL);
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
                if (pread(fd, room, 100000, 0) != 100000)
                    printf("jumps: wrong\n");
        }
        close(fd);
    }
    int fd = open(record, O_RDONLY);
    memset(room, 0, ROOM);
    TELL(read(fd, room, 100000));
    TELL(close(fd));
}

/* A child that shares this memory closes all it has, as subprocess of Python does. */
static void vforked(const char *record)
{
    static volatile int fd;
    fd = open(record, O_RDONLY);
    pid_t pid = vfork(); /* NOLINT: what such a child does is what this is about */
    if (pid == 0) {
        for (int i = 500; i < 1000; i++)
            dup2(0, i);
        close_range(3, ~0U, 0);
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    TELL(status);
    TELL(read(fd, room, 100000));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 0);
    posix_spawn_file_actions_addclose(&actions, fd);
    fflush(stdout);
    char *args[] = {"cksum", NULL};
    posix_spawnp(&pid, "cksum", &actions, NULL, args, environ);
    waitpid(pid, &status, 0);
    TELL(status); /* and the position is at the end */
    posix_spawn_file_actions_destroy(&actions);
    TELL(close(fd));
}

/* As many descriptors as there may be, but for some. */
static void limits(const char *record)
{
    const struct rlimit small = {256, 256};
    int fds[256] = {0}, count = 0, fd;
    setrlimit(RLIMIT_NOFILE, &small);
    while (count < 200 && (fd = open(record, O_RDONLY)) >= 0)
        fds[count++] = fd;
    fd = fds[0];
    TELL(count);
    for (int i = 0; i < count; i++) {
        fd = fds[i];
        if (pread(fd, room, 1000, 1000 * i) != 1000)
            TELL(-i);
    }
    tell("limits", count, fd);
    while (count-- > 0)
        close(fds[count]);
}

int main(int argc, char **argv)
{
    struct stat st;
    if (argc != 2 || stat(argv[1], &st) != 0)
        return 2;
    size = st.st_size;
    room = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED || munmap(room + ROOM, PAGE) != 0)
        return 2;
    void (*const all[])(int) = {addresses, vectors, positions, flags};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int fd = opened(argv[1], O_RDONLY);
        all[i](fd);
        close(fd);
    }
    other_flags(argv[1]);
    cancelled(argv[1]);
#ifndef __SANITIZE_THREAD__ /* a handler that jumps away is its last one */
    jumps(argv[1]);
#endif
    vforked(argv[1]);
    limits(argv[1]);
    return 0;
}
