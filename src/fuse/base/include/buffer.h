/* buffer.h - a buffer for the reply to the request that this thread is serving */
#ifndef LIMEFS_BUFFER_H
#define LIMEFS_BUFFER_H

#include <stddef.h>

/* At least `size` bytes, page-aligned, the same at each call from one thread: so its pages
 * are there already. Freed when the thread ends. NULL if there is no memory. */
void *limefs_buffer(size_t size);

/* Another one, for what the reply is made of. */
void *limefs_second_buffer(size_t size);

/* Frees the calling thread's two, for the main thread, which ends last. */
void limefs_buffer_release(void);

#endif
