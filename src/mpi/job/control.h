/*
 * control.h - commands from the server (a thread of rank 0) to the workers of all ranks; no MPI
 *
 * The server sends each command to all workers, over one stream socket each, in the same order.
 * Each worker executes the commands in that order and replies, so collective MPI calls match. A
 * worker that waits for a command sleeps in poll(), not in MPI, which would spin.
 */
#ifndef JOB_CONTROL_H
#define JOB_CONTROL_H

#include "limejob.h"

#include <netinet/in.h>

/* Opcodes, with their payloads. A reply begins with a code, as a reply to a client does. */
enum job_opcode {
    /* From worker to server, first packet: u32 rank, token */
    JOB_JOIN = LIMEJOB_INTERNAL,
    /* u32 window, u64 bytes; ranks on rank 0's host also get the descriptor */
    JOB_WINDOW,
    /* u32 window */
    JOB_UNMAP,
    /* u32 file, u32 for_writing, u32 enum limejob_io, then as LIMEJOB_OPEN; ranks on rank 0's
     * host also get the file's descriptor. reply: u32 enum limejob_io, never AUTO */
    JOB_OPEN,
    /* u32 file */
    JOB_CLOSE,
    /* u32 file, u32 window, u64 offset in the file, u64 bytes, u64 offset in the window */
    JOB_READ,
    /* As JOB_READ, then u64 offset of the fence (or UINT64_MAX), u64 deadline, u32 uid */
    JOB_WRITE,
    /* u32 file */
    JOB_SYNC,
    /* No payload, no reply. */
    JOB_END,
    /* From worker to server, without reply: a signal asks the job to end. */
    JOB_END_REQUESTED,
};

enum {
    JOB_TOKEN_BYTES = 32,
    JOB_ADDRESSES_MAX = 32,
};

/* An IP address with a port. */
union job_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six; /* sin6_port has the same offset as sin_port */
};

/* Where workers find the server. Rank 0 sends this struct only to the job's ranks, by MPI, so
 * the token proves that a peer is one of them. */
struct job_rendezvous {
    unsigned char token[JOB_TOKEN_BYTES];
    char name[16]; /* of an abstract Unix socket, for ranks on rank 0's host */
    int addresses; /* number of TCP addresses, for ranks on other hosts; 0: no such ranks */
    union job_address address[JOB_ADDRESSES_MAX];
};

/* Rank 0: opens the listening sockets; *tcp is -1 unless ranks run on other hosts.
 * Returns 0 or -errno. */
int job_rendezvous_open(struct job_rendezvous *, bool has_remote, int *local, int *tcp);

/* Sets the options of a TCP connection between hosts; both ends call it. Small packets are sent
 * at once, and a dead host or link is detected within half a minute, even if no data flow. */
void job_tcp_set_options(int fd);

/* Other ranks: connects to the server and sends JOB_JOIN. Returns 0 or -errno. */
int job_rendezvous_join(const struct job_rendezvous *, int rank, bool local,
                        struct limejob_channel *);

#endif
