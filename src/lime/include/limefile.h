/*
 * limefile.h - read, check, index and write LIME containers (docs/format.md).
 *
 * This header uses neither MPI nor FUSE. No function prints or has global state. Threads may
 * use different objects at once; only one thread at a time may use an object unless stated
 * otherwise.
 *
 * Functions that can fail return an int: 0 (or a count, where stated) on success; on failure
 * -errno or a value of enum limefile_error. limefile_strerror() has texts for both.
 *
 * Offsets and lengths are 64-bit byte counts; offsets start at the beginning of the container.
 * Ordinals, message numbers and record numbers count from 1.
 */
#ifndef LIMEFILE_H
#define LIMEFILE_H

#include "limeerror.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LIMEFILE_MAGIC        UINT32_C(0x456789ab)
#define LIMEFILE_VERSION      1
#define LIMEFILE_HEADER_BYTES 144 /* size of a record header in a file */
#define LIMEFILE_TYPE_BYTES   128 /* size of its type field; writers end the type with a NUL */
#define LIMEFILE_ALIGN        8   /* the data of a record are padded to a multiple of this */
#define LIMEFILE_BYTES_MAX    INT64_MAX /* the largest data length that a file can hold */

/* ---- headers (record_header.c), pure functions ---- */

/* A record header as read: the values of its fields, valid or not. */
struct limefile_header {
    uint64_t bytes;                     /* data length without padding */
    uint16_t version;                   /* LIMEFILE_VERSION in a valid header */
    uint8_t flags;                      /* the whole flags byte; `mb` and `me` are bits of it */
    uint8_t reserved;                   /* the byte after the flags; zero in a valid header */
    bool mb, me;                        /* first and last record of its message */
    bool type_tail;                     /* true if bytes other than NUL follow the type's NUL */
    uint8_t type_len;                   /* 0..128 */
    char type[LIMEFILE_TYPE_BYTES + 1]; /* NUL-terminated; no NUL inside */
};

/* Returns true if the `n` bytes at `raw` begin with the magic number or are a prefix of it. */
bool limefile_header_is_magic(const void *raw, size_t n);

/* Decodes LIMEFILE_HEADER_BYTES bytes. Errors: LIMEFILE_E_MAGIC, _VERSION or _LENGTH. After
 * _MAGIC, `out` is not filled in; after the others, it is. */
int limefile_header_decode(const unsigned char *raw, struct limefile_header *out);

/* Encodes mb, me, bytes, type and type_len; the format determines the other fields.
 * LIMEFILE_E_TYPE: type_len > 127, or a NUL in type. LIMEFILE_E_LENGTH: too many bytes. */
int limefile_header_encode(const struct limefile_header *in, unsigned char *raw);

/* Fills a header for limefile_header_encode(), with the same errors. */
int limefile_header_init(struct limefile_header *out, const char *type, size_t type_len,
                         uint64_t bytes, bool mb, bool me);

/* Returns how many bytes at the beginning of a type are printable ASCII. */
size_t limefile_type_printable(const char *type, size_t len);

/* Returns the number of padding bytes, 0..7, after data of this length. */
unsigned limefile_padding(uint64_t bytes);

/* Computes the end of the data and the offset of the next header, for a record with a header at
 * header_offset and `bytes` bytes of data. LIMEFILE_E_LENGTH: no file can be as large. */
int limefile_record_end(uint64_t header_offset, uint64_t bytes, uint64_t *data_end,
                        uint64_t *next);

/* ---- sources (source.c) -------------------------------------------------------------- */

/* The library accesses a container through a source. read and write work like pread(2) and
 * pwrite(2): they may move fewer than n bytes, and read returns 0 at the end. They return
 * -errno on failure. A limefs mount shows a damaged container as the records before the fault;
 * fault() returns true and fills *out if this fault is at `offset`. A source that is never
 * changed needs read and size; the other members may be NULL. */
struct limefile_source;
struct limefile_finding;
struct limefile_source_ops {
    ssize_t (*read)(struct limefile_source *, void *buf, size_t n, uint64_t offset);
    int (*size)(struct limefile_source *, uint64_t *size);
    ssize_t (*write)(struct limefile_source *, const void *buf, size_t n, uint64_t offset);
    int (*truncate)(struct limefile_source *, uint64_t size);
    int (*sync)(struct limefile_source *);
    bool (*fault)(struct limefile_source *, uint64_t offset, struct limefile_finding *out);
};
struct limefile_source {
    const struct limefile_source_ops *ops;
};

/* A file descriptor as a source. The caller closes the descriptor. */
struct limefile_fd {
    struct limefile_source source;
    int fd;
};
void limefile_fd_init(struct limefile_fd *, int fd);
int limefile_source_fd(struct limefile_source *); /* -1: the source has none */

/* Memory as a source. A write reallocates `data`, or returns -EROFS if `data` is borrowed. */
struct limefile_memory {
    struct limefile_source source;
    unsigned char *data;
    size_t size, capacity;
    bool borrowed; /* data belongs to the caller: no function writes or frees it */
};
void limefile_memory_init(struct limefile_memory *);
void limefile_memory_borrow(struct limefile_memory *, const void *data, size_t size);
void limefile_memory_release(struct limefile_memory *);

/* Read or write all n bytes. limefile_read_full() returns the number of bytes read, less than n
 * only at the end, or -errno. The others return 0 or -errno; limefile_read_exact() also returns
 * LIMEFILE_E_SHRUNK, if the source ends before n bytes. */
ssize_t limefile_read_full(struct limefile_source *, void *buf, size_t n, uint64_t offset);
int limefile_read_exact(struct limefile_source *, void *buf, size_t n, uint64_t offset);
int limefile_write_full(struct limefile_source *, const void *buf, size_t n, uint64_t offset);

/* Does limefile_write_full() on a descriptor. */
int limefile_fd_write(int fd, const void *buf, size_t n, uint64_t offset);

/* Writes like limefile_fd_write(), and starts to write the bytes to the disk: after a sequence
 * of such writes, fsync(2) waits less. */
int limefile_fd_stream(int fd, const void *buf, size_t n, uint64_t offset);

/* Do limefile_read_full() and limefile_read_exact() on a descriptor. */
ssize_t limefile_fd_read(int fd, void *buf, size_t n, uint64_t offset);
int limefile_fd_read_exact(int fd, void *buf, size_t n, uint64_t offset);

/* ---- copying (copy.c) --------------------------------------------------------------- */

#define LIMEFILE_AT_POSITION INT64_C(-1)

/* A copy in progress. The caller fills it in; the functions advance offsets and `left`. */
struct limefile_copy {
    int in;
    struct limefile_source *source; /* NULL, or read through it instead of from `in` */
    uint64_t in_offset;
    int out;
    int64_t out_offset; /* LIMEFILE_AT_POSITION: write(2) at the position of `out` */
    uint64_t left;
    void (*progress)(void *context, uint64_t more); /* or NULL */
    void *context;
    bool out_failed; /* true after an error of `out`, false after one of `in` */
};

/* Copies `left` bytes by the fastest call that both descriptors support. A file system that can
 * share blocks between files shares them instead of copying. Returns 0, -errno, or
 * LIMEFILE_E_SHRUNK if the input is too short. */
int limefile_copy(struct limefile_copy *);

/* Writes n bytes of memory to `out`; n must not exceed `left`. Returns 0 or -errno. */
int limefile_copy_write(struct limefile_copy *, const void *bytes, size_t n);

/* ---- opening (source.c) ------------------------------------------------------------- */

/* Opens a container and never blocks, even on a FIFO. flags: O_RDONLY or O_RDWR. Returns a
 * descriptor, -errno (-EISDIR for a directory) or LIMEFILE_E_NOT_FILE. */
int limefile_open(const char *path, int flags);

/* Returns 0 if fd is a regular file; else -EISDIR, LIMEFILE_E_NOT_FILE or another -errno. */
int limefile_check_fd(int fd);

/* ---- direct I/O (direct_io.c, page_cache.c) ---- */

/* Alignment of offset, length and memory of a direct read or write; enough for every device. */
#define LIMEFILE_DIRECT_ALIGN 4096

/* For fewer bytes, the kernel's read-ahead and write merging are faster than direct I/O. */
#define LIMEFILE_DIRECT_MIN (512 * 1024)

/* Huge page size of x86-64 and arm64 with 4 KiB pages. The kernel pins a buffer in huge pages
 * faster for a FUSE reply, and a disk fills it faster. */
#define LIMEFILE_HUGE_PAGE (2 << 20)

/* Allocates at least *bytes bytes, aligned for direct I/O, and sets *bytes to their number.
 * From LIMEFILE_DIRECT_MIN on, asks for huge pages. The caller frees it. NULL: no memory. */
void *limefile_buffer_new(size_t *bytes);

/* limefile_cached_bytes() returns how many bytes of the range's pages are in the page cache, or
 * -errno (-ENOSYS before Linux 6.5). limefile_is_cached() returns true if these are more than
 * half of n, or if their number is unknown. */
int64_t limefile_cached_bytes(int fd, uint64_t offset, size_t n);
bool limefile_is_cached(int fd, uint64_t offset, size_t n);

/* Reopens the file of `fd` for direct reads. Returns a descriptor or -errno; -EINVAL: the file
 * system does not support it. */
int limefile_open_direct(int fd);

/* Reads n bytes at `offset`, and the rest of the blocks (LIMEFILE_DIRECT_ALIGN) in which they
 * begin and end. `buf` is aligned and has room for n bytes and two blocks; *bytes points to the
 * n bytes in it. Returns how many of the n bytes it has read, or -errno. At the end of the
 * file, or before an error, these are fewer than n. */
ssize_t limefile_read_direct(int direct, char *buf, size_t n, uint64_t offset,
                             const char **bytes);

/* Finds the whole blocks in `data`, n bytes to be written at `offset`. Returns the length of
 * these blocks, and in *head the number of bytes before them. Returns 0 if n <
 * LIMEFILE_DIRECT_MIN, or if the blocks are not aligned in memory. */
size_t limefile_direct_blocks(const void *data, size_t n, uint64_t offset, size_t *head);

/* ---- findings ---------------------------------------------------------------------- */

/* A fault or deviation (limeerror.h) of a container, and its position. */
struct limefile_finding {
    int code;         /* enum limefile_error, or -errno of a failed read */
    uint64_t offset;  /* offset of the first byte concerned */
    uint64_t ordinal; /* of the record concerned (or of one that would follow); 0: whole file */
    uint64_t have;    /* actual length, count or value, depending on the code */
    uint64_t want;    /* expected value, for codes that have one */
    const char *why;  /* more detail or NULL; owned by the object that reported the finding */
};

/* Formats "offset 1234: record 7: the file ends inside the data: ...". buf always ends with a
 * NUL. Returns the same as snprintf(3). */
int limefile_finding_text(const struct limefile_finding *, char *buf, size_t cap);

/* ---- scan (scan.c): read records in sequence ---------------------------------------- */

struct limefile_record {
    uint64_t ordinal;       /* number in the container */
    uint32_t message;       /* number of its message; the first record and each MB begin one */
    uint32_t record;        /* number within its message */
    uint64_t header_offset; /* multiple of 8 in a valid file */
    uint64_t data_offset;   /* header_offset + 144 */
    uint64_t bytes;         /* data length; the file has all these bytes */
    uint8_t padding;        /* length of the padding after the data, 0..7 */
    bool mb, me;
    uint8_t type_len; /* 0..128 */
    const char
        *type; /* NUL-terminated; valid as long as the index, or until the scan's next call */
};

/* Reads the first n data bytes and adds a NUL. The caller frees *text (NULL on error). */
int limefile_record_read_text(struct limefile_source *, const struct limefile_record *,
                              size_t n, char **text);

/* Called for each finding, in file order. */
typedef void limefile_finding_fn(void *context, const struct limefile_finding *);

struct limefile_scan; /* reads the headers of one source in sequence */

/* Creates a scan. `report` may be NULL. The source must outlive the scan. */
int limefile_scan_new(struct limefile_source *, limefile_finding_fn *report, void *context,
                      struct limefile_scan **out);
void limefile_scan_free(struct limefile_scan *);

/* Returns 1 with a complete record, 0 at the end, or < 0 at a fault and in each call after it.
 * Reports all deviations of a record before returning it. Reads one small block for each record
 * with long data, and large blocks that contain several short records. limefile_scan_fault()
 * returns the fault, or NULL without one. */
int limefile_scan_next(struct limefile_scan *, struct limefile_record *out);
const struct limefile_finding *limefile_scan_fault(const struct limefile_scan *);

/* Sets *done to the number of bytes scanned so far, and *size to the size of the source. */
void limefile_scan_progress(const struct limefile_scan *, uint64_t *done, uint64_t *size);

/* ---- index (index.c): all records of a container, 32 bytes each --------------------- */

/* An index does not change: any number of threads may read it at once. */
struct limefile_index;

/* Builds the index of all records before the first fault. Fails only with -ENOMEM, or if the
 * source cannot return its size. */
int limefile_index_build(struct limefile_source *, struct limefile_index **out);

/* Called often to report progress; done and size are bytes. */
typedef void limefile_progress_fn(void *context, uint64_t done, uint64_t size);

/* Builds an index as above, calls `report` for each finding in file order, and `progress` after
 * each record. `report` and `progress` may be NULL. */
int limefile_index_scan(struct limefile_source *, limefile_finding_fn *report,
                        limefile_progress_fn *progress, void *context,
                        struct limefile_index **out);
void limefile_index_free(struct limefile_index *);                  /* drops a reference */
struct limefile_index *limefile_index_ref(struct limefile_index *); /* takes a reference */

/* Return a copy of an index that differs in its last record. limefile_index_with() replaces
 * this record by the passed one or, if that has a greater ordinal, appends it.
 * limefile_index_without_last() omits it. The copy has no fault and ends with its records. */
int limefile_index_with(const struct limefile_index *, const struct limefile_record *,
                        struct limefile_index **out);
int limefile_index_without_last(const struct limefile_index *, struct limefile_index **out);

uint64_t limefile_index_count(const struct limefile_index *);
uint32_t limefile_index_messages(const struct limefile_index *);
uint64_t limefile_index_size(const struct limefile_index *);       /* size of the container */
uint64_t limefile_index_end(const struct limefile_index *);        /* end of its last record */
size_t limefile_index_memory(const struct limefile_index *);       /* bytes used */
uint64_t limefile_index_deviations(const struct limefile_index *); /* count, without faults */

/* Returns NULL if the index is complete, or the fault at which it ends. */
const struct limefile_finding *limefile_index_fault(const struct limefile_index *);

/* Returns true if the file begins like a container, or is empty. */
bool limefile_index_is_container(const struct limefile_index *);

/* Find a record by ordinal, or by message and record number. Error: LIMEFILE_E_NO_RECORD. */
int limefile_index_get(const struct limefile_index *, uint64_t ordinal,
                       struct limefile_record *out);
int limefile_index_by_number(const struct limefile_index *, uint32_t message, uint32_t record,
                             struct limefile_record *out);

/* Finds the first record of a type, and the number of records of this type. Returns 0, or
 * LIMEFILE_E_NO_RECORD if no record has this type. */
int limefile_index_by_type(const struct limefile_index *, const char *type, size_t type_len,
                           struct limefile_record *first, uint64_t *count);

/* ---- names (record_name.c): records as file names ---- */

#define LIMEFILE_NAME_MAX 255 /* without the NUL */

/* Encodes `type` for a file name: '/', '%', control and non-ASCII bytes become %XX. Stops
 * before the name would exceed cap - 1 bytes, and adds a NUL. Returns the length. */
size_t limefile_name_encode(const char *type, size_t type_len, char *out, size_t cap);

/* Decodes %XX; other '%' stay. Writes at most cap - 1 bytes and a NUL. Returns the length. */
size_t limefile_name_decode(const char *name, size_t name_len, char *out, size_t cap);

/* Formats "003-ildg-binary-data". Cuts a long type; the ordinal keeps names unique. */
size_t limefile_name_format(const struct limefile_record *, char out[LIMEFILE_NAME_MAX + 1]);

/* Finds the record with this name or, if it does not exist, the record with this type, which
 * must be the only one of the type. Returns 0 or LIMEFILE_E_NO_RECORD. */
int limefile_name_find(const struct limefile_index *, const char *name,
                       struct limefile_record *out);

/* ---- writer (writer.c) ------------------------------------------------------------- */

/* Writes records in sequence and buffers small writes. Not thread-safe. */
struct limefile_writer;

/* The writer begins at byte `offset` of `to` (0 for a new container), with a new message. */
int limefile_writer_new(struct limefile_source *to, uint64_t offset,
                        struct limefile_writer **out);
void limefile_writer_free(struct limefile_writer *); /* does not write */

/* Writes the header of a record with `bytes` bytes of data, which the caller then writes. */
int limefile_writer_begin(struct limefile_writer *, const char *type, size_t type_len,
                          uint64_t bytes, bool mb, bool me);
int limefile_writer_write(struct limefile_writer *, const void *data, size_t n);

/* Skips the next n bytes of data: the caller writes them itself, at *offset. */
int limefile_writer_reserve(struct limefile_writer *, uint64_t n, uint64_t *offset);

/* Ends the record: writes the padding. LIMEFILE_E_UNDERFILL if data are missing. */
int limefile_writer_end(struct limefile_writer *);

/* Flushes the buffer to `to`, without a sync. LIMEFILE_E_ORDER: the last record lacks ME. *size
 * is the end of the container. */
int limefile_writer_finish(struct limefile_writer *, uint64_t *size);

/* ---- SciDAC checksum (checksum.c) -------------------------------------------------- */

/* A checksum of the bytes as stored in the file. Initialize it with zeros. Checksums of
 * disjoint sets of sites are combined by XOR of both members. */
struct limefile_checksum {
    uint32_t suma, sumb;
};

/* Adds `sites` whole sites of site_bytes each. A rank is the number of a site in the lattice,
 * from 0 on, with x fastest; the sites have the ranks from first_rank on. */
void limefile_checksum_add(struct limefile_checksum *, const void *data, uint64_t sites,
                           size_t site_bytes, uint64_t first_rank);

/* ---- cksum (cksum.c) --------------------------------------------------------------- */

/* The checksum that cksum(1) prints: POSIX's CRC of bytes and their number. Initialize it with
 * zeros. ILDG's catalogues store it for the data of ildg-binary-data (crcCheckSum). */
struct limefile_cksum {
    uint32_t crc; /* CRC of the bytes alone */
    uint64_t bytes;
};
void limefile_cksum_add(struct limefile_cksum *, const void *data, size_t n);
uint32_t limefile_cksum_result(const struct limefile_cksum *);

/* Removes the first head->bytes bytes, whose cksum is `head`, from the sum. */
void limefile_cksum_cut(struct limefile_cksum *, const struct limefile_cksum *head);

#endif
