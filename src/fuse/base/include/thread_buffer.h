/* thread_buffer.h - two reusable buffers for each thread, for the reply that it is preparing */
#ifndef LIMEFS_THREAD_BUFFER_H
#define LIMEFS_THREAD_BUFFER_H

#include <stddef.h>

/* Returns the calling thread's first buffer: page-aligned and of at least `size` bytes. Calls
 * reuse the same memory, whose pages are already mapped; only a call for a larger size replaces
 * it, and its bytes are lost. The buffer is freed when the thread ends. NULL: out of memory. */
void *limefs_thread_buffer(size_t size);

/* The same for a second buffer, for data from which the reply is made. */
void *limefs_second_thread_buffer(size_t size);

/* Frees both buffers of the calling thread. Needed only at the end of the main thread. */
void limefs_thread_buffers_release(void);

#endif
