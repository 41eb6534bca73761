/*
 * hints.c - test the hints in an MPI_Info: which ranks move a lattice, and in which ranges
 *
 * usage: hints FILE [compat]   compat: with LEMON_COMPAT=overfull in the environment
 *
 * MPI's profiling interface records the library's calls of MPI-IO.
 */
#include "files.h"

static const char *path;

/* ---- recording ---- */

static struct {
    MPI_Offset stripe; /* expected */
    MPI_Offset bytes;  /* moved by this rank */
    MPI_Offset most;   /* in one call */
    bool between;      /* a range began between stripes, after the lattice's start */
    MPI_Offset base;   /* offset of the lattice, expected */
} watch;

static void note(MPI_Offset offset, int count, MPI_Datatype type)
{
    int size;
    MPI_Type_size(type, &size);
    MPI_Offset bytes = (MPI_Offset)count * size;
    watch.bytes += bytes;
    watch.most = bytes > watch.most ? bytes : watch.most;
    if (bytes && watch.stripe && offset != watch.base && offset % watch.stripe)
        watch.between = true;
}

int MPI_File_write_at(MPI_File file, MPI_Offset offset, const void *data, int count,
                      MPI_Datatype type, MPI_Status *status)
{
    note(offset, count, type);
    return PMPI_File_write_at(file, offset, data, count, type, status);
}

int MPI_File_read_at(MPI_File file, MPI_Offset offset, void *data, int count, MPI_Datatype type,
                     MPI_Status *status)
{
    note(offset, count, type);
    return PMPI_File_read_at(file, offset, data, count, type, status);
}

int MPI_File_iwrite_at(MPI_File file, MPI_Offset offset, const void *data, int count,
                       MPI_Datatype type, MPI_Request *request)
{
    note(offset, count, type);
    return PMPI_File_iwrite_at(file, offset, data, count, type, request);
}

int MPI_File_iread_at(MPI_File file, MPI_Offset offset, void *data, int count,
                      MPI_Datatype type, MPI_Request *request)
{
    note(offset, count, type);
    return PMPI_File_iread_at(file, offset, data, count, type, request);
}

static void watch_from(MPI_Offset base, MPI_Offset stripe)
{
    memset(&watch, 0, sizeof watch);
    watch.base = base;
    watch.stripe = stripe;
}

/* Returns the number of ranks that have moved bytes. */
static int aggregators(void)
{
    int mine = watch.bytes > 0, all;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* ---- files ---- */

static int is_odd(void)
{
    return tap_rank == tap_ranks - 1;
}

static int alone(int wrong)
{
    return tap_ranks == 1 ? LEMON_SUCCESS : wrong;
}

static MPI_File open_file(int mode, MPI_Info info)
{
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, path, mode | (mode & MPI_MODE_RDONLY ? 0 : MPI_MODE_CREATE),
                  info, &file);
    return file;
}

/* ---- hints ---- */

/* Makes an info from pairs of key and value that a NULL ends. The caller frees it. */
static MPI_Info info_of(const char *const *pairs)
{
    MPI_Info info;
    MPI_Info_create(&info);
    for (; pairs[0]; pairs += 2)
        MPI_Info_set(info, pairs[0], pairs[1]);
    return info;
}

#define INFO(...) info_of((const char *const[]){__VA_ARGS__, NULL})

static int set_both(LemonReader *r, LemonWriter *w, MPI_Info info)
{
    int code = r ? lemonReaderSetInfo(r, info) : lemonWriterSetInfo(w, info);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    return code;
}

/* 1.5 MiB; its runs are short with 2 ranks or more. */
static const int lattice[] = {64, 384};
enum {
    SITE = 64,
    BYTES = 64 * 384 * SITE,
    DATA = 144, /* offset of its data */
};

static MPI_Comm columns(void)
{
    int grid[2] = {1, tap_ranks}, periods[2] = {0};
    MPI_Comm cart;
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periods, 0, &cart);
    return cart;
}

static unsigned char *part_of(MPI_Comm cart, size_t *bytes)
{
    int start[2], sites[2];
    lemonLocalLattice(cart, lattice, start, sites);
    *bytes = (size_t)sites[0] * (size_t)sites[1] * SITE;
    unsigned char *part = malloc(*bytes + 1);
    for (size_t i = 0; i < *bytes; i++) {
        size_t site = i / SITE, row = site / (size_t)sites[1], column = site % (size_t)sites[1];
        part[i] = (unsigned char)(row * 31 + (column + (size_t)start[1]) * 7 + i % SITE);
    }
    return part;
}

static void writes_by_hints(MPI_Comm cart)
{
    size_t bytes;
    unsigned char *part = part_of(cart, &bytes);
    remove_file(path);
    MPI_File file = open_file(MPI_MODE_WRONLY, MPI_INFO_NULL);
    LemonWriter *w = lemonCreateWriter(&file, cart);
    tap_code(set_both(NULL, w,
                      INFO("striping_unit", "4096", "cb_nodes", " 2 ", "cb_buffer_size",
                           "10000", "no_such_key", "whatever")),
             0, "hints for writing");
    begin_record(w, 1, 1, "lattice", BYTES);
    watch_from(DATA, 4096);
    tap_code(lemonWriteLatticeParallel(w, part, SITE, lattice), 0, "write");
    int n = aggregators();
    tap_ok(tap_ranks == 1 || n == 2, "cb_nodes: %d ranks write", n);
    tap_ok(tap_ranks == 1 || watch.most <= 8192, "cb_buffer_size, in whole stripes");
    tap_ok(!watch.between, "striping_unit");
    tap_code(lemonWriterSetInfo(w, MPI_INFO_NULL), 0, "no info");
    lemonWriterSeek(w, 0, MPI_SEEK_SET);
    watch_from(DATA, 4096);
    tap_code(lemonWriteLatticeParallelNonBlocking(w, part, SITE, lattice), 0, "non-blocking");
    tap_code(set_both(NULL, w, INFO("cb_nodes", "1")), 0, "setting a hint waits");
    n = aggregators();
    tap_ok((tap_ranks == 1 || n == 2) && !watch.between, "the old hints apply: %d ranks", n);
    lemonWriterSeek(w, 0, MPI_SEEK_SET);
    watch_from(DATA, 4096);
    tap_code(lemonWriteLatticeParallel(w, part, SITE, lattice), 0, "by one rank");
    n = aggregators();
    tap_ok(n == 1 && (tap_ranks == 1 || watch.most <= 8192), "%d ranks; other hints stay", n);
    tap_code(end_writer(w, &file), 0, "destroy");
    free(part);
}

static void reads_by_hints(MPI_Comm cart)
{
    size_t bytes;
    unsigned char *part = part_of(cart, &bytes), *got = calloc(1, bytes + 1);
    MPI_File file = open_file(MPI_MODE_RDONLY, MPI_INFO_NULL);
    LemonReader *r = lemonCreateReader(&file, cart);
    tap_code(set_both(r, NULL, INFO("cb_nodes", "2", "cb_buffer_size", "1")), 0,
             "hints for reading");
    tap_code(lemonReaderSetStripe(r, 512), 0, "a stripe");
    lemonReaderNextRecord(r);
    watch_from(DATA, 512);
    tap_code(lemonReadLatticeParallel(r, got, SITE, lattice), 0, "read");
    int n = aggregators();
    tap_ok(tap_ranks == 1 || (n == 2 && watch.most <= 512), "%d ranks, a stripe at a time", n);
    tap_ok(!watch.between, "ranges are whole stripes");
    tap_ok(memcmp(got, part, bytes) == 0, "the data as written");
    end_reader(r, &file);
    free(got);
    free(part);
}

static void bad_hints(MPI_Comm cart)
{
    static const char *const keys[] = {"striping_unit", "cb_nodes", "cb_buffer_size"};
    static const char *const values[] = {
        "0",
        "-4096",
        "x",
        "4k",
        "4096 x",
        "4096.5",
        "0x1000",
        "2147483648",
        "18446744073709551617",
        "000000000000000000000000000000000000000000000000000000001"};
    int wrong = 0, differ = 0;
    size_t bytes;
    unsigned char *part = part_of(cart, &bytes);
    MPI_File file = open_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    LemonReader *r = lemonCreateReader(&file, cart);
    LemonWriter *w = lemonCreateWriter(&file, cart);
    set_both(NULL, w, INFO("cb_nodes", "1", "striping_unit", "4096"));
    for (int k = 0; k < 3; k++)
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
            for (int reader = 0; reader < 2; reader++) {
                const char *value = is_odd() ? values[v] : "1024";
                int code = set_both(reader ? r : NULL, w, INFO(keys[k], value));
                wrong += code != LEMON_ERR_PARAM;
            }
    tap_ok(wrong == 0, "invalid values on one rank: %d wrong", wrong);
    for (int k = 0; k < 3; k++) {
        differ +=
            set_both(r, w, INFO(keys[k], is_odd() ? "2048" : "1024")) != alone(LEMON_ERR_PARAM);
        differ += set_both(NULL, w, is_odd() ? MPI_INFO_NULL : INFO(keys[k], "1024")) !=
                  alone(LEMON_ERR_PARAM);
    }
    tap_ok(differ == 0, "values that differ: %d wrong", differ);
    tap_code(set_both(NULL, w, INFO("cb_nodes", "3", "striping_unit", "-1")), LEMON_ERR_PARAM,
             "one of two is wrong");
    tap_ok(lemonReaderSetInfo(NULL, MPI_INFO_NULL) == LEMON_ERR_PARAM &&
               lemonWriterSetInfo(NULL, MPI_INFO_NULL) == LEMON_ERR_PARAM,
           "NULL is an error");
    begin_record(w, 1, 1, "lattice", BYTES);
    watch_from(DATA, 4096);
    tap_code(lemonWriteLatticeParallel(w, part, SITE, lattice), 0, "write");
    int n = aggregators();
    tap_ok(n == 1 && !watch.between, "the earlier hints apply: %d ranks", n);
    lemonDestroyReader(r);
    tap_code(end_writer(w, &file), 0, "destroy");
    free(part);
}

/* Counts the ranks that move bytes if the file has `odd` on the last rank, `unit` on others. */
static int aggregators_of_file(MPI_Comm cart, const char *unit, const char *odd, bool read)
{
    size_t bytes;
    unsigned char *part = part_of(cart, &bytes);
    MPI_Info info = INFO("striping_unit", is_odd() ? odd : unit, "cb_nodes", "1");
    MPI_File file = open_file(read ? MPI_MODE_RDONLY : MPI_MODE_WRONLY, info);
    MPI_Info_free(&info);
    LemonReader *r = read ? lemonCreateReader(&file, cart) : NULL;
    LemonWriter *w = read ? NULL : lemonCreateWriter(&file, cart);
    int code = read ? lemonReaderNextRecord(r) : begin_record(w, 1, 1, "lattice", BYTES);
    watch_from(DATA, 8192);
    if (code == LEMON_SUCCESS)
        code = read ? lemonReadLatticeParallel(r, part, SITE, lattice)
                    : lemonWriteLatticeParallel(w, part, SITE, lattice);
    int n = aggregators();
    if (read)
        lemonDestroyReader(r);
    else
        code |= lemonDestroyWriter(w);
    MPI_File_close(&file);
    free(part);
    return code == LEMON_SUCCESS ? n : -1;
}

static int messages;

static void count_message(char const *text, void *context)
{
    (void)context;
    messages += strstr(text, "left by its header, which LEMON_COMPAT=overfull allows") != NULL;
}

/* A record whose header states only a part of its lattice, as old programs write it: an error,
 * unless a hint or the environment (compat) allows it. */
static void overfull(MPI_Comm cart, bool compat)
{
    size_t bytes, n;
    unsigned char *part = part_of(cart, &bytes), *got = calloc(1, bytes + 1);
    remove_file(path);
    lemonSetMessageHandler(count_message, NULL);
    MPI_File file = open_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    LemonWriter *w = lemonCreateWriter(&file, cart);
    tap_code(set_both(NULL, w, INFO("lemon_overfull", "2")), LEMON_ERR_PARAM, "1 or nothing");
    begin_record(w, 1, 1, "part", SITE);
    if (!compat) {
        tap_code(lemonWriteLatticeParallel(w, part, SITE, lattice), LEMON_ERR_WRITE, "fails");
        tap_code(set_both(NULL, w, INFO("lemon_overfull", "1")), 0, "allow it");
    }
    tap_code(lemonWriteLatticeParallel(w, part, SITE, lattice), 0, "written");
    lemonWriterSeek(w, 0, MPI_SEEK_SET);
    tap_code(lemonWriteLatticeParallel(w, part, SITE, lattice), 0, "and again");
    tap_ok(messages == (tap_rank == 0), "one message, by rank 0");
    tap_code(lemonWriterCloseRecord(w), 0, "closed");
    lemonDestroyWriter(w);
    unsigned char *all = file_bytes(path, &n);
    tap_ok(tap_rank > 0 || (n == DATA + BYTES && all[15] == SITE), "header and data");
    LemonReader *r = lemonCreateReader(&file, cart);
    lemonReaderNextRecord(r);
    tap_ok(lemonReaderBytes(r) == SITE, "the header's length");
    if (!compat) {
        tap_code(lemonReadLatticeParallel(r, got, SITE, lattice), LEMON_ERR_READ, "an error");
        tap_code(set_both(r, NULL, INFO("lemon_overfull", "1")), 0, "allow it");
    }
    tap_code(lemonReadLatticeParallel(r, got, SITE, lattice), 0, "read");
    tap_ok(memcmp(got, part, bytes) == 0, "the data as written");
    end_reader(r, &file);
    tap_ok(messages == 2 * (tap_rank == 0), "one more message, by rank 0");
    lemonSetMessageHandler(NULL, NULL);
    free(all);
    free(got);
    free(part);
}

/* Open MPI 5 does not report the stripe; Lemon then uses its default. */
static bool mpi_reports_stripe(void)
{
    char value[MPI_MAX_INFO_VAL + 1];
    int known = 0;
    MPI_Info info = INFO("striping_unit", "8192"), used;
    MPI_File file = open_file(MPI_MODE_RDONLY, info);
    MPI_Info_free(&info);
    if (MPI_File_get_info(file, &used) == MPI_SUCCESS) {
        MPI_Info_get(used, "striping_unit", MPI_MAX_INFO_VAL, value, &known);
        MPI_Info_free(&used);
    }
    MPI_File_close(&file);
    return known;
}

static void hints_of_the_file(MPI_Comm cart)
{
    bool has_stripe = mpi_reports_stripe();
    int few = tap_ranks < 2 ? tap_ranks : 2; /* stripes of 1 MiB in the lattice */
    for (int read = 0; read < 2; read++) {
        int n = aggregators_of_file(cart, "8192", "8192", read);
        tap_ok(has_stripe ? n == tap_ranks && !watch.between : n == few,
               "the file's stripe: %d ranks", n);
        n = aggregators_of_file(cart, "8192", "4096", read);
        tap_ok(n == (tap_ranks == 1 ? 1 : few), "stripes that differ: %d ranks", n);
        n = aggregators_of_file(cart, "-1", "-1", read);
        tap_ok(n == few, "an invalid stripe: %d ranks", n);
        n = aggregators_of_file(cart, "8192", "nothing", read);
        tap_ok(n == (tap_ranks == 1 ? 1 : few), "an invalid stripe on one rank: %d ranks", n);
    }
}

int main(int argc, char *argv[])
{
    tap_begin(&argc, &argv);
    path = argv[1];
    MPI_Comm cart = columns();
    if (argc > 2) {
        overfull(cart, true);
    } else {
        writes_by_hints(cart);
        reads_by_hints(cart);
        bad_hints(cart);
        overfull(cart, false);
        hints_of_the_file(cart);
    }
    MPI_Comm_free(&cart);
    remove_file(path);
    return tap_end();
}
