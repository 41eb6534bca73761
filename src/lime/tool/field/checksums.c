/* checksums.c - lime check --data: the data of each field against their SciDAC checksum */
#define _GNU_SOURCE
#include "fieldcheck.h"
#include "mounted.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* What became of the sum of a field. */
struct sum_result {
    struct limefile_checksum is;
    enum sum_state { SUM_OK, SUM_BAD, SUM_UNVERIFIED, SUM_UNREADABLE } state;
    bool known;
};

static const char *const state_words[] = {"good", "bad", "unverified", "unreadable"};

int field_check_open(const struct field_check *check, const struct limefile_field *f,
                     struct limefile_field *here)
{
    *here = *f;
    if (check->c->mounted) {
        here->record.data_offset = 0;
        return mounted_data(check->c->mounted, f->record.ordinal);
    }
    int fd = fcntl(check->c->fd, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

static uint64_t word_of(const struct limefile_checksum *sum)
{
    return (uint64_t)sum->suma << 32 | sum->sumb;
}

/* 1, 0, or an error. */
static int verify(const struct field_check *check, const struct limefile_field *f,
                  struct sum_result *sum)
{
    struct limefile_field as, here;
    int fd = field_check_open(check, f, &here);
    if (fd < 0)
        return fd;
    int right = limefile_field_verify(fd, &here, check->threads, check->progress,
                                      check->context, &as, &sum->is);
    close(fd);
    return right;
}

static void compare(struct sums_check *sums, const struct field_check *check,
                    const struct limefile_field *f, struct sum_result *sum)
{
    struct limefile_finding finding = {
        .offset = f->record.data_offset,
        .ordinal = f->record.ordinal,
    };
    int right = verify(check, f, sum);
    sum->known = right >= 0;
    sum->state = right < 0 ? SUM_UNREADABLE : right ? SUM_OK : SUM_BAD;
    if (right == 1) {
        sums->verified++;
        return;
    }
    finding.code = right < 0 ? right : LIMEFILE_D_CHECKSUM;
    if (right == 0) {
        finding.have = word_of(&sum->is);
        finding.want = word_of(&f->checksum);
    }
    check->report(check->context, &finding);
    sums->wrong++;
}

/* Why there is no sum; NULL if there is one. */
static const char *reason_of(const struct limefile_field *f)
{
    const char *bad = limefile_field_why_bad(f);
    return bad ? bad : limefile_field_why_unverified(f);
}

/* Without a sum: its length has been reported. */
static void judge(struct sums_check *sums, const struct field_check *check,
                  const struct limefile_field *f, struct sum_result *sum)
{
    const char *reason = reason_of(f);
    bool bad = limefile_field_why_bad(f);
    if (!reason) {
        compare(sums, check, f, sum);
        return;
    }
    sum->state = bad ? SUM_BAD : SUM_UNVERIFIED;
    if (bad)
        sums->wrong++;
    else
        sums->unverified++;
    if (!check->quiet)
        answer(check->path, "record %" PRIu64 ": %s: %s", f->record.ordinal,
               state_words[sum->state], reason);
}

int sums_check(struct sums_check *sums, const struct field_check *check)
{
    if (check->keep) {
        sums->result = calloc(check->fields->count + 1, sizeof *sums->result);
        if (!sums->result)
            return -ENOMEM;
    }
    for (size_t i = 0; i < check->fields->count; i++) {
        struct limefile_field f;
        struct sum_result sum = {.known = false};
        limefile_fields_get(check->fields, i, &f);
        judge(sums, check, &f, &sum);
        if (sums->result)
            sums->result[i] = sum;
    }
    return 0;
}

void sums_check_json(const struct sums_check *sums, const struct field_check *check)
{
    putchar('[');
    fputs(sums->whole, stdout);
    for (size_t i = 0; sums->result && i < check->fields->count; i++) {
        const struct sum_result *s = &sums->result[i];
        struct limefile_field f;
        limefile_fields_get(check->fields, i, &f);
        const char *reason = reason_of(&f);
        printf("%s{\"ordinal\": %" PRIu64 ", \"state\": \"%s\"", i ? ", " : "",
               f.record.ordinal, state_words[s->state]);
        if (reason)
            printf(", \"reason\": \"%s\"", reason);
        if (s->known)
            printf(", \"suma\": \"%08x\", \"sumb\": \"%08x\"", s->is.suma, s->is.sumb);
        putchar('}');
    }
    putchar(']');
}

void sums_check_release(struct sums_check *sums)
{
    free(sums->result);
    sums->result = NULL;
}
