/* status.h - limefs --status: what a mount says of itself */
#ifndef LIMEFS_STATUS_H
#define LIMEFS_STATUS_H

/* limefs --status [--json] MOUNTPOINT; the exit code. */
int limefs_status_main(int argc, char *argv[]);

#endif
