/*
 * threads.c - use several threads of each rank at once, each with a file, a reader and a writer
 *
 * usage: threads FILE ROUNDS main|each
 *
 * The threads t of all ranks share a communicator, on which they write and read their own
 * lattices and text, in FILE.t. The main thread opens and closes all files, or each thread its
 * own, which ROMIO does not support, see docs/lemon.md. Needs MPI_THREAD_MULTIPLE.
 */
#include "files.h"

#include <pthread.h>

enum {
    THREADS = 4,
    DIMS = 3,
    TEXT = 77,
};

struct thread {
    pthread_t id;
    int number, rounds, bad, opens;
    char path[4096];
    MPI_Comm cart;
    MPI_File fp;
    int lattice[DIMS], mapping[DIMS], site;
    size_t bytes; /* of this rank's part */
};

static unsigned char value(const struct thread *thread, int round, size_t i)
{
    return (unsigned char)((i * 2654435761u >> 7) + (size_t)tap_rank * 31 +
                           (size_t)thread->number * 101 + (size_t)round * 7);
}

/* Threads differ in the distribution of the lattice, its order on disk and its size. */
static void prepare(struct thread *thread, int number, const char *path)
{
    int grid[DIMS] = {0}, turned[DIMS], periods[DIMS] = {0}, start[DIMS], sites[DIMS];
    *thread = (struct thread){.number = number};
    snprintf(thread->path, sizeof thread->path, "%s.%d", path, number);
    MPI_Dims_create(tap_ranks, DIMS, grid);
    for (int i = 0; i < DIMS; i++) {
        turned[i] = grid[(i + number) % DIMS];
        thread->mapping[i] = (i * 2 + number) % DIMS;
        thread->lattice[i] = 7 + number + i;
    }
    thread->site = 24 * (number + 1);
    thread->bytes = (size_t)thread->site;
    MPI_Cart_create(MPI_COMM_WORLD, DIMS, turned, periods, 0, &thread->cart);
    lemonLocalLattice(thread->cart, thread->lattice, start, sites);
    for (int i = 0; i < DIMS; i++)
        thread->bytes *= (size_t)sites[i];
}

static void open_file(struct thread *thread)
{
    MPI_File_open(thread->cart, thread->path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL,
                  &thread->fp);
}

static int write_it(struct thread *thread, int wait, char *text, unsigned char *data)
{
    MPI_Offset n = TEXT, bytes = thread->site;
    for (int i = 0; i < DIMS; i++)
        bytes *= thread->lattice[i];
    LemonWriter *w = lemonCreateWriter(&thread->fp, thread->cart);
    lemonWriterSetStripe(w, 512);
    int code = begin_record(w, 1, 0, "text", n);
    code |= lemonWriteRecordData(text, &n, w);
    code |= lemonWriterCloseRecord(w);
    code |= begin_record(w, 0, 1, "lattice", bytes);
    code |= wait ? lemonWriteLatticeParallelMapped(w, data, thread->site, thread->lattice,
                                                   thread->mapping)
                 : lemonWriteLatticeParallelNonBlockingMapped(w, data, thread->site,
                                                              thread->lattice, thread->mapping);
    code |= lemonWriterCloseRecord(w);
    code |= lemonDestroyWriter(w);
    return code == LEMON_SUCCESS;
}

static int read_it(struct thread *thread, int wait, const char *text, const unsigned char *data)
{
    MPI_Offset n = TEXT;
    char got_text[TEXT] = "";
    unsigned char *got = calloc(1, thread->bytes + 1);
    LemonReader *r = lemonCreateReader(&thread->fp, thread->cart);
    lemonReaderSetStripe(r, 1024);
    int code = lemonReaderNextRecord(r);
    code |= lemonReaderReadData(got_text, &n, r);
    code |= lemonReaderNextRecord(r);
    code |= wait ? lemonReadLatticeParallelMapped(r, got, thread->site, thread->lattice,
                                                  thread->mapping)
                 : lemonReadLatticeParallelNonBlockingMapped(r, got, thread->site,
                                                             thread->lattice, thread->mapping);
    code |= lemonFinishReading(r);
    int good = code == LEMON_SUCCESS && lemonReaderNextRecord(r) == LEMON_EOF &&
               memcmp(text, got_text, TEXT) == 0 && memcmp(data, got, thread->bytes) == 0;
    lemonDestroyReader(r);
    free(got);
    return good;
}

static void *work(void *context)
{
    struct thread *thread = context;
    unsigned char *data = malloc(thread->bytes + 1);
    char text[TEXT];
    for (int round = 0; round < thread->rounds; round++) {
        memset(text, 'a' + (round + thread->number) % 26, sizeof text);
        for (size_t i = 0; i < thread->bytes; i++)
            data[i] = value(thread, round, i);
        if (thread->opens)
            open_file(thread);
        thread->bad += !write_it(thread, round % 2, text, data);
        thread->bad += !read_it(thread, round / 2 % 2, text, data);
        if (thread->opens)
            MPI_File_close(&thread->fp);
    }
    free(data);
    return NULL;
}

static void run(struct thread *threads, int rounds, int opens)
{
    for (int i = 0; i < THREADS; i++) {
        threads[i].rounds = rounds;
        threads[i].opens = opens;
        if (!opens)
            open_file(&threads[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i].id, NULL, work, &threads[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i].id, NULL);
    for (int i = 0; i < THREADS; i++)
        if (!opens)
            MPI_File_close(&threads[i].fp);
}

int main(int argc, char *argv[])
{
    static struct thread threads[THREADS];
    if (tap_begin_threads(&argc, &argv, MPI_THREAD_MULTIPLE) < MPI_THREAD_MULTIPLE) {
        if (tap_rank == 0)
            printf("1..0 # SKIP MPI does not provide MPI_THREAD_MULTIPLE\n");
        MPI_Finalize();
        return 0;
    }
    int rounds = argc > 2 ? atoi(argv[2]) : 1;
    for (int i = 0; i < THREADS; i++)
        prepare(&threads[i], i, argv[1]);
    run(threads, rounds, argc > 3 && strcmp(argv[3], "each") == 0);
    for (int i = 0; i < THREADS; i++) {
        tap_ok(threads[i].bad == 0, "thread %d, %d rounds, %d bad", i, rounds, threads[i].bad);
        MPI_Comm_free(&threads[i].cart);
        remove_file(threads[i].path);
    }
    return tap_end();
}
