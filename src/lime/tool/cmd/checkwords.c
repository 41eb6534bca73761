/* checkwords.c - what lime check has found out about a file, in words */
#define _GNU_SOURCE
#include "check.h"
#include "jsonout.h"
#include "limefile.h"
#include "tool.h"

#include <inttypes.h>
#include <string.h>

bool check_is_container(const struct check *check)
{
    return check->records > 0 ||
           (check->fault != LIMEFILE_E_MAGIC && check->fault != LIMEFILE_E_VERSION);
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* "; checksums: 2 right, 1 wrong"; "" where none were wanted. */
static void counts_text(bool wanted, const char *what, const char *const names[3],
                        const uint64_t counts[3], const char *none, char *buf, size_t cap)
{
    int used = snprintf(buf, cap, "%s", wanted ? what : "");
    bool any = false;
    for (size_t i = 0; wanted && i < 3; i++)
        if (counts[i]) {
            used += snprintf(buf + used, cap - (size_t)used, "%s%" PRIu64 " %s",
                             any ? ", " : "", counts[i], names[i]);
            any = true;
        }
    if (wanted && !any)
        snprintf(buf + used, cap - (size_t)used, "%s", none);
}

static void sums_text(const struct check *c, char *buf, size_t cap)
{
    static const char *const names[] = {"right", "wrong", "unverified"};
    const uint64_t counts[] = {c->verified, c->wrong, c->unverified};
    counts_text(c->options->data, "; checksums: ", names, counts, "no data to verify", buf,
                cap);
}

static void physics_text(const struct check *c, char *buf, size_t cap)
{
    static const char *const names[] = {"good", "bad", "unverified"};
    const uint64_t counts[] = {c->physical, c->unphysical, c->unexamined};
    counts_text(c->options->physics, "; configurations: ", names, counts, "none", buf, cap);
}

void check_summary(const struct check *c)
{
    uint64_t bad = c->deviations + c->faults;
    char found[96], sums[128], physics[128];
    const char *end = "";
    if (!check_is_container(c)) {
        answer(c->path, "not a LIME container");
        return;
    }
    if (c->fault)
        end = bad == 1 ? ", a fault that ends the container"
                       : ", the last one a fault that ends the container";
    snprintf(found, sizeof found, "%s", check_verdict(c));
    if (bad)
        snprintf(found, sizeof found, "%" PRIu64 " deviation%s%s", bad, plural(bad), end);
    sums_text(c, sums, sizeof sums);
    physics_text(c, physics, sizeof physics);
    if (c->format) {
        answer(c->path, "%s: %s file, %" PRIu64 " bytes%s%s", found, c->format, c->size, sums,
               physics);
        return;
    }
    answer(c->path, "%s: %" PRIu64 " record%s in %" PRIu32 " message%s, %" PRIu64 " bytes%s%s",
           found, c->records, plural(c->records), c->messages, plural(c->messages), c->size,
           sums, physics);
}

const char *check_verdict(const struct check *c)
{
    if (!check_is_container(c))
        return "not-a-container";
    return c->faults       ? "fault"
           : c->deviations ? "deviations"
           : c->unexamined ? "unverified"
                           : "good";
}

void check_end_json(const struct check *c, const char *verdict)
{
    printf(", \"verdict\": \"%s\"", verdict);
    if (c->error)
        jsonout_word("error", c->error);
    if (c->qcdml) {
        if (strcmp(verdict, "unreadable") != 0)
            qcdml_check(c->qcdml);
        fputs(", \"qcdml\": ", stdout);
        qcdml_check_json(c->qcdml);
    }
    fputs(c->options->lines ? "}\n" : "}", stdout);
}
