/* select.c - ordinal, message.record, type or mount name -> record */
#include "select.h"
#include "tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LISTED_MAX = 20, /* ordinals named when a type is not enough */
};

static void explain_missing(const struct container *c, const char *word)
{
    char shown[TYPE_SHOWN_MAX];
    if (access(word, F_OK) == 0)
        message(
            c->path,
            "record '%s': no such record, but a file; this command takes one FILE, so run it "
            "once for each",
            word);
    else
        message(c->path,
                "record '%s': no such record; there are %" PRIu64 ", 'lime ls' lists them",
                type_shown(word, strlen(word), shown), limefile_index_count(c->index));
    container_fault_message(c); /* it may stand behind the fault */
}

static void explain_ambiguous(const struct container *c, const struct limefile_record *first,
                              uint64_t count)
{
    char list[LISTED_MAX * 22 + 8], shown[TYPE_SHOWN_MAX];
    size_t used = 0;
    uint64_t listed = 0;
    struct limefile_record record = *first;
    for (uint64_t i = first->ordinal; listed < LISTED_MAX && listed < count; i++) {
        if (limefile_index_get(c->index, i, &record) != 0)
            break;
        if (record.type_len != first->type_len ||
            memcmp(record.type, first->type, first->type_len) != 0)
            continue;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%" PRIu64,
                                 listed ? ", " : "", i);
        listed++;
    }
    message(c->path,
            "type '%s': %" PRIu64 " records are of this type; choose one by its ordinal: %s%s",
            type_shown(first->type, first->type_len, shown), count, list,
            listed < count ? ", ..." : "");
}

static bool by_type(const struct container *c, const char *type, size_t len,
                    struct limefile_record *out, bool *said)
{
    uint64_t count;
    if (limefile_index_by_type(c->index, type, len, out, &count) != 0)
        return false;
    if (count > 1) {
        explain_ambiguous(c, out, count);
        *said = true;
        return false;
    }
    return true;
}

/* True if the word looks like a number or two; *found then says whether it is there. */
static bool by_number(const struct container *c, const char *word, struct limefile_record *out,
                      bool *found)
{
    uint64_t first, second;
    const char *dot = strchr(word, '.');
    if (number_parse(word, strlen(word), &first)) {
        *found = limefile_index_get(c->index, first, out) == 0;
        return true;
    }
    if (!dot || !number_parse(word, (size_t)(dot - word), &first) ||
        !number_parse(dot + 1, strlen(dot + 1), &second))
        return false;
    *found = first <= UINT32_MAX && second <= UINT32_MAX &&
             limefile_index_by_number(c->index, (uint32_t)first, (uint32_t)second, out) == 0;
    return true;
}

bool select_record(const struct container *c, const char *word, bool as_type,
                   struct limefile_record *out)
{
    bool found = false, said = false;
    char decoded[LIMEFILE_TYPE_BYTES + 2];
    if (as_type || !by_number(c, word, out, &found)) {
        found = by_type(c, word, strlen(word), out, &said);
        if (!found && !said) { /* as 'lime ls' shows it */
            size_t len = limefile_name_decode(word, strlen(word), decoded, sizeof decoded);
            found = by_type(c, decoded, len, out, &said);
        }
        if (!found && !said && !as_type)
            found = limefile_name_find(c->index, word, out) == 0;
    }
    if (!found && !said)
        explain_missing(c, word);
    return found;
}
