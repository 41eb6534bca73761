/* domain.c - how a domain is cut, and what is written */
#include "domain.h"
#include "progressbar.h"
#include "show.h"

#include <math.h>

enum {
    PARTICLES_A_CELL = 1000,
    CELLS_A_DIMENSION = 128,
};

void checkpoint_cells_choose(LemonDomain *domain, int64_t particles)
{
    const double *length = domain->length;
    double cells = fmax(1, (double)particles / PARTICLES_A_CELL);
    double edge = cbrt(length[0]) * cbrt(length[1]) * cbrt(length[2]) / cbrt(cells);
    for (int d = 0; d < 3; d++) {
        double n = floor(length[d] / edge + 0.5);
        domain->cells[d] = n >= CELLS_A_DIMENSION ? CELLS_A_DIMENSION : n >= 1 ? (int64_t)n : 1;
    }
}

bool checkpoint_write_shown(const struct checkpoint_world *world, struct checkpoint_output *out,
                            const char *header, const LemonDomain *domain,
                            const LemonParticle *particle, const struct checkpoint_particles *p,
                            int flags, bool quiet)
{
    const char *path = out->path;
    double start = MPI_Wtime();
    checkpoint_progress_begin(world, "write", 0, quiet);
    bool good = checkpoint_output_write(world, out, header, domain, particle, p->data, p->count,
                                        flags) &&
                checkpoint_output_finish(world, out);
    checkpoint_progress_end();
    if (good)
        checkpoint_show_move(world, "written", path, p, MPI_Wtime() - start, quiet);
    return good;
}
