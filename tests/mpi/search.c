/*
 * search.c - the loop by which programs look for a record ends on every container
 *
 *     search FOLDER N    the containers FOLDER/0 to FOLDER/N-1, damaged in any way
 */
#include "tap.h"

#include <lemon.h>
#include <string.h>

enum { STEPS_MOST = 1000 }; /* records that a container here may have */

/* As nissa has it. The number of calls, or -1 if it does not end. */
static int search(LemonReader *reader, const char *type, int *found)
{
    int steps = 0;
    *found = 0;
    while (!*found && lemonReaderNextRecord(reader) != LEMON_EOF) {
        *found = strcmp(lemonReaderType(reader), type) == 0;
        if (++steps > STEPS_MOST)
            return -1;
    }
    return steps;
}

int main(int argc, char **argv)
{
    int records = 0, found, endless = 0;
    tap_begin(&argc, &argv);
    int count = argc == 3 ? atoi(argv[2]) : 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        MPI_File file;
        snprintf(path, sizeof path, "%s/%d", argv[1], i);
        if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) !=
            MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 1);
        LemonReader *reader = lemonCreateReader(&file, MPI_COMM_WORLD);
        int steps = search(reader, "not-there", &found);
        endless += steps < 0 || found;
        records += steps > 0 ? steps : 0;
        lemonDestroyReader(reader);
        MPI_File_close(&file);
    }
    tap_ok(count > 0 && endless == 0, "%d containers, %d of them without an end", count,
           endless);
    tap_ok(records > count, "%d steps", records);
    return tap_end();
}
