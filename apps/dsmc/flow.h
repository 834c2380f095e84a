/* Simulate the flow of a gas in a plane by direct simulation Monte Carlo: past a body, or between two walls.
 * A row's step depends only on the row's particles, its number and the step's number, so any rank can compute
 * it. The units are the same as in row.h. */
#ifndef DSMC_FLOW_H
#define DSMC_FLOW_H

#include "row.h"

typedef enum dsmc_shape { DSMC_NOTHING, DSMC_CYLINDER, DSMC_PLATE } dsmc_shape;

typedef struct dsmc_flow_options {
    dsmc_gas gas;
    dsmc_shape shape;  /* the body in the stream; a plate stands across the stream */
    double size;       /* diameter of the cylinder, or height of the plate, in cells */
    double mach;       /* speed of the stream divided by the speed of sound; for a flow between walls: 0 */
    double knudsen;    /* mean free path of the stream divided by `size`; 0: no collisions */
    double wall_ratio; /* temperature of the surfaces divided by the temperature of the stream */
    /* true: surfaces reflect particles like mirrors; false: particles leave a surface in random directions */
    bool specular;
    /* true: there are walls below and above the plane, which is periodic in x; false: the stream enters at
     * all sides */
    bool walls;
    double wall_mach; /* speed of the upper wall in x as a Mach number; the lower wall moves the other way */
    double collision_number; /* rotational collision number Z */
    uint32_t columns, rows;  /* cells */
    double particles;        /* mean number of particles in a cell of the stream */
    uint64_t seed;
} dsmc_flow_options;

typedef struct dsmc_sums {       /* sums over the particles of one cell and over all samples */
    double count, u, v, squares; /* squares: sum of the squared lengths of the velocities */
} dsmc_sums;

typedef struct dsmc_leavers { /* particles that have left their row for other rows */
    dsmc_point *at;
    uint32_t count, room;
} dsmc_leavers;

typedef struct dsmc_flow {
    dsmc_flow_options options;
    /* speed of sound, and standard deviation of a component of the velocity, in cells per step */
    double sound, spread;
    double stream, wall_spread, wall_speed;
    double centre_x, centre_y; /* centre of the body */
    dsmc_collisions collisions;
    double first_most; /* value of dsmc_cell.most at the start, in each cell */
    double *volume;    /* volume[rows · columns]: part of each cell that is outside the body */
    /* working memory for one row at a time */
    dsmc_row sorted;
    uint32_t *first;
    dsmc_leavers leavers;
} dsmc_flow;

/* The data that a step of a row changes, besides the row's particles. */
typedef struct dsmc_row_state {
    dsmc_cell *cells; /* cells[columns] */
    /* sums[columns]: sums to which this step's sample is added; NULL: this step takes no sample */
    dsmc_sums *sums;
    double *force; /* momentum in direction x that the surfaces in this row received, summed over steps */
    uint64_t *collided;
} dsmc_row_state;

/* Return false if memory ran out; call dsmc_flow_close() even then. */
bool dsmc_flow_open(dsmc_flow *flow, const dsmc_flow_options *options);
void dsmc_flow_close(dsmc_flow *flow);
/* Fill row number `number` with particles of the stream. Return false if memory ran out. */
bool dsmc_flow_fill(const dsmc_flow *flow, uint32_t number, dsmc_row *row, dsmc_cell *cells);
/* Let the particles of a row collide and move, in step number `step` = 1, 2, …. Afterwards flow->leavers has
 * the particles that go to other rows. Return false if memory ran out. */
bool dsmc_flow_step(dsmc_flow *flow, uint32_t number, uint64_t step, dsmc_row *row,
                    const dsmc_row_state *state);
/* Return the number of the row to which a particle that left its row has moved. */
static inline uint32_t dsmc_row_of(const dsmc_point *p) {
    return (uint32_t)p->y;
}
/* Return the drag coefficient of a body that received the momentum `force` in `steps` steps. */
double dsmc_drag(const dsmc_flow *flow, double force, double steps);

/* Return the drag coefficients of a flow without collisions, for speed ratio s = speed/√(2kT/m). Source: Bird
 * 1994, equations 7.71 and following; Schaaf, Chambré 1958. */
double dsmc_free_plate_drag(double s, double wall_ratio, bool specular);
double dsmc_free_cylinder_drag(double s, double wall_ratio, bool specular);

#endif
