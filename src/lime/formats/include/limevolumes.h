/*
 * limevolumes.h - files that QIO has written in volumes (PARTFILE, PARTFILE_DIR, MULTIFILE),
 * one for each of its I/O nodes, as the one container that they would have been.
 *
 * One volume, the master, has the metadata. Each has the data of some sites and a list of which
 * they are. The joined container has the master's records but for the list of sites, the data
 * of all sites in the lattice's order, and volfmt 0. Checksums cover all sites, so that they
 * are those of the joined container.
 *
 * Memory: 24 bytes for each run of sites that follow each other in the lattice and in a volume,
 * and 40 for each record of the master.
 */
#ifndef LIMEVOLUMES_H
#define LIMEVOLUMES_H

#include "limeildg.h"

struct limefile_volumes;

/* Which records are joined. */
struct limefile_volumes_options {
    /* Leave out messages with a record of a part of the lattice (a hypercube), which cannot be
     * joined. Without it such a record is LIMEFILE_E_VOLUME_PART. */
    bool skips_parts;

    /* Join only these records, as they are numbered in the container that is joined without
     * them, with their messages and the private file XML's. NULL: all. LIMEFILE_E_NO_RECORD.
     * The array is the caller's, and not used after the open. */
    const uint64_t *records;
    size_t record_count;
};

/*
 * Opens all volumes of a set, in any order. The sources must outlive it and bear several
 * threads. *bad: the number (from 0) of the volume that it fails at, or `count` if it is the
 * set. LIMEFILE_E_VOLUME_*, what limefile_scidac_file_parse() and others for metadata return,
 * or the code of a volume's fault (a set must be whole). -ENOMEM
 */
int limefile_volumes_open(struct limefile_source *const *volumes, size_t count,
                          const struct limefile_volumes_options *,
                          struct limefile_volumes **out, size_t *bad);
void limefile_volumes_close(struct limefile_volumes *);

/* The joined container: to be read only, by any number of threads; lives as long as the set. */
struct limefile_source *limefile_volumes_source(struct limefile_volumes *);

/* What is in the set. */
struct limefile_volumes_facts {
    unsigned volfmt; /* 1 MULTIFILE, 2 PARTFILE, 3 PARTFILE_DIR */
    struct limefile_lattice lattice;
    size_t volumes, master; /* master: its number */
    uint64_t fields;        /* records of the whole lattice */
    size_t parts;           /* records that are left out by skips_parts */
};
void limefile_volumes_facts(const struct limefile_volumes *, struct limefile_volumes_facts *);
/* The i-th record that is left out, from 0: its ordinal in the master, and what describes it.
 */
uint64_t limefile_volumes_part(const struct limefile_volumes *, size_t i,
                               const struct limefile_scidac_record **stated);
uint64_t limefile_volumes_sites(const struct limefile_volumes *, size_t volume);

/* True if a name is a volume's: "NAME.vol0012" (*stem: the length of NAME), or the folder
 * "vol0012" of PARTFILE_DIR (*stem 0). */
bool limefile_volumes_name(const char *name, size_t *stem, uint64_t *number);

#endif
