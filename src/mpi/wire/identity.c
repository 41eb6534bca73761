/* identity.c - which container a client means; pure */
#include "limejob.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- compared ---- */

/* The first of them in words. */
static void describe(unsigned differs, const struct limefile_identity *found,
                     const struct limefile_identity *wanted, char *text, size_t cap)
{
    if (differs & LIMEFILE_DEV)
        snprintf(text, cap, "device %" PRIu64 ", not %" PRIu64, found->dev, wanted->dev);
    else if (differs & LIMEFILE_INO)
        snprintf(text, cap, "inode %" PRIu64 ", not %" PRIu64, found->ino, wanted->ino);
    else if (differs & LIMEFILE_UID)
        snprintf(text, cap, "uid %u, not %u", found->uid, wanted->uid);
    else if (differs & LIMEFILE_MODE)
        snprintf(text, cap, "mode %#o, not %#o", found->mode, wanted->mode);
    else if (differs & LIMEFILE_SIZE)
        snprintf(text, cap, "size %" PRId64 ", not %" PRId64, found->size, wanted->size);
    else {
        bool m = differs & LIMEFILE_MTIME;
        const struct timespec *is = m ? &found->mtime : &found->ctime;
        const struct timespec *was = m ? &wanted->mtime : &wanted->ctime;
        snprintf(text, cap, "%s %jd.%09ld, not %jd.%09ld", m ? "mtime" : "ctime",
                 (intmax_t)is->tv_sec, is->tv_nsec, (intmax_t)was->tv_sec, was->tv_nsec);
    }
}

int limejob_identity_compare(const struct limefile_identity *found,
                             const struct limefile_identity *wanted, unsigned any, char *text,
                             size_t cap)
{
    unsigned differs = limefile_identity_differences(found, wanted) & ~any;
    if (differs)
        describe(differs, found, wanted, text, cap);
    return differs ? -ESTALE : 0;
}

/* ---- in packets ---- */

size_t limejob_folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash > path ? (size_t)(slash - path) : 1;
}

static void put_identity(struct limejob_packet *packet,
                         const struct limefile_identity *identity)
{
    limejob_put_u64(packet, identity->dev);
    limejob_put_u64(packet, identity->ino);
    limejob_put_u32(packet, identity->uid);
    limejob_put_u32(packet, identity->mode);
    limejob_put_u64(packet, (uint64_t)identity->size);
    limejob_put_u64(packet, (uint64_t)identity->mtime.tv_sec);
    limejob_put_u32(packet, (uint32_t)identity->mtime.tv_nsec);
    limejob_put_u64(packet, (uint64_t)identity->ctime.tv_sec);
    limejob_put_u32(packet, (uint32_t)identity->ctime.tv_nsec);
}

void limejob_put_opening(struct limejob_packet *packet,
                         const struct limefile_identity *identity, const char *path,
                         size_t root)
{
    put_identity(packet, identity);
    limejob_put_u32(packet, (uint32_t)root);
    limejob_put_bytes(packet, path, strlen(path));
}

static void get_identity(struct limejob_packet *packet, struct limefile_identity *identity)
{
    identity->dev = limejob_get_u64(packet);
    identity->ino = limejob_get_u64(packet);
    identity->uid = limejob_get_u32(packet);
    identity->mode = limejob_get_u32(packet);
    identity->size = (int64_t)limejob_get_u64(packet);
    identity->mtime.tv_sec = (int64_t)limejob_get_u64(packet);
    identity->mtime.tv_nsec = limejob_get_u32(packet);
    identity->ctime.tv_sec = (int64_t)limejob_get_u64(packet);
    identity->ctime.tv_nsec = limejob_get_u32(packet);
}

/* "/data" and "/" are folders of "/data/conf", "/da" is not. */
static bool is_root_of(const char *path, uint32_t root)
{
    size_t length = strlen(path);
    return path[0] == '/' && root > 0 && root < length &&
           (path[root] == '/' || path[root - 1] == '/') &&
           strspn(path + root, "/") < length - root;
}

int limejob_get_opening(struct limejob_packet *packet, struct limejob_opening *opening)
{
    get_identity(packet, &opening->identity);
    opening->root = limejob_get_u32(packet);
    if (limejob_get_text(packet, opening->path, sizeof opening->path) != 0)
        return -EINVAL;
    return is_root_of(opening->path, opening->root) && opening->identity.size >= 0 ? 0
                                                                                   : -EINVAL;
}
