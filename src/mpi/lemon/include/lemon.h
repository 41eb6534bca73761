/*
 * lemon.h - Lemon: MPI parallel I/O for LIME containers.
 *
 * The API of A. Deuzeman, S. Reker and C. Urbach, "Lemon: an MPI parallel I/O library for data
 * encapsulation using LIME", Appendix A, written anew. Programs written for Lemon compile and
 * link against it unchanged, also together with C-LIME.
 *
 * Every call but those marked "local" is collective over the communicator that the reader
 * or writer was created with: all its ranks call it, with the same arguments apart from
 * pointers. A failure on one rank (a short read, a full disk, a bad argument) gives every
 * rank the same negative code, and no rank waits for another that has returned. Only a
 * NULL reader or writer is answered by the rank alone.
 *
 * Sizes and offsets are bytes. Different readers and writers may be used from different
 * threads at once where MPI was initialised with MPI_THREAD_MULTIPLE; each belongs to one
 * thread at a time. Nothing is printed: see lemonSetMessageHandler().
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

/* Lattices have at most this many dimensions. */
#define LEMON_MAX_DIMS 16

enum LEMON_Error_codes {
    LEMON_SUCCESS = 0,
    LEMON_ERR_LAST_NOT_WRITTEN = -1, /* destroyed with a record open and not full */
    LEMON_ERR_PARAM = -2,            /* an argument is wrong, or differs between ranks */
    LEMON_ERR_HEADER_NEXT = -3,      /* a header is due, or none was written yet */
    LEMON_LAST_REC_WRITTEN = -4,     /* as in C-LIME; not returned */
    LEMON_ERR_WRITE = -5,            /* not all was written, or more than the record holds */
    LEMON_EOR = -6,                  /* nothing is left in the record */
    LEMON_EOF = -7,                  /* no further record */
    LEMON_ERR_READ = -8,             /* not all could be read */
    LEMON_ERR_SEEK = -9,             /* a position outside of the record */
    LEMON_ERR_MBME = -10,            /* MB and ME flags out of order */
    LEMON_ERR_CLOSE = -11,           /* no record is open, or it is not full */
    LEMON_ERR_CHECKSUM = -12         /* what was read back is not what was written */
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

/* Of the members, `fp` is for programs to use; the others show the state. */
typedef struct {
    MPI_File *fp;                   /* as given; the caller opens and closes it */
    LemonRecordHeader *curr_header; /* of the open record, or NULL */
    MPI_Comm cartesian;             /* a duplicate of the one given */
    int my_rank;
    MPI_Offset off; /* of the data of the open record, or of the next header */
    MPI_Offset pos; /* in the record's data */
    int is_last;
    int is_awaiting_header;
    int is_busy; /* a non-blocking call is under way */
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

/* Copies `type`. NULL if there is no memory, type is NULL or reclen negative. A type of more
 * than 127 bytes is refused by lemonWriteRecordHeader(). */
LemonRecordHeader *lemonCreateHeader(int MB_flag, int ME_flag, char const *type,
                                     MPI_Offset reclen);
void lemonDestroyHeader(LemonRecordHeader *h);

/* ---- reading ---- */

/* NULL if there is no memory or fp is NULL. fp must stay valid, and its view the default one,
 * as long as the reader is used. */
LemonReader *lemonCreateReader(MPI_File *fp, MPI_Comm cartesian);
void lemonDestroyReader(LemonReader *reader); /* waits for what is pending */

/*
 * Goes to the next record, closing the one that is open. LEMON_EOF after the last one. A
 * damaged container gives an error once, LEMON_ERR_HEADER_NEXT or LEMON_ERR_READ, and LEMON_EOF
 * from then on, as programs ask until they get it. If only reading failed, the next call tries
 * again.
 */
int lemonReaderNextRecord(LemonReader *reader);
int lemonReaderCloseRecord(LemonReader *reader); /* LEMON_ERR_CLOSE if none is open */

/* Of the open record, or of the one that was closed last; local. LEMON_ERR_PARAM if there is
 * none; the type is then NULL, or "" where a next record was asked for in vain. */
int lemonReaderMBFlag(LemonReader *reader);
int lemonReaderMEFlag(LemonReader *reader);
int lemonEOM(LemonReader *reader);                /* 1 if the record ends its message, else 0 */
char const *lemonReaderType(LemonReader *reader); /* lives until the next is asked for */
MPI_Offset lemonReaderBytes(LemonReader *reader);
MPI_Offset lemonReaderPadBytes(LemonReader *reader);

/* The position in the record's data; the file's own pointer follows it. With MPI_SEEK_END, +n
 * and -n are both n bytes before the end. Seeking outside of [0, bytes] is LEMON_ERR_SEEK,
 * LEMON_ERR_PARAM if no record is open. */
MPI_Offset lemonGetReaderPointer(LemonReader *reader); /* local */
int lemonSetReaderPointer(LemonReader *reader, MPI_Offset offset);
int lemonReaderSeek(LemonReader *reader, MPI_Offset offset, int whence);

/* Makes rdest, created with the same communicator and file, what rsrc is; what was set by the
 * calls "beyond the paper" stays its own. The same holds for writers. */
int lemonReaderSetState(LemonReader *rdest, LemonReader const *rsrc);

/* Up to *nbytes bytes from the position on, the same on each rank; *nbytes becomes how many.
 * LEMON_EOR if nothing is left. */
int lemonReaderReadData(void *dest, MPI_Offset *nbytes, LemonReader *reader);
int lemonReaderReadDataNonBlocking(void *dest, MPI_Offset const *nbytes, LemonReader *reader);

/*
 * A lattice distributed over the Cartesian communicator. latticeDims gives the extents of the
 * whole lattice in the order of the communicator's dimensions. On disk the first of them is
 * slowest; with a mapping, mapping[i] names the dimension that is i-th, slowest first, on
 * disk. Each rank gets (or gives) its part in the order of the disk: the calls move no data
 * about inside a rank, as it is with the Lemon that programs know (the paper's words differ;
 * lemonReadLatticeParallelPermuted() does it).
 *
 * Dimension d with extent L over n ranks: rank coordinate c holds L / n sites, and one more if
 * c < L % n; lemonLocalLattice() tells. The block starts at the position in the record and the
 * position moves behind it, so several lattices may follow each other in one record.
 *
 * The non-blocking calls return while the data move; `data` belongs to the library until
 * lemonFinishReading() or lemonFinishWriting(), or the next call with the same reader or
 * writer, which waits first; the error, if any, comes from there.
 */
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

/* Begins where the file's individual pointer stands: at 0 of a file just opened, at the end
 * with MPI_MODE_APPEND. */
LemonWriter *lemonCreateWriter(MPI_File *fp, MPI_Comm cartesian);

/* Closes a full record. LEMON_ERR_LAST_NOT_WRITTEN if one is open and not full. NULL is
 * LEMON_SUCCESS. */
int lemonDestroyWriter(LemonWriter *writer);

/* LEMON_ERR_HEADER_NEXT if a record is open. LEMON_ERR_MBME if MB does not fit to the ME of the
 * record before; the first record of a writer may have any MB, for appending. */
int lemonWriteRecordHeader(LemonRecordHeader const *props, LemonWriter *writer);

/* Rank 0 writes *nbytes bytes, which becomes how many. More than the record holds is
 * LEMON_ERR_WRITE, and nothing is written. */
int lemonWriteRecordData(void *source, MPI_Offset *nbytes, LemonWriter *writer);
int lemonWriteRecordDataNonBlocking(void *source, MPI_Offset const *nbytes,
                                    LemonWriter *writer);

/* The padding; then all is on the disk. LEMON_ERR_CLOSE if the record is not full: it stays
 * open. See lemonWriterSetVerify(). */
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

/* What is wrong with the flags of the open record, or 0; local. Such files are read all the
 * same. */
enum LEMON_Deviations {
    LEMON_DEVIATION_MB_MISSING = 1, /* the record before had ME, or there is none */
    LEMON_DEVIATION_MB_INSIDE = 2,  /* the record before had no ME */
    LEMON_DEVIATION_RESERVED = 4    /* reserved bits are set */
};
int lemonReaderDeviation(LemonReader *reader);

/* The part of a lattice that this rank holds: where it starts and how many sites, in each of
 * the communicator's dimensions; local. LEMON_ERR_PARAM without a Cartesian communicator. */
int lemonLocalLattice(MPI_Comm cartesian, int const *latticeDims, int *start, int *sites);

/*
 * Ranges that one rank moves begin and end at multiples of this; give the stripe of the file
 * system, 1 byte to 1 GiB, else it is LEMON_ERR_PARAM. At first it is the `striping_unit` that
 * the file was opened with (MPI_File_get_info()), where all ranks see the same, in range; else
 * 1 MiB.
 */
int lemonReaderSetStripe(LemonReader *reader, MPI_Offset bytes);
int lemonWriterSetStripe(LemonWriter *writer, MPI_Offset bytes);

/*
 * Hints, by MPI's names, for lattices that ranks exchange among themselves:
 *
 *   striping_unit   1 .. 1 GiB   as lemon*SetStripe()
 *   cb_nodes        1 .. 2^31-1  at most so many ranks move data (at first all may)
 *   cb_buffer_size  1 .. 1 GiB   bytes that each of them moves at once: rounded down to a
 *                                multiple of the stripe, but at least one (at first 8 to
 *                                64 MiB; non-blocking calls move all at once)
 *
 *   lemon_overfull  1            records may hold more than their header says, as those of some
 *                                old programs do; LEMON_COMPAT=overfull in the environment does
 *                                it for all readers and writers. Told once, by rank 0
 *
 * Other keys are ignored; what is not named stays as it is, so MPI_INFO_NULL changes nothing.
 * LEMON_ERR_PARAM, and nothing changes, if a value is no such number or not the same on all
 * ranks. `info` is only read, and is the caller's to free. Of the info that a file was opened
 * with only striping_unit is taken by itself: for the others MPI may show values of its own.
 */
int lemonReaderSetInfo(LemonReader *reader, MPI_Info info);
int lemonWriterSetInfo(LemonWriter *writer, MPI_Info info);

/*
 * From now on the data of each record of from_bytes bytes or more begin at a multiple of
 * `alignment` in the file: a multiple of 8, at most 1 GiB. 0 is none, as at first: the file is
 * then byte for byte what Lemon has always written.
 *
 * Where one is needed lemonWriteRecordHeader() writes a filler before the header: a record of
 * this type whose data are zeros, with at most `alignment` + 136 bytes in all, by rank 0.
 * Before a record with MB it is a message of its own (MB and ME), otherwise a record inside the
 * message (neither). To a reader it is a record like any other.
 *
 * LEMON_ERR_PARAM, and nothing changes, if an argument is out of range or not the same on all
 * ranks.
 */
#define LEMON_FILLER_TYPE "lemon-filler"
int lemonWriterSetAlignment(LemonWriter *writer, MPI_Offset alignment, MPI_Offset from_bytes);

/*
 * The Mapped calls for a buffer in an order of its own: memory[i] names the dimension of the
 * communicator that is i-th, slowest first, in `data`; NULL: 0, 1, 2, ... mapping is as above:
 * NULL is the same. So with the sites of lemonLocalLattice(), site (x0, x1, ...) of this rank,
 * counted from its start, is where row-major order of the dimensions memory[0], memory[1], ...
 * puts it, siteSize bytes a site, without gaps; what is inside of a site is not touched.
 *
 * Where the two orders differ the call needs memory for this rank's part once more, and is
 * LEMON_ERR_READ or LEMON_ERR_WRITE if any rank has none; where they are the same nothing is
 * copied. Both forms wait: there is no other one.
 */
int lemonReadLatticeParallelPermuted(LemonReader *reader, void *data, MPI_Offset siteSize,
                                     int const *latticeDims, int const *mapping,
                                     int const *memory);
int lemonWriteLatticeParallelPermuted(LemonWriter *writer, void *data, MPI_Offset siteSize,
                                      int const *latticeDims, int const *mapping,
                                      int const *memory);

/*
 * The SciDAC checksum of the lattices in a record, in the pass that reads or writes them; on:
 * not 0. It is that of the QIO library, which records scidac-checksum hold: with c the CRC-32
 * (zlib's) of a site's siteSize bytes, as they stand in the file, and r the site's rank,
 *
 *     suma ^= c rotated left by r mod 29,    sumb ^= c rotated left by r mod 31.
 *
 * The rank is the site's place in the record: it begins at byte r * siteSize of its data. So
 * lattices that follow each other in one record have one sum, that which a serial reader of the
 * record computes, whatever the mapping, the order of memory, the grid and the number of ranks.
 *
 * Every form of the lattice calls counts, from this call on, until the next one; the sum begins
 * anew with each record, and with this call. Where a record is open, rank 0 is then the site at
 * the position: so a lattice behind a header of its own is summed by calling this in between. A
 * lattice that is moved once more replaces itself; one that has failed does not count.
 * LEMON_ERR_PARAM from a lattice call, and nothing moves: no site begins at the position, or
 * the lattice overlaps one that is summed without containing it. Data that are no lattice
 * (lemonWriteRecordData()) are not looked at.
 */
int lemonReaderSetChecksum(LemonReader *reader, int on);
int lemonWriterSetChecksum(LemonWriter *writer, int on);

/*
 * The checksum of the lattices in the open record, or, if none is open, in the one before: the
 * same on each rank. Waits for what is pending, and returns its error. `sum` may be NULL where
 * nobody wants it. LEMON_ERR_PARAM if no lattice was summed.
 */
int lemonReaderChecksum(LemonReader *reader, LemonChecksum *sum);
int lemonWriterChecksum(LemonWriter *writer, LemonChecksum *sum);

/*
 * A whole record of this type: header, data and closing, as XML; the same `sum` on each rank.
 * lemonReadChecksum() reads the open record's data, whatever its type, from their beginning on,
 * and leaves the position behind them. LEMON_ERR_READ if there is no checksum in them.
 */
#define LEMON_CHECKSUM_TYPE "scidac-checksum"
int lemonWriteChecksum(LemonWriter *writer, int MB_flag, int ME_flag, LemonChecksum const *sum);
int lemonReadChecksum(LemonReader *reader, LemonChecksum *sum);

/*
 * on: lemonWriterCloseRecord() reads back what lattice calls have written since this call, when
 * all is on the disk, and compares it, by its checksum, with what the program gave them. Each
 * rank reads what, where there are several, another one has written.
 *
 * path is the file's name as this rank's system knows it: the file is then read around MPI, and
 * around the page cache (O_DIRECT) where the file system can do that; otherwise the cache is
 * asked to forget it first. NULL, the same on all ranks: by MPI-IO, out of the cache perhaps;
 * the file must be open with MPI_MODE_RDWR. LEMON_ERR_PARAM, and nothing will be read back, if
 * any rank cannot read it.
 *
 * If it is something else, or the file ends before, closing is LEMON_ERR_CHECKSUM on all ranks;
 * if it cannot be read, LEMON_ERR_READ. The record stays open: its lattices can be written
 * again, after lemonWriterSeek(), and the record be closed again.
 */
int lemonWriterSetVerify(LemonWriter *writer, int on, char const *path);

/*
 * The disk begins with what this writer has written while it writes more, and so closing a
 * record waits less for it; MPI-IO has no call for that. path is the file's name as this rank's
 * system knows it; NULL ends it. What is written, when it is on the disk and which errors are
 * told stays as it is: so a path that is not the file's does no harm, and no good. Non-blocking
 * calls gain nothing.
 *
 * LEMON_ERR_PARAM, and nothing changes, if any rank cannot open its path for writing.
 */
int lemonWriterSetPath(LemonWriter *writer, char const *path);

/* What the library has to say about an error, once for each rank that met it, without a
 * newline. NULL, at first: nothing is said. For all readers and writers; local. */
typedef void lemonMessageHandler(char const *text, void *context);
void lemonSetMessageHandler(lemonMessageHandler *handler, void *context);

#ifdef __cplusplus
}
#endif

#endif
