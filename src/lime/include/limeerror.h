/*
 * limeerror.h - the error codes of all limefile functions, and their texts.
 *
 * Functions return 0 or a count, or a negative code: -errno, or one of these. E_MAGIC to
 * E_BEGINNING are faults, at which a reader must stop. LIMEFILE_D_* are deviations: a reader
 * can go on. Those from LIMEFILE_D_XML on are about what records mean (limeildg.h,
 * limecheckpoint.h). A finding of LIMEFILE_D_XML has -code in `have`, one of
 * LIMEFILE_D_OPTIONAL the element in `why`, one of LIMEFILE_D_CHECKSUM suma << 32 | sumb. All
 * functions are thread-safe.
 */
#ifndef LIMEERROR_H
#define LIMEERROR_H

#include <stdbool.h>

enum limefile_error {
    LIMEFILE_E_MAGIC = -10000, /* no record header where one must be */
    LIMEFILE_E_VERSION,        /* a header of another version than 1 */
    LIMEFILE_E_LENGTH,         /* a data length that no file can have */
    LIMEFILE_E_HEADER_CUT,     /* the file ends inside a header */
    LIMEFILE_E_DATA_CUT,       /* the file ends inside a record's data */
    LIMEFILE_E_TRAILING,       /* garbage after the last record */
    LIMEFILE_E_RECORDS,        /* more records than an ordinal can number */
    LIMEFILE_E_ZEROS,          /* (limebeginning.h) zeros instead of the first header */
    LIMEFILE_E_BEGINNING,      /* (limebeginning.h) a damaged first header */

    LIMEFILE_D_MB_MISSING,  /* a message begins without the MB flag */
    LIMEFILE_D_MB_INSIDE,   /* MB although the message before has not ended */
    LIMEFILE_D_ME_MISSING,  /* the last record of the file lacks ME */
    LIMEFILE_D_FLAGS,       /* reserved bits of the flags are set */
    LIMEFILE_D_RESERVED,    /* the reserved byte is not zero */
    LIMEFILE_D_TYPE_EMPTY,  /* the record has no type */
    LIMEFILE_D_TYPE_LONG,   /* the type fills its field without a NUL */
    LIMEFILE_D_TYPE_ASCII,  /* the type holds control or non-ASCII bytes */
    LIMEFILE_D_TYPE_TAIL,   /* bytes after the NUL of the type */
    LIMEFILE_D_PAD_NONZERO, /* padding that is not zero */
    LIMEFILE_D_PAD_CUT,     /* the file ends inside the last record's padding */

    LIMEFILE_E_NOT_FILE,  /* neither a regular file nor anything like one */
    LIMEFILE_E_TYPE,      /* (writer) a type that a header cannot hold */
    LIMEFILE_E_ORDER,     /* (writer) MB or ME out of order */
    LIMEFILE_E_OVERFILL,  /* (writer) more data than the header promised */
    LIMEFILE_E_UNDERFILL, /* (writer) less data than the header promised */
    LIMEFILE_E_STATE,     /* (writer) no record is open, or one still is */
    LIMEFILE_E_NO_RECORD, /* the container has no such record */
    LIMEFILE_E_SHRUNK,    /* the file is shorter now than it was when indexed */
    LIMEFILE_E_FLAGS,     /* (limeedit.h) message flags that contradict each other */
    LIMEFILE_E_MIXED, /* (limeedit.h) a record was half replaced, and its new data are gone */

    LIMEFILE_E_XML, /* (limeildg.h) metadata that cannot be parsed, or not within limits */
    LIMEFILE_E_XML_VALUE, /* (limeildg.h) metadata without what must be in them */

    LIMEFILE_D_XML,            /* a metadata record that cannot be understood */
    LIMEFILE_D_OPTIONAL,       /* an optional element of metadata that cannot be read */
    LIMEFILE_D_DATATYPE,       /* a datatype of a private record with an unknown prefix */
    LIMEFILE_D_FORMAT_MISSING, /* ildg-binary-data that no ildg-format describes */
    LIMEFILE_D_FORMAT_LATE,    /* an ildg-format behind its data, or without any */
    LIMEFILE_D_FORMAT_DIFFERS, /* two records describe the same data differently */
    LIMEFILE_D_FIELD_LENGTH,   /* data of another length than lattice and precision say */
    LIMEFILE_D_CHECKSUM_ALONE, /* a checksum of nothing, or the second one of a record */
    LIMEFILE_D_CHECKSUM,       /* the data do not have the checksum that is in the file */

    LIMEFILE_D_CHECKSUM_MISSING, /* (lime check --strict) data without a checksum */
    LIMEFILE_D_UNDESCRIBED,      /* (lime check --strict) data that nothing describes */
    LIMEFILE_D_EMPTY,            /* (limebeginning.h) a file of no bytes */

    LIMEFILE_D_CELLS_TEXT,  /* a checkpoint's text is missing or differs from its index */
    LIMEFILE_D_CELLS_INDEX, /* an index of cells that is damaged */
    LIMEFILE_D_CELLS_INDEX_MISSING, /* particles without an index of cells */
    LIMEFILE_D_CELLS_DATA_MISSING,  /* an index of cells without particles */
    LIMEFILE_D_CELLS_LENGTH,        /* particles of another length than the index gives */
    LIMEFILE_D_CELLS, /* (lime check --data) cells whose particles are not those of the index */

    LIMEFILE_D_LINKS,      /* (lime check --physics) links that are not SU(3) matrices */
    LIMEFILE_D_PLAQUETTE,  /* (lime check --physics) another plaquette than the metadata say */
    LIMEFILE_D_LINK_TRACE, /* (lime check --physics) another link trace than the metadata say */

    LIMEFILE_E_GAUGE_UNKNOWN, /* (limegauge.h) a file in none of the formats */
    LIMEFILE_E_GAUGE_NONE,    /* a container without an SU(3) configuration */
    LIMEFILE_E_GAUGE_SEVERAL, /* a container with several, and none chosen */
    LIMEFILE_E_GAUGE_HEADER,  /* a header that is cut, has no end, or is not text */
    LIMEFILE_E_GAUGE_VALUE,   /* a value missing from a header, there twice, or senseless */
    LIMEFILE_E_GAUGE_LATTICE, /* a lattice that cannot be, or that a format cannot hold */
    LIMEFILE_E_GAUGE_LENGTH,  /* a file of another size than its header says */
    LIMEFILE_E_GAUGE_LIST,    /* a list of sites that does not name each once */
    LIMEFILE_E_GAUGE_ORDER,   /* data whose byte order is not known */
    LIMEFILE_E_GAUGE_FORM,    /* a precision or number of rows that the format lacks */
    LIMEFILE_E_GAUGE_NAN,     /* plaquette or link trace of the data are NaN */
    LIMEFILE_E_GAUGE_RANGE,   /* plaquette or link trace beyond what the format allows */
    LIMEFILE_E_GAUGE_CHECKSUM,
    LIMEFILE_E_GAUGE_PLAQUETTE,
    LIMEFILE_E_GAUGE_TRACE, /* data that are not what their header says */

    LIMEFILE_E_VOLUME_MASTER, /* (limevolumes.h) none of the volumes has the metadata, or two */
    LIMEFILE_E_VOLUME_MISSING, /* sites that no volume has */
    LIMEFILE_E_VOLUME_TWICE,   /* a site that two volumes have, or one has twice */
    LIMEFILE_E_VOLUME_LIST,    /* a list of sites that is missing, or not valid */
    LIMEFILE_E_VOLUME_RECORDS, /* volumes with different records, or of other lengths */
    LIMEFILE_E_VOLUME_PART,    /* a record of a hypercube */
    LIMEFILE_E_VOLUME_NONE,    /* a container that is not a volume of a set */

    LIMEFILE_E_OUTPUT_EXISTS,  /* (limeoutput.h) the output exists already */
    LIMEFILE_E_OUTPUT_INPUT,   /* the output is also an input */
    LIMEFILE_E_OUTPUT_LOCKED,  /* another process writes to the existing output */
    LIMEFILE_E_OUTPUT_LINK,    /* the output is a symbolic link to a file that does not exist */
    LIMEFILE_E_OUTPUT_CHANGED, /* another process has changed the output's name */
};

/* Returns a static, lower-case sentence for any code. */
const char *limefile_strerror(int code);

/* Returns true if a reader must stop at `code`: a fault or an I/O error, not a deviation. */
bool limefile_is_fault(int code);

/* Returns true if `code` states that the file could not be read: an errno, or that it has
 * become shorter. */
bool limefile_is_read_error(int code);

/* True for -errno. */
bool limefile_is_errno(int code);

/* Returns true if `code` is a deviation that changes nothing for any reader: a warning
 * (docs/verdicts.md). */
bool limefile_is_harmless(int code);

/* Returns the code as a word for scripts: "data-cut", "mb-missing"; errno as "EIO". */
const char *limefile_error_word(int code);

#endif
