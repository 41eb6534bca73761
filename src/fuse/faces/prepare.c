/* prepare.c - whole files of other formats, whose headers have figures of all data */
#include "face.h"
#include "fields.h"
#include "verify.h"

#include <errno.h>

enum {
    MEMORY = 64 << 20, /* bytes that it may take */
};

struct reading {
    struct limefile_source *source;
    uint64_t data_offset;
    size_t site_bytes;
    atomic_bool *stop;
};

static int read_sites(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct reading *r = context;
    size_t n = (size_t)count * r->site_bytes;
    ssize_t got = limefile_read_full(r->source, out, n, r->data_offset + first * r->site_bytes);
    return got < 0 ? (int)got : (size_t)got < n ? LIMEFILE_E_SHRUNK : 0;
}

static bool goes_on(void *context, uint64_t sites_more)
{
    const struct reading *r = context;
    (void)sites_more;
    return !atomic_load(r->stop);
}

static int measure(struct limefs *fs, struct limefs_face *face,
                   const struct limefile_field *field, atomic_bool *stop)
{
    struct limefile_fd fd;
    struct reading reading = {.source = limefs_view_source(face->view, &fd),
                              .data_offset = field->record.data_offset,
                              .site_bytes = (size_t)field->site_bytes,
                              .stop = stop};
    int err = limefs_verify_settle(fs, face->view, &field->record);
    if (!err)
        err = limefile_face_prepare(face->files, MEMORY, read_sites, goes_on, &reading);
    if (!err) /* what was read was what is there */
        err = limefs_view_check(fs, face->view, &field->record, NULL);
    return err ? err : limefs_face_check(fs, face);
}

bool limefs_face_is_ready(const struct limefs_face *face)
{
    return atomic_load(&face->ready);
}

bool limefs_face_jumps(const struct limefs_face *face)
{
    return face->name.kind == LIMEFILE_FACE_OPENQCD;
}

int limefs_face_prepare(struct limefs *fs, struct limefs_face *face, atomic_bool *stop)
{
    struct limefs_fields *fields;
    struct limefile_field field;
    if (limefs_face_is_ready(face))
        return 0;
    int err = limefs_face_describe(fs, face->view, face->ordinal, &fields, &field);
    if (!err && limefs_face_digest(&field) != face->digest)
        err = -ESTALE;
    if (!err)
        err = measure(fs, face, &field, stop);
    limefs_fields_release(fields);
    if (!err)
        atomic_store(&face->ready, true);
    return err;
}
