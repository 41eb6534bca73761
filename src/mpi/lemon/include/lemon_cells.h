// SPDX-License-Identifier: BSD-3-Clause
/*
 * lemon_cells.h - Lemon: checkpoints of particles, readable by any number of ranks.
 *
 * The domain, a cuboid, is divided into equal cells. The particles of each cell are one range
 * of a record, and an index lists these ranges. So a rank reads only the cells that touch its
 * part of the domain, no matter which ranks wrote them. This is the scheme of A. Stephan,
 * "Entwicklung eines skalierbaren Checkpoint-Restart Schemas mit parallelem File-I/O" (2014),
 * chapter 4, in LIME records. docs/format.md specifies the bytes, docs/cells.md shows the use.
 *
 * The rules of lemon.h apply: calls are collective unless marked "local", over any
 * communicator, Cartesian or not; an error on one rank gives the same code on each. Messages
 * about damaged data (see lemonSetMessageHandler()) go to each rank, with cell and reason.
 *
 * The position of a particle alone determines its cell. A cell includes its lower faces and
 * excludes its upper faces: a particle on a face belongs to the cell above. On the domain's
 * upper face, a particle belongs to the first cell in a periodic dimension, where this face is
 * identical to the domain's lower face, and to the last cell in other dimensions. The boxes of
 * readers follow the same rules as cells. Positions are never changed.
 */
#ifndef LEMON_CELLS_H
#define LEMON_CELLS_H

#include "lemon.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The records, in this order, in one message. */
#define LEMON_CELLS_FORMAT_TYPE "lemon-cells-format" /* XML, for humans */
#define LEMON_CELLS_INDEX_TYPE  "lemon-cells-index"
#define LEMON_CELLS_DATA_TYPE   "lemon-cells-data"

#define LEMON_CELLS_DIMS 3

/* Number types of a field. */
enum LEMON_Types {
    LEMON_INT32 = 1,
    LEMON_UINT32,
    LEMON_INT64,
    LEMON_UINT64,
    LEMON_FLOAT32,
    LEMON_FLOAT64
};

/* `count` numbers at byte `offset` of a particle. The name has 1 to 63 letters, digits, - or _,
 * and is unique in a particle. Fields do not overlap. */
typedef struct {
    char const *name;
    int type;
    int count;
    MPI_Offset offset;
} LemonField;

/* A particle: `bytes` bytes (at most 1 MiB) as in memory, with at most 64 fields. The field
 * "position" (three LEMON_FLOAT64 or LEMON_FLOAT32) is required. The field "id" (one integer)
 * identifies a particle in messages. Bytes that belong to no field are written as they are, so
 * clear them. Other usual names: component, velocity, orientation, angular-momentum. */
typedef struct {
    MPI_Offset bytes;
    int fields; /* number of elements of `field` */
    LemonField const *field;
} LemonParticle;

/* The domain: [origin, origin + length) in each dimension, in any unit, divided into cells[0] x
 * cells[1] x cells[2] equal cells. Good cells are the boxes of a process grid, or the fine
 * boxes from which a k-d decomposition is built. Few large cells are faster to read and write,
 * but a reader reads all cells that touch its box. step and time are only stored. */
typedef struct {
    double origin[LEMON_CELLS_DIMS];
    double length[LEMON_CELLS_DIMS]; /* greater than 0 */
    int periodic[LEMON_CELLS_DIMS];  /* not 0: the upper face is identical to the lower face */
    int64_t cells[LEMON_CELLS_DIMS]; /* at least 1 each, at most 2^40 in total */
    int64_t step;
    double time;
} LemonDomain;

/* Writes a checkpoint, three records of which the first has MB_flag and the last ME_flag, and
 * closes them. Each rank passes `count` arbitrary particles; the other arguments are the same
 * on each rank. It is best if one rank holds all particles of a cell, but this is not required.
 * The blocking call exchanges particles between ranks only as far as this makes writes long and
 * aligned to the file's stripe. It exchanges only counts, no particles, if the stripe is not
 * known, cb_nodes lets all ranks write, and each contiguous range of the data record that one
 * rank holds has at least 4 MiB. lemonWriterSetPath() makes the blocking call faster.
 *
 * LEMON_ERR_PARAM, and nothing is written, if a position is NaN or outside the domain; the
 * message contains the particle and the position.
 *
 * flags: 0 or LEMON_CELLS_CHECK, with which the field "id" is required, and the call returns
 * LEMON_ERR_PARAM if two particles, on any ranks, have the same id. For this the ranks exchange
 * all ids, 8 bytes per particle.
 *
 * The non-blocking call copies the data and returns while it writes them, with the third record
 * open; the caller may reuse its memory at once. lemonWriterCloseRecord() closes the record,
 * with or without an earlier lemonFinishWriting(). The blocking call needs memory for a few
 * pieces of 8 MiB, 32 MiB for sends, 16 bytes per particle, about 130 bytes for each cell of
 * the rank's particles, and 48 bytes for each cell of the rank's share of the index. Rank 0,
 * like each rank of a reader, needs 24 bytes more for each cell of the domain. */
#define LEMON_CELLS_CHECK 1
int lemonWriteCells(LemonWriter *writer, int MB_flag, int ME_flag, LemonDomain const *domain,
                    LemonParticle const *particle, void const *particles, MPI_Offset count,
                    int flags);
int lemonWriteCellsNonBlocking(LemonWriter *writer, int MB_flag, int ME_flag,
                               LemonDomain const *domain, LemonParticle const *particle,
                               void const *particles, MPI_Offset count, int flags);

/* Cell (x, y, z) has the number (x * cells[1] + y) * cells[2] + z. */
typedef struct {
    int64_t first; /* index, in the data record, of the cell's first particle; empty cell: 0 */
    int64_t count;
    uint32_t crc; /* CRC-32 (zlib's) of the cell's bytes */
} LemonCell;

/* A checkpoint in a file. All members are the same on each rank. */
typedef struct {
    LemonDomain domain;
    LemonParticle particle; /* the layout in memory after a read */
    int64_t particles;      /* in total */
    LemonCell const *cell;  /* all cells */
    struct lemon_cells *internal;
} LemonCells;

/* Finds the next checkpoint: searches from the open record on, or, if none is open, from the
 * next record on. Rank 0 reads the index and broadcasts it. Opens the data record. LEMON_EOF
 * after the last checkpoint, LEMON_ERR_READ if the index is damaged or does not match the data.
 * The caller frees *cells by lemonFreeCells(), a local call. */
int lemonNextCells(LemonReader *reader, LemonCells **cells);
void lemonFreeCells(LemonCells *cells);

/* Reads the particles in this rank's box [lower, upper). Sets *count to their number, and
 * *particles to memory that the caller frees by free() (NULL if *count is 0). Boxes must be
 * inside the domain and may be empty. If the boxes of all ranks cover the domain without
 * overlap, each particle goes to one rank. Converts numbers to this machine's byte order.
 * LEMON_ERR_CHECKSUM if a cell's checksum is wrong, LEMON_ERR_READ if a particle is outside of
 * its cell. flags: 0 or LEMON_CELLS_CHECK, with which the call returns LEMON_ERR_PARAM unless
 * each particle went to exactly one rank. */
int lemonReadCells(LemonReader *reader, LemonCells const *cells, double const *lower,
                   double const *upper, void **particles, MPI_Offset *count, int flags);

/* Decompose a domain into one box for each of `ranks` ranks, and return the box of `rank`;
 * local. Regular: grid[0] x grid[1] x grid[2] equal boxes, one per rank, numbered like cells;
 * grid NULL: the grid of MPI_Dims_create(). Balanced: a k-d tree of boxes of whole cells, with
 * about the same number of particles in each box. If there are few cells, some boxes are empty:
 * lower and upper are then the domain's upper corner. LEMON_ERR_PARAM: an invalid argument. */
int lemonRegularBox(LemonDomain const *domain, int const *grid, int ranks, int rank,
                    double *lower, double *upper);
int lemonBalancedBox(LemonCells const *cells, int ranks, int rank, double *lower,
                     double *upper);

#ifdef __cplusplus
}
#endif

#endif
