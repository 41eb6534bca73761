/* outbox.h - packets on their way to a peer that may take its time */
#ifndef JOB_OUTBOX_H
#define JOB_OUTBOX_H

#include "limejob.h"

struct job_parcel;

struct job_outbox {
    struct job_parcel *first, *last;
    size_t bytes; /* that wait */
};

/* Takes a copy, also of the packet's descriptor. -errno. */
int job_outbox_put(struct job_outbox *, const struct limejob_packet *);

/* 1: all is sent; 0: the peer takes no more now; -errno: it is gone. */
int job_outbox_flush(struct job_outbox *, int fd);
void job_outbox_clear(struct job_outbox *);

#endif
