/*
 * conduct.c - what the calls answer in odd situations
 *
 * Prints a row for each: the call, the situation, the answer. docs/lemon.md has the rows in
 * which this library differs from the reference, tests/data/conduct.txt the others. This
 * program needs nothing but the calls of the paper, so that it can be compiled against any
 * lemon.h.
 *
 *     conduct FILE [ROW]   FILE is made anew; ROW alone, where others crash
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

/* ---- answers ---- */

static char answer[256];

static void say_code(int code)
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

static void say_number(long long n)
{
    if (n < 0)
        say_code((int)n);
    else
        sprintf(answer, "%lld", n);
}

static void say_text(const char *text)
{
    if (text)
        sprintf(answer, "\"%.40s\"", text);
    else
        strcpy(answer, "NULL");
}

static void say_position(int code, long long position)
{
    say_code(code);
    sprintf(answer + strlen(answer), ", at %lld", position);
}

/* ---- files ---- */

static unsigned char file[4096];
static size_t used;

static void add(int flags, const char *type, const char *data)
{
    static const unsigned char magic[] = {0x45, 0x67, 0x89, 0xab, 0, 1};
    size_t n = strlen(data);
    unsigned char *at = file + used;
    memset(at, 0, HEADER);
    memcpy(at, magic, sizeof magic);
    at[6] = (unsigned char)flags;
    at[15] = (unsigned char)n;
    strcpy((char *)at + 16, type);
    memcpy(at + HEADER, data, n);
    memset(at + HEADER + n, 0, 8);
    used += HEADER + (n + 7) / 8 * 8;
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

/* Two records in one message: "one" of 8 bytes, "two" of 5. */
static void two_records(void)
{
    used = 0;
    add(0x80, "one", "12345678");
    add(0x40, "two", "abcde");
}

static LemonReader *reader(void)
{
    two_records();
    return reader_of(used);
}

static void end_reader(LemonReader *r)
{
    lemonDestroyReader(r);
    MPI_File_close(&fp);
}

static LemonWriter *writer(void)
{
    put(0);
    MPI_File_open(cart, (char *)path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &fp);
    return lemonCreateWriter(&fp, cart);
}

static int header(LemonWriter *w, int mb, int me, const char *type, MPI_Offset bytes)
{
    LemonRecordHeader *h = lemonCreateHeader(mb, me, type, bytes);
    int code = lemonWriteRecordHeader(h, w);
    lemonDestroyHeader(h);
    return code;
}

static int data(LemonWriter *w, const char *text)
{
    MPI_Offset n = (MPI_Offset)strlen(text);
    return lemonWriteRecordData((void *)text, &n, w);
}

static void end_writer(LemonWriter *w)
{
    lemonDestroyWriter(w);
    MPI_File_close(&fp);
}

/* ---- lemonReaderNextRecord ---- */

static void next_of(LemonReader *r, int calls)
{
    int code = LEMON_SUCCESS;
    while (calls-- > 0)
        code = lemonReaderNextRecord(r);
    say_code(code);
    end_reader(r);
}

static void next_after_last(void)
{
    next_of(reader(), 3);
}

static void next_after_eof(void)
{
    next_of(reader(), 4);
}

static LemonReader *damaged(size_t at, int byte)
{
    two_records();
    file[at] = (unsigned char)byte;
    return reader_of(used);
}

static void next_bad_magic(void)
{
    next_of(damaged(HEADER + 8, 0), 2);
}

static void next_bad_magic_again(void)
{
    next_of(damaged(HEADER + 8, 0), 3);
}

static void next_bad_version(void)
{
    next_of(damaged(HEADER + 8 + 5, 7), 2);
}

static void next_cut_header(void)
{
    two_records();
    next_of(reader_of(HEADER + 8 + 100), 2);
}

static void next_cut_header_again(void)
{
    two_records();
    next_of(reader_of(HEADER + 8 + 100), 3);
}

static void next_cut_data(void)
{
    two_records();
    next_of(reader_of(HEADER + 4), 2);
}

static void next_cut_data_again(void)
{
    two_records();
    next_of(reader_of(HEADER + 4), 3);
}

static void next_no_padding(void)
{
    two_records();
    next_of(reader_of(used - 3), 3);
}

static void next_trailing(void)
{
    two_records();
    memset(file + used, 'x', 300);
    next_of(reader_of(used + 300), 3);
}

static void next_huge(void)
{
    two_records();
    memset(file + HEADER + 8 + 8, 0xff, 8);
    file[HEADER + 8 + 15] = 0x70;
    next_of(reader_of(used), 3);
}

static void next_pending(void)
{
    LemonReader *r = reader();
    char got[8] = "";
    MPI_Offset n = 8;
    lemonReaderNextRecord(r);
    lemonReaderReadDataNonBlocking(got, &n, r);
    say_code(lemonReaderNextRecord(r));
    sprintf(answer + strlen(answer), ", data %s", memcmp(got, "12345678", 8) ? "lost" : "read");
    end_reader(r);
}

/* ---- what tells something of the open record ---- */

enum moment { BEFORE, OPEN, CLOSED, AT_EOF, FAILED };

static LemonReader *reader_at(enum moment moment)
{
    LemonReader *r = moment == FAILED ? damaged(HEADER + 8, 0) : reader();
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

static void type_at(enum moment moment)
{
    LemonReader *r = reader_at(moment);
    say_text(lemonReaderType(r));
    end_reader(r);
}

static void bytes_at(enum moment moment)
{
    LemonReader *r = reader_at(moment);
    say_number(lemonReaderBytes(r));
    end_reader(r);
}

static void eom_at(enum moment moment)
{
    LemonReader *r = reader_at(moment);
    say_number(lemonEOM(r));
    end_reader(r);
}

static void type_before(void)
{
    type_at(BEFORE);
}
static void type_closed(void)
{
    type_at(CLOSED);
}
static void type_eof(void)
{
    type_at(AT_EOF);
}
static void type_failed(void)
{
    type_at(FAILED);
}
static void bytes_before(void)
{
    bytes_at(BEFORE);
}
static void bytes_closed(void)
{
    bytes_at(CLOSED);
}
static void bytes_eof(void)
{
    bytes_at(AT_EOF);
}
static void eom_before(void)
{
    eom_at(BEFORE);
}
static void eom_open(void)
{
    eom_at(OPEN);
}
static void eom_closed(void)
{
    eom_at(CLOSED);
}
static void eom_eof(void)
{
    eom_at(AT_EOF);
}

/* ---- closing ---- */

static void close_at(enum moment moment)
{
    LemonReader *r = reader_at(moment);
    say_code(lemonReaderCloseRecord(r));
    end_reader(r);
}

static void close_before(void)
{
    close_at(BEFORE);
}
static void close_twice(void)
{
    close_at(CLOSED);
}

/* ---- position ---- */

static void seek_at(enum moment moment, MPI_Offset offset, int whence)
{
    LemonReader *r = reader_at(moment);
    int code = lemonReaderSeek(r, offset, whence);
    if (code == LEMON_SUCCESS)
        say_position(code, lemonGetReaderPointer(r));
    else
        say_code(code);
    end_reader(r);
}

static void seek_before(void)
{
    seek_at(BEFORE, 0, MPI_SEEK_SET);
}
static void seek_to_end(void)
{
    seek_at(OPEN, 8, MPI_SEEK_SET);
}
static void seek_beyond(void)
{
    seek_at(OPEN, 9, MPI_SEEK_SET);
}
static void seek_end_plus(void)
{
    seek_at(OPEN, 3, MPI_SEEK_END);
}
static void seek_end_minus(void)
{
    seek_at(OPEN, -3, MPI_SEEK_END);
}
static void seek_whence(void)
{
    seek_at(OPEN, 0, 4711);
}

static void seek_fp(void)
{
    MPI_Offset at = -1;
    LemonReader *r = reader_at(OPEN);
    lemonReaderSeek(r, 3, MPI_SEEK_SET);
    MPI_File_get_position(*r->fp, &at);
    sprintf(answer, "at %lld of the file", (long long)at);
    end_reader(r);
}

/* ---- data ---- */

static void read_some(enum moment moment, MPI_Offset skip, MPI_Offset n, int nowhere)
{
    char got[64] = "";
    LemonReader *r = reader_at(moment);
    if (skip)
        lemonReaderReadData(got, &skip, r);
    int code = lemonReaderReadData(nowhere ? NULL : got, &n, r);
    say_code(code);
    sprintf(answer + strlen(answer), ", %lld bytes", (long long)n);
    end_reader(r);
}

static void read_more(void)
{
    read_some(OPEN, 0, 20, 0);
}
static void read_at_end(void)
{
    read_some(OPEN, 8, 4, 0);
}
static void read_nothing(void)
{
    read_some(OPEN, 0, 0, 0);
}
static void read_nowhere(void)
{
    read_some(OPEN, 0, 4, 1);
}

static void read_before(void)
{
    char got[8];
    MPI_Offset n = 4;
    LemonReader *r = reader();
    int code = lemonReaderReadData(got, &n, r);
    say_code(code);
    end_reader(r);
}

static void read_lattice(enum moment moment, int site)
{
    int lattice[4] = {12, 1, 1, 1};
    char *got = calloc(12, (size_t)site);
    LemonReader *r = reader_at(moment);
    say_code(lemonReadLatticeParallel(r, got, site, lattice));
    end_reader(r);
    free(got);
}

static void lattice_before(void)
{
    read_lattice(BEFORE, 1);
}
static void lattice_beyond_record(void)
{
    read_lattice(OPEN, 2);
}

static void finish_nothing(void)
{
    LemonReader *r = reader_at(OPEN);
    say_code(lemonFinishReading(r));
    end_reader(r);
}

/* ---- the writer ---- */

static void header_twice(void)
{
    LemonWriter *w = writer();
    header(w, 1, 1, "one", 3);
    say_code(header(w, 1, 1, "two", 3));
    data(w, "abc");
    end_writer(w);
}

static void header_mb(void)
{
    LemonWriter *w = writer();
    header(w, 1, 1, "one", 3);
    data(w, "abc");
    lemonWriterCloseRecord(w);
    say_code(header(w, 0, 1, "two", 3));
    end_writer(w);
}

static void header_first_inside(void)
{
    LemonWriter *w = writer();
    say_code(header(w, 0, 1, "one", 3));
    data(w, "abc");
    end_writer(w);
}

static void header_long_type(void)
{
    char type[201];
    LemonWriter *w = writer();
    memset(type, 't', 200);
    type[200] = '\0';
    say_code(header(w, 1, 1, type, 0));
    end_writer(w);
}

static void write_before(void)
{
    LemonWriter *w = writer();
    int code = data(w, "abc");
    say_code(code);
    end_writer(w);
}

static void write_beyond(void)
{
    LemonWriter *w = writer();
    header(w, 1, 1, "one", 3);
    int code = data(w, "abcdefgh");
    say_code(code);
    data(w, "abc");
    end_writer(w);
}

static void write_nothing(void)
{
    LemonWriter *w = writer();
    header(w, 1, 1, "one", 0);
    say_code(data(w, ""));
    end_writer(w);
}

static void close_underfull(void)
{
    LemonWriter *w = writer();
    header(w, 1, 1, "one", 8);
    data(w, "abc");
    say_code(lemonWriterCloseRecord(w));
    data(w, "defgh");
    end_writer(w);
}

static void close_none(void)
{
    LemonWriter *w = writer();
    say_code(lemonWriterCloseRecord(w));
    end_writer(w);
}

static void destroy_underfull(void)
{
    LemonWriter *w = writer();
    header(w, 1, 1, "one", 8);
    data(w, "abc");
    say_code(lemonDestroyWriter(w));
    MPI_File_close(&fp);
}

static void write_seek(MPI_Offset offset, int whence)
{
    LemonWriter *w = writer();
    header(w, 1, 1, "one", 8);
    data(w, "abcdefgh");
    int code = lemonWriterSeek(w, offset, whence);
    if (code == LEMON_SUCCESS)
        say_position(code, w->pos);
    else
        say_code(code);
    end_writer(w);
}

static void write_seek_none(void)
{
    LemonWriter *w = writer();
    say_code(lemonWriterSeek(w, 0, MPI_SEEK_SET));
    end_writer(w);
}

static void write_seek_end_plus(void)
{
    write_seek(3, MPI_SEEK_END);
}
static void write_seek_end_minus(void)
{
    write_seek(-3, MPI_SEEK_END);
}
static void write_seek_beyond(void)
{
    write_seek(9, MPI_SEEK_SET);
}

static void write_lattice(int with_header)
{
    int lattice[4] = {12, 1, 1, 1};
    char *part = calloc(12, 2);
    LemonWriter *w = writer();
    if (with_header)
        header(w, 1, 1, "one", 12);
    say_code(lemonWriteLatticeParallel(w, part, 2, lattice));
    if (with_header)
        lemonWriteLatticeParallel(w, part, 1, lattice);
    end_writer(w);
    free(part);
}

static void write_lattice_none(void)
{
    write_lattice(0);
}
static void write_lattice_beyond(void)
{
    write_lattice(1);
}

/* ---- without a reader, writer, file, type ---- */

static void null_next(void)
{
    say_code(lemonReaderNextRecord(NULL));
}
static void null_close(void)
{
    say_code(lemonReaderCloseRecord(NULL));
}
static void null_type(void)
{
    say_text(lemonReaderType(NULL));
}
static void null_bytes(void)
{
    say_number(lemonReaderBytes(NULL));
}
static void null_eom(void)
{
    say_number(lemonEOM(NULL));
}
static void null_pointer(void)
{
    say_number(lemonGetReaderPointer(NULL));
}
static void null_finish(void)
{
    say_code(lemonFinishReading(NULL));
}
static void null_destroy(void)
{
    say_code(lemonDestroyWriter(NULL));
}
static void null_writer_close(void)
{
    say_code(lemonWriterCloseRecord(NULL));
}

static void null_file(void)
{
    strcpy(answer, lemonCreateWriter(NULL, cart) ? "a writer" : "NULL");
}

static void null_type_of_header(void)
{
    strcpy(answer, lemonCreateHeader(1, 1, NULL, 0) ? "a header" : "NULL");
}

static void negative_length(void)
{
    LemonRecordHeader *h = lemonCreateHeader(1, 1, "type", -1);
    strcpy(answer, h ? "a header" : "NULL");
    lemonDestroyHeader(h);
}

/* ---- all ---- */

static const struct row {
    const char *call, *situation;
    void (*run)(void);
} rows[] = {
    {"lemonReaderNextRecord", "after the last record", next_after_last},
    {"lemonReaderNextRecord", "once more", next_after_eof},
    {"lemonReaderNextRecord", "bad magic", next_bad_magic},
    {"lemonReaderNextRecord", "bad magic, once more", next_bad_magic_again},
    {"lemonReaderNextRecord", "another version", next_bad_version},
    {"lemonReaderNextRecord", "the file ends inside of the header", next_cut_header},
    {"lemonReaderNextRecord", "the same, once more", next_cut_header_again},
    {"lemonReaderNextRecord", "the file ended inside of the data before", next_cut_data},
    {"lemonReaderNextRecord", "that, once more", next_cut_data_again},
    {"lemonReaderNextRecord", "the last padding is missing", next_no_padding},
    {"lemonReaderNextRecord", "bytes that are no header behind the last record", next_trailing},
    {"lemonReaderNextRecord", "a record of 2^64 - 144 bytes, once more", next_huge},
    {"lemonReaderNextRecord", "a read is pending", next_pending},
    {"lemonReaderType", "before the first record", type_before},
    {"lemonReaderType", "the record is closed", type_closed},
    {"lemonReaderType", "after LEMON_EOF", type_eof},
    {"lemonReaderType", "after a bad header", type_failed},
    {"lemonReaderBytes", "before the first record", bytes_before},
    {"lemonReaderBytes", "the record is closed", bytes_closed},
    {"lemonReaderBytes", "after LEMON_EOF", bytes_eof},
    {"lemonEOM", "before the first record", eom_before},
    {"lemonEOM", "the record does not end its message", eom_open},
    {"lemonEOM", "the record is closed", eom_closed},
    {"lemonEOM", "after LEMON_EOF", eom_eof},
    {"lemonReaderCloseRecord", "before the first record", close_before},
    {"lemonReaderCloseRecord", "once more", close_twice},
    {"lemonReaderSeek", "no record is open", seek_before},
    {"lemonReaderSeek", "to the end of the record's 8 bytes", seek_to_end},
    {"lemonReaderSeek", "beyond", seek_beyond},
    {"lemonReaderSeek", "3, MPI_SEEK_END", seek_end_plus},
    {"lemonReaderSeek", "-3, MPI_SEEK_END", seek_end_minus},
    {"lemonReaderSeek", "whence 4711", seek_whence},
    {"lemonReaderSeek", "to byte 3: the pointer of `fp`", seek_fp},
    {"lemonReaderReadData", "no record is open", read_before},
    {"lemonReaderReadData", "20 bytes of a record of 8", read_more},
    {"lemonReaderReadData", "at its end", read_at_end},
    {"lemonReaderReadData", "0 bytes", read_nothing},
    {"lemonReaderReadData", "to NULL", read_nowhere},
    {"lemonReadLatticeParallel", "no record is open", lattice_before},
    {"lemonReadLatticeParallel", "of 24 bytes from a record of 8", lattice_beyond_record},
    {"lemonFinishReading", "nothing is pending", finish_nothing},
    {"lemonWriteRecordHeader", "a record is open", header_twice},
    {"lemonWriteRecordHeader", "MB 0 after ME 1", header_mb},
    {"lemonWriteRecordHeader", "the writer's first record has MB 0", header_first_inside},
    {"lemonWriteRecordHeader", "a type of 200 bytes", header_long_type},
    {"lemonWriteRecordData", "no record is open", write_before},
    {"lemonWriteRecordData", "8 bytes into a record of 3", write_beyond},
    {"lemonWriteRecordData", "0 bytes", write_nothing},
    {"lemonWriterCloseRecord", "no record is open", close_none},
    {"lemonWriterCloseRecord", "3 of 8 bytes are written", close_underfull},
    {"lemonDestroyWriter", "3 of 8 bytes are written", destroy_underfull},
    {"lemonWriterSeek", "no record is open", write_seek_none},
    {"lemonWriterSeek", "beyond the record's 8 bytes", write_seek_beyond},
    {"lemonWriterSeek", "3, MPI_SEEK_END", write_seek_end_plus},
    {"lemonWriterSeek", "-3, MPI_SEEK_END", write_seek_end_minus},
    {"lemonWriteLatticeParallel", "no record is open", write_lattice_none},
    {"lemonWriteLatticeParallel", "of 24 bytes into a record of 12", write_lattice_beyond},
    {"lemonReaderNextRecord", "no reader", null_next},
    {"lemonReaderCloseRecord", "no reader", null_close},
    {"lemonReaderType", "no reader", null_type},
    {"lemonReaderBytes", "no reader", null_bytes},
    {"lemonEOM", "no reader", null_eom},
    {"lemonGetReaderPointer", "no reader", null_pointer},
    {"lemonFinishReading", "no reader", null_finish},
    {"lemonDestroyWriter", "no writer", null_destroy},
    {"lemonWriterCloseRecord", "no writer", null_writer_close},
    {"lemonCreateWriter", "no file", null_file},
    {"lemonCreateHeader", "no type", null_type_of_header},
    {"lemonCreateHeader", "a negative length", negative_length},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static void run(int i)
{
    strcpy(answer, "nothing");
    rows[i].run();
    if (rank == 0)
        printf("%s | %s | %s\n", rows[i].call, rows[i].situation, answer);
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
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: conduct FILE [ROW]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    path = argv[1];
    if (argc == 3 && atoi(argv[2]) >= ROWS) {
        MPI_Finalize();
        return 3; /* there are no more */
    }
    for (int i = argc == 3 ? atoi(argv[2]) : 0; i < ROWS; i++) {
        run(i);
        if (argc == 3)
            break;
    }
    MPI_Comm_free(&cart);
    MPI_Finalize();
    return 0;
}
