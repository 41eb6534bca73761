/* made.h - a record of random bytes in a file, described as a field */
#ifndef MADE_H
#define MADE_H

#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "limeildg.h"

enum { AT = 392 }; /* offset of the data */

static uint64_t seed = 88172645463325252u;

static inline uint64_t random_word(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static inline unsigned char *random_bytes(size_t n)
{
    unsigned char *data = malloc(n + 8);
    assert_non_null(data);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = random_word();
        memcpy(data + i, &word, sizeof word);
    }
    return data;
}

struct made {
    int fd;
    unsigned char *data;
    struct limefile_field field;
};

static inline struct made make(uint64_t site_bytes, uint64_t sites)
{
    char path[] = "/var/tmp/limefs-test-sums-XXXXXX"; /* /tmp may lack O_DIRECT */
    struct limefile_fd file;
    size_t n = (size_t)(site_bytes * sites);
    struct made m = {.fd = mkostemp(path, O_CLOEXEC), .data = random_bytes(n)};
    assert_true(m.fd >= 0);
    unlink(path);
    limefile_fd_init(&file, m.fd);
    assert_int_equal(limefile_write_full(&file.source, m.data, n, AT), 0);
    m.field.record = (struct limefile_record){.data_offset = AT, .bytes = n};
    m.field.sites = sites;
    m.field.site_bytes = site_bytes;
    m.field.expected = n;
    return m;
}

static inline void unmake(struct made *m)
{
    close(m->fd);
    free(m->data);
}

/* Drops the file from the page cache. */
static inline void drop_cache(const struct made *m)
{
    assert_int_equal(fdatasync(m->fd), 0);
    assert_int_equal(posix_fadvise(m->fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

#endif
