/* edit_io.h - the reads and writes that edits of a container consist of. Functions return 0,
 * -errno or a code of limefile.h. They sync only if their comment says so. Not thread-safe. */
#ifndef LIMEFILE_EDIT_IO_H
#define LIMEFILE_EDIT_IO_H

#include "limeedit.h"

enum { LIMEFILE_WORD = 8 }; /* bytes of an aligned write that is atomic on the disk */

struct limefile_editor {
    struct limefile_source *source;
    uint64_t *headers; /* offsets of the headers of all records, including that of `last` */
    size_t count, capacity;           /* of `headers` */
    struct limefile_last_record last; /* the last record; "last header" below is its header */
    uint64_t claimed;    /* the last header on the disk states at most this length */
    bool visible;        /* the last header's magic is or may be on the disk */
    bool uncertain;      /* the length may be less than `claimed`: a write of it has failed */
    bool marked;         /* the last header has or may have a mark (MARK_RESIZING, _REMOVING) */
    bool mark_synced;    /* the last header's MARK_RESIZING is on the disk */
    bool before_cleared; /* the ME flag of the record before `last` is or may be cleared */
};

int limefile_sync(struct limefile_source *source); /* -EROFS: the source is read-only */
int limefile_set_size(struct limefile_source *source, uint64_t size); /* sets the file's size */

/* Read the first word, or all, of a header. LIMEFILE_E_MAGIC: no header is at the offset. */
int limefile_edit_read_start(struct limefile_source *source, uint64_t header,
                             unsigned char word[LIMEFILE_WORD]);
int limefile_edit_read_header(struct limefile_source *source, uint64_t at,
                              struct limefile_header *out);

/* Clears and sets bits of the flags byte of the header at `header`. */
int limefile_set_flags(struct limefile_source *source, uint64_t header, unsigned clear,
                       unsigned set);

/* Sets the reserved byte of the header at `header`: a MARK_* of header_bytes.h, or 0. */
int limefile_set_mark(struct limefile_source *source, uint64_t header, int mark);

/* Encodes the last record's header into raw[144]: length `bytes`, MB as in last.mb, ME set. */
int limefile_encode_last(const struct limefile_editor *editor, uint64_t bytes,
                         unsigned char *raw);

/* Writes the first word of the last record's header: magic, flags, MARK_RESIZING if `mark`. */
int limefile_edit_write_start(struct limefile_editor *editor, bool mark);
/* Writes the length of the last record's data into its header, and syncs. */
int limefile_set_length(struct limefile_editor *editor, uint64_t bytes);
/* Makes the file end after `bytes` bytes of the last record's data and zero padding. */
int limefile_set_end(struct limefile_editor *editor, uint64_t bytes);

#endif
