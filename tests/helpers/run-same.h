/*
 * run-same.h - common code of programs that read a record under limefs-run and compare it with
 * a plain file of the same bytes: PROGRAM WHAT RECORD SAME
 *
 * They print the first difference and exit with 1. Include it with _GNU_SOURCE defined.
 */
#ifndef RUN_SAME_H
#define RUN_SAME_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(what)                                                                           \
    do {                                                                                     \
        if (!(what)) {                                                                       \
            printf("line %d: %s: errno %d (%s)\n", __LINE__, #what, errno, strerror(errno)); \
            fflush(stdout);                                                                  \
            _exit(1);                                                                        \
        }                                                                                    \
    } while (0)

static const char *record, *same;
static unsigned char *bytes; /* the expected contents of the record */
static size_t size;

static size_t dice(size_t sides)
{
    static uint64_t state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % sides);
}

static int open_record(void)
{
    int fd = open(record, O_RDONLY);
    MUST(fd >= 0);
    return fd;
}

static void must_exit_well(pid_t pid)
{
    int status;
    MUST(waitpid(pid, &status, 0) == pid);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Maps the plain file and closes its descriptor, fd. */
static void map_same(int fd)
{
    struct stat st;
    MUST(fd >= 0 && fstat(fd, &st) == 0);
    size = (size_t)st.st_size;
    bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    MUST(bytes != MAP_FAILED && close(fd) == 0);
}

struct step {
    const char *name;
    void (*run)(void);
};

static int run_step(const char *what, const struct step *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(what, all[i].name) == 0) {
            all[i].run();
            return 0;
        }
    }
    return 2;
}

#endif
