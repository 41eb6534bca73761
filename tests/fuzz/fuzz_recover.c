/* fuzz_recover.c - any bytes as the remains of a crash, for recovery and an editor */
#include "fuzz.h"

#include "limeedit.h"

static int keep(void *context, uint64_t from, uint64_t size)
{
    unsigned *kept = context;
    HOLDS(from < size);
    ++*kept;
    return 0;
}

static struct limefile_index *index_of(struct limefile_memory *memory)
{
    struct limefile_index *index;
    HOLDS(limefile_index_build(&memory->source, &index) == 0);
    return index;
}

static struct limefile_memory copy_of(const uint8_t *data, size_t size)
{
    struct limefile_memory memory;
    limefile_memory_init(&memory);
    HOLDS(limefile_write_full(&memory.source, data, size, 0) == 0);
    return memory;
}

static bool same(const struct limefile_memory *memory, const uint8_t *data, size_t size)
{
    return memory->size == size && (size == 0 || memcmp(memory->data, data, size) == 0);
}

/* The current records are the first ones of those before. Completing a replacement changes the
 * data of one record, and the length of the last one. */
static void compare(struct limefile_memory *now, const uint8_t *data, size_t size)
{
    struct limefile_memory lent;
    struct limefile_record r, was;
    struct limefile_survey survey;
    limefile_memory_borrow(&lent, data, size);
    HOLDS(limefile_survey_scan(&lent.source, NULL, NULL, &survey) == 0);
    if (survey.tail == LIMEFILE_TAIL_REDO)
        return;
    struct limefile_index *new = index_of(now), *old = index_of(&lent);
    for (uint64_t i = 1; limefile_index_get(new, i, &r) == 0; i++) {
        HOLDS(limefile_index_get(old, i, &was) == 0 && was.header_offset == r.header_offset);
        HOLDS(was.bytes == r.bytes && strcmp(was.type, r.type) == 0);
        HOLDS(r.bytes == 0 ||
              !memcmp(now->data + r.data_offset, data + r.data_offset, r.bytes));
    }
    limefile_index_free(new);
    limefile_index_free(old);
}

/* Adds a record and removes it. */
static void edit(struct limefile_memory *memory, const uint8_t *text, size_t n)
{
    struct limefile_editor *editor;
    struct limefile_last_record last;
    struct limefile_index *index = index_of(memory);
    HOLDS(limefile_editor_new(&memory->source, index, &editor) == 0);
    struct limefile_memory before = copy_of(memory->data, memory->size); /* with its padding */
    HOLDS(limefile_append_begin(editor, "new", 3) == 0);
    HOLDS(limefile_editor_last(editor, &last) == 0);
    HOLDS(limefile_write_full(&memory->source, text, n, last.data_offset) == 0);
    HOLDS(limefile_commit(editor, n) == 0);
    HOLDS(limefile_resize(editor, n, n / 2) == 0 && limefile_resize(editor, n / 2, n) == 0);
    HOLDS(limefile_commit(editor, n) == 0);
    struct limefile_index *more = index_of(memory);
    HOLDS(!limefile_index_fault(more));
    HOLDS(limefile_index_deviations(more) <= limefile_index_deviations(index));
    HOLDS(limefile_index_count(more) == limefile_index_count(index) + 1);
    HOLDS(limefile_remove_last(editor) == 0);
    /* Writing the last record's ME flag clears an unknown mark. */
    HOLDS(memory->size == before.size);
    HOLDS(limefile_index_deviations(index) > 0 || same(memory, before.data, before.size));
    limefile_editor_free(editor);
    limefile_index_free(index);
    limefile_index_free(more);
    limefile_memory_release(&before);
}

/* Deviations that no crash leaves, in padding for example, are unchanged. */
static void check_good(struct limefile_memory *memory, const uint8_t *data, size_t size)
{
    struct limefile_index *index = index_of(memory);
    HOLDS(!limefile_index_fault(index));
    limefile_index_free(index);
    struct limefile_memory again = copy_of(memory->data, memory->size);
    HOLDS(limefile_recover(&again.source, NULL, NULL, NULL) == 0);
    HOLDS(same(&again, memory->data, memory->size));
    limefile_memory_release(&again);
    edit(memory, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned kept = 0;
    for (int with_keep = 0; with_keep < 2; with_keep++) {
        struct limefile_memory memory = copy_of(data, size);
        int err = limefile_recover(&memory.source, NULL, with_keep ? keep : NULL,
                                   with_keep ? &kept : NULL);
        HOLDS(!limefile_is_fault(err) || same(&memory, data, size));
        if (err != LIMEFILE_E_MAGIC && err != LIMEFILE_E_VERSION)
            compare(&memory, data, size);
        if (err == 0)
            check_good(&memory, data, size);
        limefile_memory_release(&memory);
    }
    HOLDS(kept <= 1);
    return 0;
}
