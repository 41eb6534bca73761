/*
 * field.h - what metadata say of one binary record; inside of src/lime. Which metadata belong
 * to which record: fields.c.
 */
#ifndef LIMEFILE_FIELD_H
#define LIMEFILE_FIELD_H

#include "limeildg.h"

/* What describes a binary record; NULL where there is nothing, or nothing that can be
 * understood. */
struct field_words {
    const struct limefile_ildg *format; /* ildg-format, etmc-...-format, cvc's */
    const struct limefile_scidac_record *record;
    const struct limefile_scidac_file *file;
};

/* Fills kind, name, precision, lattice, box, sites, site_bytes, expected. 0, or
 * LIMEFILE_E_XML_VALUE if it is more than 63 bits of bytes: nothing is filled in then. */
int field_describe(struct limefile_field *, enum limefile_fieldkind,
                   const struct field_words *);

/* True if its sites are four square colour matrices. */
bool field_has_links(const struct limefile_field *);

/* True if its private record calls it what Grid calls things. */
bool field_is_of_grid(const struct limefile_field *);

/* True if what an ildg-format says of the data agrees with their private record XML (or there
 * is none), and with the private file XML. */
bool field_agrees_with_record(const struct limefile_field *, const struct field_words *);
bool field_agrees_with_file(const struct limefile_field *, const struct field_words *);

#endif
