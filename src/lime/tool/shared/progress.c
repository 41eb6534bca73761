/* progress.c - "unpack   42%  1.3G/s  0:07 left", rewritten in place */
#include "progress.h"
#include "tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static bool visible;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void progress_begin(struct progress *p, const char *what, uint64_t total)
{
    *p = (struct progress){.what = what, .total = total, .wanted = isatty(STDERR_FILENO)};
    if (p->wanted)
        p->began = now();
}

void progress_begin_files(struct progress *p, const char *what, uint64_t total)
{
    progress_begin(p, what, total);
    p->counts_files = true;
}

static void show_files(const struct progress *p)
{
    fprintf(stderr, "\r%-8s %" PRIu64 " of %" PRIu64 " files   ", p->what, p->done, p->total);
    visible = true;
}

static void show(const struct progress *p, double seconds)
{
    char rate[NUMBER_HUMAN_MAX], done[NUMBER_HUMAN_MAX];
    double speed = (double)p->done / seconds;
    unsigned left = speed > 0 && p->total > p->done
                        ? (unsigned)((double)(p->total - p->done) / speed + 0.5)
                        : 0;
    double percent = p->total ? 100.0 * (double)p->done / (double)p->total : 100.0;
    fprintf(stderr, "\r%-8s %3.0f%%  %6s  %6s/s  %u:%02u left   ", p->what,
            percent > 100 ? 100 : percent, number_human(p->done, done),
            number_human((uint64_t)speed, rate), left / 60, left % 60);
    visible = true;
}

void progress_add(struct progress *p, uint64_t bytes)
{
    if (!p)
        return;
    p->done += bytes;
    if (!p->wanted)
        return;
    double t = now();
    if (t - p->began < 1 || t - p->shown < 0.2)
        return;
    p->shown = t;
    if (p->counts_files)
        show_files(p);
    else
        show(p, t - p->began);
}

void progress_to(struct progress *p, uint64_t done)
{
    if (p && done > p->done)
        progress_add(p, done - p->done);
}

void progress_hide(void)
{
    if (visible)
        fprintf(stderr, "\r%72s\r", "");
    visible = false;
}

void progress_end(struct progress *p)
{
    p->wanted = false;
    progress_hide();
}
