/* limevolumes.h - present the volumes of a QIO file (PARTFILE, PARTFILE_DIR, MULTIFILE; one
 * volume for each of QIO's I/O nodes) as one LIME container.
 *
 * One volume, the master, has the metadata. Each volume has the data of some sites and a list
 * of these sites. The joined container has the master's records without the list of sites, the
 * data of all sites in the lattice's order, and volfmt 0. QIO's checksums cover all sites, so
 * they hold for the joined container, too.
 *
 * Memory: 24 bytes for each run of sites that are consecutive in the lattice and in a volume,
 * 32 bytes for each record of the master, and an index of each volume. */
#ifndef LIMEVOLUMES_H
#define LIMEVOLUMES_H

#include "limeildg.h"

struct limefile_volumes;

/* Selects the records to join. */
struct limefile_volumes_options {
    /* Leave out messages with a record of a part of the lattice (a hypercube), because a record
     * of a part cannot be joined. false: a record of a part gives LIMEFILE_E_VOLUME_PART. */
    bool skips_parts;

    /* Join only the messages with these records, and the message with the private file XML.
     * NULL: join all. The numbers are the ordinals that the records have if all are joined
     * (with skips_parts); others give LIMEFILE_E_NO_RECORD. The caller may free the array after
     * the open. */
    const uint64_t *records;
    size_t record_count;
};

/* Opens all volumes of a set, in any order. The sources must outlive the set and must allow
 * reads from several threads. On failure *bad is the number (from 0) of the faulty volume, or
 * `count` if the fault concerns the whole set. Returns 0, LIMEFILE_E_VOLUME_*, an error
 * that limefile_scidac_file_parse() or another parser of metadata returns, the code of a fault
 * in a volume (each must be whole), or -ENOMEM. */
int limefile_volumes_open(struct limefile_source *const *volumes, size_t count,
                          const struct limefile_volumes_options *,
                          struct limefile_volumes **out, size_t *bad);
void limefile_volumes_close(struct limefile_volumes *);

/* The joined container, read-only, for any number of threads; valid as long as the set. */
struct limefile_source *limefile_volumes_source(struct limefile_volumes *);

/* Facts about the set. */
struct limefile_volumes_info {
    unsigned volfmt; /* 1 MULTIFILE, 2 PARTFILE, 3 PARTFILE_DIR */
    struct limefile_lattice lattice;
    size_t volumes, master; /* number of volumes; number of the master, from 0 */
    uint64_t fields;        /* number of fields (records of the whole lattice) */
    size_t skipped;         /* number of records that skips_parts leaves out */
};
void limefile_volumes_info(const struct limefile_volumes *, struct limefile_volumes_info *);
/* Returns the i-th skipped record's ordinal in the master. *stated: its parsed private XML. */
uint64_t limefile_volumes_skipped_part(const struct limefile_volumes *, size_t i,
                                       const struct limefile_scidac_record **stated);
/* Returns the number of sites that a volume (number from 0) has. */
uint64_t limefile_volumes_sites(const struct limefile_volumes *, size_t volume);

/* Returns true if a name is a volume's: "NAME.vol0012" (*stem: the length of NAME), or the
 * directory "vol0012" of PARTFILE_DIR (*stem 0). */
bool limefile_volumes_parse_name(const char *name, size_t *stem, uint64_t *number);

#endif
