/* viewfile.c - open and index the file of a snapshot, and check whether it has changed */
#define _GNU_SOURCE
#include "views.h"
#include "caller.h"
#include "descriptor.h"
#include "limegauge.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    CHECK_TRIES = 3, /* while this mount itself changes the container */
};

/* ---- open and index ---- */

int limefs_index_unread(const struct limefile_index *index)
{
    const struct limefile_finding *fault = limefile_index_fault(index);
    return fault && fault->code > -4096 ? fault->code : 0; /* others: format errors */
}

static bool is_still(int fd, const struct limefile_identity *want)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return false;
    struct limefile_identity stamp = limefile_identity_of(&st);
    return limefile_identity_equal(&stamp, want);
}

void limefs_view_close(const struct limefs_opened *opened)
{
    close(opened->fd);
    limefile_index_free(opened->index);
    limefile_gauge_guise_close(opened->guise);
}

struct limefile_source *limefs_view_source(const struct limefs_view *view,
                                           struct limefile_fd *fd)
{
    limefile_fd_init(fd, view->fd);
    return view->guise ? limefile_gauge_guise_source(view->guise) : &fd->source;
}

/* Indexes a container, or an adapter of a file in another format; the index of any other file
 * states that it is not a container. A configuration that no adapter can show is an error: an
 * empty directory would be misleading. */
static int index_file(struct limefs_opened *opened)
{
    struct limefile_fd file;
    limefile_fd_init(&file, opened->fd);
    int err = limefile_index_build(&file.source, &opened->index);
    if (err || limefile_index_is_container(opened->index))
        return err;
    err = limefile_gauge_guise_open(opened->fd, &opened->guise);
    if (err)
        return err == LIMEFILE_E_GAUGE_UNKNOWN ? 0 : err;
    limefile_index_free(opened->index);
    opened->index = NULL;
    return limefile_index_build(limefile_gauge_guise_source(opened->guise), &opened->index);
}

int limefs_view_open(int file, const struct limefile_identity *want, struct limefs_opened *out,
                     struct stat *st)
{
    if (fstat(file, st) != 0)
        return -errno;
    struct limefile_identity stamp = limefile_identity_of(st);
    if (!S_ISREG(st->st_mode))
        return LIMEFILE_E_NOT_FILE;                     /* opening it may have side effects */
    if (want && !limefile_identity_equal(&stamp, want)) /* its old index is freed */
        return -ESTALE;
    limefs_own_begin();
    int fd = limefile_reopen(file, O_RDONLY | O_NONBLOCK); /* -EAGAIN: a process has a lease */
    limefs_own_end();
    if (fd < 0)
        return fd;
    *out =
        (struct limefs_opened){.fd = fd, .moving = limefile_is_being_written(fd, &st->st_ctim)};
    int err = index_file(out);
    if (!err && want && !is_still(fd, want)) /* it changed while it was indexed */
        err = -ESTALE;
    if (err)
        limefs_view_close(out);
    return err;
}

/* ---- what is known of a snapshot ---- */

struct limefile_index *limefs_view_index(struct limefs *fs, struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    struct limefile_index *index = limefile_index_hold(view->index);
    limefs_unlock(&fs->lock);
    return index;
}

struct stat limefs_view_stat(struct limefs *fs, const struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    struct stat st = view->st;
    limefs_unlock(&fs->lock);
    return st;
}

struct stat limefs_view_stat_now(struct limefs *fs, const struct limefs_view *view)
{
    struct stat now, st = limefs_view_stat(fs, view);
    if (fstat(view->fd, &now) == 0) {
        st.st_mode = now.st_mode;
        st.st_uid = now.st_uid;
        st.st_gid = now.st_gid;
        st.st_mtim = now.st_mtim;
        st.st_ctim = now.st_ctim;
    }
    return st;
}

struct limefile_identity limefs_view_settled(struct limefs *fs, const struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    struct limefile_identity settled = view->settled;
    limefs_unlock(&fs->lock);
    return settled;
}

/* ---- whether the file has changed ---- */

static bool has_header(const struct limefs_view *view, const struct limefile_record *record)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    struct limefile_header header;
    struct limefile_fd file;
    limefile_fd_init(&file, view->fd);
    ssize_t got = limefile_read_full(&file.source, raw, sizeof raw, record->header_offset);
    return got == sizeof raw && limefile_header_decode(raw, &header) == 0 &&
           header.bytes == record->bytes && header.type_len == record->type_len &&
           memcmp(header.type, record->type, record->type_len) == 0;
}

/* Returns true if the header is unchanged and all data are in the file. The type is read from
 * the index, as record->type may be a stale pointer. */
static bool record_stands(struct limefs *fs, struct limefs_view *view,
                          const struct limefile_record *record, off_t size)
{
    struct limefile_record known;
    if (view->guise)
        return false;
    struct limefile_index *index = limefs_view_index(fs, view);
    bool stands = limefile_index_get(index, record->ordinal, &known) == 0 &&
                  known.header_offset == record->header_offset &&
                  known.bytes == record->bytes && has_header(view, &known) &&
                  known.data_offset + known.bytes <= (uint64_t)size;
    limefile_index_free(index);
    return stands;
}

/* Compares all but the flags: appending a record changes those of the record before it. */
static bool is_same_record(const struct limefile_record *a, const struct limefile_record *b)
{
    return a->header_offset == b->header_offset && a->data_offset == b->data_offset &&
           a->bytes == b->bytes && a->type_len == b->type_len &&
           memcmp(a->type, b->type, a->type_len) == 0;
}

static bool records_stand(struct limefile_source *source, const struct limefile_index *index)
{
    struct limefile_scan *scan;
    struct limefile_record now, then;
    if (limefile_scan_new(source, NULL, NULL, &scan) != 0)
        return false;
    uint64_t i = 0, count = limefile_index_count(index);
    while (i < count && limefile_scan_next(scan, &now) == 1 &&
           limefile_index_get(index, i + 1, &then) == 0 && is_same_record(&now, &then))
        i++;
    limefile_scan_free(scan);
    return i == count;
}

/* Returns true if all headers in the file match the index of a pinned snapshot. */
static bool index_stands(struct limefs *fs, struct limefs_view *view)
{
    struct limefile_gauge_guise *guise = NULL;
    struct limefile_fd file;
    if (view->guise && limefile_gauge_guise_open(view->fd, &guise) != 0)
        return false;
    limefile_fd_init(&file, view->fd);
    struct limefile_index *index = limefs_view_index(fs, view);
    bool stands =
        records_stand(guise ? limefile_gauge_guise_source(guise) : &file.source, index);
    limefile_index_free(index);
    limefile_gauge_guise_close(guise);
    return stands;
}

/* Result of a check of a pinned snapshot's file. */
struct look {
    struct timespec seen; /* the time before the check */
    struct stat st;
    struct limefile_identity stamp;
    bool known;   /* the container is as this mount knows it */
    bool same;    /* inode, size and mtime, which other programs can set */
    bool settled; /* each later change sets another ctime */
    off_t size;   /* when the snapshot was made */
};

static int look_at(struct limefs *fs, const struct limefs_view *view, struct look *look)
{
    clock_gettime(CLOCK_REALTIME, &look->seen);
    if (fstat(view->fd, &look->st) != 0)
        return -errno;
    look->stamp = limefile_identity_of(&look->st);
    limefs_lock(&fs->lock);
    look->known = view->state == LIMEFS_VIEW_WRITTEN ||
                  limefile_identity_equal(&look->stamp, &view->settled);
    look->same = limefile_identity_same_data(&look->stamp, &view->stamp);
    look->settled = false;
    look->size = view->stamp.size;
    limefs_unlock(&fs->lock);
    return 0;
}

/* Called before reading what this check must prove. */
static void look_for_writers(const struct limefs_view *view, struct look *look)
{
    look->settled = limefs_is_settled(&look->stamp, &look->seen,
                                      limefile_is_being_written(view->fd, &look->stamp.ctime));
}

/* Only the ctime has changed, or it is so young that the next change may not change it. A
 * program that changes a container in place can set the mtime back, so the headers decide. */
static bool settle(struct limefs *fs, struct limefs_view *view, const struct look *look)
{
    if (!index_stands(fs, view))
        return false;
    limefs_lock(&fs->lock);
    if (look->settled && limefile_identity_same_data(&look->stamp, &view->stamp))
        view->settled = look->stamp;
    limefs_unlock(&fs->lock);
    return true;
}

bool limefs_view_settle(struct limefs *fs, struct limefs_view *view)
{
    struct look look;
    if (look_at(fs, view, &look) != 0)
        return false;
    if (look.known || !look.same)
        return look.known;
    look_for_writers(view, &look);
    return settle(fs, view, &look);
}

bool limefs_view_is_known(struct limefs *fs, const struct limefs_view *view)
{
    struct look look;
    return look_at(fs, view, &look) == 0 && look.known;
}

bool limefs_view_is_unchanged(struct limefs *fs, const struct limefs_view *view)
{
    struct stat st;
    if (fstat(view->fd, &st) != 0)
        return false;
    struct limefile_identity stamp = limefile_identity_of(&st);
    limefs_lock(&fs->lock);
    bool unchanged = view->node->container.view == view && view->state == LIMEFS_VIEW_VALID &&
                     st.st_nlink > 0 && limefile_identity_equal(&stamp, &view->stamp) &&
                     limefile_identity_equal(&stamp, &view->settled);
    limefs_unlock(&fs->lock);
    return unchanged;
}

/* Returns true if it is the same record. Appended records leave the others in place; any other
 * change may have moved the data. While the times prove nothing, this reads the record's own
 * header each time. */
static bool stands(struct limefs *fs, struct limefs_view *view,
                   const struct limefile_record *record, const struct look *look)
{
    if (look->same && (view->guise || look->settled))
        return settle(fs, view, look);
    return (look->same || look->st.st_size > look->size) &&
           record_stands(fs, view, record, look->st.st_size);
}

int limefs_view_check(struct limefs *fs, struct limefs_view *view,
                      const struct limefile_record *record, struct limefile_identity *checked)
{
    struct look look;
    for (int i = 0; i < CHECK_TRIES; i++) {
        int err = look_at(fs, view, &look);
        if (err)
            return err;
        if (checked && limefile_identity_equal(&look.stamp, checked))
            return 0;
        if (!look.known || (checked && !view->writer))
            look_for_writers(view, &look);
        if (look.known || stands(fs, view, record, &look)) {
            /* A new *checked makes the caller read again: the file may have changed before. */
            if (checked && (!look.same || (look.settled && !view->writer)))
                *checked = look.stamp;
            return 0;
        }
        if (!view->writer)
            return -ESTALE;
        /* Or this mount was changing the container: then the next check knows its state. */
    }
    return -ESTALE;
}

/* ---- the result of a check ---- */

static bool is_older(const struct stat *st, const struct stat *than)
{
    const struct timespec *a = &st->st_ctim, *b = &than->st_ctim;
    return st->st_ino == than->st_ino &&
           (a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec));
}

void limefs_view_note_look(struct limefs_view *view, const struct stat *st)
{
    if (st && !is_older(st, &view->st)) {
        view->st = *st;
        view->stamp = view->settled = limefile_identity_of(st);
    }
    if (view->state != LIMEFS_VIEW_WRITTEN)
        view->state = LIMEFS_VIEW_YOUNG;
}

void limefs_view_touched(struct limefs *fs, struct limefs_view *view)
{
    struct stat st;
    bool told = fstat(view->fd, &st) == 0;
    limefs_lock(&fs->lock);
    limefs_view_note_look(view, told ? &st : NULL);
    limefs_unlock(&fs->lock);
}
