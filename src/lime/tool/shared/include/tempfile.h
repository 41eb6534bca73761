/* tempfile.h - files without a name, and directories synced */
#ifndef TEMPFILE_H
#define TEMPFILE_H

/* Opens a file without a name in that folder, or in /tmp where it cannot have one: a
 * descriptor, or -errno. */
int tempfile_unnamed(const char *folder);

/* Makes a change of names in the folder of `path` durable. */
int sync_folder_of(const char *path);

#endif
