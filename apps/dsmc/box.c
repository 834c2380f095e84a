/* Simulate a homogeneous box of gas. */
#include "box.h"

#include <math.h>
#include <stdlib.h>

/* bound on the relative speed of pairs at the start, as a multiple of the most likely speed; a faster pair
 * raises the bound later */
static const double FAST = 3;

static void draw_particle(dsmc_box *box, const dsmc_start *start, dsmc_particle *p) {
    double speed = sqrt(DSMC_BOLTZMANN * start->translation_k / box->gas.mass);
    for (int k = 0; k < 3; k++)
        p->velocity[k] = speed * kilter_random_normal(&box->random);
    p->rotation = DSMC_BOLTZMANN * start->rotation_k * kilter_random_exponential(&box->random);
}

bool dsmc_box_open(dsmc_box *box, const dsmc_gas *gas, const dsmc_start *start) {
    *box = (dsmc_box){.gas = *gas,
                      .particles = malloc(start->particles * sizeof *box->particles),
                      .count = start->particles,
                      .density = start->density,
                      .exchange = dsmc_exchange(gas, start->collisions),
                      .most = dsmc_swept(gas, dsmc_relative_squared(gas, start->translation_k, FAST)),
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

/* Let a particle's rotation take part in a collision with probability box->exchange. Return the energy left
 * for the relative motion. */
static double share_energy(dsmc_box *box, dsmc_particle *p, double motion) {
    if (kilter_random_uniform(&box->random) >= box->exchange)
        return motion;
    return dsmc_share_energy(&box->gas, &box->random, &p->rotation, motion);
}

/* Give the two particles a relative velocity in a random direction, without changing the mean of their
 * velocities. */
static void scatter(dsmc_box *box, dsmc_particle *a, dsmc_particle *b, double motion) {
    double apart[3];
    dsmc_scatter(&box->random, sqrt(4 * motion / box->gas.mass), apart);
    for (int k = 0; k < 3; k++) {
        double mean = (a->velocity[k] + b->velocity[k]) / 2;
        a->velocity[k] = mean + apart[k] / 2;
        b->velocity[k] = mean - apart[k] / 2;
    }
}

static void try_pair(dsmc_box *box) {
    uint32_t i = draw_index(box, box->count), j = draw_index(box, box->count - 1);
    dsmc_particle *a = &box->particles[i], *b = &box->particles[j + (j >= i)];
    double squared = relative_squared(a, b), now = dsmc_swept(&box->gas, squared);
    bool collides = kilter_random_uniform(&box->random) * box->most < now;
    if (now > box->most)
        box->most = now;
    if (!collides)
        return;
    double motion = box->gas.mass * squared / 4;
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
