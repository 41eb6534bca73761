/* packread.c - lists of what to pack: manifest.tsv, and C-LIME's list files */
#define _GNU_SOURCE
#include "container.h"
#include "manifest.h"
#include "packlist.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LINE_BYTES = 8192, /* a path, a type with %XX, and more */
};

/* Hands out the lines of a text file. */
struct lines {
    const char *name;
    FILE *file;
    uint64_t number;
    bool failed; /* after a message */
    size_t len;
    char line[LINE_BYTES]; /* without its end */
};

/* regular: nothing else will do; what is no file could keep us waiting, or never end. */
static bool lines_open(struct lines *l, int folder, const char *path, const char *name,
                       bool regular)
{
    l->name = name;
    l->number = 0;
    l->failed = false;
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | (regular ? O_NONBLOCK | O_NOCTTY : 0));
    int err = fd < 0 ? -errno : regular ? limefile_check_fd(fd) : 0;
    l->file = err ? NULL : fdopen(fd, "r");
    if (l->file)
        return true;
    message_code(name, "open", err ? err : -errno);
    if (fd >= 0)
        close(fd);
    return false;
}

static bool bad_line(const struct lines *l, const char *why)
{
    message(l->name, "line %llu: %s", (unsigned long long)l->number, why);
    return false;
}

static bool lines_next(struct lines *l)
{
    int c;
    l->len = 0;
    while ((c = getc_unlocked(l->file)) != EOF && c != '\n' && l->len < LINE_BYTES - 1)
        l->line[l->len++] = (char)c;
    if (c == EOF && ferror(l->file)) {
        message_code(l->name, "read", -errno);
        l->failed = true;
    }
    if (l->failed || (c == EOF && l->len == 0))
        return false;
    l->number++;
    if (c != EOF && c != '\n') {
        l->failed = true;
        return bad_line(l, "longer than any that belongs here");
    }
    while (l->len && l->line[l->len - 1] == '\r')
        l->len--;
    l->line[l->len] = '\0';
    return true;
}

/* False if reading failed on the way. */
static bool lines_close(struct lines *l)
{
    fclose(l->file);
    return !l->failed;
}

/* ---- the manifest ---- */

enum {
    AT_MB = 3,
    AT_ME = 4,
    AT_TYPE = 6,
    AT_FILE = 7,
    COLUMNS = 8,
};

static bool is_plain_name(const char *name)
{
    return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           !strchr(name, '/');
}

static bool is_flag(const char *text)
{
    return strcmp(text, "0") == 0 || strcmp(text, "1") == 0;
}

static bool manifest_line(struct packlist *list, struct lines *l)
{
    char *columns[COLUMNS], *rest = l->line, type[LIMEFILE_TYPE_BYTES + 2];
    size_t n = 0;
    if (strlen(l->line) != l->len)
        return bad_line(l, "a NUL byte");
    while (rest && n < COLUMNS)
        columns[n++] = strsep(&rest, "\t");
    if (rest || n < COLUMNS)
        return bad_line(l, "not the eight columns that 'lime unpack' writes");
    if (!is_flag(columns[AT_MB]) || !is_flag(columns[AT_ME]))
        return bad_line(l, "mb and me are 0 or 1");
    if (!is_plain_name(columns[AT_FILE]))
        return bad_line(l, "the file is not a plain name of a file in this folder");
    size_t len =
        limefile_name_decode(columns[AT_TYPE], strlen(columns[AT_TYPE]), type, sizeof type);
    if (len > LIMEFILE_TYPE_BYTES - 1 || memchr(type, '\0', len))
        return bad_line(l, "a record type has at most 127 bytes and no NUL");
    return packlist_add(list, columns[AT_FILE], type, len, columns[AT_MB][0] == '1',
                        columns[AT_ME][0] == '1');
}

bool packlist_read_manifest(struct packlist *list, int folder, const char *folder_name)
{
    struct lines l;
    char *name = NULL;
    if (asprintf(&name, "%s/%s", folder_name, MANIFEST_NAME) < 0)
        return false;
    bool good = lines_open(&l, folder, MANIFEST_NAME, name, true);
    if (good) {
        while (good && lines_next(&l))
            if (l.len > 0 && l.line[0] != '#')
                good = manifest_line(list, &l);
        good = lines_close(&l) && good;
        if (good && l.number == 0) { /* of an empty container there is the heading */
            message(name, "it is empty, so nothing says what to pack");
            good = false;
        }
    }
    free(name);
    return good;
}

/* ---- C-LIME's list ---- */

static char *trimmed(char *text)
{
    static const char blanks[] = " \t\r\v\f";
    text += strspn(text, blanks);
    size_t len = strlen(text);
    while (len && strchr(blanks, text[len - 1]))
        len--;
    text[len] = '\0';
    return text;
}

static bool list_line(struct packlist *list, const struct lines *l, char *text, bool tabs,
                      bool mb)
{
    char *end = tabs ? strchr(text, '\t') : NULL;
    bool tab = end;
    if (!end)
        end = text + strcspn(text, " \t");
    if (*end == '\0')
        return bad_line(l, "one word only; a line holds a path and a record type");
    *end = '\0';
    char *path = trimmed(text), *type = trimmed(end + 1);
    size_t word = strcspn(type, " \t");
    if (tabs && !tab && type[word] != '\0')
        return bad_line(l, "more than two words; separate path and type by a TAB if spaces "
                           "belong to them");
    if (!tab)
        type[word] = '\0'; /* C-LIME overlooks what follows */
    return !packlist_type_is_bad(path, type, strlen(type)) &&
           packlist_add(list, path, type, strlen(type), mb, false);
}

bool packlist_read_list(struct packlist *list, const char *path, bool tabs)
{
    struct lines l;
    bool mb = true, good = lines_open(&l, AT_FDCWD, path, path, false);
    if (!good)
        return false;
    while (good && lines_next(&l)) {
        bool whole = strlen(l.line) == l.len;
        char *text = trimmed(l.line);
        if (!whole) {
            good = bad_line(&l, "a NUL byte");
        } else if (*text == '\0') {
            mb = true;
        } else {
            good = list_line(list, &l, text, tabs, mb);
            mb = false;
        }
    }
    good = lines_close(&l) && good;
    packlist_mend(list);
    return good;
}
