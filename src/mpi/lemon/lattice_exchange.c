/*
 * lattice_exchange.c - exchange a lattice between the ranks that hold it and the aggregators
 *
 * An aggregator, a rank that does file I/O (lattice_plan.h), has a window, a buffer with the
 * pieces of its round. The bytes that a rank holds of a piece are one range of the rank's
 * memory (box.h). In each round, a rank and an aggregator exchange one message, which consists
 * of such ranges. The rank uses the ranges in place. The aggregator copies them between its
 * window and a staging buffer for messages.
 */
#include "internal.h"

enum {
    TAG_PARTS = 1,
};

int64_t lemon_round_init(struct lemon_round *own, const struct lemon_plan *plan,
                         const struct lemon_schedule *schedule, int64_t round, char *window)
{
    int64_t bytes = 0;
    own->count = 0;
    if (schedule->aggregator >= 0)
        own->count = lemon_plan_round(plan, schedule->aggregator, round, own->pieces);
    if (own->count > 0)
        bytes = (plan->base + own->pieces[0].from) % LIMEFILE_DIRECT_ALIGN;
    own->window = window + bytes;
    for (int i = 0; i < own->count; i++)
        bytes += own->pieces[i].to - own->pieces[i].from;
    return (bytes + LIMEFILE_DIRECT_ALIGN - 1) / LIMEFILE_DIRECT_ALIGN * LIMEFILE_DIRECT_ALIGN;
}

char *lemon_window_new(int64_t bytes)
{
    size_t n = (size_t)bytes;
    return limefile_buffer_new(&n);
}

static bool allocate_exchange(struct lemon_exchange *exchange)
{
    size_t parts = (size_t)exchange->schedule->max_parts + 1;
    size_t sources = (size_t)exchange->schedule->max_sources + 1;
    exchange->send_requests = malloc(parts * sizeof *exchange->send_requests);
    exchange->lengths = malloc(parts * sizeof *exchange->lengths);
    exchange->displs = malloc(parts * sizeof *exchange->displs);
    exchange->requests = malloc(sources * sizeof *exchange->requests);
    exchange->completed = malloc(sources * sizeof *exchange->completed);
    exchange->offsets = malloc(sources * sizeof *exchange->offsets);
    exchange->staging = malloc((size_t)exchange->schedule->window + 1);
    return exchange->send_requests && exchange->lengths && exchange->displs &&
           exchange->requests && exchange->completed && exchange->offsets && exchange->staging;
}

int lemon_exchange_open(const struct lemon_internal *in, struct lemon_exchange *exchange,
                        const struct lemon_plan *plan, const struct lemon_schedule *schedule,
                        enum lemon_direction direction, char *data, bool ok)
{
    *exchange = (struct lemon_exchange){
        .plan = plan,
        .schedule = schedule,
        .direction = direction,
        .data = data,
    };
    ok = ok && allocate_exchange(exchange);
    int code = lemon_agree(in, ok ? LEMON_SUCCESS
                                  : lemon_log(in, lemon_io_error(direction), "out of memory"));
    if (code != LEMON_SUCCESS)
        lemon_exchange_close(exchange);
    return code;
}

void lemon_exchange_close(struct lemon_exchange *exchange)
{
    free(exchange->send_requests);
    free(exchange->lengths);
    free(exchange->displs);
    free(exchange->requests);
    free(exchange->completed);
    free(exchange->offsets);
    free(exchange->staging);
}

/* ---- a rank's side ---- */

/* Posts one message of part[0] to part[count - 1], to or from their common aggregator. */
static void post_parts(const struct lemon_internal *in, struct lemon_exchange *exchange,
                       const struct lemon_part *part, int count, MPI_Request *request)
{
    MPI_Datatype ranges = MPI_BYTE;
    char *data = exchange->data + part->at;
    int n = (int)part->n, aggregator = (int)part->aggregator;
    if (count > 1) {
        for (int i = 0; i < count; i++) {
            exchange->lengths[i] = (int)part[i].n;
            exchange->displs[i] = (MPI_Aint)(part[i].at - part->at);
        }
        MPI_Type_create_hindexed(count, exchange->lengths, exchange->displs, MPI_BYTE, &ranges);
        MPI_Type_commit(&ranges);
        n = 1;
    }
    if (exchange->direction == LEMON_WRITE)
        MPI_Isend(data, n, ranges, aggregator, TAG_PARTS, in->comm, request);
    else
        MPI_Irecv(data, n, ranges, aggregator, TAG_PARTS, in->comm, request);
    if (count > 1)
        MPI_Type_free(&ranges);
}

/* Posts this rank's messages to or from other aggregators in a round. Returns their number. */
static int post_own_parts(const struct lemon_internal *in, struct lemon_exchange *exchange,
                          int64_t round)
{
    const struct lemon_part *parts = exchange->schedule->parts;
    int64_t end = exchange->schedule->part_count, i = exchange->next_part;
    int messages = 0;
    while (i < end && parts[i].round == round) {
        int64_t first = i;
        while (i < end && parts[i].round == round &&
               parts[i].aggregator == parts[first].aggregator)
            i++;
        if (parts[first].aggregator != in->rank)
            post_parts(in, exchange, &parts[first], (int)(i - first),
                       &exchange->send_requests[messages++]);
    }
    exchange->next_part = i;
    return messages;
}

/* ---- an aggregator's side ---- */

/* part: the bytes of the round that belong to `rank`, without gaps; NULL: they are in this
 * rank's data. Copies the bytes into the window (write) or out of the window (read). */
static void copy_rank_part(const struct lemon_exchange *exchange, const struct lemon_round *own,
                           int64_t rank, char *part)
{
    struct lemon_box box;
    char *window = own->window;
    lemon_grid_get_box(&exchange->plan->grid, rank, &box);
    for (int i = 0; i < own->count; i++) {
        int64_t from = own->pieces[i].from, to = own->pieces[i].to;
        int64_t before = lemon_box_bytes_before(&box, from);
        char *at = part ? part : exchange->data + before;
        if (exchange->direction == LEMON_WRITE)
            lemon_box_scatter(&box, from, to, at, window);
        else
            lemon_box_gather(&box, from, to, window, at);
        if (part)
            part += lemon_box_bytes_before(&box, to) - before;
        window += to - from;
    }
}

/* Sets *sources to the round's sources, gives each staging space, and returns their number. */
static int assign_staging(const struct lemon_internal *in, struct lemon_exchange *exchange,
                          int64_t round, const struct lemon_source **sources)
{
    const struct lemon_schedule *schedule = exchange->schedule;
    int64_t sum = 0;
    int count = 0;
    *sources = schedule->sources + exchange->next_source;
    for (; exchange->next_source < schedule->source_count; exchange->next_source++, count++) {
        const struct lemon_source *source = &schedule->sources[exchange->next_source];
        if (source->round != round)
            break;
        exchange->offsets[count] = sum;
        if (source->rank != in->rank)
            sum += source->n;
    }
    return count;
}

/* Write: receives the parts in any order and copies them into the window. */
static void collect_parts(const struct lemon_internal *in, struct lemon_exchange *exchange,
                          const struct lemon_round *own, const struct lemon_source *sources,
                          int count)
{
    MPI_Request *requests = exchange->requests;
    for (int i = 0; i < count; i++) {
        requests[i] = MPI_REQUEST_NULL;
        if (sources[i].rank != in->rank)
            MPI_Irecv(exchange->staging + exchange->offsets[i], (int)sources[i].n, MPI_BYTE,
                      (int)sources[i].rank, TAG_PARTS, in->comm, &requests[i]);
    }
    copy_rank_part(exchange, own, in->rank, NULL);
    for (;;) {
        int done;
        MPI_Waitsome(count, requests, &done, exchange->completed, MPI_STATUSES_IGNORE);
        if (done == MPI_UNDEFINED)
            return;
        for (int i = 0; i < done; i++) {
            int source = exchange->completed[i];
            copy_rank_part(exchange, own, sources[source].rank,
                           exchange->staging + exchange->offsets[source]);
        }
    }
}

/* Read: sends each rank its part of the window. */
static void distribute_parts(const struct lemon_internal *in, struct lemon_exchange *exchange,
                             const struct lemon_round *own, const struct lemon_source *sources,
                             int count)
{
    MPI_Request *requests = exchange->requests;
    for (int i = 0; i < count; i++) {
        char *part = exchange->staging + exchange->offsets[i];
        requests[i] = MPI_REQUEST_NULL;
        if (sources[i].rank == in->rank)
            continue;
        copy_rank_part(exchange, own, sources[i].rank, part);
        MPI_Isend(part, (int)sources[i].n, MPI_BYTE, (int)sources[i].rank, TAG_PARTS, in->comm,
                  &requests[i]);
    }
    copy_rank_part(exchange, own, in->rank, NULL);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/* Adds to the checksum the sites that are completely in one of the parts [first, end). */
static void sum_parts(struct lemon_internal *in, const struct lemon_exchange *exchange,
                      int64_t first, int64_t end)
{
    for (int64_t i = first; i < end && in->sum.active; i++) {
        const struct lemon_part *part = &exchange->schedule->parts[i];
        lemon_sum_range(in, exchange->data, part->at, part->at + part->n);
    }
}

/* A site that is divided between parts is added with the part in which it begins. */
void lemon_exchange_sum_split_sites(struct lemon_internal *in,
                                    const struct lemon_exchange *exchange)
{
    int64_t site = in->geometry.box.site_bytes;
    for (int64_t i = 0; i < exchange->schedule->part_count && in->sum.active; i++) {
        const struct lemon_part *part = &exchange->schedule->parts[i];
        int64_t end = part->at + part->n, begin = end - end % site;
        if (begin != end && part->at <= begin)
            lemon_sum_range(in, exchange->data, begin, begin + site);
    }
}

void lemon_exchange_round(struct lemon_internal *in, struct lemon_exchange *exchange,
                          int64_t round, const struct lemon_round *own)
{
    int64_t first = exchange->next_part;
    const struct lemon_source *sources;
    int messages = post_own_parts(in, exchange, round);
    int64_t end = exchange->next_part;
    if (exchange->direction == LEMON_WRITE) /* while messages are in flight */
        sum_parts(in, exchange, first, end);
    int count = assign_staging(in, exchange, round, &sources);
    if (exchange->direction == LEMON_WRITE)
        collect_parts(in, exchange, own, sources, count);
    else
        distribute_parts(in, exchange, own, sources, count);
    MPI_Waitall(messages, exchange->send_requests, MPI_STATUSES_IGNORE);
    if (exchange->direction == LEMON_READ) /* while the next round is read */
        sum_parts(in, exchange, first, end);
}
