/* writer.c - write records in sequence; reject calls that would make the container invalid */
#include "limefile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 256 * 1024 };

struct limefile_writer {
    struct limefile_source *to;
    uint64_t offset;    /* offset of the next byte, after the buffered ones */
    uint64_t left;      /* data bytes that the open record still needs */
    unsigned padding;   /* padding of the open record */
    bool is_open;       /* a record is open */
    bool message_ended; /* the last record has ME, or does not exist */
    size_t buffered;
    unsigned char buffer[BUFFER_BYTES];
};

int limefile_writer_new(struct limefile_source *to, uint64_t offset,
                        struct limefile_writer **out)
{
    struct limefile_writer *writer = malloc(sizeof *writer);
    if (!writer)
        return -ENOMEM;
    memset(writer, 0, offsetof(struct limefile_writer, buffer));
    writer->to = to;
    writer->offset = offset;
    writer->message_ended = true;
    *out = writer;
    return 0;
}

void limefile_writer_free(struct limefile_writer *writer)
{
    free(writer);
}

static int flush_buffer(struct limefile_writer *writer)
{
    int err = limefile_write_full(writer->to, writer->buffer, writer->buffered,
                                  writer->offset - writer->buffered);
    if (!err)
        writer->buffered = 0;
    return err;
}

static int write_buffered(struct limefile_writer *writer, const void *data, size_t n)
{
    int err = 0;
    if (n > BUFFER_BYTES - writer->buffered)
        err = flush_buffer(writer);
    if (!err && n >= BUFFER_BYTES)
        err = limefile_write_full(writer->to, data, n, writer->offset);
    else if (!err) {
        memcpy(writer->buffer + writer->buffered, data, n);
        writer->buffered += n;
    }
    if (!err)
        writer->offset += n;
    return err;
}

int limefile_writer_begin(struct limefile_writer *writer, const char *type, size_t type_len,
                          uint64_t bytes, bool mb, bool me)
{
    struct limefile_header header;
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    uint64_t data_end, next;
    if (writer->is_open)
        return LIMEFILE_E_STATE;
    if (mb != writer->message_ended)
        return LIMEFILE_E_ORDER;
    int err = limefile_header_init(&header, type, type_len, bytes, mb, me);
    if (!err)
        err = limefile_record_end(writer->offset, bytes, &data_end, &next);
    if (!err)
        err = limefile_header_encode(&header, raw);
    if (!err)
        err = write_buffered(writer, raw, sizeof raw);
    if (err)
        return err;
    writer->is_open = true;
    writer->message_ended = me;
    writer->left = bytes;
    writer->padding = limefile_padding(bytes);
    return 0;
}

int limefile_writer_write(struct limefile_writer *writer, const void *data, size_t n)
{
    if (!writer->is_open)
        return LIMEFILE_E_STATE;
    if (n > writer->left)
        return LIMEFILE_E_OVERFILL;
    if (n == 0)
        return 0;
    int err = write_buffered(writer, data, n);
    if (!err)
        writer->left -= n;
    return err;
}

int limefile_writer_reserve(struct limefile_writer *writer, uint64_t n, uint64_t *offset)
{
    if (!writer->is_open)
        return LIMEFILE_E_STATE;
    if (n > writer->left)
        return LIMEFILE_E_OVERFILL;
    int err = flush_buffer(writer);
    if (err)
        return err;
    *offset = writer->offset;
    writer->offset += n;
    writer->left -= n;
    return 0;
}

int limefile_writer_end(struct limefile_writer *writer)
{
    static const unsigned char zeros[LIMEFILE_ALIGN];
    if (!writer->is_open)
        return LIMEFILE_E_STATE;
    if (writer->left)
        return LIMEFILE_E_UNDERFILL;
    int err = write_buffered(writer, zeros, writer->padding);
    if (!err)
        writer->is_open = false;
    return err;
}

int limefile_writer_finish(struct limefile_writer *writer, uint64_t *size)
{
    if (writer->is_open)
        return LIMEFILE_E_STATE;
    if (!writer->message_ended)
        return LIMEFILE_E_ORDER;
    int err = flush_buffer(writer);
    if (!err)
        *size = writer->offset;
    return err;
}
