/* direct.c - around the page cache */
#define _GNU_SOURCE
#include "descriptor.h"
#include "limefile.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

bool limefile_is_cached(int fd, uint64_t offset, size_t n)
{
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
    struct {
        uint64_t offset, length;
    } range = {offset, n};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently_evicted;
    } pages;
    if (syscall(SYS_cachestat, fd, &range, &pages, 0) != 0)
        return true;
    return pages.cached * (uint64_t)sysconf(_SC_PAGESIZE) > n / 2;
}

int limefile_open_direct(int fd)
{
    return limefile_reopen(fd, O_RDONLY | O_DIRECT);
}
