/* compat_pack.c - lime_pack and lime_unpack */
#define _GNU_SOURCE
#include "compat.h"
#include "limeoutput.h"
#include "outdir.h"
#include "packlist.h"
#include "tool.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

static void announce(uint32_t number, uint32_t record, uint64_t bytes,
                     const struct pack_item *item)
{
    answer(NULL, "%2" PRIu32 " %3" PRIu32 " %8" PRIu64 " %s", number, record, bytes,
           item->type);
    putchar('\t');
    putchar('\t');
    answer(NULL, "%s", item->path);
}

static int run_pack(int argc, char **argv)
{
    struct packlist list = {0};
    int status = TOOL_BAD;
    if (argc != 3)
        return compat_usage(argv[0], "<filelist_file> <lime_file>");
    if (packlist_read_list(&list, argv[1], false)) {
        struct packing packing = {
            .list = &list,
            .folder = AT_FDCWD,
            .list_name = argv[1],
            .follow_links = true,
            .force = true, /* as C-LIME does */
            .announce = announce,
        };
        printf("msg rec   bytes type\n");
        status = pack_to_file(&packing, argv[2]);
    }
    packlist_release(&list);
    return status;
}

static bool unpack_records(const struct container *c, const struct outdir *dir)
{
    struct limefile_record r;
    char name[LIMEFILE_NAME_MAX + 1];
    bool good = true;
    printf("   bytes file\n");
    for (uint64_t i = 1; good && limefile_index_get(c->index, i, &r) == 0; i++) {
        int head = snprintf(name, sizeof name, "msg%02" PRIu32 ".rec%02" PRIu32 ".", r.message,
                            r.record);
        limefile_name_encode(r.type, r.type_len, name + head, sizeof name - (size_t)head);
        if (r.mb)
            putchar('\n');
        answer(NULL, "%8" PRIu64 " %s/%s", r.bytes, dir->path, name);
        good = outdir_save(dir, c, &r, name, true, NULL);
    }
    return good;
}

static int unpack(struct container *c)
{
    struct outdir dir;
    char *folder;
    if (asprintf(&folder, "%s.contents", c->path) < 0) {
        message(NULL, "out of memory");
        return TOOL_BAD;
    }
    int status = TOOL_BAD;
    int err = outdir_open(&dir, folder, false);
    if (err) {
        message_code(folder, "open", err);
    } else if (limefile_output_same(dir.fd, c->fd)) {
        message_output(folder, "open", LIMEFILE_E_OUTPUT_INPUT);
        outdir_close(&dir);
    } else {
        dir.without_sync = true; /* as C-LIME does */
        status = unpack_records(c, &dir) ? container_fault_message(c) : TOOL_BAD;
        outdir_close(&dir);
    }
    free(folder);
    return status;
}

static int run_unpack(int argc, char **argv)
{
    struct container c;
    if (argc < 2)
        return compat_usage(argv[0], "<lime_file>");
    int status = container_open(&c, argv[1]);
    if (status == TOOL_GOOD) {
        status = unpack(&c);
        container_close(&c);
    }
    return compat_status(status);
}

const struct command compat_lime_pack = {
    "lime_pack", NULL,
    "Usage: lime_pack <filelist_file> <lime_file>\n"
    "Make a LIME container of the files that a list names. See lime_pack(1).\n",
    run_pack};
const struct command compat_lime_unpack = {
    "lime_unpack", NULL,
    "Usage: lime_unpack <lime_file>\n"
    "Write each record to a file in <lime_file>.contents. See lime_unpack(1).\n",
    run_unpack};
