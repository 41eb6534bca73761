/*
 * sparse.c - words between ranks that only the senders know of at first
 *
 * How many items come is told by synchronous sends, and who has sent all of his joins a barrier
 * that he does not wait in: when all have joined, all that was sent has arrived (T. Hoefler,
 * C. Siebert and A. Lumsdaine, "Scalable communication protocols for dynamic sparse data
 * exchange", 2010). So nothing is kept, or sent, for each rank.
 */
#include "sparse.h"

enum {
    TAG_ITEMS = 2, /* and 3, in turn: a rank may begin the next exchange before another one has
                      seen that this one has ended */
    TAG_WORDS = 4,
    CHUNK = 1 << 26, /* words of one message: counts are int */
};

static int add(struct lemon_peer **peers, int64_t *count, int64_t *total, int rank,
               int64_t items)
{
    if ((*count & (*count - 1)) == 0) { /* it is full */
        size_t more = *count ? (size_t)*count * 2 : 1;
        struct lemon_peer *bigger = realloc(*peers, more * sizeof *bigger);
        if (!bigger)
            return -1;
        *peers = bigger;
    }
    (*peers)[(*count)++] = (struct lemon_peer){rank, *total, items};
    *total += items;
    return 0;
}

int lemon_sparse_add(struct lemon_sparse *p, int rank, int64_t items)
{
    return add(&p->to, &p->to_count, &p->to_items, rank, items);
}

/* Takes word from one peer, if there is any. */
static bool hear(const struct lemon_internal *in, struct lemon_sparse *p, int tag)
{
    MPI_Status status;
    int there;
    int64_t items;
    MPI_Iprobe(MPI_ANY_SOURCE, tag, in->comm, &there, &status);
    if (!there)
        return true;
    MPI_Recv(&items, 1, MPI_INT64_T, status.MPI_SOURCE, tag, in->comm, MPI_STATUS_IGNORE);
    return add(&p->from, &p->from_count, &p->from_items, status.MPI_SOURCE, items) == 0;
}

/* A rank without memory for its requests tells nobody anything; all will know. */
static bool tell_and_hear(struct lemon_internal *in, struct lemon_sparse *p, bool good)
{
    int tag = TAG_ITEMS + in->sparse++ % 2, ended = 0, sent;
    int count = good ? (int)p->to_count : 0;
    bool joined = false;
    MPI_Request barrier;
    for (int i = 0; i < count; i++)
        MPI_Issend(&p->to[i].items, 1, MPI_INT64_T, p->to[i].rank, tag, in->comm,
                   &p->requests[i]);
    while (!ended) {
        good = hear(in, p, tag) && good;
        if (joined) {
            MPI_Test(&barrier, &ended, MPI_STATUS_IGNORE);
            continue;
        }
        MPI_Testall(count, p->requests, &sent, MPI_STATUSES_IGNORE);
        if (sent)
            MPI_Ibarrier(in->comm, &barrier);
        joined = sent;
    }
    return good;
}

static int by_rank(const void *a, const void *b)
{
    const struct lemon_peer *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void sort_sources(struct lemon_sparse *p)
{
    int64_t items = 0;
    if (p->from_count > 1)
        qsort(p->from, (size_t)p->from_count, sizeof *p->from, by_rank);
    for (int64_t i = 0; i < p->from_count; i++) {
        p->from[i].first = items;
        items += p->from[i].items;
    }
}

/* One for each peer and for each further chunk, of up to 8 words an item. */
static bool make_requests(struct lemon_sparse *p)
{
    int64_t chunks = p->to_count + p->from_count + 1;
    for (int64_t i = 0; i < p->to_count; i++)
        chunks += p->to[i].items / (CHUNK / 8);
    for (int64_t i = 0; i < p->from_count; i++)
        chunks += p->from[i].items / (CHUNK / 8);
    MPI_Request *bigger = realloc(p->requests, (size_t)chunks * sizeof *bigger);
    if (bigger)
        p->requests = bigger;
    return bigger != NULL;
}

bool lemon_sparse_begin(struct lemon_internal *in, struct lemon_sparse *p, bool good)
{
    good = good && make_requests(p);
    good = tell_and_hear(in, p, good) && good;
    sort_sources(p);
    return good && make_requests(p);
}

void lemon_sparse_close(struct lemon_sparse *p)
{
    free(p->to);
    free(p->from);
    free(p->requests);
    *p = (struct lemon_sparse){0};
}

/* ---- messages ---- */

typedef int post_fn(void *data, int words, int rank, MPI_Comm, MPI_Request *);

static int post_send(void *data, int words, int rank, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Isend(data, words, MPI_INT64_T, rank, TAG_WORDS, comm, request);
}

static int post_receive(void *data, int words, int rank, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Irecv(data, words, MPI_INT64_T, rank, TAG_WORDS, comm, request);
}

static int post(const struct lemon_internal *in, post_fn *call, const struct lemon_peer *peer,
                int64_t peers, int words, int64_t *data, MPI_Request *requests)
{
    int n = 0;
    for (int64_t i = 0; i < peers; i++) {
        int64_t *at = data + peer[i].first * words, left = peer[i].items * words;
        for (; left > 0; left -= CHUNK, at += CHUNK)
            call(at, left < CHUNK ? (int)left : CHUNK, peer[i].rank, in->comm, &requests[n++]);
    }
    return n;
}

void lemon_sparse_forth(struct lemon_internal *in, struct lemon_sparse *p, int words,
                        const int64_t *out, int64_t *into)
{
    int n = post(in, post_receive, p->from, p->from_count, words, into, p->requests);
    n += post(in, post_send, p->to, p->to_count, words, (int64_t *)out, p->requests + n);
    MPI_Waitall(n, p->requests, MPI_STATUSES_IGNORE);
}

void lemon_sparse_back(struct lemon_internal *in, struct lemon_sparse *p, int words,
                       const int64_t *out, int64_t *into)
{
    int n = post(in, post_receive, p->to, p->to_count, words, into, p->requests);
    n += post(in, post_send, p->from, p->from_count, words, (int64_t *)out, p->requests + n);
    MPI_Waitall(n, p->requests, MPI_STATUSES_IGNORE);
}
