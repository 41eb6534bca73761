/*
 * limeedit.h - containers changed where they lie: records appended, resized, removed, renamed,
 * replaced; and brought back to a clean state after a crash.
 *
 * Whatever kills the process, at any moment: what was committed is whole, and what was not is
 * a tail behind the last record that limefile_recover() cuts. That rests on the order of the
 * writes, and on the last one of each step being 8 aligned bytes of a header, which no page or
 * sector boundary divides. docs/format.md has the steps.
 *
 * All changes go through a limefile_source (write, truncate, sync), so that tests can fail or
 * stop at each of them. Results as in limefile.h. Not thread-safe. The caller holds
 * limefile_lock() on the file.
 */
#ifndef LIMEEDIT_H
#define LIMEEDIT_H

#include "limefile.h"

/* ---- locking (lock.c) --------------------------------------------------------------- */

/* An OFD write lock on the whole file, as every writer of this project holds one: it ends when
 * the last descriptor that shares fd's description is closed. -EBUSY: somebody else has it;
 * another -errno: the file system has no locks. */
int limefile_lock(int fd);

/* The same, but a shared lock, for which fd may be read-only. */
int limefile_lock_shared(int fd);

/* 0, or -EBUSY if limefile_lock() would be refused. fd may be read-only. */
int limefile_lock_test(int fd);

/* ---- the last record (edit.c) -------------------------------------------------------- */

/*
 * Knows where the container ends and what its last record is. The last record may have
 * any length and grow; those before keep theirs. The caller writes data itself, at the offset
 * that it is told, into the same file, and commits them:
 *
 *     begin "ildg-log"  header without magic, sync      readers: bytes behind the end
 *     commit n          padding, length, sync, magic, sync      readers: a record more
 *
 * A record that is committed may go on growing, after limefile_growth_begin(): until the next
 * commit readers see its old length, and bytes behind the end. The editor remembers where each
 * header is, 8 bytes a record, so that any number of records may be removed.
 */
struct limefile_editor;

/* The index must have no fault and belong to the source as it is: LIMEFILE_E_STATE if the file
 * ends elsewhere than the last record. A missing last padding is written. */
int limefile_editor_new(struct limefile_source *, const struct limefile_index *,
                        struct limefile_editor **out);
void limefile_editor_free(struct limefile_editor *); /* writes nothing */

/* The last record, committed or not. LIMEFILE_E_NO_RECORD in an empty container. */
struct limefile_last {
    uint64_t ordinal;
    uint64_t header_offset, data_offset;
    uint64_t bytes; /* as committed; 0 while it has never been */
    bool committed; /* false between begin and the first commit */
    bool mb;        /* begins a message */
    uint8_t type_len;
    char type[LIMEFILE_TYPE_BYTES + 1];
};
int limefile_editor_last(const struct limefile_editor *, struct limefile_last *out);

/* Where the file ends, behind the last record. LIMEFILE_E_STATE: that is not settled, as
 * something is being appended or resized, or has failed. */
int limefile_editor_end(const struct limefile_editor *, uint64_t *end);

/* A further record: 144 bytes that no reader takes for a header, at the end; synced, so that no
 * data are ever on the disk without them. It joins the last message, or begins the first.
 * What a commit that failed has left of the last record is put right first. LIMEFILE_E_STATE
 * while it is not committed or bytes stand behind it; LIMEFILE_E_TYPE, also for an empty one.
 * The file is as it was after an error. */
int limefile_append_begin(struct limefile_editor *, const char *type, size_t type_len);

/* The last record begins a message of its own, or (false) joins the one before. Before the
 * commit nothing is written; afterwards it is limefile_set_boundary(), and the editor knows.
 * The first record of a container always begins one: LIMEFILE_E_ORDER for false.
 * LIMEFILE_E_STATE after a first commit that failed, until one has not. */
int limefile_append_message(struct limefile_editor *, bool mb);

/* Before the caller writes behind the end of a committed record: says so in its header (a value
 * of the reserved byte), synced, so that a crash leaves no bytes of which nobody knows what
 * they are. limefile_resize() does it too; limefile_commit() takes it back. Cheap if it is not
 * needed. Without it all works as well, but recovery needs `keep`. */
int limefile_growth_begin(struct limefile_editor *);

/* The last record's data are these `bytes` now. They, and all that was written to the file
 * before, are on the disk when it returns 0. After an error the record has its old length, or
 * the new one, or (never committed) is not there; commit may be tried again. */
int limefile_commit(struct limefile_editor *, uint64_t bytes);

/* The file gets room for `bytes` of the last record's data: what is new reads as zeros; what is
 * cut off is gone, and is cut off on the disk in a way that leaves a good container. Does not
 * commit growth. `now`: how long the data are now, committed or not. */
int limefile_resize(struct limefile_editor *, uint64_t now, uint64_t bytes);

/* The file ends with what the last record has, `now` bytes of data, committed or not: room that
 * a writer took behind them is given back. */
int limefile_trim(struct limefile_editor *, uint64_t now);

/* The last record goes, committed or not. */
int limefile_remove_last(struct limefile_editor *);

/* ---- other data in a record, in place (redo.c) ----------------------------------------- */

/*
 * A crash at any moment leaves the old data or the new ones. The new data are written behind
 * the last record first; then one write makes them count, and they are copied into the record.
 * If a crash interrupts the copy, limefile_recover() repeats it.
 *
 *     limefile_redo_begin()      the file has room for the new data at redo->at
 *     the caller writes redo->bytes bytes there
 *     limefile_redo_commit()     or limefile_redo_abandon()
 */
struct limefile_redo {
    uint64_t at;     /* where the new data stand in the file */
    uint64_t target; /* where the data of the record begin */
    uint64_t bytes;  /* length of the new data */
    bool counts;     /* set by commit, from where recovery may complete the change */
};

/* The last record gets any length, another record keeps its own. LIMEFILE_E_STATE: the record
 * would get another length, or the last record is not committed. After any other error, and
 * before commit, only limefile_redo_abandon() is allowed. */
int limefile_redo_begin(struct limefile_editor *, const struct limefile_record *,
                        uint64_t bytes, struct limefile_redo *redo);

/* The record has the new data when this returns 0, also after a crash. After an error it has
 * the old data; or, if redo->counts, recovery gives it the old ones or the new ones, and the
 * editor must only be freed. */
int limefile_redo_commit(struct limefile_editor *, struct limefile_redo *redo);

/* Removes what stands behind the last record. The record keeps its old data. */
int limefile_redo_abandon(struct limefile_editor *);

/* ---- headers of any record (edit.c) --------------------------------------------------- */

/* Another type in the header at that offset; synced. If it is the last record, through the
 * editor, so that it knows: limefile_editor_set_type(). */
int limefile_set_type(struct limefile_source *, uint64_t header_offset, const char *type,
                      size_t type_len);
int limefile_editor_set_type(struct limefile_editor *, const char *type, size_t type_len);

/* A message ends and another begins between two neighbours, or (false) does not: both headers
 * say so afterwards; synced. */
int limefile_set_boundary(struct limefile_source *, uint64_t header_before,
                          uint64_t header_after, bool boundary);

/* ---- an inner record of another length, or a new one (rewrite.c) ----------------------- */

/* Bytes [offset, offset + bytes) of a file; fd -1: zeros. */
struct limefile_piece {
    int fd;
    uint64_t offset, bytes;
};

/* A new record. LIMEFILE_E_TYPE for a type that a header cannot hold, and for an empty one. */
struct limefile_insert {
    const char *type;
    size_t type_len;
    const void *data;
    size_t bytes;
};

struct limefile_rewrite {
    int folder;       /* that holds the container */
    const char *name; /* of the container in it */
    int fd;           /* the container, O_RDWR, locked; still the old file afterwards */
    const struct limefile_index *index;
    const struct limefile_record *record;
    const struct limefile_insert *insert; /* goes behind the record; or NULL: */
    const struct limefile_piece
        *pieces;                    /* the record's new data; NULL: the record is removed */
    size_t count;                   /* of pieces */
    limefile_progress_fn *progress; /* or NULL */
    void *context;
};

/*
 * Writes the container anew, beside the old one in its folder, with one record changed, removed
 * or inserted, and renames it over `name`: readers have the old or the new one, whole, at any
 * moment, and what is short of space fails before anything is touched. Unchanged parts are
 * shared or copied by copy_file_range(). Owner, mode and attributes stay. An inserted record is
 * in the message of the one before it, and ends the message if that did. *new_fd: the new
 * container, O_RDWR, locked; the caller's.
 *
 * On the disk, the name too, when it returns 0. An error leaves the old container and *new_fd
 * -1, but for one of the very last step: if *new_fd is a descriptor, the name has the new
 * container, though perhaps not after a power failure. Killed on the way it leaves nothing, or
 * in a very short time (where there is no O_TMPFILE, at any time) a file .NAME.limefs-new,
 * which the next call removes. -ESTALE: the name is not that of the open file, a symbolic link
 * for example. -EPERM: the owner cannot be kept. Other hard links keep the old container. Flags
 * of the neighbours come out right when the record is left out.
 */
int limefile_rewrite(const struct limefile_rewrite *, int *new_fd);

/* ---- after a crash (recover.c) --------------------------------------------------------- */

/* What was done or found, in words, without a newline: "offset 1234: an unfinished record of
 * type 'x', 17 bytes, cut". */
typedef void limefile_note_fn(void *context, const char *text);

/* Bytes [from, size) are about to be cut and are not known to be an unfinished record of ours:
 * save them. 0: saved, cut them; < 0: leave the file alone. */
typedef int limefile_keep_fn(void *context, uint64_t from, uint64_t size);

/*
 * Brings the end of a container into the state from before or after the change that a crash has
 * interrupted: completes a replacement (limefile_redo_commit()), or cuts what stands behind the
 * last record. The last record then ends its message, and has no mark and zero padding. Nothing
 * else is changed: no other deviation, and no record that the change did not concern.
 *
 * Without further ado are cut: an unfinished record, recognised by its header without magic and
 * with a type in plain ASCII; what follows a record that is marked as being resized, unless it
 * begins like a whole record; the zeros of a header that has not come to the disk. Any other
 * tail only through `keep` (NULL: it is not cut), and none at all that has a whole record in it
 * (but for one behind a marked record), as that is damage.
 *
 * 0: the container can be changed, and is synced if anything was changed here. Else nothing was
 * changed, or an I/O error came: that, the code of a fault that could not be cut, or that of
 * limefile_survey_refusal(). LIMEFILE_E_MAGIC, _VERSION: it is not a container.
 */
int limefile_recover(struct limefile_source *source, limefile_note_fn *note,
                     limefile_keep_fn *keep, void *context);

/* Owner, group, attributes, access control list and mode of `to` become those of `from`,
 * another open file; before anything else is done to `to` it should be nobody else's to read.
 */
int limefile_owner_copy(int from, int to);

/* Gives `to` the access control list of `from`, or removes that of `to` if `from` has none.
 * Only the owner of `to` may do so. Call fchmod(2) afterwards. */
int limefile_acl_copy(int from, int to);

/* A new file for such bytes, beside the container `name` of the folder (or AT_FDCWD, and a
 * path): NAME.cut-FROM, or with .1, .2 ... after it if there are such already. Owner and mode
 * are those of the container, which is open; or it is the caller's alone, where that is not
 * allowed. A descriptor, or -errno; *made, its name, is the caller's to free, whatever came of
 * it, NULL perhaps. */
int limefile_create_kept(int folder, const char *name, uint64_t from, int container,
                         char **made);

/* ---- its steps, for who has to ask in between: lime repair ---- */

enum limefile_tail {
    LIMEFILE_TAIL_NONE,
    LIMEFILE_TAIL_UNFINISHED, /* a record of ours that was never committed */
    LIMEFILE_TAIL_OPEN, /* behind a record that was being resized: its data, or what were */
    LIMEFILE_TAIL_OPEN_RECORD, /* the same, but it begins like a whole record */
    LIMEFILE_TAIL_REMOVED,     /* what is left of a record that was being removed */
    LIMEFILE_TAIL_REDO,        /* new data of a record that are to be copied into it */
    LIMEFILE_TAIL_ZEROS,       /* not more than a header */
    LIMEFILE_TAIL_OTHER,
};

/* What one pass over a container finds. */
struct limefile_survey {
    uint64_t records, size, deviations;
    uint32_t messages;
    uint64_t end; /* of what can be read: where the fault's header stands, or the size */
    struct limefile_finding fault; /* code 0: none */
    enum limefile_tail tail;       /* what the bytes behind `end` are */
    uint64_t open;                 /* the record that is marked as being resized; 0: none */
    uint64_t removing; /* the one that is marked because the next was being removed; 0: none */
    uint64_t
        replacing; /* the last record, if it has the mark of a replacement; 0: it has not */
    struct limefile_redo redo; /* LIMEFILE_TAIL_REDO */
    uint64_t contradictions;   /* of message flags, but for those that recovery settles */
    uint64_t last, before; /* where the headers of the last record and the one before it are */
    bool cut_sets_me;  /* the last record does not end its message, and limefile_survey_cut()
                          ends it */
    bool is_container; /* also if it has nothing but an unfinished record */
    char type[LIMEFILE_NAME_MAX + 1]; /* of the unfinished record, with %XX */
};

/* progress may be NULL, here and below. (recover.c) */
int limefile_survey_take(struct limefile_source *, limefile_progress_fn *progress,
                         void *context, struct limefile_survey *out);

/* Why no program may change this container, whatever its tail is: LIMEFILE_E_FLAGS, message
 * flags contradict each other, which no crash of ours leaves but one in the middle of
 * limefile_set_boundary(); LIMEFILE_E_MIXED, the mark of a replacement without its new data.
 * Otherwise 0. */
int limefile_survey_refusal(const struct limefile_survey *);

/* What is or was there to be cut or completed; for tails that need no question. Always
 * terminates. */
void limefile_survey_text(const struct limefile_survey *, char *buf, size_t cap);

/* Cuts the tail, or completes the replacement, on the disk; may be repeated after a crash. */
int limefile_survey_cut(struct limefile_source *, const struct limefile_survey *);

/* A whole record that stands anywhere behind `from`, at whatever byte. 1: found; 0: there is
 * none; < 0: an error code. (salvage.c) */
struct limefile_salvage {
    uint64_t offset;
    struct limefile_header header;
};
int limefile_salvage_find(struct limefile_source *, uint64_t from, uint64_t size,
                          limefile_progress_fn *progress, void *context,
                          struct limefile_salvage *out);

/* Mends flags, reserved bits, what follows the NUL of types, and padding; leaves types and the
 * mark of a replacement. dry: only reports what it would do. note may be NULL. Does not sync.
 * (mend.c) */
int limefile_mend(struct limefile_source *, bool dry, limefile_note_fn *note,
                  limefile_progress_fn *progress, void *context);

#endif
