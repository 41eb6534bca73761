/*
 * checksum.c - test the SciDAC checksum of lattice calls, and verification by reading back
 *
 * usage: checksum FILE [all]   all: verify each damage both by path and by MPI-IO
 *        checksum sum {FILE RECORD SITE EXTENT EXTENT EXTENT EXTENT}...
 *        checksum FILE ildg
 *        checksum FILE copy SOURCE
 *
 * lattice.c tests the sum in every geometry. The second form reads the lattices in records of
 * existing containers, and compares their sums with the records after them. The third writes a
 * gauge configuration, as tmLQCD would. The fourth copies tmLQCD's configuration SOURCE, of 4^4
 * sites in double precision, with Lemon's lattice calls.
 */
#include "geometry.h"

#include <fcntl.h>
#include <sys/stat.h>

/* ---- damage between writing and reading back ---- */

static struct {
    int flip; /* at the next sync, flip a bit of the byte at this distance from the end, ... */
    int lose; /* ... or zero this many last bytes, as if they were never written, ... */
    int cut;  /* ... or cut this many bytes off the file */
    int fail; /* the next read of this rank by MPI-IO fails */
} fault;

static void damage(void)
{
    struct stat stat;
    unsigned char byte;
    int fd = open(path, O_RDWR);
    if (fd < 0 || fstat(fd, &stat) != 0)
        exit(1);
    if (fault.cut && ftruncate(fd, stat.st_size - fault.cut) != 0)
        exit(1);
    if (fault.flip) {
        if (pread(fd, &byte, 1, stat.st_size - fault.flip) != 1)
            exit(1);
        byte ^= 0x10;
        if (pwrite(fd, &byte, 1, stat.st_size - fault.flip) != 1)
            exit(1);
    }
    for (int i = 1; i <= fault.lose; i++)
        if (pwrite(fd, "", 1, stat.st_size - i) != 1)
            exit(1);
    fsync(fd);
    close(fd);
}

int MPI_File_sync(MPI_File fh)
{
    int err = PMPI_File_sync(fh);
    MPI_Barrier(MPI_COMM_WORLD);
    if (tap_rank == 0 && (fault.flip || fault.lose || fault.cut))
        damage();
    fault.flip = fault.lose = fault.cut = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    return err;
}

int MPI_File_read_at(MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype type,
                     MPI_Status *status)
{
    if (!fault.fail)
        return PMPI_File_read_at(fh, offset, buf, count, type, status);
    fault.fail = 0;
    return MPI_ERR_IO;
}

/* ---- a lattice ---- */

static void fill(unsigned char *data, long n, unsigned seed)
{
    uint64_t x = seed * 2654435761u + (unsigned)tap_rank * 40503u + 1;
    for (long i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        data[i] = (unsigned char)(x >> 56);
    }
}

static const struct geometry plain = {.dims = 4,
                                      .lattice = {4, 4, 6, 4},
                                      .mapping = {0, 3, 2, 1},
                                      .memory = {0, 1, 2, 3},
                                      .site = 96,
                                      .blocks = 1,
                                      .stripe = 4096,
                                      .sum = true};

/* Distributes that lattice over all ranks; this rank's part is random bytes. */
static struct geometry begin(int turn, unsigned char **data, long *n, unsigned seed)
{
    struct geometry g = plain;
    set_grid(&g, turn);
    make_cart(&g);
    *n = local_bytes(&g);
    *data = malloc((size_t)*n + 1);
    fill(*data, *n, seed);
    return g;
}

static void end(unsigned char *data)
{
    free(data);
    MPI_Comm_free(&cart);
}

/* ---- reading back ---- */

static void damaged(const char *what, int form, int by_path, int flip, int lose, int cut)
{
    char text[128];
    unsigned char *data;
    long n;
    struct geometry g = begin(1, &data, &n, 5);
    g.form = form;
    LemonWriter *writer = open_writer(MPI_MODE_RDWR, 0, block_bytes(&g));
    int code = lemonWriterSetStripe(writer, 4096);
    code |= lemonWriterSetVerify(writer, 1, by_path ? path : NULL);
    code |= write_block(&g, writer, data);
    code |= lemonFinishWriting(writer);
    tap_ok(code == LEMON_SUCCESS, "%s, form %d, %s: not noticed yet", what, form,
           by_path ? "by path" : "by MPI-IO");
    fault.flip = flip;
    fault.lose = lose;
    fault.cut = cut;
    snprintf(text, sizeof text, "%s is detected when the record is closed", what);
    tap_code(lemonWriterCloseRecord(writer), LEMON_ERR_CHECKSUM, text);
    tap_code(lemonWriterCloseRecord(writer), LEMON_ERR_CHECKSUM, "and again");
    code = lemonWriterSeek(writer, 0, MPI_SEEK_SET);
    code |= write_block(&g, writer, data);
    tap_code(code | lemonWriterCloseRecord(writer), LEMON_SUCCESS, "a second write is valid");
    tap_code(end_writer(writer, &fp), LEMON_SUCCESS, "destroy");
    end(data);
}

/* all: each damage with each form and each way; otherwise, each pair of these once. */
static void read_back(int all)
{
    int n = (int)block_bytes(&plain);
    const struct {
        const char *what;
        int flip, lose, cut;
    } damages[] = {{"a flipped bit", 1, 0, 0},
                   {"a flipped bit of the first byte", n, 0, 0},
                   {"a flipped bit in the middle", n / 2 + 1, 0, 0},
                   {"a short write", 0, 100, 0},
                   {"a lost half", 0, n / 2, 0},
                   {"a file cut short", 0, 0, 1000},
                   {"a missing file", 0, 0, n}};
    for (int form = 0; form < FORMS; form++)
        for (int i = 0; i < 7; i++)
            for (int by_path = 0; by_path < 2; by_path++)
                if (all || by_path == (form + i) % 2)
                    damaged(damages[i].what, form, by_path, damages[i].flip, damages[i].lose,
                            damages[i].cut);
}

static void unreadable(void)
{
    unsigned char *data;
    long n;
    struct geometry g = begin(0, &data, &n, 7);
    LemonWriter *writer = open_writer(MPI_MODE_RDWR, 0, block_bytes(&g));
    int code = lemonWriterSetVerify(writer, 1, NULL);
    tap_code(code | write_block(&g, writer, data), LEMON_SUCCESS, "written");
    fault.fail = tap_rank == tap_ranks / 2;
    tap_code(lemonWriterCloseRecord(writer), LEMON_ERR_READ, "a rank that cannot read");
    tap_code(lemonWriterCloseRecord(writer), LEMON_SUCCESS, "the next try succeeds");
    tap_code(end_writer(writer, &fp), LEMON_SUCCESS, "destroyed");
    end(data);
}

static void read_back_arguments(void)
{
    unsigned char *data;
    long n;
    struct geometry g = begin(0, &data, &n, 9);
    long bytes = block_bytes(&g);
    LemonWriter *writer = open_writer(MPI_MODE_WRONLY, 0, bytes);
    tap_code(lemonWriterSetVerify(NULL, 1, path), LEMON_ERR_PARAM, "verify without a writer");
    tap_code(lemonWriterSetVerify(writer, 1, NULL), LEMON_ERR_PARAM, "open for writing only");
    tap_code(lemonWriterSetVerify(writer, 1, tap_rank ? path : "/nowhere/at/all"),
             LEMON_ERR_PARAM, "a rank that cannot open it");
    tap_code(lemonWriterSetVerify(writer, 1, path), LEMON_SUCCESS, "by path");
    if (tap_ranks > 1)
        tap_code(lemonWriterSetVerify(writer, tap_rank == 0, path), LEMON_ERR_PARAM,
                 "ranks that differ");
    tap_code(lemonWriterSetVerify(writer, 0, NULL), LEMON_SUCCESS, "turn it off");
    fault.flip = 1;
    int code = write_block(&g, writer, data);
    tap_code(code | lemonWriterCloseRecord(writer), LEMON_SUCCESS, "no error without it");
    tap_code(end_writer(writer, &fp), LEMON_SUCCESS, "destroyed");

    /* With both on, setting the checksum restarts the sum, not the list of data to verify. */
    writer = open_writer(MPI_MODE_WRONLY, 0, 2 * bytes);
    LemonChecksum sum = {0, 0};
    code = lemonWriterSetVerify(writer, 1, path);
    code |= write_block(&g, writer, data);
    tap_code(code, LEMON_SUCCESS, "a lattice to verify");
    tap_code(lemonWriterChecksum(writer, &sum), LEMON_ERR_PARAM, "without a checksum");
    code = lemonWriterSetChecksum(writer, 1);
    code |= write_block(&g, writer, data);
    code |= lemonWriterChecksum(writer, &sum);
    MPI_Barrier(MPI_COMM_WORLD);
    fault.flip = (int)(bytes + 5);
    tap_code(lemonWriterCloseRecord(writer), LEMON_ERR_CHECKSUM, "a bit in the first lattice");
    tap_ok(code == 0 && same(sum, oracle(144 + bytes, bytes, g.site)),
           "the sum covers the second one");
    tap_code(end_writer(writer, &fp), LEMON_ERR_CHECKSUM, "destroy reports it, too");
    end(data);
}

/* ---- the API call by call ---- */

static void api(void)
{
    LemonChecksum sum = {1, 2}, again;
    MPI_Offset text = 20;
    unsigned char *data;
    long n;
    struct geometry g = begin(0, &data, &n, 3);
    long bytes = block_bytes(&g);
    tap_code(lemonWriterSetChecksum(NULL, 1), LEMON_ERR_PARAM, "no writer");
    tap_code(lemonWriterChecksum(NULL, &sum), LEMON_ERR_PARAM, "no writer");
    tap_code(lemonWriteChecksum(NULL, 1, 1, &sum), LEMON_ERR_PARAM, "no writer");
    tap_code(lemonReaderSetChecksum(NULL, 1), LEMON_ERR_PARAM, "no reader");
    tap_code(lemonReaderChecksum(NULL, &sum), LEMON_ERR_PARAM, "no reader");
    tap_code(lemonReadChecksum(NULL, &sum), LEMON_ERR_PARAM, "no reader");

    LemonWriter *writer = open_writer(MPI_MODE_WRONLY, 0, 3 * bytes);
    tap_code(lemonWriterChecksum(writer, &sum), LEMON_ERR_PARAM, "no checksum requested");
    if (tap_ranks > 1)
        tap_code(lemonWriterSetChecksum(writer, tap_rank == 0), LEMON_ERR_PARAM,
                 "ranks that differ");
    tap_code(lemonWriterSetChecksum(writer, 1), LEMON_SUCCESS, "request a checksum");
    tap_code(lemonWriterChecksum(writer, &sum), LEMON_ERR_PARAM, "nothing written yet");
    tap_ok(sum.suma == 1 && sum.sumb == 2, "an error does not change the sum");
    tap_code(write_block(&g, writer, data), LEMON_SUCCESS, "the first lattice");
    tap_code(write_block(&g, writer, data), LEMON_SUCCESS, "the second");
    tap_code(lemonWriterSeek(writer, g.site * 3, MPI_SEEK_SET), LEMON_SUCCESS, "seek back");
    tap_code(write_block(&g, writer, data), LEMON_ERR_PARAM, "rewrite a part of a lattice");
    tap_code(lemonWriterSeek(writer, 5, MPI_SEEK_SET), LEMON_SUCCESS, "seek into a site");
    tap_code(write_block(&g, writer, data), LEMON_ERR_PARAM, "a write within a site");
    tap_code(lemonWriterSeek(writer, bytes, MPI_SEEK_SET), LEMON_SUCCESS, "seek back");
    fill(data, n, 4);
    tap_code(write_block(&g, writer, data), LEMON_SUCCESS, "rewrite the second lattice");
    tap_code(lemonWriterSeek(writer, 2 * bytes, MPI_SEEK_SET), LEMON_SUCCESS, "seek on");
    g.form = FORM_START;
    tap_code(write_block(&g, writer, data), LEMON_SUCCESS, "a third, pending");
    tap_code(lemonWriterChecksum(writer, tap_rank ? NULL : &sum), LEMON_SUCCESS, "waits");
    tap_code(lemonWriterCloseRecord(writer), LEMON_SUCCESS, "closed");
    tap_code(lemonWriterChecksum(writer, &again), LEMON_SUCCESS, "known after closing");
    tap_ok(tap_rank || same(sum, again), "the same sum");
    tap_ok(same(again, oracle(144, 3 * bytes, g.site)), "the sum of the file's data");
    tap_code(lemonWriteChecksum(writer, 1, 0, &again), LEMON_ERR_MBME, "MB in a message");
    if (tap_ranks > 1) {
        LemonChecksum other = {again.suma, again.sumb + (tap_rank == 0)};
        tap_code(lemonWriteChecksum(writer, 0, 0, &other), LEMON_ERR_PARAM, "sums that differ");
    }
    tap_code(lemonWriteChecksum(writer, 0, 0, tap_rank ? &again : NULL), LEMON_ERR_PARAM,
             "no sum on a rank");
    tap_code(lemonWriteChecksum(writer, 0, 0, &again), LEMON_SUCCESS, "write its record");
    tap_code(lemonWriterChecksum(writer, &sum), LEMON_ERR_PARAM, "that record has no sum");
    begin_record(writer, 0, 1, "text", text);
    tap_code(lemonWriteChecksum(writer, 0, 0, &again), LEMON_ERR_HEADER_NEXT,
             "inside a record");
    lemonWriteRecordData("<suma>1</suma> <sum>", &text, writer);
    tap_code(end_writer(writer, &fp), LEMON_SUCCESS, "written");

    LemonReader *reader = open_reader();
    tap_code(lemonReaderChecksum(reader, &sum), LEMON_ERR_PARAM, "no checksum requested");
    tap_code(lemonReaderSetChecksum(reader, 1), LEMON_SUCCESS, "request a checksum");
    tap_code(lemonSetReaderPointer(reader, 2 * bytes), LEMON_SUCCESS, "the last one first");
    tap_code(read_block(&g, reader, data), LEMON_SUCCESS, "read, pending");
    tap_code(lemonSetReaderPointer(reader, 0), LEMON_SUCCESS, "then the others");
    tap_code(read_block(&g, reader, data), LEMON_SUCCESS, "read, pending");
    tap_code(read_block(&g, reader, data), LEMON_SUCCESS, "read, pending");
    tap_code(lemonReaderChecksum(reader, &sum), LEMON_SUCCESS, "lattices in any order");
    tap_ok(same(sum, again), "it is the same");
    tap_code(lemonSetReaderPointer(reader, bytes), LEMON_SUCCESS, "the second one");
    tap_code(lemonReaderSetChecksum(reader, 1), LEMON_SUCCESS, "restart the sum");
    tap_code(read_block(&g, reader, data), LEMON_SUCCESS, "read");
    tap_code(lemonReaderChecksum(reader, &sum), LEMON_SUCCESS, "summed");
    tap_ok(same(sum, oracle(144 + bytes, bytes, g.site)), "its ranks begin at 0");
    tap_code(lemonReadChecksum(reader, &sum), LEMON_ERR_READ, "a lattice is not a checksum");
    tap_code(lemonReaderNextRecord(reader), LEMON_SUCCESS, "its record");
    tap_code(lemonReaderChecksum(reader, &sum), LEMON_ERR_PARAM, "it has no lattice");
    tap_ok(strcmp(lemonReaderType(reader), "scidac-checksum") == 0, "its type");
    tap_code(lemonReadChecksum(reader, NULL), LEMON_SUCCESS, "read");
    tap_code(lemonReadChecksum(reader, &sum), LEMON_SUCCESS, "read again");
    tap_ok(same(sum, again), "the sum as written");
    tap_code(lemonReaderNextRecord(reader), LEMON_SUCCESS, "another record");
    tap_code(lemonReadChecksum(reader, &sum), LEMON_ERR_READ, "is not a checksum");
    tap_code(lemonReaderCloseRecord(reader), LEMON_SUCCESS, "closed");
    tap_code(lemonReadChecksum(reader, &sum), LEMON_ERR_HEADER_NEXT, "no record is open");
    end_reader(reader, &fp);
    end(data);
}

/* ---- files written by other programs ---- */

/* argv: path, record, bytes of a site, and four extents. */
static void sum_record(char **argv)
{
    struct geometry g = {.dims = 4, .site = atoi(argv[2]), .blocks = 1, .stripe = 4096};
    LemonChecksum sum = {0, 0}, stored = {1, 1};
    int bad = 0;
    path = argv[0];
    for (int i = 0; i < g.dims; i++) {
        g.lattice[i] = atoi(argv[3 + i]);
        g.mapping[i] = g.memory[i] = i;
    }
    for (int turn = 0; turn < g.dims; turn++)
        for (g.form = 0; g.form < FORMS; g.form++) {
            set_grid(&g, turn);
            make_cart(&g);
            unsigned char *data = malloc((size_t)local_bytes(&g) + 1);
            LemonReader *reader = open_reader();
            int code = LEMON_SUCCESS;
            for (int i = 1; i < atoi(argv[1]); i++)
                code |= lemonReaderNextRecord(reader);
            code |= lemonReaderSetChecksum(reader, 1);
            code |= read_block(&g, reader, data);
            code |= lemonReaderChecksum(reader, &sum);
            code |= lemonReaderNextRecord(reader);
            code |= lemonReadChecksum(reader, &stored);
            end_reader(reader, &fp);
            end(data);
            bad += code != 0 || !same(sum, stored);
        }
    tap_ok(bad == 0, "record %s of %s: %d wrong", argv[1], path, bad);
}

/* ---- a file for other programs ---- */

static void write_ildg(void)
{
    char text[] = "<ildgFormat xmlns=\"http://www.lqcd.org/ildg\"><version>1.0</version>"
                  "<field>su3gauge</field><precision>64</precision>"
                  "<lx>4</lx><ly>6</ly><lz>4</lz><lt>4</lt></ildgFormat>";
    MPI_Offset n = (MPI_Offset)strlen(text);
    LemonChecksum sum = {0, 0};
    struct geometry g = plain;
    g.site = 576;
    set_grid(&g, 1);
    make_cart(&g);
    unsigned char *data = malloc((size_t)local_bytes(&g) + 1);
    fill(data, local_bytes(&g), 6);
    LemonWriter *writer = create_writer(path, cart, MPI_MODE_WRONLY, &fp);
    int code = lemonWriterSetChecksum(writer, 1);
    code |= lemonWriterSetVerify(writer, 1, path);
    code |= begin_record(writer, 1, 0, "ildg-format", n);
    code |= lemonWriteRecordData(text, &n, writer);
    code |= lemonWriterCloseRecord(writer);
    code |= begin_record(writer, 0, 0, "ildg-binary-data", block_bytes(&g));
    code |= write_block(&g, writer, data);
    code |= lemonWriterCloseRecord(writer);
    code |= lemonWriterChecksum(writer, &sum);
    code |= lemonWriteChecksum(writer, 0, 1, &sum);
    tap_code(code | end_writer(writer, &fp), LEMON_SUCCESS, "a gauge configuration");
    end(data);
}

static int copy_record(const struct geometry *g, LemonReader *reader, LemonWriter *writer)
{
    MPI_Offset n = lemonReaderBytes(reader);
    char *data = malloc((size_t)n + 1);
    int code = begin_record(writer, lemonReaderMBFlag(reader), lemonReaderMEFlag(reader),
                            lemonReaderType(reader), n);
    if (n == block_bytes(g)) {
        code |= read_block(g, reader, data);
        code |= write_block(g, writer, data);
    } else {
        code |= lemonReaderReadData(data, &n, reader);
        code |= lemonWriteRecordData(data, &n, writer);
    }
    free(data);
    return code | lemonWriterCloseRecord(writer);
}

static void copy_container(const char *source)
{
    struct geometry g = {
        .dims = 4, .site = 576, .lattice = {4, 4, 4, 4}, .mapping = {0, 1, 2, 3}};
    MPI_File out;
    const char *target = path;
    int code = LEMON_SUCCESS;
    set_grid(&g, 1);
    make_cart(&g);
    path = source;
    LemonReader *reader = open_reader();
    LemonWriter *writer = create_writer(target, cart, MPI_MODE_WRONLY, &out);
    do
        code |= copy_record(&g, reader, writer);
    while (lemonReaderNextRecord(reader) == LEMON_SUCCESS);
    end_reader(reader, &fp);
    tap_code(code | end_writer(writer, &out), LEMON_SUCCESS, "copied with Lemon");
    end(NULL);
}

int main(int argc, char *argv[])
{
    tap_begin(&argc, &argv);
    path = argv[1];
    if (strcmp(path, "sum") == 0) {
        for (int i = 2; i + 7 <= argc; i += 7)
            sum_record(argv + i);
        return tap_end();
    }
    if (argc > 2 && strcmp(argv[2], "ildg") == 0) {
        write_ildg();
        return tap_end();
    }
    if (argc > 3 && strcmp(argv[2], "copy") == 0) {
        copy_container(argv[3]);
        return tap_end();
    }
    api();
    read_back_arguments();
    read_back(argc > 2);
    unreadable();
    remove_file(path);
    return tap_end();
}
