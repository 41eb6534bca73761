/* page_cache.c - find out how much of a file is in the page cache */
#define _GNU_SOURCE
#include "limefile.h"
#include "limeplatform.h"

#include <errno.h>
#include <unistd.h>

int64_t limefile_cached_bytes(int fd, uint64_t offset, size_t n)
{
    struct {
        uint64_t offset, length;
    } range = {offset, n};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently_evicted;
    } pages;
    if (syscall(SYS_cachestat, fd, &range, &pages, 0) != 0)
        return -errno;
    return (int64_t)(pages.cached * (uint64_t)sysconf(_SC_PAGESIZE));
}

bool limefile_is_cached(int fd, uint64_t offset, size_t n)
{
    int64_t bytes = limefile_cached_bytes(fd, offset, n);
    return bytes < 0 || (uint64_t)bytes > n / 2;
}
