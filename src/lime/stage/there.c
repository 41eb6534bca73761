/* there.c - a file that has the target's name already: what an earlier run has made of the same
 * source, or something else? */
#define _GNU_SOURCE
#include "file.h"
#include "limeoutput.h"
#include "port.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is never replaced: nobody wants a copy instead of his terminal. A link counts as what it
 * leads to. NULL: none of these. */
static const char *kept_by_all_means(const struct stat *st)
{
    return S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode) ? "a device"
           : S_ISFIFO(st->st_mode)                      ? "a FIFO"
           : S_ISSOCK(st->st_mode)                      ? "a socket"
                                                        : NULL;
}

/* --force: the lock is held until the copy has got the name, so no record that another process
 * appends in the meantime is lost. */
static int lock_existing(struct stage_file *f, const struct stat *st)
{
    int err = stage_existing_lock(&f->existing, f->item->target, st);
    if (err == -EBUSY)
        return stage_fail(f->result, err, "the target: %s",
                          limefile_strerror(LIMEFILE_E_OUTPUT_LOCKED));
    return err ? stage_fail(f->result, err, "the target: open it to lock it: %s",
                            limefile_strerror(err))
               : 0;
}

/* Whether the target, or the container in a mount that it would become a record of, is the
 * source: through links and limefs mounts. */
static bool is_source(const struct stage_file *f)
{
    const char *slash = strrchr(f->item->target, '/');
    char *folder =
        slash ? strndup(f->item->target, (size_t)(slash - f->item->target) + 1) : NULL;
    int fd = open(f->item->target, O_PATH | O_CLOEXEC);
    if (fd < 0)
        fd = open(folder ? folder : ".", O_PATH | O_CLOEXEC);
    free(folder);
    bool same = fd >= 0 && limefile_output_same(fd, f->source.fd);
    if (fd >= 0)
        close(fd);
    return same;
}

/* By what stat() says: 1: it may be ours; 0: it may be replaced, or there is none; < 0. */
static int look(struct stage_file *f, struct stat *st)
{
    struct stage_result *r = f->result;
    struct stat end;
    if (is_source(f))
        return stage_fail(r, -EINVAL, "the target is the source itself");
    if (lstat(f->item->target, st) != 0)
        return errno == ENOENT ? 0 : stage_fail(r, -errno, "%s", strerror(errno));
    if (S_ISDIR(st->st_mode))
        return stage_fail(r, -EISDIR, "the target is a folder");
    bool leads = S_ISLNK(st->st_mode) && stat(f->item->target, &end) == 0;
    const char *what = kept_by_all_means(leads ? &end : st);
    if (what)
        return stage_fail(r, -EINVAL, "the target %s %s: it is never replaced",
                          leads ? "leads to" : "is", what);
    if (f->options->force)
        return lock_existing(f, st);
    if (S_ISLNK(st->st_mode))
        return stage_fail(r, -EEXIST,
                          "the target is a link; --force replaces it, not what it leads to");
    if (st->st_size != f->st.st_size)
        return stage_fail(r, -EEXIST,
                          "the target exists and is another file, of %" PRIu64
                          " bytes; --force replaces it",
                          (uint64_t)st->st_size);
    if (!stage_time_agrees(&f->st.st_mtim, &st->st_mtim))
        return stage_fail(r, -EEXIST,
                          "the target exists and is another file, of another time; "
                          "--force replaces it");
    return 1;
}

/* Where there is no record of what was staged, source and target are read. */
static int compare(struct stage_file *f, struct stage_port *target, const struct stat *st,
                   const struct stage_plan *plan)
{
    struct stage_digest *digest = &f->result->digest, recorded, source;
    bool has_record = stage_record_load(target->fd, st, &recorded);
    bool enough = has_record && !(f->options->kinds & ~recorded.kinds);
    if (enough && !f->options->check_there) {
        *digest = recorded;
        return 0;
    }
    uint64_t size = (uint64_t)st->st_size;
    int err = stage_file_sum(f, target, size, f->options->kinds, plan, digest);
    if (!err && !has_record)
        err = stage_file_sum(f, &f->source, size, f->options->kinds, NULL, &source);
    if (err)
        return err;
    if (has_record && !stage_digest_agrees(digest, &recorded))
        stage_judge(f->result, LIMEFILE_BAD);
    if (!stage_digest_agrees(digest, has_record ? &recorded : &source))
        return stage_fail(f->result, -EEXIST,
                          has_record ? "the target is damaged: it is not what was staged"
                                     : "the target exists and holds other bytes; "
                                       "--force replaces it");
    if (!enough)
        stage_record_store(target->fd, st, digest);
    return 0;
}

int stage_file_is_there(struct stage_file *f)
{
    struct stat st;
    struct stage_plan plan;
    struct stage_port target = {.direct = -1};
    int may = look(f, &st);
    if (may <= 0)
        return may;
    target.fd = open(f->item->target, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (target.fd < 0)
        return stage_fail(f->result, -errno, "the target exists: %s", strerror(errno));
    stage_port_open_direct(&target, O_RDONLY);
    int err =
        fstat(target.fd, &st) != 0 ? stage_fail(f->result, -errno, "%s", strerror(errno)) : 0;
    if (!err)
        err = stage_plan_build(&plan, target.fd, f->options, f->room, f->result);
    if (!err) {
        err = compare(f, &target, &st, &plan);
        stage_plan_release(&plan);
    }
    f->result->has_digest = !err;
    stage_port_close(&target);
    return err ? err : 1;
}
