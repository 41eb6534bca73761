/*
 * extent.h - an extent, read or written by all ranks: what both directions share
 *
 * Each rank has the part that its share is. Ranks on rank 0's host have it in the
 * client's window. The others have buffers, and exchange these, part by part, with rank 0,
 * which sends out of the window and receives into it. Rank 0 posts its messages before it moves
 * its own part, and waits for none of them: it goes on with the next command, and replies to
 * this one when all is done.
 *
 * Messages between two ranks keep their order, and all ranks obey in the same order. So one
 * tag is enough for each direction.
 */
#ifndef JOB_EXTENT_H
#define JOB_EXTENT_H

#include "worker.h"

enum {
    JOB_TAG_READ = 1,
    JOB_TAG_WRITE,
    JOB_BUFFER = JOB_PART + LIMEJOB_ALIGN,
    JOB_SPINS = 50, /* looks at MPI before a rank sleeps between them */
    JOB_PAUSE_US = 50,
};

/* What a command names. Ranges of it count from its start. */
struct job_extent {
    struct job_container *container;
    char *window; /* its first byte; NULL on other hosts than rank 0's */
    int64_t bytes, offset;
    enum lemon_direction direction;
    struct job_permit permit; /* to write */
    struct lemon_share share;
};

/* Moves a range of the extent between the file and `data`: 0 or an errno, with words. */
typedef int job_mover(struct job_worker *, const struct job_extent *, char *data, int64_t from,
                      int64_t bytes, char *text, size_t cap);

/* What is wrong here is wrong on one rank alone, and ends the job: others may send already. */
void job_extent_parse(struct job_worker *, struct limejob_packet *command, enum lemon_direction,
                      struct job_extent *);

/* The range of a rank; empty ones have *from == *to. */
void job_extent_range(const struct job_extent *, int rank, int64_t *from, int64_t *to);

/* On rank 0's host: moves this rank's range, and has the others' messages moved. */
void job_extent_move(struct job_worker *, const struct job_extent *,
                     const struct limejob_packet *command, job_mover *);

/* On other hosts: the buffer for a part; as in the file, because direct I/O wants memory and
 * file aligned alike. */
char *job_extent_buffer(const struct job_worker *, const struct job_extent *, int index,
                        int64_t from);

/* 0 bytes or an error, to the server. */
void job_extent_answer(struct job_worker *, const struct limejob_packet *command, int code,
                       const char *text, uint64_t bytes);

#endif
