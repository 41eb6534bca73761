/* thread_buffer.c - two buffers for each thread */
#include "thread_buffer.h"
#include "limefile.h"

#include <pthread.h>
#include <stdlib.h>

struct buffer {
    size_t size;
    void *bytes;
};

struct buffers {
    struct buffer first, second;
};

static pthread_key_t buffers_key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void free_buffers(void *p)
{
    struct buffers *buffers = p;
    if (buffers) {
        free(buffers->first.bytes);
        free(buffers->second.bytes);
    }
    free(buffers);
}

static void create_key(void)
{
    pthread_key_create(&buffers_key, free_buffers);
}

static struct buffers *get_buffers(void)
{
    pthread_once(&key_once, create_key);
    struct buffers *buffers = pthread_getspecific(buffers_key);
    if (!buffers) {
        buffers = calloc(1, sizeof *buffers);
        if (!buffers || pthread_setspecific(buffers_key, buffers) != 0) {
            free(buffers);
            return NULL;
        }
    }
    return buffers;
}

/* Returns the buffer, of at least `size` bytes; growing loses its bytes. NULL: no memory. */
static void *grow_buffer(struct buffer *buffer, size_t size)
{
    if (!buffer->bytes || buffer->size < size) {
        free(buffer->bytes);
        buffer->size = size;
        buffer->bytes = limefile_buffer_new(&buffer->size);
        if (!buffer->bytes)
            buffer->size = 0;
    }
    return buffer->bytes;
}

void *limefs_thread_buffer(size_t size)
{
    struct buffers *buffers = get_buffers();
    return buffers ? grow_buffer(&buffers->first, size) : NULL;
}

void *limefs_second_thread_buffer(size_t size)
{
    struct buffers *buffers = get_buffers();
    return buffers ? grow_buffer(&buffers->second, size) : NULL;
}

void limefs_thread_buffers_release(void)
{
    pthread_once(&key_once, create_key);
    free_buffers(pthread_getspecific(buffers_key));
    pthread_setspecific(buffers_key, NULL);
}
