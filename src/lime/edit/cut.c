/* cut.c - cut records from the end of a container so that a crash leaves it readable
 *
 * When a file system cuts a file, it zeros the rest of the block in which the file then ends. A
 * crash may leave some of these zeros on the disk, but the old size: the file then still has
 * the cut records, with zeros at their beginning. So that recovery recognises them, this code
 * first marks the record before the cut and clears the magic of the header at the cut. */
#include "cut.h"
#include "header_bytes.h"

#include <errno.h>
#include <string.h>

enum { WORD = 8 }; /* bytes of an aligned write that is atomic on the disk */

/* The first word of a header as it was before the cut, so that undo_mark() can restore it. */
struct first_word {
    uint64_t at; /* offset in the file */
    unsigned char word[WORD];
    bool changed; /* a write has changed, or may have changed, the word in the file */
};

static int write_word(struct limefile_source *source, struct first_word *first,
                      const unsigned char word[WORD])
{
    first->changed = true;
    return limefile_write_full(source, word, WORD, first->at);
}

static int read_word(struct limefile_source *source, struct first_word *first)
{
    ssize_t got = limefile_read_full(source, first->word, WORD, first->at);
    return got < 0 ? (int)got : got == WORD ? 0 : LIMEFILE_E_MAGIC;
}

/* Sets the mark of the record before the cut (0: clears it). Also sets ME if cut->set_me. */
static int write_mark(struct limefile_source *source, const struct limefile_cut *cut,
                      struct first_word *first, int mark)
{
    unsigned char word[WORD];
    memcpy(word, first->word, WORD);
    word[AT_FLAGS] |= cut->set_me ? FLAG_ME : 0;
    word[AT_RESERVED] = (unsigned char)mark;
    return write_word(source, first, word);
}

static int read_words(struct limefile_source *source, const struct limefile_cut *cut,
                      struct first_word *before, struct first_word *last)
{
    if (!cut->has_previous)
        return 0;
    int err = read_word(source, before);
    if (!err && get_be32(before->word) != LIMEFILE_MAGIC)
        err = LIMEFILE_E_MAGIC;
    return err || !cut->visible ? err : read_word(source, last);
}

static int mark_cut(struct limefile_source *source, const struct limefile_cut *cut,
                    struct first_word *before, struct first_word *last)
{
    static const unsigned char zeros[WORD];
    int err = write_mark(source, cut, before, MARK_REMOVING);
    if (!err && cut->visible)
        err = write_word(source, last, zeros);
    return err ? err : source->ops->sync(source);
}

/* Restores the header at the cut first: the mark must remain while this header has no magic. */
static void undo_mark(struct limefile_source *source, const struct first_word *before,
                      const struct first_word *last)
{
    if (last->changed && limefile_write_full(source, last->word, WORD, last->at) != 0)
        return;
    if (before->changed)
        limefile_write_full(source, before->word, WORD, before->at);
    source->ops->sync(source);
}

static int set_file_size(struct limefile_source *source, uint64_t end)
{
    uint64_t size;
    int err = source->ops->size(source, &size);
    return err || size == end ? err : source->ops->truncate(source, end);
}

/* Returns true for a full disk. On some file systems even an overwrite needs space. */
static bool is_full(int err)
{
    return err == -ENOSPC || err == -EDQUOT;
}

/* Clearing the mark needs no sync: if a crash restores it, recovery finds no bytes to cut. If
 * the disk was too full to set ME before the cut (`full`), this write sets it and is synced. */
static int clear_mark(struct limefile_source *source, struct limefile_cut *cut,
                      struct first_word *before, bool full)
{
    int err = write_mark(source, cut, before, 0);
    cut->marked = err != 0;
    if (!full || !cut->set_me)
        return 0;
    return err ? err : source->ops->sync(source);
}

int limefile_cut(struct limefile_source *source, struct limefile_cut *cut)
{
    struct first_word before = {.at = cut->before}, last = {.at = cut->end};
    cut->is_cut = cut->marked = false;
    if (!source->ops->truncate || !source->ops->sync)
        return -EROFS;
    int err = read_words(source, cut, &before, &last);
    if (err)
        return err;
    err = cut->has_previous ? mark_cut(source, cut, &before, &last) : 0;
    bool full = is_full(err);
    if (full) {
        undo_mark(source, &before, &last);
        err = 0;
    }
    if (!err)
        err = set_file_size(source, cut->end);
    if (err) {
        undo_mark(source, &before, &last);
        return err;
    }
    cut->is_cut = true;
    err = source->ops->sync(source);
    int cleared = cut->has_previous ? clear_mark(source, cut, &before, full) : 0;
    return err ? err : cleared;
}
