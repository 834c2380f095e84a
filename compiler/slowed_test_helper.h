/* Make the iterations of a program from kilter cc take more CPU time, as the options --cost and --slow of the
 * examples do. The compiler reads this header before the program's source. An iteration takes SLOWED_COST_S
 * seconds, and on rank 0 SLOWED times as long. */
#ifndef KC_SLOWED_TEST_HELPER_H
#define KC_SLOWED_TEST_HELPER_H

#include <kilter/loop.h>
#include <stdlib.h>
#include <time.h>

/* start time of the loop body, and the number of rows that it computes */
static double slowed_from_s, slowed_rows;

static inline double slowed_cpu_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double slowed_number(const char *name) {
    const char *text = getenv(name);
    return text ? atof(text) : 0;
}

static inline void slowed_pay(void) {
    static double cost_s = -1;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (cost_s < 0)
        cost_s = slowed_number("SLOWED_COST_S") * (rank == 0 ? slowed_number("SLOWED") : 1);
    while (slowed_cpu_s() < slowed_from_s + cost_s * slowed_rows)
        ;
    slowed_rows = 0;
}

static inline bool slowed_give(bool got, double rows) {
    slowed_rows = got ? rows : 0;
    slowed_from_s = slowed_cpu_s();
    return got;
}

static inline bool slowed_next(kilter_loop *loop, kilter_range *r) {
    slowed_pay();
    bool got = kilter_loop_next(loop, r);
    return slowed_give(got, got ? (double)(r->hi - r->lo) : 0);
}

static inline bool slowed_next_block(kilter_loop *loop, double inner, kilter_range *r, kilter_range *b) {
    slowed_pay();
    bool got = kilter_loop_next_block(loop, r, b);
    return slowed_give(got, got ? (double)(r->hi - r->lo) * (double)(b->hi - b->lo) / inner : 0);
}

#define kilter_loop_next                   slowed_next
#define kilter_loop_next_block(loop, r, b) slowed_next_block(loop, slowed_number("SLOWED_INNER"), r, b)

#endif
