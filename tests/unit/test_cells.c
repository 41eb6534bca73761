/* test_cells.c - valid checkpoints of particles, their index, and the rule for faces */
#include "unit.h"

#include <float.h>
#include <math.h>

#include "limecells.h"

static const struct limecells_field usual[] = {
    {"id", LIMECELLS_UINT64, 1, 0},
    {"component", LIMECELLS_UINT32, 1, 8},
    {"position", LIMECELLS_FLOAT64, 3, 16},
    {"velocity", LIMECELLS_FLOAT64, 3, 40},
};

/* 10 particles in 2 x 3 x 4 cells. */
static struct limecells good(void)
{
    struct limecells c = {
        .particles = 10,
        .particle_bytes = 64,
        .cells = {2, 3, 4},
        .origin = {-1, 0, 5},
        .length = {2, 3, 1},
        .periodic = {true, false, true},
        .step = -7,
        .time = 2.5,
        .fields = COUNT(usual),
    };
    memcpy(c.field, usual, sizeof usual);
    return c;
}

static void assert_why(const char *have, const char *want)
{
    if (!want)
        assert_null(have);
    else
        assert_non_null(have);
    if (want)
        assert_string_equal(have, want);
}

/* ---- types ---- */

TEST(test_types)
{
    static const struct {
        const char *word;
        size_t bytes;
    } types[] = {{NULL, 0},     {"int32", 4},   {"uint32", 4},  {"int64", 8},
                 {"uint64", 8}, {"float32", 4}, {"float64", 8}, {NULL, 0}};
    for (unsigned i = 0; i < COUNT(types); i++) {
        assert_int_equal(limefile_cells_type_bytes((enum limecells_type)i), types[i].bytes);
        assert_why(limefile_cells_type_word((enum limecells_type)i), types[i].word);
    }
    assert_int_equal(limefile_cells_type_bytes((enum limecells_type)UINT32_MAX), 0);
    assert_null(limefile_cells_type_word((enum limecells_type)UINT32_MAX));
}

/* ---- limecells_check ---- */

#define CHECK(want, ...)                            \
    do {                                            \
        struct limecells c = good();                \
        __VA_ARGS__;                                \
        assert_why(limefile_cells_check(&c), want); \
    } while (0)

TEST(test_check_particle)
{
    const char *size = "a particle must have 1 byte to 1 MiB";
    const char *many = "there are more particles than a file can hold";
    CHECK(NULL, (void)c);
    CHECK(NULL, c.particles = 0);
    CHECK(size, c.particle_bytes = 0);
    CHECK(size, c.particle_bytes = LIMECELLS_PARTICLE_MAX + 1);
    CHECK(NULL, c.particle_bytes = LIMECELLS_PARTICLE_MAX);
    CHECK(NULL, c.particles = INT64_MAX / 64);
    CHECK(many, c.particles = INT64_MAX / 64 + 1);
    CHECK(many, c.particles = UINT64_MAX);
}

TEST(test_check_fields)
{
    const char *how_many = "a particle has 1 to 64 fields";
    const char *numbers = "a field has no numbers, or too many";
    const char *beyond = "a field reaches beyond the particle";
    const char *position = "a particle needs a position: three floating-point numbers";
    const char *id = "an id must be one integer";
    CHECK(how_many, c.fields = 0);
    CHECK(how_many, c.fields = LIMECELLS_FIELDS_MAX + 1);
    CHECK("a field has an unknown type", c.field[1].type = (enum limecells_type)0);
    CHECK("a field has an unknown type", c.field[1].type = (enum limecells_type)7);
    CHECK("a field has an unknown type", c.field[1].type = (enum limecells_type)UINT32_MAX);
    CHECK(numbers, c.field[3].count = 0);
    CHECK(numbers, c.field[3].count = UINT32_MAX);
    CHECK(beyond, c.field[3].count = 4);
    CHECK(beyond, c.field[3].offset = 41);
    CHECK(beyond, c.field[3].offset = 65);
    CHECK(beyond, c.field[3].offset = UINT64_MAX);
    CHECK(beyond, c.particle_bytes = 63);
    CHECK("two fields have the same name", strcpy(c.field[3].name, "position"));
    CHECK("two fields overlap", c.field[3].offset = 39);
    CHECK("two fields overlap", c.field[1].offset = 7);
    CHECK(NULL, c.field[1].offset = 12);
    CHECK(position, strcpy(c.field[2].name, "Position"));
    CHECK(position, c.field[2].count = 2);
    CHECK(position, c.field[2].type = LIMECELLS_INT64);
    CHECK(NULL, c.field[2].type = LIMECELLS_FLOAT32);
    CHECK(id, c.field[0].type = LIMECELLS_FLOAT64);
    CHECK(id, (c.field[0].type = LIMECELLS_INT32, c.field[0].count = 2));
    CHECK(NULL, strcpy(c.field[0].name, "number"));
}

TEST(test_check_names)
{
    const char *length = "a field's name must have 1 to 63 bytes";
    const char *bytes = "a field's name may contain only letters, digits, - and _";
    CHECK(length, c.field[1].name[0] = '\0');
    CHECK(length, memset(c.field[1].name, 'a', sizeof c.field[1].name));
    CHECK(NULL, (memset(c.field[1].name, 'a', LIMECELLS_NAME_MAX),
                 c.field[1].name[LIMECELLS_NAME_MAX] = '\0'));
    CHECK(NULL, strcpy(c.field[1].name, "Az09-_"));
    for (const char *bad = " /<&\"'.\t\n\033\177\200\377"; *bad; bad++)
        CHECK(bytes, c.field[1].name[2] = *bad);
}

TEST(test_check_domain)
{
    const char *finite = "the domain is not finite", *volume = "the domain has no volume";
    const char *cells = "the number of cells must be 1 to 2^40";
    const char *narrow = "the cells are too narrow for numbers of 64 bits";
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        CHECK(finite, c.origin[d] = NAN);
        CHECK(finite, c.origin[d] = -INFINITY);
        CHECK(finite, c.length[d] = NAN);
        CHECK(finite, c.length[d] = INFINITY);
        CHECK(finite, c.length[d] = DBL_MAX);
        CHECK(finite, (c.origin[d] = DBL_MAX, c.length[d] = DBL_MAX / 2));
        CHECK(volume, c.length[d] = 0);
        CHECK(volume, c.length[d] = -1);
        CHECK(volume, c.origin[d] = 1e30);
        CHECK(cells, c.cells[d] = 0);
        CHECK(cells, c.cells[d] = UINT64_MAX);
        CHECK(narrow, (c.origin[d] = 0, c.length[d] = 1e-310));
        CHECK(narrow, (c.origin[d] = 0x1p40, c.length[d] = 1));
        CHECK(narrow, (c.origin[d] = -0x1p40, c.length[d] = 1));
        CHECK(narrow, (c.origin[d] = 1, c.length[d] = DBL_EPSILON));
        CHECK(NULL, (c.origin[d] = 0x1p40, c.length[d] = 8));
        CHECK(NULL, (c.origin[d] = -DBL_MAX / 2, c.length[d] = DBL_MAX / 2));
        CHECK(NULL, (c.origin[d] = 0, c.length[d] = 1e-306));
    }
    CHECK(NULL, (c.cells[0] = 1 << 20, c.cells[1] = 1 << 20, c.cells[2] = 1));
    CHECK(cells, (c.cells[0] = 1 << 20, c.cells[1] = 1 << 20, c.cells[2] = 2));
    CHECK(NULL,
          (c.origin[0] = 0, c.cells[0] = LIMECELLS_CELLS_MAX, c.cells[1] = c.cells[2] = 1));
    CHECK(cells, (c.cells[0] = c.cells[1] = c.cells[2] = UINT64_C(1) << 32));
}

/* ---- checksums ---- */

TEST(test_crc)
{
    static const char digits[] = "123456789";
    assert_int_equal(limefile_cells_crc(0, digits, 9), 0xcbf43926);
    assert_int_equal(limefile_cells_crc(0, "", 0), 0);
    for (size_t n = 0; n <= 9; n++) {
        uint32_t first = limefile_cells_crc(0, digits, n);
        uint32_t second = limefile_cells_crc(0, digits + n, 9 - n);
        assert_int_equal(limefile_cells_crc(first, digits + n, 9 - n), 0xcbf43926);
        assert_int_equal(limefile_cells_crc_combine(first, second, 9 - n), 0xcbf43926);
    }
    unsigned char *zeros = calloc(1, 1 << 20);
    uint32_t all = limefile_cells_crc(0, digits, 9);
    assert_int_equal(
        limefile_cells_crc_combine(all, limefile_cells_crc(0, zeros, 1 << 20), 1 << 20),
        limefile_cells_crc(all, zeros, 1 << 20));
    free(zeros);
}

/* ---- the index's header ---- */

enum { HEADER = LIMECELLS_FIXED_BYTES + COUNT(usual) * LIMECELLS_FIELD_BYTES };

/* Updates the checksums, so that only the change itself is reported. */
static void seal(unsigned char raw[HEADER])
{
    memset(raw + 132, 0, 4);
    uint32_t crc = limefile_cells_crc(0, raw, HEADER);
    for (int i = 0; i < 4; i++)
        raw[132 + i] = (unsigned char)(crc >> (24 - 8 * i));
}

#define DECODE(want, ...)                                                   \
    do {                                                                    \
        struct limecells c = good(), out;                                   \
        unsigned char raw[HEADER];                                          \
        uint64_t header = HEADER, record = limefile_cells_index_bytes(&c);  \
        limefile_cells_encode(&c, raw);                                     \
        __VA_ARGS__;                                                        \
        assert_why(limefile_cells_decode(raw, header, record, &out), want); \
    } while (0)

TEST(test_decode)
{
    const char *length = "the header's length does not match its fields";
    const char *crc = "wrong checksum of the header";
    const char *record_length = "the record's length does not match its cells";
    DECODE(NULL, (void)0);
    DECODE("it is shorter than its header", header = LIMECELLS_FIXED_BYTES - 1);
    DECODE("unknown version", raw[8] = 1);
    DECODE(length, raw[111] = 5);
    DECODE(length, raw[111] = 65);
    DECODE(length, raw[15]++);
    DECODE("wrong length of the header", header--);
    DECODE("wrong length of the header", header = LIMECELLS_FIXED_BYTES);
    for (size_t i = 16; i < HEADER; i++)
        if (i < 108 || i >= 112) /* the number of fields */
            DECODE(crc, raw[i] ^= 4);
    DECODE("unknown flags", (raw[104] |= 128, seal(raw)));
    DECODE("a field's name is too long",
           (memset(raw + LIMECELLS_FIXED_BYTES, 'a', 64), seal(raw)));
    DECODE("a field's name must have 1 to 63 bytes",
           (memset(raw + LIMECELLS_FIXED_BYTES, 0, 64), seal(raw)));
    DECODE("a particle has 1 to 64 fields",
           (memset(raw + 108, 0, 4), raw[14] = 0, raw[15] = LIMECELLS_FIXED_BYTES,
            header = LIMECELLS_FIXED_BYTES, memset(raw + 132, 0, 4), ({
                uint32_t sum = limefile_cells_crc(0, raw, LIMECELLS_FIXED_BYTES);
                for (int i = 0; i < 4; i++)
                    raw[132 + i] = (unsigned char)(sum >> (24 - 8 * i));
            })));
    DECODE(record_length, record++);
    DECODE(record_length, record--);
    DECODE(record_length, record = 0);
}

/* ---- entries ---- */

enum { CELLS = 24 };

/* Cells 0, 2, 4, ... have one particle each, except for the last two. */
static struct limecells entries(struct limecells_cell cell[CELLS])
{
    struct limecells c = good();
    for (uint64_t i = 0; i < CELLS; i++)
        cell[i] = i % 2 == 0 && i < 20 ? (struct limecells_cell){i / 2, 1, (uint32_t)i}
                                       : (struct limecells_cell){0, 0, 0};
    return c;
}

/* Checks the entries `step` at a time. */
static const char *check_entries(struct limecells *c, const struct limecells_cell cell[CELLS],
                                 int reserved, int step, uint64_t *bad)
{
    unsigned char raw[CELLS * LIMECELLS_ENTRY_BYTES];
    struct limecells_checker k;
    for (int i = 0; i < CELLS; i++)
        limefile_cells_entry_encode(&cell[i], raw + i * LIMECELLS_ENTRY_BYTES);
    if (reserved >= 0)
        raw[reserved * LIMECELLS_ENTRY_BYTES + 23] = 1;
    if (!c->entries_crc)
        c->entries_crc = limefile_cells_crc(0, raw, sizeof raw);
    limefile_cells_check_begin(&k, c);
    for (int i = 0; i < CELLS; i += step)
        limefile_cells_check_add(&k, raw + i * LIMECELLS_ENTRY_BYTES, (size_t)step);
    const char *why = limefile_cells_check_end(&k);
    *bad = k.bad_cell;
    return why;
}

#define ENTRIES(want, number, ...)                                           \
    do {                                                                     \
        struct limecells_cell cell[CELLS];                                   \
        struct limecells c = entries(cell);                                  \
        int reserved = -1;                                                   \
        uint64_t bad;                                                        \
        __VA_ARGS__;                                                         \
        for (int step = 1; step <= CELLS; step *= 2 + (step == 8)) {         \
            const char *why = check_entries(&c, cell, reserved, step, &bad); \
            assert_why(why, want);                                           \
            assert_int_equal(bad, number);                                   \
        }                                                                    \
    } while (0)

TEST(test_entries)
{
    const char *beyond = "it reaches beyond the data";
    const char *empty = "it has no particles, but an offset or a checksum";
    const char *cover = "the cells overlap or leave out particles";
    ENTRIES(NULL, CELLS, (void)reserved);
    ENTRIES("wrong checksum of the cells' entries", CELLS, c.entries_crc = 1);
    ENTRIES("reserved bytes of its entry are not zero", 5, reserved = 5);
    ENTRIES(empty, 1, cell[1].first = 1);
    ENTRIES(empty, 3, cell[3].crc = 1);
    ENTRIES(beyond, 4, cell[4].count = 9);
    ENTRIES(beyond, 4, cell[4].count = UINT64_MAX);
    ENTRIES(beyond, 6, cell[6].first = UINT64_MAX);
    ENTRIES(beyond, 6, cell[6].first = 10);
    ENTRIES(cover, CELLS, cell[8].first = 3);
    ENTRIES(cover, CELLS, cell[4].count = 2);
    ENTRIES(cover, CELLS, cell[0] = (struct limecells_cell){0, 0, 0});
    ENTRIES(cover, CELLS, cell[10] = (struct limecells_cell){0, 0, 0});
    ENTRIES(cover, CELLS, cell[18] = (struct limecells_cell){0, 0, 0});
    ENTRIES(cover, CELLS, c.particles = 11);
    ENTRIES(cover, CELLS, memset(cell, 0, sizeof cell));
    ENTRIES(NULL, CELLS, (memset(cell, 0, sizeof cell), c.particles = 0));
    ENTRIES(NULL, CELLS, (cell[0].first = 9, cell[18].first = 0)); /* any order */
    ENTRIES(NULL, CELLS,
            (memset(cell, 0, sizeof cell), cell[23] = (struct limecells_cell){0, 10, 5}));
}

/* ---- the text ---- */

/* The longest possible text; lime check compares shorter ones with another writer's. */
TEST(test_text)
{
    struct limecells c = good();
    char text[LIMECELLS_TEXT_MAX];
    c.particle_bytes = LIMECELLS_PARTICLE_MAX;
    c.fields = LIMECELLS_FIELDS_MAX;
    for (unsigned i = 0; i < LIMECELLS_FIELDS_MAX; i++) {
        c.field[i] = (struct limecells_field){"", LIMECELLS_FLOAT64, 1111, 16000 * i};
        memset(c.field[i].name, 'a', LIMECELLS_NAME_MAX);
        c.field[i].name[0] = (char)('0' + i % 8);
        c.field[i].name[1] = (char)('0' + i / 8);
    }
    c.field[0] = (struct limecells_field){"position", LIMECELLS_FLOAT64, 3, 0};
    assert_null(limefile_cells_check(&c));
    for (int d = 0; d < LIMECELLS_DIMS; d++)
        c.origin[d] = -1.2345678901234567e-300;
    c.step = INT64_MIN;
    size_t n = limefile_cells_format_text(&c, text);
    assert_int_equal(n, strlen(text));
    assert_string_equal(text + n - strlen("</lemonCells>\n"), "</lemonCells>\n");
}

/* ---- the rule ---- */

TEST(test_faces)
{
    struct limecells c = good(); /* x: [-1, 1) in 2, periodic; y: [0, 3) in 3, not */
    assert_int_equal(limefile_cells_locate(&c, 0, -1), 0);
    assert_int_equal(limefile_cells_locate(&c, 0, nextafter(0, -1)), 0);
    assert_int_equal(limefile_cells_locate(&c, 0, -0.0), 1);
    assert_int_equal(limefile_cells_locate(&c, 0, 0), 1);
    assert_int_equal(limefile_cells_locate(&c, 0, nextafter(1, 0)), 1);
    assert_int_equal(limefile_cells_locate(&c, 0, 1), 0);
    assert_int_equal(limefile_cells_locate(&c, 1, 0), 0);
    assert_int_equal(limefile_cells_locate(&c, 1, -0.0), 0);
    assert_int_equal(limefile_cells_locate(&c, 1, 1), 1);
    assert_int_equal(limefile_cells_locate(&c, 1, nextafter(1, 0)), 0);
    assert_int_equal(limefile_cells_locate(&c, 1, 3), 2);
    assert_true(limefile_cells_canonical(&c, 0, 1) == -1);
    assert_true(limefile_cells_canonical(&c, 1, 3) == 3);
    assert_true(limefile_cells_canonical(&c, 0, 0.5) == 0.5);
}

TEST(test_outside)
{
    struct limecells c = good();
    const double outside[] = {NAN,      -NAN,   INFINITY, -INFINITY, DBL_MAX,
                              -DBL_MAX, -1.001, 5.999999, 100};
    for (unsigned i = 0; i < COUNT(outside); i++)
        assert_int_equal(limefile_cells_locate(&c, 0, outside[i]), -1);
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        double end = c.origin[d] + c.length[d];
        assert_int_equal(limefile_cells_locate(&c, d, nextafter(c.origin[d], -INFINITY)), -1);
        assert_int_equal(limefile_cells_locate(&c, d, nextafter(end, INFINITY)), -1);
        assert_true(limefile_cells_locate(&c, d, end) >= 0);
    }
}

static double between(uint64_t *state, double low, double high)
{
    return low + (high - low) * (mix64_fraction(chance(state)));
}

/* Returns a random valid domain: far away, flat, of few cells or of very many. */
static struct limecells some_domain(uint64_t *state)
{
    struct limecells c;
    do {
        c = good();
        c.cells[0] = 1 + chance(state) % (UINT64_C(1) << chance(state) % 41);
        c.cells[1] = c.cells[2] = 1;
        c.length[0] = ldexp(between(state, 1, 2), (int)(chance(state) % 80) - 40);
        c.origin[0] =
            c.length[0] * between(state, -1, 1) * ldexp(1, (int)(chance(state) % 60) - 10);
        c.periodic[0] = chance(state) & 1;
    } while (limefile_cells_check(&c));
    return c;
}

/* A cell contains its lower faces and not its upper ones, in spite of rounding. */
TEST(test_edges_decide)
{
    uint64_t seed = 1;
    for (int times = 0; times < 20000; times++) {
        struct limecells c = some_domain(&seed);
        int64_t last = (int64_t)c.cells[0] - 1, i = (int64_t)(chance(&seed) % c.cells[0]);
        double low = limefile_cells_edge(&c, 0, (uint64_t)i);
        double high = limefile_cells_edge(&c, 0, (uint64_t)i + 1);
        assert_true(low < high);
        assert_int_equal(limefile_cells_locate(&c, 0, low), i);
        assert_int_equal(limefile_cells_locate(&c, 0, nextafter(high, -INFINITY)), i);
        assert_int_equal(limefile_cells_locate(&c, 0, high), i < last        ? i + 1
                                                             : c.periodic[0] ? 0
                                                                             : last);
        for (int k = 0; k < 20; k++) {
            double x = between(&seed, c.origin[0], c.origin[0] + c.length[0]);
            double next = nextafter(x, INFINITY);
            int64_t at = limefile_cells_locate(&c, 0, x),
                    after = limefile_cells_locate(&c, 0, next);
            if (at < 0 || next > c.origin[0] + c.length[0])
                continue;
            assert_true(limefile_cells_edge(&c, 0, (uint64_t)at) <=
                        limefile_cells_canonical(&c, 0, x));
            assert_true(at == last || x < limefile_cells_edge(&c, 0, (uint64_t)at + 1));
            assert_true(after == at || after == at + 1 || c.periodic[0]);
        }
    }
}
