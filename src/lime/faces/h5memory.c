/* h5memory.c - a file in memory for the HDF5 library: pages of it, by where they are */
#include "h5memory.h"

#ifdef LIMEFILE_FACE_HDF5

#include <stdlib.h>
#include <string.h>

struct opened {
    H5FD_t base; /* the library's */
    struct h5memory *memory;
    haddr_t end_allocated;
};

static struct h5memory *next; /* under the lock of who makes a file */

void h5memory_next(struct h5memory *m)
{
    next = m;
}

/* NULL: there is none; `make`: no memory, or too many. */
static unsigned char *page_of(struct h5memory *m, uint64_t at, bool make)
{
    for (unsigned i = 0; i < m->pages; i++)
        if (m->page[i].at == at)
            return m->page[i].bytes;
    if (!make || m->pages == H5MEMORY_PAGES)
        return NULL;
    unsigned char *bytes = calloc(1, H5MEMORY_PAGE);
    if (bytes)
        m->page[m->pages++] = (struct h5memory_page){at, bytes};
    return bytes;
}

void h5memory_read(const struct h5memory *m, void *out, size_t n, uint64_t at)
{
    unsigned char *to = out;
    while (n) {
        size_t skip = (size_t)(at % H5MEMORY_PAGE);
        size_t part = H5MEMORY_PAGE - skip < n ? H5MEMORY_PAGE - skip : n;
        const unsigned char *page = page_of((struct h5memory *)m, at - skip, false);
        if (page)
            memcpy(to, page + skip, part);
        else
            memset(to, 0, part);
        to += part;
        at += part;
        n -= part;
    }
}

static bool write_pages(struct h5memory *m, const void *data, size_t n, uint64_t at)
{
    const unsigned char *from = data;
    while (n) {
        size_t skip = (size_t)(at % H5MEMORY_PAGE);
        size_t part = H5MEMORY_PAGE - skip < n ? H5MEMORY_PAGE - skip : n;
        unsigned char *page = page_of(m, at - skip, true);
        if (!page)
            return false;
        memcpy(page + skip, from, part);
        from += part;
        at += part;
        n -= part;
    }
    if (at > m->bytes)
        m->bytes = at;
    return true;
}

void h5memory_release(struct h5memory *m)
{
    for (unsigned i = 0; i < m->pages; i++)
        free(m->page[i].bytes);
    m->pages = 0;
}

/* ---- as the library calls it ---- */

static struct opened *opened_of(const H5FD_t *file)
{
    return (struct opened *)file;
}

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t max)
{
    (void)name;
    (void)flags;
    (void)access;
    (void)max;
    struct opened *o = next ? calloc(1, sizeof *o) : NULL;
    if (o)
        o->memory = next;
    return o ? &o->base : NULL;
}

static herr_t driver_close(H5FD_t *file)
{
    free(opened_of(file));
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return opened_of(file)->end_allocated;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    opened_of(file)->end_allocated = end;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return opened_of(file)->memory->bytes;
}

static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t n,
                          void *out)
{
    (void)type;
    (void)transfer;
    h5memory_read(opened_of(file)->memory, out, n, at);
    return 0;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t n,
                           const void *data)
{
    (void)type;
    (void)transfer;
    return write_pages(opened_of(file)->memory, data, n, at) ? 0 : -1;
}

static herr_t driver_truncate(H5FD_t *file, hid_t transfer, hbool_t closing)
{
    (void)transfer;
    (void)closing;
    opened_of(file)->memory->bytes = opened_of(file)->end_allocated;
    return 0;
}

const H5FD_class_t h5memory_class = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = 511, /* of those that the library leaves for tests and the like */
#endif
    .name = "limefile-face",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .open = driver_open,
    .close = driver_close,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .fl_map = H5FD_FLMAP_SINGLE,
};

#endif
