/* error.c - the texts and words of error codes and verdicts */
#define _GNU_SOURCE
#include "limeerror.h"
#include "limeverdict.h"

#include <errno.h>
#include <string.h>

#if !__GLIBC_PREREQ(2, 32)
#define strerrordesc_np strerror

/* Returns NULL for an error that the programs do not expect. */
static const char *strerrorname_np(int code)
{
#define NAME(error) [error] = #error
    static const char *const names[] = {
        NAME(EPERM),     NAME(ENOENT),  NAME(EINTR),     NAME(EIO),          NAME(EBADF),
        NAME(EAGAIN),    NAME(ENOMEM),  NAME(EACCES),    NAME(EBUSY),        NAME(EEXIST),
        NAME(EXDEV),     NAME(ENODEV),  NAME(ENOTDIR),   NAME(EISDIR),       NAME(EINVAL),
        NAME(ENFILE),    NAME(EMFILE),  NAME(ETXTBSY),   NAME(EFBIG),        NAME(ENOSPC),
        NAME(ESPIPE),    NAME(EROFS),   NAME(EPIPE),     NAME(ENAMETOOLONG), NAME(ELOOP),
        NAME(EOVERFLOW), NAME(ENOTSUP), NAME(ETIMEDOUT), NAME(ESTALE),       NAME(EDQUOT),
    };
    return (size_t)code < sizeof names / sizeof *names ? names[code] : NULL;
}
#endif

struct error_entry {
    int code;
    const char *word;
    const char *text;
};

static const struct error_entry errors[] = {
    {LIMEFILE_E_MAGIC, "magic", "no record header"},
    {LIMEFILE_E_VERSION, "version", "unknown header version"},
    {LIMEFILE_E_LENGTH, "length", "a data length that no file can have"},
    {LIMEFILE_E_HEADER_CUT, "header-cut", "the file ends inside a header"},
    {LIMEFILE_E_DATA_CUT, "data-cut", "the file ends inside the data"},
    {LIMEFILE_E_TRAILING, "trailing", "trailing garbage after the last record"},
    {LIMEFILE_E_RECORDS, "records", "too many records"},
    {LIMEFILE_E_ZEROS, "zeros", "the file begins with zeros instead of a record header"},
    {LIMEFILE_E_BEGINNING, "beginning", "the first record header is damaged"},
    {LIMEFILE_D_MB_MISSING, "mb-missing", "a message begins without the MB flag"},
    {LIMEFILE_D_MB_INSIDE, "mb-inside", "an MB flag inside a message"},
    {LIMEFILE_D_ME_MISSING, "me-missing", "the last record lacks the ME flag"},
    {LIMEFILE_D_FLAGS, "reserved-flags", "reserved bits of the flags are set"},
    {LIMEFILE_D_RESERVED, "reserved-byte", "the reserved byte is not zero"},
    {LIMEFILE_D_TYPE_EMPTY, "type-empty", "the record type is empty"},
    {LIMEFILE_D_TYPE_LONG, "type-long", "the record type fills its field without a NUL"},
    {LIMEFILE_D_TYPE_ASCII, "type-ascii", "the record type holds control or non-ASCII bytes"},
    {LIMEFILE_D_TYPE_TAIL, "type-tail", "bytes follow the NUL of the record type"},
    {LIMEFILE_D_PAD_NONZERO, "padding-nonzero", "the padding is not zero"},
    {LIMEFILE_D_PAD_CUT, "padding-cut", "the last record's padding is missing"},
    {LIMEFILE_E_NOT_FILE, "not-a-file", "not a regular file"},
    {LIMEFILE_E_TYPE, "type", "a record type has at most 127 bytes, none of them NUL"},
    {LIMEFILE_E_ORDER, "order", "message begin and end flags are out of order"},
    {LIMEFILE_E_OVERFILL, "overfill", "more data than the record's header states"},
    {LIMEFILE_E_UNDERFILL, "underfill", "less data than the record's header states"},
    {LIMEFILE_E_STATE, "state", "not possible in this state: a record is open, or none is"},
    {LIMEFILE_E_NO_RECORD, "no-record", "no such record"},
    {LIMEFILE_E_SHRUNK, "shrunk", "the file has become shorter"},
    {LIMEFILE_E_FLAGS, "flags", "message flags contradict each other"},
    {LIMEFILE_E_MIXED, "mixed",
     "a record was being replaced and its new data are missing: it may be part old, part new"},
    {LIMEFILE_E_XML, "xml-malformed", "not valid XML"},
    {LIMEFILE_E_XML_VALUE, "xml-value", "an element is missing or invalid"},
    {LIMEFILE_D_XML, "metadata", "the metadata cannot be understood"},
    {LIMEFILE_D_OPTIONAL, "optional",
     "an optional element of the metadata cannot be read and is ignored"},
    {LIMEFILE_D_DATATYPE, "datatype",
     "unknown prefix of the datatype; the sizes in the record describe the field"},
    {LIMEFILE_D_FORMAT_MISSING, "format-missing", "no ildg-format describes these data"},
    {LIMEFILE_D_FORMAT_LATE, "format-late",
     "an ildg-format must precede its data in the same message"},
    {LIMEFILE_D_FORMAT_DIFFERS, "format-differs", "two records describe the data differently"},
    {LIMEFILE_D_FIELD_LENGTH, "field-length", "the data length does not match the lattice"},
    {LIMEFILE_D_CHECKSUM_ALONE, "checksum-alone", "a checksum that belongs to no data"},
    {LIMEFILE_D_CHECKSUM, "checksum", "the data do not match the checksum in the file"},
    {LIMEFILE_D_CHECKSUM_MISSING, "checksum-missing", "the data have no checksum"},
    {LIMEFILE_D_UNDESCRIBED, "undescribed", "nothing describes these data"},
    {LIMEFILE_D_EMPTY, "empty", "the file is empty"},
    {LIMEFILE_D_CELLS_TEXT, "cells-text",
     "the text of the checkpoint does not match its index"},
    {LIMEFILE_D_CELLS_INDEX, "cells-index", "the index of cells is damaged"},
    {LIMEFILE_D_CELLS_INDEX_MISSING, "cells-index-missing",
     "no index of cells describes these particles"},
    {LIMEFILE_D_CELLS_DATA_MISSING, "cells-data-missing",
     "no particles follow this index of cells"},
    {LIMEFILE_D_CELLS_LENGTH, "cells-length", "the data length does not match the particles"},
    {LIMEFILE_D_CELLS, "cells", "cells do not hold the particles that their index describes"},
    {LIMEFILE_D_LINKS, "links", "links that are not SU(3) matrices"},
    {LIMEFILE_D_PLAQUETTE, "plaquette", "the plaquette does not match the data"},
    {LIMEFILE_D_LINK_TRACE, "link-trace", "the link trace does not match the data"},
    {LIMEFILE_E_GAUGE_UNKNOWN, "gauge-unknown", "not a gauge configuration in a known format"},
    {LIMEFILE_E_GAUGE_NONE, "gauge-none", "no SU(3) gauge configuration in this container"},
    {LIMEFILE_E_GAUGE_SEVERAL, "gauge-several", "several configurations: choose a record"},
    {LIMEFILE_E_GAUGE_HEADER, "gauge-header", "the header is cut, has no end or is not text"},
    {LIMEFILE_E_GAUGE_VALUE, "gauge-value",
     "a value in the header is missing, repeated or invalid"},
    {LIMEFILE_E_GAUGE_LATTICE, "gauge-lattice", "the format does not support this lattice"},
    {LIMEFILE_E_GAUGE_LENGTH, "gauge-length", "the file size does not match the header"},
    {LIMEFILE_E_GAUGE_LIST, "gauge-list", "the list of sites does not name each site once"},
    {LIMEFILE_E_GAUGE_ORDER, "gauge-order", "cannot determine the byte order of the data"},
    {LIMEFILE_E_GAUGE_FORM, "gauge-form",
     "the format does not have this precision or number of rows"},
    {LIMEFILE_E_GAUGE_NAN, "gauge-nan", "the links contain NaN or infinity"},
    {LIMEFILE_E_GAUGE_RANGE, "gauge-range",
     "plaquette or link trace are beyond what the format allows"},
    {LIMEFILE_E_GAUGE_CHECKSUM, "gauge-checksum",
     "the data do not match the checksum in the header"},
    {LIMEFILE_E_GAUGE_PLAQUETTE, "gauge-plaquette",
     "the data do not match the plaquette in the header"},
    {LIMEFILE_E_GAUGE_TRACE, "gauge-trace",
     "the data do not match the link trace in the header"},
    {LIMEFILE_E_VOLUME_MASTER, "volume-master",
     "exactly one volume of a set must have its metadata"},
    {LIMEFILE_E_VOLUME_MISSING, "volume-missing",
     "sites are missing: not all volumes are given"},
    {LIMEFILE_E_VOLUME_TWICE, "volume-twice", "a site is in the volumes twice"},
    {LIMEFILE_E_VOLUME_LIST, "volume-list", "a volume's list of sites is missing or invalid"},
    {LIMEFILE_E_VOLUME_RECORDS, "volume-records",
     "a volume has other records, or records of other lengths, than the set"},
    {LIMEFILE_E_VOLUME_PART, "volume-part",
     "a record is of a part of the lattice, and cannot be joined"},
    {LIMEFILE_E_VOLUME_NONE, "volume-none", "not a volume of a set"},
    {LIMEFILE_E_OUTPUT_EXISTS, "output-exists", "exists already; use -f to replace it"},
    {LIMEFILE_E_OUTPUT_INPUT, "output-input", "is also the input; choose another name"},
    {LIMEFILE_E_OUTPUT_LOCKED, "output-locked",
     "lock: another process has this container open for writing, a read-write mount perhaps; "
     "unmount it first"},
    {LIMEFILE_E_OUTPUT_LINK, "output-link", "a symbolic link to a file that does not exist"},
    {LIMEFILE_E_OUTPUT_CHANGED, "output-changed",
     "not written: another process has created, replaced or removed it in the meantime"},
};

static const struct error_entry *find_error(int code)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code)
            return &errors[i];
    return NULL;
}

const char *limefile_strerror(int code)
{
    if (code >= 0)
        return "success";
    const struct error_entry *entry = find_error(code);
    if (entry)
        return entry->text;
    const char *text = limefile_is_errno(code) ? strerrordesc_np(-code) : NULL;
    return text ? text : "unknown error";
}

const char *limefile_error_word(int code)
{
    if (code >= 0)
        return "ok";
    const struct error_entry *entry = find_error(code);
    if (entry)
        return entry->word;
    const char *name = limefile_is_errno(code) ? strerrorname_np(-code) : NULL;
    return name ? name : "unknown";
}

bool limefile_is_fault(int code)
{
    bool is_structural = code >= LIMEFILE_D_MB_MISSING && code <= LIMEFILE_D_PAD_CUT;
    bool is_metadata = code >= LIMEFILE_D_XML && code <= LIMEFILE_D_LINK_TRACE;
    return code < 0 && !is_structural && !is_metadata;
}

bool limefile_is_errno(int code)
{
    return code < 0 && code > -4096;
}

bool limefile_is_read_error(int code)
{
    return limefile_is_errno(code) || code == LIMEFILE_E_SHRUNK;
}

/* LIMEFILE_D_RESERVED is not harmless: the last record's reserved byte can be MARK_REPLACING,
 * and the data of some record can then be a mixture of old and new bytes. */
bool limefile_is_harmless(int code)
{
    return code == LIMEFILE_D_PAD_NONZERO || code == LIMEFILE_D_PAD_CUT ||
           code == LIMEFILE_D_TYPE_TAIL || code == LIMEFILE_D_FLAGS ||
           code == LIMEFILE_D_OPTIONAL || code == LIMEFILE_D_DATATYPE;
}

const char *limefile_verdict_word(enum limefile_verdict verdict)
{
    static const char *const words[] = {
        [LIMEFILE_GOOD] = "good",
        [LIMEFILE_SKIPPED] = "skipped",
        [LIMEFILE_UNVERIFIED] = "unverified",
        [LIMEFILE_BAD] = "bad",
        [LIMEFILE_UNREADABLE] = "unreadable",
    };
    return words[verdict];
}
