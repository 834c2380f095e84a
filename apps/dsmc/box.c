/* A homogeneous box of gas. */
#include "box.h"

#include <math.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;
static const double FAST =
    3; /* most likely speeds, above which few pairs are; the bound grows with faster ones */

/* Bird, table A1 and A2. */
const dsmc_gas dsmc_nitrogen = {.mass = 46.5e-27, .diameter = 4.17e-10, .reference_k = 273, .omega = 0.74};

/* Degrees of freedom of the relative motion of colliding pairs, over 2. */
static double pair_freedom(const dsmc_gas *gas) {
    return 2.5 - gas->omega;
}

static double reduced_mass(const dsmc_gas *gas) {
    return gas->mass / 2;
}

/* Cross section times relative speed of a variable hard sphere (Bird, equation 4.63). */
static double swept(const dsmc_gas *gas, double speed_squared) {
    double reference = 2 * DSMC_BOLTZMANN * gas->reference_k / reduced_mass(gas);
    double area = PI * gas->diameter * gas->diameter / tgamma(pair_freedom(gas));
    return area * pow(reference, gas->omega - 0.5) * pow(speed_squared, 1 - gas->omega);
}

/* Return the probability p that a particle's rotation takes part in a collision. The particles of a pair
 * exchange energy one after the other. So the collision number Z follows from p: 1/Z = p·b/(b + 1)·(1 −
 * p/(2(b + 1))) with b = 5/2 − ω. */
static double exchange_of(const dsmc_gas *gas, double collisions) {
    double b = pair_freedom(gas);
    return (b + 1) * (1 - sqrt(1 - 2 / (collisions * b)));
}

double dsmc_least_collisions(const dsmc_gas *gas) {
    double b = pair_freedom(gas);
    return (b + 1) / b / (1 - 1 / (2 * (b + 1)));
}

static void draw_particle(dsmc_box *box, const dsmc_start *start, dsmc_particle *p) {
    double speed = sqrt(DSMC_BOLTZMANN * start->translation_k / box->gas.mass);
    for (int k = 0; k < 3; k++)
        p->velocity[k] = speed * kilter_random_normal(&box->random);
    p->rotation = DSMC_BOLTZMANN * start->rotation_k * kilter_random_exponential(&box->random);
}

bool dsmc_box_open(dsmc_box *box, const dsmc_gas *gas, const dsmc_start *start) {
    double likely = 2 * DSMC_BOLTZMANN * start->translation_k / reduced_mass(gas);
    *box = (dsmc_box){.gas = *gas,
                      .particles = malloc(start->particles * sizeof *box->particles),
                      .count = start->particles,
                      .density = start->density,
                      .exchange = exchange_of(gas, start->collisions),
                      .most = swept(gas, FAST * FAST * likely),
                      .random = kilter_random_of(start->seed, start->realisation)};
    for (uint32_t i = 0; box->particles && i < box->count; i++)
        draw_particle(box, start, &box->particles[i]);
    return box->particles;
}

void dsmc_box_close(dsmc_box *box) {
    free(box->particles);
    *box = (dsmc_box){0};
}

/* --- collisions --- */

static uint32_t draw_index(dsmc_box *box, uint32_t below) {
    return (uint32_t)(((kilter_random_bits(&box->random) >> 32) * below) >> 32);
}

static double relative_squared(const dsmc_particle *a, const dsmc_particle *b) {
    double sum = 0;
    for (int k = 0; k < 3; k++)
        sum += (a->velocity[k] - b->velocity[k]) * (a->velocity[k] - b->velocity[k]);
    return sum;
}

/* Share the energy of the relative motion and of a particle's rotation as in equilibrium (Borgnakke, Larsen
 * 1975; Bird, equation 5.46, for two rotational degrees of freedom). Return the energy that the relative
 * motion keeps. */
static double share_energy(dsmc_box *box, dsmc_particle *p, double motion) {
    if (kilter_random_uniform(&box->random) >= box->exchange)
        return motion;
    double energy = motion + p->rotation;
    double part = 1 - pow(kilter_random_uniform(&box->random), 1 / pair_freedom(&box->gas));
    p->rotation = part * energy;
    return energy - p->rotation;
}

/* The pair flies apart in any direction; the mean of the two velocities stays. */
static void scatter(dsmc_box *box, dsmc_particle *a, dsmc_particle *b, double motion) {
    double speed = sqrt(2 * motion / reduced_mass(&box->gas));
    double along = 2 * kilter_random_uniform(&box->random) - 1, across = sqrt(1 - along * along);
    double angle = 2 * PI * kilter_random_uniform(&box->random);
    double apart[3] = {speed * along, speed * across * cos(angle), speed * across * sin(angle)};
    for (int k = 0; k < 3; k++) {
        double mean = (a->velocity[k] + b->velocity[k]) / 2;
        a->velocity[k] = mean + apart[k] / 2;
        b->velocity[k] = mean - apart[k] / 2;
    }
}

static void try_pair(dsmc_box *box) {
    uint32_t i = draw_index(box, box->count), j = draw_index(box, box->count - 1);
    dsmc_particle *a = &box->particles[i], *b = &box->particles[j + (j >= i)];
    double squared = relative_squared(a, b), now = swept(&box->gas, squared);
    bool collides = kilter_random_uniform(&box->random) * box->most < now;
    if (now > box->most)
        box->most = now;
    if (!collides)
        return;
    double motion = reduced_mass(&box->gas) * squared / 2;
    motion = share_energy(box, a, motion);
    motion = share_energy(box, b, motion);
    scatter(box, a, b, motion);
    box->collided++;
}

void dsmc_box_step(dsmc_box *box, double step_s) {
    double pairs = (box->count - 1) * box->density * box->most * step_s / 2 + box->left;
    for (box->left = pairs; box->left >= 1; box->left--)
        try_pair(box);
}

/* --- measurements --- */

double dsmc_translation_k(const dsmc_box *box) {
    double sum[3] = {0}, squares = 0;
    for (uint32_t i = 0; i < box->count; i++)
        for (int k = 0; k < 3; k++) {
            sum[k] += box->particles[i].velocity[k];
            squares += box->particles[i].velocity[k] * box->particles[i].velocity[k];
        }
    double mean_squared = (sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2]) / box->count / box->count;
    return box->gas.mass * (squares / box->count - mean_squared) / (3 * DSMC_BOLTZMANN);
}

double dsmc_rotation_k(const dsmc_box *box) {
    double sum = 0;
    for (uint32_t i = 0; i < box->count; i++)
        sum += box->particles[i].rotation;
    return sum / box->count / DSMC_BOLTZMANN;
}

double dsmc_collision_rate(const dsmc_gas *gas, double density, double temperature_k) {
    return 4 * gas->diameter * gas->diameter * density *
           sqrt(PI * DSMC_BOLTZMANN * gas->reference_k / gas->mass) *
           pow(temperature_k / gas->reference_k, 1 - gas->omega);
}
