/* Compare a box of gas with theory: the rate of collisions, conserved energy, the speed of relaxation for a
 * given collision number, and equilibrium. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "box.h"

enum { PARTICLES = 40000 };
static const double DENSITY = 2.5e25;

static dsmc_box box_of(double translation_k, double rotation_k, double collisions) {
    dsmc_box box;
    assert_true(dsmc_box_open(&box, &dsmc_nitrogen,
                              &(dsmc_start){.particles = PARTICLES,
                                            .density = DENSITY,
                                            .translation_k = translation_k,
                                            .rotation_k = rotation_k,
                                            .collisions = collisions,
                                            .seed = 1}));
    return box;
}

static double energy_of(const dsmc_box *box) {
    double sum = 0;
    for (uint32_t i = 0; i < box->count; i++) {
        const dsmc_particle *p = &box->particles[i];
        for (int k = 0; k < 3; k++)
            sum += box->gas.mass * p->velocity[k] * p->velocity[k] / 2;
        sum += p->rotation;
    }
    return sum;
}

static void collisions_are_as_frequent_as_in_theory(void **state) {
    (void)state;
    for (double k = 200; k < 2000; k *= 3) {
        dsmc_box box = box_of(k, k, 5);
        double rate = dsmc_collision_rate(&dsmc_nitrogen, DENSITY, k), step_s = 0.2 / rate;
        for (int i = 0; i < 20; i++)
            dsmc_box_step(&box, step_s);
        double expected = PARTICLES * rate * 20 * step_s / 2;
        assert_true(fabs((double)box.collided / expected - 1) < 5 / sqrt(expected) + 0.003);
        dsmc_box_close(&box);
    }
}

static void energy_stays(void **state) {
    (void)state;
    dsmc_box box = box_of(1000, 100, 3);
    double before = energy_of(&box), rate = dsmc_collision_rate(&dsmc_nitrogen, DENSITY, 1000);
    for (int i = 0; i < 20; i++)
        dsmc_box_step(&box, 0.2 / rate);
    assert_true(box.collided > PARTICLES);
    assert_true(fabs(energy_of(&box) / before - 1) < 1e-12);
    dsmc_box_close(&box);
}

/* Solve d(rotation)/dt = ν(translation)·(translation − rotation)/Z, in small steps. */
static void relax(double *translation_k, double *rotation_k, double collisions, double for_s) {
    enum { STEPS = 200 };
    for (int i = 0; i < STEPS; i++) {
        double rate = dsmc_collision_rate(&dsmc_nitrogen, DENSITY, *translation_k);
        double change = rate * (*translation_k - *rotation_k) / collisions * for_s / STEPS;
        *rotation_k += change;
        /* energy moves between three degrees of freedom of translation and two of rotation */
        *translation_k -= change * 2 / 3;
    }
}

static void rotation_relaxes_with_the_set_collision_number(void **state) {
    (void)state;
    static const double numbers[] = {2, 5, 20};
    for (int n = 0; n < 3; n++)
        for (int hot = 0; hot < 2; hot++) {
            double translation = hot ? 1000 : 300, rotation = hot ? 100 : 1200;
            dsmc_box box = box_of(translation, rotation, numbers[n]);
            double gap = fabs(translation - rotation);
            double step_s = numbers[n] / 10 / dsmc_collision_rate(&dsmc_nitrogen, DENSITY, translation);
            for (int i = 0; i < 20; i++) {
                dsmc_box_step(&box, step_s);
                relax(&translation, &rotation, numbers[n], step_s);
                assert_true(fabs(dsmc_rotation_k(&box) - rotation) < 0.03 * gap);
                assert_true(fabs(dsmc_translation_k(&box) - translation) < 0.03 * gap);
            }
            dsmc_box_close(&box);
        }
}

/* In equilibrium, velocities are normally distributed, and rotational energies exponentially. Check their
 * second and fourth moments. */
static void the_end_is_equilibrium(void **state) {
    (void)state;
    dsmc_box box = box_of(1000, 0.001, 2);
    double step_s = 0.5 / dsmc_collision_rate(&dsmc_nitrogen, DENSITY, 600);
    for (int i = 0; i < 60; i++)
        dsmc_box_step(&box, step_s);
    double k = dsmc_translation_k(&box), fourth = 0, squares = 0;
    double error = 5 / sqrt(PARTICLES);
    assert_true(fabs(k / 600 - 1) < 0.01); /* three of five degrees of freedom began at 1000 K */
    assert_true(fabs(dsmc_rotation_k(&box) / k - 1) < 2 * error);
    for (uint32_t i = 0; i < PARTICLES; i++) {
        double u = box.particles[i].velocity[0], e = box.particles[i].rotation / (DSMC_BOLTZMANN * k);
        double scaled = u * u * box.gas.mass / (DSMC_BOLTZMANN * k);
        fourth += scaled * scaled / PARTICLES;
        squares += e * e / PARTICLES;
    }
    /* the fourth power of a normally distributed number with variance 1 has standard deviation √96 */
    assert_true(fabs(fourth - 3) < 10 * error);
    /* the square of an exponentially distributed number with mean 1 has standard deviation √20 */
    assert_true(fabs(squares - 2) < 4.5 * error);
    dsmc_box_close(&box);
}

static void the_smallest_collision_number_exchanges_always(void **state) {
    (void)state;
    dsmc_box box = box_of(300, 300, dsmc_least_collisions(&dsmc_nitrogen));
    assert_true(fabs(box.exchange - 1) < 1e-9);
    dsmc_box_close(&box);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collisions_are_as_frequent_as_in_theory),
        cmocka_unit_test(energy_stays),
        cmocka_unit_test(rotation_relaxes_with_the_set_collision_number),
        cmocka_unit_test(the_end_is_equilibrium),
        cmocka_unit_test(the_smallest_collision_number_exchanges_always),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
