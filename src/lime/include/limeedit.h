/*
 * limeedit.h - change a container in place (append, resize, remove, rename and replace records)
 * and recover it after a crash.
 *
 * If the process is killed at any moment, committed records are intact, and uncommitted data
 * are a tail after the last record, which limefile_recover() cuts. This relies on the order of
 * the writes: the last write of each step is 8 aligned bytes of a header, which no page or
 * sector boundary divides. docs/format.md has the steps.
 *
 * All changes go through a limefile_source (write, truncate, sync), so that tests can let each
 * of them fail. Results are as in limefile.h. Not thread-safe. The caller must hold
 * limefile_lock() on the file.
 */
#ifndef LIMEEDIT_H
#define LIMEEDIT_H

#include "limefile.h"

/* ---- locking (lock.c) --------------------------------------------------------------- */

/* Acquires an OFD write lock on the whole file, as every writer of this project does. The lock
 * ends when the last descriptor that shares fd's open file description is closed. Returns 0,
 * -EBUSY if another process holds a lock, or another -errno (no locks on this file system). */
int limefile_lock(int fd);

/* Acquires a shared lock in the same way; fd may be read-only. */
int limefile_lock_shared(int fd);

/* Returns 0, or -EBUSY if limefile_lock() would fail with it. fd may be read-only. */
int limefile_lock_test(int fd);

/* ---- the last record (edit.c) -------------------------------------------------------- */

/*
 * An editor knows where the container ends and what its last record is. The last record may
 * have any length and may grow; the others keep their lengths. The caller writes data itself,
 * into the same file from data_offset (limefile_editor_last()) on, and then commits them:
 *
 *     begin "ildg-log"  header without magic, sync          readers see bytes after the end
 *     commit n          padding, length, sync, magic, sync  readers see one more record
 *
 * A committed record can grow further after limefile_growth_begin(): until the next commit,
 * readers see its old length, and bytes after the end. The editor stores the offset of each
 * header, 8 bytes a record, so that the caller can remove any number of records.
 */
struct limefile_editor;

/* Creates an editor. The index must have no fault and match the source; LIMEFILE_E_STATE if the
 * file does not end with the last record. Writes the last padding if it is missing. */
int limefile_editor_new(struct limefile_source *, const struct limefile_index *,
                        struct limefile_editor **out);
void limefile_editor_free(struct limefile_editor *); /* does not write */

/* The last record, committed or not. LIMEFILE_E_NO_RECORD: the container is empty. */
struct limefile_last_record {
    uint64_t ordinal;
    uint64_t header_offset, data_offset;
    uint64_t bytes; /* committed length; 0 before the first commit */
    bool committed; /* false between begin and the first commit */
    bool mb;        /* true if the record begins a message */
    uint8_t type_len;
    char type[LIMEFILE_TYPE_BYTES + 1];
};
int limefile_editor_last(const struct limefile_editor *, struct limefile_last_record *out);

/* Returns the end of the last record, which is the end of the file, in *end. LIMEFILE_E_STATE:
 * the end is undefined, as an append or a resize is in progress or has failed. */
int limefile_editor_end(const struct limefile_editor *, uint64_t *end);

/* Appends a record: writes its header without magic and syncs it, before the caller writes
 * data. Readers see no record yet. The record joins the last message, or begins the first one.
 * If a commit of the previous record has failed, this repairs that record first. Errors:
 * LIMEFILE_E_STATE if the last record is not committed or bytes follow it; LIMEFILE_E_TYPE,
 * also for an empty type. After an error the file is unchanged. */
int limefile_append_begin(struct limefile_editor *, const char *type, size_t type_len);

/* Makes the last record begin a message, or (false) join the previous one. Before the commit
 * this writes nothing; afterwards it calls limefile_set_boundary() and updates the editor.
 * Errors: LIMEFILE_E_ORDER if `mb` is false for the first record of the container, which always
 * begins a message; LIMEFILE_E_STATE after a failed first commit, until a commit succeeds. */
int limefile_editor_set_mb(struct limefile_editor *, bool mb);

/* Marks a committed record as growing, in the reserved byte of its header, and syncs the mark.
 * Call it before writing after the record's end: after a crash, limefile_recover() then cuts
 * the bytes after the record's end without a call of `save`. limefile_resize() calls it;
 * limefile_commit() removes the mark. A second call does nothing. */
int limefile_growth_begin(struct limefile_editor *);

/* Sets the length of the last record's data to `bytes`. When it returns 0, these data and all
 * earlier writes to the file are on the disk. After an error the record has its old or its new
 * length, or (before its first commit) does not exist; the caller may retry. */
int limefile_commit(struct limefile_editor *, uint64_t bytes);

/* Resizes the file for `bytes` of the last record's data; `now` is their current length,
 * committed or not. New bytes read as zeros. The order of writes leaves a valid container on
 * the disk at any time. Does not commit growth. */
int limefile_resize(struct limefile_editor *, uint64_t now, uint64_t bytes);

/* Cuts the space that a writer has allocated after the last record, whose data, committed or
 * not, are `now` bytes long. */
int limefile_trim(struct limefile_editor *, uint64_t now);

/* Removes the last record, committed or not. */
int limefile_remove_last(struct limefile_editor *);

/* ---- replace a record's data in place (redo.c) ----------------------------------------- */

/*
 * A crash at any moment leaves either the old data or the new data. The caller first writes the
 * new data after the last record; then one write makes them valid, and they are copied into the
 * record. If a crash interrupts the copy, limefile_recover() repeats it.
 *
 *     limefile_redo_begin()      makes room in the file for the new data at redo->offset
 *     the caller writes redo->bytes bytes there
 *     limefile_redo_commit()     or limefile_redo_abandon()
 */
struct limefile_redo {
    uint64_t offset;   /* offset of the new data in the file */
    uint64_t target;   /* offset of the record's data */
    uint64_t bytes;    /* length of the new data */
    bool is_committed; /* set by commit: recovery can complete the change */
};

/* Begins a replacement. The last record can get any length. LIMEFILE_E_STATE: another record
 * would get another length, or the last record is not committed. After any other error, and
 * before the commit, only limefile_redo_abandon() is allowed. */
int limefile_redo_begin(struct limefile_editor *, const struct limefile_record *,
                        uint64_t bytes, struct limefile_redo *redo);

/* Copies the new data into the record. When it returns 0, the record has the new data, even
 * after a crash. After an error it has the old data if redo->is_committed is false; if true,
 * recovery restores the old or the new data, and the caller may only free the editor. */
int limefile_redo_commit(struct limefile_editor *, struct limefile_redo *redo);

/* Removes the new data after the last record. The record keeps its old data. */
int limefile_redo_abandon(struct limefile_editor *);

/* ---- headers of any record (edit.c) --------------------------------------------------- */

/* Changes the type in the header at header_offset and syncs it. For the last record of an
 * editor, call limefile_editor_set_type(), which also updates the editor. */
int limefile_set_type(struct limefile_source *, uint64_t header_offset, const char *type,
                      size_t type_len);
int limefile_editor_set_type(struct limefile_editor *, const char *type, size_t type_len);

/* Sets or (false) clears a message boundary between two adjacent records, in the flags of both
 * headers, and syncs them. */
int limefile_set_boundary(struct limefile_source *, uint64_t header_before,
                          uint64_t header_after, bool boundary);

/* ---- insert, remove or resize an inner record (rewrite.c) ------------------------------- */

/* Bytes [offset, offset + bytes) of a file; fd -1: zeros. */
struct limefile_chunk {
    int fd;
    uint64_t offset, bytes;
};

/* A new record. LIMEFILE_E_TYPE: a header cannot hold the type, or the type is empty. */
struct limefile_new_record {
    const char *type;
    size_t type_len;
    const void *data;
    size_t bytes;
};

struct limefile_rewrite {
    int dir_fd;       /* descriptor of the directory of the container */
    const char *name; /* name of the container in `dir_fd` */
    int fd;           /* the container, O_RDWR and locked; it stays open on the old file */
    const struct limefile_index *index;
    const struct limefile_record *record;
    const struct limefile_new_record *insert; /* record to insert after `record`; or NULL */
    const struct limefile_chunk *chunks;      /* new data of `record`; NULL removes it */
    size_t count;                             /* of chunks */
    limefile_progress_fn *progress;           /* or NULL */
    void *context;
};

/*
 * Writes a new container next to the old one, with one record changed, removed or inserted, and
 * renames it over `name`. At any moment readers see the complete old container or the complete
 * new one; if space is short, the call fails before it changes anything. copy_file_range()
 * shares or copies unchanged parts. Owner, mode and attributes stay. An inserted record joins
 * the message of the record before it, and ends the message if that did. If a record is
 * removed, the flags of its neighbours are adjusted. *new_fd: the new container, O_RDWR,
 * locked; the caller closes it.
 *
 * When it returns 0, the data and the name are on the disk. After an error the old container is
 * unchanged and *new_fd is -1, except if the very last step fails: then *new_fd is a descriptor
 * and `name` is the new container, but perhaps not after a power failure. If the
 * process is killed just before the rename, or at any time without O_TMPFILE, it can leave a
 * file .NAME.limefs-new, which the next call removes. -ESTALE: `name` is not the open file, for
 * example a symbolic link. -EPERM: the owner cannot be preserved. Other hard links keep the old
 * container.
 */
int limefile_rewrite(const struct limefile_rewrite *, int *new_fd);

/* ---- after a crash (recover.c) --------------------------------------------------------- */

/* Reports an action or a finding as text without a newline: "offset 1234: an unfinished record
 * of type 'x', 17 bytes, cut". */
typedef void limefile_report_fn(void *context, const char *text);

/* Saves bytes [from, size) of the file, which recovery is about to cut although they may not be
 * an unfinished record of this project. Returns 0 to cut them, < 0 to leave them. */
typedef int limefile_save_fn(void *context, uint64_t from, uint64_t size);

/*
 * Restores the state before or after the change that a crash has interrupted: completes a
 * replacement (limefile_redo_commit()), or cuts the bytes after the last record. The last
 * record then ends its message, and has no mark and zero padding. Nothing else is changed: no
 * other deviation, and no record that the change did not concern.
 *
 * Recovery cuts without a call of `save`: an unfinished record, which has a header without
 * magic and a plain ASCII type; bytes after a record that is marked as being resized, unless
 * they begin like a whole record; zeros of a header that did not reach the disk. Any other tail
 * is cut only after `save` (NULL: never). A tail with a whole record in it is damage and is
 * never cut, except after a marked record.
 *
 * Returns 0 if the container can be changed; it is synced if this call changed anything.
 * Otherwise nothing was changed, or an I/O error occurred: returns that error, the code of a
 * fault that cannot be cut, or that of limefile_survey_check(). LIMEFILE_E_MAGIC, _VERSION:
 * not a container.
 */
int limefile_recover(struct limefile_source *source, limefile_report_fn *note,
                     limefile_save_fn *save, void *context);

/* Copies owner, group, extended attributes, access control list and mode from an open file to
 * another (attributes.c). Attributes that only `to` has remain. Returns 0 or -errno. Call it
 * before anything else is done to `to`, which no other user may be able to read. */
int limefile_attributes_copy(int from, int to);

/* Gives `to` the access control list of `from`, or removes that of `to` if `from` has none.
 * Only the owner of `to` may do so. Call fchmod(2) afterwards. */
int limefile_acl_copy(int from, int to);

/* Creates a file for bytes cut at offset `from`, next to the container `name` in the directory
 * `dir_fd` (or AT_FDCWD and a path): NAME.cut-FROM, with .1, .2 ... added if that exists. It
 * gets the owner and mode of the open file `container`; if that is not permitted, only the
 * caller can read it. Returns a descriptor or -errno. The caller always frees the name *path
 * (or NULL). */
int limefile_create_cut_file(int dir_fd, const char *name, uint64_t from, int container,
                             char **path);

/* ---- the steps of recovery, for a program that asks the user in between: lime repair ---- */

enum limefile_tail {
    LIMEFILE_TAIL_NONE,
    LIMEFILE_TAIL_UNFINISHED,     /* an unfinished record of this project, never committed */
    LIMEFILE_TAIL_RESIZED,        /* after a record that was being resized: old or new data */
    LIMEFILE_TAIL_RESIZED_RECORD, /* the same, but it begins like a whole record */
    LIMEFILE_TAIL_REMOVED,        /* remainder of a record that was being removed */
    LIMEFILE_TAIL_REDO,           /* new data of a record; recovery copies them into it */
    LIMEFILE_TAIL_ZEROS,          /* zeros, at most a header long */
    LIMEFILE_TAIL_OTHER,
};

/* The result of one pass over a container. */
struct limefile_survey {
    uint64_t records, size, deviations;
    uint32_t messages;
    uint64_t end; /* where the readable part ends: the offset of a faulty header, or size */
    struct limefile_finding fault; /* code 0: no fault */
    enum limefile_tail tail;       /* kind of the bytes after `end` */
    uint64_t resizing;             /* ordinal of the record marked as being resized, or 0 */
    uint64_t removing;         /* ordinal of the record that precedes one being removed, or 0 */
    uint64_t replacing;        /* ordinal of the last record if marked MARK_REPLACING, or 0 */
    struct limefile_redo redo; /* if tail is LIMEFILE_TAIL_REDO */
    uint64_t contradictions;   /* number of contradicting flags that recovery does not repair */
    uint64_t last, before;     /* offsets of the headers of the last two records */
    bool cut_sets_me;  /* the last record lacks ME; limefile_survey_repair() will set it */
    bool is_container; /* true also for a lone unfinished record */
    char type[LIMEFILE_NAME_MAX + 1]; /* type of the unfinished record, with %XX */
};

/* Examines the container. progress may be NULL, here and below. (recover.c) */
int limefile_survey_scan(struct limefile_source *, limefile_progress_fn *progress,
                         void *context, struct limefile_survey *out);

/* Returns 0, or the reason why no program may change this container, whatever its tail is.
 * LIMEFILE_E_FLAGS: message flags contradict each other, as after a crash in the middle of
 * limefile_set_boundary(). LIMEFILE_E_MIXED: the mark of a replacement without its new data. */
int limefile_survey_check(const struct limefile_survey *);

/* Fills buf with a text on what limefile_survey_repair() cuts or completes, for tails that need
 * no question. The text always ends with a NUL. */
void limefile_survey_text(const struct limefile_survey *, char *buf, size_t cap);

/* Cuts the tail or completes the replacement, and syncs; can be repeated after a crash. */
int limefile_survey_repair(struct limefile_source *, const struct limefile_survey *);

/* Searches for a whole record at any byte after `from`. Returns 1 if found, 0 if not, or an
 * error code. (salvage.c) */
struct limefile_salvage {
    uint64_t offset;
    struct limefile_header header;
};
int limefile_salvage_find(struct limefile_source *, uint64_t from, uint64_t size,
                          limefile_progress_fn *progress, void *context,
                          struct limefile_salvage *out);

/* Repairs flags, reserved bits, bytes after the NUL of types, and padding, but not types or the
 * mark of a replacement. dry: only reports what it would do. note may be NULL. Does not sync.
 * (repair_headers.c) */
int limefile_repair_headers(struct limefile_source *, bool dry, limefile_report_fn *note,
                            limefile_progress_fn *progress, void *context);

#endif
