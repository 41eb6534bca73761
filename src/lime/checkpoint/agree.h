/* agree.h - does a checkpoint's text say the same as its index? */
#ifndef AGREE_H
#define AGREE_H

#include "limecells.h"

/* *why: NULL if it does, else what differs, a static text. -ENOMEM. */
int agree_text(const struct limecells *, const char *xml, size_t n, const char **why);

#endif
