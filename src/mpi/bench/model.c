/* model.c - what a plan does on many ranks */
#include "model.h"

#include <stdio.h>

int bench_model(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fputs("lime-bench: model: not built yet\n", stderr);
    return 1;
}
