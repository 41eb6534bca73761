/* fuzz_name.c - any bytes as a type and as a file name: invariants of the conversion */
#include "fuzz.h"

static void as_type(const char *type, size_t len)
{
    char name[3 * LIMEFILE_TYPE_BYTES + 1], cut[64], back[LIMEFILE_TYPE_BYTES + 1];
    size_t n = limefile_name_encode(type, len, name, sizeof name);
    HOLDS(n >= len && n <= 3 * len && strlen(name) == n);
    for (size_t i = 0; i < n; i++)
        HOLDS(name[i] >= 0x20 && name[i] < 0x7f && name[i] != '/');
    HOLDS(limefile_name_decode(name, n, back, sizeof back) == len);
    HOLDS(memcmp(back, type, len) == 0);
    size_t m = limefile_name_encode(type, len, cut, sizeof cut); /* a prefix, whole bytes */
    HOLDS(m < sizeof cut && m <= n && memcmp(cut, name, m) == 0 && cut[m] == '\0');
    HOLDS(m == n || m >= sizeof cut - 3);
    size_t part = limefile_name_decode(cut, m, back, sizeof back);
    HOLDS(part <= len && memcmp(back, type, part) == 0);
}

/* Decoding an invalid encoding gives no more bytes than it has, and is stable. */
static void as_name(const char *name, size_t len)
{
    char *type = malloc(len + 1), small[8];
    size_t n = limefile_name_decode(name, len, type, len + 1);
    HOLDS(n <= len && type[n] == '\0');
    size_t m = limefile_name_decode(name, len, small, sizeof small);
    HOLDS(m == (n < sizeof small - 1 ? n : sizeof small - 1) && memcmp(small, type, m) == 0);
    if (n <= LIMEFILE_TYPE_BYTES)
        as_type(type, n);
    free(type);
}

/* Finds this name in a container with a record of this type (and one of another). */
static void find(const uint8_t *data, size_t size)
{
    size_t len = size < LIMEFILE_TYPE_BYTES - 1 ? size : LIMEFILE_TYPE_BYTES - 1;
    const uint8_t *nul = memchr(data, 0, len);
    if (nul)
        len = (size_t)(nul - data);
    struct limefile_memory memory;
    struct limefile_writer *writer;
    struct limefile_index *index;
    struct limefile_record r;
    uint64_t end;
    char *name = malloc(size + 1), of[LIMEFILE_NAME_MAX + 1];
    memcpy(name, data, size);
    name[size] = '\0';
    limefile_memory_init(&memory);
    HOLDS(limefile_writer_new(&memory.source, 0, &writer) == 0);
    HOLDS(limefile_writer_begin(writer, "other", 5, 0, true, false) == 0);
    HOLDS(limefile_writer_end(writer) == 0);
    HOLDS(limefile_writer_begin(writer, (const char *)data, len, 0, false, true) == 0);
    HOLDS(limefile_writer_end(writer) == 0);
    HOLDS(limefile_writer_finish(writer, &end) == 0);
    HOLDS(limefile_index_build(&memory.source, &index) == 0);
    if (limefile_name_find(index, name, &r) == 0)
        HOLDS(r.ordinal == 1 || r.ordinal == 2);
    HOLDS(limefile_index_get(index, 2, &r) == 0 && r.type_len == len);
    limefile_name_format(&r, of);
    HOLDS(limefile_name_find(index, of, &r) == 0 && r.ordinal == 2);
    size_t plain = limefile_name_encode((const char *)data, len, of, sizeof of);
    bool whole = plain < LIMEFILE_NAME_MAX - 3; /* the plain name, if it is not truncated */
    bool listed = strncmp(of, "001-", 4) == 0 || strncmp(of, "002-", 4) == 0;
    bool other = len == 5 && memcmp(data, "other", 5) == 0; /* twice: ambiguous */
    if (whole && !listed && !other && len > 0)
        HOLDS(limefile_name_find(index, of, &r) == 0 && r.ordinal == 2);
    if (other)
        HOLDS(limefile_name_find(index, of, &r) == LIMEFILE_E_NO_RECORD);
    limefile_index_free(index);
    limefile_writer_free(writer);
    limefile_memory_release(&memory);
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = size ? (const char *)data : "";
    as_type(text, size < LIMEFILE_TYPE_BYTES ? size : LIMEFILE_TYPE_BYTES);
    as_name(text, size);
    find((const uint8_t *)text, size);
    return 0;
}
