/* Simulate the flow of a gas in a plane. */
#include "flow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;
static const double LONGEST = 0.4; /* a typical fast particle moves by this number of cells in a step */
/* greatest mean number of collisions of a particle of the stream in one step */
static const double OFTENEST = 0.3;
/* bound on the relative speeds of pairs at the start, as a multiple of the most likely speed */
static const double FAST = 3;
/* number of standard deviations by which a particle's speed may differ from the stream's; strips of gas
 * beyond the ends of the plane are wide enough for such particles */
static const double REACH = 5;
/* BOUNCES: greatest number of reflections of a particle in one step; PARTS: a cell's volume outside the body
 * is measured at PARTS × PARTS points of the cell */
enum { BOUNCES = 20, PARTS = 16 };

/* --- setting up the plane --- */

static bool is_inside(const dsmc_flow *f, double x, double y) {
    double dx = x - f->centre_x, dy = y - f->centre_y, radius = f->options.size / 2;
    return f->options.shape == DSMC_CYLINDER && dx * dx + dy * dy < radius * radius;
}

static double volume_of(const dsmc_flow *f, uint32_t row, uint32_t column) {
    int outside = 0;
    for (int i = 0; i < PARTS; i++)
        for (int j = 0; j < PARTS; j++)
            outside += !is_inside(f, column + (i + 0.5) / PARTS, row + (j + 0.5) / PARTS);
    return (double)outside / (PARTS * PARTS);
}

static void set_speeds(dsmc_flow *f) {
    const dsmc_flow_options *o = &f->options;
    double heat_ratio = (5 + o->gas.freedoms) / (3 + o->gas.freedoms), path = o->knudsen * o->size;
    double fastest = sqrt(heat_ratio) * fmax(o->mach, o->wall_mach) + sqrt(fmax(1, o->wall_ratio));
    f->spread = LONGEST / fastest;
    if (path > 0)
        f->spread = fmin(f->spread, OFTENEST * path / sqrt(8 / PI));
    f->sound = sqrt(heat_ratio) * f->spread;
    f->stream = o->mach * f->sound;
    f->wall_speed = o->wall_mach * f->sound;
    f->wall_spread = f->spread * sqrt(o->wall_ratio);
}

/* Set the collision rate of pairs from the mean free path. In equilibrium, a particle's number of collisions
 * in a step is its mean speed over the mean free path. */
static void set_collisions(dsmc_flow *f) {
    const dsmc_flow_options *o = &f->options;
    double power = 1 - o->gas.omega, likely = 4 * f->spread * f->spread, path = o->knudsen * o->size;
    double rate = path > 0 ? sqrt(8 / PI) * f->spread / path : 0;
    double mean = pow(likely, power) * tgamma(1.5 + power) / tgamma(1.5);
    f->collisions =
        (dsmc_collisions){.factor = rate / (o->particles * mean),
                          .power = power,
                          .exchange = o->gas.freedoms > 0 ? dsmc_exchange(&o->gas, o->collision_number) : 0,
                          .gas = o->gas};
    f->first_most = f->collisions.factor * pow(FAST * FAST * likely, power);
}

bool dsmc_flow_open(dsmc_flow *f, const dsmc_flow_options *o) {
    *f = (dsmc_flow){.options = *o, .centre_x = 0.35 * o->columns, .centre_y = 0.5 * o->rows};
    set_speeds(f);
    set_collisions(f);
    f->volume = malloc((size_t)o->rows * o->columns * sizeof *f->volume);
    f->first = malloc(((size_t)o->columns + 1) * sizeof *f->first);
    for (uint32_t j = 0; j < o->rows && f->volume; j++)
        for (uint32_t i = 0; i < o->columns; i++)
            f->volume[(size_t)j * o->columns + i] = volume_of(f, j, i);
    return f->volume && f->first;
}

void dsmc_flow_close(dsmc_flow *f) {
    dsmc_row_free(&f->sorted);
    free(f->volume);
    free(f->first);
    free(f->leavers.at);
    *f = (dsmc_flow){.volume = NULL};
}

/* --- drawing particles of the stream --- */

static void draw_velocity(const dsmc_flow *f, kilter_random *random, dsmc_point *p) {
    p->u = f->stream + f->spread * kilter_random_normal(random);
    p->v = f->spread * kilter_random_normal(random);
    p->w = f->spread * kilter_random_normal(random);
    p->rotation = f->options.gas.freedoms > 0 ? f->spread * f->spread * kilter_random_exponential(random) : 0;
}

/* Round a number of particles up or down at random, so that the mean stays the same. */
static uint32_t whole(double number, kilter_random *random) {
    return (uint32_t)(number + kilter_random_uniform(random));
}

bool dsmc_flow_fill(const dsmc_flow *f, uint32_t number, dsmc_row *row, dsmc_cell *cells) {
    kilter_random random = kilter_random_of(f->options.seed, number);
    bool fits = true;
    for (uint32_t i = 0; i < f->options.columns; i++) {
        cells[i] = (dsmc_cell){.most = f->first_most, .left = kilter_random_uniform(&random)};
        for (uint32_t n = whole(f->options.particles, &random); n > 0 && fits; n--) {
            dsmc_point p = {.x = i + kilter_random_uniform(&random),
                            .y = number + kilter_random_uniform(&random)};
            draw_velocity(f, &random, &p);
            fits = is_inside(f, p.x, p.y) || dsmc_row_add(row, &p);
        }
    }
    return fits;
}

/* --- surfaces --- */

typedef struct hit { /* the first surface that a particle meets during its move */
    /* time until the particle meets the surface, as a fraction of a step; if the particle meets no surface,
     * the time that is left in the step */
    double after;
    double x, y;  /* the surface's normal */
    double speed; /* speed of the surface in x */
} hit;

static void meet_walls(const dsmc_flow *f, const dsmc_point *p, hit *first) {
    double after = p->v < 0 ? -p->y / p->v : (f->options.rows - p->y) / p->v;
    if (p->v != 0 && after <= first->after)
        *first =
            (hit){after > 0 ? after : 0, 0, p->v < 0 ? 1 : -1, p->v < 0 ? -f->wall_speed : f->wall_speed};
}

static void meet_plate(const dsmc_flow *f, const dsmc_point *p, hit *first) {
    double after = (f->centre_x - p->x) / p->u;
    double above = p->y + p->v * after - f->centre_y;
    if (p->u != 0 && after > 0 && after <= first->after && fabs(above) < f->options.size / 2)
        *first = (hit){after, p->u < 0 ? 1 : -1, 0, 0};
}

static void meet_cylinder(const dsmc_flow *f, const dsmc_point *p, hit *first) {
    double x = p->x - f->centre_x, y = p->y - f->centre_y, radius = f->options.size / 2;
    double nearer = x * p->u + y * p->v, squared = p->u * p->u + p->v * p->v;
    double root = nearer * nearer - squared * (x * x + y * y - radius * radius);
    if (nearer >= 0 || root < 0)
        return;
    double after = fmax((-nearer - sqrt(root)) / squared, 0);
    if (after > first->after)
        return;
    x += p->u * after;
    y += p->v * after;
    double length = sqrt(x * x + y * y);
    *first = (hit){after, x / length, y / length, 0};
}

static void reflect(const dsmc_flow *f, const hit *h, kilter_random *random, dsmc_point *p) {
    double inwards = p->u * h->x + p->v * h->y;
    if (f->options.specular) {
        p->u -= 2 * inwards * h->x;
        p->v -= 2 * inwards * h->y;
        return;
    }
    double out = f->wall_spread * sqrt(2 * kilter_random_exponential(random));
    double along = f->wall_spread * kilter_random_normal(random);
    p->u = out * h->x - along * h->y + h->speed;
    p->v = out * h->y + along * h->x;
    p->w = f->wall_spread * kilter_random_normal(random);
    if (f->options.gas.freedoms > 0)
        p->rotation = f->wall_spread * f->wall_spread * kilter_random_exponential(random);
}

/* Move a particle for the fraction `rest` of a step, and reflect the particle at surfaces. Return the
 * momentum in direction x that the surfaces received. */
static double advance(const dsmc_flow *f, double rest, kilter_random *random, dsmc_point *p) {
    double force = 0;
    for (int i = 0; i < BOUNCES; i++) {
        hit first = {.after = rest};
        bool walls = f->options.walls, plate = f->options.shape == DSMC_PLATE;
        hit before = first;
        if (walls)
            meet_walls(f, p, &first);
        if (plate)
            meet_plate(f, p, &first);
        else if (f->options.shape == DSMC_CYLINDER)
            meet_cylinder(f, p, &first);
        bool meets = first.x != before.x || first.y != before.y;
        p->x = meets && first.x * first.x == 1 && plate ? f->centre_x : p->x + p->u * first.after;
        p->y += p->v * first.after;
        rest -= first.after;
        if (!meets)
            break;
        force += p->u;
        reflect(f, &first, random, p);
        force -= p->u;
    }
    return force;
}

/* If the flow is between walls, x is periodic: put the particle back into the plane. Return false if the
 * particle has left the plane. */
static bool stays(const dsmc_flow *f, dsmc_point *p) {
    double columns = f->options.columns, rows = f->options.rows;
    if (f->options.walls) {
        p->x -= columns * floor(p->x / columns);
        p->x = p->x < columns ? p->x : 0;
        p->y = p->y < 0 ? 0 : p->y < rows ? p->y : nextafter(rows, 0);
    }
    return p->x >= 0 && p->x < columns && p->y >= 0 && p->y < rows;
}

/* --- a step --- */

static bool leave(dsmc_leavers *l, const dsmc_point *p) {
    if (l->count == l->room) {
        uint32_t room = 2 * l->room + 64;
        dsmc_point *more = realloc(l->at, room * sizeof *more);
        if (!more)
            return false;
        l->at = more;
        l->room = room;
    }
    l->at[l->count++] = *p;
    return true;
}

/* the row that is being computed, with its random numbers and the force on its surfaces */
typedef struct place {
    uint32_t number;
    dsmc_row *row;
    kilter_random *random;
    double *force;
} place;

/* Let a particle enter the plane, and move the particle for the fraction `rest` of a step. */
static bool enter(dsmc_flow *f, const place *at, dsmc_point *p, double rest) {
    *at->force += advance(f, rest, at->random, p);
    if (!stays(f, p))
        return true;
    return dsmc_row_of(p) == at->number ? dsmc_row_add(at->row, p) : leave(&f->leavers, p);
}

/* Let particles enter the row at both ends. Fill a strip beyond each end with gas of the stream, and move the
 * strip's particles by a step. */
static bool fill_ends(dsmc_flow *f, const place *at) {
    double widths[] = {f->stream + REACH * f->spread, REACH * f->spread - f->stream};
    bool fits = true;
    for (int end = 0; end < 2; end++) {
        double width = widths[end] > 0 ? widths[end] : 0;
        for (uint32_t n = whole(f->options.particles * width, at->random); n > 0 && fits; n--) {
            double depth = width * kilter_random_uniform(at->random);
            dsmc_point p = {.x = end == 0 ? -depth : f->options.columns + depth,
                            .y = at->number + kilter_random_uniform(at->random)};
            draw_velocity(f, at->random, &p);
            fits = enter(f, at, &p, 1);
        }
    }
    return fits;
}

/* Let particles in through the lower or upper side of the plane. The stream flows parallel to this side, so
 * particles cross the side only by their thermal motion. */
static bool fill_side(dsmc_flow *f, const place *at, bool upper) {
    double columns = f->options.columns, crossing = columns * f->spread / sqrt(2 * PI);
    bool fits = true;
    for (uint32_t n = whole(f->options.particles * crossing, at->random); n > 0 && fits; n--) {
        dsmc_point p = {.x = columns * kilter_random_uniform(at->random),
                        .y = upper ? nextafter(f->options.rows, 0) : 0};
        draw_velocity(f, at->random, &p);
        p.v = (upper ? -1 : 1) * f->spread * sqrt(2 * kilter_random_exponential(at->random));
        fits = enter(f, at, &p, kilter_random_uniform(at->random));
    }
    return fits;
}

/* Let particles of the stream enter the row through the sides of the plane that the row touches. */
static bool fill(dsmc_flow *f, const place *at) {
    bool fits = fill_ends(f, at);
    if (fits && at->number == 0)
        fits = fill_side(f, at, false);
    if (fits && at->number + 1 == f->options.rows)
        fits = fill_side(f, at, true);
    return fits;
}

/* Find the range of x that the body covers in this row. Set *lo and *hi to −1 if no part of the body is in
 * the row. */
static void find_body(const dsmc_flow *f, uint32_t number, double *lo, double *hi) {
    double half = f->options.size / 2, width = f->options.shape == DSMC_PLATE ? 0 : half;
    bool beside = number + 1 > f->centre_y - half && number < f->centre_y + half;
    *lo = *hi = -1;
    if (f->options.shape == DSMC_NOTHING || !beside)
        return;
    *lo = f->centre_x - width;
    *hi = f->centre_x + width;
}

/* Repeat the move of particle i, which may meet a surface or leave the row. If the particle leaves, the last
 * particle of the row takes its place. Return false if memory ran out. */
static bool move_carefully(dsmc_flow *f, const place *at, uint32_t i) {
    dsmc_row *row = at->row;
    dsmc_point p = dsmc_row_at(row, i);
    p.x -= p.u;
    p.y -= p.v;
    *at->force += advance(f, 1, at->random, &p);
    bool lives = stays(f, &p);
    const double member[DSMC_PARTS] = {p.x, p.y, p.u, p.v, p.w, p.rotation};
    if (lives && dsmc_row_of(&p) == at->number) {
        for (int k = 0; k < DSMC_PARTS; k++)
            row->part[k][i] = member[k];
        return true;
    }
    row->count--;
    for (int k = 0; k < DSMC_PARTS; k++)
        row->part[k][i] = row->part[k][row->count];
    return !lives || leave(&f->leavers, &p);
}

/* Move all particles as if there were no surfaces. Then repeat the move of particles that may meet a surface
 * or leave the row. */
static bool move(dsmc_flow *f, const place *at) {
    dsmc_row *row = at->row;
    double *restrict x = row->part[0], *restrict y = row->part[1];
    const double *restrict u = row->part[2], *restrict v = row->part[3];
    double body_lo, body_hi, columns = f->options.columns, lo = at->number, hi = at->number + 1.0;
    bool fits = true;
    for (uint32_t i = 0; i < row->count; i++) {
        x[i] += u[i];
        y[i] += v[i];
    }
    find_body(f, at->number, &body_lo, &body_hi);
    for (uint32_t i = 0; i < row->count && fits;) {
        bool inside = (x[i] >= 0) & (x[i] < columns) & (y[i] >= lo) & (y[i] < hi);
        double from = x[i] - u[i], left = from < x[i] ? from : x[i], right = from < x[i] ? x[i] : from;
        bool free = (right < body_lo) | (left > body_hi);
        uint32_t before = row->count;
        if (!inside || !free)
            fits = move_carefully(f, at, i);
        i += row->count == before;
    }
    return fits;
}

static void sample(const dsmc_row *row, uint32_t cells, const uint32_t *first, dsmc_sums *sums) {
    for (uint32_t c = 0; c < cells; c++) {
        dsmc_sums s = sums[c];
        for (uint32_t i = first[c]; i < first[c + 1]; i++) {
            double u = row->part[2][i], v = row->part[3][i], w = row->part[4][i];
            s.u += u;
            s.v += v;
            s.squares += u * u + v * v + w * w;
        }
        s.count += first[c + 1] - first[c];
        sums[c] = s;
    }
}

bool dsmc_flow_step(dsmc_flow *f, uint32_t number, uint64_t step, dsmc_row *row,
                    const dsmc_row_state *state) {
    const dsmc_flow_options *o = &f->options;
    kilter_random random = kilter_random_of(o->seed, step * o->rows + number);
    place at = {number, row, &random, state->force};
    dsmc_cells cells = {o->columns, f->first, f->volume + (size_t)number * o->columns, state->cells};
    f->leavers.count = 0;
    if (!dsmc_row_sort(row, &f->sorted, o->columns, f->first))
        return false;
    if (o->knudsen > 0)
        *state->collided += dsmc_row_collide(row, &cells, &f->collisions, &random);
    if (state->sums)
        sample(row, o->columns, f->first, state->sums);
    return move(f, &at) && (o->walls || fill(f, &at));
}

/* --- drag --- */

double dsmc_drag(const dsmc_flow *f, double force, double steps) {
    return force / steps / (0.5 * f->options.particles * f->stream * f->stream * f->options.size);
}

double dsmc_free_plate_drag(double s, double wall_ratio, bool specular) {
    double mirror = specular ? 2 : 1;
    double pressure = 2 * exp(-s * s) / (sqrt(PI) * s) + (1 + 2 * s * s) * erf(s) / (s * s);
    return mirror * pressure + (specular ? 0 : sqrt(PI * wall_ratio) / s);
}

/* Return exp(−z)·I(z) for the modified Bessel function of order 0 or 1, from its integral. */
static double bessel(int order, double z) {
    enum { POINTS = 400 }; /* the integrand is smooth and periodic, so the sum is exact up to rounding */
    double sum = 0;
    for (int i = 0; i < POINTS; i++) {
        double angle = PI * (i + 0.5) / POINTS;
        sum += exp(z * (cos(angle) - 1)) * cos(order * angle) / POINTS;
    }
    return sum;
}

double dsmc_free_cylinder_drag(double s, double wall_ratio, bool specular) {
    double z = s * s / 2, zero = bessel(0, z), one = bessel(1, z);
    double mirror = specular ? 4. / 3 : 1;
    double pressure = sqrt(PI) / s * ((s * s + 1.5) * zero + (s * s + 0.5) * one);
    return mirror * pressure + (specular ? 0 : pow(PI, 1.5) / (4 * s) * sqrt(wall_ratio));
}
