/* stageprint.c - results as a table or as JSON lines */
#include "stageprint.h"
#include "jsonout.h"
#include "tool.h"

#include <inttypes.h>
#include <string.h>

const char *stageprint_status(enum stage_status status)
{
    static const char *const words[] = {"staged", "there", "failed", "stopped"};
    return words[status];
}

static const char *hex(const unsigned char *bytes, char out[2 * STAGE_MD5_BYTES + 1])
{
    for (int i = 0; i < STAGE_MD5_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return out;
}

enum { DATA_SHOWN = 16 };

/* The cksums of ildg-binary-data, with commas between them; "-" where there are none. */
static const char *data_words(const struct stage_result *r, char out[DATA_SHOWN * 11 + 8])
{
    const struct stage_digest *d = &r->digest;
    unsigned count = r->has_digest && d->has_data ? d->data_count : 0;
    size_t n = (size_t)sprintf(out, "%s", count ? "" : "-");
    for (unsigned i = 0; i < count && i < DATA_SHOWN; i++)
        n += (size_t)sprintf(out + n, "%s%" PRIu32, i ? "," : "", d->data[i].cksum);
    if (count > DATA_SHOWN)
        sprintf(out + n, ",...");
    return out;
}

/* Size and sums as words; "-" where there is none. */
struct words {
    char size[24], cksum[16], adler32[16], md5[2 * STAGE_MD5_BYTES + 1];
};

static struct words words_of(const struct stage_result *r)
{
    struct words w = {"-", "-", "-", "-"};
    unsigned kinds = r->has_digest ? r->digest.kinds : 0;
    if (r->sized)
        snprintf(w.size, sizeof w.size, "%" PRIu64, r->size);
    if (kinds & STAGE_CKSUM)
        snprintf(w.cksum, sizeof w.cksum, "%" PRIu32, r->digest.cksum);
    if (kinds & STAGE_ADLER32)
        snprintf(w.adler32, sizeof w.adler32, "%08" PRIx32, r->digest.adler32);
    if (kinds & STAGE_MD5)
        hex(r->digest.md5, w.md5);
    return w;
}

bool stageprint_is_in_place(const struct stage_result *r)
{
    return r->status == STAGE_STAGED || r->status == STAGE_THERE;
}

int stageprint_exit_status(const struct stage_result *r)
{
    if (r->judged)
        return verdict_status(r->verdict);
    return stageprint_is_in_place(r) ? TOOL_GOOD : TOOL_BAD;
}

static const char *verdict_word(const struct stage_result *r)
{
    return r->judged ? limefile_verdict_word(r->verdict) : "-";
}

void stageprint_head(void)
{
    answer(NULL, "%-7s %14s %10s %-8s %-32s %-10s %s  %s  %s", "STATUS", "SIZE", "CKSUM",
           "ADLER32", "MD5", "VERDICT", "PATH", "LFN", "DATA");
}

void stageprint_row(const struct stage_result *r)
{
    struct words w = words_of(r);
    char data[DATA_SHOWN * 11 + 8];
    answer(NULL, "%-7s %14s %10s %-8s %-32s %-10s %s  %s  %s", stageprint_status(r->status),
           w.size, w.cksum, w.adler32, w.md5, verdict_word(r), r->item->target,
           r->lfn[0] ? r->lfn : "-", data_words(r, data));
}

static void text(const char *name, const char *value)
{
    printf(", \"%s\": ", name);
    if (value && value[0])
        jsonout_text(stdout, value, strlen(value));
    else
        fputs("null", stdout);
}

static void number(const char *name, const char *word, const char *quote)
{
    if (strcmp(word, "-") == 0)
        printf(", \"%s\": null", name);
    else
        printf(", \"%s\": %s%s%s", name, quote, word, quote);
}

static void sentences(const char *name, const struct stage_words *words)
{
    printf(", \"%s\": [", name);
    for (unsigned i = 0; i < words->count; i++) {
        fputs(i ? ", " : "", stdout);
        jsonout_text(stdout, words->line[i], strlen(words->line[i]));
    }
    fputs("]", stdout);
}

static void data_json(const struct stage_result *r)
{
    const struct stage_digest *d = &r->digest;
    fputs(", \"data\": ", stdout);
    if (!r->has_digest || !d->has_data) {
        fputs("null, \"data_more\": null", stdout);
        return;
    }
    for (unsigned i = 0; i < d->data_count; i++)
        printf("%s{\"ordinal\": %" PRIu32 ", \"cksum\": %" PRIu32 "}", i ? ", " : "[",
               d->data[i].ordinal, d->data[i].cksum);
    printf("%s, \"data_more\": %" PRIu64, d->data_count ? "]" : "[]", d->data_more);
}

void stageprint_json(const struct stage_result *r)
{
    struct words w = words_of(r);
    printf("{\"status\": \"%s\"", stageprint_status(r->status));
    number("verdict", verdict_word(r), "\"");
    text("lfn", r->lfn);
    number("size", w.size, "");
    number("cksum", w.cksum, "");
    number("adler32", w.adler32, "\"");
    number("md5", w.md5, "\"");
    data_json(r);
    text("source", r->item->source);
    text("target", r->item->target);
    printf(", \"container\": %s, \"records\": %" PRIu64, r->container ? "true" : "false",
           r->records);
    if (r->read && stageprint_is_in_place(r))
        printf(", \"checksums_verified\": %" PRIu64, r->verified);
    else
        fputs(", \"checksums_verified\": null", stdout);
    printf(", \"checksums_unverified\": %" PRIu64 ", \"resumed\": %" PRIu64
           ", \"seconds\": %.3f",
           stage_unverified_count(r), r->resumed, r->seconds);
    sentences("unverified", &r->unverified);
    sentences("deviations", &r->words);
    text("reason", r->reason);
    fputs("}\n", stdout);
}
