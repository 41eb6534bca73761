/* packlist.c - the list in memory */
#include "packlist.h"
#include "container.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

bool packlist_add(struct packlist *list, const char *path, const char *type, size_t type_len,
                  bool mb, bool me)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity * 2 + 16;
        struct pack_item *items = reallocarray(list->items, capacity, sizeof *items);
        if (items) {
            list->items = items;
            list->capacity = capacity;
        }
    }
    struct pack_item item = {strdup(path), strndup(type, type_len), type_len, mb, me};
    if (list->count == list->capacity || !item.path || !item.type) {
        free(item.path);
        free(item.type);
        message(NULL, "out of memory");
        return false;
    }
    list->items[list->count++] = item;
    return true;
}

void packlist_release(struct packlist *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].path);
        free(list->items[i].type);
    }
    free(list->items);
    *list = (struct packlist){0};
}

uint64_t packlist_mend(struct packlist *list)
{
    uint64_t changed = 0;
    bool before_ends = true;
    for (size_t i = 0; i < list->count; i++) {
        struct pack_item *item = &list->items[i];
        bool next_begins = i + 1 == list->count || list->items[i + 1].mb;
        bool mb = item->mb || before_ends, me = item->me || next_begins;
        changed += mb != item->mb || me != item->me;
        item->mb = mb;
        item->me = before_ends = me;
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
    for (size_t i = 0; i < type_len; i++)
        if ((unsigned char)type[i] < 0x20 || (unsigned char)type[i] > 0x7e) {
            message(path, "type '%s': warning: control or non-ASCII bytes in it", shown);
            break;
        }
    return false;
}
