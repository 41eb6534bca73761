/* files.h - open a file with Lemon, begin a record, and read and write files without MPI */
#ifndef FILES_H
#define FILES_H

#include "lemon.h"
#include "tap.h"

#include <stdbool.h>
#include <string.h>

static inline void remove_file(const char *path)
{
    if (tap_rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Creates a writer of a new file, or with MPI_MODE_APPEND of one that may exist. */
static inline LemonWriter *create_writer(const char *path, MPI_Comm comm, int mode,
                                         MPI_File *fp)
{
    if (!(mode & MPI_MODE_APPEND))
        remove_file(path);
    MPI_File_open(comm, path, mode | MPI_MODE_CREATE, MPI_INFO_NULL, fp);
    return lemonCreateWriter(fp, comm);
}

static inline LemonReader *create_reader(const char *path, MPI_Comm comm, MPI_File *fp)
{
    MPI_File_open(comm, path, MPI_MODE_RDONLY, MPI_INFO_NULL, fp);
    return lemonCreateReader(fp, comm);
}

static inline void end_reader(LemonReader *reader, MPI_File *fp)
{
    lemonDestroyReader(reader);
    MPI_File_close(fp);
}

/* Returns the result of lemonDestroyWriter(). */
static inline int end_writer(LemonWriter *writer, MPI_File *fp)
{
    int code = lemonDestroyWriter(writer);
    MPI_File_close(fp);
    return code;
}

static inline int begin_record(LemonWriter *writer, int mb, int me, const char *type,
                               MPI_Offset bytes)
{
    LemonRecordHeader *header = lemonCreateHeader(mb, me, type, bytes);
    int code = lemonWriteRecordHeader(header, writer);
    lemonDestroyHeader(header);
    return code;
}

/* Returns the bytes of a file on rank 0, NULL on the others. The caller frees them. */
static inline unsigned char *file_bytes(const char *path, size_t *bytes)
{
    unsigned char *all = NULL;
    *bytes = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    FILE *file = tap_rank == 0 ? fopen(path, "rb") : NULL;
    if (file && fseek(file, 0, SEEK_END) == 0) {
        *bytes = (size_t)ftell(file);
        rewind(file);
        all = malloc(*bytes + 1);
        if (fread(all, 1, *bytes, file) != *bytes)
            *bytes = 0;
    }
    if (file)
        fclose(file);
    return all;
}

/* Whether the file has exactly these bytes; true on ranks other than 0. */
static inline bool file_is(const char *path, const void *want, size_t n)
{
    size_t bytes;
    unsigned char *all = file_bytes(path, &bytes);
    bool good = tap_rank > 0 || (all && bytes == n && memcmp(all, want, n) == 0);
    free(all);
    return good;
}

/* Rank 0 writes a file without MPI. */
static inline void put_file(const char *path, const void *bytes, size_t n)
{
    if (tap_rank == 0) {
        FILE *file = fopen(path, "wb");
        if (!file || fwrite(bytes, 1, n, file) != n || fclose(file) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

#endif
