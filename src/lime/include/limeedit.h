/*
 * limeedit.h - change a container in place (append, resize, remove, rename and replace records)
 * and recover it after a crash.
 *
 * A process can be killed at any moment: committed records stay intact, and uncommitted data
 * form a tail after the last record. limefile_recover() cuts this tail. This relies on the
 * order of the writes: the last write of each step is 8 aligned bytes of a header, which no
 * page or sector boundary divides. docs/format.md has the steps.
 *
 * All changes go through a limefile_source (write, truncate, sync), so that tests can make each
 * call fail. Results are as in limefile.h. Not thread-safe. The caller must hold
 * limefile_lock() on the file.
 */
#ifndef LIMEEDIT_H
#define LIMEEDIT_H

#include "limefile.h"

/* ---- locking (lock.c) --------------------------------------------------------------- */

/* Acquires an OFD write lock on the whole file, as every writer of this project does. The lock
 * ends when all descriptors that share fd's open file description are closed. Returns 0, -EBUSY
 * if another process holds a lock, or another -errno (no locks on this file system). */
int limefile_lock(int fd);

/* Acquires a shared lock in the same way; fd may be read-only. */
int limefile_lock_shared(int fd);

/* Returns -EBUSY if limefile_lock() would; else 0 or another -errno. fd may be read-only. */
int limefile_lock_test(int fd);

/* ---- the last record (edit.c) -------------------------------------------------------- */

/* An editor knows where the container ends and what its last record is. The last record may
 * have any length and may grow; the others keep their lengths. The caller itself writes the
 * last record's data, from its data_offset (limefile_editor_last()) on, and then commits them:
 *
 *     begin "ildg-log"  header without magic, sync          readers see bytes after the end
 *     commit n          padding, length, sync, magic, sync  readers see one more record
 *
 * A committed record can grow further after limefile_growth_begin(): until the next commit,
 * readers see its old length, and bytes after its end. The editor stores the offset of each
 * header, 8 bytes a record, so that the caller can remove any number of records. */
struct limefile_editor;

/* Creates an editor. LIMEFILE_E_STATE: the index has a fault, or the file's size or last record
 * differs from the index. Writes the last record's padding if it is missing. */
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
 * the end is undefined, because an append or a resize is in progress or has failed. */
int limefile_editor_end(const struct limefile_editor *, uint64_t *end);

/* Appends a record: writes its header without magic and syncs it, before the caller writes
 * data. Readers see no record yet. The record joins the message of the record before it; the
 * first record begins a message. If the last commit of the record before it failed, this first
 * repairs that record. After an error no record is added. LIMEFILE_E_STATE: the last record is
 * not committed, or bytes follow it. LIMEFILE_E_TYPE: also for an empty type. */
int limefile_append_begin(struct limefile_editor *, const char *type, size_t type_len);

/* Makes the last record begin a message, or (false) join the message before it. Before the
 * record's first commit this call writes nothing; after it, it calls limefile_set_boundary().
 * Errors: LIMEFILE_E_ORDER if `mb` is false for the first record of the container, which always
 * begins a message; LIMEFILE_E_STATE if the container is empty, or if the first commit of the
 * last record failed and no commit has succeeded since. */
int limefile_editor_set_mb(struct limefile_editor *, bool mb);

/* Marks the last record, if committed, as growing, in the reserved byte of its header, and
 * syncs the mark. The caller must call this function before it writes after the record's end:
 * if a crash follows, limefile_recover() cuts the bytes after this end without a call of
 * `save`. limefile_resize() itself calls it; limefile_commit() removes the mark. A second call
 * does nothing. */
int limefile_growth_begin(struct limefile_editor *);

/* Sets the length of the last record's data to `bytes`. When it returns 0, these data and all
 * earlier writes to the file are on the disk. After an error the record has its old or its new
 * length; before its first commit, it still does not exist. The caller may retry. */
int limefile_commit(struct limefile_editor *, uint64_t bytes);

/* Changes the length of the last record's data from `now`, committed or not, to `bytes`. New
 * bytes read as zeros. At any time, a valid container is on the disk. If `bytes` is less than
 * the committed length, commits it; a greater length is not committed. */
int limefile_resize(struct limefile_editor *, uint64_t now, uint64_t bytes);

/* Cuts the space that a writer has allocated after the last record's data. `now` is the length
 * of these data, committed or not. */
int limefile_trim(struct limefile_editor *, uint64_t now);

/* Removes the last record, committed or not. */
int limefile_remove_last(struct limefile_editor *);

/* ---- replace a record's data in place (redo.c) ----------------------------------------- */

/* After a crash at any moment, limefile_recover() restores either the old data or the new data.
 * The caller first writes the new data after the last record. limefile_redo_commit() makes them
 * valid by one write, then copies them into the record. If a crash interrupts the copy,
 * limefile_recover() repeats it.
 *
 *     limefile_redo_begin()      makes room in the file for the new data at redo->offset
 *     the caller writes redo->bytes bytes there
 *     limefile_redo_commit()     or limefile_redo_abandon() */
struct limefile_redo {
    uint64_t offset;   /* offset of the new data in the file */
    uint64_t target;   /* offset of the record's data */
    uint64_t bytes;    /* length of the new data */
    bool is_committed; /* set by commit: recovery can complete the change */
};

/* Begins a replacement. Only the last record can get a new length. LIMEFILE_E_STATE: the length
 * of another record differs from `bytes`, or the last record is not committed. After any other
 * error, the caller must call limefile_redo_abandon(); after success, limefile_redo_commit() or
 * limefile_redo_abandon(). */
int limefile_redo_begin(struct limefile_editor *, const struct limefile_record *,
                        uint64_t bytes, struct limefile_redo *redo);

/* Makes the new data valid and copies them into the record. When it returns 0, the record has
 * the new data, even if a crash follows. After an error, the record has the old data if
 * redo->is_committed is false. If it is true, the data may be a mixture: the caller must free
 * the editor, and recovery restores the old or the new data. */
int limefile_redo_commit(struct limefile_editor *, struct limefile_redo *redo);

/* Cancels a replacement: removes the new data after the last record. The old data stay. */
int limefile_redo_abandon(struct limefile_editor *);

/* ---- headers of any record (edit_header.c) -------------------------------------------- */

/* Changes the type in the header at header_offset and syncs it. For the last record of an
 * editor, call limefile_editor_set_type(), which also updates the editor. */
int limefile_set_type(struct limefile_source *, uint64_t header_offset, const char *type,
                      size_t type_len);
int limefile_editor_set_type(struct limefile_editor *, const char *type, size_t type_len);

/* Sets or (false) clears a message boundary between two adjacent records: changes ME in the
 * first header and MB in the second one, and syncs. */
int limefile_set_boundary(struct limefile_source *, uint64_t header_before,
                          uint64_t header_after, bool boundary);

/* ---- insert, remove or resize an inner record (rewrite.c) ------------------------------- */

/* Bytes [offset, offset + bytes) of a file; fd -1: zeros. */
struct limefile_chunk {
    int fd;
    uint64_t offset, bytes;
};

/* A record to insert. If the type is empty or does not fit into a header, limefile_rewrite()
 * returns LIMEFILE_E_TYPE. */
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
    const struct limefile_chunk *chunks;      /* new data of `record`; or NULL */
    size_t count;                             /* of chunks */
    limefile_progress_fn *progress;           /* or NULL */
    void *context;
};

/* Writes a new container next to the old one and renames it over `name`. In the new one, a
 * record is inserted (`insert`), or `record` has new data (`chunks`) or, if both members are
 * NULL, is missing. At any moment readers see the complete old container or the complete new
 * one; if space is short, the call fails and the old one stays. copy_file_range() shares or
 * copies unchanged parts. Owner, mode and attributes stay. An inserted record joins the message
 * of the record before it, and ends the message if that record did. MB and ME of a removed
 * record pass to its neighbours. *new_fd: the new container, O_RDWR, locked; the caller closes
 * it.
 *
 * When it returns 0, the data and the name are on the disk. After an error the old container is
 * unchanged and *new_fd is -1. One error is different: if only the sync of the directory fails,
 * *new_fd and `name` are the new container, but a power failure can bring back the old one. A
 * process that is killed just before the rename or, on a file system without O_TMPFILE, at any
 * time, can leave a file .NAME.limefs-new; the next call removes it. -ESTALE: `name` is not the
 * open file, for example a symbolic link. -EPERM: the owner cannot be preserved. Other hard
 * links keep the old container. */
int limefile_rewrite(const struct limefile_rewrite *, int *new_fd);

/* ---- after a crash (recover.c) --------------------------------------------------------- */

/* Reports an action or a finding as text without a newline: "offset 1234: an unfinished record
 * of type 'x', 17 bytes, cut". */
typedef void limefile_report_fn(void *context, const char *text);

/* Saves bytes [from, size) of the file, which recovery is about to cut although it cannot tell
 * that they are an unfinished record of this project. Returns 0 to cut them, < 0 to leave
 * them. */
typedef int limefile_save_fn(void *context, uint64_t from, uint64_t size);

/*
 * Restores the state before or after the change that a crash has interrupted: completes a
 * replacement (limefile_redo_commit()), or cuts the bytes after the last record. Afterwards,
 * the last record ends its message, has no mark, and its padding is zero. Recovery repairs no
 * other deviation, and changes no other record except one that the interrupted change concerns.
 *
 * Recovery cuts without a call of `save`: an unfinished record, which has a header without
 * magic and a plain ASCII type; bytes after a record that is marked as being resized, unless
 * they begin like a whole record; the rest of a record that was being removed; zeros instead of
 * a header that did not reach the disk. If `save` returns 0 (NULL: never), it also cuts bytes
 * after such a marked record that do begin like a whole record, and any tail without one.
 *
 * Returns 0 if programs may change the container now; if this call has changed it, it is
 * synced. Returns an I/O error or, without a change, the code of a fault that cannot be cut, or
 * the result of `save` or limefile_survey_check(). LIMEFILE_E_MAGIC, _VERSION: not a container.
 */
int limefile_recover(struct limefile_source *source, limefile_report_fn *note,
                     limefile_save_fn *save, void *context);

/* Copies owner, group, extended attributes, access control list and mode from an open file to
 * another (attributes.c). Extended attributes that only `to` has are kept. Returns 0 or -errno.
 * Before the call, other users must not be able to read `to`. */
int limefile_attributes_copy(int from, int to);

/* Gives `to` the access control list of `from`, or removes that of `to` if `from` has none.
 * Only the owner of `to` can do so. Call fchmod(2) afterwards: the list changes the mode. */
int limefile_acl_copy(int from, int to);

/* Creates a file for bytes cut at offset `from`, next to the container `name` in the directory
 * `dir_fd` (or AT_FDCWD and a path): NAME.cut-FROM, with .1, .2 ... added if that exists. The
 * file gets the owner and mode of the open file `container`; if that is not permitted, only the
 * caller can read it. Returns a descriptor or -errno. The caller always frees the name,
 * *path. */
int limefile_create_cut_file(int dir_fd, const char *name, uint64_t from, int container,
                             char **path);

/* ---- the steps of recovery, for a program that asks the user in between: lime repair ---- */

enum limefile_tail {
    LIMEFILE_TAIL_NONE,
    LIMEFILE_TAIL_UNFINISHED,     /* an unfinished record of this project, never committed */
    LIMEFILE_TAIL_RESIZED,        /* after a record that was being resized: old or new data */
    LIMEFILE_TAIL_RESIZED_RECORD, /* the same, but the tail begins like a whole record */
    LIMEFILE_TAIL_REMOVED,        /* remainder of a record that was being removed */
    LIMEFILE_TAIL_REDO,  /* new data of a record; recovery copies them into the record */
    LIMEFILE_TAIL_ZEROS, /* zeros, at most a header long */
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

/* Returns 0, or why no program may change this container, whatever its tail is:
 * LIMEFILE_E_FLAGS if message flags contradict each other, as after a crash in
 * limefile_set_boundary(); LIMEFILE_E_MIXED if a record is half replaced and its new data are
 * lost. */
int limefile_survey_check(const struct limefile_survey *);

/* Fills buf with a NUL-terminated text on what limefile_survey_repair() cuts or completes. */
void limefile_survey_text(const struct limefile_survey *, char *buf, size_t cap);

/* Cuts the tail or completes the replacement; syncs. After a crash, scan and repair again. */
int limefile_survey_repair(struct limefile_source *, const struct limefile_survey *);

/* Finds a whole record at byte `from` or later. Returns 1, 0 if not found, or an error. */
struct limefile_salvage {
    uint64_t offset;
    struct limefile_header header;
};
int limefile_salvage_find(struct limefile_source *, uint64_t from, uint64_t size,
                          limefile_progress_fn *progress, void *context,
                          struct limefile_salvage *out);

/* Repairs flags, the reserved byte, bytes after the NUL of types, and padding, but no types and
 * no mark of a replacement. dry: changes nothing, but reports what it would change. note may be
 * NULL. Does not sync. (repair_headers.c) */
int limefile_repair_headers(struct limefile_source *, bool dry, limefile_report_fn *note,
                            limefile_progress_fn *progress, void *context);

#endif
