/* Gases of variable hard spheres, and the effects of a collision of two molecules.
 *
 * Source of the formulas: G. Bird, Molecular Gas Dynamics and the Direct Simulation of Gas Flows, 1994. */
#ifndef DSMC_GAS_H
#define DSMC_GAS_H

#include <stdint.h>

#include <kilter/random.h>

#define DSMC_BOLTZMANN 1.380649e-23 /* J/K */

/* A gas of variable hard spheres. */
typedef struct dsmc_gas {
    double mass;        /* mass of a molecule, kg */
    double diameter;    /* diameter of a molecule at the reference temperature, m */
    double reference_k; /* reference temperature, K */
    double omega;       /* viscosity is proportional to temperature^omega */
    double freedoms;    /* rotational degrees of freedom: 0 or 2 */
} dsmc_gas;

extern const dsmc_gas dsmc_nitrogen, dsmc_argon;

/* Return (`times` × the most likely relative speed)², in m²/s². */
double dsmc_relative_squared(const dsmc_gas *gas, double temperature_k, double times);
/* Return cross section × relative speed of two molecules, m³/s (Bird, equation 4.63). */
double dsmc_swept(const dsmc_gas *gas, double speed_squared);

/* Return the smallest rotational collision number that the gas can have. With this number, every collision
 * exchanges energy between rotation and motion. */
double dsmc_least_collisions(const dsmc_gas *gas);
/* Return the probability that a particle's rotation takes part in a collision, for collision number Z =
 * `collisions`. */
double dsmc_exchange(const dsmc_gas *gas, double collisions);
/* Add a particle's rotational energy and `motion`, the energy of the relative motion. Divide the sum at
 * random between rotation and relative motion, as in equilibrium. Return the new energy of the relative
 * motion. */
double dsmc_share_energy(const dsmc_gas *gas, kilter_random *random, double *rotation, double motion);
/* Draw the relative velocity after a collision: a random direction, with the given speed. */
void dsmc_scatter(kilter_random *random, double speed, double velocity[3]);

/* Return the mean number of collisions of a molecule in a second, in equilibrium (Bird, equation 4.64). */
double dsmc_collision_rate(const dsmc_gas *gas, double density, double temperature_k);
/* Return the mean free path in equilibrium, m (Bird, chapter 4). */
double dsmc_free_path(const dsmc_gas *gas, double density, double temperature_k);
/* Return the viscosity, Pa·s, by the first approximation of Chapman and Enskog (Bird, chapter 3). */
double dsmc_viscosity(const dsmc_gas *gas, double temperature_k);

#endif
