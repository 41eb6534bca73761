/*
 * calls_jump.c - reads that a handler of a signal jumps out of (siglongjmp(3))
 *
 * To block signals would take two system calls more for each read. So a read notes what it has
 * taken: a hold on its record, and bytes that it has moved the position by. Who jumps gives
 * that back first, for all reads that his thread is in the middle of. Should he stay in the
 * handler, the read goes on after it: it finds that it was given up, and is made by libc's
 * function.
 *
 * The notes are no part of the stack: they are there, too, after a jump that nobody sees.
 */
#define _GNU_SOURCE
#include "told.h"

#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

void __longjmp_chk(struct __jmp_buf_tag[1], int) __attribute__((noreturn));

enum {
    DEPTH = 4, /* a read, and those of handlers in it that are noted */
    TURN = 8,  /* turns are multiples of it, and the number of the note */
};

struct note {
    uint64_t turn; /* 0: given up, or ended */
    struct limefs_run_record *record;
    uint64_t life; /* of the record, before it is held */
    bool sure;     /* it is held; or else as long as its life says so */
    int fd;
    uint64_t entry; /* that fd has as long as it is the record; 0: it is ours */
    off_t to;       /* where the position then is */
    size_t moved;   /* by so much */
};

static __thread __attribute__((tls_model("initial-exec"))) struct {
    volatile struct note note[DEPTH];
    volatile uint64_t turns;
    volatile unsigned depth;
} reads;

static volatile struct note *note_of(uint64_t turn)
{
    unsigned number = turn % TURN;
    return number < DEPTH && reads.note[number].turn == turn ? &reads.note[number] : NULL;
}

uint64_t limefs_run_reading_begin(void)
{
    unsigned number = reads.depth;
    uint64_t turn = ++reads.turns * TURN + (number < DEPTH ? number : DEPTH);
    if (number < DEPTH) {
        volatile struct note *note = &reads.note[number];
        note->turn = 0;
        note->record = NULL;
        note->moved = 0;
        note->turn = turn;
    }
    reads.depth = number < DEPTH ? number + 1 : DEPTH;
    return turn;
}

bool limefs_run_reading_goes_on(uint64_t turn)
{
    return turn % TURN == DEPTH || note_of(turn);
}

struct limefs_run_record *limefs_run_reading_hold(uint64_t turn, int fd)
{
    volatile struct note *note = note_of(turn);
    struct limefs_run_record *record = limefs_run_peek(limefs_run_entry(fd));
    if (!note || !record)
        return limefs_run_hold(fd);
    note->sure = false;
    note->life = atomic_load(&record->life);
    note->record = record;
    struct limefs_run_record *held = limefs_run_hold(fd);
    note->record = held;
    note->sure = true;
    return held;
}

void limefs_run_reading_moves(uint64_t turn, int fd, uint64_t entry, off_t to, size_t n)
{
    volatile struct note *note = note_of(turn);
    if (!note)
        return;
    note->moved = 0;
    note->fd = fd;
    note->entry = entry;
    note->to = to;
    note->moved = n;
}

bool limefs_run_reading_end(uint64_t turn, struct limefs_run_record *record)
{
    volatile struct note *note = note_of(turn);
    bool on = note || turn % TURN == DEPTH;
    if (note) {
        note->moved = 0;
        note->life = record ? atomic_load(&record->life) - 1 : 0;
        note->sure = false;
    }
    if (record && on)
        limefs_run_let_go(record);
    if (note) {
        note->turn = 0;
        reads.depth = turn % TURN;
    }
    return on;
}

/* While it is taken and let go, only a program without threads can tell: no others change it.
 */
static bool is_held(const volatile struct note *note)
{
    return note->record && (note->sure || (__libc_single_threaded &&
                                           atomic_load(&note->record->life) == note->life + 1));
}

/* Not if others who share the position, or the program, have moved it on. */
static void give_up(volatile struct note *note)
{
    int fd = note->fd;
    size_t moved = note->moved;
    if (note->turn == 0)
        return;
    struct limefs_run_record *record = is_held(note) ? note->record : NULL;
    note->turn = 0;
    if (moved > 0 && (note->entry == 0 || limefs_run_entry(fd) == note->entry) &&
        lseek(fd, 0, SEEK_CUR) == note->to)
        lseek(fd, -(off_t)moved, SEEK_CUR);
    if (record)
        limefs_run_let_go(record);
}

static void give_up_all(void)
{
    int kept = errno;
    unsigned depth = reads.depth;
    reads.depth = 0;
    while (depth > 0)
        give_up(&reads.note[--depth]);
    errno = kept;
}

#define JUMP(name, real_name)                                                        \
    EXPORTED __attribute__((noreturn)) void name(struct __jmp_buf_tag to[1], int as) \
    {                                                                                \
        give_up_all();                                                               \
        limefs_run_real()->real_name(to, as);                                        \
        abort();                                                                     \
    }

JUMP(longjmp, longjmp)
JUMP(_longjmp, longjmp)
JUMP(siglongjmp, longjmp)
JUMP(__longjmp_chk, longjmp_chk)
