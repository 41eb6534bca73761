/*
 * main.c - limefs-io: the persistent MPI job that reads and writes containers for limefs
 *
 * Every rank runs a worker in its main thread. Rank 0 also runs the server, a thread that
 * serves clients and commands the workers.
 */
#define _GNU_SOURCE
#include "limefile.h"
#include "listen.h"
#include "report.h"
#include "credentials.h"
#include "watchdog.h"
#include "worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    END_S = 10, /* time limit for MPI_Finalize() */
    SPINS = 50, /* polls of MPI before a worker sleeps between polls */
    PAUSE_US = 50,
};

/* ---- before MPI ---- */

/* Raises the soft limit of descriptors to the hard limit, and ignores errors. Each client's
 * window takes one descriptor, and each container up to three. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void start_mpi(const struct job_options *options, int *argc, char ***argv)
{
    int provided;
    /* Ranks that wait in a collective call must leave the processor to a rank that reads. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    /* The job uses no shared file pointers. Open MPI would keep them in a file next to each
     * open container (several hosts) or in a semaphore in /dev/shm with a predictable name (one
     * host). MPI must find one component: `sm` stays, but -1 keeps MPI from selecting it. */
    setenv("OMPI_MCA_sharedfp", "^lockedfile,individual", 0);
    setenv("OMPI_MCA_sharedfp_sm_priority", "-1", 0);
    /* Open MPI 5 would lock what it reads and writes, and wait forever for a mount's lock. */
    setenv("OMPI_MCA_fs_ufs_lock_algorithm", "1", 0);
    /* If a rank cannot read, OMPIO's collective reads wait forever (4.1.4). ROMIO's do not. */
    if (options->io == LIMEJOB_IO_COLLECTIVE) {
        setenv("OMPI_MCA_io_romio321_priority", "100", 0); /* Open MPI 4 */
        setenv("OMPI_MCA_io_romio341_priority", "100", 0); /* Open MPI 5 */
    }
    /* Open MPI's shared memory goes to a directory that the supervisor of limefs removes. The
     * directory does not exist on other hosts. */
    const char *shm = getenv("LIMEFS_IO_SHM");
    if (shm && access(shm, W_OK | X_OK) == 0) {
        setenv("OMPI_MCA_btl_vader_backing_directory", shm, 0); /* Open MPI 4 */
        setenv("OMPI_MCA_btl_sm_backing_directory", shm, 0);    /* Open MPI 5 */
    }
    /* limefs sets this for mpirun. mpirun tells its ranks their directories by other variables,
     * and Open MPI 4 refuses both. */
    unsetenv("OMPI_MCA_orte_local_tmpdir_base");
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
}

/* ---- hosts ---- */

/* Sets worker->host, and locations[] of all ranks. Returns whether any rank runs on another
 * host than rank 0. Collective. */
static bool find_locations(struct job_worker *worker, struct job_location *locations)
{
    MPI_Comm host;
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length, on_first_host = worker->rank == 0;
    MPI_Comm_split_type(worker->comm, MPI_COMM_TYPE_SHARED, worker->rank, MPI_INFO_NULL, &host);
    MPI_Allreduce(MPI_IN_PLACE, &on_first_host, 1, MPI_INT, MPI_MAX, host);
    MPI_Comm_free(&host);
    MPI_Get_processor_name(name, &length);
    snprintf(worker->host, sizeof worker->host, "%.*s", JOB_HOST_MAX - 1, name);
    struct job_location own = {.is_local = on_first_host};
    memcpy(own.host, worker->host, sizeof own.host);
    MPI_Allgather(&own, sizeof own, MPI_BYTE, locations, sizeof own, MPI_BYTE, worker->comm);
    for (int i = 0; i < worker->ranks; i++)
        if (!locations[i].is_local)
            return true;
    return false;
}

static int report_socket_error(const struct job_options *options, const char *action, int err)
{
    const char *reason = strerror(-err);
    if (err == -EADDRINUSE)
        reason = "already served by another job; use it, or end it with --stop";
    else if (err == -EEXIST)
        reason = "exists and is not a socket";
    job_report("%s: %s: %s", options->socket_path, action, reason);
    return err;
}

/* ---- rank 0 ---- */

static int open_rendezvous(const struct job_options *options, struct job_rendezvous *rendezvous,
                           struct job_server_setup *setup, bool has_remote)
{
    int err = job_listen_check(options->socket_path);
    if (err)
        return report_socket_error(options, "listen", err);
    err = job_rendezvous_open(rendezvous, has_remote, &setup->unix_fd, &setup->tcp_fd);
    return err ? report_socket_error(options, "listen for the other ranks", err) : 0;
}

static int start_server(struct job_worker *worker, struct job_server_setup *setup,
                        pthread_t *thread)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return -errno;
    setup->own_channel = pair[0];
    limejob_channel_init(&worker->channel, pair[1]);
    return -pthread_create(thread, NULL, job_server_run, setup);
}

/* ---- all ranks ---- */

static void create_info(struct job_worker *worker)
{
    const struct job_options *options = worker->options;
    worker->info = MPI_INFO_NULL;
    if (options->hint_count)
        MPI_Info_create(&worker->info);
    for (int i = 0; i < options->hint_count; i++)
        MPI_Info_set(worker->info, options->hint_keys[i], options->hint_values[i]);
}

static bool prepare_worker(struct job_worker *worker)
{
    bool local = worker->locations[worker->rank].is_local;
    size_t bytes = JOB_BUFFERS * (size_t)(JOB_MESSAGE_BYTES + LIMEJOB_ALIGN);
    worker->buffers = local ? NULL : limefile_buffer_new(&bytes);
    for (int i = 0; i < JOB_BUFFERS; i++)
        worker->requests[i] = MPI_REQUEST_NULL;
    create_info(worker);
    return local || worker->buffers;
}

static int finalize_mpi(int code)
{
    alarm(END_S); /* MPI may wait for ranks that are gone */
    MPI_Finalize();
    return code;
}

/* Closes and frees what MPI has open. Collective. */
static void release_worker(struct job_worker *worker)
{
    alarm(END_S);
    job_containers_close(worker);
    if (worker->info != MPI_INFO_NULL)
        MPI_Info_free(&worker->info);
    MPI_Comm_free(&worker->comm);
}

/* ---- the loop of a worker ---- */

/* Returns false after JOB_END. */
static bool execute_command(struct job_worker *worker, struct limejob_packet *packet)
{
    switch (packet->opcode) {
    case JOB_WINDOW:
        job_worker_map(worker, packet);
        return true;
    case JOB_UNMAP:
        job_worker_unmap(worker, packet);
        return true;
    case JOB_OPEN:
        job_container_open(worker, packet);
        return true;
    case JOB_CLOSE:
        job_container_close(worker, packet);
        return true;
    case JOB_READ:
        job_extent_read(worker, packet);
        return true;
    case JOB_WRITE:
        job_extent_write(worker, packet);
        return true;
    case JOB_SYNC:
        job_extent_sync(worker, packet);
        return true;
    case JOB_END:
        return false;
    default:
        job_worker_abort(worker, "unknown command: %d", packet->opcode);
    }
}

static void forward_end_request(struct job_worker *worker)
{
    uint64_t count;
    struct limejob_packet packet;
    if (read(worker->end_event, &count, sizeof count) <= 0)
        return;
    limejob_request_init(&packet, JOB_END_REQUESTED, 0);
    job_worker_reply(worker, &packet);
}

/* Waits for a command or, while MPI messages are in flight, until it is time to test them. */
static void wait_for_work(struct job_worker *worker)
{
    static int idle; /* consecutive tests without progress */
    struct pollfd fds[2] = {{worker->channel.fd, POLLIN, 0},
                            {worker->rank ? worker->end_event : -1, POLLIN, 0}};
    struct timespec time = {0, 0}, *limit = NULL;
    if (job_extent_progress(worker))
        idle = 0;
    else
        idle++;
    if (job_extent_busy(worker)) {
        time.tv_nsec = idle > SPINS ? PAUSE_US * 1000L : 0;
        limit = &time;
    }
    if (ppoll(fds, 2, limit, NULL) > 0 && fds[1].revents)
        forward_end_request(worker);
}

static void run_worker(struct job_worker *worker)
{
    static struct limejob_packet packet;
    for (;;) {
        int done = limejob_receive(&worker->channel, &packet, 0);
        if (done < 0)
            job_watchdog_abort();
        if (done == 0) {
            wait_for_work(worker);
            continue;
        }
        if (!execute_command(worker, &packet))
            return;
        if (packet.fd >= 0)
            close(packet.fd);
        job_extent_progress(worker);
    }
}

static int run_rank(struct job_worker *worker, struct job_server_setup *setup)
{
    static struct job_rendezvous rendezvous;
    pthread_t server;
    int err = 0;
    if (worker->rank == 0)
        err = open_rendezvous(worker->options, &rendezvous, setup, worker->has_remote);
    MPI_Bcast(&err, 1, MPI_INT, 0, worker->comm);
    if (err)
        return finalize_mpi(1);
    MPI_Bcast(&rendezvous, sizeof rendezvous, MPI_BYTE, 0, worker->comm);
    setup->rendezvous = &rendezvous;
    if (!prepare_worker(worker))
        job_worker_abort(worker, "start: %s", strerror(ENOMEM));
    err = worker->rank == 0
              ? start_server(worker, setup, &server)
              : job_rendezvous_join(&rendezvous, worker->rank,
                                    worker->locations[worker->rank].is_local, &worker->channel);
    if (err)
        job_worker_abort(worker, "join rank 0 on %s: %s", worker->locations[0].host,
                         strerror(-err));
    if (worker->rank != 0)
        job_watchdog_watch(worker->channel.fd);
    run_worker(worker);
    job_watchdog_stop();
    if (worker->rank == 0)
        pthread_join(server, NULL);
    release_worker(worker);
    return finalize_mpi(0);
}

static int run_job(const struct job_options *options, int end_event)
{
    static struct job_worker worker;
    static struct job_server_setup setup;
    worker.options = setup.options = options;
    worker.end_event = setup.end_event = end_event;
    MPI_Comm_dup(MPI_COMM_WORLD, &worker.comm);
    MPI_Comm_rank(worker.comm, &worker.rank);
    MPI_Comm_size(worker.comm, &worker.ranks);
    struct job_location *locations = calloc((size_t)worker.ranks, sizeof *locations);
    if (!locations)
        job_worker_abort(&worker, "start: %s", strerror(ENOMEM));
    worker.locations = setup.locations = locations;
    setup.ranks = worker.ranks;
    worker.has_remote = find_locations(&worker, locations);
    return run_rank(&worker, &setup);
}

/* Returns the exit status: at least 1 if standard output could not be written. */
static int finish_stdout(int code)
{
    errno = EIO; /* the reason to report if an earlier write has failed */
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    job_report("standard output: write: %s", strerror(errno));
    return code ? code : 1;
}

int main(int argc, char **argv)
{
    static struct job_options options;
    int end_event;
    int code = job_options_parse(&options, argc, argv);
    if (code >= 0)
        return finish_stdout(code);
    if (options.mode != JOB_SERVE)
        return finish_stdout(job_query(&options));
    raise_descriptor_limit();
    int err = job_creds_init();
    if (!err)
        err = job_watchdog_start(&end_event);
    if (err) {
        job_report("start: %s", strerror(-err));
        return 1;
    }
    start_mpi(&options, &argc, &argv);
    return run_job(&options, end_event);
}
