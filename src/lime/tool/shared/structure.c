/* structure.c - the verdict on the structure and the metadata of a container in a mount */
#define _GNU_SOURCE
#include "structure.h"
#include "container.h"
#include "limebeginning.h"
#include "limeildg.h"

#include <inttypes.h>
#include <stdio.h>

enum { TEXT_MAX = 512 };

struct structure {
    uint64_t bad; /* deviations, but for harmless ones */
    bool is_unreadable;
    char first[TEXT_MAX];
};

static void note_finding(void *context, const struct limefile_finding *finding)
{
    struct structure *structure = context;
    if (limefile_is_harmless(finding->code))
        return;
    structure->is_unreadable |= finding_is_unreadable(finding);
    if (structure->bad++ == 0)
        limefile_finding_text(finding, structure->first, sizeof structure->first);
}

static int examine_container(struct container *c, struct structure *structure)
{
    struct limefile_fields fields;
    struct limefile_finding finding;
    int err = limefile_index_scan(c->source, note_finding, NULL, structure, &c->index);
    if (err)
        return err;
    err = limefile_fields_build(c->source, c->index, &fields);
    if (!err) {
        for (size_t i = 0; limefile_fields_finding(&fields, i, &finding); i++)
            note_finding(structure, &finding);
        limefile_fields_release(&fields);
    }
    limefile_index_free(c->index);
    return err;
}

/* *is_other: the file is not a container, and was never one. */
static int examine(struct container *c, struct structure *structure, bool *is_other)
{
    struct limefile_finding finding;
    int kind = c->mounted ? 1 : limefile_beginning(c->source, &finding);
    *is_other = kind == 0;
    if (kind == 1)
        return examine_container(c, structure);
    if (kind < 0 && !finding.code)
        return kind;
    if (kind < 0)
        note_finding(structure, &finding);
    return 0;
}

enum limefile_verdict structure_verdict(const char *path, char reason[STRUCTURE_REASON_MAX])
{
    struct container c;
    struct structure structure = {.bad = 0};
    bool is_other = false;
    *reason = '\0';
    int err = container_open_source(&c, path);
    if (!err) {
        err = examine(&c, &structure, &is_other);
        container_close_source(&c);
    }
    if (err) {
        snprintf(reason, STRUCTURE_REASON_MAX, "%s", limefile_strerror(err));
        return LIMEFILE_UNREADABLE;
    }
    if (structure.bad > 1)
        snprintf(reason, STRUCTURE_REASON_MAX, "%s, and %" PRIu64 " more", structure.first,
                 structure.bad - 1);
    else
        snprintf(reason, STRUCTURE_REASON_MAX, "%s", structure.first);
    return structure.is_unreadable ? LIMEFILE_UNREADABLE
           : structure.bad         ? LIMEFILE_BAD
           : is_other              ? LIMEFILE_SKIPPED
                                   : LIMEFILE_GOOD;
}
