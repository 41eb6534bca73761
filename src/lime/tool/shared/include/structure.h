/* structure.h - the verdict on the structure and the metadata of a container in a mount */
#ifndef STRUCTURE_H
#define STRUCTURE_H

#include "limeverdict.h"

/* Examines what 'lime check' examines without --data: of the directory that a mount shows of a
 * container, or of a file that it shows as a plain one. Such a file is skipped unless it is
 * what damage has left of a container. The reason is "" if the verdict is good or skipped. */
#define STRUCTURE_REASON_MAX 640
enum limefile_verdict structure_verdict(const char *path, char reason[STRUCTURE_REASON_MAX]);

#endif
