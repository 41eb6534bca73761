/* ops_verify.c - FUSE operations that may read a whole record before they are answered */
#define _GNU_SOURCE
#include "caller.h"
#include "errand.h"
#include "file.h"
#include "ops.h"
#include "reply.h"
#include "verify.h"
#include "xattr.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* No interrupt comes once it has been called: the request is about to be gone. */
static void settle_interrupts(struct limefs_errand *errand)
{
    fuse_req_interrupt_func(errand->req, NULL, NULL);
}

/* ---- open, with -o verify=open ---- */

static void reply_open(struct limefs *fs, fuse_req_t req, struct limefs_file *file,
                       struct fuse_file_info *info, int err)
{
    if (err) {
        limefs_file_close(fs, file);
        fuse_reply_err(req, limefs_errno(err));
    } else if (fuse_reply_open(req, info) != 0) {
        limefs_file_close(fs, file);
    }
}

static int err_of(int err, enum limefs_verdict verdict)
{
    if (err == -EBUSY) /* somebody is writing it */
        return 0;
    return err ? err : verdict == LIMEFS_BAD ? -EIO : 0;
}

static void run_open(struct limefs *fs, struct limefs_errand *errand)
{
    enum limefs_verdict verdict = LIMEFS_UNVERIFIED;
    int err = limefs_verify_ask(fs, errand->view, errand->ordinal, &verdict);
    if (!err && verdict == LIMEFS_UNVERIFIED) /* nobody has done it in the meantime */
        err = limefs_verify_now(fs, errand->view, errand->ordinal, &errand->stop, &verdict);
    settle_interrupts(errand);
    reply_open(fs, errand->req, errand->file, &errand->info, err_of(err, verdict));
}

void limefs_op_reply_open(fuse_req_t req, struct limefs_file *file, struct fuse_file_info *info)
{
    struct limefs *fs = fuse_req_userdata(req);
    enum limefs_verdict verdict = LIMEFS_OK;
    int err = 0;
    if (limefs_verify_is_bad(&file->reader)) /* whatever the kernel has of it */
        info->keep_cache = 0;
    if (fs->options.verify == LIMEFS_VERIFY_OPEN && file->view && !file->target) {
        err = limefs_verify_ask(fs, file->view, file->record.ordinal, &verdict);
        if (err == -ENODATA)
            err = 0;
        if (!err && verdict == LIMEFS_UNVERIFIED) {
            struct limefs_errand errand = {.req = req,
                                           .run = run_open,
                                           .view = file->view,
                                           .ordinal = file->record.ordinal,
                                           .file = file,
                                           .info = *info};
            err = limefs_errand_send(fs, &errand);
            if (!err)
                return;
        }
    }
    reply_open(fs, req, file, info, err_of(err, verdict));
}

/* ---- getxattr of user.lime.verify ---- */

static void run_verify(struct limefs *fs, struct limefs_errand *errand)
{
    enum limefs_verdict verdict;
    int err = limefs_verify_now(fs, errand->view, errand->ordinal, &errand->stop, &verdict);
    limefs_view_unpin(fs, errand->view);
    settle_interrupts(errand);
    if (err)
        fuse_reply_err(errand->req, limefs_errno(err));
    else
        fuse_reply_buf(errand->req, limefs_verdict_word(verdict),
                       strlen(limefs_verdict_word(verdict)));
}

bool limefs_op_verify(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    struct limefs *fs = fuse_req_userdata(req);
    struct limefs_errand errand = {.req = req, .run = run_verify};
    if (strcmp(name, LIMEFS_VERIFY) != 0 || limefs_inode_node(fs, ino))
        return false;
    errand.view = limefs_inode_view(fs, ino, &errand.ordinal);
    enum limefs_verdict verdict;
    int err = errand.view ? limefs_view_pin(fs, errand.view) : -ESTALE;
    if (!err) {
        err = limefs_caller_may(errand.view->fd, R_OK);
        if (!err)
            err = limefs_verify_ask(fs, errand.view, errand.ordinal, &verdict);
        if (!err && size == 0) { /* how much room the answer may need */
            fuse_reply_xattr(req, strlen(limefs_verdict_word(LIMEFS_UNVERIFIED)));
            limefs_view_unpin(fs, errand.view);
            return true;
        }
        if (!err && size < strlen(limefs_verdict_word(LIMEFS_UNVERIFIED)))
            err = -ERANGE;
        if (!err)
            err = limefs_errand_send(fs, &errand);
        if (err)
            limefs_view_unpin(fs, errand.view);
    }
    if (err)
        fuse_reply_err(req, limefs_errno(err));
    return true;
}
