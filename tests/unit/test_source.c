/* test_source.c - files and memory with the same operations */
#define _GNU_SOURCE
#include "unit.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char directory[] = "/tmp/test_source-XXXXXX";

static int enter_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) && chdir(directory) == 0 ? 0 : -1;
}

static int leave_directory(void **state)
{
    (void)state;
    unlink("file");
    unlink("fifo");
    unlink("socket");
    rmdir("dir");
    return chdir("/") == 0 ? rmdir(directory) : -1;
}

AROUND_ALL(enter_directory, leave_directory)

/* The same calls have the same effect on a file and in memory. */
static void exercise(struct limefile_source *s)
{
    uint64_t size;
    char buf[32];
    assert_int_equal(s->ops->size(s, &size), 0);
    assert_int_equal(size, 0);
    assert_int_equal(limefile_read_full(s, buf, sizeof buf, 0), 0);
    assert_int_equal(limefile_write_full(s, "abcdef", 6, 10), 0); /* the gap is zeros */
    assert_int_equal(s->ops->size(s, &size), 0);
    assert_int_equal(size, 16);
    memset(buf, 'X', sizeof buf);
    assert_int_equal(limefile_read_full(s, buf, sizeof buf, 8), 8);
    assert_memory_equal(buf, "\0\0abcdefX", 9);
    assert_int_equal(limefile_write_full(s, "ZZ", 2, 11), 0);
    assert_int_equal(limefile_read_full(s, buf, 6, 10), 6);
    assert_memory_equal(buf, "aZZdef", 6);
    assert_int_equal(s->ops->truncate(s, 12), 0);
    assert_int_equal(s->ops->truncate(s, 20), 0); /* truncated bytes are zero again */
    assert_int_equal(limefile_read_full(s, buf, 20, 10), 10);
    assert_memory_equal(buf, "aZ\0\0\0\0\0\0\0\0", 10);
    assert_int_equal(limefile_read_full(s, buf, 1, 20), 0);
    assert_int_equal(limefile_read_full(s, buf, 1, 1 << 30), 0);
    assert_int_equal(limefile_write_full(s, "", 0, 0), 0);
    assert_int_equal(s->ops->sync(s), 0);
    assert_true(s->ops->truncate(s, UINT64_MAX) < 0);
    assert_true(limefile_write_full(s, "x", 1, UINT64_MAX) < 0);
    assert_int_equal(s->ops->size(s, &size), 0);
    assert_int_equal(size, 20);
}

TEST(test_memory)
{
    struct limefile_memory memory;
    limefile_memory_init(&memory);
    exercise(&memory.source);
    char c;
    assert_int_equal(limefile_read_full(&memory.source, &c, 1, UINT64_MAX), 0);
    limefile_memory_release(&memory);
    assert_null(memory.data);
    limefile_memory_release(&memory); /* a second call has no effect */
}

TEST(test_file)
{
    struct limefile_fd file;
    int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    limefile_fd_init(&file, fd);
    exercise(&file.source);
    char c;
    assert_int_equal(limefile_read_full(&file.source, &c, 1, UINT64_MAX), -EOVERFLOW);
    close(fd);
    uint64_t size;
    assert_int_equal(limefile_read_full(&file.source, &c, 1, 0), -EBADF);
    assert_int_equal(file.source.ops->size(&file.source, &size), -EBADF);
}

TEST(test_borrowed_memory_is_never_written)
{
    char lent[] = "lent";
    struct limefile_memory memory;
    limefile_memory_borrow(&memory, lent, 4);
    assert_int_equal(limefile_write_full(&memory.source, "x", 1, 0), -EROFS);
    assert_int_equal(limefile_write_full(&memory.source, "x", 1, 4), -EROFS);
    assert_int_equal(memory.source.ops->truncate(&memory.source, 0), -EROFS);
    assert_string_equal(lent, "lent");
    limefile_memory_release(&memory);
    assert_string_equal(lent, "lent");
}

static ssize_t never(struct limefile_source *source, const void *buf, size_t n, uint64_t offset)
{
    (void)source, (void)buf, (void)n, (void)offset;
    return 0;
}

TEST(test_writes_that_move_nothing)
{
    static const struct limefile_source_ops ops = {.write = never}, none = {0};
    struct limefile_source source = {&ops};
    assert_int_equal(limefile_write_full(&source, "x", 1, 0), -EIO);
    source.ops = &none;
    assert_int_equal(limefile_write_full(&source, "x", 1, 0), -EROFS);
}

TEST(test_partial_reads_before_an_error)
{
    struct bytes b = {0};
    struct faulty faulty;
    char buf[100];
    bytes_fill(&b, 'q', 100);
    faulty_init(&faulty, &b);
    faulty.short_by = 10;
    faulty.fail_at = 5;
    faulty.fail_for = 1;
    assert_int_equal(limefile_read_full(&faulty.source, buf, 100, 0), -EIO);
    assert_int_equal(limefile_read_full(&faulty.source, buf, 100, 50), 50);
    bytes_free(&b);
}

TEST(test_open)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(mkdir("dir", 0700), 0);
    assert_int_equal(limefile_open("missing", O_RDONLY), -ENOENT);
    assert_int_equal(limefile_open("fifo", O_RDONLY),
                     LIMEFILE_E_NOT_FILE); /* without blocking */
    assert_int_equal(limefile_open("fifo", O_RDWR), LIMEFILE_E_NOT_FILE);
    assert_int_equal(limefile_open("socket", O_RDONLY), LIMEFILE_E_NOT_FILE);
    assert_int_equal(limefile_open("dir", O_RDONLY), -EISDIR);
    assert_int_equal(limefile_open("dir", O_RDWR), -EISDIR);
    assert_int_equal(limefile_open("/dev/null", O_RDONLY), LIMEFILE_E_NOT_FILE);
    assert_int_equal(limefile_open("file/below", O_RDONLY), -ENOTDIR);
    int fd = limefile_open("file", O_RDONLY);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(limefile_check_fd(fd), 0);
    close(fd);
    assert_int_equal(limefile_check_fd(fd), -EBADF);
    assert_int_equal(limefile_check_fd(listener), LIMEFILE_E_NOT_FILE);
    close(listener);
}
