/* finding_text.c - format a finding as text */
#include "limefile.h"

#include <inttypes.h>
#include <stdio.h>

static int format_values(const struct limefile_finding *f, char *buf, size_t cap)
{
    switch (f->code) {
    case LIMEFILE_E_VERSION:
        return snprintf(buf, cap, " (version %" PRIu64 ", not %" PRIu64 ")", f->have, f->want);
    case LIMEFILE_E_LENGTH:
        return snprintf(buf, cap, " (%" PRIu64 " bytes)", f->have);
    case LIMEFILE_E_HEADER_CUT:
    case LIMEFILE_E_DATA_CUT:
    case LIMEFILE_D_PAD_CUT:
        return snprintf(buf, cap, " (%" PRIu64 " of %" PRIu64 " bytes present)", f->have,
                        f->want);
    case LIMEFILE_E_ZEROS:
    case LIMEFILE_E_BEGINNING:
        if (f->have == 0)
            return snprintf(buf, cap, "%s", "");
        return snprintf(buf, cap, " (a record header follows at offset %" PRIu64 ")", f->have);
    case LIMEFILE_E_TRAILING:
    case LIMEFILE_E_RECORDS:
        return snprintf(buf, cap, " (%" PRIu64 ")", f->have);
    case LIMEFILE_D_FLAGS:
    case LIMEFILE_D_RESERVED:
    case LIMEFILE_D_PAD_NONZERO:
        return snprintf(buf, cap, " (0x%02" PRIx64 ", not 0x%02" PRIx64 ")", f->have, f->want);
    case LIMEFILE_D_XML:
        return snprintf(buf, cap, ": %s", limefile_strerror(-(int)f->have));
    case LIMEFILE_D_FIELD_LENGTH:
        if (f->want == 0)
            return snprintf(buf, cap, " (%" PRIu64 " bytes: not a whole number of sites)",
                            f->have);
        return snprintf(buf, cap, " (%" PRIu64 " bytes, not %" PRIu64 ")", f->have, f->want);
    case LIMEFILE_D_CHECKSUM:
        if (f->ordinal == 0 && (f->have | f->want) <= UINT32_MAX) /* NERSC: 32 bits */
            return snprintf(buf, cap, " (%08x, not %08x)", (unsigned)f->have,
                            (unsigned)f->want);
        return snprintf(buf, cap, " (%08x %08x, not %08x %08x)", (unsigned)(f->have >> 32),
                        (unsigned)f->have, (unsigned)(f->want >> 32), (unsigned)f->want);
    case LIMEFILE_D_CELLS_LENGTH:
        return snprintf(buf, cap, " (%" PRIu64 " bytes, not %" PRIu64 ")", f->have, f->want);
    case LIMEFILE_D_LINKS:
        return snprintf(buf, cap, " (%" PRIu64 " of %" PRIu64 ")", f->have, f->want);
    case LIMEFILE_D_CELLS:
        return snprintf(buf, cap, " (%" PRIu64 " of %" PRIu64 " cells)", f->have, f->want);
    default:
        return snprintf(buf, cap, "%s", "");
    }
}

int limefile_finding_text(const struct limefile_finding *f, char *buf, size_t cap)
{
    char tail[96];
    const char *colon = f->why ? ": " : "", *why = f->why ? f->why : "";
    if (f->code == LIMEFILE_D_CHECKSUM && f->why) /* from a mount: `why` has the values */
        *tail = '\0';
    else
        format_values(f, tail, sizeof tail);
    if (f->ordinal == 0) /* concerns the whole file */
        return snprintf(buf, cap, "%s%s%s%s", limefile_strerror(f->code), tail, colon, why);
    return snprintf(buf, cap, "offset %" PRIu64 ": record %" PRIu64 ": %s%s%s%s", f->offset,
                    f->ordinal, limefile_strerror(f->code), tail, colon, why);
}
