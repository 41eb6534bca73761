/* textfile.c - molecules out of text */
#define _GNU_SOURCE
#include "line.h"
#include "progressbar.h"
#include "textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 4 << 20, /* a line is shorter */
};

/* As many as there are, up to n; -1: errno. */
static ssize_t read_at(int fd, void *buffer, size_t n, int64_t offset)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(fd, (char *)buffer + done, n - done, offset + (int64_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* ---- the header ---- */

static void open_path(struct checkpoint_textfile *t, char error[CHECKPOINT_ERROR_BYTES])
{
    struct stat st;
    t->fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (t->fd < 0 || fstat(t->fd, &st) != 0)
        snprintf(error, CHECKPOINT_ERROR_BYTES, "open: %s", strerror(errno));
    else if (!S_ISREG(st.st_mode))
        snprintf(error, CHECKPOINT_ERROR_BYTES, "not a regular file");
    else
        t->bytes = st.st_size;
}

static void read_header(struct checkpoint_textfile *t, char error[CHECKPOINT_ERROR_BYTES])
{
    char reason[CHECKPOINT_REASON_BYTES];
    int64_t line;
    ssize_t n = read_at(t->fd, t->text, CHECKPOINT_HEADER_MAX, 0);
    if (n < 0) {
        snprintf(error, CHECKPOINT_ERROR_BYTES, "read: %s", strerror(errno));
        return;
    }
    t->text[n] = '\0';
    if (checkpoint_header_parse(t->text, (size_t)n, &t->header, reason, &line))
        t->text[t->header.bytes] = '\0';
    else
        snprintf(error, CHECKPOINT_ERROR_BYTES, "line %lld: %s", (long long)line, reason);
}

static bool share_header(const struct checkpoint_world *world, struct checkpoint_textfile *t)
{
    char error[CHECKPOINT_ERROR_BYTES] = "";
    if (world->rank == 0)
        read_header(t, error);
    if (!checkpoint_report(world, t->path, error))
        return false;
    MPI_Bcast(&t->header, sizeof t->header, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(&t->bytes, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    MPI_Bcast(t->text, (int)t->header.bytes + 1, MPI_CHAR, 0, MPI_COMM_WORLD);
    return true;
}

bool checkpoint_textfile_open(const struct checkpoint_world *world, const char *path,
                              struct checkpoint_textfile *t)
{
    char error[CHECKPOINT_ERROR_BYTES] = "";
    *t = (struct checkpoint_textfile){.path = path, .fd = -1};
    open_path(t, error);
    t->text = malloc(CHECKPOINT_HEADER_MAX + 1);
    if (!error[0] && !t->text)
        snprintf(error, sizeof error, "no memory");
    if (checkpoint_report(world, path, error) && share_header(world, t))
        return true;
    checkpoint_textfile_close(t);
    return false;
}

void checkpoint_textfile_close(struct checkpoint_textfile *t)
{
    free(t->text);
    if (t->fd >= 0)
        close(t->fd);
    t->text = NULL;
    t->fd = -1;
}

/* ---- the lines ---- */

/* A line belongs to the rank in whose part of the file it begins. */
struct reading {
    const struct checkpoint_textfile *file;
    struct checkpoint_particles *particles;
    int64_t at, end;  /* where the next line begins; lines that begin there are another's */
    int64_t from;     /* for the progress */
    int64_t lines;    /* so far */
    char *buffer;     /* from `start` of the file on */
    int64_t start, n; /* of which there are n bytes */
    char error[CHECKPOINT_ERROR_BYTES];
    bool of_line; /* `error` is about the line that was counted last */
};

/* The buffer begins at r->at. */
static bool fill(struct reading *r)
{
    int64_t from = r->at - r->start, kept = 0, want = BUFFER_BYTES;
    if (r->n > 0 && from >= 0 && from < r->n) {
        kept = r->n - from;
        memmove(r->buffer, r->buffer + from, (size_t)kept);
    }
    if (want > r->file->bytes - r->at)
        want = r->file->bytes - r->at;
    ssize_t got = want > kept ? read_at(r->file->fd, r->buffer + kept, (size_t)(want - kept),
                                        r->at + kept)
                              : 0;
    r->start = r->at;
    r->n = kept + (got > 0 ? got : 0);
    if (got < 0)
        snprintf(r->error, sizeof r->error, "read: %s", strerror(errno));
    return got >= 0;
}

/* The line at r->at, without its end: NULL if there is none any more, or an error. */
static char *next_line(struct reading *r, size_t *n)
{
    for (int attempt = 0; attempt < 2 && r->at < r->end; attempt++) {
        char *from = r->buffer + (r->at - r->start);
        int64_t left = r->start + r->n - r->at;
        char *end = left > 0 ? memchr(from, '\n', (size_t)left) : NULL;
        if (!end && left > 0 && r->at + left == r->file->bytes)
            end = from + left; /* the last one has no end */
        if (end) {
            *n = (size_t)(end - from);
            *end = '\0'; /* there is a byte more */
            r->at += end - from + 1;
            r->lines++;
            return from;
        }
        if (attempt == 0 && !fill(r))
            return NULL;
    }
    if (r->at < r->end) {
        r->of_line = r->n == BUFFER_BYTES;
        snprintf(r->error, sizeof r->error, "%s",
                 r->of_line ? "the line is too long" : "the file became shorter");
        r->lines++;
    }
    return NULL;
}

static bool take_line(struct reading *r, const char *line, size_t n)
{
    struct checkpoint_molecule m;
    char reason[CHECKPOINT_REASON_BYTES];
    int taken = checkpoint_line_parse(line, n, &r->file->header, &m, reason);
    void *place = taken > 0 ? checkpoint_particles_add(r->particles) : NULL;
    if (place)
        memcpy(place, &m, (size_t)r->particles->bytes);
    else if (taken > 0)
        snprintf(r->error, sizeof r->error, "no memory");
    else if (taken < 0)
        snprintf(r->error, sizeof r->error, "%s", reason);
    r->of_line = taken < 0;
    return !r->error[0];
}

/* Not the line in which `at` is, unless it begins there. */
static bool skip_to_line(struct reading *r)
{
    size_t n;
    if (r->at == (int64_t)r->file->header.bytes || r->at >= r->end)
        return true;
    int64_t end = r->end;
    r->at--;
    r->end = r->file->bytes;
    bool good = next_line(r, &n) != NULL || !r->error[0];
    r->end = end;
    r->lines = 0;
    return good;
}

static void read_lines(struct reading *r)
{
    char *line;
    size_t n;
    if (!skip_to_line(r))
        return;
    while ((line = next_line(r, &n)) && take_line(r, line, n))
        if (r->lines % 1024 == 0)
            checkpoint_progress_to(r->at - r->from);
}

/* The line's number in the file: those of the ranks before are all counted where the first
 * rank that has an error is. */
static bool report(const struct checkpoint_world *world, struct reading *r)
{
    char error[CHECKPOINT_ERROR_BYTES + 32];
    int64_t before = 0;
    MPI_Exscan(&r->lines, &before, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (world->rank == 0)
        before = 0;
    if (r->of_line)
        snprintf(error, sizeof error, "line %lld: %s",
                 (long long)(r->file->header.lines + before + r->lines), r->error);
    else
        snprintf(error, sizeof error, "%s", r->error);
    return checkpoint_report(world, r->file->path, error);
}

static bool count(const struct checkpoint_world *world, const struct checkpoint_textfile *t,
                  int64_t mine)
{
    char error[CHECKPOINT_ERROR_BYTES] = "";
    int64_t all = checkpoint_sum(mine);
    if (all != t->header.molecules)
        snprintf(error, sizeof error, "NumberOfMolecules is %lld, but %lld follow",
                 (long long)t->header.molecules, (long long)all);
    return checkpoint_report(world, t->path, error);
}

bool checkpoint_textfile_read(const struct checkpoint_world *world,
                              struct checkpoint_textfile *t, bool quiet,
                              struct checkpoint_particles *p)
{
    int64_t begin = (int64_t)t->header.bytes, bytes = t->bytes - begin;
    struct reading r = {.file = t, .particles = p, .buffer = malloc(BUFFER_BYTES + 1)};
    *p = (struct checkpoint_particles){.bytes = checkpoint_particle(t->header.format)->bytes};
    r.from = r.at = begin + (int64_t)((__int128)bytes * world->rank / world->ranks);
    r.end = begin + (int64_t)((__int128)bytes * (world->rank + 1) / world->ranks);
    checkpoint_progress_begin(world, "read", r.end - r.at, quiet);
    if (r.buffer)
        read_lines(&r);
    else
        snprintf(r.error, sizeof r.error, "no memory");
    checkpoint_progress_end();
    free(r.buffer);
    if (report(world, &r) && count(world, t, p->count))
        return true;
    checkpoint_particles_free(p);
    return false;
}
