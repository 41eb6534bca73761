/* stored_sums.c - store the sums of a staged file in an extended attribute of the file, so that
 * the next run need not read it:
 *
 *     user.limefs.staged = "1 SIZE MTIME.NS CKSUM ADLER32 MD5 sha256 SHA256 data ORDINAL:CKSUM
 * ... +MORE"
 *
 * A sum that was not computed is "-", or left out with its "sha256". After "data" come the
 * cksums of ildg-binary-data records, and MORE, the number of further such records. Earlier
 * versions wrote nothing from "data" on.
 *
 * The attribute is valid while the file has this size and this mtime, perhaps rounded down. */
#define _GNU_SOURCE
#include "target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

static const char hex_digits[] = "0123456789abcdef";
static const char xattr_name[] = "user.limefs.staged";

enum { TEXT_MAX = 288 + 24 * STAGE_DATA_MAX };

bool stage_mtime_matches(const struct timespec *source, const struct timespec *target)
{
    long rounded = source->tv_nsec;
    if (source->tv_sec != target->tv_sec)
        return false;
    for (long unit = 100; rounded != target->tv_nsec && unit <= 1000000000; unit *= 10)
        rounded -= rounded % unit;
    return rounded == target->tv_nsec;
}

static size_t print_data(char *text, size_t cap, const struct stage_digest *d)
{
    size_t n = (size_t)snprintf(text, cap, " data");
    for (unsigned i = 0; i < d->data_count; i++)
        n += (size_t)snprintf(text + n, cap - n, " %" PRIu32 ":%" PRIu32, d->data[i].ordinal,
                              d->data[i].cksum);
    n += (size_t)snprintf(text + n, cap - n, " +%" PRIu64, d->data_more);
    return n;
}

int stage_stored_sums_save(int fd, const struct stat *source, const struct stage_digest *d)
{
    char text[TEXT_MAX], adler[STAGE_SUM_CHARS], md5[STAGE_SUM_CHARS];
    size_t n = (size_t)snprintf(
        text, sizeof text, "1 %" PRIu64 " %" PRId64 ".%09ld %" PRIu32 " %s %s",
        (uint64_t)source->st_size, (int64_t)source->st_mtim.tv_sec, source->st_mtim.tv_nsec,
        d->cksum, stage_digest_format(d, STAGE_ADLER32, adler),
        stage_digest_format(d, STAGE_MD5, md5));
    if (d->kinds & STAGE_SHA256)
        n += (size_t)snprintf(text + n, sizeof text - n, " sha256 %s", d->sha256);
    size_t all = n + (d->has_data ? print_data(text + n, sizeof text - n, d) : 0);
    if (fsetxattr(fd, xattr_name, text, all, 0) == 0)
        return 0;
    /* Try without the data's cksums: the file system may limit the size of an attribute. */
    return all > n && fsetxattr(fd, xattr_name, text, n, 0) == 0 ? 0 : -errno;
}

/* Parses a number <= most and the character `end` after it. Moves *text behind `end`, or to the
 * end of the text if `end` is NUL. */
static bool parse_number_until(const char **text, char end, uint64_t most, uint64_t *out)
{
    char *after;
    errno = 0;
    unsigned long long number = strtoull(*text, &after, 10);
    if (**text < '0' || **text > '9' || errno || number > most || *after != end)
        return false;
    *text = after + (end != '\0');
    *out = number;
    return true;
}

static void parse_data(const char *text, struct stage_digest *out)
{
    uint64_t ordinal, sum, more;
    unsigned count = 0;
    const char *at = strstr(text, " data ");
    if (!at)
        return;
    for (at += strlen(" data "); *at != '+'; count++) {
        if (count == STAGE_DATA_MAX || !parse_number_until(&at, ':', UINT32_MAX, &ordinal) ||
            !parse_number_until(&at, ' ', UINT32_MAX, &sum))
            return;
        out->data[count] = (struct stage_data_sum){(uint32_t)ordinal, (uint32_t)sum};
    }
    at++;
    if (!parse_number_until(&at, '\0', UINT64_MAX, &more))
        return;
    out->has_data = true;
    out->data_count = count;
    out->data_more = more;
}

bool stage_stored_sums_load(int fd, const struct stat *now, struct stage_digest *out)
{
    char text[TEXT_MAX] = "", adler[16];
    uint64_t size;
    int64_t seconds;
    struct timespec source;
    *out = (struct stage_digest){.kinds = STAGE_CKSUM};
    if (fgetxattr(fd, xattr_name, text, sizeof text - 1) < 0 ||
        sscanf(text, "1 %" SCNu64 " %" SCNd64 ".%ld %" SCNu32 " %15s %32s", &size, &seconds,
               &source.tv_nsec, &out->cksum, adler, out->md5) != 6 ||
        size != (uint64_t)now->st_size)
        return false;
    source.tv_sec = (time_t)seconds;
    if (!stage_mtime_matches(&source, &now->st_mtim))
        return false;
    if (sscanf(adler, "%8" SCNx32, &out->adler32) == 1)
        out->kinds |= STAGE_ADLER32;
    if (strspn(out->md5, hex_digits) == STAGE_MD5_CHARS - 1)
        out->kinds |= STAGE_MD5;
    const char *sha256 = strstr(text, " sha256 ");
    if (sha256 && sscanf(sha256, " sha256 %64s", out->sha256) == 1 &&
        strspn(out->sha256, hex_digits) == STAGE_SHA256_CHARS - 1)
        out->kinds |= STAGE_SHA256;
    out->bytes = size;
    parse_data(text, out);
    return true;
}
