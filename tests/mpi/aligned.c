/*
 * aligned.c - write records whose data begin at aligned offsets, and read them back
 *
 * usage: aligned FILE {ALIGNMENT FROM}...   write, append and read FILE-ALIGNMENT-FROM
 *        aligned FILE arguments             test valid and invalid arguments
 *        aligned FILE full                  test a file system without space for a filler
 */
#include "files.h"

/* Byte i of record k is 31 k + 7 i; test_beyond.py has the same table and formula. */
static const struct record {
    const char *type;
    int bytes, mb, me;
} records[] = {
    {"first", 100, 1, 0},   {"second", 0, 0, 0}, {"lattice", 4800, 0, 1}, {"fourth", 300, 1, 1},
    {"fifth", 12345, 1, 0}, {"sixth", 7, 0, 0},  {"seventh", 4096, 0, 1},
};
enum {
    RECORDS = sizeof records / sizeof records[0],
    APPENDED = 4, /* the first appended record */
    LATTICE = 2,
};
static const int extents[] = {10, 12};

static const char *path;
static MPI_Comm cart;
static MPI_File fp;

static unsigned char *whole(int k)
{
    unsigned char *data = malloc((size_t)records[k].bytes + 1);
    for (int i = 0; i < records[k].bytes; i++)
        data[i] = (unsigned char)(31 * k + 7 * i);
    return data;
}

/* Returns this rank's part of the lattice in `all`; the caller frees it. */
static unsigned char *part_of(const unsigned char *all, size_t *bytes)
{
    int start[2], sites[2], site = records[LATTICE].bytes / (extents[0] * extents[1]);
    lemonLocalLattice(cart, extents, start, sites);
    size_t row = (size_t)(sites[1] * site);
    *bytes = (size_t)sites[0] * row;
    unsigned char *part = malloc(*bytes + 1);
    for (int i = 0; i < sites[0]; i++)
        memcpy(part + (size_t)i * row, all + ((start[0] + i) * extents[1] + start[1]) * site,
               row);
    return part;
}

static int lattice_is_right(LemonReader *r, const unsigned char *all)
{
    size_t bytes;
    unsigned char *part = part_of(all, &bytes), *got = calloc(1, bytes + 1);
    int good = lemonReaderSeek(r, 0, MPI_SEEK_SET) == LEMON_SUCCESS &&
               lemonReadLatticeParallel(r, got, 40, extents) == LEMON_SUCCESS &&
               memcmp(got, part, bytes) == 0;
    free(part);
    free(got);
    return good;
}

static int write_record(LemonWriter *w, int k)
{
    size_t bytes;
    unsigned char *data = whole(k), *part = k == LATTICE ? part_of(data, &bytes) : NULL;
    MPI_Offset n = records[k].bytes;
    int code = begin_record(w, records[k].mb, records[k].me, records[k].type, n);
    if (code == LEMON_SUCCESS && part)
        code = lemonWriteLatticeParallel(w, part, 40, extents);
    else if (code == LEMON_SUCCESS && k % 2)
        code = lemonWriteRecordDataNonBlocking(data, &n, w);
    else if (code == LEMON_SUCCESS)
        code = lemonWriteRecordData(data, &n, w);
    if (code == LEMON_SUCCESS)
        code = lemonWriterCloseRecord(w);
    free(part);
    free(data);
    return code;
}

static void write_records(int mode, int from, int to, MPI_Offset alignment, MPI_Offset bytes)
{
    int bad = 0;
    MPI_File_open(cart, path, MPI_MODE_WRONLY | MPI_MODE_CREATE | mode, MPI_INFO_NULL, &fp);
    LemonWriter *w = lemonCreateWriter(&fp, cart);
    tap_code(lemonWriterSetAlignment(w, alignment, bytes), 0, "set the alignment");
    for (int k = from; k < to; k++)
        bad += write_record(w, k) != LEMON_SUCCESS;
    tap_ok(bad == 0, "records %d to %d: %d bad", from, to, bad);
    tap_code(end_writer(w, &fp), 0, "destroy");
}

static int is_right(LemonReader *r, int k)
{
    unsigned char *want = whole(k), *got = calloc(1, (size_t)records[k].bytes + 1);
    MPI_Offset n = lemonReaderBytes(r);
    int good = n == records[k].bytes && strcmp(lemonReaderType(r), records[k].type) == 0 &&
               lemonReaderMBFlag(r) == records[k].mb && lemonReaderMEFlag(r) == records[k].me;
    good = good && lemonReaderReadData(got, &n, r) == LEMON_SUCCESS &&
           memcmp(got, want, (size_t)n) == 0;
    if (k == LATTICE)
        good = lattice_is_right(r, want) && good;
    free(want);
    free(got);
    return good;
}

/* Reads the records, and fillers between them, which the reader reports. */
static void read_records(MPI_Offset alignment)
{
    int k = 0, fillers = 0, bad = 0, code;
    LemonReader *r = create_reader(path, cart, &fp);
    while ((code = lemonReaderNextRecord(r)) == LEMON_SUCCESS) {
        bad += lemonReaderDeviation(r) != 0;
        if (strcmp(lemonReaderType(r), LEMON_FILLER_TYPE) == 0) {
            bad += lemonReaderMBFlag(r) != lemonReaderMEFlag(r);
            fillers++;
        } else {
            bad += k >= RECORDS || !is_right(r, k);
            k++;
        }
    }
    tap_code(code, LEMON_EOF, "the end");
    tap_ok(k == RECORDS && bad == 0, "%d records and %d fillers, %d bad", k, fillers, bad);
    tap_ok(alignment > 8 ? fillers > 0 : fillers == 0, "%d fillers", fillers);
    end_reader(r, &fp);
}

static void write_and_read(const char *prefix, const char *alignment, const char *from)
{
    static char name[4096];
    path = name;
    snprintf(name, sizeof name, "%s-%s-%s", prefix, alignment, from);
    write_records(0, 0, APPENDED, atoll(alignment), atoll(from));
    write_records(MPI_MODE_APPEND, APPENDED, RECORDS, atoll(alignment), atoll(from));
    read_records(atoll(alignment));
}

/* ---- arguments ---- */

static void arguments(void)
{
    const MPI_Offset AT = 8 << 20, LENGTH = 1 << 30;
    static const MPI_Offset wrong[] = {
        -8, 1, 4, 12, 4097, ((MPI_Offset)1 << 30) + 8, (MPI_Offset)1 << 40};
    int odd = tap_rank == tap_ranks - 1, alone = tap_ranks == 1, bad = 0;
    LemonWriter *w = create_writer(path, cart, MPI_MODE_WRONLY, &fp);
    tap_code(lemonWriterSetAlignment(w, 512, 10), 0, "set the alignment");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        bad += lemonWriterSetAlignment(w, odd ? wrong[i] : 4096, 0) != LEMON_ERR_PARAM;
    tap_ok(bad == 0, "invalid alignments on one rank: %d accepted", bad);
    tap_code(lemonWriterSetAlignment(w, 4096, odd ? -1 : 0), LEMON_ERR_PARAM,
             "a negative number of bytes on one rank");
    int expected = alone ? LEMON_SUCCESS : LEMON_ERR_PARAM;
    tap_code(lemonWriterSetAlignment(w, odd ? 4096 : 8192, 0), expected, "another alignment");
    tap_code(lemonWriterSetAlignment(w, 4096, odd), expected, "another number of bytes");
    tap_code(lemonWriterSetAlignment(w, 1 << 30, 1 << 30), 0, "the largest alignment");
    tap_code(lemonWriterSetAlignment(w, AT, LENGTH), 0, "an alignment of 8 MiB");
    tap_ok(lemonWriterSetAlignment(NULL, 8, 0) == LEMON_ERR_PARAM, "NULL is an error");
    tap_code(begin_record(w, 1, 1, "far", INT64_MAX - 1007), LEMON_ERR_PARAM,
             "no file has space for it and a filler");
    tap_code(begin_record(w, 1, 0, "long", LENGTH), 0, "a record of 1 GiB");
    tap_ok(w->off == AT, "its data begin at 8 MiB");
    MPI_Offset n = 1;
    tap_code(lemonWriterSeek(w, -1, MPI_SEEK_END), 0, "seek to its last byte");
    tap_code(lemonWriteRecordData("!", &n, w), 0, "write a byte");
    tap_code(lemonWriterSetAlignment(w, 4096, 1), 0, "set an alignment in an open record");
    tap_ok(w->off == AT, "the open record does not move");
    tap_code(lemonWriterCloseRecord(w), 0, "close");
    tap_code(begin_record(w, 0, 1, "empty", 0), 0, "a record too short to be aligned");
    tap_ok(w->off == AT + LENGTH + 144, "it is not aligned");
    tap_code(lemonWriterSetAlignment(w, 0, 0), 0, "reset the alignment");
    tap_code(lemonWriterCloseRecord(w), 0, "close");
    tap_code(begin_record(w, 1, 1, "last", 4096), 0, "a record");
    tap_ok(w->off == AT + LENGTH + 288, "it is not aligned");
    tap_code(lemonWriterSetAlignment(w, 16, 0), 0, "16");
    tap_code(lemonWriteRecordData("", &(MPI_Offset){0}, w), 0, "write nothing");
    tap_code(end_writer(w, &fp), LEMON_ERR_LAST_NOT_WRITTEN, "destroy");
    remove_file(path);
}

/* The file system has space for 1 MiB. */
static void full(void)
{
    LemonWriter *w = create_writer(path, cart, MPI_MODE_WRONLY, &fp);
    tap_code(lemonWriterSetAlignment(w, 4 << 20, 0), 0, "4 MiB");
    tap_code(begin_record(w, 1, 1, "record", 100), LEMON_ERR_WRITE, "no space for the filler");
    tap_ok(w->off == 0 && w->is_awaiting_header, "no record is open");
    tap_code(lemonWriterSetAlignment(w, 4096, 0), 0, "4 KiB");
    tap_code(begin_record(w, 1, 1, "record", 100), 0, "space for a smaller filler");
    tap_ok(w->off == 4096, "at 4 KiB");
    tap_code(end_writer(w, &fp), LEMON_ERR_LAST_NOT_WRITTEN, "destroy");
}

int main(int argc, char *argv[])
{
    int grid[2] = {0}, periods[2] = {0};
    tap_begin(&argc, &argv);
    path = argv[1];
    MPI_Dims_create(tap_ranks, 2, grid);
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periods, 0, &cart);
    if (strcmp(argv[2], "full") == 0)
        full();
    else if (strcmp(argv[2], "arguments") == 0)
        arguments();
    else
        for (int i = 2; i + 2 <= argc; i += 2)
            write_and_read(argv[1], argv[i], argv[i + 1]);
    MPI_Comm_free(&cart);
    return tap_end();
}
