/* usage.c - how lime-bench is called */
#include "options.h"

static const char usage[] = "usage: mpirun -n N lime-bench [OPTION]... FILE\n"
                            "       mpirun -n N lime-bench overlap [OPTION]... FILE\n"
                            "       mpirun -n N lime-bench checksum [OPTION]... FILE\n"
                            "       lime-bench model [OPTION]...\n"
                            "       lime-bench --list\n";

static const char help[] =
    "\n"
    "Writes and reads the same distributed data through several I/O libraries, checks every\n"
    "byte that was read, and prints how fast each was.\n"
    "\n"
    "what to measure:\n"
    "  -b, --backend LIST      back ends separated by commas, or all (all); see --list\n"
    "  -p, --pattern PATTERN   who has which bytes: lattice, disjoint, interleaved or random\n"
    "                          (lattice)\n"
    "      --operations LIST   write,read or one of the two (write,read)\n"
    "      --repetitions N     how often; the back ends take turns (5)\n"
    "\n"
    "how much (k, M, G and T are powers of 1024):\n"
    "      --size BYTES        of a rank (64M)\n"
    "      --block-size BYTES  disjoint: bytes of a rank\n"
    "      --transfer-size BYTES\n"
    "                          the most bytes moved by one call (1M; lattice: 8M)\n"
    "      --segments N        interleaved, random: transfers of a rank\n"
    "      --lattice AxBxCxD   sites, fastest dimension last (near --size)\n"
    "      --grid AxBxCxD      how the ranks divide it (as MPI_Dims_create does)\n"
    "      --site-bytes BYTES  (576: a gauge configuration in double precision)\n"
    "\n"
    "how:\n"
    "      --independent, --collective\n"
    "                          calls of single ranks, or of all together (collective where\n"
    "                          a back end has both)\n"
    "      --alignment BYTES   hdf5, netcdf4, pnetcdf, lime: where the data begin\n"
    "      --chunk BYTES       hdf5, netcdf4: chunked layout\n"
    "      --unlimited         hdf5, netcdf4, pnetcdf: the first dimension can grow\n"
    "      --shape 1d|2d       hdf5, netcdf4, pnetcdf: dimensions of the variable (1d; that\n"
    "                          of the lattice)\n"
    "      --checksum          lime: with the SciDAC checksum\n"
    "      --hint KEY=VALUE    for MPI-IO; may be given several times\n"
    "      --extent-size BYTES alltoallv: what a rank writes at once, at least (4M)\n"
    "      --job-ranks N       limefs-job: ranks of the mount's job (2)\n"
    "      --no-fsync          written data may still be in memory (--fsync)\n"
    "      --warm              read from the page cache (--cold: drop it before)\n"
    "      --cold-file         drop only pages of FILE, also as root\n"
    "      --reorder           each rank reads what another one has written\n"
    "\n"
    "an application's output:\n"
    "      --compute SECONDS   of arithmetic before each output (0)\n"
    "      --outputs N         files that are written one after another (1)\n"
    "      --phases N          the computing is N parts with a barrier after each (1)\n"
    "\n"
    "  -q, --quiet             no text but errors\n"
    "      --json FILE         results as JSON; - is standard output, and text then goes to\n"
    "                          standard error\n"
    "      --keep              leave the files\n"
    "      --seed N            of the data, and of the pattern random (1)\n"
    "      --list              show the back ends and patterns, and why one is missing\n"
    "  -h, --help              show this text\n"
    "  -V, --version           show the version\n"
    "\n"
    "FILE is written and removed again; with several back ends it is FILE.BACKEND. Times are\n"
    "those of the slowest rank, from before the file is opened to after it is closed.\n"
    "Exits with 1 if something failed or a byte was wrong, 2 if called wrongly.\n";

static const char overlap_usage[] = "usage: mpirun -n N lime-bench overlap [OPTION]... FILE\n";

static const char overlap_help[] =
    "\n"
    "What Lemon's non-blocking calls save: each rank computes for as long as a transfer "
    "takes,\n"
    "after it and while it goes on. Without any overlap both take the same time; if all of it\n"
    "overlaps, the second takes half.\n";

static const char checksum_usage[] =
    "usage: mpirun -n N lime-bench checksum [OPTION]... FILE\n";

static const char checksum_help[] = "\n"
                                    "What the SciDAC checksum adds to writing and reading a "
                                    "lattice by Lemon: without and with\n"
                                    "it in turn, each time the best of three.\n";

static const char common_help[] =
    "\n"
    "  --lattice AxBxCxD, --grid AxBxCxD, --site-bytes BYTES, --size BYTES,\n"
    "  --repetitions N, --hint KEY=VALUE, --seed N, --json FILE, --quiet: as of lime-bench\n";

void bench_options_usage(enum bench_command command, bool all, FILE *to)
{
    if (command == BENCH_OVERLAP)
        fprintf(to, "%s%s%s", overlap_usage, all ? overlap_help : "", all ? common_help : "");
    else if (command == BENCH_CHECKSUM)
        fprintf(to, "%s%s%s", checksum_usage, all ? checksum_help : "", all ? common_help : "");
    else
        fprintf(to, "%s%s", usage, all ? help : "");
}
