/* kilter-dsmc relax: simulate how the rotation of a gas comes into equilibrium with its translation, in many
 * independent realisations. A task is a realisation. The result of a task is the two temperatures at each
 * sample. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kilter/kilter.h>

#include "box.h"
#include "options.h"

enum { MOST_SAMPLES = 10000 };
static const double MOST_COLLISIONS = 10; /* greatest mean number of collisions of a molecule in a step */

/* The description of a realisation, which is the shared data of the run. */
typedef struct setup {
    dsmc_start start;
    /* steps: number of time steps between two samples; samples: number of samples after the first */
    uint64_t steps, samples;
    double step_s;
} setup;

typedef struct sample {
    double translation_k, rotation_k;
} sample;

/* --- a realisation --- */

static sample look(const dsmc_box *box) {
    return (sample){dsmc_translation_k(box), dsmc_rotation_k(box)};
}

static int realise(const kilter_task *task, kilter_result *result, void *state) {
    (void)state;
    setup s = *(const setup *)task->shared.data;
    s.start.realisation = task->index;
    dsmc_box box;
    if (!dsmc_box_open(&box, &dsmc_nitrogen, &s.start))
        return kilter_result_fail(result, "making %u particles: memory ran out", (unsigned)s.start.particles);
    int code = 0;
    for (uint64_t i = 0; i <= s.samples && code == 0; i++) {
        for (uint64_t k = 0; k < s.steps && i > 0; k++)
            dsmc_box_step(&box, s.step_s);
        sample now = look(&box);
        code = kilter_result_put(result, &now, sizeof now);
    }
    dsmc_box_close(&box);
    return code;
}

/* --- exact sums for the answer, which do not depend on the order of results --- */

typedef struct moments {
    kilter_sum translation, rotation, squares; /* squares: sum of the squared rotational temperatures */
} moments;

typedef struct answer {
    setup of;
    moments *at; /* at[sample]: sums over all realisations */
    uint64_t realisations, failed;
} answer;

static void add(const kilter_outcome *outcome, void *user) {
    answer *a = user;
    if (outcome->error) {
        if (a->failed++ == 0)
            fprintf(stderr, "kilter-dsmc: realisation %llu: %s\n", (unsigned long long)outcome->index,
                    outcome->error);
        return;
    }
    const sample *samples = outcome->result.data;
    for (uint64_t i = 0; i <= a->of.samples; i++) {
        kilter_sum_add(&a->at[i].translation, samples[i].translation_k);
        kilter_sum_add(&a->at[i].rotation, samples[i].rotation_k);
        kilter_sum_add(&a->at[i].squares, samples[i].rotation_k * samples[i].rotation_k);
    }
    a->realisations++;
}

typedef struct row {
    double time_s, translation_k, rotation_k,
        error_k; /* error_k: standard error of rotation_k; NAN: not known */
} row;

static row row_of(const answer *a, uint64_t i) {
    double n = (double)a->realisations, mean = kilter_sum_value(&a->at[i].rotation) / n;
    double variance = fmax(kilter_sum_value(&a->at[i].squares) / n - mean * mean, 0);
    return (row){.time_s = (double)(i * a->of.steps) * a->of.step_s,
                 .translation_k = kilter_sum_value(&a->at[i].translation) / n,
                 .rotation_k = mean,
                 .error_k = n > 1 ? sqrt(variance / (n - 1)) : NAN};
}

static void print_table(const answer *a) {
    printf("%12s  %14s  %14s  %10s\n", "time s", "translation K", "rotation K", "error K");
    for (uint64_t i = 0; i <= a->of.samples; i++) {
        row r = row_of(a, i);
        printf("%12.4g  %14.6g  %14.6g  ", r.time_s, r.translation_k, r.rotation_k);
        if (isnan(r.error_k))
            printf("%10s\n", "-");
        else
            printf("%10.3g\n", r.error_k);
    }
}

static void print_json(const answer *a) {
    printf("{\"realisations\":%llu,\"samples\":[", (unsigned long long)a->realisations);
    for (uint64_t i = 0; i <= a->of.samples; i++) {
        row r = row_of(a, i);
        printf("%s{\"time_s\":%.17g,\"translation_k\":%.17g,\"rotation_k\":%.17g,\"error_k\":", i ? "," : "",
               r.time_s, r.translation_k, r.rotation_k);
        if (isnan(r.error_k))
            printf("null}");
        else
            printf("%.17g}", r.error_k);
    }
    printf("]}\n");
}

/* --- reading the command line --- */

typedef struct words {
    double realisations, particles, density, translation, rotation, collisions, steps, samples, step_s, seed;
    bool json;
} words;

#define NUMBER(member) .kind = DSMC_NUMBER, .at = offsetof(words, member)
#define WHOLE(member)  .kind = DSMC_WHOLE, .at = offsetof(words, member)
static const dsmc_option table[] = {
    {"realisations", "number of independent realisations, each a task (default 100)", WHOLE(realisations),
     .least = 1, .most = 1e9},
    {"particles", "particles in a realisation (default 10000)", WHOLE(particles), .least = 2, .most = 1e9},
    {"density", "molecules in a cubic metre (default 2.5e25)", NUMBER(density), .least = 1, .most = 1e30},
    {"translation", "temperature of the translation at the start, K (default 1000)", NUMBER(translation),
     .least = 1e-3, .most = 1e6},
    {"rotation", "temperature of the rotation at the start, K (default 100)", NUMBER(rotation), .least = 1e-3,
     .most = 1e6},
    {"collisions", "rotational collision number Z (default 5)", NUMBER(collisions), .least = 1.92,
     .most = 1e9},
    {"steps", "time steps between two samples (default 10)", WHOLE(steps), .least = 1, .most = 1e9},
    {"samples", "samples after the first (default 20)", WHOLE(samples), .least = 1, .most = MOST_SAMPLES},
    {"step-s", "seconds of a time step (default 2e-11)", NUMBER(step_s), .least = 1e-30, .most = 1},
    {"seed", "the same seed gives the same answer (default 1)", WHOLE(seed), .least = 0,
     .most = 9007199254740992},
    {"json", "print one JSON object", .kind = DSMC_FLAG, .at = offsetof(words, json)},
};
static const dsmc_options options = {"kilter-dsmc", table, sizeof table / sizeof *table};

static void print_help(void) {
    printf(
        "usage: kilter-dsmc relax [options]\n"
        "Simulate a box of nitrogen whose translation and rotation have different temperatures, by direct\n"
        "simulation Monte Carlo. Print both temperatures over time, as means of all realisations.\n\n");
    dsmc_print_options(&options, stdout);
    printf("\n");
}

static int misuse(const char *before, const char *word, const char *after) {
    fprintf(stderr, "kilter-dsmc: %s%.60s%s; kilter-dsmc --help lists the options\n", before, word, after);
    return 2;
}

/* Refuse a time step that is far longer than the time between collisions. In such a step the same pairs would
 * collide many times, and computing it would take too long. */
static int check_step(const words *w) {
    double hotter = fmax(w->translation, w->rotation);
    double each = w->step_s * dsmc_collision_rate(&dsmc_nitrogen, w->density, hotter);
    if (each <= MOST_COLLISIONS)
        return 0;
    fprintf(stderr,
            "kilter-dsmc: a molecule would collide %.3g times in a step of %g s, which is too long; give a "
            "shorter --step-s\n",
            each, w->step_s);
    return 2;
}

/* Check the command and the values. Return the exit code, which is 0 if there is no error. */
static int read_words(int count, char **word, words *w) {
    if (count < 1)
        return misuse("the command is missing", "", ": give relax");
    if (strcmp(word[0], "flow") == 0)
        return misuse("", "flow",
                      " is a program of its own, because it needs MPI: kilter-dsmc-flow-openmpi or -mpich");
    if (strcmp(word[0], "relax") != 0)
        return misuse("there is no command '", word[0], "'");
    int code = dsmc_read_options(&options, count - 1, word + 1, w, stderr);
    return code == 0 ? check_step(w) : code;
}

static setup setup_of(const words *w) {
    return (setup){.start = {.particles = (uint32_t)w->particles,
                             .density = w->density,
                             .translation_k = w->translation,
                             .rotation_k = w->rotation,
                             .collisions = w->collisions,
                             .seed = (uint64_t)w->seed},
                   .steps = (uint64_t)w->steps,
                   .samples = (uint64_t)w->samples,
                   .step_s = w->step_s};
}

/* --- running the farm --- */

static int finish(answer *a, const words *w) {
    if (a->realisations > 0)
        (w->json ? print_json : print_table)(a);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("kilter-dsmc: printing the answer");
        return 1;
    }
    return a->failed > 0;
}

static int relax(kilter_farm *farm, const words *w, const char *program) {
    answer a = {.of = setup_of(w)};
    kilter_error error = {KILTER_ERR_MEMORY, "keeping the samples: memory ran out"};
    a.at = calloc(a.of.samples + 1, sizeof *a.at);
    kilter_run run = {
        .tasks = (uint64_t)w->realisations, .shared = {&a.of, sizeof a.of}, .done = add, .user = &a};
    kilter_status status = a.at ? kilter_farm_run(farm, &run, &error) : KILTER_ERR_MEMORY;
    int code = status == KILTER_OK ? finish(&a, w) : kilter_exit(program, &error);
    free(a.at);
    return code;
}

int main(int argc, char **argv) {
    words w = {100, 10000, 2.5e25, 1000, 100, 5, 10, 20, 2e-11, 1, false};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            print_help();
            kilter_farm_usage(stdout);
            return 0;
        }
    kilter_farm *farm;
    kilter_error error;
    if (kilter_farm_open(&(kilter_farm_options){.work = realise}, &argc, argv, &farm, &error) != KILTER_OK)
        return kilter_exit(argv[0], &error);
    int code = read_words(argc - 1, argv + 1, &w);
    if (code == 0)
        code = relax(farm, &w, argv[0]);
    kilter_farm_close(farm, NULL);
    return code;
}
