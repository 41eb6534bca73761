/* textfile.c - read molecules from text */
#define _GNU_SOURCE
#include "textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void open_path(struct checkpoint_textfile *t, char error[CHECKPOINT_ERROR_BYTES])
{
    struct stat st;
    int fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    t->file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!t->file || fstat(fd, &st) != 0)
        snprintf(error, CHECKPOINT_ERROR_BYTES, "open: %s", strerror(errno));
    else if (!S_ISREG(st.st_mode))
        snprintf(error, CHECKPOINT_ERROR_BYTES, "not a regular file");
    else
        t->bytes = st.st_size;
}

/* Reads the header into t->text and parses it. Sets error on failure. */
static void read_text_header(struct checkpoint_textfile *t, char error[CHECKPOINT_ERROR_BYTES])
{
    char reason[CHECKPOINT_REASON_BYTES];
    int64_t line;
    size_t n = fread(t->text, 1, CHECKPOINT_HEADER_MAX, t->file);
    if (ferror(t->file)) {
        snprintf(error, CHECKPOINT_ERROR_BYTES, "read: %s", strerror(errno));
        return;
    }
    t->text[n] = '\0';
    if (checkpoint_header_parse(t->text, n, &t->header, reason, &line))
        t->text[t->header.bytes] = '\0';
    else
        snprintf(error, CHECKPOINT_ERROR_BYTES, "line %lld: %s", (long long)line, reason);
}

bool checkpoint_textfile_open(const struct checkpoint_world *world, const char *path,
                              struct checkpoint_textfile *t)
{
    char error[CHECKPOINT_ERROR_BYTES] = "";
    *t = (struct checkpoint_textfile){.path = path};
    t->text = checkpoint_allocate(NULL, CHECKPOINT_HEADER_MAX + 1, 1);
    open_path(t, error);
    if (!error[0] && world->rank == 0)
        read_text_header(t, error);
    if (!checkpoint_report(world, path, error)) {
        checkpoint_textfile_close(t);
        return false;
    }
    MPI_Bcast(&t->header, sizeof t->header, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(&t->bytes, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    MPI_Bcast(t->text, (int)t->header.bytes + 1, MPI_CHAR, 0, MPI_COMM_WORLD);
    return true;
}

void checkpoint_textfile_close(struct checkpoint_textfile *t)
{
    free(t->text);
    if (t->file)
        fclose(t->file);
    *t = (struct checkpoint_textfile){0};
}

/* The state of checkpoint_textfile_read() on this rank. */
struct reading {
    const struct checkpoint_textfile *text;
    struct checkpoint_particles *particles;
    int64_t lines; /* lines read so far */
    char error[CHECKPOINT_ERROR_BYTES];
    bool is_line_error; /* `error` is about the line that was read most recently */
};

/* Parses a line and adds its molecule, if any. Cuts off the line end in `line`. On an error
 * sets r->error and returns false. */
static bool parse_line(struct reading *r, char *line, size_t n)
{
    struct checkpoint_molecule m;
    char reason[CHECKPOINT_REASON_BYTES];
    if (n > 0 && line[n - 1] == '\n')
        line[--n] = '\0';
    r->lines++;
    int result = checkpoint_line_parse(line, n, &r->text->header, &m, reason);
    if (result > 0)
        memcpy(checkpoint_particles_add(r->particles), &m, (size_t)r->particles->bytes);
    if (result < 0)
        snprintf(r->error, sizeof r->error, "%s", reason);
    r->is_line_error = result < 0;
    return result >= 0;
}

/* Reads the lines that begin in this rank's part of the file, [at, end). */
static void read_lines(struct reading *r, int64_t at, int64_t end)
{
    FILE *file = r->text->file;
    bool is_in_line = at > (int64_t)r->text->header.bytes; /* `at` may be inside a line */
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n = 0;
    at -= is_in_line;
    if (fseeko(file, at, SEEK_SET) == 0) {
        if (is_in_line && (n = getline(&line, &capacity, file)) > 0)
            at += n;
        while (at < end && (n = getline(&line, &capacity, file)) > 0 &&
               parse_line(r, line, (size_t)n))
            at += n;
    }
    if (n < 0 && !feof(file))
        snprintf(r->error, sizeof r->error, "read: %s", strerror(errno));
    free(line);
}

/* Reports an error with its line number in the file. Only the error of the lowest failing rank
 * is printed. Its number is right, because all lower ranks have counted all their lines. */
static bool report_line(const struct checkpoint_world *world, struct reading *r)
{
    char error[CHECKPOINT_ERROR_BYTES + 32];
    int64_t before = 0;
    MPI_Exscan(&r->lines, &before, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (world->rank == 0)
        before = 0;
    if (r->is_line_error)
        snprintf(error, sizeof error, "line %lld: %s",
                 (long long)(r->text->header.lines + before + r->lines), r->error);
    else
        snprintf(error, sizeof error, "%s", r->error);
    return checkpoint_report(world, r->text->path, error);
}

static bool check_molecule_count(const struct checkpoint_world *world,
                                 const struct checkpoint_textfile *t, int64_t own)
{
    char error[CHECKPOINT_ERROR_BYTES] = "";
    int64_t all = checkpoint_sum(own);
    if (all != t->header.molecules)
        snprintf(error, sizeof error, "NumberOfMolecules is %lld, but %lld follow",
                 (long long)t->header.molecules, (long long)all);
    return checkpoint_report(world, t->path, error);
}

bool checkpoint_textfile_read(const struct checkpoint_world *world,
                              struct checkpoint_textfile *t, struct checkpoint_particles *p)
{
    int64_t begin = (int64_t)t->header.bytes, bytes = t->bytes - begin;
    struct reading r = {.text = t, .particles = p};
    *p = (struct checkpoint_particles){.bytes = checkpoint_layout(t->header.format)->bytes};
    read_lines(&r, begin + (int64_t)((__int128)bytes * world->rank / world->ranks),
               begin + (int64_t)((__int128)bytes * (world->rank + 1) / world->ranks));
    if (report_line(world, &r) && check_molecule_count(world, t, p->count))
        return true;
    checkpoint_particles_free(p);
    return false;
}
