/* order.c - lattices that memory holds in another order than the disk */
#include "internal.h"
#include "permute.h"

#include <string.h>

static bool is_as_on_disk(const struct lemon_geometry *geometry)
{
    return memcmp(geometry->memory, geometry->mapping,
                  (size_t)geometry->grid.dims * sizeof(int)) == 0;
}

static void make_permute(const struct lemon_internal *in, struct lemon_permute *permute)
{
    const struct lemon_geometry *geometry = &in->geometry;
    const struct lemon_box *box = &geometry->box;
    int on_disk[LEMON_MAX_DIMS], order[LEMON_MAX_DIMS];
    for (int i = 0; i < geometry->grid.dims; i++)
        on_disk[geometry->mapping[i]] = i;
    for (int i = 0; i < geometry->grid.dims; i++)
        order[i] = on_disk[geometry->memory[i]];
    lemon_permute_make(permute, geometry->grid.dims, box->sites, order, box->site_bytes);
}

static int move_by_copy(struct lemon_internal *in, enum lemon_direction direction, char *data,
                        int64_t base)
{
    struct lemon_permute permute;
    char *copy = NULL;
    int code = LEMON_SUCCESS;
    make_permute(in, &permute);
    bool differs = permute.dims > 0; /* else the rank's part is too thin to show it */
    if (differs && !(copy = malloc((size_t)lemon_geometry_local(in))))
        code = lemon_say(in, lemon_failure(direction), "no memory for a part of %lld bytes",
                         (long long)lemon_geometry_local(in));
    code = lemon_agree(in, code);
    if (code != LEMON_SUCCESS) {
        free(copy);
        return code;
    }
    if (differs && direction == LEMON_WRITE)
        lemon_permute_to_disk(&permute, data, copy);
    code = lemon_move_lattice(in, direction, differs ? copy : data, base);
    if (differs && direction == LEMON_READ && code == LEMON_SUCCESS)
        lemon_permute_to_memory(&permute, copy, data);
    free(copy);
    return code;
}

int lemon_move_ordered(struct lemon_internal *in, enum lemon_direction direction, char *data,
                       int64_t base)
{
    return is_as_on_disk(&in->geometry) ? lemon_move_lattice(in, direction, data, base)
                                        : move_by_copy(in, direction, data, base);
}
