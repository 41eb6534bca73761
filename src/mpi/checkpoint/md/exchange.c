/* exchange.c - items of any number between ranks that know each other */
#include "md.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK = 256 << 20, /* of one message: counts are int */
    TAG_COUNT = 1,
    TAG_DATA = 2,
};

_Noreturn void md_no_memory(void)
{
    checkpoint_say("run: out of memory");
    MPI_Abort(MPI_COMM_WORLD, CHECKPOINT_FAILED);
    abort();
}

void *md_room(void *data, int64_t items, int64_t *room, int64_t bytes)
{
    int64_t more = *room + *room / 2, all;
    if (data && items <= *room)
        return data;
    more = more < items ? items : more;
    more = more < 1 ? 1 : more;
    if (__builtin_mul_overflow(more, bytes, &all))
        md_no_memory();
    void *again = realloc(data, (size_t)all);
    if (!again)
        md_no_memory();
    *room = more;
    return again;
}

void md_post_add(struct md_post *post, int parcel, const void *item)
{
    struct md_parcel *p = &post->parcel[parcel];
    p->out = md_room(p->out, p->count + 1, &p->room, post->item);
    memcpy(p->out + p->count++ * post->item, item, (size_t)post->item);
}

void md_post_free(struct md_post *post)
{
    for (int i = 0; i < post->parcels; i++)
        free(post->parcel[i].out);
    free(post->parcel);
    *post = (struct md_post){0};
}

/* ---- exchange ---- */

struct requests {
    MPI_Request *list;
    int count;
    int64_t room;
};

static MPI_Request *next(struct requests *r)
{
    r->list = md_room(r->list, r->count + 1, &r->room, sizeof *r->list);
    return &r->list[r->count++];
}

static void wait_for(struct requests *r)
{
    MPI_Waitall(r->count, r->list, MPI_STATUSES_IGNORE);
    r->count = 0;
}

static void move(struct requests *r, bool sending, unsigned char *data, int64_t bytes, int rank)
{
    for (int64_t done = 0; done < bytes; done += CHUNK) {
        int n = bytes - done < CHUNK ? (int)(bytes - done) : CHUNK;
        if (sending)
            MPI_Isend(data + done, n, MPI_BYTE, rank, TAG_DATA, MPI_COMM_WORLD, next(r));
        else
            MPI_Irecv(data + done, n, MPI_BYTE, rank, TAG_DATA, MPI_COMM_WORLD, next(r));
    }
}

void md_post_exchange(struct md_post *post, void **in, int64_t *count, int64_t *room)
{
    struct requests r = {0};
    int64_t none = 0, all = *count;
    int64_t *coming = md_room(NULL, post->parcels, &none, sizeof *coming);
    for (int i = 0; i < post->parcels; i++) {
        struct md_parcel *p = &post->parcel[i];
        MPI_Irecv(&coming[i], 1, MPI_INT64_T, p->rank, TAG_COUNT, MPI_COMM_WORLD, next(&r));
        MPI_Isend(&p->count, 1, MPI_INT64_T, p->rank, TAG_COUNT, MPI_COMM_WORLD, next(&r));
    }
    wait_for(&r);
    for (int i = 0; i < post->parcels; i++)
        all += coming[i];
    *in = md_room(*in, all, room, post->item);
    for (int i = 0; i < post->parcels; i++) {
        move(&r, false, (unsigned char *)*in + *count * post->item, coming[i] * post->item,
             post->parcel[i].rank);
        *count += coming[i];
    }
    for (int i = 0; i < post->parcels; i++)
        move(&r, true, post->parcel[i].out, post->parcel[i].count * post->item,
             post->parcel[i].rank);
    wait_for(&r);
    for (int i = 0; i < post->parcels; i++)
        post->parcel[i].count = 0;
    free(coming);
    free(r.list);
}
