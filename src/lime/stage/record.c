/*
 * record.c - what was staged, kept with the file: the next run need not read it to know its
 * sums
 *
 *     user.limefs.staged = "1 SIZE MTIME.NS CKSUM ADLER32 MD5"      "-" for what was not taken
 *
 * It holds for a file that still has that size and that time (whole seconds of it, where the
 * file system has no more).
 */
#define _GNU_SOURCE
#include "target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

static const char name[] = "user.limefs.staged";

int stage_record_store(int fd, const struct stat *source, const struct stage_digest *d)
{
    char text[192], adler[16] = "-", md5[2 * STAGE_MD5_BYTES + 1] = "-";
    if (d->kinds & STAGE_ADLER32)
        snprintf(adler, sizeof adler, "%08" PRIx32, d->adler32);
    for (int i = 0; d->kinds & STAGE_MD5 && i < STAGE_MD5_BYTES; i++)
        snprintf(md5 + 2 * i, 3, "%02x", d->md5[i]);
    int n = snprintf(text, sizeof text, "1 %" PRIu64 " %" PRId64 ".%09ld %" PRIu32 " %s %s",
                     (uint64_t)source->st_size, (int64_t)source->st_mtim.tv_sec,
                     source->st_mtim.tv_nsec, d->cksum, adler, md5);
    return fsetxattr(fd, name, text, (size_t)n, 0) == 0 ? 0 : -errno;
}

static bool parse_md5(const char *text, unsigned char out[STAGE_MD5_BYTES])
{
    for (int i = 0; i < STAGE_MD5_BYTES; i++) {
        unsigned byte;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1)
            return false;
        out[i] = (unsigned char)byte;
    }
    return true;
}

bool stage_record_load(int fd, const struct stat *now, struct stage_digest *out)
{
    char text[192] = "", adler[16], md5[2 * STAGE_MD5_BYTES + 1];
    uint64_t size;
    int64_t seconds;
    long ns;
    *out = (struct stage_digest){.kinds = STAGE_CKSUM};
    if (fgetxattr(fd, name, text, sizeof text - 1) < 0 ||
        sscanf(text, "1 %" SCNu64 " %" SCNd64 ".%ld %" SCNu32 " %15s %32s", &size, &seconds,
               &ns, &out->cksum, adler, md5) != 6 ||
        size != (uint64_t)now->st_size || seconds != now->st_mtim.tv_sec ||
        (ns != now->st_mtim.tv_nsec && now->st_mtim.tv_nsec != 0))
        return false;
    if (sscanf(adler, "%8" SCNx32, &out->adler32) == 1)
        out->kinds |= STAGE_ADLER32;
    if (strlen(md5) == 2 * STAGE_MD5_BYTES && parse_md5(md5, out->md5))
        out->kinds |= STAGE_MD5;
    return true;
}
