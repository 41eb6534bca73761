/* identity.c - which container a client means; pure */
#include "limejob.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct limejob_identity limejob_identity_of(const struct stat *st)
{
    return (struct limejob_identity){
        .device = (uint64_t)st->st_dev,
        .inode = (uint64_t)st->st_ino,
        .uid = st->st_uid,
        .mode = st->st_mode,
        .bytes = (uint64_t)st->st_size,
        .mtime_s = st->st_mtim.tv_sec,
        .mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
        .ctime_s = st->st_ctim.tv_sec,
        .ctime_ns = (uint32_t)st->st_ctim.tv_nsec,
    };
}

/* ---- compared ---- */

static bool same_number(const char *name, uint64_t found, uint64_t wanted, char *text,
                        size_t cap)
{
    if (found != wanted)
        snprintf(text, cap, "%s %llu, not %llu", name, (unsigned long long)found,
                 (unsigned long long)wanted);
    return found == wanted;
}

static bool same_mode(uint32_t found, uint32_t wanted, char *text, size_t cap)
{
    if (found != wanted)
        snprintf(text, cap, "mode %#o, not %#o", found, wanted);
    return found == wanted;
}

struct instant {
    int64_t s;
    uint32_t ns;
};

static bool same_time(const char *name, struct instant found, struct instant wanted, char *text,
                      size_t cap)
{
    bool same = found.s == wanted.s && found.ns == wanted.ns;
    if (!same)
        snprintf(text, cap, "%s %lld.%09u, not %lld.%09u", name, (long long)found.s, found.ns,
                 (long long)wanted.s, wanted.ns);
    return same;
}

static bool same_state(const struct limejob_identity *found,
                       const struct limejob_identity *wanted, char *text, size_t cap)
{
    return same_number("size", found->bytes, wanted->bytes, text, cap) &&
           same_time("mtime", (struct instant){found->mtime_s, found->mtime_ns},
                     (struct instant){wanted->mtime_s, wanted->mtime_ns}, text, cap) &&
           same_time("ctime", (struct instant){found->ctime_s, found->ctime_ns},
                     (struct instant){wanted->ctime_s, wanted->ctime_ns}, text, cap);
}

int limejob_identity_compare(const struct limejob_identity *found,
                             const struct limejob_identity *wanted, unsigned any, char *text,
                             size_t cap)
{
    bool same = (any & LIMEJOB_ANY_DEVICE ||
                 same_number("device", found->device, wanted->device, text, cap)) &&
                same_number("inode", found->inode, wanted->inode, text, cap) &&
                same_number("uid", found->uid, wanted->uid, text, cap) &&
                same_mode(found->mode, wanted->mode, text, cap) &&
                (any & LIMEJOB_ANY_STATE || same_state(found, wanted, text, cap));
    return same ? 0 : -ESTALE;
}

/* ---- in packets ---- */

size_t limejob_folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash > path ? (size_t)(slash - path) : 1;
}

static void put_identity(struct limejob_packet *packet, const struct limejob_identity *identity)
{
    limejob_put_u64(packet, identity->device);
    limejob_put_u64(packet, identity->inode);
    limejob_put_u32(packet, identity->uid);
    limejob_put_u32(packet, identity->mode);
    limejob_put_u64(packet, identity->bytes);
    limejob_put_u64(packet, (uint64_t)identity->mtime_s);
    limejob_put_u32(packet, identity->mtime_ns);
    limejob_put_u64(packet, (uint64_t)identity->ctime_s);
    limejob_put_u32(packet, identity->ctime_ns);
}

void limejob_put_opening(struct limejob_packet *packet, const struct limejob_identity *identity,
                         const char *path, size_t root)
{
    put_identity(packet, identity);
    limejob_put_u32(packet, (uint32_t)root);
    limejob_put_bytes(packet, path, strlen(path));
}

static void get_identity(struct limejob_packet *packet, struct limejob_identity *identity)
{
    identity->device = limejob_get_u64(packet);
    identity->inode = limejob_get_u64(packet);
    identity->uid = limejob_get_u32(packet);
    identity->mode = limejob_get_u32(packet);
    identity->bytes = limejob_get_u64(packet);
    identity->mtime_s = (int64_t)limejob_get_u64(packet);
    identity->mtime_ns = limejob_get_u32(packet);
    identity->ctime_s = (int64_t)limejob_get_u64(packet);
    identity->ctime_ns = limejob_get_u32(packet);
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
    return is_root_of(opening->path, opening->root) && opening->identity.bytes <= INT64_MAX
               ? 0
               : -EINVAL;
}
