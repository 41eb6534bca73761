/*
 * lemon_benchmark.c - measure how fast Lemon writes and reads a lattice, and verify the data
 *
 * All processes agree on the success of each step: they continue together or end together.
 */
#include "lemon.h"
#include "limeoutput.h"
#include "pattern.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SITE_BYTES = 72 * 8, /* 4 complex 3x3 matrices, as in a gauge configuration */
    INFO_BYTES = 256,
    L_MAX = (1 << 30) - 1, /* 2 L must fit in an int */
    MEASUREMENTS_MAX = 1000000,
};

#define DATA_TYPE "benchmark"
#define INFO_TYPE "benchmark-info" /* seed and lattice, to check the data of a kept file */

struct arguments {
    const char *file;
    int L; /* 0 with --read */
    int measurements;
    bool checksum, force, keep, read, help;
};

struct bench {
    struct arguments options;
    MPI_Comm cartesian;
    int rank, ranks;
    struct bench_pattern lattice;
    int64_t bytes;   /* of the whole lattice */
    char *data;      /* of this process */
    uint64_t seed;   /* of the first measurement */
    double *writing; /* seconds of each measurement */
    double *reading; /* the same */
};

/* ---- the command line ---- */

static const char usage_text[] =
    "usage: lemon_benchmark [-ck] [-f file] [--force] L measurements\n"
    "       lemon_benchmark -r [-c] [-f file] measurements\n";

static const char help_text[] =
    "\n"
    "Writes a lattice of L x L x L x 2L sites, 576 bytes each, by Lemon's parallel calls, "
    "reads\n"
    "it again, checks every byte, and prints how long it took. To be run by mpirun: the "
    "lattice\n"
    "is distributed over the processes, and its extents are adjusted where they cannot be\n"
    "divided.\n"
    "\n"
    "  -c, --checksum   with the SciDAC checksum, which counts as a part of both times\n"
    "  -f, --file FILE  the file to use (benchmark.test)\n"
    "      --force      overwrite that file if it exists\n"
    "  -k, --keep       leave the file\n"
    "  -r, --read       only read and check a file that was kept; any number of processes\n"
    "  -h, --help       this text\n"
    "\n"
    "Writing times include closing the record, after which all data are on the disk. Times "
    "are\n"
    "those of the slowest process. Data read at once after writing often come from memory.\n"
    "Exits with 1 if an operation failed or a byte was wrong, 2 if called wrongly.\n";

static bool parse_positive(const char *text, int max, int *number)
{
    char *end;
    long value = strtol(text, &end, 10);
    *number = (int)value;
    return *text && !*end && value >= 1 && value <= max;
}

/* Returns false if the arguments are wrong. */
static bool parse_arguments(int argc, char **argv, struct arguments *options)
{
    static const struct option names[] = {{"checksum", no_argument, NULL, 'c'},
                                          {"file", required_argument, NULL, 'f'},
                                          {"keep", no_argument, NULL, 'k'},
                                          {"read", no_argument, NULL, 'r'},
                                          {"force", no_argument, NULL, 'F'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *options = (struct arguments){.file = "benchmark.test"};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "cf:krh", names, NULL)) != -1;) {
        if (c == 'c')
            options->checksum = true;
        else if (c == 'f')
            options->file = optarg;
        else if (c == 'F')
            options->force = true;
        else if (c == 'k')
            options->keep = true;
        else if (c == 'r')
            options->read = true;
        else if (c == 'h')
            return options->help = true;
        else
            return false;
    }
    char **args = argv + optind;
    int n = argc - optind;
    if (options->read)
        return n == 1 && parse_positive(args[0], MEASUREMENTS_MAX, &options->measurements);
    return n == 2 && parse_positive(args[0], L_MAX, &options->L) &&
           parse_positive(args[1], MEASUREMENTS_MAX, &options->measurements);
}

/* ---- statistics ---- */

static double compute_mean(const double *values, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += values[i];
    return sum / n;
}

/* Returns the standard deviation of n values as a whole population: divided by n, not n - 1. */
static double compute_standard_deviation(const double *values, int n)
{
    double mean = compute_mean(values, n), sum = 0;
    for (int i = 0; i < n; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return sqrt(sum / n);
}

/* ---- data ---- */

/* Each byte depends only on the seed and on its offset in the whole lattice. So reading can
 * check the data without a copy, and the file does not depend on the number of processes. */
static void fill_data(const struct bench *b, uint64_t seed)
{
    int64_t pieces = bench_pattern_pieces(&b->lattice, b->rank);
    for (int64_t i = 0; i < pieces; i++) {
        struct bench_piece piece;
        bench_pattern_piece(&b->lattice, b->rank, i, &piece);
        bench_data_fill(seed, piece.offset, b->data + piece.mem_offset, piece.bytes);
    }
}

/* Returns the number of wrong bytes. Sets *first to the offset of the first in b->data. */
static int64_t count_wrong(const struct bench *b, uint64_t seed, int64_t *first)
{
    int64_t pieces = bench_pattern_pieces(&b->lattice, b->rank), bytes = 0;
    for (int64_t i = 0; i < pieces; i++) {
        struct bench_mismatch wrong = {0};
        struct bench_piece piece;
        bench_pattern_piece(&b->lattice, b->rank, i, &piece);
        bench_data_check(seed, piece.offset, b->data + piece.mem_offset, piece.bytes, &wrong);
        if (wrong.bytes && !bytes)
            *first = piece.mem_offset + wrong.offset - piece.offset;
        bytes += wrong.bytes;
    }
    return bytes;
}

/* format_info() writes the text of the INFO_TYPE record and returns its length. parse_info()
 * sets seed and lattice from such a text; it returns false if the text has another form. */
static int format_info(const struct bench *b, uint64_t seed, char text[INFO_BYTES])
{
    const int *l = b->lattice.lattice;
    return snprintf(text, INFO_BYTES, "seed = %" PRIu64 "\nlattice = %d %d %d %d\n", seed, l[0],
                    l[1], l[2], l[3]);
}

static bool parse_info(struct bench *b, const char *text)
{
    int *l = b->lattice.lattice;
    return sscanf(text, "seed = %" SCNu64 " lattice = %d %d %d %d", &b->seed, &l[0], &l[1],
                  &l[2], &l[3]) == 1 + BENCH_DIMS &&
           l[0] > 0 && l[1] > 0 && l[2] > 0 && l[3] > 0;
}

/* ---- collective calls and messages ---- */

/* Prints "lemon_benchmark: text" to stderr as one line without control characters. */
__attribute__((format(printf, 1, 2))) static void print_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    limefile_text_print("lemon_benchmark", format, args);
    va_end(args);
}

static void print_root_error(const struct bench *b, const char *action, const char *reason)
{
    if (b->rank == 0)
        print_error("%s: %s: %s", b->options.file, action, reason);
}

/* Returns true if `good` is true on all ranks. Otherwise rank 0 prints the reason that it
 * passed, and all ranks return false. Collective. */
static bool ranks_ok(const struct bench *b, bool good, const char *action, const char *reason)
{
    int all_good = good;
    MPI_Allreduce(MPI_IN_PLACE, &all_good, 1, MPI_INT, MPI_LAND, b->cartesian);
    if (!all_good)
        print_root_error(b, action, reason);
    return all_good;
}

/* Returns true if code, the same on all ranks, is LEMON_SUCCESS. Rank 0 prints an error. */
static bool lemon_ok(const struct bench *b, int code, const char *action)
{
    char reason[64];
    snprintf(reason, sizeof reason, "Lemon error %d", code);
    if (code != LEMON_SUCCESS)
        print_root_error(b, action, reason);
    return code == LEMON_SUCCESS;
}

__attribute__((format(printf, 2, 3))) static void print_root(const struct bench *b,
                                                             const char *format, ...)
{
    if (b->rank != 0)
        return;
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fflush(stdout);
}

static void print_lemon_message(char const *text, void *context)
{
    (void)context;
    print_error("%s", text);
}

static double slowest_time(const struct bench *b, double seconds)
{
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, b->cartesian);
    return seconds > 0 ? seconds : MPI_Wtick(); /* not 0: print_speed() divides by it */
}

static bool open_benchmark(const struct bench *b, int mode, MPI_File *fp)
{
    char reason[MPI_MAX_ERROR_STRING] = "failed on another process";
    int length, err = MPI_File_open(b->cartesian, b->options.file, mode, MPI_INFO_NULL, fp);
    if (err != MPI_SUCCESS)
        MPI_Error_string(err, reason, &length);
    return ranks_ok(b, err == MPI_SUCCESS, "open", reason);
}

static bool close_benchmark(const struct bench *b, MPI_File *fp)
{
    return ranks_ok(b, MPI_File_close(fp) == MPI_SUCCESS, "close", "MPI_File_close failed");
}

/* ---- writing ---- */

/* Returns 0 if the file may be written, otherwise -errno or a code of limefile.h: it exists and
 * --force is not given, another process has locked it as a container, or it is not regular. */
static int check_existing(const struct arguments *o)
{
    struct stat st;
    if (lstat(o->file, &st) != 0)
        return 0; /* if it cannot be created, MPI_File_open() fails */
    if (!o->force)
        return LIMEFILE_E_OUTPUT_EXISTS;
    int fd = limefile_output_lock(AT_FDCWD, o->file);
    if (fd < 0)
        return fd == -EBUSY ? LIMEFILE_E_OUTPUT_LOCKED : fd;
    int err = limefile_check_fd(fd);
    close(fd); /* unlocks the file: MPI libraries use their own locks */
    return err;
}

static bool may_write(const struct bench *b)
{
    int err = b->rank == 0 ? check_existing(&b->options) : 0;
    MPI_Bcast(&err, 1, MPI_INT, 0, b->cartesian);
    return ranks_ok(b, err == 0, "write",
                    err == LIMEFILE_E_OUTPUT_EXISTS ? "exists already; --force overwrites it"
                                                    : limefile_strerror(err));
}

static bool start_record(const struct bench *b, LemonWriter *w, int mb, int me,
                         const char *type, MPI_Offset bytes)
{
    LemonRecordHeader *header = lemonCreateHeader(mb, me, type, bytes);
    int code = lemonWriteRecordHeader(header, w);
    lemonDestroyHeader(header);
    return lemon_ok(b, code, "write header");
}

static bool write_info(const struct bench *b, LemonWriter *w, uint64_t seed)
{
    char text[INFO_BYTES];
    MPI_Offset bytes = format_info(b, seed, text);
    return start_record(b, w, 1, 0, INFO_TYPE, bytes) &&
           lemon_ok(b, lemonWriteRecordData(text, &bytes, w), "write " INFO_TYPE) &&
           lemon_ok(b, lemonWriterCloseRecord(w), "close " INFO_TYPE);
}

static bool write_data_record(const struct bench *b, LemonWriter *w, double *seconds)
{
    bool summed = b->options.checksum;
    LemonChecksum sum;
    if (!lemon_ok(b, lemonWriterSetChecksum(w, summed), "checksum") ||
        !start_record(b, w, 0, !summed, DATA_TYPE, b->bytes))
        return false;
    MPI_Barrier(b->cartesian);
    double start = MPI_Wtime();
    bool good =
        lemon_ok(b, lemonWriteLatticeParallel(w, b->data, SITE_BYTES, b->lattice.lattice),
                 "write") &&
        lemon_ok(b, lemonWriterCloseRecord(w), "close record") &&
        (!summed || lemon_ok(b, lemonWriterChecksum(w, &sum), "checksum"));
    *seconds = slowest_time(b, MPI_Wtime() - start);
    return good && (!summed || lemon_ok(b, lemonWriteChecksum(w, 0, 1, &sum),
                                        "write " LEMON_CHECKSUM_TYPE));
}

static bool measure_writing(const struct bench *b, uint64_t seed, double *seconds)
{
    MPI_File fp;
    fill_data(b, seed);
    if (!open_benchmark(b, MPI_MODE_WRONLY | MPI_MODE_CREATE, &fp))
        return false;
    bool good = ranks_ok(b, MPI_File_set_size(fp, 0) == MPI_SUCCESS, "truncate", "failed");
    LemonWriter *w = good ? lemonCreateWriter(&fp, b->cartesian) : NULL;
    if (good)
        good = ranks_ok(b, w != NULL, "write", "out of memory");
    good = good && write_info(b, w, seed) && write_data_record(b, w, seconds);
    if (w)
        good = lemon_ok(b, lemonDestroyWriter(w), "end writing") && good;
    return close_benchmark(b, &fp) && good;
}

/* ---- reading ---- */

/* Opens the next record of this type. Returns false after a message if it finds none. */
static bool find_type(const struct bench *b, LemonReader *r, const char *type)
{
    int code;
    while ((code = lemonReaderNextRecord(r)) == LEMON_SUCCESS)
        if (strcmp(lemonReaderType(r), type) == 0)
            return true;
    if (code != LEMON_EOF)
        return lemon_ok(b, code, "next record");
    return ranks_ok(b, false, type, "no such record");
}

/* Compares the checksum of the data with the checksum record. */
static bool compare_checksum(const struct bench *b, LemonReader *r, LemonChecksum sum)
{
    LemonChecksum stored = {0, 0};
    if (!find_type(b, r, LEMON_CHECKSUM_TYPE) ||
        !lemon_ok(b, lemonReadChecksum(r, &stored), "read " LEMON_CHECKSUM_TYPE))
        return false;
    if (sum.suma != stored.suma || sum.sumb != stored.sumb)
        return ranks_ok(b, false, "checksum", "the data do not match the checksum");
    print_root(b, "The checksum is %08" PRIx32 " %08" PRIx32 ", as in the file.\n", sum.suma,
               sum.sumb);
    return true;
}

static bool read_data_record(const struct bench *b, LemonReader *r, double *seconds)
{
    LemonChecksum sum = {0, 0};
    if (!lemon_ok(b, lemonReaderSetChecksum(r, b->options.checksum), "checksum"))
        return false;
    if (!find_type(b, r, DATA_TYPE) || !ranks_ok(b, lemonReaderBytes(r) == b->bytes, DATA_TYPE,
                                                 "the record's length is wrong"))
        return false;
    MPI_Barrier(b->cartesian);
    double start = MPI_Wtime();
    int code = lemonReadLatticeParallel(r, b->data, SITE_BYTES, b->lattice.lattice);
    if (code == LEMON_SUCCESS && b->options.checksum)
        code = lemonReaderChecksum(r, &sum);
    *seconds = slowest_time(b, MPI_Wtime() - start);
    return lemon_ok(b, code, "read") && (!b->options.checksum || compare_checksum(b, r, sum));
}

static bool measure_reading(const struct bench *b, double *seconds)
{
    MPI_File fp;
    /* Preset the data, so that unread bytes cannot be right by chance. */
    memset(b->data, 0xff, (size_t)bench_pattern_rank_bytes(&b->lattice, b->rank));
    if (!open_benchmark(b, MPI_MODE_RDONLY, &fp))
        return false;
    LemonReader *r = lemonCreateReader(&fp, b->cartesian);
    bool good =
        ranks_ok(b, r != NULL, "read", "out of memory") && read_data_record(b, r, seconds);
    lemonDestroyReader(r);
    return close_benchmark(b, &fp) && good;
}

static bool read_info(struct bench *b)
{
    MPI_File fp;
    char text[INFO_BYTES] = "";
    MPI_Offset n = sizeof text - 1;
    if (!open_benchmark(b, MPI_MODE_RDONLY, &fp))
        return false;
    LemonReader *r = lemonCreateReader(&fp, b->cartesian);
    bool good = ranks_ok(b, r != NULL, "read", "out of memory") && find_type(b, r, INFO_TYPE) &&
                lemon_ok(b, lemonReaderReadData(text, &n, r), "read " INFO_TYPE) &&
                ranks_ok(b, parse_info(b, text), INFO_TYPE, "not a file that -k has written");
    lemonDestroyReader(r);
    return close_benchmark(b, &fp) && good;
}

/* ---- the lattice ---- */

/* Creates the communicator and sets the lattice, whose extents are multiples of the grid's. */
static bool create_grid(struct bench *b)
{
    struct bench_pattern *p = &b->lattice;
    int periods[BENCH_DIMS] = {1, 1, 1, 1};
    MPI_Comm_size(MPI_COMM_WORLD, &b->ranks);
    *p = (struct bench_pattern){.kind = BENCH_LATTICE,
                                .ranks = b->ranks,
                                .transfer = INT64_MAX,
                                .site_bytes = SITE_BYTES};
    MPI_Dims_create(b->ranks, BENCH_DIMS, p->grid);
    MPI_Cart_create(MPI_COMM_WORLD, BENCH_DIMS, p->grid, periods, 1, &b->cartesian);
    MPI_Comm_rank(b->cartesian, &b->rank);
    for (int d = 0; d < BENCH_DIMS; d++) {
        int whole = d == BENCH_DIMS - 1 ? 2 * b->options.L : b->options.L;
        int local = whole / p->grid[d] ? whole / p->grid[d] : 1;
        if (__builtin_mul_overflow(local, p->grid[d], &p->lattice[d]))
            return ranks_ok(b, false, "lattice", "too large");
    }
    return true;
}

static bool allocate_arrays(struct bench *b)
{
    b->bytes = bench_pattern_bytes(&b->lattice);
    if (!ranks_ok(b, b->bytes > 0, "lattice", "too large"))
        return false;
    size_t n = (size_t)b->options.measurements;
    int64_t local = bench_pattern_rank_bytes(&b->lattice, b->rank);
    b->data = malloc((size_t)local + 1); /* + 1: `local` can be 0 */
    b->writing = calloc(n, sizeof *b->writing);
    b->reading = calloc(n, sizeof *b->reading);
    return ranks_ok(b, b->data && b->writing && b->reading, "lattice", "not enough memory");
}

/* Each run has its own seed, so that the check detects data of an earlier run. Collective. */
static void choose_seed(struct bench *b)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    b->seed = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    MPI_Bcast(&b->seed, 1, MPI_UINT64_T, 0, b->cartesian);
}

/* ---- results ---- */

static void print_sizes(const struct bench *b)
{
    const int *whole = b->lattice.lattice;
    char size[LIMEFILE_SIZE_CHARS];
    struct lemon_box local;
    bench_pattern_box(&b->lattice, 0, &local); /* rank 0 has the largest part */
    print_root(b, "Benchmark on a block of data %s in size,\n",
               limefile_format_bytes((uint64_t)b->bytes, size));
    print_root(b, "representing a %d x %d x %d x %d lattice", whole[0], whole[1], whole[2],
               whole[3]);
    if (b->ranks > 1)
        print_root(b,
                   ",\ndistributed over %d MPI processes\n"
                   "for a local %d x %d x %d x %d lattice",
                   b->ranks, (int)local.sites[0], (int)local.sites[1], (int)local.sites[2],
                   (int)local.sites[3]);
    print_root(b, ".\n\n");
}

static void print_average(const struct bench *b, const char *what, const double *seconds)
{
    int n = b->options.measurements;
    print_root(b, "Average time spent %s was %.2e s, with a standard deviation of %.2e s.\n",
               what, compute_mean(seconds, n), compute_standard_deviation(seconds, n));
}

/* Prints bytes / mean time on rank 0. `seconds` has options.measurements values. */
static void print_speed(const struct bench *b, const char *what, const double *seconds)
{
    char speed[LIMEFILE_SIZE_CHARS];
    double mean = compute_mean(seconds, b->options.measurements);
    print_root(b, "Average %s speed was %s/s\n", what,
               limefile_format_bytes((uint64_t)((double)b->bytes / mean), speed));
}

static void print_results(const struct bench *b, int wrong)
{
    if (!b->options.read)
        print_average(b, "writing", b->writing);
    print_average(b, "reading", b->reading);
    print_root(b, "\n");
    if (!b->options.read)
        print_speed(b, "writing", b->writing);
    print_speed(b, "reading", b->reading);
    if (wrong)
        print_root(b, "WARNING: data were wrong in %d of %d measurements!\n", wrong,
                   b->options.measurements);
    else
        print_root(b, "All data were read back correctly.\n");
}

/* ---- the measurements ---- */

/* Returns true if the data of all ranks are right. Ranks with wrong data print errors. */
static bool verify_data(const struct bench *b, uint64_t seed)
{
    int64_t first = 0, wrong[2] = {count_wrong(b, seed, &first)};
    if (wrong[0])
        print_error("%s: check: rank %d: wrong bytes: %" PRId64 "; the first is byte %" PRId64
                    " of the rank's part",
                    b->options.file, b->rank, wrong[0], first);
    wrong[1] = wrong[0] != 0;
    MPI_Allreduce(MPI_IN_PLACE, wrong, 2, MPI_INT64_T, MPI_SUM, b->cartesian);
    if (wrong[0])
        print_root(b, "WARNING: wrong bytes: %" PRId64 ", on %" PRId64 " of %d nodes!\n\n",
                   wrong[0], wrong[1], b->ranks);
    else
        print_root(b, "All nodes report that every byte matches.\n\n");
    return wrong[0] == 0;
}

static bool run_measurement(const struct bench *b, int i, bool *is_right)
{
    /* With --read, all measurements read the same data; otherwise each writes its own. */
    uint64_t seed = b->options.read ? b->seed : b->seed + (uint64_t)i;
    print_root(b, "Measurement %d of %d.\n", i + 1, b->options.measurements);
    if (!b->options.read) {
        if (!measure_writing(b, seed, &b->writing[i]))
            return false;
        print_root(b, "Time spent writing was %.2g s.\n", b->writing[i]);
    }
    if (!measure_reading(b, &b->reading[i]))
        return false;
    print_root(b, "Time spent reading was %.2g s.\n", b->reading[i]);
    *is_right = verify_data(b, seed);
    return true;
}

static bool run_measurements(struct bench *b)
{
    int wrong = 0;
    if (!(b->options.read ? read_info(b) : may_write(b)))
        return false;
    if (!b->options.read)
        choose_seed(b);
    if (!allocate_arrays(b))
        return false;
    print_sizes(b);
    for (int i = 0; i < b->options.measurements; i++) {
        bool is_right;
        if (!run_measurement(b, i, &is_right))
            return false;
        wrong += !is_right;
    }
    print_results(b, wrong);
    return wrong == 0;
}

/* Only called after success: after a failure the file stays for inspection. */
static bool remove_benchmark(const struct bench *b)
{
    if (b->options.read || b->options.keep)
        return true;
    bool good = b->rank != 0 || MPI_File_delete(b->options.file, MPI_INFO_NULL) == MPI_SUCCESS;
    return ranks_ok(b, good, "delete", "failed");
}

static int run_with_options(const struct arguments *options)
{
    struct bench b = {.options = *options};
    lemonSetMessageHandler(print_lemon_message, NULL);
    bool good = create_grid(&b) && run_measurements(&b) && remove_benchmark(&b);
    free(b.data);
    free(b.writing);
    free(b.reading);
    MPI_Comm_free(&b.cartesian);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct arguments options;
    int rank, status = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!parse_arguments(argc, argv, &options)) {
        status = 2;
        if (rank == 0)
            fputs(usage_text, stderr);
    } else if (options.help) {
        if (rank == 0)
            printf("%s%s", usage_text, help_text);
    } else {
        status = run_with_options(&options);
    }
    errno = EIO; /* for a write that failed earlier: its errno is lost */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        print_error("standard output: write: %s", strerror(errno));
        status = status ? status : 1;
    }
    MPI_Finalize();
    return status;
}
