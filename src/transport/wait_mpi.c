/* How an MPI rank waits for messages. MPI cannot sleep until a message comes, so a rank checks again and
 * again. Between two checks it spins, yields or sleeps. A rank with a core for itself spins, which is
 * fastest. With more ranks than cores and no other processes, a rank yields to the other ranks. If Open MPI
 * itself yields in each check, a rank keeps checking in short waits, as plain MPI does. Its first check has
 * then given away the time slice already, so sleeping would only add the time to wake. */
/* On a core that it shares with other processes, a rank usually sleeps. Spinning would use up CPU time that
 * the rank needs when the message comes. Yielding would give the core away for a whole time slice. A thread
 * that slept gets the core at once when it is woken. */
#include "transport/wait_mpi.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    LOOKS = 3,     /* number of checks at the beginning of a wait, before the rank first sleeps or yields */
    LAST_LOOKS = 2 /* number of checks between marking the rank as asleep and sleeping */
};

/* mean wait in seconds below which the rank spins at first, even where it would otherwise sleep */
static const double SHORT_WAIT_S = 15e-6;
/* if the mean wait is below SHORT_WAIT_S, the rank spins for at most this many seconds, and then sleeps */
static const double SHORT_SPIN_S = 30e-6;
/* if MPI yields in each check, a rank that would otherwise sleep spins for at most this many seconds */
static const double YIELDING_SPIN_S = 5e-4;
static const double WAIT_MEMORY = 0.1; /* weight of the newest wait in the mean of waits */
/* a wait longer than this many seconds does not count in the mean, because the sending rank could not run or
 * has more work */
static const double LONG_WAIT_S = 1e-3;

/* Without doorbells, a nap takes NAP_PART of the time waited so far, within limits. After REST_AFTER_S
 * seconds of waiting, the upper limit is LONGEST_REST_S. */
static const double NAP_PART = 0.125, SHORTEST_NAP_S = 20e-6, LONGEST_NAP_S = 1e-3;
static const double LONGEST_REST_S = 2e-3, REST_AFTER_S = 0.05;
/* With doorbells, a sleep lasts at most SLEEP_PART of the time waited so far, within limits. Sleeps must end
 * without a ring, too: MPI may need several checks for one message, and a failed rank rings no bell. */
static const double SLEEP_PART = 0.5, SHORTEST_SLEEP_S = 2e-4, LONGEST_SLEEP_S = 5e-3;
static const unsigned long TIMER_SLACK_NS = 1000;

const bool kl_mpi_ranks_die = true;

/* Return whether MPI yields the core when it checks for messages and finds none. Open MPI does so if its
 * launcher started more ranks than there are cores, unless OMPI_MCA_mpi_yield_when_idle says otherwise. */
static bool mpi_yields(void) {
#ifdef OPEN_MPI
    const char *set = getenv("OMPI_MCA_mpi_yield_when_idle");
    if (!set)
        set = getenv("OMPI_MCA_mpi_oversubscribe");
    return set && (strcmp(set, "1") == 0 || strcmp(set, "true") == 0);
#else
    return false;
#endif
}

void kl_mpi_wait_begin(kl_mpi_wait *wait) {
    *wait = (kl_mpi_wait){.ticket = MPI_REQUEST_NULL, .meter = {-1, -1}, .mpi_yields = mpi_yields()};
    kl_mpi_traffic(wait);
}

void kl_mpi_wait_end(kl_mpi_wait *wait) {
    kl_core_meter_close(&wait->meter);
    kl_bells_close(wait->bells);
    wait->bells = NULL;
}

/* --- the part of its core that the rank gets --- */

static void look_at_crowd(kl_mpi_wait *wait, double now_s, double run_s) {
    if (!kl_crowd_due(&wait->crowd, now_s))
        return;
    kl_crowd_sample s = {.now_s = now_s, .cores = kl_bells_cores(wait->bells)};
    s.used_s = kl_bells_used(wait->bells, &s.processes);
    s.idle_s = kl_unpinned_idle_s(&wait->meter);
    s.threads_s = kl_process_cpu_s() - run_s;
    kl_crowd_add(&wait->crowd, &s);
}

/* Pin the rank to its core while other processes use cores that the ranks need. Otherwise the system lets
 * ranks change places, and with them the ranks' speeds. */
static void pin_core(kl_mpi_wait *wait, double now_s) {
    kl_core_share *core = &wait->core;
    kl_pin_sample s = {.now_s = now_s,
                       .known = wait->crowd.known,
                       .shared = core->mode == KL_CORE_SHARED,
                       .threads = wait->crowd.threads,
                       .others = wait->crowd.others,
                       .idle = wait->crowd.idle,
                       .spare = kl_bells_spare_cores(wait->bells, wait->first)};
    bool wanted = kl_pin_wanted(&wait->pin, &s), pinned = wait->pin.pinned;
    if (pinned && !wanted)
        kl_bells_unpin(wait->bells);
    wait->pin.pinned = wanted && (pinned || kl_bells_pin(wait->bells));
    if (wait->pin.pinned != pinned)
        core->idle_from.idle_s = -1; /* idle times are those of other cores now */
}

/* Begin to measure anew. */
static void forget_core(kl_mpi_wait *wait, double now_s) {
    kl_bells_unpin(wait->bells);
    wait->core = (kl_core_share){.share = 1, .last.now_s = now_s};
    wait->crowd = (kl_crowd){0};
    wait->pin = (kl_pin){0};
    wait->measured = false;
}

void kl_mpi_look_at_core(kl_mpi_wait *wait, double now_s) {
    kl_core_sample s = {.now_s = now_s, .waited_s = wait->waited_s, .idle_s = -1};
    if (!kl_core_share_due(&wait->core, now_s))
        return;
    if (wait->thread != gettid()) {
        /* measure the thread that waits now, which may not be the one that opened the endpoint */
        kl_core_meter_close(&wait->meter);
        kl_core_meter_open(&wait->meter);
        wait->thread = gettid();
        forget_core(wait, now_s);
    }
    if (!kl_core_read(&wait->meter, &s.run_s, &s.delay_s, &s.slices)) {
        forget_core(wait, now_s);
        return;
    }
    if (kl_core_share_wants_idle(&wait->core, now_s)) {
        s.idle_s = kl_core_idle_s(&wait->meter);
        s.idle_unknown = s.idle_s < 0;
    }
    if (!wait->measured)
        wait->core = (kl_core_share){.share = 1};
    kl_core_share_add(&wait->core, &s);
    if (wait->mpi_yields) /* the rank's slices end early, so they do not show the length of a time slice */
        wait->core.quantum_s = 0;
    wait->measured = true;
    bool pins = wait->may_pin && (wait->core.mode != KL_CORE_OWN || wait->pin.pinned);
    if (wait->bells && (wait->shares_cores || pins))
        look_at_crowd(wait, now_s, s.run_s);
    else
        wait->crowd = (kl_crowd){0};
    if (wait->bells && pins)
        pin_core(wait, now_s);
    wait->core.unsettled = wait->shares_cores && wait->bells && !wait->crowd.judged;
    wait->core.taken = wait->crowd.taken;
}

/* --- the steps of one wait for messages --- */

static void get_up(kl_mpi_wait *wait) {
    if (wait->lying > 0)
        kl_bells_get_up(wait->bells);
    wait->lying = 0;
}

void kl_mpi_traffic(kl_mpi_wait *wait) {
    get_up(wait);
    wait->looks = 0;
    wait->traffic_s = kl_monotonic_s();
}

void kl_mpi_waited(kl_mpi_wait *wait) {
    double now_s = kl_monotonic_s(), waited_s = now_s - wait->traffic_s;
    get_up(wait);
    wait->waited_s += now_s - fmax(wait->traffic_s, wait->counted_s);
    wait->counted_s = now_s;
    if (waited_s < LONG_WAIT_S)
        wait->usual_s += WAIT_MEMORY * (waited_s - wait->usual_s);
}

int kl_mpi_look(kl_mpi_wait *wait, kl_mpi_sight *s, bool for_ever) {
    (void)wait, (void)for_ever;
    int code = MPI_Testsome(s->receives + s->sends, s->requests, &s->done, s->which, s->statuses);
    if (s->done == MPI_UNDEFINED || s->done < 0)
        s->done = 0;
    return code;
}

int kl_mpi_look_collective(kl_mpi_wait *wait, MPI_Request *request, bool for_ever, int *done) {
    (void)wait, (void)for_ever;
    return MPI_Test(request, done, MPI_STATUS_IGNORE);
}

/* Return whether to check again at once. If the message is only microseconds late, a nap costs more than a
 * check. But a rank must not spin for long on a core that the sender of the message may need. If MPI yields,
 * the sender gets the core in each check. In longer waits the rank sleeps even so: spinning counts as time in
 * which it wanted its core. */
static bool spins(const kl_mpi_wait *wait, double waited_s) {
    if (wait->looks < LOOKS)
        return true;
    if (wait->shares_cores ? wait->crowd.alone || wait->mpi_yields : !wait->core.sleeps && wait->measured)
        return waited_s < wait->spin_s;
    if (wait->mpi_yields)
        return waited_s < fmin(YIELDING_SPIN_S, wait->spin_s);
    return wait->usual_s < SHORT_WAIT_S && waited_s < fmin(SHORT_SPIN_S, wait->spin_s);
}

static double between(double least, double value, double most) {
    return value < least ? least : value < most ? value : most;
}

/* Mark the rank as asleep, check twice more, then sleep. Two checks are needed because Open MPI's
 * MPI_Testsome() reports a message only in the second call after it has arrived. */
static void sleep_until_rung(kl_mpi_wait *wait, double waited_s, double most_s) {
    if (wait->lying == 0)
        kl_bells_lie_down(wait->bells);
    if (wait->lying++ < LAST_LOOKS)
        return;
    double longest_s = between(SHORTEST_SLEEP_S, SLEEP_PART * waited_s, LONGEST_SLEEP_S);
    kl_bells_sleep(wait->bells, fmin(longest_s, most_s));
    get_up(wait);
}

/* Sleep for a part of the time waited so far. The system's timers may be 50 µs late, which is longer than a
 * short nap, so make the timers finer during the nap. */
static void nap(double waited_s, double most_s) {
    double longest_s = waited_s > REST_AFTER_S ? LONGEST_REST_S : LONGEST_NAP_S;
    int slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
    kl_nap_s(fmin(between(SHORTEST_NAP_S, NAP_PART * waited_s, longest_s), most_s));
    if (slack_ns > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)slack_ns, 0, 0, 0);
}

void kl_mpi_rest(kl_mpi_wait *wait, bool rings, double remaining_s) {
    double now_s = kl_monotonic_s(), waited_s = now_s - wait->traffic_s;
    wait->rested_s = now_s;
    kl_mpi_look_at_core(wait, now_s);
    if (spins(wait, waited_s)) {
        wait->looks++;
        if (wait->shares_cores && wait->crowd.alone && !wait->mpi_yields)
            sched_yield();
        return;
    }
    if (rings && wait->bells)
        sleep_until_rung(wait, waited_s, remaining_s);
    else
        nap(waited_s, remaining_s);
}
