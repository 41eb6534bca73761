/* stage_file.c - stage one file: compare with an existing target, copy, verify, rename */
#define _GNU_SOURCE
#include "stage_file.h"
#include "limeoutput.h"
#include "contents.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TRIES = 3,                   /* attempts at a copy that fails with -EAGAIN or -ESTALE */
    CHECKPOINT_UNIT = 64 << 20,  /* checkpoints are multiples of this many bytes */
    CHECKPOINT_STEP = 256 << 20, /* minimum of bytes between two checkpoints */
    CHECKPOINT_SECONDS = 1,      /* minimum of seconds between them */
};

/* ---- one pass over a file ---- */

struct file_pass {
    struct stage_transfer transfer;
    struct stage_target *target; /* NULL: the bytes are only read */
    struct stage_sums sums;
    struct stage_fieldsums fields;
    struct stage_datasums data;
    uint64_t synced;  /* offset of the last checkpoint */
    double synced_at; /* time of the last checkpoint */
};

static double get_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int fail_transfer(struct stage_file *f, const struct stage_transfer *t)
{
    if (t->err == -EINTR)
        return stage_fail(f->result, t->err, "interrupted");
    if (!t->in_write)
        stage_set_verdict(f->result, LIMEFILE_UNREADABLE);
    return stage_fail(f->result, t->err, "%s: offset %" PRIu64 ": %s",
                      t->in_write ? "write" : "read", t->err_offset, limefile_strerror(t->err));
}

/* Returns 0 or the error of a failed sync; -EAGAIN: the job has ended. Ignores a failed write
 * of data, which stage_ring_end() reports, and of the journal. */
static int write_checkpoint(struct stage_file *f, struct file_pass *p)
{
    int err = stage_ring_drain(f->ring);
    if (err)
        return 0;
    err = stage_target_checkpoint(p->target, p->sums.bytes, p->sums.crc);
    p->synced = p->sums.bytes;
    p->synced_at = get_seconds();
    return err ? stage_fail(f->result, err, "sync: %s", limefile_strerror(err)) : 0;
}

/* After each block of a copy, checks the kept bytes and writes a checkpoint if it is due.
 * -EINTR: stage_stop() was called. -EAGAIN: the kept bytes are damaged or the job has ended. */
static int check_progress(struct stage_file *f, struct file_pass *p)
{
    uint64_t done = p->sums.bytes, step = f->options->checkpoint;
    bool is_due = step ? done - p->synced >= step
                       : done % CHECKPOINT_UNIT == 0 && done - p->synced >= CHECKPOINT_STEP &&
                             get_seconds() - p->synced_at >= CHECKPOINT_SECONDS;
    if (p->transfer.kept && done == p->transfer.kept && p->sums.crc != p->target->kept_crc) {
        stage_messages_add(&f->result->warnings,
                           "the data kept from an earlier run are damaged; copying all again");
        return -EAGAIN;
    }
    if (done <= p->transfer.kept || done == p->transfer.size)
        return 0;
    bool is_stopped = atomic_load(f->stopped);
    int err = is_due || is_stopped ? write_checkpoint(f, p) : 0;
    return err ? err : is_stopped ? stage_fail(f->result, -EINTR, "interrupted") : 0;
}

/* Adds all blocks of the transfer to the sums, submits them, and ends the transfer. */
static int add_blocks(struct stage_file *f, struct file_pass *p)
{
    const struct stage_block *b;
    int err = 0;
    p->synced = p->transfer.kept;
    p->synced_at = get_seconds();
    while (!err && (b = stage_ring_next(f->ring))) {
        stage_datasums_add(&p->data, &p->sums, b->data, b->n);
        stage_sums_add(&p->sums, b->data, b->n);
        stage_fieldsums_add(&p->fields, b->data, b->n, b->offset);
        if (p->target) {
            atomic_fetch_add(f->moved, b->n);
            f->progress += b->n;
        }
        stage_ring_submit(f->ring);
        if (p->target)
            err = check_progress(f, p);
        else if (atomic_load(f->stopped))
            err = stage_fail(f->result, -EINTR, "interrupted");
    }
    int failed = stage_ring_end(f->ring);
    return err ? err : failed ? fail_transfer(f, &p->transfer) : 0;
}

static int compare_field_sums(struct stage_file *f, struct stage_fieldsums *sums, int fd)
{
    struct limefile_checksum found;
    int64_t bad = stage_fieldsums_compare(sums, fd, &found);
    if (bad < 0)
        return stage_fail(f->result, (int)bad, "read: %s", limefile_strerror((int)bad));
    if (bad == 0) {
        f->result->verified = sums->count;
        f->result->read = true;
        return 0;
    }
    struct limefile_field field = {.kind = LIMEFILE_KIND_UNKNOWN};
    stage_set_verdict(f->result, LIMEFILE_BAD);
    limefile_fields_find(sums->fields, (uint64_t)bad, &field);
    return stage_fail(f->result, LIMEFILE_D_CHECKSUM,
                      "record %" PRId64 ": wrong checksum: the data have %08" PRIx32
                      " %08" PRIx32 ", the file states %08" PRIx32 " %08" PRIx32,
                      bad, found.suma, found.sumb, field.checksum.suma, field.checksum.sumb);
}

/* Runs a transfer and computes the sums `kinds`. Unless `contents` is NULL, also computes the
 * cksums of data records and compares the checksums of the fields. */
static int run_transfer(struct stage_file *f, struct file_pass *p, unsigned kinds,
                        const struct stage_contents *contents, struct stage_digest *out)
{
    const struct limefile_fields *fields =
        contents && contents->container ? &contents->fields : NULL;
    int err = stage_sums_init(&p->sums, kinds);
    stage_datasums_init(&p->data, fields);
    if (!err)
        err = stage_fieldsums_init(&p->fields, fields);
    if (!err)
        err = stage_ring_begin(f->ring, &p->transfer);
    if (err) {
        stage_fail(f->result, err, "%s", limefile_strerror(err));
    } else {
        err = add_blocks(f, p);
        if (!err && contents)
            err = compare_field_sums(f, &p->fields,
                                     p->target ? p->target->port.fd : p->transfer.in.fd);
        stage_sums_result(&p->sums, out);
        if (contents)
            stage_datasums_result(&p->data, out);
    }
    stage_sums_release(&p->sums);
    stage_fieldsums_release(&p->fields);
    return err;
}

/* Reads a file of the source's size and computes its sums as run_transfer() does. */
static int sum_file(struct stage_file *f, const struct stage_port *port, unsigned kinds,
                    const struct stage_contents *contents, struct stage_digest *out)
{
    struct file_pass p = {.transfer = {.in = *port,
                                       .out = {.fd = -1, .direct_fd = -1},
                                       .size = (uint64_t)f->st.st_size}};
    return run_transfer(f, &p, kinds, contents, out);
}

static void subtract_progress(struct stage_file *f)
{
    atomic_fetch_sub(f->moved, f->progress);
    f->progress = 0;
}

/* Compares the digest of the source, or of an existing target, with the sum that the item must
 * have. */
static int compare_required_sum(struct stage_file *f, const struct stage_digest *digest,
                                bool is_target)
{
    char found[STAGE_SUM_CHARS];
    const char *sum = f->item->sum;
    if (!sum || strcmp(stage_digest_format(digest, f->item->sum_kind, found), sum) == 0)
        return 0;
    stage_set_verdict(f->result, LIMEFILE_BAD);
    return stage_fail(f->result, LIMEFILE_D_CHECKSUM,
                      "the %s has the sum %s, the list of sums states %s%s",
                      is_target ? "target exists and" : "file", found, sum,
                      is_target ? "; --force replaces it" : "");
}

/* Copies the bytes and computes their sums. -EAGAIN: the caller starts from the beginning. */
static int copy_and_sum(struct stage_file *f, struct stage_target *t)
{
    struct file_pass p = {.transfer = {.in = f->source,
                                       .out = t->port,
                                       .size = (uint64_t)f->st.st_size,
                                       .kept = t->kept},
                          .target = t};
    int err = run_transfer(f, &p, f->options->kinds, &f->contents, &f->result->digest);
    if (!err)
        err = compare_required_sum(f, &f->result->digest, false);
    if (err == LIMEFILE_D_CHECKSUM && t->kept)
        err = -EAGAIN; /* the kept bytes may have been damaged since */
    f->result->resumed = err ? 0 : t->kept;
    return err;
}

/* ---- an existing target ---- */

/* For --force: locks the existing target until the rename, because a record that another
 * process appended to it would be lost. */
static int lock_existing(struct stage_file *f, const struct stat *st)
{
    int err = stage_existing_lock(&f->existing, f->item->target, st);
    if (err == -EBUSY)
        return stage_fail(f->result, err, "the target: %s",
                          limefile_strerror(LIMEFILE_E_OUTPUT_LOCKED));
    return err ? stage_fail(f->result, err, "the target cannot be locked: %s",
                            limefile_strerror(err))
               : 0;
}

/* Returns true if the target is the source, perhaps through a link or a limefs mount. Also
 * returns true if the target does not exist and its directory is the source as a limefs mount
 * shows it: the target would become a record of the source. */
static bool is_source(const struct stage_file *f)
{
    const char *slash = strrchr(f->item->target, '/');
    char *dir = slash ? strndup(f->item->target, (size_t)(slash - f->item->target) + 1) : NULL;
    int fd = open(f->item->target, O_PATH | O_CLOEXEC);
    if (fd < 0)
        fd = open(dir ? dir : ".", O_PATH | O_CLOEXEC);
    free(dir);
    bool same = fd >= 0 && limefile_output_same_file(fd, f->source.fd);
    if (fd >= 0)
        close(fd);
    return same;
}

/* Checks the target's metadata. Returns 1 if the target may be an earlier copy, 0 if it does
 * not exist or may be replaced, or < 0 after a failure. */
static int check_target_metadata(struct stage_file *f, struct stat *st)
{
    struct stage_result *r = f->result;
    struct stat end;
    if (is_source(f))
        return stage_fail(r, -EINVAL, "the target is the source itself");
    if (lstat(f->item->target, st) != 0)
        return errno == ENOENT ? 0 : stage_fail(r, -errno, "%s", strerror(errno));
    if (S_ISDIR(st->st_mode))
        return stage_fail(r, -EISDIR, "the target is a directory");
    bool is_link = S_ISLNK(st->st_mode) && stat(f->item->target, &end) == 0;
    const struct stat *resolved = is_link ? &end : st;
    const char *what = stage_file_kind(resolved);
    if (what && !S_ISDIR(resolved->st_mode) && !S_ISLNK(resolved->st_mode))
        return stage_fail(r, -EINVAL, "the target %s %s, which is never replaced",
                          is_link ? "leads to" : "is", what);
    if (f->options->force)
        return lock_existing(f, st);
    if (S_ISLNK(st->st_mode))
        return stage_fail(r, -EEXIST, "the target is a link; --force replaces the link itself");
    if (st->st_size != f->st.st_size)
        return stage_fail(r, -EEXIST,
                          "the target exists with a different size (%" PRIu64
                          " bytes); --force replaces it",
                          (uint64_t)st->st_size);
    if (!f->item->sum && !stage_mtime_matches(&f->st.st_mtim, &st->st_mtim))
        return stage_fail(r, -EEXIST,
                          "the target exists with a different modification time; "
                          "--force replaces it");
    return 1;
}

/* Compares the target's digest with its stored sums (target.h) or, if `stored` is NULL, with
 * the source. */
static int compare_digest(struct stage_file *f, const struct stage_digest *digest,
                          const struct stage_digest *stored)
{
    struct stage_digest source;
    int err = stored ? 0 : sum_file(f, &f->source, f->options->kinds, NULL, &source);
    if (err || stage_digest_matches(digest, stored ? stored : &source))
        return err;
    if (stored)
        stage_set_verdict(f->result, LIMEFILE_BAD);
    return stage_fail(f->result, -EEXIST,
                      stored ? "the target has been damaged since it was staged"
                             : "the target exists and has different contents; "
                               "--force replaces it");
}

/* Makes the reason one about the existing target, which was examined instead of the source. */
static int explain_target(struct stage_file *f, int err)
{
    char why[STAGE_REASON_MAX];
    if (!err || !f->result->reason[0])
        return err;
    memcpy(why, f->result->reason, sizeof why);
    return stage_fail(f->result, err,
                      "the existing target is not a good copy: %.400s; "
                      "--force replaces it",
                      why);
}

/* Compares an existing target with the item's sum or else by compare_digest(). Sets the
 * result's digest. Returns 0 if the target is up to date, or < 0. */
static int compare_target(struct stage_file *f, struct stage_port *target,
                          const struct stat *st, const struct stage_contents *contents)
{
    struct stage_digest *digest = &f->result->digest, stored;
    bool has_stored = stage_stored_sums_load(target->fd, st, &stored);
    bool is_sufficient = has_stored && !(f->options->kinds & ~stored.kinds);
    if (is_sufficient && !f->options->check_existing && !f->item->sum) {
        *digest = stored;
        return 0;
    }
    int err = explain_target(f, sum_file(f, target, f->options->kinds, contents, digest));
    if (!err)
        err = f->item->sum ? compare_required_sum(f, digest, true)
                           : compare_digest(f, digest, has_stored ? &stored : NULL);
    if (!err && !is_sufficient)
        stage_stored_sums_save(target->fd, st, digest);
    return err;
}

/* Returns 1 if the target is up to date, with its sums in the result; 0 if it may be written;
 * or a negative code after a failure. */
static int is_up_to_date(struct stage_file *f)
{
    struct stat st;
    struct stage_contents contents;
    struct stage_port target = {.direct_fd = -1};
    int may_be_copy = check_target_metadata(f, &st);
    if (may_be_copy <= 0)
        return may_be_copy;
    target.fd = open(f->item->target, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (target.fd < 0)
        return stage_fail(f->result, -errno, "open the target: %s", strerror(errno));
    stage_port_open_direct(&target, O_RDONLY);
    int err =
        fstat(target.fd, &st) != 0 ? stage_fail(f->result, -errno, "%s", strerror(errno)) : 0;
    if (!err)
        err = explain_target(
            f, stage_contents_examine(&contents, target.fd, f->options, f->result));
    if (!err) {
        err = compare_target(f, &target, &st, &contents);
        stage_contents_release(&contents);
    }
    f->result->has_digest = !err;
    stage_port_close(&target);
    return err ? err : 1;
}

/* ---- checks before the rename ---- */

/* Returns -ESTALE if the open source has changed, or if its name now belongs to another file: a
 * program can replace the source by a rename without a change of the open file. */
static int check_source_unchanged(struct stage_file *f)
{
    struct stat st, named;
    if (fstat(f->source.fd, &st) != 0)
        return stage_fail(f->result, -errno, "%s", strerror(errno));
    if (stat(f->item->source, &named) != 0)
        return stage_fail(f->result, -errno, "the source has disappeared while it was read: %s",
                          strerror(errno));
    struct limefile_identity before = limefile_identify(&f->st), after = limefile_identify(&st),
                             by_name = limefile_identify(&named);
    return limefile_identity_same_file(&by_name, &after) &&
                   !(limefile_identity_differences(&before, &after) & LIMEFILE_STATE)
               ? 0
               : -ESTALE;
}

/* Verifies the copy's records and, if requested, its sums as read from the disk. */
static int verify_target(struct stage_file *f, struct stage_target *t)
{
    struct stage_digest digest;
    int fits = stage_contents_match(&f->contents, t->port.fd);
    if (fits < 0) /* -EIO, as fits may be -ESTALE, which would mean that the source changed */
        return stage_fail(f->result, -EIO, "read the copy: %s", limefile_strerror(fits));
    if (!fits)
        return stage_fail(f->result, -EIO, "the records of the copy differ from the source");
    if (!f->options->verify_target)
        return 0;
    struct stage_port port = {.fd = t->port.fd, .direct_fd = t->port.direct_fd};
    posix_fadvise(port.fd, 0, 0, POSIX_FADV_DONTNEED);
    int err = sum_file(f, &port, STAGE_CKSUM | STAGE_ADLER32, NULL, &digest);
    if (!err && !stage_digest_matches(&digest, &f->result->digest))
        err = stage_fail(f->result, -EIO, "the copy on the disk differs from what was written");
    return err;
}

static int explain_rename(struct stage_file *f, int err)
{
    switch (err) {
    case -EEXIST:
        return stage_fail(
            f->result, err, "another process has created or replaced the target; %s",
            f->options->force ? "repeat the command to replace it" : "--force replaces it");
    case STAGE_TEMP_LOST:
        return stage_fail(
            f->result, -EIO,
            "another process, perhaps a lime stage on a file system without locks, has removed "
            "or replaced the temporary file; nothing was renamed");
    case STAGE_TEMP_EXCHANGED:
        return stage_fail(f->result, -EIO,
                          "another process has replaced the temporary file during the rename: "
                          "the target is NOT the verified copy");
    default:
        return stage_fail(f->result, err, "rename: %s", limefile_strerror(err));
    }
}

static int verify_and_rename(struct stage_file *f, struct stage_target *t)
{
    int err = stage_target_sync(t);
    if (err)
        return stage_fail(f->result, err, "sync: %s", limefile_strerror(err));
    err = verify_target(f, t);
    if (!err)
        err = check_source_unchanged(f);
    if (err)
        return err;
    err = stage_target_set_metadata(t, &f->st, &f->result->digest);
    if (err)
        return stage_fail(f->result, err, "set mode, owner, times: %s", limefile_strerror(err));
    err = stage_target_rename(t, &f->existing);
    return err ? explain_rename(f, err) : 0;
}

static int open_source_file(struct stage_file *f)
{
    f->source =
        (struct stage_port){.fd = limefile_open(f->item->source, O_RDONLY), .direct_fd = -1};
    if (f->source.fd < 0) {
        stage_set_verdict(f->result, LIMEFILE_UNREADABLE);
        return stage_fail(f->result, f->source.fd, "open: %s%s",
                          limefile_strerror(f->source.fd),
                          f->source.fd == -EISDIR ? "; use -r for the files in it" : "");
    }
    stage_port_open_direct(&f->source, O_RDONLY);
    return 0;
}

static int stat_source(struct stage_file *f)
{
    stage_contents_release(&f->contents);
    if (fstat(f->source.fd, &f->st) != 0)
        return stage_fail(f->result, -errno, "%s", strerror(errno));
    if (!S_ISREG(f->st.st_mode)) {
        stage_set_verdict(f->result, LIMEFILE_UNREADABLE);
        return stage_fail(f->result, -EINVAL, "not a regular file");
    }
    f->result->size = (uint64_t)f->st.st_size;
    f->result->has_size = true;
    return 0;
}

static int open_target(struct stage_file *f, struct stage_target *t)
{
    struct limefile_identity source = limefile_identify(&f->st);
    char why[STAGE_REASON_MAX];
    int err = stage_target_open(t, f->item->target, &source, why, sizeof why);
    if (err == -EBUSY)
        return stage_fail(f->result, err, "another lime stage is copying it");
    return err ? stage_fail(f->result, err, "%s", why) : 0;
}

/* Opens the source and the temporary file in the job, if there is a job. If the job cannot open
 * a file, this process reads or writes this file. */
static void open_remote(struct stage_file *f, struct stage_target *t,
                        struct stage_remote_file files[2])
{
    f->source.remote = t->port.remote = NULL;
    if (!f->remote)
        return;
    if (stage_remote_open(f->remote, f->source.fd, false, &files[0]) == 0)
        f->source.remote = &files[0];
    if (stage_remote_open(f->remote, t->port.fd, true, &files[1]) == 0)
        t->port.remote = &files[1];
}

static void close_remote(struct stage_file *f, struct stage_target *t)
{
    if (f->source.remote)
        stage_remote_close(f->source.remote);
    if (t->port.remote)
        stage_remote_close(t->port.remote);
    f->source.remote = t->port.remote = NULL;
}

/* Copies, verifies and renames. -EAGAIN, -ESTALE: may be repeated after restart_copy(). */
static int write_target(struct stage_file *f, struct stage_target *t)
{
    struct stage_remote_file files[2];
    int err = 0;
    if (t->kept % f->ring->block_bytes) /* an earlier run had another block size */
        err = stage_target_restart(t, &t->source);
    if (!err)
        err = stage_target_allocate(t);
    if (err)
        return stage_fail(f->result, err, "write: %s", limefile_strerror(err));
    open_remote(f, t, files);
    err = copy_and_sum(f, t);
    if (!err)
        err = verify_and_rename(f, t);
    if (err)
        subtract_progress(f);
    close_remote(f, t);
    return err;
}

/* Prepares another attempt. why: the result of write_target(). */
static int restart_copy(struct stage_file *f, struct stage_target *t, int why)
{
    int err = 0;
    if (why == -ESTALE) { /* the source has changed or was replaced */
        stage_port_close(&f->source);
        err = open_source_file(f);
        if (!err)
            err = stat_source(f);
        if (!err)
            err = stage_contents_examine(&f->contents, f->source.fd, f->options, f->result);
        if (err)
            return err;
        stage_messages_add(&f->result->warnings, "the source changed while it was read");
    }
    struct limefile_identity source = limefile_identify(&f->st);
    err = stage_target_restart(t, &source);
    if (err == -EBUSY)
        return stage_fail(f->result, err, "another lime stage is copying it");
    return err ? stage_fail(f->result, err, "restart: %s", limefile_strerror(err)) : 0;
}

static int stage_with_retries(struct stage_file *f)
{
    struct stage_target t;
    int err = open_target(f, &t);
    if (err)
        return err;
    for (int tries = 1;; tries++) {
        err = write_target(f, &t);
        if (err != -EAGAIN && err != -ESTALE)
            break;
        if (tries == TRIES) {
            err = stage_fail(f->result, err,
                             err == -ESTALE ? "the source keeps changing"
                                            : "the copy had to be restarted too often");
            break;
        }
        err = restart_copy(f, &t, err);
        if (err)
            break;
    }
    stage_target_close(&t, err == -EINTR && t.has_journal);
    return err;
}

static enum stage_status stage_source(struct stage_file *f)
{
    if (f->item->is_other && !f->options->any_file) {
        stage_set_verdict(f->result, LIMEFILE_SKIPPED);
        stage_fail(f->result, 0, "not a LIME container");
        return STAGE_SKIPPED;
    }
    int err = open_source_file(f);
    if (!err)
        err = stat_source(f);
    if (!err) {
        err = is_up_to_date(f);
        stage_target_remove_stale(f->item->target);
        if (err == 1)
            return STAGE_UP_TO_DATE;
    }
    if (!err)
        err = stage_contents_examine(&f->contents, f->source.fd, f->options, f->result);
    if (!err) {
        err = stage_with_retries(f);
        stage_contents_release(&f->contents); /* saves memory while the target is examined */
        if (err == -EEXIST && is_up_to_date(f) == 1)
            return STAGE_UP_TO_DATE; /* another process was faster */
    }
    f->result->has_digest = !err;
    return !err                                       ? STAGE_STAGED
           : err == -EINTR && atomic_load(f->stopped) ? STAGE_STOPPED
                                                      : STAGE_FAILED;
}

void stage_file_run(struct stage_file *f)
{
    double began = get_seconds();
    f->source = (struct stage_port){.fd = -1, .direct_fd = -1};
    f->result->item = f->item;
    f->result->status = stage_source(f);
    if (f->result->status == STAGE_STAGED || f->result->status == STAGE_UP_TO_DATE)
        stage_set_copy_verdict(f->result);
    f->result->seconds = get_seconds() - began;
    stage_existing_release(&f->existing);
    stage_contents_release(&f->contents);
    stage_port_close(&f->source);
}
