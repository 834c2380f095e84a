/* A row of cells and its particles. Rows are stacked in direction y; the cells of a row follow each other in
 * direction x. Lengths are in cells, times in steps, velocities in cells per step, masses in masses of a
 * molecule. So a step adds a particle's velocity to its position, and the whole part of x is the number of
 * the particle's cell.
 */
#ifndef DSMC_ROW_H
#define DSMC_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "gas.h"

typedef struct dsmc_point { /* a single particle, outside of the arrays of a row */
    double x, y, u, v, w;
    double rotation; /* rotational energy; 0 if the gas has no rotation */
} dsmc_point;

enum { DSMC_PARTS = sizeof(dsmc_point) / sizeof(double) };

typedef struct dsmc_row {
    /* part[k][i]: member k of dsmc_point for particle i; all are in one block of memory, which part[0] points
     * to */
    double *part[DSMC_PARTS];
    uint32_t count, room;
    bool here; /* true: the row is on this rank */
} dsmc_row;

/* append a particle to the row; return false if memory ran out */
bool dsmc_row_add(dsmc_row *row, const dsmc_point *particle);
dsmc_point dsmc_row_at(const dsmc_row *row, uint32_t i);
/* make room for `count` particles; return false if memory ran out */
bool dsmc_row_reserve(dsmc_row *row, uint32_t count);
void dsmc_row_free(dsmc_row *row);

/* Sort the particles of a row by cell. The caller provides memory for the sorted row in `sorted`. Afterwards
 * `sorted` has the row's old memory. Fill first[cells + 1] with the index of the first particle of each cell.
 * Return false if memory ran out. */
bool dsmc_row_sort(dsmc_row *row, dsmc_row *sorted, uint32_t cells, uint32_t *first);

/* The collision properties of pairs, in cells and time steps. */
typedef struct dsmc_collisions {
    double factor,
        power; /* volume that a pair sweeps in a step, in cells: factor·(relative speed squared)^power */
    double exchange; /* probability that a particle's rotation takes part in a collision */
    dsmc_gas gas;
} dsmc_collisions;

typedef struct dsmc_cell { /* values that a cell keeps between steps to compute its collisions */
    double most;           /* upper bound of the volume that a pair sweeps in a step */
    /* the number of candidate pairs in a step is rounded down; this is the rounded-off fraction, which the
     * next step adds */
    double left;
} dsmc_cell;

typedef struct dsmc_cells { /* the cells of one row, whose particles are sorted by cell */
    uint32_t count;
    const uint32_t *first; /* first[count + 1]: index of the first particle of each cell */
    const double *volume;  /* volume[count]: part of each cell that is outside the body */
    dsmc_cell *cell;       /* cell[count] */
} dsmc_cells;

/* Let the particles of each cell collide for a step, by the no-time-counter method (Bird, section 11.1).
 * Return the number of collisions. */
uint64_t dsmc_row_collide(dsmc_row *row, const dsmc_cells *cells, const dsmc_collisions *how,
                          kilter_random *random);

#endif
