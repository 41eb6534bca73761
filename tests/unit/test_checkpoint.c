/* test_checkpoint.c - checkpoints of particles in containers: found, judged, verified */
#include "unit.h"

#include <math.h>

#include "bytes.h"
#include "limecheckpoint.h"

/* ---- a checkpoint in memory ---- */

struct particle {
    uint64_t id;
    double position[LIMECELLS_DIMS];
};

struct made {
    struct limecells is;
    struct limecells_cell *cell;
    struct particle *particle; /* as in the data */
};

/* Particles at random; the cells' order in the data is mixed if `mixed`. */
static struct made make(uint64_t x, uint64_t y, uint64_t z, uint64_t particles, bool mixed,
                        uint64_t seed)
{
    struct made m = {.is = {.particles = particles,
                            .particle_bytes = sizeof(struct particle),
                            .cells = {x, y, z},
                            .length = {1, 1, 1},
                            .big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
                            .fields = 2,
                            .field = {{"id", LIMECELLS_UINT64, 1, 0},
                                      {"position", LIMECELLS_FLOAT64, 3, 8}}}};
    uint64_t cells = limefile_cells_cells(&m.is), first = 0, at[LIMECELLS_DIMS];
    uint64_t *order = calloc(cells, sizeof *order);
    m.cell = calloc(cells, sizeof *m.cell);
    m.particle = calloc(particles + 1, sizeof *m.particle);
    for (uint64_t i = 0; i < cells; i++)
        order[i] = i;
    for (uint64_t i = cells - 1; mixed && i > 0; i--) {
        uint64_t j = chance(&seed) % (i + 1), other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    for (uint64_t i = 0; i < particles; i++)
        m.cell[chance(&seed) % cells].count++;
    for (uint64_t i = 0; i < cells; i++) {
        struct limecells_cell *c = &m.cell[order[i]];
        if (c->count == 0)
            continue;
        c->first = first;
        limefile_cells_at(&m.is, order[i], at);
        for (uint64_t k = first; k < first + c->count; k++) {
            m.particle[k].id = k;
            for (int d = 0; d < LIMECELLS_DIMS; d++)
                m.particle[k].position[d] = limefile_cells_edge(&m.is, d, at[d]) +
                                            (double)(chance(&seed) % 4) * 0x1p-20;
        }
        c->crc = limefile_cells_crc(0, &m.particle[first], c->count * sizeof *m.particle);
        first += c->count;
    }
    free(order);
    return m;
}

static void unmake(struct made *m)
{
    free(m->cell);
    free(m->particle);
}

static void add_record(struct bytes *b, const char *type, const void *data, size_t n,
                       unsigned flags)
{
    bytes_header(b, type, n, flags);
    bytes_add(b, data, n);
    bytes_fill(b, 0, (8 - n % 8) % 8);
}

static void add_text(struct bytes *b, const struct made *m, unsigned flags)
{
    char text[LIMECELLS_TEXT_MAX];
    size_t n = limefile_cells_text(&m->is, text);
    add_record(b, LIMECELLS_FORMAT_TYPE, text, n, flags);
}

static void add_index(struct bytes *b, struct made *m, unsigned flags)
{
    uint64_t n = limefile_cells_index_bytes(&m->is),
             header = limefile_cells_header_bytes(&m->is);
    uint64_t cells = limefile_cells_cells(&m->is);
    unsigned char *raw = malloc(n);
    for (uint64_t i = 0; i < cells; i++)
        limefile_cells_entry_encode(&m->cell[i], raw + header + i * LIMECELLS_ENTRY_BYTES);
    m->is.entries_crc = limefile_cells_crc(0, raw + header, cells * LIMECELLS_ENTRY_BYTES);
    limefile_cells_encode(&m->is, raw);
    add_record(b, LIMECELLS_INDEX_TYPE, raw, n, flags);
    free(raw);
}

static void add_data(struct bytes *b, const struct made *m, unsigned flags)
{
    add_record(b, LIMECELLS_DATA_TYPE, m->particle, m->is.particles * sizeof *m->particle,
               flags);
}

static struct bytes container_of(struct made *m)
{
    struct bytes b = {0};
    add_text(&b, m, MB);
    add_index(&b, m, 0);
    add_data(&b, m, ME);
    return b;
}

/* ---- what is found ---- */

enum { SEEN = 16 };

static struct found {
    unsigned checkpoints, findings;
    struct limecheckpoint last;
    int code[SEEN];
    uint64_t ordinal[SEEN], offset[SEEN];
    char why[SEEN][LIMECHECKPOINT_WHY_MAX];
    int end;
} found;

static void find(struct limefile_source *source)
{
    struct limefile_index *index = index_of(source);
    struct limecheckpoint_walk walk;
    struct limecheckpoint_findings findings;
    struct limefile_finding finding;
    uint64_t offset = 0;
    memset(&found, 0, sizeof found);
    limecheckpoint_walk_begin(&walk, source, index);
    struct limecheckpoint at;
    for (; (found.end = limecheckpoint_next(&walk, &at)) == 1; found.checkpoints++)
        found.last = at;
    assert_int_equal(found.end, 0);
    limecheckpoint_findings_begin(&findings, source, index);
    while (limecheckpoint_findings_next(&findings, &finding) == 1) {
        assert_true(found.findings < SEEN && finding.offset >= offset);
        offset = finding.offset;
        found.code[found.findings] = finding.code;
        found.ordinal[found.findings] = finding.ordinal;
        found.offset[found.findings] = offset;
        snprintf(found.why[found.findings++], LIMECHECKPOINT_WHY_MAX, "%s",
                 finding.why ? finding.why : "");
    }
    limefile_index_free(index);
}

static void find_in(const struct bytes *b)
{
    struct limefile_memory memory;
    limefile_memory_lend(&memory, b->at, b->n);
    find(&memory.source);
}

static void assert_found(unsigned i, int code, uint64_t ordinal, const char *why)
{
    assert_true(i < found.findings);
    assert_string_equal(limefile_error_word(found.code[i]), limefile_error_word(code));
    assert_int_equal(found.ordinal[i], ordinal);
    assert_string_equal(found.why[i], why);
    assert_false(limefile_is_fault(code));
}

/* The first checkpoint of a container; its records' types live as long as the index. */
static struct limefile_index *first_of(struct limefile_source *source, struct limecheckpoint *p)
{
    struct limefile_index *index = index_of(source);
    struct limecheckpoint_walk walk;
    limecheckpoint_walk_begin(&walk, source, index);
    assert_int_equal(limecheckpoint_next(&walk, p), 1);
    return index;
}

static void test_good(void **state)
{
    (void)state;
    struct made m = make(3, 2, 4, 100, true, 1);
    struct bytes b = container_of(&m);
    struct limefile_memory memory;
    struct limecheckpoint p;
    struct limecheckpoint_verdict verdict;
    find_in(&b);
    assert_int_equal(found.checkpoints, 1);
    assert_int_equal(found.findings, 0);
    limefile_memory_lend(&memory, b.at, b.n);
    struct limefile_index *index = first_of(&memory.source, &p);
    assert_true(p.known && p.counted && p.whole);
    assert_int_equal(p.text.ordinal, 1);
    assert_int_equal(p.index.ordinal, 2);
    assert_int_equal(p.data.ordinal, 3);
    assert_int_equal(p.is.particles, 100);
    uint64_t fewest = UINT64_MAX, most = 0, empty = 0;
    for (int i = 0; i < 24; i++) {
        fewest = m.cell[i].count < fewest ? m.cell[i].count : fewest;
        most = m.cell[i].count > most ? m.cell[i].count : most;
        empty += m.cell[i].count == 0;
    }
    assert_int_equal(p.fewest, fewest);
    assert_int_equal(p.most, most);
    assert_int_equal(p.empty, empty);
    assert_int_equal(limecheckpoint_verify(&memory.source, &p, NULL, NULL, &verdict), 0);
    assert_int_equal(verdict.bad, 0);
    assert_int_equal(verdict.cells, 24);
    assert_string_equal(verdict.why, "");
    limefile_index_free(index);
    bytes_free(&b);
    unmake(&m);
}

static void test_groups(void **state)
{
    (void)state;
    struct made m = make(2, 2, 2, 20, false, 2);
    struct bytes b = {0};
    add_record(&b, "other", "text", 4, MB | ME);
    add_text(&b, &m, MB);
    bytes_record(&b, "lemon-filler", 100, 0, 0);
    add_index(&b, &m, 0);
    bytes_record(&b, "lemon-filler", 10, 0, 0);
    add_data(&b, &m, 0);
    add_text(&b, &m, 0); /* a second one in the same message */
    add_index(&b, &m, 0);
    add_data(&b, &m, ME);
    find_in(&b);
    assert_int_equal(found.checkpoints, 2);
    assert_int_equal(found.findings, 0);
    assert_int_equal(found.last.text.ordinal, 7);
    assert_true(found.last.whole);
    bytes_free(&b);
    unmake(&m);
}

static void test_alone(void **state)
{
    (void)state;
    struct made m = make(2, 2, 2, 20, false, 3);
    struct bytes b = {0};
    add_text(&b, &m, MB);  /* 1: no index, as another text follows */
    add_text(&b, &m, 0);   /* 2: no index, as data follow */
    add_data(&b, &m, 0);   /* 3: no index */
    add_index(&b, &m, 0);  /* 4: no text, no data in its message */
    add_text(&b, &m, MB);  /* 5: its index is in another message */
    add_index(&b, &m, MB); /* 6: no text */
    add_data(&b, &m, 0);
    add_data(&b, &m, ME); /* 8: no index */
    find_in(&b);
    assert_int_equal(found.checkpoints, 7);
    assert_int_equal(found.findings, 8);
    assert_found(0, LIMEFILE_D_CELLS_TEXT, 1, "no index follows it");
    assert_found(1, LIMEFILE_D_CELLS_TEXT, 2, "no index follows it");
    assert_found(2, LIMEFILE_D_CELLS_INDEX_MISSING, 3, "");
    assert_found(3, LIMEFILE_D_CELLS_TEXT, 4, "there is none");
    assert_found(4, LIMEFILE_D_CELLS_DATA_MISSING, 4, "");
    assert_found(5, LIMEFILE_D_CELLS_TEXT, 5, "no index follows it");
    assert_found(6, LIMEFILE_D_CELLS_TEXT, 6, "there is none");
    assert_found(7, LIMEFILE_D_CELLS_INDEX_MISSING, 8, "");
    bytes_free(&b);
    unmake(&m);
}

static void test_length(void **state)
{
    (void)state;
    for (int more = -1; more <= 1; more += 2) {
        struct made m = make(2, 2, 2, 20, false, 4);
        struct bytes b = {0};
        add_text(&b, &m, MB);
        add_index(&b, &m, 0);
        uint64_t at = b.n;
        add_record(&b, LIMECELLS_DATA_TYPE, m.particle,
                   (size_t)(20 + more) * sizeof *m.particle, ME);
        find_in(&b);
        assert_int_equal(found.findings, 1);
        assert_found(0, LIMEFILE_D_CELLS_LENGTH, 3, "");
        assert_int_equal(found.offset[0], at + 8);
        assert_true(found.checkpoints == 1);
        bytes_free(&b);
        unmake(&m);
    }
}

/* ---- damaged indexes ---- */

static void find_index(struct made *m, void (*harm)(unsigned char *raw, size_t *n))
{
    struct bytes b = {0}, index = {0};
    add_text(&b, m, MB);
    add_index(&index, m, 0);
    size_t n = (size_t)get_be64(index.at + 8);
    harm(index.at + 144, &n);
    add_record(&b, LIMECELLS_INDEX_TYPE, index.at + 144, n, 0);
    add_data(&b, m, ME);
    find_in(&b);
    bytes_free(&b);
    bytes_free(&index);
}

static void cut_all(unsigned char *raw, size_t *n)
{
    (void)raw;
    *n = 0;
}

static void cut_fixed(unsigned char *raw, size_t *n)
{
    (void)raw;
    *n = LIMECELLS_FIXED_BYTES - 1;
}

static void cut_fields(unsigned char *raw, size_t *n)
{
    (void)raw;
    *n = LIMECELLS_FIXED_BYTES + 100;
}

static void cut_entries(unsigned char *raw, size_t *n)
{
    (void)raw;
    *n -= 1;
}

static void spoil_magic(unsigned char *raw, size_t *n)
{
    (void)n;
    raw[3] ^= 1;
}

static void spoil_header(unsigned char *raw, size_t *n)
{
    (void)n;
    raw[57] ^= 1;
}

static void spoil_entry(unsigned char *raw, size_t *n)
{
    raw[*n - 30] ^= 1;
}

static void test_damaged(void **state)
{
    (void)state;
    static const struct {
        void (*harm)(unsigned char *, size_t *);
        const char *why;
    } cases[] = {
        {cut_all, "it is shorter than its header"},
        {cut_fixed, "it is shorter than its header"},
        {cut_fields, "it is shorter than its header"},
        {cut_entries, "the record is not as long as its cells"},
        {spoil_magic, "it does not begin like an index of cells"},
        {spoil_header, "its header does not have the checksum that it says"},
        {spoil_entry, "the cells' entries do not have the checksum that the header says"},
    };
    struct made m = make(2, 3, 2, 50, true, 5);
    for (unsigned i = 0; i < COUNT(cases); i++) {
        find_index(&m, cases[i].harm);
        assert_int_equal(found.findings, 1);
        assert_found(0, LIMEFILE_D_CELLS_INDEX, 2, cases[i].why);
        assert_false(found.last.whole);
    }
    unmake(&m);
}

/* A cell whose range is beyond the data is named; of others that do not fit, none is. */
static void test_damaged_cell(void **state)
{
    (void)state;
    struct made m = make(2, 3, 2, 50, false, 5);
    m.cell[7].first += 1; /* (1, 0, 1) */
    for (int i = 0; i < 2; i++) {
        struct bytes b = container_of(&m);
        find_in(&b);
        assert_int_equal(found.findings, 1);
        assert_found(0, LIMEFILE_D_CELLS_INDEX, 2,
                     i ? "cell (1, 0, 1): it reaches beyond the data"
                       : "the cells overlap, or leave particles out");
        m.cell[7].first = 50;
        bytes_free(&b);
    }
    unmake(&m);
}

/* Ranges that are changed at random: what is found is what counting each particle finds. */
static void test_cover(void **state)
{
    (void)state;
    uint64_t seed = 11, bad_ones = 0;
    for (int times = 0; times < 5000; times++) {
        struct made m = make(1 + chance(&seed) % 4, 1 + chance(&seed) % 4,
                             1 + chance(&seed) % 4, chance(&seed) % 60, true, times);
        uint64_t cells = limefile_cells_cells(&m.is);
        unsigned owners[64] = {0};
        bool good = true;
        for (uint64_t changes = chance(&seed) % 4; changes; changes--) {
            struct limecells_cell *c = &m.cell[chance(&seed) % cells];
            const struct limecells_cell *other = &m.cell[chance(&seed) % cells];
            switch (chance(&seed) % 4) {
            case 0:
                c->first += chance(&seed) % 3 - 1;
                break;
            case 1:
                c->count += chance(&seed) % 3 - 1;
                break;
            case 2:
                *c = *other;
                break;
            default:
                c->first = other->first;
                break;
            }
        }
        for (uint64_t i = 0; i < cells && good; i++) {
            const struct limecells_cell *c = &m.cell[i];
            good = c->count
                       ? c->count <= m.is.particles && c->first <= m.is.particles - c->count
                       : !c->first && !c->crc;
            for (uint64_t k = 0; good && k < c->count; k++)
                owners[c->first + k]++;
        }
        for (uint64_t i = 0; i < m.is.particles && good; i++)
            good = owners[i] == 1;
        struct bytes b = container_of(&m);
        find_in(&b);
        assert_int_equal(found.findings, !good);
        bad_ones += !good;
        bytes_free(&b);
        unmake(&m);
    }
    assert_in_range(bad_ones, 1000, 4900);
}

/* ---- texts ---- */

static const char *text_finding(const struct made *m, const char *from, const char *to)
{
    char text[LIMECELLS_TEXT_MAX], changed[LIMECELLS_TEXT_MAX];
    struct made copy = *m;
    struct bytes b = {0};
    limefile_cells_text(&m->is, text);
    char *at = strstr(text, from);
    assert_non_null(at);
    int n = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to,
                     at + strlen(from));
    add_record(&b, LIMECELLS_FORMAT_TYPE, changed, (size_t)n, MB);
    add_index(&b, &copy, 0);
    add_data(&b, &copy, ME);
    find_in(&b);
    bytes_free(&b);
    assert_true(found.findings <= 1 && found.last.findings == found.findings &&
                found.last.whole);
    if (found.findings)
        assert_int_equal(found.code[0], LIMEFILE_D_CELLS_TEXT);
    return found.findings ? found.why[0] : "";
}

static void test_texts(void **state)
{
    (void)state;
    static const char *const good[][2] = {
        {"<version>", "<version>"},
        {"<step>0</step>", "<step> 0\n</step>"},
        {"</lemonCells>\n", "</lemonCells>"},
    };
    static const char *const bad[][2] = {
        {"<step>0</step>", "<step>1</step>"},
        {"<step>0</step>", ""},
        {"<step>0</step>", "<step>0</step><step>1</step>"},
        {"<origin>0 0 0<", "<origin>0 0<"},
        {"<cells>2 3 2<", "<cells>3 2 2<"},
        {"little", "big"},
        {"  </particle>", "<field name=\"more\"/></particle>"},
        {"</lemonCells>", ""},
        {"</lemonCells>", "</lemonCells>x"},
        {"</lemonCells>", "</lemonCellx>"},
    };
    struct made m = make(2, 3, 2, 50, true, 6);
    for (int times = 0; times < 3; times++) {
        const double time[] = {0, NAN, 0.1 + 0.2};
        m.is.time = time[times];
        for (unsigned i = 0; i < COUNT(good); i++)
            assert_string_equal(text_finding(&m, good[i][0], good[i][1]), "");
    }
    for (unsigned i = 0; i < COUNT(bad); i++)
        assert_string_equal(text_finding(&m, bad[i][0], bad[i][1]),
                            "it does not match the index");
    unmake(&m);
}

static void test_text_too_long(void **state)
{
    (void)state;
    struct made m = make(1, 1, 1, 1, false, 7);
    struct bytes b = {0};
    bytes_record(&b, LIMECELLS_FORMAT_TYPE, 1 << 20, ' ', MB);
    add_index(&b, &m, 0);
    add_data(&b, &m, ME);
    find_in(&b);
    assert_int_equal(found.findings, 1);
    assert_found(0, LIMEFILE_D_CELLS_TEXT, 1, "too long");
    bytes_free(&b);
    unmake(&m);
}

/* ---- particles ---- */

static struct limecheckpoint_verdict verify(struct made *m)
{
    struct bytes b = container_of(m);
    struct limefile_memory memory;
    struct limecheckpoint p;
    struct limecheckpoint_verdict verdict;
    limefile_memory_lend(&memory, b.at, b.n);
    struct limefile_index *index = first_of(&memory.source, &p);
    assert_int_equal(limecheckpoint_verify(&memory.source, &p, NULL, NULL, &verdict), 0);
    limefile_index_free(index);
    bytes_free(&b);
    return verdict;
}

static void seal(struct made *m, uint64_t cell)
{
    struct limecells_cell *c = &m->cell[cell];
    c->crc = limefile_cells_crc(0, &m->particle[c->first], c->count * sizeof *m->particle);
}

static void test_wrong_checksums(void **state)
{
    (void)state;
    struct made m = make(4, 4, 4, 1000, true, 8);
    const uint64_t wrong[] = {9, 33, 60};
    for (unsigned i = 0; i < COUNT(wrong); i++)
        m.cell[wrong[i]].crc ^= 1;
    struct limecheckpoint_verdict v = verify(&m);
    assert_int_equal(v.bad, 3);
    assert_int_equal(v.cells, 64);
    assert_string_equal(v.why, "the first is (0, 2, 1): wrong checksum");
    assert_true(v.at[0] == 0 && v.at[1] == 2 && v.at[2] == 1);
    unmake(&m);
}

static void test_misplaced(void **state)
{
    (void)state;
    static const struct {
        double x;
        const char *why;
    } cases[] = {
        {0.5, "is in another cell"},
        {NAN, "is outside of the domain"},
        {1.5, "is outside of the domain"},
        {-0.1, "is outside of the domain"},
        {INFINITY, "is outside of the domain"},
    };
    struct made m = make(4, 4, 4, 1000, true, 9);
    uint64_t at = m.cell[1].first; /* in (0, 0, 1) */
    double right = m.particle[at].position[1];
    char want[100];
    assert_true(m.cell[1].count > 0);
    for (unsigned i = 0; i < COUNT(cases); i++) {
        m.particle[at].position[1] = cases[i].x;
        seal(&m, 1);
        struct limecheckpoint_verdict v = verify(&m);
        assert_int_equal(v.bad, 1);
        snprintf(want, sizeof want, "the first is (0, 0, 1): particle %llu %s",
                 (unsigned long long)at, cases[i].why);
        assert_string_equal(v.why, want);
    }
    m.particle[at].position[1] = right;
    m.particle[at].position[2] = 1; /* the upper face: the last cell, or the first */
    seal(&m, 1);
    assert_int_equal(verify(&m).bad, 1);
    m.particle[at].position[2] = right;
    unmake(&m);
}

static void test_periodic_face(void **state)
{
    (void)state;
    struct made m = make(2, 2, 2, 200, false, 10);
    for (int last = 0; last < 2; last++)
        for (int periodic = 0; periodic < 2; periodic++) {
            struct particle *p = &m.particle[m.cell[last].first];
            double right = p->position[2];
            p->position[2] = 1;
            m.is.periodic[2] = periodic;
            seal(&m, (uint64_t)last);
            assert_int_equal(verify(&m).bad, last != periodic ? 0 : 1);
            p->position[2] = right;
            seal(&m, (uint64_t)last);
        }
    unmake(&m);
}

static void swap(void *at, size_t n)
{
    unsigned char *p = at, byte;
    for (size_t i = 0; i < n / 2; i++) {
        byte = p[i];
        p[i] = p[n - 1 - i];
        p[n - 1 - i] = byte;
    }
}

static void test_other_byte_order(void **state)
{
    (void)state;
    struct made m = make(3, 3, 3, 500, true, 11);
    for (uint64_t i = 0; i < 500; i++)
        for (int d = 0; d < LIMECELLS_DIMS; d++)
            swap(&m.particle[i].position[d], 8);
    for (uint64_t i = 0; i < 27; i++)
        if (m.cell[i].count)
            seal(&m, i);
    m.is.big_endian = !m.is.big_endian;
    assert_int_equal(verify(&m).bad, 0);
    m.is.big_endian = !m.is.big_endian;
    assert_true(verify(&m).bad > 20);
    unmake(&m);
}

/* More cells and more particles than are in memory at once. */
static void test_many(void **state)
{
    (void)state;
    struct made m = make(130, 100, 100, 3000000, true, 12);
    m.cell[0].crc ^= 1;
    uint64_t stray = m.cell[1299999].first; /* of the last cell: (129, 99, 99) */
    bool has = m.cell[1299999].count > 0;
    m.particle[stray].position[0] = has ? 0.25 : m.particle[stray].position[0];
    struct limecheckpoint_verdict v = verify(&m);
    assert_int_equal(v.bad, (m.cell[0].count > 0) + has);
    unmake(&m);
    m = make(1, 1, 1, 100000, false, 13);
    assert_int_equal(verify(&m).bad, 0);
    m.particle[99999].id ^= 1;
    assert_string_equal(verify(&m).why, "the first is (0, 0, 0): wrong checksum");
    unmake(&m);
}

static void test_none(void **state)
{
    (void)state;
    struct made m = make(2, 2, 2, 0, false, 14);
    struct limecheckpoint_verdict v = verify(&m);
    assert_int_equal(v.bad, 0);
    assert_int_equal(v.cells, 8);
    unmake(&m);
}

/* ---- reading fails ---- */

static bool stop(void *context, uint64_t more)
{
    *(uint64_t *)context += more;
    return false;
}

static bool go_on(void *context, uint64_t more)
{
    *(uint64_t *)context += more;
    return true;
}

static void test_progress(void **state)
{
    (void)state;
    struct made m = make(2, 2, 2, 100000, true, 15);
    struct bytes b = container_of(&m);
    struct limefile_memory memory;
    struct limecheckpoint p;
    struct limecheckpoint_verdict v;
    uint64_t bytes = 0;
    limefile_memory_lend(&memory, b.at, b.n);
    struct limefile_index *index = first_of(&memory.source, &p);
    assert_int_equal(limecheckpoint_verify(&memory.source, &p, go_on, &bytes, &v), 0);
    assert_int_equal(bytes, 3200000);
    bytes = 0;
    assert_int_equal(limecheckpoint_verify(&memory.source, &p, stop, &bytes, &v), -EINTR);
    assert_in_range(bytes, 1, 1 << 20);
    p.whole = false;
    assert_int_equal(limecheckpoint_verify(&memory.source, &p, NULL, NULL, &v),
                     LIMEFILE_E_STATE);
    limefile_index_free(index);
    bytes_free(&b);
    unmake(&m);
}

/* Whichever read it is. */
static void test_faulty(void **state)
{
    (void)state;
    struct made m = make(2, 2, 2, 50, true, 16);
    struct bytes b = container_of(&m);
    struct faulty faulty;
    struct limecheckpoint p;
    struct limecheckpoint_verdict v;
    int err = 0;
    unsigned failed = 0;
    for (unsigned fail_at = 1; fail_at < 100; fail_at++) {
        faulty_init(&faulty, &b);
        faulty.short_by = 1000;
        struct limefile_index *index = index_of(&faulty.source);
        struct limecheckpoint_walk walk;
        faulty.calls = 0;
        faulty.fail_at = fail_at;
        faulty.fail_for = 1;
        limecheckpoint_walk_begin(&walk, &faulty.source, index);
        err = limecheckpoint_next(&walk, &p);
        if (err == 1)
            err = limecheckpoint_verify(&faulty.source, &p, NULL, NULL, &v);
        failed += err == -EIO;
        assert_true(err == 0 || err == -EIO);
        assert_true(err || v.bad == 0);
        limefile_index_free(index);
    }
    assert_int_equal(err, 0);
    assert_in_range(failed, 5, 50);
    bytes_free(&b);
    unmake(&m);
}

static void test_shrunk(void **state)
{
    (void)state;
    struct made m = make(2, 2, 2, 50, true, 17);
    struct bytes b = container_of(&m);
    struct limefile_memory memory;
    struct limecheckpoint p;
    struct limecheckpoint_verdict v;
    limefile_memory_lend(&memory, b.at, b.n);
    struct limefile_index *index = first_of(&memory.source, &p);
    for (size_t size = b.n; size > 0; size -= size < 100 ? size : 100) {
        struct limecheckpoint_walk walk;
        struct limecheckpoint again;
        limefile_memory_lend(&memory, b.at, size - 1);
        assert_true(limecheckpoint_verify(&memory.source, &p, NULL, NULL, &v) ==
                        LIMEFILE_E_SHRUNK ||
                    size - 1 >= p.data.data_offset + p.data.bytes);
        limecheckpoint_walk_begin(&walk, &memory.source, index);
        int got = limecheckpoint_next(&walk, &again);
        assert_true(size - 1 >= p.data.header_offset ? got == 1 : got == LIMEFILE_E_SHRUNK);
    }
    limefile_index_free(index);
    bytes_free(&b);
    unmake(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_damaged_cell),
        cmocka_unit_test(test_cover),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_text_too_long),
        cmocka_unit_test(test_wrong_checksums),
        cmocka_unit_test(test_misplaced),
        cmocka_unit_test(test_periodic_face),
        cmocka_unit_test(test_other_byte_order),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_faulty),
        cmocka_unit_test(test_shrunk),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
