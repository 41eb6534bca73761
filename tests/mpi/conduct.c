/*
 * conduct.c - print what the calls return in odd situations
 *
 * Prints a row for each: the call, the situation, the answer. docs/lemon.md has the rows in
 * which this library differs from the reference, tests/data/conduct.txt the others. All ranks
 * must get the same answer. This program uses only the calls of the paper, so that it compiles
 * with any lemon.h.
 *
 *     conduct FILE [ROW]           create FILE; one ROW, where another library crashes
 *     conduct search DIRECTORY N   count the damaged containers DIRECTORY/0 to N-1 on which
 *                                  the loop by which programs look for a record ends
 */
#include <lemon.h>

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 144 };

static const char *path;
static MPI_Comm cart;
static MPI_File fp;
static int rank;

/* run() creates the situation; it defines the meaning of args. */
struct row {
    const char *call, *situation;
    void (*run)(const struct row *row);
    long args[4];
};

/* ---- answers ---- */

static char answer[256];

static void answer_code(int code)
{
    static const char *const names[] = {
        "LEMON_SUCCESS",
        "LEMON_ERR_LAST_NOT_WRITTEN",
        "LEMON_ERR_PARAM",
        "LEMON_ERR_HEADER_NEXT",
        "LEMON_LAST_REC_WRITTEN",
        "LEMON_ERR_WRITE",
        "LEMON_EOR",
        "LEMON_EOF",
        "LEMON_ERR_READ",
        "LEMON_ERR_SEEK",
        "LEMON_ERR_MBME",
        "LEMON_ERR_CLOSE",
    };
    if (code <= 0 && -code < (int)(sizeof names / sizeof names[0]))
        strcpy(answer, names[-code]);
    else
        sprintf(answer, "%d", code);
}

static void answer_number(long long n)
{
    if (n < 0)
        answer_code((int)n);
    else
        sprintf(answer, "%lld", n);
}

static void answer_text(const char *text)
{
    if (text)
        sprintf(answer, "\"%.40s\"", text);
    else
        strcpy(answer, "NULL");
}

static void answer_position(long long position)
{
    sprintf(answer + strlen(answer), ", at %lld", position);
}

/* ---- files ---- */

enum { ONE = 8, BYTES = 2 * HEADER + 16 }; /* bytes of the first record; of both, padded */

static unsigned char file[BYTES + 300];

static void add(unsigned char *at, int flags, const char *type, const char *data)
{
    static const unsigned char magic[] = {0x45, 0x67, 0x89, 0xab, 0, 1};
    memcpy(at, magic, sizeof magic);
    at[6] = (unsigned char)flags;
    at[15] = (unsigned char)strlen(data);
    strcpy((char *)at + 16, type);
    memcpy(at + HEADER, data, strlen(data));
}

/* Makes two records in one message, "one" of 8 bytes, "two" of 5, and trailing garbage. */
static void two_records(void)
{
    memset(file, 0, BYTES);
    add(file, 0x80, "one", "12345678");
    add(file + HEADER + ONE, 0x40, "two", "abcde");
    memset(file + BYTES, 'x', sizeof file - BYTES);
}

static void put(size_t bytes)
{
    if (rank == 0) {
        FILE *out = fopen(path, "wb");
        if (!out || fwrite(file, 1, bytes, out) != bytes || fclose(out) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static LemonReader *reader_of(size_t bytes)
{
    put(bytes);
    MPI_File_open(cart, (char *)path, MPI_MODE_RDONLY, MPI_INFO_NULL, &fp);
    return lemonCreateReader(&fp, cart);
}

enum moment { BEFORE, OPEN, CLOSED, AT_EOF, FAILED };

static LemonReader *reader_at(enum moment moment)
{
    two_records();
    if (moment == FAILED)
        file[HEADER + ONE] = 0;
    LemonReader *r = reader_of(BYTES);
    if (moment != BEFORE)
        lemonReaderNextRecord(r);
    if (moment == CLOSED)
        lemonReaderCloseRecord(r);
    if (moment == AT_EOF || moment == FAILED)
        lemonReaderNextRecord(r);
    if (moment == AT_EOF)
        lemonReaderNextRecord(r);
    return r;
}

static void end_reader(LemonReader *r)
{
    lemonDestroyReader(r);
    MPI_File_close(&fp);
}

static int header(LemonWriter *w, int mb, int me, const char *type, MPI_Offset bytes)
{
    LemonRecordHeader *h = lemonCreateHeader(mb, me, type, bytes);
    int code = lemonWriteRecordHeader(h, w);
    lemonDestroyHeader(h);
    return code;
}

static int data(LemonWriter *w, MPI_Offset n)
{
    char text[] = "abcdefgh";
    return lemonWriteRecordData(text, &n, w);
}

/* Opens a writer with a record of so many bytes (NONE: no record); writes n of them. */
enum { NONE = -1 };

static LemonWriter *writer_with(long bytes, long n)
{
    put(0);
    MPI_File_open(cart, (char *)path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &fp);
    LemonWriter *w = lemonCreateWriter(&fp, cart);
    if (bytes != NONE)
        header(w, 1, 1, "one", bytes);
    if (n)
        data(w, n);
    return w;
}

static void end_writer(LemonWriter *w)
{
    lemonDestroyWriter(w);
    MPI_File_close(&fp);
}

/* ---- the reader ---- */

/* args: calls, bytes of the file, offset of a wrong byte (0: none), the byte */
static void next_record(const struct row *row)
{
    int code = LEMON_SUCCESS;
    two_records();
    if (row->args[2])
        file[row->args[2]] = (unsigned char)row->args[3];
    LemonReader *r = reader_of((size_t)row->args[1]);
    for (long calls = row->args[0]; calls > 0; calls--)
        code = lemonReaderNextRecord(r);
    answer_code(code);
    end_reader(r);
}

static void next_huge(const struct row *row)
{
    (void)row;
    two_records();
    memset(file + HEADER + ONE + 8, 0xff, 7);
    file[HEADER + ONE + 15] = 0x70;
    LemonReader *r = reader_of(BYTES);
    lemonReaderNextRecord(r);
    lemonReaderNextRecord(r);
    answer_code(lemonReaderNextRecord(r));
    end_reader(r);
}

static void next_pending(const struct row *row)
{
    (void)row;
    LemonReader *r = reader_at(OPEN);
    char got[8] = "";
    MPI_Offset n = 8;
    lemonReaderReadDataNonBlocking(got, &n, r);
    answer_code(lemonReaderNextRecord(r));
    sprintf(answer + strlen(answer), ", data %s", memcmp(got, "12345678", 8) ? "lost" : "read");
    end_reader(r);
}

/* args: moment */
static void type_at(const struct row *row)
{
    LemonReader *r = reader_at((enum moment)row->args[0]);
    answer_text(lemonReaderType(r));
    end_reader(r);
}

/* args: moment */
static void bytes_at(const struct row *row)
{
    LemonReader *r = reader_at((enum moment)row->args[0]);
    answer_number((long long)lemonReaderBytes(r));
    end_reader(r);
}

/* args: moment */
static void eom_at(const struct row *row)
{
    LemonReader *r = reader_at((enum moment)row->args[0]);
    answer_number(lemonEOM(r));
    end_reader(r);
}

/* args: moment */
static void close_at(const struct row *row)
{
    LemonReader *r = reader_at((enum moment)row->args[0]);
    answer_code(lemonReaderCloseRecord(r));
    end_reader(r);
}

/* args: moment, offset, whence */
static void seek_at(const struct row *row)
{
    LemonReader *r = reader_at((enum moment)row->args[0]);
    answer_code(lemonReaderSeek(r, row->args[1], (int)row->args[2]));
    if (strcmp(answer, "LEMON_SUCCESS") == 0)
        answer_position(lemonGetReaderPointer(r));
    end_reader(r);
}

static void seek_fp(const struct row *row)
{
    (void)row;
    MPI_Offset at = -1;
    LemonReader *r = reader_at(OPEN);
    lemonReaderSeek(r, 3, MPI_SEEK_SET);
    MPI_File_get_position(*r->fp, &at);
    sprintf(answer, "at %lld of the file", (long long)at);
    end_reader(r);
}

/* args: moment, bytes read before, bytes to read, whether to NULL */
static void read_at(const struct row *row)
{
    char got[64] = "";
    MPI_Offset skip = row->args[1], n = row->args[2];
    LemonReader *r = reader_at((enum moment)row->args[0]);
    if (skip)
        lemonReaderReadData(got, &skip, r);
    answer_code(lemonReaderReadData(row->args[3] ? NULL : got, &n, r));
    if (row->args[0] != BEFORE)
        sprintf(answer + strlen(answer), ", %lld bytes", (long long)n);
    end_reader(r);
}

/* args: moment, bytes of a site */
static void read_lattice(const struct row *row)
{
    int lattice[4] = {12, 1, 1, 1}, site = (int)row->args[1];
    char *got = calloc(12, (size_t)site);
    LemonReader *r = reader_at((enum moment)row->args[0]);
    answer_code(lemonReadLatticeParallel(r, got, site, lattice));
    end_reader(r);
    free(got);
}

static void finish_nothing(const struct row *row)
{
    (void)row;
    LemonReader *r = reader_at(OPEN);
    answer_code(lemonFinishReading(r));
    end_reader(r);
}

/* ---- the writer ---- */

/* args: bytes of the previous record, bytes written (all: it is closed), MB, type's length */
static void write_header(const struct row *row)
{
    char type[256] = "";
    LemonWriter *w = writer_with(row->args[0], row->args[1]);
    if (row->args[0] != NONE && row->args[0] == row->args[1])
        lemonWriterCloseRecord(w);
    memset(type, 't', (size_t)row->args[3]);
    answer_code(header(w, (int)row->args[2], 1, type, 3));
    end_writer(w);
}

/* args: bytes of the record, bytes to write */
static void write_data(const struct row *row)
{
    LemonWriter *w = writer_with(row->args[0], 0);
    answer_code(data(w, row->args[1]));
    end_writer(w);
}

/* args: bytes of the record, bytes written */
static void close_record(const struct row *row)
{
    LemonWriter *w = writer_with(row->args[0], row->args[1]);
    answer_code(lemonWriterCloseRecord(w));
    end_writer(w);
}

/* args: bytes of the record, bytes written */
static void destroy_writer(const struct row *row)
{
    answer_code(lemonDestroyWriter(writer_with(row->args[0], row->args[1])));
    MPI_File_close(&fp);
}

/* args: bytes of the record, all written; offset, whence */
static void write_seek(const struct row *row)
{
    LemonWriter *w = writer_with(row->args[0], row->args[0] == NONE ? 0 : row->args[0]);
    answer_code(lemonWriterSeek(w, row->args[1], (int)row->args[2]));
    if (strcmp(answer, "LEMON_SUCCESS") == 0)
        answer_position(w->pos);
    end_writer(w);
}

/* args: bytes of the record */
static void write_lattice(const struct row *row)
{
    int lattice[4] = {12, 1, 1, 1};
    char *part = calloc(12, 2);
    LemonWriter *w = writer_with(row->args[0], 0);
    answer_code(lemonWriteLatticeParallel(w, part, 2, lattice));
    end_writer(w);
    free(part);
}

/* ---- without a reader, writer, file, type ---- */

static void without(const struct row *row)
{
    const char *call = row->call;
    if (strcmp(call, "lemonReaderNextRecord") == 0)
        answer_code(lemonReaderNextRecord(NULL));
    else if (strcmp(call, "lemonReaderCloseRecord") == 0)
        answer_code(lemonReaderCloseRecord(NULL));
    else if (strcmp(call, "lemonReaderType") == 0)
        answer_text(lemonReaderType(NULL));
    else if (strcmp(call, "lemonReaderBytes") == 0)
        answer_number((long long)lemonReaderBytes(NULL));
    else if (strcmp(call, "lemonEOM") == 0)
        answer_number(lemonEOM(NULL));
    else if (strcmp(call, "lemonGetReaderPointer") == 0)
        answer_number(lemonGetReaderPointer(NULL));
    else if (strcmp(call, "lemonFinishReading") == 0)
        answer_code(lemonFinishReading(NULL));
    else if (strcmp(call, "lemonDestroyWriter") == 0)
        answer_code(lemonDestroyWriter(NULL));
    else if (strcmp(call, "lemonWriterCloseRecord") == 0)
        answer_code(lemonWriterCloseRecord(NULL));
    else if (strcmp(call, "lemonCreateReader") == 0)
        strcpy(answer, lemonCreateReader(NULL, cart) ? "a reader" : "NULL");
    else
        strcpy(answer, lemonCreateWriter(NULL, cart) ? "a writer" : "NULL");
}

/* args: whether there is a type, bytes */
static void create_header(const struct row *row)
{
    LemonRecordHeader *h = lemonCreateHeader(1, 1, row->args[0] ? "type" : NULL, row->args[1]);
    strcpy(answer, h ? "a header" : "NULL");
    lemonDestroyHeader(h);
}

/* ---- the table ---- */

static const struct row rows[] = {
    {"lemonReaderNextRecord", "after the last record", next_record, {3, BYTES}},
    {"lemonReaderNextRecord", "once more", next_record, {4, BYTES}},
    {"lemonReaderNextRecord", "bad magic", next_record, {2, BYTES, HEADER + ONE, 0}},
    {"lemonReaderNextRecord", "bad magic, once more", next_record, {3, BYTES, HEADER + ONE, 0}},
    {"lemonReaderNextRecord", "another version", next_record, {2, BYTES, HEADER + ONE + 5, 7}},
    {"lemonReaderNextRecord",
     "the file ends inside of the header",
     next_record,
     {2, HEADER + ONE + 100}},
    {"lemonReaderNextRecord", "the same, once more", next_record, {3, HEADER + ONE + 100}},
    {"lemonReaderNextRecord",
     "the file ended inside of the data before",
     next_record,
     {2, HEADER + 4}},
    {"lemonReaderNextRecord", "that, once more", next_record, {3, HEADER + 4}},
    {"lemonReaderNextRecord", "the last padding is missing", next_record, {3, BYTES - 3}},
    {"lemonReaderNextRecord",
     "trailing garbage after the last record",
     next_record,
     {3, BYTES + 300}},
    {"lemonReaderNextRecord", "a record of 2^64 - 144 bytes, once more", next_huge, {0}},
    {"lemonReaderNextRecord", "a read is pending", next_pending, {0}},
    {"lemonReaderType", "before the first record", type_at, {BEFORE}},
    {"lemonReaderType", "the record is closed", type_at, {CLOSED}},
    {"lemonReaderType", "after LEMON_EOF", type_at, {AT_EOF}},
    {"lemonReaderType", "after a bad header", type_at, {FAILED}},
    {"lemonReaderBytes", "before the first record", bytes_at, {BEFORE}},
    {"lemonReaderBytes", "the record is closed", bytes_at, {CLOSED}},
    {"lemonReaderBytes", "after LEMON_EOF", bytes_at, {AT_EOF}},
    {"lemonEOM", "before the first record", eom_at, {BEFORE}},
    {"lemonEOM", "the record does not end its message", eom_at, {OPEN}},
    {"lemonEOM", "the record is closed", eom_at, {CLOSED}},
    {"lemonEOM", "after LEMON_EOF", eom_at, {AT_EOF}},
    {"lemonReaderCloseRecord", "before the first record", close_at, {BEFORE}},
    {"lemonReaderCloseRecord", "once more", close_at, {CLOSED}},
    {"lemonReaderSeek", "no record is open", seek_at, {BEFORE, 0, MPI_SEEK_SET}},
    {"lemonReaderSeek", "to the end of the record's 8 bytes", seek_at, {OPEN, 8, MPI_SEEK_SET}},
    {"lemonReaderSeek", "beyond", seek_at, {OPEN, 9, MPI_SEEK_SET}},
    {"lemonReaderSeek", "3, MPI_SEEK_END", seek_at, {OPEN, 3, MPI_SEEK_END}},
    {"lemonReaderSeek", "-3, MPI_SEEK_END", seek_at, {OPEN, -3, MPI_SEEK_END}},
    {"lemonReaderSeek", "whence 4711", seek_at, {OPEN, 0, 4711}},
    {"lemonReaderSeek", "to byte 3: the pointer of `fp`", seek_fp, {0}},
    {"lemonReaderReadData", "no record is open", read_at, {BEFORE, 0, 4}},
    {"lemonReaderReadData", "20 bytes of a record of 8", read_at, {OPEN, 0, 20}},
    {"lemonReaderReadData", "at its end", read_at, {OPEN, 8, 4}},
    {"lemonReaderReadData", "0 bytes", read_at, {OPEN, 0, 0}},
    {"lemonReaderReadData", "to NULL", read_at, {OPEN, 0, 4, 1}},
    {"lemonReadLatticeParallel", "no record is open", read_lattice, {BEFORE, 1}},
    {"lemonReadLatticeParallel", "of 24 bytes from a record of 8", read_lattice, {OPEN, 2}},
    {"lemonFinishReading", "nothing is pending", finish_nothing, {0}},
    {"lemonWriteRecordHeader", "a record is open", write_header, {3, 0, 1, 3}},
    {"lemonWriteRecordHeader", "MB 0 after ME 1", write_header, {3, 3, 0, 3}},
    {"lemonWriteRecordHeader",
     "the writer's first record has MB 0",
     write_header,
     {NONE, 0, 0, 3}},
    {"lemonWriteRecordHeader", "a type of 200 bytes", write_header, {NONE, 0, 1, 200}},
    {"lemonWriteRecordData", "no record is open", write_data, {NONE, 3}},
    {"lemonWriteRecordData", "8 bytes into a record of 3", write_data, {3, 8}},
    {"lemonWriteRecordData", "0 bytes", write_data, {0, 0}},
    {"lemonWriterCloseRecord", "no record is open", close_record, {NONE, 0}},
    {"lemonWriterCloseRecord", "3 of 8 bytes are written", close_record, {8, 3}},
    {"lemonDestroyWriter", "3 of 8 bytes are written", destroy_writer, {8, 3}},
    {"lemonWriterSeek", "no record is open", write_seek, {NONE, 0, MPI_SEEK_SET}},
    {"lemonWriterSeek", "beyond the record's 8 bytes", write_seek, {8, 9, MPI_SEEK_SET}},
    {"lemonWriterSeek", "3, MPI_SEEK_END", write_seek, {8, 3, MPI_SEEK_END}},
    {"lemonWriterSeek", "-3, MPI_SEEK_END", write_seek, {8, -3, MPI_SEEK_END}},
    {"lemonWriteLatticeParallel", "no record is open", write_lattice, {NONE}},
    {"lemonWriteLatticeParallel", "of 24 bytes into a record of 12", write_lattice, {12}},
    {"lemonReaderNextRecord", "no reader", without, {0}},
    {"lemonReaderCloseRecord", "no reader", without, {0}},
    {"lemonReaderType", "no reader", without, {0}},
    {"lemonReaderBytes", "no reader", without, {0}},
    {"lemonEOM", "no reader", without, {0}},
    {"lemonGetReaderPointer", "no reader", without, {0}},
    {"lemonFinishReading", "no reader", without, {0}},
    {"lemonDestroyWriter", "no writer", without, {0}},
    {"lemonWriterCloseRecord", "no writer", without, {0}},
    {"lemonCreateWriter", "no file", without, {0}},
    {"lemonCreateReader", "no file", without, {0}},
    {"lemonCreateHeader", "no type", create_header, {0, 0}},
    {"lemonCreateHeader", "a negative length", create_header, {1, -1}},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* The loop of nissa. Returns whether it ends; adds its calls to *steps. */
static int search_ends(LemonReader *r, int *steps)
{
    for (int most = 1000; most > 0; most--, ++*steps) {
        if (lemonReaderNextRecord(r) == LEMON_EOF)
            return 1;
        if (strcmp(lemonReaderType(r), "not-there") == 0)
            break;
    }
    return 0;
}

static void search(const char *directory, int count)
{
    int steps = 0, ends = 0;
    for (int i = 0; i < count; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%d", directory, i);
        if (MPI_File_open(cart, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &fp) != MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 1);
        LemonReader *r = lemonCreateReader(&fp, cart);
        ends += search_ends(r, &steps);
        end_reader(r);
    }
    MPI_Allreduce(MPI_IN_PLACE, &ends, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ends, %d steps\n", ends, steps);
}

static void run(int i)
{
    char first[sizeof answer];
    strcpy(answer, "nothing");
    rows[i].run(&rows[i]);
    memcpy(first, answer, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    int same = strcmp(first, answer) == 0, all;
    MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s | %s | %s\n", rows[i].call, rows[i].situation,
               all ? answer : "ranks differ");
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int ranks, grid[4] = {0, 1, 1, 1}, periods[4] = {1, 1, 1, 1};
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    grid[0] = ranks;
    MPI_Cart_create(MPI_COMM_WORLD, 4, grid, periods, 0, &cart);
    path = argv[1];
    if (argc == 4)
        search(argv[2], atoi(argv[3]));
    else if (argc == 3)
        run(atoi(argv[2]));
    else
        for (int i = 0; i < ROWS; i++)
            run(i);
    MPI_Comm_free(&cart);
    MPI_Finalize();
    return 0;
}
