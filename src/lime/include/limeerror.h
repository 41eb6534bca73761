/*
 * limeerror.h - the error codes of all limefile functions, and their texts.
 *
 * Functions return 0 or a count, or a negative code: -errno or a value of enum limefile_error.
 * LIMEFILE_E_MAGIC to LIMEFILE_E_BEGINNING are faults, where a reader must stop. LIMEFILE_D_*
 * are deviations: a reader can continue. Deviations from LIMEFILE_D_XML on concern the contents
 * of records (limeildg.h, limecheckpoint.h). In a finding (limefile.h), `have` of
 * LIMEFILE_D_XML is the parser's negated error code, `why` of LIMEFILE_D_OPTIONAL is the
 * element, `have` and `want` of LIMEFILE_D_CHECKSUM are suma << 32 | sumb. All functions are
 * thread-safe.
 */
#ifndef LIMEERROR_H
#define LIMEERROR_H

#include <stdbool.h>

enum limefile_error {
    LIMEFILE_E_MAGIC = -10000, /* no record header at an offset that requires one */
    LIMEFILE_E_VERSION,        /* a header whose version is not 1 */
    LIMEFILE_E_LENGTH,         /* a data length that no file can have */
    LIMEFILE_E_HEADER_CUT,     /* the file ends inside a header */
    LIMEFILE_E_DATA_CUT,       /* the file ends inside a record's data */
    LIMEFILE_E_TRAILING,       /* garbage after the last record */
    LIMEFILE_E_RECORDS,        /* more records than an ordinal can number */
    LIMEFILE_E_ZEROS,          /* (limedetect.h) zeros instead of the first header */
    LIMEFILE_E_BEGINNING,      /* (limedetect.h) a damaged first header */

    LIMEFILE_D_MB_MISSING,  /* a message begins without the MB flag */
    LIMEFILE_D_MB_INSIDE,   /* MB before the previous message has ended */
    LIMEFILE_D_ME_MISSING,  /* the last record of the file lacks ME */
    LIMEFILE_D_FLAGS,       /* reserved bits of the flags are set */
    LIMEFILE_D_RESERVED,    /* the reserved byte is not zero */
    LIMEFILE_D_TYPE_EMPTY,  /* the record has no type */
    LIMEFILE_D_TYPE_LONG,   /* the type fills its field without a NUL */
    LIMEFILE_D_TYPE_ASCII,  /* the type holds control or non-ASCII bytes */
    LIMEFILE_D_TYPE_TAIL,   /* bytes after the NUL of the type */
    LIMEFILE_D_PAD_NONZERO, /* padding that is not zero */
    LIMEFILE_D_PAD_CUT,     /* the file ends inside the last record's padding */

    LIMEFILE_E_NOT_FILE,  /* not a regular file */
    LIMEFILE_E_TYPE,      /* (writer) a type that a header cannot hold */
    LIMEFILE_E_ORDER,     /* (writer) MB or ME out of order */
    LIMEFILE_E_OVERFILL,  /* (writer) more data than the header states */
    LIMEFILE_E_UNDERFILL, /* (writer) less data than the header states */
    LIMEFILE_E_STATE,     /* not allowed now, or not for this object: see the function */
    LIMEFILE_E_NO_RECORD, /* the container has no such record */
    LIMEFILE_E_SHRUNK,    /* the file is shorter now than it was when indexed */
    LIMEFILE_E_FLAGS,     /* (limeedit.h) message flags that contradict each other */
    LIMEFILE_E_MIXED, /* (limeedit.h) a record is half replaced, and its new data are lost */

    LIMEFILE_E_XML,       /* (limeildg.h) metadata that cannot be parsed, or exceed a limit */
    LIMEFILE_E_XML_VALUE, /* (limeildg.h) metadata without a required element */

    LIMEFILE_D_XML,            /* a metadata record that cannot be understood */
    LIMEFILE_D_OPTIONAL,       /* an optional element of metadata that cannot be read */
    LIMEFILE_D_DATATYPE,       /* a private record's datatype with an unknown prefix */
    LIMEFILE_D_FORMAT_MISSING, /* ildg-binary-data that no ildg-format describes */
    LIMEFILE_D_FORMAT_LATE,    /* an ildg-format after its data, or without data */
    LIMEFILE_D_FORMAT_DIFFERS, /* two records describe the same data differently */
    LIMEFILE_D_FIELD_LENGTH,   /* a data length that differs from lattice and precision */
    LIMEFILE_D_CHECKSUM_ALONE, /* a checksum without data, or a second one for a record */
    LIMEFILE_D_CHECKSUM,       /* the data do not match the checksum in the file */

    LIMEFILE_D_CHECKSUM_MISSING, /* (lime check --strict) data without a checksum */
    LIMEFILE_D_UNDESCRIBED,      /* (lime check --strict) data without a description */
    LIMEFILE_D_EMPTY,            /* (limedetect.h) an empty file */

    LIMEFILE_D_CELLS_TEXT,  /* a checkpoint's text is missing or differs from its index */
    LIMEFILE_D_CELLS_INDEX, /* an index of cells that is damaged */
    LIMEFILE_D_CELLS_INDEX_MISSING, /* particles without an index of cells */
    LIMEFILE_D_CELLS_DATA_MISSING,  /* an index of cells without particles */
    LIMEFILE_D_CELLS_LENGTH,        /* particles whose length differs from the index */
    LIMEFILE_D_CELLS, /* (lime check --data) cells whose particles differ from their index */

    LIMEFILE_D_LINKS,      /* (lime check --physics) links that are not SU(3) matrices */
    LIMEFILE_D_PLAQUETTE,  /* (lime check --physics) plaquette differs from the metadata */
    LIMEFILE_D_LINK_TRACE, /* (lime check --physics) link trace differs from the metadata */

    LIMEFILE_E_GAUGE_UNKNOWN,   /* (limegauge.h) a file in an unknown format */
    LIMEFILE_E_GAUGE_NONE,      /* a container without an SU(3) configuration */
    LIMEFILE_E_GAUGE_SEVERAL,   /* several configurations: the caller must choose one */
    LIMEFILE_E_GAUGE_HEADER,    /* a header that is cut, has no end, or is not text */
    LIMEFILE_E_GAUGE_VALUE,     /* a header value that is missing, repeated or invalid */
    LIMEFILE_E_GAUGE_LATTICE,   /* a lattice that is invalid, or that a format cannot hold */
    LIMEFILE_E_GAUGE_LENGTH,    /* a file size that differs from the header */
    LIMEFILE_E_GAUGE_LIST,      /* a list of sites that lacks or repeats a site */
    LIMEFILE_E_GAUGE_ORDER,     /* data whose byte order cannot be determined */
    LIMEFILE_E_GAUGE_FORM,      /* a precision or number of rows that the format lacks */
    LIMEFILE_E_GAUGE_NAN,       /* the plaquette or link trace of the data is NaN */
    LIMEFILE_E_GAUGE_RANGE,     /* plaquette or link trace beyond what the format allows */
    LIMEFILE_E_GAUGE_CHECKSUM,  /* data that do not match the checksum in their header */
    LIMEFILE_E_GAUGE_PLAQUETTE, /* data that do not match the plaquette in their header */
    LIMEFILE_E_GAUGE_TRACE,     /* data that do not match the link trace in their header */

    LIMEFILE_E_VOLUME_MASTER,  /* (limevolumes.h) not exactly one volume has the metadata */
    LIMEFILE_E_VOLUME_MISSING, /* sites that are in no volume */
    LIMEFILE_E_VOLUME_TWICE,   /* a site that the volumes contain twice */
    LIMEFILE_E_VOLUME_LIST,    /* a list of sites that is missing or invalid */
    LIMEFILE_E_VOLUME_RECORDS, /* volumes whose records or record lengths differ */
    LIMEFILE_E_VOLUME_PART,    /* a record that holds a hypercube */
    LIMEFILE_E_VOLUME_NONE,    /* a container that is not a volume of a set */

    LIMEFILE_E_OUTPUT_EXISTS,  /* (limeoutput.h) the output exists already */
    LIMEFILE_E_OUTPUT_INPUT,   /* the output is also an input */
    LIMEFILE_E_OUTPUT_LOCKED,  /* another process writes to the existing output */
    LIMEFILE_E_OUTPUT_LINK,    /* the output is a symbolic link to a file that does not exist */
    LIMEFILE_E_OUTPUT_CHANGED, /* another process created, replaced or removed the output */
};

/* Returns a static text in lower case for any code. */
const char *limefile_strerror(int code);

/* Returns true if `code` is an error but not a deviation: a reader must stop. */
bool limefile_is_fault(int code);

/* Returns true if `code` means that a file could not be read: -errno or LIMEFILE_E_SHRUNK. */
bool limefile_is_read_error(int code);

/* Returns true if `code` is -errno. */
bool limefile_is_errno(int code);

/* Returns true if `code` is a deviation that affects no reader. For it, programs print a
 * warning (docs/verdicts.md). */
bool limefile_is_harmless(int code);

/* Returns the code as a word for scripts: "data-cut", "mb-missing"; errno as "EIO". */
const char *limefile_error_word(int code);

#endif
