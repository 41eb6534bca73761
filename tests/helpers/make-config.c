/*
 * make-config.c - writes a sample ILDG gauge configuration: random SU(3) links not far from
 * unity, with the records, the plaquette and the checksum that a real writer would give it.
 *
 * The same options give the same bytes. In memory is one time slice, not the lattice.
 */
#define _GNU_SOURCE
#include "limegauge.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DIRS = 4,   /* x, y, z, t */
    REALS = 18, /* of a 3x3 complex matrix: row-major; re, im */
    EDGE_MAX = 65536,
};

/* How far the links are from unity: this gives a plaquette as at beta = 6. */
static const double spread = 0.38;

struct config {
    unsigned edge[DIRS];
    unsigned precision; /* 32 or 64 */
    uint64_t seed;
    const char *lfn;
    const char *file;
    uint64_t slice_sites, slice_bytes; /* of one time slice, as stored */
    uint64_t bytes;                    /* of all */
};

/* ---- numbers: xoshiro256**, seeded by splitmix64 ---- */

static uint64_t state[4];

static void seed_numbers(uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        state[i] = z ^ z >> 31;
    }
}

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

/* In [-1, 1). */
static double next_number(void)
{
    uint64_t result = rotate(state[1] * 5, 7) * 9, t = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= t;
    state[3] = rotate(state[3], 45);
    return (double)(result >> 11) * 0x1p-52 - 1.0;
}

/* ---- links ---- */

static void normalise(double *row)
{
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += row[i] * row[i];
    double by = 1 / sqrt(sum);
    for (int i = 0; i < 6; i++)
        row[i] *= by;
}

/* b -= a <a, b>, for a of length 1 */
static void make_orthogonal(const double *a, double *b)
{
    double re = 0, im = 0;
    for (int i = 0; i < 6; i += 2) {
        re += a[i] * b[i] + a[i + 1] * b[i + 1];
        im += a[i] * b[i + 1] - a[i + 1] * b[i];
    }
    for (int i = 0; i < 6; i += 2) {
        b[i] -= a[i] * re - a[i + 1] * im;
        b[i + 1] -= a[i] * im + a[i + 1] * re;
    }
}

/* c = conj(a x b): with it as the third row, the determinant is 1 */
static void cross(const double *a, const double *b, double *c)
{
    for (int i = 0; i < 3; i++) {
        int j = 2 * ((i + 1) % 3), k = 2 * ((i + 2) % 3);
        c[2 * i] = a[j] * b[k] - a[j + 1] * b[k + 1] - a[k] * b[j] + a[k + 1] * b[j + 1];
        c[2 * i + 1] = -(a[j] * b[k + 1] + a[j + 1] * b[k] - a[k] * b[j + 1] - a[k + 1] * b[j]);
    }
}

static void make_link(double *u)
{
    for (int i = 0; i < 12; i++)
        u[i] = spread * next_number() + (i == 0 || i == 8 ? 1 : 0);
    normalise(u);
    make_orthogonal(u, u + 6);
    normalise(u + 6);
    cross(u, u + 6, u + 12);
}

/* ---- records ---- */

/* A time slice, big-endian, as ILDG wants it. */
static void make_slice(const struct config *config, unsigned char *out)
{
    unsigned size = config->precision / 8;
    double link[REALS];
    for (uint64_t i = 0; i < config->slice_sites * DIRS * REALS; i++, out += size) {
        if (i % REALS == 0)
            make_link(link);
        float narrow = (float)link[i % REALS];
        uint32_t bits32;
        uint64_t bits;
        memcpy(&bits32, &narrow, sizeof bits32);
        memcpy(&bits, &link[i % REALS], sizeof bits);
        if (size == 4)
            bits = bits32;
        for (unsigned j = 0; j < size; j++)
            out[j] = (unsigned char)(bits >> 8 * (size - 1 - j));
    }
}

static int write_links(const struct config *config, struct limefile_writer *writer,
                       struct limefile_checksum *checksum)
{
    unsigned char *raw = malloc(config->slice_bytes);
    int err = raw ? 0 : -ENOMEM;
    for (unsigned t = 0; !err && t < config->edge[3]; t++) {
        make_slice(config, raw);
        limefile_checksum_add(checksum, raw, config->slice_sites,
                              config->slice_bytes / config->slice_sites,
                              t * config->slice_sites);
        err = limefile_writer_write(writer, raw, config->slice_bytes);
    }
    free(raw);
    return err;
}

/* As tmLQCD writes it. Its length depends on the seed only, so that it can be put in its
 * place when the plaquette is known. */
static int xlf_info(const struct config *config, double plaquette, char *buf, size_t cap)
{
    return snprintf(buf, cap,
                    "plaquette = %.*f\n trajectory nr = %" PRIu64 "\n"
                    " beta = 6.000000000000, kappa = 0.177000000000, mu = 0.500000000000, "
                    "c2_rec = 0.000000\n time = 1700000000\n hmcversion = make-config\n"
                    " mubar = 0.000000000000\n epsilonbar = 0.000000000000\n"
                    " date = Tue Nov 14 22:13:20 2023\n",
                    plaquette < 0 ? 11 : 12, plaquette, config->seed);
}

static int ildg_format(const struct config *config, char *buf, size_t cap)
{
    return snprintf(buf, cap,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                    "<ildgFormat xmlns=\"http://www.lqcd.org/ildg\"\n"
                    "            xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n"
                    "            xsi:schemaLocation=\"http://www.lqcd.org/ildg/filefmt.xsd\">\n"
                    "  <version>1.0</version>\n  <field>su3gauge</field>\n"
                    "  <precision>%u</precision>\n  <lx>%u</lx>\n  <ly>%u</ly>\n"
                    "  <lz>%u</lz>\n  <lt>%u</lt>\n</ildgFormat>",
                    config->precision, config->edge[0], config->edge[1], config->edge[2],
                    config->edge[3]);
}

static int scidac_checksum(const struct limefile_checksum *sum, char *buf, size_t cap)
{
    return snprintf(buf, cap,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<scidacChecksum>\n"
                    "  <version>1.0</version>\n  <suma>%08" PRIx32 "</suma>\n"
                    "  <sumb>%08" PRIx32 "</sumb>\n</scidacChecksum>",
                    sum->suma, sum->sumb);
}

static int write_text(struct limefile_writer *writer, const char *type, const char *text,
                      bool mb, bool me)
{
    size_t n = strlen(text);
    int err = limefile_writer_begin(writer, type, strlen(type), n, mb, me);
    if (!err)
        err = limefile_writer_write(writer, text, n);
    return err ? err : limefile_writer_end(writer);
}

static int write_records(const struct config *config, struct limefile_writer *writer)
{
    static const char binary[] = "ildg-binary-data";
    struct limefile_checksum checksum = {0, 0};
    char text[1024];
    xlf_info(config, 0, text, sizeof text);
    int err = write_text(writer, "xlf-info", text, true, true);
    ildg_format(config, text, sizeof text);
    if (!err)
        err = write_text(writer, "ildg-format", text, true, false);
    if (!err)
        err =
            limefile_writer_begin(writer, binary, strlen(binary), config->bytes, false, false);
    if (!err)
        err = write_links(config, writer, &checksum);
    if (!err)
        err = limefile_writer_end(writer);
    if (!err)
        err = write_text(writer, "ildg-data-lfn", config->lfn, false, false);
    scidac_checksum(&checksum, text, sizeof text);
    return err ? err : write_text(writer, "scidac-checksum", text, false, true);
}

/* The plaquette is put in its place when all is written. */
static int write_config(const struct config *config, int fd)
{
    struct limefile_fd to;
    struct limefile_writer *writer;
    struct limefile_gauge *gauge;
    struct limefile_gauge_totals totals;
    char text[1024];
    uint64_t size;
    limefile_fd_init(&to, fd);
    int err = limefile_writer_new(&to.source, 0, &writer);
    if (err)
        return err;
    err = write_records(config, writer);
    if (!err)
        err = limefile_writer_finish(writer, &size);
    limefile_writer_free(writer);
    if (!err)
        err = limefile_gauge_open(&to.source, 0, &gauge, NULL);
    if (err)
        return err;
    const struct limefile_gauge_pass pass = {.sites = &gauge->sites};
    err = limefile_gauge_run(&pass, &totals);
    limefile_gauge_close(gauge);
    if (err)
        return err;
    size_t n = (size_t)xlf_info(config, totals.physics.plaquette, text, sizeof text);
    return limefile_write_full(&to.source, text, n, LIMEFILE_HEADER_BYTES);
}

static int fail(const char *file, int err)
{
    fprintf(stderr, "make-config: %s: write: %s\n", file, limefile_strerror(err));
    return 1;
}

static int make_file(const struct config *config)
{
    int fd = open(config->file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int err = fd < 0 ? -errno : write_config(config, fd);
    if (fd >= 0 && close(fd) != 0 && !err)
        err = -errno;
    return err ? fail(config->file, err) : 0;
}

/* ---- the command line ---- */

static const char usage[] = "usage: make-config [--lattice LX,LY,LZ,LT] [--precision 32|64] "
                            "[--seed N] [--lfn NAME] FILE\n"
                            "Writes a sample ILDG gauge configuration (8,8,8,16 at 64 bits).\n";

static bool read_number(const char **text, uint64_t max, uint64_t *value)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    *value = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0 && *value <= max;
}

static bool read_lattice(const char *text, unsigned edge[DIRS])
{
    for (int mu = 0; mu < DIRS; mu++) {
        uint64_t value;
        if (!read_number(&text, EDGE_MAX, &value) || value == 0 ||
            *text != (mu < 3 ? ',' : '\0'))
            return false;
        edge[mu] = (unsigned)value;
        text++;
    }
    return true;
}

static bool read_option(struct config *config, int key, const char *text)
{
    uint64_t value;
    switch (key) {
    case 'l':
        return read_lattice(text, config->edge);
    case 'p':
        if (!read_number(&text, 64, &value) || *text || (value != 32 && value != 64))
            return false;
        config->precision = (unsigned)value;
        return true;
    case 's':
        return read_number(&text, UINT64_MAX, &config->seed) && *text == '\0';
    default:
        config->lfn = text;
        return true;
    }
}

/* 0 to go on, else the exit code less one. */
static int read_command(int argc, char *argv[], struct config *config)
{
    static const struct option options[] = {
        {"lattice", required_argument, NULL, 'l'}, {"precision", required_argument, NULL, 'p'},
        {"seed", required_argument, NULL, 's'},    {"lfn", required_argument, NULL, 'n'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    int key, which;
    while ((key = getopt_long(argc, argv, "", options, &which)) != -1) {
        if (key == 'h') {
            fputs(usage, stdout);
            return 1;
        }
        if (key == '?')
            return 3;
        if (!read_option(config, key, optarg)) {
            fprintf(stderr, "make-config: --%s: read: '%s' is no such thing\n",
                    options[which].name, optarg);
            return 3;
        }
    }
    if (argc - optind != 1) {
        fputs(usage, stderr);
        return 3;
    }
    config->file = argv[optind];
    return 0;
}

static bool set_sizes(struct config *config)
{
    const unsigned *edge = config->edge;
    config->slice_sites = (uint64_t)edge[0] * edge[1] * edge[2];
    return !__builtin_mul_overflow(config->slice_sites, DIRS * REALS * config->precision / 8,
                                   &config->slice_bytes) &&
           !__builtin_mul_overflow(config->slice_bytes, edge[3], &config->bytes);
}

int main(int argc, char *argv[])
{
    struct config config = {
        .edge = {8, 8, 8, 16},
        .precision = 64,
        .seed = 1,
        .lfn = "lfn://limefs/sample/conf.0001",
    };
    int done = read_command(argc, argv, &config);
    if (done)
        return done - 1;
    if (!set_sizes(&config))
        return fail(config.file, LIMEFILE_E_LENGTH);
    seed_numbers(config.seed);
    return make_file(&config);
}
