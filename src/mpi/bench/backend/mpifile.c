/* mpifile.c - a file by MPI-IO; hints */
#include "mpifile.h"

#include <string.h>

MPI_Info bench_task_info(const struct bench_task *task)
{
    MPI_Info info;
    if (task->hints == 0)
        return MPI_INFO_NULL;
    MPI_Info_create(&info);
    for (int i = 0; i < task->hints; i++)
        MPI_Info_set(info, task->hint[i].key, task->hint[i].value);
    return info;
}

void bench_mpifile_hints(struct bench_io *io, MPI_Info info)
{
    int keys, there;
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    if (io->hints || io->rank != 0 || info == MPI_INFO_NULL)
        return;
    io->hints = json_object();
    MPI_Info_get_nkeys(info, &keys);
    for (int i = 0; i < keys; i++) {
        MPI_Info_get_nthkey(info, i, key);
        MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &there);
        if (there)
            json_object_set_new(io->hints, key, json_string(value));
    }
}

int bench_mpifile_open(struct bench_io *io, MPI_Comm comm, MPI_File *file)
{
    MPI_Info info = bench_task_info(io->task), used;
    int mode = io->writing ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY;
    int error = MPI_File_open(comm, io->path, mode, info, file);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    if (error != MPI_SUCCESS) {
        *file = MPI_FILE_NULL;
        return bench_io_mpi(io, "open", error);
    }
    if (!io->hints && io->rank == 0 && MPI_File_get_info(*file, &used) == MPI_SUCCESS) {
        bench_mpifile_hints(io, used);
        MPI_Info_free(&used);
    }
    return 0;
}

int bench_mpifile_sync(struct bench_io *io, MPI_File file)
{
    return bench_io_mpi(io, "sync", MPI_File_sync(file));
}

int bench_mpifile_close(struct bench_io *io, MPI_File *file)
{
    return *file == MPI_FILE_NULL ? 0 : bench_io_mpi(io, "close", MPI_File_close(file));
}

int bench_mpifile_moved(struct bench_io *io, int error, MPI_Status *status,
                        MPI_Datatype datatype, int wanted)
{
    const char *action = io->writing ? "write" : "read";
    int moved;
    if (error != MPI_SUCCESS)
        return bench_io_mpi(io, action, error);
    if (wanted == 0) /* ROMIO leaves the status as it was */
        return 0;
    MPI_Get_count(status, datatype, &moved);
    if (moved == MPI_UNDEFINED) /* a part of a unit */
        return bench_io_fail(io, action, "not all of %d units were moved", wanted);
    if (moved != wanted)
        return bench_io_fail(io, action, "%d of %d units were moved", moved, wanted);
    return 0;
}
