/* geometry.c - compute which sites of a lattice each rank holds */
#include "internal.h"

#include <string.h>

const int lemon_identity_mapping[LEMON_MAX_DIMS] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                    8, 9, 10, 11, 12, 13, 14, 15};

static bool is_permutation(const int *mapping, int n)
{
    unsigned seen = 0;
    for (int i = 0; i < n; i++) {
        if (mapping[i] < 0 || mapping[i] >= n || seen & 1u << mapping[i])
            return false;
        seen |= 1u << mapping[i];
    }
    return true;
}

/* Sets `geometry`. Returns the same code on every rank if the arguments are the same. */
static int set_geometry(struct lemon_internal *in, int64_t site_bytes, const int *lattice,
                        const int *mapping, const int *memory)
{
    struct lemon_geometry *geometry = &in->geometry;
    if (in->dims == 0)
        return lemon_log(in, LEMON_ERR_PARAM, "lattice: the communicator is not Cartesian");
    if (!lattice || site_bytes < 0)
        return lemon_log(in, LEMON_ERR_PARAM, "lattice: no extents, or a negative site size");
    if (!mapping)
        mapping = lemon_identity_mapping;
    if (!memory)
        memory = mapping;
    if (!is_permutation(mapping, in->dims) || !is_permutation(memory, in->dims))
        return lemon_log(in, LEMON_ERR_PARAM, "lattice: invalid mapping or memory order");
    for (int i = 0; i < in->dims; i++)
        if (lattice[i] < 1)
            return lemon_log(in, LEMON_ERR_PARAM, "lattice: extent %d is %d, not at least 1", i,
                             lattice[i]);
    memcpy(geometry->mapping, mapping, (size_t)in->dims * sizeof(int));
    memcpy(geometry->memory, memory, (size_t)in->dims * sizeof(int));
    lemon_grid_init(&geometry->grid, in->dims, site_bytes, lattice, in->grid, mapping);
    lemon_grid_get_box(&geometry->grid, in->rank, &geometry->box);
    if (lemon_geometry_bytes(in) >= 0)
        return LEMON_SUCCESS;
    return lemon_log(in, LEMON_ERR_PARAM, "lattice: larger than 2^63 bytes");
}

int lemon_check_lattice(struct lemon_internal *in, int code, const void *data,
                        int64_t site_bytes, const int *lattice, const int *mapping,
                        const int *memory)
{
    int64_t values[1 + 3 * LEMON_MAX_DIMS] = {site_bytes};
    if (code == LEMON_SUCCESS)
        code = set_geometry(in, site_bytes, lattice, mapping, memory);
    if (code == LEMON_SUCCESS && !data && lemon_geometry_local_bytes(in) > 0)
        code = lemon_log(in, LEMON_ERR_PARAM, "lattice: data is NULL");
    if (code == LEMON_SUCCESS)
        for (int i = 0; i < in->dims; i++) {
            values[1 + i] = lattice[i];
            values[1 + LEMON_MAX_DIMS + i] = in->geometry.mapping[i];
            values[1 + 2 * LEMON_MAX_DIMS + i] = in->geometry.memory[i];
        }
    return lemon_agree_on(in, code, values, 1 + 3 * LEMON_MAX_DIMS);
}

void lemon_geometry_plan(const struct lemon_internal *in, int64_t base, struct lemon_plan *plan)
{
    lemon_plan_init(plan, &in->geometry.grid, base, &in->hints);
}

int64_t lemon_geometry_bytes(const struct lemon_internal *in)
{
    return lemon_grid_bytes(&in->geometry.grid);
}

int64_t lemon_geometry_local_bytes(const struct lemon_internal *in)
{
    return lemon_box_bytes(&in->geometry.box);
}

int lemon_get_cartesian(MPI_Comm comm, int grid[LEMON_MAX_DIMS], int at[LEMON_MAX_DIMS])
{
    int status, dims = 0, periods[LEMON_MAX_DIMS];
    MPI_Topo_test(comm, &status);
    if (status == MPI_CART)
        MPI_Cartdim_get(comm, &dims);
    if (dims > LEMON_MAX_DIMS)
        return 0;
    if (dims > 0)
        MPI_Cart_get(comm, dims, grid, periods, at);
    return dims;
}

int lemonLocalLattice(MPI_Comm cartesian, int const *latticeDims, int *start, int *sites)
{
    int grid[LEMON_MAX_DIMS], at[LEMON_MAX_DIMS],
        dims = lemon_get_cartesian(cartesian, grid, at);
    if (!latticeDims || !start || !sites || dims == 0)
        return LEMON_ERR_PARAM;
    for (int i = 0; i < dims; i++) {
        int64_t first, count;
        lemon_box_split(latticeDims[i], grid[i], at[i], &first, &count);
        start[i] = (int)first;
        sites[i] = (int)count;
    }
    return LEMON_SUCCESS;
}
