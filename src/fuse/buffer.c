/* buffer.c - one buffer for each thread */
#include "buffer.h"

#include <pthread.h>
#include <stdlib.h>

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
        size_t rounded = (size + 4096) & ~(size_t)4095;
        free(buffer->bytes);
        buffer->bytes = aligned_alloc(4096, rounded);
        buffer->size = buffer->bytes ? rounded : 0;
    }
    return buffer->bytes;
}

void limefs_buffer_release(void)
{
    pthread_once(&once, make_key);
    free_buffer(pthread_getspecific(key));
    pthread_setspecific(key, NULL);
}
