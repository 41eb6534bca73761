/* test_turns.c - how many threads wait for the next request, and how */
#define _GNU_SOURCE
#include "pace.h"
#include "turns.h"
#include "unit.h"

#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    THREADS = 8,
    ROW = 16,
    REQUESTS_MOST = 200000,
    /* nodes */
    HANGS = 1,
    TAKES_LONG = 2,

    BATCH = 256, /* requests, of which that many may wait in a socket */
    BATCHES = 8, /* within which more threads have come in, but none by chance */
};

static int requests[2], replies[2];
static atomic_uint reading, most; /* threads in read(), and the most at once */
static atomic_uint looks;         /* whether there is a request, so often */

static void end_reading(void *unused)
{
    (void)unused;
    reading--;
}

/* These two in place of the C library's, for the requests. (<poll.h> says that poll() reads
 * nothing of what it is given, so ours has that name for the linker alone.) */
int look(struct pollfd *of, nfds_t n, int ms) __asm__("poll");
int look(struct pollfd *of, nfds_t n, int ms)
{
    const struct timespec most_of_it = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    looks += n > 0 && of->fd == requests[1];
    return ppoll(of, n, &most_of_it, NULL);
}

ssize_t read(int fd, void *buf, size_t n)
{
    if (fd != requests[1])
        return syscall(SYS_read, fd, buf, n);
    ssize_t got;
    unsigned now = ++reading, before = most;
    while (before < now && !atomic_compare_exchange_weak(&most, &before, now))
        ;
    pthread_cleanup_push(end_reading, NULL);
    got = recv(fd, buf, n, 0); /* may be cancelled, as read() may */
    pthread_cleanup_pop(1);
    return got;
}

static pthread_t thread[THREADS];
static pthread_mutex_t hanging = PTHREAD_MUTEX_INITIALIZER; /* held: what is to hang does */
static atomic_uint hung, serving, together; /* requests that are served while others are */

/* But not as long as a tick, so that nobody takes it for hanging. */
static void take_long(void)
{
    const struct timespec long_time = {.tv_nsec = 200000};
    if (++serving > 1)
        together++;
    nanosleep(&long_time, NULL);
    serving--;
}

static void *serve(void *unused)
{
    struct fuse_in_header header;
    (void)unused;
    while (limefs_turns_read(requests[1], &header, sizeof header) > 0) {
        if (header.nodeid == HANGS) {
            hung++;
            pthread_mutex_lock(&hanging);
            pthread_mutex_unlock(&hanging);
            hung--;
        }
        if (header.nodeid == TAKES_LONG)
            take_long();
        assert_int_equal(send(replies[1], "", 1, 0), 1);
    }
    return NULL;
}

static void start(uint32_t opcode, uint64_t node)
{
    struct fuse_in_header header = {.len = sizeof header, .opcode = opcode, .nodeid = node};
    assert_int_equal(send(requests[0], &header, sizeof header, 0), sizeof header);
}

static void take_reply(void)
{
    struct pollfd answered = {.fd = replies[0], .events = POLLIN};
    char reply;
    assert_int_equal(poll(&answered, 1, 120000), 1);
    assert_int_equal(recv(replies[0], &reply, 1, 0), 1);
}

/* One request after the other; the most threads that waited for one meanwhile. */
static unsigned ask(uint32_t opcode, int times)
{
    most = looks = 0;
    for (int i = 0; i < times; i++) {
        start(opcode, 0);
        take_reply();
    }
    return most;
}

static void wait_for(const atomic_uint *count, unsigned wanted)
{
    for (int i = 0; *count != wanted; i++) {
        assert_true(i < 120000);
        poll(NULL, 0, 1);
    }
}

/* Until one thread waits, and the others stand by. */
static void ask_quickly(void)
{
    for (int asked = 0; ask(FUSE_LOOKUP, ROW) > 1; asked += ROW)
        assert_true(asked < REQUESTS_MOST);
}

static void ask_for_bytes(void)
{
    for (int asked = 0; ask(FUSE_READ, ROW) < THREADS; asked += ROW)
        assert_true(asked < REQUESTS_MOST);
}

static int start_threads(void **state)
{
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, requests), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, replies), 0);
    assert_int_equal(limefs_turns_begin(), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, serve, NULL), 0);
    wait_for(&reading, THREADS); /* at first all do */
    return 0;
}

static int end_threads(void **state)
{
    (void)state;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_cancel(thread[i]), 0);
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    for (int i = 0; i < 2; i++) {
        close(requests[i]);
        close(replies[i]);
    }
    return 0;
}

/* With quick requests one thread waits; asleep, then on the watch for a trial, then asleep
 * again, at the latest with the next one. It looks behind each request, and on the watch at
 * least once before each, too. Then a request of bytes comes, and all wait. */
static void test_waiting(void **state)
{
    int asked = 0, asleep = 0;
    (void)state;
    ask_quickly();
    for (; ask(FUSE_LOOKUP, ROW) > 1 || looks < 2 * ROW; asked += ROW)
        assert_true(asked < REQUESTS_MOST);
    for (; asleep < LIMEFS_PACE_TRIAL / 2; asked += ROW) {
        assert_true(asked < REQUESTS_MOST);
        asleep = ask(FUSE_LOOKUP, ROW) > 1 || looks > ROW + ROW / 2 ? 0 : asleep + ROW;
    }
    ask_for_bytes();
}

/* Requests hang, at once or one after the other, whether or not there were others just before:
 * a thread comes in for each of them, and one for a request behind them. */
static void test_hanging(void **state)
{
    (void)state;
    for (int round = 0; round < 12; round++) {
        ask_quickly();
        if (round % 4 == 3)
            poll(NULL, 0, 100); /* nobody looks after threads then */
        pthread_mutex_lock(&hanging);
        for (unsigned i = 1; i < THREADS; i++) {
            start(FUSE_LOOKUP, HANGS);
            if (round % 2 == 0)
                wait_for(&hung, i);
        }
        wait_for(&hung, THREADS - 1);
        ask(FUSE_LOOKUP, ROW);
        pthread_mutex_unlock(&hanging);
        for (unsigned i = 1; i < THREADS; i++)
            take_reply();
        if (round % 3 == 2)
            ask_for_bytes();
    }
}

/* One thread does not get them done, so others come in, and stay. */
static void test_many_at_once(void **state)
{
    int batches = 0;
    (void)state;
    ask_quickly();
    do {
        assert_true(batches++ < BATCHES);
        together = 0;
        for (int i = 0; i < BATCH; i++)
            start(FUSE_LOOKUP, TAKES_LONG);
        for (int i = 0; i < BATCH; i++)
            take_reply();
    } while (together < BATCH / 2);
    ask_for_bytes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_hanging),
        cmocka_unit_test(test_many_at_once),
    };
    return cmocka_run_group_tests_name("turns", tests, start_threads, end_threads);
}
