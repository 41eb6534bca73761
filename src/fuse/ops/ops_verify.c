/* ops_verify.c - FUSE operations that may read a whole record before they reply */
#define _GNU_SOURCE
#include "credentials.h"
#include "work.h"
#include "file.h"
#include "ops.h"
#include "reply.h"
#include "verify.h"
#include "xattr.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Prevents further interrupts. Called before the reply, because the reply frees the request. */
static void clear_interrupt(struct limefs_work *work)
{
    fuse_req_interrupt_func(work->req, NULL, NULL);
}

static void reply_open(struct limefs *fs, fuse_req_t req, struct limefs_file *file,
                       struct fuse_file_info *info, int err)
{
    if (limefs_verify_is_bad(&file->reader)) /* the kernel may have cached the bad bytes */
        info->keep_cache = 0;
    if (err) {
        limefs_file_close(fs, file);
        fuse_reply_err(req, limefs_errno(err));
    } else if (fuse_reply_open(req, info) != 0) {
        limefs_file_close(fs, file);
    }
}

static int verdict_error(int err, enum limefile_verdict verdict)
{
    if (err == -EBUSY) /* the record is being written */
        return 0;
    return err ? err : verdict == LIMEFILE_BAD ? -EIO : 0;
}

static bool must_verify(const struct limefs *fs, const struct limefs_file *file)
{
    return file->snap && !file->target &&
           (fs->options.verify == LIMEFS_VERIFY_OPEN ||
            limefs_verify_is_due_before_read(&file->reader));
}

/* Returns 0, or -errno if the file must not be opened. With verify=stream, a file with a bad
 * record may be opened: a reader gets EIO at the end of the record. */
static int verify_opened_file(struct limefs *fs, const struct limefs_file *file,
                              const atomic_bool *stop)
{
    uint64_t ordinal = file->record.ordinal;
    enum limefile_verdict verdict = LIMEFILE_UNVERIFIED;
    int err = limefs_verify_lookup(fs, file->snap, ordinal, &verdict);
    if (err == -ENODATA) /* the record has no checksum */
        return 0;
    if (!err && verdict == LIMEFILE_UNVERIFIED) /* no thread has verified it in the meantime */
        err = limefs_verify_record(fs, file->snap, ordinal, stop, &verdict);
    if (fs->options.verify == LIMEFS_VERIFY_STREAM)
        return err == -EINTR ? err : 0;
    return verdict_error(err, verdict);
}

static void run_open(struct limefs *fs, struct limefs_work *work)
{
    struct limefs_file *file = work->file;
    int err = must_verify(fs, file) ? verify_opened_file(fs, file, &work->stop) : 0;
    if (!err && file->export)
        err = limefs_export_prepare(fs, file->export, &work->stop);
    clear_interrupt(work);
    reply_open(fs, work->req, file, &work->info, err);
}

/* Returns 0 or -errno for the open; -EAGAIN: the work queue must first read the record. */
static int try_open(struct limefs *fs, const struct limefs_file *file)
{
    enum limefile_verdict verdict = LIMEFILE_GOOD;
    if (file->export && !limefs_export_is_ready(file->export))
        return -EAGAIN;
    int err = must_verify(fs, file)
                  ? limefs_verify_lookup(fs, file->snap, file->record.ordinal, &verdict)
                  : 0;
    if (!err && verdict == LIMEFILE_UNVERIFIED)
        return -EAGAIN;
    bool is_strict = fs->options.verify == LIMEFS_VERIFY_OPEN && err != -ENODATA;
    return is_strict ? verdict_error(err, verdict) : 0;
}

void limefs_op_reply_open(fuse_req_t req, struct limefs_file *file, struct fuse_file_info *info)
{
    struct limefs *fs = fuse_req_userdata(req);
    const struct limefs_work work = {.req = req, .run = run_open, .file = file, .info = *info};
    int err = try_open(fs, file);
    if (err == -EAGAIN && (err = limefs_work_submit(fs, &work)) == 0)
        return;
    reply_open(fs, req, file, info, err);
}

/* ---- getxattr of user.lime.verify and user.lime.cksum ---- */

enum { CKSUM_TEXT_MAX = 16 }; /* bytes, with the NUL */

static void reply_value(struct limefs *fs, struct limefs_work *work, int err, const char *value)
{
    limefs_snapshot_unpin(fs, work->snap);
    clear_interrupt(work);
    if (err)
        fuse_reply_err(work->req, limefs_errno(err));
    else
        fuse_reply_buf(work->req, value, strlen(value));
}

static void run_verify(struct limefs *fs, struct limefs_work *work)
{
    enum limefile_verdict verdict;
    enum limefile_verdict reported = LIMEFILE_UNVERIFIED;
    char reason[LIMEFS_REASON_MAX];
    int err = limefs_verify_record(fs, work->snap, work->ordinal, &work->stop, &verdict);
    if (!err || err == -ENODATA)
        err = limefs_verify_describe(fs, work->snap, work->ordinal, &reported, reason);
    reply_value(fs, work, err, limefile_verdict_word(reported));
}

static void run_cksum(struct limefs *fs, struct limefs_work *work)
{
    char value[CKSUM_TEXT_MAX];
    uint32_t sum = 0;
    int err = limefs_verify_cksum(fs, work->snap, work->ordinal, &work->stop, &sum);
    snprintf(value, sizeof value, "%" PRIu32, sum);
    reply_value(fs, work, err, value);
}

/* Returns 1 if the queue now owns the request and its pinned snapshot, 0 if this function has
 * replied, or -errno if the caller must reply. */
static int reply_or_queue(struct limefs *fs, struct limefs_work *work, size_t size)
{
    enum limefile_verdict verdict;
    char reason[LIMEFS_REASON_MAX];
    bool is_cksum = work->run == run_cksum;
    const char *longest = is_cksum ? "4294967295" : limefile_verdict_word(LIMEFILE_UNVERIFIED);
    int err = limefs_creds_check_access(work->snap->fd, R_OK);
    if (!err && !is_cksum)
        err = limefs_verify_describe(fs, work->snap, work->ordinal, &verdict, reason);
    if (err)
        return err;
    if (size == 0) /* the kernel requests the length only: reply the maximum */
        fuse_reply_xattr(work->req, strlen(longest));
    else if (size < strlen(longest))
        err = -ERANGE;
    else
        err = limefs_work_submit(fs, work) ?: 1;
    return err;
}

bool limefs_op_verify_xattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    struct limefs *fs = fuse_req_userdata(req);
    bool is_cksum = strcmp(name, LIMEFS_CKSUM_XATTR) == 0;
    struct limefs_work work = {.req = req, .run = is_cksum ? run_cksum : run_verify};
    struct limefs_inode inode = limefs_inode_find_current(fs, ino);
    if ((!is_cksum && strcmp(name, LIMEFS_VERIFY_XATTR) != 0) || inode.node || inode.export)
        return false;
    work.snap = inode.snap;
    work.ordinal = inode.ordinal;
    int err = work.snap ? limefs_snapshot_pin(fs, work.snap) : -ESTALE;
    if (!err) {
        err = reply_or_queue(fs, &work, size);
        if (err != 1)
            limefs_snapshot_unpin(fs, work.snap);
    }
    if (err < 0)
        fuse_reply_err(req, limefs_errno(err));
    return true;
}
