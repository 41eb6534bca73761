/*
 * run-speed.c - run-speed fread|random FILE OFFSET: seconds to read it from there to its end in
 * pieces of 1 MiB by a stream, or 20,000 pieces of 4 KiB of it at random (scripts/bench run)
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PIECE = 1 << 20,
    SMALL = 4096,
    COUNT = 20000,
};

static char buf[PIECE];

static int by_stream(const char *path, off_t offset)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseeko(file, offset, SEEK_SET) != 0)
        return -1;
    while (fread(buf, 1, PIECE, file) == PIECE)
        ;
    int err = ferror(file) ? -1 : 0;
    return fclose(file) == 0 ? err : -1;
}

static int at_random(const char *path, off_t offset)
{
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
    if (argc != 4)
        return 2;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    off_t offset = (off_t)strtoll(argv[3], NULL, 10);
    int err =
        strcmp(argv[1], "fread") == 0 ? by_stream(argv[2], offset) : at_random(argv[2], offset);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.6f\n",
           (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
    return err ? 1 : 0;
}
