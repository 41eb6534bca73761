/* usage.c - how lime-bench is called */
#include "options.h"

static const char usage[] = "usage: mpirun -n N lime-bench [OPTION]... FILE\n"
                            "       mpirun -n N lime-bench overlap [OPTION]... FILE\n"
                            "       mpirun -n N lime-bench checksum [OPTION]... FILE\n"
                            "       mpirun -n N lime-bench cells [OPTION]... FILE\n"
                            "       lime-bench model [OPTION]...\n"
                            "       lime-bench --list\n";

static const char help[] =
    "\n"
    "Writes and reads the same distributed data with several I/O libraries, verifies\n"
    "every byte that was read, and prints how fast each library was. Defaults are in\n"
    "parentheses; k, M, G and T are powers of 1024.\n"
    "\n"
    "what to measure:\n"
    "  -b, --backend B[,B...]   back ends by name, or all (all); see --list\n"
    "  -p, --pattern PATTERN    which ranks have which bytes: lattice, disjoint,\n"
    "                           interleaved or random (lattice)\n"
    "      --operations LIST    write, read or both (write,read)\n"
    "      --repetitions N      how often; the back ends take turns (5)\n"
    "\n"
    "how much:\n"
    "      --size BYTES         of each rank (64M)\n"
    "      --block-size BYTES   disjoint: of each rank\n"
    "      --transfer-size BYTES\n"
    "                           the most that one call moves (1M; lattice: 8M)\n"
    "      --segments N         interleaved, random: transfers of each rank\n"
    "      --lattice AxBxCxD    sites, fastest dimension last (near --size)\n"
    "      --grid AxBxCxD       how the ranks divide them (as MPI_Dims_create)\n"
    "      --site-bytes BYTES   (576: a gauge configuration in double precision)\n"
    "\n"
    "how:\n"
    "      --independent        calls of single ranks,\n"
    "      --collective         or of all ranks together (where there are both)\n"
    "      --alignment BYTES    where the data begin: hdf5, netcdf4, pnetcdf, lime\n"
    "      --chunk BYTES        chunked layout: hdf5, netcdf4\n"
    "      --unlimited          a dimension that grows: hdf5, netcdf4, pnetcdf\n"
    "      --shape 1d|2d        of the variable: hdf5, netcdf4, pnetcdf (1d; a\n"
    "                           lattice has its own)\n"
    "      --checksum           the SciDAC checksum: lime\n"
    "      --hint KEY=VALUE     for MPI-IO; may be repeated\n"
    "      --extent-size BYTES  the least that a rank writes at once: alltoallv (4M)\n"
    "      --job-ranks N        of the mount's job: limefs-job (2)\n"
    "      --no-fsync           written data may still be in memory (--fsync)\n"
    "      --warm               leave the page cache (--cold: drop it each time)\n"
    "      --cold-file          drop only pages of FILE, as root, too\n"
    "      --reorder            each rank reads what another one has written\n"
    "\n"
    "the output of an application:\n"
    "      --compute SECONDS    arithmetic before each output (0)\n"
    "      --outputs N          files that are written one after another (1)\n"
    "      --phases N           parts of the arithmetic, a barrier after each (1)\n"
    "\n"
    "other:\n"
    "  -q, --quiet              print errors only\n"
    "      --json FILE          write the results as JSON, too; with - to standard\n"
    "                           output, and text to standard error\n"
    "  -f, --force              replace the file of --json\n"
    "      --keep               leave the files\n"
    "      --seed N             of the data, and of the random pattern (1)\n"
    "      --list               show back ends and patterns, and why one is missing\n"
    "  -h, --help               show this text; also after overlap, checksum,\n"
    "                           cells and model\n"
    "  -V, --version            show the version\n"
    "\n"
    "FILE is written, read and removed; with several back ends it is FILE.BACKEND.\n"
    "Times are those of the slowest rank, from before the file is opened to after it\n"
    "is closed. Exits with 1 if something failed or a byte was wrong, 2 if called\n"
    "wrongly.\n";

static const char overlap_usage[] = "usage: mpirun -n N lime-bench overlap [OPTION]... FILE\n";

static const char overlap_help[] =
    "\n"
    "Measures what Lemon's non-blocking calls save: each rank computes for as long as\n"
    "a transfer takes, first after it and then while it goes on. Without any overlap\n"
    "both take the same time; if all of it overlaps, the second takes half.\n";

static const char checksum_usage[] =
    "usage: mpirun -n N lime-bench checksum [OPTION]... FILE\n";

static const char checksum_help[] =
    "\n"
    "Measures what the SciDAC checksum adds when Lemon writes and reads a lattice:\n"
    "without and with it in turn, each time the best of three.\n";

static const char cells_usage[] = "usage: mpirun -n N lime-bench cells [OPTION]... FILE\n";

static const char cells_help[] =
    "\n"
    "Writes and reads a checkpoint of particles in cells by Lemon and in other ways,\n"
    "verifies every particle that was read, and prints how long each way took. A\n"
    "particle has 120 bytes: id, component, position, velocity, orientation, angular\n"
    "momentum. Defaults are in parentheses; k, M and G are powers of 1024.\n"
    "\n"
    "      --ways W[,W...]      by name, or all (all): posix, lime, ascii, binary and\n"
    "                           pnetcdf; see lime-bench --list\n"
    "      --particles N        of all ranks together (330000)\n"
    "      --cells AxBxC        that the domain is cut into (a cell for each rank;\n"
    "                           with kd, 16x16x16)\n"
    "      --distribution D     uniform, or cluster: four drops, some gas (uniform)\n"
    "      --decomposition D    of the ranks that write: regular, equal boxes, or kd,\n"
    "                           boxes of cells with as many particles (regular)\n"
    "      --read-decomposition D\n"
    "                           of the ranks that read (as those that write)\n"
    "\n"
    "Each reader wants the particles in its box; posix, the ceiling, reads as many,\n"
    "one after another. Ratios are of times: above 1 is slower. The other options are\n"
    "those of lime-bench: --operations, --repetitions, --alignment, --hint,\n"
    "--no-fsync, --warm, --cold-file, --reorder, --quiet, --json, --force, --keep,\n"
    "--seed.\n";

static const char common_help[] =
    "\n"
    "The options are those of lime-bench: --size, --lattice, --grid, --site-bytes,\n"
    "--repetitions, --hint, --seed, --cold-file, --json, --force, --quiet.\n";

void bench_options_usage(enum bench_command command, bool all, FILE *to)
{
    if (command == BENCH_OVERLAP)
        fprintf(to, "%s%s%s", overlap_usage, all ? overlap_help : "", all ? common_help : "");
    else if (command == BENCH_CHECKSUM)
        fprintf(to, "%s%s%s", checksum_usage, all ? checksum_help : "", all ? common_help : "");
    else if (command == BENCH_CELLS)
        fprintf(to, "%s%s", cells_usage, all ? cells_help : "");
    else
        fprintf(to, "%s%s", usage, all ? help : "");
}
