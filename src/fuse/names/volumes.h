/* volumes.h - names of volumes in a folder (volumes.c), for what joins them (joined.c) */
#ifndef LIMEFS_VOLUMES_H
#define LIMEFS_VOLUMES_H

#include "limefs.h"

struct limefs_volume {
    uint64_t number;
    size_t stem; /* bytes of the name before ".vol" */
    char *name;
};

struct limefs_volumes {
    size_t count, room;
    struct limefs_volume *at; /* by stem, then by number */
};

/* Those of a set, or of all (stem NULL), that has a volume 0. -errno, -ENOENT: none. */
int limefs_volumes_find(int folder, const char *stem, struct limefs_volumes *);
void limefs_volumes_release(struct limefs_volumes *);

/* How many from number `first` on are of the same set. */
size_t limefs_volumes_of_set(const struct limefs_volumes *, size_t first);

/* What a set's volumes are together. `shared`: others than we see it. */
struct limefs_sum {
    struct stat st;
    uint64_t names, data;
    size_t count;
    bool differ; /* in owner or group */
    bool modes_differ;
};
void limefs_sum_add(struct limefs_sum *, const struct stat *volume);
struct stat limefs_sum_stat(const struct limefs_sum *, bool shared);

#endif
