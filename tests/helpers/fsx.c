/*
 * fsx.c - does random things to one file and to its picture in memory, and compares.
 *
 * After the well-known program of that name, which is Apple's; this one is ours. It reads,
 * writes, maps, cuts, extends, syncs and opens anew, and says after each step whether length
 * and bytes are what they have to be. The same seed does the same steps. At a difference it
 * prints where it is and the last steps, and exits with 1; if a step fails, with 2.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum step {
    READ,
    WRITE,
    APPEND,
    MAP_READ,
    MAP_WRITE,
    TRUNCATE,
    TRUNCATE_PATH,
    ALLOCATE,
    PUNCH,
    ZERO,
    SYNC,
    REOPEN,
    REOPEN_TRUNCATED,
    DROP,
    STEPS
};

static const struct {
    const char *name;
    int weight;
    bool resizes;
} steps[STEPS] = {
    [READ] = {"read", 20, false},
    [WRITE] = {"write", 20, false},
    [APPEND] = {"append", 5, true},
    [MAP_READ] = {"map read", 10, false},
    [MAP_WRITE] = {"map write", 10, false},
    [TRUNCATE] = {"ftruncate", 6, true},
    [TRUNCATE_PATH] = {"truncate", 2, true},
    [ALLOCATE] = {"fallocate", 4, true},
    [PUNCH] = {"punch hole", 3, false},
    [ZERO] = {"zero range", 3, false},
    [SYNC] = {"fsync", 5, false},
    [REOPEN] = {"close, open", 4, false},
    [REOPEN_TRUNCATED] = {"close, open O_TRUNC", 1, true},
    [DROP] = {"drop cache", 4, false},
};

enum { KEPT = 300 };

struct done {
    enum step step;
    size_t offset, n, size_before, size_after;
};

static struct {
    const char *path;
    int fd;
    unsigned char *picture; /* what the file has to be */
    unsigned char *other;   /* room for what is read */
    size_t size, max;
    bool no_resize, no_mmap;
    bool cannot[STEPS]; /* the file system says EOPNOTSUPP, or we shall not */
    uint64_t random, number;
    struct done last[KEPT];
} me;

static uint64_t dice(uint64_t sides)
{
    me.random ^= me.random << 13;
    me.random ^= me.random >> 7;
    me.random ^= me.random << 17;
    return (me.random >> 11) % sides;
}

static void print_steps(void)
{
    uint64_t first = me.number > KEPT ? me.number - KEPT : 0;
    for (uint64_t i = first; i <= me.number; i++) {
        const struct done *done = &me.last[i % KEPT];
        printf("%8" PRIu64 "  %-20s offset %zu, %zu bytes; size %zu", i, steps[done->step].name,
               done->offset, done->n, done->size_before);
        if (done->size_after != done->size_before)
            printf(" -> %zu", done->size_after);
        printf("\n");
    }
}

static void fail(const char *what)
{
    int err = errno;
    print_steps();
    printf("step %" PRIu64 ": %s: %s\n", me.number, what, strerror(err));
    exit(2);
}

static void differ(const char *what, size_t at, uint64_t is, uint64_t should)
{
    printf("step %" PRIu64 ": %s", me.number, what);
    if (at != SIZE_MAX)
        printf(" at %zu", at);
    printf(": %" PRIu64 ", and should be %" PRIu64 "\n", is, should);
    print_steps();
    exit(1);
}

static void compare(const unsigned char *found, size_t offset, size_t n, const char *what)
{
    if (memcmp(found, me.picture + offset, n) == 0)
        return;
    size_t i = 0;
    while (found[i] == me.picture[offset + i])
        i++;
    differ(what, offset + i, found[i], me.picture[offset + i]);
}

static void check_size(void)
{
    struct stat st;
    if (fstat(me.fd, &st) != 0)
        fail("fstat");
    if ((size_t)st.st_size != me.size)
        differ("size by fstat", SIZE_MAX, (uint64_t)st.st_size, me.size);
    if (stat(me.path, &st) != 0)
        fail("stat");
    if ((size_t)st.st_size != me.size)
        differ("size by stat", SIZE_MAX, (uint64_t)st.st_size, me.size);
}

/* A part of the file as it is now. */
static void choose_part(size_t *offset, size_t *n)
{
    *offset = me.size ? dice(me.size) : 0;
    *n = me.size ? 1 + dice(me.size - *offset) : 0;
    if (dice(3) && *n > 5000)
        *n = 1 + dice(5000);
}

/* A part that may end, or lie, behind the end. */
static void choose_any_part(size_t *offset, size_t *n)
{
    if (me.no_resize) {
        choose_part(offset, n);
        return;
    }
    *offset = dice(dice(2) ? me.size + 1 : me.max);
    *n = 1 + dice(me.max - *offset);
    if (dice(3) && *n > 20000)
        *n = 1 + dice(20000);
}

static void resize_picture(size_t size)
{
    if (size > me.size)
        memset(me.picture + me.size, 0, size - me.size);
    me.size = size;
}

/* New bytes in the picture. */
static void paint(size_t offset, size_t n)
{
    if (offset + n > me.size)
        resize_picture(offset + n);
    uint64_t value = me.number * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < n; i++) {
        value = value * 6364136223846793005u + 1442695040888963407u;
        me.picture[offset + i] = (unsigned char)(value >> 56);
    }
}

static void read_part(size_t offset, size_t n)
{
    size_t got = 0;
    while (got < n) {
        ssize_t part = pread(me.fd, me.other + got, n - got, (off_t)(offset + got));
        if (part < 0)
            fail("pread");
        if (part == 0)
            differ("bytes read", SIZE_MAX, got, n);
        got += (size_t)part;
    }
    compare(me.other, offset, n, "byte read");
    if (offset + n == me.size && pread(me.fd, me.other, 1, (off_t)me.size) != 0)
        differ("bytes behind the end", SIZE_MAX, 1, 0);
}

static void write_to(int fd, size_t offset, size_t n, const char *what)
{
    paint(offset, n);
    for (size_t put = 0; put < n;) {
        ssize_t part = pwrite(fd, me.picture + offset + put, n - put, (off_t)(offset + put));
        if (part <= 0)
            fail(what);
        put += (size_t)part;
    }
}

static void append(size_t n)
{
    int fd = open(me.path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        fail("open O_APPEND");
    write_to(fd, me.size, n, "write O_APPEND");
    if (close(fd) != 0)
        fail("close O_APPEND");
}

/* The pages of [offset, offset + n) and where in them the first byte is. */
static unsigned char *map(size_t offset, size_t n, int protection, size_t *before)
{
    *before = offset % (size_t)sysconf(_SC_PAGESIZE);
    void *pages =
        mmap(NULL, n + *before, protection, MAP_SHARED, me.fd, (off_t)(offset - *before));
    if (pages == MAP_FAILED)
        fail("mmap");
    return pages;
}

static void map_read(size_t offset, size_t n)
{
    size_t before;
    unsigned char *pages = map(offset, n, PROT_READ, &before);
    compare(pages + before, offset, n, "byte mapped");
    munmap(pages, n + before);
}

static void set_size(size_t size, bool by_path)
{
    if (by_path ? truncate(me.path, (off_t)size) : ftruncate(me.fd, (off_t)size))
        fail("truncate");
    resize_picture(size);
}

static void map_write(size_t offset, size_t n)
{
    size_t before;
    if (offset + n > me.size)
        set_size(offset + n, false);
    unsigned char *pages = map(offset, n, PROT_READ | PROT_WRITE, &before);
    paint(offset, n);
    memcpy(pages + before, me.picture + offset, n);
    if (dice(2) && msync(pages, n + before, MS_SYNC) != 0)
        fail("msync");
    munmap(pages, n + before);
}

/* Whether the file system can do it. */
static bool allocate(enum step step, int mode, size_t offset, size_t n)
{
    if (fallocate(me.fd, mode, (off_t)offset, (off_t)n) == 0)
        return true;
    if (errno != EOPNOTSUPP)
        fail("fallocate");
    me.cannot[step] = true;
    return false;
}

static void zero(enum step step, size_t offset, size_t n)
{
    int mode = step == PUNCH ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE;
    if (allocate(step, mode | FALLOC_FL_KEEP_SIZE, offset, n))
        memset(me.picture + offset, 0, n);
}

static void open_file(int flags)
{
    me.fd = open(me.path, O_RDWR | O_CLOEXEC | flags, 0644);
    if (me.fd < 0)
        fail("open");
}

static void reopen(int flags)
{
    if (close(me.fd) != 0)
        fail("close");
    open_file(flags);
    if (flags & O_TRUNC)
        resize_picture(0);
}

static void do_step(struct done *now)
{
    switch (now->step) {
    case READ:
        read_part(now->offset, now->n);
        break;
    case WRITE:
        write_to(me.fd, now->offset, now->n, "pwrite");
        break;
    case APPEND:
        append(now->n);
        break;
    case MAP_READ:
        map_read(now->offset, now->n);
        break;
    case MAP_WRITE:
        map_write(now->offset, now->n);
        break;
    case TRUNCATE:
    case TRUNCATE_PATH:
        set_size(now->n, now->step == TRUNCATE_PATH);
        break;
    case ALLOCATE:
        if (allocate(ALLOCATE, 0, now->offset, now->n) && now->offset + now->n > me.size)
            resize_picture(now->offset + now->n);
        break;
    case PUNCH:
    case ZERO:
        zero(now->step, now->offset, now->n);
        break;
    case SYNC:
        if (fsync(me.fd) != 0)
            fail("fsync");
        break;
    case REOPEN:
    case REOPEN_TRUNCATED:
        reopen(now->step == REOPEN ? 0 : O_TRUNC);
        break;
    case DROP:
        posix_fadvise(me.fd, 0, 0, POSIX_FADV_DONTNEED);
        break;
    default:
        break;
    }
}

static enum step choose_step(void)
{
    for (;;) {
        int all = 0;
        for (int i = 0; i < STEPS; i++)
            all += steps[i].weight;
        int chosen = (int)dice((uint64_t)all);
        int step = 0;
        while (chosen >= steps[step].weight)
            chosen -= steps[step++].weight;
        bool maps = step == MAP_READ || step == MAP_WRITE;
        if (!me.cannot[step] && !(me.no_resize && steps[step].resizes) && !(me.no_mmap && maps))
            return (enum step)step;
    }
}

/* False if there is nothing to do it to. */
static bool prepare(struct done *now)
{
    switch (now->step) {
    case WRITE:
    case MAP_WRITE:
    case ALLOCATE:
        choose_any_part(&now->offset, &now->n);
        break;
    case APPEND:
        now->offset = me.size;
        now->n = me.size < me.max ? 1 + dice(me.max - me.size) : 0;
        break;
    case TRUNCATE:
    case TRUNCATE_PATH:
        now->n = dice(me.max + 1);
        return true;
    case SYNC:
    case REOPEN:
    case REOPEN_TRUNCATED:
    case DROP:
        return true;
    default:
        choose_part(&now->offset, &now->n);
        break;
    }
    return now->n > 0;
}

static void run(uint64_t count)
{
    while (me.number < count) {
        struct done now = {.step = choose_step(), .size_before = me.size};
        if (!prepare(&now))
            continue;
        struct done *kept = &me.last[me.number % KEPT];
        now.size_after = me.size;
        *kept = now;
        do_step(&now);
        kept->size_after = me.size;
        check_size();
        me.number++;
    }
    me.number--;
}

/* The picture begins as what the file is; without one the file is made. */
static void begin(void)
{
    struct stat st;
    open_file(O_CREAT);
    if (fstat(me.fd, &st) != 0)
        fail("fstat");
    me.size = (size_t)st.st_size;
    if (me.max < me.size)
        me.max = me.size;
    me.picture = calloc(1, me.max + 1);
    me.other = malloc(me.max + 1);
    if (!me.picture || !me.other)
        fail("memory");
    if (pread(me.fd, me.picture, me.size, 0) != (ssize_t)me.size)
        fail("pread");
}

static void save(const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(me.picture, 1, me.size, file) != me.size || fclose(file) != 0)
        fail(path);
}

int main(int argc, char *argv[])
{
    static const struct option options[] = {
        {"steps", required_argument, NULL, 'n'}, {"seed", required_argument, NULL, 's'},
        {"max", required_argument, NULL, 'm'},   {"save", required_argument, NULL, 'o'},
        {"no-resize", no_argument, NULL, 'r'},   {"no-mmap", no_argument, NULL, 'p'},
        {"no-append", no_argument, NULL, 'a'},   {NULL, 0, NULL, 0},
    };
    uint64_t count = 1000, seed = (uint64_t)getpid();
    const char *picture = NULL;
    int option;
    me.max = 256 << 10;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'n':
            count = strtoull(optarg, NULL, 10);
            break;
        case 's':
            seed = strtoull(optarg, NULL, 10);
            break;
        case 'm':
            me.max = strtoull(optarg, NULL, 10);
            break;
        case 'o':
            picture = optarg;
            break;
        case 'r':
            me.no_resize = true;
            break;
        case 'p':
            me.no_mmap = true;
            break;
        case 'a':
            me.cannot[APPEND] = true;
            break;
        default:
            optind = argc;
        }
    }
    if (optind != argc - 1 || count == 0 || me.max == 0) {
        fprintf(stderr, "usage: fsx [--steps N] [--seed N] [--max BYTES] [--save PICTURE] "
                        "[--no-resize] [--no-mmap] [--no-append] FILE\n");
        return 3;
    }
    me.path = argv[optind];
    me.random = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    printf("seed %" PRIu64 "\n", seed);
    begin();
    run(count);
    reopen(0);
    check_size();
    read_part(0, me.size);
    if (close(me.fd) != 0)
        fail("close");
    if (picture)
        save(picture);
    free(me.picture);
    free(me.other);
    printf("%" PRIu64 " steps, %zu bytes\n", count, me.size);
    return 0;
}
