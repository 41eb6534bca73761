/*
 * views.h - views, between what makes and finds them (view.c), what keeps some of them open and
 * frees them (awake.c), and what changes them (viewchange.c).
 */
#ifndef LIMEFS_VIEWS_H
#define LIMEFS_VIEWS_H

#include "view.h"

/* ---- awake.c, with fs->lock held ---- */

/* It has a descriptor and an index from now on; it is the last that will be put to sleep. */
void limefs_view_awake(struct limefs *, struct limefs_view *);
void limefs_view_used(struct limefs *, struct limefs_view *);

/* Puts to sleep what is too much. */
void limefs_views_evict(struct limefs *);

/* The node's newest view is the newest no longer; the same where its name leads nowhere. */
void limefs_view_retire(struct limefs *, struct limefs_node *);
void limefs_view_retire_gone(struct limefs *, struct limefs_node *);

/* Gives fs->lock back after any of these, and closes what is asleep by then. */
void limefs_view_unlock(struct limefs *);

/* ---- viewchange.c ---- */

/* With fs->lock held: whoever wants to know is told. */
void limefs_view_has_changed(struct limefs *, struct limefs_view *);

/* A pinned one: its file's attributes are taken as they are now. */
void limefs_view_look_again(struct limefs *, struct limefs_view *);

#endif
