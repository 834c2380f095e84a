/* Random platforms and tasks for benchmarks in virtual time. */
#ifndef KL_BENCH_PLATFORMS_H
#define KL_BENCH_PLATFORMS_H

#include <stdbool.h>
#include <stdint.h>

enum { SPEC_BYTES = 512 };

typedef struct platform {
    uint64_t seed;
    char hosts[SPEC_BYTES], tasks[SPEC_BYTES];
    bool steady; /* true: no host's speed changes */
} platform;

/* The range from which platforms are drawn. The logarithms of all numbers are uniform. */
typedef struct platform_range {
    uint32_t most_workers;          /* workers: 2 to this number; 0: up to 3 groups of 1 to 8 */
    double least_tasks, most_tasks; /* tasks for each worker */
    double least_s, most_s;         /* mean seconds of a task */
} platform_range;

/* Draw a platform. The same seed always gives the same one. */
platform platform_of(uint64_t seed, const platform_range *range);
/* Draw the platform of this seed, but with other times at which the hosts' speeds change. run 0: the same
 * times. */
platform platform_again(uint64_t seed, const platform_range *range, uint64_t run);

/* Return whether the first argument is this option. If it is, remove it from the list. */
bool take_option(int *argc, char ***argv, const char *option);
/* Convert the text to a whole number. If it is no such number, or greater than `most`, print the usage and
 * end the program with exit code 2. */
uint64_t take_number(const char *text, uint64_t most, const char *usage);

#endif
