/* window.c - create, check and map the memory that a client shares with the job */
#define _GNU_SOURCE
#include "limejob.h"
#include "limeplatform.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

/* Maps the window at an address aligned for huge pages. */
static int map_window(struct limejob_window *window)
{
    size_t reserved_bytes = window->bytes + HUGE_PAGE;
    char *reserved = mmap(NULL, reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserved == MAP_FAILED)
        return -errno;
    size_t lead = -(uintptr_t)reserved % HUGE_PAGE;
    void *data = mmap(reserved + lead, window->bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, window->fd, 0);
    if (data == MAP_FAILED) {
        int err = -errno;
        munmap(reserved, reserved_bytes);
        return err;
    }
    if (lead)
        munmap(reserved, lead);
    size_t end = (window->bytes + 4095) & ~(size_t)4095;
    if (reserved_bytes - lead > end)
        munmap(reserved + lead + end, reserved_bytes - lead - end);
    window->data = data;
    return 0;
}

void limejob_window_use_huge_pages(struct limejob_window *window, const atomic_bool *stop)
{
    for (uint64_t at = 0; at + HUGE_PAGE <= window->bytes && !*stop; at += HUGE_PAGE) {
        /* Only an existing page can be collapsed. Neither call changes the data in it. */
        if (madvise(window->data + at, 1, MADV_POPULATE_WRITE) != 0 ||
            madvise(window->data + at, HUGE_PAGE, MADV_COLLAPSE) != 0)
            return;
    }
}

/* Returns a memfd that no process can shrink, or -errno. */
static int create_memory(uint64_t bytes)
{
    if (bytes == 0 || bytes > LIMEJOB_WINDOW_MAX)
        return -EINVAL;
    int fd = memfd_create("limefs-window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    int err = -errno;
    close(fd);
    return err;
}

int limejob_window_create(struct limejob_window *window, uint64_t bytes)
{
    *window = (struct limejob_window){.bytes = bytes};
    window->fd = create_memory(bytes);
    if (window->fd < 0)
        return window->fd;
    int err = map_window(window);
    if (err)
        close(window->fd);
    return err;
}

/* Returns true if fd is on hugetlbfs, or after an error. A mapping there has whole huge pages,
 * which can exceed the range that map_window() reserves. */
static bool has_huge_pages(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) != 0 || fs.f_type == HUGETLBFS_MAGIC;
}

int limejob_window_check(int fd, uint64_t bytes)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || has_huge_pages(fd))
        return -EPERM;
    if (fstat(fd, &st) != 0)
        return -errno;
    return bytes == 0 || bytes > LIMEJOB_WINDOW_MAX || (uint64_t)st.st_size < bytes ? -EINVAL
                                                                                    : 0;
}

int limejob_window_map(struct limejob_window *window, int fd, uint64_t bytes)
{
    *window = (struct limejob_window){.fd = fd, .bytes = bytes};
    int err = limejob_window_check(fd, bytes);
    if (!err)
        err = map_window(window);
    if (err)
        close(fd);
    return err;
}

void limejob_window_release(struct limejob_window *window)
{
    if (window->data)
        munmap(window->data, window->bytes);
    if (window->fd >= 0)
        close(window->fd);
    window->data = NULL;
    window->fd = -1;
}
