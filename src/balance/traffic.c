/* The measured cost of messages and of the master's answers. */
#include <math.h>

#include "balance/balance.h"
#include "probe/probe.h"

void kl_balance_answer_cost(kl_balance *b, double busy_s) {
    kl_stat_add(&b->traffic.answer, busy_s, kl_now_s(&b->clock));
    kl_stat_add(&b->traffic.answers, busy_s, kl_now_s(&b->clock));
}

/* a window of measurements ends only when the master has handled at least this number of chunks in it */
enum { WINDOW_LEAST = 8 };

void kl_traffic_next_window(kl_traffic *t) {
    if (t->answers.count < WINDOW_LEAST)
        return;
    t->answers_before = t->answers;
    t->answers = (kl_stat){0};
}

kl_stat kl_traffic_answer(const kl_traffic *t) {
    kl_stat all = t->answers_before;
    kl_stat_merge(&all, &t->answers);
    return all;
}

/* SLEPT_S: a master that waited longer than this for a request has slept. WAKES_LEAST: least number of
 * measured times for a mean, both after a sleep and without a sleep. */
static const double SLEPT_S = 20e-6;
enum { WAKES_LEAST = 8 };

void kl_balance_wake_cost(kl_balance *b, double busy_s, double waited_s) {
    kl_stat_add(waited_s > SLEPT_S ? &b->traffic.woken : &b->traffic.awake, busy_s, kl_now_s(&b->clock));
}

/* Return whether there are enough times with and without a sleep to compare their means. The comparison is
 * fair: all these chunks have one task, so they have the same number of bytes on average. */
bool kl_traffic_wakes(const kl_traffic *t) {
    return t->woken.count >= WAKES_LEAST && t->awake.count >= WAKES_LEAST;
}

/* Use the cost measured by probes if it is smaller than the cost of the run's messages. A message of a run
 * may wait for a busy core, but chunks are requested so early that this wait costs no time. It may also wait
 * for the link, but the model computes this wait from the load of the link. */
void kl_balance_message_cost(kl_balance *b, double bytes, double one_way_s, bool probe) {
    kl_msgcost_add(&b->traffic.message, bytes, one_way_s);
    if (probe)
        kl_msgcost_add(&b->traffic.probed, bytes, one_way_s);
    kl_stat_add(&b->traffic.round_trip, 2 * one_way_s, kl_now_s(&b->clock));
    kl_linear now = kl_msgcost_fit(&b->traffic.message), probed = kl_msgcost_fit(&b->traffic.probed);
    b->traffic.now = now;
    b->snapshot.message = b->traffic.probed.count > 0 && probed.fixed_s < now.fixed_s ? probed : now;
    b->snapshot.round_trip_s = 2 * b->snapshot.message.fixed_s;
}

/* Keep the time of the fastest stream, because other messages may have delayed the slower ones. */
void kl_balance_link_cost(kl_balance *b, double byte_s) {
    kl_traffic *t = &b->traffic;
    if (t->link_byte_s == 0 || byte_s < t->link_byte_s)
        t->link_byte_s = byte_s;
    t->links_measured++;
}

/* Keep the fastest round trip of all workers, one for small probes and one for large probes. The cost of a
 * byte is computed from the difference of these two times. The difference is small, so a single delayed probe
 * would falsify it. */
void kl_balance_near_cost(kl_balance *b, double small_s, double large_s) {
    kl_traffic *t = &b->traffic;
    if (t->near_s == 0 || small_s / 2 < t->near_s)
        t->near_s = small_s / 2;
    if (t->near_large_s == 0 || large_s / 2 < t->near_large_s)
        t->near_large_s = large_s / 2;
    t->copy_byte_s = kl_probe_copy_s(2 * t->near_s, 2 * t->near_large_s);
}

/* If the link stays busy with earlier chunks for longer than this part of a message's fixed time, a chunk
 * counts as delayed. Its measured time would include the time of the earlier chunks. */
static const double QUIET_PART = 0.1;

bool kl_traffic_is_quiet(const kl_traffic *t, double now_s) {
    return t->free_s - now_s <= QUIET_PART * t->now.fixed_s;
}

void kl_traffic_sent(kl_traffic *t, uint64_t bytes, double now_s) {
    t->free_s = fmax(t->free_s, now_s) + t->now.per_unit_s * (double)bytes;
}
