/* guise.c - what is shown as a container and is none */
#include "guise.h"
#include "joined.h"
#include "limegauge.h"

#include <errno.h>
#include <stdlib.h>

/* One of them. */
struct limefs_guise {
    struct limefile_gauge_guise *file;
    struct limefs_joined *set;
};

int limefs_guise_of_file(int fd, struct limefs_guise **out)
{
    struct limefs_guise *guise = calloc(1, sizeof *guise);
    int err = guise ? limefile_gauge_guise_open(fd, &guise->file) : -ENOMEM;
    if (err)
        free(guise);
    else
        *out = guise;
    return err;
}

int limefs_guise_of_set(struct limefs_joined *set, struct limefs_guise **out)
{
    struct limefs_guise *guise = calloc(1, sizeof *guise);
    if (!guise) {
        limefs_joined_close(set);
        return -ENOMEM;
    }
    guise->set = set;
    *out = guise;
    return 0;
}

void limefs_guise_close(struct limefs_guise *guise)
{
    if (!guise)
        return;
    limefile_gauge_guise_close(guise->file);
    limefs_joined_close(guise->set);
    free(guise);
}

struct limefile_source *limefs_guise_source(const struct limefs_guise *guise)
{
    return guise->set ? limefs_joined_source(guise->set)
                      : limefile_gauge_guise_source(guise->file);
}

size_t limefs_guise_memory(const struct limefs_guise *guise)
{
    return sizeof *guise + (guise->set ? limefs_joined_memory(guise->set)
                                       : limefile_gauge_guise_memory(guise->file));
}

const struct limefile_gauge *limefs_guise_gauge(const struct limefs_guise *guise)
{
    return guise && guise->file ? limefile_gauge_guise_file(guise->file) : NULL;
}

const struct limefs_joined *limefs_guise_set(const struct limefs_guise *guise)
{
    return guise ? guise->set : NULL;
}
