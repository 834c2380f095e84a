/* Choose which of Kilter's methods would help a watched program, and say why. */
#include <math.h>
#include <stdio.h>

#include "watch/watch_private.h"

static const double WORTH =
    0.05; /* a method is worth a change of the program if it saves at least this part of the elapsed time */
static const double DEALS =
    1.0 / 8; /* a rank that gives out work receives from any source in at least this part of its calls */

const double kl_watch_whole_core = 0.95;

const char *kl_watch_way_name(kl_watch_way way) {
    static const char *const NAMES[] = {"nothing", "loop", "farm"};
    return NAMES[way];
}

static double gain_of(kl_watch_range range, double elapsed_s) {
    return elapsed_s > 0 ? 1 - (range.least_s + range.most_s) / 2 / elapsed_s : 0;
}

/* Find a rank that gives out work: it receives from any rank and computes little. Return the number of ranks
 * if there is no such rank. */
static uint32_t dealer_of(const kl_watch_rank *ranks, uint32_t count) {
    double sum_s = 0;
    for (uint32_t r = 0; r < count; r++)
        sum_s += ranks[r].useful_s;
    for (uint32_t r = 0; r < count && count > 2; r++) {
        double others_s = (sum_s - ranks[r].useful_s) / (double)(count - 1);
        if (ranks[r].useful_s < others_s / 2 && (double)ranks[r].any_source > DEALS * (double)ranks[r].calls)
            return r;
    }
    return count;
}

/* Return the name of the MPI function that takes most time, summed over the calls from one place of one rank.
 */
static const char *busiest(const kl_watch_rank *ranks, uint32_t count) {
    const char *call = "MPI";
    double most_s = 0;
    for (uint32_t r = 0; r < count; r++)
        for (size_t i = 0; i < ranks[r].place_count; i++)
            if (ranks[r].places[i].mpi_s > most_s) {
                most_s = ranks[r].places[i].mpi_s;
                call = ranks[r].places[i].call;
            }
    return call;
}

static void say_nothing(const kl_watch_rank *ranks, kl_watch_found *f) {
    f->way = KL_WATCH_NOTHING;
    if (f->ranks == 1)
        snprintf(f->reason, sizeof f->reason, "a single rank waits for no other rank");
    else if (1 - f->parallel < WORTH)
        snprintf(f->reason, sizeof f->reason,
                 "the ranks compute %.1f %% of the time, so there is little to gain", 100 * f->parallel);
    else if (f->lost_fast >= WORTH)
        snprintf(f->reason, sizeof f->reason,
                 "a different rank is late in each iteration, so shares cannot be chosen in advance; smaller "
                 "iterations between waits, or tasks of a farm, would help");
    else
        snprintf(
            f->reason, sizeof f->reason,
            "even shares would gain less than %.0f %%; the time goes into communication, most of it in %s",
            100 * WORTH, busiest(ranks, f->ranks));
}

/* Return the mean part of its core that a rank gets. */
static double mean_share(const kl_watch_rank *ranks, uint32_t count) {
    double sum = 0;
    for (uint32_t r = 0; r < count; r++)
        sum += ranks[r].core_share > 0 ? ranks[r].core_share : 1;
    return sum / (double)count;
}

static void say_loop(const kl_watch_rank *ranks, bool follows, kl_watch_found *f) {
    const kl_watch_rank *slow = &ranks[f->slowest];
    char why[160];
    f->way = KL_WATCH_LOOP;
    if (follows)
        snprintf(why, sizeof why, "the slowest rank changes in the course of the run");
    else if (slow->core_share < kl_watch_whole_core * mean_share(ranks, f->ranks))
        snprintf(why, sizeof why, "rank %u gets less of its core than others, %.0f %%", slow->rank,
                 100 * slow->core_share);
    else
        snprintf(why, sizeof why, "rank %u computes longest in the whole run", slow->rank);
    snprintf(f->reason, sizeof f->reason,
             "an iteration repeats and %s; a loop of Kilter moves rows to the ranks that wait", why);
}

void kl_watch_advise(const kl_watch_rank *ranks, kl_watch_found *f) {
    double even = gain_of(f->even, f->elapsed_s), follow = gain_of(f->follow, f->elapsed_s);
    uint32_t dealer = dealer_of(ranks, f->ranks);
    if (f->ranks > 1 && dealer < f->ranks) {
        f->way = KL_WATCH_FARM;
        snprintf(
            f->reason, sizeof f->reason,
            "rank %u receives from any rank and computes little, so it deals work; a farm of Kilter deals "
            "by measured speeds and its master needs no core",
            ranks[dealer].rank);
    } else if (f->ranks == 1 || fmax(even, follow) < WORTH)
        say_nothing(ranks, f);
    else if (f->iterations > 0)
        say_loop(ranks, follow >= WORTH && follow > even + WORTH, f);
    else {
        f->way = KL_WATCH_FARM;
        snprintf(
            f->reason, sizeof f->reason,
            "ranks wait for rank %u and no iteration repeats; if the work can be cut into independent tasks, "
            "a farm of Kilter deals them by measured speeds",
            ranks[f->slowest].rank);
    }
}
