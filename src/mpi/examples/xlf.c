/*
 * xlf.c - write and read a text record, first with blocking and then with non-blocking calls
 *
 * The record is like the one in which tmLQCD describes a configuration. It contains the time
 * SOURCE_DATE_EPOCH if this environment variable is set, so that a file can be reproduced.
 */
#include "sample.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MESSAGE_BYTES = 512,
};

/* Returns rank 0's time on all ranks, so that all ranks have a text of the same length. */
static time_t get_common_time(void)
{
    char const *epoch = getenv("SOURCE_DATE_EPOCH");
    long long now = epoch ? atoll(epoch) : (long long)time(NULL);
    MPI_Bcast(&now, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    return (time_t)now;
}

static void compose_message(char *message)
{
    time_t now = get_common_time();
    snprintf(message, MESSAGE_BYTES,
             "\n plaquette = %e\n trajectory nr = %d\n beta = %f, kappa = %f, mu = %f, "
             "c2_rec = %f\n time = %lld\n hmcversion = %s\n mubar = %f\n epsilonbar = %f\n "
             "date = %s",
             0.0, 1, 6.0, 0.177, 0.5, 0.0, (long long)now, "5.0.1", 0.0, 0.0, ctime(&now));
}

static void write_message(char const *name, char *message, int non_blocking)
{
    MPI_File fp;
    MPI_Offset bytes = (MPI_Offset)strlen(message);
    sample_open_for_writing(MPI_COMM_WORLD, name, &fp);
    LemonWriter *w = lemonCreateWriter(&fp, MPI_COMM_WORLD);
    LemonRecordHeader *h = lemonCreateHeader(1 /* MB */, 1 /* ME */, "xlf-info", bytes);
    sample_check(lemonWriteRecordHeader(h, w), "lemonWriteRecordHeader");
    lemonDestroyHeader(h);
    if (non_blocking) {
        sample_check(lemonWriteRecordDataNonBlocking(message, &bytes, w),
                     "lemonWriteRecordDataNonBlocking");
        /* Here the program can compute, but must not change the message. */
        sample_check(lemonFinishWriting(w), "lemonFinishWriting");
    } else {
        sample_check(lemonWriteRecordData(message, &bytes, w), "lemonWriteRecordData");
    }
    sample_check(lemonWriterCloseRecord(w), "lemonWriterCloseRecord");
    sample_check(lemonDestroyWriter(w), "lemonDestroyWriter");
    MPI_File_close(&fp);
}

/* Each rank reads the whole record. */
static void read_message(char const *name, char *message, int non_blocking)
{
    MPI_File fp;
    MPI_Offset bytes = MESSAGE_BYTES - 1; /* at most: a shorter record ends earlier */
    sample_open_for_reading(MPI_COMM_WORLD, name, &fp);
    LemonReader *r = lemonCreateReader(&fp, MPI_COMM_WORLD);
    sample_check(lemonReaderNextRecord(r), "lemonReaderNextRecord");
    if (strcmp(lemonReaderType(r), "xlf-info") != 0)
        fprintf(stderr, "wrong type read: %s\n", lemonReaderType(r));
    if (non_blocking) {
        sample_check(lemonReaderReadDataNonBlocking(message, &bytes, r),
                     "lemonReaderReadDataNonBlocking");
        /* Here the program can compute, but must not use the message yet. */
        sample_check(lemonFinishReading(r), "lemonFinishReading");
    } else {
        sample_check(lemonReaderReadData(message, &bytes, r), "lemonReaderReadData");
    }
    lemonDestroyReader(r);
    MPI_File_close(&fp);
}

int main(int argc, char **argv)
{
    static char const *const names[] = {"xlf.test", "xlf_non_blocking.test"};
    int rank, good = 1;
    char written[MESSAGE_BYTES] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    compose_message(written);
    for (int i = 0; i < 2; i++) {
        char read[MESSAGE_BYTES] = "";
        write_message(names[i], written, i == 1 /* non-blocking */);
        read_message(names[i], read, i == 1);
        good = good && strcmp(read, written) == 0;
    }
    printf("Node %d reports %s.\n", rank, good ? "data okay" : "wrong data read");
    MPI_Finalize();
    return good ? 0 : 1;
}
