/*
 * lemon_cells.h - Lemon: checkpoints of particles, read by any number of ranks.
 *
 * A domain, which is a cuboid, is cut into equal cells, and the particles of each cell are one
 * range of a record; an index says where. So whoever reads needs only the cells that touch his
 * part of the domain, whatever the ranks that wrote: the scheme of A. Stephan, "Entwicklung
 * eines skalierbaren Checkpoint-Restart Schemas mit parallelem File-I/O" (2014), chapter 4, as
 * LIME records. docs/format.md has their bytes, docs/cells.md shows how to use them.
 *
 * The rules of lemon.h hold: calls are collective unless marked "local", over any communicator,
 * Cartesian or not; an error on one rank is the same code on each; messages of damage (see
 * lemonSetMessageHandler()) are given to each rank, with cell and reason.
 *
 * Which cell a particle belongs to follows from its position alone, by one rule. A cell has its
 * lower faces and not its upper ones: a particle on a face belongs to the cell above. Above the
 * domain's upper face there is none: where the dimension is periodic that face is the lower one
 * of the domain, and the particle belongs to the first cell; where it is not, to the last. The
 * same holds for a reader's box. Positions are never changed.
 */
#ifndef LEMON_CELLS_H
#define LEMON_CELLS_H

#include "lemon.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The records, in this order, in one message. */
#define LEMON_CELLS_FORMAT_TYPE "lemon-cells-format" /* XML, for people */
#define LEMON_CELLS_INDEX_TYPE  "lemon-cells-index"
#define LEMON_CELLS_DATA_TYPE   "lemon-cells-data"

#define LEMON_CELLS_DIMS 3

/* What the numbers of a field are. */
enum LEMON_Types {
    LEMON_INT32 = 1,
    LEMON_UINT32,
    LEMON_INT64,
    LEMON_UINT64,
    LEMON_FLOAT32,
    LEMON_FLOAT64
};

/* `count` numbers, at byte `offset` of a particle. The name: 1 to 63 letters, digits, - or _,
 * once in a particle. Fields do not overlap. */
typedef struct {
    char const *name;
    int type;
    int count;
    MPI_Offset offset;
} LemonField;

/*
 * A particle: `bytes` bytes (at most 1 MiB), as they are in memory, with at most 64 fields. The
 * field "position" (three LEMON_FLOAT64 or LEMON_FLOAT32) must be there; "id" (one integer)
 * is what messages call a particle by. What no field covers is written as it is: clear it.
 * The usual other names: component, velocity, orientation, angular-momentum.
 */
typedef struct {
    MPI_Offset bytes;
    int fields; /* of `field` */
    LemonField const *field;
} LemonParticle;

/*
 * The domain: [origin, origin + length) in each dimension, in any unit, cut into cells[0] x
 * cells[1] x cells[2] equal cells. Give as cells the process grid of a regular decomposition,
 * or the fine boxes of a k-d decomposition: few large cells are read and written faster, and a
 * reader reads all cells that touch its box. step and time are only kept.
 */
typedef struct {
    double origin[LEMON_CELLS_DIMS];
    double length[LEMON_CELLS_DIMS]; /* more than 0 */
    int periodic[LEMON_CELLS_DIMS];  /* not 0: the upper face is the lower one */
    int64_t cells[LEMON_CELLS_DIMS]; /* 1 or more each, at most 2^40 together */
    int64_t step;
    double time;
} LemonDomain;

/*
 * Writes a checkpoint: three records, the first with MB_flag, the last with ME_flag, and closes
 * them. Each rank gives `count` particles, any; of the other arguments each gives the same. A
 * cell is best held by one rank; it need not be. Where each rank has 4 MiB or more of such
 * cells, the blocking form exchanges nothing but counts; else, and where the stripe is known,
 * so much as makes writes long and aligned. lemonWriterSetPath() makes both faster.
 *
 * LEMON_ERR_PARAM, and nothing is written: a position that is no number or outside of the
 * domain, which the message names with its particle.
 *
 * flags: LEMON_CELLS_CHECK: also LEMON_ERR_PARAM if two particles have the same id (which there
 * must be then), wherever they are. Ranks exchange the ids, 8 bytes a particle.
 *
 * The non-blocking form returns while the particles move, and with the third record open; the
 * caller's memory is his own at once, as what is to be written has been copied. After
 * lemonFinishWriting() or not, lemonWriterCloseRecord() closes it. The blocking one needs
 * memory for a few pieces of 8 MiB and 32 MiB to send from, 16 bytes a particle, about 130 for
 * each cell that a rank has particles of, and 48 for each cell of its share of the index. Rank
 * 0 needs 24 more for each cell of the domain, as readers do.
 */
#define LEMON_CELLS_CHECK 1
int lemonWriteCells(LemonWriter *writer, int MB_flag, int ME_flag, LemonDomain const *domain,
                    LemonParticle const *particle, void const *particles, MPI_Offset count,
                    int flags);
int lemonWriteCellsNonBlocking(LemonWriter *writer, int MB_flag, int ME_flag,
                               LemonDomain const *domain, LemonParticle const *particle,
                               void const *particles, MPI_Offset count, int flags);

/* Cell (x, y, z) is number (x * cells[1] + y) * cells[2] + z. */
typedef struct {
    int64_t first; /* particle of the data record; 0 if it has none */
    int64_t count;
    uint32_t crc; /* CRC-32 (zlib's) of its bytes */
} LemonCell;

/* A checkpoint that was found. All is the same on each rank. */
typedef struct {
    LemonDomain domain;
    LemonParticle particle; /* as it is in the caller's memory once read */
    int64_t particles;      /* in all */
    LemonCell const *cell;  /* all of them */
    struct lemon_cells *internal;
} LemonCells;

/*
 * Goes on, from the open record or the next one, to the next checkpoint, of which the index is
 * read by rank 0 and broadcast, and opens its data record. LEMON_EOF if there is none. An index
 * that is damaged, or does not fit to its data, is LEMON_ERR_READ. *cells: freed by
 * lemonFreeCells(), a local call.
 */
int lemonNextCells(LemonReader *reader, LemonCells **cells);
void lemonFreeCells(LemonCells *cells);

/*
 * The particles in the box [lower, upper) of this rank: *count of them at *particles, which the
 * caller frees by free() (NULL if there are none). Boxes lie in the domain, and may be empty.
 * If those of all ranks cover the domain and do not overlap, each particle comes to one rank.
 * Each cell's checksum is compared, and that its particles are in it: LEMON_ERR_CHECKSUM,
 * LEMON_ERR_READ. Numbers come in this machine's byte order.
 *
 * flags: LEMON_CELLS_CHECK: LEMON_ERR_PARAM unless each particle came to one rank exactly.
 */
int lemonReadCells(LemonReader *reader, LemonCells const *cells, double const *lower,
                   double const *upper, void **particles, MPI_Offset *count, int flags);

/*
 * Decompositions of a domain into one box for each of `ranks` ranks, that of `rank`; local.
 * Regular: equal boxes, grid[0] x grid[1] x grid[2] = ranks of them, numbered as cells are;
 * grid, NULL: as MPI_Dims_create() has it. Balanced: a k-d tree whose boxes consist of whole
 * cells, with about as many particles in each; there may be empty boxes, at the domain's upper
 * corner. LEMON_ERR_PARAM.
 */
int lemonRegularBox(LemonDomain const *domain, int const *grid, int ranks, int rank,
                    double *lower, double *upper);
int lemonBalancedBox(LemonCells const *cells, int ranks, int rank, double *lower,
                     double *upper);

#ifdef __cplusplus
}
#endif

#endif
