/* fuzz_cells.c - any bytes as a checkpoint of particles: invariants of its index and
 * particles. The first byte chooses: '0' an index, '1' one whose checksums are made right
 * first; anything else is a container. */
#include "fuzz.h"

#include "limecheckpoint.h"

enum { CELLS_MAX = 1 << 16 };

static void put32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

static void check_good(const struct limecells *c, size_t size)
{
    char text[LIMECELLS_TEXT_MAX];
    uint64_t at[LIMECELLS_DIMS], cells = limefile_cells_count(c);
    HOLDS(limefile_cells_check(c) == NULL);
    HOLDS(cells >= 1 && cells <= (uint64_t)LIMECELLS_CELLS_MAX);
    HOLDS(limefile_cells_index_bytes(c) == size && limefile_cells_field(c, "position"));
    limefile_cells_xyz(c, cells - 1, at);
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        double low = limefile_cells_edge(c, d, at[d]), end = c->origin[d] + c->length[d];
        HOLDS(at[d] == c->cells[d] - 1 && limefile_cells_locate(c, d, low) == (int64_t)at[d]);
        HOLDS(limefile_cells_locate(c, d, c->origin[d]) == 0);
        HOLDS(limefile_cells_locate(c, d, end) == (c->periodic[d] ? 0 : (int64_t)at[d]));
    }
    size_t n = limefile_cells_format_text(c, text);
    HOLDS(n == strlen(text) && n > 100 && text[n - 1] == '\n');
}

/* Entries give the same result in any division; good ones have all particles. */
static void check_entries(const struct limecells *c, const uint8_t *raw)
{
    struct limecells_checker whole, parts;
    uint64_t particles = 0, cells = limefile_cells_count(c);
    if (cells > CELLS_MAX)
        return;
    limefile_cells_check_begin(&whole, c);
    limefile_cells_check_add(&whole, raw, cells);
    limefile_cells_check_end(&whole);
    limefile_cells_check_begin(&parts, c);
    for (uint64_t i = 0; i < cells; i++) {
        struct limecells_cell cell;
        limefile_cells_check_add(&parts, raw + i * LIMECELLS_ENTRY_BYTES, 1);
        if (!limefile_cells_entry_decode(c, raw + i * LIMECELLS_ENTRY_BYTES, &cell))
            particles += cell.count;
    }
    HOLDS(limefile_cells_check_end(&parts) == whole.fault && parts.bad_cell == whole.bad_cell);
    HOLDS(whole.bad_cell <= cells && (whole.fault || particles == c->particles));
}

static void as_index(const uint8_t *raw, size_t size)
{
    struct limecells c;
    uint64_t bytes;
    if (size < LIMECELLS_FIXED_BYTES || limefile_cells_decode_length(raw, &bytes) ||
        bytes > size)
        return;
    HOLDS(bytes <= LIMECELLS_FIXED_BYTES + LIMECELLS_FIELDS_MAX * LIMECELLS_FIELD_BYTES);
    if (limefile_cells_decode(raw, bytes, size, &c))
        return;
    unsigned char again[LIMECELLS_FIXED_BYTES + LIMECELLS_FIELDS_MAX * LIMECELLS_FIELD_BYTES];
    limefile_cells_encode(&c, again);
    HOLDS(memcmp(raw, again, 132) == 0); /* without its checksum */
    check_good(&c, size);
    check_entries(&c, raw + bytes);
}

static void as_sealed_index(const uint8_t *data, size_t size)
{
    uint64_t bytes;
    unsigned char *raw = malloc(size + 1);
    memcpy(raw, data, size);
    if (size >= LIMECELLS_FIXED_BYTES && !limefile_cells_decode_length(raw, &bytes) &&
        bytes <= size) {
        put32(raw + 128, limefile_cells_crc(0, raw + bytes, size - bytes));
        put32(raw + 132, 0);
        put32(raw + 132, limefile_cells_crc(0, raw, bytes));
        as_index(raw, size);
    }
    free(raw);
}

static void check_checkpoint(struct limefile_source *source, const struct limecheckpoint *p)
{
    struct limecheckpoint_verdict v;
    HOLDS(p->text.ordinal || p->index.ordinal || p->data.ordinal);
    HOLDS(!p->has_header || p->index.ordinal);
    HOLDS(!p->entries_valid || (p->has_header && p->fewest_in_cell <= p->most_in_cell &&
                                p->most_in_cell <= p->cells.particles));
    HOLDS(!p->is_complete ||
          (p->entries_valid && p->data.bytes == limefile_cells_data_bytes(&p->cells)));
    int err = limecheckpoint_verify(source, p, NULL, NULL, &v);
    HOLDS(err == (p->is_complete ? 0 : LIMEFILE_E_STATE));
    HOLDS(v.bad <= v.cells && strlen(v.why) < sizeof v.why && !v.bad == !v.why[0]);
}

static void as_container(const uint8_t *data, size_t size)
{
    struct limefile_memory memory;
    struct limefile_index *index;
    struct limecheckpoint_walk walk;
    struct limecheckpoint_findings findings;
    struct limecheckpoint p;
    struct limefile_finding finding;
    uint64_t count = 0, reported = 0, offset = 0;
    limefile_memory_borrow(&memory, data, size);
    HOLDS(limefile_index_build(&memory.source, &index) == 0);
    limecheckpoint_walk_begin(&walk, &memory.source, index);
    while (limecheckpoint_next(&walk, &p) == 1) {
        HOLDS(p.findings <= LIMECHECKPOINT_FINDINGS && (p.findings || p.is_complete));
        count += p.findings;
        check_checkpoint(&memory.source, &p);
    }
    limecheckpoint_findings_begin(&findings, &memory.source, index);
    for (; limecheckpoint_findings_next(&findings, &finding) == 1; reported++) {
        char text[512];
        HOLDS(finding.offset >= offset && finding.code >= LIMEFILE_D_CELLS_TEXT);
        HOLDS(limefile_finding_text(&finding, text, sizeof text) < (int)sizeof text);
        offset = finding.offset;
    }
    HOLDS(reported == count);
    limefile_index_free(index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const uint8_t *, size_t) = {as_index, as_sealed_index};
    if (size && data[0] >= '0' && data[0] <= '1')
        readers[data[0] - '0'](data + 1, size - 1);
    else
        as_container(data, size);
    return 0;
}
