/* test_descriptor.c - files opened below a directory, and reopened */
#define _GNU_SOURCE
#include "unit.h"
#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static char outside[] = "/tmp/test_descriptor-XXXXXX";

static void make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, path, 1), 1);
    close(fd);
}

/* The file secret is outside of tree/; links lead to both. */
static int enter_directory(void **state)
{
    (void)state;
    if (!mkdtemp(outside) || chdir(outside) != 0)
        return -1;
    make_file("secret");
    if (mkdir("tree", 0700) || mkdir("tree/a", 0700) || mkdir("tree/a/b", 0700))
        return -1;
    make_file("tree/a/b/file");
    return symlink("../secret", "tree/out") || symlink("a", "tree/in") ||
           symlink("file", "tree/a/b/link");
}

static int leave_directory(void **state)
{
    (void)state;
    unlink("tree/a/b/file");
    unlink("tree/a/b/link");
    unlink("tree/out");
    unlink("tree/in");
    unlink("secret");
    rmdir("tree/a/b");
    rmdir("tree/a");
    rmdir("tree");
    return chdir("/") == 0 ? rmdir(outside) : -1;
}

AROUND_ALL(enter_directory, leave_directory)

typedef int open_fn(int directory, const char *path, int flags);

static void exercise(open_fn *open_it)
{
    static const struct {
        const char *path;
        int flags, code;
    } rows[] = {
        {"a/b/file", O_RDONLY, 0},
        {"a//b/./file", O_RDONLY, 0},
        {"a/b", O_RDONLY | O_DIRECTORY, 0},
        {"a/b/", O_PATH, 0},
        {".", O_PATH, 0},
        {"a/none", O_RDONLY, -ENOENT},
        {"none/b", O_RDONLY, -ENOENT},
        {"", O_RDONLY, -ENOENT},
        {"a/b/file/x", O_RDONLY, -ENOTDIR},
        {"out", O_RDONLY, -ELOOP},
        {"in/b/file", O_RDONLY, -ELOOP},
        {"in/b/file", O_PATH, -ELOOP},
        {"a/b/link", O_RDWR, -ELOOP},
        {"a/b/link", O_PATH, 0}, /* the link itself */
        {"..", O_PATH, -EXDEV},
        {"../secret", O_RDONLY, -EXDEV},
        {"/etc/passwd", O_RDONLY, -EXDEV},
    };
    int directory = open("tree", O_PATH | O_CLOEXEC);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int fd = open_it(directory, rows[i].path, rows[i].flags);
        if (fd >= 0)
            assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        if ((fd < 0 ? fd : 0) != rows[i].code)
            fail_msg("%s: %d", rows[i].path, fd);
        if (fd >= 0)
            close(fd);
    }
    close(directory);
}

TEST(test_open_beneath)
{
    exercise(limefile_open_beneath);
}

TEST(test_walk_beneath)
{
    char name[NAME_MAX + 3];
    exercise(limefile_walk_beneath);
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(limefile_walk_beneath(AT_FDCWD, name, O_RDONLY), -ENAMETOOLONG);
}

/* limefile_reopen() opens the same file even if its name leads to another one. */
TEST(test_reopen)
{
    struct stat before, after;
    char path[LIMEFILE_FD_PATH_MAX];
    int fd = open("tree/a/b/file", O_PATH | O_CLOEXEC);
    assert_int_equal(fstat(fd, &before), 0);
    assert_int_equal(rename("tree/a/b/file", "tree/a/b/old"), 0);
    assert_int_equal(symlink("../../../secret", "tree/a/b/file"), 0);
    int again = limefile_reopen(fd, O_RDWR);
    assert_true(again >= 0);
    assert_int_equal(fstat(again, &after), 0);
    assert_true(before.st_dev == after.st_dev && before.st_ino == after.st_ino);
    assert_int_equal(fcntl(again, F_GETFL) & O_ACCMODE, O_RDWR);
    assert_int_equal(fcntl(again, F_GETFD), FD_CLOEXEC);
    limefile_fd_path(fd, path);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(fstat(fd, &after), 0);
    assert_int_equal(after.st_mode & 07777, 0640);
    close(again);
    close(fd);
    assert_int_equal(rename("tree/a/b/old", "tree/a/b/file"), 0);
    assert_int_equal(limefile_reopen(-1, O_RDONLY), -ENOENT);
}

static int leased;

static void release_lease(int number)
{
    (void)number;
    fcntl(leased, F_SETLEASE, F_UNLCK);
}

/* open() waits for a lease that its holder releases, and fails for others. */
TEST(test_leases)
{
    leased = open("secret", O_RDONLY | O_CLOEXEC);
    signal(SIGIO, release_lease);
    if (fcntl(leased, F_SETLEASE, F_RDLCK) != 0)
        skip();
    int fd = limefile_open_at(AT_FDCWD, "secret", O_WRONLY | O_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
    signal(SIGIO, SIG_IGN);
    assert_int_equal(fcntl(leased, F_SETLEASE, F_RDLCK), 0);
    assert_int_equal(limefile_open_at(AT_FDCWD, "secret", O_WRONLY | O_NONBLOCK, 0), -EAGAIN);
    assert_true((fd = limefile_open_at(AT_FDCWD, "secret", O_RDONLY | O_NONBLOCK, 0)) >= 0);
    close(fd);
    close(leased);
}
