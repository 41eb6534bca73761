/* cmd_unpack.c - lime unpack: a file for each record, and a manifest */
#define _GNU_SOURCE
#include "manifest.h"
#include "limeoutput.h"
#include "outdir.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
    SYNCED_ONE_BY_ONE = 256, /* records at most; more are synced all at once */
};

static const char help[] =
    "Usage: lime unpack [-f] FILE DIR\n"
    "Write each record of FILE to a file of its own in DIR, and " MANIFEST_NAME ", from\n"
    "which 'lime pack DIR FILE' puts the container together again, byte for byte if\n"
    "it had no deviations.\n"
    "\n"
    "  -f, --force  DIR may hold files already; those of the same names are replaced\n"
    "      --help   this text\n"
    "\n"
    "DIR is made if it is not there. The files are called as in a mount:\n"
    "001-ildg-format, where 001 is the record's ordinal; bytes of a type that a file\n"
    "name cannot hold are written as %XX. The manifest comes last: where it is, all\n"
    "files are whole.\n"
    "\n"
    "Example:\n"
    "  lime unpack conf.0042 parts\n"
    "  vi parts/001-xlf-info; lime pack -f parts conf.0042\n"
    "\n"
    "Exit status: 0 done; 1 FILE has a fault (the records before it are unpacked),\n"
    "or writing failed; 2 wrong usage, or FILE cannot be opened or is no container.\n";

static void add_line(FILE *manifest, const struct limefile_record *r, const char *name)
{
    char type[TYPE_SHOWN_MAX];
    fprintf(manifest, "%" PRIu64 "\t%" PRIu32 "\t%" PRIu32 "\t%d\t%d\t%" PRIu64 "\t%s\t%s\n",
            r->ordinal, r->message, r->record, r->mb, r->me, r->bytes,
            type_shown(r->type, r->type_len, type), name);
}

/* 0 or -errno; closes fd. */
static int fill_manifest(const struct container *c, int fd)
{
    struct limefile_record r;
    char name[LIMEFILE_NAME_MAX + 1];
    FILE *manifest = fd < 0 ? NULL : fdopen(fd, "w");
    if (!manifest) {
        int err = -errno;
        if (fd >= 0)
            close(fd);
        return err;
    }
    fputs(MANIFEST_HEAD, manifest);
    for (uint64_t i = 1; limefile_index_get(c->index, i, &r) == 0; i++) {
        limefile_name_of(&r, name);
        add_line(manifest, &r, name);
    }
    int failed = ferror(manifest);
    errno = EIO; /* an earlier failure has left no better reason */
    return fclose(manifest) != 0 || failed ? -errno : 0;
}

static bool write_manifest(const struct container *c, const struct outdir *dir)
{
    struct limefile_output file;
    int err = outdir_finish(dir);
    if (!err)
        err = limefile_output_open_at(&file, dir->fd, MANIFEST_NAME, true, &c->fd, 1);
    if (!err) {
        err = fill_manifest(c, dup(file.fd));
        if (!err)
            err = limefile_output_commit(&file);
        limefile_output_abort(&file);
    }
    if (!err)
        err = outdir_finish(dir);
    if (err)
        message(dir->path, MANIFEST_NAME ": write: %s", limefile_strerror(err));
    return !err;
}

/* One that is there already speaks of files that are about to be replaced. */
static bool remove_manifest(const struct outdir *dir)
{
    if (unlinkat(dir->fd, MANIFEST_NAME, 0) == 0 || errno == ENOENT)
        return true;
    message(dir->path, MANIFEST_NAME ": remove: %s", limefile_strerror(-errno));
    return false;
}

static bool is_input(const struct container *c, const struct outdir *dir, const char *name)
{
    int fd = openat(dir->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    bool is = fd >= 0 && limefile_output_same(fd, c->fd);
    if (fd >= 0)
        close(fd);
    if (is)
        message(dir->path, "%s: %s", name, limefile_strerror(LIMEFILE_E_OUTPUT_INPUT));
    return is;
}

/* Before any file is replaced. */
static bool replaces_input(const struct container *c, const struct outdir *dir, bool force)
{
    struct limefile_record r;
    char name[LIMEFILE_NAME_MAX + 1];
    bool is = is_input(c, dir, ".") || is_input(c, dir, MANIFEST_NAME);
    for (uint64_t i = 1; !is && force && limefile_index_get(c->index, i, &r) == 0; i++) {
        limefile_name_of(&r, name);
        is = is_input(c, dir, name);
    }
    return is;
}

/* The manifest comes last: where it is, all files are whole. */
static bool unpack_records(const struct container *c, const struct outdir *dir, bool force)
{
    struct limefile_record r;
    struct progress progress;
    char name[LIMEFILE_NAME_MAX + 1];
    bool good = !replaces_input(c, dir, force) && remove_manifest(dir);
    progress_begin(&progress, "unpack", limefile_index_end(c->index));
    for (uint64_t i = 1; good && limefile_index_get(c->index, i, &r) == 0; i++) {
        limefile_name_of(&r, name);
        good = outdir_save(dir, c, &r, name, force, &progress);
    }
    progress_end(&progress);
    return good && write_manifest(c, dir);
}

static int unpack(const char *path, const char *folder, bool force)
{
    struct container c;
    struct outdir dir;
    int status = container_open(&c, path);
    if (status != TOOL_GOOD)
        return status;
    int err = outdir_open(&dir, folder, !force);
    if (err) {
        message(folder, "open: %s%s", limefile_strerror(err),
                err == -ENOTEMPTY ? "; -f to use it all the same" : "");
        status = TOOL_BAD;
    } else {
        dir.without_sync = limefile_index_count(c.index) > SYNCED_ONE_BY_ONE;
        status = unpack_records(&c, &dir, force) ? container_fault_message(&c) : TOOL_BAD;
        outdir_close(&dir);
    }
    container_close(&c);
    return status;
}

static int run(int argc, char **argv)
{
    static const struct option longs[] = {
        {"force", no_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'H'},
        {NULL, 0, NULL, 0},
    };
    bool force = false;
    for (int opt; (opt = read_option(argc, argv, "f", longs, NULL)) != -1;) {
        if (opt == 'f')
            force = true;
        else
            return opt == 'H' ? print_help(&cmd_unpack) : option_error(&cmd_unpack, argv);
    }
    if (argc - optind != 2)
        return usage_error(&cmd_unpack, "a container and a folder are wanted");
    return unpack(argv[optind], argv[optind + 1], force);
}

const struct command cmd_unpack = {"unpack", "a file for each record, and a manifest", help,
                                   run};
