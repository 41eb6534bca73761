/* cells_write.c - write a checkpoint of particles */
#include "cells.h"

#include <string.h>

enum {
    TYPE_MAX = 32, /* buffer size for a record's type */
};

/* State of one write. */
struct cells_write {
    LemonWriter *writer;
    struct lemon_internal *in;
    struct limecells c;
    struct cells_sorted sorted;
    struct cells_homes homes;
    struct lemon_stream stream;
    struct lemon_run *run;
    int64_t runs;
    int64_t index_at; /* offset in the file */
    int mb, me;
    int fault; /* this rank's error, not yet passed to lemon_agree(), or 0 */
};

static int agree_on_arguments(struct cells_write *w, int code, const char *why, int flags)
{
    unsigned char raw[LIMECELLS_HEADER_MAX];
    int64_t values[4] = {0, w->mb, w->me, flags};
    if (code == LEMON_SUCCESS && why)
        code = lemon_log(w->in, LEMON_ERR_PARAM, "cells: %s", why);
    if (code == LEMON_SUCCESS) {
        limefile_cells_encode(&w->c, raw);
        values[0] = limefile_cells_crc(0, raw, limefile_cells_header_bytes(&w->c));
    }
    return lemon_agree_on(w->in, code, values, 4);
}

/* Counts all ranks' particles. ok, text: results of this rank's lemon_cells_sort(). If the sort
 * failed on any rank, all ranks log the text of one such rank. Collective, agreed. */
static int count_particles(struct cells_write *w, int64_t count, bool ok, const char *text)
{
    int64_t sums[2] = {count, !ok};
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, w->in->comm);
    if (sums[1])
        return lemon_agree_and_log(w->in, ok ? LEMON_SUCCESS : LEMON_ERR_PARAM, text);
    w->c.particles = (uint64_t)sums[0];
    const char *why = sums[0] < 0 ? "too many particles" : limefile_cells_check(&w->c);
    return why ? lemon_log(w->in, LEMON_ERR_PARAM, "cells: %s", why) : LEMON_SUCCESS;
}

/* Sorts and checks the particles, and finds the place of each cell. */
static int sort_input(struct cells_write *w, const char *particles, int64_t count, int flags)
{
    char why[CELLS_WHY_MAX] = "";
    bool ok = lemon_cells_sort(&w->sorted, &w->c, particles, count, why);
    int code = count_particles(w, count, ok, why);
    if (code == LEMON_SUCCESS && flags & LEMON_CELLS_CHECK)
        code = lemon_cells_check_ids(w->in, &w->c, particles, count);
    if (code == LEMON_SUCCESS)
        code = lemon_cells_assign_places(w->in, &w->homes, &w->c, &w->sorted);
    return code;
}

static int append_record(struct cells_write *w, const char *type, uint64_t n, int mb, int me)
{
    char name[TYPE_MAX];
    strcpy(name, type);
    LemonRecordHeader header = {LEMON_VERSION, mb, me, name, n};
    return lemon_writer_begin_record(w->writer, &header, &w->fault);
}

/* Writes the format record, and an index record whose data write_index() writes later. */
static int write_format_and_index(struct cells_write *w)
{
    char text[LIMECELLS_TEXT_MAX];
    int64_t bytes = (int64_t)limefile_cells_format_text(&w->c, text);
    int64_t index = (int64_t)limefile_cells_index_bytes(&w->c);
    int code = append_record(w, LIMECELLS_FORMAT_TYPE, (uint64_t)bytes, w->mb, 0);
    if (code != LEMON_SUCCESS)
        return code;
    if (w->in->rank == 0 && w->fault == LEMON_SUCCESS)
        w->fault = lemon_move_bytes(w->in, LEMON_WRITE, text, bytes, w->writer->off);
    lemon_writer_advance(w->writer, bytes);
    lemon_writer_end_record(w->writer, &w->fault);
    code = append_record(w, LIMECELLS_INDEX_TYPE, (uint64_t)index, 0, 0);
    if (code != LEMON_SUCCESS)
        return code;
    w->index_at = w->writer->off;
    lemon_writer_advance(w->writer, index);
    lemon_writer_end_record(w->writer, &w->fault);
    return LEMON_SUCCESS;
}

/* Writes the index. A rank calls this also after an error, because it is collective. */
static int write_index(struct cells_write *w)
{
    bool ok = lemon_cells_combine_checksums(&w->sorted);
    int code = lemon_cells_write_index(w->in, &w->homes, &w->c, &w->sorted, w->index_at);
    return ok ? code : lemon_log(w->in, LEMON_ERR_WRITE, "cells: out of memory");
}

static int first_error(int code, int other)
{
    return code == LEMON_SUCCESS ? other : code;
}

/* Writes the data before the index, because the index contains checksums that are computed
 * while the data are written. */
static int write_cells_data(struct cells_write *w, struct lemon_collective *runs)
{
    w->fault = first_error(w->fault, lemon_collective_write(w->in, runs, &w->stream));
    w->fault = first_error(w->fault, write_index(w));
    lemon_writer_advance(w->writer, (int64_t)limefile_cells_data_bytes(&w->c));
    return lemon_writer_close_record(w->writer, w->fault);
}

/* Copies the data, writes the index, and starts to write the data. Collective, agreed. */
static int start_cells_data(struct cells_write *w, struct lemon_collective *runs)
{
    int code = lemon_collective_gather(w->in, runs, &w->stream);
    char *buffer = w->in->pending.buffer;
    w->in->pending.buffer = NULL; /* write_index() must not use it */
    if (code == LEMON_SUCCESS)
        code = lemon_agree(w->in, first_error(w->fault, write_index(w)));
    if (code != LEMON_SUCCESS) {
        free(buffer);
        return code;
    }
    lemon_post_begin(w->in, LEMON_WRITE);
    w->in->pending.buffer = buffer;
    lemon_collective_start_write(w->in, runs);
    lemon_writer_set_busy(w->writer);
    lemon_writer_advance(w->writer, (int64_t)limefile_cells_data_bytes(&w->c));
    return LEMON_SUCCESS;
}

static int write_records(struct cells_write *w, bool wait)
{
    struct lemon_collective runs;
    bool ok = lemon_cells_build_stream(&w->sorted, &w->run, &w->runs);
    lemon_cells_stream_init(&w->sorted, &w->stream);
    int code = write_format_and_index(w);
    if (code == LEMON_SUCCESS)
        code =
            append_record(w, LIMECELLS_DATA_TYPE, limefile_cells_data_bytes(&w->c), 0, w->me);
    if (code == LEMON_SUCCESS)
        code = lemon_collective_open(
            w->in, &runs, (int64_t)limefile_cells_data_bytes(&w->c), w->writer->off, w->run,
            w->runs, wait ? LEMON_COLLECTIVE_WRITE : LEMON_COLLECTIVE_GATHER, ok);
    if (code != LEMON_SUCCESS)
        return code;
    code = wait ? write_cells_data(w, &runs) : start_cells_data(w, &runs);
    lemon_collective_close(&runs);
    return code;
}

static int write_cells(LemonWriter *writer, int mb, int me, LemonDomain const *domain,
                       LemonParticle const *particle, void const *particles, MPI_Offset count,
                       int flags, bool wait)
{
    struct cells_write w = {.writer = writer, .mb = mb != 0, .me = me != 0};
    const char *why;
    if (!writer)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonWriteCells: no writer");
    w.in = writer->internal;
    int code = lemonFinishWriting(writer);
    if (code == LEMON_SUCCESS && !writer->is_awaiting_header)
        code = lemon_log(w.in, LEMON_ERR_HEADER_NEXT, "cells: a record is still open");
    bool ok = lemon_cells_convert_arguments(domain, particle, &w.c, &why);
    if (ok && (count < 0 || (count > 0 && !particles)))
        why = "no particles, or a negative count";
    if (ok && flags & ~LEMON_CELLS_CHECK)
        why = "unknown flags";
    code = agree_on_arguments(&w, code, why, flags);
    if (code == LEMON_SUCCESS)
        code = sort_input(&w, particles, count, flags);
    LemonWriter before = *writer;
    if (code == LEMON_SUCCESS)
        code = write_records(&w, wait);
    if (code != LEMON_SUCCESS)
        *writer = before; /* restore the state, so that the program can retry */
    free(w.run);
    lemon_cells_homes_release(&w.homes);
    lemon_cells_sorted_free(&w.sorted);
    return code;
}

int lemonWriteCells(LemonWriter *writer, int MB_flag, int ME_flag, LemonDomain const *domain,
                    LemonParticle const *particle, void const *particles, MPI_Offset count,
                    int flags)
{
    return write_cells(writer, MB_flag, ME_flag, domain, particle, particles, count, flags,
                       true);
}

int lemonWriteCellsNonBlocking(LemonWriter *writer, int MB_flag, int ME_flag,
                               LemonDomain const *domain, LemonParticle const *particle,
                               void const *particles, MPI_Offset count, int flags)
{
    return write_cells(writer, MB_flag, ME_flag, domain, particle, particles, count, flags,
                       false);
}
