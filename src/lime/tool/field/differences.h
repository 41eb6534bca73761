/* differences.h - what lime check --qcdml has found */
#ifndef DIFFERENCES_H
#define DIFFERENCES_H

#include "qcdmlcheck.h"

#include <stdint.h>

/* Says it, unless silent, and keeps it for JSON. Line and ordinal 0: of none. `what` is an
 * element's name and `why` a sentence, both static; the two values are copied, "" for none. */
void difference_add(struct qcdml_check *, bool warning, size_t line, uint64_t ordinal,
                    const char *what, const char *document, const char *container,
                    const char *why);

void differences_summary(const struct qcdml_check *);

#endif
