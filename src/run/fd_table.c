/*
 * fd_table.c - the table of descriptors
 *
 * The entry of a descriptor contains the index of its record, and how often this index was used
 * before, so that an old entry never refers to a new record. The upper half of the record's
 * `refs` is that count; the lower half counts the entries and calls that use the record. The
 * container is closed after the last of these uses.
 *
 * A child of vfork() shares this memory, but not the descriptors, and must not change the
 * table. So functions that change it compare process ids. A page that the kernel clears at each
 * fork() shows that a child has its own memory.
 */
#define _GNU_SOURCE
#include "run.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U
#endif

enum {
    FDS = LIMEFS_RUN_FDS,
    RECORDS = LIMEFS_RUN_RECORDS,
    LOW_FDS = 512, /* for the program: the library uses higher ones */
    MAX_SHARE = 8, /* the library uses at most 1/8 of the descriptors */

    /* Entries that do not refer to a record. */
    NO_ENTRY = 0,
    BY_MOUNT,
    OWN_FD,
    PER_RECORD = LIMEFS_RUN_PER_RECORD, /* entries of records are multiples of it, less 1 */
};

#define USERS_MASK UINT64_C(0xffffffff)
#define CLOSING    USERS_MASK /* a thread is releasing or initializing the record */

_Atomic uint64_t limefs_run_entries[FDS];
struct limefs_run_record limefs_run_records[RECORDS];
static atomic_uint highest_fd;     /* highest descriptor that ever had an entry */
static atomic_int container_count; /* containers that the library has open */
static _Atomic pid_t owner_pid;    /* process of this memory */
static atomic_int *same_process;   /* in the page that fork() clears; 0: in a new child */
static _Atomic uint64_t counts[2]; /* bytes read through the mount, and without it */
static int report_fd = -1;         /* a copy of stderr, which programs close before they end */
static struct stat report_file;    /* the file of report_fd */

void limefs_run_table_init(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    atomic_store(&owner_pid, getpid());
    if (memory == MAP_FAILED || madvise(memory, page, MADV_WIPEONFORK) != 0)
        return; /* children then use the parent's entries and change none */
    same_process = memory;
    atomic_store(same_process, 1);
}

bool limefs_run_owns_table(void)
{
    pid_t self = getpid();
    if (same_process && atomic_load(same_process) == 0) {
        atomic_store(&owner_pid, self);
        atomic_store(same_process, 1);
    }
    return atomic_load(&owner_pid) == self;
}

/* ---- identify a descriptor ---- */

bool limefs_run_stat(int fd, struct statx *stx)
{
    return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                 STATX_TYPE | STATX_INO | STATX_SIZE | STATX_MNT_ID_UNIQUE, stx) == 0;
}

uint64_t limefs_run_mount_id(const struct statx *stx)
{
    return stx->stx_mask & STATX_MNT_ID_UNIQUE ? stx->stx_mnt_id : 0;
}

bool limefs_run_is_record(int fd, const struct limefs_run_record *record)
{
    struct statx stx;
    return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID_UNIQUE,
                 &stx) == 0 &&
           stx.stx_ino == record->ino && limefs_run_mount_id(&stx) == record->mount_id &&
           makedev(stx.stx_dev_major, stx.stx_dev_minor) == record->dev;
}

/* ---- records ---- */

static uint64_t make_entry(const struct limefs_run_record *record, uint64_t refs)
{
    return ((refs >> 32) * RECORDS + (uint64_t)(record - limefs_run_records)) * PER_RECORD +
           PER_RECORD - 1;
}

/* Takes a reference, if the entry still refers to the record. */
static struct limefs_run_record *get_record(uint64_t entry)
{
    struct limefs_run_record *record = limefs_run_entry_record(entry);
    if (!record)
        return NULL;
    uint64_t refs = atomic_load(&record->refs);
    do {
        uint64_t users = refs & USERS_MASK;
        if (users == 0 || users >= CLOSING - 1 || make_entry(record, refs) != entry)
            return NULL;
    } while (!atomic_compare_exchange_weak(&record->refs, &refs, refs + 1));
    return record;
}

struct limefs_run_record *limefs_run_get_record(int fd)
{
    return get_record(limefs_run_entry(fd));
}

/* False if the program has closed fd unnoticed, and opened another file with that number. */
static bool is_container_fd(int fd, const struct limefs_run_record *record)
{
    struct stat st;
    return record && fstat(fd, &st) == 0 && st.st_dev == record->identity.dev &&
           st.st_ino == record->identity.ino;
}

static void close_container_fd(struct limefs_run_record *record)
{
    uint64_t own = OWN_FD;
    int fd = atomic_exchange(&record->container_fd, -1);
    if (fd < 0)
        return;
    bool ours = is_container_fd(fd, record);
    if (fd < FDS)
        atomic_compare_exchange_strong(&limefs_run_entries[fd], &own, NO_ENTRY);
    atomic_fetch_sub(&container_count, 1);
    if (ours)
        limefs_run_libc()->close(fd);
}

static void close_position_fd(struct limefs_run_record *record)
{
    uint64_t own = OWN_FD;
    int fd = atomic_exchange(&record->position_fd, LIMEFS_RUN_NO_POSITION);
    if (fd >= 0 && limefs_run_is_record(fd, record) &&
        (fd >= FDS || atomic_compare_exchange_strong(&limefs_run_entries[fd], &own, NO_ENTRY)))
        limefs_run_libc()->close(fd);
}

static void init_record(struct limefs_run_record *record, const struct limefs_run_record *found,
                        int container)
{
    record->dev = found->dev;
    record->ino = found->ino;
    record->mount_id = found->mount_id;
    record->identity = found->identity;
    record->offset = found->offset;
    record->bytes = found->bytes;
    record->head = found->head;
    record->has_tail = found->has_tail;
    atomic_store(&record->changed, false);
    atomic_store(&record->position_fd, LIMEFS_RUN_NO_POSITION);
    atomic_store(&record->container_fd, container);
    atomic_fetch_add(&container_count, 1);
}

void limefs_run_put_record(struct limefs_run_record *record)
{
    int saved_errno = errno;
    uint64_t refs = atomic_load(&record->refs);
    while (!atomic_compare_exchange_weak(&record->refs, &refs,
                                         (refs & USERS_MASK) == 1 ? refs | CLOSING : refs - 1))
        ;
    if ((refs & USERS_MASK) == 1) {
        struct limefs_run_interrupts
            quiet; /* a handler that jumps away would leak descriptors */
        limefs_run_block_interrupts(&quiet);
        close_position_fd(record);
        close_container_fd(record);
        atomic_store(&record->refs, ((refs >> 32) + 1) << 32);
        limefs_run_restore_interrupts(&quiet);
    }
    errno = saved_errno;
}

void limefs_run_read_by_mount(int fd)
{
    struct limefs_run_record *record = limefs_run_get_record(fd);
    if (!record)
        return;
    atomic_store(&record->changed, true);
    limefs_run_put_record(record);
}

/* Reserves a free record for this thread; NULL: none is left. */
static struct limefs_run_record *reserve_record(void)
{
    for (int i = 0; i < RECORDS; i++) {
        uint64_t refs = atomic_load(&limefs_run_records[i].refs);
        if ((refs & USERS_MASK) == 0 &&
            atomic_compare_exchange_strong(&limefs_run_records[i].refs, &refs, refs | CLOSING))
            return &limefs_run_records[i];
    }
    return NULL;
}

/* ---- entries ---- */

/* Replaces fd's entry; takes over a reference to the new record, drops the old entry's. */
static void set_entry(int fd, uint64_t entry)
{
    unsigned seen = atomic_load(&highest_fd);
    while (entry && seen < (unsigned)fd &&
           !atomic_compare_exchange_weak(&highest_fd, &seen, (unsigned)fd))
        ;
    struct limefs_run_record *old = get_record(atomic_exchange(&limefs_run_entries[fd], entry));
    if (old) {
        limefs_run_put_record(old); /* the reference of the entry */
        limefs_run_put_record(old);
    }
}

void limefs_run_mark_library_fd(int fd, bool own)
{
    if (fd >= 0 && fd < FDS)
        set_entry(fd, own ? OWN_FD : NO_ENTRY);
}

bool limefs_run_insert(int fd, const struct limefs_run_record *found, int container)
{
    int saved_errno = errno;
    bool noted = fd >= 0 && fd < FDS && limefs_run_owns_table();
    struct limefs_run_record *record = noted && found ? reserve_record() : NULL;
    if (record) {
        uint64_t refs = (atomic_load(&record->refs) & ~USERS_MASK) + 1;
        init_record(record, found, container);
        limefs_run_mark_library_fd(container, true);
        atomic_store_explicit(&record->refs, refs, memory_order_release);
        set_entry(fd, make_entry(record, refs));
    } else if (container >= 0) {
        limefs_run_libc()->close(container);
    }
    if (noted && !record)
        set_entry(fd, BY_MOUNT);
    errno = saved_errno;
    return noted;
}

void limefs_run_copy_entry(int fd, int of)
{
    int saved_errno = errno;
    uint64_t entry = limefs_run_entry(of);
    if (fd != of && fd >= 0 && fd < FDS && (entry || limefs_run_entry(fd)) &&
        limefs_run_owns_table()) {
        if (entry != BY_MOUNT && !get_record(entry)) /* the new entry keeps this reference */
            entry = NO_ENTRY;
        set_entry(fd, entry);
    }
    errno = saved_errno;
}

void limefs_run_remove(int fd)
{
    int saved_errno = errno;
    if (limefs_run_is_known(fd) && limefs_run_owns_table())
        set_entry(fd, NO_ENTRY);
    errno = saved_errno;
}

void limefs_run_remove_range(unsigned first, unsigned last)
{
    unsigned top = atomic_load(&highest_fd);
    for (unsigned fd = first; fd <= last && fd <= top + 1 && fd < FDS; fd++) {
        limefs_run_yield_fd((int)fd);
        limefs_run_remove((int)fd);
    }
}

/* ---- descriptors of the library ---- */

/* Returns the record that uses fd for its container or its position. */
static struct limefs_run_record *find_user(int fd)
{
    for (int i = 0; i < RECORDS; i++)
        if ((atomic_load(&limefs_run_records[i].container_fd) == fd ||
             atomic_load(&limefs_run_records[i].position_fd) == fd) &&
            atomic_load(&limefs_run_records[i].refs) & USERS_MASK)
            return &limefs_run_records[i];
    return NULL;
}

static bool is_fd_of(int fd, const struct limefs_run_record *record)
{
    return is_container_fd(fd, record) || (record && atomic_load(&record->position_fd) == fd &&
                                           limefs_run_is_record(fd, record));
}

static bool is_report(int fd)
{
    return fd >= 0 && fd == report_fd;
}

bool limefs_run_is_library_fd(int fd)
{
    int saved_errno = errno;
    bool own = is_report(fd) || (limefs_run_entry(fd) == OWN_FD && is_fd_of(fd, find_user(fd)));
    errno = saved_errno;
    return own;
}

/* Makes the record give up fd. Without its container, it is read through the mount. */
static void yield_fd(int fd, struct limefs_run_record *record)
{
    int own = fd;
    if (atomic_compare_exchange_strong(&record->position_fd, &own, LIMEFS_RUN_NO_POSITION))
        return;
    atomic_store(&record->changed, true);
    if (atomic_exchange(&record->container_fd, -1) >= 0)
        atomic_fetch_sub(&container_count, 1);
}

void limefs_run_yield_fd(int fd)
{
    bool reports = is_report(fd);
    if ((!reports && limefs_run_entry(fd) != OWN_FD) || !limefs_run_owns_table())
        return;
    if (reports)
        report_fd = limefs_run_libc()->fcntl(report_fd, F_DUPFD_CLOEXEC, report_fd + 1);
    struct limefs_run_record *record = reports ? NULL : find_user(fd);
    if (record)
        yield_fd(fd, record);
    set_entry(fd, NO_ENTRY);
}

bool limefs_run_may_open_more(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
           (rlim_t)atomic_load(&container_count) < limit.rlim_cur / MAX_SHARE;
}

int limefs_run_dup_high(int fd)
{
    struct rlimit limit;
    int lowest = LOW_FDS;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 2 * LOW_FDS)
        lowest = (int)limit.rlim_cur / 2;
    return limefs_run_libc()->fcntl(fd, F_DUPFD_CLOEXEC, lowest);
}

int limefs_run_move_high(int fd)
{
    int high = limefs_run_dup_high(fd);
    limefs_run_libc()->close(fd);
    return high;
}

/* ---- report at the program's end how many bytes were read with and without the mount ---- */

ssize_t limefs_run_count(ssize_t got, bool direct)
{
    if (got > 0)
        atomic_fetch_add_explicit(&counts[direct], (uint64_t)got, memory_order_relaxed);
    return got;
}

void limefs_run_report_init(void)
{
    const char *value = getenv("LIMEFS_RUN_REPORT");
    if (!value || strcmp(value, "1") != 0)
        return;
    int fd = limefs_run_libc()->fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0 && fstat(fd, &report_file) == 0)
        report_fd = limefs_run_move_high(fd);
}

/* Returns true unless the program has closed the descriptor and opened another file. */
static bool is_report_open(void)
{
    struct stat st;
    return report_fd >= 0 && fstat(report_fd, &st) == 0 && st.st_dev == report_file.st_dev &&
           st.st_ino == report_file.st_ino;
}

__attribute__((destructor)) static void print_report(void)
{
    char name[64], line[256];
    uint64_t through = atomic_load(&counts[false]), direct = atomic_load(&counts[true]);
    if (!is_report_open() || (direct == 0 && through == 0)) /* most programs read no records */
        return;
    snprintf(name, sizeof name, "%s", program_invocation_short_name);
    limefile_text_sanitize(name, "");
    int n = snprintf(line, sizeof line,
                     "limefs-run: %s: %" PRIu64 " bytes read directly, %" PRIu64
                     " bytes through the mount\n",
                     name, direct, through);
    if (n > 0 && write(report_fd, line, (size_t)n) < 0)
        return; /* the report has no other output */
}
