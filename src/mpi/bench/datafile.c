/* datafile.c - refuse to overwrite a file that lime-bench has not made */
#include "datafile.h"
#include "report.h"

#include <errno.h>
#include <sys/stat.h>

bool bench_datafile_is_free(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0 && errno == ENOENT)
        return true;
    bench_say("%s: write: it exists and would be overwritten; remove it, or name another file",
              path);
    return false;
}
