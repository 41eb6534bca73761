/*
 * striped.c - a model of a file system whose files lie in stripes on several servers
 *
 * usage: striped [OPTION...] STORE MOUNTPOINT
 *
 * What is below MOUNTPOINT are the files of the folder STORE; what they cost is modelled.
 * Stripe after stripe lies on the next server. A server does one request after another, each
 * for `request` seconds and its bytes at `bandwidth`; and `lock` seconds more for a stripe that
 * another client has written last. A request of a client that touches two stripes is a request
 * to two servers. Each mount is a client, as a node is: those of one STORE share its servers,
 * whose clocks are in STORE/.servers. Nothing is cached, and a client has as many requests
 * under way as its readers and writers have.
 *
 * scripts/striped gives each rank of a program a mount of its own.
 */
#define FUSE_USE_VERSION 312
#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SERVERS_MAX = 1024,
    WRITERS = 1 << 16, /* stripes whose last client is remembered */
    REQUEST_MAX = 1 << 20,
};

/* Of all mounts of a store. */
struct servers {
    pthread_mutex_t lock;
    int64_t free_at[SERVERS_MAX]; /* ns of the monotonic clock: when a server has done all */
    int32_t writer[WRITERS];
};

static struct {
    char *store;
    int folder;
    unsigned long stripe, servers, bandwidth;
    unsigned request, lock; /* microseconds */
    struct servers *shared;
} model = {
    .stripe = 1 << 20, .servers = 8, .bandwidth = 200 << 20, .request = 1000, .lock = 2000};

/* ---- what a request costs ---- */

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Books the server for what of one stripe is asked; until when. */
static int64_t book(uint64_t stripe, uint64_t bytes, bool writes)
{
    int64_t *free_at = &model.shared->free_at[stripe % model.servers];
    int32_t *writer = &model.shared->writer[stripe % WRITERS];
    int64_t from = now();
    if (from < *free_at)
        from = *free_at;
    from += model.request * INT64_C(1000) +
            (int64_t)((double)bytes / (double)model.bandwidth * 1e9);
    if (*writer && *writer != getpid())
        from += model.lock * INT64_C(1000);
    if (writes)
        *writer = getpid();
    return *free_at = from;
}

/* Waits for all servers that have a part of the range. */
static void wait_for_servers(uint64_t offset, uint64_t bytes, bool writes)
{
    int64_t until = 0;
    pthread_mutex_lock(&model.shared->lock);
    for (uint64_t end = offset + bytes; offset < end;) {
        uint64_t stripe = offset / model.stripe, next = (stripe + 1) * model.stripe;
        uint64_t n = (next < end ? next : end) - offset;
        int64_t done = book(stripe, n, writes);
        until = done > until ? done : until;
        offset += n;
    }
    pthread_mutex_unlock(&model.shared->lock);
    struct timespec time = {until / 1000000000, until % 1000000000};
    while (until && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
        ;
}

static int share_servers(void)
{
    int fd = openat(model.folder, ".servers", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct flock whole = {.l_type = F_WRLCK};
    struct stat st;
    if (fd < 0 || fcntl(fd, F_OFD_SETLKW, &whole) != 0 || fstat(fd, &st) != 0)
        return -1;
    int fresh = st.st_size == 0;
    if (fresh && ftruncate(fd, sizeof *model.shared) != 0)
        return -1;
    model.shared = mmap(NULL, sizeof *model.shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (model.shared == MAP_FAILED)
        return -1;
    if (fresh) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutex_init(&model.shared->lock, &attributes);
    }
    whole.l_type = F_UNLCK; /* closing it is not enough: it is mapped */
    return fcntl(fd, F_OFD_SETLK, &whole) != 0 ? -1 : close(fd);
}

/* ---- the file system: one folder ---- */

static const char *below(const char *path)
{
    return path[1] ? path + 1 : ".";
}

static int result(int value)
{
    return value < 0 ? -errno : value;
}

static int do_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    return result(fstatat(model.folder, below(path), st, AT_SYMLINK_NOFOLLOW));
}

static int do_open(const char *path, struct fuse_file_info *fi)
{
    int flags = (fi->flags & ~(O_EXCL | O_DIRECT | O_APPEND)) | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(model.folder, below(path), flags, 0);
    fi->fh = (uint64_t)fd;
    return result(fd) < 0 ? -errno : 0;
}

static int do_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    int fd = openat(model.folder, below(path), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode);
    fi->fh = (uint64_t)fd;
    return result(fd) < 0 ? -errno : 0;
}

static int do_read(const char *path, char *data, size_t n, off_t at, struct fuse_file_info *fi)
{
    (void)path;
    ssize_t got = pread((int)fi->fh, data, n, at);
    if (got > 0)
        wait_for_servers((uint64_t)at, (uint64_t)got, false);
    return result((int)got);
}

static int do_write(const char *path, const char *data, size_t n, off_t at,
                    struct fuse_file_info *fi)
{
    (void)path;
    ssize_t put = pwrite((int)fi->fh, data, n, at);
    if (put > 0)
        wait_for_servers((uint64_t)at, (uint64_t)put, true);
    return result((int)put);
}

static int do_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    int fd = fi ? (int)fi->fh : openat(model.folder, below(path), O_WRONLY | O_CLOEXEC);
    int err = result(fd < 0 ? -1 : ftruncate(fd, size));
    if (!fi && fd >= 0)
        close(fd);
    return err;
}

static int do_release(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    return close((int)fi->fh);
}

/* What is written is on the servers. */
static int do_fsync(const char *path, int data, struct fuse_file_info *fi)
{
    (void)path, (void)data, (void)fi;
    return 0;
}

static int do_unlink(const char *path)
{
    return result(unlinkat(model.folder, below(path), 0));
}

static int do_rename(const char *from, const char *to, unsigned flags)
{
    return result(renameat2(model.folder, below(from), model.folder, below(to), flags));
}

static int do_readdir(const char *path, void *to, fuse_fill_dir_t add, off_t at,
                      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)at, (void)fi, (void)flags;
    int again = openat(model.folder, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = again < 0 ? NULL : fdopendir(again);
    if (!folder)
        return -errno;
    for (struct dirent *e; (e = readdir(folder)) != NULL;)
        add(to, e->d_name, NULL, 0, 0);
    closedir(folder);
    return 0;
}

static int do_statfs(const char *path, struct statvfs *st)
{
    (void)path;
    return result(fstatvfs(model.folder, st));
}

static void *do_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
    config->direct_io = 1;
    config->nullpath_ok = 0;
    config->attr_timeout = config->entry_timeout = 0;
    connection->max_write = REQUEST_MAX;
    return NULL;
}

static const struct fuse_operations operations = {
    .getattr = do_getattr,
    .open = do_open,
    .create = do_create,
    .read = do_read,
    .write = do_write,
    .truncate = do_truncate,
    .release = do_release,
    .fsync = do_fsync,
    .unlink = do_unlink,
    .rename = do_rename,
    .readdir = do_readdir,
    .statfs = do_statfs,
    .init = do_init,
};

#define OPTION(text, field)                         \
    {                                               \
        text, offsetof(__typeof__(model), field), 0 \
    }

static int take(void *data, const char *argument, int key, struct fuse_args *args)
{
    (void)data, (void)args;
    if (key != FUSE_OPT_KEY_NONOPT || model.store)
        return 1;
    model.store = strdup(argument);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct fuse_opt options[] = {
        OPTION("--stripe=%lu", stripe),
        OPTION("--servers=%lu", servers),
        OPTION("--bandwidth=%lu", bandwidth),
        OPTION("--request=%u", request),
        OPTION("--lock=%u", lock),
        FUSE_OPT_END,
    };
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    if (fuse_opt_parse(&args, &model, options, take) != 0 || !model.store ||
        model.servers < 1 || model.servers > SERVERS_MAX || model.stripe == 0) {
        fputs("usage: striped [--servers=N] [--stripe=BYTES] [--bandwidth=BYTES_PER_SECOND]\n"
              "               [--request=MICROSECONDS] [--lock=MICROSECONDS] [FUSE OPTION...]\n"
              "               STORE MOUNTPOINT\n",
              stderr);
        return 2;
    }
    model.folder = open(model.store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (model.folder < 0 || share_servers() != 0) {
        fprintf(stderr, "striped: %s: %s\n", model.store, strerror(errno));
        return 1;
    }
    return fuse_main(args.argc, args.argv, &operations, NULL);
}
