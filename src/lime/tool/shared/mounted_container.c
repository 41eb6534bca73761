/* mounted_container.c - read a container that limefs shows as a directory */
#define _GNU_SOURCE
#include "mounted_container.h"
#include "limegauge.h"
#include "limeoutput.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LIMEFS_TYPE " - fuse.limefs "

/* Replaces \ooo (octal) in a word of mountinfo, in place. */
static void unescape_octal(char *word)
{
    char *out = word;
    unsigned value;
    for (const char *in = word; *in; in++) {
        bool is_escape = *in == '\\' && sscanf(in + 1, "%3o", &value) == 1;
        *out++ = is_escape ? (char)value : *in;
        in += is_escape ? 3 : 0;
    }
    *out = '\0';
}

/* Finds the limefs mount that contains `dir`, and its mount point and source (what it shows),
 * which the caller frees also if the result is false. */
static bool find_limefs_mount(const char *dir, char **point, char **source)
{
    struct stat st;
    unsigned major, minor;
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    bool known = mounts && stat(dir, &st) == 0;
    *point = *source = NULL;
    while (known && !found && getline(&line, &capacity, mounts) > 0) {
        const char *type = strstr(line, LIMEFS_TYPE);
        found = type && sscanf(line, "%*d %*d %u:%u", &major, &minor) == 2 &&
                makedev(major, minor) == st.st_dev &&
                sscanf(line, "%*s %*s %*s %*s %ms", point) == 1 &&
                sscanf(type + strlen(LIMEFS_TYPE), "%ms", source) == 1;
    }
    free(line);
    if (mounts)
        fclose(mounts);
    return found;
}

bool is_in_limefs(const char *dir)
{
    char *point, *source;
    bool found = find_limefs_mount(dir, &point, &source);
    free(point);
    free(source);
    return found;
}

/* Returns true if limefs shows the file `path` as the directory `dir`. */
static bool is_shown_as(const char *path, const char *dir)
{
    int file = open(path, O_PATH | O_CLOEXEC), shown = open(dir, O_PATH | O_CLOEXEC);
    bool same = file >= 0 && shown >= 0 && limefile_output_same_file(file, shown);
    if (file >= 0)
        close(file);
    if (shown >= 0)
        close(shown);
    return same;
}

char *mounted_file(const char *dir)
{
    char *point, *source, *path = NULL, *real = realpath(dir, NULL);
    bool found = find_limefs_mount(dir, &point, &source) && real;
    if (found) {
        unescape_octal(point);
        unescape_octal(source);
        size_t n = strlen(point);
        found = strncmp(real, point, n) == 0 && (real[n] == '/' || real[n] == '\0') &&
                asprintf(&path, "%s%s", source, real + n) > 0 && is_shown_as(path, dir);
    }
    if (!found) {
        free(path);
        path = NULL;
    }
    free(point);
    free(source);
    free(real);
    return path;
}

#define ATTRIBUTE "user.lime."

enum { FAULT_MAX = 128, /* for "%127s" */ TYPE_OFFSET = 16 /* of the type in a header */ };

struct record_entry {
    uint64_t ordinal, offset; /* offset of the header */
    uint64_t bytes, next;     /* next: offset of the next header */
    char *name;
};

struct mounted_container {
    struct limefile_source source;
    int dirfd;
    struct record_entry *records; /* one per record, by ordinal */
    size_t count, capacity;
    struct limefile_finding fault; /* code 0: no fault */
    uint64_t size;                 /* of the container, including bytes after the fault */
};

/* ---- list the records ---- */

bool mounted_is_container(const char *dir)
{
    char count[32];
    struct stat st;
    if (stat(dir, &st) != 0)
        return false;
    errno = ENOTDIR;
    return S_ISDIR(st.st_mode) && is_in_limefs(dir) &&
           getxattr(dir, ATTRIBUTE "records", count, sizeof count) > 0;
}

/* Returns the ordinal in "012-type", or 0 for another name. */
static uint64_t parse_ordinal(const char *name)
{
    uint64_t ordinal;
    const char *end = strchr(name, '-');
    return end && limefile_parse_number(name, (size_t)(end - name), &ordinal) ? ordinal : 0;
}

/* limefs lists all records in order, then the exports (views of records as other formats). The
 * name of an export begins with its record's ordinal. */
static bool is_export(const struct mounted_container *m, uint64_t ordinal)
{
    return ordinal && m->count && ordinal <= m->records[m->count - 1].ordinal;
}

/* Adds a directory entry to the list. A name without an ordinal gets ordinal 0, for which
 * compute_offsets() fails. Returns 0 or -ENOMEM. */
static int add_record_name(void *context, const char *name)
{
    struct mounted_container *m = context;
    uint64_t ordinal = parse_ordinal(name);
    if (is_export(m, ordinal))
        return 0;
    if (!limefile_reserve(&m->records, &m->capacity, m->count + 1, sizeof *m->records))
        return -ENOMEM;
    char *copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    m->records[m->count++] = (struct record_entry){.ordinal = ordinal, .name = copy};
    return 0;
}

static int compare_ordinals(const void *a, const void *b)
{
    const struct record_entry *x = a, *y = b;
    return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

/* Fills m->records from the names in m->dirfd, sorted by ordinal. Returns 0 or -errno; the list
 * is freed by mounted_close(), also after an error. */
static int list_records(struct mounted_container *m)
{
    int err = directory_each(m->dirfd, ".", 0, add_record_name, m);
    if (m->count)
        qsort(m->records, m->count, sizeof *m->records, compare_ordinals);
    return err;
}

/* Computes each record's offset. -ESTALE: a record is missing, so the container has changed. */
static int compute_offsets(struct mounted_container *m)
{
    uint64_t offset = 0, data_end;
    for (size_t i = 0; i < m->count; i++) {
        struct record_entry *e = &m->records[i];
        struct stat st;
        if (e->ordinal != i + 1)
            return -ESTALE;
        if (fstatat(m->dirfd, e->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            return errno == ENOENT ? -ESTALE : -errno;
        e->offset = offset;
        e->bytes = (uint64_t)st.st_size;
        int err = limefile_record_end(offset, e->bytes, &data_end, &e->next);
        if (err)
            return err;
        offset = e->next;
    }
    m->size = offset;
    return 0;
}

int mounted_fd(const struct mounted_container *m)
{
    return m->dirfd;
}

int mounted_open_data(const struct mounted_container *m, uint64_t ordinal)
{
    int fd = openat(m->dirfd, m->records[ordinal - 1].name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Uses the record's path: with -o verify=open, a record with bad data cannot be opened. */
int mounted_read_attribute(const struct mounted_container *m, uint64_t ordinal,
                           const char *name, char value[MOUNTED_VALUE_MAX])
{
    char path[PATH_MAX], attribute[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", m->dirfd, m->records[ordinal - 1].name);
    snprintf(attribute, sizeof attribute, ATTRIBUTE "%s", name);
    ssize_t len = lgetxattr(path, attribute, value, MOUNTED_VALUE_MAX - 1);
    value[len < 0 ? 0 : len] = '\0';
    return len < 0 ? -errno : (int)len;
}

/* Returns 1 or 0 for the attribute of record i (from 0), or -errno. */
static int read_flag(const struct mounted_container *m, size_t i, const char *name)
{
    char value[MOUNTED_VALUE_MAX];
    int len = mounted_read_attribute(m, i + 1, name, value);
    return len < 0 ? len : strcmp(value, "1") == 0;
}

const char *mounted_format(const struct mounted_container *m)
{
    char value[MOUNTED_VALUE_MAX];
    if (m->count == 0 || mounted_read_attribute(m, 1, "offset", value) != -ENODATA ||
        mounted_read_attribute(m, 1, "type", value) < 0)
        return NULL; /* only records of other formats have no offset in their file */
    value[strcspn(value, "-")] = '\0'; /* "nersc-header" */
    enum limefile_gauge_format format = limefile_gauge_format_by_name(value);
    return format ? limefile_gauge_format_name(format) : NULL;
}

/* Builds a header from the record's attributes; its reserved bits are 0. */
static int build_header(const struct mounted_container *m, size_t i, unsigned char *raw)
{
    char type[MOUNTED_VALUE_MAX];
    struct limefile_header header;
    int len = mounted_read_attribute(m, i + 1, "type", type);
    if (len < 0 || len > LIMEFILE_TYPE_BYTES)
        return len < 0 ? len : -EPROTO;
    int mb = read_flag(m, i, "mb"), me = read_flag(m, i, "me");
    int err = mb < 0 ? mb : me < 0 ? me : 0;
    if (!err)
        err = limefile_header_init(&header, "", 0, m->records[i].bytes, mb, me);
    if (!err)
        err = limefile_header_encode(&header, raw);
    if (!err)
        memcpy(raw + TYPE_OFFSET, type, (size_t)len); /* limefile_header_init() allows < 128 */
    return err;
}

/* Gets a record's header and, behind it, its padding from the attribute "header". While a
 * program writes to the container, limefs does not have this attribute (ENODATA); then builds
 * both. Returns their length, or an error. */
static int load_header(const struct mounted_container *m, size_t i,
                       char value[MOUNTED_VALUE_MAX])
{
    int most = LIMEFILE_HEADER_BYTES + (int)limefile_padding(m->records[i].bytes);
    int len = mounted_read_attribute(m, i + 1, "header", value);
    if (len == -ENODATA) {
        memset(value, 0, MOUNTED_VALUE_MAX);
        int err = build_header(m, i, (unsigned char *)value);
        return err ? err : most;
    }
    return len < 0 || (len >= LIMEFILE_HEADER_BYTES && len <= most) ? len : -EPROTO;
}

/* The last record's padding can be missing. Returns 0 or an error. */
static int subtract_missing_padding(struct mounted_container *m)
{
    char value[MOUNTED_VALUE_MAX];
    unsigned padding = m->count ? limefile_padding(m->records[m->count - 1].bytes) : 0;
    int len = padding ? load_header(m, m->count - 1, value) : LIMEFILE_HEADER_BYTES;
    if (len >= 0)
        m->size -= padding - (unsigned)(len - LIMEFILE_HEADER_BYTES);
    return len < 0 ? len : 0;
}

/* ---- the source ---- */

/* Finds the record that contains the offset, from its header to its padding. */
static size_t find_record_at(const struct mounted_container *m, uint64_t offset)
{
    size_t low = 0, high = m->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (m->records[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Copies bytes at offset `at` of the record: of its header, or of its padding. */
static ssize_t copy_header(const struct mounted_container *m, size_t i, void *buf, size_t n,
                           uint64_t at)
{
    char value[MOUNTED_VALUE_MAX];
    int len = load_header(m, i, value);
    if (len < 0)
        return len;
    size_t end = at < LIMEFILE_HEADER_BYTES ? LIMEFILE_HEADER_BYTES : (size_t)len;
    size_t from = (size_t)(at < LIMEFILE_HEADER_BYTES ? at : at - m->records[i].bytes);
    n = from > end ? 0 : n < end - from ? n : end - from;
    memcpy(buf, value + from, n);
    return (ssize_t)n;
}

static ssize_t mounted_read(struct limefile_source *source, void *buf, size_t n,
                            uint64_t offset)
{
    const struct mounted_container *m = (const struct mounted_container *)source;
    size_t i = find_record_at(m, offset);
    if (m->count == 0 || offset >= m->records[i].next || n == 0)
        return 0;
    const struct record_entry *e = &m->records[i];
    uint64_t at = offset - e->offset;
    if (at < LIMEFILE_HEADER_BYTES || at - LIMEFILE_HEADER_BYTES >= e->bytes)
        return copy_header(m, i, buf, n, at);
    at -= LIMEFILE_HEADER_BYTES;
    int fd = mounted_open_data(m, e->ordinal);
    if (fd < 0)
        return fd;
    n = n < e->bytes - at ? n : (size_t)(e->bytes - at);
    ssize_t got = limefile_fd_read(fd, buf, n, at);
    close(fd);
    return got;
}

static int mounted_size(struct limefile_source *source, uint64_t *size)
{
    const struct mounted_container *m = (const struct mounted_container *)source;
    *size = m->size;
    return 0;
}

/* Returns true and sets *out if the container's records end at `offset` with a fault. */
static bool mounted_fault(struct limefile_source *source, uint64_t offset,
                          struct limefile_finding *out)
{
    const struct mounted_container *m = (const struct mounted_container *)source;
    *out = m->fault;
    return m->fault.code && offset == (m->count ? m->records[m->count - 1].next : 0);
}

static const struct limefile_source_ops mounted_ops = {
    .read = mounted_read, .size = mounted_size, .fault = mounted_fault};

/* Sets m->fault and m->size if there is an attribute "WORD OFFSET ORDINAL HAVE WANT SIZE". */
static int read_fault_attribute(struct mounted_container *m)
{
    char text[FAULT_MAX], word[FAULT_MAX];
    struct limefile_finding *fault = &m->fault;
    ssize_t n = fgetxattr(m->dirfd, ATTRIBUTE "fault_code", text, sizeof text - 1);
    if (n < 0)
        return errno == ENODATA ? 0 : -errno;
    text[n] = '\0';
    if (sscanf(text, "%127s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, word,
               &fault->offset, &fault->ordinal, &fault->have, &fault->want, &m->size) != 6)
        return -EPROTO;
    fault->code = -EIO; /* remains if WORD is not found: it names an errno */
    for (int code = LIMEFILE_E_MAGIC; code <= LIMEFILE_E_RECORDS; code++)
        if (strcmp(limefile_error_word(code), word) == 0)
            fault->code = code;
    return 0;
}

int mounted_open(const char *dir, struct mounted_container **out)
{
    struct mounted_container *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->source.ops = &mounted_ops;
    m->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = m->dirfd < 0 ? -errno : list_records(m);
    if (!err)
        err = compute_offsets(m);
    if (!err)
        err = subtract_missing_padding(m);
    if (!err)
        err = read_fault_attribute(m);
    if (err)
        mounted_close(m);
    else
        *out = m;
    return err;
}

void mounted_close(struct mounted_container *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->count; i++)
        free(m->records[i].name);
    free(m->records);
    if (m->dirfd >= 0)
        close(m->dirfd);
    free(m);
}

struct limefile_source *mounted_source(struct mounted_container *m)
{
    return &m->source;
}
