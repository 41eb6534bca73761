/*
 * limefile.h - the LIME container format (docs/format.md): headers, index, names, check,
 * writer.
 *
 * Knows no MPI and no FUSE. Nothing here prints or has global state, so threads may use
 * different objects at once; one object belongs to one thread at a time unless said otherwise.
 *
 * Results are int: 0 (or a count, where said) is success; failure is negative,
 * either -errno or one of enum limefile_error. limefile_strerror() knows both.
 *
 * Offsets and lengths are bytes, 64 bits wide, from the start of the container.
 * Ordinals, message numbers and record numbers are counted from 1.
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
#define LIMEFILE_HEADER_BYTES 144       /* a record header on disk */
#define LIMEFILE_TYPE_BYTES   128       /* its type field; writers keep 127 and a NUL */
#define LIMEFILE_ALIGN        8         /* records are padded to a multiple of this */
#define LIMEFILE_BYTES_MAX    INT64_MAX /* the largest data length that a file can hold */

/* ---- headers (format.c), pure functions -------------------------------------------- */

/* A record header, as read: what the fields say, whether or not it makes sense. */
struct limefile_header {
    uint64_t bytes;   /* data length, without padding */
    uint16_t version; /* LIMEFILE_VERSION */
    uint8_t flags;    /* the whole flags byte; MB and ME below are taken from it */
    uint8_t reserved; /* the byte after it, zero */
    bool mb, me;      /* first, last record of its message */
    bool type_tail;   /* bytes other than NUL follow the type's NUL */
    uint8_t type_len; /* 0..128 */
    char type[LIMEFILE_TYPE_BYTES + 1]; /* NUL-terminated; no NUL inside */
};

/* True if the `n` bytes at `raw` begin like a header (n < 4: as far as they go). */
bool limefile_header_is_magic(const void *raw, size_t n);

/* Decodes LIMEFILE_HEADER_BYTES bytes. LIMEFILE_E_MAGIC, _VERSION or _LENGTH; out
 * is filled in all the same, except when the magic is wrong. */
int limefile_header_decode(const unsigned char *raw, struct limefile_header *out);

/* Encodes mb, me, bytes, type (type_len bytes); all other fields come out as the format
 * wants them. LIMEFILE_E_TYPE if type_len > 127 or it holds a NUL, LIMEFILE_E_LENGTH. */
int limefile_header_encode(const struct limefile_header *in, unsigned char *raw);

/* Fills a header for limefile_header_encode(); fails like it. */
int limefile_header_init(struct limefile_header *out, const char *type, size_t type_len,
                         uint64_t bytes, bool mb, bool me);

/* How many bytes of a type come before one that is not printable ASCII: all, in most. */
size_t limefile_type_printable(const char *type, size_t len);

/* The zero bytes, 0..7, that follow data of this length. */
unsigned limefile_padding(uint64_t bytes);

/* Where the data end and where the next header stands for data of `bytes` bytes whose header
 * is at `header_offset`. LIMEFILE_E_LENGTH when that is beyond what a file can hold. */
int limefile_extent_of(uint64_t header_offset, uint64_t bytes, uint64_t *data_end,
                       uint64_t *next);

/* ---- where bytes come from and go to (source.c) ------------------------------------ */

/*
 * The only way in which this library touches a container. read and write behave like pread
 * and pwrite: they may move fewer bytes; read gives 0 at the end; failure is -errno. fault
 * gives the fault that ends a container there. All but read may be NULL if it is read only.
 */
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

/* A file descriptor as a source. The caller keeps and closes it. */
struct limefile_fd {
    struct limefile_source source;
    int fd;
};
void limefile_fd_init(struct limefile_fd *, int fd);
int limefile_source_fd(struct limefile_source *); /* -1: it is no file descriptor */

/* Memory as a source: `data` grows by realloc when written to, unless it was lent. */
struct limefile_memory {
    struct limefile_source source;
    unsigned char *data;
    size_t size, capacity;
    bool lent; /* data belongs to the caller: never written, never freed */
};
void limefile_memory_init(struct limefile_memory *);
void limefile_memory_lend(struct limefile_memory *, const void *data, size_t size);
void limefile_memory_release(struct limefile_memory *);

/* Reads or writes all n bytes. read: how many came, fewer than n only at the end. read_exact
 * returns 0, LIMEFILE_E_SHRUNK if fewer came, or another error. */
ssize_t limefile_read_full(struct limefile_source *, void *buf, size_t n, uint64_t offset);
int limefile_read_exact(struct limefile_source *, void *buf, size_t n, uint64_t offset);
int limefile_write_full(struct limefile_source *, const void *buf, size_t n, uint64_t offset);

/* The same, to a descriptor. */
int limefile_fd_write(int fd, const void *buf, size_t n, uint64_t offset);

/* The same, of bytes that more will follow: the disk begins with them at once, so that there is
 * less to wait for when they are synced. */
int limefile_fd_stream(int fd, const void *buf, size_t n, uint64_t offset);

/* The same for limefile_read_full(): fewer than n only at the end of the file; and for
 * limefile_read_exact(). */
ssize_t limefile_fd_read(int fd, void *buf, size_t n, uint64_t offset);
int limefile_fd_read_exact(int fd, void *buf, size_t n, uint64_t offset);

/* ---- copying (copy.c) --------------------------------------------------------------- */

#define LIMEFILE_AT_POSITION INT64_C(-1)

/* Filled in by the caller; advances as bytes are moved. */
struct limefile_copy {
    int in;
    uint64_t in_offset;
    int out;
    int64_t out_offset; /* LIMEFILE_AT_POSITION: where the descriptor stands, as write() does */
    uint64_t left;
    void (*moved)(void *context, uint64_t more); /* or NULL */
    void *context;
    bool writing; /* after a failure: it was the writing that failed */
};

/* Moves all that is left by the fastest way that the two descriptors allow, shared where the
 * file system can. 0, -errno, or LIMEFILE_E_SHRUNK if the input ends before. */
int limefile_copy(struct limefile_copy *);

/* The same of n bytes in memory, which are no more than are left. -errno. */
int limefile_copy_put(struct limefile_copy *, const void *bytes, size_t n);

/* ---- opening (source.c) ------------------------------------------------------------- */

/* Opens a container without ever blocking on a FIFO. flags: O_RDONLY or O_RDWR.
 * Returns a descriptor, -errno (-EISDIR for a directory) or LIMEFILE_E_NOT_FILE. */
int limefile_open(const char *path, int flags);

/* The same for a descriptor that the caller has: 0, -EISDIR or LIMEFILE_E_NOT_FILE. */
int limefile_check_fd(int fd);

/* ---- around the page cache (direct.c) ---------------------------------------------- */

/* Of offset, length and memory of a direct read or write, for any device. */
#define LIMEFILE_DIRECT_ALIGN 4096

/* The kernel's read-ahead and its gathering of writes make fewer bytes faster. */
#define LIMEFILE_DIRECT_MIN (512 * 1024)

/* Of x86-64 and arm64 with small pages of 4 KiB: buffers that the kernel pins for each reply,
 * or that a disk fills, want to lie in them. */
#define LIMEFILE_HUGE_PAGE (2 << 20)

/* Memory for at least *bytes, which become what there is: aligned for direct reads and writes,
 * of LIMEFILE_DIRECT_MIN and more in huge pages. For free(); NULL: there is none. */
void *limefile_buffer_new(size_t *bytes);

/* How much is in memory of the pages that the range lies in; -ENOSYS: nobody knows (Linux
 * before 6.5). Then, true if most of the range is, or nobody knows. */
int64_t limefile_cached_bytes(int fd, uint64_t offset, size_t n);
bool limefile_is_cached(int fd, uint64_t offset, size_t n);

/* The file of `fd` once more, for direct reads; -EINVAL where the file system has no such
 * thing. */
int limefile_open_direct(int fd);

/* Reads the whole blocks around n bytes at `offset`. `buf` is aligned and has room for two
 * blocks more; *bytes is where the range begins in it. Returns how many of the n are there,
 * fewer at the end of the file or where the file system has stopped, or -errno. */
ssize_t limefile_read_around(int direct, char *buf, size_t n, uint64_t offset,
                             const char **bytes);

/* The whole blocks inside of n bytes at `offset`, in `data`: how many bytes they are, and *head
 * before them. 0: too few, or data are not where a direct read or write could take them. */
size_t limefile_blocks_inside(const void *data, size_t n, uint64_t offset, size_t *head);

/* ---- findings ---------------------------------------------------------------------- */

/* One thing that is wrong with a container, and where. */
struct limefile_finding {
    int code;         /* enum limefile_error, or -errno of a read that failed */
    uint64_t offset;  /* of the first byte concerned */
    uint64_t ordinal; /* of the record concerned; of the one that would come next */
    uint64_t have;    /* what is there: by code a length, a count, a value */
    uint64_t want;    /* what should be there, where the code has such a thing */
    const char *why;  /* more of the reason, or NULL; lives as long as who has found it */
};

/* "offset 1234: record 7: the file ends inside the data: ...". Always terminates; returns
 * what snprintf would. */
int limefile_finding_text(const struct limefile_finding *, char *buf, size_t cap);

/* ---- scan (scan.c): one record after another --------------------------------------- */

struct limefile_record {
    uint64_t ordinal;       /* in the container */
    uint32_t message;       /* counted as lime_contents does: one up at each MB */
    uint32_t record;        /* in its message */
    uint64_t header_offset; /* multiple of 8 in a good file */
    uint64_t data_offset;   /* header_offset + 144 */
    uint64_t bytes;         /* data length; whole in the file */
    uint8_t padding;        /* what the format wants after the data, 0..7 */
    bool mb, me;
    uint8_t type_len; /* 0..128 */
    const char *type; /* NUL-terminated; lives as long as the index (scan: next call) */
};

/* The first n bytes of a record, and a NUL, which the caller frees: 0, or an error and NULL. */
int limefile_record_text(struct limefile_source *, const struct limefile_record *, size_t n,
                         char **text);

/* Called for each finding, in the order of the file; not for a read-only index. */
typedef void limefile_finding_fn(void *context, const struct limefile_finding *);

struct limefile_scan; /* follows the headers of one source */

/* `report` may be NULL. The source must outlive the scan. */
int limefile_scan_new(struct limefile_source *, limefile_finding_fn *report, void *context,
                      struct limefile_scan **out);
void limefile_scan_free(struct limefile_scan *);

/* 1: a record, whole; 0: the end, nothing left; < 0: a fault, the same at each further call,
 * described by limefile_scan_fault(). All deviations of a record are reported before it is
 * returned. Reads one small block for each big record and long blocks for small ones. */
int limefile_scan_next(struct limefile_scan *, struct limefile_record *out);
const struct limefile_finding *limefile_scan_fault(const struct limefile_scan *);

/* How far the scan has come and how far it has to go. */
void limefile_scan_progress(const struct limefile_scan *, uint64_t *done, uint64_t *size);

/* ---- index (index.c): all records of a container, 32 bytes each -------------------- */

/* Immutable once built: any number of threads may read it. */
struct limefile_index;

/* Builds the index of all records before the first fault. Fails only when there is nothing
 * to return (-ENOMEM, or the source cannot tell its size). */
int limefile_index_build(struct limefile_source *, struct limefile_index **out);

/* done and size in bytes; may be called often. */
typedef void limefile_progress_fn(void *context, uint64_t done, uint64_t size);

/* The same; `report` gets each finding, in the order of the file, and `progress`, after each
 * record, how far it has come. Either may be NULL. */
int limefile_index_scan(struct limefile_source *, limefile_finding_fn *report,
                        limefile_progress_fn *progress, void *context,
                        struct limefile_index **out);
void limefile_index_free(struct limefile_index *); /* when the last holder gives it back */
struct limefile_index *limefile_index_hold(struct limefile_index *); /* one holder more */

/* A copy with another last record (record->ordinal is the count), with one record more (one
 * above it), or with one less. It has no fault, and ends with its last record. */
int limefile_index_with(const struct limefile_index *, const struct limefile_record *,
                        struct limefile_index **out);
int limefile_index_without_last(const struct limefile_index *, struct limefile_index **out);

uint64_t limefile_index_count(const struct limefile_index *);
uint32_t limefile_index_messages(const struct limefile_index *);
uint64_t limefile_index_size(const struct limefile_index *);       /* of the container */
uint64_t limefile_index_end(const struct limefile_index *);        /* of its last record */
size_t limefile_index_memory(const struct limefile_index *);       /* bytes it takes */
uint64_t limefile_index_deviations(const struct limefile_index *); /* how many, faults apart */

/* NULL if the index is complete, else why and where it stops. */
const struct limefile_finding *limefile_index_fault(const struct limefile_index *);

/* False if the file does not even begin like a container (an empty one does). */
bool limefile_index_is_container(const struct limefile_index *);

/* LIMEFILE_E_NO_RECORD if there is no such record. */
int limefile_index_get(const struct limefile_index *, uint64_t ordinal,
                       struct limefile_record *out);
int limefile_index_by_number(const struct limefile_index *, uint32_t message, uint32_t record,
                             struct limefile_record *out);

/* The first record of a type and how many there are; LIMEFILE_E_NO_RECORD if none. */
int limefile_index_by_type(const struct limefile_index *, const char *type, size_t type_len,
                           struct limefile_record *first, uint64_t *count);

/* ---- names (name.c): record <-> file name ------------------------------------------ */

#define LIMEFILE_NAME_MAX 255 /* without the NUL */

/* `type` as (part of) a file name: '/', '%', control and non-ASCII bytes become %XX. Cut
 * before the byte that does not fit into cap - 1; always terminated. Returns the length. */
size_t limefile_name_encode(const char *type, size_t type_len, char *out, size_t cap);

/* The reverse, also of what is not needed; a % without two hex digits is itself. */
size_t limefile_name_decode(const char *name, size_t name_len, char *out, size_t cap);

/* "003-ildg-binary-data". Types that are too long are cut; the ordinal keeps names apart. */
size_t limefile_name_of(const struct limefile_record *, char out[LIMEFILE_NAME_MAX + 1]);

/* The record of that name, or, where it occurs once, of that plain type. 0 or
 * LIMEFILE_E_NO_RECORD. */
int limefile_name_find(const struct limefile_index *, const char *name,
                       struct limefile_record *out);

/* ---- writer (writer.c) ------------------------------------------------------------- */

/* Writes records one after another; small writes are gathered. Not thread-safe. */
struct limefile_writer;

/* Begins at byte `offset` of `to` (0 for a new container), where a message must begin. */
int limefile_writer_new(struct limefile_source *to, uint64_t offset,
                        struct limefile_writer **out);
void limefile_writer_free(struct limefile_writer *); /* writes nothing */

/* The header of a record whose data will be `bytes` long. */
int limefile_writer_begin(struct limefile_writer *, const char *type, size_t type_len,
                          uint64_t bytes, bool mb, bool me);
int limefile_writer_write(struct limefile_writer *, const void *data, size_t n);

/* For a caller that puts n bytes of data there itself: *offset is where. */
int limefile_writer_reserve(struct limefile_writer *, uint64_t n, uint64_t *offset);

/* The padding. LIMEFILE_E_UNDERFILL if data are missing. */
int limefile_writer_end(struct limefile_writer *);

/* All that was written is handed to `to`; LIMEFILE_E_ORDER if the last message is open.
 * Does not sync. *size: where the container ends. */
int limefile_writer_finish(struct limefile_writer *, uint64_t *size);

/* ---- SciDAC checksum (checksum.c) -------------------------------------------------- */

/* Over the bytes as they stand in the file; zero to begin with. Sums of disjoint sets of
 * sites combine by XOR of both members. */
struct limefile_checksum {
    uint32_t suma, sumb;
};

/* Adds `sites` whole sites of site_bytes each, the first of which has rank first_rank
 * in the file (x fastest). */
void limefile_checksum_add(struct limefile_checksum *, const void *data, uint64_t sites,
                           size_t site_bytes, uint64_t first_rank);

/* ---- cksum (cksum.c) --------------------------------------------------------------- */

/* What cksum(1) prints of a file, taken over some bytes: POSIX's CRC of the bytes and their
 * number. Zero to begin with. ILDG's catalogues have that of the data of ildg-binary-data
 * (crcCheckSum). */
struct limefile_cksum {
    uint32_t crc; /* of the bytes alone */
    uint64_t bytes;
};
void limefile_cksum_add(struct limefile_cksum *, const void *data, size_t n);
uint32_t limefile_cksum_result(const struct limefile_cksum *);

/* `head` is of the first of its bytes; it becomes that of those behind. */
void limefile_cksum_cut(struct limefile_cksum *, const struct limefile_cksum *head);

#endif
