/* facecat.c - a file of a record's face, found by its name and written out */
#define _GNU_SOURCE
#include "facecat.h"
#include "copy.h"
#include "limeface.h"
#include "select.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 256 * 1024,
};

/* A word taken apart. */
struct named {
    struct limefile_facename name;
    char *record;     /* owned */
    const char *rest; /* what is in the directory; NULL: the face itself */
};

static bool take_apart(const char *word, struct named *out)
{
    size_t stem, len = strlen(word);
    for (const char *end = strchrnul(word, '/');; end = strchrnul(end + 1, '/')) {
        char *face = strndup(word, (size_t)(end - word));
        bool good = face && limefile_facename_parse(face, &out->name, &stem) &&
                    (*end == '\0' || limefile_face_is_directory(&out->name));
        if (good) {
            face[stem] = '\0';
            out->record = face;
            out->rest = *end ? end + 1 : NULL;
            return true;
        }
        free(face);
        if (end == word + len)
            return false;
    }
}

static bool is_record(const struct container *c, const char *word)
{
    struct limefile_record record;
    uint64_t count;
    return limefile_index_by_type(c->index, word, strlen(word), &record, &count) == 0 ||
           limefile_name_find(c->index, word, &record) == 0;
}

static int field_of(const struct container *c, const struct limefile_record *record,
                    struct limefile_field *out)
{
    struct limefile_fields fields;
    struct limefile_fd file;
    limefile_fd_init(&file, c->fd);
    int err = limefile_fields_build(&file.source, c->index, &fields);
    if (err)
        return err;
    if (!limefile_fields_of(&fields, record->ordinal, out))
        *out = (struct limefile_field){.record = *record};
    limefile_fields_release(&fields);
    return 0;
}

/* By its path in the directory: at most two names. */
static bool find_in(const struct limefile_face *face, const char *path, uint64_t *number)
{
    uint64_t parent = 0;
    const char *slash;
    while ((slash = strchr(path, '/'))) {
        char *folder = strndup(path, (size_t)(slash - path));
        bool found = folder && limefile_face_find(face, parent, folder, number);
        free(folder);
        if (!found)
            return false;
        parent = *number + 1;
        path = slash + 1;
    }
    return limefile_face_find(face, parent, path, number);
}

/* A whole file's header has figures of all data. */
static int read_sites(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct facecat *f = context;
    size_t n = (size_t)count * f->site_bytes;
    ssize_t came =
        limefile_fd_read(f->c->fd, out, n, f->record.data_offset + first * f->site_bytes);
    return came < 0 ? (int)came : (size_t)came < n ? LIMEFILE_E_SHRUNK : 0;
}

static bool prepare(struct facecat *f)
{
    int err = limefile_face_is_ready(f->face)
                  ? 0
                  : limefile_face_prepare(f->face, 0, read_sites, NULL, f);
    if (err)
        message_code(f->c->path, "read", err);
    return err == 0;
}

static bool open_named(struct facecat *out, const struct named *named, const char *word)
{
    struct limefile_face_entry entry;
    struct limefile_field field;
    if (!select_record(out->c, named->record, false, &out->record))
        return false;
    int err = field_of(out->c, &out->record, &field);
    if (!err)
        err = limefile_face_open(&field, &named->name, &out->face);
    if (err == LIMEFILE_E_STATE)
        message(out->c->path, "record %" PRIu64 ": no '%s': %s", out->record.ordinal,
                word + strlen(named->record), limefile_face_why_not(&field, &named->name));
    else if (err)
        message_code(out->c->path, "read", err);
    if (err)
        return false;
    if (limefile_face_is_directory(&named->name) && !named->rest) {
        message(out->c->path, "'%s' is a directory: name a file in it, as %s/%s", word, word,
                named->name.kind == LIMEFILE_FACE_ZARR ? ".zmetadata" : "000");
        return false;
    }
    if (!find_in(out->face, named->rest ? named->rest : "", &out->number)) {
        message(out->c->path, "'%s': no such file in this face", word);
        return false;
    }
    limefile_face_entry(out->face, out->number, &entry);
    if (entry.directory)
        message(out->c->path, "'%s' is a directory", word);
    out->bytes = entry.bytes;
    out->site_bytes = (size_t)field.site_bytes;
    return !entry.directory && prepare(out);
}

int facecat_open(const struct container *c, const char *word, struct facecat *out)
{
    struct named named;
    *out = (struct facecat){.c = c};
    if (is_record(c, word) || !take_apart(word, &named))
        return 0;
    bool good = open_named(out, &named, word);
    free(named.record);
    return good ? 1 : -1;
}

void facecat_close(struct facecat *f)
{
    limefile_face_close(f->face);
    f->face = NULL;
}

static ssize_t read_record(void *context, void *buf, size_t n, uint64_t offset,
                           const void **data)
{
    const struct facecat *f = context;
    *data = buf;
    return limefile_fd_read(f->c->fd, buf, n, f->record.data_offset + offset);
}

/* A piece through memory. */
static int put_made(const struct facecat *f, struct copy *copy, uint64_t offset)
{
    static _Alignas(4096) char buffer[BUFFER_BYTES];
    int err = 0;
    while (copy->left && !err) {
        size_t n = copy->left < sizeof buffer ? (size_t)copy->left : sizeof buffer;
        ssize_t came = limefile_face_read_lent(f->face, f->number, buffer, n, offset,
                                               read_record, (void *)f);
        err = came < 0 ? (int)came : copy_put(copy, buffer, (size_t)came);
        offset += (uint64_t)(came > 0 ? came : 0);
    }
    return err;
}

bool facecat_put(const struct facecat *f, uint64_t offset, uint64_t n,
                 struct progress *progress)
{
    struct limefile_face_piece piece;
    struct copy copy = {.in = f->c->fd,
                        .out = STDOUT_FILENO,
                        .out_offset = COPY_AT_POSITION,
                        .progress = progress};
    int err = 0;
    for (; n && !err; n -= piece.bytes, offset += piece.bytes) {
        limefile_face_piece(f->face, f->number, offset, &piece);
        if (piece.bytes > n)
            piece.bytes = n;
        copy.left = piece.bytes;
        copy.in_offset = f->record.data_offset + piece.at;
        err = piece.what == LIMEFILE_FACE_STORED ? copy_run(&copy) : put_made(f, &copy, offset);
    }
    if (err) {
        progress_hide();
        copy_message(&copy, f->c->path, "standard output", err);
    }
    return !err;
}
