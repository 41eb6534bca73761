/* room.h - how much memory the plans of all files under way may take together
 *
 * A plan takes up to 200 bytes for each record of its file. One of few records is not counted;
 * others wait, in the order in which they come, until there is room for all of their records.
 * One is always let in, however many it has.
 *
 * All functions may be called from any thread. Whoever waits must have nothing in the room.
 */
#ifndef STAGE_ROOM_H
#define STAGE_ROOM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    STAGE_ROOM_FEW = 8192,    /* records that are not counted */
    STAGE_ROOM_MAX = 1 << 19, /* records that several plans may have together */
};

struct stage_room {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t taken; /* records */
    uint64_t next;  /* number of the one that comes next; */
    uint64_t turn;  /* of the one that is let in next */
    bool stopped;
};

void stage_room_init(struct stage_room *);
void stage_room_destroy(struct stage_room *);

/* Waits until there is room for so many. -EINTR: stopped, and nothing was taken. */
int stage_room_enter(struct stage_room *, uint64_t records);
void stage_room_leave(struct stage_room *, uint64_t records);

/* Nobody waits any more, nor is anybody let in. */
void stage_room_stop(struct stage_room *);

#endif
