/* mounted.c - is this in a limefs mount? */
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* The kernel's list of mounts tells what is on the folder's device. */
bool is_in_limefs(const char *folder)
{
    struct stat st;
    unsigned major, minor;
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    bool known = mounts && stat(folder, &st) == 0;
    while (known && !found && getline(&line, &room, mounts) > 0)
        found = sscanf(line, "%*d %*d %u:%u", &major, &minor) == 2 &&
                makedev(major, minor) == st.st_dev && strstr(line, " - fuse.limefs ");
    free(line);
    if (mounts)
        fclose(mounts);
    return found;
}
