/* volumeset.h - a set of volumes from inside; of src/lime/formats */
#ifndef LIMEFILE_VOLUMESET_H
#define LIMEFILE_VOLUMESET_H

#include "limevolumes.h"

struct volume {
    struct limefile_source *source;
    struct limefile_index *index;
    struct limefile_record list; /* of sites; ordinal 0: none */
    uint64_t sites;
    uint64_t *data; /* offsets of the data of the fields that are joined */
};

/* A record of a part of the lattice, which is not joined. */
struct part {
    uint32_t ordinal, message; /* in the master */
    struct limefile_scidac_record stated;
};

/* Sites that follow each other in the lattice and in a volume. */
struct run {
    uint64_t rank, at; /* at: in the volume's data, in sites */
    uint32_t count, volume;
};

/* A record of the joined container. */
struct joined {
    uint64_t offset; /* of its header */
    uint64_t bytes;
    uint32_t ordinal; /* in the master */
    uint32_t field;   /* number + 1 of the field that is joined; 0: as in the master */
    bool mb, me;
};

struct limefile_volumes {
    struct limefile_source source; /* first: the joined container */
    struct volume *volume;
    size_t count, master;
    struct limefile_scidac_file file;
    uint64_t sites; /* of the lattice */
    uint64_t fields;
    uint64_t *site_bytes; /* of each field */
    uint64_t *order; /* of the data in a volume other than the master: number + 1 of the field,
                      * 0: a part */
    struct part *part;
    size_t parts;
    struct limefile_volumes_options options;
    struct run *run;
    size_t runs, capacity;
    struct joined *record;
    size_t records;
    uint64_t size;
    char *text; /* the private file XML, with volfmt 0 */
    size_t text_bytes;
    uint32_t text_ordinal; /* in the master */
};

/* volumelist.c: reads a volume's list of sites into runs; and sorts all. */
int volumes_take_list(struct limefile_volumes *, size_t volume);
int volumes_sort(struct limefile_volumes *);

/* volumeread.c: the joined container, when all is known. */
int volumes_join(struct limefile_volumes *);
extern const struct limefile_source_ops volumes_ops;

/* True if the record is one of data that can be joined. */
bool volumes_is_data(const struct limefile_record *);

#endif
