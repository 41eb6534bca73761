/* client.c - the memory, lock and descriptors of this process as a client of a job */
#define _GNU_SOURCE
#include "client.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

enum {
    TRIES = 200, /* to get the lock: it is held for some microseconds */
};

static struct limefs_run_client *client;

/* Our descriptors; of the process, unlike the client: a child closes what it has of them. */
static struct held {
    atomic_int fd;
    pid_t pid;
    dev_t dev;
    ino_t ino;
} held_socket = {.fd = -1}, held_window = {.fd = -1};

void limefs_run_client_begin(void)
{
    void *memory = mmap(NULL, sizeof *client, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED && madvise(memory, sizeof *client, MADV_WIPEONFORK) == 0)
        client = memory;
}

struct limefs_run_client *limefs_run_client(void)
{
    return client && limefs_run_is_ours() ? client : NULL;
}

uint64_t limefs_run_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * LIMEFS_RUN_SECOND + (uint64_t)now.tv_nsec;
}

/* ---- the lock ---- */

void limefs_run_quiet_begin(struct limefs_run_quiet *quiet)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &quiet->signals);
    quiet->cancel = limefs_run_cancel_off();
}

void limefs_run_quiet_end(const struct limefs_run_quiet *quiet)
{
    limefs_run_cancel_back(quiet->cancel);
    sigprocmask(SIG_SETMASK, &quiet->signals, NULL);
}

bool limefs_run_client_lock(struct limefs_run_client *c)
{
    for (int i = 0; i < TRIES; i++) {
        if (atomic_exchange(&c->lock, 1) == 0)
            return true;
        sched_yield();
    }
    return false;
}

void limefs_run_client_unlock(struct limefs_run_client *c)
{
    atomic_store(&c->lock, 0);
}

/* ---- descriptors ---- */

/* Out of the program's way. */
static int hold(struct held *held, int fd)
{
    struct stat st;
    fd = fd < 0 ? -1 : limefs_run_out_of_the_way(fd);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0) {
        limefs_run_real()->close(fd);
        return -1;
    }
    held->pid = getpid();
    held->dev = st.st_dev;
    held->ino = st.st_ino;
    limefs_run_note_own(fd, true);
    atomic_store(&held->fd, fd);
    return fd;
}

/* Programs close descriptors unseen, and open others of the same number. */
static int still(struct held *held)
{
    struct stat st;
    int fd = atomic_load(&held->fd);
    return fd >= 0 && limefs_run_stat(fd, &st) == 0 && st.st_dev == held->dev &&
                   st.st_ino == held->ino
               ? fd
               : -1;
}

static void let_go(struct held *held)
{
    int own = still(held), fd = atomic_exchange(&held->fd, -1);
    if (fd < 0)
        return;
    limefs_run_note_own(fd, false);
    if (own == fd)
        limefs_run_real()->close(fd);
}

int limefs_run_client_socket(void)
{
    return still(&held_socket);
}

int limefs_run_client_window(void)
{
    return still(&held_window);
}

bool limefs_run_client_has(int fd)
{
    return fd >= 0 && ((fd == atomic_load(&held_socket.fd) && fd == still(&held_socket)) ||
                       (fd == atomic_load(&held_window.fd) && fd == still(&held_window)));
}

void limefs_run_client_give_up(int fd)
{
    int expected = fd;
    atomic_compare_exchange_strong(&held_socket.fd, &expected, -1);
    expected = fd;
    atomic_compare_exchange_strong(&held_window.fd, &expected, -1);
}

void limefs_run_client_forked(void)
{
    if (held_socket.pid != getpid())
        let_go(&held_socket);
    if (held_window.pid != getpid())
        let_go(&held_window);
}

void limefs_run_client_look(void)
{
    if (atomic_load(&held_socket.fd) >= 0)
        limefs_run_is_ours(); /* which finds out that it is not */
}

int limefs_run_client_hold(int fd, int window)
{
    bool both = fd >= 0 && window >= 0;
    if (!both && fd >= 0)
        limefs_run_real()->close(fd);
    if (!both && window >= 0)
        limefs_run_real()->close(window);
    if (!both)
        return -1;
    fd = hold(&held_socket, fd);
    window = hold(&held_window, window);
    if (fd >= 0 && window >= 0)
        return fd;
    limefs_run_client_let_go();
    return -1;
}

void limefs_run_client_let_go(void)
{
    int fd = still(&held_socket);
    if (fd >= 0)
        shutdown(fd, SHUT_RDWR); /* a child may have it, too */
    let_go(&held_socket);
    let_go(&held_window);
}

/* A page must be there to be collapsed. It is not touched: there might be no memory for it. */
static void make_huge(char *page)
{
    madvise(page, LIMEFS_RUN_HUGE_PAGE, MADV_DONTFORK);
    if (madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_POPULATE_WRITE) == 0)
        madvise(page, LIMEFS_RUN_HUGE_PAGE, MADV_COLLAPSE);
}

/* Mapped for that moment, at an address that a huge page can have. What is mapped stays the
 * window, if the descriptor still is it then. */
void limefs_run_client_prepare(uint64_t at)
{
    size_t room = (size_t)LIMEFS_RUN_HUGE_PAGE * 2;
    int fd = limefs_run_client_window();
    char *place =
        fd < 0 ? MAP_FAILED : mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        return;
    char *page = place + -(uintptr_t)place % LIMEFS_RUN_HUGE_PAGE;
    if (mmap(page, LIMEFS_RUN_HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             (off_t)at) == page &&
        limefs_run_client_window() == fd)
        make_huge(page);
    munmap(place, room);
}
