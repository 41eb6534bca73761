/*
 * lattice.c - compare lattices in every geometry with a serial oracle
 *
 * usage: lattice FILE [REPETITIONS]   default 4; 0 skips long tests
 *
 * A byte is a function of its lattice, its site's coordinates and its offset in the site. Each
 * rank fills its part from lemonLocalLattice() and the order of memory; rank 0 then reads the
 * file without MPI. All ranks read it in the same geometry, and with the dimensions in the
 * order of the disk, distributed differently.
 */
#include "geometry.h"

#include <sys/resource.h>

#ifdef __SANITIZE_ADDRESS__ /* it needs all of the address space */
#define ADDRESS_SANITIZER true
#else
#define ADDRESS_SANITIZER false
#endif

/* Returns a number below n, the same on all ranks. */
static int pick(int n)
{
    static unsigned state = 20;
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 16) % (unsigned)n);
}

/* Fills the sites of a box in row-major order of its dimensions order[0], order[1], ... */
static unsigned char *fill(const struct geometry *g, int block, const int *start,
                           const int *sites, const int *order, size_t *bytes)
{
    int at[DIMS] = {0};
    long count = 1;
    for (int d = 0; d < g->dims; d++)
        count *= sites[d];
    *bytes = (size_t)(count * g->site);
    unsigned char *data = malloc(*bytes + 1);
    for (long n = 0; n < count; n++) {
        unsigned hash = (unsigned)block;
        for (int i = 0; i < g->dims; i++) {
            int d = g->mapping[i];
            hash = (hash + (unsigned)(start[d] + at[d])) * 2654435761u;
        }
        for (int b = 0; b < g->site; b++)
            data[n * g->site + b] =
                (unsigned char)((hash + (unsigned)b * 40503u) * 2654435761u >> 17);
        for (int i = g->dims - 1; i >= 0; i--) {
            if (++at[order[i]] < sites[order[i]])
                break;
            at[order[i]] = 0;
        }
    }
    return data;
}

/* Returns this rank's part. */
static unsigned char *part_of(const struct geometry *g, int block, size_t *bytes)
{
    int start[DIMS], sites[DIMS];
    lemonLocalLattice(cart, g->lattice, start, sites);
    return fill(g, block, start, sites, g->form == FORM_PERMUTED ? g->memory : g->mapping,
                bytes);
}

static bool file_is_right(const struct geometry *g)
{
    static const int zeros[DIMS];
    size_t bytes, n = 0;
    unsigned char *all = file_bytes(path, &bytes);
    size_t at = 144 + (size_t)g->lead, end = at + (size_t)(block_bytes(g) * g->blocks);
    bool good = tap_rank > 0 ||
                (all && (g->sum ? bytes > (end + 7) / 8 * 8 : bytes == (end + 7) / 8 * 8));
    for (int i = 0; tap_rank == 0 && good && i < g->blocks; i++, at += n) {
        unsigned char *want = fill(g, i, zeros, g->lattice, g->mapping, &n);
        good = memcmp(all + at, want, n) == 0;
        free(want);
    }
    free(all);
    return good;
}

/* Writing must not change the data in memory. */
static bool writes_right(const struct geometry *g, LemonChecksum *sum)
{
    unsigned char *data[BLOCKS];
    size_t n;
    make_cart(g);
    for (int i = 0; i < g->blocks; i++)
        data[i] = part_of(g, i, &n);
    bool good = write_lattices(g, data, sum) == LEMON_SUCCESS;
    for (int i = 0; i < g->blocks; i++) {
        unsigned char *before = part_of(g, i, &n);
        good = memcmp(data[i], before, n) == 0 && good;
        free(before);
        free(data[i]);
    }
    MPI_Comm_free(&cart);
    good = file_is_right(g) && good;
    return good &&
           (!g->sum || same(*sum, oracle(144 + g->lead, block_bytes(g) * g->blocks, g->site)));
}

static bool reads_right(const struct geometry *g, LemonChecksum want)
{
    LemonChecksum sum = {0, 0}, stored = {0, 0};
    unsigned char *got[BLOCKS];
    size_t n;
    make_cart(g);
    for (int i = 0; i < g->blocks; i++) {
        n = (size_t)local_bytes(g);
        got[i] = malloc(n + 1);
        memset(got[i], 0xaa, n + 1);
    }
    bool good = read_lattices(g, got, &sum, &stored) == LEMON_SUCCESS;
    for (int i = 0; i < g->blocks; i++) {
        unsigned char *right = part_of(g, i, &n);
        good = memcmp(got[i], right, n) == 0 && got[i][n] == 0xaa && good;
        free(right);
        free(got[i]);
    }
    MPI_Comm_free(&cart);
    return good && (!g->sum || (same(sum, want) && same(stored, want)));
}

/* Changes to the order of dimensions on the disk, distributed differently over the ranks. */
static struct geometry otherwise(const struct geometry *g, int turn)
{
    struct geometry other = *g;
    for (int i = 0; i < g->dims; i++) {
        other.mapping[i] = i;
        other.memory[i] = (i + turn) % g->dims;
        other.lattice[i] = g->lattice[g->mapping[i]];
        other.grid[i] = g->grid[(i + turn) % g->dims];
    }
    other.form = (g->form + 1) % FORMS;
    other.stripe = g->stripe == 1000 ? 1 << 20 : 1000;
    return other;
}

/* Every rank runs all parts: a rank that stops would block the others. */
static bool try_geometry(const struct geometry *g, int turn)
{
    struct geometry other = otherwise(g, turn);
    LemonChecksum sum = {0, 0};
    int good[3] = {writes_right(g, &sum), reads_right(g, sum), reads_right(&other, sum)};
    MPI_Allreduce(MPI_IN_PLACE, good, 3, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    bool all = good[0] && good[1] && good[2];
    if (!all && tap_rank == 0)
        printf("# written %d, read %d, otherwise %d; form %d, site %d, stripe %d, lead %d\n",
               good[0], good[1], good[2], g->form, g->site, g->stripe, g->lead);
    return all;
}

/* ---- geometries ---- */

static void set_identity(int *p)
{
    for (int i = 0; i < DIMS; i++)
        p[i] = i;
}

/* Makes the next permutation in lexicographic order; returns false after the last. */
static bool next_permutation(int *p, int n)
{
    int i = n - 2, j = n - 1;
    while (i >= 0 && p[i] > p[i + 1])
        i--;
    if (i < 0)
        return false;
    while (p[j] < p[i])
        j--;
    int t = p[i];
    p[i] = p[j];
    p[j] = t;
    for (i++, j = n - 1; i < j; i++, j--) {
        t = p[i];
        p[i] = p[j];
        p[j] = t;
    }
    return true;
}

/* Skips `step` permutations; after the last, returns to the first one and returns false. */
static bool skip_permutations(int *p, int n, int step)
{
    while (step-- > 0)
        if (!next_permutation(p, n)) {
            set_identity(p);
            return false;
        }
    return true;
}

/* Varies everything except the grid, the mapping and the form. */
static void vary(struct geometry *g, int tried)
{
    static const int extents[DIMS] = {6, 7, 4, 5, 3, 2, 3, 2};
    static const int sites[] = {1, 7, 24, 13, 96, 577};
    for (int i = 0; i < g->dims; i++)
        g->lattice[i] = extents[(i + tried) % g->dims] + 6 * (g->grid[i] > 4);
    g->site = sites[pick(g->dims < 5 ? 6 : 5)];
    g->blocks = 1 + pick(BLOCKS);
    g->lead = pick(20);
    g->stripe = pick(2) ? 4096 : 1000;
    g->verify = pick(4) % 3;
    g->sum = pick(2);
}

/* Each step-th mapping, with several grids and several orders of memory, which change each time
 * until all have been used. */
static void all_mappings(int dims, int step, int grids, int orders)
{
    int bad = 0, tried = 0;
    struct geometry g = {.dims = dims};
    set_identity(g.mapping);
    set_identity(g.memory);
    do {
        for (int n = 0; n < grids + orders; n++, tried++) {
            g.form = n < grids ? pick(2) : FORM_PERMUTED;
            if (n >= grids)
                skip_permutations(g.memory, dims, step);
            set_grid(&g, pick(dims));
            vary(&g, tried);
            bad += !try_geometry(&g, tried % dims);
        }
    } while (skip_permutations(g.mapping, dims, step));
    tap_ok(bad == 0, "%d geometries of %d dimensions, %d wrong", tried, dims, bad);
}

static void some_of_many_dimensions(int grids)
{
    int bad = 0;
    struct geometry g = {
        .dims = 8, .site = 5, .blocks = 2, .lead = 3, .stripe = 1000, .sum = true};
    for (int turn = 0; turn < grids; turn++) {
        set_grid(&g, turn);
        for (int i = 0; i < 8; i++) {
            g.mapping[i] = (i * 3 + turn) % 8;
            g.memory[i] = (i * 5 + turn) % 8;
            g.lattice[i] = 2 + (i + turn) % 2 + 4 * (g.grid[i] > 2);
        }
        g.form = turn % FORMS;
        bad += !try_geometry(&g, 1);
    }
    tap_ok(bad == 0, "8 dimensions, %d wrong", bad);
}

/* Runs long enough for direct transfers, several chunks and requests; sites larger than
 * windows; ranks without a site, and sites without a byte. In each form. */
static void special_geometries(bool few)
{
    const int large = 5000011 / tap_ranks;
    const struct {
        const char *what;
        int grid[2], lattice[2], mapping, memory; /* the first of each; the other follows */
        int site, blocks, lead, stripe;
    } rows[] = {
        {"ranks without a site", {1, tap_ranks}, {3, 2}, 1, 0, 11, 2, 1, 7},
        {"sites of no bytes", {1, tap_ranks}, {3, 2}, 1, 0, 0, 2, 1, 7},
        {"several long runs", {1, tap_ranks}, {3, 2 * tap_ranks + 1}, 0, 1, 300007, 1, 0, 1000},
        {"one long run", {tap_ranks, 1}, {tap_ranks + 1, 8730}, 0, 1, 577, 1, 9, 4096},
        {"large sites", {1, tap_ranks}, {2, tap_ranks}, 1, 1, large, 1, 0, 1 << 20},
    };
    for (int i = 0; i < (few ? 3 : 5); i++) {
        struct geometry g = {.dims = 2,
                             .mapping = {rows[i].mapping, !rows[i].mapping},
                             .memory = {rows[i].memory, !rows[i].memory},
                             .site = rows[i].site,
                             .blocks = rows[i].blocks,
                             .lead = rows[i].lead,
                             .stripe = rows[i].stripe};
        memcpy(g.grid, rows[i].grid, sizeof rows[i].grid);
        memcpy(g.lattice, rows[i].lattice, sizeof rows[i].lattice);
        int bad = 0;
        for (g.form = 0; g.form < FORMS; g.form++) {
            g.sum = i < 2 || g.form != FORM_START;
            g.verify = 1 + g.form % 2;
            bad += !try_geometry(&g, 1);
        }
        tap_ok(bad == 0, "%s, %d wrong", rows[i].what, bad);
    }
}

/* ---- out of memory ---- */

static rlim_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* The last rank may allocate 24 MiB more; its part has 64. */
static void no_memory(void)
{
    enum { PART = 64 << 20 };
    const struct geometry g = {.dims = 2, .grid = {tap_ranks, 1}};
    int lattice[2] = {tap_ranks * 1024, 1024}, order[2] = {1, 0};
    struct rlimit before, now;
    make_cart(&g);
    char *data = calloc(1, PART);
    LemonWriter *w = open_writer(MPI_MODE_WRONLY, 1, (MPI_Offset)tap_ranks * PART);
    getrlimit(RLIMIT_AS, &before);
    now = before;
    if (tap_rank == tap_ranks - 1)
        now.rlim_cur = address_space() + (24 << 20);
    setrlimit(RLIMIT_AS, &now);
    int code = lemonWriteLatticeParallelPermuted(w, data, 64, lattice, NULL, order);
    setrlimit(RLIMIT_AS, &before);
    tap_code(code, LEMON_ERR_WRITE, "no memory on one rank to write from");
    tap_ok(w->pos == 0, "nothing is written");
    tap_code(lemonWriterSeek(w, 0, MPI_SEEK_END), 0, "a record of holes");
    tap_code(end_writer(w, &fp), 0, "destroy");
    LemonReader *r = open_reader();
    setrlimit(RLIMIT_AS, &now);
    code = lemonReadLatticeParallelPermuted(r, data, 64, lattice, NULL, order);
    setrlimit(RLIMIT_AS, &before);
    tap_code(code, LEMON_ERR_READ, "nor to read into");
    setrlimit(RLIMIT_AS, &now);
    code = lemonReadLatticeParallelPermuted(r, data, 64, lattice, NULL, NULL);
    setrlimit(RLIMIT_AS, &before);
    tap_code(code, 0, "equal orders need no memory");
    end_reader(r, &fp);
    free(data);
    MPI_Comm_free(&cart);
}

int main(int argc, char *argv[])
{
    tap_begin(&argc, &argv);
    path = argv[1];
    int repetitions = argc > 2 ? atoi(argv[2]) : 4;
    bool few = repetitions == 0, some = repetitions == 1, many = repetitions > 10;
    static const int factorial[] = {1, 1, 2, 6};
    for (int dims = 1; dims <= 3; dims++)
        all_mappings(dims, 1, few || some ? 1 : dims, few || some ? 1 : factorial[dims]);
    if (!few) {
        all_mappings(4, some ? 5 : 1, many ? 4 : 1, many ? 6 : 1);
        all_mappings(5, some ? 30 : many ? 1 : 10, many ? 2 : 1, 1);
    }
    some_of_many_dimensions(few ? 1 : some ? 3 : 8);
    special_geometries(few);
    if (!ADDRESS_SANITIZER)
        no_memory();
    remove_file(path);
    return tap_end();
}
