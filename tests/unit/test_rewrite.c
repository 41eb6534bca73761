/* test_rewrite.c - inner records replaced and removed in real files; failures and kills on the
 * way */
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

/* ---- steps that can fail or be the last: these stand before libc's ---- */

static unsigned steps, fail_step;
static int fail_errno; /* 0: the process dies there */
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

int openat(int folder, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, unsigned) : 0;
    va_end(args);
    if (no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, folder, path, flags, mode);
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

/* ---- a folder with a container ---- */

struct place {
    char path[64];
    int folder, fd;
    char name[NAME_MAX + 1];
    struct limefile_index *index;
    struct bytes old;
};

static struct bytes read_all(int folder, const char *name)
{
    struct bytes b = {0};
    char buffer[4096];
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;)
        bytes_add(&b, buffer, (size_t)n);
    close(fd);
    return b;
}

static void place_make(struct place *p, const char *name)
{
    strcpy(p->path, "/tmp/limefs-test-rewrite-XXXXXX");
    assert_non_null(mkdtemp(p->path));
    p->folder = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(p->name, sizeof p->name, "%s", name);
}

static void place_fill(struct place *p, const struct bytes *b)
{
    struct limefile_fd file;
    p->fd = openat(p->folder, p->name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(p->fd >= 0);
    limefile_fd_init(&file, p->fd);
    assert_int_equal(limefile_write_full(&file.source, b->at, b->n, 0), 0);
    assert_int_equal(limefile_lock(p->fd), 0);
    p->index = index_of(&file.source);
    bytes_reserve(&p->old, b->n);
    p->old.n = 0;
    bytes_add(&p->old, b->at, b->n);
}

static void place_empty(struct place *p)
{
    limefile_index_free(p->index);
    close(p->fd);
    unlinkat(p->folder, p->name, 0);
    bytes_free(&p->old);
}

static void place_remove(struct place *p)
{
    assert_int_equal(rmdir(p->path), 0); /* nothing is left over */
    close(p->folder);
}

/* A message of three, one of one, one of two; the second record is long. */
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

static int rewrite(struct place *p, uint64_t ordinal, const struct limefile_piece *pieces,
                   size_t count, int *new_fd)
{
    struct limefile_record record;
    assert_int_equal(limefile_index_get(p->index, ordinal, &record), 0);
    return limefile_rewrite(p->folder, p->name, p->fd, &record, p->index, pieces, count, NULL,
                            NULL, new_fd);
}

static void assert_file(struct place *p, const struct bytes *want)
{
    struct bytes is = read_all(p->folder, p->name);
    assert_int_equal(is.n, want->n);
    assert_memory_equal(is.at, want->at, want->n);
    bytes_free(&is);
}

/* ---- tests ---- */

TEST(test_other_length)
{
    struct place p = {0};
    struct bytes start = six();
    struct limefile_record second;
    place_make(&p, "c");
    for (int plain = 0; plain < 4; plain++)
        for (uint64_t ordinal = 1; ordinal <= 6; ordinal++) {
            no_sharing = plain & 1;
            no_tmpfile = plain & 2;
            place_fill(&p, &start);
            assert_int_equal(limefile_index_get(p.index, 2, &second), 0);
            struct limefile_piece pieces[] = {
                {p.fd, second.data_offset + 10, 70001},
                {-1, 0, 5},
                {p.fd, second.data_offset, 3},
                {-1, 0, 0},
            };
            int new_fd;
            assert_int_equal(rewrite(&p, ordinal, pieces, COUNT(pieces), &new_fd), 0);
            struct bytes want = {0};
            for (int i = 0; i < 6; i++) {
                add_record(&want, i, i + 1u == ordinal ? 70009 : lengths[i]);
                if (i + 1u == ordinal) {
                    memset(want.at + want.n - 70009 - 7, 'b', 70009);
                    memset(want.at + want.n - 8 - 7, 0, 5);
                }
            }
            assert_file(&p, &want);
            assert_int_equal(limefile_lock(p.fd), 0);
            int other = openat(p.folder, p.name, O_RDWR | O_CLOEXEC);
            assert_int_equal(limefile_lock(other), -EBUSY); /* it is locked already */
            close(other);
            assert_int_equal(fcntl(new_fd, F_GETFL) & O_ACCMODE, O_RDWR);
            bytes_free(&want);
            close(new_fd);
            place_empty(&p);
        }
    no_sharing = no_tmpfile = false;
    place_remove(&p);
    bytes_free(&start);
}

TEST(test_no_data)
{
    struct place p = {0};
    struct bytes start = six(), want = {0};
    int new_fd;
    place_make(&p, "c");
    place_fill(&p, &start);
    assert_int_equal(rewrite(&p, 2, (struct limefile_piece[]){{-1, 0, 0}}, 0, &new_fd), 0);
    for (int i = 0; i < 6; i++)
        add_record(&want, i, i == 1 ? 0 : lengths[i]);
    assert_file(&p, &want);
    close(new_fd);
    place_empty(&p);
    place_remove(&p);
    bytes_free(&want);
    bytes_free(&start);
}

/* Records of 0, 1, 2 ... bytes; each is in the message that is said. */
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

static void leave_out(struct place *p, unsigned *message, uint64_t ordinal)
{
    unsigned length[] = {0, 1, 2, 3, 4};
    struct bytes start = in_messages(message, length, 5);
    int new_fd;
    place_fill(p, &start);
    assert_int_equal(rewrite(p, ordinal, NULL, 0, &new_fd), 0);
    for (uint64_t i = ordinal; i < 5; i++) {
        message[i - 1] = message[i];
        length[i - 1] = length[i];
    }
    struct bytes want = in_messages(message, length, 4);
    assert_file(p, &want);
    close(new_fd);
    place_empty(p);
    bytes_free(&start);
    bytes_free(&want);
}

TEST(test_leave_out)
{
    struct place p = {0};
    place_make(&p, "c");
    for (unsigned ends = 0; ends < 16; ends++) /* all ways to make messages of five records */
        for (uint64_t ordinal = 1; ordinal <= 5; ordinal++) {
            unsigned message[5] = {0};
            for (unsigned i = 1; i < 5; i++)
                message[i] = message[i - 1] + (ends >> (i - 1) & 1);
            leave_out(&p, message, ordinal);
        }
    place_remove(&p);
}

/* ---- a new record ---- */

static int insert(struct place *p, uint64_t after, const char *type, const char *data,
                  int *new_fd)
{
    struct limefile_record record;
    struct limefile_insert new = {type, strlen(type), data, strlen(data)};
    assert_int_equal(limefile_index_get(p->index, after, &record), 0);
    return limefile_rewrite_insert(p->folder, p->name, p->fd, &record, p->index, &new, NULL,
                                   NULL, new_fd);
}

static void insert_behind(struct place *p, const unsigned *message, uint64_t after, bool cut)
{
    static const char data[] = "xxxxxxxxxxxxxxxxxxxxx";
    static const unsigned old[] = {5, 100000, 0, 13, 9001};
    struct bytes want = {0}, start = in_messages(message, old, 5);
    int new_fd;
    start.n -= cut ? 7 : 0; /* the last padding */
    place_fill(p, &start);
    assert_int_equal(insert(p, after, "new", data, &new_fd), 0);
    for (unsigned i = 0; i < 5; i++) {
        bool here = i + 1 == after, begins = i == 0 || message[i - 1] != message[i];
        bool ends = i == 4 || message[i + 1] != message[i];
        bytes_record(&want, "t", old[i], 't', (begins ? MB : 0) | (ends && !here ? ME : 0));
        if (here)
            bytes_record(&want, "new", sizeof data - 1, 'x', ends ? ME : 0);
    }
    assert_file(p, &want);
    close(new_fd);
    place_empty(p);
    bytes_free(&start);
    bytes_free(&want);
}

TEST(test_insert)
{
    struct place p = {0};
    place_make(&p, "c");
    for (unsigned ends = 0; ends < 16; ends++)
        for (uint64_t after = 1; after <= 5; after++) {
            unsigned message[5] = {0};
            for (unsigned i = 1; i < 5; i++)
                message[i] = message[i - 1] + (ends >> (i - 1) & 1);
            insert_behind(&p, message, after, false);
            insert_behind(&p, message, after, true);
        }
    place_remove(&p);
}

TEST(test_insert_failures)
{
    struct place p = {0};
    struct bytes start = six();
    int err = -1, new_fd;
    unsigned seen = 0;
    place_make(&p, "c");
    for (unsigned step = 1; err || steps >= step; step++) {
        place_fill(&p, &start);
        steps = 0;
        fail_step = step;
        fail_errno = EDQUOT;
        err = insert(&p, 3, "new", "data", &new_fd); /* the end of its message */
        fail_step = 0;
        assert_true(err == 0 || err == -EDQUOT);
        if (new_fd < 0)
            assert_file(&p, &start);
        else
            close(new_fd);
        seen += err != 0;
        place_empty(&p);
    }
    assert_true(seen >= 8);
    place_fill(&p, &start);
    char longest[LIMEFILE_TYPE_BYTES + 1] = {0};
    memset(longest, 't', LIMEFILE_TYPE_BYTES);
    assert_int_equal(insert(&p, 1, "", "data", &new_fd), LIMEFILE_E_TYPE);
    assert_int_equal(insert(&p, 1, longest, "data", &new_fd), LIMEFILE_E_TYPE);
    assert_file(&p, &start);
    place_empty(&p);
    place_remove(&p);
    bytes_free(&start);
}

TEST(test_the_only_record)
{
    struct place p = {0};
    struct bytes start = {0}, want = {0};
    int new_fd;
    place_make(&p, "c");
    bytes_record(&start, "t", 3, 't', MB | ME);
    bytes_reserve(&want, 1);
    place_fill(&p, &start);
    assert_int_equal(rewrite(&p, 1, NULL, 0, &new_fd), 0);
    assert_file(&p, &want);
    close(new_fd);
    place_empty(&p);
    place_remove(&p);
    bytes_free(&start);
    bytes_free(&want);
}

TEST(test_names)
{
    char longest[NAME_MAX + 1];
    memset(longest, 'n', NAME_MAX);
    longest[NAME_MAX] = '\0';
    const char *names[] = {"-rf", ".hidden", "a b\n\t*%s\xc3\xbc\xff'\"\\", ".c.limefs-new",
                           longest};
    struct bytes start = six();
    for (size_t i = 0; i < COUNT(names); i++) {
        struct place p = {0};
        int new_fd;
        place_make(&p, names[i]);
        place_fill(&p, &start);
        assert_int_equal(rewrite(&p, 2, NULL, 0, &new_fd), 0);
        close(new_fd);
        place_empty(&p);
        place_remove(&p);
    }
    bytes_free(&start);
}

TEST(test_what_belongs_to_the_file)
{
    struct place p = {0};
    struct bytes start = six();
    struct stat st;
    char value[16];
    int new_fd;
    place_make(&p, "c");
    place_fill(&p, &start);
    if (geteuid() == 0)
        assert_int_equal(fchown(p.fd, 1234, 5678), 0);
    assert_int_equal(fchmod(p.fd, 0751), 0);
    bool attributes = fsetxattr(p.fd, "user.test", "some\0value", 10, 0) == 0;
    assert_true(attributes || errno == ENOTSUP);
    assert_int_equal(rewrite(&p, 2, NULL, 0, &new_fd), 0);
    assert_int_equal(fstat(new_fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0751);
    assert_int_equal(st.st_uid, geteuid() == 0 ? 1234 : geteuid());
    assert_int_equal(st.st_gid, geteuid() == 0 ? 5678 : getegid());
    assert_int_equal(st.st_nlink, 1);
    if (attributes) {
        assert_int_equal(fgetxattr(new_fd, "user.test", value, sizeof value), 10);
        assert_memory_equal(value, "some\0value", 10);
    }
    close(new_fd);
    place_empty(&p);
    place_remove(&p);
    bytes_free(&start);
}

TEST(test_other_file_of_that_name)
{
    struct place p = {0};
    struct bytes start = six();
    int new_fd;
    place_make(&p, "c");
    place_fill(&p, &start);
    assert_int_equal(renameat(p.folder, "c", p.folder, "d"), 0);
    assert_int_equal(rewrite(&p, 2, NULL, 0, &new_fd), -ENOENT);
    assert_int_equal(symlinkat("d", p.folder, "c"), 0);
    assert_int_equal(rewrite(&p, 2, NULL, 0, &new_fd), -ESTALE);
    assert_int_equal(new_fd, -1);
    unlinkat(p.folder, "c", 0);
    close(openat(p.folder, "c", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(rewrite(&p, 2, NULL, 0, &new_fd), -ESTALE);
    unlinkat(p.folder, "d", 0);
    place_empty(&p);
    place_remove(&p);
    bytes_free(&start);
}

/* In a folder where all may make files: what has the temporary name may be another user's. */
TEST(test_other_file_of_the_temporary_name)
{
    struct place p = {0};
    struct bytes start = six();
    struct stat st;
    int new_fd;
    if (geteuid() != 0)
        skip();
    place_make(&p, "c");
    place_fill(&p, &start);
    int fd = openat(p.folder, ".c.limefs-new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(fchown(fd, 4711, 4711), 0);
    close(fd);
    close(openat(p.folder, ".c.limefs-new1", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    assert_int_equal(rewrite(&p, 2, NULL, 0, &new_fd), 0);
    close(new_fd);
    assert_int_equal(fstatat(p.folder, ".c.limefs-new", &st, 0), 0);
    assert_int_equal(st.st_uid, 4711);
    assert_int_equal(unlinkat(p.folder, ".c.limefs-new", 0), 0); /* the other one, a crash's, */
    place_empty(&p);
    place_remove(&p); /* is gone */
    bytes_free(&start);
}

TEST(test_refused)
{
    struct place p = {0};
    struct bytes start = six();
    struct limefile_record record;
    int new_fd;
    place_make(&p, "c");
    place_fill(&p, &start);
    struct limefile_piece much[] = {{-1, 0, INT64_MAX - 100}, {-1, 0, INT64_MAX}};
    assert_int_equal(rewrite(&p, 2, much, 1, &new_fd), LIMEFILE_E_LENGTH);
    assert_int_equal(rewrite(&p, 2, much, 2, &new_fd), LIMEFILE_E_LENGTH);
    struct limefile_piece beyond[] = {{p.fd, start.n - 10, 11}};
    assert_int_equal(rewrite(&p, 2, beyond, 1, &new_fd), LIMEFILE_E_SHRUNK);
    assert_int_equal(limefile_index_get(p.index, 2, &record), 0);
    record.header_offset += 8;
    assert_int_equal(limefile_rewrite(p.folder, p.name, p.fd, &record, p.index, NULL, 0, NULL,
                                      NULL, &new_fd),
                     LIMEFILE_E_NO_RECORD);
    assert_file(&p, &start);
    place_empty(&p);
    place_remove(&p);
    bytes_free(&start);
}

static int rewrite_failing(struct place *p, unsigned step, int code, int *new_fd)
{
    struct limefile_piece pieces[] = {{p->fd, 0, 1000}, {-1, 0, 3}};
    steps = 0;
    fail_step = step;
    fail_errno = code;
    int err = rewrite(p, 2, pieces, 2, new_fd);
    fail_step = 0;
    return err;
}

/* What rewrite_failing() makes when nothing fails. */
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

TEST(test_failures)
{
    struct bytes start = six(), want = rewritten();
    struct place p = {0};
    int err = -1, new_fd;
    unsigned seen = 0;
    place_make(&p, "c");
    for (unsigned step = 1; err || steps >= step; step++) {
        place_fill(&p, &start);
        err = rewrite_failing(&p, step, EDQUOT, &new_fd);
        assert_true(err == 0 || err == -EDQUOT);
        assert_file(&p, new_fd < 0 ? &start : &want);
        seen += err != 0;
        if (new_fd >= 0)
            close(new_fd);
        place_empty(&p);
    }
    assert_true(seen >= 5);
    place_remove(&p);
    bytes_free(&start);
    bytes_free(&want);
}

static int count_others(const struct place *p)
{
    int n = 0;
    DIR *dir = fdopendir(openat(p->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, p->name);
    closedir(dir);
    return n;
}

/* Killed at each step: the old or the new container, whole, and the next call cleans up. */
TEST(test_kills)
{
    struct bytes start = six(), want = rewritten();
    struct place p = {0};
    int status = 0, new_fd, left_over = 0;
    bool was_new = false;
    place_make(&p, "c");
    for (unsigned step = 1; step == 1 || WIFSIGNALED(status); step++) {
        place_fill(&p, &start);
        pid_t child = fork();
        if (child == 0)
            _exit(rewrite_failing(&p, step, 0, &new_fd) != 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        struct bytes is = read_all(p.folder, p.name);
        assert_true(same_bytes(&is, &start) || same_bytes(&is, &want));
        assert_true(!was_new || same_bytes(&is, &want));
        was_new = same_bytes(&is, &want);
        bytes_free(&is);
        left_over += count_others(&p);
        assert_true(!was_new || count_others(&p) == 0);
        if (!was_new) {
            assert_int_equal(rewrite_failing(&p, 0, 0, &new_fd), 0);
            assert_file(&p, &want);
            close(new_fd);
        }
        assert_int_equal(count_others(&p), 0);
        place_empty(&p);
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0 && was_new);
    assert_int_equal(left_over, 1); /* between the link and the rename */
    place_remove(&p);
    bytes_free(&start);
    bytes_free(&want);
}

/* In a namespace of its own, in a file system of 256 KiB. */
static int run_out_of_space(struct place *p)
{
    struct bytes start = six();
    int new_fd;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("limefs-test", p->path, "tmpfs", 0, "size=256k") != 0)
        return 77;
    p->folder = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    place_fill(p, &start);
    struct limefile_piece much[] = {{p->fd, 0, 100000}, {p->fd, 0, 50000}};
    assert_int_equal(rewrite(p, 1, much, 2, &new_fd), -ENOSPC);
    assert_file(p, &start);
    assert_int_equal(count_others(p), 0);
    assert_int_equal(rewrite(p, 2, NULL, 0, &new_fd), 0);
    return 0;
}

TEST(test_no_space)
{
    struct place p = {0};
    int status;
    place_make(&p, "c");
    pid_t child = fork();
    if (child == 0)
        _exit(run_out_of_space(&p));
    assert_int_equal(waitpid(child, &status, 0), child);
    place_remove(&p);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
