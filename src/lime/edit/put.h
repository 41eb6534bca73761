/*
 * put.h - single reads and writes of an editor (put.c): what of a change is one write, and
 * cannot be seen by half. 0, -errno or a code of limefile.h.
 */
#ifndef LIMEFILE_PUT_H
#define LIMEFILE_PUT_H

#include "limeedit.h"

enum {
    LIMEFILE_WORD = 8, /* what is written at once or not at all, where it is aligned */
};

struct limefile_editor {
    struct limefile_source *source;
    uint64_t *headers; /* where they are, of all records; the last one is `last` */
    size_t count, capacity;
    struct limefile_last last;
    uint64_t claimed;    /* the greatest length that its header may have on the disk */
    bool visible;        /* its magic is or may be on the disk */
    bool uncertain;      /* writing its length has failed: claimed, or less */
    bool marked;         /* MARK_OPEN is or may be in its header ... */
    bool mark_synced;    /* ... and on the disk */
    bool before_cleared; /* ME of the record before is or may be cleared for it */
};

int limefile_put_sync(struct limefile_source *source);
int limefile_put_size(struct limefile_source *source, uint64_t size); /* of the file */

/* The first word of a good header, and the whole of it. */
int limefile_put_read_start(struct limefile_source *source, uint64_t header,
                            unsigned char word[LIMEFILE_WORD]);
int limefile_put_read_header(struct limefile_source *source, uint64_t at,
                             struct limefile_header *out);

/* MB, ME and our own mark, in the header there. */
int limefile_put_flags(struct limefile_source *source, uint64_t header, unsigned clear,
                       unsigned set);

/* Writes the reserved byte of the header there. */
int limefile_put_mark(struct limefile_source *source, uint64_t header, int mark);

/* The 144 bytes of the last record with `bytes` of data, and MB and ME as they will be. */
int limefile_put_encode(const struct limefile_editor *editor, uint64_t bytes,
                        unsigned char *raw);

/* Of the last record: what makes a header of it; its length, which is on the disk then; and the
 * end of the file behind so many bytes of data. */
int limefile_put_start(struct limefile_editor *editor, bool mark);
int limefile_put_length(struct limefile_editor *editor, uint64_t bytes);
int limefile_put_end(struct limefile_editor *editor, uint64_t bytes);

#endif
