/* guise.c - a file in another format, as the container that it would be */
#include "gauge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct limefile_gauge_guise {
    struct limefile_source source; /* first: what is read leads here */
    struct limefile_fd file;
    struct limefile_gauge *gauge;
    struct limefile_gauge_image *image;
};

static ssize_t read_guise(struct limefile_source *source, void *buf, size_t n, uint64_t offset)
{
    return limefile_gauge_image_read(((struct limefile_gauge_guise *)source)->image, buf, n,
                                     offset);
}

static int size_of_guise(struct limefile_source *source, uint64_t *size)
{
    *size = limefile_gauge_image_size(((struct limefile_gauge_guise *)source)->image);
    return 0;
}

static const struct limefile_source_ops ops = {.read = read_guise, .size = size_of_guise};

static int make_image(struct limefile_gauge_guise *guise)
{
    char type[32];
    const struct limefile_gauge *gauge = guise->gauge;
    snprintf(type, sizeof type, "%s-header", limefile_gauge_format_name(gauge->format));
    const struct limefile_gauge_form form = {.format = LIMEFILE_GAUGE_ILDG,
                                             .text = gauge->text,
                                             .text_type = type,
                                             .unsummed = true};
    return limefile_gauge_image_new(&gauge->sites, &form, &guise->image);
}

int limefile_gauge_guise_open(int fd, struct limefile_gauge_guise **out)
{
    struct limefile_gauge_guise *guise = calloc(1, sizeof *guise);
    if (!guise)
        return -ENOMEM;
    guise->source.ops = &ops;
    limefile_fd_init(&guise->file, fd);
    int err = gauge_open_guise(&guise->file.source, GAUGE_LISTED, &guise->gauge);
    if (!err)
        err = make_image(guise);
    if (err)
        limefile_gauge_guise_close(guise);
    else
        *out = guise;
    return err;
}

int limefile_gauge_has_guise(int fd)
{
    struct limefile_fd file;
    struct limefile_gauge *gauge = NULL;
    limefile_fd_init(&file, fd);
    int err = gauge_open_guise(&file.source, GAUGE_HEADER, &gauge);
    limefile_gauge_close(gauge);
    return err > -4096 && err < 0 ? err : err == 0; /* the others are of the format */
}

void limefile_gauge_guise_close(struct limefile_gauge_guise *guise)
{
    if (!guise)
        return;
    limefile_gauge_image_free(guise->image);
    limefile_gauge_close(guise->gauge);
    free(guise);
}

struct limefile_source *limefile_gauge_guise_source(struct limefile_gauge_guise *guise)
{
    return &guise->source;
}

const struct limefile_gauge *limefile_gauge_guise_file(const struct limefile_gauge_guise *guise)
{
    return guise->gauge;
}

/* A list of sites is most of it. */
size_t limefile_gauge_guise_memory(const struct limefile_gauge_guise *guise)
{
    const struct limefile_gauge *gauge = guise->gauge;
    size_t sites = gauge->listed ? (size_t)limefile_sites_count(&gauge->sites) : 0;
    return sizeof *guise + sites * sizeof(uint32_t);
}
