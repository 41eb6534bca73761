/* file.c - one file: looked at, copied, verified, named */
#define _GNU_SOURCE
#include "file.h"
#include "port.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TRIES = 3,                   /* with a source that changes, or a beginning that was bad */
    CHECKPOINT_UNIT = 64 << 20,  /* checkpoints are multiples of it, */
    CHECKPOINT_STEP = 256 << 20, /* so far from each other */
    CHECKPOINT_SECONDS = 1,      /* and not more often */
};

/* ---- a flow and its sums ---- */

/* What takes part in one pass over the bytes. */
struct pass {
    struct stage_flow flow;
    struct stage_sums sums;
    struct stage_fieldsums fields;
    struct stage_datasums data;
};

static int begin_pass(struct stage_file *f, struct pass *p, unsigned kinds,
                      const struct stage_plan *plan)
{
    int err = stage_sums_init(&p->sums, kinds);
    p->fields = (struct stage_fieldsums){0};
    p->flow.sums = &p->sums;
    stage_datasums_init(&p->data, plan && plan->container ? &plan->fields : NULL);
    p->flow.data = &p->data;
    if (!err && plan && plan->container) {
        err = stage_fieldsums_init(&p->fields, &plan->fields);
        p->flow.fields = &p->fields;
    }
    if (!err)
        err = stage_pump_begin(f->pump, &p->flow);
    if (err) {
        stage_sums_release(&p->sums);
        stage_fieldsums_release(&p->fields);
        stage_fail(f->result, err, "%s", limefile_strerror(err));
    }
    return err;
}

static void end_pass(struct stage_file *f, struct pass *p)
{
    stage_pump_end(f->pump, &p->flow);
    stage_sums_release(&p->sums);
    stage_fieldsums_release(&p->fields);
}

int stage_file_blame(struct stage_file *f, const struct stage_flow *flow)
{
    if (flow->err == -EINTR)
        return stage_fail(f->result, flow->err, "interrupted");
    if (!flow->writing)
        stage_judge(f->result, LIMEFILE_UNREADABLE);
    return stage_fail(f->result, flow->err, "%s: offset %" PRIu64 ": %s",
                      flow->writing ? "write" : "read", flow->err_offset,
                      limefile_strerror(flow->err));
}

int stage_file_judge(struct stage_file *f, struct stage_fieldsums *sums, int fd)
{
    struct limefile_checksum found;
    int64_t bad = stage_fieldsums_verdict(sums, fd, &found);
    if (bad < 0)
        return stage_fail(f->result, (int)bad, "read: %s", limefile_strerror((int)bad));
    if (bad == 0) {
        f->result->verified = sums->count;
        f->result->read = true;
        return 0;
    }
    struct limefile_field field = {.kind = LIMEFILE_KIND_UNKNOWN};
    stage_judge(f->result, LIMEFILE_BAD);
    limefile_fields_of(sums->fields, (uint64_t)bad, &field);
    return stage_fail(f->result, LIMEFILE_D_CHECKSUM,
                      "record %" PRId64 ": wrong checksum: the data have %08" PRIx32
                      " %08" PRIx32 ", the file says %08" PRIx32 " %08" PRIx32,
                      bad, found.suma, found.sumb, field.checksum.suma, field.checksum.sumb);
}

int stage_file_sum(struct stage_file *f, struct stage_port *port, uint64_t size, unsigned kinds,
                   const struct stage_plan *plan, struct stage_digest *out)
{
    struct pass p = {.flow = {.in = *port, .out = {.fd = -1, .direct = -1}, .size = size}};
    int err = begin_pass(f, &p, kinds, plan);
    if (err)
        return err;
    stage_pump_wait(f->pump, &p.flow, UINT64_MAX);
    err = p.flow.err ? stage_file_blame(f, &p.flow) : 0;
    if (!err && plan)
        err = stage_file_judge(f, &p.fields, port->fd);
    stage_sums_result(&p.sums, out);
    if (plan)
        stage_datasums_result(&p.data, out);
    end_pass(f, &p);
    return err;
}

/* ---- copying ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Failures of keeping the journal are no failures of staging: it would begin anew. Those of
 * syncing the bytes are. */
static int checkpoint(struct stage_file *f, struct stage_target *t, const struct pass *p,
                      uint64_t at)
{
    struct limefile_identity source = limefile_identity_of(&f->st);
    uint32_t crc = p->flow.crc_at[at / stage_pump_block_bytes(f->pump)];
    int err = stage_target_checkpoint(t, &source, at, crc);
    return err ? stage_fail(f->result, err, "sync: %s", limefile_strerror(err)) : 0;
}

/* -EAGAIN: what was kept is not what it was. */
static int believe_kept(struct stage_file *f, const struct stage_target *t, struct pass *p)
{
    uint64_t blocks = t->kept / stage_pump_block_bytes(f->pump);
    uint64_t done = stage_pump_wait(f->pump, &p->flow, blocks);
    if (done < t->kept || p->flow.crc_at[blocks] == t->kept_crc)
        return 0;
    stage_words_add(&f->result->words,
                    "what an earlier run had left is damaged; all is copied anew");
    return -EAGAIN;
}

/* Until all is through, with checkpoints on the way. */
static int accompany(struct stage_file *f, struct stage_target *t, struct pass *p)
{
    size_t block = stage_pump_block_bytes(f->pump);
    uint64_t step = f->options->checkpoint ? f->options->checkpoint : CHECKPOINT_STEP;
    uint64_t unit = f->options->checkpoint ? block : CHECKPOINT_UNIT;
    double pause = f->options->checkpoint ? 0 : CHECKPOINT_SECONDS;
    uint64_t last = t->kept, next = last;
    double before = now();
    int err = t->kept ? believe_kept(f, t, p) : 0;
    while (!err) {
        next += step;
        uint64_t done = stage_pump_wait(f->pump, &p->flow, (next + block - 1) / block);
        bool over = stage_pump_is_over(f->pump, &p->flow);
        if (over && (!p->flow.err || p->flow.err != -EINTR))
            break;
        uint64_t at = done - done % unit;
        if (at > last && (over || now() - before >= pause)) {
            err = checkpoint(f, t, p, at);
            last = at;
            before = now();
        }
        if (over)
            break;
    }
    stage_pump_cancel(f->pump, &p->flow, err ? err : -EINTR);
    return err ? err : p->flow.err ? stage_file_blame(f, &p->flow) : 0;
}

/* The bytes and their sums. -EAGAIN: from the beginning, please. */
static int copy(struct stage_file *f, struct stage_target *t)
{
    struct pass p = {.flow = {.in = f->source,
                              .kept = t->port,
                              .kept_bytes = t->kept,
                              .out = t->port,
                              .size = (uint64_t)f->st.st_size,
                              .moved = f->moved}};
    p.flow.kept.remote = NULL;
    int err = begin_pass(f, &p, f->options->kinds, &f->plan);
    if (err)
        return err;
    err = accompany(f, t, &p);
    if (!err) {
        err = stage_file_judge(f, &p.fields, t->port.fd);
        if (err == LIMEFILE_D_CHECKSUM && t->kept)
            err = -EAGAIN; /* the beginning may have been damaged meanwhile */
    }
    stage_sums_result(&p.sums, &f->result->digest);
    stage_datasums_result(&p.data, &f->result->digest);
    f->told = err ? 0 : p.flow.told;
    if (err)
        atomic_fetch_sub(f->moved, p.flow.told);
    f->result->resumed = err ? 0 : t->kept;
    end_pass(f, &p);
    return err;
}

/* ---- what is to be true in the end ---- */

/* What was read, and what has the source's name: who writes a new one and renames it leaves the
 * one that is open as it was. */
static int source_is_the_same(struct stage_file *f)
{
    struct stat st, named;
    if (fstat(f->source.fd, &st) != 0)
        return stage_fail(f->result, -errno, "%s", strerror(errno));
    if (stat(f->item->source, &named) != 0)
        return stage_fail(f->result, -errno, "the source has gone while it was read: %s",
                          strerror(errno));
    struct limefile_identity before = limefile_identity_of(&f->st),
                             after = limefile_identity_of(&st);
    return named.st_dev == st.st_dev && named.st_ino == st.st_ino &&
                   stage_identity_agrees(&before, &after)
               ? 0
               : -ESTALE;
}

/* Reads what was written from the disk. */
static int verify_target(struct stage_file *f, struct stage_target *t)
{
    struct stage_digest digest;
    int fits = stage_plan_fits(&f->plan, t->port.fd);
    if (fits < 0) /* of the target: -ESTALE would be taken for the source's */
        return stage_fail(f->result, -EIO, "read what was written: %s",
                          limefile_strerror(fits));
    if (!fits)
        return stage_fail(f->result, -EIO, "what was written is not what was read");
    if (!f->options->verify_target)
        return 0;
    struct stage_port port = {.fd = t->port.fd, .direct = t->port.direct};
    posix_fadvise(port.fd, 0, 0, POSIX_FADV_DONTNEED);
    int err = stage_file_sum(f, &port, (uint64_t)f->st.st_size, STAGE_CKSUM | STAGE_ADLER32,
                             NULL, &digest);
    if (!err && !stage_digest_agrees(&digest, &f->result->digest))
        err = stage_fail(f->result, -EIO, "what is on the disk is not what was written");
    return err;
}

static int blame_name(struct stage_file *f, int err)
{
    switch (err) {
    case -EEXIST:
        return stage_fail(f->result, err,
                          "another process has made or replaced the target in the meantime; %s",
                          f->options->force ? "the same command again replaces it"
                                            : "--force replaces it");
    case STAGE_TEMP_LOST:
        return stage_fail(
            f->result, -EIO,
            "somebody has removed or replaced the temporary file meanwhile, perhaps "
            "another lime stage where there are no locks; nothing was renamed");
    case STAGE_TEMP_EXCHANGED:
        return stage_fail(f->result, -EIO,
                          "somebody has replaced the temporary file while it was renamed: what "
                          "has the target's name now is NOT what was verified");
    default:
        return stage_fail(f->result, err, "rename: %s", limefile_strerror(err));
    }
}

static int give_name(struct stage_file *f, struct stage_target *t)
{
    int err = stage_target_sync(t);
    if (err)
        return stage_fail(f->result, err, "sync: %s", limefile_strerror(err));
    err = verify_target(f, t);
    if (!err)
        err = source_is_the_same(f);
    if (err)
        return err;
    err = stage_target_adopt(t, &f->st, &f->result->digest);
    if (err)
        return stage_fail(f->result, err, "mode, owner, times: %s", limefile_strerror(err));
    err = stage_target_rename(t, &f->existing);
    return err ? blame_name(f, err) : 0;
}

/* ---- from the beginning to the end ---- */

static int open_source(struct stage_file *f)
{
    f->source =
        (struct stage_port){.fd = limefile_open(f->item->source, O_RDONLY), .direct = -1};
    if (f->source.fd < 0) {
        stage_judge(f->result, LIMEFILE_UNREADABLE);
        return stage_fail(f->result, f->source.fd, "open: %s", limefile_strerror(f->source.fd));
    }
    stage_port_open_direct(&f->source, O_RDONLY);
    return 0;
}

static int look_at_source(struct stage_file *f)
{
    stage_plan_release(&f->plan);
    if (fstat(f->source.fd, &f->st) != 0)
        return stage_fail(f->result, -errno, "%s", strerror(errno));
    if (!S_ISREG(f->st.st_mode))
        return stage_fail(f->result, -EINVAL, "not a regular file");
    f->result->size = (uint64_t)f->st.st_size;
    f->result->sized = true;
    return 0;
}

static int open_target(struct stage_file *f, struct stage_target *t)
{
    struct limefile_identity source = limefile_identity_of(&f->st);
    char why[STAGE_REASON_MAX];
    int err = stage_target_open(t, f->item->target, &source, why, sizeof why);
    if (err == -EBUSY)
        return stage_fail(f->result, err, "another lime stage is at work on it");
    return err ? stage_fail(f->result, err, "%s", why) : 0;
}

/* Through the job where there is one. Where it cannot, locally. */
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

static int make(struct stage_file *f, struct stage_target *t)
{
    struct stage_remote_file files[2];
    int err = 0;
    if (t->kept % stage_pump_block_bytes(f->pump)) /* of a run with smaller blocks */
        err = stage_target_restart(t);
    if (!err)
        err = stage_target_allocate(t, (uint64_t)f->st.st_size);
    if (err)
        return stage_fail(f->result, err, "write: %s", limefile_strerror(err));
    open_remote(f, t, files);
    err = copy(f, t);
    if (!err) {
        err = give_name(f, t);
        if (err)
            atomic_fetch_sub(f->moved, f->told);
    }
    close_remote(f, t);
    return err;
}

static int begin_anew(struct stage_file *f, struct stage_target *t, int why)
{
    int err = 0;
    if (why == -ESTALE) { /* another state of the source, or another file */
        stage_port_close(&f->source);
        err = open_source(f);
        if (!err)
            err = look_at_source(f);
        if (!err)
            err = stage_plan_build(&f->plan, f->source.fd, f->options, f->room, f->result);
        if (err)
            return err;
        stage_words_add(&f->result->words, "the source has changed while it was read");
    }
    err = stage_target_restart(t);
    if (err == -EBUSY)
        return stage_fail(f->result, err, "another lime stage is at work on it");
    return err ? stage_fail(f->result, err, "begin anew: %s", limefile_strerror(err)) : 0;
}

static int stage_it(struct stage_file *f)
{
    struct stage_target t;
    int err = open_target(f, &t);
    if (err)
        return err;
    for (int tries = 1;; tries++) {
        err = make(f, &t);
        if (err != -EAGAIN && err != -ESTALE)
            break;
        if (tries == TRIES) {
            err = stage_fail(f->result, err,
                             err == -ESTALE ? "the source changes all the time"
                                            : "it had to be begun anew too often");
            break;
        }
        err = begin_anew(f, &t, err);
        if (err)
            break;
    }
    stage_target_close(&t, err == -EINTR && t.sequence > 0);
    return err;
}

static enum stage_status run(struct stage_file *f)
{
    int err = open_source(f);
    if (!err)
        err = look_at_source(f);
    if (!err) {
        err = stage_file_is_there(f);
        stage_target_tidy(f->item->target);
        if (err == 1)
            return STAGE_THERE;
    }
    if (!err)
        err = stage_plan_build(&f->plan, f->source.fd, f->options, f->room, f->result);
    if (!err) {
        err = stage_it(f);
        stage_plan_release(&f->plan); /* for the target's */
        if (err == -EEXIST && stage_file_is_there(f) == 1)
            return STAGE_THERE; /* somebody else was faster */
    }
    f->result->has_digest = !err;
    return !err                                       ? STAGE_STAGED
           : err == -EINTR && atomic_load(f->stopped) ? STAGE_STOPPED
                                                      : STAGE_FAILED;
}

void stage_file_run(struct stage_file *f)
{
    double began = now();
    f->source = (struct stage_port){.fd = -1, .direct = -1};
    f->result->item = f->item;
    f->result->status = run(f);
    if (f->result->status == STAGE_STAGED || f->result->status == STAGE_THERE)
        stage_judge_copy(f->result);
    f->result->seconds = now() - began;
    stage_existing_release(&f->existing);
    stage_plan_release(&f->plan);
    stage_port_close(&f->source);
}
