/* sums_list.c - parse and format lists of sums, and find the files that they name */
#define _GNU_SOURCE
#include "sums_list.h"
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const sum_words[] = {"cksum", "adler32", "md5", "sha256", NULL};

static bool report_list_memory(void)
{
    message_code("list of sums", "read", -ENOMEM);
    return false;
}

char *sums_resolve_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    char *real = dir ? realpath(dir, NULL) : NULL, *out = NULL;
    if (!real)
        out = strdup(path);
    else if (asprintf(&out, "%s/%s", real[1] ? real : "", slash ? slash + 1 : path) < 0)
        out = NULL;
    free(dir);
    free(real);
    return out;
}

char *sums_list_directory(const char *name)
{
    char *path = sums_resolve_path(name), *slash = path ? strrchr(path, '/') : NULL;
    if (path)
        path[slash ? slash - path + 1 : 0] = '\0';
    return path;
}

/* ---- a line ---- */

/* Replaces "\\n" by a newline, "\\r" by a carriage return and "\\\\" by a backslash. Returns
 * false for another character after a backslash. */
static bool unescape_path(char *text)
{
    char *out = text;
    for (const char *in = text; *in; in++) {
        const char *from = "nr\\", *found = in[0] == '\\' ? strchr(from, in[1]) : NULL;
        if (in[0] == '\\' && (!found || !*found))
            return false;
        *out++ = found ? "\n\r\\"[found - from] : *in;
        in += found != NULL;
    }
    *out = '\0';
    return true;
}

/* Parses a line of "md5sum --tag", "MD5 (PATH) = SUM". */
static bool parse_tagged_line(char *line, char **path, const char **sum, size_t *length)
{
    char *end = NULL;
    for (char *at = line; (at = strstr(at, ") = ")); at++)
        end = at;
    if (!end || (strncmp(line, "MD5 (", 5) != 0 && strncmp(line, "SHA256 (", 8) != 0))
        return false;
    *end = '\0';
    *path = strchr(line, '(') + 1;
    *sum = end + 4;
    *length = strlen(*sum);
    return strspn(*sum, "0123456789abcdefABCDEF") == *length &&
           *length + 1 == (size_t)(line[0] == 'M' ? STAGE_MD5_CHARS : STAGE_SHA256_CHARS);
}

/* Parses "CRC SIZE PATH" or "SUM PATH", with perhaps a second blank or a '*' before the path.
 */
static bool parse_plain_line(char *line, char **path, size_t *length)
{
    size_t crc = strspn(line, "0123456789"), size = 0;
    if (crc > 0 && crc <= 10 && line[crc] == ' ')
        size = strspn(line + crc + 1, "0123456789");
    bool is_cksum = size > 0 && line[crc + 1 + size] == ' ';
    *length = is_cksum ? crc + 1 + size : strspn(line, "0123456789abcdefABCDEF");
    if (line[*length] != ' ')
        return false;
    *path = line + *length + 1;
    if (*length >= STAGE_MD5_CHARS - 1 && (**path == ' ' || **path == '*'))
        ++*path;
    return true;
}

/* Parses a line without its end. Returns false if it is not a sum and a path. */
static bool parse_sum_line(char *line, struct sums_entry *out)
{
    bool is_escaped = line[0] == '\\';
    const char *sum = line += is_escaped;
    size_t n;
    if (!parse_tagged_line(line, &out->path, &sum, &n) &&
        !parse_plain_line(line, &out->path, &n))
        return false;
    out->kind = memchr(sum, ' ', n)           ? STAGE_CKSUM
                : n == 8                      ? STAGE_ADLER32
                : n == STAGE_MD5_CHARS - 1    ? STAGE_MD5
                : n == STAGE_SHA256_CHARS - 1 ? STAGE_SHA256
                                              : 0;
    if (!out->kind || !*out->path || (is_escaped && !unescape_path(out->path)))
        return false;
    for (size_t i = 0; i < n; i++)
        out->sum[i] = (char)tolower((unsigned char)sum[i]);
    out->sum[n] = '\0';
    return true;
}

/* ---- the list ---- */

/* Takes ownership of `path`. Returns false, after a message, if memory is exhausted. */
static bool add_sums_entry(struct sums_list *list, char *path, enum stage_sum_kind kind,
                           const char *sum)
{
    if (!path || !limefile_reserve(&list->entries, &list->capacity, list->count + 1,
                                   sizeof *list->entries)) {
        free(path);
        return report_list_memory();
    }
    struct sums_entry *entry = &list->entries[list->count++];
    *entry = (struct sums_entry){path, kind, ""};
    strcpy(entry->sum, sum);
    list->kinds |= kind;
    return true;
}

void sums_list_release(struct sums_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->entries[i].path);
    free(list->entries);
    free(list->sorted);
    *list = (struct sums_list){0};
}

/* Returns false after a message. */
static bool add_sum_line(struct sums_list *list, const char *name, char *line, size_t number)
{
    struct sums_entry entry;
    if (!*line || *line == '#')
        return true;
    if (!parse_sum_line(line, &entry)) {
        message(name, "line %zu: not a sum (cksum, Adler-32, MD5 or SHA-256) and a path",
                number);
        return false;
    }
    while (strncmp(entry.path, "./", 2) == 0)
        entry.path += 2 + strspn(entry.path + 2, "/");
    return add_sums_entry(list, strdup(entry.path), entry.kind, entry.sum);
}

/* Removes LF, or CR LF if the first line ends with CR LF. */
static void remove_line_end(char *line, size_t number, bool *has_cr)
{
    size_t n = strcspn(line, "\n");
    bool ends_with_cr = n > 0 && line[n - 1] == '\r';
    if (number == 1)
        *has_cr = ends_with_cr;
    line[n - (*has_cr && ends_with_cr)] = '\0';
}

int sums_list_read(struct sums_list *list, const char *name)
{
    char *line = NULL;
    size_t capacity = 0;
    bool good = true, has_cr = false;
    bool is_file = strcmp(name, "-") != 0;
    FILE *file = is_file ? fopen(name, "re") : stdin;
    *list = (struct sums_list){0};
    if (!file) {
        message_code(name, "open", -errno);
        return TOOL_UNUSABLE;
    }
    errno = 0;
    for (size_t number = 1; getline(&line, &capacity, file) > 0; number++) {
        remove_line_end(line, number, &has_cr);
        good = add_sum_line(list, name, line, number) && good;
        if (!good && !list->count)
            break;
    }
    if (ferror(file))
        message_code(name, "read", errno ? -errno : -EIO);
    else if (good && !list->count)
        message(name, "the list is empty");
    good = good && list->count && !ferror(file);
    free(line);
    if (is_file)
        fclose(file);
    return good ? TOOL_GOOD : TOOL_UNUSABLE;
}

/* ---- paths ---- */

static int compare_sums_entries(const void *a, const void *b, void *list)
{
    const struct sums_entry *entries = ((struct sums_list *)list)->entries;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    int order = strcmp(entries[x].path, entries[y].path);
    return order ? order : (x > y) - (x < y);
}

static char *join_path(const char *dir, const char *path)
{
    char *out;
    size_t n = strlen(dir);
    const char *slash = n == 0 || dir[n - 1] == '/' ? "" : "/";
    return asprintf(&out, "%s%s%s", dir, slash, path) < 0 ? NULL : out;
}

/* Returns the length of the leading directories that all paths share and `dir` does not have.
 */
static size_t count_missing_bytes(const struct sums_list *list, const char *dir)
{
    struct stat st;
    char *first = strdup(list->count ? list->entries[0].path : ""), *slash;
    size_t skip = 0;
    for (size_t i = 0; first && i < list->count; i++)
        while ((slash = strrchr(first, '/')) &&
               strncmp(list->entries[i].path, first, (size_t)(slash - first) + 1) != 0)
            *slash = '\0';
    slash = first ? strrchr(first, '/') : NULL;
    if (slash)
        slash[1] = '\0';
    while (slash && first[skip]) {
        char *path = join_path(dir, first + skip);
        bool exists = path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
        free(path);
        if (exists)
            break;
        skip += strcspn(first + skip, "/");
        skip += strspn(first + skip, "/");
    }
    free(first);
    return skip;
}

/* Cuts off "..", and what is before it, because DIR/.. is outside of DIR. */
static void cut_parent_directories(char *path)
{
    for (char *up; (up = strstr(path, "../"));)
        memmove(path, up + 3, strlen(up + 3) + 1);
}

bool sums_list_resolve(struct sums_list *list, const char *dir, bool below)
{
    for (size_t i = 0; below && i < list->count; i++)
        cut_parent_directories(list->entries[i].path);
    size_t skip = below ? count_missing_bytes(list, dir) : 0;
    list->sorted = calloc(list->count + 1, sizeof *list->sorted);
    if (!list->sorted)
        return report_list_memory();
    for (size_t i = 0; i < list->count; i++) {
        struct sums_entry *entry = &list->entries[i];
        list->sorted[i] = i;
        if (!below && entry->path[0] == '/')
            continue;
        char *path = join_path(dir, entry->path + skip + strspn(entry->path + skip, "/"));
        if (!path)
            return report_list_memory();
        free(entry->path);
        entry->path = path;
    }
    list->sorted_count = list->count;
    qsort_r(list->sorted, list->count, sizeof *list->sorted, compare_sums_entries, list);
    return true;
}

size_t sums_list_find(const struct sums_list *list, const char *path, size_t *first)
{
    size_t low = 0, high = list->sorted_count, n = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(list->entries[list->sorted[middle]].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + n < list->sorted_count &&
           strcmp(list->entries[list->sorted[low + n]].path, path) == 0)
        n++;
    *first = low;
    return n;
}

/* ---- writing ---- */

static int end_sums_output(struct sums_output *out, int status)
{
    limefile_output_abort(&out->file);
    sums_list_release(&out->list);
    free(out->directory);
    return status;
}

int sums_output_open(struct sums_output *out, const char *name, bool update, bool force)
{
    struct stat st;
    *out = (struct sums_output){.name = name, .is_stdout = strcmp(name, "-") == 0};
    out->file = (struct limefile_output){.fd = -1, .old = -1, .dir_fd = -1};
    int err = out->is_stdout ? 0 : limefile_output_find(&out->file, name);
    if (!err && out->file.exists && !update && !force)
        err = LIMEFILE_E_OUTPUT_EXISTS;
    if (!err) {
        out->directory = sums_list_directory(name);
        err = out->directory ? 0 : -ENOMEM;
    }
    int status = report_output_error(name, "write", err);
    if (!status && !out->is_stdout && stat(name, &st) == 0 && st.st_size) {
        status = sums_list_read(&out->list, name); /* replaces no file that is not a list */
        if (status)
            message(name, "not replaced, as it is not a list of sums; name the list first");
    }
    if (!update)
        sums_list_release(&out->list);
    if (!status && !sums_list_resolve(&out->list, out->directory, false))
        status = TOOL_BAD;
    return status ? end_sums_output(out, status) : TOOL_GOOD;
}

bool sums_output_set(struct sums_output *out, const char *path, enum stage_sum_kind kind,
                     const char *sum)
{
    size_t first;
    char *resolved = sums_resolve_path(path);
    size_t n = resolved ? sums_list_find(&out->list, resolved, &first) : 0;
    if (!n)
        return add_sums_entry(&out->list, resolved, kind, sum);
    free(resolved);
    for (size_t i = first; i < first + n; i++) {
        struct sums_entry *entry = &out->list.entries[out->list.sorted[i]];
        entry->kind = kind;
        strcpy(entry->sum, sum);
    }
    return true;
}

/* Prints the entry as a line. A leading backslash means that the path is escaped. */
static void print_sums_entry(FILE *file, const struct sums_entry *entry, const char *directory)
{
    const char *path = entry->path;
    size_t n = strlen(directory);
    if (strncmp(path, directory, n) == 0)
        path += n;
    bool is_hash = entry->kind == STAGE_MD5 || entry->kind == STAGE_SHA256;
    bool is_escaped = strpbrk(path, is_hash ? "\n\r\\" : "\n\r") != NULL;
    fprintf(file, "%s%s%s", is_escaped ? "\\" : "", entry->sum, is_hash ? "  " : " ");
    for (; *path; path++)
        if (is_escaped && strchr("\n\r\\", *path))
            fprintf(file, "\\%c", *path == '\n' ? 'n' : *path == '\r' ? 'r' : '\\');
        else
            putc(*path, file);
    putc('\n', file);
}

/* Writes the entries to a descriptor. Returns 0 or -errno. */
static int print_sums(const struct sums_output *out)
{
    int copy = dup(out->is_stdout ? STDOUT_FILENO : out->file.fd);
    FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
    if (!file)
        return -errno;
    for (size_t i = 0; i < out->list.count; i++)
        print_sums_entry(file, &out->list.entries[i], out->directory);
    int err = fflush(file) != 0 || ferror(file) ? -errno : 0;
    fclose(file);
    return err;
}

int sums_output_commit(struct sums_output *out)
{
    if (!out->list.count) {
        message(out->name, "not written: no file has a sum");
        return end_sums_output(out, TOOL_BAD);
    }
    flush_stdout();
    int err = out->is_stdout ? 0 : limefile_output_create(&out->file, true);
    if (!err)
        err = print_sums(out);
    if (!err && !out->is_stdout)
        err = limefile_output_commit(&out->file);
    return end_sums_output(out, report_output_error(out->name, "write", err));
}
