/*
 * inode.h - the nodes and ids by which the kernel knows files, records and exports.
 *
 * A FUSE node id is (number << 58 | slot << 32 | ordinal). A slot is a node (a directory, a
 * container or another file of the tree; ordinal 0), a snapshot of a container (snapshot.h),
 * whose records are the ordinals from 1, or an export of a record (struct limefs_export,
 * exports.h), whose files are the ordinals from 1. So records cost no memory, however many the
 * kernel has looked up. The number distinguishes records that had the same ordinal one after
 * another (snapshot.h); it is 0 for all others. The root is node 1, as FUSE requires, and has
 * slot 0.
 *
 * A node or snapshot exists while the kernel has lookups of it, or the daemon has references to
 * the node or pins of the snapshot.
 */
#ifndef LIMEFS_INODE_H
#define LIMEFS_INODE_H

#include "limefs.h"

enum limefs_node_kind {
    LIMEFS_DIRECTORY,
    LIMEFS_CONTAINER,
    LIMEFS_PLAIN, /* a file that is not a container, a link, a socket ... */
};

/* How the bytes of a plain file compare with those that the kernel knows. A program that opens
 * a file with other bytes gets a new node. */
enum limefs_bytes_state {
    LIMEFS_BYTES_AS_REPORTED,
    LIMEFS_BYTES_GROWN, /* the file has become longer: kernel_notify.h notifies the kernel */
    LIMEFS_BYTES_MOVED, /* some bytes have other offsets: append.c translates */
};

/* What a name in a tree stands for. */
struct limefs_tree_entry {
    struct stat st;
    enum limefs_node_kind kind;
    /* The kind is certain while the file has these attributes: it was read more than a clock
     * tick after its last change, while no process wrote to it. */
    bool is_certain;
};

struct limefs_node_name {
    struct limefs_node_name *next;
    struct limefs_node *parent; /* a reference; NULL: a former name */
    char name[];
};

/* Times of a plain file when its node was made, or after this mount's last change
 * (kernel_mtime.h). */
struct limefs_known_times {
    double created; /* when the node was made */
    struct timespec mtime, ctime;
    /* Changes of data or times by this mount; how many of them mtime and ctime include. */
    unsigned changes, noted_changes;
    unsigned pending_changes;     /* calls that are changing the times now */
    struct timespec kernel_mtime; /* last set by the kernel, if that was "now"; or 0 */
    bool has_new_data;            /* data was written since the kernel last set an mtime */
};

/* A file that is not a container. */
struct limefs_plain_node {
    struct limefile_identity cached_identity; /* of the data in the kernel's page cache */
    bool cached_is_ours;                      /* this mount made the last change to the data */
    off_t kernel_size;                        /* the size that the kernel knows */
    struct limefs_known_times known;
    enum limefs_bytes_state bytes; /* compared with what the kernel knows */
    unsigned writers;              /* files open for writing */
    unsigned appenders;            /* those of them that only append (append.h) */
    /* close(2) was called since a writer was last opened or wrote: all its data has arrived. */
    bool flushed;
    bool was_opened; /* the kernel may have cached its bytes */
    struct limefs_append *_Atomic append;
};

struct limefs_container_node {
    bool made_by_mkdir; /* made by mkdir: a container even while it is empty */
    struct limefile_identity mkdir_identity; /* the file that mkdir made, or its replacement */
    struct limefs_snapshot *snap;            /* the newest snapshot; not a reference */
    struct limefile_identity reported_fault; /* file whose fault was logged; under io_lock */
};

struct limefs_directory_node {
    bool listed;             /* it has been listed */
    unsigned lookups;        /* lookups of names and opens of containers since then */
    unsigned prefetch_lists; /* number of next listings that also look names up (ops/dir.c) */
};

struct limefs_node {
    uint32_t slot;
    uint64_t id; /* never used again, unlike a slot */
    enum limefs_node_kind kind;
    struct limefs_node *parent;     /* NULL for the root */
    const char *name;               /* in parent; if it has several, the last one looked up */
    struct limefs_node_name *names; /* current and former ones */
    uint64_t lookups;
    unsigned references; /* children and snapshots */
    bool in_name_table;  /* it is found by parent and name */
    struct limefs_node *next;
    bool in_file_table; /* LIMEFS_PLAIN: it is found by device and inode number */
    struct limefs_node *next_file;

    struct limefile_identity stamp; /* of the file, as last reported to the kernel */
    bool is_certain;                /* a file with this stamp is certainly of this kind */

    /* One for each kind; flags and counts of the others are 0. */
    struct limefs_plain_node plain;
    struct limefs_container_node container;
    struct limefs_directory_node dir;

    /* Held by a thread that opens and indexes the container, or sets the times of the plain
     * file. Acquired before fs->lock. */
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
 * have one device number, and programs take files with the same inode number for one file: so
 * files of another file system that is mounted in the tree get distinct numbers. A record has
 * the same number in every mount, distinct from those of files. It rises from record to record,
 * because programs that copy a directory read its files in the order of their inode numbers. */
ino_t limefs_visible_ino(const struct limefs *, uint64_t dev, uint64_t ino);
ino_t limefs_visible_record_ino(const struct limefs *, const struct stat *container,
                                uint64_t ordinal);

/* The same for a file of a record's export, distinct from those of records, too. `export`: a
 * number that differs between exports of a record; entry: the file's ordinal in the export. */
ino_t limefs_visible_export_ino(const struct limefs *, const struct stat *container,
                                uint64_t ordinal, unsigned export, uint64_t entry);

/* The caller holds fs->lock. limefs_slot_allocate() returns 0 or -ENOMEM. */
int limefs_slot_allocate(struct limefs *, enum limefs_slot_use, void *object, uint32_t *slot);
void limefs_slot_free(struct limefs *, uint32_t slot);
void limefs_node_get(struct limefs_node *);
void limefs_node_put(struct limefs *, struct limefs_node *);

/* Returns the child known by that name, or NULL. The caller holds fs->lock. */
struct limefs_node *limefs_node_find_child(struct limefs *, struct limefs_node *parent,
                                           const char *name);

/* Returns the child of that name, kind and file, with one more lookup. If the name now stands
 * for something else, the child is a new node. A file with several names is one node, with the
 * name that was looked up last. NULL: out of memory. */
struct limefs_node *limefs_node_lookup_child(struct limefs *, struct limefs_node *parent,
                                             const char *name,
                                             const struct limefs_tree_entry *);

/* For a plain file that its name no longer leads to: makes the i-th stored name (from 0 on) the
 * node's name, unless another node has it. Returns false if it has no more names. */
bool limefs_node_use_name(struct limefs *, struct limefs_node *, unsigned i);

/* Makes lookups ignore the node that has this inode number: a new file has the number, or may
 * get it, because the last name of the node's file was removed. */
void limefs_node_forget_file(struct limefs *, const struct limefile_identity *);

/* Returns true if *st is of the file (by inode number) that the node was last reported for. */
bool limefs_node_is_file(struct limefs *, const struct limefs_node *, const struct stat *);

/* Returns true if the node can stand for the file at its path, with the attributes *st. Any
 * container can replace a container; another directory or plain file needs a new node. */
bool limefs_node_is_current(struct limefs *, const struct limefs_node *, const struct stat *);

/* Note that mkdir made the child, an empty file that is a container while it is empty, though
 * nothing in it says so; and that it was removed. limefs_node_note_mkdir(): 0 or -ENOMEM. */
int limefs_node_note_mkdir(struct limefs *, struct limefs_node *parent, const char *name,
                           const struct stat *);
void limefs_node_note_rmdir(struct limefs *, struct limefs_node *parent, const char *name);

/* Notes that a child was renamed, or two were exchanged. Returns 0 or -ENOMEM. */
int limefs_node_note_rename(struct limefs *, struct limefs_node *from, const char *name,
                            struct limefs_node *to, const char *new_name, bool exchanged);

/* Notes the new name of a file that the kernel may know by another one. */
void limefs_node_note_link(struct limefs *, struct limefs_node *parent, const char *name,
                           const struct stat *);

/* Notes attributes of the node's file that this mount has changed or the kernel gets now. */
void limefs_node_note_attributes(struct limefs *, struct limefs_node *, const struct stat *);

/* Returns true if the kind of the child with the attributes found->st is known, and sets
 * found->kind and found->is_certain. A file that this mount writes to, or made by mkdir as a
 * container, keeps its kind, but that is not certain. */
bool limefs_node_find_kind(struct limefs *, struct limefs_node *parent, const char *name,
                           struct limefs_tree_entry *);

/* Count a lookup in a directory, and an open of one of its containers. After several of them,
 * listings of the directory also look its names up (ops/dir.c). */
void limefs_node_count_lookup(struct limefs *, struct limefs_node *directory);
void limefs_node_count_open(struct limefs *, const struct limefs_node *);

/* Drops n lookups of a node by the kernel, and frees the node if nothing else holds it. */
void limefs_node_forget(struct limefs *, struct limefs_node *, uint64_t n);

#endif
