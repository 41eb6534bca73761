/* setfile.c - find and open the files of a volume set */
#define _GNU_SOURCE
#include "setfile.h"
#include "container.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- names ---- */

/* "DIR/NAME.vol0012" or "DIR/vol0012/FILE", split around the volume number. All members point
 * into `copy`. */
struct pattern {
    char *copy, *last;
    const char *folder, *name; /* name: of the file, or of the numbered directory */
    const char *file;          /* in a numbered directory; or NULL */
    size_t stem;
};

static bool pattern_of(const char *path, struct pattern *p)
{
    uint64_t number;
    *p = (struct pattern){.copy = strdup(path), .last = strdup(path)};
    if (!p->copy || !p->last)
        return false;
    p->name = basename(p->last);
    p->folder = dirname(p->copy);
    if (limefile_volumes_name(p->name, &p->stem, &number))
        return p->stem > 0;
    p->file = p->name;
    const char *slash = strrchr(p->folder, '/');
    p->name = slash ? slash + 1 : p->folder;
    if (!limefile_volumes_name(p->name, &p->stem, &number) || p->stem)
        return false;
    if (slash && slash != p->folder)
        p->copy[slash - p->copy] = '\0';
    else
        p->folder = slash ? "/" : ".";
    return true;
}

static void pattern_release(struct pattern *p)
{
    free(p->copy);
    free(p->last);
}

bool setfile_is(const char *path)
{
    struct pattern p;
    bool is = pattern_of(path, &p);
    pattern_release(&p);
    return is;
}

/* ---- directory ---- */

struct found {
    uint64_t number;
    char *name;
};

struct list {
    struct found *at;
    size_t count, capacity;
};

static bool add(struct list *list, uint64_t number, const struct pattern *p, const char *name)
{
    char *path = NULL;
    if (!limefile_reserve(&list->at, &list->capacity, list->count + 1, sizeof *list->at))
        return false;
    if (asprintf(&path, "%s/%s%s%s", p->folder, name, p->file ? "/" : "",
                 p->file ? p->file : "") < 0)
        return false;
    list->at[list->count++] = (struct found){number, path};
    return true;
}

static bool is_there(const struct pattern *p, const char *name)
{
    char *path = NULL;
    if (!p->file)
        return true;
    if (asprintf(&path, "%s/%s/%s", p->folder, name, p->file) < 0)
        return false;
    bool is = access(path, F_OK) == 0;
    free(path);
    return is;
}

struct listing {
    const struct pattern *p;
    struct list *list;
};

static int add_volume(void *context, const char *name)
{
    const struct listing *l = context;
    uint64_t number;
    size_t stem;
    bool is_volume = limefile_volumes_name(name, &stem, &number) && stem == l->p->stem &&
                     memcmp(name, l->p->name, stem) == 0 && is_there(l->p, name);
    return is_volume && !add(l->list, number, l->p, name) ? -ENOMEM : 0;
}

/* Running out of memory is an error here: an omitted name would look like a missing volume. */
static int list_folder(const struct pattern *p, struct list *list)
{
    int folder = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        message_code(p->folder, "open", -errno);
        return TOOL_UNUSABLE;
    }
    int err = directory_each(folder, ".", 0, add_volume, &(struct listing){p, list});
    close(folder);
    return failed_status(p->folder, "list", err);
}

static int by_number(const void *one, const void *other)
{
    const struct found *a = one, *b = other;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* ---- files ---- */

/* Each volume stays open, so raise the limit of open files. */
static void allow_files(size_t count)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < count + 64) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int open_files(struct setfile *f)
{
    allow_files(f->count);
    for (size_t i = 0; i < f->count; i++) {
        f->fds[i] = open_with_message(f->names[i], O_RDONLY);
        if (f->fds[i] < 0)
            return TOOL_UNUSABLE;
        limefile_fd_init(&f->files[i], f->fds[i]);
    }
    return TOOL_GOOD;
}

static int join(struct setfile *f, const struct limefile_volumes_options *options)
{
    struct limefile_source **sources = calloc(f->count, sizeof *sources);
    size_t bad;
    if (!sources) {
        message(f->path, "out of memory");
        return TOOL_BAD;
    }
    for (size_t i = 0; i < f->count; i++)
        sources[i] = &f->files[i].source;
    int err = limefile_volumes_open(sources, f->count, options, &f->volumes, &bad);
    free(sources);
    if (!err)
        return TOOL_GOOD;
    if (err == LIMEFILE_E_NO_RECORD)
        message(f->path, "--record: no such record; 'lime join --info' lists them");
    else if (bad < f->count)
        message_code(f->names[bad], "join", err);
    else
        message(f->path, "join %zu volumes: %s", f->count, limefile_strerror(err));
    return err == LIMEFILE_E_VOLUME_NONE ? TOOL_UNUSABLE : TOOL_BAD;
}

static int take_names(struct setfile *f, struct list *list)
{
    f->count = list->count;
    f->names = calloc(f->count, sizeof *f->names);
    f->fds = calloc(f->count, sizeof *f->fds);
    f->files = calloc(f->count, sizeof *f->files);
    if (!f->names || !f->fds || !f->files) {
        message(f->path, "out of memory");
        f->count = 0;
        return TOOL_BAD;
    }
    qsort(list->at, list->count, sizeof *list->at, by_number);
    for (size_t i = 0; i < f->count; i++) {
        f->names[i] = list->at[i].name;
        list->at[i].name = NULL;
        f->fds[i] = -1;
    }
    return TOOL_GOOD;
}

static int find_names(struct setfile *f)
{
    struct pattern p;
    struct list list = {0};
    int status = TOOL_UNUSABLE;
    if (!pattern_of(f->path, &p))
        message(f->path, "not named as a volume: NAME.vol0000 or vol0000/NAME expected");
    else
        status = list_folder(&p, &list);
    if (status == TOOL_GOOD && !list.count) {
        message(f->path, "no such volume");
        status = TOOL_UNUSABLE;
    }
    if (status == TOOL_GOOD)
        status = take_names(f, &list);
    for (size_t i = 0; i < list.count; i++)
        free(list.at[i].name);
    free(list.at);
    pattern_release(&p);
    return status;
}

int setfile_open(struct setfile *f, const char *path,
                 const struct limefile_volumes_options *options)
{
    *f = (struct setfile){.path = path};
    int status = find_names(f);
    if (status == TOOL_GOOD)
        status = open_files(f);
    if (status == TOOL_GOOD)
        status = join(f, options);
    if (status != TOOL_GOOD)
        setfile_close(f);
    return status;
}

/* Writes "sites 0 0 0 2 to 3 3 3 2". */
static void describe_box(const struct limefile_scidac_record *stated, char *text, size_t cap)
{
    size_t used = 0;
    for (unsigned corner = 0; corner < 2; corner++) {
        const uint64_t *at = corner ? stated->upper : stated->lower;
        used += (size_t)snprintf(text + used, cap - used, "%s", corner ? " to" : "sites");
        for (unsigned i = 0; i < stated->box_dims; i++)
            used += (size_t)snprintf(text + used, cap - used, " %" PRIu64, at[i]);
    }
}

void setfile_part_text(const struct setfile *f, size_t i, char text[SETFILE_PART_MAX])
{
    const struct limefile_scidac_record *stated;
    char box[2 * LIMEFILE_DIMS_MAX * 21 + 16];
    uint64_t ordinal = limefile_volumes_part(f->volumes, i, &stated);
    describe_box(stated, box, sizeof box);
    snprintf(text, SETFILE_PART_MAX,
             "record %" PRIu64 ": not joined: a part of the lattice (%s%s%s)", ordinal,
             stated->datatype, *stated->datatype ? ", " : "", box);
}

void setfile_close(struct setfile *f)
{
    limefile_volumes_close(f->volumes);
    for (size_t i = 0; i < f->count; i++) {
        if (f->fds[i] >= 0)
            close(f->fds[i]);
        free(f->names[i]);
    }
    free(f->names);
    free(f->fds);
    free(f->files);
}
