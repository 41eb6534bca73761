/*
 * inode.h - what the kernel knows by number.
 *
 * A FUSE node id is (number << 58 | slot << 32 | ordinal). A slot is a node (a directory, a
 * container or another file of the tree: ordinal 0), a view of a container, whose records are
 * the ordinals from 1, or a face of a record (faces.h), whose files are the ordinals from 1. So
 * records cost no memory, however many the kernel has looked up. The number tells records apart
 * that had the same ordinal one after the other (view.h); it is 0 for all others. The root is
 * node 1, as FUSE wants it, and has slot 0.
 *
 * The kernel holds a node or view by its lookups; others hold it by references.
 */
#ifndef LIMEFS_INODE_H
#define LIMEFS_INODE_H

#include "limefs.h"

enum limefs_kind {
    LIMEFS_DIRECTORY,
    LIMEFS_CONTAINER,
    LIMEFS_OTHER, /* a file that is no container, a link, a socket ... */
};

/* The bytes of a plain file, as the kernel has been told of them, and as they are. Whoever
 * opens one that is not as told gets another node. */
enum limefs_bytes {
    LIMEFS_AS_TOLD,
    LIMEFS_GROWN, /* more have come, and the kernel follows (follow.h) */
    LIMEFS_MOVED, /* some are elsewhere: append.c translates */
};

/* What a name of a tree was found to stand for. */
struct limefs_found {
    struct stat st;
    enum limefs_kind kind;
    bool sure; /* so as long as it has those attributes: it was looked into when its last change
                * was older than a tick of the clock */
};

struct limefs_name {
    struct limefs_name *next;
    struct limefs_node *parent; /* a reference; NULL: the node had it once */
    char name[];
};

/* A plain file below, when its node was made, or after our own last change (told.h). */
struct limefs_known {
    double since; /* the node was made */
    struct timespec mtime, ctime;
    unsigned changes, noted; /* after the first `noted` changes by this mount, */
    unsigned changing;       /* of which so many are being made */
    struct timespec kernels; /* mtime that it told, where that was its now; else 0 */
    bool written;            /* since then */
};

/* A file that is no container. */
struct limefs_plain {
    struct limefile_identity cached; /* of the data in the kernel's page cache, */
    bool cached_is_ours;             /* that were written through this mount */
    off_t told_bytes;                /* the size that the kernel knows */
    struct limefs_known known;
    enum limefs_bytes bytes; /* how they stand to what the kernel believes */
    unsigned writers;        /* files open for writing; of these, */
    unsigned appenders;      /* to append only (append.h) */
    bool flushed;            /* close(2) was called since the last of them was opened or
                              * wrote: what they wrote has come */
    bool opened;             /* the kernel may have its bytes */
    struct limefs_append *_Atomic append;
};

struct limefs_container_node {
    bool fresh; /* made by mkdir, and held until it looks like a container: */
    struct limefile_identity made; /* this file */
    struct limefs_view *view;      /* the newest; no reference */
    struct limefile_identity told; /* whose fault the log has; under `work` */
};

struct limefs_directory_node {
    bool listed;    /* since then, so many of its names */
    unsigned looks; /* were looked up or entered; so many more times */
    unsigned ahead; /* they are looked up as it is listed (ops/dir.c) */
};

struct limefs_node {
    uint32_t slot;
    uint64_t id; /* never used twice; a slot is */
    enum limefs_kind kind;
    struct limefs_node *parent; /* NULL for the root */
    const char *name;           /* in parent: of several, the one that was looked up last */
    struct limefs_name *names;  /* that it has, or had */
    uint64_t lookups;
    unsigned references; /* children and views */
    bool hashed;         /* its name still leads to it */
    struct limefs_node *next;
    bool filed; /* LIMEFS_OTHER: it is found by its file's number */
    struct limefs_node *next_file;

    struct limefile_identity stamp; /* of the file, when the kernel was last told of it; */
    bool sure;                      /* with it, it is of that kind */

    /* By kind; those of the other kinds are zero. */
    struct limefs_plain plain;
    struct limefs_container_node container;
    struct limefs_directory_node dir;

    /* Taken, before fs->lock, by whoever opens and indexes the container, or sets when the
     * plain file below was last changed: one at a time. */
    struct limefs_lock work;
};

enum limefs_slot_use {
    LIMEFS_SLOT_FREE,
    LIMEFS_SLOT_NODE,
    LIMEFS_SLOT_VIEW,
    LIMEFS_SLOT_FACE,
};

struct limefs_slot {
    enum limefs_slot_use use;
    uint32_t next_free;
    void *what; /* struct limefs_node, limefs_view or limefs_face */
};

int limefs_inodes_init(struct limefs *, enum limefs_kind root_kind, const struct stat *root);
void limefs_inodes_release(struct limefs *); /* frees nodes, not views */

/* What a node id from the kernel stands for: one of them, or none. */
struct limefs_inode {
    struct limefs_node *node;
    struct limefs_view *view;
    struct limefs_face *face;
    uint64_t ordinal; /* in the view or the face */
    bool gone;        /* by limefs_inode_now(): it was a record */
};
struct limefs_inode limefs_inode_find(struct limefs *, uint64_t id);

struct limefs_node *limefs_inode_node(struct limefs *, uint64_t id);
uint64_t limefs_inode_of_node(const struct limefs_node *);
uint64_t limefs_inode_of_record(uint32_t slot, unsigned number, uint64_t ordinal);
uint64_t limefs_inode_of_face(uint32_t slot, uint64_t ordinal);

/* An inode number as programs see it (-o ino32): of a file below, distinct from those of other
 * file systems that are mounted in the tree, as a mount has one device number, and two files of
 * one number are one for programs; and of a record: the same in every mount, distinct from
 * those of files. It rises from record to record: programs that copy a directory take its files
 * by their numbers. */
ino_t limefs_shown_inode(const struct limefs *, uint64_t dev, uint64_t ino);
ino_t limefs_shown_record(const struct limefs *, const struct stat *container,
                          uint64_t ordinal);

/* The same for the files of a record's face, `face` a number for each name that it can have;
 * distinct from those of records, too. */
ino_t limefs_shown_face(const struct limefs *, const struct stat *container, uint64_t ordinal,
                        unsigned face, uint64_t entry);

/* With fs->lock held: */
int limefs_slot_take(struct limefs *, enum limefs_slot_use, void *what, uint32_t *slot);
void limefs_slot_give(struct limefs *, uint32_t slot);
void limefs_node_hold(struct limefs_node *);
void limefs_node_drop(struct limefs *, struct limefs_node *);

/* The child known by that name, or NULL; with fs->lock held. */
struct limefs_node *limefs_node_find(struct limefs *, struct limefs_node *parent,
                                     const char *name);

/*
 * The child of that name, kind and file, with one more lookup; a new one when the name
 * now stands for something else. A file with several names is one node, which has the name that
 * was looked up last. NULL if there is no memory.
 */
struct limefs_node *limefs_node_child(struct limefs *, struct limefs_node *parent,
                                      const char *name, const struct limefs_found *);

/* One that is not found by its name is to be looked for by its i-th one, old or new, from 0 on.
 * False: it never had so many. */
bool limefs_node_turn(struct limefs *, struct limefs_node *, unsigned i);

/* What is known by that file's number is not it: it has just been made, or its last name was
 * removed, and the number may be used again. */
void limefs_node_unfile(struct limefs *, const struct limefile_identity *);

/* True if those are attributes of the very file that the kernel was last told of. */
bool limefs_node_is(struct limefs *, const struct limefs_node *, const struct stat *);

/* True if what the node's path leads to is what it stood for when it was looked up. False for
 * another directory or file in its place, which is another node; containers are all the same.
 */
bool limefs_node_stands(struct limefs *, const struct limefs_node *, const struct stat *);

/* The child of that name has been made, this file, an empty container; it is one for as long as
 * it is empty, though nothing in it says so. Then, it has been removed. */
int limefs_node_made(struct limefs *, struct limefs_node *parent, const char *name,
                     const struct stat *);
void limefs_node_unmade(struct limefs *, struct limefs_node *parent, const char *name);

/* A child has got another name, or two have changed theirs. */
int limefs_node_moved(struct limefs *, struct limefs_node *from, const char *name,
                      struct limefs_node *to, const char *new_name, bool exchanged);

/* A file that may be known by another of its names has got that one. */
void limefs_node_named(struct limefs *, struct limefs_node *parent, const char *name,
                       const struct stat *);

/* The node's file is, by our own doing, like this now; or the kernel is told so. */
void limefs_node_touched(struct limefs *, struct limefs_node *, const struct stat *);

/* Whether the kind of the child with the attributes found->st is known; then it is set. A file
 * that is being written to is what it was, and not for sure; so is one that was made as a
 * container. */
bool limefs_node_known_kind(struct limefs *, struct limefs_node *parent, const char *name,
                            struct limefs_found *);

/* A name was looked up in a directory; one of its containers was entered. Where that happens
 * often, names are looked up as they are listed (ops/dir.c). */
void limefs_node_looked_in(struct limefs *, struct limefs_node *directory);
void limefs_node_entered(struct limefs *, const struct limefs_node *);

/* The kernel forgets n lookups of a node. */
void limefs_node_forget(struct limefs *, struct limefs_node *, uint64_t n);

#endif
