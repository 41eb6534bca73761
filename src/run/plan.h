/*
 * plan.h - what a client of a job asks for ahead of its readers; pure, no I/O.
 *
 * The window is cut into slots. A slot holds a range of a container, of at most an extent,
 * which the job reads as a whole. A course is where one reader is in a container, who goes on
 * from there. Ahead of it go loads that double from 4 MiB to an extent, and never further than
 * it has come itself: one that soon stops has little fetched in vain. What the caller finds in
 * memory is passed over.
 *
 * Offsets are in the container. One lock, the caller's, guards all of it, but for `holds`,
 * which anybody may take back.
 */
#ifndef LIMEFS_RUN_PLAN_H
#define LIMEFS_RUN_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LIMEFS_RUN_SLOTS_MAX = 8,
    LIMEFS_RUN_COURSES = 8,
};

#define LIMEFS_RUN_EXTENT_LEAST (UINT64_C(1) << 20)
#define LIMEFS_RUN_EXTENT_MAX   (UINT64_C(32) << 20)
#define LIMEFS_RUN_WINDOW_MAX   (UINT64_C(128) << 20)
#define LIMEFS_RUN_LOAD_FIRST   (UINT64_C(4) << 20)

enum limefs_run_slot_state {
    LIMEFS_RUN_SLOT_EMPTY,
    LIMEFS_RUN_SLOT_LOADING,
    LIMEFS_RUN_SLOT_READY,
};

struct limefs_run_slot {
    enum limefs_run_slot_state state;
    int file; /* the caller's number of the container */
    uint64_t from, to;
    uint64_t asked;    /* when */
    uint64_t fresh;    /* until then it is kept for who waits for it, unless he took of it */
    atomic_uint holds; /* who copies out of it */
};

struct limefs_run_course {
    int file;       /* -1: none */
    uint64_t next;  /* the end of the furthest read */
    uint64_t ahead; /* up to here it has been asked for, or passed over */
    uint64_t size;  /* of the next load */
    uint64_t since;
};

struct limefs_run_plan {
    uint64_t extent;
    unsigned slots;
    struct limefs_run_slot slot[LIMEFS_RUN_SLOTS_MAX];
    struct limefs_run_course course[LIMEFS_RUN_COURSES];
};

/* A reader that has gone on for `run` bytes wants n more at `at`, of a record that ends at
 * `end`. */
struct limefs_run_want {
    int file;
    uint64_t at, end, run;
    uint64_t now; /* ns of any clock */
};

/* For extents of that length, or as near to it as can be. Slots that are held stay so. */
void limefs_run_plan_begin(struct limefs_run_plan *, uint64_t extent);
uint64_t limefs_run_plan_window(const struct limefs_run_plan *);

/* The reader's course, which begins with `at` if it is new or its bytes were not asked for.
 * NULL: it is late: others who share its position are past these bytes. */
struct limefs_run_course *limefs_run_plan_course(struct limefs_run_plan *,
                                                 const struct limefs_run_want *);

/* The next range to be asked for, if there is one: then it is either taken (the number of the
 * slot, LOADING from now on; -1: all are still wanted) or passed over. */
bool limefs_run_plan_next(const struct limefs_run_plan *, const struct limefs_run_course *,
                          const struct limefs_run_want *, uint64_t *to);
int limefs_run_plan_take(struct limefs_run_plan *, struct limefs_run_course *, uint64_t to,
                         uint64_t now);
void limefs_run_plan_pass(const struct limefs_run_plan *, struct limefs_run_course *,
                          uint64_t to);

/* The slot that has that byte, or will; -1: none. */
int limefs_run_plan_find(const struct limefs_run_plan *, int file, uint64_t at);

/* A slot of a course that has room for it: before anybody looks whether what comes next is in
 * memory. */
bool limefs_run_plan_has_room(const struct limefs_run_plan *, const struct limefs_run_course *,
                              uint64_t now);

/* What the slot was to hold is there. */
void limefs_run_plan_loaded(struct limefs_run_slot *, uint64_t now);

/* Bytes up to `to` were read. */
void limefs_run_plan_went(struct limefs_run_plan *, int file, uint64_t from, uint64_t to);

/* Whether somebody reads that container, or (-1) any: not for two seconds, and nothing loads.
 */
bool limefs_run_plan_is_idle(const struct limefs_run_plan *, int file, uint64_t now);

/* Nothing of it is known any more. */
void limefs_run_plan_forget(struct limefs_run_plan *, int file);

#endif
