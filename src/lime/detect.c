/* detect.c - distinguish a container, even with a damaged beginning, from other files */
#include "limedetect.h"
#include "header_bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    START_BYTES = 512,      /* enough for the first header, and for every signature below */
    SEARCH_BYTES = 1 << 20, /* the part of a file that is searched for a later record header */
};

/* Signatures of files that can contain a whole container but are not one. Gauge links hardly
 * compress, so a compressed file can hold the container's bytes unchanged. */
static const struct signature {
    size_t at;
    const char *text;
    size_t n;
} archives[] = {
    {257, "ustar", 5},
    {0, "PK\3\4", 4},
    {0, "!<arch>\n", 8},
    {0, "0707", 4},
    {0, "\x89HDF\r\n", 6},
    {0, "\x93NUMPY", 6},
    {0,
     "\x7f"
     "ELF",
     4},
    {0, "SQLite format", 13},
    {0, "\x1f\x8b", 2},         /* gzip */
    {0, "BZh", 3},              /* bzip2 */
    {0, "\xfd\x37zXZ", 5},      /* xz */
    {0, "\x28\xb5\x2f\xfd", 4}, /* zstd */
    {0, "\x04\x22\x4d\x18", 4}, /* lz4 */
    {0, "7z\xbc\xaf\x27\x1c", 6},
    {0, "Rar!\x1a\x07", 6},
    {0, "hsqs", 4}, /* squashfs */
    {0, "%PDF-", 5},
    {0, "BEGIN_HEADER\n", 13},
};

static bool is_archive(const unsigned char *start, size_t n)
{
    for (size_t i = 0; i < sizeof archives / sizeof archives[0]; i++) {
        const struct signature *s = &archives[i];
        if (s->at + s->n <= n && memcmp(start + s->at, s->text, s->n) == 0)
            return true;
    }
    return false;
}

/* Returns true if the flags and all later fields of the header `raw` at offset `at` are valid,
 * and the record that it describes is complete in a file of `size` bytes. */
static bool is_plausible(const unsigned char *raw, uint64_t at, uint64_t size)
{
    const char *type = (const char *)raw + AT_TYPE;
    size_t len = strnlen(type, LIMEFILE_TYPE_BYTES);
    return size - at >= LIMEFILE_HEADER_BYTES &&
           get_be64(raw + AT_BYTES) <= size - at - LIMEFILE_HEADER_BYTES &&
           (raw[AT_FLAGS] & ~(FLAG_MB | FLAG_ME)) == 0 && raw[AT_RESERVED] == 0 && len > 0 &&
           len < LIMEFILE_TYPE_BYTES && limefile_type_printable(type, len) == len &&
           is_zero(raw + AT_TYPE + len, LIMEFILE_TYPE_BYTES - len);
}

/* Finds the first plausible record header after byte 0. Returns 1 and its offset *at, or 0. */
static int find_header(const unsigned char *bytes, size_t n, uint64_t size, uint64_t *at)
{
    unsigned char pattern[AT_FLAGS];
    put_be32(pattern + AT_MAGIC, LIMEFILE_MAGIC);
    put_be16(pattern + AT_VERSION, LIMEFILE_VERSION);
    for (size_t i = 1; i + LIMEFILE_HEADER_BYTES <= n; i++) {
        const unsigned char *next =
            memchr(bytes + i, pattern[0], n - LIMEFILE_HEADER_BYTES + 1 - i);
        if (!next)
            return 0;
        i = (size_t)(next - bytes);
        if (memcmp(next, pattern, sizeof pattern) == 0 && is_plausible(next, i, size)) {
            *at = i;
            return 1;
        }
    }
    return 0;
}

/* Calls find_header() for the first SEARCH_BYTES of the file. Returns 1, 0 or -errno. */
static int search_header(struct limefile_source *source, uint64_t size, uint64_t *at)
{
    size_t n = size < SEARCH_BYTES ? (size_t)size : SEARCH_BYTES;
    unsigned char *bytes = malloc(n);
    ssize_t got = bytes ? limefile_read_full(source, bytes, n, 0) : -ENOMEM;
    int found = got < 0 ? (int)got : find_header(bytes, (size_t)got, size, at);
    free(bytes);
    return found;
}

/* Does the work of limefile_detect_container() for a file that does not begin with the magic
 * number. start: its first n bytes. */
static int classify_file(struct limefile_source *source, const unsigned char *start, size_t n,
                         uint64_t size, struct limefile_finding *out)
{
    bool zeros = is_zero(start, n < LIMEFILE_HEADER_BYTES ? n : LIMEFILE_HEADER_BYTES);
    if (!zeros && is_archive(start, n))
        return 0;
    int found = search_header(source, size, &out->have);
    if (found < 0)
        return found;
    if (!zeros && !found && !(n >= LIMEFILE_HEADER_BYTES && is_plausible(start, 0, size)))
        return 0;
    out->code = zeros ? LIMEFILE_E_ZEROS : LIMEFILE_E_BEGINNING;
    return out->code;
}

int limefile_detect_container(struct limefile_source *source, struct limefile_finding *out)
{
    unsigned char start[START_BYTES];
    uint64_t size;
    *out = (struct limefile_finding){.code = 0};
    int err = source->ops->size(source, &size);
    ssize_t n = err ? err : limefile_read_full(source, start, sizeof start, 0);
    if (n < 0)
        return (int)n;
    if (n == 0) {
        out->code = LIMEFILE_D_EMPTY;
        return out->code;
    }
    return limefile_header_is_magic(start, (size_t)n)
               ? 1
               : classify_file(source, start, (size_t)n, size, out);
}
