/*
 * turns.h - which of libfuse's threads wait for the next request.
 *
 * The kernel wakes whoever has waited longest. So, of several that wait, another one is woken
 * for each request of a reader who asks for one thing after the other, as find(1) does, and to
 * wake a thread costs more than to answer. While requests are quick ones, as a rule one thread
 * waits and serves (pace.h), and the others stand by: one comes in when that one takes long,
 * and more when requests queue up. As soon as bytes are moved, all wait, as they would by
 * themselves.
 */
#ifndef LIMEFS_TURNS_H
#define LIMEFS_TURNS_H

#include <stddef.h>
#include <sys/types.h>

/* Before the threads that read requests. */
int limefs_turns_begin(void);

/* read(2) of a request, when it is this thread's turn. It may be cancelled. */
ssize_t limefs_turns_read(int fd, void *buf, size_t n);

#endif
