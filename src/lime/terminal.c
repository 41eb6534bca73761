/* terminal.c - find out if the user sees standard error on a terminal */
#include "terminal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PARENTS = 4,      /* number of parent processes that are checked */
    COMM_LENGTH = 15, /* bytes of a process's name that the kernel stores */
    NAME_BYTES = 64,
};

/* Reads the name and the parent of a process. */
static bool read_parent(long pid, long *parent, char name[NAME_BYTES])
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
        if (strncmp(name, names[i], COMM_LENGTH) == 0 ||
            (strncmp(name, names[i], strlen(names[i])) == 0 && name[strlen(names[i])] == '.'))
            return true;
    return false;
}

static bool is_terminal(const char *path)
{
    char target[256];
    ssize_t n = readlink(path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    return strncmp(target, "/dev/pts/", 9) == 0 || strncmp(target, "/dev/tty", 8) == 0;
}

bool limefile_terminal_shows_errors(void)
{
    char name[NAME_BYTES], path[64];
    long pid = getppid(), parent;
    if (isatty(STDERR_FILENO))
        return true;
    for (int i = 0; i < PARENTS && read_parent(pid, &parent, name) && is_launcher(name); i++) {
        snprintf(path, sizeof path, "/proc/%ld/fd/2", pid);
        if (is_terminal(path))
            return true;
        pid = parent;
    }
    return false;
}
