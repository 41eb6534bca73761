/* model_servers.c - stripes on servers, and how long all takes */
#include "model.h"

#include <stdlib.h>
#include <time.h>

void model_tally_add(struct model_tally *tally, double value)
{
    if (tally->count == 0 || value < tally->least)
        tally->least = value;
    if (tally->count == 0 || value > tally->most)
        tally->most = value;
    tally->count++;
    tally->sum += value;
}

double model_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

double model_tally_mean(const struct model_tally *tally)
{
    return tally->count ? tally->sum / (double)tally->count : 0;
}

bool model_servers_open(struct model_servers *servers, const struct model *model)
{
    size_t n = (size_t)model->servers;
    *servers = (struct model_servers){.model = model};
    servers->last = malloc(n * sizeof *servers->last);
    servers->requests = calloc(n, sizeof *servers->requests);
    servers->clients = calloc(n, sizeof *servers->clients);
    for (size_t i = 0; i < n && servers->last; i++)
        servers->last[i] = -1;
    if (servers->last && servers->requests && servers->clients)
        return true;
    free(servers->last);
    free(servers->requests);
    free(servers->clients);
    return false;
}

/* Stripe after stripe lies on the next server. What of a range is on one server is one request,
 * however many stripes that is: clients collect them. */
void model_servers_write(struct model_servers *servers, int64_t client, int64_t from,
                         int64_t to)
{
    const struct model *model = servers->model;
    int64_t first = (model->base + from) / model->stripe;
    int64_t stripes = (model->base + to - 1) / model->stripe - first + 1;
    if (to <= from)
        return;
    if (stripes > model->servers)
        stripes = model->servers;
    for (int64_t i = 0; i < stripes; i++) {
        int64_t server = (first + i) % model->servers;
        servers->requests[server]++;
        if (servers->last[server] != client)
            servers->clients[server]++;
        servers->last[server] = client;
    }
}

void model_servers_close(struct model_servers *servers, struct model_outcome *outcome)
{
    for (int64_t i = 0; i < servers->model->servers; i++) {
        model_tally_add(&outcome->clients, servers->clients[i]);
        model_tally_add(&outcome->requests, servers->requests[i]);
    }
    free(servers->last);
    free(servers->requests);
    free(servers->clients);
}

/* docs/study.md has the formulas in words. */
void model_estimate(const struct model *model, struct model_outcome *outcome)
{
    double sending = outcome->sent.most * model->latency + outcome->out.most / model->link;
    double receiving = outcome->received.most * model->latency + outcome->in.most / model->link;
    double planning = (outcome->small.most + (double)outcome->rounds) * model->latency;
    double bytes = (double)model->bytes;
    double by_server = bytes / (double)model->servers / model->server +
                       outcome->requests.most * model->request +
                       (double)outcome->shared / (double)model->servers * model->lock;
    double by_mover = outcome->written.most / model->link;
    outcome->exchange = planning + (sending > receiving ? sending : receiving);
    outcome->file = by_server > by_mover ? by_server : by_mover;
    double longer = outcome->exchange > outcome->file ? outcome->exchange : outcome->file;
    double shorter = outcome->exchange + outcome->file - longer;
    outcome->total = outcome->overlaps && outcome->turns > 0
                         ? longer + shorter / (double)outcome->turns
                         : longer + shorter;
}
