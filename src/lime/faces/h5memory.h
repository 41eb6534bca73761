/*
 * h5memory.h - a file of HDF5's in memory, as long as may be, of which only what was written
 * takes memory; inside of src/lime/faces
 */
#ifndef LIMEFILE_H5MEMORY_H
#define LIMEFILE_H5MEMORY_H

#ifdef LIMEFILE_FACE_HDF5

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hdf5.h>
#if __has_include(<H5FDdevelop.h>) /* from 1.14 on, H5FD_class_t is there */
#include <H5FDdevelop.h>
#endif

#define H5MEMORY_PAGE  4096
#define H5MEMORY_PAGES 256 /* of one file; a file that wants more fails */

struct h5memory {
    struct h5memory_page {
        uint64_t at; /* multiple of H5MEMORY_PAGE */
        unsigned char *bytes;
    } page[H5MEMORY_PAGES];
    unsigned pages;
    uint64_t bytes; /* of the file, written or not */
};

/* For H5FDregister(). */
extern const H5FD_class_t h5memory_class;

/* Which file (zero to begin with) the next H5Fcreate() makes. One at a time: the caller has a
 * lock. */
void h5memory_next(struct h5memory *);

/* What was not written is 0. */
void h5memory_read(const struct h5memory *, void *out, size_t n, uint64_t at);
void h5memory_release(struct h5memory *);

#endif
#endif
