/* imageildg.c - an ILDG configuration in a container: what is around its data */
#include "gauge.h"
#include "imagekept.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FORMAT_MAX = 1024,
};

/* A record with its padding, or its header alone (data NULL). */
static int put(struct limefile_memory *to, const char *type, const void *data, uint64_t bytes,
               bool mb, bool me)
{
    static const char zeros[LIMEFILE_ALIGN];
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    struct limefile_header header;
    int err = limefile_header_init(&header, type, strlen(type), bytes, mb, me);
    if (!err)
        err = limefile_header_encode(&header, raw);
    if (!err)
        err = limefile_write_full(&to->source, raw, sizeof raw, to->size);
    if (!err && data)
        err = limefile_write_full(&to->source, data, (size_t)bytes, to->size);
    if (!err && data)
        err = limefile_write_full(&to->source, zeros, limefile_padding(bytes), to->size);
    return err;
}

static int put_format(const struct limefile_gauge_image *image, struct limefile_memory *to)
{
    const uint64_t *l = image->sites.extent;
    char text[FORMAT_MAX];
    int n = snprintf(text, sizeof text,
                     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                     "<ildgFormat xmlns=\"http://www.lqcd.org/ildg\"\n"
                     "            xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n"
                     "            xsi:schemaLocation=\"http://www.lqcd.org/ildg "
                     "http://www.lqcd.org/ildg/filefmt.xsd\">\n"
                     "  <version>1.0</version>\n  <field>su3gauge</field>\n"
                     "  <precision>%u</precision>\n  <lx>%llu</lx>\n  <ly>%llu</ly>\n"
                     "  <lz>%llu</lz>\n  <lt>%llu</lt>\n</ildgFormat>\n",
                     image->form.precision, (unsigned long long)l[0], (unsigned long long)l[1],
                     (unsigned long long)l[2], (unsigned long long)l[3]);
    return put(to, "ildg-format", text, (uint64_t)n, true, false);
}

static int put_header(struct limefile_gauge_image *image, struct limefile_memory *to)
{
    const struct limefile_gauge_form *asked = &image->asked;
    int err = 0;
    if (asked->text && asked->text_type)
        err = put(to, asked->text_type, asked->text, strlen(asked->text), true, true);
    if (!err)
        err = put_format(image, to);
    if (!err && asked->lfn && *asked->lfn)
        err = put(to, "ildg-data-lfn", asked->lfn, strlen(asked->lfn), false, false);
    return err ? err
               : put(to, "ildg-binary-data", NULL, image->data_bytes, false, asked->unsummed);
}

/* Data are a multiple of 8 bytes: no padding. */
static int put_trailer(struct limefile_gauge_image *image,
                       const struct limefile_gauge_totals *totals)
{
    struct limefile_memory to;
    char xml[LIMEFILE_CHECKSUM_XML_MAX];
    size_t n = limefile_checksum_xml(&totals->image.scidac, xml);
    limefile_memory_init(&to);
    int err = put(&to, "scidac-checksum", xml, n, false, true);
    if (!err) {
        free(image->trailer);
        image->trailer = to.data;
        image->trailer_bytes = to.size;
        limefile_memory_init(&to);
    }
    limefile_memory_release(&to);
    return err;
}

int image_ildg(struct limefile_gauge_image *image, const struct limefile_gauge_totals *totals)
{
    struct limefile_memory to;
    limefile_memory_init(&to);
    int err = put_header(image, &to);
    unsigned char *header = err ? NULL : image_header(image, to.size);
    if (header)
        memcpy(header, to.data, to.size);
    else if (!err)
        err = -ENOMEM;
    limefile_memory_release(&to);
    return err || !totals ? err : put_trailer(image, totals);
}
