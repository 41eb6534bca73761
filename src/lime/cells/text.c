/* text.c - what a checkpoint is, in words for people */
#include "limecells.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct page {
    char *text;
    size_t n;
};

static void put(struct page *, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct page *page, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(page->text + page->n, LIMECELLS_TEXT_MAX - page->n, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < LIMECELLS_TEXT_MAX - page->n)
        page->n += (size_t)n;
}

static void put_field(struct page *page, const struct limecells_field *f)
{
    put(page,
        "    <field name=\"%s\" type=\"%s\" count=\"%" PRIu32 "\" offset=\"%" PRIu64 "\"/>\n",
        f->name, limefile_cells_type_word(f->type), f->count, f->offset);
}

size_t limefile_cells_text(const struct limecells *c, char text[LIMECELLS_TEXT_MAX])
{
    struct page page = {text, 0};
    put(&page, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<lemonCells>\n"
               "  <version>1.0</version>\n");
    put(&page, "  <step>%" PRId64 "</step>\n  <time>%.17g</time>\n", c->step, c->time);
    put(&page, "  <particles>%" PRIu64 "</particles>\n", c->particles);
    put(&page, "  <origin>%.17g %.17g %.17g</origin>\n", c->origin[0], c->origin[1],
        c->origin[2]);
    put(&page, "  <length>%.17g %.17g %.17g</length>\n", c->length[0], c->length[1],
        c->length[2]);
    put(&page, "  <periodic>%d %d %d</periodic>\n", c->periodic[0], c->periodic[1],
        c->periodic[2]);
    put(&page, "  <cells>%" PRIu64 " %" PRIu64 " %" PRIu64 "</cells>\n", c->cells[0],
        c->cells[1], c->cells[2]);
    put(&page, "  <byteOrder>%s</byteOrder>\n", c->big_endian ? "big" : "little");
    put(&page, "  <particle bytes=\"%" PRIu64 "\">\n", c->particle_bytes);
    for (uint32_t i = 0; i < c->fields; i++)
        put_field(&page, &c->field[i]);
    put(&page, "  </particle>\n</lemonCells>\n");
    return page.n;
}
