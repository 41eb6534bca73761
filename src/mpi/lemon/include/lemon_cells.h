/*
 * lemon_cells.h - Lemon: checkpoints of particles, readable by any number of ranks.
 *
 * The domain, a cuboid, is divided into equal cells. The particles of each cell are one range
 * of a record, and an index contains the ranges. So a reader needs only the cells that touch
 * its part of the domain, whichever ranks wrote them. This is the scheme of A. Stephan,
 * "Entwicklung eines skalierbaren Checkpoint-Restart Schemas mit parallelem File-I/O" (2014),
 * chapter 4, in LIME records. docs/format.md specifies the bytes, docs/cells.md shows the use.
 *
 * The rules of lemon.h apply: calls are collective unless marked "local", over any
 * communicator, Cartesian or not; an error on one rank gives the same code on each. Messages
 * about damaged data (see lemonSetMessageHandler()) go to each rank, with cell and reason.
 *
 * The position of a particle alone determines its cell. A cell includes its lower faces and
 * excludes its upper faces: a particle on a face belongs to the cell above. The domain's upper
 * face has no cell above: in a periodic dimension it is identical to the domain's lower face,
 * and the particle belongs to the first cell; otherwise to the last cell. The boxes of readers
 * follow the same rules as cells. Positions are never changed.
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

/*
 * A particle: `bytes` bytes (at most 1 MiB) as in memory, with at most 64 fields. The field
 * "position" (three LEMON_FLOAT64 or LEMON_FLOAT32) is required. The field "id" (one integer)
 * identifies a particle in messages. Bytes that belong to no field are written as they are:
 * clear them. Other usual names: component, velocity, orientation, angular-momentum.
 */
typedef struct {
    MPI_Offset bytes;
    int fields; /* number of elements of `field` */
    LemonField const *field;
} LemonParticle;

/*
 * The domain: [origin, origin + length) in each dimension, in any unit, divided into cells[0] x
 * cells[1] x cells[2] equal cells. Use the process grid of a regular decomposition, or the fine
 * boxes of a k-d decomposition: few large cells are faster to read and write, but a reader
 * reads all cells that touch its box. step and time are stored, not used.
 */
typedef struct {
    double origin[LEMON_CELLS_DIMS];
    double length[LEMON_CELLS_DIMS]; /* greater than 0 */
    int periodic[LEMON_CELLS_DIMS];  /* not 0: the upper face is identical to the lower face */
    int64_t cells[LEMON_CELLS_DIMS]; /* at least 1 each, at most 2^40 in total */
    int64_t step;
    double time;
} LemonDomain;

/*
 * Writes a checkpoint: three records, the first with MB_flag, the last with ME_flag, and closes
 * them. Each rank passes `count` arbitrary particles; the other arguments are the same on each
 * rank. It is best, but not required, that one rank holds all particles of a cell. The blocking
 * call exchanges particles between ranks only as far as this makes writes long and aligned to
 * the file's stripe. It exchanges no particles, only counts, if the stripe is not known,
 * cb_nodes does not exclude ranks, and each contiguous range of the data record that one rank
 * holds has at least 4 MiB. lemonWriterSetPath() makes the blocking call faster.
 *
 * LEMON_ERR_PARAM, and nothing is written, if a position is NaN or outside the domain; the
 * message contains the particle and the position.
 *
 * flags: LEMON_CELLS_CHECK: also LEMON_ERR_PARAM if two particles, on any ranks, have the same
 * id (the field is then required). The ranks exchange the ids, 8 bytes per particle.
 *
 * The non-blocking call returns while particles are moving, with the third record open; the
 * caller may reuse its memory at once, because the data are copied. lemonWriterCloseRecord()
 * closes the record, with or without an earlier lemonFinishWriting(). The blocking call needs
 * memory for a few pieces of 8 MiB, 32 MiB for sends, 16 bytes per particle, about 130 bytes
 * for each cell of the rank's particles, and 48 bytes for each cell of its share of the index.
 * Rank 0 needs another 24 bytes for each cell of the domain, as readers do.
 */
#define LEMON_CELLS_CHECK 1
int lemonWriteCells(LemonWriter *writer, int MB_flag, int ME_flag, LemonDomain const *domain,
                    LemonParticle const *particle, void const *particles, MPI_Offset count,
                    int flags);
int lemonWriteCellsNonBlocking(LemonWriter *writer, int MB_flag, int ME_flag,
                               LemonDomain const *domain, LemonParticle const *particle,
                               void const *particles, MPI_Offset count, int flags);

/* Cell (x, y, z) has the number (x * cells[1] + y) * cells[2] + z. */
typedef struct {
    int64_t first; /* index in the data record of its first particle; 0 if empty */
    int64_t count;
    uint32_t crc; /* CRC-32 (zlib's) of its bytes */
} LemonCell;

/* A checkpoint in a file. All members are the same on each rank. */
typedef struct {
    LemonDomain domain;
    LemonParticle particle; /* the layout in memory after a read */
    int64_t particles;      /* in total */
    LemonCell const *cell;  /* all cells */
    struct lemon_cells *internal;
} LemonCells;

/*
 * Finds the next checkpoint: searches from the open record on, or, if none is open, from the
 * next record on. Rank 0 reads the index and broadcasts it. Opens the data record. LEMON_EOF
 * after the last one, LEMON_ERR_READ if the index is damaged or does not match the data. The
 * caller frees *cells by lemonFreeCells(), a local call.
 */
int lemonNextCells(LemonReader *reader, LemonCells **cells);
void lemonFreeCells(LemonCells *cells);

/*
 * Reads the particles in this rank's box [lower, upper): *count of them at *particles, which
 * the caller frees by free() (NULL without particles). Boxes must be inside the domain and may
 * be empty. If the boxes of all ranks cover the domain without overlap, each particle goes to
 * one rank. Verifies each cell's checksum (LEMON_ERR_CHECKSUM), and that its particles are
 * inside it (LEMON_ERR_READ). Converts numbers to this machine's byte order.
 *
 * flags: LEMON_CELLS_CHECK: LEMON_ERR_PARAM unless each particle went to exactly one rank.
 */
int lemonReadCells(LemonReader *reader, LemonCells const *cells, double const *lower,
                   double const *upper, void **particles, MPI_Offset *count, int flags);

/*
 * Decompose a domain into one box for each of `ranks` ranks, and return the box of `rank`;
 * local. Regular: grid[0] x grid[1] x grid[2] = ranks equal boxes, numbered like cells; grid
 * NULL: the grid of MPI_Dims_create(). Balanced: a k-d tree of boxes that consist of whole
 * cells, with about the same number of particles in each. With few cells some boxes are empty:
 * then lower and upper are both the domain's upper corner. LEMON_ERR_PARAM if an argument is
 * invalid.
 */
int lemonRegularBox(LemonDomain const *domain, int const *grid, int ranks, int rank,
                    double *lower, double *upper);
int lemonBalancedBox(LemonCells const *cells, int ranks, int rank, double *lower,
                     double *upper);

#ifdef __cplusplus
}
#endif

#endif
