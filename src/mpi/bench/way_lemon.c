/* way_lemon.c - Lemon */
#include "bench.h"
#include "lemon.h"

#include <stdio.h>

static int say(int code, const char *what)
{
    if (code != LEMON_SUCCESS)
        fprintf(stderr, "lemon_compare: %s: code %d\n", what, code);
    return code == LEMON_SUCCESS ? 0 : -1;
}

static int write_lemon(struct bench *b)
{
    MPI_File fp;
    MPI_File_open(b->cart, b->path, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &fp);
    LemonWriter *writer = lemonCreateWriter(&fp, b->cart);
    LemonRecordHeader *header = lemonCreateHeader(1, 1, "ildg-binary-data", b->bytes);
    int code = lemonWriteRecordHeader(header, writer);
    lemonDestroyHeader(header);
    if (code == LEMON_SUCCESS)
        code = lemonWriteLatticeParallel(writer, b->data, b->site_bytes, b->lattice);
    if (code == LEMON_SUCCESS)
        code = lemonWriterCloseRecord(writer);
    lemonDestroyWriter(writer);
    MPI_File_close(&fp);
    return say(code, "write");
}

static int read_lemon(struct bench *b)
{
    MPI_File fp;
    MPI_File_open(b->cart, b->path, MPI_MODE_RDONLY, MPI_INFO_NULL, &fp);
    LemonReader *reader = lemonCreateReader(&fp, b->cart);
    int code = lemonReaderNextRecord(reader);
    if (code == LEMON_SUCCESS)
        code = lemonReadLatticeParallel(reader, b->data, b->site_bytes, b->lattice);
    lemonDestroyReader(reader);
    MPI_File_close(&fp);
    return say(code, "read");
}

const struct bench_way bench_lemon = {"lemon", write_lemon, read_lemon};
