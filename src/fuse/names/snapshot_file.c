/* snapshot_file.c - open and index the file of a snapshot, and check whether it has changed */
#define _GNU_SOURCE
#include "snapshot_file.h"
#include "credentials.h"
#include "descriptor.h"
#include "limegauge.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    CHECK_TRIES = 3, /* tries of a check during which this mount may change the container */
};

/* ---- open and index ---- */

int limefs_index_read_error(const struct limefile_index *index)
{
    const struct limefile_finding *fault = limefile_index_fault(index);
    return fault && fault->code > -4096 ? fault->code : 0; /* lower codes: format errors */
}

static bool has_identity(int fd, const struct limefile_identity *expected)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return false;
    struct limefile_identity stamp = limefile_identify(&st);
    return limefile_identity_equal(&stamp, expected);
}

void limefs_snapshot_close_file(const struct limefs_container_file *opened)
{
    close(opened->fd);
    limefile_index_free(opened->index);
    limefile_gauge_adapter_close(opened->adapter);
}

struct limefile_source *limefs_snapshot_source(const struct limefs_snapshot *snap,
                                               struct limefile_fd *fd)
{
    limefile_fd_init(fd, snap->fd);
    return snap->adapter ? limefile_gauge_adapter_source(snap->adapter) : &fd->source;
}

/* Indexes a container, or the adapter of a file in another format. The index of any other file
 * states that it is not a container. A configuration that no adapter can show is an error,
 * because an empty directory would be misleading. */
static int index_opened_file(struct limefs_container_file *opened)
{
    struct limefile_fd file;
    limefile_fd_init(&file, opened->fd);
    int err = limefile_index_build(&file.source, &opened->index);
    if (err || limefile_index_is_container(opened->index))
        return err;
    err = limefile_gauge_adapter_open(opened->fd, &opened->adapter);
    if (err)
        return err == LIMEFILE_E_GAUGE_UNKNOWN ? 0 : err;
    limefile_index_free(opened->index);
    opened->index = NULL;
    return limefile_index_build(limefile_gauge_adapter_source(opened->adapter), &opened->index);
}

int limefs_snapshot_open_file(int file, const struct limefile_identity *expected,
                              struct limefs_container_file *out, struct stat *st)
{
    if (fstat(file, st) != 0)
        return -errno;
    struct limefile_identity stamp = limefile_identify(st);
    if (!S_ISREG(st->st_mode))
        return LIMEFILE_E_NOT_FILE; /* to open a device or FIFO may have side effects */
    if (expected && !limefile_identity_equal(&stamp, expected))
        return -ESTALE;
    limefs_daemon_creds_enter();
    int fd = limefile_reopen(file, O_RDONLY | O_NONBLOCK); /* -EAGAIN: a process has a lease */
    limefs_daemon_creds_leave();
    if (fd < 0)
        return fd;
    *out = (struct limefs_container_file){
        .fd = fd, .being_written = limefile_is_being_written(fd, &st->st_ctim)};
    int err = index_opened_file(out);
    if (!err && expected && !has_identity(fd, expected)) /* it changed while it was indexed */
        err = -ESTALE;
    if (err)
        limefs_snapshot_close_file(out);
    return err;
}

struct limefile_index *limefs_snapshot_index(struct limefs *fs, struct limefs_snapshot *snap)
{
    limefs_lock(&fs->lock);
    struct limefile_index *index = limefile_index_ref(snap->index);
    limefs_unlock(&fs->lock);
    return index;
}

struct stat limefs_snapshot_stat(struct limefs *fs, const struct limefs_snapshot *snap)
{
    limefs_lock(&fs->lock);
    struct stat st = snap->st;
    limefs_unlock(&fs->lock);
    return st;
}

struct stat limefs_snapshot_stat_now(struct limefs *fs, const struct limefs_snapshot *snap)
{
    struct stat now, st = limefs_snapshot_stat(fs, snap);
    if (fstat(snap->fd, &now) == 0) {
        st.st_mode = now.st_mode;
        st.st_uid = now.st_uid;
        st.st_gid = now.st_gid;
        st.st_mtim = now.st_mtim;
        st.st_ctim = now.st_ctim;
    }
    return st;
}

struct limefile_identity limefs_snapshot_confirmed_identity(struct limefs *fs,
                                                            const struct limefs_snapshot *snap)
{
    limefs_lock(&fs->lock);
    struct limefile_identity confirmed = snap->confirmed;
    limefs_unlock(&fs->lock);
    return confirmed;
}

/* ---- whether the file has changed ---- */

static bool has_header(const struct limefs_snapshot *snap, const struct limefile_record *record)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    struct limefile_header header;
    struct limefile_fd file;
    limefile_fd_init(&file, snap->fd);
    ssize_t got = limefile_read_full(&file.source, raw, sizeof raw, record->header_offset);
    return got == sizeof raw && limefile_header_decode(raw, &header) == 0 &&
           header.bytes == record->bytes && header.type_len == record->type_len &&
           memcmp(header.type, record->type, record->type_len) == 0;
}

/* Returns true if the header is unchanged and all data is in the file. Takes the type from the
 * index, because record->type may be a stale pointer. */
static bool record_is_in_place(struct limefs *fs, struct limefs_snapshot *snap,
                               const struct limefile_record *record, off_t size)
{
    struct limefile_record known;
    if (snap->adapter)
        return false;
    struct limefile_index *index = limefs_snapshot_index(fs, snap);
    bool is_same = limefile_index_get(index, record->ordinal, &known) == 0 &&
                   known.header_offset == record->header_offset &&
                   known.bytes == record->bytes && has_header(snap, &known) &&
                   known.data_offset + known.bytes <= (uint64_t)size;
    limefile_index_free(index);
    return is_same;
}

/* Compares all but the flags, which an append changes in the record before the new one. */
static bool has_same_header(const struct limefile_record *a, const struct limefile_record *b)
{
    return a->header_offset == b->header_offset && a->data_offset == b->data_offset &&
           a->bytes == b->bytes && a->type_len == b->type_len &&
           memcmp(a->type, b->type, a->type_len) == 0;
}

static bool headers_match(struct limefile_source *source, const struct limefile_index *index)
{
    struct limefile_scan *scan;
    struct limefile_record now, then;
    if (limefile_scan_new(source, NULL, NULL, &scan) != 0)
        return false;
    uint64_t i = 0, count = limefile_index_count(index);
    while (i < count && limefile_scan_next(scan, &now) == 1 &&
           limefile_index_get(index, i + 1, &then) == 0 && has_same_header(&now, &then))
        i++;
    limefile_scan_free(scan);
    return i == count;
}

static bool file_matches_index(struct limefs *fs, struct limefs_snapshot *snap)
{
    struct limefile_gauge_adapter *adapter = NULL;
    struct limefile_fd file;
    if (snap->adapter && limefile_gauge_adapter_open(snap->fd, &adapter) != 0)
        return false;
    limefile_fd_init(&file, snap->fd);
    struct limefile_index *index = limefs_snapshot_index(fs, snap);
    bool matches =
        headers_match(adapter ? limefile_gauge_adapter_source(adapter) : &file.source, index);
    limefile_index_free(index);
    limefile_gauge_adapter_close(adapter);
    return matches;
}

struct file_check {
    struct timespec time; /* the time before the check */
    struct stat st;
    struct limefile_identity stamp;
    bool is_known;      /* see limefs_snapshot_is_known() */
    bool same_data;     /* inode, size and mtime are those of the snapshot */
    bool is_reliable;   /* each later change sets another ctime */
    off_t indexed_size; /* size of the file in the snapshot */
};

static int check_file(struct limefs *fs, const struct limefs_snapshot *snap,
                      struct file_check *check)
{
    clock_gettime(CLOCK_REALTIME, &check->time);
    if (fstat(snap->fd, &check->st) != 0)
        return -errno;
    check->stamp = limefile_identify(&check->st);
    limefs_lock(&fs->lock);
    check->is_known = snap->state == LIMEFS_SNAPSHOT_WRITTEN ||
                      limefile_identity_equal(&check->stamp, &snap->confirmed);
    check->same_data = limefile_identity_same_data(&check->stamp, &snap->stamp);
    check->is_reliable = false;
    check->indexed_size = snap->stamp.size;
    limefs_unlock(&fs->lock);
    return 0;
}

/* Sets is_reliable. Called before the bytes are read that the check proves to be current. */
static void check_for_writers(const struct limefs_snapshot *snap, struct file_check *check)
{
    check->is_reliable = limefs_identity_is_reliable(
        &check->stamp, &check->time, limefile_is_being_written(snap->fd, &check->stamp.ctime));
}

/* Compares the headers with the index. Called if inode, size and mtime are unchanged. These
 * prove nothing: a program that changes a container can set the mtime back. */
static bool confirm_headers(struct limefs *fs, struct limefs_snapshot *snap,
                            const struct file_check *check)
{
    if (!file_matches_index(fs, snap))
        return false;
    limefs_lock(&fs->lock);
    if (check->is_reliable && limefile_identity_same_data(&check->stamp, &snap->stamp))
        snap->confirmed = check->stamp;
    limefs_unlock(&fs->lock);
    return true;
}

bool limefs_snapshot_revalidate(struct limefs *fs, struct limefs_snapshot *snap)
{
    struct file_check check;
    if (check_file(fs, snap, &check) != 0)
        return false;
    if (check.is_known || !check.same_data)
        return check.is_known;
    check_for_writers(snap, &check);
    return confirm_headers(fs, snap, &check);
}

bool limefs_snapshot_is_known(struct limefs *fs, const struct limefs_snapshot *snap)
{
    struct file_check check;
    return check_file(fs, snap, &check) == 0 && check.is_known;
}

bool limefs_snapshot_is_unchanged(struct limefs *fs, const struct limefs_snapshot *snap)
{
    struct stat st;
    if (fstat(snap->fd, &st) != 0)
        return false;
    struct limefile_identity stamp = limefile_identify(&st);
    limefs_lock(&fs->lock);
    bool unchanged = snap->node->container.snap == snap &&
                     snap->state == LIMEFS_SNAPSHOT_VALID && st.st_nlink > 0 &&
                     limefile_identity_equal(&stamp, &snap->stamp) &&
                     limefile_identity_equal(&stamp, &snap->confirmed);
    limefs_unlock(&fs->lock);
    return unchanged;
}

/* Returns true if the record is still the same. If size and mtime are unchanged and the check
 * is reliable, compares all headers; if not, or if the file has grown, only this record's. */
static bool record_is_unchanged(struct limefs *fs, struct limefs_snapshot *snap,
                                const struct limefile_record *record,
                                const struct file_check *check)
{
    if (check->same_data && (snap->adapter || check->is_reliable))
        return confirm_headers(fs, snap, check);
    return (check->same_data || check->st.st_size > check->indexed_size) &&
           record_is_in_place(fs, snap, record, check->st.st_size);
}

int limefs_snapshot_check_record(struct limefs *fs, struct limefs_snapshot *snap,
                                 const struct limefile_record *record,
                                 struct limefile_identity *checked)
{
    struct file_check check;
    for (int i = 0; i < CHECK_TRIES; i++) {
        int err = check_file(fs, snap, &check);
        if (err)
            return err;
        if (checked && limefile_identity_equal(&check.stamp, checked))
            return 0;
        if (!check.is_known || (checked && !snap->writer))
            check_for_writers(snap, &check);
        if (check.is_known || record_is_unchanged(fs, snap, record, &check)) {
            /* What the caller has read may be older: a new *checked makes it read again. */
            if (checked && (!check.same_data || (check.is_reliable && !snap->writer)))
                *checked = check.stamp;
            return 0;
        }
        if (!snap->writer)
            return -ESTALE;
        /* This mount may have changed the container during the check: try again. */
    }
    return -ESTALE;
}

static bool is_older_stat(const struct stat *st, const struct stat *than)
{
    const struct timespec *a = &st->st_ctim, *b = &than->st_ctim;
    return st->st_ino == than->st_ino &&
           (a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec));
}

void limefs_snapshot_note_check(struct limefs_snapshot *snap, const struct stat *st)
{
    if (st && !is_older_stat(st, &snap->st)) {
        snap->st = *st;
        snap->stamp = snap->confirmed = limefile_identify(st);
    }
    if (snap->state != LIMEFS_SNAPSHOT_WRITTEN)
        snap->state = LIMEFS_SNAPSHOT_RECENT;
}

void limefs_snapshot_refresh_stat(struct limefs *fs, struct limefs_snapshot *snap)
{
    struct stat st;
    bool has_stat = fstat(snap->fd, &st) == 0;
    limefs_lock(&fs->lock);
    limefs_snapshot_note_check(snap, has_stat ? &st : NULL);
    limefs_unlock(&fs->lock);
}
