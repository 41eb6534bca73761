/* thread_buffer.h - two reusable buffers for each thread, for the reply that it is preparing */
#ifndef LIMEFS_THREAD_BUFFER_H
#define LIMEFS_THREAD_BUFFER_H

#include <stddef.h>

/* Returns the calling thread's first buffer: page-aligned and of at least `size` bytes. Every
 * call returns the same memory, whose pages are mapped already, unless a larger size replaces
 * it. The buffer is freed when the thread ends. NULL: out of memory. */
void *limefs_thread_buffer(size_t size);

/* The same for a second buffer, for data from which the reply is made. */
void *limefs_second_thread_buffer(size_t size);

/* Frees both buffers of the calling thread: the main thread, which ends last, must do so. */
void limefs_thread_buffers_release(void);

#endif
