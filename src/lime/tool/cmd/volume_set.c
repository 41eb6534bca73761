/* volume_set.c - find and open the files of a volume set */
#define _GNU_SOURCE
#include "volume_set.h"
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

/* The parts of a volume's path, "DIR/NAME.vol0012" or "DIR/vol0012/FILE". */
struct volume_pattern {
    char *copy, *last;      /* owned copies of the path, which contain the parts */
    const char *dir, *name; /* name: "NAME.vol0012" or "vol0012" */
    const char *file;       /* "FILE", or NULL */
    size_t stem;            /* the length of "NAME" in name, or 0 */
};

/* Returns false if the path is not a volume's. Call release_pattern() in any case. */
static bool parse_volume_path(const char *path, struct volume_pattern *p)
{
    uint64_t number;
    *p = (struct volume_pattern){.copy = strdup(path), .last = strdup(path)};
    if (!p->copy || !p->last)
        return false;
    p->name = basename(p->last);
    p->dir = dirname(p->copy);
    if (limefile_volumes_parse_name(p->name, &p->stem, &number))
        return p->stem > 0;
    p->file = p->name;
    const char *slash = strrchr(p->dir, '/');
    p->name = slash ? slash + 1 : p->dir;
    if (!limefile_volumes_parse_name(p->name, &p->stem, &number) || p->stem)
        return false;
    if (slash && slash != p->dir)
        p->copy[slash - p->copy] = '\0';
    else
        p->dir = slash ? "/" : ".";
    return true;
}

static void release_pattern(struct volume_pattern *p)
{
    free(p->copy);
    free(p->last);
}

bool volume_set_is_name(const char *path)
{
    struct volume_pattern p;
    bool is_volume = parse_volume_path(path, &p);
    release_pattern(&p);
    return is_volume;
}

bool volume_set_is_first(const char *path)
{
    static const char suffix[] = ".vol0000";
    struct volume_pattern p;
    char *first = NULL;
    bool is_first = true;
    if (parse_volume_path(path, &p)) {
        const char *first_name = p.stem ? suffix : suffix + 1;
        const char *slash = p.file ? "/" : "", *file = p.file ? p.file : "";
        is_first = strcmp(p.name + p.stem, first_name) == 0 ||
                   asprintf(&first, "%s/%.*s%s%s%s", p.dir, (int)p.stem, p.name, first_name,
                            slash, file) < 0 ||
                   access(first, F_OK) != 0;
    }
    free(first);
    release_pattern(&p);
    return is_first;
}

struct found_volume {
    uint64_t number;
    char *name;
};

struct volume_list {
    struct found_volume *items;
    size_t count, capacity;
};

static bool add_volume_path(struct volume_list *list, uint64_t number,
                            const struct volume_pattern *p, const char *name)
{
    char *path = NULL;
    if (!limefile_reserve(&list->items, &list->capacity, list->count + 1, sizeof *list->items))
        return false;
    const char *slash = p->file ? "/" : "", *file = p->file ? p->file : "";
    if (asprintf(&path, "%s/%s%s%s", p->dir, name, slash, file) < 0)
        return false;
    list->items[list->count++] = (struct found_volume){number, path};
    return true;
}

/* Returns false if volumes are directories (p->file is set) and `name` does not contain
 * p->file. */
static bool volume_exists(const struct volume_pattern *p, const char *name)
{
    char *path = NULL;
    if (!p->file)
        return true;
    if (asprintf(&path, "%s/%s/%s", p->dir, name, p->file) < 0)
        return false;
    bool exists = access(path, F_OK) == 0;
    free(path);
    return exists;
}

struct listing {
    const struct volume_pattern *p;
    struct volume_list *list;
};

/* Adds the directory entry `name` if it is a volume of the set. Returns 0 or -ENOMEM. */
static int add_volume(void *context, const char *name)
{
    const struct listing *l = context;
    uint64_t number;
    size_t stem;
    bool is_volume = limefile_volumes_parse_name(name, &stem, &number) && stem == l->p->stem &&
                     memcmp(name, l->p->name, stem) == 0 && volume_exists(l->p, name);
    return is_volume && !add_volume_path(l->list, number, l->p, name) ? -ENOMEM : 0;
}

/* Lists the paths of all volumes of the set, in any order. Exhausted memory is an error,
 * because an omitted path would look like a missing volume. Returns an exit status. */
static int list_volumes(const struct volume_pattern *p, struct volume_list *list)
{
    int dirfd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0) {
        message_code(p->dir, "open", -errno);
        return TOOL_UNUSABLE;
    }
    int err = directory_each(dirfd, ".", 0, add_volume, &(struct listing){p, list});
    close(dirfd);
    return report_error(p->dir, "list", err);
}

static int compare_volume_numbers(const void *one, const void *other)
{
    const struct found_volume *a = one, *b = other;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Each volume stays open, so raise the limit of open files. */
static void raise_file_limit(size_t count)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < count + 64) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int open_volume_files(struct volume_set *f)
{
    raise_file_limit(f->count);
    for (size_t i = 0; i < f->count; i++) {
        f->fds[i] = open_or_report(f->names[i], O_RDONLY);
        if (f->fds[i] < 0)
            return TOOL_UNUSABLE;
        limefile_fd_init(&f->files[i], f->fds[i]);
    }
    return TOOL_GOOD;
}

static int join_volume_files(struct volume_set *f,
                             const struct limefile_volumes_options *options)
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

/* Moves the paths from `list` to `f`, ordered by volume number. */
static int sort_volume_names(struct volume_set *f, struct volume_list *list)
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
    qsort(list->items, list->count, sizeof *list->items, compare_volume_numbers);
    for (size_t i = 0; i < f->count; i++) {
        f->names[i] = list->items[i].name;
        list->items[i].name = NULL;
        f->fds[i] = -1;
    }
    return TOOL_GOOD;
}

static int find_volume_names(struct volume_set *f)
{
    struct volume_pattern p;
    struct volume_list list = {0};
    int status = TOOL_UNUSABLE;
    if (!parse_volume_path(f->path, &p))
        message(f->path, "not named as a volume: NAME.vol0000 or vol0000/NAME expected");
    else
        status = list_volumes(&p, &list);
    if (status == TOOL_GOOD && !list.count) {
        message(f->path, "no such volume");
        status = TOOL_UNUSABLE;
    }
    if (status == TOOL_GOOD)
        status = sort_volume_names(f, &list);
    for (size_t i = 0; i < list.count; i++)
        free(list.items[i].name);
    free(list.items);
    release_pattern(&p);
    return status;
}

int volume_set_open(struct volume_set *f, const char *path,
                    const struct limefile_volumes_options *options)
{
    *f = (struct volume_set){.path = path};
    int status = find_volume_names(f);
    if (status == TOOL_GOOD)
        status = open_volume_files(f);
    if (status == TOOL_GOOD)
        status = join_volume_files(f, options);
    if (status != TOOL_GOOD)
        volume_set_close(f);
    return status;
}

/* Formats "sites 0 0 0 2 to 3 3 3 2". */
static void format_box(const struct limefile_scidac_record *stated, char *text, size_t cap)
{
    size_t used = 0;
    for (unsigned corner = 0; corner < 2; corner++) {
        const uint64_t *at = corner ? stated->upper : stated->lower;
        used += (size_t)snprintf(text + used, cap - used, "%s", corner ? " to" : "sites");
        for (unsigned i = 0; i < stated->box_dims; i++)
            used += (size_t)snprintf(text + used, cap - used, " %" PRIu64, at[i]);
    }
}

void volume_set_part_text(const struct volume_set *f, size_t i, char text[VOLUME_SET_TEXT_MAX])
{
    const struct limefile_scidac_record *stated;
    char box[2 * LIMEFILE_DIMS_MAX * 21 + 16];
    uint64_t ordinal = limefile_volumes_skipped_part(f->volumes, i, &stated);
    format_box(stated, box, sizeof box);
    snprintf(text, VOLUME_SET_TEXT_MAX,
             "record %" PRIu64 ": not joined: a part of the lattice (%s%s%s)", ordinal,
             stated->datatype, *stated->datatype ? ", " : "", box);
}

void volume_set_close(struct volume_set *f)
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
