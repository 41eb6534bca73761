/* cmd_pack.c - lime pack, unpack, new: make containers from files and extract their records */
#define _GNU_SOURCE
#include "limeoutput.h"
#include "pack.h"
#include "outdir.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char new_help[] =
    "Usage: lime new [-f] FILE...\n"
    "Create empty containers. An empty container is an empty file; 'lime append'\n"
    "adds records to it. In a limefs mount it is a directory at once, whatever its\n"
    "name (mkdir creates containers only with names that end in .lime).\n"
    "\n"
    "  -f, --force  replace FILE if it exists\n"
    "  -h, --help   this text\n"
    "\n"
    "Example: lime new conf.0100 && lime append conf.0100 -t xlf-info info.txt\n"
    "\n"
    "Exit status: 0 all created, and on the disk; 1 one failed; 2 wrong usage.\n";

static int create_empty_file(const char *path, bool force)
{
    struct limefile_output out;
    int err = limefile_output_open(&out, path, force, NULL, 0);
    return err ? err : limefile_output_commit(&out);
}

/* Creates a container in a limefs mount. mkdir() creates a container only if the name ends in
 * .lime, so this function creates one with such a temporary name and renames it. */
static int create_in_directory(int dirfd, const char *name, bool force)
{
    char temporary[64];
    snprintf(temporary, sizeof temporary, ".lime-new-%ld.lime", (long)getpid());
    if (mkdirat(dirfd, temporary, 0777) != 0)
        return -errno;
    if (renameat2(dirfd, temporary, dirfd, name, force ? 0 : RENAME_NOREPLACE) == 0)
        return 0;
    int err = errno == EEXIST && !force ? LIMEFILE_E_OUTPUT_EXISTS : -errno;
    unlinkat(dirfd, temporary, AT_REMOVEDIR);
    return err;
}

static int create_in_mount(const char *parent, const char *name, bool force)
{
    int dirfd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return -errno;
    int err = create_in_directory(dirfd, name, force);
    close(dirfd);
    return err;
}

static int create_container(const char *path, bool force)
{
    char *copies[2] = {strdup(path), strdup(path)}; /* dirname() and basename() modify them */
    int err = copies[0] && copies[1] ? 0 : -ENOMEM;
    const char *parent = err ? "." : dirname(copies[0]);
    if (!err)
        err = is_in_limefs(parent) ? create_in_mount(parent, basename(copies[1]), force)
                                   : create_empty_file(path, force);
    free(copies[0]);
    free(copies[1]);
    return report_output_error(path, "new", err);
}

static bool is_forced;

static const struct option_rule force_rules[] = {
    FLAG_RULE("force", 'f', &is_forced),
    {NULL},
};

static int run_new(int count, char **paths)
{
    int worst = TOOL_GOOD;
    for (int i = 0; i < count; i++)
        if (create_container(paths[i], is_forced) != TOOL_GOOD)
            worst = TOOL_BAD;
    return worst;
}

const struct command cmd_new = {"new",       "create an empty container",   new_help, run_new,
                                force_rules, {"FILE expected", 1, INT_MAX}, NULL};

static const char pack_help[] =
    "Usage: lime pack [-f] DIR FILE\n"
    "       lime pack [-f] -o FILE [-m] -t TYPE PATH [[-m] -t TYPE PATH]...\n"
    "       lime pack [-f] -o FILE --list LISTFILE\n"
    "Create the container FILE from the output of 'lime unpack' in DIR, from the\n"
    "files PATH, or from those in a list. FILE appears, or is replaced, only when it\n"
    "is complete.\n"
    "\n"
    "  -o, --output FILE   the container to create\n"
    "  -f, --force         replace FILE if it exists; never if it is an input\n"
    "  -t, --type TYPE     the type of the record that the next PATH becomes\n"
    "  -m, --new-message   the next record begins a new message\n"
    "      --list LISTFILE a line 'PATH TYPE' for each record (a TAB between them if\n"
    "                      either contains spaces), a blank line where a new message\n"
    "                      begins\n"
    "  -h, --help          this text\n"
    "\n"
    "In DIR, " MANIFEST_NAME " states order, types and messages. The files may have\n"
    "been edited since; the sizes in it are ignored.\n"
    "\n"
    "Examples:\n"
    "  lime pack parts conf.0042\n"
    "  lime pack -o new.lime -t xlf-info info.txt -m -t ildg-format f.xml \\\n"
    "      -t ildg-binary-data links.bin\n"
    "\n"
    "Exit status: 0 done; 1 failed, FILE is unchanged; 2 wrong usage.\n";

static int pack_directory(const char *dir, const char *target, bool force)
{
    struct packlist list = {0};
    int status = TOOL_BAD;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        message_code(dir, "open", -errno);
        return TOOL_BAD;
    }
    if (packlist_read_manifest(&list, fd, dir)) {
        uint64_t fixed_count = packlist_fix_flags(&list);
        if (fixed_count)
            message(dir,
                    MANIFEST_NAME ": warning: message flags of %" PRIu64
                                  " records contradict each other; corrected",
                    fixed_count);
        struct packing packing = {
            .list = &list,
            .dirfd = fd,
            .dir_name = dir,
            .list_name = MANIFEST_NAME,
            .force = force,
        };
        status = pack_to_file(&packing, target);
    }
    packlist_release(&list);
    close(fd);
    return status;
}

static const char *output, *listfile;

static const struct option_rule pack_rules[] = {
    TEXT_RULE("output", 'o', &output),   PACKARGS_RULES, TEXT_RULE("list", 0, &listfile),
    FLAG_RULE("force", 'f', &is_forced), {NULL},
};

static int pack_list(struct packlist *list)
{
    struct packing packing = {
        .list = list,
        .dirfd = AT_FDCWD,
        .list_name = listfile,
        .follow_links = true,
        .force = is_forced,
    };
    packlist_fix_flags(list);
    return pack_to_file(&packing, output);
}

/* Operands without a type before them are DIR and FILE of the first form in the help. */
static int pack_from_arguments(struct packlist *list)
{
    const char *const *operands = packargs.operands;
    int status = packargs_check(&cmd_pack);
    if (status)
        return status;
    if (!output) {
        if (packargs.operand_count != 2 || list->count || listfile)
            return usage_error(&cmd_pack, "DIR and FILE, or -o FILE and records expected");
        return pack_directory(operands[0], operands[1], is_forced);
    }
    if (packargs.operand_count)
        return usage_error(&cmd_pack, "%s: no type (-t TYPE) before it", operands[0]);
    if (!listfile == !list->count)
        return usage_error(&cmd_pack, "-o: either --list or records (-t TYPE PATH) expected");
    if (listfile && !packlist_read_list(list, listfile, true))
        return TOOL_BAD;
    return pack_list(list);
}

static int run_pack(int count, char **operands)
{
    (void)count;
    (void)operands;
    int status = pack_from_arguments(&packargs.list);
    packlist_release(&packargs.list);
    return status;
}

const struct command cmd_pack = {"pack",          "create a container from files",
                                 pack_help,       run_pack,
                                 pack_rules,      {NULL, 0, 2},
                                 packargs_operand};

enum {
    SINGLE_SYNCS_MAX = 256, /* for more files, one syncfs() is cheaper than many fsync() */
};

static const char unpack_help[] =
    "Usage: lime unpack [-f] FILE DIR\n"
    "Write each record of FILE to a file of its own in DIR, and " MANIFEST_NAME ", from\n"
    "which 'lime pack DIR FILE' creates the container again, byte for byte if it had\n"
    "no deviations.\n"
    "\n"
    "  -f, --force  DIR may contain files; those of the same names are replaced\n"
    "  -h, --help   this text\n"
    "\n"
    "DIR is created if needed. The files have the same names as in a mount:\n"
    "001-ildg-format, where 001 is the record's ordinal; bytes of a type that a file\n"
    "name cannot contain are written as %XX. The manifest is written last: if it\n"
    "exists, all files are complete.\n"
    "\n"
    "Example:\n"
    "  lime unpack conf.0042 parts\n"
    "  vi parts/001-xlf-info; lime pack -f parts conf.0042\n"
    "\n"
    "Exit status: 0 done; 1 FILE has a fault (the records before it are unpacked),\n"
    "or writing failed; 2 wrong usage, or FILE cannot be opened or is not a\n"
    "container.\n";

static void write_entry(FILE *manifest, const struct limefile_record *r, const char *name)
{
    char type[TYPE_TEXT_MAX];
    fprintf(manifest, "%" PRIu64 "\t%" PRIu32 "\t%" PRIu32 "\t%d\t%d\t%" PRIu64 "\t%s\t%s\n",
            r->ordinal, r->message, r->record, r->mb, r->me, r->bytes,
            format_type(r->type, r->type_len, type), name);
}

/* Writes the manifest and closes fd. fd may be -1 with errno set. Returns 0 or -errno. */
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
        limefile_name_format(&r, name);
        write_entry(manifest, &r, name);
    }
    int failed = ferror(manifest);
    errno = EIO; /* the errno of an earlier failed write is lost */
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

/* Removes an old manifest, because it describes files that unpacking replaces. Returns false
 * after a message. */
static bool remove_manifest(const struct outdir *dir)
{
    if (unlinkat(dir->fd, MANIFEST_NAME, 0) == 0 || errno == ENOENT)
        return true;
    message(dir->path, MANIFEST_NAME ": remove: %s", limefile_strerror(-errno));
    return false;
}

/* Returns true, after a message, if `name` in the directory is the container's own file. */
static bool is_the_input(const struct container *c, const struct outdir *dir, const char *name)
{
    int fd = openat(dir->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    bool is_same = fd >= 0 && limefile_output_same_file(fd, c->fd);
    if (fd >= 0)
        close(fd);
    if (is_same)
        message(dir->path, "%s: %s", name, limefile_strerror(LIMEFILE_E_OUTPUT_INPUT));
    return is_same;
}

/* Returns true, after a message, if a file to be written would replace the container itself. */
static bool replaces_input(const struct container *c, const struct outdir *dir, bool force)
{
    struct limefile_record r;
    char name[LIMEFILE_NAME_MAX + 1];
    bool is_same = is_the_input(c, dir, ".") || is_the_input(c, dir, MANIFEST_NAME);
    for (uint64_t i = 1; !is_same && force && limefile_index_get(c->index, i, &r) == 0; i++) {
        limefile_name_format(&r, name);
        is_same = is_the_input(c, dir, name);
    }
    return is_same;
}

/* The manifest is written last: if it exists, all files are complete. */
static bool unpack_to_directory(const struct container *c, const struct outdir *dir, bool force)
{
    struct limefile_record r;
    struct progress progress;
    char name[LIMEFILE_NAME_MAX + 1];
    bool good = !replaces_input(c, dir, force) && remove_manifest(dir);
    progress_begin(&progress, "unpack", limefile_index_end(c->index));
    for (uint64_t i = 1; good && limefile_index_get(c->index, i, &r) == 0; i++) {
        limefile_name_format(&r, name);
        good = outdir_save(dir, c, &r, name, force, &progress);
    }
    progress_end(&progress);
    return good && write_manifest(c, dir);
}

static int unpack_container(const char *path, const char *target, bool force)
{
    struct container c;
    struct outdir dir;
    int status = container_open_or_mounted(&c, path);
    if (status != TOOL_GOOD)
        return status;
    int err = outdir_open(&dir, target, !force);
    if (err) {
        message(target, "open: %s%s", limefile_strerror(err),
                err == -ENOTEMPTY ? "; use -f to unpack into it" : "");
        status = TOOL_BAD;
    } else {
        dir.without_sync = limefile_index_count(c.index) > SINGLE_SYNCS_MAX;
        status = unpack_to_directory(&c, &dir, force) ? container_report_fault(&c) : TOOL_BAD;
        outdir_close(&dir);
    }
    container_close(&c);
    return status;
}

static int run_unpack(int count, char **paths)
{
    (void)count;
    return unpack_container(paths[0], paths[1], is_forced);
}

const struct command cmd_unpack = {
    "unpack",    "write each record to a file",   unpack_help, run_unpack,
    force_rules, {"FILE and DIR expected", 2, 2}, NULL};
