/* backends.c - list the back ends and what each can do */
#include "backend_common.h"

#include <stdio.h>
#include <string.h>

static const struct bench_backend posix = {
    .name = "posix",
    .about = "each rank its own pieces, pwrite and pread",
    .abilities = BENCH_CAN_INDEPENDENT | BENCH_CAN_NOSYNC,
    .patterns = BENCH_ALL_PATTERNS,
    .open = bench_posix_open,
    .transfer = bench_posix_pieces,
    .sync = bench_posix_sync,
    .close = bench_posix_close,
};

/* Defines a back end that the Makefile leaves out; its unavailable() returns the reason. */
#define LEFT_OUT(id, text, reason)   \
    static const char *no_##id(void) \
    {                                \
        return reason;               \
    }                                \
    const struct bench_backend bench_##id = {.name = #id, .about = text, .unavailable = no_##id}
#ifdef BENCH_WITHOUT_HDF5
LEFT_OUT(hdf5, "HDF5, one dataset", BENCH_WITHOUT_HDF5);
#endif
#ifdef BENCH_WITHOUT_NETCDF4
LEFT_OUT(netcdf4, "NetCDF-4, one variable", BENCH_WITHOUT_NETCDF4);
#endif
#ifdef BENCH_WITHOUT_PNETCDF
LEFT_OUT(pnetcdf, "PnetCDF, one variable of a CDF-5 file", BENCH_WITHOUT_PNETCDF);
#endif

const struct bench_backend *const bench_backends[] = {
    &posix,      &bench_mpiio,   &bench_subarray, &bench_lime,   &bench_gather,
    &bench_hdf5, &bench_netcdf4, &bench_pnetcdf,  &bench_limefs, &bench_limefs_job,
    NULL};

struct requirement {
    bool is_requested;
    unsigned ability;
    const char *reason;
};

static const char *find_missing_ability(const struct bench_backend *backend,
                                        const struct bench_task *task)
{
    const struct requirement requirements[] = {
        {task->mode == BENCH_INDEPENDENT, BENCH_CAN_INDEPENDENT,
         "--independent: all ranks take part in each of its calls"},
        {task->mode == BENCH_COLLECTIVE, BENCH_CAN_COLLECTIVE,
         "--collective: it has no collective calls"},
        {task->alignment > 0, BENCH_CAN_ALIGN, "--alignment: it cannot align data"},
        {task->chunk > 0, BENCH_CAN_CHUNK, "--chunk: its layout has no chunks"},
        {task->unlimited, BENCH_CAN_GROW, "--unlimited: it has no dimensions"},
        {task->shape != BENCH_SHAPE_DEFAULT, BENCH_CAN_SHAPE, "--shape: it has no dimensions"},
        {task->hints > 0, BENCH_CAN_HINT, "--hint: it does not use MPI-IO"},
        {task->checksum, BENCH_CAN_CHECKSUM, "--checksum: only lime has checksums"},
        {!task->fsync, BENCH_CAN_NOSYNC, "--no-fsync: Lemon syncs each record that it closes"},
    };
    for (size_t i = 0; i < sizeof requirements / sizeof *requirements; i++)
        if (requirements[i].is_requested && !(backend->abilities & requirements[i].ability))
            return requirements[i].reason;
    return NULL;
}

const char *bench_backend_unsupported(const struct bench_backend *backend,
                                      const struct bench_task *task, char *text, size_t cap)
{
    enum bench_pattern_kind kind = task->pattern.kind;
    const char *reason = backend->unavailable ? backend->unavailable() : NULL;
    if (reason)
        snprintf(text, cap, "not available: %s", reason);
    else if (!(backend->patterns & BENCH_PATTERN_BIT(kind)))
        snprintf(text, cap, "it cannot do the %s pattern", bench_pattern_names[kind]);
    else if ((reason = find_missing_ability(backend, task)) ||
             (backend->unsupported && (reason = backend->unsupported(task))))
        snprintf(text, cap, "%s", reason);
    else
        return NULL;
    return text;
}

json_t *bench_backend_libraries(void)
{
    json_t *libraries = json_object();
    json_object_set_new(libraries, "lemon", json_string(BENCH_LEMON_VERSION));
    json_object_set_new(libraries, "limefs", json_string(LIMEFS_VERSION));
#ifndef BENCH_WITHOUT_HDF5
    json_object_set_new(libraries, "hdf5", json_string(bench_hdf5_version()));
#endif
#ifndef BENCH_WITHOUT_NETCDF4
    json_object_set_new(libraries, "netcdf4", json_string(bench_netcdf4_version()));
#endif
#ifndef BENCH_WITHOUT_PNETCDF
    json_object_set_new(libraries, "pnetcdf", json_string(bench_pnetcdf_version()));
#endif
    return libraries;
}
