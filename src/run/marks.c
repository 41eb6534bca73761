/*
 * marks.c - open files are known by a signal that is not sent (F_SETSIG)
 *
 * No other open file may have the same, so there are none where the program uses such signals
 * itself, or got a file that has one: from another program under limefs-run, say.
 */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MARK = 35,  /* the first signal that can be one, */
    MARKS = 30, /* of so many */
};

/* As the kernel has it. */
struct entry {
    uint64_t ino;
    int64_t next;
    unsigned short length;
    unsigned char type;
    char name[];
};

static volatile bool ended, theirs; /* there are no more; the program has set some itself */

static bool has_one(int fd)
{
    long mark = syscall(SYS_fcntl, fd, F_GETSIG);
    return mark >= MARK && mark < MARK + MARKS;
}

/* Of what this process has open. */
static bool others_have_one(int fd)
{
    _Alignas(struct entry) char buf[1024];
    long got = -1;
    bool found = false;
    int list =
        (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (list < 0)
        return true;
    while (!found && (got = syscall(SYS_getdents64, list, buf, sizeof buf)) > 0)
        for (long at = 0; at < got && !found;) {
            const struct entry *entry = (const struct entry *)(buf + at);
            int other = atoi(entry->name);
            found = entry->name[0] != '.' && other != fd && has_one(other);
            at += entry->length;
        }
    syscall(SYS_close, list);
    return found || got < 0;
}

/* When all are given away, no more are. */
bool limefs_run_mark(int fd, int *mark)
{
    static int turn;
    long has = syscall(SYS_fcntl, fd, F_GETSIG);
    if (ended || has != 0)
        return !ended && has == *mark;
    if (turn == 0 && others_have_one(fd))
        ended = true;
    if (ended || turn == MARKS)
        return false;
    *mark = MARK + turn++;
    return syscall(SYS_fcntl, fd, F_SETSIG, *mark) == 0;
}

bool limefs_run_has_mark(int fd, int mark)
{
    int kept = errno;
    bool has = syscall(SYS_fcntl, fd, F_GETSIG) == mark;
    errno = kept;
    return has;
}

void limefs_run_marks_end(int fd, int command)
{
    int kept = errno;
    if (command != F_SETSIG && command != F_GETSIG && command != F_SETLEASE)
        return;
    ended = true;
    limefs_run_notice_stop();
    if (!theirs && limefs_run_is_known(fd) && has_one(fd))
        syscall(SYS_fcntl, fd, F_SETSIG, 0);
    theirs = theirs || command == F_SETSIG;
    errno = kept;
}
