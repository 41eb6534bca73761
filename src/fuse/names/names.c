/* names.c - nodes found by name and by number, and the names that they have */
#include "names.h"

#include <stdlib.h>
#include <string.h>

enum {
    NAMES_MOST = 64, /* of a file that are remembered; by others it is found when looked up */
};

/* ---- nodes by name ---- */

static size_t bucket_of(const struct limefs *fs, const struct limefs_node *parent,
                        const char *name)
{
    uint64_t hash = 1469598103934665603u ^ parent->slot;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return (size_t)(hash ^ hash >> 29) & (fs->inodes.name_buckets - 1);
}

struct limefs_node *limefs_node_find(struct limefs *fs, struct limefs_node *parent,
                                     const char *name)
{
    struct limefs_node *node = fs->inodes.names[bucket_of(fs, parent, name)];
    while (node && (node->parent != parent || strcmp(node->name, name) != 0))
        node = node->next;
    return node;
}

/* More buckets; without memory for them the old ones do, only slower. */
static void grow_names(struct limefs *fs)
{
    size_t old_count = fs->inodes.name_buckets;
    struct limefs_node **old = fs->inodes.names;
    struct limefs_node **names = calloc(old_count * 2, sizeof(struct limefs_node *));
    if (!names)
        return;
    fs->inodes.names = names;
    fs->inodes.name_buckets = old_count * 2;
    for (size_t i = 0; i < old_count; i++)
        for (struct limefs_node *node = old[i], *next; node; node = next) {
            next = node->next;
            size_t bucket = bucket_of(fs, node->parent, node->name);
            node->next = names[bucket];
            names[bucket] = node;
        }
    free(old);
}

void limefs_name_put(struct limefs *fs, struct limefs_node *node)
{
    if (fs->inodes.name_count >= fs->inodes.name_buckets)
        grow_names(fs);
    size_t bucket = bucket_of(fs, node->parent, node->name);
    node->next = fs->inodes.names[bucket];
    fs->inodes.names[bucket] = node;
    node->hashed = true;
    fs->inodes.name_count++;
}

void limefs_name_take(struct limefs *fs, struct limefs_node *node)
{
    if (!node->hashed)
        return;
    struct limefs_node **at = &fs->inodes.names[bucket_of(fs, node->parent, node->name)];
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    node->hashed = false;
    fs->inodes.name_count--;
}

/* ---- files, which may have several names, by number ---- */

static size_t number_bucket_of(const struct limefs *fs, const struct limefile_identity *stamp)
{
    uint64_t hash = ((uint64_t)stamp->ino ^ (uint64_t)stamp->dev << 32) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash ^ hash >> 32) & (fs->inodes.file_buckets - 1);
}

struct limefs_node *limefs_number_find(struct limefs *fs, const struct limefile_identity *stamp)
{
    struct limefs_node *node =
        fs->inodes.file_buckets ? fs->inodes.nodes[number_bucket_of(fs, stamp)] : NULL;
    while (node && !limefile_identity_same_file(&node->stamp, stamp))
        node = node->next_file;
    return node;
}

static void grow_numbers(struct limefs *fs)
{
    size_t old_count = fs->inodes.file_buckets, count = old_count ? old_count * 2 : 64;
    struct limefs_node **old = fs->inodes.nodes;
    struct limefs_node **nodes = calloc(count, sizeof(struct limefs_node *));
    if (!nodes)
        return;
    fs->inodes.nodes = nodes;
    fs->inodes.file_buckets = count;
    for (size_t i = 0; i < old_count; i++)
        for (struct limefs_node *node = old[i], *next; node; node = next) {
            next = node->next_file;
            size_t bucket = number_bucket_of(fs, &node->stamp);
            node->next_file = nodes[bucket];
            nodes[bucket] = node;
        }
    free(old);
}

/* Without memory it is found by its name alone. */
void limefs_number_put(struct limefs *fs, struct limefs_node *node)
{
    if (fs->inodes.file_count >= fs->inodes.file_buckets)
        grow_numbers(fs);
    if (!fs->inodes.file_buckets)
        return;
    size_t bucket = number_bucket_of(fs, &node->stamp);
    node->next_file = fs->inodes.nodes[bucket];
    fs->inodes.nodes[bucket] = node;
    node->filed = true;
    fs->inodes.file_count++;
}

void limefs_number_take(struct limefs *fs, struct limefs_node *node)
{
    if (!node->filed)
        return;
    struct limefs_node **at = &fs->inodes.nodes[number_bucket_of(fs, &node->stamp)];
    while (*at != node)
        at = &(*at)->next_file;
    *at = node->next_file;
    node->filed = false;
    fs->inodes.file_count--;
}

/* ---- the names of a node ---- */

static void free_name(struct limefs *fs, struct limefs_name **at)
{
    struct limefs_name *name = *at;
    struct limefs_node *parent = name->parent;
    *at = name->next;
    free(name);
    if (parent)
        limefs_node_drop(fs, parent);
}

const char *limefs_name_keep(struct limefs *fs, struct limefs_node *node,
                             struct limefs_node *parent, const char *name)
{
    int count = 0;
    struct limefs_name **at = &node->names;
    for (; node->kind == LIMEFS_OTHER && *at; at = &(*at)->next, count++) {
        if ((*at)->parent == parent && strcmp((*at)->name, name) == 0)
            return (*at)->name;
        if (count >= NAMES_MOST && (*at)->name != node->name) {
            free_name(fs, at);
            break;
        }
    }
    struct limefs_name *kept = malloc(sizeof *kept + strlen(name) + 1);
    if (!kept)
        return NULL;
    kept->parent = parent;
    kept->next = node->names;
    strcpy(kept->name, name);
    node->names = kept;
    if (parent)
        limefs_node_hold(parent);
    return kept->name;
}

void limefs_name_lose(struct limefs *fs, struct limefs_node *node, struct limefs_node *parent,
                      const char *name)
{
    struct limefs_name **at = &node->names;
    while (*at && ((*at)->parent != parent || (*at)->name == node->name ||
                   strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    if (*at && node->kind == LIMEFS_OTHER) {
        free_name(fs, at);
    } else if (*at) {
        (*at)->parent = NULL;
        limefs_node_drop(fs, parent);
    }
}

void limefs_names_free(struct limefs *fs, struct limefs_name *names)
{
    while (names)
        free_name(fs, &names);
}
