/* Random platforms and tasks for benchmarks in virtual time. */
#ifndef KL_BENCH_PLATFORMS_H
#define KL_BENCH_PLATFORMS_H

#include <stdbool.h>
#include <stdint.h>

enum { SPEC_BYTES = 512 };

typedef struct platform {
    uint64_t seed;
    char hosts[SPEC_BYTES], tasks[SPEC_BYTES];
    bool steady; /* true: every host keeps its speed */
} platform;

/* The ranges from which platforms and tasks are drawn. The logarithms of the drawn numbers are uniform. */
typedef struct platform_range {
    uint32_t most_workers; /* largest number of workers; the least is 2. 0: draw up to 3 groups of 1 to 8
                            * workers */
    double least_tasks, most_tasks; /* range of the number of tasks per worker */
    double least_s, most_s;         /* range of the mean time of a task, in seconds */
} platform_range;

/* Draw a platform. The same seed always gives the same platform. */
platform platform_of(uint64_t seed, const platform_range *range);
/* Draw the platform of this seed, but let the hosts' speeds change at other times, which depend on `run`.
 * With run 0, they change at the same times as in platform_of(). */
platform platform_again(uint64_t seed, const platform_range *range, uint64_t run);

/* Return whether the first argument is `option`. If it is, remove it from the arguments. */
bool take_option(int *argc, char ***argv, const char *option);
/* Convert the text to a whole number. If the text is not a number up to `most`, print the usage and end
 * the program with exit code 2. */
uint64_t take_number(const char *text, uint64_t most, const char *usage);

#endif
