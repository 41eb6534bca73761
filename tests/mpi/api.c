/*
 * api.c - test the calls of the API one by one: states, errors, seeks, appending
 *
 * usage: api FILE
 *
 * conduct.c tests single calls in odd situations, big.c large files.
 */
#include "files.h"

static const char *path;
static MPI_Comm cart;
static MPI_File fp;
static int messages;

static void count_message(char const *text, void *context)
{
    (void)context;
    messages += strstr(text, "lemon: ") == text;
}

static int put(LemonWriter *w, const char *text)
{
    MPI_Offset n = (MPI_Offset)strlen(text);
    return lemonWriteRecordData((void *)text, &n, w);
}

static int record(LemonWriter *w, int mb, int me, const char *type, const char *text)
{
    int code = begin_record(w, mb, me, type, (MPI_Offset)strlen(text));
    if (code == LEMON_SUCCESS)
        code = put(w, text);
    return code == LEMON_SUCCESS ? lemonWriterCloseRecord(w) : code;
}

static size_t lay(unsigned char *at, int flags, const char *type, const char *data)
{
    size_t n = strlen(data), whole = (144 + n + 7) / 8 * 8;
    memset(at, 0, whole);
    memcpy(at, "\x45\x67\x89\xab\0\1", 6);
    at[6] = (unsigned char)flags;
    at[15] = (unsigned char)n;
    memcpy(at + 16, type, strlen(type));
    memcpy(at + 144, data, n);
    return whole;
}

static void bytes_of_records(void)
{
    unsigned char want[1024];
    size_t n = lay(want, 0x80, "first", "abc");
    n += lay(want + n, 0x40, "second", "12345678");
    LemonWriter *w = create_writer(path, cart, MPI_MODE_WRONLY, &fp);
    tap_code(record(w, 1, 0, "first", "abc"), 0, "first record");
    tap_code(record(w, 0, 1, "second", "12345678"), 0, "second record");
    tap_code(end_writer(w, &fp), 0, "destroy");
    tap_ok(file_is(path, want, n), "the file is right to the byte");

    n += lay(want + n, 0xc0, "third", "");
    n += lay(want + n, 0xc0, "fourth", "x");
    w = create_writer(path, cart, MPI_MODE_WRONLY | MPI_MODE_APPEND, &fp);
    tap_code(record(w, 1, 1, "third", ""), 0, "an empty record, appended");
    tap_code(record(w, 1, 1, "fourth", "x"), 0, "and another");
    end_writer(w, &fp);
    tap_ok(file_is(path, want, n), "appended right to the byte");
}

static void reading_back(void)
{
    char got[16] = "";
    MPI_Offset n;
    LemonReader *r = create_reader(path, cart, &fp);
    tap_code(lemonReaderMBFlag(r), LEMON_ERR_PARAM, "no flag without a record");
    tap_code(lemonReaderNextRecord(r), 0, "first");
    tap_ok(strcmp(lemonReaderType(r), "first") == 0 && lemonReaderBytes(r) == 3 &&
               lemonReaderPadBytes(r) == 5 && lemonReaderMBFlag(r) == 1 &&
               lemonReaderMEFlag(r) == 0 && lemonEOM(r) == 0 && lemonReaderDeviation(r) == 0,
           "its header's values");
    n = 2;
    tap_code(lemonReaderReadData(got, &n, r), 0, "two bytes");
    tap_ok(n == 2 && memcmp(got, "ab", 2) == 0 && lemonGetReaderPointer(r) == 2, "as stored");
    n = 10;
    tap_code(lemonReaderReadData(got, &n, r), 0, "read beyond the end");
    tap_ok(n == 1 && got[0] == 'c', "it returns the remaining byte");
    n = 10;
    tap_code(lemonReaderReadData(got, &n, r), LEMON_EOR, "the end of the record");
    tap_ok(n == 0, "no bytes with LEMON_EOR");
    tap_code(lemonReaderNextRecord(r), 0, "second, the first not closed");
    tap_code(lemonReaderSeek(r, 3, MPI_SEEK_SET), 0, "seek");
    tap_code(lemonReaderSeek(r, 2, MPI_SEEK_CUR), 0, "seek on");
    tap_code(lemonReaderSeek(r, 4, MPI_SEEK_CUR), LEMON_ERR_SEEK, "seek too far");
    tap_code(lemonReaderSeek(r, -6, MPI_SEEK_CUR), LEMON_ERR_SEEK, "seek before the record");
    tap_code(lemonReaderSeek(r, 0, 77), LEMON_ERR_PARAM, "seek with a wrong whence");
    tap_ok(lemonGetReaderPointer(r) == 5, "a failed seek keeps the position");
    n = 3;
    tap_code(lemonReaderReadDataNonBlocking(got, &n, r), 0, "non-blocking read");
    tap_code(lemonFinishReading(r), 0, "finish");
    tap_code(lemonFinishReading(r), 0, "finish again");
    tap_ok(memcmp(got, "678", 3) == 0, "the right bytes");
    tap_code(lemonReaderSeek(r, 6, MPI_SEEK_END), 0, "seek back from the end");
    tap_ok(lemonGetReaderPointer(r) == 2, "the position is 6 bytes before the end");
    tap_code(lemonReaderSeek(r, -8, MPI_SEEK_END), 0, "a negative offset, as with lseek()");
    tap_ok(lemonGetReaderPointer(r) == 0, "the position is the beginning");
    tap_code(lemonReaderSeek(r, 9, MPI_SEEK_END), LEMON_ERR_SEEK, "not before the beginning");
    tap_code(lemonReaderSeek(r, 3, MPI_SEEK_SET), 0, "seek, then read by the file");
    MPI_File_read(*r->fp, got, 2, MPI_BYTE, MPI_STATUS_IGNORE);
    tap_ok(memcmp(got, "45", 2) == 0, "MPI reads from that position");
    tap_code(lemonSetReaderPointer(r, 7), 0, "set the pointer");
    n = 1;
    tap_code(lemonReaderReadDataNonBlocking(got, &n, r), 0, "non-blocking read");
    tap_code(lemonReaderCloseRecord(r), 0, "close waits for the read");
    tap_ok(got[0] == '8', "the byte is read");
    tap_ok(strcmp(lemonReaderType(r), "second") == 0 && lemonEOM(r) == 1,
           "a closed record's header stays known");

    MPI_File fp2;
    MPI_File_open(cart, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &fp2);
    LemonReader *copy = lemonCreateReader(&fp2, cart);
    tap_code(lemonReaderNextRecord(r), 0, "third");
    tap_code(lemonReaderSetState(copy, r), 0, "copy the state");
    n = 5;
    tap_code(lemonReaderReadData(got, &n, r), LEMON_EOR, "an empty record has no bytes");
    n = 0;
    tap_code(lemonReaderReadData(NULL, &n, r), 0, "reading 0 bytes always succeeds");
    tap_code(lemonReaderNextRecord(r), 0, "fourth");
    tap_code(lemonReaderNextRecord(r), LEMON_EOF, "the end");
    lemonDestroyReader(r);
    tap_ok(strcmp(lemonReaderType(copy), "third") == 0, "the copy outlives the reader");
    tap_code(lemonReaderNextRecord(copy), 0, "the copy continues");
    tap_ok(strcmp(lemonReaderType(copy), "fourth") == 0, "to the fourth");
    lemonDestroyReader(copy);
    MPI_File_close(&fp2);
    MPI_File_close(&fp);
}

static void writing_states(void)
{
    char text[] = "0123456789", long_type[200];
    MPI_Offset n = 10;
    LemonWriter *w = create_writer(path, cart, MPI_MODE_WRONLY, &fp);
    memset(long_type, 't', sizeof long_type);
    long_type[128] = '\0';
    tap_code(begin_record(w, 1, 1, long_type, 1), LEMON_ERR_PARAM, "a type of 128 bytes");
    tap_code(lemonWriteRecordHeader(NULL, w), LEMON_ERR_PARAM, "no header");
    long_type[127] = '\0';
    tap_code(begin_record(w, 1, 0, long_type, 10), 0, "a type of 127 bytes");
    tap_code(begin_record(w, 0, 1, "next", 1), LEMON_ERR_HEADER_NEXT, "a header in a record");
    n = 11;
    tap_code(lemonWriteRecordData(text, &n, w), LEMON_ERR_WRITE, "overfill");
    tap_ok(n == 0, "nothing is written");
    n = 4;
    tap_code(lemonWriteRecordData(text, &n, w), 0, "a part");
    tap_code(lemonWriterCloseRecord(w), LEMON_ERR_CLOSE, "underfill");
    tap_code(lemonWriterSeek(w, 11, MPI_SEEK_SET), LEMON_ERR_SEEK, "seek out of it");
    tap_code(lemonWriterSeek(w, 2, MPI_SEEK_CUR), 0, "leave a gap");
    n = 4;
    tap_code(lemonWriteRecordDataNonBlocking(text + 6, &n, w), 0, "the end, non-blocking");
    tap_code(lemonWriterSeek(w, 4, MPI_SEEK_SET), 0, "seek back");
    n = 2;
    tap_code(lemonWriteRecordDataNonBlocking(text + 4, &n, w), 0, "the gap, non-blocking");
    tap_code(lemonWriterCloseRecord(w), 0, "close waits for the writes");
    tap_code(begin_record(w, 1, 1, "mb", 1), LEMON_ERR_MBME, "MB in a message");
    tap_code(record(w, 0, 1, "last", "z"), 0, "the end of the message");
    tap_code(begin_record(w, 1, 1, "open", 5), 0, "a record");
    tap_code(end_writer(w, &fp), LEMON_ERR_LAST_NOT_WRITTEN, "destroy with an open record");
    unsigned char want[1024];
    size_t size = lay(want, 0x80, long_type, text);
    size += lay(want + size, 0x40, "last", "z");
    size += lay(want + size, 0xc0, "open", "");
    want[size - 144 + 15] = 5;
    tap_ok(file_is(path, want, size), "the file's bytes");
}

static void ends_of_records(void)
{
    unsigned char want[1024];
    size_t n = lay(want, 0xc0, "cut", "abc");
    put_file(path, want, n - 5); /* without its padding, as the old library writes it */
    LemonWriter *w = create_writer(path, cart, MPI_MODE_WRONLY | MPI_MODE_APPEND, &fp);
    tap_code(record(w, 1, 1, "more", "12345678"), 0, "appended to a file without padding");
    tap_code(begin_record(w, 1, 1, "gap", 16), 0, "a record");
    tap_code(lemonWriterSeek(w, 0, MPI_SEEK_END), 0, "seek to its end without a write");
    tap_code(lemonWriterCloseRecord(w), 0, "close");
    end_writer(w, &fp);
    n += lay(want + n, 0xc0, "more", "12345678");
    memset(want + n, 0, 200);
    n += lay(want + n, 0xc0, "gap", "");
    want[n - 144 + 15] = 16;
    tap_ok(file_is(path, want, n + 16), "both records have their padding");
}

static void one_rank_is_wrong(void)
{
    char text[] = "0123456789";
    int odd = tap_rank == tap_ranks - 1, alone = tap_ranks == 1;
    MPI_Offset n = odd ? 3 : 4;
    LemonWriter *w = create_writer(path, cart, MPI_MODE_WRONLY, &fp);
    tap_code(begin_record(w, 1, 1, odd ? "other" : "type", 8), alone ? 0 : LEMON_ERR_PARAM,
             "another type on one rank");
    if (!alone)
        begin_record(w, 1, 1, "type", 8);
    tap_code(lemonWriteRecordData(text, &n, w), alone ? 0 : LEMON_ERR_PARAM,
             "another length on one rank");
    n = 4;
    tap_code(lemonWriteRecordData(odd ? NULL : text, &n, w), LEMON_ERR_PARAM,
             "no data on one rank");
    static const int wrong[][4] = {
        {0, 1, 2, 2}, {0, 1, 2, 4}, {-1, 1, 2, 3}, {0, 1, 2, 1 << 30}};
    int lattice[] = {2, 2, 2, odd ? -1 : 1}, turned[] = {0, 1, odd ? 3 : 2, odd ? 2 : 3};
    int bad = 0;
    tap_code(lemonWriteLatticeParallel(w, text, 1, lattice), LEMON_ERR_PARAM,
             "a negative extent on one rank");
    lattice[3] = 1;
    for (int i = 0; i < 8; i++) {
        const int *order = odd ? wrong[i / 2] : NULL;
        bad += lemonWriteLatticeParallelPermuted(w, text, 1, lattice, i % 2 ? order : NULL,
                                                 i % 2 ? NULL : order) != LEMON_ERR_PARAM;
    }
    tap_ok(bad == 0, "invalid permutations on one rank: %d accepted", bad);
    lemonWriterSeek(w, 0, MPI_SEEK_SET);
    tap_code(lemonWriteLatticeParallelPermuted(w, text, 1, lattice, NULL, turned),
             alone ? 0 : LEMON_ERR_PARAM, "another order on one rank");
    tap_ok(lemonWriteLatticeParallelPermuted(NULL, text, 1, lattice, NULL, NULL) ==
                   LEMON_ERR_PARAM &&
               lemonReadLatticeParallelPermuted(NULL, text, 1, lattice, NULL, NULL) ==
                   LEMON_ERR_PARAM,
           "NULL is an error");
    tap_code(lemonWriteLatticeParallel(w, text, odd ? -5 : 1, lattice), LEMON_ERR_PARAM,
             "a negative site size on one rank");
    tap_code(lemonWriteLatticeParallel(w, text, 5, lattice), LEMON_ERR_WRITE,
             "a lattice that is too large");
    tap_code(lemonWriteLatticeParallelNonBlocking(w, text, 5, lattice), LEMON_ERR_WRITE,
             "the same, non-blocking");
    end_writer(w, &fp);

    w = lemonCreateWriter(&fp, MPI_COMM_NULL == cart ? cart : MPI_COMM_SELF);
    tap_ok(w != NULL, "a writer with its own communicator");
    lemonDestroyWriter(w);
}

static void damaged_files(void)
{
    unsigned char file[1024];
    char got[64];
    MPI_Offset n = 40;
    size_t one = lay(file, 0x80, "good", "data");
    size_t size = one + lay(file + one, 0xff, "flags", "1");
    put_file(path, file, size);
    LemonReader *r = create_reader(path, cart, &fp);
    tap_code(lemonReaderNextRecord(r), 0, "the first");
    tap_code(lemonReaderNextRecord(r), 0, "inconsistent flags");
    tap_ok(lemonReaderDeviation(r) == (LEMON_DEVIATION_MB_INSIDE | LEMON_DEVIATION_RESERVED),
           "are reported");
    end_reader(r, &fp);

    put_file(path, file, size - 7);
    r = create_reader(path, cart, &fp);
    lemonReaderNextRecord(r);
    tap_code(lemonReaderNextRecord(r), 0, "the last padding is missing");
    tap_code(lemonReaderReadData(got, &n, r), 0, "its data are there");
    end_reader(r, &fp);

    file[one + 15] = 40; /* more than there is */
    put_file(path, file, size);
    r = create_reader(path, cart, &fp);
    lemonReaderNextRecord(r);
    tap_code(lemonReaderNextRecord(r), 0, "data cut short: the header is read");
    n = 40;
    tap_code(lemonReaderReadData(got, &n, r), LEMON_ERR_READ, "the data are not");
    int lattice[] = {2, 2, 2, 5};
    char *part = malloc(40);
    tap_code(lemonReadLatticeParallel(r, part, 1, lattice), LEMON_ERR_READ, "a lattice is not");
    tap_code(lemonReadLatticeParallelNonBlocking(r, part, 1, lattice), 0, "non-blocking");
    tap_code(lemonFinishReading(r), LEMON_ERR_READ, "fails at the end");
    free(part);
    tap_code(lemonReaderNextRecord(r), LEMON_ERR_READ, "no next record");
    tap_ok(strcmp(lemonReaderType(r), "") == 0, "its type is empty");
    tap_code(lemonReaderNextRecord(r), LEMON_EOF, "the end follows");
    end_reader(r, &fp);

    static const unsigned char lengths[][8] = {
        {0x80},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x70}, /* 2^63, 2^64 - 144 */
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
        {0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    for (int i = 0; i < 4; i++) {
        memcpy(file + one + 8, lengths[i], 8);
        put_file(path, file, size);
        r = create_reader(path, cart, &fp);
        lemonReaderNextRecord(r);
        tap_code(lemonReaderNextRecord(r), LEMON_ERR_HEADER_NEXT, "an impossible length");
        tap_code(lemonReaderNextRecord(r), LEMON_EOF, "the error is reported once");
        end_reader(r, &fp);
    }
    put_file(path, file, 0);
    r = create_reader(path, cart, &fp);
    tap_code(lemonReaderNextRecord(r), LEMON_EOF, "an empty file");
    end_reader(r, &fp);
}

/* Open MPI's sync of a file fails while the process has a request of any file: some ranks would
 * return an error, and the others would wait for them for ever. */
static void with_pending_requests(void)
{
    char text[100] = "", other[4096];
    MPI_Offset n = sizeof text;
    MPI_File file;
    LemonWriter *w = create_writer(path, cart, MPI_MODE_RDWR, &fp);
    snprintf(other, sizeof other, "%s.other", path);
    MPI_File_open(cart, other, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    LemonWriter *busy = lemonCreateWriter(&file, cart);
    begin_record(busy, 1, 1, "data", n);
    begin_record(w, 1, 0, "one", n);
    lemonWriteRecordData(text, &n, w);
    tap_code(lemonWriteRecordDataNonBlocking(text, &n, busy), LEMON_SUCCESS, "a pending write");
    tap_code(lemonWriterCloseRecord(w), LEMON_SUCCESS, "close during another file's write");
    tap_code(lemonWriterCloseRecord(busy), LEMON_SUCCESS, "close the other file's record");
    lemonDestroyWriter(busy);
    LemonReader *r = lemonCreateReader(&fp, cart);
    lemonReaderNextRecord(r);
    tap_code(lemonReaderReadDataNonBlocking(text, &n, r), LEMON_SUCCESS, "a pending read");
    begin_record(w, 0, 1, "two", 0);
    tap_code(lemonWriterCloseRecord(w), LEMON_SUCCESS, "close during a read");
    tap_code(lemonFinishReading(r), LEMON_SUCCESS, "read");
    lemonDestroyReader(r);
    end_writer(w, &fp);
    MPI_File_close(&file);
    if (tap_rank == 0)
        unlink(other);
}

int main(int argc, char *argv[])
{
    int grid[4] = {0}, periods[4] = {0};
    tap_begin(&argc, &argv);
    path = argv[1];
    MPI_Dims_create(tap_ranks, 4, grid);
    MPI_Cart_create(MPI_COMM_WORLD, 4, grid, periods, 1, &cart);
    bytes_of_records();
    reading_back();
    writing_states();
    ends_of_records();
    lemonSetMessageHandler(count_message, NULL);
    damaged_files();
    tap_ok(tap_rank > 0 || messages == 8, "%d messages, one for each fault", messages);
    lemonSetMessageHandler(NULL, NULL);
    one_rank_is_wrong();
    with_pending_requests();
    MPI_Comm_free(&cart);
    remove_file(path);
    return tap_end();
}
