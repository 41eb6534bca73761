/*
 * turns.h - what the workers of several.c print, in the order of the list; inside of
 * tool/shared
 *
 * The file whose turn it is comes out as it is printed; of those ahead of it a little is held.
 * A file that comes out whole is held to its end, and what is more than a little in a temporary
 * file, the page. Where there is no room for it, the file comes out as it is printed.
 */
#ifndef TURNS_H
#define TURNS_H

#include "several.h"

#include <stdio.h>

enum { PACKET_MAX = 32 * 1024 /* bytes of its body */ };

enum packet_kind { TO_STDOUT, TO_STDERR, GROWS, ENDED };

/* From a worker, in front of the text or of the result. */
struct head {
    enum packet_kind kind;
    int status; /* ENDED: the exit status; */
    int how;    /* or, not 0, how the worker itself was ended, as waitpid() has it */
};

struct packet {
    struct head head;
    char body[PACKET_MAX];
};

struct turns {
    const struct several *all;
    size_t turn;          /* the file whose output comes out */
    struct waiting *ring; /* of `ahead` files */
    size_t ahead;
    int page;       /* of the file whose turn it is, before what is held of it; -1: none yet */
    uint64_t paged; /* bytes in it */
    bool flows;     /* that file has no room there: it comes out as it is printed */
    bool printed;   /* by a file before, */
    bool prints;    /* and by this one */
    int worst;      /* exit status */
};

/* For files of which none is begun before it is less than `ahead` away from the turn. False:
 * out of memory. */
bool turns_begin(struct turns *, const struct several *, size_t ahead);

/* `n` bytes of a packet, head included. */
void turns_take(struct turns *, size_t file, const struct packet *, size_t n);

/* As much is held of the file as may be: it has to wait for its turn. */
bool turns_is_full(const struct turns *, size_t file);

/* Prints `text` of the file whose turn it is, which is worked on in this process. */
void turns_print(struct turns *, const char *text, size_t n);

/* There is no memory for what a file prints: says so, and ends this process. */
_Noreturn void turns_give_up(const struct turns *, size_t file);

void turns_end(struct turns *);

#endif
