/*
 * internal.h - internal state of readers and writers, and functions of the library's modules
 *
 * Local: a rank calls the function alone. Collective: all ranks call the function. Agreed: it
 * returns the same code on all ranks. Not agreed: it may return different codes, so the caller
 * passes the code to lemon_agree().
 */
#ifndef LEMON_INTERNAL_H
#define LEMON_INTERNAL_H

#include "lemon.h"
#include "limefile.h"
#include "lattice_plan.h"
#include "range_io.h"
#include "schedule.h"

#include <pthread.h>

/* The lattice of the current or the previous lattice call. */
struct lemon_geometry {
    int mapping[LEMON_MAX_DIMS]; /* order of the dimensions on disk, in `grid` and in `box` */
    int memory[LEMON_MAX_DIMS];  /* order of the dimensions in the user's memory */
    struct lemon_grid grid;      /* division among the ranks */
    struct lemon_box box;        /* this rank's part */
};

/* Expected result of an I/O request: number of bytes, and offset of their end in the file. */
struct lemon_expected {
    int64_t bytes, end;
};

/* A non-blocking call in progress. */
struct lemon_pending {
    enum lemon_direction direction;
    MPI_Request *requests;
    struct lemon_expected *expected; /* for each request */
    int count, capacity;
    struct lemon_internal *next; /* in transfer.c's list of readers and writers with requests */
    char *buffer;                /* memory for the windows of all rounds, or NULL */
    struct lemon_plan plan;
    struct lemon_schedule schedule;
    bool is_blocking;     /* each write blocks; only the kernel's write-back is asynchronous */
    bool needs_exchange;  /* read: the ranks must still exchange the data in `buffer` */
    bool direct_runs;     /* the requests are the runs of this rank's part, in memory order */
    bool needs_broadcast; /* read: rank 0 must still broadcast the `bytes` bytes at `data` */
    char *data;
    int64_t bytes;
    int code; /* this rank's error, or LEMON_SUCCESS */
};

/* A lattice in the open record, and the checksum of this rank's sites of the lattice. */
struct lemon_lattice_sum {
    int64_t from, bytes; /* position and length in the record's data */
    int64_t site_bytes;
    uint64_t first;   /* index of the lattice's first site: see lemonWriterSetChecksum() */
    bool in_checksum; /* the record's checksum includes the lattice; false: only read it back */
    struct limefile_checksum sum;
};

/* The lattices in the open or the previous record, for a checksum or to read them back. */
struct lemon_record_sum {
    bool requested; /* the program has requested a checksum */
    bool verify;    /* writer: read lattices back when the record is closed */
    int64_t origin; /* position in the record's data of the site with index 0 */
    struct lemon_lattice_sum *lattices;
    int count;
    size_t capacity;
    struct lemon_lattice_sum current; /* the lattice of the current call, if `active` */
    bool active;
    int64_t summed; /* number of bytes of this rank's part whose sum is in `current` */
};

/* Descriptors of the file for lemon_verify_record(). */
struct lemon_read_back {
    int fd, direct_fd; /* -1: none. If fd is -1, MPI-IO reads the data */
};

struct lemon_internal {
    MPI_Comm comm; /* duplicate of the user's; the public struct contains the same */
    struct lemon_file file;
    int rank, ranks;
    int dims; /* of the Cartesian grid; 0 without a grid */
    int grid[LEMON_MAX_DIMS];
    struct lemon_plan_hints hints;
    struct lemon_geometry geometry;
    struct lemon_pending pending;
    struct lemon_record_sum sum;
    struct lemon_read_back read_back;
    int64_t filled;  /* writer: greatest position in the record that a write or seek reached */
    int64_t written; /* writer: greatest position in the record that a write reached */
    struct {
        int64_t pos, filled, written;
    } undo;                /* writer: values to restore if the current call fails */
    int64_t alignment;     /* writer: of records' data in the file; 0: none */
    int64_t align_from;    /* writer: data of fewer bytes are not aligned */
    bool is_multithreaded; /* other threads may call MPI: see transfer.c */
    bool allows_overfull;  /* a record may hold more than its header states */
    bool overfull_reported;
    bool defers_sync;      /* writer: closing a record does not sync, a series does so later */
    int deviation;         /* reader: of the open record, see lemonReaderDeviation() */
    int padding;           /* reader: bytes after the last record that was closed */
    bool record_requested; /* reader: lemonReaderNextRecord() was called */
    bool damaged;          /* reader: no further record can be found */
    bool header_failed;    /* reader: the last lemonReaderNextRecord() failed to get a header */
    int at_message_start;  /* reader: 1 before the first record, and after a record with ME */
};

/* Returns NULL on all ranks if any rank is out of memory or passes fp = NULL. Collective. */
struct lemon_internal *lemon_internal_new(MPI_File *fp, MPI_Comm comm);
void lemon_internal_free(struct lemon_internal *);

/* ---- writer.c ---- */

/* Closes the open record, which is complete. If any rank passes an error as `code`, all ranks
 * return an error, and the record stays open. Collective, agreed. */
int lemon_writer_close_record(LemonWriter *, int code);

/* As lemonWriteRecordHeader() and lemonWriterCloseRecord(), but local and without a sync. All
 * ranks pass the same header and get the same return value. Rank 0 stores an I/O error in
 * *fault, unless *fault is an error already. The caller must later agree on *fault. */
int lemon_writer_begin_record(LemonWriter *, LemonRecordHeader const *, int *fault);
void lemon_writer_end_record(LemonWriter *, int *fault);

/* Advances the position by n bytes that are, or will be, written. Local. */
void lemon_writer_advance(LemonWriter *, int64_t n);

/* Marks a non-blocking call as in progress, and saves the position for undo. Call this before
 * lemon_writer_advance(). Local. */
void lemon_writer_set_busy(LemonWriter *);

/* ---- agree.c ---- */

/* Returns the lowest code of all ranks. Collective. */
int lemon_agree(const struct lemon_internal *, int code);

/* As lemon_agree(), but instead of LEMON_SUCCESS returns LEMON_ERR_PARAM if any of the n values
 * (at most 64) differs between ranks. */
int lemon_agree_on(const struct lemon_internal *, int code, const int64_t *values, int n);

/* Returns LEMON_ERR_READ or LEMON_ERR_WRITE. */
int lemon_io_error(enum lemon_direction);

/* Passes a message to the message handler, if there is one. The message names this rank, unless
 * the first argument is NULL. Returns `code`, so that a caller can return the result. Local. */
int lemon_log(const struct lemon_internal *, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns the lowest code of all ranks. If this is an error, each rank passes the text of the
 * first rank with that code to the message handler. Collective. */
int lemon_agree_and_log(const struct lemon_internal *, int code, const char *text);

/* As lemon_log(), but only rank 0 logs, and if a handler is not set, it prints on stderr. */
void lemon_log_warning(const struct lemon_internal *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- state of readers and writers ---- */

/* Returns whether `bytes` bytes fit into a record with `left` bytes left. If records may be
 * overfull, returns true even if the bytes do not fit, with a warning the first time. */
bool lemon_data_fits(struct lemon_internal *, int64_t bytes, int64_t left);

/* Sets *to to the position after a seek in a record of `bytes` bytes. LEMON_ERR_SEEK if *to
 * would be outside the record, LEMON_ERR_PARAM if whence is invalid. */
int lemon_compute_seek(const struct lemon_internal *, MPI_Offset pos, MPI_Offset bytes,
                       MPI_Offset offset, int whence, MPI_Offset *to);

/* Sets this rank's individual file pointer to `offset`. Each seek calls this, because a program
 * may then read by MPI calls with `fp`. Returns LEMON_ERR_SEEK after an error. Local. */
int lemon_set_file_pointer(const struct lemon_internal *, MPI_Offset offset);

/* Set the hints in `info`, or the stripe. On error, set nothing. Collective, agreed. */
int lemon_set_hints(struct lemon_internal *, MPI_Info info);
int lemon_set_stripe(struct lemon_internal *, MPI_Offset bytes);

/* ---- transfer.c ---- */

/* Reads or writes n bytes, any number. Errors: LEMON_ERR_READ or LEMON_ERR_WRITE. Local. */
int lemon_move_bytes(struct lemon_internal *, enum lemon_direction, void *data, int64_t n,
                     int64_t offset);

/* Reads or writes the lattice in `geometry` at offset `base` of the file; `data` is this rank's
 * part in the memory order of `geometry`. Collective, not agreed. */
int lemon_move_lattice(struct lemon_internal *, enum lemon_direction, char *data, int64_t base);

/* ---- transfer.c: non-blocking ---- */

/* The first starts to read or write n bytes on rank 0; after a read, lemon_finish_pending()
 * broadcasts them. The second starts to read or write the lattice in `geometry`, in disk order.
 * `data` must exist until lemon_finish_pending(), which returns all errors. Collective. */
int lemon_start_bytes(struct lemon_internal *, enum lemon_direction, void *data, int64_t n,
                      int64_t offset);
int lemon_start_lattice(struct lemon_internal *, enum lemon_direction, char *data,
                        int64_t base);

/* Waits for the data and, after a read, distributes them to the ranks. Collective, agreed. */
int lemon_finish_pending(struct lemon_internal *);

/* Broadcasts n bytes of rank 0. Collective. */
void lemon_broadcast(const struct lemon_internal *, char *data, int64_t n);

/* Begin, post any number of contiguous ranges, and wait for all of them. If a post fails, post
 * no more ranges, but wait: lemon_post_wait() returns the same error. Local. */
void lemon_post_begin(struct lemon_internal *, enum lemon_direction);
int lemon_post_range(struct lemon_internal *, char *data, int64_t n, int64_t offset);
int lemon_post_wait(struct lemon_internal *);

/* ---- exchange of lattices between ranks ---- */

/* Returns page-aligned memory for windows of `bytes` bytes, or NULL; free it by free(). */
char *lemon_window_new(int64_t bytes);

/* The pieces (lattice_plan.h) of an aggregator's round, one after the other in a window. */
struct lemon_round {
    int count;
    struct lemon_piece pieces[LEMON_ROUND_PIECES_MAX];
    char *window;
};

/* Sets *own to this rank's round; it has no pieces if the rank is not an aggregator. Places
 * own->window less than a page after `window`, where pages of memory match pages of the file:
 * no layer below then has to split or copy pages. Returns the bytes used from `window` on. */
int64_t lemon_round_init(struct lemon_round *own, const struct lemon_plan *,
                         const struct lemon_schedule *, int64_t round, char *window);

struct lemon_exchange {
    const struct lemon_plan *plan;
    const struct lemon_schedule *schedule;
    enum lemon_direction direction;
    char *data;                     /* this rank's part of the lattice */
    int64_t next_part, next_source; /* in the schedule: where the next round begins */
    char *staging;    /* an aggregator's buffer for other ranks' data in a round */
    int64_t *offsets; /* of each source's data in `staging` */
    MPI_Request *requests, *send_requests; /* as an aggregator; as a rank that holds data */
    int *lengths, *completed; /* of a message's ranges; indices of completed `requests` */
    MPI_Aint *displs;         /* of the ranges in a message */
};

/* ok: false if this rank has failed; all ranks then return an error. Collective, agreed. Do not
 * call lemon_exchange_close() after an error. */
int lemon_exchange_open(const struct lemon_internal *, struct lemon_exchange *,
                        const struct lemon_plan *, const struct lemon_schedule *,
                        enum lemon_direction, char *data, bool ok);
void lemon_exchange_close(struct lemon_exchange *);

/* Exchanges a round's bytes between the data of all ranks and the windows of all aggregators.
 * Call this once for each round, in order. own: this rank's round. Collective; cannot fail. */
void lemon_exchange_round(struct lemon_internal *, struct lemon_exchange *, int64_t round,
                          const struct lemon_round *own);

/* After all rounds: adds the sites that are divided between parts to the checksum. Local. */
void lemon_exchange_sum_split_sites(struct lemon_internal *, const struct lemon_exchange *);

/* ---- the SciDAC checksum, while data move ---- */

/* Reserves memory for one more lattice's checksum. LEMON_ERR_PARAM if out of memory. Local. */
int lemon_sum_reserve(struct lemon_internal *);

/* Starts the checksum of the lattice in `geometry`, at byte `pos` of the record's data. Local.
 * All ranks return LEMON_ERR_PARAM in the cases of lemonWriterSetChecksum(). */
int lemon_sum_begin(struct lemon_internal *, int64_t pos);

/* data: this rank's part. Add its complete sites to the current call's checksum, if any: the
 * sites before byte `to` that were not yet added, or the sites in [from, to). Local. */
void lemon_sum_until(struct lemon_internal *, const char *data, int64_t to);
void lemon_sum_range(struct lemon_internal *, const char *data, int64_t from, int64_t to);

/* Add all of `data`, this rank's part, to the checksum. If the part is long, the first starts a
 * thread, and the second waits for it; otherwise the second adds the data itself. Local. */
struct lemon_sum_thread {
    struct lemon_internal *in;
    const char *data;
    pthread_t thread;
    bool started;
};
void lemon_sum_thread_start(struct lemon_sum_thread *, struct lemon_internal *,
                            const char *data);
void lemon_sum_thread_join(struct lemon_sum_thread *);

/* Ends the checksum of a call, and discards it if `code` is an error. Local. */
void lemon_sum_end(struct lemon_internal *, int code);

/* Switches checksums on, or off if `on` is 0. In the open record the checksum starts at byte
 * `pos` of the data, without the lattices of earlier calls. In later records it starts at 0.
 * All ranks pass the same `on` and `pos`; code: an earlier error. Collective, agreed. */
int lemon_sum_enable(struct lemon_internal *, int code, int on, int64_t pos);

/* Gets all ranks' checksum. LEMON_ERR_PARAM if it includes no lattice. Collective, agreed. */
int lemon_sum_get(struct lemon_internal *, LemonChecksum *);

/* Restarts the checksum for a new record. Local. */
void lemon_sum_reset(struct lemon_internal *);

/* Reads back the lattices of the record whose data begin at `base`. Call this after a sync.
 * LEMON_ERR_CHECKSUM if data differ or are missing, LEMON_ERR_READ if they cannot be read.
 * Collective, agreed. */
int lemon_verify_record(struct lemon_internal *, int64_t base);

/* Switches verification on. path: the file to read; NULL: read by MPI-IO. If any rank cannot
 * read it, switches verification off and returns LEMON_ERR_PARAM. Collective, agreed. */
int lemon_verify_open(struct lemon_internal *, const char *path);

/* Switches verification off. Local. */
void lemon_verify_close(struct lemon_internal *);

/* ---- geometry.c ---- */

/* 0, 1, 2, ...: the order of the communicator's dimensions. */
extern const int lemon_identity_mapping[LEMON_MAX_DIMS];

/* Gets the communicator's grid and this rank's coordinates `at`; local. Returns the number of
 * dimensions, or 0 without a grid or with more than LEMON_MAX_DIMS dimensions. MPI numbers
 * ranks in row-major order of the grid, so each rank can compute the parts of the others. */
int lemon_get_cartesian(MPI_Comm, int grid[LEMON_MAX_DIMS], int at[LEMON_MAX_DIMS]);

/* Checks that the arguments of a lattice call are valid and equal on all ranks, and sets
 * `geometry`. mapping NULL: the communicator's order; memory NULL: the disk order.
 * Collective, agreed. */
int lemon_check_lattice(struct lemon_internal *, int code, const void *data, int64_t site_bytes,
                        const int *lattice, const int *mapping, const int *memory);

/* Plans which rank moves which bytes of the lattice in `geometry`. base: file offset. Local. */
void lemon_geometry_plan(const struct lemon_internal *, int64_t base, struct lemon_plan *);

/* Return the bytes of the whole lattice, and of this rank's part. */
int64_t lemon_geometry_bytes(const struct lemon_internal *);
int64_t lemon_geometry_local_bytes(const struct lemon_internal *);

#endif
