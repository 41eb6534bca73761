/* inode.c - find nodes by id, name or file. Static functions are called with fs->lock held. */
#include "append.h"
#include "inode.h"
#include "kernel_mtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FUSE_ROOT 1

enum {
    NAMES_MAX = 64,          /* names that are stored of one file; more replace older ones */
    LOOKUPS_TO_PREFETCH = 4, /* lookups and opens after which listings also look names up */
    PREFETCH_LISTS = 8,      /* number of listings that do this */
};

/* ---- slots ---- */

enum {
    SLOT_BITS = 26, /* of a node id, between the ordinal and the number */
    SLOTS_MAX = 1 << SLOT_BITS,
};

static int grow_slots(struct limefs *fs)
{
    uint32_t count = fs->inodes.slot_count ? fs->inodes.slot_count * 2 : 64;
    if (count > SLOTS_MAX)
        return -ENOMEM;
    struct limefs_slot *slots = reallocarray(fs->inodes.slots, count, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    for (uint32_t i = fs->inodes.slot_count; i < count; i++)
        slots[i] = (struct limefs_slot){.next_free = i + 1 < count ? i + 1 : 0};
    fs->inodes.slot_free = fs->inodes.slot_count; /* no old slot is free */
    fs->inodes.slots = slots;
    fs->inodes.slot_count = count;
    return 0;
}

/* The root takes slot 0 first and never frees it, so slot_free == 0 means: no slot is free. */
int limefs_slot_allocate(struct limefs *fs, enum limefs_slot_use use, void *object,
                         uint32_t *slot)
{
    if (fs->inodes.slot_free == 0) {
        int err = grow_slots(fs);
        if (err)
            return err;
    }
    *slot = fs->inodes.slot_free;
    struct limefs_slot *allocated = &fs->inodes.slots[*slot];
    fs->inodes.slot_free = allocated->next_free;
    allocated->use = use;
    allocated->object = object;
    return 0;
}

void limefs_slot_free(struct limefs *fs, uint32_t slot)
{
    fs->inodes.slots[slot].use = LIMEFS_SLOT_FREE;
    fs->inodes.slots[slot].next_free = fs->inodes.slot_free;
    fs->inodes.slot_free = slot;
}

static uint32_t id_slot(uint64_t id)
{
    return id == FUSE_ROOT ? 0 : (uint32_t)(id >> 32) % SLOTS_MAX;
}

struct limefs_inode limefs_inode_find(struct limefs *fs, uint64_t id)
{
    uint32_t slot = id_slot(id);
    struct limefs_inode found = {.ordinal = (uint32_t)id};
    limefs_lock(&fs->lock);
    if (slot < fs->inodes.slot_count) {
        const struct limefs_slot *at = &fs->inodes.slots[slot];
        found.node = at->use == LIMEFS_SLOT_NODE ? at->object : NULL;
        found.snap = at->use == LIMEFS_SLOT_SNAPSHOT ? at->object : NULL;
        found.export = at->use == LIMEFS_SLOT_EXPORT ? at->object : NULL;
    }
    limefs_unlock(&fs->lock);
    return found;
}

struct limefs_node *limefs_inode_find_node(struct limefs *fs, uint64_t id)
{
    return limefs_inode_find(fs, id).node;
}

uint64_t limefs_inode_node_id(const struct limefs_node *node)
{
    return node->slot ? (uint64_t)node->slot << 32 : FUSE_ROOT;
}

uint64_t limefs_inode_record_id(uint32_t slot, unsigned number, uint64_t ordinal)
{
    return ((uint64_t)number << SLOT_BITS | slot) << 32 | ordinal;
}

uint64_t limefs_inode_export_id(uint32_t slot, uint64_t ordinal)
{
    return limefs_inode_record_id(slot, 0, ordinal);
}

/* ---- nodes by name ---- */

static size_t name_bucket(const struct limefs *fs, const struct limefs_node *parent,
                          const char *name)
{
    uint64_t hash = 1469598103934665603u ^ parent->slot;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return (size_t)(hash ^ hash >> 29) & (fs->inodes.name_buckets - 1);
}

struct limefs_node *limefs_node_find_child(struct limefs *fs, struct limefs_node *parent,
                                           const char *name)
{
    struct limefs_node *node = fs->inodes.names[name_bucket(fs, parent, name)];
    while (node && (node->parent != parent || strcmp(node->name, name) != 0))
        node = node->next;
    return node;
}

/* Doubles the number of buckets. Without memory, keeps the old buckets, which are slower. */
static void grow_name_table(struct limefs *fs)
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
            size_t bucket = name_bucket(fs, node->parent, node->name);
            node->next = names[bucket];
            names[bucket] = node;
        }
    free(old);
}

static void insert_by_name(struct limefs *fs, struct limefs_node *node)
{
    if (fs->inodes.name_count >= fs->inodes.name_buckets)
        grow_name_table(fs);
    size_t bucket = name_bucket(fs, node->parent, node->name);
    node->next = fs->inodes.names[bucket];
    fs->inodes.names[bucket] = node;
    node->in_name_table = true;
    fs->inodes.name_count++;
}

static void remove_by_name(struct limefs *fs, struct limefs_node *node)
{
    if (!node->in_name_table)
        return;
    struct limefs_node **at = &fs->inodes.names[name_bucket(fs, node->parent, node->name)];
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    node->in_name_table = false;
    fs->inodes.name_count--;
}

/* ---- files, which may have several names, by inode number ---- */

static size_t file_bucket(const struct limefs *fs, const struct limefile_identity *stamp)
{
    uint64_t hash = ((uint64_t)stamp->ino ^ (uint64_t)stamp->dev << 32) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash ^ hash >> 32) & (fs->inodes.file_buckets - 1);
}

static struct limefs_node *find_file(struct limefs *fs, const struct limefile_identity *stamp)
{
    struct limefs_node *node =
        fs->inodes.file_buckets ? fs->inodes.nodes[file_bucket(fs, stamp)] : NULL;
    while (node && !limefile_identity_same_file(&node->stamp, stamp))
        node = node->next_file;
    return node;
}

static void grow_file_table(struct limefs *fs)
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
            size_t bucket = file_bucket(fs, &node->stamp);
            node->next_file = nodes[bucket];
            nodes[bucket] = node;
        }
    free(old);
}

/* Without memory, the node can be found by its name only. */
static void insert_by_file(struct limefs *fs, struct limefs_node *node)
{
    if (fs->inodes.file_count >= fs->inodes.file_buckets)
        grow_file_table(fs);
    if (!fs->inodes.file_buckets)
        return;
    size_t bucket = file_bucket(fs, &node->stamp);
    node->next_file = fs->inodes.nodes[bucket];
    fs->inodes.nodes[bucket] = node;
    node->in_file_table = true;
    fs->inodes.file_count++;
}

static void remove_by_file(struct limefs *fs, struct limefs_node *node)
{
    if (!node->in_file_table)
        return;
    struct limefs_node **at = &fs->inodes.nodes[file_bucket(fs, &node->stamp)];
    while (*at != node)
        at = &(*at)->next_file;
    *at = node->next_file;
    node->in_file_table = false;
    fs->inodes.file_count--;
}

/* ---- the names of a node ---- */

static void free_name(struct limefs *fs, struct limefs_node_name **at)
{
    struct limefs_node_name *name = *at;
    struct limefs_node *parent = name->parent;
    *at = name->next;
    free(name);
    if (parent)
        limefs_node_put(fs, parent);
}

/* Adds a name, with a reference to parent, to node->names. Returns it; NULL: no memory. */
static const char *store_name(struct limefs *fs, struct limefs_node *node,
                              struct limefs_node *parent, const char *name)
{
    int count = 0;
    struct limefs_node_name **at = &node->names;
    for (; node->kind == LIMEFS_PLAIN && *at; at = &(*at)->next, count++) {
        if ((*at)->parent == parent && strcmp((*at)->name, name) == 0)
            return (*at)->name;
        if (count >= NAMES_MAX && (*at)->name != node->name) {
            free_name(fs, at);
            break;
        }
    }
    struct limefs_node_name *stored = malloc(sizeof *stored + strlen(name) + 1);
    if (!stored)
        return NULL;
    stored->parent = parent;
    stored->next = node->names;
    strcpy(stored->name, name);
    node->names = stored;
    if (parent)
        limefs_node_get(parent);
    return stored->name;
}

/* Drops the parent reference of a name that the node has lost; frees a plain file's name. */
static void retire_name(struct limefs *fs, struct limefs_node *node, struct limefs_node *parent,
                        const char *name)
{
    struct limefs_node_name **at = &node->names;
    while (*at && ((*at)->parent != parent || (*at)->name == node->name ||
                   strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    if (*at && node->kind == LIMEFS_PLAIN) {
        free_name(fs, at);
    } else if (*at) {
        (*at)->parent = NULL;
        limefs_node_put(fs, parent);
    }
}

static void free_names(struct limefs *fs, struct limefs_node_name *names)
{
    while (names)
        free_name(fs, &names);
}

static void free_node(struct limefs_node *node)
{
    limefs_lock_destroy(&node->io_lock);
    limefs_append_free(node);
    while (node->names) {
        struct limefs_node_name *name = node->names;
        node->names = name->next;
        free(name);
    }
    free(node);
}

static struct limefs_node *create_node(struct limefs *fs, struct limefs_node *parent,
                                       const char *name, enum limefs_node_kind kind)
{
    struct limefs_node *node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    limefs_lock_init(&node->io_lock, LIMEFS_LOCK_NODE);
    node->id = ++fs->inodes.ids;
    node->kind = kind;
    node->parent = parent;
    if (limefs_slot_allocate(fs, LIMEFS_SLOT_NODE, node, &node->slot) != 0) {
        free_node(node);
        return NULL;
    }
    node->name = store_name(fs, node, parent, name);
    if (!node->name) {
        limefs_slot_free(fs, node->slot);
        free_node(node);
        return NULL;
    }
    return node;
}

void limefs_node_get(struct limefs_node *node)
{
    node->references++;
}

/* Frees the node, and then its parents, when nothing holds them any more. */
static void free_node_if_unused(struct limefs *fs, struct limefs_node *node)
{
    if (node == fs->inodes.root || node->references > 0 || node->lookups > 0)
        return;
    struct limefs_node_name *names = node->names;
    node->names = NULL;
    remove_by_name(fs, node);
    remove_by_file(fs, node);
    limefs_slot_free(fs, node->slot);
    free_node(node);
    free_names(fs, names);
}

void limefs_node_put(struct limefs *fs, struct limefs_node *node)
{
    node->references--;
    free_node_if_unused(fs, node);
}

void limefs_node_forget(struct limefs *fs, struct limefs_node *node, uint64_t n)
{
    limefs_lock(&fs->lock);
    node->lookups -= n < node->lookups ? n : node->lookups;
    free_node_if_unused(fs, node);
    limefs_unlock(&fs->lock);
}

/* Returns true if the node can stand for the file that `stamp` identifies. A container that
 * replaces another one takes over its node; any other file that replaces one gets a new node.
 * In a read-write mount, the kernel caches writes and ignores the daemon's sizes and times, so
 * a plain file that another program has changed needs a new node. */
static bool node_matches(const struct limefs *fs, const struct limefs_node *node,
                         enum limefs_node_kind kind, const struct limefile_identity *stamp)
{
    if (node->kind != kind)
        return false;
    if (kind == LIMEFS_CONTAINER)
        return S_ISREG(stamp->mode);
    if ((node->stamp.mode & S_IFMT) != (stamp->mode & S_IFMT)) /* reused inode number */
        return false;
    if (S_ISLNK(stamp->mode) && !limefile_identity_equal(&node->stamp, stamp))
        return false; /* the kernel caches the target */
    return limefile_identity_same_file(&node->stamp, stamp) &&
           (kind != LIMEFS_PLAIN || !fs->options.rw || limefs_append_needs_node(node) ||
            (node->plain.bytes == LIMEFS_BYTES_AS_REPORTED &&
             node->plain.kernel_size == stamp->size &&
             limefs_kernel_mtime_is_current(node, stamp)));
}

/* Like node_matches(), for a lookup. A symbolic link that is not is_certain may be another one
 * than before, with the same inode number and times (but hardly if it has two names). */
static bool fits_lookup(const struct limefs *fs, const struct limefs_node *node,
                        const struct limefs_tree_entry *found,
                        const struct limefile_identity *stamp)
{
    return node_matches(fs, node, found->kind, stamp) &&
           (!S_ISLNK(stamp->mode) || node->is_certain || found->st.st_nlink > 1);
}

bool limefs_node_is_file(struct limefs *fs, const struct limefs_node *node,
                         const struct stat *st)
{
    struct limefile_identity stamp = limefile_identify(st);
    limefs_lock(&fs->lock);
    bool same = limefile_identity_same_file(&node->stamp, &stamp);
    limefs_unlock(&fs->lock);
    return same;
}

bool limefs_node_is_current(struct limefs *fs, const struct limefs_node *node,
                            const struct stat *st)
{
    struct limefile_identity stamp = limefile_identify(st);
    if (S_ISDIR(st->st_mode) != (node->kind == LIMEFS_DIRECTORY))
        return false;
    limefs_lock(&fs->lock);
    bool same = !node->parent || node_matches(fs, node, node->kind, &stamp);
    limefs_unlock(&fs->lock);
    return same;
}

/* Makes new_name in `to` the name by which the node is found. Returns 0 or -ENOMEM. */
static int set_node_name(struct limefs *fs, struct limefs_node *node, struct limefs_node *to,
                         const char *new_name)
{
    const char *stored = store_name(fs, node, to, new_name);
    if (!stored)
        return -ENOMEM;
    remove_by_name(fs, node);
    node->parent = to;
    node->name = stored;
    insert_by_name(fs, node);
    return 0;
}

bool limefs_node_use_name(struct limefs *fs, struct limefs_node *node, unsigned i)
{
    limefs_lock(&fs->lock);
    const struct limefs_node_name *name = node->kind == LIMEFS_PLAIN ? node->names : NULL;
    while (name && i-- > 0)
        name = name->next;
    if (name && !limefs_node_find_child(fs, name->parent, name->name))
        set_node_name(fs, node, name->parent, name->name);
    limefs_unlock(&fs->lock);
    return name != NULL;
}

/* Finds the node of a file by another name, so that the kernel caches the file only once. */
static struct limefs_node *reuse_by_file(struct limefs *fs, struct limefs_node *parent,
                                         const char *name,
                                         const struct limefs_tree_entry *found,
                                         const struct limefile_identity *stamp)
{
    struct limefs_node *node = find_file(fs, stamp);
    if (!node)
        return NULL;
    if (fits_lookup(fs, node, found, stamp) && set_node_name(fs, node, parent, name) == 0)
        return node;
    remove_by_file(fs, node);
    return NULL;
}

struct limefs_node *limefs_node_lookup_child(struct limefs *fs, struct limefs_node *parent,
                                             const char *name,
                                             const struct limefs_tree_entry *found)
{
    struct limefile_identity stamp = limefile_identify(&found->st);
    limefs_lock(&fs->lock);
    struct limefs_node *node = limefs_node_find_child(fs, parent, name);
    if (node && !fits_lookup(fs, node, found, &stamp)) {
        remove_by_name(fs, node);
        node = NULL;
    }
    if (!node && found->kind == LIMEFS_PLAIN)
        node = reuse_by_file(fs, parent, name, found, &stamp);
    if (!node) {
        node = create_node(fs, parent, name, found->kind);
        if (node) {
            insert_by_name(fs, node);
            node->plain.kernel_size = stamp.size;
            limefs_kernel_mtime_init(node, &stamp);
        }
    }
    if (node) {
        node->stamp = stamp;
        node->is_certain = found->is_certain;
        node->lookups++;
        if (!node->in_file_table && node->kind == LIMEFS_PLAIN)
            insert_by_file(fs, node);
    }
    limefs_unlock(&fs->lock);
    return node;
}

void limefs_node_forget_file(struct limefs *fs, const struct limefile_identity *stamp)
{
    limefs_lock(&fs->lock);
    struct limefs_node *old = find_file(fs, stamp);
    if (old)
        remove_by_file(fs, old);
    limefs_unlock(&fs->lock);
}

/* ---- changes of names ---- */

/* A reference keeps the node until the container is removed, or the mount ends. */
int limefs_node_note_mkdir(struct limefs *fs, struct limefs_node *parent, const char *name,
                           const struct stat *st)
{
    limefs_lock(&fs->lock);
    struct limefs_node *node = limefs_node_find_child(fs, parent, name);
    if (node && (node->kind != LIMEFS_CONTAINER || node->container.made_by_mkdir)) {
        remove_by_name(fs, node);
        node = NULL;
    }
    if (!node && (node = create_node(fs, parent, name, LIMEFS_CONTAINER)))
        insert_by_name(fs, node);
    if (node) {
        node->container.made_by_mkdir = true;
        node->container.mkdir_identity = limefile_identify(st);
        limefs_node_get(node);
    }
    limefs_unlock(&fs->lock);
    return node ? 0 : -ENOMEM;
}

void limefs_node_note_rmdir(struct limefs *fs, struct limefs_node *parent, const char *name)
{
    limefs_lock(&fs->lock);
    struct limefs_node *node = limefs_node_find_child(fs, parent, name);
    if (node) {
        bool made_by_mkdir = node->container.made_by_mkdir;
        node->container.made_by_mkdir = false;
        remove_by_name(fs, node);
        if (made_by_mkdir)
            limefs_node_put(fs, node);
    }
    limefs_unlock(&fs->lock);
}

int limefs_node_note_rename(struct limefs *fs, struct limefs_node *from, const char *name,
                            struct limefs_node *to, const char *new_name, bool exchanged)
{
    int err = 0;
    limefs_lock(&fs->lock);
    struct limefs_node *node = limefs_node_find_child(fs, from, name);
    struct limefs_node *other = limefs_node_find_child(fs, to, new_name);
    if (other && other != node)
        remove_by_name(fs, other);
    if (node)
        err = set_node_name(fs, node, to, new_name);
    if (node && !err)
        retire_name(fs, node, from, name);
    if (!err && exchanged && other)
        err = set_node_name(fs, other, from, name);
    if (!err && exchanged && other)
        retire_name(fs, other, to, new_name);
    limefs_unlock(&fs->lock);
    return err;
}

void limefs_node_note_link(struct limefs *fs, struct limefs_node *parent, const char *name,
                           const struct stat *st)
{
    struct limefile_identity stamp = limefile_identify(st);
    limefs_lock(&fs->lock);
    struct limefs_node *node = find_file(fs, &stamp);
    if (node && !limefs_node_find_child(fs, parent, name))
        set_node_name(fs, node, parent, name);
    limefs_unlock(&fs->lock);
}

void limefs_node_note_attributes(struct limefs *fs, struct limefs_node *node,
                                 const struct stat *st)
{
    struct limefile_identity stamp = limefile_identify(st);
    limefs_lock(&fs->lock);
    if (node->kind == LIMEFS_CONTAINER ||
        S_ISLNK(node->stamp.mode)) { /* a container may be a plain file now */
        node->is_certain = node->is_certain && limefile_identity_equal(&node->stamp, &stamp);
        node->stamp = stamp;
    }
    limefs_unlock(&fs->lock);
}

bool limefs_node_find_kind(struct limefs *fs, struct limefs_node *parent, const char *name,
                           struct limefs_tree_entry *found)
{
    struct limefile_identity stamp = limefile_identify(&found->st);
    limefs_lock(&fs->lock);
    const struct limefs_node *node = limefs_node_find_child(fs, parent, name);
    if (!node)
        node = find_file(fs, &stamp);
    bool is_certain = node && node->is_certain && limefile_identity_equal(&node->stamp, &stamp);
    bool by_mkdir = node && node->container.made_by_mkdir &&
                    limefile_identity_same_file(&node->container.mkdir_identity, &stamp);
    bool known =
        is_certain || by_mkdir ||
        (node && node->plain.writers && limefile_identity_same_file(&node->stamp, &stamp));
    if (known) {
        found->kind = node->kind;
        found->is_certain = is_certain;
    }
    limefs_unlock(&fs->lock);
    return known;
}

/* ---- names to look up while a directory is listed ---- */

static void count_lookup(struct limefs *fs, struct limefs_node *directory)
{
    if (directory->dir.listed && ++directory->dir.lookups >= LOOKUPS_TO_PREFETCH) {
        directory->dir.prefetch_lists = PREFETCH_LISTS;
        fs->last_lookup = limefs_clock_seconds();
    }
}

void limefs_node_count_lookup(struct limefs *fs, struct limefs_node *directory)
{
    limefs_lock(&fs->lock);
    count_lookup(fs, directory);
    limefs_unlock(&fs->lock);
}

/* Locks fs->lock before it reads node->parent: others may move the node and free its parent. */
void limefs_node_count_open(struct limefs *fs, const struct limefs_node *node)
{
    limefs_lock(&fs->lock);
    if (node->parent)
        count_lookup(fs, node->parent);
    limefs_unlock(&fs->lock);
}

int limefs_inodes_init(struct limefs *fs, enum limefs_node_kind root_kind,
                       const struct stat *root)
{
    fs->inodes.name_buckets = 64;
    fs->inodes.names = calloc(fs->inodes.name_buckets, sizeof(struct limefs_node *));
    if (!fs->inodes.names)
        return -ENOMEM;
    fs->inodes.root = create_node(fs, NULL, "", root_kind);
    if (!fs->inodes.root)
        return -ENOMEM;
    fs->inodes.root->stamp = limefile_identify(root);
    fs->source_dev = root->st_dev;
    return 0;
}

void limefs_inodes_release(struct limefs *fs)
{
    for (uint32_t i = 0; i < fs->inodes.slot_count; i++)
        if (fs->inodes.slots[i].use == LIMEFS_SLOT_NODE)
            free_node(fs->inodes.slots[i].object);
    free(fs->inodes.slots);
    free(fs->inodes.names);
    free(fs->inodes.nodes);
}
