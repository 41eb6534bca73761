/*
 * control.h - what the server, a thread of rank 0, and the worker of each rank say to each
 * other; knows no MPI.
 *
 * A command goes to all workers, over one stream socket each, in the same order. Each worker
 * obeys in that order and replies, so collective MPI calls meet. A worker that waits for a
 * command sleeps in poll(): MPI, which would spin, never waits for one.
 */
#ifndef JOB_CONTROL_H
#define JOB_CONTROL_H

#include "limejob.h"

#include <netinet/in.h>

/* Payloads; a reply has a code, as replies to clients. */
enum job_control {
    /* worker to server, first: u32 rank, token */
    JOB_JOIN = LIMEJOB_INTERNAL,
    /* u32 window, u64 bytes; the descriptor goes to ranks on rank 0's host */
    JOB_WINDOW,
    /* u32 window */
    JOB_UNMAP,
    /* u32 file, u32 whether for writing, then as LIMEJOB_OPEN; the descriptor goes to ranks on
     * rank 0's host */
    JOB_OPEN,
    /* u32 file */
    JOB_CLOSE,
    /* u32 file, u32 window, u64 offset, u64 bytes, u64 at */
    JOB_READ,
    /* the same, u64 gate (in the window; UINT64_MAX: none), u64 until, u32 uid */
    JOB_WRITE,
    /* u32 file */
    JOB_SYNC,
    /* no reply */
    JOB_END,
    /* worker to server, no reply: a signal says that the job is to end */
    JOB_WANTS_END,
};

enum {
    JOB_TOKEN_BYTES = 32,
    JOB_ADDRESSES_MAX = 32,
};

/* An IP address, with a port. */
union job_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six; /* the port is where that of IPv4 is */
};

/* Where workers find the server: MPI brings it to all ranks, so who knows the token is one. */
struct job_rendezvous {
    unsigned char token[JOB_TOKEN_BYTES];
    char name[16]; /* of an abstract Unix socket, for ranks on the same host */
    int addresses; /* of a TCP socket on rank 0's host, for the others; 0: there are none */
    union job_address address[JOB_ADDRESSES_MAX];
};

/* Rank 0: opens the listening sockets; *tcp is -1 if there are no `others`. -errno. */
int job_rendezvous_open(struct job_rendezvous *, bool others, int *local, int *tcp);

/* Both ends of a connection between hosts: small packets go at once, and a host or link that is
 * gone is noticed within half a minute, also while nothing is said. */
void job_control_tune(int fd);

/* The other ranks: connects and says JOIN. -errno. */
int job_rendezvous_join(const struct job_rendezvous *, int rank, bool local,
                        struct limejob_channel *);

#endif
