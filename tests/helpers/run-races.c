/*
 * run-races.c - run-races WHAT RECORD SAME: run code between any two system calls of a read
 * under limefs-run (tests/fuse/test_run.py)
 *
 * The library calls these libc functions by name, so the program's definitions replace them.
 */
#define _GNU_SOURCE
#include "real.h"
#include "run-same.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/syscall.h>

enum {
    PIECE = 4096,
    PIECES = 20,
    MUCH = 64 * 1024,
    PLACE = 1 << 20, /* offset of the read */
    MOST = 100,      /* more system calls than a read makes */
};

static __thread bool counts;        /* this thread's system calls are counted */
static int calls, interrupted_call; /* twice a call, before and after; 1: the first */
static void (*interrupt)(void);

static void count_call(void)
{
    if (counts && ++calls == interrupted_call) {
        counts = false;
        interrupt();
        counts = true;
    }
}

long syscall(long number, ...)
{
    REAL(syscall);
    SYSCALL_ARGUMENTS(number);
    count_call();
    long result = real(number, a, b, c, d, e, f);
    count_call();
    return result;
}

/* Defined with the name that the library calls. */
off_t seek(int, off_t, int) __asm__("lseek");

off_t seek(int fd, off_t at, int whence)
{
    return syscall(SYS_lseek, fd, at, whence);
}

int statx(int dir, const char *restrict path, int flags, unsigned mask,
          struct statx *restrict st)
{
    return (int)syscall(SYS_statx, dir, path, flags, mask, st);
}

/* ---- another thread replaces the descriptor's file ---- */

static int shared;
static sem_t interrupted, resume;
static char got[MUCH];
static ssize_t got_bytes;

static void wait_for_other(void)
{
    MUST(sem_post(&interrupted) == 0 && sem_wait(&resume) == 0);
}

static void *read_once(void *unused)
{
    (void)unused;
    counts = true;
    got_bytes = read(shared, got, sizeof got);
    counts = false;
    MUST(sem_post(&interrupted) == 0);
    return NULL;
}

/* Each read returns data of either the record or the other file, and none of it is lost. */
static void replace_in_between(void)
{
    char buf[PIECE];
    pthread_t thread;
    shared = open_record();
    int other = open(same, O_RDONLY), left = dup(shared);
    MUST(other >= 0 && left >= 0 && lseek(shared, PLACE, SEEK_SET) == PLACE);
    calls = 0;
    MUST(pthread_create(&thread, NULL, read_once, NULL) == 0 && sem_wait(&interrupted) == 0);
    MUST(dup2(other, shared) == shared);
    for (size_t i = 0; i < PIECES; i++)
        MUST(read(shared, buf, PIECE) == PIECE && memcmp(buf, bytes + i * PIECE, PIECE) == 0);
    MUST(sem_post(&resume) == 0);
    MUST(pthread_join(thread, NULL) == 0 && got_bytes == MUCH);
    bool of_record = memcmp(got, bytes + PLACE, MUCH) == 0;
    MUST(of_record || memcmp(got, bytes + PIECES * PIECE, MUCH) == 0);
    MUST(lseek(other, 0, SEEK_CUR) == PIECES * PIECE + (of_record ? 0 : MUCH));
    MUST(lseek(left, 0, SEEK_CUR) == PLACE + (of_record ? MUCH : 0));
    MUST(close(shared) == 0 && close(other) == 0 && close(left) == 0);
    while (sem_trywait(&interrupted) == 0 || sem_trywait(&resume) == 0)
        ;
}

static void replaced(void)
{
    MUST(sem_init(&interrupted, 0, 0) == 0 && sem_init(&resume, 0, 0) == 0);
    interrupt = wait_for_other;
    interrupted_call = calls = 0;
    do {
        interrupted_call++;
        replace_in_between();
    } while (calls >= interrupted_call && interrupted_call < MOST);
    MUST(interrupted_call < MOST && (interrupted_call > 8 || !getenv("LD_PRELOAD")));
}

static void *wait_for_end(void *unused)
{
    (void)unused;
    MUST(sem_wait(&resume) == 0);
    return NULL;
}

/* Another thread runs. All numbers at which the library can have a descriptor are taken by
 * another file, seen by the library or not: its position does not change. */
static void taken(void)
{
    char buf[PIECE];
    pthread_t thread;
    MUST(sem_init(&resume, 0, 0) == 0);
    MUST(pthread_create(&thread, NULL, wait_for_end, NULL) == 0);
    for (int way = 0; way < 3; way++) {
        int fd = open_record(), other = open(same, O_RDONLY), two = dup(fd);
        size_t at = 0;
        for (int turn = 0; turn < 3; turn++) {
            for (int i = 0; i < PIECES; i++, at += PIECE)
                MUST(read(i % 2 ? fd : two, buf, PIECE) == PIECE &&
                     memcmp(buf, bytes + at, PIECE) == 0);
            for (int i = 400; i < 700 && turn == 0 && way < 2; i++)
                MUST((way ? dup2(other, i) : syscall(SYS_dup3, other, i, 0)) == i);
            for (int i = 400; i < 700 && turn == 1; i++)
                MUST((way ? close(i) : syscall(SYS_close, i)) == 0 || way == 2);
        }
        MUST(lseek(fd, 0, SEEK_CUR) == (off_t)at && lseek(other, 0, SEEK_CUR) == 0);
        MUST(close(fd) == 0 && close(two) == 0 && close(other) == 0);
    }
    MUST(sem_post(&resume) == 0 && pthread_join(thread, NULL) == 0);
}

static int descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* The library closes its descriptors with the record, in a child, too. */
static void closed(void)
{
    char buf[PIECE];
    pthread_t thread;
    int before = descriptors();
    MUST(sem_init(&resume, 0, 0) == 0);
    MUST(pthread_create(&thread, NULL, wait_for_end, NULL) == 0);
    for (size_t i = 0; i < PIECES; i++) {
        int fd = open_record();
        MUST(lseek(fd, (off_t)dice(size - PIECE), SEEK_SET) >= 0 &&
             read(fd, buf, PIECE) == PIECE);
        pid_t pid = fork();
        if (pid == 0) {
            MUST(read(fd, buf, PIECE) >= 0 && close(fd) == 0 && descriptors() == before);
            _exit(0);
        }
        must_exit_well(pid);
        MUST(close(fd) == 0);
    }
    MUST(descriptors() == before);
    MUST(sem_post(&resume) == 0 && pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
    static const struct step all[] = {
        {"replaced", replaced}, {"taken", taken}, {"closed", closed}};
    if (argc != 4)
        return 2;
    record = argv[2];
    same = argv[3];
    map_same(open(same, O_RDONLY));
    return run_step(argv[1], all, sizeof all / sizeof all[0]);
}
