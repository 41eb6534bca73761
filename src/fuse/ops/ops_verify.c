/* ops_verify.c - FUSE operations that may read a whole record before they reply */
#define _GNU_SOURCE
#include "caller.h"
#include "errand.h"
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

/* No interrupt arrives after this call. It must precede the reply, which frees the request. */
static void settle_interrupts(struct limefs_errand *errand)
{
    fuse_req_interrupt_func(errand->req, NULL, NULL);
}

/* ---- open, with -o verify=open ---- */

static void reply_open(struct limefs *fs, fuse_req_t req, struct limefs_file *file,
                       struct fuse_file_info *info, int err)
{
    if (limefs_verify_is_bad(&file->reader)) /* the kernel may have cached bytes of it */
        info->keep_cache = 0;
    if (err) {
        limefs_file_close(fs, file);
        fuse_reply_err(req, limefs_errno(err));
    } else if (fuse_reply_open(req, info) != 0) {
        limefs_file_close(fs, file);
    }
}

static int err_of(int err, enum limefile_verdict verdict)
{
    if (err == -EBUSY) /* the record is being written */
        return 0;
    return err ? err : verdict == LIMEFILE_BAD ? -EIO : 0;
}

/* True if opening the file must wait until its record is verified. */
static bool waits(const struct limefs *fs, const struct limefs_file *file)
{
    return file->view && !file->target &&
           (fs->options.verify == LIMEFS_VERIFY_OPEN || limefs_verify_precedes(&file->reader));
}

/* Returns 0, or -errno if the file cannot be opened. With verify=stream it can be opened even
 * if the record is bad: a reader gets EIO at the end of the record. */
static int verify_file(struct limefs *fs, const struct limefs_file *file,
                       const atomic_bool *stop)
{
    uint64_t ordinal = file->record.ordinal;
    enum limefile_verdict verdict = LIMEFILE_UNVERIFIED;
    int err = limefs_verify_ask(fs, file->view, ordinal, &verdict);
    if (err == -ENODATA) /* it has no checksum */
        return 0;
    if (!err && verdict == LIMEFILE_UNVERIFIED) /* not done in the meantime */
        err = limefs_verify_now(fs, file->view, ordinal, stop, &verdict);
    if (fs->options.verify == LIMEFS_VERIFY_STREAM)
        return err == -EINTR ? err : 0;
    return err_of(err, verdict);
}

/* Verifies the record if required; prepares an export to a whole file at its first open. */
static void run_open(struct limefs *fs, struct limefs_errand *errand)
{
    struct limefs_file *file = errand->file;
    int err = waits(fs, file) ? verify_file(fs, file, &errand->stop) : 0;
    if (!err && file->face)
        err = limefs_face_prepare(fs, file->face, &errand->stop);
    settle_interrupts(errand);
    reply_open(fs, errand->req, file, &errand->info, err);
}

/* Decides from what is known. Returns 0, an -errno, or -EAGAIN if the queue must do it. */
static int try_open(struct limefs *fs, const struct limefs_file *file)
{
    enum limefile_verdict verdict = LIMEFILE_GOOD;
    if (file->face && !limefs_face_is_ready(file->face))
        return -EAGAIN;
    int err =
        waits(fs, file) ? limefs_verify_ask(fs, file->view, file->record.ordinal, &verdict) : 0;
    if (!err && verdict == LIMEFILE_UNVERIFIED)
        return -EAGAIN;
    bool fails = fs->options.verify == LIMEFS_VERIFY_OPEN && err != -ENODATA;
    return fails ? err_of(err, verdict) : 0;
}

void limefs_op_reply_open(fuse_req_t req, struct limefs_file *file, struct fuse_file_info *info)
{
    struct limefs *fs = fuse_req_userdata(req);
    const struct limefs_errand errand = {
        .req = req, .run = run_open, .file = file, .info = *info};
    int err = try_open(fs, file);
    if (err == -EAGAIN && (err = limefs_errand_send(fs, &errand)) == 0)
        return;
    reply_open(fs, req, file, info, err);
}

/* ---- getxattr of user.lime.verify and user.lime.cksum ---- */

enum { ANSWER_MAX = 16 }; /* bytes, with the NUL */

static void reply_answer(struct limefs *fs, struct limefs_errand *errand, int err,
                         const char *answer)
{
    limefs_view_unpin(fs, errand->view);
    settle_interrupts(errand);
    if (err)
        fuse_reply_err(errand->req, limefs_errno(err));
    else
        fuse_reply_buf(errand->req, answer, strlen(answer));
}

static void run_verify(struct limefs *fs, struct limefs_errand *errand)
{
    enum limefile_verdict verdict;
    enum limefile_verdict reported = LIMEFILE_UNVERIFIED;
    char reason[LIMEFS_REASON_MAX];
    int err = limefs_verify_now(fs, errand->view, errand->ordinal, &errand->stop, &verdict);
    if (!err || err == -ENODATA)
        err = limefs_verify_describe(fs, errand->view, errand->ordinal, &reported, reason);
    reply_answer(fs, errand, err, limefile_verdict_word(reported));
}

static void run_cksum(struct limefs *fs, struct limefs_errand *errand)
{
    char answer[ANSWER_MAX];
    uint32_t sum = 0;
    int err = limefs_verify_cksum(fs, errand->view, errand->ordinal, &errand->stop, &sum);
    snprintf(answer, sizeof answer, "%" PRIu32, sum);
    reply_answer(fs, errand, err, answer);
}

/* Returns 1 if the queue now owns the request and the pin of its view, 0 if it has replied, or
 * -errno if the caller must reply. */
static int answer_or_send(struct limefs *fs, struct limefs_errand *errand, size_t size)
{
    enum limefile_verdict verdict;
    char reason[LIMEFS_REASON_MAX];
    bool cksum = errand->run == run_cksum;
    const char *longest = cksum ? "4294967295" : limefile_verdict_word(LIMEFILE_UNVERIFIED);
    int err = limefs_caller_may(errand->view->fd, R_OK);
    if (!err && !cksum)
        err = limefs_verify_describe(fs, errand->view, errand->ordinal, &verdict, reason);
    if (err)
        return err;
    if (size == 0) /* the kernel asks how long the answer may be */
        fuse_reply_xattr(errand->req, strlen(longest));
    else if (size < strlen(longest))
        err = -ERANGE;
    else
        err = limefs_errand_send(fs, errand) ?: 1;
    return err;
}

bool limefs_op_verify(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    struct limefs *fs = fuse_req_userdata(req);
    bool cksum = strcmp(name, LIMEFS_CKSUM) == 0;
    struct limefs_errand errand = {.req = req, .run = cksum ? run_cksum : run_verify};
    struct limefs_inode it = limefs_inode_now(fs, ino);
    if ((!cksum && strcmp(name, LIMEFS_VERIFY) != 0) || it.node || it.face)
        return false;
    errand.view = it.view;
    errand.ordinal = it.ordinal;
    int err = errand.view ? limefs_view_pin(fs, errand.view) : -ESTALE;
    if (!err) {
        err = answer_or_send(fs, &errand, size);
        if (err != 1)
            limefs_view_unpin(fs, errand.view);
    }
    if (err < 0)
        fuse_reply_err(req, limefs_errno(err));
    return true;
}
