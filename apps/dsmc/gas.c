/* Compute collisions and properties of gases of variable hard spheres. */
#include "gas.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

/* Properties of two gases, from Bird, tables A1 and A2. */
const dsmc_gas dsmc_nitrogen = {
    .mass = 46.5e-27, .diameter = 4.17e-10, .reference_k = 273, .omega = 0.74, .freedoms = 2};
const dsmc_gas dsmc_argon = {
    .mass = 66.3e-27, .diameter = 4.17e-10, .reference_k = 273, .omega = 0.81, .freedoms = 0};

/* Return half of the degrees of freedom of the relative motion of colliding pairs. */
static double pair_freedom(const dsmc_gas *gas) {
    return 2.5 - gas->omega;
}

double dsmc_relative_squared(const dsmc_gas *gas, double temperature_k, double times) {
    return times * times * 2 * DSMC_BOLTZMANN * temperature_k / (gas->mass / 2);
}

double dsmc_swept(const dsmc_gas *gas, double speed_squared) {
    double area = PI * gas->diameter * gas->diameter / tgamma(pair_freedom(gas));
    return area * pow(dsmc_relative_squared(gas, gas->reference_k, 1), gas->omega - 0.5) *
           pow(speed_squared, 1 - gas->omega);
}

/* Solve 1/Z = p·b/(b + 1)·(1 − p/(2(b + 1))) for the probability p, with collision number Z and b = 5/2 − ω.
 * The equation holds because the particles of a pair exchange energy one after the other. */
double dsmc_exchange(const dsmc_gas *gas, double collisions) {
    double b = pair_freedom(gas);
    return (b + 1) * (1 - sqrt(1 - 2 / (collisions * b)));
}

double dsmc_least_collisions(const dsmc_gas *gas) {
    double b = pair_freedom(gas);
    return (b + 1) / b / (1 - 1 / (2 * (b + 1)));
}

/* Use the method of Borgnakke and Larsen 1975 (Bird, equation 5.46), for two rotational degrees of freedom.
 */
double dsmc_share_energy(const dsmc_gas *gas, kilter_random *random, double *rotation, double motion) {
    double energy = motion + *rotation;
    double part = 1 - pow(kilter_random_uniform(random), 1 / pair_freedom(gas));
    *rotation = part * energy;
    return energy - *rotation;
}

void dsmc_scatter(kilter_random *random, double speed, double velocity[3]) {
    double along = 2 * kilter_random_uniform(random) - 1, across = sqrt(1 - along * along);
    double angle = 2 * PI * kilter_random_uniform(random);
    velocity[0] = speed * along;
    velocity[1] = speed * across * cos(angle);
    velocity[2] = speed * across * sin(angle);
}

double dsmc_collision_rate(const dsmc_gas *gas, double density, double temperature_k) {
    return 4 * gas->diameter * gas->diameter * density *
           sqrt(PI * DSMC_BOLTZMANN * gas->reference_k / gas->mass) *
           pow(temperature_k / gas->reference_k, 1 - gas->omega);
}

double dsmc_free_path(const dsmc_gas *gas, double density, double temperature_k) {
    double area = PI * gas->diameter * gas->diameter;
    return 1 / (sqrt(2) * area * density * pow(gas->reference_k / temperature_k, gas->omega - 0.5));
}

double dsmc_viscosity(const dsmc_gas *gas, double temperature_k) {
    double w = gas->omega, reference = 15 * sqrt(PI * gas->mass * DSMC_BOLTZMANN * gas->reference_k) /
                                       (2 * PI * gas->diameter * gas->diameter * (5 - 2 * w) * (7 - 2 * w));
    return reference * pow(temperature_k / gas->reference_k, w);
}
