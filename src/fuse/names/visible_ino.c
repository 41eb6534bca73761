/* visible_ino.c - compute the inode numbers that programs see */
#include "inode.h"
#include "splitmix64.h"

static uint64_t mix_bits(uint64_t x)
{
    return mix64(x * MIX64_STEP);
}

/* Returns the inode number; for a file of another file system than the source's, a hash of both
 * numbers that leaves the two highest bits to records and exports. */
static uint64_t file_number(const struct limefs *fs, uint64_t dev, uint64_t ino)
{
    return dev == fs->source_dev ? ino : mix_bits(mix_bits(dev) + ino) >> 2;
}

ino_t limefs_visible_ino(const struct limefs *fs, uint64_t dev, uint64_t ino)
{
    ino = file_number(fs, dev, ino);
    if (!fs->options.ino32 || ino <= UINT32_MAX)
        return ino;
    uint32_t folded = (uint32_t)(ino ^ ino >> 32);
    return folded ? folded : 1;
}

ino_t limefs_visible_record_ino(const struct limefs *fs, const struct stat *container,
                                uint64_t ordinal)
{
    if (fs->container)
        return ordinal + 1;
    uint64_t x = mix_bits(file_number(fs, container->st_dev, container->st_ino));
    return fs->options.ino32 ? (UINT32_C(1) << 31 | x >> 34) + ordinal
                             : (x + ordinal) | UINT64_C(1) << 63;
}

/* The highest bit marks records, the next one exports. Carries do not reach these bits. */
ino_t limefs_visible_export_ino(const struct limefs *fs, const struct stat *container,
                                uint64_t ordinal, unsigned export, uint64_t entry)
{
    uint64_t number = fs->container ? 0 : file_number(fs, container->st_dev, container->st_ino);
    uint64_t x = mix_bits(mix_bits(number) + (ordinal << 8 | export));
    return fs->options.ino32 ? UINT32_C(1) << 30 | ((x + entry) & (UINT32_MAX >> 2))
                             : (x >> 2 & ~(UINT64_C(3) << 60)) + entry + (UINT64_C(1) << 62);
}
