/* infojson.c - lime info for scripts */
#define _GNU_SOURCE
#include "info.h"
#include "cells.h"
#include "fieldjson.h"
#include "jsonout.h"
#include "tool.h"

#include <inttypes.h>
#include <string.h>

static const char *kind_word(enum limefile_fieldkind kind)
{
    static const char *const words[] = {
        [LIMEFILE_KIND_UNKNOWN] = "unknown",       [LIMEFILE_KIND_GAUGE] = "gauge",
        [LIMEFILE_KIND_PROPAGATOR] = "propagator", [LIMEFILE_KIND_SOURCE] = "source",
        [LIMEFILE_KIND_SCIDAC] = "field",          [LIMEFILE_KIND_GLOBAL] = "global",
    };
    return words[kind];
}

static void json_list(const char *name, const uint64_t *numbers, unsigned count)
{
    printf(", \"%s\": ", name);
    if (!count)
        fputs("null", stdout);
    for (unsigned i = 0; i < count; i++)
        printf("%s%" PRIu64 "%s", i ? ", " : "[", numbers[i], i + 1 == count ? "]" : "");
}

static void json_field(struct info *info, const struct limefile_field *f)
{
    struct limefile_scidac_record said;
    char lfn[LIMEFILE_LFN_MAX];
    unsigned box = f->boxed && !f->halved ? f->lattice.dims : 0;
    printf("{\"ordinal\": %" PRIu64 ", \"message\": %" PRIu32 ", \"type\": ", f->record.ordinal,
           f->record.message);
    jsonout_text(stdout, f->record.type, f->record.type_len);
    jsonout_word("kind", kind_word(f->kind));
    jsonout_word("name", f->name);
    json_list("lattice", f->lattice.extent, f->lattice.dims);
    json_list("lower", f->lower, box);
    json_list("upper", f->upper, box);
    jsonout_number("precision", f->precision);
    jsonout_number("sites", f->sites);
    jsonout_number("site_bytes", f->site_bytes);
    printf(", \"bytes\": %" PRIu64, f->record.bytes);
    jsonout_number("expected", f->expected);
    fputs(", \"checksum\": ", stdout);
    if (f->has_checksum)
        printf("{\"suma\": \"%08x\", \"sumb\": \"%08x\"}", (unsigned)f->checksum.suma,
               (unsigned)f->checksum.sumb);
    else
        fputs("null", stdout);
    fputs(", \"array\": ", stdout);
    fieldjson_array(stdout, f);
    jsonout_word("date", info_private_record(info, f->by_record, &said) ? said.date : NULL);
    jsonout_word("lfn", info_lfn(info, f->by_lfn, lfn) ? lfn : NULL);
    jsonout_number("format_record", f->by_format);
    jsonout_number("private_record", f->by_record);
    jsonout_number("checksum_record", f->by_checksum);
    jsonout_number("lfn_record", f->by_lfn);
    putchar('}');
}

static void json_facts(const struct facts *facts)
{
    fputs("{", stdout);
    bool first = true;
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *fact = &facts->fact[i];
        bool again = false; /* the first of a name counts */
        for (size_t j = 0; j < i && !again; j++)
            again = strcmp(facts->fact[j].name, fact->name) == 0;
        if (again)
            continue;
        fputs(first ? "" : ", ", stdout);
        jsonout_text(stdout, fact->name, strlen(fact->name));
        fputs(": ", stdout);
        jsonout_text(stdout, fact->value, strlen(fact->value));
        first = false;
    }
    fputs("}", stdout);
}

static int json_info(struct info *info)
{
    struct limefile_record r;
    enum facts_form form;
    int status = TOOL_GOOD;
    bool first = true;
    fputs("], \"info\": [", stdout);
    for (uint64_t i = 1; !status && limefile_index_get(info->c.index, i, &r) == 0; i++) {
        if (!facts_title(r.type, &form))
            continue;
        status = info_read_facts(info, &r, form);
        printf("%s{\"ordinal\": %" PRIu64 ", \"message\": %" PRIu32 ", \"type\": ",
               first ? "\n " : ",\n ", r.ordinal, r.message);
        jsonout_text(stdout, r.type, r.type_len);
        fputs(", \"facts\": ", stdout);
        json_facts(&info->facts);
        putchar('}');
        facts_release(&info->facts);
        first = false;
    }
    return status;
}

static void json_finding(struct info *info, const struct limefile_finding *finding, size_t i)
{
    info->deviations += !limefile_is_harmless(finding->code);
    fputs(i ? ",\n " : "\n ", stdout);
    jsonout_finding(stdout, finding);
}

static int json_deviations(struct info *info)
{
    struct limefile_finding finding;
    struct limecheckpoint_findings cells;
    size_t i = 0;
    int got;
    fputs(", \"deviations\": [", stdout);
    for (; limefile_fields_finding(&info->fields, i, &finding); i++)
        json_finding(info, &finding, i);
    limecheckpoint_findings_begin(&cells, info->c.source, info->c.index);
    for (; (got = limecheckpoint_findings_next(&cells, &finding)) == 1; i++)
        json_finding(info, &finding, i);
    return info_status(info, got);
}

static int json_checkpoints(struct info *info)
{
    struct limecheckpoint checkpoint;
    int got;
    fputs("], \"checkpoints\": [", stdout);
    limecheckpoint_walk_begin(&info->walk, info->c.source, info->c.index);
    for (bool first = true; (got = limecheckpoint_next(&info->walk, &checkpoint)) == 1;
         first = false) {
        fputs(first ? "\n " : ",\n ", stdout);
        cells_json(&checkpoint);
    }
    return info_status(info, got);
}

static const char *verdict_of(int status)
{
    return limefile_verdict_word(status == TOOL_GOOD  ? LIMEFILE_GOOD
                                 : status == TOOL_BAD ? LIMEFILE_BAD
                                                      : LIMEFILE_UNREADABLE);
}

int info_json(struct info *info)
{
    const struct limefile_index *index = info->c.index;
    fputs("{\"file\": ", stdout);
    jsonout_text(stdout, info->c.path, strlen(info->c.path));
    printf(", \"size\": %" PRIu64 ", \"records\": %" PRIu64 ", \"messages\": %" PRIu32
           ", \"fault\": ",
           limefile_index_size(index), limefile_index_count(index),
           limefile_index_messages(index));
    jsonout_finding(stdout, info_fault(info));
    jsonout_word("lfn", info->fields.lfn);
    int status = json_deviations(info);
    fputs("], \"fields\": [", stdout);
    for (size_t i = 0; i < info->fields.count; i++) {
        fputs(i ? ",\n " : "\n ", stdout);
        struct limefile_field field;
        limefile_fields_get(&info->fields, i, &field);
        json_field(info, &field);
    }
    status = worse_status(status, json_checkpoints(info));
    status = worse_status(status, json_info(info));
    printf("], \"verdict\": \"%s\"}", verdict_of(info_judge(info, status)));
    return status;
}

void info_json_failure(const char *path, const char *why, enum limefile_verdict verdict)
{
    fputs("{\"file\": ", stdout);
    jsonout_text(stdout, path, strlen(path));
    jsonout_word("error", why);
    printf(", \"fields\": [], \"info\": [], \"verdict\": \"%s\"}",
           limefile_verdict_word(verdict));
}
