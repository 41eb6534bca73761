/* lemonio.c - Lemon's errors as those of a file that is moved */
#include "lemonio.h"
#include "lemon.h"

#include <stdio.h>

/* "lemon: rank 0: write at 144: ..." */
static void keep_message(const char *text, void *io)
{
    int prefix = 0;
    sscanf(text, "lemon: rank %*d: %n", &prefix);
    bench_io_fail(io, "Lemon", "%s", text + prefix);
}

void bench_lemon_listen(struct bench_io *io)
{
    lemonSetMessageHandler(io ? keep_message : NULL, io);
}

int bench_lemon_check(struct bench_io *io, const char *action, int code)
{
    int told = io->error[0] != '\0';
    if (code == LEMON_SUCCESS)
        return 0;
    MPI_Allreduce(MPI_IN_PLACE, &told, 1, MPI_INT, MPI_LOR, io->comm);
    if (!told)
        bench_io_fail(io, action, "Lemon's error %d", code);
    return -1;
}
