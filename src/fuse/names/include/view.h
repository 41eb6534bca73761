/*
 * view.h - a container as it was at one moment: its index and its descriptor.
 *
 * When the container changes, the next look-up makes a new view with a new slot, so the
 * kernel's cached pages and names of the old one are never taken for the new. A view without
 * users may be put to sleep (closed, its index freed); it wakes up only if the container is
 * still the same.
 *
 * Only what this mount itself writes (writer.h) changes a view: records keep their numbers, as
 * the kernel's pages of them are right, and the view gets another index.
 */
#ifndef LIMEFS_VIEW_H
#define LIMEFS_VIEW_H

#include "inode.h"
#include "limefile.h"

/* A record of that ordinal is another than before: the old one was removed, or the kernel's
 * pages of it are wrong. It has another node id then: a kernel that is told of another
 * generation of an id gives EIO for the inode that it has, and where a list that was read
 * before the change comes late, that is the new one. */
struct limefs_anew {
    struct limefs_anew *next;
    uint64_t ordinal, generation;
    unsigned times; /* that it became another */
};

/* Those that the kernel was told of the records of a mount that is written to (mtimes.c). */
struct limefs_mtimes {
    struct timespec *times;
    size_t count; /* so far */
};

/* Whether the times of a view's file tell that it is still what was indexed. */
enum limefs_view_state {
    LIMEFS_VIEW_VALID,   /* any change gives it other times */
    LIMEFS_VIEW_YOUNG,   /* it may be changed with the same ctime, or was by this mount */
    LIMEFS_VIEW_SUSPECT, /* it may be changed with the same ctime and mtime */
    LIMEFS_VIEW_WRITTEN, /* locked and written to by this mount: it is what the mount makes it
                          */
};

enum limefs_view_answer {
    LIMEFS_VIEW_SHOWN,
    LIMEFS_VIEW_TO_CHECK, /* valid from now on if its headers are still those of the index */
    LIMEFS_VIEW_CHANGED,  /* another view is made */
};

struct limefs_view {
    uint32_t slot;
    uint64_t id;              /* never used twice */
    struct limefs_node *node; /* the container; a reference */

    /* Guarded by fs->lock. */
    struct stat st; /* of the container then */
    struct limefile_identity stamp;
    struct limefile_identity
        settled; /* if that is the file's, its headers are those of the index;
                  * 0: not sure yet, as its ctime was young then, too */
    enum limefs_view_state state;
    struct limefs_mtimes mtimes;
    uint64_t lookups; /* the kernel's, of all records together */
    uint64_t asked;   /* records that were looked up by name so far */
    unsigned pins; /* files open and operations in progress; awake as long as there are any */
    struct limefs_view *newer, *older; /* in the list of those that are awake */
    uint64_t moves; /* odd: the name leads to this file or to the one that takes its place */
    bool rewritten; /* it is another file by now */
    bool lost;      /* ranks elsewhere had written, and gone before they had synced */
    struct limefs_writer *_Atomic writer; /* NULL if it never was; stays as long as the view */
    struct limefs_job_view *_Atomic job;  /* the job's part of it; set before it */
    struct limefs_anew *anew;
    uint64_t changes;                     /* how often the watches were told of one */
    struct limefs_proofs *_Atomic proofs; /* verify.h; NULL if nobody has asked, or none hold */
    struct limefs_fields *fields;         /* faces.h; NULL if nobody has asked, or none hold */

    /* Taken by whoever reads what describes its records: one at a time. */
    struct limefs_lock describing;

    /* Set while it is awake. */
    int fd;
    struct limefile_index *index; /* under fs->lock, too: limefs_view_index() */
    /* NULL, or it is a configuration in another format, shown as the container that it would
     * be (limegauge.h): that is what the index is of. It is never written to. */
    struct limefile_gauge_guise *guise;
};

/*
 * Whether a view still shows what its name leads to:
 *   state     the file         clock, by which it was looked at           answer
 *   WRITTEN   is the same      -                                          shown
 *   not       is unchanged in all attributes (limefile_validity())
 *   VALID                      -                                          shown
 *   YOUNG                      within a tick of the ctime,                shown
 *   SUSPECT                    or while being written                     shown
 *   YOUNG                      later                                      to check
 *   SUSPECT                    later                                      changed
 *   any       else             -                                          changed
 */
enum limefs_view_answer limefs_view_judge(enum limefs_view_state,
                                          const struct limefile_identity *seen,
                                          const struct limefile_identity *now,
                                          const struct timespec *clock, bool being_written);

/* The container as it is now, pinned. -errno: also when it is a container no longer. */
int limefs_view_current(struct limefs *, struct limefs_node *container, struct limefs_view **);

/* The same, and its record of that name. */
int limefs_view_find(struct limefs *, struct limefs_node *container, const char *name,
                     struct limefs_view **, struct limefile_record *);

/* Nothing is there by that name: a view of what was there is of no use any more. */
void limefs_view_gone(struct limefs *, struct limefs_node *parent, const char *name);

/* Pins a view that the kernel knows, waking it up. -ESTALE if the container has changed. */
int limefs_view_pin(struct limefs *, struct limefs_view *);
void limefs_view_unpin(struct limefs *, struct limefs_view *);
void limefs_view_hold(struct limefs *,
                      struct limefs_view *); /* one pin more, of a pinned one */

/* The kernel looks up, or forgets, n of its records. */
void limefs_view_lookup(struct limefs *, struct limefs_view *, uint64_t n);
void limefs_view_forget(struct limefs *, struct limefs_view *, uint64_t n);

/* n more records have been looked up by name: how many that makes. */
uint64_t limefs_view_asked(struct limefs *, struct limefs_view *, uint64_t n);

/* The index of a pinned view; the caller gives it back by limefile_index_free(). */
struct limefile_index *limefs_view_index(struct limefs *, struct limefs_view *);

/* The attributes of its container. */
struct stat limefs_view_stat(struct limefs *, const struct limefs_view *);

/* The same of a pinned view, but owner, mode and times are as they are now. */
struct stat limefs_view_stat_now(struct limefs *, const struct limefs_view *);

/* A record of a pinned view as it can be read right now. -ESTALE if the container was changed
 * in place so that it is not sure to be the same record. *checked, if not NULL, remembers
 * the last answer for an open file. */
int limefs_view_check(struct limefs *, struct limefs_view *, const struct limefile_record *,
                      struct limefile_identity *checked);

/* A pinned view's container is as this mount has made it, or has seen it last. */
bool limefs_view_is_known(struct limefs *, const struct limefs_view *);

/* The same, after another look at its headers where that is needed to tell. */
bool limefs_view_settle(struct limefs *, struct limefs_view *);

/* What a pinned view's file is like if its records are sure to be those of the view; else 0. */
struct limefile_identity limefs_view_settled(struct limefs *, const struct limefs_view *);

/* Its file is what it was when it was indexed, attributes and all, so that its name still leads
 * to it: a file's ctime changes when its name is taken away. False if that is not sure. */
bool limefs_view_is_unchanged(struct limefs *, const struct limefs_view *);

/* ---- who wants to know of views ---- */

/* Called with fs->lock held; NULL: no matter. */
struct limefs_view_watch {
    void (*changed)(struct limefs_view *); /* what it shows is another, or is about to be */
    void (*asleep)(struct limefs_view *);  /* nobody uses it: what takes memory is to go */
    void (*freed)(struct limefs_view *);
};

/* Before the first view; the watch is static. At most LIMEFS_WATCHES_MAX. */
void limefs_view_watch(struct limefs *, const struct limefs_view_watch *);

/* The bytes of the container have changed, or are about to, and its index has not. */
void limefs_view_changed(struct limefs *, struct limefs_view *);

/* A number that is another one after each change of what the view shows. */
uint64_t limefs_view_changes(struct limefs *, const struct limefs_view *);

/* ---- for the writer, who has it pinned ---- */

/* From now on (or no longer) the container changes by us alone. */
void limefs_view_set_written(struct limefs *, struct limefs_view *, bool written);

/* This is its index now; taken over. */
void limefs_view_show(struct limefs *, struct limefs_view *, struct limefile_index *);

/* Ranks on other hosts have written to the view of that id what nobody knows to be on a disk;
 * and whether that is so of one, which is told once. */
void limefs_view_lose(struct limefs *, uint64_t id);
bool limefs_view_take_loss(struct limefs *, struct limefs_view *);

/* It no longer shows the container: the next look makes another one. */
void limefs_view_distrust(struct limefs *, struct limefs_view *);

/* The kernel is told that time of its records; and whether it was, ever. */
void limefs_view_tells_mtime(struct limefs *, struct limefs_view *, const struct timespec *);
bool limefs_view_told_mtime(struct limefs *, const struct limefs_view *,
                            const struct timespec *);

/* Its times were set: its file's attributes are taken as they are now. */
void limefs_view_touched(struct limefs *, struct limefs_view *);

/* Soon, for a moment, its name leads to another file than fd; that is our own doing. */
void limefs_view_set_moving(struct limefs *, struct limefs_view *, bool moving);

/* The container is another file now, which fd has open. */
int limefs_view_move(struct limefs *, struct limefs_view *, int fd);

/* What the kernel knows of the ordinal's record is no longer so: it will look it up as another
 * one. */
int limefs_view_renew(struct limefs *, struct limefs_view *, uint64_t ordinal);

/* The node id of the ordinal's record as it is now. */
uint64_t limefs_view_inode(struct limefs *, const struct limefs_view *, uint64_t ordinal);

/* limefs_inode_find(), but without a record that was removed or is another by now. */
struct limefs_inode limefs_inode_now(struct limefs *, uint64_t id);

/* What tells records of the same ordinal apart. */
uint64_t limefs_view_generation(struct limefs *, const struct limefs_view *, uint64_t ordinal);

/* Closes and frees all views. */
void limefs_views_release(struct limefs *);

/* Whether the log has why a file could not be opened as a container: what is in it, or that it
 * could not be read. */
bool limefs_view_has_told(int err);

/* ---- its file ---- */

/* Where the bytes of a pinned view's container are read; `fd` is room for it. */
struct limefile_source *limefs_view_source(const struct limefs_view *, struct limefile_fd *fd);

/* 0, or -errno of what could not be read: there may be more records than the index knows. */
int limefs_index_unread(const struct limefile_index *);

#endif
