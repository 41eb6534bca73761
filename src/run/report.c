/* report.c - how many bytes went which way, at the program's end */
#define _GNU_SOURCE
#include "run.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic uint64_t went_round, went_through;
static int report = -1; /* programs close stderr before they end */
static struct stat target;

void limefs_run_count_round(size_t n)
{
    atomic_fetch_add_explicit(&went_round, n, memory_order_relaxed);
}

void limefs_run_count_through(size_t n)
{
    atomic_fetch_add_explicit(&went_through, n, memory_order_relaxed);
}

bool limefs_run_is_report(int fd)
{
    return fd >= 0 && fd == report;
}

void limefs_run_move_report(void)
{
    report = limefs_run_real()->fcntl(report, F_DUPFD_CLOEXEC, report + 1);
}

void limefs_run_report_begin(void)
{
    const char *wanted = getenv("LIMEFS_RUN_REPORT");
    if (!wanted || strcmp(wanted, "1") != 0)
        return;
    int fd = limefs_run_real()->fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0 && fstat(fd, &target) == 0)
        report = limefs_run_out_of_the_way(fd);
}

/* Nobody has closed it unseen, and opened a file of the program's. */
static bool is_still_there(void)
{
    struct stat st;
    return report >= 0 && fstat(report, &st) == 0 && st.st_dev == target.st_dev &&
           st.st_ino == target.st_ino;
}

__attribute__((destructor)) static void print(void)
{
    char name[64], line[256];
    uint64_t round = atomic_load(&went_round), through = atomic_load(&went_through);
    if (!is_still_there() || (round == 0 && through == 0)) /* shells run many others */
        return;
    snprintf(name, sizeof name, "%s", program_invocation_short_name);
    limefile_text_defuse(name, "");
    int n = snprintf(line, sizeof line,
                     "limefs-run: %s: %" PRIu64 " bytes round the mount, %" PRIu64
                     " bytes through it\n",
                     name, round, through);
    if (n > 0 && write(report, line, (size_t)n) < 0)
        return; /* nobody to tell */
}
