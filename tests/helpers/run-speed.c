/*
 * run-speed.c - run-speed FILE OFFSET: seconds to read 20,000 pieces of 4 KiB of it behind that
 * offset at random (scripts/bench run)
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SMALL = 4096,
    COUNT = 20000,
};

static int at_random(const char *path, off_t offset)
{
    char buf[SMALL];
    struct stat st;
    uint64_t state = 88172645463325252;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0)
        return -1;
    uint64_t pieces = (uint64_t)(st.st_size - offset) / SMALL;
    for (int i = 0; i < COUNT && pieces; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if (pread(fd, buf, SMALL, offset + (off_t)(state % pieces * SMALL)) != SMALL)
            return -1;
    }
    return close(fd);
}

int main(int argc, char **argv)
{
    struct timespec begin, end;
    if (argc != 3)
        return 2;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    off_t offset = (off_t)strtoll(argv[2], NULL, 10);
    int err = at_random(argv[1], offset);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.6f\n",
           (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
    return err ? 1 : 0;
}
