/* physics.c - user.lime.physics: what a job's ranks measure of a configuration */
#include "face.h"
#include "fields.h"
#include "job.h"
#include "verify.h"

#include <errno.h>

static bool goes_on(void *context, uint64_t more)
{
    const atomic_bool *stop = context;
    (void)more;
    return !atomic_load(stop);
}

static int describe(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                    struct limefs_fields **fields, struct limefile_field *field)
{
    int err = limefs_fields_of(fs, view, fields);
    if (err)
        return err;
    bool found = limefile_fields_of(&(*fields)->fields, ordinal, field) &&
                 limefs_face_is_configuration(field);
    return found ? 0 : -ENODATA;
}

int limefs_physics_ask(struct limefs *fs, struct limefs_view *view, uint64_t ordinal)
{
    struct limefs_fields *fields = NULL;
    struct limefile_field field;
    int err = fs->job ? describe(fs, view, ordinal, &fields, &field) : -ENODATA;
    limefs_fields_release(fields);
    return err;
}

int limefs_physics_measure(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                           const atomic_bool *stop, struct limefile_physics *out)
{
    struct limefs_fields *fields = NULL;
    struct limefile_field field;
    int err = describe(fs, view, ordinal, &fields, &field);
    if (!err)
        err = limefs_verify_settle(fs, view, &field.record);
    if (!err) {
        int done = limefs_job_physics(fs, view, &field, goes_on, (void *)stop, out);
        err = done < 0 ? done : done == 0 ? -ENODATA : 0;
    }
    if (!err) /* what was read was what is there */
        err = limefs_view_check(fs, view, &field.record, NULL);
    limefs_fields_release(fields);
    return err;
}
