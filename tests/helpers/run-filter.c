/* run-filter.c - read a record with a seccomp(2) filter that kills the program at any system
 * call that limefs-run(1) does not list. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    MANY = 100, /* reads */
    BYTES = 4096,
    MOST = 1 << 20,
};

#define ALLOW(name)                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int forbid(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        /* the program's own */
        ALLOW(read),
        ALLOW(readv),
        ALLOW(write),
        ALLOW(close),
        ALLOW(exit_group),
        /* the library's */
        ALLOW(pread64),
        ALLOW(preadv),
        ALLOW(lseek),
        ALLOW(fstat),
        ALLOW(newfstatat), /* fstat(2) in programs of older C libraries */
        ALLOW(statx),
        ALLOW(fcntl),
        ALLOW(rt_sigprocmask),
        ALLOW(getpid),
        ALLOW(prlimit64),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0;
}

static char data[MOST];

static bool reads(int fd, FILE *file)
{
    for (int i = 0; i < MANY; i++)
        if (read(fd, data, BYTES) != BYTES || pread(fd, data, BYTES, BYTES * i + 1) != BYTES ||
            fread(data, 1, BYTES, file) != BYTES)
            return false;
    return true;
}

static void *wait(void *unused)
{
    for (;;)
        pause();
    return unused;
}

/* Arguments: the record, and "threads" to run a second thread. */
int main(int argc, char **argv)
{
    pthread_t thread;
    const char *what = argc == 3 ? argv[2] : "";
    if (argc < 2 ||
        (strcmp(what, "threads") == 0 && pthread_create(&thread, NULL, wait, NULL) != 0))
        return 2;
    int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    FILE *file = fopen(argv[1], "re");
    if (fd < 0 || !file || forbid())
        return 2;
    const struct iovec parts[] = {{data, 100}, {data + 200, BYTES}};
    bool all = reads(fd, file) && lseek(fd, 0, SEEK_SET) == 0 && read(fd, data, MOST) == MOST &&
               readv(fd, parts, 2) == 100 + BYTES && preadv(fd, parts, 2, 5) == 100 + BYTES &&
               fread(data, 1, MOST, file) == MOST;
    return close(fd) == 0 && fclose(file) == 0 && all ? 0 : 1;
}
