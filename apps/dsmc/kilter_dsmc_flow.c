/* kilter-dsmc-flow: simulate the flow of a gas past a body, on the ranks of an MPI program. Each iteration of
 * a loop computes one row of cells. The row's particles are data of the iteration, and their number changes.
 * Particles that leave their row go to other rows in messages. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <kilter/loop.h>

#include "flow.h"
#include "options.h"
#include "picture.h"

/* --- reading the command line --- */

typedef struct words {
    double gas, body, wall, mach, knudsen, columns, rows, size, particles, wall_ratio, steps, settle, seed;
    bool fixed, say;
    const char *picture, *record;
} words;

static const char *const gases[] = {"argon", "nitrogen", NULL},
                         *const bodies[] = {"none", "cylinder", "plate", NULL},
                         *const walls[] = {"diffuse", "specular", NULL};

#define NUMBER(member) .kind = DSMC_NUMBER, .at = offsetof(words, member)
#define WHOLE(member)  .kind = DSMC_WHOLE, .at = offsetof(words, member)
#define WORD(member)   .kind = DSMC_WORD, .at = offsetof(words, member)
static const dsmc_option table[] = {
    {"gas", "argon or nitrogen (default argon)", WORD(gas), .words = gases},
    {"body", "none, cylinder or plate (default cylinder)", WORD(body), .words = bodies},
    {"wall", "diffuse or specular: how the body reflects (default diffuse)", WORD(wall), .words = walls},
    {"mach", "speed of the stream divided by the speed of sound (default 5)", NUMBER(mach), .least = 0.1,
     .most = 50},
    {"knudsen", "mean free path divided by the body's size (default 0.125); 0: no collisions",
     NUMBER(knudsen), .least = 0, .most = 1e6},
    {"columns", "cells in the stream's direction (default 160)", WHOLE(columns), .least = 4, .most = 20000},
    {"rows", "rows of cells (default 120)", WHOLE(rows), .least = 4, .most = 20000},
    {"size", "the body's height in cells (default: a fifth of the rows)", NUMBER(size), .least = 1,
     .most = 10000},
    {"particles", "particles in a cell of the stream (default 20)", NUMBER(particles), .least = 1,
     .most = 1e5},
    {"wall-ratio", "temperature of the body divided by that of the stream (default 1)", NUMBER(wall_ratio),
     .least = 0.01, .most = 100},
    {"steps", "time steps (default 1000)", WHOLE(steps), .least = 1, .most = 1e9},
    {"settle", "time steps before the first sample (default: half of the steps)", WHOLE(settle), .least = 0,
     .most = 1e9},
    {"seed", "the same seed gives the same flow (default 1)", WHOLE(seed), .least = 0, .most = 4e9},
    {"picture", "SVG file for a picture of the density and of the rows' ranks", .kind = DSMC_TEXT,
     .at = offsetof(words, picture)},
    {"record", "file for the run record", .kind = DSMC_TEXT, .at = offsetof(words, record)},
    {"fixed", "keep equal numbers of rows on all ranks: no rows move", .kind = DSMC_FLAG,
     .at = offsetof(words, fixed)},
    {"say", "print how balancing moved rows", .kind = DSMC_FLAG, .at = offsetof(words, say)},
};
static const dsmc_options options = {"kilter-dsmc-flow", table, sizeof table / sizeof *table};

static void print_help(void) {
    printf("Usage: mpirun kilter-dsmc-flow-openmpi [options], or mpiexec kilter-dsmc-flow-mpich [options].\n"
           "The program simulates a gas that streams past a body, by direct simulation Monte Carlo.\n"
           "It prints the drag coefficient and the speed as one line of JSON.\n\n");
    dsmc_print_options(&options, stdout);
    printf("  --%-14s %s\n", "help", "print this text");
}

/* greatest diameter of a cylinder, as a fraction of the number of columns; the cylinder's centre is at 0.35
 * of the columns
 */
static const double WIDEST = 0.7;
/* least allowed Knudsen number above 0; with a smaller one, time steps would be too short */
static const double THINNEST = 0.001;
static const double LEAST_CELLS = 3; /* a mean free path should be at least this number of cells long */

static int check(const words *w, FILE *errors) {
    const char *wrong = NULL;
    if (w->body > 0 && w->size >= w->rows)
        wrong = "--size must be smaller than --rows";
    else if (w->body == 1 && w->size >= WIDEST * w->columns)
        wrong = "--size of a cylinder must be smaller than 0.7 times --columns";
    else if (w->knudsen > 0 && w->knudsen < THINNEST)
        wrong = "--knudsen must be 0 or at least 0.001";
    else if (w->settle >= w->steps)
        wrong = "--settle must be smaller than --steps";
    if (wrong && errors)
        fprintf(errors, "kilter-dsmc-flow: %s\n", wrong);
    else if (errors && w->knudsen > 0 && w->knudsen * w->size < LEAST_CELLS)
        fprintf(
            errors,
            "kilter-dsmc-flow: warning: a mean free path is %.3g cells; with fewer than 3, collisions spread "
            "too far: raise --size or --knudsen\n",
            w->knudsen * w->size);
    return wrong ? 2 : 0;
}

static int read_words(int argc, char **argv, words *w, FILE *errors) {
    *w = (words){
        .body = 1, .mach = 5, .knudsen = 0.125, .columns = 160, .rows = 120, .size = -1, .particles = 20};
    w->wall_ratio = w->seed = 1;
    w->steps = 1000;
    w->settle = -1;
    int code = dsmc_read_options(&options, argc - 1, argv + 1, w, errors);
    w->size = w->size < 0 ? floor(w->rows / 5) : w->size;
    w->size = w->size < 1 ? 1 : w->size;
    w->settle = w->settle < 0 ? floor(w->steps / 2) : w->settle;
    return code == 0 ? check(w, errors) : code;
}

/* --- computing the rows of particles --- */

typedef struct run {
    words set;
    int rank, ranks;
    dsmc_flow flow;
    dsmc_row *rows;
    kilter_loop *loop;
    dsmc_cell *cells; /* the loop's arrays, row by row: cells, sums and force */
    dsmc_sums *sums;
    double *force;
    uint64_t collided, particle_steps;
    double elapsed_s;
    dsmc_history history; /* which rank had which rows over time; filled on rank 0 only */
} run;

static uint64_t bytes_of(uint64_t number, void *user) {
    return ((run *)user)->rows[number].count * sizeof(dsmc_point);
}

static bool pack(uint64_t number, void *to, void *user) {
    const dsmc_row *row = &((run *)user)->rows[number];
    double *at = to;
    for (int k = 0; k < DSMC_PARTS && row->count > 0; k++) {
        memcpy(at, row->part[k], row->count * sizeof *at);
        at += row->count;
    }
    return true;
}

static bool unpack(uint64_t number, const void *from, uint64_t bytes, void *user) {
    dsmc_row *row = &((run *)user)->rows[number];
    const double *at = from;
    uint64_t count = bytes / sizeof(dsmc_point);
    if (count > UINT32_MAX || !dsmc_row_reserve(row, (uint32_t)count))
        return false;
    row->count = (uint32_t)count;
    for (int k = 0; k < DSMC_PARTS && row->count > 0; k++) {
        memcpy(row->part[k], at, row->count * sizeof *at);
        at += row->count;
    }
    return true;
}

static void drop(uint64_t number, void *user) {
    dsmc_row_free(&((run *)user)->rows[number]);
}

static bool take(uint64_t to, uint64_t from, const void *data, uint64_t bytes, void *user) {
    dsmc_row *row = &((run *)user)->rows[to];
    const dsmc_point *points = data;
    (void)from;
    for (uint64_t i = 0; i < bytes / sizeof *points; i++)
        if (!dsmc_row_add(row, &points[i]))
            return false;
    return true;
}

/* --- a run --- */

/* End the program on all ranks. */
_Noreturn static void fail(const char *text) {
    fprintf(stderr, "kilter-dsmc-flow: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void must(kilter_status status, const kilter_error *error) {
    if (status != KILTER_OK)
        fail(error->text);
}

static dsmc_flow_options flow_options(const words *w) {
    return (dsmc_flow_options){.gas = w->gas == 0 ? dsmc_argon : dsmc_nitrogen,
                               .shape = (dsmc_shape)w->body,
                               .size = w->size,
                               .mach = w->mach,
                               .knudsen = w->knudsen,
                               .wall_ratio = w->wall_ratio,
                               .specular = w->wall == 1,
                               .collision_number = 5,
                               .columns = (uint32_t)w->columns,
                               .rows = (uint32_t)w->rows,
                               .particles = w->particles,
                               .seed = (uint64_t)w->seed};
}

static void open_run(run *r) {
    dsmc_flow_options o = flow_options(&r->set);
    kilter_error error;
    kilter_loop_options how = {
        .iterations = o.rows, .fixed = r->set.fixed, .name = "flow", .record = r->set.record};
    kilter_loop_content content = {bytes_of, pack, unpack, drop, r};
    r->rows = calloc(o.rows, sizeof *r->rows);
    if (!dsmc_flow_open(&r->flow, &o) || !r->rows)
        fail("making the plane: memory ran out");
    must(kilter_loop_open(MPI_COMM_WORLD, &how, &r->loop, &error), &error);
    must(kilter_loop_rows(r->loop, &content, &error), &error);
    must(kilter_loop_array(r->loop, o.columns * sizeof *r->cells, 0, (void **)&r->cells, &error), &error);
    must(kilter_loop_array(r->loop, o.columns * sizeof *r->sums, 0, (void **)&r->sums, &error), &error);
    must(kilter_loop_array(r->loop, sizeof *r->force, 0, (void **)&r->force, &error), &error);
    kilter_range own;
    for (size_t nth = 0; kilter_loop_mine(r->loop, nth, &own); nth++)
        for (uint64_t i = own.lo; i < own.hi; i++)
            if (!dsmc_flow_fill(&r->flow, (uint32_t)i, &r->rows[i], &r->cells[i * o.columns]))
                fail("filling the plane: memory ran out");
}

/* Post the particles that leave a row: one message for each row that gets some of these particles. */
static void post_leavers(run *r, uint64_t from) {
    dsmc_leavers *l = &r->flow.leavers;
    kilter_error error;
    while (l->count > 0) {
        uint32_t to = dsmc_row_of(&l->at[0]), together = 0;
        for (uint32_t i = 0; i < l->count; i++)
            if (dsmc_row_of(&l->at[i]) == to) {
                dsmc_point p = l->at[i];
                l->at[i] = l->at[together];
                l->at[together++] = p;
            }
        must(kilter_loop_post(r->loop, from, to, l->at, together * sizeof *l->at, &error), &error);
        l->count -= together;
        memmove(l->at, l->at + together, l->count * sizeof *l->at);
    }
}

static void do_row(run *r, uint64_t i, uint64_t step) {
    size_t columns = r->flow.options.columns;
    double unused = 0;
    bool samples = (double)step > r->set.settle;
    dsmc_row_state state = {.cells = &r->cells[i * columns],
                            .sums = samples ? &r->sums[i * columns] : NULL,
                            .force = samples ? &r->force[i] : &unused,
                            .collided = &r->collided};
    r->particle_steps += r->rows[i].count;
    if (!dsmc_flow_step(&r->flow, (uint32_t)i, step, &r->rows[i], &state))
        fail("moving particles: memory ran out");
    post_leavers(r, i);
}

static void note_owners(run *r, uint64_t step) {
    uint32_t bounds[r->ranks + 1];
    if (r->rank > 0 || !r->set.picture)
        return;
    memset(bounds, 0, sizeof bounds);
    for (uint32_t i = 0; i < r->flow.options.rows; i++)
        bounds[kilter_loop_owner(r->loop, i) + 1] = i + 1;
    for (int k = 1; k <= r->ranks; k++)
        bounds[k] = bounds[k] > bounds[k - 1] ? bounds[k] : bounds[k - 1];
    if (!dsmc_history_add(&r->history, step, bounds))
        fail("keeping the rows' ranks: memory ran out");
}

static void step(run *r, uint64_t number) {
    kilter_error error;
    must(kilter_loop_begin(r->loop, &error), &error);
    for (kilter_range range; kilter_loop_next(r->loop, &range);)
        for (uint64_t i = range.lo; i < range.hi; i++)
            do_row(r, i, number);
    must(kilter_loop_end(r->loop, &error), &error);
    must(kilter_loop_deliver(r->loop, take, r, &error), &error);
    note_owners(r, number);
}

/* --- printing the answer --- */

static uint64_t checksum(const void *data, size_t bytes) { /* FNV-1a */
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3;
    return hash;
}

static void draw(const run *r, const dsmc_sums *sums) {
    FILE *out = fopen(r->set.picture, "w");
    if (out)
        dsmc_draw(out, &r->flow, sums, r->set.steps - r->set.settle, (uint64_t)r->set.steps, &r->history);
    if (!out || ferror(out) || fclose(out) != 0) {
        perror(r->set.picture);
        fail("the picture cannot be written; give another path with --picture");
    }
}

static void say(const run *r) {
    kilter_loop_summary s;
    kilter_loop_summary_get(r->loop, &s);
    printf("{\"moves\":%llu,\"moved\":%llu,\"waited_s\":%.6g,\"moving_s\":%.6g,\"decision\":\"%s\"}\n",
           (unsigned long long)s.moves, (unsigned long long)s.moved, s.waited_s, s.moving_s, s.decision);
}

static void finish(run *r) {
    size_t cells = (size_t)r->flow.options.rows * r->flow.options.columns;
    dsmc_sums *whole = r->rank == 0 ? calloc(cells, sizeof *whole) : NULL;
    uint64_t all[2] = {0, 0}, mine[] = {r->particle_steps, r->collided};
    double force;
    kilter_error error;
    if (r->rank == 0 && !whole)
        fail("gathering the plane: memory ran out");
    must(kilter_loop_sum(r->loop, r->force, &force, &error), &error);
    must(kilter_loop_gather(r->loop, r->sums, 0, whole, &error), &error);
    MPI_Reduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (r->rank == 0) {
        double samples = r->set.steps - r->set.settle, each = (double)all[0] / (r->elapsed_s * r->ranks);
        printf("{\"program\":\"kilter-dsmc-flow\",\"ranks\":%d,\"steps\":%.0f,\"particles\":%.0f,\"elapsed_"
               "s\":%.6g,"
               "\"million_particle_steps_s_rank\":%.4g,\"collisions\":%llu,\"drag\":%.17g,\"checksum\":\"%"
               "016llx\"}\n",
               r->ranks, r->set.steps, (double)all[0] / r->set.steps, r->elapsed_s, each / 1e6,
               (unsigned long long)all[1], dsmc_drag(&r->flow, force, samples),
               (unsigned long long)checksum(whole, cells * sizeof *whole));
        if (r->set.picture)
            draw(r, whole);
        if (r->set.say)
            say(r);
    }
    free(whole);
}

static void close_run(run *r) {
    kilter_error error;
    must(kilter_loop_close(r->loop, &error), &error);
    for (uint32_t i = 0; i < r->flow.options.rows; i++)
        dsmc_row_free(&r->rows[i]);
    free(r->rows);
    dsmc_history_free(&r->history);
    dsmc_flow_close(&r->flow);
}

int main(int argc, char **argv) {
    run r = {.rank = 0};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            print_help();
            return 0;
        }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r.ranks);
    int code = read_words(argc, argv, &r.set, r.rank == 0 ? stderr : NULL);
    if (code == 0) {
        r.history.ranks = (uint32_t)r.ranks;
        open_run(&r);
        note_owners(&r, 0);
        MPI_Barrier(MPI_COMM_WORLD);
        double began_s = MPI_Wtime();
        for (uint64_t i = 1; i <= (uint64_t)r.set.steps; i++)
            step(&r, i);
        MPI_Barrier(MPI_COMM_WORLD);
        r.elapsed_s = MPI_Wtime() - began_s;
        finish(&r);
        close_run(&r);
    }
    MPI_Finalize();
    return code;
}
