/* dirset.c - sets of volumes listed, after the files of a directory of the tree */
#include "listing.h"
#include "tree.h"

#include <limits.h>

/* Beyond the offsets that file systems give, but for the one that says "the end": ext4's is the
 * largest there is. */
#define FIRST ((off_t)0x7fffffff00000000)

bool limefs_dir_is_at_sets(const struct limefs_dir *dir, off_t offset)
{
    return dir->ended && offset >= FIRST && offset != dir->end;
}

void limefs_dir_forget_sets(struct limefs_dir *dir)
{
    limefs_joined_free(dir->sets);
    dir->sets = NULL;
    dir->ended = false;
}

/* All of them are looked at when the list comes to them for the first time. */
static void find_sets(struct limefs *fs, struct limefs_dir *dir)
{
    char path[PATH_MAX];
    if (!dir->ended && dir->shows_sets)
        dir->sets = limefs_joined_list(fs, dirfd(dir->stream),
                                       limefs_tree_label(fs, dir->node, path, sizeof path));
    dir->ended = true;
}

void limefs_dir_list_sets(struct limefs *fs, struct limefs_dir *dir,
                          struct limefs_listing *list, off_t offset)
{
    find_sets(fs, dir);
    off_t at = FIRST, from = offset >= FIRST ? offset : FIRST;
    for (const struct limefs_joined_name *set = dir->sets; set && !list->full; set = set->next)
        if (at++ >= from)
            limefs_listing_add_name(list, set->name, limefs_shown_inode(fs, dir->dev, set->ino),
                                    S_IFDIR, at);
}
