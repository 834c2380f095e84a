/* Compare flows with theory: equilibrium, collision rate, drag without collisions, and a gas between two
 * walls. One process computes all rows, one after the other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow.h"

static const double PI = 3.14159265358979323846;

typedef struct plane {
    dsmc_flow flow;
    dsmc_row *rows, *arrived; /* arrived[row]: particles that go to this row in the present step */
    dsmc_cell *cells;
    dsmc_sums *sums;
    double *force;
    uint64_t step, collided, particle_steps;
} plane;

static plane open_plane(const dsmc_flow_options *o) {
    plane p = {.rows = calloc(o->rows, sizeof *p.rows), .arrived = calloc(o->rows, sizeof *p.arrived)};
    size_t cells = (size_t)o->rows * o->columns;
    p.cells = calloc(cells, sizeof *p.cells);
    p.sums = calloc(cells, sizeof *p.sums);
    p.force = calloc(o->rows, sizeof *p.force);
    assert_true(dsmc_flow_open(&p.flow, o));
    for (uint32_t j = 0; j < o->rows; j++)
        assert_true(dsmc_flow_fill(&p.flow, j, &p.rows[j], p.cells + (size_t)j * o->columns));
    return p;
}

static void close_plane(plane *p) {
    for (uint32_t j = 0; j < p->flow.options.rows; j++) {
        dsmc_row_free(&p->rows[j]);
        dsmc_row_free(&p->arrived[j]);
    }
    free(p->rows);
    free(p->arrived);
    free(p->cells);
    free(p->sums);
    free(p->force);
    dsmc_flow_close(&p->flow);
}

static void move_arrived(dsmc_row *from, dsmc_row *to) {
    for (uint32_t i = 0; i < from->count; i++) {
        dsmc_point point = dsmc_row_at(from, i);
        assert_true(dsmc_row_add(to, &point));
    }
    from->count = 0;
}

static void do_steps(plane *p, uint64_t steps, bool samples) {
    uint32_t columns = p->flow.options.columns, rows = p->flow.options.rows;
    double unused = 0;
    for (uint64_t last = p->step + steps; p->step < last;) {
        p->step++;
        for (uint32_t j = 0; j < rows; j++) {
            dsmc_row_state state = {.cells = p->cells + (size_t)j * columns,
                                    .sums = samples ? p->sums + (size_t)j * columns : NULL,
                                    .force = samples ? &p->force[j] : &unused,
                                    .collided = &p->collided};
            p->particle_steps += p->rows[j].count;
            assert_true(dsmc_flow_step(&p->flow, j, p->step, &p->rows[j], &state));
            for (uint32_t i = 0; i < p->flow.leavers.count; i++) {
                dsmc_point *point = &p->flow.leavers.at[i];
                assert_true(dsmc_row_of(point) != j && dsmc_row_of(point) < rows);
                assert_true(dsmc_row_add(&p->arrived[dsmc_row_of(point)], point));
            }
        }
        for (uint32_t j = 0; j < rows; j++)
            move_arrived(&p->arrived[j], &p->rows[j]);
    }
}

static dsmc_flow_options options_of(const dsmc_gas *gas) {
    return (dsmc_flow_options){.gas = *gas,
                               .size = 10,
                               .wall_ratio = 1,
                               .collision_number = 5,
                               .columns = 40,
                               .rows = 40,
                               .particles = 20,
                               .seed = 1};
}

/* Return the sums of particle numbers and velocities over all cells of a row. */
static dsmc_sums row_sums(const plane *p, uint32_t row) {
    dsmc_sums all = {0};
    for (uint32_t i = 0; i < p->flow.options.columns; i++) {
        const dsmc_sums *s = &p->sums[(size_t)row * p->flow.options.columns + i];
        all.count += s->count;
        all.u += s->u;
        all.v += s->v;
        all.squares += s->squares;
    }
    return all;
}

/* --- a stream without a body --- */

/* A stream without a body must keep its density, speed and temperature, and molecules must collide as
 * often as in theory. */
static void a_free_stream_stays_as_it_is(void **state) {
    (void)state;
    const dsmc_gas *gases[] = {&dsmc_argon, &dsmc_nitrogen};
    for (int g = 0; g < 2; g++) {
        dsmc_flow_options o = options_of(gases[g]);
        o.mach = 3;
        o.knudsen = 0.2;
        plane p = open_plane(&o);
        do_steps(&p, 60, false);
        do_steps(&p, 120, true);
        dsmc_sums all = {0};
        for (uint32_t j = 0; j < o.rows; j++) {
            dsmc_sums s = row_sums(&p, j);
            all.count += s.count;
            all.u += s.u;
            all.v += s.v;
            all.squares += s.squares;
        }
        double cells = (double)o.rows * o.columns, mean_u = all.u / all.count;
        double spread = p.flow.spread, temperature = (all.squares / all.count - mean_u * mean_u) / 3;
        assert_true(fabs(all.count / (120 * cells * o.particles) - 1) < 0.01);
        assert_true(fabs(mean_u / p.flow.stream - 1) < 0.003);
        assert_true(fabs(all.v / all.count) < 0.02 * spread);
        assert_true(fabs(temperature / (spread * spread) - 1) < 0.01);
        /* expected number of collisions of a particle in a step: mean speed divided by mean free path */
        double rate = sqrt(8 / PI) * spread / (o.knudsen * o.size);
        assert_true(fabs(2 * (double)p.collided / ((double)p.particle_steps * rate) - 1) < 0.01);
        close_plane(&p);
    }
}

/* For every relative speed, the volume that a pair sweeps must be the same in the flow's units as in the
 * gas's units. */
static void the_swept_volume_is_that_of_the_gas(void **state) {
    (void)state;
    dsmc_flow_options o = options_of(&dsmc_argon);
    o.mach = 3;
    o.knudsen = 0.2;
    double density = 1e21, kelvin = 300;
    /* mean free path in metres, which is o.knudsen · o.size cells */
    double path = dsmc_free_path(&o.gas, density, kelvin);
    dsmc_flow f;
    assert_true(dsmc_flow_open(&f, &o));
    double metre = o.knudsen * o.size / path,
           second = sqrt(DSMC_BOLTZMANN * kelvin / o.gas.mass) * metre / f.spread;
    for (double speed = 100; speed < 2000; speed *= 3) {
        double cells_a_step = speed * metre / second;
        double flow = f.collisions.factor * pow(cells_a_step * cells_a_step, f.collisions.power);
        /* number of molecules that a particle stands for */
        double weight = density / (metre * metre * metre) / o.particles;
        double gas = weight * dsmc_swept(&o.gas, speed * speed) * metre * metre * metre / second;
        assert_true(fabs(flow / gas - 1) < 1e-9);
    }
    dsmc_flow_close(&f);
}

/* --- drag without collisions --- */

static double measured_drag(dsmc_shape shape, double mach, double wall_ratio, bool specular, uint64_t seed) {
    dsmc_flow_options o = options_of(&dsmc_argon);
    o.shape = shape;
    o.mach = mach;
    o.wall_ratio = wall_ratio;
    o.specular = specular;
    o.seed = seed;
    plane p = open_plane(&o);
    double force = 0;
    do_steps(&p, 150, false);
    do_steps(&p, 400, true);
    for (uint32_t j = 0; j < o.rows; j++)
        force += p.force[j];
    double drag = dsmc_drag(&p.flow, force, 400);
    close_plane(&p);
    return drag;
}

static void drag_without_collisions_is_that_of_the_closed_formula(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        bool specular = i & 1, plate = i & 2;
        double mach = i & 4 ? 5 : 2, wall_ratio = i & 4 ? 3 : 1, s = mach * sqrt(5. / 6); /* √(γ/2) */
        double drag = measured_drag(plate ? DSMC_PLATE : DSMC_CYLINDER, mach, wall_ratio, specular, 7);
        double theory = (plate ? dsmc_free_plate_drag : dsmc_free_cylinder_drag)(s, wall_ratio, specular);
        assert_true(fabs(drag / theory - 1) < 0.015);
    }
}

/* The formula for the cylinder must equal a sum over small plates along its circumference. */
static void the_cylinders_formula_is_the_sum_of_small_plates(void **state) {
    enum { POINTS = 20000 };
    (void)state;
    for (double s = 0.5; s < 8; s *= 2)
        for (int specular = 0; specular < 2; specular++) {
            double drag = 0, wall_ratio = 2;
            for (int i = 0; i < POINTS; i++) {
                double angle = 2 * PI * (i + 0.5) / POINTS, normal = s * cos(angle), along = s * sin(angle);
                double flux =
                    (exp(-normal * normal) + sqrt(PI) * normal * (1 + erf(normal))) / (2 * sqrt(PI));
                double pressure = (normal * exp(-normal * normal) +
                                   sqrt(PI) * (0.5 + normal * normal) * (1 + erf(normal))) /
                                  (2 * sqrt(PI));
                double leaving = specular ? pressure : flux * sqrt(PI * wall_ratio) / 2;
                double shear = specular ? 0 : flux * along;
                drag += ((pressure + leaving) * cos(angle) + shear * sin(angle)) * PI / POINTS;
            }
            double theory = dsmc_free_cylinder_drag(s, wall_ratio, specular);
            assert_true(fabs(drag * 2 / (s * s) / theory - 1) < 1e-6);
        }
}

/* --- a gas between walls that slide --- */

/* Simulate a gas between sliding walls. Return its speed in x for each row, and set the shear stress on the
 * walls. */
static double *slide(const dsmc_flow_options *o, uint64_t steps, plane *p, double *stress) {
    double *speed = malloc(o->rows * sizeof *speed);
    *p = open_plane(o);
    do_steps(p, steps / 3, false);
    do_steps(p, steps, true);
    for (uint32_t j = 0; j < o->rows; j++) {
        dsmc_sums s = row_sums(p, j);
        speed[j] = s.u / s.count;
    }
    *stress = (p->force[0] - p->force[o->rows - 1]) / 2 / (double)steps / o->columns;
    return speed;
}

/* In a dense gas the speed rises linearly from wall to wall. The stress is the slope of the speed times the
 * viscosity of variable hard spheres. */
static void stress_between_walls_follows_from_viscosity(void **state) {
    (void)state;
    dsmc_flow_options o = options_of(&dsmc_argon);
    o.walls = true;
    o.wall_mach = 0.4;
    o.columns = 20;
    o.rows = 30;
    o.size = 30;
    o.knudsen = 0.05;
    plane p;
    double stress, *speed = slide(&o, 6000, &p, &stress);
    double slope = 0, squares = 0;
    /* leave out a layer at each wall, where the speed is not linear */
    for (uint32_t j = 8; j < 22; j++) {
        slope += (j - 14.5) * speed[j];
        squares += (j - 14.5) * (j - 14.5);
    }
    slope /= squares;
    double density = 1e21, kelvin = 300, spread = p.flow.spread;
    double path = dsmc_free_path(&o.gas, density, kelvin);
    double spread_ms = sqrt(DSMC_BOLTZMANN * kelvin / o.gas.mass);
    /* viscosity divided by (density × mass × free path × thermal speed) has no unit */
    double ratio = dsmc_viscosity(&o.gas, kelvin) / (density * o.gas.mass * path * spread_ms);
    double viscosity = ratio * o.particles * (o.knudsen * o.size) * spread;
    /* The sizes of cells and steps increase the viscosity (Alexander, Garcia, Alder 1998; Hadjiconstantinou
     * 2000). */
    double cell = 1 / (o.knudsen * o.size), step = sqrt(2) * spread * cell;
    viscosity *= 1 + 16 / (45 * PI) * cell * cell + 32 / (150 * PI) * step * step;
    assert_true(fabs(stress / (viscosity * slope) - 1) < 0.03);
    for (uint32_t j = 8; j < 22; j++) /* the gas speed is linear, and 0 in the middle between the walls */
        assert_true(fabs(speed[j] - slope * (j - 14.5)) < 0.03 * p.flow.wall_speed);
    free(speed);
    close_plane(&p);
}

/* Without collisions, half of the particles come from each wall, so the gas is at rest everywhere. The stress
 * is the flux of molecules times the difference of the walls' speeds. */
static void stress_without_collisions_is_that_of_free_molecules(void **state) {
    (void)state;
    dsmc_flow_options o = options_of(&dsmc_argon);
    o.walls = true;
    o.wall_mach = 0.3;
    o.rows = 10;
    plane p;
    double stress, *speed = slide(&o, 3000, &p, &stress);
    double theory = o.particles * p.flow.spread / sqrt(2 * PI) * 2 * p.flow.wall_speed;
    assert_true(fabs(stress / theory - 1) < 0.03);
    for (uint32_t j = 0; j < o.rows; j++)
        assert_true(fabs(speed[j]) < 0.05 * p.flow.wall_speed);
    free(speed);
    close_plane(&p);
}

/* A gas at rest, between walls of the same temperature, has Maxwell's distribution. Check moments of each
 * component of the velocity. */
static void a_gas_at_rest_is_maxwellian(void **state) {
    (void)state;
    dsmc_flow_options o = options_of(&dsmc_nitrogen);
    o.walls = true;
    o.knudsen = 0.1;
    plane p = open_plane(&o);
    double second[3] = {0}, fourth[3] = {0}, rotation = 0, count = 0;
    do_steps(&p, 300, false);
    for (uint32_t j = 0; j < o.rows; j++)
        for (uint32_t i = 0; i < p.rows[j].count; i++) {
            for (int k = 0; k < 3; k++) {
                double scaled = pow(p.rows[j].part[2 + k][i] / p.flow.spread, 2);
                second[k] += scaled;
                fourth[k] += scaled * scaled;
            }
            rotation += p.rows[j].part[5][i] / (p.flow.spread * p.flow.spread);
            count++;
        }
    double error = 5 / sqrt(count);
    /* no particle may be lost in the simulation */
    assert_true(fabs(count / (o.particles * o.rows * o.columns) - 1) < 1e-3);
    for (int k = 0; k < 3; k++) {
        assert_true(fabs(second[k] / count - 1) < 2 * error);
        assert_true(fabs(fourth[k] / count - 3) < 10 * error);
    }
    assert_true(fabs(rotation / count - 1) < error);
    close_plane(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_stream_stays_as_it_is),
        cmocka_unit_test(the_swept_volume_is_that_of_the_gas),
        cmocka_unit_test(drag_without_collisions_is_that_of_the_closed_formula),
        cmocka_unit_test(the_cylinders_formula_is_the_sum_of_small_plates),
        cmocka_unit_test(stress_between_walls_follows_from_viscosity),
        cmocka_unit_test(stress_without_collisions_is_that_of_free_molecules),
        cmocka_unit_test(a_gas_at_rest_is_maxwellian),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
