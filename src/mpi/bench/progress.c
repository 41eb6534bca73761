/* progress.c - a line that says what goes on */
#include "report.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

enum {
    QUIET_SECONDS = 2, /* before the first line */
    ANCESTORS = 4,
};

static bool shows, is_shown;
static double begun;

/* The parent of a process and its name. */
static bool parent_of(long pid, long *parent, char name[64])
{
    char path[64];
    int got = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "re");
    if (file) {
        got = fscanf(file, "%*d (%63[^)]) %*c %ld", name, parent);
        fclose(file);
    }
    return got == 2;
}

static bool is_launcher(const char *name)
{
    static const char *const names[] = {"mpirun",          "mpiexec", "orterun", "prterun",
                                        "hydra_pmi_proxy", "srun",    NULL};
    for (int i = 0; names[i]; i++)
        if (strncmp(name, names[i], 15) == 0 || /* the kernel keeps 15 bytes */
            (strncmp(name, names[i], strlen(names[i])) == 0 && name[strlen(names[i])] == '.'))
            return true;
    return false;
}

/* mpirun gives its ranks pipes, and shows what comes out of them: so its own standard error
 * counts. */
static bool is_on_terminal(void)
{
    char name[64], path[64], target[256];
    long pid = getppid(), parent;
    if (isatty(2))
        return true;
    for (int i = 0; i < ANCESTORS && parent_of(pid, &parent, name) && is_launcher(name); i++) {
        snprintf(path, sizeof path, "/proc/%ld/fd/2", pid);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        if (strncmp(target, "/dev/pts/", 9) == 0 || strncmp(target, "/dev/tty", 8) == 0)
            return true;
        pid = parent;
    }
    return false;
}

void bench_progress_start(const struct bench_options *o, const struct bench_world *world)
{
    shows = world->rank == 0 && !o->quiet && is_on_terminal();
    begun = MPI_Wtime();
}

void bench_progress_clear(void)
{
    if (is_shown)
        fputs("\r\033[K", stderr);
    is_shown = false;
}

void bench_progress(const struct bench_run *run, const struct bench_entry *entry,
                    enum bench_operation operation, int repetition)
{
    if (!shows || MPI_Wtime() - begun < QUIET_SECONDS)
        return;
    bench_progress_clear();
    fprintf(stderr, "repetition %d of %d: %s: %s", repetition + 1,
            (int)run->options->repetitions, entry->backend->name,
            operation == BENCH_WRITE ? "write" : "read");
    is_shown = true;
}
