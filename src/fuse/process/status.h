/* status.h - limefs --status: what a mount says of itself */
#ifndef LIMEFS_STATUS_H
#define LIMEFS_STATUS_H

#include <stdbool.h>

/* True if --status is among the arguments. */
bool limefs_status_requested(int argc, char *argv[]);

/* limefs --status [--json] MOUNTPOINT, in any order. Returns the exit status. */
int limefs_status_main(int argc, char *argv[]);

#endif
