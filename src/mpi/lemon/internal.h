/*
 * internal.h - internal state of readers and writers, and functions of the library's modules
 *
 * Local: a rank calls the function alone. Collective: all ranks call it. Agreed: it returns the
 * same code on all ranks. Not agreed: the caller passes the code to lemon_agree().
 */
#ifndef LEMON_INTERNAL_H
#define LEMON_INTERNAL_H

#include "lemon.h"
#include "limefile.h"
#include "lattice_plan.h"
#include "range_io.h"
#include "schedule.h"

#include <pthread.h>

/* The lattice of the current or the last call. */
struct lemon_geometry {
    int mapping[LEMON_MAX_DIMS];
    int memory[LEMON_MAX_DIMS]; /* as mapping, for the user's memory; grid and box ignore it */
    struct lemon_grid grid;     /* division among the ranks */
    struct lemon_box box;       /* this rank's part */
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
    char *buffer;                /* of an aggregator; NULL: requests use the user's memory */
    struct lemon_plan plan;
    struct lemon_schedule schedule;
    bool is_blocking;     /* each write blocks; only write-back is asynchronous */
    bool needs_exchange;  /* `schedule` still has to distribute the buffer */
    bool direct_runs;     /* the requests are the runs of this rank's part, in memory order */
    bool needs_broadcast; /* rank 0 has read `bytes` at `data` for all ranks */
    char *data;
    int64_t bytes;
    int code; /* this rank's error, or LEMON_SUCCESS */
};

/* A lattice in the open record, and the checksum of this rank's sites in it. */
struct lemon_lattice_sum {
    int64_t from, bytes; /* in the record's data */
    int64_t site_bytes;
    uint64_t first;   /* index of its first site: see lemonWriterSetChecksum() */
    bool in_checksum; /* it is in the record's checksum; otherwise it is only read back */
    struct limefile_checksum sum;
};

/* The checksum of the open or last closed record, and what a writer has to read back. */
struct lemon_record_sum {
    bool requested; /* by the program */
    bool verify;    /* writer: read lattices back when the record is closed */
    int64_t origin; /* position in the record's data of the site with index 0 */
    struct lemon_lattice_sum *lattices;
    int count;
    size_t capacity;
    struct lemon_lattice_sum current; /* of the current call, if active */
    bool active;
    int64_t summed; /* number of bytes of this rank's part that are in `current` */
};

/* Descriptors of the file for lemon_verify_record(). */
struct lemon_read_back {
    int fd, direct_fd; /* -1: none; without fd MPI-IO is used */
};

struct lemon_internal {
    MPI_Comm comm; /* the duplicate, which the public struct also contains */
    struct lemon_file file;
    int rank, ranks;
    int dims; /* of the Cartesian grid; 0 without a grid */
    int grid[LEMON_MAX_DIMS];
    struct lemon_plan_hints hints;
    struct lemon_geometry geometry;
    struct lemon_pending pending;
    struct lemon_record_sum sum;
    struct lemon_read_back read_back;
    int64_t filled;  /* writer: end of the data that are written or skipped by a seek */
    int64_t written; /* writer: end of the data that are written */
    struct {
        int64_t pos, filled, written;
    } undo;                /* writer: values to restore if the current call fails */
    int64_t alignment;     /* writer: of records' data in the file; 0: none */
    int64_t align_from;    /* writer: smallest data length that is aligned */
    bool is_multithreaded; /* other threads may call MPI: see transfer.c */
    bool allows_overfull;  /* a record may hold more than its header states */
    bool overfull_reported;
    bool defers_sync;      /* writer: of a series, which syncs after all is written */
    int deviation;         /* reader */
    int padding;           /* reader: of the last closed record */
    bool record_requested; /* reader */
    bool damaged;          /* reader: no further record can be found */
    bool header_failed;    /* reader: the last header could not be read, but may exist */
    int at_message_start;  /* reader: 1 if the previous record had ME, or this is the first */
};

/* Returns NULL on all ranks if any rank is out of memory or passes NULL. Collective. */
struct lemon_internal *lemon_internal_new(MPI_File *fp, MPI_Comm comm);
void lemon_internal_free(struct lemon_internal *);

/* ---- writer.c ---- */

/* Closes a complete record, unless any rank passes an error as `code`. Collective, agreed. */
int lemon_writer_close_record(LemonWriter *, int code);

/* As lemonWriteRecordHeader() and lemonWriterCloseRecord(), for the same header on all ranks,
 * without a sync. Local: rank 0 stores its I/O error in *fault, unless that is an error
 * already, for the caller to agree on. The return value is the same on all ranks. */
int lemon_writer_begin_record(LemonWriter *, LemonRecordHeader const *, int *fault);
void lemon_writer_end_record(LemonWriter *, int *fault);

/* Advances the position by n bytes that are, or will be, written. Local. */
void lemon_writer_advance(LemonWriter *, int64_t n);

/* Marks a call as in progress, and saves the position for undo: call it before
 * lemon_writer_advance(). Local. */
void lemon_writer_set_busy(LemonWriter *);

/* ---- agree.c ---- */

/* Returns the lowest code of all ranks. Collective. */
int lemon_agree(const struct lemon_internal *, int code);

/* Also returns LEMON_ERR_PARAM if the n values (at most 64) differ between ranks. */
int lemon_agree_on(const struct lemon_internal *, int code, const int64_t *values, int n);

/* LEMON_ERR_READ or LEMON_ERR_WRITE. */
int lemon_io_error(enum lemon_direction);

/* Passes a message to the message handler, if there is one; NULL: without a rank. Returns
 * `code`, so that a function can return the result. Local. */
int lemon_log(const struct lemon_internal *, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns the lowest code. Unless it is LEMON_SUCCESS, each rank passes the text of the first
 * rank with that code to the handler. Collective. */
int lemon_agree_and_log(const struct lemon_internal *, int code, const char *text);

/* As lemon_log(), but only rank 0 does it, and without a handler it prints on stderr. */
void lemon_log_warning(const struct lemon_internal *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- state of readers and writers ---- */

/* Returns whether `bytes` of data fit into a record with `left` bytes left. If records may be
 * overfull, all data fit, and that is reported once. */
bool lemon_data_fits(struct lemon_internal *, int64_t bytes, int64_t left);

/* Computes the position after a seek in a record of `bytes`. LEMON_ERR_SEEK or _PARAM. */
int lemon_compute_seek(const struct lemon_internal *, MPI_Offset pos, MPI_Offset bytes,
                       MPI_Offset offset, int whence, MPI_Offset *to);

/* Sets this rank's individual file pointer to `offset`, because programs may continue to read
 * by `fp` after a seek. Returns LEMON_ERR_SEEK after an error. Local. */
int lemon_set_file_pointer(const struct lemon_internal *, MPI_Offset offset);

/* Set the hints in `info`, or the stripe; after an error none is set. Collective, agreed. */
int lemon_set_hints(struct lemon_internal *, MPI_Info info);
int lemon_set_stripe(struct lemon_internal *, MPI_Offset bytes);

/* ---- transfer.c ---- */

/* Reads or writes a range of any length; LEMON_ERR_READ or LEMON_ERR_WRITE. Local. */
int lemon_move_bytes(struct lemon_internal *, enum lemon_direction, void *data, int64_t n,
                     int64_t offset);

/* Reads or writes the lattice in `geometry` at offset `base` of the file; `data` is this rank's
 * part in the memory order of `geometry`. Collective, not agreed. */
int lemon_move_lattice(struct lemon_internal *, enum lemon_direction, char *data, int64_t base);

/* ---- transfer.c: non-blocking ---- */

/* Start to move bytes by rank 0 (lemon_finish_pending() broadcasts a read), or the lattice in
 * `geometry` in disk order. `data` must exist, and errors are kept, until the finish.
 * Collective. */
int lemon_start_bytes(struct lemon_internal *, enum lemon_direction, void *data, int64_t n,
                      int64_t offset);
int lemon_start_lattice(struct lemon_internal *, enum lemon_direction, char *data,
                        int64_t base);

/* Waits for the data and distributes them to the ranks. Collective, agreed. */
int lemon_finish_pending(struct lemon_internal *);

/* Broadcasts rank 0's bytes. */
void lemon_broadcast(const struct lemon_internal *, char *data, int64_t n);

/* Post any number of contiguous ranges, then wait for all of them. After an error post no more:
 * the wait returns the error again. Local. */
void lemon_post_begin(struct lemon_internal *, enum lemon_direction);
int lemon_post_range(struct lemon_internal *, char *data, int64_t n, int64_t offset);
int lemon_post_wait(struct lemon_internal *);

/* ---- exchange of lattices between ranks ---- */

/* Returns page-aligned memory for windows of `bytes` bytes, or NULL; free it by free(). */
char *lemon_window_new(int64_t bytes);

/* The pieces (lattice_plan.h) of an aggregator's round; they are contiguous in a window. */
struct lemon_round {
    int count;
    struct lemon_piece pieces[LEMON_ROUND_PIECES_MAX];
    char *window;
};

/* Sets this rank's round, without pieces if it is not an aggregator. own->window is less than a
 * page after `window`, so that pages of memory match pages of the file, and no layer below has
 * to split or copy them. Returns the bytes used from `window` on. Local. */
int64_t lemon_round_init(struct lemon_round *, const struct lemon_plan *,
                         const struct lemon_schedule *, int64_t round, char *window);

struct lemon_exchange {
    const struct lemon_plan *plan;
    const struct lemon_schedule *schedule;
    enum lemon_direction direction;
    char *data;                     /* this rank's part of the lattice */
    int64_t next_part, next_source; /* indices in the schedule of the first in the next round */
    char *staging;    /* an aggregator's buffer for other ranks' data in a round */
    int64_t *offsets; /* of each source's data in `staging` */
    MPI_Request *requests, *send_requests; /* of an aggregator; of the rank that holds data */
    int *lengths, *completed; /* of a message's ranges; indices of completed `requests` */
    MPI_Aint *displs;         /* of the ranges in a message */
};

/* ok: false if this rank has failed. Collective, agreed; do not close after an error. */
int lemon_exchange_open(const struct lemon_internal *, struct lemon_exchange *,
                        const struct lemon_plan *, const struct lemon_schedule *,
                        enum lemon_direction, char *data, bool ok);
void lemon_exchange_close(struct lemon_exchange *);

/* Exchanges a round between the ranks' data and all aggregators' windows. The caller passes
 * each round once, in increasing order. `own`: this rank's round. Collective; cannot fail. */
void lemon_exchange_round(struct lemon_internal *, struct lemon_exchange *, int64_t round,
                          const struct lemon_round *own);

/* Adds to the checksum the sites that no round contains completely. Call it last. Local. */
void lemon_exchange_sum_split_sites(struct lemon_internal *, const struct lemon_exchange *);

/* ---- the SciDAC checksum, while data move ---- */

/* Reserves memory for one more lattice; LEMON_ERR_PARAM if out of memory. Local. */
int lemon_sum_reserve(struct lemon_internal *);

/* Starts the checksum of the lattice in `geometry`, at `pos` of the record's data.
 * LEMON_ERR_PARAM under the conditions of lemonWriterSetChecksum(). Local, but agreed. */
int lemon_sum_begin(struct lemon_internal *, int64_t pos);

/* Add complete sites of `data`, this rank's part, if a checksum is active: those before byte
 * `to` that are not yet added, or those in [from, to). Local. */
void lemon_sum_until(struct lemon_internal *, const char *data, int64_t to);
void lemon_sum_range(struct lemon_internal *, const char *data, int64_t from, int64_t to);

/* Add all of `data`, this rank's part, in a thread if it is long; the join waits. Local. */
struct lemon_sum_thread {
    struct lemon_internal *in;
    const char *data;
    pthread_t thread;
    bool started;
};
void lemon_sum_thread_start(struct lemon_sum_thread *, struct lemon_internal *,
                            const char *data);
void lemon_sum_thread_join(struct lemon_sum_thread *);

/* Ends the checksum of a call; after an error, as if the call had not been made. Local. */
void lemon_sum_end(struct lemon_internal *, int code);

/* Switches checksums on, or off if `on` is 0. In this record they start at byte `pos` of the
 * data, without the lattices before this call; in later records at 0. Collective: all ranks
 * pass the same `on` and `pos`, and get the same code. */
int lemon_sum_enable(struct lemon_internal *, int code, int on, int64_t pos);

/* Returns the checksum of all ranks. LEMON_ERR_PARAM without a checksum. Collective, agreed. */
int lemon_sum_get(struct lemon_internal *, LemonChecksum *);

/* Restarts for a new record. Local. */
void lemon_sum_reset(struct lemon_internal *);

/* Reads back, after a sync, the lattices of the record whose data begin at `base`.
 * LEMON_ERR_CHECKSUM if the data differ, LEMON_ERR_READ if they cannot be read. Collective,
 * agreed. */
int lemon_verify_record(struct lemon_internal *, int64_t base);

/* Switches verification on, from `path` or, if NULL, by MPI-IO. LEMON_ERR_PARAM, and off, if
 * any rank cannot read the file. Collective, agreed. */
int lemon_verify_open(struct lemon_internal *, const char *path);

/* Switches verification off. Local. */
void lemon_verify_close(struct lemon_internal *);

/* ---- geometry.c ---- */

/* The order of the communicator's dimensions. */
extern const int lemon_identity_mapping[LEMON_MAX_DIMS];

/* Gets the communicator's grid and this rank's coordinates `at`. Returns the number of
 * dimensions, or 0 without a grid or if it has more than LEMON_MAX_DIMS. MPI numbers ranks in
 * row-major order of the grid, so each rank can compute the parts of the others. Local. */
int lemon_get_cartesian(MPI_Comm, int grid[LEMON_MAX_DIMS], int at[LEMON_MAX_DIMS]);

/* Checks that the arguments of a lattice call are valid and equal on all ranks, and sets
 * `geometry`. mapping NULL: the communicator's order; memory NULL: the disk order.
 * Collective, agreed. */
int lemon_check_lattice(struct lemon_internal *, int code, const void *data, int64_t site_bytes,
                        const int *lattice, const int *mapping, const int *memory);

/* Plans which rank moves what of the lattice in `geometry`, at `base` of the file. Local. */
void lemon_geometry_plan(const struct lemon_internal *, int64_t base, struct lemon_plan *);

/* Return the bytes of the whole lattice, and of this rank's part. */
int64_t lemon_geometry_bytes(const struct lemon_internal *);
int64_t lemon_geometry_local_bytes(const struct lemon_internal *);

#endif
