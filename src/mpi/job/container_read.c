/*
 * container_read.c - read a rank's part of a container by the method of --io
 *
 * For --io auto, a trial compares collective reads with this program's own.
 */
#include "worker.h"

#include "limefile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    TRIAL_ROUNDS = 4,           /* each method in turn */
    TRIAL_BYTES = 16 << 20,     /* that a rank reads in a round */
    TRIAL_FASTER_PERCENT = 110, /* collective reads must be that much faster */
};

static bool read_by_rank(const struct job_container *container, char *data, int64_t n,
                         int64_t offset, char text[LEMON_RANGE_TEXT_MAX])
{
    return lemon_range_move(&container->file, LEMON_READ, data, n, offset, text);
}

/* OMPIO's collective reads succeed beyond the end of a file that was cut. */
static bool is_inside(const struct job_container *container, int64_t end)
{
    struct stat st;
    return fstat(container->fd, &st) == 0 && st.st_size >= end;
}

bool job_container_read(const struct job_container *container, char *data, int64_t n,
                        int64_t offset, char text[LEMON_RANGE_TEXT_MAX])
{
    MPI_Status status;
    int moved = 0;
    if (container->io != LIMEJOB_IO_COLLECTIVE)
        return read_by_rank(container, data, n, offset, text);
    int err =
        MPI_File_read_at_all(container->mpi_file, offset, data, (int)n, MPI_BYTE, &status);
    if (err == MPI_SUCCESS)
        MPI_Get_count(&status, MPI_BYTE, &moved);
    /* The second attempt has the reason, or reads what another rank's error has prevented. */
    return (err == MPI_SUCCESS && moved == n && is_inside(container, offset + n)) ||
           read_by_rank(container, data, n, offset, text);
}

/* Returns the time of the slowest rank, in seconds; negative if any rank has failed. */
static double time_read(struct job_worker *worker, const struct job_container *container,
                        char *data, int round)
{
    char text[LEMON_RANGE_TEXT_MAX];
    int64_t at = ((int64_t)round * worker->ranks + worker->rank) * TRIAL_BYTES;
    MPI_Barrier(worker->comm);
    double begin = MPI_Wtime();
    bool good = job_container_read(container, data, TRIAL_BYTES, at, text);
    double times[2] = {MPI_Wtime() - begin, good ? 0 : 1};
    MPI_Allreduce(MPI_IN_PLACE, times, 2, MPI_DOUBLE, MPI_MAX, worker->comm);
    return times[1] > 0 ? -1 : times[0];
}

/* Returns whether collective reads are faster. Reads the beginning of the container, each part
 * once. */
static bool collective_is_faster(struct job_worker *worker, struct job_container *container,
                                 char *data)
{
    double seconds[2] = {0, 0};
    for (int round = 0; round < TRIAL_ROUNDS; round++) {
        container->io = round % 2 ? LIMEJOB_IO_COLLECTIVE : LIMEJOB_IO_POSIX;
        double time = time_read(worker, container, data, round);
        if (time < 0)
            return false;
        seconds[round % 2] += time;
    }
    return seconds[1] * TRIAL_FASTER_PERCENT < seconds[0] * 100;
}

/* OMPIO is not tried: if a rank cannot read, its collective reads wait forever. */
static bool uses_romio(void)
{
#ifdef OPEN_MPI
    const char *components = getenv("OMPI_MCA_io"); /* "romio321", "^ompio" */
    return components && (components[0] == '^') == (strstr(components, "ompio") != NULL);
#else
    return true;
#endif
}

void job_container_choose_io(struct job_worker *worker, struct job_container *container,
                             bool for_writing, int64_t bytes)
{
    if (container->io != LIMEJOB_IO_AUTO)
        return;
    container->io = worker->chosen_io;
    int64_t needed = (int64_t)TRIAL_ROUNDS * worker->ranks * TRIAL_BYTES;
    if (for_writing || worker->has_tried || bytes < needed || !uses_romio())
        return;
    size_t size = TRIAL_BYTES;
    char *data = limefile_buffer_new(&size);
    int can_try = data != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &can_try, 1, MPI_INT, MPI_MIN, worker->comm);
    if (can_try && collective_is_faster(worker, container, data))
        worker->chosen_io = LIMEJOB_IO_COLLECTIVE;
    worker->has_tried = can_try;
    container->io = worker->chosen_io;
    free(data);
}
