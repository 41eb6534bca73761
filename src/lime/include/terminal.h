/* terminal.h - find out if the user sees standard error on a terminal. Uses no other part of
 * the library. */
#ifndef LIMEFILE_TERMINAL_H
#define LIMEFILE_TERMINAL_H

#include <stdbool.h>

/* Returns true if standard error is a terminal, or goes to a launcher such as mpirun, which
 * gives its ranks pipes and prints their output on a terminal. */
bool limefile_terminal_shows_errors(void);

#endif
