// SPDX-License-Identifier: BSD-3-Clause
/*
 * lemon.h - Lemon: MPI parallel I/O for LIME containers.
 *
 * A new implementation of the API of A. Deuzeman, S. Reker and C. Urbach, "Lemon: an MPI
 * parallel I/O library for data encapsulation using LIME", Appendix A. Programs written for
 * Lemon compile and link with this library unchanged, even together with C-LIME.
 *
 * Every call not marked "local" is collective: all ranks of the reader's or writer's
 * communicator make it, with the same arguments except pointers. If a call fails on one rank
 * (a short read, a full disk, an invalid argument), all ranks return the same negative code,
 * and no rank waits forever. Only a rank that passes NULL as the reader or writer returns
 * alone.
 *
 * Sizes and offsets are in bytes. If MPI was initialised with MPI_THREAD_MULTIPLE, different
 * threads may use different readers and writers at the same time. Only one thread at a time may
 * use a reader or writer. The library prints nothing: see lemonSetMessageHandler().
 */
#ifndef LEMON_H
#define LEMON_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LEMON_MAGIC_NO 0x456789ab
#define LEMON_VERSION  1

/* Largest number of dimensions of a lattice. */
#define LEMON_MAX_DIMS 16

enum LEMON_Error_codes {
    LEMON_SUCCESS = 0,
    LEMON_ERR_LAST_NOT_WRITTEN = -1, /* writer destroyed with an open, incomplete record */
    LEMON_ERR_PARAM = -2,            /* an argument is invalid or differs between ranks */
    LEMON_ERR_HEADER_NEXT = -3,  /* a record is wrongly open or closed, or a damaged header */
    LEMON_LAST_REC_WRITTEN = -4, /* from C-LIME; never returned */
    LEMON_ERR_WRITE = -5,    /* a failed or short write, or data that do not fit the record */
    LEMON_EOR = -6,          /* the position is at the end of the record */
    LEMON_EOF = -7,          /* no further record */
    LEMON_ERR_READ = -8,     /* a failed or short read */
    LEMON_ERR_SEEK = -9,     /* a position outside the record */
    LEMON_ERR_MBME = -10,    /* MB and ME flags in the wrong order */
    LEMON_ERR_CLOSE = -11,   /* no record is open, or the open record is incomplete */
    LEMON_ERR_CHECKSUM = -12 /* data that were read do not match their checksum */
};

typedef struct {
    unsigned int lemon_version;
    int MB_flag;
    int ME_flag;
    char *type;
    uint64_t data_length;
} LemonRecordHeader;

/* See lemonWriterSetChecksum(). */
typedef struct {
    uint32_t suma, sumb;
} LemonChecksum;

struct lemon_internal;

/* Programs may use the member `fp`, and may read the others, which only Lemon changes. */
typedef struct {
    MPI_File *fp;                   /* as passed; the caller opens and closes it */
    LemonRecordHeader *curr_header; /* of the open record, or NULL */
    MPI_Comm cartesian;             /* a duplicate of the caller's communicator */
    int my_rank;
    MPI_Offset off; /* file offset of the open record's data or, if none, of the next header */
    MPI_Offset pos; /* the current position, in the record's data */
    int is_last;
    int is_awaiting_header;
    int is_busy; /* a non-blocking call is in progress */
    struct lemon_internal *internal;
} LemonReader;

typedef struct {
    MPI_File *fp;
    MPI_Comm cartesian;
    int my_rank;
    MPI_Offset off;
    MPI_Offset pos;
    int is_awaiting_header;
    int is_busy;
    int is_first_record;
    int is_last;
    int is_last_written;
    MPI_Offset data_length; /* of the open record */
    struct lemon_internal *internal;
} LemonWriter;

/* ---- headers: local ---- */

/* Copies `type`. Returns NULL if out of memory, if type is NULL, or if reclen is negative.
 * lemonWriteRecordHeader() rejects a type of more than 127 bytes. */
LemonRecordHeader *lemonCreateHeader(int MB_flag, int ME_flag, char const *type,
                                     MPI_Offset reclen);
void lemonDestroyHeader(LemonRecordHeader *h);

/* ---- reading ---- */

/* Returns NULL if out of memory or if fp is NULL. While the reader exists, fp must stay valid
 * and keep its default view. */
LemonReader *lemonCreateReader(MPI_File *fp, MPI_Comm cartesian);
void lemonDestroyReader(LemonReader *reader); /* waits for a pending call */

/* Closes the open record, if any, and opens the next one. Returns LEMON_EOF after the last
 * record. If the next header is damaged or cannot be read, returns LEMON_ERR_HEADER_NEXT or
 * LEMON_ERR_READ. The next call then tries again to read a header that could not be read. If
 * that fails too, it returns LEMON_EOF, because programs repeat this call until LEMON_EOF. */
int lemonReaderNextRecord(LemonReader *reader);
int lemonReaderCloseRecord(LemonReader *reader); /* LEMON_ERR_CLOSE if none is open */

/* Return header data of the open record or, if none is open, of the previous one; local. If
 * neither exists, all return LEMON_ERR_PARAM except lemonReaderType(), which returns NULL
 * before the first lemonReaderNextRecord() and "" after it. */
int lemonReaderMBFlag(LemonReader *reader);
int lemonReaderMEFlag(LemonReader *reader);
int lemonEOM(LemonReader *reader);                /* 1 if the record ends its message, else 0 */
char const *lemonReaderType(LemonReader *reader); /* valid until lemonReaderNextRecord() */
MPI_Offset lemonReaderBytes(LemonReader *reader);
MPI_Offset lemonReaderPadBytes(LemonReader *reader);

/* Get the position in the record's data, or set it and move the individual file pointer there.
 * With MPI_SEEK_END, +n and -n both mean n bytes before the end. LEMON_ERR_SEEK if the new
 * position would be outside [0, length of the data], LEMON_ERR_PARAM if no record is open. */
MPI_Offset lemonGetReaderPointer(LemonReader *reader); /* local */
int lemonSetReaderPointer(LemonReader *reader, MPI_Offset offset);
int lemonReaderSeek(LemonReader *reader, MPI_Offset offset, int whence);

/* Copies the state of rsrc to rdest, but not the settings of the calls "beyond the paper". Both
 * must have the same communicator and file. lemonWriterSetState() does the same for writers. */
int lemonReaderSetState(LemonReader *rdest, LemonReader const *rsrc);

/* Reads up to *nbytes bytes at the position; each rank gets the same data. Sets *nbytes to the
 * number of bytes read. LEMON_EOR if the position is at the end of the record. */
int lemonReaderReadData(void *dest, MPI_Offset *nbytes, LemonReader *reader);
int lemonReaderReadDataNonBlocking(void *dest, MPI_Offset const *nbytes, LemonReader *reader);

/* The lattice calls move a lattice that is distributed over the Cartesian communicator.
 * latticeDims: the extents of the whole lattice, in the order of the communicator's dimensions.
 * mapping[i]: the dimension that is the i-th on disk, slowest first; without `mapping`, the
 * disk has the communicator's order. `data` is this rank's part in disk order: the calls do not
 * reorder it. Existing Lemon programs expect that (the paper is ambiguous). Only the call
 * lemonReadLatticeParallelPermuted() and its counterpart for writing reorder data.
 *
 * If n ranks divide a dimension of extent L, the ranks with coordinate c hold L / n of its
 * sites, plus one if c < L % n; see lemonLocalLattice(). The lattice starts at the current
 * position in the record. The call advances the position to the end of the lattice, so a
 * record may hold several consecutive lattices.
 *
 * The non-blocking calls return while data are moving. `data` belongs to the library until
 * lemonFinishReading(), lemonFinishWriting(), or any other call with the same reader or writer
 * has waited for the transfer. The call that waits returns the transfer's error. */
int lemonReadLatticeParallel(LemonReader *reader, void *data, MPI_Offset siteSize,
                             int const *latticeDims);
int lemonReadLatticeParallelMapped(LemonReader *reader, void *data, MPI_Offset siteSize,
                                   int const *latticeDims, int const *mapping);
int lemonReadLatticeParallelNonBlocking(LemonReader *reader, void *data, MPI_Offset siteSize,
                                        int const *latticeDims);
int lemonReadLatticeParallelNonBlockingMapped(LemonReader *reader, void *data,
                                              MPI_Offset siteSize, int const *latticeDims,
                                              int const *mapping);
int lemonFinishReading(LemonReader *reader);

/* ---- writing ---- */

/* The writer starts at the individual file pointer: offset 0 of a newly opened file, the end of
 * a file that is opened with MPI_MODE_APPEND. */
LemonWriter *lemonCreateWriter(MPI_File *fp, MPI_Comm cartesian);

/* Closes the open record, if any. If that record is incomplete, returns
 * LEMON_ERR_LAST_NOT_WRITTEN. Frees the writer in any case. LEMON_SUCCESS if writer is NULL. */
int lemonDestroyWriter(LemonWriter *writer);

/* Opens a record. LEMON_ERR_HEADER_NEXT if a record is open. LEMON_ERR_MBME if MB differs from
 * the previous record's ME; a writer's first record may have any MB, to allow appending. */
int lemonWriteRecordHeader(LemonRecordHeader const *props, LemonWriter *writer);

/* Rank 0 writes *nbytes bytes. After an error, *nbytes is 0. If the record cannot hold all the
 * bytes, writes nothing and returns LEMON_ERR_WRITE. */
int lemonWriteRecordData(void *source, MPI_Offset *nbytes, LemonWriter *writer);
int lemonWriteRecordDataNonBlocking(void *source, MPI_Offset const *nbytes,
                                    LemonWriter *writer);

/* Writes the padding and syncs the file. If the record is incomplete, returns LEMON_ERR_CLOSE,
 * and the record stays open. See lemonWriterSetVerify(). */
int lemonWriterCloseRecord(LemonWriter *writer);

int lemonWriterSeek(LemonWriter *writer, MPI_Offset offset, int whence);
int lemonWriterSetState(LemonWriter *wdest, LemonWriter const *wsrc);

int lemonWriteLatticeParallel(LemonWriter *writer, void *data, MPI_Offset siteSize,
                              int const *latticeDims);
int lemonWriteLatticeParallelMapped(LemonWriter *writer, void *data, MPI_Offset siteSize,
                                    int const *latticeDims, int const *mapping);
int lemonWriteLatticeParallelNonBlocking(LemonWriter *writer, void *data, MPI_Offset siteSize,
                                         int const *latticeDims);
int lemonWriteLatticeParallelNonBlockingMapped(LemonWriter *writer, void *data,
                                               MPI_Offset siteSize, int const *latticeDims,
                                               int const *mapping);
int lemonFinishWriting(LemonWriter *writer);

/* ---- beyond the paper ---- */

/* lemonReaderDeviation() returns how the open record's header deviates from the format: a sum
 * of these values; 0: not at all. Local. The record is readable anyway. */
enum LEMON_Deviations {
    LEMON_DEVIATION_MB_MISSING = 1, /* no MB in the first record, or after a record with ME */
    LEMON_DEVIATION_MB_INSIDE = 2,  /* MB after a record without ME */
    LEMON_DEVIATION_RESERVED = 4    /* reserved bits are set */
};
int lemonReaderDeviation(LemonReader *reader);

/* Computes this rank's part of a lattice: the part's first site and number of sites in each of
 * the communicator's dimensions; local. LEMON_ERR_PARAM without a Cartesian communicator. */
int lemonLocalLattice(MPI_Comm cartesian, int const *latticeDims, int *start, int *sites);

/* Sets the stripe: each rank moves ranges that, if possible, begin and end at multiples of it.
 * Use the stripe of the file system. LEMON_ERR_PARAM if `bytes` is not 1 byte to 1 GiB. The
 * default is the `striping_unit` of the opened file (MPI_File_get_info()) if all ranks see the
 * same valid value, otherwise 1 MiB. */
int lemonReaderSetStripe(LemonReader *reader, MPI_Offset bytes);
int lemonWriterSetStripe(LemonWriter *writer, MPI_Offset bytes);

/*
 * Sets hints, with MPI's names, for data that the ranks exchange among themselves:
 *
 *   striping_unit   1 .. 1 GiB   as lemon*SetStripe()
 *   cb_nodes        1 .. 2^31-1  largest number of ranks that do file I/O (default: any number)
 *   cb_buffer_size  1 .. 1 GiB   bytes that such a rank moves at once, rounded down to whole
 *                                stripes, but at least one (default: 8 to 64 MiB; non-blocking
 *                                calls move all at once)
 *
 *   lemon_overfull  1            a record may hold more than its header states, as in files of
 *                                some old programs; LEMON_COMPAT=overfull in the environment
 *                                sets this for all readers and writers. For each of these, rank
 *                                0 warns once when data exceed a record
 *
 * Ignores other keys. A hint that `info` does not contain stays unchanged, so MPI_INFO_NULL
 * changes nothing. LEMON_ERR_PARAM, and no change, if a value is not a number in its range or
 * differs between ranks. `info` is only read, and the caller frees it. From the info of an
 * opened file Lemon uses only striping_unit: for other keys MPI may report its own values.
 */
int lemonReaderSetInfo(LemonReader *reader, MPI_Info info);
int lemonWriterSetInfo(LemonWriter *writer, MPI_Info info);

/* From now on, if the data of a record have at least from_bytes bytes, they begin at a multiple
 * of `alignment` in the file. alignment: 0 (off, the default) or a multiple of 8 up to 1 GiB.
 *
 * If necessary, lemonWriteRecordHeader() writes a filler before the header: a record of type
 * LEMON_FILLER_TYPE with zeros, at most `alignment` + 136 bytes in total, written by rank 0.
 * Before a record with MB the filler is a message of its own, with MB and ME. Before another
 * record the filler is inside the message, without MB and ME. Readers see a normal record.
 *
 * LEMON_ERR_PARAM, and no change, if an argument is out of range or differs between ranks. */
#define LEMON_FILLER_TYPE "lemon-filler"
int lemonWriterSetAlignment(LemonWriter *writer, MPI_Offset alignment, MPI_Offset from_bytes);

/* As the Mapped calls, for a buffer in a different order: memory[i] is the communicator's
 * dimension that is the i-th in `data`, slowest first (NULL: the order 0, 1, 2, ...). `mapping`
 * is as above, with the same default. `data` holds this rank's sites (lemonLocalLattice()) in
 * row-major order of the dimensions memory[0], memory[1], ..., siteSize bytes each, without
 * gaps. The bytes of a site are not reordered.
 *
 * If the orders in memory and on disk are equal, nothing is copied. Otherwise the call
 * allocates a copy of this rank's part, and returns LEMON_ERR_READ or LEMON_ERR_WRITE if any
 * rank is out of memory. Both calls are blocking; neither has a non-blocking form. */
int lemonReadLatticeParallelPermuted(LemonReader *reader, void *data, MPI_Offset siteSize,
                                     int const *latticeDims, int const *mapping,
                                     int const *memory);
int lemonWriteLatticeParallelPermuted(LemonWriter *writer, void *data, MPI_Offset siteSize,
                                      int const *latticeDims, int const *mapping,
                                      int const *memory);

/*
 * Unless `on` is 0, computes the SciDAC checksum of the lattices in a record while they move.
 * This is the checksum of the QIO library, as in scidac-checksum records: with c the CRC-32
 * (zlib's) of a site's siteSize bytes in the file, and r the site's index in the record,
 *
 *   suma ^= c rotated left by r mod 29,    sumb ^= c rotated left by r mod 31.
 *
 * Site r begins at byte r * siteSize of the record's data. So consecutive lattices in one
 * record have one checksum. It equals the checksum that a serial reader of the record computes,
 * for any mapping, memory order, grid and number of ranks.
 *
 * The checksum includes all successful lattice calls after this call, but not the data of
 * lemonWriteRecordData(). It restarts with each record and each call of this function. If a
 * record is open at this call, the site at the current position gets index 0, so a program can
 * exclude a header in front of the lattice. If a lattice is moved again, the new sum replaces
 * the earlier one. A lattice call returns LEMON_ERR_PARAM and moves nothing if the position is
 * not the beginning of a site, or if the lattice overlaps an included lattice but does not
 * contain all of that lattice.
 */
int lemonReaderSetChecksum(LemonReader *reader, int on);
int lemonWriterSetChecksum(LemonWriter *writer, int on);

/* Gets the checksum of the lattices in the open record or, if none is open, in the previous
 * one. All ranks get the same sum. Waits for a pending call, and returns that call's error. sum
 * may be NULL on ranks that do not need it. LEMON_ERR_PARAM if no lattice was included. */
int lemonReaderChecksum(LemonReader *reader, LemonChecksum *sum);
int lemonWriterChecksum(LemonWriter *writer, LemonChecksum *sum);

/* lemonWriteChecksum() writes a complete record of type LEMON_CHECKSUM_TYPE (header, XML data)
 * and closes it; `sum` is the same on each rank. lemonReadChecksum() reads all data of the open
 * record, which may have any type, and moves the position to the end of the data. It returns
 * LEMON_ERR_READ if the data contain no checksum. */
#define LEMON_CHECKSUM_TYPE "scidac-checksum"
int lemonWriteChecksum(LemonWriter *writer, int MB_flag, int ME_flag, LemonChecksum const *sum);
int lemonReadChecksum(LemonReader *reader, LemonChecksum *sum);

/* If `on` is not 0, lemonWriterCloseRecord() reads back, after the sync, the lattices that were
 * written since this call, and compares their checksum with that of the program's data. If
 * there are several ranks, each one usually reads data that another rank has written.
 *
 * path: the file's name on this rank's system. The file is then read without MPI. If the file
 * system supports O_DIRECT, reads bypass the page cache; otherwise cached pages are dropped
 * first. path NULL, on all ranks: reads by MPI-IO, possibly from the cache; the file must be
 * open with MPI_MODE_RDWR. If any rank cannot read the file, this call returns LEMON_ERR_PARAM
 * and switches verification off.
 *
 * lemonWriterCloseRecord() returns LEMON_ERR_CHECKSUM if the data differ or the file is too
 * short, or LEMON_ERR_READ if it cannot read the data. The record then stays open: the program
 * may write the lattices again, after lemonWriterSeek(), and close the record again. */
int lemonWriterSetVerify(LemonWriter *writer, int on, char const *path);

/* From now on, this writer starts write-back to the disk while it writes, so that closing a
 * record takes less time. path: the file's name on this rank's system; NULL: no early
 * write-back. Early write-back changes neither the data, nor what is on the disk after a close,
 * nor the reported errors, so a path of another file has no effect. Non-blocking calls gain
 * nothing. LEMON_ERR_PARAM, and no change, if any rank cannot open its path for writing. */
int lemonWriterSetPath(LemonWriter *writer, char const *path);

/* Sets this rank's message handler for all readers and writers, or removes it (NULL); local.
 * For each error that this rank detects, the handler receives a text without a newline. */
typedef void lemonMessageHandler(char const *text, void *context);
void lemonSetMessageHandler(lemonMessageHandler *handler, void *context);

#ifdef __cplusplus
}
#endif

#endif
