/* direct_io.c - direct I/O, which bypasses the page cache */
#define _GNU_SOURCE
#include "descriptor.h"
#include "limefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *limefile_buffer_new(size_t *bytes)
{
    size_t unit = *bytes < LIMEFILE_DIRECT_MIN ? LIMEFILE_DIRECT_ALIGN : LIMEFILE_HUGE_PAGE;
    size_t requested = *bytes ? *bytes : 1;
    if (requested > SIZE_MAX - unit)
        return NULL;
    size_t whole = (requested + unit - 1) / unit * unit;
    void *buffer = aligned_alloc(unit, whole);
    if (!buffer)
        return NULL;
    if (unit == LIMEFILE_HUGE_PAGE)
        madvise(buffer, whole, MADV_HUGEPAGE);
    *bytes = whole;
    return buffer;
}

int limefile_open_direct(int fd)
{
    return limefile_reopen(fd, O_RDONLY | O_DIRECT);
}

ssize_t limefile_read_direct(int direct, char *buf, size_t n, uint64_t offset,
                             const char **bytes)
{
    const size_t block = LIMEFILE_DIRECT_ALIGN;
    uint64_t begin = offset & ~(uint64_t)(block - 1);
    size_t lead = (size_t)(offset - begin), whole = (lead + n + block - 1) & ~(block - 1);
    size_t got = 0;
    *bytes = buf + lead;
    while (got < lead + n) {
        ssize_t more = pread(direct, buf + got, whole - got, (off_t)(begin + got));
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0 && got == 0)
            return -errno;
        got += more > 0 ? (size_t)more : 0;
        if (more <= 0 || (size_t)more % block)
            break;
    }
    return got < lead ? 0 : got - lead < n ? (ssize_t)(got - lead) : (ssize_t)n;
}

size_t limefile_direct_blocks(const void *data, size_t n, uint64_t offset, size_t *head)
{
    const size_t block = LIMEFILE_DIRECT_ALIGN;
    *head = (size_t)-offset & (block - 1);
    if (n < LIMEFILE_DIRECT_MIN || (((uintptr_t)data ^ offset) & (block - 1)))
        return 0;
    return (n - *head) & ~(block - 1);
}
