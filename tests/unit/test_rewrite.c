/* test_rewrite.c - inner records replaced and removed in real files; failures and kills */
#define _GNU_SOURCE
#include "edit.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- steps that can fail or kill the process: they replace libc's functions ---- */

static unsigned steps, fail_step;
static int fail_errno; /* 0: the step kills the process */
static bool no_tmpfile, no_sharing;

static bool fails(void)
{
    if (++steps != fail_step)
        return false;
    if (fail_errno == 0)
        raise(SIGKILL);
    errno = fail_errno;
    return true;
}

int openat(int directory, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, unsigned) : 0;
    va_end(args);
    if (no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, directory, path, flags, mode);
}

int fsync(int fd)
{
    return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

int linkat(int from, const char *old, int to, const char *new, int flags)
{
    return fails() ? -1 : (int)syscall(SYS_linkat, from, old, to, new, flags);
}

int renameat(int from, const char *old, int to, const char *new)
{
    return fails() ? -1 : (int)syscall(SYS_renameat, from, old, to, new);
}

int fchmod(int fd, mode_t mode)
{
    return fails() ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset)
{
    return fails() ? -1 : syscall(SYS_pwrite64, fd, data, n, offset);
}

ssize_t copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t n, unsigned flags)
{
    if (no_sharing) {
        errno = EXDEV;
        return -1;
    }
    return fails() ? -1 : syscall(SYS_copy_file_range, in, in_at, out, out_at, n, flags);
}

/* ---- a directory with a container for each test ---- */

static struct {
    char path[64];
    int directory, fd;
    int new_fd; /* of the rewritten container; or -1 */
    char name[NAME_MAX + 1];
    struct limefile_index *index;
    struct bytes start; /* the initial contents */
} place;

static struct bytes read_all(void)
{
    struct bytes b = {0};
    char buffer[4096];
    int fd = openat(place.directory, place.name, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;)
        bytes_add(&b, buffer, (size_t)n);
    close(fd);
    return b;
}

static int place_make(void **state)
{
    (void)state;
    strcpy(place.path, "/tmp/limefs-test-rewrite-XXXXXX");
    assert_non_null(mkdtemp(place.path));
    place.directory = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    strcpy(place.name, "c");
    return 0;
}

/* Fails if any file remains. */
static int place_remove(void **state)
{
    (void)state;
    close(place.directory);
    return rmdir(place.path);
}

#define TEST_IN_PLACE(name) TEST_WITH(name, place_make, place_remove)

static void place_fill(struct bytes b)
{
    struct limefile_fd file;
    place.fd =
        openat(place.directory, place.name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(place.fd >= 0);
    limefile_fd_init(&file, place.fd);
    assert_int_equal(limefile_write_full(&file.source, b.at, b.n, 0), 0);
    assert_int_equal(limefile_lock(place.fd), 0);
    place.index = index_of(&file.source);
    place.start = b;
    place.new_fd = -1;
}

static void place_empty(void)
{
    limefile_index_free(place.index);
    close(place.fd);
    if (place.new_fd >= 0)
        close(place.new_fd);
    bytes_free(&place.start);
    unlinkat(place.directory, place.name, 0);
}

/* Messages of three, one and two records; the second record is long. */
static void add_record(struct bytes *b, int i, size_t n)
{
    static const unsigned flags[] = {MB, 0, ME, MB | ME, MB, ME};
    char type[8];
    snprintf(type, sizeof type, "t%d", i + 1);
    bytes_record(b, type, n, 'a' + i, flags[i]);
}

static const size_t lengths[] = {5, 100000, 0, 13, 9000, 8};

static struct bytes six(void)
{
    struct bytes b = {0};
    for (int i = 0; i < 6; i++)
        add_record(&b, i, lengths[i]);
    return b;
}

static struct limefile_rewrite rewrite_of(uint64_t ordinal, struct limefile_record *record)
{
    assert_int_equal(limefile_index_get(place.index, ordinal, record), 0);
    return (struct limefile_rewrite){.dir_fd = place.directory,
                                     .name = place.name,
                                     .fd = place.fd,
                                     .index = place.index,
                                     .record = record};
}

static int rewrite(uint64_t ordinal, const struct limefile_chunk *pieces, size_t count)
{
    struct limefile_record record;
    struct limefile_rewrite to = rewrite_of(ordinal, &record);
    to.chunks = pieces;
    to.count = count;
    return limefile_rewrite(&to, &place.new_fd);
}

static void assert_file(const struct bytes *want)
{
    struct bytes is = read_all();
    assert_int_equal(is.n, want->n);
    if (want->n)
        assert_memory_equal(is.at, want->at, want->n);
    bytes_free(&is);
}

static void assert_is(struct bytes want)
{
    assert_file(&want);
    bytes_free(&want);
}

/* ---- tests ---- */

TEST_IN_PLACE(test_other_length)
{
    struct limefile_record second;
    for (int plain = 0; plain < 4; plain++)
        for (uint64_t ordinal = 1; ordinal <= 6; ordinal++) {
            no_sharing = plain & 1;
            no_tmpfile = plain & 2;
            place_fill(six());
            assert_int_equal(limefile_index_get(place.index, 2, &second), 0);
            struct limefile_chunk pieces[] = {
                {place.fd, second.data_offset + 10, 70001},
                {-1, 0, 5},
                {place.fd, second.data_offset, 3},
                {-1, 0, 0},
            };
            assert_int_equal(rewrite(ordinal, pieces, COUNT(pieces)), 0);
            struct bytes want = {0};
            for (int i = 0; i < 6; i++) {
                add_record(&want, i, i + 1u == ordinal ? 70009 : lengths[i]);
                if (i + 1u == ordinal) {
                    memset(want.at + want.n - 70009 - 7, 'b', 70009);
                    memset(want.at + want.n - 8 - 7, 0, 5);
                }
            }
            assert_is(want);
            assert_int_equal(limefile_lock(place.fd), 0);
            int other = openat(place.directory, place.name, O_RDWR | O_CLOEXEC);
            assert_int_equal(limefile_lock(other), -EBUSY); /* already locked */
            close(other);
            assert_int_equal(fcntl(place.new_fd, F_GETFL) & O_ACCMODE, O_RDWR);
            place_empty();
        }
    no_sharing = no_tmpfile = false;
}

TEST_IN_PLACE(test_no_data)
{
    struct bytes want = {0};
    place_fill(six());
    assert_int_equal(rewrite(2, (struct limefile_chunk[]){{-1, 0, 0}}, 0), 0);
    for (int i = 0; i < 6; i++)
        add_record(&want, i, i == 1 ? 0 : lengths[i]);
    assert_is(want);
    place_empty();
}

/* Records of 0, 1, 2 ... bytes, each in the stated message. */
static struct bytes in_messages(const unsigned *message, const unsigned *length, size_t n)
{
    struct bytes b = {0};
    for (size_t i = 0; i < n; i++) {
        bool mb = i == 0 || message[i] != message[i - 1];
        bool me = i + 1 == n || message[i] != message[i + 1];
        bytes_record(&b, "t", length[i], 't', (mb ? MB : 0) | (me ? ME : 0));
    }
    return b;
}

static void leave_out(unsigned *message, uint64_t ordinal)
{
    unsigned length[] = {0, 1, 2, 3, 4};
    struct bytes start = in_messages(message, length, 5);
    place_fill(start);
    assert_int_equal(rewrite(ordinal, NULL, 0), 0);
    for (uint64_t i = ordinal; i < 5; i++) {
        message[i - 1] = message[i];
        length[i - 1] = length[i];
    }
    struct bytes want = in_messages(message, length, 4);
    assert_is(want);
    place_empty();
}

TEST_IN_PLACE(test_leave_out)
{
    for (unsigned ends = 0; ends < 16; ends++) /* all divisions of five records into messages */
        for (uint64_t ordinal = 1; ordinal <= 5; ordinal++) {
            unsigned message[5] = {0};
            for (unsigned i = 1; i < 5; i++)
                message[i] = message[i - 1] + (ends >> (i - 1) & 1);
            leave_out(message, ordinal);
        }
}

/* ---- a new record ---- */

static int insert(uint64_t after, const char *type, const char *data)
{
    struct limefile_record record;
    struct limefile_new_record new = {type, strlen(type), data, strlen(data)};
    struct limefile_rewrite to = rewrite_of(after, &record);
    to.insert = &new;
    return limefile_rewrite(&to, &place.new_fd);
}

static void insert_behind(const unsigned *message, uint64_t after, bool cut)
{
    static const char data[] = "xxxxxxxxxxxxxxxxxxxxx";
    static const unsigned old[] = {5, 100000, 0, 13, 9001};
    struct bytes want = {0}, start = in_messages(message, old, 5);
    start.n -= cut ? 7 : 0; /* the last padding */
    place_fill(start);
    assert_int_equal(insert(after, "new", data), 0);
    for (unsigned i = 0; i < 5; i++) {
        bool here = i + 1 == after, begins = i == 0 || message[i - 1] != message[i];
        bool ends = i == 4 || message[i + 1] != message[i];
        bytes_record(&want, "t", old[i], 't', (begins ? MB : 0) | (ends && !here ? ME : 0));
        if (here)
            bytes_record(&want, "new", sizeof data - 1, 'x', ends ? ME : 0);
    }
    assert_is(want);
    place_empty();
}

TEST_IN_PLACE(test_insert)
{
    for (unsigned ends = 0; ends < 16; ends++)
        for (uint64_t after = 1; after <= 5; after++) {
            unsigned message[5] = {0};
            for (unsigned i = 1; i < 5; i++)
                message[i] = message[i - 1] + (ends >> (i - 1) & 1);
            insert_behind(message, after, false);
            insert_behind(message, after, true);
        }
}

TEST_IN_PLACE(test_insert_failures)
{
    int err = -1;
    unsigned seen = 0;
    for (unsigned step = 1; err || steps >= step; step++) {
        place_fill(six());
        steps = 0;
        fail_step = step;
        fail_errno = EDQUOT;
        err = insert(3, "new", "data"); /* the end of its message */
        fail_step = 0;
        assert_true(err == 0 || err == -EDQUOT);
        if (place.new_fd < 0)
            assert_file(&place.start);
        seen += err != 0;
        place_empty();
    }
    assert_true(seen >= 8);
    place_fill(six());
    char longest[LIMEFILE_TYPE_BYTES + 1] = {0};
    memset(longest, 't', LIMEFILE_TYPE_BYTES);
    assert_int_equal(insert(1, "", "data"), LIMEFILE_E_TYPE);
    assert_int_equal(insert(1, longest, "data"), LIMEFILE_E_TYPE);
    assert_file(&place.start);
    place_empty();
}

TEST_IN_PLACE(test_the_only_record)
{
    struct bytes start = {0}, want = {0};
    bytes_record(&start, "t", 3, 't', MB | ME);
    bytes_reserve(&want, 1);
    place_fill(start);
    assert_int_equal(rewrite(1, NULL, 0), 0);
    assert_is(want);
    place_empty();
}

TEST_IN_PLACE(test_names)
{
    char longest[NAME_MAX + 1];
    memset(longest, 'n', NAME_MAX);
    longest[NAME_MAX] = '\0';
    const char *names[] = {"-rf", ".hidden", "a b\n\t*%s\xc3\xbc\xff'\"\\", ".c.limefs-new",
                           longest};
    for (size_t i = 0; i < COUNT(names); i++) {
        strcpy(place.name, names[i]);
        place_fill(six());
        assert_int_equal(rewrite(2, NULL, 0), 0);
        place_empty();
    }
}

TEST_IN_PLACE(test_attributes_of_the_file)
{
    struct stat st;
    char value[16];
    place_fill(six());
    if (geteuid() == 0)
        assert_int_equal(fchown(place.fd, 1234, 5678), 0);
    assert_int_equal(fchmod(place.fd, 0751), 0);
    bool attributes = fsetxattr(place.fd, "user.test", "some\0value", 10, 0) == 0;
    assert_true(attributes || errno == ENOTSUP);
    assert_int_equal(rewrite(2, NULL, 0), 0);
    assert_int_equal(fstat(place.new_fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0751);
    assert_int_equal(st.st_uid, geteuid() == 0 ? 1234 : geteuid());
    assert_int_equal(st.st_gid, geteuid() == 0 ? 5678 : getegid());
    assert_int_equal(st.st_nlink, 1);
    if (attributes) {
        assert_int_equal(fgetxattr(place.new_fd, "user.test", value, sizeof value), 10);
        assert_memory_equal(value, "some\0value", 10);
    }
    place_empty();
}

TEST_IN_PLACE(test_other_file_of_that_name)
{
    place_fill(six());
    assert_int_equal(renameat(place.directory, "c", place.directory, "d"), 0);
    assert_int_equal(rewrite(2, NULL, 0), -ENOENT);
    assert_int_equal(symlinkat("d", place.directory, "c"), 0);
    assert_int_equal(rewrite(2, NULL, 0), -ESTALE);
    assert_int_equal(place.new_fd, -1);
    unlinkat(place.directory, "c", 0);
    close(openat(place.directory, "c", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(rewrite(2, NULL, 0), -ESTALE);
    unlinkat(place.directory, "d", 0);
    place_empty();
}

/* In a directory where all users may create files, the temporary name may be in use. */
TEST_IN_PLACE(test_other_file_of_the_temporary_name)
{
    struct stat st;
    if (geteuid() != 0)
        skip();
    place_fill(six());
    int fd =
        openat(place.directory, ".c.limefs-new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(fchown(fd, 4711, 4711), 0);
    close(fd);
    close(openat(place.directory, ".c.limefs-new1", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                 0600));
    assert_int_equal(rewrite(2, NULL, 0), 0);
    assert_int_equal(fstatat(place.directory, ".c.limefs-new", &st, 0), 0);
    assert_int_equal(st.st_uid, 4711);
    assert_int_equal(unlinkat(place.directory, ".c.limefs-new", 0), 0);
    /* If the rest of a crash remains, place_remove() fails. */
    place_empty();
}

TEST_IN_PLACE(test_refused)
{
    struct limefile_record record;
    place_fill(six());
    struct limefile_chunk much[] = {{-1, 0, INT64_MAX - 100}, {-1, 0, INT64_MAX}};
    assert_int_equal(rewrite(2, much, 1), LIMEFILE_E_LENGTH);
    assert_int_equal(rewrite(2, much, 2), LIMEFILE_E_LENGTH);
    struct limefile_chunk beyond[] = {{place.fd, place.start.n - 10, 11}};
    assert_int_equal(rewrite(2, beyond, 1), LIMEFILE_E_SHRUNK);
    struct limefile_rewrite to = rewrite_of(2, &record);
    record.header_offset += 8;
    assert_int_equal(limefile_rewrite(&to, &place.new_fd), LIMEFILE_E_NO_RECORD);
    assert_file(&place.start);
    place_empty();
}

static int rewrite_failing(unsigned step, int code)
{
    struct limefile_chunk pieces[] = {{place.fd, 0, 1000}, {-1, 0, 3}};
    steps = 0;
    fail_step = step;
    fail_errno = code;
    int err = rewrite(2, pieces, 2);
    fail_step = 0;
    return err;
}

/* Returns the container that rewrite_failing() writes without a failure. */
static struct bytes rewritten(void)
{
    struct bytes start = six(), want = {0};
    add_record(&want, 0, lengths[0]);
    bytes_header(&want, "t2", 1003, 0);
    bytes_add(&want, start.at, 1000);
    bytes_fill(&want, 0, 3 + 5);
    for (int i = 2; i < 6; i++)
        add_record(&want, i, lengths[i]);
    bytes_free(&start);
    return want;
}

TEST_IN_PLACE(test_failures)
{
    struct bytes want = rewritten();
    int err = -1;
    unsigned seen = 0;
    for (unsigned step = 1; err || steps >= step; step++) {
        place_fill(six());
        err = rewrite_failing(step, EDQUOT);
        assert_true(err == 0 || err == -EDQUOT);
        assert_file(place.new_fd < 0 ? &place.start : &want);
        seen += err != 0;
        place_empty();
    }
    assert_true(seen >= 5);
    bytes_free(&want);
}

static int count_others(void)
{
    int n = 0;
    DIR *dir = fdopendir(openat(place.directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, place.name);
    closedir(dir);
    return n;
}

/* A kill at each step leaves the old or the new container, and the next call cleans up. */
TEST_IN_PLACE(test_kills)
{
    struct bytes want = rewritten();
    int status = 0, left_over = 0;
    bool was_new = false;
    for (unsigned step = 1; step == 1 || WIFSIGNALED(status); step++) {
        place_fill(six());
        pid_t child = fork();
        if (child == 0)
            _exit(rewrite_failing(step, 0) != 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        struct bytes is = read_all();
        assert_true(same_bytes(&is, &place.start) || same_bytes(&is, &want));
        assert_true(!was_new || same_bytes(&is, &want));
        was_new = same_bytes(&is, &want);
        bytes_free(&is);
        left_over += count_others();
        assert_true(!was_new || count_others() == 0);
        if (!was_new) {
            assert_int_equal(rewrite_failing(0, 0), 0);
            assert_file(&want);
        }
        assert_int_equal(count_others(), 0);
        place_empty();
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0 && was_new);
    assert_int_equal(left_over, 1); /* between the link and the rename */
    bytes_free(&want);
}

/* In a file system of 256 KiB in a namespace of its own. */
static int run_out_of_space(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("limefs-test", place.path, "tmpfs", 0, "size=256k") != 0)
        return 77;
    place.directory = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    place_fill(six());
    struct limefile_chunk much[] = {{place.fd, 0, 100000}, {place.fd, 0, 50000}};
    assert_int_equal(rewrite(1, much, 2), -ENOSPC);
    assert_file(&place.start);
    assert_int_equal(count_others(), 0);
    assert_int_equal(rewrite(2, NULL, 0), 0);
    return 0;
}

TEST_IN_PLACE(test_no_space)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(run_out_of_space());
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
