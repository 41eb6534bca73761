/* info_table.c - the table of `lime info --table`, a line for each gauge configuration */
#define _GNU_SOURCE
#include "info_table.h"
#include "facts.h"
#include "limephysics.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CELL_MAX = 8 * 1024 }; /* bytes of a cell, with the NUL */

enum cell_kind {
    CELL_FACT, /* the value of this name in the metadata */
    CELL_FILE,
    CELL_STATUS,
    CELL_RECORD,
    CELL_TYPE,
    CELL_LATTICE,
    CELL_PRECISION,
    CELL_BYTES,
    CELL_PLAQUETTE,
    CELL_CHECKSUM,
    CELL_SUMS,
    CELL_LFN,
};

static const struct known_column {
    const char *name;
    enum cell_kind kind;
    bool is_usual; /* shown without --columns */
} known_columns[] = {
    {"file", CELL_FILE, true},
    {"status", CELL_STATUS, true},
    {"record", CELL_RECORD, false},
    {"type", CELL_TYPE, false},
    {"lattice", CELL_LATTICE, true},
    {"precision", CELL_PRECISION, true},
    {"bytes", CELL_BYTES, false},
    {"beta", CELL_FACT, true},
    {"kappa", CELL_FACT, true},
    {"mu", CELL_FACT, true},
    {"mass", CELL_FACT, true},
    {"csw", CELL_FACT, true},
    {"u0", CELL_FACT, false},
    {"trajectory", CELL_FACT, true},
    {"plaquette", CELL_PLAQUETTE, true},
    {"linktrace", CELL_FACT, false},
    {"checksum", CELL_CHECKSUM, true},
    {"sums", CELL_SUMS, false},
    {"ensemble", CELL_FACT, false},
    {"program", CELL_FACT, false},
    {"date", CELL_FACT, false},
    {"lfn", CELL_LFN, true},
};
enum { KNOWN_COLUMNS = sizeof known_columns / sizeof known_columns[0] };

static const char fact_prefix[] = "info:"; /* before any name in the metadata */

/* ---- columns ---- */

static int report_unknown_column(const struct command *command, const char *option,
                                 const char *name)
{
    char list[KNOWN_COLUMNS * 16] = "";
    for (size_t i = 0; i < KNOWN_COLUMNS; i++)
        strcat(strcat(list, known_columns[i].name), ", ");
    strcat(list, "info:NAME");
    return value_error(command, option, "column", name, list);
}

static const struct known_column *find_column(const char *name)
{
    static const struct known_column any = {"", CELL_FACT, false};
    for (size_t i = 0; i < KNOWN_COLUMNS; i++)
        if (strcmp(known_columns[i].name, name) == 0)
            return &known_columns[i];
    return strncmp(name, fact_prefix, strlen(fact_prefix)) == 0 ? &any : NULL;
}

static int add_column(struct info_table *table, const struct command *command,
                      const char *option, const char *name)
{
    const struct known_column *how = find_column(name);
    if (!how)
        return report_unknown_column(command, option, name);
    if (table->count == TABLE_COLUMNS_MAX)
        return usage_error(command, "%s: more than %d columns", option, TABLE_COLUMNS_MAX);
    table->columns[table->count++] = (struct table_column){strdup(name), how};
    return TOOL_GOOD;
}

/* Finds or adds the column to sort by. */
static int choose_sort_column(struct info_table *table, const struct command *command,
                              const char *sort)
{
    table->is_descending = *sort == '-';
    sort += table->is_descending;
    for (table->sort = 0; table->sort < table->count; table->sort++)
        if (strcmp(table->columns[table->sort].name, sort) == 0)
            return TOOL_GOOD;
    return add_column(table, command, "--sort", sort);
}

int info_table_init(struct info_table *table, const struct command *command,
                    const char *columns, const char *sort)
{
    int status = TOOL_GOOD;
    char *list = columns ? strdup(columns) : NULL, *rest = list;
    *table = (struct info_table){.sort = SIZE_MAX, .hides_empty = !columns};
    table->spool = memfd_create("lime", MFD_CLOEXEC);
    table->end = mmap(NULL, sizeof *table->end, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (table->spool < 0 || table->end == MAP_FAILED)
        status = report_error("--table", "begin", -errno);
    for (char *name; !status && (name = strsep(&rest, ","));)
        status = add_column(table, command, "--columns", name);
    for (size_t i = 0; !columns && i < KNOWN_COLUMNS; i++)
        if (known_columns[i].is_usual)
            add_column(table, command, "", known_columns[i].name);
    free(list);
    table->shown = table->count;
    return status || !sort ? status : choose_sort_column(table, command, sort);
}

void info_table_release(struct info_table *table)
{
    close(table->spool);
    if (table->end != MAP_FAILED)
        munmap(table->end, sizeof *table->end);
    for (size_t i = 0; i < table->count; i++)
        free(table->columns[i].name);
}

/* ---- the cells of a file ---- */

static void format_plaquette(const struct info_table_file *file,
                             const struct limefile_field *field, char out[CELL_MAX])
{
    struct limefile_physics_stated stated;
    if (limefile_physics_read_plaquette(file->source, file->index, field, &stated) != 1)
        return;
    bool is_normalized = stated.value == strtod(stated.text, NULL);
    snprintf(out, CELL_MAX, is_normalized ? "%s" : "%.0s%.12g", stated.text, stated.value);
}

static void format_lattice(const struct limefile_lattice *lattice, char out[CELL_MAX])
{
    size_t n = 0;
    for (unsigned i = 0; i < lattice->dims; i++)
        n += (size_t)snprintf(out + n, CELL_MAX - n, "%s%" PRIu64, i ? "x" : "",
                              lattice->extent[i]);
}

static void format_lfn(const struct info_table_file *file, const struct limefile_field *field,
                       char out[CELL_MAX])
{
    struct limefile_record r;
    if (!field->lfn_ordinal || limefile_index_get(file->index, field->lfn_ordinal, &r) != 0 ||
        limefile_record_lfn(file->source, &r, out) != 1)
        *out = '\0';
}

/* Formats the checksums; "" if none are stated. Other formats state them in their header. */
static void format_sums(const struct info_table_file *file, const struct limefile_field *field,
                        const struct facts *facts, char out[CELL_MAX])
{
    const char *nersc = facts_find(facts, "CHECKSUM");
    const char *sum29 = facts_find(facts, "sum29"), *sum31 = facts_find(facts, "sum31");
    *out = '\0';
    if (field->has_checksum)
        snprintf(out, CELL_MAX, "%08" PRIx32 " %08" PRIx32, field->checksum.suma,
                 field->checksum.sumb);
    else if (file->format && nersc)
        snprintf(out, CELL_MAX, "%s", nersc);
    else if (file->format && sum29 && sum31 && (strcmp(sum29, "0") || strcmp(sum31, "0")))
        snprintf(out, CELL_MAX, "%s %s", sum29, sum31);
}

/* Formats a value of a configuration; "" if it has none. */
static void format_cell(const struct info_table_file *file, const struct limefile_field *f,
                        const struct facts *facts, const struct table_column *column,
                        char out[CELL_MAX])
{
    const char *name = column->name, *value;
    switch (column->how->kind) {
    case CELL_FACT:
        value = facts_find(facts, *column->how->name ? name : name + strlen(fact_prefix));
        snprintf(out, CELL_MAX, "%s", value ? value : "");
        break;
    case CELL_FILE:
    case CELL_STATUS:
        break; /* not a value of the configuration */
    case CELL_RECORD:
        snprintf(out, CELL_MAX, "%" PRIu64, f->record.ordinal);
        break;
    case CELL_TYPE:
        snprintf(out, CELL_MAX, "%s", f->name);
        break;
    case CELL_LATTICE:
        format_lattice(&f->lattice, out);
        break;
    case CELL_PRECISION:
        if (f->precision)
            snprintf(out, CELL_MAX, "%u", f->precision);
        break;
    case CELL_BYTES:
        snprintf(out, CELL_MAX, "%" PRIu64, f->record.bytes);
        break;
    case CELL_PLAQUETTE:
        format_plaquette(file, f, out);
        break;
    case CELL_CHECKSUM:
        format_sums(file, f, facts, out);
        snprintf(out, CELL_MAX, "%s",
                 *out                  ? "stated"
                 : f->checksum_ordinal ? "invalid"
                                       : "none");
        break;
    case CELL_SUMS:
        format_sums(file, f, facts, out);
        break;
    case CELL_LFN:
        format_lfn(file, f, out);
        break;
    }
}

/* field NULL: only the file and its status have values. */
static int write_line(const struct info_table *table, const struct info_table_file *file,
                      const struct limefile_field *field, FILE *out)
{
    char cell[CELL_MAX];
    struct facts facts = {.count = 0};
    int err = field ? facts_read_field(&facts, file->source, file->index, field) : 0;
    for (size_t i = 0; i < table->count; i++) {
        enum cell_kind kind = table->columns[i].how->kind;
        *cell = '\0';
        if (kind == CELL_FILE || kind == CELL_STATUS)
            snprintf(cell, sizeof cell, "%s", kind == CELL_FILE ? file->path : file->status);
        else if (field)
            format_cell(file, field, &facts, &table->columns[i], cell);
        fwrite(cell, 1, strlen(cell) + 1, out);
    }
    facts_release(&facts);
    return err;
}

static int write_lines(const struct info_table *table, const struct info_table_file *file,
                       FILE *out)
{
    bool is_good = strcmp(file->status, limefile_verdict_word(LIMEFILE_GOOD)) == 0;
    size_t lines = 0;
    int err = 0;
    for (size_t i = 0; file->source && !err && i < file->fields->count; i++) {
        struct limefile_field field;
        limefile_fields_get(file->fields, i, &field);
        if (field.kind != LIMEFILE_KIND_GAUGE)
            continue;
        err = write_line(table, file, &field, out);
        lines++;
    }
    return err || lines || is_good ? err : write_line(table, file, NULL, out);
}

int info_table_write(const struct info_table *table, const struct info_table_file *file,
                     struct info_table_lines *lines)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    int err = out ? write_lines(table, file, out) : -ENOMEM;
    if (out && fclose(out) != 0)
        err = -ENOMEM;
    uint64_t offset = atomic_fetch_add(table->end, n);
    if (!err)
        err = limefile_fd_write(table->spool, text, n, offset);
    if (!err)
        *lines = (struct info_table_lines){offset, n};
    free(text);
    return err;
}

/* ---- the table ---- */

/* Returns cell i of a line, which begins with its first cell. */
static const char *line_cell(const char *line, size_t i)
{
    while (i--)
        line += strlen(line) + 1;
    return line;
}

static bool is_finite_number(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return *text && !*end && isfinite(*value);
}

/* Numbers come first, in order of their values; then other texts in natural order; lines
 * without a value are last, in descending order, too. */
static int compare_lines(const void *a, const void *b, void *context)
{
    const struct info_table *table = context;
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    const char *x = line_cell(left, table->sort), *y = line_cell(right, table->sort);
    double p, q;
    if (!*x != !*y)
        return !*x - !*y;
    bool is_x = is_finite_number(x, &p), is_y = is_finite_number(y, &q);
    int order = is_x && is_y   ? (p > q) - (p < q)
                : is_x != is_y ? is_y - is_x
                               : limefile_natural_compare(x, y);
    order = table->is_descending ? -order : order;
    return order ? order : (left > right) - (left < right);
}

/* Returns the number of characters, without the bytes that continue one. */
static int text_width(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

static void print_cell(const char *text, enum table_form form, int width, bool is_last)
{
    bool must_quote = form == TABLE_CSV && strpbrk(text, ",\"\r\n");
    if (must_quote)
        putchar('"');
    for (const char *c = text; *c; c++) {
        if (must_quote && *c == '"')
            putchar('"');
        putchar(*c);
    }
    if (must_quote)
        putchar('"');
    if (form != TABLE_ALIGNED)
        fputs(is_last ? "" : form == TABLE_CSV ? "," : "\t", stdout);
    else if (!is_last)
        printf("%*s", width + 2 - text_width(text), "");
}

/* Prints a line, or with line NULL the header. widths: 0 for a column that is left out. */
static void print_table_line(const struct info_table *table, const char *line,
                             enum table_form form, const int *widths)
{
    size_t last = table->shown - 1;
    while (last && !widths[last])
        last--;
    for (size_t i = 0; i <= last; i++) {
        const char *text = line ? line_cell(line, i) : table->columns[i].name;
        if (widths[i])
            print_cell(*text || form != TABLE_ALIGNED ? text : "-", form, widths[i], i == last);
    }
    putchar('\n');
}

/* Reads the cells of all files. Returns them, or NULL with an error. The caller frees them. */
static char *read_cells(const struct info_table *table, const struct info_table_lines *lines,
                        size_t count, size_t *bytes, int *err)
{
    char *text = malloc(atomic_load(table->end) + 1);
    *bytes = 0;
    *err = text ? 0 : -ENOMEM;
    for (size_t i = 0; !*err && i < count; i++) {
        *err = limefile_fd_read_exact(table->spool, text + *bytes, lines[i].bytes,
                                      lines[i].offset);
        *bytes += lines[i].bytes;
    }
    return text;
}

/* Returns a list of the lines' first cells and their number; NULL: no memory. Replaces
 * characters that are not safe to print. */
static const char **find_lines(const struct info_table *table, char *text, size_t bytes,
                               size_t *count)
{
    const char **lines = NULL;
    size_t capacity = 0, cell = 0;
    bool fits = limefile_reserve(&lines, &capacity, 1, sizeof *lines);
    *count = 0;
    for (char *at = text, *end = text + bytes; fits && at < end; cell++) {
        char *next = at + strlen(at) + 1;
        limefile_text_sanitize(at, "");
        if (cell % table->count == 0) {
            fits = limefile_reserve(&lines, &capacity, *count + 1, sizeof *lines);
            if (fits)
                lines[(*count)++] = at;
        }
        at = next;
    }
    if (fits)
        return lines;
    free(lines);
    return NULL;
}

/* Sets the widths of the columns; 0 for a column without values that is not shown. */
static void find_widths(const struct info_table *table, const char *const *lines, size_t count,
                        bool hides_empty, int *widths)
{
    for (size_t i = 0; i < table->shown; i++) {
        int name = text_width(table->columns[i].name);
        for (size_t k = 0; k < count; k++) {
            int n = text_width(line_cell(lines[k], i));
            widths[i] = n > widths[i] ? n : widths[i];
        }
        if (widths[i] < name && (widths[i] || !hides_empty))
            widths[i] = name;
    }
}

int info_table_print(const struct info_table *table, const struct info_table_lines *files,
                     size_t count, enum table_form form)
{
    int err, widths[TABLE_COLUMNS_MAX] = {0};
    size_t bytes;
    char *text = read_cells(table, files, count, &bytes, &err);
    const char **lines = err ? NULL : find_lines(table, text, bytes, &count);
    if (lines) {
        if (table->sort < table->count)
            qsort_r(lines, count, sizeof *lines, compare_lines, (void *)table);
        find_widths(table, lines, count, table->hides_empty && form == TABLE_ALIGNED, widths);
        print_table_line(table, NULL, form, widths);
        for (size_t k = 0; k < count; k++)
            print_table_line(table, lines[k], form, widths);
    }
    err = err || lines ? err : -ENOMEM;
    free(lines);
    free(text);
    return err;
}
