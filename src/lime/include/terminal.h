/*
 * terminal.h - whether anybody watches what a program writes to its standard error. It needs
 * nothing else of the library.
 */
#ifndef LIMEFILE_TERMINAL_H
#define LIMEFILE_TERMINAL_H

#include <stdbool.h>

/* Whether standard error reaches a terminal: itself, or through mpirun and its like, which give
 * their ranks pipes and show what comes out of them. */
bool limefile_terminal_shows_errors(void);

#endif
