/*
 * calls_child.c - children of which fork(2) does not tell
 *
 * They have descriptors of ours, too, as long as they have not executed a program: that one of
 * this process is closed is not told then (notice.c).
 */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <wordexp.h>

pid_t _Fork(void);
FILE *_IO_popen(const char *, const char *);
int __clone(int (*)(void *), void *, int, void *, ...);

#define CHILD(name, parameters, ...)                 \
    EXPORTED int name parameters                     \
    {                                                \
        limefs_run_notice_no_more();                 \
        if (!limefs_run_real()->name)                \
            return ENOSYS;                           \
        return limefs_run_real()->name(__VA_ARGS__); \
    }

#define SPAWN(name)                                                                  \
    CHILD(name,                                                                      \
          (pid_t *restrict pid, const char *restrict path,                           \
           const posix_spawn_file_actions_t *restrict actions,                       \
           const posix_spawnattr_t *restrict attributes, char *const argv[restrict], \
           char *const environment[restrict]),                                       \
          pid, path, actions, attributes, argv, environment)

SPAWN(posix_spawn)
SPAWN(posix_spawnp)
#if __GLIBC_PREREQ(2, 39) /* who finds that they are there takes it that they work */
SPAWN(pidfd_spawn)
SPAWN(pidfd_spawnp)
#endif
CHILD(system, (const char *command), command)
CHILD(wordexp, (const char *restrict words, wordexp_t *restrict found, int flags), words, found,
      flags)

#define POPEN(name)                                            \
    EXPORTED FILE *name(const char *command, const char *mode) \
    {                                                          \
        limefs_run_notice_no_more();                           \
        return limefs_run_real()->popen(command, mode);        \
    }

POPEN(popen)
POPEN(_IO_popen)

#define CLONE(name)                                                                      \
    EXPORTED int name(int (*child)(void *), void *stack, int flags, void *argument, ...) \
    {                                                                                    \
        va_list list;                                                                    \
        limefs_run_notice_no_more();                                                     \
        va_start(list, argument);                                                        \
        void *parent_id = va_arg(list, void *), *tls = va_arg(list, void *);             \
        void *child_id = va_arg(list, void *);                                           \
        va_end(list);                                                                    \
        return limefs_run_real()->clone(child, stack, flags, argument, parent_id, tls,   \
                                        child_id);                                       \
    }

CLONE(clone)
CLONE(__clone)

EXPORTED pid_t _Fork(void)
{
    limefs_run_notice_no_more();
    if (!limefs_run_real()->_Fork) /* of glibc 2.34 */
        return fork();
    pid_t pid = limefs_run_real()->_Fork();
    if (pid == 0)
        limefs_run_notice_in_child();
    return pid;
}

/* The child returns from it first, to where the parent does afterwards: nothing of ours may be
 * on the stack by then. So libc's function is jumped to. */
#if LIMEFS_RUN_SEES_VFORK
void *limefs_run_before_vfork(void);

__attribute__((used)) void *limefs_run_before_vfork(void)
{
    limefs_run_notice_no_more();
    return (void *)(intptr_t)limefs_run_real()->vfork;
}

#define VFORK(type, code)                            \
    __asm__(".text\n"                                \
            ".globl vfork, __vfork\n"                \
            ".type vfork, " type "\n"                \
            ".set __vfork, vfork\n"                  \
            "vfork:\n"                               \
            ".cfi_startproc\n" code ".cfi_endproc\n" \
            ".size vfork, .-vfork\n")

#if defined(__x86_64__)
VFORK("@function", "endbr64\n"
                   "subq $8, %rsp\n"
                   ".cfi_adjust_cfa_offset 8\n"
                   "call limefs_run_before_vfork\n"
                   "addq $8, %rsp\n"
                   ".cfi_adjust_cfa_offset -8\n"
                   "jmp *%rax\n");
#else
VFORK("%function", "hint #34\n" /* bti c */
                   "stp x29, x30, [sp, #-16]!\n"
                   ".cfi_adjust_cfa_offset 16\n"
                   ".cfi_rel_offset x30, 8\n"
                   "bl limefs_run_before_vfork\n"
                   "ldp x29, x30, [sp], #16\n"
                   ".cfi_adjust_cfa_offset -16\n"
                   ".cfi_restore x30\n"
                   "mov x16, x0\n"
                   "br x16\n");
#endif
#endif
