/* xattr.c - reads and sets user.lime.*; locates the bytes of files with user.limefs.* */
#define _GNU_SOURCE
#include "xattr.h"
#include "credentials.h"
#include "descriptor.h"
#include "exports.h"
#include "file.h"
#include "job.h"
#include "limeoutput.h"
#include "limerange.h"
#include "tree.h"
#include "verify.h"
#include "snapshot.h"
#include "writer.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <syslog.h>
#include <unistd.h>

#define PREFIX     "user.lime."
#define ACL_PREFIX "system.posix_acl_"
#define ACL_ACCESS ACL_PREFIX "access"

enum {
    VALUE_MAX = 512,
    /* An ACL attribute is a version and entries of tag, permissions and id (acl(5)). */
    ACL_HEADER = 4,
    ACL_ENTRY = 8,
    ACL_PERM = 2, /* offset of the permissions' low byte in an entry */
};

static const char *const record_names[] = {"type", "message", "record", "mb", "me", "offset"};
#define CHECKSUM "checksum"
#define REASON   "reason"

static const char *const verdict_names[] = {CHECKSUM, REASON};

static const char *const container_names[] = {"records", "messages", "fault"};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static int format_number(char *value, uint64_t n)
{
    return snprintf(value, VALUE_MAX, "%" PRIu64, n);
}

/* Reads the record's header and padding from the container, for programs that examine them.
 * Returns -ENODATA after a write to the container: a record that is being written may be
 * elsewhere. */
static int read_record_header(const struct limefs_snapshot *snap,
                              const struct limefile_record *record, char *value)
{
    struct limefile_fd file;
    if (snap->writer)
        return -ENODATA;
    struct limefile_source *source = limefs_snapshot_source(snap, &file);
    int err = limefile_read_exact(source, value, LIMEFILE_HEADER_BYTES, record->header_offset);
    ssize_t padding =
        err ? 0
            : limefile_read_full(source, value + LIMEFILE_HEADER_BYTES, record->padding,
                                 record->data_offset + record->bytes);
    return err == LIMEFILE_E_SHRUNK ? -ESTALE
           : err                    ? err
           : padding < 0            ? (int)padding
                                    : LIMEFILE_HEADER_BYTES + (int)padding;
}

/* Returns the value's length or -ENODATA. If a file in another format is shown as a container,
 * its records have no "offset", because their data is elsewhere in the file. */
static int format_record(const struct limefs_snapshot *snap,
                         const struct limefile_record *record, const char *key, char *value)
{
    if (strcmp(key, "type") == 0) {
        memcpy(value, record->type, record->type_len);
        return record->type_len;
    }
    if (strcmp(key, "message") == 0)
        return format_number(value, record->message);
    if (strcmp(key, "record") == 0)
        return format_number(value, record->record);
    if (strcmp(key, "mb") == 0)
        return format_number(value, record->mb);
    if (strcmp(key, "me") == 0)
        return format_number(value, record->me);
    if (strcmp(key, "header") == 0)
        return read_record_header(snap, record, value);
    if (strcmp(key, "offset") == 0 && !snap->adapter)
        return format_number(value, record->data_offset);
    return -ENODATA;
}

static int format_container(const struct limefile_index *index, const char *key, char *value)
{
    const struct limefile_finding *fault = limefile_index_fault(index);
    if (strcmp(key, "records") == 0)
        return format_number(value, limefile_index_count(index));
    if (strcmp(key, "messages") == 0)
        return format_number(value, limefile_index_messages(index));
    if (strcmp(key, "fault") == 0 && fault)
        return limefile_finding_text(fault, value, VALUE_MAX);
    if (strcmp(key, "fault_code") == 0 && fault) /* for programs; listxattr() omits it */
        return snprintf(value, VALUE_MAX,
                        "%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                        limefile_error_word(fault->code), fault->offset, fault->ordinal,
                        fault->have, fault->want, limefile_index_size(index));
    return -ENODATA;
}

/* Pins the snapshot of the container, record or export with that node id. 0 or -errno. */
static int pin_snapshot(struct limefs *fs, uint64_t id, struct limefs_snapshot **snap)
{
    struct limefs_inode inode = limefs_inode_find_current(fs, id);
    if (inode.node)
        return limefs_snapshot_get_current(fs, inode.node, snap);
    *snap = inode.export ? limefs_export_snapshot(inode.export) : inode.snap;
    return *snap ? limefs_snapshot_pin(fs, *snap) : -ESTALE;
}

/* Gets the container's ACL, by which the kernel checks permissions. (The mode would allow more,
 * because its group bits are the ACL's mask.) Limits the permissions to those in `allowed`; in
 * the ACL of a directory, adds search permission to each read permission. */
static ssize_t read_acl(const struct limefs_snapshot *snap, bool is_directory, int allowed,
                        char *buf, size_t cap)
{
    ssize_t len = fgetxattr(snap->fd, ACL_ACCESS, buf, cap);
    if (len < 0)
        return errno == EOPNOTSUPP ? -ENODATA : -errno;
    for (ssize_t at = ACL_HEADER; cap && at + ACL_ENTRY <= len; at += ACL_ENTRY) {
        char *perm = buf + at + ACL_PERM;
        *perm = (char)((*perm & allowed) | (is_directory && *perm & 4 ? 1 : 0));
    }
    return len;
}

static ssize_t get_acl(struct limefs *fs, uint64_t id, bool is_directory, char *buf, size_t cap)
{
    struct limefs_snapshot *snap;
    ssize_t len = pin_snapshot(fs, id, &snap);
    if (len)
        return len;
    len = read_acl(snap, is_directory, 6, buf, cap);
    limefs_snapshot_unpin(fs, snap);
    return len;
}

/* An export has no attribute but the container's ACL, limited to read permission. */
static ssize_t get_export_xattr(struct limefs *fs, struct limefs_export *export,
                                uint64_t ordinal, const char *name, char *buf, size_t cap)
{
    struct limefile_export_entry entry;
    if (strcmp(name, ACL_ACCESS) != 0)
        return strncmp(name, "user.", 5) == 0 || limefs_xattr_is_acl(name) ? -ENODATA
                                                                           : -EOPNOTSUPP;
    ssize_t len = limefs_export_acquire(fs, export);
    if (len < 0)
        return len;
    bool is_directory = limefs_export_get_entry(export, ordinal, &entry) && entry.is_dir;
    len = read_acl(limefs_export_snapshot(export), is_directory, 4, buf, cap);
    limefs_export_release(fs, export);
    return len;
}

/* Formats an attribute that a record has only if its data is a lattice field. */
static int format_verdict(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                          const char *key, char *value)
{
    enum limefile_verdict verdict;
    char reason[LIMEFS_REASON_MAX];
    bool is_verdict = strcmp(key, CHECKSUM) == 0, is_progress = strcmp(key, "verifying") == 0;
    if (!is_verdict && !is_progress && strcmp(key, REASON) != 0)
        return -ENODATA;
    int err = limefs_verify_describe(fs, snap, ordinal, &verdict, reason);
    if (err)
        return err;
    if (is_verdict)
        return snprintf(value, VALUE_MAX, "%s", limefile_verdict_word(verdict));
    if (is_progress)
        return format_number(value, limefs_verify_progress(fs, snap, ordinal));
    return *reason ? snprintf(value, VALUE_MAX, "%s", reason) : -ENODATA;
}

static int get_record_value(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                            const char *key, char *value)
{
    struct limefile_record record;
    int len = limefs_snapshot_pin(fs, snap);
    if (len)
        return len;
    len = limefs_creds_check_access(snap->fd, R_OK);
    struct limefile_index *index = limefs_snapshot_index(fs, snap);
    if (len == 0)
        len = limefile_index_get(index, ordinal, &record);
    if (len == 0)
        len = format_record(snap, &record, key, value);
    limefile_index_free(index);
    if (len == -ENODATA)
        len = format_verdict(fs, snap, ordinal, key, value);
    limefs_snapshot_unpin(fs, snap);
    return len;
}

static int get_container_value(struct limefs *fs, struct limefs_node *node, const char *key,
                               char *value)
{
    struct limefs_snapshot *snap;
    int len = limefs_snapshot_get_current(fs, node, &snap);
    if (len)
        return len;
    struct limefile_index *index = limefs_snapshot_index(fs, snap);
    len = format_container(index, key, value);
    limefile_index_free(index);
    limefs_snapshot_unpin(fs, snap);
    return len;
}

static ssize_t copy_value(const char *value, size_t len, char *buf, size_t cap)
{
    if (cap == 0)
        return (ssize_t)len;
    if (len > cap)
        return -ERANGE;
    memcpy(buf, value, len);
    return (ssize_t)len;
}

/* Opens the node's file, and makes a path to it that no rename can redirect. Returns the
 * descriptor, which the caller closes after using the path, or -errno. */
static int open_node_path(struct limefs *fs, struct limefs_node *node,
                          char path[LIMEFILE_FD_PATH_MAX])
{
    int fd = limefs_file_get_fd(fs, node);
    if (fd >= 0)
        limefile_fd_path(fd, path);
    return fd;
}

/* Reads an attribute of the node's own file, or the list of names if name is NULL. */
static ssize_t get_node_xattr(struct limefs *fs, struct limefs_node *node, const char *name,
                              char *buf, size_t cap)
{
    char path[LIMEFILE_FD_PATH_MAX];
    int fd = open_node_path(fs, node, path);
    if (fd < 0)
        return fd;
    ssize_t len = name ? getxattr(path, name, buf, cap) : listxattr(path, buf, cap);
    if (len < 0)
        len = -errno;
    close(fd);
    return len;
}

bool limefs_xattr_is_acl(const char *name)
{
    return strncmp(name, ACL_PREFIX, strlen(ACL_PREFIX)) == 0;
}

/* ---- user.limefs.files: which file is behind an inode of the mount ---- */

enum { DEV_INO_MAX = 44 }; /* "DEVICE:INODE" */

static ssize_t format_dev_inode(int fd, char *buf, size_t cap)
{
    char text[DEV_INO_MAX];
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    int n = snprintf(text, sizeof text, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return copy_value(text, (size_t)n, buf, cap);
}

static ssize_t get_backing_file(struct limefs *fs, uint64_t id, char *buf, size_t cap)
{
    struct limefs_snapshot *snap;
    struct limefs_node *node = limefs_inode_find_node(fs, id);
    bool is_plain = node && node->kind != LIMEFS_CONTAINER;
    int fd = is_plain ? limefs_tree_open_node(fs, node) : pin_snapshot(fs, id, &snap);
    if (fd < 0)
        return fd;
    ssize_t len = format_dev_inode(is_plain ? fd : snap->fd, buf, cap);
    if (is_plain)
        close(fd);
    else
        limefs_snapshot_unpin(fs, snap);
    return len;
}

/* ---- user.limefs.range: where a record's bytes are, for programs that read them there ---- */

/* Returns true if programs may read the container themselves: it is not in another format, the
 * mount is read-only, and the mount need not see the bytes to verify them. */
static bool can_read_directly(const struct limefs *fs, const struct limefs_snapshot *snap)
{
    return !fs->options.rw && fs->options.verify != LIMEFS_VERIFY_STREAM && !snap->adapter;
}

/* Limits *range, which is the whole record, to the part that file `number` of an export
 * contains unchanged. Sets range->prefix to the number of bytes before this part in the
 * export's file. Returns false if the part is not in one piece. */
static bool find_stored_part(const struct limefile_export *files, uint64_t number,
                             struct limefile_range *range)
{
    struct limefile_export_range piece;
    limefile_export_range(files, number, 0, &piece);
    if (piece.source == LIMEFILE_EXPORT_OWN) {
        range->prefix = piece.bytes;
        limefile_export_range(files, number, range->prefix, &piece);
    }
    if (piece.source != LIMEFILE_EXPORT_STORED || piece.at > range->bytes ||
        piece.bytes > range->bytes - piece.at)
        return false;
    range->offset += piece.at;
    range->bytes = piece.bytes;
    return true;
}

/* Formats the value for a record of a pinned snapshot or, if `files` is set, for file `number`
 * of an export of the record. Returns -ENODATA if the container changed so recently that its
 * times might not show the next change, because programs compare these times. */
static int encode_range(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                        const struct limefile_export *files, uint64_t number,
                        char text[LIMEFILE_RANGE_TEXT_MAX])
{
    struct limefile_record record;
    char path[LIMEFILE_RANGE_PATH_MAX]; /* of the container: absolute, as the daemon sees it */
    size_t root;
    struct limefile_index *index = limefs_snapshot_index(fs, snap);
    int err = limefile_index_get(index, ordinal, &record);
    limefile_index_free(index);
    if (err)
        return -ESTALE;
    struct limefile_range range = {.offset = record.data_offset,
                                   .bytes = record.bytes,
                                   .has_job = fs->job != NULL,
                                   .path = path};
    struct stat st = limefs_snapshot_stat(fs, snap);
    range.container = limefile_identify(&st);
    if (files && !find_stored_part(files, number, &range))
        return -ENODATA;
    if (!limefs_job_container_path(fs, snap, path, sizeof path, &root) ||
        !limefs_snapshot_is_unchanged(fs, snap))
        return -ENODATA;
    return limefile_range_encode(&range, text);
}

static int get_record_range(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                            char text[LIMEFILE_RANGE_TEXT_MAX])
{
    int len = limefs_snapshot_pin(fs, snap);
    if (len)
        return len;
    len = can_read_directly(fs, snap) ? limefs_creds_check_access(snap->fd, R_OK) : -ENODATA;
    if (len == 0)
        len = encode_range(fs, snap, ordinal, NULL, 0, text);
    limefs_snapshot_unpin(fs, snap);
    return len;
}

static int get_export_range(struct limefs *fs, struct limefs_export *export, uint64_t ordinal,
                            char text[LIMEFILE_RANGE_TEXT_MAX])
{
    struct limefile_export_entry entry;
    int len = limefs_export_acquire_entry(fs, export, ordinal, &entry);
    if (len)
        return len;
    struct limefs_snapshot *snap = limefs_export_snapshot(export);
    len = !entry.is_dir && can_read_directly(fs, snap)
              ? limefs_creds_check_access(snap->fd, R_OK)
              : -ENODATA;
    if (len == 0)
        len = encode_range(fs, snap, limefs_export_record(export), limefs_export_files(export),
                           ordinal - 1, text);
    limefs_export_release(fs, export);
    return len;
}

/* For records and files of exports. listxattr() omits the attribute: no program copies it. */
static ssize_t get_range(struct limefs *fs, uint64_t id, char *buf, size_t cap)
{
    char text[LIMEFILE_RANGE_TEXT_MAX];
    struct limefs_inode inode = limefs_inode_find_current(fs, id);
    int len = inode.export ? get_export_range(fs, inode.export, inode.ordinal, text)
              : inode.snap ? get_record_range(fs, inode.snap, inode.ordinal, text)
                           : -ENODATA;
    return len < 0 ? len : copy_value(text, (size_t)len, buf, cap);
}

ssize_t limefs_xattr_get(struct limefs *fs, uint64_t id, const char *name, char *buf,
                         size_t cap)
{
    char value[VALUE_MAX];
    struct limefs_inode inode = limefs_inode_find_current(fs, id);
    /* In a mount for one user, ACLs decide nothing. The error makes ls(1) read no more ACLs. */
    if (!fs->options.serves_others && limefs_xattr_is_acl(name))
        return -EOPNOTSUPP;
    if (inode.node == fs->inodes.root && strcmp(name, LIMEFS_STATS_XATTR) == 0) {
        char stats[LIMEFS_STATS_BYTES];
        int n = limefs_job_format_stats(fs, stats, sizeof stats);
        return n < 0 ? n : copy_value(stats, (size_t)n, buf, cap);
    }
    if (strcmp(name, LIMEFILE_FILES_XATTR) == 0)
        return get_backing_file(fs, id, buf, cap);
    if (inode.node && inode.node->kind != LIMEFS_CONTAINER)
        return get_node_xattr(fs, inode.node, name, buf, cap);
    if (!inode.node && strcmp(name, LIMEFILE_RANGE_XATTR) == 0)
        return get_range(fs, id, buf, cap);
    if (inode.export)
        return get_export_xattr(fs, inode.export, inode.ordinal, name, buf, cap);
    if (strcmp(name, ACL_ACCESS) == 0)
        return get_acl(fs, id, inode.node != NULL, buf, cap);
    /* A default ACL does not exist: the error EOPNOTSUPP would make cp(1) fail, and ls(1) would
     * not read the ACLs of other files. */
    if (limefs_xattr_is_acl(name))
        return -ENODATA;
    if (strncmp(name, "user.", 5) != 0)
        return -EOPNOTSUPP; /* after this error, ls(1) reads no other file's security label */
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return -ENODATA;
    const char *key = name + strlen(PREFIX);
    int len = inode.node   ? get_container_value(fs, inode.node, key, value)
              : inode.snap ? get_record_value(fs, inode.snap, inode.ordinal, key, value)
                           : -ESTALE;
    return len < 0 ? len : copy_value(value, (size_t)len, buf, cap);
}

ssize_t limefs_xattr_list(struct limefs *fs, uint64_t id, char *buf, size_t cap)
{
    char list[320], value[VALUE_MAX];
    size_t used = 0;
    struct limefs_inode inode = limefs_inode_find_current(fs, id);
    struct limefs_node *node = inode.node;
    if (node && node->kind != LIMEFS_CONTAINER)
        return get_node_xattr(fs, node, NULL, buf, cap);
    const char *const *names = node ? container_names : record_names;
    size_t count = inode.export ? 0 : node ? COUNT(container_names) : COUNT(record_names);
    for (size_t i = 0; i < count; i++) {
        if (node && get_container_value(fs, node, names[i], value) < 0)
            continue; /* a container without a fault has no "fault" */
        if (inode.snap &&
            get_record_value(fs, inode.snap, inode.ordinal, names[i], value) == -ENODATA)
            continue; /* a record of a file in another format has no "offset" */
        used += (size_t)snprintf(list + used, sizeof list - used, PREFIX "%s", names[i]) + 1;
    }
    for (size_t i = 0; inode.snap && i < COUNT(verdict_names); i++)
        if (get_record_value(fs, inode.snap, inode.ordinal, verdict_names[i], value) > 0)
            used += (size_t)snprintf(list + used, sizeof list - used, PREFIX "%s",
                                     verdict_names[i]) +
                    1;
    /* From coreutils 9.4 on, cp(1) and ls(1) read an ACL only if it is listed. */
    if (limefs_xattr_get(fs, id, ACL_ACCESS, NULL, 0) > 0)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s", ACL_ACCESS) + 1;
    return copy_value(list, used, buf, cap);
}

static int set_record_xattr(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                            const char *name, const char *value, size_t len, int flags)
{
    char path[PATH_MAX];
    const char *key = name + strlen(PREFIX);
    if (strncmp(name, "user.", 5) != 0)
        return -EOPNOTSUPP; /* cp -p ignores this error */
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 ||
        (strcmp(key, "type") && strcmp(key, "mb") && strcmp(key, "me"))) {
        limefs_log(LOG_ERR, "%s: record %llu: set %s: only %stype, %smb and %sme can be set",
                   limefs_tree_display_path(fs, snap->node, path, sizeof path),
                   (unsigned long long)ordinal, name, PREFIX, PREFIX, PREFIX);
        return -EPERM;
    }
    if (flags & XATTR_CREATE)
        return -EEXIST; /* every record has these attributes */
    int err = limefs_snapshot_pin(fs, snap);
    if (err)
        return err;
    err = limefs_record_set_header(fs, snap, ordinal, key, value, len);
    limefs_snapshot_unpin(fs, snap);
    return err;
}

int limefs_xattr_set(struct limefs *fs, uint64_t id, const char *name, const char *value,
                     size_t len, int flags)
{
    char path[LIMEFILE_FD_PATH_MAX];
    struct limefs_inode inode = limefs_inode_find_current(fs, id);
    struct limefs_node *node = inode.node;
    if (inode.snap)
        return set_record_xattr(fs, inode.snap, inode.ordinal, name, value, len, flags);
    if (!node)
        return -ESTALE;
    if (node->kind == LIMEFS_CONTAINER)
        return -EPERM;
    int fd = open_node_path(fs, node, path);
    if (fd < 0)
        return fd;
    int err = (value ? setxattr(path, name, value, len, flags) : removexattr(path, name)) == 0
                  ? 0
                  : -errno;
    close(fd);
    return err;
}
