/*
 * checkfile.c - one file of lime check: its structure, what its records mean, its sums
 *
 * The structure is followed first. What is found there is kept until it is known what the
 * records mean, so that all is told in the order of the file. Sums come last: they can take
 * minutes.
 */
#define _GNU_SOURCE
#include "check.h"
#include "container.h"
#include "jsonout.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What became of the sum of a field; for JSON, which names them all at the end. */
struct sum {
    struct limefile_checksum is;
    enum sum_state { SUM_OK, SUM_BAD, SUM_UNVERIFIED, SUM_UNREADABLE } state;
    bool known;
};

static const char *const state_words[] = {"ok", "bad", "unverified", "unreadable"};

/* One file while it is open. */
struct look {
    struct check *check;
    int fd;
    struct limefile_fd file;
    struct limefile_index *index;
    struct limefile_fields fields;
    struct sum *sums; /* one a field; NULL: none are told */

    /* Findings of structure, until those of meaning are known, which go between them. */
    struct limefile_finding *found;
    size_t found_count, found_capacity;
    bool lacks_memory;

    /* Findings of meaning, which wait for their turn: those of the fields, and (--strict) what
     * is demanded of them. */
    size_t told, demanded; /* findings; fields */
    struct limefile_finding demand[2];
    unsigned demands;
};

/* ---- findings ---- */

static void report(struct check *check, const struct limefile_finding *finding)
{
    bool first = check->deviations + check->faults == 0;
    if (limefile_is_fault(finding->code))
        check->faults++;
    else
        check->deviations++;
    if (check->options->json) {
        if (check->options->lines)
            fputs(first ? "" : ", ", stdout);
        else
            fputs(first ? "\n " : ",\n ", stdout);
        jsonout_finding(stdout, finding);
    } else if (!check->options->quiet) {
        finding_message(check->path, finding);
    }
}

static int compare_findings(const struct limefile_finding *x, const struct limefile_finding *y)
{
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->code > y->code) - (x->code < y->code);
}

/* The next thing that is demanded of a field, or NULL. */
static const struct limefile_finding *next_demand(struct look *look)
{
    struct limefile_finding *demand = look->demand;
    while (look->check->options->strict && look->demands == 0 &&
           look->demanded < look->fields.count)
        look->demands = limefile_fields_demand(&look->fields, look->demanded++, demand);
    if (look->demands == 2 && compare_findings(&demand[0], &demand[1]) > 0) {
        struct limefile_finding first = demand[1];
        demand[1] = demand[0];
        demand[0] = first;
    }
    return look->demands ? demand : NULL;
}

/* The first one that waits, if it stands before that offset; it does not wait any more. */
static bool take_waiting(struct look *look, uint64_t before, struct limefile_finding *out)
{
    const struct limefile_finding *demand = next_demand(look);
    bool found = limefile_fields_finding(&look->fields, look->told, out);
    if (demand && !(found && compare_findings(out, demand) <= 0)) {
        *out = *demand;
        if (out->offset >= before)
            return false;
        look->demand[0] = look->demand[1];
        look->demands--;
        return true;
    }
    if (!found || out->offset >= before)
        return false;
    look->told++;
    return true;
}

static void report_waiting(struct look *look, uint64_t before)
{
    struct limefile_finding finding;
    while (take_waiting(look, before, &finding))
        report(look->check, &finding);
}

/* ---- structure and meaning ---- */

static void keep(void *context, const struct limefile_finding *finding)
{
    struct look *look = context;
    if (look->found_count == look->found_capacity) {
        size_t capacity = look->found_capacity ? 2 * look->found_capacity : 16;
        struct limefile_finding *more = realloc(look->found, capacity * sizeof *more);
        look->lacks_memory = look->lacks_memory || !more;
        if (!more)
            return;
        look->found = more;
        look->found_capacity = capacity;
    }
    look->found[look->found_count++] = *finding;
}

static void show_progress(void *context, uint64_t done, uint64_t size)
{
    const struct check *check = ((struct look *)context)->check;
    (void)size;
    if (!check->options->data)
        progress_to(check->progress, check->base + done);
}

static int understand(struct look *look)
{
    struct limefile_source *source = &look->file.source;
    int err = limefile_index_scan(source, keep, show_progress, look, &look->index);
    if (!err && look->lacks_memory)
        err = -ENOMEM;
    return err ? err : limefile_fields_build(source, look->index, &look->fields);
}

/* Of an empty file only its name tells what it should have become. */
static bool is_meant(const char *path)
{
    size_t n = strlen(path), ending = strlen(".lime");
    return n > ending && strcmp(path + n - ending, ".lime") == 0;
}

/* In the order of the file. */
static void report_all(struct look *look)
{
    struct check *check = look->check;
    const struct limefile_finding *fault = limefile_index_fault(look->index);
    check->size = limefile_index_size(look->index);
    check->records = limefile_index_count(look->index);
    check->messages = limefile_index_messages(look->index);
    check->fault = fault ? fault->code : 0;
    for (size_t i = 0; i < look->found_count; i++) {
        report_waiting(look, look->found[i].offset);
        report(check, &look->found[i]);
    }
    report_waiting(look, UINT64_MAX);
    if (check->size == 0 && is_meant(check->path))
        report(check, &(struct limefile_finding){.code = LIMEFILE_D_EMPTY});
}

/* ---- sums ---- */

static bool count_bytes(void *context, uint64_t more)
{
    struct check *check = context;
    check->summed += more;
    progress_add(check->progress, more);
    return true;
}

static uint64_t word_of(const struct limefile_checksum *sum)
{
    return (uint64_t)sum->suma << 32 | sum->sumb;
}

static void compare(struct look *look, const struct limefile_field *f, struct sum *sum)
{
    struct check *check = look->check;
    struct limefile_field as;
    struct limefile_finding finding = {
        .offset = f->record.data_offset,
        .ordinal = f->record.ordinal,
    };
    int right = limefile_field_verify(look->fd, f, check->options->threads, count_bytes, check,
                                      &as, &sum->is);
    sum->known = right >= 0;
    sum->state = right < 0 ? SUM_UNREADABLE : right ? SUM_OK : SUM_BAD;
    if (right == 1) {
        check->verified++;
        return;
    }
    finding.code = right < 0 ? right : LIMEFILE_D_CHECKSUM;
    if (right == 0) {
        finding.have = word_of(&sum->is);
        finding.want = word_of(&f->checksum);
    }
    report(check, &finding);
    check->wrong++;
}

/* Why there is no sum; NULL if there is one. */
static const char *reason_of(const struct limefile_field *f)
{
    const char *bad = limefile_field_why_bad(f);
    return bad ? bad : limefile_field_why_unverified(f);
}

/* Without a sum: its length has been reported. */
static void judge(struct look *look, const struct limefile_field *f, struct sum *sum)
{
    struct check *check = look->check;
    const char *reason = reason_of(f);
    bool bad = limefile_field_why_bad(f);
    if (!reason) {
        compare(look, f, sum);
        return;
    }
    sum->state = bad ? SUM_BAD : SUM_UNVERIFIED;
    if (bad)
        check->wrong++;
    else
        check->unverified++;
    if (!check->options->quiet && !check->options->json)
        answer(check->path, "record %" PRIu64 ": %s: %s", f->record.ordinal,
               state_words[sum->state], reason);
}

static void verify(struct look *look)
{
    for (size_t i = 0; i < look->fields.count; i++) {
        struct limefile_field f;
        struct sum sum = {.known = false};
        limefile_fields_get(&look->fields, i, &f);
        judge(look, &f, &sum);
        if (look->sums)
            look->sums[i] = sum;
    }
}

/* ---- words ---- */

static bool is_container(const struct check *check)
{
    return check->records > 0 ||
           (check->fault != LIMEFILE_E_MAGIC && check->fault != LIMEFILE_E_VERSION);
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* "; checksums: 2 right, 1 wrong"; "" where none were wanted. */
static void sums_text(const struct check *c, char *buf, size_t cap)
{
    static const char *const names[] = {"right", "wrong", "unverified"};
    const uint64_t counts[] = {c->verified, c->wrong, c->unverified};
    int used = snprintf(buf, cap, "%s", c->options->data ? "; checksums: " : "");
    bool any = false;
    for (size_t i = 0; c->options->data && i < 3; i++)
        if (counts[i]) {
            used += snprintf(buf + used, cap - (size_t)used, "%s%" PRIu64 " %s",
                             any ? ", " : "", counts[i], names[i]);
            any = true;
        }
    if (c->options->data && !any)
        snprintf(buf + used, cap - (size_t)used, "no data to verify");
}

static void print_summary(const struct check *c)
{
    uint64_t bad = c->deviations + c->faults;
    char found[96] = "good", sums[128];
    const char *end = "";
    if (!is_container(c)) {
        answer(c->path, "not a LIME container");
        return;
    }
    if (c->fault)
        end = bad == 1 ? ", a fault that ends the container"
                       : ", the last one a fault that ends the container";
    if (bad)
        snprintf(found, sizeof found, "%" PRIu64 " deviation%s%s", bad, plural(bad), end);
    sums_text(c, sums, sizeof sums);
    answer(c->path, "%s: %" PRIu64 " record%s in %" PRIu32 " message%s, %" PRIu64 " bytes%s",
           found, c->records, plural(c->records), c->messages, plural(c->messages), c->size,
           sums);
}

static void begin_json(const char *path)
{
    printf("{\"file\": ");
    jsonout_text(stdout, path, strlen(path));
    printf(", \"findings\": [");
}

static void sums_json(const struct look *look)
{
    printf(", \"checksums\": [");
    for (size_t i = 0; look->sums && i < look->fields.count; i++) {
        const struct sum *s = &look->sums[i];
        struct limefile_field f;
        limefile_fields_get(&look->fields, i, &f);
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

static void end_json(const struct look *look, const char *verdict)
{
    const struct check *c = look->check;
    printf("], \"deviations\": %" PRIu64 ", \"faults\": %" PRIu64 ", \"records\": %" PRIu64
           ", \"messages\": %" PRIu32 ", \"size\": %" PRIu64,
           c->deviations, c->faults, c->records, c->messages, c->size);
    if (c->options->data)
        sums_json(look);
    printf(", \"verdict\": \"%s\"}", verdict);
}

static const char *verdict(const struct check *c)
{
    if (!is_container(c))
        return "not-a-container";
    return c->faults ? "fault" : c->deviations ? "deviations" : "good";
}

/* ---- all of it ---- */

static int look_at(struct look *look)
{
    struct check *check = look->check;
    int err = understand(look);
    if (!err && check->options->data && check->options->json) {
        look->sums = calloc(look->fields.count + 1, sizeof *look->sums);
        err = look->sums ? 0 : -ENOMEM;
    }
    if (!err)
        report_all(look);
    if (!err && check->options->data)
        verify(look);
    if (err)
        message_code(check->path, "check", err);
    return err;
}

/* What does not begin so is no container. An empty file is one, but is not looked for. */
static bool is_wanted(struct check *check, int fd)
{
    unsigned char start[4];
    ssize_t got = limefile_fd_read(fd, start, sizeof start, 0);
    check->empty = got == 0;
    return got < 0 || (check->empty ? is_meant(check->path)
                                    : limefile_header_is_magic(start, (size_t)got));
}

int check_file(struct check *check)
{
    const struct check_options *o = check->options;
    struct look look = {.check = check};
    int err = look.fd = open_with_message(check->path, O_RDONLY);
    if (err == -EISDIR)
        message(check->path, "-r checks the containers in it");
    if (err >= 0 && check->optional && !is_wanted(check, look.fd)) {
        check->passed_over = true;
        close(look.fd);
        return TOOL_GOOD;
    }
    if (o->json)
        begin_json(check->path);
    if (err >= 0) {
        limefile_fd_init(&look.file, look.fd);
        err = look_at(&look);
        close(look.fd);
    }
    if (o->json)
        end_json(&look, err ? "unreadable" : verdict(check));
    else if (!err && !o->quiet)
        print_summary(check);
    free(look.sums);
    limefile_fields_release(&look.fields);
    free(look.found);
    if (look.index)
        limefile_index_free(look.index);
    if (err || !is_container(check))
        return TOOL_UNUSABLE;
    return check->deviations + check->faults ? TOOL_BAD : TOOL_GOOD;
}
