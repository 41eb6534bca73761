/*
 * cells.c - checkpoints of particles: written and read back by any ranks
 *
 *     cells write FILE N LAYOUT CELLS [FLAG...]    CELLS: 4x4x4
 *     cells read FILE N LAYOUT regular|balanced
 *     cells again FILE                             damaged ones: prints messages and codes
 *
 * LAYOUT: spread, corner (all in one cell), faces (on faces and corners of cells and domain),
 * single (positions in single precision). FLAG: scattered (any rank has any particle, else each
 * has those of a regular decomposition), late (without waiting), aligned, check.
 */
#include "tap.h"

#include <lemon_cells.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

struct particle {
    uint64_t id;
    uint32_t component, zero;
    double position[3], velocity[3];
};

struct small {
    float position[3];
    int32_t id;
};

static const LemonField fields[] = {
    {"id", LEMON_UINT64, 1, offsetof(struct particle, id)},
    {"component", LEMON_UINT32, 1, offsetof(struct particle, component)},
    {"position", LEMON_FLOAT64, 3, offsetof(struct particle, position)},
    {"velocity", LEMON_FLOAT64, 3, offsetof(struct particle, velocity)},
};
static const LemonField small_fields[] = {
    {"position", LEMON_FLOAT32, 3, offsetof(struct small, position)},
    {"id", LEMON_INT32, 1, offsetof(struct small, id)},
};
static const LemonParticle big = {sizeof(struct particle), 4, fields};
static const LemonParticle little = {sizeof(struct small), 2, small_fields};

static LemonDomain domain = {{-1, 0, 10}, {2, 3, 0.7}, {1, 0, 1}, {4, 4, 4}, 42, 0.25};
static const char *layout = "spread";
static char *file_name;
static MPI_File file;

static uint64_t hash(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Of particle i, in dimension d: the same on whatever rank. */
static double coordinate(int64_t i, int d)
{
    uint64_t h = hash((uint64_t)i * 3 + (uint64_t)d + 1);
    double length = domain.length[d], u = (double)(h >> 11) / 9007199254740992.0;
    if (strcmp(layout, "corner") == 0)
        return domain.origin[d] + length * u / 1e6;
    if (strcmp(layout, "faces") ==
        0) /* in eighths: faces of 4 and of 2 cells, both ends, too */
        return domain.origin[d] + length * ((double)(h % 9) / 8);
    return domain.origin[d] + length * u;
}

static void make(int64_t i, void *to)
{
    if (strcmp(layout, "single") == 0) {
        struct small p = {.id = (int32_t)i - 5};
        for (int d = 0; d < 3; d++) {
            p.position[d] = (float)coordinate(i, d);
            if ((double)p.position[d] > domain.origin[d] + domain.length[d] ||
                (double)p.position[d] < domain.origin[d])
                p.position[d] = (float)(domain.origin[d] + domain.length[d] / 2);
        }
        memcpy(to, &p, sizeof p);
        return;
    }
    struct particle p = {.id = (uint64_t)i, .component = (uint32_t)(i % 3)};
    for (int d = 0; d < 3; d++) {
        p.position[d] = coordinate(i, d);
        p.velocity[d] = (double)(hash((uint64_t)(i * 7 + d)) % 1000) / 999;
    }
    memcpy(to, &p, sizeof p);
}

static const LemonParticle *kind(void)
{
    return strcmp(layout, "single") == 0 ? &little : &big;
}

static int has(int argc, char **argv, const char *flag)
{
    for (int i = 6; i < argc; i++)
        if (strcmp(argv[i], flag) == 0)
            return 1;
    return 0;
}

/* Which rank has particle i if each has a box. */
static int in_my_box(const char *particle)
{
    double lower[3], upper[3];
    const struct particle *p = (const struct particle *)particle;
    lemonRegularBox(&domain, NULL, tap_ranks, tap_rank, lower, upper);
    for (int d = 0; d < 3; d++) {
        double end = domain.origin[d] + domain.length[d], x = p->position[d];
        if (x < lower[d] || (x >= upper[d] && !(x == end && upper[d] == end)))
            return 0;
    }
    return 1;
}

static int64_t fill(int64_t n, int scattered, char **particles)
{
    size_t bytes = (size_t)kind()->bytes;
    int64_t mine = 0;
    *particles = malloc((size_t)n * bytes + 1);
    for (int64_t i = 0; i < n; i++) {
        char *to = *particles + (size_t)mine * bytes;
        make(i, to);
        mine += scattered || kind() == &little
                    ? hash((uint64_t)i) % (uint64_t)tap_ranks == (uint64_t)tap_rank
                    : in_my_box(to);
    }
    return mine;
}

static void write_it(int argc, char **argv)
{
    char *particles;
    int64_t n = fill(atoll(argv[3]), has(argc, argv, "scattered"), &particles);
    MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL,
                  &file);
    LemonWriter *w = lemonCreateWriter(&file, MPI_COMM_WORLD);
    int flags = has(argc, argv, "check") ? LEMON_CELLS_CHECK : 0;
    if (has(argc, argv, "aligned"))
        lemonWriterSetAlignment(w, 65536, 1000);
    if (has(argc, argv, "late")) {
        tap_code(lemonWriteCellsNonBlocking(w, 1, 1, &domain, kind(), particles, n, flags),
                 LEMON_SUCCESS, "written without waiting");
        memset(particles, 0x55, (size_t)(n * kind()->bytes));
        tap_code(lemonFinishWriting(w), LEMON_SUCCESS, "finished");
        tap_code(lemonWriterCloseRecord(w), LEMON_SUCCESS, "closed");
    } else {
        tap_code(lemonWriteCells(w, 1, 1, &domain, kind(), particles, n, flags), LEMON_SUCCESS,
                 "written");
    }
    tap_code(lemonDestroyWriter(w), LEMON_SUCCESS, "ended");
    MPI_File_close(&file);
    free(particles);
}

static int is_right(const char *particle, int64_t n)
{
    char want[sizeof(struct particle)];
    int64_t i = strcmp(layout, "single") == 0
                    ? ((const struct small *)particle)->id + 5
                    : (int64_t)((const struct particle *)particle)->id;
    if (i < 0 || i >= n)
        return 0;
    make(i, want);
    return memcmp(want, particle, (size_t)kind()->bytes) == 0;
}

/* Each particle of the file once: by the call's own check, and by the sum of their hashes. */
static void check_all(const char *particles, MPI_Offset count, int64_t n)
{
    uint64_t sums[2] = {(uint64_t)count, 0}, want = 0;
    int good = 1;
    for (MPI_Offset k = 0; k < count; k++) {
        const char *p = particles + k * kind()->bytes;
        good = good && is_right(p, n);
        sums[1] +=
            hash(strcmp(layout, "single") == 0 ? (uint64_t)(((const struct small *)p)->id + 5)
                                               : ((const struct particle *)p)->id);
    }
    for (int64_t i = 0; i < n; i++)
        want += hash((uint64_t)i);
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    tap_ok(good && sums[0] == (uint64_t)n && sums[1] == want, "the same particles, each once");
}

static void read_it(char **argv)
{
    LemonCells *cells;
    double lower[3], upper[3];
    void *particles;
    MPI_Offset count;
    int64_t n = atoll(argv[3]);
    MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    LemonReader *r = lemonCreateReader(&file, MPI_COMM_WORLD);
    int code = lemonNextCells(r, &cells);
    tap_code(code, LEMON_SUCCESS, "found");
    if (code == LEMON_SUCCESS) {
        tap_ok(cells->particles == n && cells->domain.step == 42 &&
                   cells->domain.time == 0.25 && cells->domain.periodic[0] &&
                   !cells->domain.periodic[1] && cells->particle.fields == kind()->fields,
               "says what it is");
        if (strcmp(argv[5], "regular") == 0)
            lemonRegularBox(&cells->domain, NULL, tap_ranks, tap_rank, lower, upper);
        else
            lemonBalancedBox(cells, tap_ranks, tap_rank, lower, upper);
        code = lemonReadCells(r, cells, lower, upper, &particles, &count, LEMON_CELLS_CHECK);
        tap_code(code, LEMON_SUCCESS, "read");
        if (code == LEMON_SUCCESS) {
            check_all(particles, count, n);
            free(particles);
        }
        lemonFreeCells(cells);
        tap_code(lemonNextCells(r, &cells), LEMON_EOF, "there is no other");
    }
    lemonDestroyReader(r);
    MPI_File_close(&file);
}

static void print(const char *text, void *context)
{
    (void)context;
    fprintf(stderr, "%s\n", text);
}

/* What a damaged file gives: the same code on all ranks, and words. */
static void read_damaged(void)
{
    LemonCells *cells = NULL;
    double lower[3], upper[3];
    void *particles = NULL;
    MPI_Offset count;
    MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    LemonReader *r = lemonCreateReader(&file, MPI_COMM_WORLD);
    int code = lemonNextCells(r, &cells);
    if (code == LEMON_SUCCESS) {
        lemonRegularBox(&cells->domain, NULL, tap_ranks, tap_rank, lower, upper);
        code = lemonReadCells(r, cells, lower, upper, &particles, &count, LEMON_CELLS_CHECK);
        lemonFreeCells(cells);
        free(particles);
    }
    tap_code(code, code, "the same answer on all ranks");
    if (tap_rank == 0)
        printf("# code %d\n", code);
    lemonDestroyReader(r);
    MPI_File_close(&file);
}

int main(int argc, char **argv)
{
    tap_begin(&argc, &argv);
    lemonSetMessageHandler(print, NULL);
    if (argc < 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    file_name = argv[2];
    if (argc > 4)
        layout = argv[4];
    if (strcmp(argv[1], "write") == 0 && argc > 5) {
        long long n[3];
        if (sscanf(argv[5], "%lldx%lldx%lld", &n[0], &n[1], &n[2]) != 3)
            MPI_Abort(MPI_COMM_WORLD, 2);
        for (int d = 0; d < 3; d++)
            domain.cells[d] = n[d];
        write_it(argc, argv);
    } else if (strcmp(argv[1], "read") == 0 && argc > 5) {
        read_it(argv);
    } else {
        read_damaged();
    }
    return tap_end();
}
