/* checksums.c - lime check --data: the data of each field against their SciDAC checksum */
#define _GNU_SOURCE
#include "fieldcheck.h"
#include "jsonout.h"
#include "mounted.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What became of the sum of a field. */
struct sum_result {
    struct limefile_checksum is;
    enum sum_state { SUM_OK, SUM_BAD, SUM_UNVERIFIED, SUM_UNREADABLE } state;
    bool known;
    char *reason; /* from a mount; or NULL */
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

/* ---- what a mount has found out ---- */

/* The deviation that the mount's reason is about: it begins with the quantity. */
static int code_of(const char *reason)
{
    return strncmp(reason, "plaquette", 9) == 0     ? LIMEFILE_D_PLAQUETTE
           : strncmp(reason, "link trace", 10) == 0 ? LIMEFILE_D_LINK_TRACE
                                                    : LIMEFILE_D_CHECKSUM;
}

static bool is_verdict(const char *word, enum limefile_verdict verdict)
{
    return strcmp(word, limefile_verdict_word(verdict)) == 0;
}

static void report_shown(const struct field_check *check, const struct limefile_field *f,
                         const char *reason)
{
    const struct limefile_finding finding = {
        .code = code_of(reason),
        .offset = f->record.data_offset,
        .ordinal = f->record.ordinal,
        .why = reason,
    };
    check->report(check->context, &finding);
}

/* The mount verifies what this program can't: a file in another format, whose sum it shows as
 * text, and data that it does not give out as they are bad. False if it has no verdict either.
 */
static bool ask_mount(struct sums_check *sums, const struct field_check *check,
                      const struct limefile_field *f, struct sum_result *sum)
{
    char word[MOUNTED_VALUE_MAX], reason[MOUNTED_VALUE_MAX];
    const struct mounted *m = check->c->mounted;
    if (!m || mounted_attribute(m, f->record.ordinal, "verify", word) < 0)
        return false;
    mounted_attribute(m, f->record.ordinal, "reason", reason);
    if (is_verdict(word, LIMEFILE_GOOD)) {
        sum->state = SUM_OK;
        sums->verified++;
        return true;
    }
    if (*reason)
        sum->reason = strdup(reason);
    if (!is_verdict(word, LIMEFILE_BAD))
        return false;
    sum->state = SUM_BAD;
    sums->wrong++;
    if (code_of(reason) == LIMEFILE_D_CHECKSUM || !check->physical) /* else --physics does it */
        report_shown(check, f, reason);
    return true;
}

bool sums_check_withheld(const struct field_check *check, const struct limefile_field *f)
{
    char word[MOUNTED_VALUE_MAX], reason[MOUNTED_VALUE_MAX];
    const struct mounted *m = check->c->mounted;
    if (!m || mounted_attribute(m, f->record.ordinal, "checksum", word) < 0 ||
        !is_verdict(word, LIMEFILE_BAD))
        return false;
    mounted_attribute(m, f->record.ordinal, "reason", reason);
    if (code_of(reason) != LIMEFILE_D_CHECKSUM || (!check->summed && f->by_checksum))
        report_shown(check, f, reason);
    return true;
}

void sums_check_headers(struct sums_check *sums, const struct field_check *check)
{
    for (size_t i = 0; check->c->mounted && i < check->fields->count; i++) {
        struct limefile_field f;
        struct sum_result sum = {.state = SUM_UNVERIFIED};
        limefile_fields_get(check->fields, i, &f);
        if (!f.by_checksum)
            ask_mount(sums, check, &f, &sum);
        free(sum.reason);
    }
}

/* ---- one field ---- */

static void compare(struct sums_check *sums, const struct field_check *check,
                    const struct limefile_field *f, struct sum_result *sum)
{
    struct limefile_finding finding = {
        .offset = f->record.data_offset,
        .ordinal = f->record.ordinal,
    };
    int right = verify(check, f, sum);
    if (right == -EIO && ask_mount(sums, check, f, sum))
        return;
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
static const char *reason_of(const struct limefile_field *f, const struct sum_result *sum)
{
    const char *bad = limefile_field_why_bad(f);
    return sum->reason            ? sum->reason
           : sum->state == SUM_OK ? NULL
           : bad                  ? bad
                                  : limefile_field_why_unverified(f);
}

/* Without a sum: its length has been reported. */
static void judge(struct sums_check *sums, const struct field_check *check,
                  const struct limefile_field *f, struct sum_result *sum)
{
    bool bad = limefile_field_why_bad(f), unverified = limefile_field_why_unverified(f);
    if (!bad && !unverified) {
        compare(sums, check, f, sum);
        return;
    }
    if (!f->by_checksum && ask_mount(sums, check, f, sum))
        return;
    sum->state = bad ? SUM_BAD : SUM_UNVERIFIED;
    if (bad)
        sums->wrong++;
    else
        sums->unverified++;
    if (!check->quiet)
        answer(check->path, "record %" PRIu64 ": %s: %s", f->record.ordinal,
               state_words[sum->state], reason_of(f, sum));
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
        struct sum_result sum = {.state = SUM_UNVERIFIED};
        limefile_fields_get(check->fields, i, &f);
        judge(sums, check, &f, &sum);
        if (sums->result)
            sums->result[sums->results++] = sum;
        else
            free(sum.reason);
    }
    return 0;
}

void sums_check_json(const struct sums_check *sums, const struct field_check *check)
{
    putchar('[');
    fputs(sums->whole, stdout);
    for (size_t i = 0; i < sums->results; i++) {
        const struct sum_result *s = &sums->result[i];
        struct limefile_field f;
        limefile_fields_get(check->fields, i, &f);
        const char *reason = reason_of(&f, s);
        printf("%s{\"ordinal\": %" PRIu64 ", \"state\": \"%s\"", i ? ", " : "",
               f.record.ordinal, state_words[s->state]);
        if (reason)
            jsonout_word("reason", reason);
        if (s->known)
            printf(", \"suma\": \"%08x\", \"sumb\": \"%08x\"", s->is.suma, s->is.sumb);
        putchar('}');
    }
    putchar(']');
}

void sums_check_release(struct sums_check *sums)
{
    while (sums->results)
        free(sums->result[--sums->results].reason);
    free(sums->result);
    sums->result = NULL;
}
