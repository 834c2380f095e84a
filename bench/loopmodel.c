/* Print forecasts of the loop models in src/steer, or simulate loops under round-robin scheduling. The script
 * tools/paper2 calls this program in one of four ways:
 *
 *   loopmodel grain RANKS ELEMENTS SEQ_S FIXED_S INCR_S BLOCK…: the model of a pipeline
 *   loopmodel swing RANKS SPEED ON_S OFF_S REACT_ON_S REACT_OFF_S MOVE_S: the model of a periodic load
 *   loopmodel pipeline RANKS LOADED QUANTA BLOCKS…: simulate the efficiency of a pipeline
 *   loopmodel barrier RANKS LOADED QUANTA PARTS…: simulate a loop with a barrier after each part of its work
 *
 * The simulations repeat figures 11 and 13 of Siegell and Steenkiste. LOADED of the ranks share their
 * processor with another process, which always computes. On such a processor, the two processes take turns; a
 * turn is one quantum. Ranks have shares of work in proportion to their speeds. All work together takes
 * QUANTA quanta on one processor, and messages take no time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "steer/steer.h"

enum { MOST_RANKS = 64 };

static const double NOTHING = 1e-9; /* tolerance for sums of times, in quanta */

/* A processor; times are in quanta (time slices). A process that waits for a message loses the remaining part
 * of its quantum. Then it waits until the other process's quantum ends. */
typedef struct processor {
    bool loaded;
    /* until: time at which the rank ran last; left: time that is left of the rank's present quantum */
    double until, left;
} processor;

static double start_at(processor *p, double ready) {
    bool waited = ready > p->until + NOTHING;
    if (!p->loaded || (!waited && p->left > NOTHING))
        return fmax(ready, p->until);
    p->left = 1;
    return p->until + fmax(1, ceil(ready - p->until - NOTHING));
}

static double run(processor *p, double ready, double work) {
    double at = start_at(p, ready);
    while (p->loaded && work > p->left + NOTHING) {
        work -= p->left;
        at += p->left + 1;
        p->left = 1;
    }
    p->left -= p->loaded ? work : 0;
    p->until = at + work;
    return p->until;
}

typedef struct scene {
    uint32_t ranks, loaded;
    double quanta;
    processor at[MOST_RANKS];
} scene;

/* Set all processors to the start of a simulation. The quanta of the loads begin at different times. */
static void set_scene(scene *s) {
    for (uint32_t r = 0; r < s->ranks; r++)
        s->at[r] = (processor){.loaded = r < s->loaded, .until = 0, .left = 1 - (double)r / s->ranks};
}

/* return the computing power of all ranks, in processors; a loaded rank has half a processor */
static double has(const scene *s) {
    return s->ranks - s->loaded / 2.0;
}

static double work_of(const scene *s, uint32_t rank) {
    return s->quanta / has(s) / (rank < s->loaded ? 2 : 1);
}

static double pipeline(scene *s, uint64_t blocks) {
    double ready[MOST_RANKS] = {0};
    set_scene(s);
    for (uint64_t b = 0; b < blocks; b++)
        for (uint32_t r = 0; r < s->ranks; r++)
            ready[r] = run(&s->at[r], r > 0 ? ready[r - 1] : 0, work_of(s, r) / (double)blocks);
    return ready[s->ranks - 1];
}

static double barriers(scene *s, uint64_t parts) {
    double last = 0;
    set_scene(s);
    for (uint64_t b = 0; b < parts; b++) {
        double ready = last;
        for (uint32_t r = 0; r < s->ranks; r++)
            last = fmax(last, run(&s->at[r], ready, work_of(s, r) / (double)parts));
    }
    return last;
}

/* --- the four commands grain, swing, pipeline and barrier --- */

static double number(const char *text) {
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0)) {
        fprintf(stderr, "loopmodel: '%s' is not a number of at least 0\n", text);
        exit(2);
    }
    return value;
}

static void grain(int count, char **words) {
    kl_pipeline p = {.ranks = (uint32_t)number(words[0]),
                     .elements = (uint64_t)number(words[1]),
                     .seq_s = number(words[2]),
                     .fixed_s = number(words[3]),
                     .incr_s = number(words[4])};
    printf("best %llu\n", (unsigned long long)kl_pipeline_block(&p));
    for (int i = 5; i < count; i++)
        printf("%s %.6f\n", words[i],
               kl_pipeline_efficiency(&p, ceil((double)p.elements / number(words[i]))));
}

static void swing(char **words) {
    kl_swing s = {.ranks = (uint32_t)number(words[0]),
                  .speed = number(words[1]),
                  .on_s = number(words[2]),
                  .off_s = number(words[3]),
                  .react_on_s = number(words[4]),
                  .react_off_s = number(words[5]),
                  .move_s = number(words[6])};
    printf("%.6f %.6f\n", kl_swing_efficiency(&s), kl_swing_unmoved(&s));
}

static void quanta(double (*takes)(scene *, uint64_t), int count, char **words) {
    scene s = {.ranks = (uint32_t)number(words[0]),
               .loaded = (uint32_t)number(words[1]),
               .quanta = number(words[2])};
    if (s.ranks < 1 || s.ranks > MOST_RANKS || s.loaded > s.ranks) {
        fprintf(stderr, "loopmodel: give 1 to %d ranks, and at most as many loaded ranks as ranks\n",
                MOST_RANKS);
        exit(2);
    }
    for (int i = 3; i < count; i++)
        printf("%s %.6f\n", words[i], s.quanta / (has(&s) * takes(&s, (uint64_t)number(words[i]))));
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int count = argc - 2;
    if (strcmp(what, "grain") == 0 && count >= 5)
        grain(count, argv + 2);
    else if (strcmp(what, "swing") == 0 && count == 7)
        swing(argv + 2);
    else if (strcmp(what, "pipeline") == 0 && count >= 3)
        quanta(pipeline, count, argv + 2);
    else if (strcmp(what, "barrier") == 0 && count >= 3)
        quanta(barriers, count, argv + 2);
    else {
        fprintf(stderr, "usage: loopmodel grain|swing|pipeline|barrier NUMBER… (bench/loopmodel.c explains "
                        "the numbers)\n");
        return 2;
    }
    return 0;
}
