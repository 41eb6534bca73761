/* gauge_image.c - compute a file in another format from a field, while it is read; and, the
 * reverse, present a file in another format as a LIME container */
#include "gauge.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    READ_BYTES = 256 * 1024, /* bytes of ILDG's sites converted at a time */
};

/* ---- creating and sealing ---- */

/* Copies at most `limit` characters (without the NUL). lines: the text may have several lines;
 * otherwise '?' replaces all characters that are not printable ASCII, such as a newline. */
static char *copy_option(const char *text, size_t limit, bool lines)
{
    size_t n = text ? strlen(text) : 0;
    n = n < limit ? n : limit;
    char *copy = malloc(n + 1);
    if (!copy)
        return NULL;
    for (size_t i = 0; i < n; i++)
        copy[i] = lines || (text[i] >= ' ' && text[i] < 0x7f) ? text[i] : '?';
    copy[n] = '\0';
    return copy;
}

static int copy_options(struct limefile_gauge_image *image,
                        const struct limefile_gauge_options *options)
{
    enum { VALUE = LIMEFILE_GAUGE_TEXT_MAX, DATE = 63, TEXT = 1 << 20 };
    struct limefile_gauge_options *form = &image->options;
    const char **texts[] = {&form->ensemble_id, &form->ensemble_label,
                            &form->creator,     &form->date,
                            &form->lfn,         &form->text};
    static const size_t limits[] = {VALUE, VALUE, VALUE, DATE, LIMEFILE_LFN_MAX - 1, TEXT};
    *form = *options;
    for (int i = 0; i < 6; i++) {
        if (!*texts[i])
            continue;
        image->texts[i] = copy_option(*texts[i], limits[i], i == 5);
        *texts[i] = image->texts[i];
        if (!image->texts[i])
            return -ENOMEM;
    }
    return 0;
}

bool limefile_gauge_supports(enum limefile_gauge_format format, const uint64_t extent[4])
{
    const struct gauge_format *f = gauge_find_format(format);
    for (int d = 0; f && d < 4; d++)
        if (extent[d] > f->extent_max || (f->requires_even && extent[d] % 2 != 0))
            return false;
    return f != NULL;
}

/* Fills in precision, rows and byte order, and checks that the format supports the lattice. */
static int choose_link_form(struct limefile_gauge_image *image)
{
    const struct limefile_gauge_options *options = &image->options;
    const struct gauge_format *f = gauge_find_format(image->format);
    struct links_form *form = &image->form;
    if (!f)
        return LIMEFILE_E_GAUGE_FORM;
    form->precision = options->precision ? options->precision
                      : f->precision     ? f->precision
                                         : image->sites.precision;
    form->rows = options->rows ? options->rows : 3;
    form->little = f->precision != 0;
    if ((form->precision != 32 && form->precision != 64) ||
        (f->precision && form->precision != f->precision) || form->rows > 3 ||
        form->rows < f->rows_min)
        return LIMEFILE_E_GAUGE_FORM;
    if (!limefile_gauge_supports(image->format, image->sites.extent))
        return LIMEFILE_E_GAUGE_LATTICE;
    image->data_bytes = gauge_data_bytes(image->sites.extent, form);
    return image->data_bytes ? 0 : LIMEFILE_E_GAUGE_LATTICE;
}

int limefile_gauge_image_new(const struct limefile_sites *sites,
                             const struct limefile_gauge_options *form,
                             struct limefile_gauge_image **out)
{
    struct limefile_gauge_image *image = calloc(1, sizeof *image);
    if (!image)
        return -ENOMEM;
    image->sites = *sites;
    image->format = form->format;
    int err = copy_options(image, form);
    if (!err)
        err = choose_link_form(image);
    if (!err)
        err = gauge_find_format(image->format)->make_header(image, NULL);
    image->sealed = form->without_checksum && form->format == LIMEFILE_GAUGE_ILDG;
    if (err)
        limefile_gauge_image_free(image);
    else
        *out = image;
    return err;
}

void limefile_gauge_image_free(struct limefile_gauge_image *image)
{
    if (!image)
        return;
    for (size_t i = 0; i < sizeof image->texts / sizeof image->texts[0]; i++)
        free(image->texts[i]);
    free(image->header);
    free(image->trailer);
    free(image);
}

/* Returns true if readers of the format accept the header. openQCD has no magic number, so its
 * readers check the plaquette's range. Readers of NERSC files need plaquette and trace to 1e-5;
 * format_real() (nersc.c) prints enough digits only of numbers below 1e9. */
static bool has_readable_header(const struct limefile_gauge_image *image,
                                const struct limefile_physics *figures)
{
    static const double largest = 1e9;
    if (image->format == LIMEFILE_GAUGE_OPENQCD)
        return gauge_openqcd.matches(image->header, image->header_bytes,
                                     limefile_gauge_image_size(image));
    return image->format != LIMEFILE_GAUGE_NERSC ||
           (fabs(figures->plaquette) < largest && fabs(figures->trace) < largest);
}

int limefile_gauge_image_seal(struct limefile_gauge_image *image,
                              const struct limefile_gauge_totals *totals)
{
    if (!isfinite(totals->physics.plaquette) || !isfinite(totals->physics.trace))
        return LIMEFILE_E_GAUGE_NAN;
    int err = gauge_find_format(image->format)->make_header(image, totals);
    if (!err && !has_readable_header(image, &totals->physics))
        err = LIMEFILE_E_GAUGE_RANGE;
    image->sealed = !err;
    return err;
}

/* ---- offsets and sizes ---- */

uint64_t limefile_gauge_image_data_offset(const struct limefile_gauge_image *image)
{
    return image->header_bytes;
}

int limefile_gauge_image_write_headers(const struct limefile_gauge_image *image, int fd)
{
    int err = limefile_fd_write(fd, image->header, image->header_bytes, 0);
    return err ? err
               : limefile_fd_write(fd, image->trailer, image->trailer_bytes,
                                   image->header_bytes + image->data_bytes);
}

uint64_t limefile_gauge_image_size(const struct limefile_gauge_image *image)
{
    return image->header_bytes + image->data_bytes + image->trailer_bytes;
}

size_t image_site_bytes(const struct limefile_gauge_image *image)
{
    return 4 * links_bytes(&image->form);
}

/* ---- data ---- */

void image_encode(const struct limefile_gauge_image *image, const void *sites, uint64_t count,
                  void *out)
{
    struct links_form ildg = links_ildg(image->sites.precision);
    links_convert(&ildg, sites, &image->form, out, (size_t)count * 4);
}

/* Encodes whole units (sites, or points of openQCD) into `out`. */
static int encode_units(const struct limefile_gauge_image *image, uint64_t first,
                        uint64_t count, unsigned char *out)
{
    if (image->format == LIMEFILE_GAUGE_OPENQCD)
        return openqcd_encode_from(&image->sites, first, count, out);
    size_t site = limefile_sites_bytes(&image->sites), stored = image_site_bytes(image);
    uint64_t batch = READ_BYTES / site, n;
    unsigned char *buffer = malloc((size_t)(batch < count ? batch : count) * site);
    int err = buffer ? 0 : -ENOMEM;
    for (; !err && count; count -= n, first += n, out += n * stored) {
        n = count < batch ? count : batch;
        err = image->sites.read(image->sites.context, first, n, buffer);
        if (!err)
            image_encode(image, buffer, n, out);
    }
    free(buffer);
    return err;
}

/* Encodes n bytes at `offset` of the data. Uses `whole` for a unit that is partly requested. */
static int encode_data(const struct limefile_gauge_image *image, unsigned char *out, size_t n,
                       uint64_t offset)
{
    size_t unit = image->format == LIMEFILE_GAUGE_OPENQCD ? (size_t)OPENQCD_POINT_BYTES
                                                          : image_site_bytes(image);
    unsigned char whole[OPENQCD_POINT_BYTES];
    int err = 0;
    while (!err && n) {
        size_t skip = (size_t)(offset % unit), got = unit - skip;
        if (skip || n < unit) {
            got = got < n ? got : n;
            err = encode_units(image, offset / unit, 1, whole);
            if (!err)
                memcpy(out, whole + skip, got);
        } else {
            got = n / unit * unit;
            err = encode_units(image, offset / unit, n / unit, out);
        }
        out += got;
        offset += got;
        n -= got;
    }
    return err;
}

static size_t copy_bytes_at(unsigned char *out, size_t n, const unsigned char *from,
                            size_t bytes, uint64_t offset)
{
    size_t got = bytes - (size_t)offset;
    got = got < n ? got : n;
    memcpy(out, from + offset, got);
    return got;
}

ssize_t limefile_gauge_image_read(const struct limefile_gauge_image *image, void *buf, size_t n,
                                  uint64_t offset)
{
    unsigned char *out = buf;
    uint64_t size = limefile_gauge_image_size(image), end = image->header_bytes;
    int err = image->sealed ? 0 : LIMEFILE_E_STATE;
    n = offset >= size ? 0 : size - offset < n ? (size_t)(size - offset) : n;
    for (size_t left = n, got; !err && left; left -= got, out += got, offset += got) {
        uint64_t data_end = end + image->data_bytes;
        if (offset < end) {
            got = copy_bytes_at(out, left, image->header, image->header_bytes, offset);
        } else if (offset >= data_end) {
            got = copy_bytes_at(out, left, image->trailer, image->trailer_bytes,
                                offset - data_end);
        } else {
            got = data_end - offset < left ? (size_t)(data_end - offset) : left;
            err = encode_data(image, out, got, offset - end);
        }
    }
    return err ? err : (ssize_t)n;
}

ssize_t limefile_gauge_image_read_with(const struct limefile_gauge_image *image,
                                       int (*read)(void *context, uint64_t first,
                                                   uint64_t count, void *out),
                                       void *context, void *buf, size_t n, uint64_t offset)
{
    struct limefile_gauge_image copy = *image;
    copy.sites.read = read;
    copy.sites.context = context;
    return limefile_gauge_image_read(&copy, buf, n, offset);
}

bool limefile_gauge_image_is_sealed(const struct limefile_gauge_image *image)
{
    return image->sealed;
}

/* ---- adapter: a file in another format as a container ---- */

struct limefile_gauge_adapter {
    struct limefile_source source; /* first member: the operations cast it to the adapter */
    struct limefile_fd file;
    struct limefile_gauge *gauge;
    struct limefile_gauge_image *image;
};

static ssize_t read_image(struct limefile_source *source, void *buf, size_t n, uint64_t offset)
{
    return limefile_gauge_image_read(((struct limefile_gauge_adapter *)source)->image, buf, n,
                                     offset);
}

static int adapter_size(struct limefile_source *source, uint64_t *size)
{
    *size = limefile_gauge_image_size(((struct limefile_gauge_adapter *)source)->image);
    return 0;
}

static const struct limefile_source_ops ops = {.read = read_image, .size = adapter_size};

static int make_adapter_image(struct limefile_gauge_adapter *adapter)
{
    char type[32];
    const struct limefile_gauge *gauge = adapter->gauge;
    snprintf(type, sizeof type, "%s-header", limefile_gauge_format_name(gauge->format));
    const struct limefile_gauge_options form = {.format = LIMEFILE_GAUGE_ILDG,
                                                .text = gauge->text,
                                                .text_type = type,
                                                .without_checksum = true};
    return limefile_gauge_image_new(&gauge->sites, &form, &adapter->image);
}

int limefile_gauge_adapter_open(int fd, struct limefile_gauge_adapter **out)
{
    struct limefile_gauge_adapter *adapter = calloc(1, sizeof *adapter);
    if (!adapter)
        return -ENOMEM;
    adapter->source.ops = &ops;
    limefile_fd_init(&adapter->file, fd);
    int err = gauge_open_depth(&adapter->file.source, 0, GAUGE_LISTED, &adapter->gauge, NULL);
    if (!err)
        err = make_adapter_image(adapter);
    if (err)
        limefile_gauge_adapter_close(adapter);
    else
        *out = adapter;
    return err;
}

int limefile_gauge_adapter_supports(int fd)
{
    struct limefile_fd file;
    struct limefile_gauge *gauge = NULL;
    limefile_fd_init(&file, fd);
    int err = gauge_open_depth(&file.source, 0, GAUGE_HEADER, &gauge, NULL);
    limefile_gauge_close(gauge);
    /* All other errors mean that the file is not supported. */
    return limefile_is_errno(err) ? err : err == 0;
}

void limefile_gauge_adapter_close(struct limefile_gauge_adapter *adapter)
{
    if (!adapter)
        return;
    limefile_gauge_image_free(adapter->image);
    limefile_gauge_close(adapter->gauge);
    free(adapter);
}

struct limefile_source *limefile_gauge_adapter_source(struct limefile_gauge_adapter *adapter)
{
    return &adapter->source;
}

const struct limefile_gauge *limefile_gauge_adapter_file(const struct limefile_gauge_adapter *a)
{
    return a->gauge;
}

/* The list of sites is most of the memory. */
size_t limefile_gauge_adapter_memory(const struct limefile_gauge_adapter *adapter)
{
    const struct limefile_gauge *gauge = adapter->gauge;
    size_t sites = gauge->has_site_list ? (size_t)limefile_sites_count(&gauge->sites) : 0;
    return sizeof *adapter + sites * sizeof(uint32_t);
}
