/*
 * edit_io.h - the single reads and writes of an edit, of which no reader sees half. Functions
 * return 0, -errno or a code of limefile.h. Not thread-safe.
 */
#ifndef LIMEFILE_EDIT_IO_H
#define LIMEFILE_EDIT_IO_H

#include "limeedit.h"

enum { LIMEFILE_WORD = 8 }; /* bytes of an aligned write that is atomic on the disk */

struct limefile_editor {
    struct limefile_source *source;
    uint64_t *headers; /* header offsets of all records; the last one is that of `last` */
    size_t count, capacity;
    struct limefile_last_record last;
    uint64_t claimed;    /* the greatest length that the last header may have on the disk */
    bool visible;        /* the last header's magic is or may be on the disk */
    bool uncertain;      /* a write of its length has failed: it is `claimed` or less */
    bool marked;         /* MARK_RESIZING is or may be in the last header */
    bool mark_synced;    /* the mark is also on the disk */
    bool before_cleared; /* ME of the record before is or may be cleared for the last one */
};

int limefile_sync(struct limefile_source *source);
int limefile_set_size(struct limefile_source *source, uint64_t size); /* sets the file's size */

/* Read the first word, or all, of the header at an offset. */
int limefile_edit_read_start(struct limefile_source *source, uint64_t header,
                             unsigned char word[LIMEFILE_WORD]);
int limefile_edit_read_header(struct limefile_source *source, uint64_t at,
                              struct limefile_header *out);

/* Clears and sets bits of the flags byte of the header at `header`. */
int limefile_set_flags(struct limefile_source *source, uint64_t header, unsigned clear,
                       unsigned set);

/* Writes the reserved byte of the header at `header`. */
int limefile_set_mark(struct limefile_source *source, uint64_t header, int mark);

/* Encodes the last record's header, 144 bytes, with length `bytes` and its final MB and ME. */
int limefile_encode_last(const struct limefile_editor *editor, uint64_t bytes,
                         unsigned char *raw);

/* Write the last record's first header word, which makes it a header; write its length and
 * sync; set the file's end behind `bytes` bytes of data. */
int limefile_edit_write_start(struct limefile_editor *editor, bool mark);
int limefile_set_length(struct limefile_editor *editor, uint64_t bytes);
int limefile_set_end(struct limefile_editor *editor, uint64_t bytes);

#endif
