/* cmd_join.c - lime join: join the volumes of a QIO set into one container */
#define _GNU_SOURCE
#include "container.h"
#include "limeoutput.h"
#include "volume_set.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: lime join [-f] [--record N]... [--skip-parts] VOLUME OUT\n"
    "       lime join --info VOLUME\n"
    "Join the volumes of a set that QIO has written (PARTFILE, PARTFILE_DIR or\n"
    "MULTIFILE) to one container. VOLUME is any of them; the others are found by its\n"
    "name, NAME.vol0000 or vol0000/NAME. OUT appears, or is replaced, only when all\n"
    "is written, and only if each record matches its checksum in the set.\n"
    "\n"
    "  -f, --force        replace OUT if it exists; never a volume of the set\n"
    "      --info         only show what is in the set, and whether it is complete\n"
    "      --bytes        with --info, print sizes in bytes, not as 145K\n"
    "      --record N     join only the record with this number in the list of\n"
    "                     --info, with its metadata; may be given more than once\n"
    "      --skip-parts   omit records of a part of the lattice, which cannot be\n"
    "                     joined; by default, lime join fails if there are any\n"
    "  -h, --help         this text\n"
    "\n"
    "Examples:\n"
    "  lime join --info prop.vol0000\n"
    "  lime join prop.vol0000 prop.lime\n"
    "  lime join vol0000/prop prop.lime\n"
    "\n"
    "If the set is a gauge configuration, 'lime convert' also reads VOLUME.\n"
    "\n"
    "Exit status: 0 done; 1 volumes are missing or do not fit together, a record\n"
    "cannot be joined or does not exist, a checksum is wrong, or OUT could not be\n"
    "written; 2 wrong usage, or VOLUME cannot be opened or is not a volume.\n";

enum {
    BUFFER_BYTES = 8 << 20,
};

struct options {
    bool info, force, skips_parts;
    uint64_t *records;
    size_t record_count, record_capacity;
};

struct join_state {
    struct volume_set in;
    struct limefile_source *source; /* the joined container */
    struct limefile_index *index;
    struct limefile_fields fields;
    struct limefile_output out;
    const char *out_path; /* NULL: --info */
    bool force;
    unsigned char *buffer;
    struct progress progress;
};

static int print_set_info(struct join_state *j)
{
    static const char *const formats[] = {"", "MULTIFILE", "PARTFILE", "PARTFILE_DIR"};
    struct limefile_volumes_info facts;
    struct limefile_record r;
    limefile_volumes_info(j->in.volumes, &facts);
    printf("format    %s\nlattice  ", facts.volfmt <= 3 ? formats[facts.volfmt] : "?");
    for (unsigned i = 0; i < facts.lattice.dims; i++)
        printf(" %" PRIu64, facts.lattice.extent[i]);
    printf("\nvolumes   %zu, complete\nfields    %" PRIu64 "\n\n", facts.volumes, facts.fields);
    for (size_t i = 0; i < facts.volumes; i++)
        print_line(j->in.names[i], "%" PRIu64 " sites%s",
                   limefile_volumes_sites(j->in.volumes, i),
                   i == facts.master ? ", with the metadata" : "");
    printf("\njoined, the container would have these records:\n");
    for (uint64_t i = 1; limefile_index_get(j->index, i, &r) == 0; i++) {
        char type_name[TYPE_TEXT_MAX], size[LIMEFILE_SIZE_CHARS];
        printf("%4" PRIu64 "  %-28s %12s\n", i, format_type(r.type, r.type_len, type_name),
               limefile_format_size(r.bytes, size));
    }
    for (size_t i = 0; i < facts.skipped; i++) {
        char part[VOLUME_SET_TEXT_MAX];
        volume_set_part_text(&j->in, i, part);
        print_line(j->in.names[facts.master], "%s", part);
    }
    return TOOL_GOOD;
}

/* Copies n bytes, n <= BUFFER_BYTES. Then the buffer contains them. Returns an exit status. */
static int copy_chunk(struct join_state *j, uint64_t offset, size_t n)
{
    int err = limefile_read_exact(j->source, j->buffer, n, offset);
    if (err)
        return report_error(j->in.path, "read", err);
    err = limefile_fd_write(j->out.fd, j->buffer, n, offset);
    if (err)
        message_code(j->out_path, "write", err);
    progress_add(&j->progress, n);
    return err ? TOOL_BAD : TOOL_GOOD;
}

static int copy_range(struct join_state *j, uint64_t from, uint64_t to)
{
    int status = TOOL_GOOD;
    for (uint64_t n; status == TOOL_GOOD && from < to; from += n) {
        n = to - from < BUFFER_BYTES ? to - from : BUFFER_BYTES;
        status = copy_chunk(j, from, (size_t)n);
    }
    return status;
}

/* Copies a field in chunks of whole sites. Compares its checksum with the one in the set. */
static int copy_summed_field(struct join_state *j, const struct limefile_field *f)
{
    struct limefile_checksum sum = {0};
    uint64_t most = BUFFER_BYTES / f->site_bytes, n;
    int status = TOOL_GOOD;
    for (uint64_t at = 0; status == TOOL_GOOD && at < f->sites; at += n) {
        n = f->sites - at < most ? f->sites - at : most;
        status = copy_chunk(j, f->record.data_offset + at * f->site_bytes,
                            (size_t)(n * f->site_bytes));
        if (status == TOOL_GOOD)
            limefile_field_add_sites(f, &sum, j->buffer, at, n);
    }
    if (status != TOOL_GOOD || limefile_field_sum_matches(f, &sum))
        return status;
    message(j->in.path,
            "record %" PRIu64 ": the data of all volumes have the checksum %08" PRIx32
            " %08" PRIx32 ", the set has %08" PRIx32 " %08" PRIx32,
            f->record.ordinal, sum.suma, sum.sumb, f->checksum.suma, f->checksum.sumb);
    message(j->out_path, "not written: a volume may be damaged or belong to another set");
    return TOOL_BAD;
}

static bool is_verifiable(const struct limefile_field *f)
{
    return f->has_checksum && limefile_field_is_summable(f) && f->site_bytes <= BUFFER_BYTES;
}

/* Copies the joined container. Verifies each field whose checksum can be compared. */
static int copy_joined_data(struct join_state *j)
{
    struct limefile_field f;
    uint64_t at = 0, unverified = 0;
    int status = TOOL_GOOD;
    for (size_t i = 0; status == TOOL_GOOD && i < j->fields.count; i++) {
        limefile_fields_get(&j->fields, i, &f);
        unverified += !is_verifiable(&f);
        if (!is_verifiable(&f))
            continue;
        status = copy_range(j, at, f.record.data_offset);
        if (status == TOOL_GOOD)
            status = copy_summed_field(j, &f);
        at = f.record.data_offset + f.record.bytes;
    }
    if (status == TOOL_GOOD)
        status = copy_range(j, at, limefile_index_size(j->index));
    if (status == TOOL_GOOD && unverified)
        message(j->in.path, "warning: %" PRIu64 " record%s no checksum to compare with",
                unverified, unverified == 1 ? " has" : "s have");
    return status;
}

static int write_joined(struct join_state *j)
{
    int err = limefile_output_open(&j->out, j->out_path, j->force, j->in.fds, j->in.count);
    if (err) {
        message_output(j->out_path, "create", err);
        return TOOL_BAD;
    }
    progress_begin(&j->progress, "join", limefile_index_size(j->index));
    int status = copy_joined_data(j);
    progress_end(&j->progress);
    if (status != TOOL_GOOD) {
        limefile_output_abort(&j->out);
        return status;
    }
    err = limefile_output_commit(&j->out);
    return report_output_error(j->out_path, "write", err);
}

static int join_opened_set(struct join_state *j)
{
    int err = limefile_index_build(j->source, &j->index);
    if (!err)
        err = limefile_fields_build(j->source, j->index, &j->fields);
    if (!err && j->out_path && !(j->buffer = malloc(BUFFER_BYTES)))
        err = -ENOMEM;
    if (err)
        return report_error(j->in.path, "index", err);
    return j->out_path ? write_joined(j) : print_set_info(j);
}

/* Reports records that have only a part of the lattice and so cannot be joined. Without
 * --skip-parts, returns TOOL_BAD if there are any. With --info or --record, does nothing. */
static int check_parts_allowed(const struct join_state *j, const struct options *o)
{
    struct limefile_volumes_info facts;
    limefile_volumes_info(j->in.volumes, &facts);
    if (!j->out_path || o->records || !facts.skipped)
        return TOOL_GOOD;
    for (size_t i = 0; i < facts.skipped; i++) {
        char part[VOLUME_SET_TEXT_MAX];
        volume_set_part_text(&j->in, i, part);
        message(j->in.names[facts.master], "%s%s", o->skips_parts ? "warning: " : "", part);
    }
    if (o->skips_parts)
        return TOOL_GOOD;
    message(j->out_path, "not written; omit these records with --skip-parts, or use --record");
    return TOOL_BAD;
}

static int join_set(const char *volume, const char *out, const struct options *o)
{
    struct join_state j = {.out_path = out, .force = o->force};
    const struct limefile_volumes_options options = {
        .skips_parts = true, .records = o->records, .record_count = o->record_count};
    int status = volume_set_open(&j.in, volume, &options);
    if (status != TOOL_GOOD)
        return status;
    j.source = limefile_volumes_source(j.in.volumes);
    status = check_parts_allowed(&j, o);
    if (status == TOOL_GOOD)
        status = join_opened_set(&j);
    free(j.buffer);
    limefile_fields_release(&j.fields);
    limefile_index_free(j.index);
    volume_set_close(&j.in);
    return status;
}

static struct options options;

static int parse_record_number(const void *command, char *text)
{
    struct options *o = &options;
    if (!limefile_reserve(&o->records, &o->record_capacity, o->record_count + 1,
                          sizeof *o->records)) {
        message(NULL, "out of memory");
        return TOOL_BAD;
    }
    uint64_t *record = &o->records[o->record_count++];
    if (!limefile_parse_number(text, strlen(text), record) || *record == 0)
        return value_error(command, "--record", NULL, text, "a number, from 1");
    return TOOL_GOOD;
}

static const struct option_rule rules[] = {
    FLAG_RULE("info", 0, &options.info),
    BYTES_RULE,
    FLAG_RULE("force", 'f', &options.force),
    {"record", 0, OPTION_CALL_TEXT, .handle = parse_record_number},
    FLAG_RULE("skip-parts", 0, &options.skips_parts),
    {NULL},
};

static int run_join(int count, char **paths)
{
    const struct options *o = &options;
    if (count != (o->info ? 1 : 2))
        return usage_error(&cmd_join,
                           o->info ? "one VOLUME expected" : "VOLUME and OUT expected");
    if (o->info && (o->records || o->skips_parts))
        return usage_error(&cmd_join,
                           "--info cannot be combined with --record or --skip-parts");
    return join_set(paths[0], o->info ? NULL : paths[1], o);
}

const struct command cmd_join = {
    "join", "join the volumes of a QIO set", help, run_join, rules, ANY_OPERANDS, NULL};
