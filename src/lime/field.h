/* field.h - describe one binary record by its metadata. For src/lime only. fields.c finds which
 * metadata belong to which record. */
#ifndef LIMEFILE_FIELD_H
#define LIMEFILE_FIELD_H

#include "limeildg.h"

/* The metadata of a binary record; NULL if they are missing or cannot be parsed. */
struct field_metadata {
    const struct limefile_ildg *format; /* ildg-format, etmc-...-format or cvc's format */
    const struct limefile_scidac_record *record;
    const struct limefile_scidac_file *file;
};

/* Fills kind, name, precision, lattice, box, sites, site_bytes, expected. Returns 0, or
 * LIMEFILE_E_XML_VALUE, with nothing filled in, if the data would exceed INT64_MAX bytes. */
int field_describe(struct limefile_field *, enum limefile_fieldkind,
                   const struct field_metadata *);

/* Returns true if each site is four square colour matrices. */
bool field_is_links(const struct limefile_field *);

/* Returns true if only a private record XML describes the field, with a datatype of Grid. */
bool field_is_grid(const struct limefile_field *);

/* Return true if the ildg-format of the data agrees with their private record XML, or with the
 * private file XML; also if this XML is missing. */
bool field_agrees_with_record(const struct limefile_field *, const struct field_metadata *);
bool field_agrees_with_file(const struct limefile_field *, const struct field_metadata *);

#endif
