/* model_print.c - what `lime-bench model` prints */
#include "model.h"

#include <jansson.h>
#include <stdio.h>

static const char *human(double value, char text[16])
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P"};
    int unit = 0;
    while (value >= 9999.5 && unit < 5)
        value /= 1024, unit++;
    snprintf(text, 16, value == (double)(long)value || value >= 100 ? "%.0f%s" : "%.1f%s",
             value, units[unit]);
    return text;
}

static void print_row(const char *what, const struct model_outcome *outcomes, int count,
                      const struct model_tally *(*get)(const struct model_outcome *))
{
    printf("%-34s", what);
    for (int i = 0; i < count; i++) {
        char mean[16], most[16], both[40];
        const struct model_tally *tally = get(&outcomes[i]);
        snprintf(both, sizeof both, "%s, %s", human(model_tally_mean(tally), mean),
                 human(tally->most, most));
        printf(" %20s", tally->count ? both : "-");
    }
    printf("\n");
}

static void print_numbers(const char *what, int digits, const struct model_outcome *outcomes,
                          int count, double (*get)(const struct model_outcome *))
{
    printf("%-34s", what);
    for (int i = 0; i < count; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.*f", digits, get(&outcomes[i]));
        printf(" %20s", text);
    }
    printf("\n");
}

#define TALLY(field)                                                            \
    static const struct model_tally *get_##field(const struct model_outcome *o) \
    {                                                                           \
        return &o->field;                                                       \
    }
TALLY(sent)
TALLY(received)
TALLY(out)
TALLY(in)
TALLY(extents)
TALLY(per_mover)
TALLY(clients)
TALLY(memory)
TALLY(small)

#define NUMBER(name, value)                                 \
    static double get_##name(const struct model_outcome *o) \
    {                                                       \
        return (double)(value);                             \
    }
NUMBER(movers, o->movers)
NUMBER(turns, o->turns)
NUMBER(shortest, o->extents.least)
NUMBER(shared, o->shared)
NUMBER(rounds, o->rounds)
NUMBER(plan_ms, o->plan_seconds * 1e3)
NUMBER(plan_bytes, o->plan_bytes)
NUMBER(exchange, o->exchange)
NUMBER(file, o->file)
NUMBER(total, o->total)

static void print_extents(const int64_t *extents, int count)
{
    for (int i = 0; i < count; i++)
        printf("%c%lld", i ? 'x' : ' ', (long long)extents[i]);
}

void model_print(const struct model *model, const struct model_outcome *outcomes, int count)
{
    const struct lemon_grid *grid = &model->grid;
    const struct model_cells *gas = model->gas;
    if (gas) {
        printf("%lld particles in cells", (long long)gas->gas.particles);
        print_extents(gas->cells, BENCH_SPACE);
    } else {
        printf("lattice");
        print_extents(grid->extent, grid->dims);
    }
    printf(", %.4g GB, on %lld ranks", (double)model->bytes / 1e9, (long long)model->ranks);
    if (gas)
        printf(", %s", gas->kd ? "kd" : "regular");
    else
        print_extents(grid->parts, grid->dims);
    printf("; %lld servers, stripes of %lld bytes\n", (long long)model->servers,
           (long long)model->stripe);
    printf("%-34s", "mean, most");
    for (int i = 0; i < count; i++)
        printf(" %20s", outcomes[i].direct ? "lime (direct)" : outcomes[i].method);
    printf("\n");
    if (gas) {
        print_row("small messages of planning, a rank", outcomes, count, get_small);
        print_numbers("  and in turn, of collective calls", 0, outcomes, count, get_rounds);
    }
    print_row("messages sent, a rank", outcomes, count, get_sent);
    print_row("bytes sent, a rank", outcomes, count, get_out);
    print_row("messages received, a mover", outcomes, count, get_received);
    print_row("bytes received, a mover", outcomes, count, get_in);
    print_numbers("ranks that write (movers)", 0, outcomes, count, get_movers);
    print_row("extents, a mover", outcomes, count, get_per_mover);
    print_row("bytes of an extent", outcomes, count, get_extents);
    print_numbers("  the shortest", 0, outcomes, count, get_shortest);
    print_numbers("stripes that two ranks write", 0, outcomes, count, get_shared);
    print_row("ranks that write to a server", outcomes, count, get_clients);
    print_row("memory, a mover", outcomes, count, get_memory);
    print_numbers("turns", 0, outcomes, count, get_turns);
    print_numbers("planning, a rank, ms", 3, outcomes, count, get_plan_ms);
    print_numbers("  memory of it, bytes", 0, outcomes, count, get_plan_bytes);
    print_numbers("estimate: exchange, s", 4, outcomes, count, get_exchange);
    print_numbers("estimate: file, s", 4, outcomes, count, get_file);
    print_numbers("estimate: both, s", 4, outcomes, count, get_total);
}

static void set_tally(json_t *object, const char *key, const struct model_tally *tally)
{
    json_object_set_new(object, key,
                        json_pack("{s:f, s:f, s:f, s:I}", "least", tally->least, "mean",
                                  model_tally_mean(tally), "most", tally->most, "count",
                                  (json_int_t)tally->count));
}

static json_t *json_of(const struct model_outcome *o)
{
    json_t *object = json_pack(
        "{s:s, s:b, s:I, s:I, s:b, s:I, s:f, s:f, s:f, s:f, s:f}", "method", o->method,
        "direct", o->direct, "movers", (json_int_t)o->movers, "turns", (json_int_t)o->turns,
        "overlaps", o->overlaps, "shared_stripes", (json_int_t)o->shared, "plan_seconds",
        o->plan_seconds, "plan_bytes", o->plan_bytes, "exchange_seconds", o->exchange,
        "file_seconds", o->file, "total_seconds", o->total);
    set_tally(object, "messages_sent", &o->sent);
    set_tally(object, "planning_messages", &o->small);
    json_object_set_new(object, "planning_rounds", json_integer(o->rounds));
    set_tally(object, "messages_received", &o->received);
    set_tally(object, "bytes_sent", &o->out);
    set_tally(object, "bytes_received", &o->in);
    set_tally(object, "extent_bytes", &o->extents);
    set_tally(object, "extents_per_mover", &o->per_mover);
    set_tally(object, "bytes_per_mover", &o->written);
    set_tally(object, "ranks_per_server", &o->clients);
    set_tally(object, "requests_per_server", &o->requests);
    set_tally(object, "memory_bytes", &o->memory);
    return object;
}

static json_t *json_extents(const int64_t *values, int count)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(array, json_integer(values[i]));
    return array;
}

void model_print_json(const struct model *m, const struct model_outcome *outcomes, int count)
{
    json_t *results = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(results, json_of(&outcomes[i]));
    json_t *all =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "program", "lime-bench model", "version",
                  LIMEFS_VERSION, "ranks", (json_int_t)m->ranks, "bytes", (json_int_t)m->bytes,
                  "servers", (json_int_t)m->servers, "stripe", (json_int_t)m->stripe);
    if (m->gas) {
        const struct model_cells *c = m->gas;
        json_object_set_new(all, "particles", json_integer(c->gas.particles));
        json_object_set_new(all, "particle_bytes", json_integer(c->particle_bytes));
        json_object_set_new(all, "cells", json_extents(c->cells, BENCH_SPACE));
        json_object_set_new(all, "decomposition", json_string(c->kd ? "kd" : "regular"));
    } else {
        json_object_set_new(all, "lattice", json_extents(m->grid.extent, m->grid.dims));
        json_object_set_new(all, "grid", json_extents(m->grid.parts, m->grid.dims));
    }
    json_object_set_new(all, "results", results);
    json_dumpf(all, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(all);
}
