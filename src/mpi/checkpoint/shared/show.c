/* show.c - values for people */
#include "show.h"
#include "text.h"

#include <stdio.h>

const char *checkpoint_shown(const char *path, char text[CHECKPOINT_SHOWN_BYTES])
{
    snprintf(text, CHECKPOINT_SHOWN_BYTES, "%s", path);
    limefile_text_defuse(text, "");
    return text;
}

const char *checkpoint_size(double bytes, char text[CHECKPOINT_SIZE_BYTES])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    int unit = 0, last = (int)(sizeof units / sizeof *units) - 1;
    while (bytes >= 999.5 && unit < last) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, CHECKPOINT_SIZE_BYTES, "%.*f %s", unit == 0 || bytes >= 99.95 ? 0 : 1, bytes,
             units[unit]);
    return text;
}

const char *checkpoint_type_word(int type)
{
    static const char *const words[] = {
        [LEMON_INT32] = "int32",   [LEMON_UINT32] = "uint32",   [LEMON_INT64] = "int64",
        [LEMON_UINT64] = "uint64", [LEMON_FLOAT32] = "float32", [LEMON_FLOAT64] = "float64"};
    return type >= LEMON_INT32 && type <= LEMON_FLOAT64 ? words[type] : "?";
}

void checkpoint_show_move(const struct checkpoint_world *world, const char *what,
                          const char *path, const struct checkpoint_particles *p,
                          double seconds, bool quiet)
{
    struct checkpoint_balance b;
    char shown[CHECKPOINT_SHOWN_BYTES], size[CHECKPOINT_SIZE_BYTES],
        speed[CHECKPOINT_SIZE_BYTES];
    checkpoint_balance_of(world, p->count, &b);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (world->rank != 0 || quiet)
        return;
    double particles = b.mean * b.ranks, bytes = particles * (double)p->bytes;
    printf("%-8s %s: %.0f particles, %s, %.0f to %.0f a rank (mean %.1f), %.3f s, %s/s\n", what,
           checkpoint_shown(path, shown), particles, checkpoint_size(bytes, size), b.least,
           b.most, b.mean, seconds, checkpoint_size(seconds > 0 ? bytes / seconds : 0, speed));
}
