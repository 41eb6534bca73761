/* room.c - files of very many records wait for each other */
#include "room.h"

#include <errno.h>

void stage_room_init(struct stage_room *room)
{
    *room = (struct stage_room){.taken = 0};
    pthread_mutex_init(&room->lock, NULL);
    pthread_cond_init(&room->changed, NULL);
}

void stage_room_destroy(struct stage_room *room)
{
    pthread_cond_destroy(&room->changed);
    pthread_mutex_destroy(&room->lock);
}

static bool has_room(const struct stage_room *room, uint64_t records)
{
    return room->taken == 0 ||
           (records <= STAGE_ROOM_MAX && room->taken <= STAGE_ROOM_MAX - records);
}

int stage_room_enter(struct stage_room *room, uint64_t records)
{
    if (records <= STAGE_ROOM_FEW)
        return 0;
    pthread_mutex_lock(&room->lock);
    uint64_t number = room->next++;
    while (!room->stopped && (room->turn != number || !has_room(room, records)))
        pthread_cond_wait(&room->changed, &room->lock);
    int err = room->stopped ? -EINTR : 0;
    if (!err) {
        room->taken += records;
        room->turn++;
        pthread_cond_broadcast(&room->changed);
    }
    pthread_mutex_unlock(&room->lock);
    return err;
}

void stage_room_leave(struct stage_room *room, uint64_t records)
{
    if (records <= STAGE_ROOM_FEW)
        return;
    pthread_mutex_lock(&room->lock);
    room->taken -= records;
    pthread_cond_broadcast(&room->changed);
    pthread_mutex_unlock(&room->lock);
}

void stage_room_stop(struct stage_room *room)
{
    pthread_mutex_lock(&room->lock);
    room->stopped = true;
    pthread_cond_broadcast(&room->changed);
    pthread_mutex_unlock(&room->lock);
}
