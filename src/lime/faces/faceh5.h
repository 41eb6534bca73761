/* faceh5.h - the HDF5 file around a dataset, by the HDF5 library; inside of src/lime/faces */
#ifndef LIMEFILE_FACEH5_H
#define LIMEFILE_FACEH5_H

#include "layout.h"

/* All bytes of the file but those of the dataset, which is one range. */
struct face_h5 {
    unsigned char *bytes; /* malloc: first those before the range, then those after it */
    size_t before, after;
};

/* Whether this build has HDF5, and the library is installed here. */
bool face_h5_is_there(void);

/* LIMEFILE_E_STATE if there is no library, or it cannot make such a file. -errno. */
int face_h5_make(const struct limefile_field *, const struct face_layout *, struct face_h5 *);

#endif
