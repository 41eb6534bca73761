/*
 * lemonio.h - Lemon's errors as those of a file that is moved
 */
#ifndef BENCH_LEMONIO_H
#define BENCH_LEMONIO_H

#include "backend.h"

/* Lemon's messages become errors of the io; NULL: no longer. */
void bench_lemon_listen(struct bench_io *);

/* 0, or -1 for a code that is an error, the same on all ranks; those that have nothing to say
 * of it keep silent where another rank has. Collective if it is an error. */
int bench_lemon_check(struct bench_io *, const char *action, int code);

#endif
