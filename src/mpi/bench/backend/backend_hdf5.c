/* backend_hdf5.c - HDF5 with its parallel file driver: one dataset of bytes */
#include "backend_common.h"

#include <hdf5.h>
#include <stdio.h>

#define DATASET "data"

struct hdf5 {
    struct bench_dataset set;
    hid_t file, dataset, transfer_list;
    hsize_t length; /* current extent of the first dimension */
};

const char *bench_hdf5_version(void)
{
    static char text[32];
    unsigned major, minor, release;
    H5get_libversion(&major, &minor, &release);
    snprintf(text, sizeof text, "%u.%u.%u", major, minor, release);
    return text;
}

static const char *hdf5_unsupported(const struct bench_task *task)
{
    if (task->unlimited && !task->chunk)
        return "--unlimited: HDF5 needs --chunk for it";
    if (task->unlimited && !bench_is_collective(task))
        return "--unlimited: HDF5 extends a dataset in collective calls only";
    return bench_dataset_unsupported(task);
}

/* For H5Ewalk2(): copies the innermost error, number 0, to `text` of 256 bytes. */
static herr_t copy_innermost(unsigned n, const H5E_error2_t *entry, void *text)
{
    if (n == 0)
        snprintf(text, 256, "%s: %s", entry->func_name, entry->desc ? entry->desc : "?");
    return 0;
}

/* result: what an HDF5 function returned, negative on failure. */
static int hdf5_check(struct bench_io *io, const char *action, int64_t result)
{
    char text[256] = "failed";
    if (result >= 0)
        return 0;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, copy_innermost, text);
    H5Eclear2(H5E_DEFAULT);
    return bench_io_fail(io, action, "%s", text);
}

static int hdf5_prepare(struct bench_io *io)
{
    struct hdf5 *h = io->state;
    *h = (struct hdf5){.file = -1, .dataset = -1, .transfer_list = -1};
    bench_dataset_init(&h->set, io->task);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return 0;
}

static hid_t create_access_list(struct bench_io *io)
{
    const struct bench_task *task = io->task;
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    MPI_Info info = bench_info_create(task);
    H5Pset_fapl_mpio(list, io->comm, info);
    bench_info_free(&info);
    if (task->alignment)
        H5Pset_alignment(list, (hsize_t)task->alignment, (hsize_t)task->alignment);
    return list;
}

static hid_t create_space(struct hdf5 *h, const struct bench_task *task)
{
    hsize_t now[BENCH_DATASET_DIMS], limit[BENCH_DATASET_DIMS];
    for (int d = 0; d < h->set.dims; d++)
        now[d] = limit[d] = (hsize_t)h->set.extent[d];
    if (task->unlimited) {
        now[0] = 1;
        limit[0] = H5S_UNLIMITED;
    }
    h->length = now[0];
    return H5Screate_simple(h->set.dims, now, limit);
}

static hid_t create_dataset_list(const struct hdf5 *h)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[BENCH_DATASET_DIMS] = {0};
    for (int d = 0; d < h->set.dims; d++)
        chunk[d] = (hsize_t)h->set.chunk[d];
    if (chunk[0])
        H5Pset_chunk(list, h->set.dims, chunk);
    H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
    return list;
}

static int create_dataset(struct bench_io *io, struct hdf5 *h)
{
    hid_t space = create_space(h, io->task), list = create_dataset_list(h);
    h->dataset =
        H5Dcreate2(h->file, DATASET, H5T_NATIVE_UCHAR, space, H5P_DEFAULT, list, H5P_DEFAULT);
    int code = hdf5_check(io, "create dataset", h->dataset);
    H5Sclose(space);
    H5Pclose(list);
    return code;
}

static void store_hdf5_hints(struct bench_io *io, struct hdf5 *h)
{
    MPI_File *file;
    MPI_Info info;
    if (H5Fget_vfd_handle(h->file, H5P_DEFAULT, (void **)&file) >= 0 &&
        MPI_File_get_info(*file, &info) == MPI_SUCCESS)
        bench_info_store(io, info);
}

static int hdf5_open(struct bench_io *io)
{
    struct hdf5 *h = io->state;
    hid_t list = create_access_list(io);
    if (io->is_writing)
        h->file = H5Fcreate(io->path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    else
        h->file = H5Fopen(io->path, H5F_ACC_RDONLY, list);
    int code = hdf5_check(io, "open", h->file); /* the next call clears the error stack */
    H5Pclose(list);
    if (code != 0)
        return -1;
    store_hdf5_hints(io, h);
    if (io->is_writing && create_dataset(io, h) != 0)
        return -1;
    if (!io->is_writing)
        h->dataset = H5Dopen2(h->file, DATASET, H5P_DEFAULT);
    if (hdf5_check(io, "open dataset", h->dataset) != 0)
        return -1;
    h->transfer_list = H5Pcreate(H5P_DATASET_XFER);
    return hdf5_check(io, "set mode",
                      H5Pset_dxpl_mpio(h->transfer_list, bench_is_collective(io->task)
                                                             ? H5FD_MPIO_COLLECTIVE
                                                             : H5FD_MPIO_INDEPENDENT));
}

static int hdf5_close(struct bench_io *io)
{
    struct hdf5 *h = io->state;
    int code = 0;
    if (h->transfer_list >= 0)
        H5Pclose(h->transfer_list);
    if (h->dataset >= 0)
        code |= hdf5_check(io, "close dataset", H5Dclose(h->dataset));
    if (h->file >= 0)
        code |= hdf5_check(io, "close", H5Fclose(h->file));
    if (h->file >= 0 && code == 0)
        code = bench_posix_sync_path(io);
    h->file = h->dataset = h->transfer_list = -1;
    return code;
}

static int hdf5_move_slab(struct bench_io *io, const struct bench_slab *slab)
{
    struct hdf5 *h = io->state;
    hsize_t start[BENCH_DATASET_DIMS], count[BENCH_DATASET_DIMS], n = (hsize_t)slab->bytes;
    hid_t file = H5Dget_space(h->dataset), memory = H5Screate_simple(1, &n, NULL);
    herr_t result;
    for (int d = 0; d < h->set.dims; d++) {
        start[d] = (hsize_t)slab->start[d];
        count[d] = (hsize_t)slab->count[d];
    }
    if (n) {
        H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL);
    } else {
        H5Sselect_none(file);
        H5Sselect_none(memory);
    }
    if (io->is_writing)
        result = H5Dwrite(h->dataset, H5T_NATIVE_UCHAR, memory, file, h->transfer_list,
                          io->data + slab->mem_offset);
    else
        result = H5Dread(h->dataset, H5T_NATIVE_UCHAR, memory, file, h->transfer_list,
                         io->data + slab->mem_offset);
    int code = hdf5_check(io, io->is_writing ? "write" : "read", result);
    H5Sclose(memory);
    H5Sclose(file);
    return code;
}

/* Extends the dataset, if necessary, to hold slab i of every rank. Collective. */
static int extend_dataset(struct bench_io *io, int64_t i)
{
    struct hdf5 *h = io->state;
    hsize_t now[BENCH_DATASET_DIMS];
    int64_t reach = bench_dataset_length_for(&h->set, i);
    if ((hsize_t)reach <= h->length)
        return 0;
    for (int d = 0; d < h->set.dims; d++)
        now[d] = (hsize_t)h->set.extent[d];
    now[0] = h->length = (hsize_t)reach;
    return hdf5_check(io, "extend", H5Dset_extent(h->dataset, now));
}

static int hdf5_transfer(struct bench_io *io)
{
    struct hdf5 *h = io->state;
    return bench_move_slabs(io, &h->set, hdf5_move_slab,
                            io->task->unlimited ? extend_dataset : NULL);
}

static int hdf5_sync(struct bench_io *io)
{
    struct hdf5 *h = io->state;
    return hdf5_check(io, "flush", H5Fflush(h->file, H5F_SCOPE_GLOBAL));
}

const struct bench_backend bench_hdf5 = {
    .name = "hdf5",
    .about = "HDF5, one dataset",
    .abilities = BENCH_CAN_DATASET | BENCH_CAN_CHUNK,
    .patterns = BENCH_ALL_PATTERNS,
    .may_hang = true,
    .state_bytes = sizeof(struct hdf5),
    .unsupported = hdf5_unsupported,
    .prepare = hdf5_prepare,
    .open = hdf5_open,
    .transfer = hdf5_transfer,
    .sync = hdf5_sync,
    .close = hdf5_close,
};
