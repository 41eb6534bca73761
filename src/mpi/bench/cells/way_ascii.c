/*
 * way_ascii.c - everything through rank 0, as MarDyn's text: a header, then a line for each
 * particle, in the format ICRVQD, with as many digits as give the same number again
 */
#include "posix.h"
#include "root.h"
#include "ways.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE = 400, /* the most that a line has: 13 numbers of 24 characters, 2 whole ones */
    LINES = 1 << 14,
    TEXT = LINE * LINES,
};

static int prepare(struct bench_io *io)
{
    return bench_root_prepare(io, TEXT);
}

/* ---- writing ---- */

static int write_text(struct bench_io *io, struct bench_root *root, int64_t n)
{
    int code = bench_posix_move(io, root->fd, root->text, n, root->at);
    root->at += n;
    return code;
}

static int write_header(struct bench_io *io, struct bench_root *root)
{
    const struct bench_cells *c = io->cells;
    int n = snprintf(root->text, LINE,
                     "mardyn trunk 20090731\ncurrentTime 0\nTemperature 0.7\n"
                     "Length %.17g %.17g %.17g\nNumberOfComponents 0\n"
                     "NumberOfMolecules %" PRId64 "\nMoleculeFormat ICRVQD\n",
                     c->domain.length[0], c->domain.length[1], c->domain.length[2],
                     c->gas.particles);
    return write_text(io, root, n);
}

static int print_particle(char *line, const char *particle)
{
    double numbers[BENCH_PARTICLE_NUMBERS];
    bench_particle_numbers(particle, numbers);
    int n = snprintf(line, LINE, "%" PRIu64 " %.0f", bench_particle_id(particle), numbers[1]);
    for (int i = 2; i < BENCH_PARTICLE_NUMBERS; i++)
        n += snprintf(line + n, (size_t)(LINE - n), " %.17g", numbers[i]);
    line[n] = '\n';
    return n + 1;
}

static int take(struct bench_io *io, struct bench_root *root, const char *particles, int64_t n)
{
    int code = root->at == 0 ? write_header(io, root) : 0;
    for (int64_t i = 0; i < n && code == 0;) {
        int64_t bytes = 0;
        for (int line = 0; line < LINES && i < n; line++, i++)
            bytes += print_particle(root->text + bytes, particles + i * BENCH_PARTICLE_BYTES);
        code = write_text(io, root, bytes);
    }
    return code;
}

/* ---- reading ---- */

/* The next line without its end; NULL at the file's end, or after an error. What was read and
 * is not parsed yet is root->text from `begin` to `end`. */
static char *next_line(struct bench_io *io, struct bench_root *root)
{
    for (;;) {
        char *line = root->text + root->begin, *end;
        int64_t left = root->end - root->begin;
        if ((end = memchr(line, '\n', (size_t)left))) {
            *end = '\0';
            root->begin = end + 1 - root->text;
            return line;
        }
        memmove(root->text, line, (size_t)left);
        root->begin = 0;
        root->end = left;
        int64_t n = bench_posix_some(io, root->fd, root->text + left, TEXT - left, root->at);
        if (n <= 0)
            return NULL;
        root->at += n;
        root->end += n;
    }
}

static int read_header(struct bench_io *io, struct bench_root *root)
{
    static const char count[] = "NumberOfMolecules ", format[] = "MoleculeFormat ";
    const char *line;
    root->left = -1;
    while ((line = next_line(io, root)) && strncmp(line, format, sizeof format - 1) != 0)
        if (strncmp(line, count, sizeof count - 1) == 0)
            root->left = strtoll(line + sizeof count - 1, NULL, 10);
    if (!line || root->left < 0 || strcmp(line + sizeof format - 1, "ICRVQD") != 0)
        return bench_io_fail(io, "read", "not MarDyn's text in the format ICRVQD");
    return 0;
}

static bool parse(const char *line, char *particle)
{
    double numbers[BENCH_PARTICLE_NUMBERS];
    for (int i = 0; i < BENCH_PARTICLE_NUMBERS; i++) {
        char *end;
        numbers[i] = i < 2 ? (double)strtoull(line, &end, 10) : strtod(line, &end);
        if (end == line)
            return false;
        line = end;
    }
    bench_particle_of(numbers, particle);
    return *line == '\0';
}

static int64_t give(struct bench_io *io, struct bench_root *root, char *particles)
{
    int64_t n = 0;
    if (root->at == 0 && read_header(io, root) != 0)
        return -1;
    for (; n < BENCH_ROOT_CHUNK && root->left > 0; n++, root->left--) {
        const char *line = next_line(io, root);
        if (!line)
            return bench_io_fail(io, "read", "%" PRId64 " lines are missing", root->left);
        if (!parse(line, particles + n * BENCH_PARTICLE_BYTES))
            return bench_io_fail(io, "read", "not a particle: '%.80s'", line);
    }
    return n;
}

static int transfer(struct bench_io *io)
{
    return io->writing ? bench_root_collect(io, take) : bench_root_deal(io, give);
}

const struct bench_backend bench_way_ascii = {
    .name = "ascii",
    .about = "everything through rank 0, MarDyn's text (ICRVQD)",
    .abilities = BENCH_CAN_LEAVE,
    .patterns = BENCH_ALL_PATTERNS,
    .prepare = prepare,
    .open = bench_root_open,
    .transfer = transfer,
    .sync = bench_root_sync,
    .close = bench_root_close,
    .release = bench_root_release,
};
