/* cache.c - the page cache */
#define _GNU_SOURCE
#include "cache.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CONTROL "/proc/sys/vm/drop_caches"

static const char all[] = "drop_caches", file[] = "posix_fadvise";

const char *bench_cache_method(const struct bench_world *world, bool file_only)
{
    int good = !file_only;
    if (world->host_rank == 0 && good) {
        int fd = open(CONTROL, O_WRONLY | O_CLOEXEC);
        good = fd >= 0;
        if (fd >= 0)
            close(fd);
    }
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return good ? all : file;
}

bool bench_cache_is_whole(const char *method)
{
    return strcmp(method, all) == 0;
}

static void drop_all(void)
{
    sync();
    int fd = open(CONTROL, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, "3\n", 2) != 2)
        bench_say(CONTROL ": write: %m");
    close(fd);
}

static void drop_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* not made yet */
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

void bench_cache_drop(const struct bench_world *world, const char *method, const char *path)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (world->host_rank == 0 && bench_cache_is_whole(method))
        drop_all();
    else if (world->host_rank == 0)
        drop_file(path);
    MPI_Barrier(MPI_COMM_WORLD);
}
