/* find_container.c - ask the mount where a record's bytes are, and open the container */
#define _GNU_SOURCE
#include "limefile.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    INHERITED_FDS = 10,            /* lower descriptors are examined when the program starts */
    DEFAULT_MIN_BYTES = 64 * 1024, /* for a smaller record, a query takes longer than a read */
    CACHE_SIZE = 64,               /* mounts in the cache */
    KINDS = 4,                     /* of enum limefs_run_mount_kind */
};

static uint64_t min_bytes = DEFAULT_MIN_BYTES;

/* ---- find limefs mounts and their users in /proc/self/mountinfo ---- */

/* A mount decides which file the library opens for a record. So the library trusts only mounts
 * of the program's own user and of root. */
enum limefs_run_mount_kind {
    LIMEFS_RUN_UNKNOWN, /* not known now; perhaps no descriptor was free */
    LIMEFS_RUN_OTHER,   /* not a limefs mount */
    LIMEFS_RUN_UNTRUSTED,
    LIMEFS_RUN_TRUSTED,
};

enum {
    DEVICE = 2,   /* number of the field in a line, from 0 */
    TYPE = 1,     /* number after the field "-" */
    OPTIONS = 3,  /* after "-", too: options of the file system */
    WORD_MAX = 32 /* of a text to find; longer words do not match */
};

/* Parses one word at a time, because lines may be longer than any buffer. */
struct mount_parser {
    int field, separator; /* numbers of this field and of "-" (-1: not seen yet) */
    char word[WORD_MAX];
    size_t len;
    unsigned major, minor; /* device to find */
    bool device, limefs;   /* this line has the device; it has the type fuse.limefs */
    uint64_t user;         /* of this line: the user of the mount */
    enum limefs_run_mount_kind found;
};

/* Parses a decimal number that ends with `end`. */
static bool parse_decimal(const char **at, char end, uint64_t *n)
{
    const char *begin = *at;
    for (*n = 0; **at >= '0' && **at <= '9' && *at < begin + 18; ++*at)
        *n = *n * 10 + (uint64_t)(**at - '0');
    return *at > begin && *(*at)++ == end;
}

static bool matches_device(const struct mount_parser *parser)
{
    uint64_t major, minor;
    const char *at = parser->word;
    return parse_decimal(&at, ':', &major) && parse_decimal(&at, '\0', &minor) &&
           major == parser->major && minor == parser->minor;
}

static void parse_word(struct mount_parser *parser)
{
    static const char user[] = "user_id=";
    parser->word[parser->len < WORD_MAX ? parser->len : 0] = '\0';
    int after = parser->separator < 0 ? 0 : parser->field - parser->separator;
    if (parser->field == DEVICE)
        parser->device = matches_device(parser);
    else if (parser->separator < 0 && parser->field > DEVICE && strcmp(parser->word, "-") == 0)
        parser->separator = parser->field;
    else if (after == TYPE)
        parser->limefs = strcmp(parser->word, "fuse.limefs") == 0;
    else if (after == OPTIONS && strncmp(parser->word, user, sizeof user - 1) == 0) {
        const char *at = parser->word + sizeof user - 1;
        if (!parse_decimal(&at, '\0', &parser->user))
            parser->user = UINT64_MAX;
    }
    parser->len = 0;
}

static void finish_line(struct mount_parser *parser)
{
    if (parser->device && parser->limefs)
        parser->found = parser->user == 0 || parser->user == geteuid() ? LIMEFS_RUN_TRUSTED
                                                                       : LIMEFS_RUN_UNTRUSTED;
    parser->device = parser->limefs = false;
    parser->user = UINT64_MAX;
    parser->field = 0;
    parser->separator = -1;
}

static void parse_char(struct mount_parser *parser, char c)
{
    bool option =
        c == ',' && parser->separator >= 0 && parser->field == parser->separator + OPTIONS;
    if (c != ' ' && c != '\n' && !option) {
        if (parser->len < WORD_MAX)
            parser->word[parser->len++] = c;
        return;
    }
    parse_word(parser);
    if (c == '\n')
        finish_line(parser);
    else if (c == ' ')
        parser->field++;
}

static enum limefs_run_mount_kind classify_mount(unsigned major, unsigned minor)
{
    char buf[1024];
    struct mount_parser parser = {.major = major, .minor = minor, .found = LIMEFS_RUN_OTHER};
    finish_line(&parser);
    const struct limefs_run_libc *real = limefs_run_libc();
    int fd = real->open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return LIMEFS_RUN_UNKNOWN;
    ssize_t got;
    while ((got = real->read(fd, buf, sizeof buf)) > 0)
        for (ssize_t i = 0; i < got; i++)
            parse_char(&parser, buf[i]);
    real->close(fd);
    return parser.found;
}

/* Caches classify_mount() for a mount's unique id and the user. Kernels before Linux 6.8 have
 * no such id: then each call reads the list of mounts. */
static enum limefs_run_mount_kind get_mount_kind(const struct statx *stx)
{
    static _Atomic uint64_t cache[CACHE_SIZE];
    uint64_t id = limefs_run_mount_id(stx), key = (id << 32 | geteuid()) * KINDS;
    _Atomic uint64_t *entry = &cache[id % CACHE_SIZE];
    uint64_t kind = atomic_load(entry);
    if (id && kind % KINDS != LIMEFS_RUN_UNKNOWN && kind - kind % KINDS == key)
        return (enum limefs_run_mount_kind)(kind % KINDS);
    enum limefs_run_mount_kind found = classify_mount(stx->stx_dev_major, stx->stx_dev_minor);
    if (id)
        atomic_store(entry, key + found);
    return found;
}

/* ---- the container ---- */

/* Opens the container with the program's rights. -1: not possible, or the container changed. */
static int open_unchanged(const struct limefile_range *range)
{
    struct stat st = {0};
    if (!limefs_run_may_open_more())
        return -1;
    int fd = limefs_run_libc()->open(range->path,
                                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    bool right = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    struct limefile_identity now = limefile_identify(&st);
    if (right && limefile_identity_equal(&now, &range->container))
        return limefs_run_move_high(fd);
    limefs_run_libc()->close(fd);
    return -1;
}

/* Returns false also if the kernel cannot tell: before Linux 6.5, or for other users' files. */
static bool is_in_memory(int container, const struct limefile_range *range)
{
    return limefile_cached_bytes(container, range->offset, range->bytes) >=
           (int64_t)range->bytes;
}

/* Opens the record's container. -1: the mount must read the record, for example because it has
 * a job, which is faster if the bytes are not in this host's memory. */
static int find_container(int fd, struct limefs_run_record *record)
{
    char text[LIMEFILE_RANGE_TEXT_MAX];
    struct limefile_range range;
    ssize_t len = fgetxattr(fd, LIMEFILE_RANGE_XATTR, text, LIMEFILE_RANGE_TEXT_MAX - 1);
    if (len <= 0 || limefile_range_decode(text, (size_t)len, &range) != 0)
        return -1;
    record->identity = range.container;
    record->offset = range.offset;
    record->bytes = range.bytes;
    record->head = range.prefix;
    int container = open_unchanged(&range);
    if (container < 0 || !range.has_job || is_in_memory(container, &range))
        return container;
    limefs_run_libc()->close(container);
    return -1;
}

static void examine_file(int fd, int flags)
{
    struct statx stx;
    /* FUSE mounts have no block device, so their major device number is 0. */
    if (!limefs_run_stat(fd, &stx) || !S_ISREG(stx.stx_mode) || stx.stx_dev_major != 0)
        return;
    enum limefs_run_mount_kind mount = get_mount_kind(&stx);
    if (mount == LIMEFS_RUN_OTHER || mount == LIMEFS_RUN_UNKNOWN)
        return;
    struct limefs_run_record record = {
        .dev = makedev(stx.stx_dev_major, stx.stx_dev_minor),
        .ino = stx.stx_ino,
        .mount_id = limefs_run_mount_id(&stx),
    };
    bool plain = (flags & O_ACCMODE) == O_RDONLY && !(flags & O_DIRECT);
    int container = -1;
    if (plain && mount == LIMEFS_RUN_TRUSTED && stx.stx_size >= min_bytes)
        container = find_container(fd, &record);
    bool same = container >= 0 && record.head + record.bytes <= stx.stx_size;
    record.has_tail = record.head + record.bytes < stx.stx_size;
    if (container >= 0 && !same)
        limefs_run_libc()->close(container);
    limefs_run_insert(fd, same ? &record : NULL, same ? container : -1);
}

void limefs_run_examine(int fd, int flags)
{
    int saved_errno = errno, cancel = limefs_run_disable_cancel();
    limefs_run_remove(fd); /* an older file may have been closed unnoticed */
    if (fd >= 0 && (flags & O_ACCMODE) != O_WRONLY && !(flags & (O_PATH | O_DIRECTORY)))
        examine_file(fd, flags);
    limefs_run_restore_cancel(cancel);
    errno = saved_errno;
}

/* Restores errno, which must be 0 when a program begins (C11 7.5). */
__attribute__((constructor)) static void init_library(void)
{
    int saved_errno = errno;
    const char *value = getenv("LIMEFS_RUN_FROM");
    limefs_run_table_init();
    limefs_run_report_init();
    if (value && *value)
        min_bytes = strtoull(value, NULL, 10);
    for (int fd = 0; fd < INHERITED_FDS; fd++) {
        int flags = limefs_run_libc()->fcntl(fd, F_GETFL);
        if (flags >= 0)
            limefs_run_examine(fd, flags);
    }
    errno = saved_errno;
}
