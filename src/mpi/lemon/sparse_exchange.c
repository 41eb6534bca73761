/* sparse_exchange.c - exchange words between ranks that at first know only their receivers */
#include "sparse_exchange.h"

enum {
    TAG_WORDS = 4,
    CHUNK = 1 << 26, /* words per message: MPI counts are int */
};

static int add_peer(struct lemon_peer **peers, int64_t *count, int64_t *total, int rank,
                    int64_t items)
{
    if ((*count & (*count - 1)) == 0) { /* the array is full */
        size_t more = *count ? (size_t)*count * 2 : 1;
        struct lemon_peer *grown = realloc(*peers, more * sizeof *grown);
        if (!grown)
            return -1;
        *peers = grown;
    }
    (*peers)[(*count)++] = (struct lemon_peer){rank, *total, items};
    *total += items;
    return 0;
}

int lemon_sparse_add(struct lemon_sparse *p, int rank, int64_t items)
{
    return add_peer(&p->to, &p->to_count, &p->to_items, rank, items);
}

/* Each rank sends to each rank how many items it has for that rank. Returns false if any rank
 * has failed before, or if this rank is out of memory. */
static bool exchange_counts(const struct lemon_internal *in, struct lemon_sparse *p, bool ok)
{
    int64_t *sent = calloc(2 * (size_t)in->ranks, sizeof *sent), *received;
    ok = lemon_agree(in, ok && sent ? LEMON_SUCCESS : LEMON_ERR_PARAM) == LEMON_SUCCESS;
    received = ok ? sent + in->ranks : NULL;
    for (int64_t i = 0; ok && i < p->to_count; i++)
        sent[p->to[i].rank] = p->to[i].items;
    if (ok)
        MPI_Alltoall(sent, 1, MPI_INT64_T, received, 1, MPI_INT64_T, in->comm);
    for (int r = 0; ok && r < in->ranks; r++)
        ok = received[r] == 0 ||
             add_peer(&p->from, &p->from_count, &p->from_items, r, received[r]) == 0;
    free(sent);
    return ok;
}

/* Allocates requests for messages of up to 8 words per item, at most CHUNK words each. */
static bool allocate_requests(struct lemon_sparse *p)
{
    int64_t chunks = p->to_count + p->from_count + 1;
    for (int64_t i = 0; i < p->to_count; i++)
        chunks += p->to[i].items / (CHUNK / 8);
    for (int64_t i = 0; i < p->from_count; i++)
        chunks += p->from[i].items / (CHUNK / 8);
    p->requests = malloc((size_t)chunks * sizeof *p->requests);
    return p->requests != NULL;
}

bool lemon_sparse_build(const struct lemon_internal *in, struct lemon_sparse *p, bool ok)
{
    return exchange_counts(in, p, ok) && allocate_requests(p);
}

void lemon_sparse_close(struct lemon_sparse *p)
{
    free(p->to);
    free(p->from);
    free(p->requests);
    *p = (struct lemon_sparse){0};
}

typedef int post_fn(void *data, int words, int rank, MPI_Comm, MPI_Request *);

static int post_send(void *data, int words, int rank, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Isend(data, words, MPI_INT64_T, rank, TAG_WORDS, comm, request);
}

static int post_receive(void *data, int words, int rank, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Irecv(data, words, MPI_INT64_T, rank, TAG_WORDS, comm, request);
}

/* Posts all messages to or from the `peers` peers. Returns the number of requests. */
static int post_all(const struct lemon_internal *in, post_fn *call,
                    const struct lemon_peer *peer, int64_t peers, int words, int64_t *data,
                    MPI_Request *requests)
{
    int n = 0;
    for (int64_t i = 0; i < peers; i++) {
        int64_t *at = data + peer[i].first * words, left = peer[i].items * words;
        for (; left > 0; left -= CHUNK, at += CHUNK)
            call(at, left < CHUNK ? (int)left : CHUNK, peer[i].rank, in->comm, &requests[n++]);
    }
    return n;
}

void lemon_sparse_forward(struct lemon_internal *in, struct lemon_sparse *p, int words,
                          const int64_t *out, int64_t *into)
{
    int n = post_all(in, post_receive, p->from, p->from_count, words, into, p->requests);
    n += post_all(in, post_send, p->to, p->to_count, words, (int64_t *)out, p->requests + n);
    MPI_Waitall(n, p->requests, MPI_STATUSES_IGNORE);
}

void lemon_sparse_reverse(struct lemon_internal *in, struct lemon_sparse *p, int words,
                          const int64_t *out, int64_t *into)
{
    int n = post_all(in, post_receive, p->to, p->to_count, words, into, p->requests);
    n +=
        post_all(in, post_send, p->from, p->from_count, words, (int64_t *)out, p->requests + n);
    MPI_Waitall(n, p->requests, MPI_STATUSES_IGNORE);
}
