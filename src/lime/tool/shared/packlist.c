/* packlist.c - the list in memory */
#include "packlist.h"
#include "container.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

struct pack_entry {
    size_t text; /* subscript of texts: the type, NUL-terminated, and so the path ... */
    uint8_t type_len;
    bool named; /* ... but where it follows from the type */
    bool mb, me;
};

/* What 'lime unpack' calls the i-th one. */
static void name_of(size_t i, const char *type, size_t type_len,
                    char name[LIMEFILE_NAME_MAX + 1])
{
    const struct limefile_record record = {
        .ordinal = i + 1,
        .type = type,
        .type_len = (uint8_t)type_len,
    };
    limefile_name_of(&record, name);
}

static bool reserve(struct packlist *list, size_t text)
{
    if (list->count == list->capacity) {
        size_t more = list->capacity + list->capacity / 2 + 16;
        void *bigger = reallocarray(list->entries, more, sizeof *list->entries);
        if (!bigger)
            return false;
        list->entries = bigger;
        list->capacity = more;
    }
    if (list->text_capacity - list->text_size < text) {
        size_t more = list->text_capacity + list->text_capacity / 2 + text + 64;
        char *bigger = realloc(list->texts, more);
        if (!bigger)
            return false;
        list->texts = bigger;
        list->text_capacity = more;
    }
    return true;
}

bool packlist_add(struct packlist *list, const char *path, const char *type, size_t type_len,
                  bool mb, bool me)
{
    char name[LIMEFILE_NAME_MAX + 1];
    size_t path_size = strlen(path) + 1;
    name_of(list->count, type, type_len, name);
    bool named = strcmp(path, name) == 0;
    if (!reserve(list, type_len + 1 + path_size)) {
        message(NULL, "out of memory");
        return false;
    }
    list->entries[list->count++] = (struct pack_entry){
        .text = list->text_size,
        .type_len = (uint8_t)type_len,
        .named = named,
        .mb = mb,
        .me = me,
    };
    char *to = list->texts + list->text_size;
    memcpy(to, type, type_len);
    to[type_len] = '\0';
    list->text_size += type_len + 1;
    if (!named) {
        memcpy(to + type_len + 1, path, path_size);
        list->text_size += path_size;
    }
    return true;
}

void packlist_get(const struct packlist *list, size_t i, struct pack_item *out)
{
    const struct pack_entry *entry = &list->entries[i];
    out->type = list->texts + entry->text;
    out->type_len = entry->type_len;
    out->mb = entry->mb;
    out->me = entry->me;
    out->path = entry->named ? out->name : out->type + out->type_len + 1;
    if (entry->named)
        name_of(i, out->type, out->type_len, out->name);
}

void packlist_release(struct packlist *list)
{
    free(list->entries);
    free(list->texts);
    *list = (struct packlist){0};
}

uint64_t packlist_mend(struct packlist *list)
{
    uint64_t changed = 0;
    bool before_ends = true;
    for (size_t i = 0; i < list->count; i++) {
        struct pack_entry *entry = &list->entries[i];
        bool next_begins = i + 1 == list->count || list->entries[i + 1].mb;
        bool mb = entry->mb || before_ends, me = entry->me || next_begins;
        changed += mb != entry->mb || me != entry->me;
        entry->mb = mb;
        entry->me = before_ends = me;
    }
    return changed;
}

bool packlist_type_is_bad(const char *path, const char *type, size_t type_len)
{
    char shown[TYPE_SHOWN_MAX];
    type_shown(type, type_len, shown);
    if (type_len == 0 || type_len > LIMEFILE_TYPE_BYTES - 1) {
        message(path, "type '%s': it has %zu bytes; a record type has 1 to %d", shown, type_len,
                LIMEFILE_TYPE_BYTES - 1);
        return true;
    }
    if (limefile_type_printable(type, type_len) < type_len)
        message(path, "type '%s': warning: control or non-ASCII bytes in it", shown);
    return false;
}
