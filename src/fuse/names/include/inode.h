/*
 * inode.h - the nodes and ids by which the kernel knows files, records and exports.
 *
 * A FUSE node id is (number << 58 | slot << 32 | ordinal). A slot stands for a node (a
 * directory, container or other file of the tree), whose ordinal is 0; or for a snapshot of a
 * container (snapshot.h), whose records have the ordinals from 1; or for an export of a record
 * (exports.h), whose files have the ordinals from 1. So records cost no memory, however many
 * the kernel has looked up. The number differs between records that had the same ordinal one
 * after the other (snapshot.h); all other ids have number 0. The root has id 1, as FUSE
 * requires, and slot 0.
 *
 * A node exists while the kernel has lookups of it or the daemon has references to it. A
 * snapshot exists while the kernel has lookups of it, or it is pinned or open.
 */
#ifndef LIMEFS_INODE_H
#define LIMEFS_INODE_H

#include "limefs.h"

enum limefs_node_kind {
    LIMEFS_DIRECTORY,
    LIMEFS_CONTAINER,
    LIMEFS_PLAIN, /* anything else: a regular file, a symbolic link, a socket ... */
};

/* How the bytes of a plain file compare with those that the kernel knows. If they differ, the
 * next program that opens the file gets a new node. */
enum limefs_bytes_state {
    LIMEFS_BYTES_AS_REPORTED,
    LIMEFS_BYTES_GROWN, /* the file is longer; kernel_notify.h notifies the kernel */
    LIMEFS_BYTES_MOVED, /* some bytes have other offsets; append.h translates these */
};

/* What a name in a tree stands for. */
struct limefs_tree_entry {
    struct stat st;
    enum limefs_node_kind kind;
    /* The kind is certain as long as the file keeps these attributes: the daemon read the file
     * more than a clock tick after its latest change, while no process was writing to it. */
    bool is_certain;
};

struct limefs_node_name {
    struct limefs_node_name *next;
    struct limefs_node *parent; /* a reference; NULL: a former name */
    char name[];
};

/* Times of a plain file when its node was made, or after this mount's latest change of it. */
struct limefs_known_times {
    double created; /* when the node was made */
    struct timespec mtime, ctime;
    /* Number of this mount's changes of data or times; how many mtime and ctime include. */
    unsigned changes, noted_changes;
    unsigned pending_changes;     /* number of calls that are changing the times now */
    struct timespec kernel_mtime; /* the one that the kernel set last, if it was "now"; or 0 */
    bool has_new_data;            /* data was written since the kernel last set an mtime */
};

/* A file that is not a container. */
struct limefs_plain_node {
    struct limefile_identity cached_identity; /* of the data in the kernel's page cache */
    bool cached_is_ours;                      /* this mount made the last change to the data */
    off_t kernel_size;                        /* the size that the kernel knows */
    struct limefs_known_times known;
    enum limefs_bytes_state bytes; /* compared with what the kernel knows */
    unsigned writers;              /* number of open files that can write */
    unsigned appenders;            /* how many of the writers only append (append.h) */
    /* No writer was opened, and none wrote, since the latest close(2): all data has arrived. */
    bool flushed;
    bool was_opened; /* the kernel may have cached its bytes */
    struct limefs_append *_Atomic append;
};

struct limefs_container_node {
    bool made_by_mkdir; /* made by mkdir: a container even while it is empty */
    struct limefile_identity mkdir_identity; /* the file that mkdir made, or its replacement */
    struct limefs_snapshot *snap;            /* the newest snapshot; not a reference */
    struct limefile_identity reported_fault; /* the file when its fault was logged (io_lock) */
};

struct limefs_directory_node {
    bool listed;             /* it has been listed */
    unsigned lookups;        /* of names, and opens of containers, since its latest listing */
    unsigned prefetch_lists; /* so many listings to come also look names up (ops/dir.c) */
};

struct limefs_node {
    uint32_t slot;
    uint64_t id; /* never used again, unlike a slot */
    enum limefs_node_kind kind;
    struct limefs_node *parent;     /* NULL for the root */
    const char *name;               /* in parent; of several, the one that was looked up last */
    struct limefs_node_name *names; /* current and former ones */
    uint64_t lookups;
    unsigned references; /* by names of children, by snapshots, and by mkdir */
    bool in_name_table;  /* it is found by parent and name */
    struct limefs_node *next;
    bool in_file_table; /* LIMEFS_PLAIN: it is found by device and inode number */
    struct limefs_node *next_file;

    struct limefile_identity stamp; /* of the file, as last reported to the kernel */
    bool is_certain;                /* a file with this stamp is certainly of this kind */

    /* One for each kind. Flags and counts of a kind that the node does not have are 0. */
    struct limefs_plain_node plain;
    struct limefs_container_node container;
    struct limefs_directory_node dir;

    /* Acquired (before fs->lock) to open and index a container, or set a plain file's times. */
    struct limefs_lock io_lock;
};

enum limefs_slot_use {
    LIMEFS_SLOT_FREE,
    LIMEFS_SLOT_NODE,
    LIMEFS_SLOT_SNAPSHOT,
    LIMEFS_SLOT_EXPORT,
};

struct limefs_slot {
    enum limefs_slot_use use;
    uint32_t next_free;
    void *object; /* struct limefs_node, limefs_snapshot or limefs_export */
};

/* Creates the tables and the root node. Returns 0 or -ENOMEM. */
int limefs_inodes_init(struct limefs *, enum limefs_node_kind root_kind,
                       const struct stat *root);
void limefs_inodes_release(struct limefs *); /* frees nodes, not snapshots */

/* What a node id stands for: at most one of the three pointers is set. */
struct limefs_inode {
    struct limefs_node *node;
    struct limefs_snapshot *snap;
    struct limefs_export *export;
    uint64_t ordinal; /* in the snapshot or the export */
    bool is_stale; /* set by limefs_inode_find_current(): the record was removed or replaced */
};
struct limefs_inode limefs_inode_find(struct limefs *, uint64_t id);

struct limefs_node *limefs_inode_find_node(struct limefs *, uint64_t id);
uint64_t limefs_inode_node_id(const struct limefs_node *);
uint64_t limefs_inode_record_id(uint32_t slot, unsigned number, uint64_t ordinal);
uint64_t limefs_inode_export_id(uint32_t slot, uint64_t ordinal);

/* Return the inode numbers that programs see, of 32 bits with -o ino32. All files of a mount
 * have the same device number, and programs take files that also have the same inode number for
 * one file. So files of another file system that is mounted in the tree, and records, get
 * distinct numbers. The numbers of a container's records rise with their ordinals, because
 * programs that copy a directory read its files in the order of their inode numbers. */
ino_t limefs_visible_ino(const struct limefs *, uint64_t dev, uint64_t ino);
ino_t limefs_visible_record_ino(const struct limefs *, const struct stat *container,
                                uint64_t ordinal);

/* Like limefs_visible_record_ino(), for a file of a record's export. `export`: a number that
 * differs between the exports of a record. entry: the file's ordinal in the export. */
ino_t limefs_visible_export_ino(const struct limefs *, const struct stat *container,
                                uint64_t ordinal, unsigned export, uint64_t entry);

/* The caller holds fs->lock. limefs_slot_allocate() returns 0 or -ENOMEM. */
int limefs_slot_allocate(struct limefs *, enum limefs_slot_use, void *object, uint32_t *slot);
void limefs_slot_free(struct limefs *, uint32_t slot);
void limefs_node_get(struct limefs_node *);
void limefs_node_put(struct limefs *, struct limefs_node *);

/* Returns the child that is known by that name, or NULL. The caller holds fs->lock. */
struct limefs_node *limefs_node_find_child(struct limefs *, struct limefs_node *parent,
                                           const char *name);

/* Returns the node of the child that was found by this name, with one more lookup. If the name
 * stood for another file or kind before, the node is a new one. A plain file with several names
 * is one node, with the name that was looked up last. NULL: out of memory. */
struct limefs_node *limefs_node_lookup_child(struct limefs *, struct limefs_node *parent,
                                             const char *name,
                                             const struct limefs_tree_entry *);

/* Called if the name of a plain file no longer leads to it. Makes name i of the node's stored
 * names the node's name, unless another node has that name. Returns false if i is too high. */
bool limefs_node_use_name(struct limefs *, struct limefs_node *, unsigned i);

/* Makes lookups ignore the node with this inode number. The node's file no longer exists or has
 * no name, so a new file has the number or may get it. */
void limefs_node_forget_file(struct limefs *, const struct limefile_identity *);

/* Returns true if *st is of the file (by inode number) that the kernel knows by the node. */
bool limefs_node_is_file(struct limefs *, const struct limefs_node *, const struct stat *);

/* Returns true if the node can stand for the file at its path, with the attributes *st. Any
 * container can replace a container; another directory or plain file needs a new node. */
bool limefs_node_is_current(struct limefs *, const struct limefs_node *, const struct stat *);

/* Note that mkdir made the child, and that the child was removed. The child is an empty file,
 * which counts as a container because mkdir made it. limefs_node_note_mkdir(): 0 or -ENOMEM. */
int limefs_node_note_mkdir(struct limefs *, struct limefs_node *parent, const char *name,
                           const struct stat *);
void limefs_node_note_rmdir(struct limefs *, struct limefs_node *parent, const char *name);

/* Notes that a child was renamed or, if `exchanged`, two were exchanged. 0 or -ENOMEM. */
int limefs_node_note_rename(struct limefs *, struct limefs_node *from, const char *name,
                            struct limefs_node *to, const char *new_name, bool exchanged);

/* Notes the new name of a file that the kernel may know by another one. */
void limefs_node_note_link(struct limefs *, struct limefs_node *parent, const char *name,
                           const struct stat *);

/* Notes attributes that this mount has changed, or that the kernel is about to receive. */
void limefs_node_note_attributes(struct limefs *, struct limefs_node *, const struct stat *);

/* If the kind of the child with the attributes found->st is known, sets found->kind and
 * is_certain, and returns true. It is known if mkdir made the file or this mount writes it. */
bool limefs_node_find_kind(struct limefs *, struct limefs_node *parent, const char *name,
                           struct limefs_tree_entry *);

/* Count, for a directory, a lookup of a name in it, and an open of a container in it. After
 * several of these, listings of the directory also look its names up (ops/dir.c). */
void limefs_node_count_lookup(struct limefs *, struct limefs_node *directory);
void limefs_node_count_open(struct limefs *, const struct limefs_node *);

/* Drops n lookups of a node by the kernel, and frees the node if nothing else holds it. */
void limefs_node_forget(struct limefs *, struct limefs_node *, uint64_t n);

#endif
