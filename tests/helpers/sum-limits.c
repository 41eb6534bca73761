/*
 * sum-limits.c - measure the limits of checksumming a file in memory, for scripts/bench
 *
 * usage: sum-limits FILE ROUNDS
 *
 * Prints, for each round, the seconds that all processors together take to read the file, and
 * to compute the CRC-32 (isa-l) of a copy of it in memory.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <isa-l/crc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PIECE = 256 * 1024,
    THREADS_MAX = 1024,
};

struct job {
    int fd;
    unsigned char *memory; /* NULL: read the file; else checksum this copy */
    size_t size;
    _Atomic size_t next;
    atomic_uint sum; /* keeps the compiler from removing the work */
    atomic_bool failed;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *work(void *context)
{
    struct job *job = context;
    unsigned char *buffer = malloc(PIECE);
    uint32_t sum = 0;
    for (size_t at; buffer && (at = atomic_fetch_add(&job->next, PIECE)) < job->size;) {
        size_t n = job->size - at < PIECE ? job->size - at : PIECE;
        if (job->memory)
            sum ^= crc32_gzip_refl(0, job->memory + at, n);
        else if (pread(job->fd, buffer, n, (off_t)at) != (ssize_t)n)
            job->failed = true;
    }
    atomic_fetch_xor(&job->sum, sum);
    free(buffer);
    return NULL;
}

static double seconds(int fd, unsigned char *memory, size_t size)
{
    struct job job = {.fd = fd, .memory = memory, .size = size};
    long threads = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t thread[THREADS_MAX];
    double begin = now();
    for (long i = 0; i < threads && i < THREADS_MAX; i++)
        if (pthread_create(&thread[i], NULL, work, &job) != 0)
            fail("pthread_create");
    for (long i = 0; i < threads && i < THREADS_MAX; i++)
        pthread_join(thread[i], NULL);
    if (job.failed)
        fail("pread");
    return now() - begin;
}

int main(int argc, char **argv)
{
    struct stat st;
    int fd = argc == 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &st) != 0)
        fail("usage: sum-limits FILE ROUNDS");
    size_t size = (size_t)st.st_size;
    unsigned char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    for (size_t at = 0; at < size;) {
        ssize_t got = pread(fd, memory + at, size - at, (off_t)at);
        if (got <= 0)
            fail("pread");
        at += (size_t)got;
    }
    /* The kernel filled the memory through another mapping: on some virtual machines the first
     * access through this one takes longer than the CRC of the page. */
    volatile unsigned char byte;
    for (size_t at = 0; at < size; at += 4096)
        byte = memory[at];
    (void)byte;
    for (int i = atoi(argv[2]); i > 0; i--)
        printf("%.6f %.6f\n", seconds(fd, NULL, size), seconds(fd, memory, size));
    return 0;
}
