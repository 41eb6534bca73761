/* imagekept.h - an image from inside; of src/lime/formats */
#ifndef LIMEFILE_IMAGEKEPT_H
#define LIMEFILE_IMAGEKEPT_H

#include "limegauge.h"
#include "links.h"

struct limefile_gauge_image {
    struct limefile_sites sites;
    enum limefile_gauge_format format;
    struct links_form form; /* of the links that it stores */
    bool sealed;
    uint64_t data_bytes;
    unsigned char *header, *trailer;
    size_t header_bytes, trailer_bytes;
    struct limefile_gauge_form asked; /* its texts are copies, in `texts` */
    char *texts[6];
};

/* Each fills in header and trailer; totals NULL: their lengths count only, and the header's
 * length must not depend on the totals. -ENOMEM */
int image_nersc(struct limefile_gauge_image *, const struct limefile_gauge_totals *);
int image_milc(struct limefile_gauge_image *, const struct limefile_gauge_totals *);
int image_openqcd(struct limefile_gauge_image *, const struct limefile_gauge_totals *);
int image_ildg(struct limefile_gauge_image *, const struct limefile_gauge_totals *);

/* n bytes of zeros for the header (again); NULL: no memory. */
unsigned char *image_header(struct limefile_gauge_image *, size_t n);

/* `count` sites from `first` on as the image stores them, out of their ILDG form. Not for
 * openQCD. */
void image_encode(const struct limefile_gauge_image *, const void *sites, uint64_t count,
                  void *out);
size_t image_site_bytes(const struct limefile_gauge_image *);

/* The sums of n bytes of data, which begin at `offset` of the data with a whole site. */
void image_sum(const struct limefile_gauge_image *, const void *data, size_t n, uint64_t offset,
               struct limefile_gauge_sums *);

#endif
