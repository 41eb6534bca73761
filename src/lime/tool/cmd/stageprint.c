/* stageprint.c - results as a table or as JSON lines */
#include "stageprint.h"
#include "jsonout.h"
#include "tool.h"

#include <inttypes.h>
#include <math.h>
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

static json_t *word_json(const char *word)
{
    return strcmp(word, "-") == 0 ? json_null() : json_string(word);
}

static json_t *integer_json(bool is_known, uint64_t value)
{
    return is_known ? json_integer((json_int_t)value) : json_null();
}

static json_t *lines_json(const struct stage_words *words)
{
    json_t *array = json_array();
    for (unsigned i = 0; i < words->count; i++)
        json_array_append_new(array, jsonout_string(words->line[i], strlen(words->line[i])));
    return array;
}

static json_t *data_json(const struct stage_digest *d, bool is_known)
{
    json_t *array = is_known ? json_array() : json_null();
    for (unsigned i = 0; is_known && i < d->data_count; i++)
        json_array_append_new(array,
                              json_pack("{s:I, s:I}", "ordinal", (json_int_t)d->data[i].ordinal,
                                        "cksum", (json_int_t)d->data[i].cksum));
    return array;
}

void stageprint_json(const struct stage_result *r)
{
    struct words w = words_of(r);
    const struct stage_digest *d = &r->digest;
    bool has_data = r->has_digest && d->has_data;
    json_t *line = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:I, s:o, s:I, s:I, s:f,"
        " s:o, s:o, s:o}",
        "status", stageprint_status(r->status), "verdict", word_json(verdict_word(r)), "lfn",
        jsonout_string_or_null(r->lfn), "size", integer_json(r->sized, r->size), "cksum",
        integer_json(r->has_digest && d->kinds & STAGE_CKSUM, d->cksum), "adler32",
        word_json(w.adler32), "md5", word_json(w.md5), "data", data_json(d, has_data),
        "data_more", integer_json(has_data, d->data_more), "source",
        jsonout_string_or_null(r->item->source), "target",
        jsonout_string_or_null(r->item->target), "container", r->container, "records",
        (json_int_t)r->records, "checksums_verified",
        integer_json(r->read && stageprint_is_in_place(r), r->verified), "checksums_unverified",
        (json_int_t)stage_unverified_count(r), "resumed", (json_int_t)r->resumed, "seconds",
        round(r->seconds * 1000) / 1000, "unverified", lines_json(&r->unverified), "deviations",
        lines_json(&r->words), "reason", jsonout_string_or_null(r->reason));
    jsonout_print(stdout, line);
    putchar('\n');
}
