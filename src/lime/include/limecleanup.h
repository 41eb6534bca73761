/*
 * limecleanup.h - remove unfinished files if SIGINT, SIGTERM or SIGHUP ends the process.
 *
 * A guard names one such file. The first call installs handlers for those of the three signals
 * that the process neither ignores nor handles. Only one thread may add and remove guards.
 */
#ifndef LIMECLEANUP_H
#define LIMECLEANUP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { LIMEFILE_CLEANUP_MAX = 8 }; /* guards at a time; further ones are ignored */

/* Makes the signals remove the file `name`, relative to `dir_fd` (a descriptor, or AT_FDCWD).
 * `name` is not copied: it must stay valid until the guard ends. */
void limefile_cleanup_add(int dir_fd, const char *name);

/* Ends a guard; `name` is the pointer that was passed to limefile_cleanup_add(). */
void limefile_cleanup_remove(const char *name);

/* Makes the signals cut the file `fd` at byte `end`, instead of the file of an earlier call. */
void limefile_cleanup_truncate(int fd, uint64_t end);

/* Ends all guards and the cut. */
void limefile_cleanup_clear(void);

/* Delay the three signals, whichever thread would handle them. Such sections do not nest. */
void limefile_cleanup_block(sigset_t *before);
void limefile_cleanup_unblock(const sigset_t *before);

/* Returns true if one of the delayed signals will end the process. */
bool limefile_cleanup_pending(void);

#endif
