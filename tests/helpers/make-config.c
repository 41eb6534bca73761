/*
 * make-config.c - writes a sample ILDG gauge configuration: random SU(3) links not far from
 * unity, with the records, the plaquette and the checksum that a real writer would give it.
 *
 * The same options give the same bytes. In memory are four time slices,
 * not the lattice.
 */
#define _GNU_SOURCE
#include "limefile.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DIRS = 4,   /* x, y, z, t */
    REALS = 18, /* of a 3x3 complex matrix: row-major; re, im */
    EDGE_MAX = 65536,
};

/* How far the links are from unity: this gives a plaquette as at beta = 6. */
static const double spread = 0.38;

struct link {
    double c[REALS];
};

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

static void make_link(struct link *u, unsigned precision)
{
    for (int i = 0; i < 12; i++)
        u->c[i] = spread * next_number() + (i == 0 || i == 8 ? 1 : 0);
    normalise(u->c);
    make_orthogonal(u->c, u->c + 6);
    normalise(u->c + 6);
    cross(u->c, u->c + 6, u->c + 12);
    for (int i = 0; precision == 32 && i < REALS; i++)
        u->c[i] = (double)(float)u->c[i]; /* what is measured is what is stored */
}

static void make_slice(const struct config *config, struct link *slice)
{
    for (uint64_t i = 0; i < config->slice_sites * DIRS; i++)
        make_link(&slice[i], config->precision);
}

/* ---- the plaquette ---- */

static void multiply(const struct link *a, const struct link *b, struct link *out)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double re = 0, im = 0;
            for (int k = 0; k < 3; k++) {
                const double *x = &a->c[6 * i + 2 * k], *y = &b->c[6 * k + 2 * j];
                re += x[0] * y[0] - x[1] * y[1];
                im += x[0] * y[1] + x[1] * y[0];
            }
            out->c[6 * i + 2 * j] = re;
            out->c[6 * i + 2 * j + 1] = im;
        }
}

/* Re tr(a b (c d)^+) */
static double trace_of_loop(const struct link *a, const struct link *b, const struct link *c,
                            const struct link *d)
{
    struct link ab, cd;
    double sum = 0;
    multiply(a, b, &ab);
    multiply(c, d, &cd);
    for (int i = 0; i < REALS; i++)
        sum += ab.c[i] * cd.c[i];
    return sum;
}

/* The sum over all loops that begin in the slice `here`; `next` is the one after it in t. */
static double sum_of_slice(const struct config *config, const struct link *here,
                           const struct link *next)
{
    const unsigned *edge = config->edge;
    const uint64_t stride[3] = {1, edge[0], (uint64_t)edge[0] * edge[1]};
    double sum = 0;
    for (uint64_t site = 0; site < config->slice_sites; site++) {
        const struct link *u = here + site * DIRS, *neighbour[DIRS];
        for (int mu = 0; mu < 3; mu++) {
            bool last = site / stride[mu] % edge[mu] == edge[mu] - 1;
            uint64_t at = last ? site - (edge[mu] - 1) * stride[mu] : site + stride[mu];
            neighbour[mu] = here + at * DIRS;
        }
        neighbour[3] = next + site * DIRS;
        for (int mu = 0; mu < DIRS; mu++)
            for (int nu = 0; nu < mu; nu++)
                sum += trace_of_loop(u + mu, neighbour[mu] + nu, u + nu, neighbour[nu] + mu);
    }
    return sum;
}

/* ---- records ---- */

/* Big-endian, as ILDG wants it. */
static void encode_slice(const struct config *config, const struct link *slice,
                         unsigned char *out)
{
    unsigned size = config->precision / 8;
    for (uint64_t i = 0; i < config->slice_sites * DIRS * REALS; i++, out += size) {
        double value = slice[i / REALS].c[i % REALS];
        float narrow = (float)value;
        uint32_t bits32;
        uint64_t bits;
        memcpy(&bits32, &narrow, sizeof bits32);
        memcpy(&bits, &value, sizeof bits);
        if (size == 4)
            bits = bits32;
        for (unsigned j = 0; j < size; j++)
            out[j] = (unsigned char)(bits >> 8 * (size - 1 - j));
    }
}

static int write_links(const struct config *config, struct limefile_writer *writer,
                       struct limefile_checksum *checksum, double *plaquette)
{
    uint64_t links = config->slice_sites * DIRS;
    struct link *slices = calloc(3 * links, sizeof *slices);
    unsigned char *raw = malloc(config->slice_bytes);
    int err = slices && raw ? 0 : -ENOMEM;
    size_t site_bytes = config->slice_bytes / config->slice_sites;
    struct link *here = slices;
    double sum = 0;
    if (!err)
        make_slice(config, here);
    for (unsigned t = 0; !err && t < config->edge[3]; t++) {
        struct link *next = slices;
        encode_slice(config, here, raw);
        limefile_checksum_add(checksum, raw, config->slice_sites, site_bytes,
                              t * config->slice_sites);
        err = limefile_writer_write(writer, raw, config->slice_bytes);
        if (t + 1 < config->edge[3]) { /* else the first one: periodic */
            next = slices + (1 + t % 2) * links;
            make_slice(config, next);
        }
        sum += sum_of_slice(config, here, next);
        here = next;
    }
    *plaquette = sum / ((double)config->slice_sites * config->edge[3] * 6 * 3);
    free(raw);
    free(slices);
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

static int write_records(const struct config *config, struct limefile_writer *writer,
                         double *plaquette)
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
        err = write_links(config, writer, &checksum, plaquette);
    if (!err)
        err = limefile_writer_end(writer);
    if (!err)
        err = write_text(writer, "ildg-data-lfn", config->lfn, false, false);
    scidac_checksum(&checksum, text, sizeof text);
    return err ? err : write_text(writer, "scidac-checksum", text, false, true);
}

static int write_config(const struct config *config, int fd)
{
    struct limefile_fd to;
    struct limefile_writer *writer;
    char text[1024];
    double plaquette;
    uint64_t size;
    limefile_fd_init(&to, fd);
    int err = limefile_writer_new(&to.source, 0, &writer);
    if (err)
        return err;
    err = write_records(config, writer, &plaquette);
    if (!err)
        err = limefile_writer_finish(writer, &size);
    limefile_writer_free(writer);
    if (err)
        return err;
    size_t n = (size_t)xlf_info(config, plaquette, text, sizeof text);
    return limefile_write_full(&to.source, text, n, LIMEFILE_HEADER_BYTES);
}

/* ---- the file: there whole or not at all ---- */

static char *unfinished;

static void on_signal(int number)
{
    unlink(unfinished);
    signal(number, SIG_DFL);
    raise(number);
}

static int fail(const char *file, const char *action, int err)
{
    fprintf(stderr, "make-config: %s: %s: %s\n", file, action, limefile_strerror(err));
    return 1;
}

static int put_in_place(const struct config *config, int fd)
{
    mode_t mask = umask(0);
    umask(mask);
    int err = write_config(config, fd);
    if (!err && fchmod(fd, 0666 & ~mask) != 0)
        err = -errno;
    if (close(fd) != 0 && !err)
        err = -errno;
    if (!err && rename(unfinished, config->file) != 0)
        err = -errno;
    if (err)
        unlink(unfinished);
    return err;
}

static int make_file(const struct config *config)
{
    struct stat st;
    if (stat(config->file, &st) == 0 && !S_ISREG(st.st_mode))
        return fail(config->file, "write", S_ISDIR(st.st_mode) ? -EISDIR : LIMEFILE_E_NOT_FILE);
    if (asprintf(&unfinished, "%s.XXXXXX", config->file) < 0)
        return fail(config->file, "write", -ENOMEM);
    int fd = mkostemp(unfinished, O_CLOEXEC);
    int err = fd < 0 ? -errno : 0;
    if (!err) {
        signal(SIGINT, on_signal);
        signal(SIGTERM, on_signal);
        err = put_in_place(config, fd);
    }
    free(unfinished);
    return err ? fail(config->file, "write", err) : 0;
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
    size_t in_memory;
    config->slice_sites = (uint64_t)edge[0] * edge[1] * edge[2];
    return !__builtin_mul_overflow(config->slice_sites, DIRS * REALS * config->precision / 8,
                                   &config->slice_bytes) &&
           !__builtin_mul_overflow(config->slice_bytes, edge[3], &config->bytes) &&
           !__builtin_mul_overflow(config->slice_sites, 3 * DIRS * sizeof(struct link),
                                   &in_memory);
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
        return fail(config.file, "write", LIMEFILE_E_LENGTH);
    seed_numbers(config.seed);
    return make_file(&config);
}
