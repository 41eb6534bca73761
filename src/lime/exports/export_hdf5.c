/* export_hdf5.c - create all bytes of an HDF5 file except its dataset, with the HDF5 library
 *
 * The library writes the file into memory (memfd_create()). It allocates space for the dataset,
 * so that the file has its full length, but never writes this space, which thus needs no
 * memory. This code then copies the bytes before and after the dataset.
 *
 * The library is loaded at its first use: Debian's version loads thirty other libraries, which
 * programs that do not use HDF5 should not load. It is not thread-safe: a lock protects it. */
#define _GNU_SOURCE
#include "export.h"

#ifdef LIMEFILE_EXPORT_HDF5

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>

enum {
    ALIGN = 4096,         /* alignment of the dataset in the file */
    ALIGN_FROM = 1 << 20, /* smallest dataset that is aligned, in bytes */
    AROUND_MAX = 1 << 20, /* limit on the bytes around the dataset; a few kB are normal */
    TRUNCATE = 2,         /* H5F_ACC_TRUNC, whose macro also calls the library */
};

#define FUNCTIONS(F)                \
    F(H5open)                       \
    F(H5dont_atexit)                \
    F(H5Eget_auto2)                 \
    F(H5Eset_auto2)                 \
    F(H5Pcreate)                    \
    F(H5Pclose)                     \
    F(H5Pset_alignment)             \
    F(H5Pset_fapl_stdio)            \
    F(H5Pset_meta_block_size)       \
    F(H5Pset_small_data_block_size) \
    F(H5Pset_obj_track_times)       \
    F(H5Pset_layout)                \
    F(H5Pset_alloc_time)            \
    F(H5Pset_fill_time)             \
    F(H5Fcreate)                    \
    F(H5Fclose)                     \
    F(H5Tcreate)                    \
    F(H5Tinsert)                    \
    F(H5Tcopy)                      \
    F(H5Tset_size)                  \
    F(H5Tset_cset)                  \
    F(H5Tcommit2)                   \
    F(H5Tclose)                     \
    F(H5Screate)                    \
    F(H5Screate_simple)             \
    F(H5Sclose)                     \
    F(H5Dcreate2)                   \
    F(H5Dclose)                     \
    F(H5Dget_offset)                \
    F(H5Dget_storage_size)          \
    F(H5Acreate2)                   \
    F(H5Awrite)                     \
    F(H5Aclose)

/* Variables of the library with the ids of types and classes. */
#define IDS(I)                  \
    I(H5T_IEEE_F32BE_g)         \
    I(H5T_IEEE_F64BE_g)         \
    I(H5T_STD_U8LE_g)           \
    I(H5T_STD_U64LE_g)          \
    I(H5T_NATIVE_UINT64_g)      \
    I(H5T_C_S1_g)               \
    I(H5P_CLS_FILE_CREATE_ID_g) \
    I(H5P_CLS_FILE_ACCESS_ID_g) \
    I(H5P_CLS_DATASET_CREATE_ID_g)

#define FUNCTION_MEMBER(name) __typeof__(name) *name;
#define ID_MEMBER(name)       hid_t *name;
#define FIND(name)            &&(h5.name = dlsym(library, #name))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The loaded library; protected by `lock`. */
static struct {
    bool load_tried, good;
    FUNCTIONS(FUNCTION_MEMBER)
    IDS(ID_MEMBER)
} h5;

bool h5_is_supported(void)
{
    return true;
}

/* Loads the library permanently. Disables its cleanup at exit: threads may still use it. */
static bool load_hdf5(void)
{
    if (!h5.load_tried) {
        void *library = dlopen(LIMEFILE_EXPORT_HDF5, RTLD_NOW | RTLD_LOCAL);
        h5.good = library != NULL FUNCTIONS(FIND) IDS(FIND);
        h5.good = h5.good && (h5.H5dont_atexit(), h5.H5open() >= 0);
        h5.load_tried = true;
    }
    return h5.good;
}

/* ---- one file ---- */

struct h5_builder {
    const struct limefile_field *field;
    const struct export_layout *layout;
    int fd; /* the file in memory */
    hid_t file, dataset;
    bool good;
};

static hid_t check_id(struct h5_builder *m, hid_t id)
{
    m->good = m->good && id >= 0;
    return id;
}

static void check_result(struct h5_builder *m, herr_t result)
{
    m->good = m->good && result >= 0;
}

static hid_t create_file(struct h5_builder *m)
{
    char path[32];
    hid_t create = check_id(m, h5.H5Pcreate(*h5.H5P_CLS_FILE_CREATE_ID_g));
    hid_t access = check_id(m, h5.H5Pcreate(*h5.H5P_CLS_FILE_ACCESS_ID_g));
    /* With times in the file, each creation would give other bytes. */
    check_result(m, h5.H5Pset_obj_track_times(create, false));
    /* The default driver would resolve the link in /proc, to a path that does not exist. */
    check_result(m, h5.H5Pset_fapl_stdio(access));
    /* The library aggregates small blocks by default, which leaves gaps. */
    check_result(m, h5.H5Pset_meta_block_size(access, 0));
    check_result(m, h5.H5Pset_small_data_block_size(access, 0));
    check_result(m, h5.H5Pset_alignment(access, ALIGN_FROM, ALIGN));
    snprintf(path, sizeof path, "/proc/self/fd/%d", m->fd);
    hid_t file = m->good ? check_id(m, h5.H5Fcreate(path, TRUNCATE, create, access)) : -1;
    h5.H5Pclose(create);
    h5.H5Pclose(access);
    return file;
}

/* Creates the element's type; complex numbers are a compound of r and i as in h5py. */
static hid_t create_type(struct h5_builder *m)
{
    const struct limefile_array *a = &m->layout->array;
    size_t size = a->precision / 8;
    hid_t real = a->precision == 64   ? *h5.H5T_IEEE_F64BE_g
                 : a->precision == 32 ? *h5.H5T_IEEE_F32BE_g
                                      : *h5.H5T_STD_U8LE_g;
    if (!a->complex)
        return check_id(m, h5.H5Tcopy(real));
    hid_t type = check_id(m, h5.H5Tcreate(H5T_COMPOUND, 2 * size));
    check_result(m, h5.H5Tinsert(type, "r", 0, real));
    check_result(m, h5.H5Tinsert(type, "i", size, real));
    /* NetCDF reads only compounds that have a name. */
    if (m->good)
        check_result(
            m, h5.H5Tcommit2(m->file, "complex", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    return type;
}

static hid_t create_dataset(struct h5_builder *m)
{
    const struct limefile_array *a = &m->layout->array;
    hsize_t shape[LIMEFILE_ARRAY_DIMS_MAX];
    for (unsigned i = 0; i < a->dims; i++)
        shape[i] = a->shape[i];
    hid_t type = create_type(m);
    hid_t space = check_id(m, h5.H5Screate_simple((int)a->dims, shape, NULL));
    hid_t create = check_id(m, h5.H5Pcreate(*h5.H5P_CLS_DATASET_CREATE_ID_g));
    hid_t dataset = -1;
    check_result(m, h5.H5Pset_obj_track_times(create, false));
    check_result(m, h5.H5Pset_layout(create, H5D_CONTIGUOUS));
    check_result(m, h5.H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY));
    check_result(m, h5.H5Pset_fill_time(create, H5D_FILL_TIME_NEVER));
    if (m->good)
        dataset = check_id(
            m, h5.H5Dcreate2(m->file, "field", type, space, H5P_DEFAULT, create, H5P_DEFAULT));
    h5.H5Tclose(type);
    h5.H5Sclose(space);
    h5.H5Pclose(create);
    return dataset;
}

/* ---- attributes ---- */

/* Writes an attribute of `count` values; count 0: a scalar. */
static void write_attribute(struct h5_builder *m, const char *name, hid_t file_type,
                            hid_t memory_type, unsigned count, const void *value)
{
    const hsize_t shape = count;
    if (!m->good)
        return;
    hid_t space =
        check_id(m, count ? h5.H5Screate_simple(1, &shape, NULL) : h5.H5Screate(H5S_SCALAR));
    hid_t attribute = check_id(
        m, h5.H5Acreate2(m->dataset, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT));
    if (m->good)
        check_result(m, h5.H5Awrite(attribute, memory_type, value));
    h5.H5Aclose(attribute);
    h5.H5Sclose(space);
}

static void write_numbers(struct h5_builder *m, const char *name, const uint64_t *number,
                          unsigned count)
{
    write_attribute(m, name, *h5.H5T_STD_U64LE_g, *h5.H5T_NATIVE_UINT64_g, count, number);
}

/* Writes an attribute of `count` UTF-8 strings of variable length; count 0: a scalar string. */
static void write_string_attribute(struct h5_builder *m, const char *name,
                                   const char *const *text, unsigned count)
{
    hid_t type = check_id(m, h5.H5Tcopy(*h5.H5T_C_S1_g));
    check_result(m, h5.H5Tset_size(type, H5T_VARIABLE));
    check_result(m, h5.H5Tset_cset(type, H5T_CSET_UTF8));
    write_attribute(m, name, type, type, count, text);
    h5.H5Tclose(type);
}

/* Encodes the text as in the names of a mount (%XX), so that any program can read it. */
static void write_text_attribute(struct h5_builder *m, const char *name, const char *text)
{
    char plain[3 * LIMEFILE_TYPE_BYTES + 1];
    const char *value = plain;
    limefile_name_encode(text, strlen(text), plain, sizeof plain);
    write_string_attribute(m, name, &value, 0);
}

static void write_attributes(struct h5_builder *m)
{
    const struct limefile_field *f = m->field;
    const uint64_t precision = m->layout->array.precision;
    char sum[20];
    write_text_attribute(m, "record_type", f->record.type);
    write_numbers(m, "record", &f->record.ordinal, 0);
    write_text_attribute(m, "field", f->name);
    write_numbers(m, "precision", &precision, 0);
    if (f->lattice.dims)
        write_numbers(m, "lattice", f->lattice.extent, f->lattice.dims);
    if (f->is_box && f->lattice.dims && !f->is_checkerboard) {
        write_numbers(m, "lower", f->lower, f->lattice.dims);
        write_numbers(m, "upper", f->upper, f->lattice.dims);
    }
    if (f->has_checksum) {
        snprintf(sum, sizeof sum, "%08" PRIx32 " %08" PRIx32, f->checksum.suma,
                 f->checksum.sumb);
        write_text_attribute(m, "scidac_checksum", sum);
    }
    write_string_attribute(m, "DIMENSION_LABELS", m->layout->name, m->layout->array.dims);
}

/* ---- the bytes around the dataset ---- */

/* Copies all bytes except the dataset's `bytes` at `offset`. */
static int copy_around_dataset(int fd, uint64_t offset, uint64_t bytes, struct h5_file *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    uint64_t size = (uint64_t)st.st_size;
    if (size < bytes || offset > size - bytes || size - bytes > AROUND_MAX)
        return LIMEFILE_E_STATE;
    out->before = (size_t)offset;
    out->after = (size_t)(size - bytes - offset);
    out->bytes = malloc(out->before + out->after);
    if (!out->bytes)
        return -ENOMEM;
    int err = limefile_fd_read_exact(fd, out->bytes, out->before, 0);
    return err ? err
               : limefile_fd_read_exact(fd, out->bytes + out->before, out->after,
                                        offset + bytes);
}

/* Writes the file. *offset: where its dataset begins. Returns false if the library fails. */
static bool write_h5_file(struct h5_builder *m, uint64_t *offset)
{
    haddr_t at = HADDR_UNDEF;
    m->good = true;
    m->file = create_file(m);
    m->dataset = m->good ? create_dataset(m) : -1;
    if (m->good) {
        write_attributes(m);
        at = h5.H5Dget_offset(m->dataset);
        m->good = m->good && at != HADDR_UNDEF &&
                  h5.H5Dget_storage_size(m->dataset) == m->layout->array.bytes;
    }
    if (m->dataset >= 0)
        check_result(m, h5.H5Dclose(m->dataset));
    if (m->file >= 0)
        check_result(m, h5.H5Fclose(m->file));
    *offset = at;
    return m->good;
}

int h5_build(const struct limefile_field *field, const struct export_layout *layout,
             struct h5_file *out)
{
    struct h5_builder m = {.field = field, .layout = layout};
    uint64_t offset = 0;
    H5E_auto2_t report;
    void *context;
    int err = LIMEFILE_E_STATE;
    *out = (struct h5_file){0};
    m.fd = memfd_create("export", MFD_CLOEXEC);
    if (m.fd < 0)
        return -errno;
    pthread_mutex_lock(&lock);
    if (load_hdf5()) {
        h5.H5Eget_auto2(H5E_DEFAULT, &report, &context);
        h5.H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
        err = write_h5_file(&m, &offset) ? 0 : LIMEFILE_E_STATE;
        h5.H5Eset_auto2(H5E_DEFAULT, report, context);
    }
    pthread_mutex_unlock(&lock);
    if (!err)
        err = copy_around_dataset(m.fd, offset, layout->array.bytes, out);
    close(m.fd);
    return err;
}

#else

bool h5_is_supported(void)
{
    return false;
}

int h5_build(const struct limefile_field *field, const struct export_layout *layout,
             struct h5_file *out)
{
    (void)field;
    (void)layout;
    *out = (struct h5_file){0};
    return LIMEFILE_E_STATE;
}

#endif
