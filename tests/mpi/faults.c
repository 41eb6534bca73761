/*
 * faults.c - make one call of MPI-IO on one rank fail or move a byte less: all ranks report it
 *
 * usage: faults FILE [threads] [all] [one]
 *
 * Each scenario runs once without a fault, which counts the calls of every rank; then once for
 * each of these calls with this call failing. All ranks must get the same negative code from
 * the same step, the step must succeed when it is retried, and the file must be the same as
 * without the fault. With every second fault the step is not retried; with `all`, each fault
 * runs in both ways. With `one`, a call that several ranks make fails on one of them. alarm()
 * in tap.h ends a rank that waits for ever.
 */
#include "files.h"

/* ---- MPI's profiling interface: intercepts the library's calls ---- */

enum call {
    WRITE_AT,
    READ_AT,
    IWRITE_AT,
    IREAD_AT,
    SYNC,
    GET_SIZE,
    CALLS,
};

static const char *const call_names[CALLS] = {"write_at", "read_at", "iwrite_at",
                                              "iread_at", "sync",    "get_size"};

static struct fault {
    enum call call;
    int rank, number; /* index among the calls of this rank; 0: no fault */
    int one_less;     /* move a byte less, instead of an error */
    int once;         /* do not retry the failed step */
} fault;

static int calls[CALLS];
static int all_faults; /* each with and without a retry */
static int one_rank;   /* each call fails on one of the ranks that make it */

static int strikes(enum call call)
{
    calls[call]++;
    return tap_rank == fault.rank && call == fault.call && calls[call] == fault.number;
}

int MPI_File_write_at(MPI_File fh, MPI_Offset offset, const void *buf, int count,
                      MPI_Datatype type, MPI_Status *status)
{
    if (!strikes(WRITE_AT))
        return PMPI_File_write_at(fh, offset, buf, count, type, status);
    return fault.one_less ? PMPI_File_write_at(fh, offset, buf, count - 1, type, status)
                          : MPI_ERR_IO;
}

static const char *path;
static off_t cut_to = -1; /* size of the file when the next read begins; -1: unchanged */

static void cut_file(void)
{
    if (cut_to >= 0 && truncate(path, cut_to) != 0)
        perror(path);
    cut_to = -1;
}

int MPI_File_read_at(MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype type,
                     MPI_Status *status)
{
    cut_file();
    if (!strikes(READ_AT))
        return PMPI_File_read_at(fh, offset, buf, count, type, status);
    return fault.one_less ? PMPI_File_read_at(fh, offset, buf, count - 1, type, status)
                          : MPI_ERR_IO;
}

int MPI_File_iwrite_at(MPI_File fh, MPI_Offset offset, const void *buf, int count,
                       MPI_Datatype type, MPI_Request *request)
{
    if (!strikes(IWRITE_AT))
        return PMPI_File_iwrite_at(fh, offset, buf, count, type, request);
    return fault.one_less ? PMPI_File_iwrite_at(fh, offset, buf, count - 1, type, request)
                          : MPI_ERR_IO;
}

int MPI_File_iread_at(MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype type,
                      MPI_Request *request)
{
    cut_file();
    if (!strikes(IREAD_AT))
        return PMPI_File_iread_at(fh, offset, buf, count, type, request);
    return fault.one_less ? PMPI_File_iread_at(fh, offset, buf, count - 1, type, request)
                          : MPI_ERR_IO;
}

int MPI_File_sync(MPI_File fh) /* collective: the others wait for this rank */
{
    int strike = strikes(SYNC), err = PMPI_File_sync(fh);
    return strike ? MPI_ERR_IO : err;
}

int MPI_File_get_size(MPI_File fh, MPI_Offset *size)
{
    return strikes(GET_SIZE) ? MPI_ERR_IO : PMPI_File_get_size(fh, size);
}

/* ---- data ---- */

enum {
    TEXT = 104, /* without padding: the library then checks the size of the file */
    MORE = 1003,
};

/* A lattice of two dimensions with distributed columns: `rows` runs for each rank. */
static const struct shape {
    const char *name;
    int rows, columns, site; /* columns of each rank */
} shapes[] = {
    {"direct", 2, 5, 65536},
    {"aggregators", 40, 3, 100},
};

static const struct shape *shape;
static int waiting;
static MPI_Comm cart;
static MPI_File fp;
static LemonWriter *writer;
static LemonReader *reader;
static unsigned char text[MORE];
static unsigned char *part, *got; /* this rank's part of the lattice */
static size_t part_bytes;
static int messages;

static void count_message(char const *message, void *context)
{
    (void)message;
    (void)context;
    messages++;
}

static void fill_part(void)
{
    size_t run = (size_t)shape->columns * (size_t)shape->site;
    part_bytes = (size_t)shape->rows * run;
    part = malloc(part_bytes);
    got = malloc(part_bytes);
    for (size_t i = 0; i < part_bytes; i++) {
        size_t disk = (i / run * (size_t)tap_ranks + (size_t)tap_rank) * run + i % run;
        part[i] = (unsigned char)((disk * 2654435761u) >> 13);
    }
}

static void free_part(void)
{
    free(part);
    free(got);
    part = got = NULL;
}

/* Small ranges make a small lattice take several rounds of several aggregators. */
static MPI_Info small_ranges(void)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "striping_unit", "512");
    MPI_Info_set(info, "cb_buffer_size", "2048");
    return info;
}

static void open_writer(void)
{
    writer = create_writer(path, cart, MPI_MODE_WRONLY, &fp);
    MPI_Info info = small_ranges();
    lemonWriterSetInfo(writer, info);
    MPI_Info_free(&info);
}

static void open_reader(void)
{
    reader = create_reader(path, cart, &fp);
    MPI_Info info = small_ranges();
    lemonReaderSetInfo(reader, info);
    MPI_Info_free(&info);
}

/* ---- steps: each can be retried ---- */

static int begin_text(void)
{
    return begin_record(writer, 1, 0, "text", TEXT);
}

static int begin_more(void) /* aligned: the library writes a filler first */
{
    int code = lemonWriterSetAlignment(writer, 64, 0);
    return code == LEMON_SUCCESS ? begin_record(writer, 0, 1, "more", MORE) : code;
}

static int begin_lattice(void)
{
    return begin_record(writer, 1, 1, "lattice", (MPI_Offset)part_bytes * tap_ranks);
}

static int write_text(void)
{
    MPI_Offset n = TEXT;
    return lemonWriteRecordData(text, &n, writer);
}

static int write_more(void)
{
    MPI_Offset n = MORE;
    int code = lemonWriterSeek(writer, 0, MPI_SEEK_SET);
    if (code == LEMON_SUCCESS)
        code = lemonWriteRecordDataNonBlocking(text, &n, writer);
    return code == LEMON_SUCCESS ? lemonFinishWriting(writer) : code;
}

/* A non-blocking call moves the position before its failure is known. */
static int write_lattice(void)
{
    int lattice[2] = {shape->rows, shape->columns * tap_ranks};
    if (waiting)
        return lemonWriteLatticeParallel(writer, part, shape->site, lattice);
    int code = lemonWriterSeek(writer, 0, MPI_SEEK_SET);
    if (code == LEMON_SUCCESS)
        code = lemonWriteLatticeParallelNonBlocking(writer, part, shape->site, lattice);
    return code == LEMON_SUCCESS ? lemonFinishWriting(writer) : code;
}

static int start_writing(void)
{
    int lattice[2] = {shape->rows, shape->columns * tap_ranks};
    return lemonWriteLatticeParallelNonBlocking(writer, part, shape->site, lattice);
}

static int close_record(void)
{
    return lemonWriterCloseRecord(writer);
}

static int next_record(void)
{
    return lemonReaderNextRecord(reader);
}

static int start_reading(void)
{
    int lattice[2] = {shape->rows, shape->columns * tap_ranks};
    return lemonReadLatticeParallelNonBlocking(reader, got, shape->site, lattice);
}

static int at_end(void)
{
    int code = lemonReaderNextRecord(reader);
    return code == LEMON_EOF ? LEMON_SUCCESS : code == LEMON_SUCCESS ? 1 : code;
}

static int compare(int code, const void *want, size_t n)
{
    return code == LEMON_SUCCESS && memcmp(got, want, n) != 0 ? 1 : code;
}

static int read_text(void)
{
    MPI_Offset n = TEXT;
    memset(got, 0xaa, TEXT);
    return compare(lemonReaderReadData(got, &n, reader), text, TEXT);
}

static int read_more(void)
{
    MPI_Offset n = MORE;
    memset(got, 0xaa, MORE);
    int code = lemonReaderSeek(reader, 0, MPI_SEEK_SET);
    if (code == LEMON_SUCCESS)
        code = lemonReaderReadDataNonBlocking(got, &n, reader);
    if (code == LEMON_SUCCESS)
        code = lemonFinishReading(reader);
    return compare(code, text, MORE);
}

static int read_lattice(void)
{
    int lattice[2] = {shape->rows, shape->columns * tap_ranks};
    memset(got, 0xaa, part_bytes);
    if (waiting)
        return compare(lemonReadLatticeParallel(reader, got, shape->site, lattice), part,
                       part_bytes);
    int code = lemonReaderSeek(reader, 0, MPI_SEEK_SET);
    if (code == LEMON_SUCCESS)
        code = lemonReadLatticeParallelNonBlocking(reader, got, shape->site, lattice);
    if (code == LEMON_SUCCESS)
        code = lemonFinishReading(reader);
    return compare(code, part, part_bytes);
}

/* ---- scenarios ---- */

enum {
    STEPS = 8,
};

typedef int step(void);

static const struct scenario {
    const char *name;
    int error; /* result of a fault; also distinguishes writing from reading */
    int once;  /* a step can't be retried */
    step *steps[STEPS];
} scenarios[] = {
    {"records",
     LEMON_ERR_WRITE,
     0,
     {begin_text, write_text, close_record, begin_more, write_more, close_record}},
    {"records",
     LEMON_ERR_READ,
     0,
     {next_record, read_text, next_record, next_record, read_more, at_end}},
    {"a record that destroy closes", LEMON_ERR_WRITE, 1, {begin_text, write_text}},
    {"a lattice", LEMON_ERR_WRITE, 0, {begin_lattice, write_lattice, close_record}},
    {"a lattice", LEMON_ERR_READ, 0, {next_record, read_lattice, at_end}},
    {"a lattice that close waits for",
     LEMON_ERR_WRITE,
     1,
     {begin_lattice, start_writing, close_record}},
    {"a lattice that destroy waits for", LEMON_ERR_WRITE, 1, {begin_lattice, start_writing}},
    {"a lattice that the next record waits for",
     LEMON_ERR_READ,
     1,
     {next_record, start_reading, at_end}},
};

/* The results of the steps; the last one is that of lemonDestroyWriter(). */
struct codes {
    int first[STEPS + 1], again[STEPS + 1];
};

static void run(const struct scenario *scenario, struct codes *codes)
{
    memset(codes, 0, sizeof *codes);
    if (scenario->error == LEMON_ERR_WRITE)
        open_writer();
    else
        open_reader();
    memset(calls, 0, sizeof calls);
    for (int i = 0; i < STEPS && scenario->steps[i]; i++) {
        codes->first[i] = scenario->steps[i]();
        if (codes->first[i] < 0 && !fault.once)
            codes->again[i] = scenario->steps[i]();
    }
    if (scenario->error == LEMON_ERR_WRITE)
        codes->first[STEPS] = lemonDestroyWriter(writer);
    else
        lemonDestroyReader(reader);
    fault.number = 0;
    MPI_File_close(&fp);
}

/* The first code that is not 0 is `error`; all retried steps succeeded. */
static int failed_well(const struct codes *codes, int error, int once)
{
    int i = 0, failed = 0, failed_again = 0;
    while (i < STEPS && codes->first[i] == LEMON_SUCCESS)
        i++;
    int good = codes->first[i] == error;
    for (i = 0; i <= STEPS; i++) {
        failed += codes->first[i] != LEMON_SUCCESS;
        failed_again += codes->again[i] != LEMON_SUCCESS;
    }
    return good && (once || (failed == 1 && failed_again == 0));
}

static int same_on_all_ranks(const struct codes *codes)
{
    struct codes least, most;
    int n = (int)(sizeof *codes / sizeof(int));
    MPI_Allreduce(codes, &least, n, MPI_INT, MPI_MIN, cart);
    MPI_Allreduce(codes, &most, n, MPI_INT, MPI_MAX, cart);
    return memcmp(&least, &most, sizeof least) == 0;
}

static int try_fault(const struct scenario *scenario, const unsigned char *want, size_t n)
{
    struct codes codes;
    struct fault injected = fault;
    int before = messages;
    run(scenario, &codes);
    int good = same_on_all_ranks(&codes);
    good = failed_well(&codes, scenario->error, injected.once) && good;
    good = (tap_rank != injected.rank || messages > before) && good;
    if (!injected.once && codes.first[STEPS] == LEMON_SUCCESS)
        good = file_is(path, want, n) && good;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, cart);
    if (!good && tap_rank == 0) {
        printf("# call %d of rank %d%s%s: codes", injected.number, injected.rank,
               injected.one_less ? ", a byte less" : "", injected.once ? ", once" : "");
        for (int i = 0; i <= STEPS; i++)
            printf(" %d %d,", codes.first[i], codes.again[i]);
        printf(" of rank 0\n");
    }
    return good;
}

/* The least number of transfers of a rank; 0 would contradict the scenario's name. */
static int least_moves(const int *made)
{
    int least = 1000;
    for (int rank = 0; rank < tap_ranks; rank++) {
        int moves = 0;
        for (int call = 0; call <= IREAD_AT; call++)
            moves += made[rank * CALLS + call];
        least = moves < least ? moves : least;
    }
    return least;
}

/* Selects one of the ranks that make call `number`, by turns. */
static int is_sampled(const int *made, enum call call, int rank, int turn, int number)
{
    int before = 0, ranks = 0;
    for (int other = 0; other < tap_ranks; other++)
        if (made[other * CALLS + (int)call] >= number) {
            before += other < rank;
            ranks++;
        }
    return before == turn % ranks;
}

static void faults_of(const struct scenario *scenario, enum call call, const int *made,
                      const unsigned char *want, size_t n)
{
    int faults = 0, bad = 0;
    for (int rank = 0; rank < tap_ranks; rank++)
        for (int i = 1; i <= made[rank * CALLS + call]; i++)
            for (int less = 0; less < (call <= IREAD_AT ? 2 : 1); less++)
                for (int once = scenario->once; once < 2; once++) {
                    if (!all_faults && !scenario->once && once != (rank + i + less) % 2)
                        continue;
                    if (one_rank && !is_sampled(made, call, rank, i + less, i))
                        continue;
                    faults++;
                    fault = (struct fault){call, rank, i, less, once};
                    bad += !try_fault(scenario, want, n);
                }
    if (faults)
        tap_ok(bad == 0, "%d faults of %s, %d not handled well", faults, call_names[call], bad);
}

/* moves: number of reads or writes that each rank must do. */
static void every_fault(const struct scenario *scenario, const char *how, int moves)
{
    struct codes codes;
    size_t n;
    int good = 1, *made = malloc((size_t)tap_ranks * CALLS * sizeof *made);
    run(scenario, &codes);
    for (int i = 0; i <= STEPS; i++)
        good = good && codes.first[i] == LEMON_SUCCESS;
    MPI_Allgather(calls, CALLS, MPI_INT, made, CALLS, MPI_INT, cart);
    tap_ok(good && least_moves(made) >= moves, "%s %s%s without a fault",
           scenario->error == LEMON_ERR_WRITE ? "writing" : "reading", scenario->name, how);
    unsigned char *want = file_bytes(path, &n);
    for (int call = 0; call < CALLS; call++)
        faults_of(scenario, (enum call)call, made, want, n);
    run(scenario, &codes); /* makes the file valid again */
    free(want);
    free(made);
}

/* Each reading scenario reads the file of the writing one before it. */
static void lattices(void)
{
    for (int i = 0; i < 2; i++)
        for (waiting = 0; waiting < 2; waiting++) {
            char how[64];
            int moves = i == 0 || waiting ? 2 : 1;
            shape = &shapes[i];
            snprintf(how, sizeof how, ", %s%s", shape->name, waiting ? "" : ", non-blocking");
            fill_part();
            every_fault(&scenarios[3], how, moves);
            every_fault(&scenarios[4], how, moves);
            for (int k = 5; k < 8 && !waiting; k++)
                every_fault(&scenarios[k], how, moves);
            free_part();
        }
}

static void records(void)
{
    shape = &shapes[0];
    fill_part();
    for (int k = 0; k < 3; k++)
        every_fault(&scenarios[k], "", 0);
    free_part();
}

/* ---- a file that ends too early ---- */

static void short_file(size_t whole, size_t cut)
{
    int code, lattice[2] = {shape->rows, shape->columns * tap_ranks};
    MPI_Offset n = (MPI_Offset)part_bytes;
    MPI_Barrier(cart);
    if (tap_rank == 0 && truncate(path, (off_t)(whole - cut)) != 0)
        perror(path);
    MPI_Barrier(cart);
    open_reader();
    code = lemonReaderNextRecord(reader);
    if (code == LEMON_SUCCESS && waiting)
        code = lemonReadLatticeParallel(reader, got, shape->site, lattice);
    else if (code == LEMON_SUCCESS)
        code = lemonReadLatticeParallelNonBlocking(reader, got, shape->site, lattice);
    if (code == LEMON_SUCCESS)
        code = lemonFinishReading(reader);
    tap_code(code, LEMON_ERR_READ, "a file cut short");
    code = lemonSetReaderPointer(reader, n * tap_ranks - n);
    if (code == LEMON_SUCCESS && waiting)
        code = lemonReaderReadData(got, &n, reader);
    else if (code == LEMON_SUCCESS)
        code = lemonReaderReadDataNonBlocking(got, &n, reader);
    if (code == LEMON_SUCCESS)
        code = lemonFinishReading(reader);
    tap_code(code, LEMON_ERR_READ, "and its data");
    end_reader(reader, &fp);
}

/* Open MPI retries a read beyond the end of file. */
static void cut_while_reading(void)
{
    int code, lattice[2] = {shape->rows, shape->columns * tap_ranks};
    open_reader();
    code = lemonReaderNextRecord(reader);
    cut_to = 145;
    if (code == LEMON_SUCCESS)
        code = lemonReadLatticeParallelNonBlocking(reader, got, shape->site, lattice);
    if (code == LEMON_SUCCESS)
        code = lemonFinishReading(reader);
    tap_code(code, LEMON_ERR_READ, "a file cut short while it is read");
    cut_to = -1;
    end_reader(reader, &fp);
}

static void short_files(void)
{
    struct codes codes;
    for (int i = 0; i < 2; i++) {
        shape = &shapes[i];
        fill_part();
        waiting = 1;
        run(&scenarios[3], &codes);
        size_t data = part_bytes * (size_t)tap_ranks, padding = (8 - data % 8) % 8;
        const size_t cuts[] = {1, 512, data / 2, data - 1, data};
        for (int k = 0; k < 5; k++)
            for (waiting = 0; waiting < 2; waiting++)
                short_file(144 + data + padding, padding + cuts[k]);
        waiting = 1;
        run(&scenarios[3], &codes);
        cut_while_reading();
        free_part();
    }
}

int main(int argc, char *argv[])
{
    int grid[2] = {1, 0}, periods[2] = {0}, threads = 0;
    for (int i = 2; i < argc; i++) {
        threads = threads || strcmp(argv[i], "threads") == 0;
        all_faults = all_faults || strcmp(argv[i], "all") == 0;
        one_rank = one_rank || strcmp(argv[i], "one") == 0;
    }
    /* The library avoids MPI's non-blocking calls where they are not thread-safe. */
    tap_begin_threads(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    path = argv[1];
    grid[1] = tap_ranks;
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periods, 0, &cart);
    for (int i = 0; i < MORE; i++)
        text[i] = (unsigned char)(i * 7 + i / 50);
    lemonSetMessageHandler(count_message, NULL);
    records();
    lattices();
    short_files();
    MPI_Comm_free(&cart);
    remove_file(path);
    return tap_end();
}
