/* internal.h - the state of readers and writers behind their public structs */
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
    int memory[LEMON_MAX_DIMS]; /* as mapping, for the user's memory; not for grid, box */
    struct lemon_grid grid;     /* division among the ranks */
    struct lemon_box box;       /* this rank's part */
};

/* Expected result of a request: number of bytes, and their end in the file. */
struct lemon_expected {
    int64_t bytes, end;
};

/* A non-blocking call in progress. */
struct lemon_pending {
    enum lemon_direction direction;
    MPI_Request *requests;
    struct lemon_expected *expected; /* for each request */
    int count, capacity;
    struct lemon_internal *next; /* in the list of readers and writers with requests */
    char *buffer;                /* of an aggregator; NULL: requests use the user's memory */
    struct lemon_plan plan;
    struct lemon_schedule schedule;
    bool is_blocking;     /* each write blocks; only write-back is asynchronous */
    bool needs_exchange;  /* `schedule` still has to distribute the buffer */
    bool direct_runs;     /* requests are runs of this rank's part, in memory order */
    bool needs_broadcast; /* rank 0 has read `bytes` at `data` for all ranks */
    char *data;
    int64_t bytes;
    int code; /* the error when it was started */
};

/* One lattice of the open record, and the checksum of this rank's sites in it. */
struct lemon_lattice_sum {
    int64_t from, bytes; /* in the record's data */
    int64_t site_bytes;
    uint64_t first;   /* rank of its first site */
    bool in_checksum; /* of the record; otherwise it is only read back */
    struct limefile_checksum sum;
};

/* The checksum of the open or last closed record, and what a writer has to read back. */
struct lemon_record_sum {
    bool requested; /* by the program */
    bool verify;    /* writer: read lattices back when the record is closed */
    int64_t origin; /* position in the record's data of the site with rank 0 */
    struct lemon_lattice_sum *lattices;
    int count;
    size_t capacity;
    struct lemon_lattice_sum current; /* of the current call, if active */
    bool active;
    int64_t summed; /* number of bytes of this rank's part that are in `current` */
};

/* Descriptors for reading back. */
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
    int64_t alignment;     /* writer: of data; 0: none */
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

/* Returns NULL if any rank is out of memory. Collective. */
struct lemon_internal *lemon_internal_new(MPI_File *fp, MPI_Comm comm);
void lemon_internal_free(struct lemon_internal *);

/* ---- writer.c ---- */

/* Closes a complete record: lemonWriterCloseRecord(). code: this rank's. Collective, agreed. */
int lemon_writer_close_record(LemonWriter *, int code);

/* lemonWriteRecordHeader() and lemonWriterCloseRecord() for a record that is known to be the
 * same on all ranks, without a sync. Local: an error of rank 0 is stored in *fault, unless that
 * holds one, for the caller to agree on; the return value is the same on all ranks. */
int lemon_writer_begin_record(LemonWriter *, LemonRecordHeader const *, int *fault);
void lemon_writer_end_record(LemonWriter *, int *fault);

/* Advances the position by n bytes that are, or will be, written. Local. */
void lemon_writer_advance(LemonWriter *, int64_t n);

/* Marks a call as in progress; finishing it returns its error. Local. */
void lemon_writer_set_busy(LemonWriter *);

/* ---- agree.c ---- */

/* Returns the lowest code of all ranks. Collective. */
int lemon_agree(const struct lemon_internal *, int code);

/* Also returns LEMON_ERR_PARAM if the n values (at most 64) differ between ranks. */
int lemon_agree_on(const struct lemon_internal *, int code, const int64_t *values, int n);

/* LEMON_ERR_READ or LEMON_ERR_WRITE. */
int lemon_io_error(enum lemon_direction);

/* Passes a message to the message handler, if there is one. Without an object (NULL) its rank
 * is -1. Returns `code`, so that a function can return the result. Local. */
int lemon_log(const struct lemon_internal *, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* If any rank has another code than LEMON_SUCCESS, each rank passes the text of the first such
 * rank to the handler. Returns the lowest code. Collective. */
int lemon_agree_and_log(const struct lemon_internal *, int code, const char *text);

/* As lemon_log(), but only on rank 0, and on stderr without a handler. */
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
 * by `fp` after a seek. LEMON_ERR_SEEK. */
int lemon_set_file_pointer(const struct lemon_internal *, MPI_Offset offset);

/* Set the hints in `info`, or the stripe; after an error none is set. Collective, agreed. */
int lemon_set_hints(struct lemon_internal *, MPI_Info info);
int lemon_set_stripe(struct lemon_internal *, MPI_Offset bytes);

/* ---- transfer.c ---- */

/* Moves a range of any length by this rank alone. LEMON_ERR_READ or LEMON_ERR_WRITE. */
int lemon_move_bytes(struct lemon_internal *, enum lemon_direction, void *data, int64_t n,
                     int64_t offset);

/* Moves the lattice in `geometry` at offset `base` of the file, with data in the memory order
 * of `geometry`. Collective; not agreed. */
int lemon_move_lattice(struct lemon_internal *, enum lemon_direction, char *data, int64_t base);

/* ---- transfer.c: non-blocking ---- */

int lemon_start_bytes(struct lemon_internal *, enum lemon_direction, void *data, int64_t n,
                      int64_t offset);
int lemon_start_lattice(struct lemon_internal *, enum lemon_direction, char *data,
                        int64_t base);

/* Waits for the data and distributes them to the ranks. Collective, agreed. */
int lemon_finish_pending(struct lemon_internal *);

/* Broadcasts rank 0's bytes. */
void lemon_broadcast(const struct lemon_internal *, char *data, int64_t n);

/* Post any number of contiguous ranges of this rank alone, then wait for all. The first error
 * is kept, and the wait returns it again. */
void lemon_post_begin(struct lemon_internal *, enum lemon_direction);
int lemon_post_range(struct lemon_internal *, char *data, int64_t n, int64_t offset);
int lemon_post_wait(struct lemon_internal *);

/* ---- exchange of lattices between ranks ---- */

/* Returns page-aligned memory for windows of `bytes` bytes, or NULL; free it by free(). */
char *lemon_window_new(int64_t bytes);

/* The pieces of an aggregator's round; their bytes are contiguous in a window. */
struct lemon_round {
    int count;
    struct lemon_piece pieces[LEMON_ROUND_PIECES_MAX];
    char *window;
};

/* Sets this rank's round, without pieces if it is not an aggregator. The window starts in
 * `window` less than a page after its beginning: pages of memory then match pages of the file,
 * so that no layer below has to split or copy them. Returns the bytes that are used. Local. */
int64_t lemon_round_init(struct lemon_round *, const struct lemon_plan *,
                         const struct lemon_schedule *, int64_t round, char *window);

struct lemon_exchange {
    const struct lemon_plan *plan;
    const struct lemon_schedule *schedule;
    enum lemon_direction direction;
    char *data;                            /* this rank's part of the lattice */
    int64_t next_part, next_source;        /* in the schedule: first of the next rounds */
    char *staging;                         /* data of other ranks in a round, contiguous */
    int64_t *offsets;                      /* in `staging`, of each source */
    MPI_Request *requests, *send_requests; /* with sources; with aggregators */
    int *lengths, *completed;              /* of a message's ranges; of requests */
    MPI_Aint *displs;                      /* of a message's ranges */
};

/* ok: false if this rank has failed. Collective, agreed; do not close after an error. */
int lemon_exchange_open(const struct lemon_internal *, struct lemon_exchange *,
                        const struct lemon_plan *, const struct lemon_schedule *,
                        enum lemon_direction, char *data, bool ok);
void lemon_exchange_close(struct lemon_exchange *);

/* Exchanges a round of all aggregators, in increasing order of rounds, between the ranks' data
 * and the aggregators' windows. `own`: this rank's round. Collective; cannot fail. */
void lemon_exchange_round(struct lemon_internal *, struct lemon_exchange *, int64_t round,
                          const struct lemon_round *own);

/* Adds the sites to the checksum that no round contains because two parts share them. Local. */
void lemon_exchange_sum_split_sites(struct lemon_internal *, const struct lemon_exchange *);

/* ---- the SciDAC checksum, while data move ---- */

/* Reserves memory for one more lattice; LEMON_ERR_PARAM. Local. */
int lemon_sum_reserve(struct lemon_internal *);

/* Starts the checksum of the lattice in `geometry`, at `pos` of the record's data.
 * LEMON_ERR_PARAM if its sites have no place in the checksum. Local, same code on all ranks. */
int lemon_sum_begin(struct lemon_internal *, int64_t pos);

/* Add this rank's sites: all before byte `to`, or those in [from, to). Local. */
void lemon_sum_until(struct lemon_internal *, const char *data, int64_t to);
void lemon_sum_range(struct lemon_internal *, const char *data, int64_t from, int64_t to);

/* Add all of this rank's part, `data`, in a thread if it is long, until the join. Local. */
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
 * LEMON_ERR_CHECKSUM if the data differ, LEMON_ERR_READ. Collective, agreed. */
int lemon_verify_record(struct lemon_internal *, int64_t base);

/* path NULL: by MPI-IO. LEMON_ERR_PARAM. Collective, agreed. */
int lemon_verify_open(struct lemon_internal *, const char *path);
void lemon_verify_close(struct lemon_internal *);

/* ---- geometry.c ---- */

/* The order of the communicator's dimensions. */
extern const int lemon_identity_mapping[LEMON_MAX_DIMS];

/* Gets the communicator's grid and this rank's coordinates. Returns the number of dimensions,
 * or 0 without a grid or with too many dimensions. Ranks are numbered in row-major order of the
 * grid (MPI 3.1, section 7.5.1), so each rank can compute the parts of the others. Local. */
int lemon_get_cartesian(MPI_Comm, int grid[LEMON_MAX_DIMS], int at[LEMON_MAX_DIMS]);

/* Checks that the arguments of a lattice call are valid and equal on all ranks; sets
 * `geometry`. mapping NULL: the communicator's order. memory NULL: the disk order. */
int lemon_check_lattice(struct lemon_internal *, int code, const void *data, int64_t site_bytes,
                        const int *lattice, const int *mapping, const int *memory);

/* Plans which rank moves what of the lattice in `geometry`, at `base` of the file. Local. */
void lemon_geometry_plan(const struct lemon_internal *, int64_t base, struct lemon_plan *);

/* Return the bytes of the whole lattice, and of this rank's part. */
int64_t lemon_geometry_bytes(const struct lemon_internal *);
int64_t lemon_geometry_local_bytes(const struct lemon_internal *);

#endif
