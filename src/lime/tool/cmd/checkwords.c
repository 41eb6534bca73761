/* checkwords.c - what lime check prints of a file */
#define _GNU_SOURCE
#include "check.h"
#include "container.h"
#include "jsonout.h"
#include "tool.h"

#include <inttypes.h>
#include <string.h>

enum { COUNTS_MAX = 128 };

/* ---- findings ---- */

static void begin_finding(const struct check *check)
{
    bool first = check->warnings + check->deviations + check->faults == 0;
    if (check->options->json && check->options->lines)
        fputs(first ? "" : ", ", stdout);
    else if (check->options->json)
        fputs(first ? "\n " : ",\n ", stdout);
}

void check_report(struct check *check, const struct limefile_finding *finding)
{
    bool warning = limefile_is_harmless(finding->code) && !check->options->strict;
    begin_finding(check);
    if (warning)
        check->warnings++;
    else if (limefile_is_fault(finding->code))
        check->faults++;
    else
        check->deviations++;
    if (finding_is_unreadable(finding))
        check->read_failed = true;
    if (check->options->json)
        jsonout_finding(stdout, finding);
    else if (!check->options->quiet)
        (warning ? warning_message : finding_message)(check->path, finding);
}

/* ---- the line at the end ---- */

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* "; checksums: 2 right, 1 wrong" */
static void counts_text(const char *what, const char *const names[3], const uint64_t counts[3],
                        const char *none, char buf[COUNTS_MAX])
{
    int used = snprintf(buf, COUNTS_MAX, "; %s: ", what);
    bool any = false;
    for (size_t i = 0; i < 3; i++)
        if (counts[i]) {
            used += snprintf(buf + used, COUNTS_MAX - (size_t)used, "%s%" PRIu64 " %s",
                             any ? ", " : "", counts[i], names[i]);
            any = true;
        }
    if (!any)
        snprintf(buf + used, COUNTS_MAX - (size_t)used, "%s", none);
}

static void sums_text(const struct check *c, char buf[COUNTS_MAX])
{
    static const char *const names[] = {"right", "wrong", "unverified"};
    const uint64_t counts[] = {c->verified, c->wrong, c->unverified};
    if (c->options->data)
        counts_text("checksums", names, counts, "no data to verify", buf);
    else if (c->has_data)
        snprintf(buf, COUNTS_MAX, "; %s",
                 c->options->physics ? "checksums not compared" : "data not read");
}

static void physics_text(const struct check *c, char buf[COUNTS_MAX])
{
    static const char *const names[] = {"good", "bad", "unverified"};
    const uint64_t counts[] = {c->physical, c->unphysical, c->unexamined};
    if (c->options->physics)
        counts_text("configurations", names, counts, "none", buf);
}

static void findings_text(const struct check *c, char buf[COUNTS_MAX])
{
    uint64_t bad = c->deviations + c->faults;
    const char *end = !c->fault  ? ""
                      : bad == 1 ? ", a fault that ends the container"
                                 : ", the last one a fault that ends the container";
    if (bad)
        snprintf(buf, COUNTS_MAX, ": %" PRIu64 " deviation%s%s", bad, plural(bad), end);
}

void check_summary(const struct check *c)
{
    char found[COUNTS_MAX] = "", sums[COUNTS_MAX] = "", physics[COUNTS_MAX] = "",
         warnings[48] = "";
    const char *verdict = limefile_verdict_word(c->verdict);
    findings_text(c, found);
    sums_text(c, sums);
    physics_text(c, physics);
    if (c->warnings)
        snprintf(warnings, sizeof warnings, "; %" PRIu64 " warning%s", c->warnings,
                 plural(c->warnings));
    if (c->format)
        answer(c->path, "%s%s: %s file, %" PRIu64 " bytes%s%s%s", verdict, found, c->format,
               c->size, sums, physics, warnings);
    else
        answer(c->path,
               "%s%s: %" PRIu64 " record%s in %" PRIu32 " message%s, %" PRIu64 " bytes%s%s%s",
               verdict, found, c->records, plural(c->records), c->messages, plural(c->messages),
               c->size, sums, physics, warnings);
}

/* ---- files that are not examined ---- */

/* With the members that a file has which was examined. */
static void unexamined_json(const struct check *c)
{
    check_begin_json(c);
    fputs("], \"deviations\": 0, \"faults\": 0, \"warnings\": 0, \"records\": 0, "
          "\"messages\": 0, \"size\": 0",
          stdout);
    if (c->options->data)
        fputs(", \"checksums\": [], \"checkpoints\": []", stdout);
    if (c->options->physics)
        fputs(", \"physics\": []", stdout);
    check_end_json(c);
}

void check_unexamined(struct check *c)
{
    bool bad = c->skipped && c->options->all && c->optional;
    bool listed = bad || c->error || c->options->list_skipped;
    c->verdict = bad ? LIMEFILE_BAD : c->skipped ? LIMEFILE_SKIPPED : LIMEFILE_UNREADABLE;
    if (c->options->json && listed)
        unexamined_json(c);
    else if (bad)
        message(c->path, "%s", c->skipped);
    else if (c->skipped && listed && !c->options->quiet)
        answer(c->path, "skipped: %s", c->skipped);
}

/* ---- JSON ---- */

void check_begin_json(const struct check *c)
{
    printf("{\"file\": ");
    jsonout_text(stdout, c->path, strlen(c->path));
    printf(", \"findings\": [");
}

void check_end_json(const struct check *c)
{
    printf(", \"verdict\": \"%s\"", limefile_verdict_word(c->verdict));
    if (c->skipped)
        jsonout_word("reason", c->skipped);
    if (c->error)
        jsonout_word("error", c->error);
    if (c->qcdml) {
        if (c->verdict != LIMEFILE_UNREADABLE)
            qcdml_check(c->qcdml);
        fputs(", \"qcdml\": ", stdout);
        qcdml_check_json(c->qcdml);
    }
    fputs(c->options->lines ? "}\n" : "}", stdout);
}
