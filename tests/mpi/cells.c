/*
 * cells.c - write checkpoints of particles, and read them on any number of ranks
 *
 *     cells write DIRECTORY usual|large   write files 0, 1, ... of the table below
 *     cells read DIRECTORY usual|large    read them in two decompositions, and compare
 *     cells wrong FILE                    invalid writes fail with a message
 *     cells own FILE                      ranks with long runs: each way writes the same file
 *     cells damaged DIRECTORY COUNT       print the code and messages of a read of each file
 */
#include "files.h"

#include <lemon_cells.h>
#include <math.h>
#include <stddef.h>

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
static char file_name[4096];

enum {
    SCATTERED =
        1,    /* any rank has any particle; else each has those of a regular decomposition */
    LATE = 2, /* non-blocking */
    ALIGNED = 4,
    CHECK = 8,
};

enum {
    MANY = 37, /* ranks: more than the number of cells in some domains */
};

/* Layouts: spread; corner, all in one cell; faces, on faces and corners of cells and domain;
 * single, positions in single precision. */
static const struct test {
    int64_t n;
    const char *layout;
    int64_t cells[3];
    int flags;
} usual[] =
    {
        {0, "spread", {4, 4, 4}, 0},
        {0, "spread", {1, 1, 1}, LATE | CHECK},
        {1, "spread", {3, 1, 2}, LATE},
        {1000, "spread", {3, 5, 7}, SCATTERED | CHECK},
        {1000, "spread", {4, 4, 4}, 0},
        {1000, "corner", {4, 4, 4}, ALIGNED},
        {1000, "corner", {4, 4, 4}, SCATTERED | LATE},
        {1000, "faces", {4, 4, 4}, CHECK | LATE},
        {1000, "faces", {2, 8, 1}, SCATTERED},
        {1000, "single", {5, 4, 3}, SCATTERED},
        {5000, "spread", {20, 20, 20}, LATE | SCATTERED | ALIGNED},
        {30000, "spread", {1, 1, 1}, LATE},
        {30000, "spread", {2, 1, 1}, SCATTERED},
},
  large[] = {
      {1000000, "spread", {16, 16, 16}, CHECK},
      {200000, "spread", {50, 50, 50}, SCATTERED | CHECK},
      {200000, "spread", {2, 2, 2}, SCATTERED | LATE},
      {100, "spread", {1, 3, 1100000}, SCATTERED}, /* far apart */
};
static const struct test *test;
static const char *layout = "spread";
static MPI_File file;

static uint64_t hash(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The coordinate of particle i in dimension d: the same on all ranks. */
static double coordinate(int64_t i, int d)
{
    uint64_t h = hash((uint64_t)i * 3 + (uint64_t)d + 1);
    double length = domain.length[d], u = (double)(h >> 11) / 9007199254740992.0;
    if (strcmp(layout, "corner") == 0)
        return domain.origin[d] + length * u / 1e6;
    if (strcmp(layout, "faces") ==
        0) /* in eighths: on faces of 4 and of 2 cells, and both ends */
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

/* Returns whether the particle is in this rank's regular box. */
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

static int64_t fill(char **particles)
{
    int64_t n = test->n;
    int scattered = test->flags & SCATTERED;
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

static void write_it(void)
{
    char *particles;
    int64_t n = fill(&particles);
    LemonWriter *w = create_writer(file_name, MPI_COMM_WORLD, MPI_MODE_WRONLY, &file);
    int flags = test->flags & CHECK ? LEMON_CELLS_CHECK : 0;
    if (test->flags & ALIGNED)
        lemonWriterSetAlignment(w, 65536, 1000);
    if (test->flags & LATE) {
        tap_code(lemonWriteCellsNonBlocking(w, 1, 1, &domain, kind(), particles, n, flags),
                 LEMON_SUCCESS, "non-blocking write");
        memset(particles, 0x55, (size_t)(n * kind()->bytes));
        tap_code(lemonFinishWriting(w), LEMON_SUCCESS, "finished");
        tap_code(lemonWriterCloseRecord(w), LEMON_SUCCESS, "closed");
    } else {
        tap_code(lemonWriteCells(w, 1, 1, &domain, kind(), particles, n, flags), LEMON_SUCCESS,
                 "written");
    }
    tap_code(end_writer(w, &file), LEMON_SUCCESS, "ended");
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

/* Checks that each particle of the file is read once: its bytes, and the sum of all hashes. */
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

static void read_boxes(LemonReader *r, const LemonCells *cells, int balanced)
{
    double lower[3], upper[3];
    void *particles;
    MPI_Offset count;
    if (balanced)
        lemonBalancedBox(cells, tap_ranks, tap_rank, lower, upper);
    else
        lemonRegularBox(&cells->domain, NULL, tap_ranks, tap_rank, lower, upper);
    int code = lemonReadCells(r, cells, lower, upper, &particles, &count, LEMON_CELLS_CHECK);
    tap_code(code, LEMON_SUCCESS, balanced ? "balanced" : "regular");
    if (code == LEMON_SUCCESS)
        check_all(particles, count, test->n);
    free(particles);
}

/* For any number of ranks: a box is a part of the domain, or empty at its upper corner. */
static void check_many_boxes(const LemonCells *cells)
{
    double lower[3], upper[3], volume = 0;
    int good = 1;
    for (int rank = 0; rank < MANY; rank++) {
        double edges = 1;
        int at_corner = 1;
        lemonBalancedBox(cells, MANY, rank, lower, upper);
        for (int d = 0; d < 3; d++) {
            double end = domain.origin[d] + domain.length[d];
            edges *= (upper[d] - lower[d]) / domain.length[d];
            at_corner = at_corner && lower[d] == end && upper[d] == end;
        }
        volume += edges;
        good = good && (edges > 0 || at_corner);
    }
    tap_ok(good && fabs(volume - 1) < 1e-9, "balanced boxes of %d ranks are the domain", MANY);
}

static void read_it(void)
{
    LemonCells *cells;
    LemonReader *r = create_reader(file_name, MPI_COMM_WORLD, &file);
    int code = lemonNextCells(r, &cells);
    tap_code(code, LEMON_SUCCESS, "found");
    if (code == LEMON_SUCCESS) {
        tap_ok(cells->particles == test->n && cells->domain.step == 42 &&
                   cells->domain.time == 0.25 && cells->domain.periodic[0] &&
                   !cells->domain.periodic[1] && cells->domain.cells[2] == test->cells[2] &&
                   cells->particle.fields == kind()->fields &&
                   cells->particle.bytes == kind()->bytes,
               "the values of the checkpoint");
        read_boxes(r, cells, 0);
        read_boxes(r, cells, 1);
        check_many_boxes(cells);
        lemonFreeCells(cells);
        tap_code(lemonNextCells(r, &cells), LEMON_EOF, "no other checkpoint");
    }
    end_reader(r, &file);
}

static void print(const char *text, void *context)
{
    (void)context;
    fprintf(stderr, "%s: %s\n", strrchr(file_name, '/') + 1, text);
}

/* Reads a damaged file: all ranks get the same code, and there is a message. */
static void read_damaged(void)
{
    LemonCells *cells = NULL;
    double lower[3], upper[3];
    void *particles = NULL;
    MPI_Offset count;
    LemonReader *r = create_reader(file_name, MPI_COMM_WORLD, &file);
    int code = lemonNextCells(r, &cells);
    if (code == LEMON_SUCCESS) {
        lemonRegularBox(&cells->domain, NULL, tap_ranks, tap_rank, lower, upper);
        code = lemonReadCells(r, cells, lower, upper, &particles, &count, LEMON_CELLS_CHECK);
        lemonFreeCells(cells);
        free(particles);
    }
    tap_code(code, code, "the same code on all ranks");
    if (tap_rank == 0)
        printf("%s: code %d\n", strrchr(file_name, '/') + 1, code);
    end_reader(r, &file);
}

/* ---- invalid writes ---- */

static void refuse(LemonWriter *w, const void *particles, MPI_Offset n, int flags,
                   const char *what)
{
    MPI_Offset before = w->off;
    tap_code(lemonWriteCells(w, 1, 1, &domain, &big, particles, n, flags), LEMON_ERR_PARAM,
             what);
    tap_ok(w->off == before, "nothing is written");
}

static void write_wrong(void)
{
    struct particle p[2] = {{.id = 10 + (uint64_t)tap_rank * 2},
                            {.id = 11 + (uint64_t)tap_rank * 2}};
    int last = tap_rank == tap_ranks - 1;
    LemonDomain good = domain;
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < 3; d++)
            p[i].position[d] = domain.origin[d] + domain.length[d] / 2;
    LemonWriter *w = create_writer(file_name, MPI_COMM_WORLD, MPI_MODE_WRONLY, &file);
    double x = p[1].position[1];
    p[1].position[1] = last ? NAN : x;
    refuse(w, p, 2, 0, "not a number");
    p[1].position[1] = last ? 3.5 : x;
    refuse(w, p, 2, 0, "outside");
    p[1].position[1] = last ? -INFINITY : x;
    refuse(w, p, 2, 0, "far outside");
    p[1].position[1] = x;
    p[1].id = last ? 10 : p[1].id;
    refuse(w, p, 2, LEMON_CELLS_CHECK, "one id twice");
    refuse(w, p, last ? -1 : 2, 0, "a negative number");
    refuse(w, p, 2, 64, "an unknown flag");
    domain.cells[2] = last ? 5 : 4;
    if (tap_ranks > 1)
        refuse(w, p, 2, 0, "ranks that do not agree");
    domain = good;
    domain.length[0] = 0;
    refuse(w, p, 2, 0, "no volume");
    domain = good;
    domain.cells[1] = 0;
    refuse(w, p, 2, 0, "no cells");
    domain = good;
    p[1].id = 11 + (uint64_t)tap_rank * 2;
    tap_code(lemonWriteCells(w, 1, 1, &domain, &big, p, 2, LEMON_CELLS_CHECK), LEMON_SUCCESS,
             "the writer still works");
    tap_code(end_writer(w, &file), LEMON_SUCCESS, "destroy");
}

/* ---- ranks with long runs ---- */

enum {
    MUCH = 70000, /* particles of a rank: more than 4 MiB */
    BY_AGGREGATORS = 1,
    BY_PATH = 2,
    NON_BLOCKING = 4,
};

/* Particles in the rank's box, which has `each` cells in each dimension, in any order. */
static struct particle *make_much(int each)
{
    struct particle *p = calloc(MUCH, sizeof *p);
    int grid[3] = {0};
    double lower[3], upper[3];
    MPI_Dims_create(tap_ranks, 3, grid);
    for (int d = 0; d < 3; d++)
        domain.cells[d] = grid[d] * each;
    lemonRegularBox(&domain, NULL, tap_ranks, tap_rank, lower, upper);
    for (int64_t i = 0; i < MUCH; i++) {
        p[i].id = (uint64_t)(i + (int64_t)tap_rank * MUCH);
        for (int d = 0; d < 3; d++) {
            double u = (double)(hash(p[i].id * 3 + (uint64_t)d) >> 11) / 9007199254740992.0;
            p[i].position[d] = lower[d] + (upper[d] - lower[d]) * (0.001 + 0.998 * u);
        }
    }
    return p;
}

static LemonWriter *open_much(int ways)
{
    MPI_Info info = MPI_INFO_NULL;
    LemonWriter *w = create_writer(file_name, MPI_COMM_WORLD, MPI_MODE_WRONLY, &file);
    if (ways & BY_AGGREGATORS) { /* ranks do not share a stripe if its size is known */
        MPI_Info_create(&info);
        MPI_Info_set(info, "striping_unit", "1048576");
        MPI_Info_set(info, "cb_buffer_size", "1048576");
        lemonWriterSetInfo(w, info);
        MPI_Info_free(&info);
    }
    if (ways & BY_PATH)
        tap_code(lemonWriterSetPath(w, file_name), LEMON_SUCCESS, "the path");
    return w;
}

/* Returns the file's bytes on rank 0, and removes the file. */
static unsigned char *take_file(size_t *bytes)
{
    unsigned char *all = file_bytes(file_name, bytes);
    remove_file(file_name);
    return all;
}

static void write_much(const struct particle *p, int ways)
{
    LemonWriter *w = open_much(ways);
    int code = ways & NON_BLOCKING
                   ? lemonWriteCellsNonBlocking(w, 1, 1, &domain, &big, p, MUCH, 0)
                   : lemonWriteCells(w, 1, 1, &domain, &big, p, MUCH, 0);
    if (ways & NON_BLOCKING && code == LEMON_SUCCESS)
        code = lemonWriterCloseRecord(w);
    tap_code(code, LEMON_SUCCESS, "much");
    tap_code(end_writer(w, &file), LEMON_SUCCESS, "written");
}

static void write_in_each_way(void)
{
    for (int each = 1; each <= 2; each++) {
        struct particle *p = make_much(each);
        size_t want, bytes;
        write_much(p, BY_AGGREGATORS);
        unsigned char *first = take_file(&want);
        for (int ways = 0; ways < 8; ways++) {
            write_much(p, ways);
            unsigned char *all = take_file(&bytes);
            tap_ok(tap_rank || (bytes > (size_t)MUCH * sizeof *p && bytes == want &&
                                memcmp(all, first, bytes) == 0),
                   "way %d, %d^3 cells a rank: the same file", ways, each);
            free(all);
        }
        free(first);
        free(p);
    }
}

/* A path of another file does no harm. */
static void set_paths(void)
{
    char other[sizeof file_name + 8];
    snprintf(other, sizeof other, "%s.other", file_name);
    LemonWriter *w = open_much(0);
    tap_code(lemonWriterSetPath(NULL, file_name), LEMON_ERR_PARAM, "no writer");
    tap_code(lemonWriterSetPath(w, tap_rank == tap_ranks - 1 ? other : file_name),
             LEMON_ERR_PARAM, "a rank that cannot open it");
    tap_code(lemonWriterSetPath(w, file_name), LEMON_SUCCESS, "by path");
    tap_code(lemonWriterSetPath(w, NULL), LEMON_SUCCESS, "reset the path");
    if (tap_rank == 0)
        fclose(fopen(other, "w"));
    MPI_Barrier(MPI_COMM_WORLD);
    tap_code(lemonWriterSetPath(w, other), LEMON_SUCCESS, "the path of another file");
    struct particle *p = make_much(1);
    tap_code(lemonWriteCells(w, 1, 1, &domain, &big, p, MUCH, 0), LEMON_SUCCESS,
             "write in spite of it");
    tap_code(end_writer(w, &file), LEMON_SUCCESS, "written");
    size_t bytes;
    free(take_file(&bytes));
    tap_ok(tap_rank || bytes > (size_t)MUCH * sizeof *p, "the writer's file has the data");
    strcpy(file_name, other);
    free(take_file(&bytes));
    tap_ok(bytes == 0, "the other file is empty");
    free(p);
}

static void each_file(const char *directory, const char *which, void (*call)(void))
{
    int all = strcmp(which, "usual") == 0;
    size_t count = all ? sizeof usual / sizeof *usual : sizeof large / sizeof *large;
    for (size_t i = 0; i < count; i++) {
        test = all ? &usual[i] : &large[i];
        layout = test->layout;
        memcpy(domain.cells, test->cells, sizeof test->cells);
        snprintf(file_name, sizeof file_name, "%s/%zu", directory, i);
        call();
    }
}

int main(int argc, char **argv)
{
    tap_begin(&argc, &argv);
    lemonSetMessageHandler(print, NULL);
    if (argc == 4 && strcmp(argv[1], "damaged") == 0) {
        for (int i = 0; i < atoi(argv[3]); i++) {
            snprintf(file_name, sizeof file_name, "%s/%d", argv[2], i);
            read_damaged();
        }
    } else if (argc == 4) {
        each_file(argv[2], argv[3], strcmp(argv[1], "write") == 0 ? write_it : read_it);
    } else if (argc == 3) {
        snprintf(file_name, sizeof file_name, "%s", argv[2]);
        if (strcmp(argv[1], "wrong") == 0)
            write_wrong();
        else if (strcmp(argv[1], "own") == 0) {
            write_in_each_way();
            set_paths();
        }
    }
    return tap_end();
}
