/* Functions of all example programs with loops, plain and with Kilter. They read the arguments, adjust the
 * cost of iterations, and print the result. With the option --cost S, an iteration takes S seconds of CPU
 * time, as on a slower machine. Under a simulator, an iteration takes exactly S simulated seconds.
 */
#ifndef LOOP_PROGRAM_H
#define LOOP_PROGRAM_H

#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef KILTER_LOOP_H
static const bool WITH_KILTER = true;
#else
static const bool WITH_KILTER = false;
#endif

typedef struct settings {
    const char *program;
    double n, sweeps;
    double block;  /* number of columns in a block of the pipeline; 0: the program chooses */
    double cost_s; /* CPU seconds that an iteration takes on this rank; 0: as long as its work needs */
    double slow;   /* iterations on rank 0 take this many times as long as on other ranks; 0: equally long */
    bool check;    /* true: compare the result with the sequential program's result */
    const char *picture, *output;
    bool fixed, say; /* used only with Kilter. fixed: no rows move. say: print a second line with facts
                      * about balancing. */
    bool exact;      /* used only with Kilter: sums are exact */
    const char *record;
} settings;

/* --- arguments --- */

/* Print the reason on rank 0, and exit on all ranks. */
_Noreturn static inline void refuse(const settings *set, const char *word, const char *why) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fprintf(stderr, "%s: '%s': %s\n", set->program, word, why);
    MPI_Finalize();
    exit(2);
}

static inline double read_number(const settings *set, const char *word, double least, double most,
                                 bool whole) {
    char *end = NULL, why[80];
    double value = strtod(word, &end);
    snprintf(why, sizeof why, "not a %snumber from %g to %g", whole ? "whole " : "", least, most);
    if (end == word || *end || !(value >= least && value <= most) || (whole && value != floor(value)))
        refuse(set, word, why);
    return value;
}

static inline settings read_settings(int argc, char **argv, settings set) {
    enum { MOST_ROWS = 20000 }; /* a larger grid has more elements than MPI can count with an int */
    const struct {
        const char *name;
        bool *flag, kilter;
        const char **text;
        double *number, most;
        bool whole;
    } options[] = {
        {"--check", .flag = &set.check},
        {"--cost", .number = &set.cost_s, .most = 1e6},
        {"--slow", .number = &set.slow, .most = 1e6},
        {"--block", .number = &set.block, .most = MOST_ROWS, .whole = true},
        {"--picture", .text = &set.picture},
        {"--output", .text = &set.output},
        {"--fixed", .flag = &set.fixed, .kilter = true},
        {"--say", .flag = &set.say, .kilter = true},
        {"--exact", .flag = &set.exact, .kilter = true},
        {"--record", .text = &set.record, .kilter = true},
    };
    const size_t count = sizeof options / sizeof options[0];
    int numbers = 0, rank;
    for (int i = 1; i < argc; i++) {
        size_t o = 0;
        while (o < count && (strcmp(argv[i], options[o].name) != 0 || (options[o].kilter && !WITH_KILTER)))
            o++;
        if (o == count && argv[i][0] == '-')
            refuse(&set, argv[i], "there is no such option");
        else if (o == count && numbers == 2)
            refuse(&set, argv[i], "give at most a size and a number of sweeps");
        else if (o == count && numbers++ == 0)
            set.n = read_number(&set, argv[i], 1, MOST_ROWS, true);
        else if (o == count)
            set.sweeps = read_number(&set, argv[i], 0, 1e9, true);
        else if (options[o].flag)
            *options[o].flag = true;
        else if (i + 1 == argc)
            refuse(&set, argv[i], "the value of this option is missing");
        else if (options[o].text)
            *options[o].text = argv[++i];
        else
            *options[o].number = read_number(&set, argv[++i], 0, options[o].most, options[o].whole);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && set.slow > 0)
        set.cost_s *= set.slow;
    return set;
}

/* --- data --- */

static inline void *allocate(size_t rows, size_t bytes) {
    void *memory = calloc(rows + !rows, bytes + !bytes);
    if (!memory) {
        fprintf(stderr, "no memory for %zu rows of %zu bytes\n", rows, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    return memory;
}

static inline uint64_t mix(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* Return a number from 0 to below 1, the same on every machine. */
static inline double chance(uint64_t x) {
    return (double)(mix(x) >> 11) * 0x1p-53;
}

/* --- cost --- */

#ifdef SMPI_H /* under SimGrid */
static inline double cpu_s(const settings *set) {
    (void)set;
    return 0;
}

static inline void pay(const settings *set, double begun_s, double iterations) {
    (void)begun_s;
    if (set->cost_s * iterations > 0)
        /* a simulated host of 1e9 flop/s has speed 1 */
        smpi_execute_flops_benched(set->cost_s * iterations * 1e9);
}
#else
/* Return the CPU time used so far; without --cost, return 0. */
static inline double cpu_s(const settings *set) {
    struct timespec t = {.tv_sec = 0};
    if (set->cost_s > 0)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Use CPU time until `iterations` iterations have taken --cost seconds each. begun_s: the value of cpu_s()
 * when the iterations began. */
static inline void pay(const settings *set, double begun_s, double iterations) {
    while (set->cost_s > 0 && cpu_s(set) < begun_s + set->cost_s * iterations)
        ;
}
#endif

/* --- printing the result --- */

static inline uint64_t checksum(const void *data, size_t bytes) { /* FNV-1a */
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; data && i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3;
    return hash;
}

/* Print the result as a line of JSON, on rank 0. If the sequential program's result is given, compare with
 * it. Return 1 if the results differ, else 0. */
static inline int finish(const settings *set, double elapsed_s, const void *whole, const void *sequential,
                         size_t bytes) {
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bool right = !sequential || (whole && memcmp(whole, sequential, bytes) == 0);
    printf("{\"program\":\"%s\",\"kilter\":%s,\"ranks\":%d,\"n\":%.0f,\"sweeps\":%.0f,\"elapsed_s\":%.9g,"
           "\"checksum\":\"%016llx\"%s}\n",
           set->program, WITH_KILTER ? "true" : "false", ranks, set->n, set->sweeps, elapsed_s,
           (unsigned long long)checksum(whole, bytes),
           !sequential ? ""
           : right     ? ",\"right\":true"
                       : ",\"right\":false");
    return !right;
}

#ifdef KILTER_LOOP_H
static inline void must(kilter_status status, const kilter_error *error) {
    if (status != KILTER_OK) {
        fprintf(stderr, "%s\n", error->text);
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
}

/* If the option --say is given, print a second line with facts about balancing. */
static inline void say_summary(const settings *set, const kilter_loop *loop) {
    kilter_loop_summary s;
    kilter_loop_summary_get(loop, &s);
    if (set->say)
        printf("{\"executions\":%llu,\"rounds\":%llu,\"moves\":%llu,\"moved\":%llu,\"block\":%llu,\"waited_"
               "s\":%.6g,"
               "\"moving_s\":%.6g,\"gained_s\":%.6g,\"came_s\":%.6g,\"decision\":\"%s\"}\n",
               (unsigned long long)s.executions, (unsigned long long)s.rounds, (unsigned long long)s.moves,
               (unsigned long long)s.moved, (unsigned long long)s.block, s.waited_s, s.moving_s, s.gained_s,
               s.came_s, s.decision);
}
#endif

#endif
