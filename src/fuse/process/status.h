/* status.h - limefs --status: print the statistics of a mount */
#ifndef LIMEFS_STATUS_H
#define LIMEFS_STATUS_H

/* Runs limefs --status [--bytes | --json] MOUNTPOINT (arguments in any order). Returns the exit
 * status, or -1 if --status is not among the arguments. */
int limefs_status_main(int argc, char *argv[]);

#endif
