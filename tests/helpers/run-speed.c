/*
 * run-speed.c - run-speed FILE OFFSET: print the seconds to read 20,000 random blocks of 4 KiB
 * behind OFFSET (scripts/bench run)
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
    BLOCK = 4096,
    COUNT = 20000,
};

static int at_random(const char *path, off_t offset)
{
    char buf[BLOCK];
    struct stat st;
    uint64_t state = 88172645463325252;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0)
        return -1;
    uint64_t blocks = (uint64_t)(st.st_size - offset) / BLOCK;
    for (int i = 0; i < COUNT && blocks; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if (pread(fd, buf, BLOCK, offset + (off_t)(state % blocks * BLOCK)) != BLOCK)
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
