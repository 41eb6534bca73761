/* test_checkpoint.c - particle checkpoints: random indexes, very many cells, failing reads */
#include "unit.h"

#include "header_bytes.h"
#include "limecheckpoint.h"

/* ---- a checkpoint in memory ---- */

struct particle {
    uint64_t id;
    double position[LIMECELLS_DIMS];
};

struct made {
    struct limecells is;
    struct limecells_cell *cell;
    struct particle *particle; /* in the order of the data */
};

/* Random particles; the cells are in random order in the data if `mixed`. */
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
    uint64_t cells = limefile_cells_count(&m.is), first = 0, at[LIMECELLS_DIMS];
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
        limefile_cells_xyz(&m.is, order[i], at);
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
    size_t n = limefile_cells_format_text(&m->is, text);
    add_record(b, LIMECELLS_FORMAT_TYPE, text, n, flags);
}

static void add_index(struct bytes *b, struct made *m, unsigned flags)
{
    uint64_t n = limefile_cells_index_bytes(&m->is),
             header = limefile_cells_header_bytes(&m->is);
    uint64_t cells = limefile_cells_count(&m->is);
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

/* ---- findings ---- */

/* Returns the first checkpoint of a container; its types live as long as the index. */
static struct limefile_index *first_of(struct limefile_source *source, struct limecheckpoint *p)
{
    struct limefile_index *index = index_of(source);
    struct limecheckpoint_walk walk;
    limecheckpoint_walk_begin(&walk, source, index);
    assert_int_equal(limecheckpoint_next(&walk, p), 1);
    return index;
}

/* Entries with random changes give the same findings as a count of the particles. */
TEST(test_cover)
{
    uint64_t seed = 11, bad_ones = 0;
    for (int times = 0; times < 5000; times++) {
        struct made m = make(1 + chance(&seed) % 4, 1 + chance(&seed) % 4,
                             1 + chance(&seed) % 4, chance(&seed) % 60, true, times);
        uint64_t cells = limefile_cells_count(&m.is);
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
        struct limefile_memory memory;
        struct limecheckpoint p;
        limefile_memory_borrow(&memory, b.at, b.n);
        struct limefile_index *index = first_of(&memory.source, &p);
        assert_int_equal(p.is_complete, good);
        assert_int_equal(p.findings, !good);
        limefile_index_free(index);
        bad_ones += !good;
        bytes_free(&b);
        unmake(&m);
    }
    assert_in_range(bad_ones, 1000, 4900);
}

/* ---- particles ---- */

static struct limecheckpoint_verdict verify(struct made *m)
{
    struct bytes b = container_of(m);
    struct limefile_memory memory;
    struct limecheckpoint p;
    struct limecheckpoint_verdict verdict;
    limefile_memory_borrow(&memory, b.at, b.n);
    struct limefile_index *index = first_of(&memory.source, &p);
    assert_int_equal(limecheckpoint_verify(&memory.source, &p, NULL, NULL, &verdict), 0);
    limefile_index_free(index);
    bytes_free(&b);
    return verdict;
}

/* There are more cells and particles than memory holds at once. */
TEST(test_many)
{
    struct made m = make(130, 100, 100, 3000000, true, 12);
    m.cell[0].crc ^= 1;
    uint64_t stray = m.cell[1299999].first; /* in the last cell: (129, 99, 99) */
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

/* ---- failing reads ---- */

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

TEST(test_progress)
{
    struct made m = make(2, 2, 2, 100000, true, 15);
    struct bytes b = container_of(&m);
    struct limefile_memory memory;
    struct limecheckpoint p;
    struct limecheckpoint_verdict v;
    uint64_t bytes = 0;
    limefile_memory_borrow(&memory, b.at, b.n);
    struct limefile_index *index = first_of(&memory.source, &p);
    assert_int_equal(limecheckpoint_verify(&memory.source, &p, go_on, &bytes, &v), 0);
    assert_int_equal(bytes, 3200000);
    bytes = 0;
    assert_int_equal(limecheckpoint_verify(&memory.source, &p, stop, &bytes, &v), -EINTR);
    assert_in_range(bytes, 1, 1 << 20);
    p.is_complete = false;
    assert_int_equal(limecheckpoint_verify(&memory.source, &p, NULL, NULL, &v),
                     LIMEFILE_E_STATE);
    limefile_index_free(index);
    bytes_free(&b);
    unmake(&m);
}

/* Each read fails once. */
TEST(test_faulty)
{
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

TEST(test_shrunk)
{
    struct made m = make(2, 2, 2, 50, true, 17);
    struct bytes b = container_of(&m);
    struct limefile_memory memory;
    struct limecheckpoint p;
    struct limecheckpoint_verdict v;
    limefile_memory_borrow(&memory, b.at, b.n);
    struct limefile_index *index = first_of(&memory.source, &p);
    for (size_t size = b.n; size > 0; size -= size < 100 ? size : 100) {
        struct limecheckpoint_walk walk;
        struct limecheckpoint again;
        limefile_memory_borrow(&memory, b.at, size - 1);
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
