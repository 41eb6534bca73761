/* box.c - compute which bytes of the file belong to a rank's part of a lattice */
#include "box.h"

#include <string.h>

static int64_t product(const int64_t *factors, int n, int64_t result)
{
    for (int i = 0; i < n; i++)
        if (__builtin_mul_overflow(result, factors[i], &result))
            return -1;
    return result;
}

int64_t lemon_box_lattice_bytes(const struct lemon_box *box)
{
    return product(box->extent, box->dims, box->site_bytes);
}

int64_t lemon_box_bytes(const struct lemon_box *box)
{
    return product(box->sites, box->dims, box->site_bytes);
}

int64_t lemon_box_bytes_before(const struct lemon_box *box, int64_t at)
{
    int64_t site = box->site_bytes ? at / box->site_bytes : 0;
    int64_t lattice_inner = product(box->extent, box->dims, 1);
    int64_t box_inner = product(box->sites, box->dims, 1);
    int64_t before = 0;
    if (box_inner == 0 || box->site_bytes == 0)
        return 0;
    if (site >= lattice_inner)
        return box_inner * box->site_bytes;
    /* In each dimension, slowest first, add the box's sites that agree with `site` in the
     * slower dimensions and have a lower coordinate in this one. If the coordinate of `site`
     * is outside the box, no site of the box agrees with it, and faster dimensions add none. */
    for (int i = 0; i < box->dims; i++) {
        lattice_inner /= box->extent[i];
        box_inner /= box->sites[i];
        int64_t coordinate = site / lattice_inner - box->start[i];
        site %= lattice_inner;
        if (coordinate < 0)
            return before * box->site_bytes;
        if (coordinate >= box->sites[i])
            return (before + box->sites[i] * box_inner) * box->site_bytes;
        before += coordinate * box_inner;
    }
    return before * box->site_bytes + at % box->site_bytes;
}

int64_t lemon_box_run_bytes(const struct lemon_box *box)
{
    int64_t run = box->site_bytes;
    for (int i = 0; i < box->dims; i++)
        if (box->sites[i] == 0)
            return 0;
    for (int i = box->dims - 1; i >= 0; i--) {
        run *= box->sites[i];
        if (box->sites[i] != box->extent[i])
            break;
    }
    return run;
}

int64_t lemon_box_run_offset(const struct lemon_box *box, int64_t run_bytes, int64_t run)
{
    int64_t site = run * (run_bytes / box->site_bytes); /* the run's first site, in the box */
    int64_t offset = 0, stride = 1;
    for (int i = box->dims - 1; i >= 0; i--) {
        offset += (box->start[i] + site % box->sites[i]) * stride;
        site /= box->sites[i];
        stride *= box->extent[i];
    }
    return offset * box->site_bytes;
}

void lemon_box_split(int64_t extent, int n, int c, int64_t *start, int64_t *sites)
{
    int64_t each = extent / n, more = extent % n;
    *sites = each + (c < more);
    *start = each * c + (c < more ? c : more);
}

void lemon_box_walk_init(struct lemon_box_walk *walk, const struct lemon_box *box,
                         int64_t run_bytes, int64_t run)
{
    int64_t stride = box->site_bytes;
    walk->dims = box->dims;
    for (int i = box->dims - 1; i >= 0; i--) {
        walk->sites[i] = box->sites[i];
        walk->bytes[i] = stride;
        stride *= box->extent[i];
    }
    /* Omit the fastest dimensions, which a run covers completely. */
    for (int64_t covered = box->site_bytes; covered < run_bytes; walk->dims--)
        covered *= box->sites[walk->dims - 1];
    walk->offset = lemon_box_run_offset(box, run_bytes, run);
    for (int i = walk->dims - 1; i >= 0; i--) {
        walk->at[i] = run % box->sites[i];
        run /= box->sites[i];
    }
}

void lemon_box_walk_next(struct lemon_box_walk *walk)
{
    for (int i = walk->dims - 1; i >= 0; i--) {
        walk->offset += walk->bytes[i];
        if (++walk->at[i] < walk->sites[i])
            return;
        walk->offset -= walk->sites[i] * walk->bytes[i];
        walk->at[i] = 0;
    }
}

/* A window holds bytes [from, to) of the file; a part holds only the box's bytes of that range.
 * Copies these from a part into a window (to_window), or from a window into a part. */
static void copy_box_range(const struct lemon_box *box, int64_t from, int64_t to,
                           const char *source, char *target, int to_window)
{
    int64_t run_bytes = lemon_box_run_bytes(box);
    int64_t first = lemon_box_bytes_before(box, from), end = lemon_box_bytes_before(box, to);
    struct lemon_box_walk walk;
    if (first == end)
        return;
    lemon_box_walk_init(&walk, box, run_bytes, first / run_bytes);
    for (int64_t at = first, inside = first % run_bytes; at < end; inside = 0) {
        int64_t n = run_bytes - inside < end - at ? run_bytes - inside : end - at;
        int64_t window = walk.offset + inside - from;
        if (to_window)
            memcpy(target + window, source + (at - first), (size_t)n);
        else
            memcpy(target + (at - first), source + window, (size_t)n);
        at += n;
        lemon_box_walk_next(&walk);
    }
}

void lemon_box_scatter(const struct lemon_box *box, int64_t from, int64_t to, const char *part,
                       char *window)
{
    copy_box_range(box, from, to, part, window, 1);
}

void lemon_box_gather(const struct lemon_box *box, int64_t from, int64_t to, const char *window,
                      char *part)
{
    copy_box_range(box, from, to, window, part, 0);
}
