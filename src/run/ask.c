/* ask.c - ask the mount where a record's bytes are, and open the container */
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
    INHERITED = 10,   /* lower descriptors are examined when the program starts */
    FROM = 64 * 1024, /* bytes of a record: to read less is faster than to ask */
    CACHE = 64,       /* mounts in the cache */
    KINDS = 4,
};

static uint64_t from = FROM;

/* ---- find limefs mounts and their users in /proc/self/mountinfo ---- */

/* A mount decides which files a program reads. So the library trusts only mounts of the
 * program's own user and of root. */
enum limefs_run_mount {
    LIMEFS_RUN_UNKNOWN, /* at the moment: there may be no free descriptor */
    LIMEFS_RUN_OTHER,   /* not a limefs mount */
    LIMEFS_RUN_STRANGER,
    LIMEFS_RUN_TRUSTED,
};

enum {
    DEVICE = 2,   /* number of the field in a line, from 0 */
    TYPE = 1,     /* number after the field "-" */
    OPTIONS = 3,  /* after "-", too: options of the file system */
    TEXT_MAX = 32 /* of a text to find; longer words do not match */
};

/* Parses one word at a time, because lines may be longer than any buffer. */
struct reader {
    int field, separator; /* number of this field, and of "-"; -1: not yet */
    char word[TEXT_MAX];
    size_t len;
    unsigned major, minor; /* device to find */
    bool device, limefs;   /* of this line */
    uint64_t user;         /* of this line: the user of the mount */
    enum limefs_run_mount found;
};

/* Parses a decimal number that ends with `end`. */
static bool number(const char **at, char end, uint64_t *n)
{
    const char *begin = *at;
    for (*n = 0; **at >= '0' && **at <= '9' && *at < begin + 18; ++*at)
        *n = *n * 10 + (uint64_t)(**at - '0');
    return *at > begin && *(*at)++ == end;
}

static bool is_device(const struct reader *reader)
{
    uint64_t major, minor;
    const char *at = reader->word;
    return number(&at, ':', &major) && number(&at, '\0', &minor) && major == reader->major &&
           minor == reader->minor;
}

static void take_word(struct reader *reader)
{
    static const char user[] = "user_id=";
    reader->word[reader->len < TEXT_MAX ? reader->len : 0] = '\0';
    int after = reader->separator < 0 ? 0 : reader->field - reader->separator;
    if (reader->field == DEVICE)
        reader->device = is_device(reader);
    else if (reader->separator < 0 && reader->field > DEVICE && strcmp(reader->word, "-") == 0)
        reader->separator = reader->field;
    else if (after == TYPE)
        reader->limefs = strcmp(reader->word, "fuse.limefs") == 0;
    else if (after == OPTIONS && strncmp(reader->word, user, sizeof user - 1) == 0) {
        const char *at = reader->word + sizeof user - 1;
        if (!number(&at, '\0', &reader->user))
            reader->user = UINT64_MAX;
    }
    reader->len = 0;
}

static void end_line(struct reader *reader)
{
    if (reader->device && reader->limefs)
        reader->found = reader->user == 0 || reader->user == geteuid() ? LIMEFS_RUN_TRUSTED
                                                                       : LIMEFS_RUN_STRANGER;
    reader->device = reader->limefs = false;
    reader->user = UINT64_MAX;
    reader->field = 0;
    reader->separator = -1;
}

static void take(struct reader *reader, char c)
{
    bool option =
        c == ',' && reader->separator >= 0 && reader->field == reader->separator + OPTIONS;
    if (c != ' ' && c != '\n' && !option) {
        if (reader->len < TEXT_MAX)
            reader->word[reader->len++] = c;
        return;
    }
    take_word(reader);
    if (c == '\n')
        end_line(reader);
    else if (c == ' ')
        reader->field++;
}

static enum limefs_run_mount find_mount(unsigned major, unsigned minor)
{
    char buf[1024];
    struct reader reader = {.major = major, .minor = minor, .found = LIMEFS_RUN_OTHER};
    end_line(&reader);
    const struct limefs_run_real *real = limefs_run_real();
    int fd = real->open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return LIMEFS_RUN_UNKNOWN;
    ssize_t got;
    while ((got = real->read(fd, buf, sizeof buf)) > 0)
        for (ssize_t i = 0; i < got; i++)
            take(&reader, buf[i]);
    real->close(fd);
    return reader.found;
}

/* Caches the result for a mount's unique id and the user. Kernels before Linux 6.8 have no such
 * id: then each call reads the list of mounts. */
static enum limefs_run_mount mount_of(const struct statx *stx)
{
    static _Atomic uint64_t known[CACHE];
    uint64_t id = limefs_run_mount_number(stx), key = (id << 32 | geteuid()) * KINDS;
    _Atomic uint64_t *place = &known[id % CACHE];
    uint64_t kind = atomic_load(place);
    if (id && kind % KINDS != LIMEFS_RUN_UNKNOWN && kind - kind % KINDS == key)
        return (enum limefs_run_mount)(kind % KINDS);
    enum limefs_run_mount found = find_mount(stx->stx_dev_major, stx->stx_dev_minor);
    if (id)
        atomic_store(place, key + found);
    return found;
}

/* ---- the container ---- */

/* Opens the container with the process's own rights, without waiting for a pipe. */
static int open_container(const struct limefile_range *range)
{
    struct stat st = {0};
    if (!limefs_run_may_have_more())
        return -1;
    int fd = limefs_run_real()->open(range->path,
                                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    bool right = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    struct limefile_identity now = limefile_identity_of(&st);
    if (right && limefile_identity_equal(&now, &range->container))
        return limefs_run_out_of_the_way(fd);
    limefs_run_real()->close(fd);
    return -1;
}

/* Returns false also if the kernel cannot tell: before Linux 6.5, or for others' files. */
static bool is_in_memory(int container, const struct limefile_range *range)
{
    return limefile_cached_bytes(container, range->offset, range->bytes) >=
           (int64_t)range->bytes;
}

/* Returns -1 if the mount must read the record as long as it is open: also if the mount has a
 * job and the bytes are not in this host's memory, because then the job is faster. */
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
    int container = open_container(&range);
    if (container < 0 || !range.has_job || is_in_memory(container, &range))
        return container;
    limefs_run_real()->close(container);
    return -1;
}

static void look_closer(int fd, int flags)
{
    struct statx stx;
    /* FUSE mounts have no device, so the upper half of their device number is 0. */
    if (!limefs_run_stat(fd, &stx) || !S_ISREG(stx.stx_mode) || stx.stx_dev_major != 0)
        return;
    enum limefs_run_mount mount = mount_of(&stx);
    if (mount == LIMEFS_RUN_OTHER || mount == LIMEFS_RUN_UNKNOWN)
        return;
    struct limefs_run_record record = {
        .dev = makedev(stx.stx_dev_major, stx.stx_dev_minor),
        .ino = stx.stx_ino,
        .mount = limefs_run_mount_number(&stx),
    };
    bool plain = (flags & O_ACCMODE) == O_RDONLY && !(flags & O_DIRECT);
    int container = -1;
    if (plain && mount == LIMEFS_RUN_TRUSTED && stx.stx_size >= from)
        container = find_container(fd, &record);
    bool same = container >= 0 && record.head + record.bytes <= stx.stx_size;
    record.tail = record.head + record.bytes < stx.stx_size;
    if (container >= 0 && !same)
        limefs_run_real()->close(container);
    limefs_run_note(fd, same ? &record : NULL, same ? container : -1);
}

void limefs_run_look(int fd, int flags)
{
    int kept = errno, cancel = limefs_run_cancel_off();
    limefs_run_forget(fd); /* in case the number was closed unnoticed */
    if (fd >= 0 && (flags & O_ACCMODE) != O_WRONLY && !(flags & (O_PATH | O_DIRECTORY)))
        look_closer(fd, flags);
    limefs_run_cancel_back(cancel);
    errno = kept;
}

/* errno is 0 when a program begins (C11 7.5). */
__attribute__((constructor)) static void begin(void)
{
    int kept = errno;
    const char *given = getenv("LIMEFS_RUN_FROM");
    limefs_run_table_begin();
    limefs_run_report_begin();
    if (given && *given)
        from = strtoull(given, NULL, 10);
    for (int fd = 0; fd < INHERITED; fd++) {
        int flags = limefs_run_real()->fcntl(fd, F_GETFL);
        if (flags >= 0)
            limefs_run_look(fd, flags);
    }
    errno = kept;
}
