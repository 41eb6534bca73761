/*
 * internal.h - what reader and writer share behind their public structs.
 */
#ifndef LEMON_INTERNAL_H
#define LEMON_INTERNAL_H

#include "lemon.h"
#include "limefile.h"
#include "plan.h"
#include "range.h"
#include "schedule.h"

#include <pthread.h>

/* The lattice of the call under way, or of the one before. */
struct lemon_geometry {
    int mapping[LEMON_MAX_DIMS];
    int memory[LEMON_MAX_DIMS]; /* as mapping, of the user's memory; not of grid and box */
    struct lemon_grid grid;     /* how the ranks divide it */
    struct lemon_box box;       /* this rank's part */
};

/* Of one request: how many bytes, and where in the file they end. */
struct lemon_wanted {
    int64_t bytes, end;
};

/* A non-blocking call under way. */
struct lemon_pending {
    enum lemon_direction direction;
    MPI_Request *requests;
    struct lemon_wanted *wanted; /* of each request */
    int count, capacity;
    struct lemon_internal *next; /* of those that have requests */
    char *buffer;                /* of a mover; NULL if the user's memory is used directly */
    struct lemon_plan plan;
    struct lemon_schedule schedule;
    bool waits;     /* for each write, of which the disk does the rest meanwhile */
    bool exchange;  /* buffer still has to be handed out, by `schedule` */
    bool runs;      /* they are those of this rank's part, in the order of its memory */
    bool broadcast; /* rank 0 has read for all: `bytes` at `data` */
    char *data;
    int64_t bytes;
    int code; /* what went wrong when it was started */
};

/* One lattice of the open record, and the checksum of this rank's sites of it. */
struct lemon_summed {
    int64_t from, bytes; /* in the record's data */
    int64_t site_bytes;
    uint64_t first; /* the rank of its first site */
    bool counts;    /* in the record's sum; else it is only to be read back */
    struct limefile_checksum sum;
};

/* The checksum of the open record, or of the one that was closed last; or what a writer has to
 * read back; or both. */
struct lemon_record_sum {
    bool wanted;    /* by the program */
    bool verify;    /* writer: lattices are read back when the record is closed */
    int64_t origin; /* where in the record's data the site of rank 0 begins */
    struct lemon_summed *lattices;
    int count;
    size_t capacity;
    struct lemon_summed now; /* of the call under way, if active */
    bool active;
    int64_t reached; /* so many bytes of this rank's part are in `now` */
};

/* Where a writer reads back. */
struct lemon_read_back {
    int fd, direct_fd; /* -1: none; without fd it is by MPI-IO */
};

struct lemon_internal {
    MPI_Comm comm; /* the duplicate; the public struct shows it too */
    struct lemon_file file;
    int rank, ranks;
    int dims; /* of the Cartesian grid; 0: there is none */
    int grid[LEMON_MAX_DIMS];
    struct lemon_plan_hints hints;
    struct lemon_geometry geometry;
    struct lemon_pending pending;
    struct lemon_record_sum sum;
    struct lemon_read_back read_back;
    int64_t filled;  /* writer: up to here the record has been written or sought */
    int64_t written; /* writer: up to here written */
    struct {
        int64_t pos, filled, written;
    } undo;             /* writer: where it goes back to if the call under way fails */
    int64_t alignment;  /* writer: of data, 0: none */
    int64_t align_from; /* writer: bytes of the records whose data are aligned */
    bool threads;       /* other threads may be in MPI: see transfer.c */
    bool overfull;      /* a record may hold more than its header says */
    bool overfull_told;
    bool syncs_later; /* writer: of a series, which syncs when all is written */
    int deviation;    /* reader */
    int padding;      /* reader: of the record that was closed last */
    bool asked;       /* reader: for a first record */
    bool damaged;     /* reader: there is no further record to be found */
    bool failed;      /* reader: the last header could not be read, though it may be there */
    int before;       /* reader: 1 if the record before had ME or there is none */
};

/* NULL if any rank has no memory. Collective. */
struct lemon_internal *lemon_internal_new(MPI_File *fp, MPI_Comm comm);
void lemon_internal_free(struct lemon_internal *);

/* ---- writer.c ---- */

/* The last part of lemonWriterCloseRecord(): of a record that is full, if no rank gives another
 * code. Collective, agreed. */
int lemon_writer_close(LemonWriter *, int code);

/* lemonWriteRecordHeader() and lemonWriterCloseRecord() of a record that all ranks know to be
 * the same, without syncing. Local: what rank 0 could not write goes into *fault, if nothing is
 * there, for the caller to agree on; the result is the same on all ranks. */
int lemon_writer_open(LemonWriter *, LemonRecordHeader const *, int *fault);
void lemon_writer_end(LemonWriter *, int *fault);

/* n bytes more of the record are, or will be, there. Local. */
void lemon_writer_move_on(LemonWriter *, int64_t n);

/* A call is under way; its error, if any, comes out when it is finished. Local. */
void lemon_writer_begin_busy(LemonWriter *);

/* ---- agree.c ---- */

/* The lowest code of all ranks. Collective. */
int lemon_agree(const struct lemon_internal *, int code);

/* The same, and LEMON_ERR_PARAM if the values are not the same on all ranks; n <= 64. */
int lemon_agree_on(const struct lemon_internal *, int code, const int64_t *values, int n);

/* LEMON_ERR_READ or LEMON_ERR_WRITE. */
int lemon_failure(enum lemon_direction);

/* Hands a message to the handler, if there is one; returns `code`. */
int lemon_say(const struct lemon_internal *, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same by each rank, if any gives another code than LEMON_SUCCESS: the words of the first
 * of those ranks. Returns the lowest code. Collective. */
int lemon_tell(const struct lemon_internal *, int code, const char *text);

/* The same as lemon_say(), once for all ranks, by rank 0; on stderr if there is no handler. */
void lemon_warn(const struct lemon_internal *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- internal.c ---- */

/* Whether `bytes` of data go into a record that has `left`: all of them do if records may be
 * overfull, which is told once. */
bool lemon_fits(struct lemon_internal *, int64_t bytes, int64_t left);

/* Where a seek in a record of `bytes` leads; LEMON_ERR_SEEK, LEMON_ERR_PARAM. */
int lemon_seek(const struct lemon_internal *, MPI_Offset pos, MPI_Offset bytes,
               MPI_Offset offset, int whence, MPI_Offset *to);

/* The file's own pointer, of this rank, goes to `offset`: programs read on from where they have
 * sought, by `fp`. LEMON_ERR_SEEK. */
int lemon_point(const struct lemon_internal *, MPI_Offset offset);

/* Takes the hints in `info`; all of them or, after an error, none. Collective, agreed. */
int lemon_take_hints(struct lemon_internal *, MPI_Info info);
int lemon_take_stripe(struct lemon_internal *, MPI_Offset bytes);

/* ---- transfer.c ---- */

/* One contiguous range, any length; this rank alone. LEMON_ERR_READ or LEMON_ERR_WRITE. */
int lemon_move_bytes(struct lemon_internal *, enum lemon_direction, void *data, int64_t n,
                     int64_t offset);

/* The lattice that is in `geometry`, at `base` of the file, with data in the order that
 * `geometry` gives for memory. Collective; not agreed. */
int lemon_move_ordered(struct lemon_internal *, enum lemon_direction, char *data, int64_t base);

/* ---- transfer.c: without waiting ---- */

int lemon_start_bytes(struct lemon_internal *, enum lemon_direction, void *data, int64_t n,
                      int64_t offset);
int lemon_start_lattice(struct lemon_internal *, enum lemon_direction, char *data,
                        int64_t base);

/* Waits for what was started and brings the data where they belong. Collective, agreed. */
int lemon_finish(struct lemon_internal *);

/* Rank 0's bytes to all. */
void lemon_broadcast(const struct lemon_internal *, char *data, int64_t n);

/* Contiguous ranges of this rank alone: any number may be posted before waiting for all. The
 * first error counts, and comes again from the wait. */
void lemon_post_begin(struct lemon_internal *, enum lemon_direction);
int lemon_post(struct lemon_internal *, char *data, int64_t n, int64_t offset);
int lemon_post_wait(struct lemon_internal *);

/* ---- exchange.c ---- */

/* Memory for `bytes` of windows, beginning with a page; freed by free(). */
char *lemon_window_new(int64_t bytes);

/* The pieces of a mover's turn; their bytes lie in a window one after another. */
struct lemon_turn {
    int count;
    struct lemon_piece pieces[LEMON_TURN_PIECES];
    char *window;
};

/* Those of this rank; none if it is no mover. The window begins in `window`, less than a page
 * behind its beginning: pages of memory are pages of the file, so that nothing between the two
 * has to split or copy them. Returns what all that takes. Local. */
int64_t lemon_turn_set(struct lemon_turn *, const struct lemon_plan *,
                       const struct lemon_schedule *, int64_t turn, char *window);

struct lemon_exchange {
    const struct lemon_plan *plan;
    const struct lemon_schedule *schedule;
    enum lemon_direction direction;
    char *data;                      /* what this rank holds of the lattice */
    int64_t next_part, next_source;  /* of the schedule: those of the turns to come */
    char *staging;                   /* what other ranks have of a turn, one after another */
    int64_t *offset;                 /* in it, of each source */
    MPI_Request *requests, *sending; /* with sources; with movers */
    int *lengths, *completed;        /* of a message's ranges; of requests */
    MPI_Aint *places;                /* of a message's ranges */
};

/* good: whether this rank has what else it needs. Collective, agreed; nothing is to be closed
 * after an error. */
int lemon_exchange_open(const struct lemon_internal *, struct lemon_exchange *,
                        const struct lemon_plan *, const struct lemon_schedule *,
                        enum lemon_direction, char *data, bool good);
void lemon_exchange_close(struct lemon_exchange *);

/* Hands over a turn of all movers, which come in order: from the ranks' data to the movers'
 * windows or back. `own` is this rank's. Collective; cannot fail. */
void lemon_exchange_turn(struct lemon_internal *, struct lemon_exchange *, int64_t turn,
                         const struct lemon_turn *own);

/* Adds to the checksum what no turn has, sites that are in two parts. Local. */
void lemon_exchange_sum_rest(struct lemon_internal *, const struct lemon_exchange *);

/* ---- recordsum.c: the SciDAC checksum, while data move ---- */

/* Makes room for one lattice more; LEMON_ERR_PARAM. Local. */
int lemon_sum_reserve(struct lemon_internal *);

/* The lattice in `geometry` is about to move, at `pos` of the record's data: it has a place in
 * the sum, or LEMON_ERR_PARAM. Local: the same code on every rank. */
int lemon_sum_begin(struct lemon_internal *, int64_t pos);

/* What of this rank's part is there: all before byte `to`, or [from, to). Local. */
void lemon_sum_reach(struct lemon_internal *, const char *data, int64_t to);
void lemon_sum_between(struct lemon_internal *, const char *data, int64_t from, int64_t to);

/* All of this rank's part, `data`, beside what the caller does in between: by a thread, if it
 * is long. Local. */
struct lemon_sum_beside {
    struct lemon_internal *in;
    const char *data;
    pthread_t thread;
    bool started;
};
void lemon_sum_start(struct lemon_sum_beside *, struct lemon_internal *, const char *data);
void lemon_sum_join(struct lemon_sum_beside *);

/* The call has ended: after an error as if it had not been. Local. */
void lemon_sum_end(struct lemon_internal *, int code);

/* From `pos` of the open record's data on, from the beginning of the next ones. Collective,
 * agreed. */
int lemon_sum_set(struct lemon_internal *, int code, int on, int64_t pos);

/* Of all ranks. LEMON_ERR_PARAM if there is none. Collective, agreed. */
int lemon_sum_get(struct lemon_internal *, LemonChecksum *);

/* Another record: the sum is of it. Local. */
void lemon_sum_forget(struct lemon_internal *);

/* Reads back what the lattices of the record whose data begin at `base` are summed from:
 * LEMON_ERR_CHECKSUM if it is something else, LEMON_ERR_READ. All is on the disk. Collective,
 * agreed. */
int lemon_verify(struct lemon_internal *, int64_t base);

/* path, NULL: by MPI-IO. Collective, agreed: LEMON_ERR_PARAM. */
int lemon_verify_open(struct lemon_internal *, const char *path);
void lemon_verify_close(struct lemon_internal *);

/* ---- geometry.c ---- */

/* The order of the communicator's dimensions. */
extern const int lemon_identity[LEMON_MAX_DIMS];

/* The dimensions of the communicator's grid, its extents, and where this rank is in it; 0:
 * there is none, or it has too many. Ranks are numbered in row-major order of the grid
 * (MPI 3.1, section 7.5.1), so each knows what the others hold. Local. */
int lemon_cartesian(MPI_Comm, int grid[LEMON_MAX_DIMS], int at[LEMON_MAX_DIMS]);

/* The arguments of a lattice call, agreed on by all ranks; then `geometry` is set. mapping,
 * NULL: as in the communicator. memory, NULL: as on the disk. */
int lemon_lattice_check(struct lemon_internal *, int code, const void *data, int64_t site_bytes,
                        const int *lattice, const int *mapping, const int *memory);

/* Who moves what of the lattice in `geometry`, at `base` of the file. Local. */
void lemon_geometry_plan(const struct lemon_internal *, int64_t base, struct lemon_plan *);

/* Bytes of the whole lattice, and of this rank's part. */
int64_t lemon_geometry_bytes(const struct lemon_internal *);
int64_t lemon_geometry_local(const struct lemon_internal *);

#endif
