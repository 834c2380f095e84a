/* A row of cells and its particles. The rows of a flow lie on each other in direction y; the cells of a row
 * follow each other in direction x. Lengths are in cells, times in steps, velocities in cells a step, masses
 * in molecules' masses. So a particle moves by adding its velocity, and the whole part of x is its cell. */
#ifndef DSMC_ROW_H
#define DSMC_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "gas.h"

typedef struct dsmc_point { /* a particle outside of a row */
    double x, y, u, v, w;
    double rotation; /* energy; 0 if the gas has no rotation */
} dsmc_point;

enum { DSMC_PARTS = sizeof(dsmc_point) / sizeof(double) };

typedef struct dsmc_row {
    double *part[DSMC_PARTS]; /* part[k][i]: member k of particle i; all in one block, which begins with x */
    uint32_t count, room;
    bool here; /* the row is on this rank */
} dsmc_row;

bool dsmc_row_add(dsmc_row *row, const dsmc_point *particle); /* false: memory ran out */
dsmc_point dsmc_row_at(const dsmc_row *row, uint32_t i);
bool dsmc_row_reserve(dsmc_row *row, uint32_t count); /* make room for `count` particles; false: no memory */
void dsmc_row_free(dsmc_row *row);

/* Sort the particles by cell into `sorted`, and exchange both rows' memory. first[cells + 1]: number of the
 * first particle of each cell. false: memory ran out */
bool dsmc_row_sort(dsmc_row *row, dsmc_row *sorted, uint32_t cells, uint32_t *first);

/* How pairs collide, in the units of rows. */
typedef struct dsmc_collisions {
    double factor,
        power;       /* swept volume of a pair in a step: factor·(relative speed squared)^power, in cells */
    double exchange; /* probability that a particle's rotation takes part */
    dsmc_gas gas;
} dsmc_collisions;

typedef struct dsmc_cell { /* what the collisions of a cell remember */
    double most;           /* upper bound of the swept volume of a pair */
    double left;           /* part of a candidate pair, left from the last step */
} dsmc_cell;

typedef struct dsmc_cells { /* the cells of a row, whose particles are sorted */
    uint32_t count;
    const uint32_t *first; /* first[count + 1]: number of the first particle of each cell */
    const double *volume;  /* volume[count]: part of each cell that is outside of the body */
    dsmc_cell *cell;       /* cell[count] */
} dsmc_cells;

/* Let the particles of each cell collide for a step, without time counter (Bird, section 11.1). Return the
 * number of collisions. */
uint64_t dsmc_row_collide(dsmc_row *row, const dsmc_cells *cells, const dsmc_collisions *how,
                          kilter_random *random);

#endif
