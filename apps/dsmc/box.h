/* Simulate a homogeneous box of gas by direct simulation Monte Carlo: particles have velocities and
 * rotational energy, and collide. Particles have no positions, because all places in the box are alike.
 *
 * Source of the formulas: G. Bird, Molecular Gas Dynamics and the Direct Simulation of Gas Flows, 1994. */
#ifndef DSMC_BOX_H
#define DSMC_BOX_H

#include <stdbool.h>
#include <stdint.h>

#include <kilter/random.h>

#include "gas.h"

typedef struct dsmc_particle {
    double velocity[3]; /* m/s */
    double rotation;    /* rotational energy, J */
} dsmc_particle;

/* The state of a gas at the start of a simulation. */
typedef struct dsmc_start {
    uint32_t particles;               /* number of simulated particles, at least 2 */
    double density;                   /* number of molecules in a cubic metre of the gas */
    double translation_k, rotation_k; /* temperatures of motion and of rotation, K */
    double collisions;                /* rotational collision number Z; see dsmc_least_collisions() */
    uint64_t seed, realisation;       /* together seed and realisation number determine all random numbers */
} dsmc_start;

typedef struct dsmc_box {
    dsmc_gas gas;
    dsmc_particle *particles;
    uint32_t count;
    double density;  /* number of molecules in a cubic metre of the gas */
    double exchange; /* probability that a particle's rotation takes part in a collision */
    double most;     /* upper bound of the product of cross section and relative speed of a pair, m³/s */
    /* the number of candidate pairs in a step is rounded down; this is the rounded-off fraction, which the
     * next step adds */
    double left;
    uint64_t collided; /* number of collisions so far */
    kilter_random random;
} dsmc_box;

/* Fill a box with particles. Velocities are in equilibrium at start->translation_k, and rotational energies
 * at start->rotation_k. Return false if memory ran out. */
bool dsmc_box_open(dsmc_box *box, const dsmc_gas *gas, const dsmc_start *start);
void dsmc_box_close(dsmc_box *box);

/* Let the particles collide for step_s seconds by the no-time-counter method (Bird, section 11.1). */
void dsmc_box_step(dsmc_box *box, double step_s);

/* Return the temperature of the velocities relative to their mean, and the temperature of the rotation, in
 * K. */
double dsmc_translation_k(const dsmc_box *box);
double dsmc_rotation_k(const dsmc_box *box);

#endif
