/* arguments.c - the command line of lemon_benchmark */
#include "arguments.h"

#include <getopt.h>
#include <stdlib.h>

enum {
    L_MAX = 1 << 30, /* 2 L is an int */
    MEASUREMENTS_MAX = 1000000,
};

static const char usage_text[] =
    "usage: lemon_benchmark [-ck] [-f file] [--force] L measurements\n"
    "       lemon_benchmark -r [-c] [-f file] measurements\n";

static const char help_text[] =
    "\n"
    "Writes a lattice of L x L x L x 2L sites, 576 bytes each, by Lemon's parallel calls, "
    "reads\n"
    "it again, checks every byte, and prints how long it took. To be run by mpirun: the "
    "lattice\n"
    "is distributed over the processes, and its extents are adjusted where they cannot be\n"
    "divided.\n"
    "\n"
    "  -c, --checksum   with the SciDAC checksum, which counts as a part of both times\n"
    "  -f, --file FILE  the file to use (benchmark.test)\n"
    "      --force      overwrite that file if it exists\n"
    "  -k, --keep       leave the file\n"
    "  -r, --read       only read and check a file that was kept; any number of processes\n"
    "  -h, --help       this text\n"
    "\n"
    "Writing times include closing the record, after which all data are on the disk. Times "
    "are\n"
    "those of the slowest process. Data read at once after writing often come from memory.\n"
    "Exits with 1 if an operation failed or a byte was wrong, 2 if called wrongly.\n";

static bool parse_number(const char *text, int most, int *number)
{
    char *end;
    long value = strtol(text, &end, 10);
    *number = (int)value;
    return *text && !*end && value >= 1 && value <= most;
}

bool arguments_parse(int argc, char **argv, struct arguments *options)
{
    static const struct option names[] = {{"checksum", no_argument, NULL, 'c'},
                                          {"file", required_argument, NULL, 'f'},
                                          {"keep", no_argument, NULL, 'k'},
                                          {"read", no_argument, NULL, 'r'},
                                          {"force", no_argument, NULL, 'F'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *options = (struct arguments){.file = "benchmark.test"};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "cf:krh", names, NULL)) != -1;) {
        if (c == 'c')
            options->checksum = true;
        else if (c == 'f')
            options->file = optarg;
        else if (c == 'F')
            options->force = true;
        else if (c == 'k')
            options->keep = true;
        else if (c == 'r')
            options->read = true;
        else if (c == 'h')
            return options->help = true;
        else
            return false;
    }
    char **args = argv + optind;
    int n = argc - optind;
    if (options->read)
        return n == 1 && parse_number(args[0], MEASUREMENTS_MAX, &options->measurements);
    return n == 2 && parse_number(args[0], L_MAX, &options->L) &&
           parse_number(args[1], MEASUREMENTS_MAX, &options->measurements);
}

void arguments_usage(FILE *to, bool all)
{
    fprintf(to, "%s%s", usage_text, all ? help_text : "");
}
