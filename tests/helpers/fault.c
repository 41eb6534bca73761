/*
 * fault.c - make one call of the daemon, a rank or lime fail in tests (tests/lib/faults.py)
 *
 * Preloaded (LD_PRELOAD) into all processes of a mount. Only calls on files and paths inside
 * FAULT_FOLDER count: those on the container and its temporary files, but none of libfuse, MPI
 * or the window. FAULT_CONTROL is a file with a struct control, which the test and these
 * processes map.
 *
 * FAULT_LATER: seconds by which the clock of the processes is ahead. FAULT_NO_LINKS, if set:
 * the file system has no hard links. FAULT_FILE_SYSTEM: its type (statfs(2)).
 * FAULT_DIRECT_SECONDS: pread() with O_DIRECT takes longer by that.
 *
 * Calls that bypass libc can't fail here: io_submit() and io_uring, which limefs does not use,
 * and calls inside glibc, such as those of aio_write().
 */
#undef _FILE_OFFSET_BITS /* both names of each function are defined here */
#define _GNU_SOURCE
#include "real.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define CALLS(X)       \
    X(pread)           \
    X(preadv)          \
    X(pwrite)          \
    X(pwritev)         \
    X(read)            \
    X(write)           \
    X(fsync)           \
    X(fdatasync)       \
    X(sync_file_range) \
    X(ftruncate)       \
    X(futimens)        \
    X(fallocate)       \
    X(copy_file_range) \
    X(open)            \
    X(openat)          \
    X(openat2)         \
    X(mkostemp)        \
    X(linkat)          \
    X(renameat)        \
    X(renameat2)       \
    X(unlink)          \
    X(unlinkat)        \
    X(fchmod)          \
    X(fchown)          \
    X(fchownat)        \
    X(flistxattr)      \
    X(fgetxattr)       \
    X(fsetxattr)       \
    X(stat)            \
    X(fstat)           \
    X(fstatat)         \
    X(statx)           \
    X(cachestat)       \
    X(lock)            \
    X(dup)             \
    X(close)           \
    X(readdir)

enum call {
#define X(name) CALL_##name,
    CALLS(X)
#undef X
        CALL_COUNT
};

static const char *const names[] = {
#define X(name) #name,
    CALLS(X)
#undef X
};

enum how {
    HOW_FAIL,   /* does nothing and fails */
    HOW_SHORT,  /* does half of the bytes and returns their number */
    HOW_TORN,   /* does half of the bytes and fails */
    HOW_HANG,   /* waits until the test disarms the fault, then does the call */
    HOW_RENAME, /* renames or exchanges two names, then does the call */
    HOW_CHANGE, /* changes a byte of a file, then does the call */
};

#define PROCESS_ANY (-2)

/* tests/lib/faults.py has the same layout. */
struct control {
    char call[24];   /* the failing call; "*": any */
    int32_t process; /* 0: the daemon, 1 + r: rank r, -1: lime, -2: any */
    int32_t code;    /* errno */
    int32_t how;
    int32_t lasts;   /* later calls fail, too */
    uint64_t nth;    /* number of the failing call, from 1; 0: none */
    uint64_t struck; /* number of faults so far */
    uint64_t total;  /* number of calls of all kinds */
    struct {
        char names[2][512];
        int64_t flags; /* of renameat2() */
    } rename;
    struct {
        char name[24];
        uint64_t count;
    } calls[64];
};

static struct control *control;
static const char *directory;
static size_t directory_len;
static int32_t this_process;

/* The supervisor is called limefs, too, but accesses no container. */
static bool is_counted_program(int32_t *process)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    rank = rank ? rank : getenv("PMI_RANK"); /* MPICH */
    if (strcmp(program_invocation_short_name, "limefs") == 0)
        *process = 0;
    else if (rank && strcmp(program_invocation_short_name, "limefs-io") == 0)
        *process = 1 + atoi(rank);
    else if (strcmp(program_invocation_short_name, "lime") == 0)
        *process = -1;
    else
        return false;
    return true;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FAULT_CONTROL");
    directory = getenv("FAULT_FOLDER");
    if (!path || !directory || !is_counted_program(&this_process))
        return;
    directory_len = strlen(directory);
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    void *map =
        fd < 0 ? MAP_FAILED
               : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
    if (map == MAP_FAILED)
        abort(); /* without faults the test would test nothing */
    syscall(SYS_close, fd);
    struct control *found = map;
    for (int i = 0; i < CALL_COUNT; i++)
        strcpy(found->calls[i].name, names[i]);
    control = found;
}

/* ---- which files count ---- */

static bool is_inside(const char *path)
{
    return strncmp(path, directory, directory_len) == 0 &&
           (path[directory_len] == '/' || path[directory_len] == '\0');
}

static bool counts(int fd)
{
    char link[64], path[PATH_MAX];
    if (!control || fd < 0)
        return false;
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    errno = before;
    if (n < 0)
        return false;
    path[n] = '\0';
    return is_inside(path);
}

static bool path_counts(int dir, const char *path)
{
    int fd;
    if (!control)
        return false;
    if (sscanf(path, "/proc/self/fd/%d", &fd) == 1)
        return counts(fd);
    return path[0] == '/' ? is_inside(path) : counts(dir);
}

/* ---- faults ---- */

/* Renames as root, whatever the thread's fsuid is, and renames back every other time. Two
 * threads can do this in the wrong order, so renaming back never replaces a file. */
static void rename_once(void)
{
    int before = errno;
    int back = __atomic_add_fetch(&control->struck, 1, __ATOMIC_SEQ_CST) % 2 == 0;
    unsigned flags = (unsigned)control->rename.flags;
    if (back && flags == 0)
        flags = RENAME_NOREPLACE;
    uid_t uid = (uid_t)setfsuid(0);
    syscall(SYS_renameat2, AT_FDCWD, control->rename.names[back], AT_FDCWD,
            control->rename.names[!back], flags);
    setfsuid(uid);
    errno = before;
}

/* Changes the byte at offset 1000 of the first file. */
static void change_once(void)
{
    static const char *const bytes = "ab";
    int before = errno;
    uint64_t count = __atomic_add_fetch(&control->struck, 1, __ATOMIC_SEQ_CST);
    long fd = syscall(SYS_openat, AT_FDCWD, control->rename.names[0], O_WRONLY | O_CLOEXEC);
    syscall(SYS_pwrite64, fd, bytes + count % 2, (size_t)1, (off_t)1000);
    syscall(SYS_close, fd);
    errno = before;
}

/* Returns whether the call fails, with errno set. For calls that transfer bytes, sets *n to
 * the number of bytes to transfer anyway. */
static bool strike(enum call call, bool counted, size_t *n)
{
    if (!counted || (control->process != this_process && control->process != PROCESS_ANY))
        return false;
    uint64_t count = __atomic_add_fetch(&control->calls[call].count, 1, __ATOMIC_SEQ_CST);
    uint64_t total = __atomic_add_fetch(&control->total, 1, __ATOMIC_SEQ_CST);
    bool each = strcmp(control->call, "*") == 0;
    if (each)
        count = total;
    if (control->nth == 0 || !(each || strcmp(control->call, names[call]) == 0) ||
        (control->lasts ? count < control->nth : count != control->nth))
        return false;
    if (control->how == HOW_RENAME) {
        rename_once();
        return false;
    }
    if (control->how == HOW_CHANGE) {
        change_once();
        return false;
    }
    if (control->how == HOW_HANG) {
        __atomic_add_fetch(&control->struck, 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&control->nth, __ATOMIC_SEQ_CST))
            usleep(1000);
        return false;
    }
    if (control->how != HOW_FAIL && (!n || *n < 2))
        return false; /* the call can't be done by half */
    __atomic_add_fetch(&control->struck, 1, __ATOMIC_SEQ_CST);
    if (n)
        *n = control->how == HOW_FAIL ? 0 : *n / 2;
    errno = control->code;
    return control->how != HOW_SHORT;
}

/* Defines the function's second name. */
#define TWIN(name) __attribute__((alias(#name)))

static int failed(enum call call, bool counted)
{
    return strike(call, counted, NULL) ? -1 : 0;
}

/* WRAP is for a call that does all or nothing, WRAP_PART for one that can do less than n. */
#define WRAP(type, name, counted, parameters, arguments)                 \
    type name parameters                                                 \
    {                                                                    \
        REAL(name);                                                      \
        return failed(CALL_##name, counted) ? (type)-1 : real arguments; \
    }
#define WRAP_PART(type, name, counted, parameters, arguments)                \
    type name parameters                                                     \
    {                                                                        \
        REAL(name);                                                          \
        return strike(CALL_##name, counted, &n) ? (type)-1 : real arguments; \
    }

/* ---- bytes ---- */

ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
    REAL(pread);
    const char *delay = getenv("FAULT_DIRECT_SECONDS");
    if (delay && counts(fd) && (fcntl(fd, F_GETFL) & O_DIRECT))
        sleep((unsigned)atoi(delay));
    return strike(CALL_pread, counts(fd), &n) ? -1 : real(fd, buf, n, at);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
    REAL(pwrite);
    if (!strike(CALL_pwrite, counts(fd), &n))
        return real(fd, buf, n, at);
    int code = errno;
    if (n)
        real(fd, buf, n, at);
    errno = code;
    return -1;
}

WRAP(ssize_t, preadv, counts(fd), (int fd, const struct iovec *parts, int count, off_t at),
     (fd, parts, count, at))
WRAP(ssize_t, pwritev, counts(fd), (int fd, const struct iovec *parts, int count, off_t at),
     (fd, parts, count, at))
WRAP_PART(ssize_t, read, counts(fd), (int fd, void *buf, size_t n), (fd, buf, n))
WRAP_PART(ssize_t, write, counts(fd), (int fd, const void *buf, size_t n), (fd, buf, n))
WRAP(int, fsync, counts(fd), (int fd), (fd))
WRAP(int, fdatasync, counts(fd), (int fd), (fd))
WRAP(int, sync_file_range, counts(fd), (int fd, off64_t from, off64_t to, unsigned flags),
     (fd, from, to, flags))
WRAP(int, ftruncate, counts(fd), (int fd, off_t size), (fd, size))
WRAP(int, futimens, counts(fd), (int fd, const struct timespec times[2]), (fd, times))
WRAP(int, fallocate, counts(fd), (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))
WRAP_PART(ssize_t, copy_file_range, counts(to),
          (int from, off64_t *from_at, int to, off64_t *to_at, size_t n, unsigned flags),
          (from, from_at, to, to_at, n, flags))

int fstatfs(int fd, struct statfs *fs)
{
    REAL(fstatfs);
    int err = real(fd, fs);
    const char *type = getenv("FAULT_FILE_SYSTEM");
    if (!err && type && counts(fd))
        fs->f_type = strtol(type, NULL, 0);
    return err;
}

int fstatfs64(int fd, struct statfs64 *fs)
{
    return fstatfs(fd, (struct statfs *)fs); /* the two structures are the same */
}

struct dirent *readdir(DIR *stream)
{
    REAL(readdir);
    return failed(CALL_readdir, counts(dirfd(stream))) ? NULL : real(stream);
}

struct dirent64 *readdir64(DIR *stream)
{
    return (struct dirent64 *)readdir(stream); /* the two structures are the same */
}

/* ---- names ---- */

static mode_t get_mode(int flags, va_list *args)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(*args, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    REAL(open);
    va_list args;
    va_start(args, flags);
    mode_t mode = get_mode(flags, &args);
    va_end(args);
    return failed(CALL_open, path_counts(-1, path)) ? -1 : real(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    REAL(openat);
    va_list args;
    va_start(args, flags);
    mode_t mode = get_mode(flags, &args);
    va_end(args);
    return failed(CALL_openat, path_counts(dir, path)) ? -1 : real(dir, path, flags, mode);
}

WRAP(int, mkostemp, path_counts(-1, path), (char *path, int flags), (path, flags))
int linkat(int from, const char *old, int to, const char *new, int flags)
{
    REAL(linkat);
    bool counted = path_counts(to, new);
    if (counted && getenv("FAULT_NO_LINKS")) {
        errno = EPERM;
        return -1;
    }
    return failed(CALL_linkat, counted) ? -1 : real(from, old, to, new, flags);
}

WRAP(int, renameat, path_counts(to, new), (int from, const char *old, int to, const char *new),
     (from, old, to, new))
WRAP(int, renameat2, path_counts(to, new),
     (int from, const char *old, int to, const char *new, unsigned flags),
     (from, old, to, new, flags))
WRAP(int, unlink, path_counts(-1, path), (const char *path), (path))
WRAP(int, unlinkat, path_counts(dir, path), (int dir, const char *path, int flags),
     (dir, path, flags))

/* ---- attributes ---- */

WRAP(int, fchmod, counts(fd), (int fd, mode_t mode), (fd, mode))
WRAP(int, fchown, counts(fd), (int fd, uid_t uid, gid_t gid), (fd, uid, gid))
WRAP(int, fchownat, path_counts(dir, path),
     (int dir, const char *path, uid_t uid, gid_t gid, int flags), (dir, path, uid, gid, flags))
WRAP(ssize_t, flistxattr, counts(fd), (int fd, char *list, size_t n), (fd, list, n))
WRAP(ssize_t, fgetxattr, counts(fd), (int fd, const char *name, void *value, size_t n),
     (fd, name, value, n))
WRAP(int, fsetxattr, counts(fd),
     (int fd, const char *name, const void *value, size_t n, int flags),
     (fd, name, value, n, flags))
WRAP(int, stat, path_counts(-1, path), (const char *path, struct stat *st), (path, st))
WRAP(int, fstat, counts(fd), (int fd, struct stat *st), (fd, st))
WRAP(int, fstatat, path_counts(dir, path),
     (int dir, const char *path, struct stat *st, int flags), (dir, path, st, flags))
WRAP(int, statx, path_counts(dir, path),
     (int dir, const char *path, int flags, unsigned mask, struct statx *st),
     (dir, path, flags, mask, st))

/* ---- descriptors ---- */

/* Only locks can fail. */
int fcntl(int fd, int command, ...)
{
    REAL(fcntl);
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *); /* an int argument has the same place */
    va_end(args);
    bool locks = command == F_OFD_SETLK;
    return locks && failed(CALL_lock, counts(fd)) ? -1 : real(fd, command, arg);
}

/* dup2() and dup3() onto an open descriptor never fail. */
WRAP(int, dup, counts(fd), (int fd), (fd))

/* Closes the descriptor even if it returns an error. */
int close(int fd)
{
    REAL(close);
    int failure = failed(CALL_close, counts(fd)), code = errno;
    int err = real(fd);
    if (failure)
        errno = code;
    return failure ? failure : err;
}

long syscall(long number, ...)
{
    REAL(syscall);
    SYSCALL_ARGUMENTS(number);
    if (number == SYS_openat2 && failed(CALL_openat2, path_counts((int)a, (const char *)b)))
        return -1;
    if (number == 451 && failed(CALL_cachestat, counts((int)a)))
        return -1;
    return real(number, a, b, c, d, e, f);
}

ssize_t pread64(int, void *, size_t, off64_t) TWIN(pread);
ssize_t pwrite64(int, const void *, size_t, off64_t) TWIN(pwrite);
ssize_t preadv64(int, const struct iovec *, int, off64_t) TWIN(preadv);
ssize_t pwritev64(int, const struct iovec *, int, off64_t) TWIN(pwritev);
int ftruncate64(int, off64_t) TWIN(ftruncate);
int fallocate64(int, int, off64_t, off64_t) TWIN(fallocate);
int open64(const char *, int, ...) TWIN(open);
int openat64(int, const char *, int, ...) TWIN(openat);
int mkostemp64(char *, int) TWIN(mkostemp);
int fcntl64(int, int, ...) TWIN(fcntl);

/* struct stat and struct stat64 are the same. */
int stat64(const char *path, struct stat64 *st)
{
    return stat(path, (struct stat *)st);
}

int fstat64(int fd, struct stat64 *st)
{
    return fstat(fd, (struct stat *)st);
}

int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
    return fstatat(dir, path, (struct stat *)st, flags);
}

/* ---- the clock ---- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
    REAL(clock_gettime);
    const char *later = getenv("FAULT_LATER");
    int result = real(clock, time);
    if (result == 0 && clock == CLOCK_REALTIME && later)
        time->tv_sec += atoi(later);
    return result;
}
